//! Settings for the user's merge drivers in merges without a checkout. A driver's standard output does not
//! mix with git's. Drivers run in the checkout, even where git merges in a folder that holds only attributes.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use proq_base::explain::shell_quote_path;

use crate::Repo;
use crate::program::command::Command;

/// Letters of the placeholders for files that git creates for a driver, in the folder in which git merges.
const DRIVER_FILE_LETTERS: &[char] = &['O', 'A', 'B'];

/// Shell command that redirects a driver's standard output, which is git's own, to standard error.
const STDOUT_TO_STDERR: &str = "exec 1>&2";

/// Options and environment variables that set the user's merge drivers for a git command that merges.
#[derive(Debug, Clone, Default)]
pub(crate) struct MergeDrivers {
    options: Vec<OsString>,
    variables: Vec<(String, OsString)>,
}

impl MergeDrivers {
    /// Loads the user's drivers. If git merges in `merge_dir` in place of the checkout, each driver runs at
    /// the checkout's top. It gets the paths of the files that git created for it. A relative
    /// `core.attributesFile` is then resolved from the checkout's top.
    pub fn load(repo: &Repo, merge_dir: Option<&Path>) -> MergeDrivers {
        let snapshot = repo.gix.config_snapshot();
        let mut drivers = MergeDrivers::default();
        for section in snapshot.sections_by_name("merge").into_iter().flatten() {
            let Some(name) = section.header().subsection_name().map(ToString::to_string) else { continue };
            let driver = section.body().value("driver").map(|driver| driver.to_string());
            // Git fails to start an empty driver, which counts as a conflict.
            if let Some(driver) = driver.filter(|driver| !driver.trim().is_empty()) {
                let line = match merge_dir {
                    Some(dir) => wrap_driver_command(&driver, repo.command_dir(), dir),
                    None => format!("{STDOUT_TO_STDERR}\n{driver}"),
                };
                drivers.add_setting(&format!("merge.{name}.driver"), line.into());
            }
        }
        let file = snapshot.string("core.attributesFile").map(|file| PathBuf::from(file.to_string()));
        // Git expands `~` and `%(prefix)`.
        let is_relative_to_top =
            |file: &PathBuf| !file.is_absolute() && !file.starts_with("~") && !starts_with_expansion(file);
        if let Some(file) = file.filter(|file| merge_dir.is_some() && is_relative_to_top(file)) {
            drivers.add_setting("core.attributesFile", repo.command_dir().join(file).into_os_string());
        }
        drivers
    }

    /// Adds one setting as a `-c` option, or through an environment variable if its key contains `=`.
    fn add_setting(&mut self, key: &str, value: OsString) {
        let mut setting = OsString::from(format!("{key}="));
        if key.contains('=') {
            // `-c` ends the key at its first `=`, `--config-env` at the last.
            let variable = format!("PROQ_MERGE_DRIVER_{}", self.variables.len());
            setting.push(&variable);
            self.variables.push((variable, value));
            self.options.push("--config-env".into());
        } else {
            setting.push(value);
            self.options.push("-c".into());
        }
        self.options.push(setting);
    }

    /// Adds the settings to a git call that has no subcommand yet.
    pub fn apply(&self, call: Command) -> Command {
        let call = call.args(&self.options);
        self.variables.iter().fold(call, |call, (name, value)| call.env(name, value))
    }
}

/// Returns whether git expands a path by its first character (`~` or `%`), or the path is empty.
fn starts_with_expansion(file: &Path) -> bool {
    file.to_str().is_some_and(|text| text.starts_with(['~', '%']) || text.is_empty())
}

/// Returns a driver's command line that changes to `top` first and writes nothing to standard output. Files
/// that git created are named by their path in `merge_dir`.
fn wrap_driver_command(driver: &str, top: &Path, merge_dir: &Path) -> String {
    // A relative path in the checkout consists of git-proq's own names, which need no quoting.
    let files = match merge_dir.strip_prefix(top) {
        Ok(relative) => escape_percent(&relative.display().to_string()),
        Err(_) => escape_percent(&shell_quote_path(merge_dir)),
    };
    let mut line = String::new();
    let mut chars = driver.chars();
    while let Some(next_char) = chars.next() {
        if next_char != '%' {
            line.push(next_char);
            continue;
        }
        match chars.next() {
            Some(letter) if DRIVER_FILE_LETTERS.contains(&letter) => {
                line.extend([files.as_str(), "/%", letter.encode_utf8(&mut [0; 4])]);
            }
            Some(other) => line.extend(['%', other]),
            None => line.push('%'),
        }
    }
    let top = escape_percent(&shell_quote_path(top));
    format!("unset GIT_DIR GIT_WORK_TREE; cd {top} && {{\n{STDOUT_TO_STDERR}\n{line}\n}}")
}

/// Escapes percent signs, so that git expands nothing.
fn escape_percent(text: &str) -> String {
    text.replace('%', "%%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_driver_to_run_in_checkout() {
        let (top, below) = (Path::new("/re%po's"), Path::new("/re%po's/.git/proq/x"));
        assert_eq!(
            wrap_driver_command("drv %A \"%B\" %P %%A", top, below),
            "unset GIT_DIR GIT_WORK_TREE; cd '/re%%po'\\''s' && {\nexec 1>&2\ndrv .git/proq/x/%A \".git/proq/x/%B\" %P %%A\n}"
        );
        assert!(wrap_driver_command("d %O", top, Path::new("/a b")).ends_with("\nd '/a b'/%O\n}"));
    }
}
