//! Reading git's configuration.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use super::attributes::attribute_files_outside_tree;
use crate::{Error, Repo};

/// Regular expression of the settings that make git write files in another form than they have in the
/// repository.
const CONVERSION_KEYS: &str = "^(attr|filter)\\.|^core\\.(attributesfile|autocrlf|eol|filemode|symlinks)$";

/// File of git's settings that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingsFile {
    /// The repository's own file, `.git/config`.
    Local,
    /// The user's file, `~/.gitconfig`.
    Global,
}

impl SettingsFile {
    /// Returns the option of `git config` that selects the file.
    pub fn option(self) -> &'static str {
        match self {
            SettingsFile::Local => "--local",
            SettingsFile::Global => "--global",
        }
    }
}

impl Repo {
    /// Returns a boolean git setting; none when it is unset or not a boolean.
    pub fn setting_bool(&self, key: &str) -> Option<bool> {
        self.gix.config_snapshot().boolean(key)
    }

    /// Returns a git setting as text; none when unset.
    pub fn setting_text(&self, key: &str) -> Option<String> {
        self.gix.config_snapshot().string(key).map(|value| value.to_string())
    }

    /// Returns all values of a git setting that may be set repeatedly.
    pub(crate) fn setting_values(&self, key: &str) -> Vec<String> {
        let values = self.gix.config_snapshot().strings(key).unwrap_or_default();
        values.iter().map(ToString::to_string).collect()
    }

    /// Returns everything outside of commits that determines the form in which git writes files to the
    /// worktree at `dir`.
    ///
    /// # Errors
    /// Fails if git cannot read its settings.
    pub fn conversion_config(&self, dir: &Path) -> Result<Vec<u8>, Error> {
        let command = self.git_in(dir).args(["config", "-z", "--get-regexp", CONVERSION_KEYS]);
        let mut config = command.accept_exit_codes(&[1]).run()?.stdout;
        for file in attribute_files_outside_tree(self) {
            config.push(0);
            // git also ignores one that cannot be read.
            config.extend(std::fs::read(&file).unwrap_or_default());
        }
        Ok(config)
    }

    /// Returns the settings in the repository's own `config`, without included files: by key, with a hash of
    /// the values. Empty if it cannot be read.
    pub fn local_setting_hashes(&self) -> BTreeMap<String, String> {
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

    /// Returns whether a file of git's settings has a value for a key.
    ///
    /// # Errors
    /// Fails if git cannot read the file.
    pub fn has_setting_in(&self, file: SettingsFile, key: &str) -> Result<bool, Error> {
        let command = self.git_in(self.command_dir()).args(["config", file.option(), "--get-all", key]);
        Ok(command.accept_exit_codes(&[1]).run()?.code == 0)
    }

    /// Replaces all values of a key in a file of git's settings; without values, removes the key.
    ///
    /// # Errors
    /// Fails if git cannot write the file. The key may have some of the values then.
    pub fn write_setting(&self, file: SettingsFile, key: &str, values: &[String]) -> Result<(), Error> {
        let git_config = |verb: &str| {
            self.git_in(self.command_dir()).args(["config", file.option(), verb, key]).mutating()
        };
        let Some((first, others)) = values.split_first() else {
            // Exit code 5: the key is not set.
            return git_config("--unset-all").accept_exit_codes(&[5]).run().map(drop);
        };
        git_config("--replace-all").arg(first).run()?;
        others.iter().try_for_each(|value| git_config("--add").arg(value).run().map(drop))
    }

    /// Opens a file of git's settings in the user's editor on the terminal.
    ///
    /// # Errors
    /// Fails if git or the editor fails.
    pub fn edit_settings(&self, file: SettingsFile) -> Result<(), Error> {
        self.git_in(self.command_dir()).args(["config", file.option(), "--edit"]).run_on_terminal()
    }

    /// Returns all `proq.*` settings in git's order (later wins), as `(key without "proq.", value)`.
    pub fn proq_settings(&self) -> Vec<(String, String)> {
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

/// Returns whether a git that was not installed with the system has system-wide settings or attributes: the
/// location of those files was fixed when git was built.
pub(crate) fn has_build_specific_config(git: &Path) -> bool {
    let has_config_files = |program: &Path| {
        let prefix = program.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
        let folder = prefix.join("etc");
        folder != Path::new("/usr/etc")
            && ["gitconfig", "gitattributes"].iter().any(|f| folder.join(f).exists())
    };
    has_config_files(git) || git.canonicalize().is_ok_and(|real| has_config_files(&real))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_config_of_custom_git_prefix() {
        let dir = tempfile::tempdir().unwrap();
        let (prefix, elsewhere) = (dir.path().join("opt"), dir.path().join("git"));
        std::fs::create_dir_all(prefix.join("bin")).unwrap();
        std::fs::create_dir_all(prefix.join("etc")).unwrap();
        let git = prefix.join("bin/git");
        std::fs::write(&git, "").unwrap();
        std::os::unix::fs::symlink(&git, &elsewhere).unwrap();
        for file in ["gitconfig", "gitattributes"] {
            assert!(!has_build_specific_config(&git) && !has_build_specific_config(&elsewhere));
            std::fs::write(prefix.join("etc").join(file), "").unwrap();
            assert!(has_build_specific_config(&git) && has_build_specific_config(&elsewhere), "{file}");
            std::fs::remove_file(prefix.join("etc").join(file)).unwrap();
        }
    }
}
