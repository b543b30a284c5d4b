//! Owns how git runs the user's merge drivers where it merges in memory: what they write is no part of its answer, and they find the
//! checkout where git itself merges in a folder that holds attributes only.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{Command, Repo};
use crate::explain::quoted_path;

/// Files that git makes for a driver, in the folder in which it merges.
const FILES: &[char] = &['O', 'A', 'B'];

/// Has a driver's standard output, which is git's own, go to standard error.
const OUTPUT: &str = "exec 1>&2";

/// Settings for a git that merges.
#[derive(Debug, Clone, Default)]
pub(super) struct Drivers {
    options: Vec<OsString>,
    variables: Vec<(String, OsString)>,
}

impl Drivers {
    /// The user's drivers. Where git merges in `dir`, which stands in for the checkout, each driver runs in the checkout's top, with
    /// the files that git made for it, and a path of an attributes file that begins there is one from there.
    pub(super) fn of(repo: &Repo, dir: Option<&Path>) -> Drivers {
        let snapshot = repo.gix.config_snapshot();
        let mut out = Drivers::default();
        for section in snapshot.sections_by_name("merge").into_iter().flatten() {
            let Some(name) = section.header().subsection_name().map(ToString::to_string) else { continue };
            let driver = section.body().value("driver").map(|driver| driver.to_string());
            // git fails to start an empty one, which counts as a conflict.
            if let Some(driver) = driver.filter(|driver| !driver.trim().is_empty()) {
                let line = match dir {
                    Some(dir) => in_checkout(&driver, repo.home(), dir),
                    None => format!("{OUTPUT}\n{driver}"),
                };
                out.set(&format!("merge.{name}.driver"), line.into());
            }
        }
        let file = snapshot.string("core.attributesFile").map(|file| PathBuf::from(file.to_string()));
        // `~` and `%(prefix)` are git's to fill in.
        let is_from_top =
            |file: &PathBuf| !file.is_absolute() && !file.starts_with("~") && !starts_with_sign(file);
        if let Some(file) = file.filter(|file| dir.is_some() && is_from_top(file)) {
            out.set("core.attributesFile", repo.home().join(file).into_os_string());
        }
        out
    }

    fn set(&mut self, key: &str, value: OsString) {
        let mut setting = OsString::from(format!("{key}="));
        if key.contains('=') {
            // `-c` takes the key to end at its first sign of that kind, this option at the last.
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

    /// Adds them to a call whose command is not named yet.
    pub(super) fn apply(&self, call: Command) -> Command {
        let call = call.args(&self.options);
        self.variables.iter().fold(call, |call, (name, value)| call.env(name, value))
    }
}

fn starts_with_sign(file: &Path) -> bool {
    file.to_str().is_some_and(|text| text.starts_with(['~', '%']) || text.is_empty())
}

/// A driver's command line that changes to `top` first, and writes nothing to standard output. Where it names a file that git made, it is named in `dir`.
fn in_checkout(driver: &str, top: &Path, dir: &Path) -> String {
    // Below the checkout the way there is of names of git-proq's own, which no shell takes apart.
    let files = match dir.strip_prefix(top) {
        Ok(below) => percent(&below.display().to_string()),
        Err(_) => percent(&quoted_path(dir)),
    };
    let mut line = String::new();
    let mut rest = driver.chars();
    while let Some(sign) = rest.next() {
        if sign != '%' {
            line.push(sign);
            continue;
        }
        match rest.next() {
            Some(letter) if FILES.contains(&letter) => {
                line.extend([files.as_str(), "/%", letter.encode_utf8(&mut [0; 4])]);
            }
            Some(other) => line.extend(['%', other]),
            None => line.push('%'),
        }
    }
    let top = percent(&quoted_path(top));
    format!("unset GIT_DIR GIT_WORK_TREE; cd {top} && {{\n{OUTPUT}\n{line}\n}}")
}

/// A text in which git fills nothing in.
fn percent(text: &str) -> String {
    text.replace('%', "%%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_is_brought_to_the_checkout_and_its_files_to_it() {
        let (top, below) = (Path::new("/re%po's"), Path::new("/re%po's/.git/proq/x"));
        assert_eq!(
            in_checkout("drv %A \"%B\" %P %%A", top, below),
            "unset GIT_DIR GIT_WORK_TREE; cd '/re%%po'\\''s' && {\nexec 1>&2\ndrv .git/proq/x/%A \".git/proq/x/%B\" %P %%A\n}"
        );
        assert!(in_checkout("d %O", top, Path::new("/a b")).ends_with("\nd '/a b'/%O\n}"));
    }
}
