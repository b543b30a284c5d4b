//! Owns the errors of repositories and worktrees that lack what is needed to work with them at all.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::{Error, Repo};
use crate::explain::{Exit, Explain, quoted_path};

/// Folders of the git directory in which nearly every change writes.
const WRITTEN: [&str; 4] = ["", "objects", "refs", "refs/heads"];

/// How git begins to write that a lock file cannot be created.
const NO_LOCK: &str = "Unable to create '";

/// How git writes that a file could not be written, before and after its name.
const NOT_WRITTEN: [(&str, &str); 2] =
    [("error: unable to write file ", "\n"), ("file '", "' write error. Out of diskspace")];

/// How git begins to write that a variable holds no date.
const NO_DATE: &str = "invalid date format: ";

/// Something that a repository or a worktree lacks.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// HEAD is a symbolic link to a ref that has no file of its own, which the library cannot follow.
    #[error("cannot open {}: HEAD is a symbolic link to {name}, which has no file of its own", git_dir.display())]
    LinkedHead {
        /// The git directory.
        git_dir: PathBuf,
        /// The ref.
        name: String,
    },
    /// The repository is called bare, and has a checkout that commands would leave behind.
    #[error("cannot use the repository at {}: core.bare is true, although files are checked out there; nothing was changed", dir.display())]
    HiddenCheckout {
        /// The top of the checkout.
        dir: PathBuf,
        /// The file with that setting.
        config: PathBuf,
    },
    /// The main checkout is a folder from which git does not find the repository.
    #[error("cannot use the repository {}: core.worktree is {}, from where git does not find it; nothing was changed", git_dir.display(), dir.display())]
    CheckoutElsewhere {
        /// The git directory.
        git_dir: PathBuf,
        /// The folder.
        dir: PathBuf,
        /// The file with that setting.
        config: PathBuf,
    },
    /// All worktrees share the folder of the main checkout.
    #[error("cannot use the repository {}: with extensions.worktreeConfig its core.worktree counts for every worktree, so git would change the main checkout in each lane; nothing was changed", git_dir.display())]
    SharedWorktree {
        /// The git directory.
        git_dir: PathBuf,
        /// The setting.
        worktree: PathBuf,
        /// Whether the main checkout has that setting for itself already.
        is_set_apart: bool,
    },
    /// A folder of the git directory may not be written.
    #[error("cannot change the repository: you may not write to {}; nothing was changed", dir.display())]
    NotWritable {
        /// The folder.
        dir: PathBuf,
    },
    /// Git could not write a file.
    #[error("cannot write {path}: the disk is full, or a limit was reached")]
    NotWritten {
        /// The file, as git names it.
        path: String,
    },
    /// A variable that gives a date does not.
    #[error("cannot date a commit: '{date}' is no date that git can read; nothing was changed")]
    Date {
        /// What the variable holds.
        date: String,
        /// The variable.
        variable: &'static str,
    },
    /// A worktree has no index. To git, every file of its commit is staged as deleted.
    #[error("cannot use {}: it has no index that git can read, so every file there counts as deleted; nothing was changed", dir.display())]
    NoIndex {
        /// The worktree.
        dir: PathBuf,
        /// The command that makes one.
        repair: String,
    },
}

impl Unusable {
    /// Finds out why a repository cannot be changed at all, by what git wrote.
    pub(super) fn from_stderr(stderr: &str) -> Option<Unusable> {
        if let Some((_, date)) = stderr.split_once(NO_DATE) {
            let date = date.lines().next().unwrap_or_default().to_owned();
            let is_set = |name: &&str| std::env::var(name).is_ok_and(|set| set == date);
            let variable = ["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"].into_iter().find(is_set)?;
            return Some(Unusable::Date { date, variable });
        }
        let file = |(before, after): &(&str, &str)| {
            let (path, _) = stderr.split_once(before)?.1.split_once(after)?;
            Some(Unusable::NotWritten { path: path.to_owned() })
        };
        if let Some(not_written) = NOT_WRITTEN.iter().find_map(file) {
            return Some(not_written);
        }
        let (lock, why) = stderr.split_once(NO_LOCK)?.1.split_once("': ")?;
        let dir = Path::new(lock).parent()?.to_owned();
        why.starts_with("Permission denied").then_some(Unusable::NotWritable { dir })
    }
}

impl Repo {
    /// Refuses to change a repository whose git directory may not be written: what has begun there could not be taken back.
    ///
    /// # Errors
    /// [`Unusable::NotWritable`].
    pub(crate) fn require_writable(&self) -> Result<(), Error> {
        let mut folders = WRITTEN.iter().map(|name| self.common_dir().join(name).components().collect());
        let is_closed = |dir: &PathBuf| {
            let all = Access::WRITE_OK | Access::EXEC_OK;
            dir.is_dir() && access(dir, all) == Err(rustix::io::Errno::ACCESS)
        };
        match folders.find(is_closed) {
            Some(dir) => Err(Error::Unusable(Unusable::NotWritable { dir })),
            None => Ok(()),
        }
    }
}

impl Error {
    /// Whether a git program that was started gave up, rather than something that git-proq does by itself.
    pub(crate) fn is_of_git(&self) -> bool {
        matches!(self, Error::Command { .. } | Error::Program(_) | Error::Unusable(_))
    }
}

impl Explain for Unusable {
    fn hints(&self) -> Vec<Cow<'static, str>> {
        vec![match self {
            Unusable::HiddenCheckout { config, .. } => {
                format!("have the checkout back: git config --file {} --unset-all core.bare", quoted_path(config))
                    .into()
            }
            Unusable::CheckoutElsewhere { git_dir, dir, .. } if dir.is_dir() && !dir.join(".git").exists() => {
                format!(
                    "have git find it: echo gitdir: {} > {}",
                    quoted_path(git_dir),
                    quoted_path(&dir.join(".git"))
                )
                .into()
            }
            Unusable::CheckoutElsewhere { config, .. } => format!(
                "have the checkout beside it again: git config --file {} --unset-all core.worktree",
                quoted_path(config)
            )
            .into(),
            Unusable::SharedWorktree { git_dir, worktree, is_set_apart } => {
                let file = |name: &str| quoted_path(&git_dir.join(name));
                let keep = match is_set_apart {
                    true => String::new(),
                    false => format!(
                        "git config --file {} core.worktree {} && ",
                        file("config.worktree"),
                        quoted_path(worktree)
                    ),
                };
                let (config, unset) = (file("config"), "--unset-all core.worktree");
                format!("have it count for the main checkout alone: {keep}git config --file {config} {unset}").into()
            }
            Unusable::LinkedHead { git_dir, name } => format!(
                "have git write the name there: git --git-dir={} -c core.preferSymlinkRefs=false symbolic-ref HEAD {name}",
                quoted_path(git_dir)
            )
            .into(),
            Unusable::NotWritable { dir } => {
                format!("make it writable for you: chmod u+rwx {}", quoted_path(dir)).into()
            }
            Unusable::NotWritten { .. } => "see how full it is, and what the limits are: df -h; ulimit -a".into(),
            Unusable::Date { variable, .. } => format!("have git take the time: unset {variable}").into(),
            Unusable::NoIndex { repair, .. } => {
                format!("make one, and leave every file as it is: {repair}").into()
            }
        }]
    }

    fn exit(&self) -> Exit {
        Exit::Refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_writes_of_a_full_disk_and_of_rights_is_known() {
        let shown = |stderr: &str| Unusable::from_stderr(stderr).map(|e| e.to_string());
        let full = |path| Some(format!("cannot write {path}: the disk is full, or a limit was reached"));
        assert_eq!(shown("error: unable to write file a/big\n"), full("a/big"));
        assert_eq!(
            shown("fatal: sha1 file '/r/.git/index.lock' write error. Out of diskspace\n"),
            full("/r/.git/index.lock")
        );
        assert_eq!(
            shown("fatal: Unable to create '/r/.git/refs/heads/a.lock': Permission denied\n").unwrap(),
            "cannot change the repository: you may not write to /r/.git/refs/heads; nothing was changed"
        );
        for other in
            ["", "fatal: Unable to create '/r/a.lock': File exists.", "fatal: smudge filter f failed"]
        {
            assert_eq!(shown(other), None);
        }
    }
}
