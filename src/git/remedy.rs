//! Owns which commands of git get local changes out of the way, in each state that they can be in.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::flags::{self, Flagged};
use super::make_way::stranger_above;
use super::patterns::Patterns;
use super::status::{ask, status};
use super::{Repo, RepoPath};
use crate::explain::{quoted, quoted_path};

/// How many files a command names.
const NAMED: usize = 4;

/// What gets local changes out of the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remedy {
    /// To commit or to stash them.
    CommitOrStash,
    /// The same for files that `git add -N` announced, which are there: `git stash` takes them only once they are added.
    Announced,
    /// To add, and then to commit or to stash, files that a sparse checkout leaves out and that are there.
    OutsideSparse,
    /// To stash them: of announced files that are gone there is nothing to commit.
    Stash,
    /// To give these another name: they stand in the place of folders or files that git tracks, and `git stash` would remove what is
    /// in them, which it does not track.
    Rename(Vec<RepoPath>),
    /// To stash what is changed inside of these submodules.
    InSubmodules(Vec<RepoPath>),
    /// To commit them: `git stash` would reset these assume-unchanged files and keep nothing of what is in them.
    Commit {
        /// All files that are assume-unchanged.
        assumed: Vec<RepoPath>,
    },
    /// To take flags of index entries off, which hide the changes.
    Unflag {
        /// Entries that are assume-unchanged.
        assumed: Vec<RepoPath>,
        /// Entries that are skip-worktree.
        skipped: Vec<RepoPath>,
    },
}

impl Remedy {
    /// What helps with changes of these paths of the worktree at `dir`.
    pub(crate) fn of(repo: &Repo, dir: &Path, paths: &[RepoPath]) -> Remedy {
        let git_dir = repo.git_dir_of(dir);
        let flagged = git_dir.as_ref().map(|git_dir| flags::flagged(repo, dir, git_dir));
        let mut flagged = flagged.map(Result::unwrap_or_default).unwrap_or_default();
        let patterns =
            git_dir.as_ref().ok().and_then(|git_dir| Patterns::in_force(repo, dir, git_dir).ok()?);
        if patterns.is_some() && repo.setting_bool("sparse.expectFilesOutsideOfPatterns") != Some(true) {
            // There git takes that flag for what the patterns say, and sees files that are there in spite of it.
            for entry in &mut flagged {
                entry.skipped = false;
            }
            flagged.retain(|entry| entry.assumed);
        }
        let with = |has: &dyn Fn(&Flagged) -> bool| -> Vec<RepoPath> {
            flagged.iter().filter(|entry| has(entry)).map(|entry| entry.path.clone()).collect()
        };
        // As long as one of them is hidden, no commit has it, and a stash may destroy it.
        let is_meant = |entry: &Flagged| paths.contains(&entry.path);
        if flagged.iter().any(is_meant) {
            let assumed = with(&|entry| entry.assumed && is_meant(entry));
            return Remedy::Unflag { assumed, skipped: with(&|entry| entry.skipped && is_meant(entry)) };
        }
        let misplaced = misplaced(repo, dir);
        if !misplaced.is_empty() {
            return Remedy::Rename(misplaced);
        }
        let is_changed_inside = |path: &&RepoPath| {
            let folder = path.under(dir);
            folder.join(".git").symlink_metadata().is_ok()
                && ask(repo.program(), &folder, true).is_ok_and(|dirt| !dirt.is_clean())
        };
        let inside: Vec<RepoPath> = paths.iter().filter(is_changed_inside).cloned().collect();
        if !inside.is_empty() {
            return Remedy::InSubmodules(inside);
        }
        // Git knows no content of those that are gone, so it has to be all that is known of the worktree.
        let announced = repo.announced(dir, None).unwrap_or_default();
        let is_there = |path: &RepoPath| path.under(dir).symlink_metadata().is_ok();
        let assumed = with(&|entry| entry.assumed && is_there(&entry.path));
        if !assumed.is_empty() {
            return Remedy::Commit { assumed };
        }
        if announced.iter().any(is_there) {
            return Remedy::Announced;
        }
        if patterns.is_some_and(|patterns| paths.iter().any(|p| is_there(p) && patterns.leave_out(p))) {
            return Remedy::OutsideSparse;
        }
        let is_gone = |path: &RepoPath| announced.contains(path);
        match !announced.is_empty()
            && status(repo, dir, false).is_ok_and(|dirt| dirt.paths().iter().all(is_gone))
        {
            true => Remedy::Stash,
            false => Remedy::CommitOrStash,
        }
    }

    /// Whether git was told not to look at some of the files.
    pub(crate) fn is_flagged(&self) -> bool {
        matches!(self, Remedy::Unflag { .. } | Remedy::Commit { .. })
    }

    /// The commands that help in the worktree at `dir`.
    pub(crate) fn hints(&self, dir: &Path) -> Vec<Cow<'static, str>> {
        let commit = || format!("commit them first: {} commit -am WIP", git_in(dir)).into();
        match self {
            Remedy::CommitOrStash => {
                vec![commit(), format!("or set them aside: {} stash push", git_in(dir)).into()]
            }
            Remedy::Announced => vec![commit(), format!("or set them aside: {}", add_and_stash(dir)).into()],
            Remedy::OutsideSparse => vec![
                format!("commit them first: {0} add --sparse -u && {0} commit -m WIP", git_in(dir)).into(),
                format!("or set them aside: {} stash push", git_in(dir)).into(),
            ],
            Remedy::Commit { .. } => vec![commit()],
            Remedy::Stash | Remedy::Rename(_) | Remedy::InSubmodules(_) | Remedy::Unflag { .. } => {
                vec![self.stash(dir)]
            }
        }
    }

    /// The hint that makes no commit.
    pub(crate) fn stash(&self, dir: &Path) -> Cow<'static, str> {
        match self {
            Remedy::CommitOrStash | Remedy::OutsideSparse | Remedy::Stash => {
                format!("set them aside first: {} stash push", git_in(dir)).into()
            }
            Remedy::Announced => format!("set them aside first: {}", add_and_stash(dir)).into(),
            Remedy::Rename(paths) => {
                let calls: Vec<String> = paths.iter().take(NAMED).map(|path| rename(dir, path)).collect();
                format!(
                    "git would remove what it does not track there; give it another name: {}",
                    calls.join(" && ")
                )
                .into()
            }
            Remedy::InSubmodules(paths) => {
                let stash =
                    |path: &RepoPath| format!("{} stash push --include-untracked", git_in(&path.under(dir)));
                let calls: Vec<String> = paths.iter().take(NAMED).map(stash).collect();
                format!("set them aside in the submodule: {}", calls.join(" && ")).into()
            }
            Remedy::Commit { assumed } => format!(
                "git was told not to look at all files; have it look again: {}",
                unflag(dir, assumed, &[])
            )
            .into(),
            Remedy::Unflag { assumed, skipped } => {
                let calls = unflag(dir, assumed, skipped);
                format!("git was told not to look at them; have it look again: {calls}").into()
            }
        }
    }
}

/// What stands in the place of a folder of tracked files, and folders in the place of one, as far as git does not track them.
fn misplaced(repo: &Repo, dir: &Path) -> Vec<RepoPath> {
    let is_folder = |path: &RepoPath| {
        let place = path.under(dir);
        place.symlink_metadata().is_ok_and(|meta| meta.is_dir()) && !place.join(".git").exists()
    };
    // A stash is of the whole worktree.
    let changed = status(repo, dir, false).map(|dirt| dirt.paths()).unwrap_or_default();
    let found = changed
        .into_iter()
        .filter_map(|path| stranger_above(dir, &path).or_else(|| Some(path).filter(|path| is_folder(path))));
    let mut found: Vec<RepoPath> = found.collect();
    found.sort();
    found.dedup();
    // A file that is added is in a stash.
    let is_tracked = |path: &RepoPath| {
        let call = repo.git_in(dir).args(["--literal-pathspecs", "ls-files", "-z", "--"]);
        call.arg(OsStr::from_bytes(path.as_bytes()))
            .run()
            .is_ok_and(|out| out.fields().any(|field| field == path.as_bytes()))
    };
    found.retain(|path| is_folder(path) || !is_tracked(path));
    found
}

/// The command that gives what is at `path` a name that nothing has.
fn rename(dir: &Path, path: &RepoPath) -> String {
    let from = path.under(dir);
    let named = |end: String| {
        let mut name = from.clone().into_os_string();
        name.push(end);
        PathBuf::from(name)
    };
    let ends = std::iter::once(".mine".to_owned()).chain((2..).map(|n| format!(".mine-{n}")));
    let free = ends.map(named).find(|to| to.symlink_metadata().is_err());
    format!("mv {} {}", quoted_path(&from), quoted_path(&free.unwrap_or_else(|| named(".mine".to_owned()))))
}

/// The commands that take flags of index entries off.
fn unflag(dir: &Path, assumed: &[RepoPath], skipped: &[RepoPath]) -> String {
    let both = [("--no-assume-unchanged", assumed), ("--no-skip-worktree", skipped)];
    let call = |(option, paths): &(&str, &[RepoPath])| {
        let words: Vec<String> = paths.iter().take(NAMED).map(|p| word(p.as_bytes())).collect();
        let end = if paths.iter().take(NAMED).any(|p| p.as_bytes().starts_with(b"-")) { "-- " } else { "" };
        format!("{} update-index {option} {end}{}", git_in(dir), words.join(" "))
    };
    let calls: Vec<String> = both.iter().filter(|(_, all)| !all.is_empty()).map(call).collect();
    calls.join(" && ")
}

/// The command that adds what is announced, and stashes it.
fn add_and_stash(dir: &Path) -> String {
    format!("{0} add -u && {0} stash push", git_in(dir))
}

/// A call of git in this folder, without what is to be done there.
fn git_in(dir: &Path) -> String {
    format!("git -C {}", quoted_path(dir))
}

/// A word as a shell takes it.
fn word(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&quoted(bytes)).into_owned()
}
