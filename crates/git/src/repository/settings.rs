//! Reading git's configuration.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use super::attributes::attribute_files_outside_tree;
use super::settings_copy;
use super::settings_copy::SettingsCopy;
use crate::program::command::{Command, Program};
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

    /// Returns whether the repository's own `config` has settings of a branch. False if it cannot be read.
    pub fn has_branch_settings(&self, branch: &str) -> bool {
        let file = self.common_dir().join("config");
        let config = gix::config::File::from_path_no_includes(file, gix::config::Source::Local);
        let mut sections = config.iter().flat_map(gix::config::File::sections);
        sections.any(|section| {
            let header = section.header();
            header.name().to_string().eq_ignore_ascii_case("branch")
                && header.subsection_name().is_some_and(|name| *name == branch)
        })
    }

    /// Moves the repository's own settings of a branch to another name, as `git branch -m` does. Does nothing if
    /// there are none, or if the other name has some.
    ///
    /// # Errors
    /// Fails if git cannot write the file, or another process writes it. Nothing was changed then.
    pub fn rename_branch_settings(&self, old: &str, new: &str) -> Result<(), Error> {
        if !self.has_branch_settings(old) || self.has_branch_settings(new) {
            return Ok(());
        }
        let copy = SettingsCopy::create(&self.settings_path(SettingsFile::Local)?)?;
        let (file, old, new) =
            (copy.file().to_string_lossy(), format!("branch.{old}"), format!("branch.{new}"));
        self.git().args(["config", "--file", &file, "--rename-section", &old, &new]).mutating().run()?;
        copy.commit()
    }

    /// Returns whether a file of git's settings has a value for a key.
    ///
    /// # Errors
    /// Fails if git cannot read the file.
    pub fn has_setting_in(&self, file: SettingsFile, key: &str) -> Result<bool, Error> {
        let command = self.git_in(self.command_dir()).args(["config", file.option(), "--get-all", key]);
        Ok(command.accept_exit_codes(&[1]).run()?.code == 0)
    }

    /// Returns the file from which the value of a key comes that counts, as git names it: a path, or where no
    /// file has it, words such as `command line:`; none if the key is not set.
    ///
    /// # Errors
    /// Fails if git cannot read its settings.
    pub fn setting_origin(&self, key: &str) -> Result<Option<String>, Error> {
        let command =
            self.git_in(self.command_dir()).args(["config", "-z", "--show-origin", "--get-all", key]);
        let out = command.accept_exit_codes(&[1]).run()?;
        // Each value comes with its origin before it.
        let origin = out.stdout.split(|b| *b == 0).filter(|field| !field.is_empty()).nth_back(1);
        let origin = origin.map(|field| String::from_utf8_lossy(field).into_owned());
        Ok(origin.map(|origin| origin.strip_prefix("file:").map_or(origin.clone(), str::to_owned)))
    }

    /// Returns the other files than `file` whose values of a list count too, as git names them, each once. An
    /// empty value restarts a list.
    ///
    /// # Errors
    /// Fails if git cannot read its settings.
    pub fn other_list_origins(&self, file: SettingsFile, key: &str) -> Result<Vec<String>, Error> {
        let read = |scope: &[&str]| {
            let args = [&["config", "-z", "--show-origin"], scope, &["--get-all", key]].concat();
            let out = self.git_in(self.command_dir()).args(args).accept_exit_codes(&[1]).run()?.stdout;
            let text = |field: &[u8]| String::from_utf8_lossy(field).into_owned();
            let fields: Vec<String> =
                out.strip_suffix(b"\0").unwrap_or(&out).split(|b| *b == 0).map(text).collect();
            // Each value comes with its origin before it.
            Ok::<_, Error>(
                fields.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect::<Vec<_>>(),
            )
        };
        let (all, own) = (read(&[])?, read(&[file.option()])?);
        let start = all.iter().rposition(|(_, value)| value.is_empty()).map_or(0, |index| index + 1);
        let mut out: Vec<String> = Vec::new();
        for (origin, _) in all[start..].iter().filter(|(origin, _)| own.iter().all(|(own, _)| own != origin))
        {
            let name = origin.strip_prefix("file:").unwrap_or(origin).to_owned();
            if !out.contains(&name) {
                out.push(name);
            }
        }
        Ok(out)
    }

    /// Replaces all values of a key in a file of git's settings; without values, removes the key. Several values
    /// appear at once: no reader sees some of them.
    ///
    /// # Errors
    /// Fails if git cannot write the file, or another process writes it. Nothing was changed then.
    pub fn write_setting(&self, file: SettingsFile, key: &str, values: &[String]) -> Result<(), Error> {
        let git = || self.git_in(self.command_dir());
        write_setting_with(&git, file.option(), &|| self.settings_path(file), key, values)
    }

    /// Removes what a killed process left beside the repository's own settings while it wrote a list: its copy of
    /// the file, and the lock that it had.
    pub fn remove_settings_leftovers(&self) {
        if let Ok(path) = self.settings_path(SettingsFile::Local) {
            settings_copy::remove_leftovers(&path);
        }
    }

    /// Returns the path of a file of git's settings, which need not exist; a symbolic link is followed.
    fn settings_path(&self, file: SettingsFile) -> Result<PathBuf, Error> {
        let path = match file {
            SettingsFile::Local => self.common_dir().join("config"),
            SettingsFile::Global => return global_settings_path(),
        };
        Ok(path.canonicalize().unwrap_or(path))
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

/// Replaces all values of a key as [`Repo::write_setting`] does. `git` returns the beginning of a git command,
/// `option` selects the file, and `path` returns its path.
fn write_setting_with(
    git: &dyn Fn() -> Command,
    option: &str,
    path: &dyn Fn() -> Result<PathBuf, Error>,
    key: &str,
    values: &[String],
) -> Result<(), Error> {
    if let Ok(path) = path() {
        settings_copy::remove_leftovers(&path);
    }
    let git_config = |arguments: &[&str]| git().arg("config").args(arguments).arg(key).mutating();
    match values {
        // Exit code 5: the key is not set.
        [] => git_config(&[option, "--unset-all"]).accept_exit_codes(&[5]).run().map(drop),
        [value] => git_config(&[option, "--replace-all"]).arg(value).run().map(drop),
        [first, others @ ..] => {
            let copy = SettingsCopy::create(&path()?)?;
            let file = copy.file().to_string_lossy();
            git_config(&["--file", &file, "--replace-all"]).arg(first).run()?;
            for value in others {
                git_config(&["--file", &file, "--add"]).arg(value).run()?;
            }
            copy.commit()
        }
    }
}

/// Git's settings of the user for all repositories, for commands that run outside of any.
#[derive(Debug)]
pub struct GlobalSettings {
    git: Program,
    dir: PathBuf,
}

impl GlobalSettings {
    /// Finds git, which runs in `dir`.
    ///
    /// # Errors
    /// [`Error::NoGit`].
    pub fn find(dir: &Path) -> Result<GlobalSettings, Error> {
        Ok(GlobalSettings { git: Program::find()?, dir: dir.to_owned() })
    }

    /// Returns all values of a key; empty if it is not set.
    ///
    /// # Errors
    /// Fails if git cannot read the file.
    pub fn values(&self, key: &str) -> Result<Vec<String>, Error> {
        let command = self.git.command_in(&self.dir).args(["config", "--global", "-z", "--get-all", key]);
        let out = command.accept_exit_codes(&[1]).run()?;
        let values = out.nul_separated_fields().map(|value| String::from_utf8_lossy(value).into_owned());
        Ok(values.collect())
    }

    /// Replaces all values of a key, as [`Repo::write_setting`] does.
    ///
    /// # Errors
    /// As [`Repo::write_setting`].
    pub fn write(&self, key: &str, values: &[String]) -> Result<(), Error> {
        let git = || self.git.command_in(&self.dir);
        write_setting_with(&git, SettingsFile::Global.option(), &global_settings_path, key, values)
    }

    /// Opens the file in the user's editor on the terminal.
    ///
    /// # Errors
    /// Fails if git or the editor fails.
    pub fn edit(&self) -> Result<(), Error> {
        self.git.command_in(&self.dir).args(["config", "--global", "--edit"]).run_on_terminal()
    }
}

/// Returns the user's own file of git's settings: `GIT_CONFIG_GLOBAL`, `~/.gitconfig`, or git's file below
/// `XDG_CONFIG_HOME` if only that exists. A symbolic link is followed.
fn global_settings_path() -> Result<PathBuf, Error> {
    let variable = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    let path = match (variable("GIT_CONFIG_GLOBAL"), std::env::home_dir()) {
        (Some(path), _) => path,
        (None, None) => {
            let missing = std::io::ErrorKind::NotFound.into();
            return Err(Error::io("find", Path::new("~/.gitconfig"))(missing));
        }
        (None, Some(home)) => {
            let folder = variable("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
            let (own, other) = (home.join(".gitconfig"), folder.join("git/config"));
            if !own.exists() && other.exists() { other } else { own }
        }
    };
    Ok(path.canonicalize().unwrap_or(path))
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
