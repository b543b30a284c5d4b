//! Reading git's configuration.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use super::merge_rules::attribute_files;
use super::{Error, Repo, injected_config};

/// Regular expression of the settings that make git write files in another form than they have in the
/// repository.
const CONVERSION_KEYS: &str = "^(attr|filter)\\.|^core\\.(attributesfile|autocrlf|eol|filemode|symlinks)$";

/// Settings section of gitoxide itself, which git does not read. gitoxide also takes it from files and from
/// git variables that git is started without: `GIT_NAMESPACE`, `GIT_SHALLOW_FILE`, `GIT_INDEX_FILE`.
const LIBRARY_SECTION: &str = "gitoxide";

/// Setting that gives gitoxide git's default location of replacement objects. It applies although git-proq
/// removes gitoxide's own section.
const REPLACE_REFS_OVERRIDE: &str = "gitoxide.objects.replaceRefBase=refs/replace/";

/// Returns options with which gitoxide opens a repository as git does without `GIT_NO_REPLACE_OBJECTS` and
/// `GIT_REPLACE_REF_BASE`.
pub(super) fn git_open_options(options: gix::open::Options) -> gix::open::Options {
    let mut permissions = gix::open::Permissions::all();
    permissions.env.objects = gix::sec::Permission::Deny;
    options.permissions(permissions).config_overrides([REPLACE_REFS_OVERRIDE])
}

/// Opens the repository whose worktree is at `dir`, with the settings that git would use; none if gitoxide
/// cannot open it.
pub(super) fn open(dir: &Path) -> Option<gix::Repository> {
    let mut gix = gix::open_opts(dir, git_open_options(gix::open::Options::default())).ok()?;
    apply_git_settings(&mut gix);
    Some(gix)
}

/// Makes gitoxide use exactly git's settings: adds those of git's command line, and removes gitoxide's own
/// section.
pub(super) fn apply_git_settings(gix: &mut gix::Repository) {
    let mut snapshot = gix.config_snapshot_mut();
    let sections = snapshot.sections_by_name(LIBRARY_SECTION).into_iter().flatten();
    let foreign_sections = sections.filter(|section| section.meta().source != gix::config::Source::Api);
    let ids: Vec<_> = foreign_sections.map(|section| section.id()).collect();
    for id in &ids {
        let _ = snapshot.remove_section_by_id(*id);
    }
    if ids.is_empty() {
        snapshot.forget();
    } else {
        // Fewer settings than before cannot introduce an invalid one.
        let _ = snapshot.commit();
    }
    add_from_command_line(gix);
}

/// Adds the settings of git's own command line (`git -c key=value proq`), which override all files. gitoxide
/// does not read them.
fn add_from_command_line(gix: &mut gix::Repository) {
    let Some(Ok(text)) = injected_config::user_parameters().map(std::ffi::OsString::into_string) else {
        return;
    };
    for setting in parse_parameters(&text) {
        let mut snapshot = gix.config_snapshot_mut();
        // Each setting is added separately, so that one that the library cannot read does not affect the
        // others.
        if snapshot.append_config([setting.as_str()], gix::config::Source::Cli).is_err() {
            snapshot.forget();
        }
    }
}

/// Parses `'key'='value' 'key=value' 'key'=`, each quoted as for a shell, into `key=value` (`key` alone is
/// true).
fn parse_parameters(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut current = String::new();
    let mut quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => out.push(std::mem::take(&mut current)),
            '\\' if !quoted => current.extend(chars.next()),
            // `'key'=` without a value is a switch that is on.
            '=' if !quoted && chars.peek() != Some(&'\'') => {}
            c => current.push(c),
        }
    }
    out.push(current);
    out.retain(|word| !word.is_empty());
    out
}

impl Repo {
    /// Returns a boolean git setting; none when it is unset or not a boolean.
    pub(crate) fn setting_bool(&self, key: &str) -> Option<bool> {
        self.gix.config_snapshot().boolean(key)
    }

    /// Returns everything outside of commits that determines the form in which git writes files to the
    /// worktree at `dir`.
    ///
    /// # Errors
    /// Fails if git cannot read its settings.
    pub(crate) fn conversion_config(&self, dir: &Path) -> Result<Vec<u8>, Error> {
        let command = self.git_in(dir).args(["config", "-z", "--get-regexp", CONVERSION_KEYS]);
        let mut config = command.accept(&[1]).run()?.stdout;
        for file in attribute_files(self) {
            config.push(0);
            // git also ignores one that cannot be read.
            config.extend(std::fs::read(&file).unwrap_or_default());
        }
        Ok(config)
    }

    /// Returns the settings in the repository's own `config`, without included files: by key, with a hash of
    /// the values. Empty if it cannot be read.
    pub(crate) fn local_setting_hashes(&self) -> BTreeMap<String, String> {
        let file = self.common_dir().join("config");
        let config = gix::config::File::from_path_no_includes(file, gix::config::Source::Local);
        let mut out = BTreeMap::new();
        for section in config.iter().flat_map(gix::config::File::sections) {
            let header = section.header();
            let prefix = match header.subsection_name() {
                Some(sub) => format!("{}.{sub}", header.name().to_string().to_lowercase()),
                None => header.name().to_string().to_lowercase(),
            };
            for (name, value) in section.body() {
                let mut hasher = DefaultHasher::new();
                let key = format!("{prefix}.{}", name.to_lowercase());
                out.get(&key).hash(&mut hasher);
                value.hash(&mut hasher);
                out.insert(key, format!("{:016x}", hasher.finish()));
            }
        }
        out
    }

    /// Returns all `proq.*` settings in git's order (later wins), as `(key without "proq.", value)`.
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
    fn parses_command_line_settings_in_every_form() {
        let text = "'proq.a=1' 'proq.b'='it'\\''s  x=y' 'proq.c'= 'proq.d'='' 'proq.e'='!'";
        assert_eq!(parse_parameters(text), ["proq.a=1", "proq.b=it's  x=y", "proq.c", "proq.d=", "proq.e=!"]);
        assert_eq!(parse_parameters(""), [""; 0]);
    }
}
