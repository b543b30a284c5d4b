//! Owns the steps of a history, and how each is told.

use std::fmt;

use super::super::states::{Combo, Spot};

/// A worktree: the main checkout, or a lane's.
pub(crate) type At = &'static str;

/// The main checkout. No lane can have this name.
pub(super) const MAIN: At = "(main)";

/// What is done to one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// A line becomes another one, in a file that is made if it is not there.
    Line(usize, usize),
    /// The whole file becomes this one line.
    Whole(usize),
    /// It is removed.
    Delete,
    /// It becomes a program, or is one no more.
    Chmod,
}

/// One file, and what is done to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Edit {
    /// The file.
    pub(super) path: &'static str,
    /// What is done to it.
    pub(super) change: Change,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Files change.
    Edit { at: At, edits: Vec<Edit> },
    /// One path gets into a state of HEAD, index and disk that plain edits seldom come to.
    Odd { at: At, path: &'static str, combo: Combo },
    /// One path is staged.
    Stage { at: At, path: &'static str },
    /// Files change, and everything is committed.
    Commit { at: At, edits: Vec<Edit>, amend: bool },
    /// What is staged is committed.
    CommitStaged { at: At },
    /// The program under test.
    Proq(Vec<&'static str>),
    /// Plain git in the main checkout, by a person who does not care what is open.
    Hand(Vec<&'static str>),
}

/// The line that a token stands for: nobody else writes it.
pub(super) fn token(n: usize) -> String {
    format!("w{n}w")
}

/// The shell script of an odd state.
pub(super) fn odd_script(path: &str, combo: Combo) -> String {
    // Its name says already whether it is ignored.
    Spot::new(path, Combo { ignored: false, ..combo }).whole()
}

fn told(at: At) -> &'static str {
    if at == MAIN { "main checkout" } else { at }
}

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.change {
            Change::Line(line, n) => write!(f, "{}:{line} = {}", self.path, token(n)),
            Change::Whole(n) => write!(f, "{} = {}", self.path, token(n)),
            Change::Delete => write!(f, "rm {}", self.path),
            Change::Chmod => write!(f, "chmod {}", self.path),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |edits: &[Edit]| edits.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        match self {
            Step::Edit { at, edits } => write!(f, "[{}] {}", told(at), list(edits)),
            Step::Odd { at, path, combo } => {
                let script = odd_script(path, *combo);
                let commands: Vec<&str> = script.lines().filter(|line| !line.is_empty()).collect();
                write!(f, "[{}] {}", told(at), commands.join("; "))
            }
            Step::Stage { at, path } => write!(f, "[{}] git add -A -- {path}", told(at)),
            Step::Commit { at, edits, amend } => {
                let amend = if *amend { " --amend" } else { "" };
                write!(f, "[{}] {}; git add -A; git commit{amend}", told(at), list(edits))
            }
            Step::CommitStaged { at } => write!(f, "[{}] git commit", told(at)),
            Step::Proq(args) => write!(f, "git proq {}", args.join(" ")),
            Step::Hand(args) => write!(f, "[main checkout] git {}", args.join(" ")),
        }
    }
}
