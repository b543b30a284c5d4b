//! Owns whose repository it is: one that git refuses because another user owns it, or because it is bare and nobody named
//! it, is refused before any setting of its own is read and before any program runs.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use gix::discover::upwards;
use gix::sec::trust::DefaultForLevel as _;

use super::{Error, Program, settings};
use crate::explain::quoted_path;

/// What git prints before the command that makes an exception.
const ADVICE: &str = "git config --global --add safe.directory ";

/// The name of a git directory inside its worktree.
const DOT_GIT: &str = ".git";

/// Where a repository was found.
#[derive(Debug)]
struct Found {
    /// The folder that holds `.git`; none for a bare repository, or inside of a git directory.
    worktree: Option<PathBuf>,
    /// Its own git directory, `.git/worktrees/ID` for a linked worktree.
    git_dir: PathBuf,
}

/// Who may own what is used: the effective user, and for root under sudo who called sudo, as git judges it.
#[derive(Debug, Clone, Copy)]
struct User {
    uid: u32,
    by_sudo: Option<u32>,
}

/// How the library may open the repository that [`judge`] let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    /// Everything is the user's own.
    Owned,
    /// Something is not, and git accepts it by `safe.directory`.
    Excepted,
}

/// Judges the repository that git would find from `dir`, as `safe.directory` and `safe.bareRepository` do. Only where
/// something is another user's, or the repository is bare, git is asked: it knows its own rules.
///
/// A repository that `GIT_DIR` names is not judged: git does not either.
///
/// # Errors
/// [`Error::Untrusted`] and [`Error::BareUnnamed`].
pub(super) fn judge(program: &Program, dir: &Path) -> Result<Trust, Error> {
    if std::env::var_os("GIT_DIR").is_some() {
        return Ok(Trust::Excepted);
    }
    // Where there is none, whoever opens it says so.
    let Some(found) = find(dir) else { return Ok(Trust::Owned) };
    let user = User::current();
    let is_foreign = |place: &Found| user.is_none_or(|user| !place.is_of(user));
    // What a worktree leads to was not searched for, so that it is bare does not count there.
    let shared = found.shared().filter(&is_foreign);
    let is_foreign = is_foreign(&found);
    if is_foreign || found.is_unnamed_bare() {
        ask(program, &found)?;
    }
    if let Some(shared) = &shared {
        ask(program, shared)?;
    }
    Ok(if is_foreign || shared.is_some() { Trust::Excepted } else { Trust::Owned })
}

/// Finds it without reading a setting of its own.
fn find(dir: &Path) -> Option<Found> {
    let mut options = upwards::Options::default().apply_environment();
    options.trust = upwards::TrustPolicy::Assume(gix::sec::Trust::Full);
    let across = std::env::var("GIT_DISCOVERY_ACROSS_FILESYSTEM").unwrap_or_default();
    let across = gix::config::Boolean::try_from(gix::bstr::BString::from(across));
    options.cross_fs = across.is_ok_and(Into::into);
    let (path, _) = gix::discover::upwards_opts(dir, options).ok()?;
    let (git_dir, worktree) = path.into_repository_and_work_tree_directories();
    Some(Found { worktree, git_dir })
}

impl Found {
    /// What git looks at the owner of: links are not followed.
    fn is_of(&self, user: User) -> bool {
        let owned = |path: &Path| path.symlink_metadata().is_ok_and(|meta| user.owns(meta.uid()));
        let of_tree = self.worktree.as_deref().is_none_or(|tree| owned(tree) && owned(&tree.join(DOT_GIT)));
        // Through a `.git` that is a link, git looks at the link alone; this looks at both, and then asks git.
        of_tree && owned(&self.git_dir)
    }

    /// The repository that a linked worktree belongs to, with its main checkout: commands work there too.
    fn shared(&self) -> Option<Found> {
        let named = gix::discover::path::from_plain_file(&self.git_dir.join("commondir"))?.ok()?;
        let git_dir = self.git_dir.join(named).canonicalize().ok()?;
        let worktree =
            (git_dir.file_name()? == DOT_GIT).then(|| git_dir.parent().map(Path::to_owned)).flatten();
        Some(Found { worktree, git_dir })
    }

    /// Whether it is what `safe.bareRepository` is about: git directories that no worktree leads to, but for those that git
    /// made inside of another.
    fn is_unnamed_bare(&self) -> bool {
        let text = self.git_dir.as_os_str().as_encoded_bytes();
        let has = |part: &[u8]| text.windows(part.len()).any(|window| window == part);
        let inside = text.ends_with(b"/.git") || has(b"/.git/worktrees/") || has(b"/.git/modules/");
        self.worktree.is_none() && !inside
    }

    /// The folder in which git finds it.
    fn home(&self) -> &Path {
        self.worktree.as_deref().unwrap_or(&self.git_dir)
    }
}

impl User {
    /// The user of this process. None where git's own tests have it take every repository for somebody else's.
    fn current() -> Option<User> {
        if std::env::var_os("GIT_TEST_ASSUME_DIFFERENT_OWNER").is_some() {
            return None;
        }
        let uid = rustix::process::geteuid().as_raw();
        let by_sudo = std::env::var("SUDO_UID").ok().and_then(|text| text.parse().ok());
        Some(User { uid, by_sudo })
    }

    fn owns(self, owner: u32) -> bool {
        owner == self.uid || (self.uid == 0 && self.by_sudo == Some(owner))
    }
}

/// Has git judge it.
fn ask(program: &Program, place: &Found) -> Result<(), Error> {
    let home = std::path::absolute(place.home()).unwrap_or_else(|_| place.home().to_owned());
    match program.in_dir(&home).args(["rev-parse", "--git-dir"]).run() {
        Ok(_) => Ok(()),
        Err(e) => Err(refusal(e, &home)),
    }
}

/// What git said of a repository that it does not trust, as an error of its own.
pub(super) fn refusal(error: Error, dir: &Path) -> Error {
    let Error::Command { stderr, .. } = &error else { return error };
    if stderr.contains("safe.bareRepository") {
        return Error::BareUnnamed { dir: dir.to_owned() };
    }
    if !stderr.contains("dubious ownership") && !stderr.contains("unsafe repository") {
        return error;
    }
    let advice = stderr.lines().map(str::trim).find(|line| line.starts_with(ADVICE)).map(ToOwned::to_owned);
    let advice = advice.unwrap_or_else(|| format!("{ADVICE}{}", quoted_path(dir)));
    Error::Untrusted { dir: dir.to_owned(), advice }
}

/// How the library opens it, given what [`judge`] said: git alone decides what is trusted.
pub(super) fn options(trust: Trust) -> gix::sec::trust::Mapping<gix::open::Options> {
    let of = |level| settings::as_git_opens(gix::open::Options::default_for_level(level));
    match trust {
        Trust::Owned => gix::sec::trust::Mapping {
            full: of(gix::sec::Trust::Full),
            reduced: of(gix::sec::Trust::Reduced),
        },
        Trust::Excepted => {
            let open = || of(gix::sec::Trust::Full).cli_overrides(["safe.directory=*"]);
            gix::sec::trust::Mapping { full: open(), reduced: open() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_root_may_use_what_is_of_who_called_sudo() {
        let root = User { uid: 0, by_sudo: Some(1000) };
        assert!(root.owns(0) && root.owns(1000) && !root.owns(1001));
        let user = User { uid: 1001, by_sudo: Some(1000) };
        assert!(user.owns(1001) && !user.owns(1000) && !user.owns(0));
    }

    #[test]
    fn a_git_directory_inside_of_a_worktree_is_no_bare_repository() {
        let bare = |dir: &str, tree: Option<&str>| {
            Found { worktree: tree.map(Into::into), git_dir: dir.into() }.is_unnamed_bare()
        };
        assert!(bare("/r/x.git", None) && bare("/r", None));
        for dir in ["/r/.git", "/r/.git/worktrees/x", "/r/.git/modules/a/b"] {
            assert!(!bare(dir, None), "{dir}");
        }
        assert!(!bare("/r/store.git", Some("/r/tree")));
    }
}
