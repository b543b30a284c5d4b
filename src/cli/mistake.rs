//! Owns what can be wrong with a command line beyond its grammar.

use std::borrow::Cow;
use std::path::PathBuf;

use crate::explain::{Exit, Explain};

/// A command line that cannot be carried out as it is.
#[derive(Debug, thiserror::Error)]
pub enum Mistake {
    /// The current folder is gone.
    #[error("the current folder does not exist any more")]
    NoDir,
    /// `-C` names no folder.
    #[error("{} is not a folder", dir.display())]
    NotADir {
        /// What was named.
        dir: PathBuf,
    },
    /// Nothing says what to do.
    #[error("{what}")]
    Missing {
        /// What is missing, as a sentence.
        what: &'static str,
        /// A command line that has it.
        example: &'static str,
    },
    /// No command has this ID.
    #[error("no command has the ID '{id}'; nothing was changed")]
    NoApproval {
        /// What was asked for.
        id: String,
    },
    /// A flag about landing, for a run that has nothing to land.
    #[error("{flag} does not go with {mode}, which makes nothing that could land; nothing was made")]
    NothingToLand {
        /// The mode, as it was typed.
        mode: String,
        /// The flag.
        flag: &'static str,
    },
    /// A lane that is to land has a worktree of its own anyway.
    #[error(
        "--isolated is for --mode plan and answer: any other lane has a worktree of its own; nothing was made"
    )]
    BuildsApart,
    /// A file that was named cannot be read.
    #[error("could not read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file cannot be written.
    #[error("could not write {}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file is there that would have been written.
    #[error("{} is there already; it was left as it is", path.display())]
    Taken {
        /// The file.
        path: PathBuf,
    },
    /// A file is there that would be written over.
    #[error("{} is there already; it was left as it is", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// A lane has no run with this number.
    #[error("lane '{lane}' has no run {}", if *run == 0 { "yet".to_owned() } else { run.to_string() })]
    NoRun {
        /// The lane.
        lane: String,
        /// What was asked for.
        run: u32,
    },
    /// No landing has followed a lane's run.
    #[error("lane '{lane}' was not landed by itself")]
    NoLanding {
        /// The lane.
        lane: String,
    },
    /// No command has got a lane ready.
    #[error("no lane.setup command was run in lane '{lane}'")]
    NoSetUp {
        /// The lane.
        lane: String,
    },
    /// No check of a lane has failed.
    #[error("lane '{lane}' has failed no check")]
    NoCheck {
        /// The lane.
        lane: String,
    },
    /// Something that should be asked about, and nobody to ask.
    #[error("{what}; nothing was changed")]
    Unsure {
        /// What it is about.
        what: String,
        /// The operation.
        number: u64,
    },
    /// Commands of the repository's, and nobody to ask about them.
    #[error("nobody can be asked about the commands of {of}; nothing was approved")]
    Unapproved {
        /// Where the commands are from, in words: the repository's `proq.toml`, or a plan.
        of: &'static str,
        /// The arguments that name them.
        which: String,
    },
    /// Only for somebody outside of the lanes.
    #[error(
        "this is for a person, or for the agent that supervises all lanes, and not for one in lane '{lane}'"
    )]
    InLane {
        /// The lane.
        lane: String,
    },
    /// An agent wants to change what is not its own.
    #[error(
        "cannot change other lanes or their bases: this is the agent of lane '{own}'; nothing was changed"
    )]
    OthersLane {
        /// The agent's lane.
        own: String,
    },
    /// No agent that can supervise is installed.
    #[error("no agent that can supervise is installed: it takes {}", one_of(known))]
    NoOverseer {
        /// Those that can.
        known: Vec<String>,
    },
    /// An agent that cannot supervise.
    #[error("'{agent}' cannot supervise lanes: it takes {}", one_of(known))]
    CannotSupervise {
        /// The agent.
        agent: String,
        /// Those that can.
        known: Vec<String>,
    },
    /// An agent's tools cannot be served.
    #[error("the MCP server ended: {why}")]
    Mcp {
        /// Why.
        why: String,
    },
    /// A report that is not written as one.
    #[error("this is no report: {why}; what was reported before stays")]
    Report {
        /// What is wrong with it.
        why: String,
    },
    /// Somebody was asked and said no.
    #[error("nothing was changed")]
    Declined,
    /// A step of the demo did not do what it shows.
    #[error("the demo stopped: {what}")]
    Demo {
        /// What happened.
        what: String,
    },
}

/// Prints what the grammar answers: help, the version, or what is wrong with a command line. git takes `git proq --help`
/// for itself, so `-h` is what helps.
pub(super) fn print_usage(answer: &clap::Error) {
    if !answer.use_stderr() {
        drop(answer.print());
        return;
    }
    let text = answer.render();
    let text = if console::colors_enabled_stderr() { text.ansi().to_string() } else { text.to_string() };
    let text = match text.rsplit_once("For more information") {
        Some((before, after)) => format!("{before}For more information{}", after.replace("--help", "-h")),
        None => text,
    };
    super::ui::part(&text);
}

/// Names as a sentence gives a choice of them.
fn one_of(names: &[String]) -> String {
    match names {
        [] => "none".to_owned(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} or {last}", all.join(", ")),
    }
}

impl Explain for Mistake {
    fn hints(&self) -> Vec<Cow<'static, str>> {
        match self {
            Mistake::Missing { example, .. } => vec![format!("for example: {example}").into()],
            Mistake::NothingToLand { mode, flag } if mode == "--in-place" => {
                vec![format!("leave {flag} out, or have it done in a lane: leave {mode} out").into()]
            }
            Mistake::NothingToLand { flag, .. } => {
                vec![format!("leave {flag} out, or have it built: --mode build").into()]
            }
            Mistake::BuildsApart => vec!["leave --isolated out, or add --mode answer".into()],
            Mistake::NoRun { lane, .. } => vec![format!("see its runs: git proq show {lane}").into()],
            Mistake::NoLanding { lane } => {
                vec![format!("land it: git proq merge {lane}").into()]
            }
            Mistake::NoSetUp { .. } => vec!["see what is set: git proq config list".into()],
            Mistake::NoCheck { lane } => {
                vec![format!("see what is known of it: git proq show {lane}").into()]
            }
            Mistake::NoOverseer { .. } | Mistake::CannotSupervise { .. } => {
                vec!["or give another agent the tools yourself: git proq mcp --supervisor".into()]
            }
            Mistake::Mcp { .. } => {
                vec!["it is started by an agent, which talks to it: see `git proq mcp -h`".into()]
            }
            Mistake::OthersLane { .. } => {
                vec![
                    "say in your report what a person is to do: git proq task update".into(),
                    "a person runs it in a terminal of their own, or has an agent supervise all lanes: git proq supervise".into(),
                ]
            }
            Mistake::InLane { .. } => {
                vec!["an agent in a lane reports on its task: git proq task update".into()]
            }
            Mistake::Report { .. } => vec![
                "write {\"status\": \"…\", \"findings\": [\"…\"], \"human_steps\": [\"…\"]}, or plain text"
                    .into(),
            ],
            Mistake::Demo { .. } => vec!["please report this, with what is shown above".into()],
            Mistake::NoApproval { .. } => {
                vec!["see all, type at least eight letters: git proq approve --list".into()]
            }
            Mistake::Unapproved { which, .. } => {
                vec![format!("approve them as they are: git proq approve --yes{which}").into()]
            }
            Mistake::NoDir => vec!["change to a folder that exists: cd".into()],
            Mistake::NotADir { .. } => vec!["-C takes a folder that exists".into()],
            Mistake::Taken { .. } => vec!["name another one: git proq plan --init FILE".into()],
            Mistake::Exists { .. } => {
                vec!["name another file, or let this one be replaced: --force".into()]
            }
            Mistake::Unreadable { .. } | Mistake::Unwritable { .. } | Mistake::Declined => Vec::new(),
            Mistake::Unsure { number, .. } => vec![
                format!("look at it: git proq op show {number}").into(),
                format!("undo it all the same: git proq undo {number}").into(),
            ],
        }
    }

    fn exit(&self) -> Exit {
        match self {
            Mistake::Missing { .. }
            | Mistake::NothingToLand { .. }
            | Mistake::BuildsApart
            | Mistake::NotADir { .. }
            | Mistake::CannotSupervise { .. } => Exit::Usage,
            _ => Exit::Refused,
        }
    }
}
