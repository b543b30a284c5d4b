//! Steps of a history, and their text.

use std::fmt;

use super::super::states::{PathSetup, PathState};

/// Name of a worktree: the main checkout or a lane.
pub(crate) type WorktreeName = &'static str;

/// Main checkout. No lane can have this name.
pub(super) const MAIN: WorktreeName = "(main)";

/// Change of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// Replaces a line. The file is created if it does not exist.
    Line(usize, usize),
    /// Replaces the file with this one line.
    Overwrite(usize),
    /// Removes the file.
    Delete,
    /// Flips the executable bit.
    Chmod,
}

/// Edit of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Edit {
    /// Path of the file.
    pub(super) path: &'static str,
    /// Change of the file.
    pub(super) change: Change,
}

/// Step of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Files change.
    Edit { at: WorktreeName, edits: Vec<Edit> },
    /// One path gets into a state of HEAD, index and disk that plain edits seldom reach.
    SetPathState { at: WorktreeName, path: &'static str, combo: PathState },
    /// One path is staged.
    Stage { at: WorktreeName, path: &'static str },
    /// Files change, and everything is committed.
    Commit { at: WorktreeName, edits: Vec<Edit>, amend: bool },
    /// The staged changes are committed.
    CommitStaged { at: WorktreeName },
    /// A command of git-proq.
    Proq(Vec<&'static str>),
    /// Plain git in the main checkout, whatever preview is open.
    UserGit(Vec<&'static str>),
}

/// Returns the line that a token stands for. No other step writes it.
pub(super) fn token(n: usize) -> String {
    format!("w{n}w")
}

/// Returns the shell script that makes a path's state.
pub(super) fn path_state_script(path: &str, combo: PathState) -> String {
    // The path's name already decides whether it is ignored.
    PathSetup::new(path, PathState { ignored: false, ..combo }).state_script()
}

fn worktree_label(at: WorktreeName) -> &'static str {
    if at == MAIN { "main checkout" } else { at }
}

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.change {
            Change::Line(line, n) => write!(f, "{}:{line} = {}", self.path, token(n)),
            Change::Overwrite(n) => write!(f, "{} = {}", self.path, token(n)),
            Change::Delete => write!(f, "rm {}", self.path),
            Change::Chmod => write!(f, "chmod {}", self.path),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |edits: &[Edit]| edits.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        match self {
            Step::Edit { at, edits } => write!(f, "[{}] {}", worktree_label(at), list(edits)),
            Step::SetPathState { at, path, combo } => {
                let script = path_state_script(path, *combo);
                let commands: Vec<&str> = script.lines().filter(|line| !line.is_empty()).collect();
                write!(f, "[{}] {}", worktree_label(at), commands.join("; "))
            }
            Step::Stage { at, path } => write!(f, "[{}] git add -A -- {path}", worktree_label(at)),
            Step::Commit { at, edits, amend } => {
                let amend = if *amend { " --amend" } else { "" };
                write!(f, "[{}] {}; git add -A; git commit{amend}", worktree_label(at), list(edits))
            }
            Step::CommitStaged { at } => write!(f, "[{}] git commit", worktree_label(at)),
            Step::Proq(args) => write!(f, "git proq {}", args.join(" ")),
            Step::UserGit(args) => write!(f, "[main checkout] git {}", args.join(" ")),
        }
    }
}
