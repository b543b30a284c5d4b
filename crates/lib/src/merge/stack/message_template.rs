//! Templates of commit messages: text with placeholders in braces.

use crate::merge::Error;
use crate::merge::types::error::PLACEHOLDERS;

/// Replaces each `{name}` of a template by the value that `find_value` returns for the name; `{{` and `}}`
/// stand for braces. `setting` is the setting that the template comes from.
///
/// # Errors
/// [`Error::UnknownPlaceholder`], also for a brace without its counterpart; errors of `find_value`.
pub(crate) fn expand(
    setting: &'static str,
    template: &str,
    find_value: &dyn Fn(&str) -> Result<String, Error>,
) -> Result<String, Error> {
    let mut out = String::new();
    let mut rest = template;
    while let Some(at) = rest.find(['{', '}']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if rest.starts_with("{{") || rest.starts_with("}}") {
            out.push_str(&rest[..1]);
            rest = &rest[2..];
            continue;
        }
        let name = rest.strip_prefix('{').and_then(|text| text.split_once('}')).map(|(name, _)| name);
        let Some(name) = name.filter(|name| PLACEHOLDERS.contains(name)) else {
            let placeholder =
                name.map_or_else(|| rest.chars().take(1).collect(), |name| format!("{{{name}}}"));
            return Err(Error::UnknownPlaceholder { setting, placeholder });
        };
        out.push_str(&find_value(name)?);
        rest = &rest[name.len() + 2..];
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand_names(template: &str) -> Result<String, String> {
        let value = |name: &str| Ok(name.to_uppercase());
        expand("merge.subject", template, &value).map_err(|e| e.to_string())
    }

    #[test]
    fn replaces_placeholders_and_doubled_braces() {
        assert_eq!(expand_names("fix({lane}): {title}{{}}").unwrap(), "fix(LANE): TITLE{}");
        assert_eq!(expand_names("plain").unwrap(), "plain");
        assert_eq!(expand_names("{{lane}} {lane}").unwrap(), "{lane} LANE");
    }

    #[test]
    fn refuses_unknown_placeholder_with_list() {
        let error = expand_names("{lane} {ticket}").unwrap_err();
        assert!(error.contains("'{ticket}'") && error.contains("{lane}, {subject}, {title}"), "{error}");
        for broken in ["{lane", "lane}", "{", "{}", "{Lane}"] {
            assert!(expand_names(broken).is_err(), "{broken}");
        }
    }
}
