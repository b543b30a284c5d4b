//! Owns what can go wrong with a batch, and what helps.

use std::borrow::Cow;
use std::path::PathBuf;

use crate::explain::{Exit, Explain};
use crate::swarm::schedule::Flaw;

/// Why something cannot be done with a batch.
#[derive(Debug, thiserror::Error)]
pub enum BatchError {
    /// There is none of this name, or several could be meant.
    #[error("there is no batch '{asked}'{}", one_of(known))]
    Unknown {
        /// What was asked for.
        asked: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// One of the same plan is done, and is on its own branch only.
    #[error("batch {id} of this plan is over, and what it has done is not on {base} yet; nothing was begun")]
    Unlanded {
        /// It.
        id: String,
        /// Where it should land.
        base: String,
        /// How it gets there.
        help: String,
    },
    /// None was named, and there is none.
    #[error("there is no batch yet")]
    NoneYet,
    /// None was named, and it is not clear which is meant.
    #[error("{}", if open.is_empty() { "no batch is open".to_owned() } else { format!("several batches are open: {}", open.join(", ")) })]
    Which {
        /// Those that are open.
        open: Vec<String>,
        /// The command that was typed.
        command: &'static str,
    },
    /// Its tasks are none that could be scheduled: somebody has changed the file.
    #[error("the tasks of batch {id} cannot be read: {flaw}")]
    Flaw {
        /// The batch.
        id: String,
        /// What is wrong with them.
        flaw: Flaw,
    },
    /// It has no such task.
    #[error("batch {id} has no task '{name}'")]
    NoTask {
        /// The batch.
        id: String,
        /// What was asked for.
        name: String,
    },
    /// The plan has no such task.
    #[error("this plan has no task '{name}'; nothing was begun")]
    NoSuchTask {
        /// What was asked for.
        name: String,
        /// The plan as it was named.
        plan: String,
    },
    /// Nobody could be started to go on with it.
    #[error("nobody goes on with batch {id}: {why}")]
    NotStarted {
        /// The batch.
        id: String,
        /// Why.
        why: String,
    },
    /// Its scheduler does not answer.
    #[error(
        "the scheduler of batch {id} has not answered in {seconds} s; what you want is written down for it"
    )]
    Deaf {
        /// The batch.
        id: String,
        /// How long was waited.
        seconds: u64,
    },
    /// The plan that somebody wants to run is being run.
    #[error("batch {id} of this plan is not over ({state}); nothing was begun")]
    Open {
        /// The batch.
        id: String,
        /// How far it is.
        state: String,
    },
    /// A task says nothing about who is to do it.
    #[error("nothing says who is to do task '{task}'; nothing was begun")]
    NoAgent {
        /// The task.
        task: String,
    },
    /// There is nothing to run.
    #[error("all tasks of this plan are done; nothing was begun")]
    AllDone {
        /// The plan as it was named.
        plan: String,
    },
    /// Commands of a plan that came with a repository, and that nobody has approved.
    #[error("{} asks for commands that you have not approved: {}; nothing was begun", path.display(), commands.join("; "))]
    Unapproved {
        /// The plan's file.
        path: PathBuf,
        /// The command lines.
        commands: Vec<String>,
        /// The arguments of `git proq approve` that name the plan.
        plan: String,
    },
    /// It is not clear which branch it is for.
    #[error("{why}, so it is not clear which branch the batch is for; nothing was begun")]
    NoBase {
        /// Why.
        why: String,
    },
    /// Changes that no lane would have.
    #[error("your uncommitted changes would be in no lane: {names}; nothing was begun")]
    Dirty {
        /// The files.
        names: String,
    },
    /// It goes on, so that something else has to wait.
    #[error("batch {id} goes on{}; nothing was changed", if *agents { ": agents are at work in its lanes" } else { "" })]
    GoesOn {
        /// The batch.
        id: String,
        /// Whether it is only agents that do.
        agents: bool,
    },
    /// It was cleaned up.
    #[error("batch {id} was cleaned up: its lanes and its branch are gone")]
    Cleaned {
        /// The batch.
        id: String,
    },
    /// There is nothing of it to land.
    #[error("{why}; nothing was moved")]
    NothingToLand {
        /// Why.
        why: String,
    },
    /// It was to be landed only if it is as it was to be.
    #[error("batch {id} is strict, and {why}; nothing was moved")]
    NotMet {
        /// The batch.
        id: String,
        /// Why that is not known to be so.
        why: String,
    },
    /// It builds on what is to be taken back.
    #[error("that landed tasks of batch {id}, which {}; nothing was changed", if *runs { "goes on" } else { "is not over" })]
    BuiltOn {
        /// The batch.
        id: String,
        /// Whether somebody goes on with it now.
        runs: bool,
        /// The command that takes it back all the same, where there is one.
        forced: Option<String>,
    },
    /// An operation cannot be undone before those of a batch that is not over.
    #[error(
        "cannot undo operation {operation} by itself: batch {id} {}, and landed tasks after it; nothing was changed",
        if *runs { "goes on" } else { "is not over" }
    )]
    LandedSince {
        /// The operation.
        operation: u64,
        /// The batch.
        id: String,
        /// Whether somebody goes on with it now.
        runs: bool,
    },
    /// Work would get lost from sight.
    #[error("batch {id} has landed {} that {base} does not have; nothing was changed", tasks(*count))]
    NotLanded {
        /// The batch.
        id: String,
        /// How many tasks.
        count: usize,
        /// Where they would have to be.
        base: String,
        /// How they get there.
        help: String,
    },
    /// What it was to land on is gone.
    #[error("'{base}', which batch {id} is for, is gone; nothing was moved")]
    BaseGone {
        /// The batch.
        id: String,
        /// The branch.
        base: String,
        /// How it lands elsewhere.
        help: String,
    },
    /// Its own branch is gone.
    #[error(
        "the branch of batch {id} is gone: {branch}{}; nothing was moved",
        tip.as_ref().map_or_else(String::new, |tip| format!(", which was at {tip}"))
    )]
    BranchGone {
        /// The batch.
        id: String,
        /// The branch.
        branch: String,
        /// Where it was, if that is known and still there.
        tip: Option<String>,
    },
    /// Lanes of one that is to be cleaned up have work that is nowhere else.
    #[error("batch {id} is kept, because of {}; nothing was removed", lanes.join(", "))]
    Kept {
        /// The batch.
        id: String,
        /// The lanes, and what is in each.
        lanes: Vec<String>,
    },
}

fn tasks(count: usize) -> String {
    if count == 1 { "1 task".to_owned() } else { format!("{count} tasks") }
}

fn one_of(known: &[String]) -> String {
    if known.is_empty() { String::new() } else { format!("; there are {}", known.join(", ")) }
}

impl BatchError {
    /// What helps where a batch is to be landed, taken back or tidied up.
    fn hints_of_an_end(&self) -> Vec<Cow<'static, str>> {
        match self {
            BatchError::GoesOn { id, agents: false } => vec![
                format!("have it end what it is at: git proq pause {id}").into(),
                format!("or stop it: git proq abort {id}").into(),
            ],
            BatchError::GoesOn { id, agents: true } | BatchError::BuiltOn { id, runs: true, .. } => {
                vec![format!("end that first: git proq abort {id}").into()]
            }
            BatchError::LandedSince { operation, runs, .. } => {
                let by_hand =
                    format!("see what it saved, to bring that back by hand: git proq op show {operation}");
                let before = operation.saturating_sub(1);
                let all = format!(
                    "or take back all since, with what the batch landed: git proq op restore {before} --force"
                );
                std::iter::once(by_hand).chain((!runs).then_some(all)).map(Cow::from).collect()
            }
            BatchError::Cleaned { .. } => {
                vec!["see what is kept of removed lanes: git proq list --all".into()]
            }
            BatchError::BuiltOn { id, runs: false, forced } => {
                let again = forced.as_ref().map(|command| {
                    format!("or take it back all the same; the tasks land again when it goes on: {command}")
                        .into()
                });
                std::iter::once(format!("go on with it: git proq resume {id}").into()).chain(again).collect()
            }
            BatchError::NotMet { id, .. } => vec![
                format!("see what is not met: git proq status {id}").into(),
                format!("or land it all the same: git proq merge --batch {id} --force").into(),
            ],
            BatchError::NothingToLand { .. } => vec!["see how far it is: git proq status".into()],
            BatchError::Kept { id, .. } => vec![
                format!("go on with it: git proq resume {id}").into(),
                format!("or let go of them, saved as by any removal: git proq cleanup --batch {id} --force")
                    .into(),
            ],
            BatchError::BaseGone { help, .. } => vec![help.clone().into()],
            BatchError::BranchGone { branch, tip: Some(tip), .. } => {
                vec![format!("bring it back: git branch {branch} {tip}").into()]
            }
            BatchError::BranchGone { id, .. } => {
                vec![format!("see how far it is: git proq status {id}").into()]
            }
            BatchError::NotLanded { id, help, .. } => vec![
                help.clone().into(),
                format!(
                    "or let go of them, kept under refs/proq/saved/: git proq cleanup --batch {id} --force"
                )
                .into(),
            ],
            _ => Vec::new(),
        }
    }
}

impl Explain for BatchError {
    fn hints(&self) -> Vec<Cow<'static, str>> {
        match self {
            BatchError::Unknown { .. } => vec!["see all: git proq status --all".into()],
            BatchError::Unlanded { id, help, .. } => vec![
                help.clone().into(),
                format!("try again what failed in it: git proq resume {id} --retry ID").into(),
                "do all of the plan once more: git proq swarm PLAN --new".into(),
            ],
            BatchError::NoneYet => vec!["begin one: git proq swarm PLAN".into()],
            BatchError::Which { open, .. } if open.is_empty() => {
                vec![
                    "begin one: git proq swarm PLAN".into(),
                    "see those that are over: git proq status --all".into(),
                ]
            }
            BatchError::Which { open, command } => {
                vec![format!("say which: git proq {command} {}", open[0]).into()]
            }
            BatchError::Flaw { id, .. } => vec![format!("look at it: git proq status {id} --json").into()],
            BatchError::NoTask { id, .. } => vec![format!("see its tasks: git proq status {id}").into()],
            BatchError::NoSuchTask { plan, .. } => {
                vec![format!("see its tasks: git proq plan {plan}").into()]
            }
            BatchError::NotStarted { id, .. } => vec![format!("try again: git proq resume {id}").into()],
            BatchError::Deaf { id, .. } => vec![format!("see how far it is: git proq status {id}").into()],
            BatchError::Open { id, .. } => vec![
                format!("go on with it: git proq resume {id}").into(),
                "or begin another one beside it: git proq swarm --new …".into(),
            ],
            BatchError::NoAgent { .. } => {
                vec!["name an agent for such tasks: git proq swarm --agent claude …".into()]
            }
            BatchError::AllDone { plan } => vec![format!("see them: git proq plan {plan}").into()],
            BatchError::Unapproved { plan, .. } => {
                vec![format!("read them and let them run: git proq approve{plan}").into()]
            }
            BatchError::NoBase { .. } => vec!["name it: git proq swarm --base BRANCH …".into()],
            BatchError::Dirty { .. } => vec![
                "commit them first: git commit -a".into(),
                "or begin without them: git proq swarm --ignore-dirty …".into(),
            ],
            it => it.hints_of_an_end(),
        }
    }

    fn exit(&self) -> Exit {
        match self {
            BatchError::Which { .. } | BatchError::NoBase { .. } => Exit::Usage,
            BatchError::Deaf { .. } => Exit::Locked,
            _ => Exit::Refused,
        }
    }
}
