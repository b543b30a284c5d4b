//! Owns reading git's configuration.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use super::merge_rules::attribute_files;
use super::{Error, Repo, injected};

/// Settings by which git writes files in another form than they have in the repository.
const OF_FORM: &str = "^(attr|filter)\\.|^core\\.(attributesfile|autocrlf|eol|filemode|symlinks)$";

/// The library's own section. Git reads nothing there; the library does, also from files and from variables of git's that git is
/// started without: `GIT_NAMESPACE`, `GIT_SHALLOW_FILE`, `GIT_INDEX_FILE`.
const LIBRARY: &str = "gitoxide";

/// Where git keeps replacements of objects, whatever the library's section says.
const REPLACEMENTS: &str = "gitoxide.objects.replaceRefBase=refs/replace/";

/// Makes the library open a repository as git finds it, which is started without `GIT_NO_REPLACE_OBJECTS` and
/// `GIT_REPLACE_REF_BASE`.
pub(super) fn as_git_opens(options: gix::open::Options) -> gix::open::Options {
    let mut permissions = gix::open::Permissions::all();
    permissions.env.objects = gix::sec::Permission::Deny;
    options.permissions(permissions).config_overrides([REPLACEMENTS])
}

/// Opens the repository whose worktree is at `dir`, with the settings that git has there. None where there is none.
pub(super) fn open(dir: &Path) -> Option<gix::Repository> {
    let mut gix = gix::open_opts(dir, as_git_opens(gix::open::Options::default())).ok()?;
    as_git_has_them(&mut gix);
    Some(gix)
}

/// Leaves the settings that git has: with those of its command line, without the library's own.
pub(super) fn as_git_has_them(gix: &mut gix::Repository) {
    let mut snapshot = gix.config_snapshot_mut();
    let found = snapshot.sections_by_name(LIBRARY).into_iter().flatten();
    let from_outside = found.filter(|section| section.meta().source != gix::config::Source::Api);
    let ids: Vec<_> = from_outside.map(|section| section.id()).collect();
    for id in &ids {
        let _ = snapshot.remove_section_by_id(*id);
    }
    if ids.is_empty() {
        snapshot.forget();
    } else {
        // Less is set than before, so nothing can be wrong that was not.
        let _ = snapshot.commit();
    }
    add_from_command_line(gix);
}

/// Adds the settings of git's own command line (`git -c key=value proq`), which win over all files; the library does not look
/// there.
fn add_from_command_line(gix: &mut gix::Repository) {
    let Some(Ok(text)) = injected::own_parameters().map(std::ffi::OsString::into_string) else { return };
    for setting in parse(&text) {
        let mut snapshot = gix.config_snapshot_mut();
        // One at a time: what the library cannot read says nothing about the others.
        if snapshot.append_config([setting.as_str()], gix::config::Source::Cli).is_err() {
            snapshot.forget();
        }
    }
}

/// Reads `'key'='value' 'key=value' 'key'=`, each quoted as for a shell, into `key=value` (`key` alone is true).
fn parse(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut word = String::new();
    let mut quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => out.push(std::mem::take(&mut word)),
            '\\' if !quoted => word.extend(chars.next()),
            // `'key'=` without a value is a switch that is on.
            '=' if !quoted && chars.peek() != Some(&'\'') => {}
            c => word.push(c),
        }
    }
    out.push(word);
    out.retain(|word| !word.is_empty());
    out
}

impl Repo {
    /// A git setting that is a boolean; none when unset or not a boolean.
    pub(crate) fn setting_bool(&self, key: &str) -> Option<bool> {
        self.gix.config_snapshot().boolean(key)
    }

    /// All that decides in which form git writes the files of a commit in the worktree at `dir`, and that is in no commit.
    ///
    /// # Errors
    /// When git cannot read its settings.
    pub(crate) fn form_outside_of_commits(&self, dir: &Path) -> Result<Vec<u8>, Error> {
        let call = self.git_in(dir).args(["config", "-z", "--get-regexp", OF_FORM]);
        let mut form = call.accept(&[1]).run()?.stdout;
        for file in attribute_files(self) {
            form.push(0);
            // Git does without one that cannot be read, too.
            form.extend(std::fs::read(&file).unwrap_or_default());
        }
        Ok(form)
    }

    /// The settings in the repository's own `config`, without those of files that it includes: by key, with a number that changes
    /// with the values. Empty where it cannot be read.
    pub(crate) fn own_settings(&self) -> BTreeMap<String, String> {
        let file = self.common_dir().join("config");
        let read = gix::config::File::from_path_no_includes(file, gix::config::Source::Local);
        let mut out = BTreeMap::new();
        for section in read.iter().flat_map(gix::config::File::sections) {
            let header = section.header();
            let start = match header.subsection_name() {
                Some(sub) => format!("{}.{sub}", header.name().to_string().to_lowercase()),
                None => header.name().to_string().to_lowercase(),
            };
            for (name, value) in section.body() {
                let mut hasher = DefaultHasher::new();
                let key = format!("{start}.{}", name.to_lowercase());
                out.get(&key).hash(&mut hasher);
                value.hash(&mut hasher);
                out.insert(key, format!("{:016x}", hasher.finish()));
            }
        }
        out
    }

    /// All `proq.*` settings in git's order (later wins), as `(key without "proq.", value)`.
    pub(crate) fn proq_settings(&self) -> Vec<(String, String)> {
        let snapshot = self.gix.config_snapshot();
        let mut out = Vec::new();
        for section in snapshot.sections_by_name("proq").into_iter().flatten() {
            let sub = section.header().subsection_name().map(ToString::to_string);
            for (name, value) in section.body() {
                let key = match &sub {
                    Some(sub) => format!("{sub}.{}", name.to_lowercase()),
                    None => name.to_lowercase(),
                };
                out.push((key, value.to_string()));
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gits_command_line_settings_are_read_in_every_form() {
        let text = "'proq.a=1' 'proq.b'='it'\\''s  x=y' 'proq.c'= 'proq.d'='' 'proq.e'='!'";
        assert_eq!(parse(text), ["proq.a=1", "proq.b=it's  x=y", "proq.c", "proq.d=", "proq.e=!"]);
        assert_eq!(parse(""), [""; 0]);
    }
}
