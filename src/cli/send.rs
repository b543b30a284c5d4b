//! Owns `git proq send`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde::Serialize;

use super::complete::any_lane_names;
use super::{Done, Failure, Mistake, Session, follow, identity, resolve, spawn};
use crate::agent::{self, Sent};
use crate::explain::Exit;
use crate::lane::{self, Inbox, Project, SaidFiles};
use crate::store::records::AnyLane;

/// Tell a lane's agent more
///
/// The agent goes on in the same conversation, in the lane as it is, with TEXT as what is asked next. While it is at work, TEXT
/// waits until its turn has ended, and is told to that agent in that conversation only; Claude Code, and an agent that speaks the
/// Agent Client Protocol, is told then in the same process. Where the turn ends in a way after which nobody goes on, by `git proq stop` for
/// one, TEXT waits on: `git proq list` and `git proq show` say so, and `git proq send LANE` without TEXT passes on what waits. A
/// command that fails has sent nothing.
///
/// An agent that is in a window of tmux is talked to there. Once its session has ended, it goes on with TEXT without a window.
///
/// Examples:
///     git proq send payments "also handle refunds"
///     git proq send payments -f review.md --wait
///     git proq send payments "it looks like this now" --attach screen.png
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Send {
    /// The lane
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(any_lane_names))]
    pub(crate) lane: String,
    /// What to tell its agent
    #[arg(value_name = "TEXT", conflicts_with = "file", allow_hyphen_values = true)]
    pub(crate) text: Option<String>,
    /// Read TEXT from FILE, or from standard input with '-'
    #[arg(long, short, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// Give FILE along with TEXT; a copy is kept beside the lane's record. May be given again
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) attach: Vec<PathBuf>,
    /// Wait for the agent to end; exit with 4 when it failed
    #[arg(long)]
    pub(crate) wait: bool,
    /// Say what would be done, and send nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Serialize)]
struct Answer<'a> {
    lane: &'a str,
    agent: &'a str,
    /// Null as long as its agent has not named it.
    session: Option<&'a str>,
    /// Whether it waits for the end of the agent's turn.
    queued: bool,
    state: String,
    dry_run: bool,
}

pub(super) fn run(session: &Session, args: &Send) -> Done {
    let text = match &args.file {
        None => args.text.clone(),
        Some(file) => Some(spawn::read_prompt(file)?),
    };
    if text.as_ref().is_some_and(|text| text.trim().is_empty()) {
        return Err(Mistake::Missing {
            what: "there is nothing to send",
            example: "git proq send LANE \"also handle refunds\"",
        }
        .into());
    }
    let attached = spawn::attached(session, &args.attach)?;
    if text.is_none() && !attached.is_empty() {
        let example = "git proq send LANE \"it looks like this\" --attach FILE";
        return Err(Mistake::Missing { what: "nothing says what the files are for", example }.into());
    }
    let project = session.project_to_change()?;
    let lane = project.any_lane(&args.lane)?;
    identity::refuse_agent_for_others(std::slice::from_ref(&lane.name), args.dry_run)?;
    let to = agent::addressee(&project, &lane, text.as_deref())?;
    if let Some(warning) = &to.warning {
        session.ui.warn(warning);
    }
    let sent = match args.dry_run {
        true => Sent::would(&project, &lane)?,
        false => send(&project, &lane, text.as_deref(), &attached)?,
    };
    let lane = project.any_lane(&lane.name)?;
    if args.wait && !args.dry_run {
        return follow::follow(session, &project, &lane, None);
    }
    if session.ui.json {
        session.ui.object(Answer {
            lane: &lane.name,
            agent: &to.agent,
            session: to.session.as_deref(),
            queued: sent == Sent::Waits,
            state: lane.state.to_string(),
            dry_run: args.dry_run,
        });
        return Ok(Exit::Done);
    }
    let would = if args.dry_run { "would be " } else { "" };
    session.ui.answer(match sent {
        Sent::Started => {
            let how = if to.left_window { ", without a window" } else { "" };
            format!("{would}sent to '{}'; {} goes on{how}", lane.name, to.agent)
        }
        Sent::Waits => format!("{would}kept for '{}' until its agent's turn has ended", lane.name),
    });
    if !args.dry_run {
        if sent == Sent::Started {
            // What is for another conversation.
            say_what_waits(session, &project, &lane.name);
        }
        session.ui.hint(format!("follow it: git proq logs -f {}", lane.name));
    }
    Ok(Exit::Done)
}

/// Sends, with copies of the files that belong to it. Nothing is kept of what is refused.
fn send(project: &Project, lane: &AnyLane, text: Option<&str>, files: &[PathBuf]) -> Result<Sent, Failure> {
    let copies = SaidFiles::copy(project, &lane.name, files)?;
    let text = text.map(|text| copies.with(text)).transpose()?;
    let sent = agent::send(project, lane, text.as_deref(), &resolve::this_program()?)?;
    copies.keep();
    Ok(sent)
}

/// Says what waits in a lane, if anything does.
pub(super) fn say_what_waits(session: &Session, project: &Project, name: &str) {
    let count = Inbox::of(project, name).count();
    if count > 0 {
        session.ui.say(lane::messages_wait(name, count));
    }
}
