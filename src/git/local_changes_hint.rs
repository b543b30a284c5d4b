//! Hints for local changes: which git commands get them out of the way, in each of their possible states.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::index_flags::{self, FlaggedEntry};
use super::obstructions::obstruction_above;
use super::sparse_patterns::SparsePatterns;
use super::status::{query_git_status, status};
use super::{Repo, RepoPath};
use crate::explain::{shell_quote_bytes, shell_quote_path};

/// Maximum number of paths named in a command.
const MAX_PATHS_NAMED: usize = 4;

/// Kind of commands that get local changes out of the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LocalChangesHint {
    /// Commit or stash the changes.
    CommitOrStash,
    /// Commit or stash existing files with intent to add (`git add -N`): `git stash` accepts them only once
    /// they are added.
    IntentToAdd,
    /// Add, and then commit or stash, existing files that the sparse checkout excludes.
    OutsideSparse,
    /// Stash the changes: deleted files with intent to add have nothing to commit.
    Stash,
    /// Rename these paths: they are in the place of tracked folders or files, and `git stash` would delete
    /// their untracked contents.
    Rename(Vec<RepoPath>),
    /// Stash the changes inside these submodules.
    StashInSubmodules(Vec<RepoPath>),
    /// Commit the changes: `git stash` would reset these assume-unchanged files without saving their
    /// contents.
    Commit {
        /// All assume-unchanged files.
        assumed: Vec<RepoPath>,
    },
    /// Clear the flags of index entries that hide the changes.
    Unflag {
        /// Entries that are assume-unchanged.
        assumed: Vec<RepoPath>,
        /// Entries that are skip-worktree.
        skipped: Vec<RepoPath>,
    },
}

impl LocalChangesHint {
    /// Determines the hint for changes of these paths of the worktree at `dir`.
    pub(crate) fn detect(repo: &Repo, dir: &Path, paths: &[RepoPath]) -> LocalChangesHint {
        let git_dir = repo.worktree_git_dir(dir);
        let flagged = git_dir.as_ref().map(|git_dir| index_flags::flagged_entries(repo, dir, git_dir));
        let mut flagged = flagged.map(Result::unwrap_or_default).unwrap_or_default();
        let patterns =
            git_dir.as_ref().ok().and_then(|git_dir| SparsePatterns::load(repo, dir, git_dir).ok()?);
        if patterns.is_some() && repo.setting_bool("sparse.expectFilesOutsideOfPatterns") != Some(true) {
            // In a sparse checkout git derives skip-worktree from the patterns, and notices files that exist
            // in spite of it.
            for entry in &mut flagged {
                entry.skip_worktree = false;
            }
            flagged.retain(|entry| entry.assume_unchanged);
        }
        let paths_where = |predicate: &dyn Fn(&FlaggedEntry) -> bool| -> Vec<RepoPath> {
            flagged.iter().filter(|entry| predicate(entry)).map(|entry| entry.path.clone()).collect()
        };
        // As long as one of them is hidden, no commit contains it, and a stash may destroy it.
        let is_affected = |entry: &FlaggedEntry| paths.contains(&entry.path);
        if flagged.iter().any(is_affected) {
            let assumed = paths_where(&|entry| entry.assume_unchanged && is_affected(entry));
            return LocalChangesHint::Unflag {
                assumed,
                skipped: paths_where(&|entry| entry.skip_worktree && is_affected(entry)),
            };
        }
        let replacements = untracked_replacements(repo, dir);
        if !replacements.is_empty() {
            return LocalChangesHint::Rename(replacements);
        }
        let is_changed_inside = |path: &&RepoPath| {
            let folder = path.to_fs_path(dir);
            folder.join(".git").symlink_metadata().is_ok()
                && query_git_status(repo.program(), &folder, true).is_ok_and(|dirt| !dirt.is_clean())
        };
        let changed_inside: Vec<RepoPath> = paths.iter().filter(is_changed_inside).cloned().collect();
        if !changed_inside.is_empty() {
            return LocalChangesHint::StashInSubmodules(changed_inside);
        }
        // git has no content of deleted files with intent to add, so all such files of the worktree count.
        let announced = repo.intent_to_add_paths(dir, None).unwrap_or_default();
        let exists = |path: &RepoPath| path.to_fs_path(dir).symlink_metadata().is_ok();
        let assumed = paths_where(&|entry| entry.assume_unchanged && exists(&entry.path));
        if !assumed.is_empty() {
            return LocalChangesHint::Commit { assumed };
        }
        if announced.iter().any(exists) {
            return LocalChangesHint::IntentToAdd;
        }
        if patterns.is_some_and(|patterns| paths.iter().any(|p| exists(p) && patterns.excludes(p))) {
            return LocalChangesHint::OutsideSparse;
        }
        let is_gone = |path: &RepoPath| announced.contains(path);
        match !announced.is_empty()
            && status(repo, dir, false).is_ok_and(|dirt| dirt.paths().iter().all(is_gone))
        {
            true => LocalChangesHint::Stash,
            false => LocalChangesHint::CommitOrStash,
        }
    }

    /// Returns whether an index flag hides some of the files from git.
    pub(crate) fn is_flagged(&self) -> bool {
        matches!(self, LocalChangesHint::Unflag { .. } | LocalChangesHint::Commit { .. })
    }

    /// Returns the hints with commands for the worktree at `dir`.
    pub(crate) fn hints(&self, dir: &Path) -> Vec<Cow<'static, str>> {
        let commit = || format!("commit them first: {} commit -am WIP", git_command_in(dir)).into();
        match self {
            LocalChangesHint::CommitOrStash => {
                vec![commit(), format!("or set them aside: {} stash push", git_command_in(dir)).into()]
            }
            LocalChangesHint::IntentToAdd => {
                vec![commit(), format!("or set them aside: {}", add_and_stash_command(dir)).into()]
            }
            LocalChangesHint::OutsideSparse => vec![
                format!("commit them first: {0} add --sparse -u && {0} commit -m WIP", git_command_in(dir))
                    .into(),
                format!("or set them aside: {} stash push", git_command_in(dir)).into(),
            ],
            LocalChangesHint::Commit { .. } => vec![commit()],
            LocalChangesHint::Stash
            | LocalChangesHint::Rename(_)
            | LocalChangesHint::StashInSubmodules(_)
            | LocalChangesHint::Unflag { .. } => {
                vec![self.stash_hint(dir)]
            }
        }
    }

    /// Returns the hint that creates no commit.
    pub(crate) fn stash_hint(&self, dir: &Path) -> Cow<'static, str> {
        match self {
            LocalChangesHint::CommitOrStash | LocalChangesHint::OutsideSparse | LocalChangesHint::Stash => {
                format!("set them aside first: {} stash push", git_command_in(dir)).into()
            }
            LocalChangesHint::IntentToAdd => {
                format!("set them aside first: {}", add_and_stash_command(dir)).into()
            }
            LocalChangesHint::Rename(paths) => {
                let commands: Vec<String> =
                    paths.iter().take(MAX_PATHS_NAMED).map(|path| rename_command(dir, path)).collect();
                format!(
                    "git would remove what it does not track there; give it another name: {}",
                    commands.join(" && ")
                )
                .into()
            }
            LocalChangesHint::StashInSubmodules(paths) => {
                let stash_command = |path: &RepoPath| {
                    format!("{} stash push --include-untracked", git_command_in(&path.to_fs_path(dir)))
                };
                let commands: Vec<String> = paths.iter().take(MAX_PATHS_NAMED).map(stash_command).collect();
                format!("set them aside in the submodule: {}", commands.join(" && ")).into()
            }
            LocalChangesHint::Commit { assumed } => format!(
                "git was told not to look at all files; have it look again: {}",
                unflag_commands(dir, assumed, &[])
            )
            .into(),
            LocalChangesHint::Unflag { assumed, skipped } => {
                let commands = unflag_commands(dir, assumed, skipped);
                format!("git was told not to look at them; have it look again: {commands}").into()
            }
        }
    }
}

/// Returns untracked files in the place of a folder of tracked files, and untracked folders in the place of a
/// tracked file.
fn untracked_replacements(repo: &Repo, dir: &Path) -> Vec<RepoPath> {
    let is_folder = |path: &RepoPath| {
        let file = path.to_fs_path(dir);
        file.symlink_metadata().is_ok_and(|meta| meta.is_dir()) && !file.join(".git").exists()
    };
    // A stash applies to the entire worktree, so all changed paths count.
    let changed = status(repo, dir, false).map(|dirt| dirt.paths()).unwrap_or_default();
    let replacements = changed.into_iter().filter_map(|path| {
        obstruction_above(dir, &path).or_else(|| Some(path).filter(|path| is_folder(path)))
    });
    let mut replacements: Vec<RepoPath> = replacements.collect();
    replacements.sort();
    replacements.dedup();
    // A stash contains files that were added.
    let is_tracked = |path: &RepoPath| {
        let call = repo.git_in(dir).args(["--literal-pathspecs", "ls-files", "-z", "--"]);
        call.arg(OsStr::from_bytes(path.as_bytes()))
            .run()
            .is_ok_and(|out| out.fields().any(|field| field == path.as_bytes()))
    };
    replacements.retain(|path| is_folder(path) || !is_tracked(path));
    replacements
}

/// Returns the command that renames the file at `path` to an unused name.
fn rename_command(dir: &Path, path: &RepoPath) -> String {
    let from = path.to_fs_path(dir);
    let with_suffix = |suffix: String| {
        let mut name = from.clone().into_os_string();
        name.push(suffix);
        PathBuf::from(name)
    };
    let suffixes = std::iter::once(".mine".to_owned()).chain((2..).map(|n| format!(".mine-{n}")));
    let unused = suffixes.map(with_suffix).find(|to| to.symlink_metadata().is_err());
    format!(
        "mv {} {}",
        shell_quote_path(&from),
        shell_quote_path(&unused.unwrap_or_else(|| with_suffix(".mine".to_owned())))
    )
}

/// Returns the commands that clear flags of index entries.
fn unflag_commands(dir: &Path, assumed: &[RepoPath], skipped: &[RepoPath]) -> String {
    let flag_options = [("--no-assume-unchanged", assumed), ("--no-skip-worktree", skipped)];
    let command = |(option, paths): &(&str, &[RepoPath])| {
        let quoted_paths: Vec<String> =
            paths.iter().take(MAX_PATHS_NAMED).map(|p| shell_word(p.as_bytes())).collect();
        let separator = if paths.iter().take(MAX_PATHS_NAMED).any(|p| p.as_bytes().starts_with(b"-")) {
            "-- "
        } else {
            ""
        };
        format!("{} update-index {option} {separator}{}", git_command_in(dir), quoted_paths.join(" "))
    };
    let commands: Vec<String> =
        flag_options.iter().filter(|(_, paths)| !paths.is_empty()).map(command).collect();
    commands.join(" && ")
}

/// Returns the command that adds files with intent to add, and stashes them.
fn add_and_stash_command(dir: &Path) -> String {
    format!("{0} add -u && {0} stash push", git_command_in(dir))
}

/// Returns the start of a git command that runs in this folder.
fn git_command_in(dir: &Path) -> String {
    format!("git -C {}", shell_quote_path(dir))
}

/// Quotes a word for a shell.
fn shell_word(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&shell_quote_bytes(bytes)).into_owned()
}
