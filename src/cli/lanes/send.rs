//! `git proq send`: sends a message to a lane's agent.

use std::path::PathBuf;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_lib::ops::send;
use proq_lib::ops::send::{SendOutcome, SendRequest};

use crate::cli::arguments::candidates::any_lane_names;
use crate::cli::arguments::user_files::{argument_or_file, attachments_of_text};
use crate::cli::invocation::caller;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::usage_error::UsageError;
use crate::cli::runs::{follow_run, run_end};

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
    /// The lane [default: the lane of the current folder, if TEXT has a space or is in FILE]
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(any_lane_names))]
    pub(crate) lane: Option<String>,
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

impl Send {
    /// Returns the lane and the text that were given. A single argument that has a space is the text, because
    /// no lane's name has one.
    fn lane_and_text(&self) -> (Option<&String>, Option<&String>) {
        let is_text = |text: &String| text.contains(char::is_whitespace);
        match (&self.lane, &self.text) {
            (Some(text), None) if is_text(text) && self.file.is_none() => (None, Some(text)),
            (lane, text) => (lane.as_ref(), text.as_ref()),
        }
    }
}

pub(crate) fn run(context: &CommandContext, args: &Send) -> CommandResult {
    let (name, text) = args.lane_and_text();
    let text = argument_or_file(text, args.file.as_ref())?;
    if text.as_ref().is_some_and(|text| text.trim().is_empty()) {
        let example = "git proq send LANE \"also handle refunds\"";
        return Err(UsageError::missing("there is nothing to send", example).into());
    }
    let example = "git proq send LANE \"it looks like this\" --attach FILE";
    let attachments = attachments_of_text(context, &args.attach, text.as_ref(), example)?;
    let project = context.project_for_write()?;
    let lane = project.find_any_lane(&caller::lane_or_current(&project, name)?)?;
    caller::refuse_agent_for_other_lanes(std::slice::from_ref(&lane.name), args.dry_run)?;
    let request = SendRequest { lane, text, attachments };
    let plan = send::plan(&project, &request)?;
    let sent = if args.dry_run { plan.forecast(&project)? } else { plan.execute(&project)? };
    if args.wait && !args.dry_run {
        return follow_run::follow_and_report(context, &project, &sent.record, None);
    }
    context.show(&sent, |context, sent| {
        context.ui.print_line(result_line(sent));
        if !args.dry_run {
            if !sent.queued {
                // Messages of another conversation may still be pending.
                run_end::print_pending_message_count(context, &project, &sent.lane);
            }
            context.ui.hint(format!("follow it: git proq logs -f {}", sent.lane));
        }
    })
}

fn result_line(sent: &SendOutcome) -> String {
    let would_be = if sent.dry_run { "would be " } else { "" };
    if sent.queued {
        return format!("{would_be}kept for '{}' until its agent's turn has ended", sent.lane);
    }
    let window_note = if sent.leaves_window { ", without a window" } else { "" };
    format!("{would_be}sent to '{}'; {} goes on{window_note}", sent.lane, sent.agent)
}
