//! Templates of hints in the source: `#[hint("…")]` and `hint!("…")`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Text of a hint in the source, with placeholders.
pub(crate) struct Template {
    /// The text with `{}` for each placeholder. It identifies the hint.
    pub(crate) key: String,
    /// File of the source, relative to the top of the repository.
    pub(crate) place: PathBuf,
    /// The texts between the placeholders.
    literals: Vec<String>,
}

impl Template {
    fn new(format: &str, place: &Path) -> Template {
        let (mut literals, mut chars) = (vec![String::new()], format.chars().peekable());
        while let Some(c) = chars.next() {
            if (c == '{' || c == '}') && chars.next_if_eq(&c).is_none() {
                chars.by_ref().find(|c| *c == '}');
                literals.push(String::new());
            } else if let Some(literal) = literals.last_mut() {
                literal.push(c);
            }
        }
        Template { key: literals.join("{}"), place: place.to_owned(), literals }
    }

    /// Returns whether the hint has a command, which stands behind the first colon.
    pub(crate) fn has_command(&self) -> bool {
        self.key.contains(": ")
    }

    /// Returns the length of the text without placeholders: of two templates that match, the longer one is meant.
    pub(crate) fn literal_len(&self) -> usize {
        self.literals.iter().map(String::len).sum()
    }

    /// Returns whether a printed hint can be one of this template.
    pub(crate) fn matches(&self, hint: &str) -> bool {
        let [first, rest @ ..] = self.literals.as_slice() else { return false };
        let Some(mut text) = hint.strip_prefix(first.as_str()) else { return false };
        let Some((last, middle)) = rest.split_last() else { return text.is_empty() };
        for literal in middle {
            let Some(at) = text.find(literal.as_str()) else { return false };
            text = &text[at + literal.len()..];
        }
        text.ends_with(last.as_str())
    }
}

/// Returns the templates in the crates of the product, each text once.
pub(crate) fn templates_below(root: &Path) -> Result<Vec<Template>, String> {
    let mut out = BTreeMap::new();
    let mut folders = vec![root.join("src"), root.join("crates")];
    while let Some(folder) = folders.pop() {
        let fail = |error: std::io::Error| format!("cannot read {}: {error}", folder.display());
        for entry in std::fs::read_dir(&folder).map_err(fail)? {
            let path = entry.map_err(fail)?.path();
            let is_test = path.file_stem().is_some_and(|name| name == "tests");
            if path.is_dir() && !is_test {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") && !is_test {
                let text = std::fs::read_to_string(&path).map_err(fail)?;
                let place = path.strip_prefix(root).unwrap_or(&path);
                out.extend(templates_in(&text, place)?.into_iter().map(|found| (found.key.clone(), found)));
            }
        }
    }
    Ok(out.into_values().collect())
}

/// Returns the templates in the text of a source file, without those that only tests compile.
pub(crate) fn templates_in(text: &str, place: &Path) -> Result<Vec<Template>, String> {
    let tokens: TokenStream = text.parse().map_err(|error| format!("{}: {error}", place.display()))?;
    let mut formats = Vec::new();
    collect(tokens, &mut formats);
    Ok(formats.iter().map(|format| Template::new(format, place)).collect())
}

/// Adds the format strings of the hints in `tokens`.
fn collect(tokens: TokenStream, out: &mut Vec<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut index = 0;
    while let Some(token) = tokens.get(index) {
        if let TokenTree::Group(group) = token {
            let before =
                |n: usize| index.checked_sub(n).and_then(|at| tokens.get(at)).map(ToString::to_string);
            if before(1).as_deref() == Some("#") && group.to_string().replace(' ', "") == "[cfg(test)]" {
                index += tokens[index..].iter().position(ends_item).unwrap_or(tokens.len());
            } else if (before(1).as_deref() == Some("!") && before(2).as_deref() == Some("hint"))
                || is_attribute(&tokens, index)
            {
                out.extend(first_format(group.stream()));
            }
            collect(group.stream(), out);
        }
        index += 1;
    }
}

/// Returns whether the group at `index` has the arguments of an attribute `hint(…)`.
fn is_attribute(tokens: &[TokenTree], index: usize) -> bool {
    index == 1 && tokens.len() == 2 && tokens.first().is_some_and(|name| name.to_string() == "hint")
}

/// Returns whether a token ends an item: its body, or a semicolon.
fn ends_item(token: &TokenTree) -> bool {
    match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(punct) => punct.as_char() == ';',
        _ => false,
    }
}

/// Returns the first of the arguments that is a string literal and nothing else.
fn first_format(arguments: TokenStream) -> Option<String> {
    let tokens: Vec<TokenTree> = arguments.into_iter().collect();
    let is_comma = |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',');
    tokens.split(is_comma).find_map(|argument| match argument {
        [literal] => syn::parse2::<syn::LitStr>(literal.clone().into()).ok().map(|literal| literal.value()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_templates_of_attributes_and_of_the_macro() {
        let source = r#"
            #[hint("show it: git proq show {name}")]
            #[hint(if mode == "plan", "{{}} {}", "x")]
            #[hint(with = others())]
            enum E {}
            fn f() { ui.hint(hint!("plain")); other!("no") }
            #[cfg(test)]
            mod tests { fn g() { hint!("only in a test"); } }
        "#;
        let found = templates_in(source, Path::new("a.rs")).unwrap();
        let keys: Vec<&str> = found.iter().map(|template| template.key.as_str()).collect();
        assert_eq!(keys, ["show it: git proq show {}", "{} {}", "plain"]);
    }

    #[test]
    fn matches_printed_hints_with_anything_in_place_of_placeholders() {
        let template = Template::new("merge it: git proq merge {lane} --force", Path::new("a.rs"));
        assert!(template.matches("merge it: git proq merge a b --force"));
        assert!(!template.matches("merge it: git proq merge a"));
        assert!(!template.matches("see it: git proq merge a --force"));
        assert!(Template::new("plain", Path::new("a.rs")).matches("plain"));
        assert!(!Template::new("plain", Path::new("a.rs")).matches("plain text"));
    }
}
