//! Owns what can go wrong with a landing, in the user's words.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::ResolveError;
use crate::explain::{Exit, Explain, quoted_path};
use crate::git::Oid;
use crate::interrupt::Interrupted;
use crate::{agent, git, lane, preview, process, store};

/// An error about a landing.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The base moved again and again.
    #[error(
        "'{base}' could not be moved in {tries} tries: it, a lane or its worktree kept changing{}; nothing was moved",
        last.as_ref().map_or_else(String::new, |why| format!(", or is locked ({why})"))
    )]
    Restless {
        /// The base.
        base: String,
        /// How often it was tried.
        tries: u32,
        /// What git said last, if it was git that refused.
        last: Option<String>,
    },
    /// A worktree is in the middle of something that will move the base.
    #[error("a {what} of '{base}' is under way in {dir}; nothing was moved")]
    InUse {
        /// The base.
        base: String,
        /// What is under way.
        what: &'static str,
        /// Where.
        dir: String,
    },
    /// Local changes are in the way in the worktree of a lane, which is on the base.
    #[error("lane '{lane}' has '{onto}' checked out: {why}")]
    LaneOnBase {
        /// The lane.
        lane: String,
        /// The base.
        onto: String,
        /// What is in the way.
        why: String,
        /// The command that brings the lane back to its own branch.
        back: String,
    },
    /// The base has an option for merges that a landing does not take.
    #[error("branch.{base}.mergeOptions has {option}, which a landing does not take; nothing was moved")]
    MergeOption {
        /// The base.
        base: String,
        /// The option.
        option: String,
    },
    /// A landed change cannot be found on the base.
    #[error("lane '{lane}' was landed but its tip is not on '{base}'; it was kept")]
    Audit {
        /// The lane.
        lane: String,
        /// The base.
        base: String,
    },
    /// Commands that came with the repository and that nobody has approved.
    #[error("{} wants lanes checked with commands that you have not approved: {}; nothing was moved", path.display(), commands.join("; "))]
    Unapproved {
        /// The settings file.
        path: PathBuf,
        /// The command lines.
        commands: Vec<String>,
        /// The branch that they are for.
        base: String,
    },
    /// A check that takes too long on the base as well: that neither speaks against a lane nor for it.
    #[error(
        "cannot check lanes on '{base}': `{command}` timed out after {seconds} s on the base itself; nothing was moved"
    )]
    TimedOut {
        /// The command line.
        command: String,
        /// The base.
        base: String,
        /// How long it may take.
        seconds: u64,
        /// The lanes that were to land.
        lanes: Vec<String>,
    },
    /// An agent that came with the repository and that nobody has approved.
    #[error("{} wants '{agent}' sent at conflicts, which you have not approved; nothing was moved", path.display())]
    UnapprovedAgent {
        /// The settings file.
        path: PathBuf,
        /// The agent.
        agent: String,
    },
    /// There is no place for the worktrees of checks.
    #[error("there is no home folder to keep the worktrees for checks in; nothing was moved")]
    NoHome,
    /// That place is inside of what is checked.
    #[error("verify.location {} lies inside the repository; checks would find its files there; nothing was moved", dir.display())]
    Inside {
        /// The folder.
        dir: PathBuf,
    },
    /// There is something else in that place.
    #[error("{} was not made by git-proq for this repository; it was left as it is, and nothing was moved", dir.display())]
    NotOurs {
        /// The folder.
        dir: PathBuf,
    },
    /// A worktree for checks could not be brought to a commit.
    #[error("{} could not be brought to {}; nothing was moved", dir.display(), commit.short())]
    NotThere {
        /// The worktree.
        dir: PathBuf,
        /// The commit.
        commit: Oid,
    },
    /// A check has removed the worktree that it ran in, or what makes it one.
    #[error("the worktree of the checks was gone, or no worktree any more, after they ran: {}; nothing was moved", dir.display())]
    WorktreeGone {
        /// The worktree.
        dir: PathBuf,
        /// The lanes that were checked.
        lanes: Vec<String>,
    },
    /// From a program.
    #[error(transparent)]
    Process(#[from] process::Error),
    /// From resolving a conflict.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// From an agent.
    #[error(transparent)]
    Agent(#[from] agent::Error),
    /// From a lane.
    #[error(transparent)]
    Lane(#[from] lane::Error),
    /// From a preview.
    #[error(transparent)]
    Preview(#[from] preview::Error),
    /// From git.
    #[error(transparent)]
    Git(#[from] git::Error),
    /// From the store.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl From<Interrupted> for Error {
    fn from(interrupted: Interrupted) -> Error {
        Error::Store(interrupted.into())
    }
}

impl Explain for Error {
    fn hints(&self) -> Vec<Cow<'static, str>> {
        match self {
            Error::Restless { .. } => vec![
                "try again; a lock file that nobody holds any more also does this: git status tells".into(),
            ],
            Error::InUse { what, .. } => {
                vec![format!("finish it there, or give it up: {}", git::give_up(what)).into()]
            }
            Error::LaneOnBase { back, .. } => {
                vec![format!("bring it back to its branch first: {back}").into()]
            }
            Error::MergeOption { base, .. } => {
                vec![
                    format!("see where it is set: git config --show-origin --get branch.{base}.mergeOptions")
                        .into(),
                ]
            }
            Error::Audit { .. } => vec!["please report this; look at: git log --graph --all".into()],
            Error::Unapproved { path, base, .. } => vec![
                match path.is_relative() {
                    true => {
                        let base = quoted_path(Path::new(base));
                        format!("read them and let them run: git proq approve --onto {base}").into()
                    }
                    false => "read them and let them run: git proq approve".into(),
                },
                "or land without: git proq merge --no-checks …".into(),
            ],
            Error::TimedOut { seconds, lanes, .. } => {
                let longer = (2 * seconds).max(3600);
                let more = format!("give it more time: git config proq.verify.timeout {longer}").into();
                [more].into_iter().chain(without_checks(lanes)).collect()
            }
            Error::UnapprovedAgent { .. } => vec![
                "let it run: git proq approve".into(),
                "or land without: git proq merge --no-conflict-agent …".into(),
            ],
            Error::NoHome | Error::Inside { .. } => {
                vec!["name another folder: git config proq.verify.location /PATH".into()]
            }
            Error::NotOurs { dir } => vec![
                format!("look at it: ls -la {}", quoted_path(dir)).into(),
                "or name another folder: git config proq.verify.location /PATH".into(),
            ],
            Error::NotThere { dir, .. } => vec![
                format!("is another program at work there? it may be deleted: rm -rf {}", quoted_path(dir))
                    .into(),
            ],
            Error::WorktreeGone { lanes, .. } => without_checks(lanes).into_iter().collect(),
            Error::Process(e) => e.hints(),
            Error::Resolve(e) => e.hints(),
            Error::Agent(e) => e.hints(),
            Error::Lane(e) => e.hints(),
            Error::Preview(e) => e.hints(),
            Error::Git(e) => e.hints(),
            Error::Store(e) => e.hints(),
        }
    }

    fn exit(&self) -> Exit {
        match self {
            Error::Audit { .. } => Exit::Bug,
            Error::Restless { .. }
            | Error::InUse { .. }
            | Error::LaneOnBase { .. }
            | Error::MergeOption { .. }
            | Error::Unapproved { .. }
            | Error::TimedOut { .. }
            | Error::UnapprovedAgent { .. }
            | Error::NoHome
            | Error::Inside { .. }
            | Error::NotOurs { .. }
            | Error::NotThere { .. }
            | Error::WorktreeGone { .. } => Exit::Refused,
            Error::Process(e) => e.exit(),
            Error::Resolve(e) => e.exit(),
            Error::Agent(e) => e.exit(),
            Error::Lane(e) => e.exit(),
            Error::Preview(e) => e.exit(),
            Error::Git(e) => e.exit(),
            Error::Store(e) => e.exit(),
        }
    }
}

/// The hint to land these lanes without their checks; none where there are no lanes to name.
fn without_checks(lanes: &[String]) -> Option<Cow<'static, str>> {
    let names = lanes.join(" ");
    (!names.is_empty()).then(|| format!("land without checks: git proq merge --no-checks {names}").into())
}
