//! Ownership check of a repository: one that git refuses, because another user owns it or because it is bare
//! and was not named explicitly, is refused before any of its settings is read and before any program runs.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use gix::discover::upwards;
use gix::sec::trust::DefaultForLevel as _;
use proq_base::explain::shell_quote_path;

use super::open_settings;
use crate::Error;
use crate::program::command::Program;

/// Start of the command in git's advice that adds an exception.
const ADVICE_COMMAND: &str = "git config --global --add safe.directory ";

/// Name of a git directory inside its worktree.
const DOT_GIT: &str = ".git";

/// Location of a discovered repository.
#[derive(Debug)]
struct FoundRepo {
    /// Folder that contains `.git`; `None` for a bare repository, or inside a git directory.
    worktree: Option<PathBuf>,
    /// Git directory, which is `.git/worktrees/ID` for a linked worktree.
    git_dir: PathBuf,
}

/// Users whose files are trusted: the effective user and, for root under sudo, the user who called sudo, as
/// in git.
#[derive(Debug, Clone, Copy)]
struct TrustedUsers {
    /// Effective user id of this process.
    uid: u32,
    /// Id of the user who called sudo; `None` unless this process is root under sudo.
    sudo_uid: Option<u32>,
}

/// Trust level with which gix may open a repository that passed [`check_trust`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    /// The user owns all parts of the repository.
    Owned,
    /// Another user owns a part of the repository, and git accepts it by `safe.directory`.
    SafeDirectory,
}

/// Checks the repository that git would find from `dir`, as `safe.directory` and `safe.bareRepository` do.
/// Runs git, which knows its own rules, only if another user owns a part of the repository or it is bare.
///
/// A repository that `GIT_DIR` names is not checked, as in git.
///
/// # Errors
/// Fails with [`Error::Untrusted`] or [`Error::BareNotNamedExplicitly`].
pub(crate) fn check_trust(program: &Program, dir: &Path) -> Result<Trust, Error> {
    if std::env::var_os("GIT_DIR").is_some() {
        return Ok(Trust::SafeDirectory);
    }
    // If there is no repository, opening it fails later with its own error.
    let Some(found) = find_repo(dir) else { return Ok(Trust::Owned) };
    let user = TrustedUsers::current();
    let is_foreign = |repo: &FoundRepo| user.is_none_or(|user| !repo.is_owned_by(user));
    // The common repository of a worktree was not discovered by a search, so `safe.bareRepository` does not
    // apply to it.
    let common = found.main_repo_of_worktree().filter(&is_foreign);
    let is_foreign = is_foreign(&found);
    if is_foreign || found.is_unnamed_bare() {
        check_with_git(program, &found)?;
    }
    if let Some(common) = &common {
        check_with_git(program, common)?;
    }
    Ok(if is_foreign || common.is_some() { Trust::SafeDirectory } else { Trust::Owned })
}

/// Discovers the repository of `dir` without reading any of its settings.
fn find_repo(dir: &Path) -> Option<FoundRepo> {
    let mut options = upwards::Options::default().apply_environment();
    options.trust = upwards::TrustPolicy::Assume(gix::sec::Trust::Full);
    let cross_fs_text = std::env::var("GIT_DISCOVERY_ACROSS_FILESYSTEM").unwrap_or_default();
    let crosses_fs = gix::config::Boolean::try_from(gix::bstr::BString::from(cross_fs_text));
    options.cross_fs = crosses_fs.is_ok_and(Into::into);
    let (path, _) = gix::discover::upwards_opts(dir, options).ok()?;
    let (git_dir, worktree) = path.into_repository_and_work_tree_directories();
    Some(FoundRepo { worktree, git_dir })
}

impl FoundRepo {
    /// Returns whether `user` owns the paths whose owner git checks; symbolic links are not followed.
    fn is_owned_by(&self, user: TrustedUsers) -> bool {
        let is_owned = |path: &Path| path.symlink_metadata().is_ok_and(|meta| user.owns(meta.uid()));
        let owns_worktree =
            self.worktree.as_deref().is_none_or(|tree| is_owned(tree) && is_owned(&tree.join(DOT_GIT)));
        // If `.git` is a symbolic link, git checks only the link; this checks link and target, and then lets
        // git decide.
        owns_worktree && is_owned(&self.git_dir)
    }

    /// Returns the repository that a linked worktree belongs to, with its main checkout, because commands run
    /// there too.
    fn main_repo_of_worktree(&self) -> Option<FoundRepo> {
        let named = gix::discover::path::from_plain_file(&self.git_dir.join("commondir"))?.ok()?;
        let git_dir = self.git_dir.join(named).canonicalize().ok()?;
        let worktree =
            (git_dir.file_name()? == DOT_GIT).then(|| git_dir.parent().map(Path::to_owned)).flatten();
        Some(FoundRepo { worktree, git_dir })
    }

    /// Returns whether `safe.bareRepository` applies: a git directory that no worktree leads to, except those
    /// that git created inside another one.
    fn is_unnamed_bare(&self) -> bool {
        let text = self.git_dir.as_os_str().as_encoded_bytes();
        let contains = |part: &[u8]| text.windows(part.len()).any(|window| window == part);
        let is_inside_git_dir =
            text.ends_with(b"/.git") || contains(b"/.git/worktrees/") || contains(b"/.git/modules/");
        self.worktree.is_none() && !is_inside_git_dir
    }

    /// Returns the folder in which git discovers the repository.
    fn discovery_dir(&self) -> &Path {
        self.worktree.as_deref().unwrap_or(&self.git_dir)
    }
}

impl TrustedUsers {
    /// Returns the user of this process; `None` if git's tests request that every repository counts as
    /// another user's.
    fn current() -> Option<TrustedUsers> {
        if std::env::var_os("GIT_TEST_ASSUME_DIFFERENT_OWNER").is_some() {
            return None;
        }
        let uid = rustix::process::geteuid().as_raw();
        let by_sudo = std::env::var("SUDO_UID").ok().and_then(|text| text.parse().ok());
        Some(TrustedUsers { uid, sudo_uid: by_sudo })
    }

    fn owns(self, owner: u32) -> bool {
        owner == self.uid || (self.uid == 0 && self.sudo_uid == Some(owner))
    }
}

/// Lets git check a repository, and returns its refusal as an error.
fn check_with_git(program: &Program, repo: &FoundRepo) -> Result<(), Error> {
    let dir = std::path::absolute(repo.discovery_dir()).unwrap_or_else(|_| repo.discovery_dir().to_owned());
    match program.command_in(&dir).args(["rev-parse", "--git-dir"]).run() {
        Ok(_) => Ok(()),
        Err(e) => Err(classify_trust_error(e, &dir)),
    }
}

/// Converts git's refusal of an untrusted repository to its own error variant; other errors are returned
/// unchanged.
pub(crate) fn classify_trust_error(error: Error, dir: &Path) -> Error {
    let Error::Command { stderr, .. } = &error else { return error };
    if stderr.contains("safe.bareRepository") {
        return Error::BareNotNamedExplicitly { dir: dir.to_owned() };
    }
    if !stderr.contains("dubious ownership") && !stderr.contains("unsafe repository") {
        return error;
    }
    let advice =
        stderr.lines().map(str::trim).find(|line| line.starts_with(ADVICE_COMMAND)).map(ToOwned::to_owned);
    let advice = advice.unwrap_or_else(|| format!("{ADVICE_COMMAND}{}", shell_quote_path(dir)));
    Error::Untrusted { dir: dir.to_owned(), trust_command: advice }
}

/// Returns the options for opening a repository with gix, given the result of [`check_trust`]: git alone
/// decides what is trusted.
pub(crate) fn open_options(trust: Trust) -> gix::sec::trust::Mapping<gix::open::Options> {
    let options_for_level =
        |level| open_settings::git_open_options(gix::open::Options::default_for_level(level));
    match trust {
        Trust::Owned => gix::sec::trust::Mapping {
            full: options_for_level(gix::sec::Trust::Full),
            reduced: options_for_level(gix::sec::Trust::Reduced),
        },
        Trust::SafeDirectory => {
            let full_trust = || options_for_level(gix::sec::Trust::Full).cli_overrides(["safe.directory=*"]);
            gix::sec::trust::Mapping { full: full_trust(), reduced: full_trust() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_root_trusts_sudo_caller() {
        let root = TrustedUsers { uid: 0, sudo_uid: Some(1000) };
        assert!(root.owns(0) && root.owns(1000) && !root.owns(1001));
        let user = TrustedUsers { uid: 1001, sudo_uid: Some(1000) };
        assert!(user.owns(1001) && !user.owns(1000) && !user.owns(0));
    }

    #[test]
    fn git_dir_inside_worktree_is_not_bare() {
        let bare = |dir: &str, tree: Option<&str>| {
            FoundRepo { worktree: tree.map(Into::into), git_dir: dir.into() }.is_unnamed_bare()
        };
        assert!(bare("/r/x.git", None) && bare("/r", None));
        for dir in ["/r/.git", "/r/.git/worktrees/x", "/r/.git/modules/a/b"] {
            assert!(!bare(dir, None), "{dir}");
        }
        assert!(!bare("/r/store.git", Some("/r/tree")));
    }
}
