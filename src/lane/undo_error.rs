//! Owns why an operation cannot be taken back, in the user's words.

use std::borrow::Cow;

use super::Error;
use crate::explain::{Exit, Explain, quoted_path};
use crate::git;

/// An error about taking operations back.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    /// No operation has that number.
    #[error("there is no operation {number} in the log")]
    NoOperation {
        /// The number.
        number: u64,
    },
    /// There is nothing to take back.
    #[error("{}", if *redo { "there is no undo that could be taken back" } else { "there is nothing to undo" })]
    NothingToUndo {
        /// Whether an undo was to be taken back.
        redo: bool,
    },
    /// An operation that others came after.
    #[error("operation {asked} is not the last one that stands{}; nothing was changed", last.map_or_else(String::new, |n| format!(", {n} is")))]
    NotLast {
        /// The one that was asked for.
        asked: u64,
        /// The last one.
        last: Option<u64>,
    },
    /// Why an operation cannot be taken back.
    #[error("operation {number}{}: {}; nothing was changed", kept(*redo), bare(source))]
    CannotUndo {
        /// The operation.
        number: u64,
        /// Whether it is an undo, which was to be taken back.
        redo: bool,
        /// The command that takes exactly the same back with force; none where there is no such way.
        forced: Option<String>,
        /// Why not.
        #[source]
        source: Box<Error>,
    },
    /// Somebody committed on top of what is to be taken back.
    #[error("'{branch}' has moved on to {} since", tip.short())]
    BuiltOn {
        /// The branch.
        branch: String,
        /// Where it is.
        tip: git::Oid,
    },
    /// The branch that a preview was opened from has moved, not by what is to be taken back.
    #[error("'{branch}' has moved on to {} since the checkout left it", tip.short())]
    HomeMoved {
        /// The branch.
        branch: String,
        /// Where it is.
        tip: git::Oid,
    },
    /// The branch that the checkout went to has moved, not by what is to be taken back.
    #[error("'{branch}' has moved on to {} since", tip.short())]
    MovedOn {
        /// The branch.
        branch: String,
        /// Where it is.
        tip: git::Oid,
        /// The command that comes nearest to the undo.
        instead: Option<String>,
    },
    /// A branch that the checkout or a landing would go back on is gone.
    #[error("there is no branch '{branch}' any more")]
    BranchGone {
        /// The branch.
        branch: String,
        /// Where it was.
        tip: git::Oid,
    },
    /// The checkout is on neither of the branches that it would go from and to.
    #[error("{} is not on '{branch}' any more", dir.display())]
    Elsewhere {
        /// The worktree.
        dir: std::path::PathBuf,
        /// The branch that it would go back from.
        branch: String,
        /// Where that was; none where it still exists.
        gone: Option<git::Oid>,
    },
    /// The branch that the checkout would go back to is checked out elsewhere by now.
    #[error("'{branch}' is checked out in {} now", dir.display())]
    CheckedOut {
        /// The branch.
        branch: String,
        /// The other worktree.
        dir: std::path::PathBuf,
    },
    /// The changes that wait in the open preview are not those which were set aside for it.
    #[error("your changes were set aside anew since, and wait in the preview as they are now")]
    Replaced,
    /// The record of the changes that wait in the open preview is gone.
    #[error("the record of your changes from before the preview is gone")]
    Unrecorded,
    /// What is to be taken back is known elsewhere.
    #[error("'{branch}' was pushed: {remote} has it")]
    Pushed {
        /// The branch.
        branch: String,
        /// The remote-tracking branch that has it.
        remote: String,
    },
    /// What was changed since would be mixed with what comes back.
    #[error("there are uncommitted changes in {}: {}", dir.display(), git::names(paths))]
    Edits {
        /// The worktree.
        dir: std::path::PathBuf,
        /// The changed paths.
        paths: Vec<git::RepoPath>,
        /// Whether it shows a lane.
        in_preview: bool,
        /// What helps where git was told not to look at some files: a stash would destroy what is in them.
        flagged: Option<git::Remedy>,
    },
    /// A lane would go with work that was not in it when it went before.
    #[error("lane '{name}' has uncommitted work: {}", git::names(paths))]
    Uncommitted {
        /// The lane.
        name: String,
        /// The changed paths.
        paths: Vec<git::RepoPath>,
    },
    /// The main checkout shows the lane.
    #[error("the main checkout shows lane '{name}'")]
    Shown {
        /// The lane.
        name: String,
    },
}

/// A single hint.
fn one(text: String) -> Vec<Cow<'static, str>> {
    vec![text.into()]
}

/// What is not to be, of an operation.
fn kept(redo: bool) -> &'static str {
    if redo { ", an undo, cannot be taken back" } else { " cannot be undone" }
}

/// Why, without the assurance that is given for the whole.
fn bare(e: &Error) -> String {
    let text = e.to_string();
    let short =
        text.strip_suffix("; nothing was changed").or_else(|| text.strip_suffix("; nothing was made"));
    short.unwrap_or(&text).to_owned()
}

impl Explain for UndoError {
    fn hints(&self) -> Vec<Cow<'static, str>> {
        match self {
            UndoError::NoOperation { .. } => vec!["see what there is: git proq op log".into()],
            UndoError::NotLast { asked, .. } => {
                vec![
                    format!(
                        "undo it and all that came after it: git proq op restore {}",
                        asked.saturating_sub(1)
                    )
                    .into(),
                ]
            }
            UndoError::CannotUndo { number, forced, source, .. } => match (&**source, forced) {
                (Error::Undo(UndoError::BuiltOn { .. } | UndoError::Pushed { .. }), Some(forced)) => {
                    vec![
                        format!("undo it all the same, keeping what came after under a ref: {forced}").into(),
                    ]
                }
                (Error::Undo(UndoError::BuiltOn { .. } | UndoError::Pushed { .. }), None) => {
                    vec![format!("see what it did: git proq op show {number}").into()]
                }
                (Error::Kept { force_helps: true, busy: false, help, .. }, Some(forced)) => {
                    let force = format!("remove the lane all the same, saving everything first: {forced}");
                    help.clone().into_iter().chain([force]).map(Cow::from).collect()
                }
                // A commit would be built on what is to be taken back.
                (Error::Git(git::Error::Overlap { dir, remedy, .. }), _) => vec![remedy.stash(dir)],
                (Error::Expired { .. }, _) => {
                    vec![format!("see what of it is still there: git proq op show {number}").into()]
                }
                (other, _) => other.hints(),
            },
            UndoError::Edits { flagged: Some(remedy), dir, .. } => vec![remedy.stash(dir)],
            UndoError::Edits { in_preview: true, .. } => {
                vec!["set them aside for its next preview: git proq preview --back".into()]
            }
            UndoError::Edits { dir, .. } => one(format!(
                "set them aside first: git -C {} stash push --include-untracked",
                quoted_path(dir)
            )),
            UndoError::BranchGone { branch, tip } => one(format!("make it again: git branch {branch} {tip}")),
            UndoError::Elsewhere { dir, branch, gone } => one(way_there(dir, branch, *gone)),
            UndoError::Uncommitted { name, .. } => {
                vec![format!("remove it, saving everything first: git proq discard --force {name}").into()]
            }
            UndoError::Shown { .. } => vec!["go back first: git proq preview --back".into()],
            UndoError::CheckedOut { dir, .. } => {
                one(format!("free it: git -C {} switch --detach", quoted_path(dir)))
            }
            UndoError::HomeMoved { .. } | UndoError::Replaced | UndoError::Unrecorded => {
                vec!["leave the preview instead: git proq preview --back".into()]
            }
            UndoError::MovedOn { instead, .. } => {
                instead.iter().map(|command| format!("do this instead: {command}").into()).collect()
            }
            UndoError::NothingToUndo { .. } | UndoError::BuiltOn { .. } | UndoError::Pushed { .. } => vec![],
        }
    }

    fn exit(&self) -> Exit {
        match self {
            UndoError::CannotUndo { source, .. } => source.exit(),
            _ => Exit::Refused,
        }
    }
}

/// The hint that leads a worktree to a branch, which was at `gone` where it is gone.
fn way_there(dir: &std::path::Path, branch: &str, gone: Option<git::Oid>) -> String {
    let git = format!("git -C {}", quoted_path(dir));
    match gone {
        None => format!("go back there first: {git} switch {branch}"),
        Some(tip) => format!("make it again and go there first: {git} switch -c {branch} {tip}"),
    }
}
