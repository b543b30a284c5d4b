//! Hints for local changes: which git commands get them out of the way, in each of their possible states.

use std::path::{Path, PathBuf};

use proq_base::explain::{shell_quote_bytes, shell_quote_path};
use proq_base::hint;
use proq_base::hint::Hint;

use crate::RepoPath;

/// Maximum number of paths named in a command.
const MAX_PATHS_NAMED: usize = 4;

/// Kind of commands that get local changes out of the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LocalChangesRemedy {
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
        assume_unchanged: Vec<RepoPath>,
    },
    /// Clear the flags of index entries that hide the changes.
    Unflag {
        /// Entries that are assume-unchanged.
        assume_unchanged: Vec<RepoPath>,
        /// Entries that are skip-worktree.
        skip_worktree: Vec<RepoPath>,
    },
}

impl LocalChangesRemedy {
    /// Returns whether an index flag hides some of the files from git.
    pub fn has_flag_hidden_files(&self) -> bool {
        matches!(self, LocalChangesRemedy::Unflag { .. } | LocalChangesRemedy::Commit { .. })
    }

    /// Returns the hints with commands for the worktree at `dir`.
    pub fn command_hints(&self, dir: &Path) -> Vec<Hint> {
        let commit = || hint!("commit them first: {} commit -am WIP", git_command_in(dir));
        match self {
            LocalChangesRemedy::CommitOrStash => {
                vec![
                    commit(),
                    hint!(
                        "or stash them (`git stash pop` restores them): {} stash push",
                        git_command_in(dir)
                    ),
                ]
            }
            LocalChangesRemedy::IntentToAdd => {
                vec![
                    commit(),
                    hint!(
                        "or stash them (`git stash pop` restores them): {0} add -u && {0} stash push",
                        git_command_in(dir)
                    ),
                ]
            }
            LocalChangesRemedy::OutsideSparse => vec![
                hint!("commit them first: {0} add --sparse -u && {0} commit -m WIP", git_command_in(dir)),
                hint!("or stash them (`git stash pop` restores them): {} stash push", git_command_in(dir)),
            ],
            LocalChangesRemedy::Commit { .. } => vec![commit()],
            LocalChangesRemedy::Stash
            | LocalChangesRemedy::Rename(_)
            | LocalChangesRemedy::StashInSubmodules(_)
            | LocalChangesRemedy::Unflag { .. } => {
                vec![self.hint_without_commit(dir)]
            }
        }
    }

    /// Returns the hint whose commands create no commit: they stash, rename, or clear index flags.
    pub fn hint_without_commit(&self, dir: &Path) -> Hint {
        match self {
            LocalChangesRemedy::CommitOrStash
            | LocalChangesRemedy::OutsideSparse
            | LocalChangesRemedy::Stash => {
                hint!("stash them (`git stash pop` restores them): {} stash push", git_command_in(dir))
            }
            LocalChangesRemedy::IntentToAdd => {
                hint!(
                    "stash them (`git stash pop` restores them): {0} add -u && {0} stash push",
                    git_command_in(dir)
                )
            }
            LocalChangesRemedy::Rename(paths) => {
                let commands: Vec<String> =
                    paths.iter().take(MAX_PATHS_NAMED).map(|path| rename_command(dir, path)).collect();
                hint!("rename it, because git would delete its untracked files: {}", commands.join(" && "))
            }
            LocalChangesRemedy::StashInSubmodules(paths) => {
                let stash_command = |path: &RepoPath| {
                    format!("{} stash push --include-untracked", git_command_in(&path.to_fs_path(dir)))
                };
                let commands: Vec<String> = paths.iter().take(MAX_PATHS_NAMED).map(stash_command).collect();
                hint!("stash them in the submodule: {}", commands.join(" && "))
            }
            LocalChangesRemedy::Commit { assume_unchanged: assumed } => {
                hint!("make git check all files again: {}", unflag_commands(dir, assumed, &[]))
            }
            LocalChangesRemedy::Unflag { assume_unchanged: assumed, skip_worktree: skipped } => {
                let commands = unflag_commands(dir, assumed, skipped);
                hint!("make git check these files again: {commands}")
            }
        }
    }
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

/// Returns the start of a git command that runs in this folder.
fn git_command_in(dir: &Path) -> String {
    format!("git -C {}", shell_quote_path(dir))
}

/// Quotes a word for a shell.
fn shell_word(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&shell_quote_bytes(bytes)).into_owned()
}
