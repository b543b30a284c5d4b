//! `git proq send`: sends a message to a lane's agent.

use std::path::PathBuf;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_base::hint;
use proq_lib::ops::send;
use proq_lib::ops::send::{SendOutcome, SendRequest};

use crate::cli::arguments::candidates::any_lane_names;
use crate::cli::arguments::user_files::{argument_or_file, attachments_of_text};
use crate::cli::invocation::caller;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::usage_error::UsageError;
use crate::cli::runs::{follow_run, run_end};

/// Send a follow-up message to a lane's agent
///
/// The agent continues in the same conversation, with the lane as it is. While the agent works, the message
/// is queued until its turn ends; only that agent in that conversation gets it. Claude Code and agents that
/// speak the Agent Client Protocol receive it in the same process. If the turn ends without a next one, for
/// example because of `git proq stop`, the message stays queued: `git proq list` and `git proq show` say
/// so, and `git proq send LANE` without a message delivers what is queued. A command that fails has sent
/// nothing.
///
/// An agent in a tmux window is written to there. Once its session has ended, it continues without a
/// window.
///
/// Examples:
///     git proq send payments "also handle refunds"
///     git proq send payments -F review.md --wait
///     git proq send payments "it looks like this now" --attachment screen.png
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Send {
    /// Lane name [default: lane of the current folder, if TEXT has a space or is in FILE]
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(any_lane_names))]
    pub(crate) lane: Option<String>,
    /// Message [default: deliver the queued messages]
    #[arg(value_name = "MESSAGE", conflicts_with = "file", allow_hyphen_values = true)]
    pub(crate) text: Option<String>,
    /// Read the message from FILE ('-' for standard input)
    #[arg(long, short = 'F', short_alias = 'f', value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// Attach FILE to the message [can be repeated]
    ///
    /// A copy is kept with the lane's record.
    #[arg(long = "attachment", alias = "attach", value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) attach: Vec<PathBuf>,
    /// Wait for the agent to finish; exits with 4 on failure
    #[arg(long)]
    pub(crate) wait: bool,
    /// Show what would be done, without doing it
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
        let example = "git proq send payments \"also handle refunds\"";
        return Err(UsageError::missing("the message is empty", example).into());
    }
    let example = "git proq send payments \"it looks like this\" --attachment sketch.png";
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
            context.ui.hint(hint!("follow it: git proq logs -f {}", sent.lane));
        }
    })
}

fn result_line(sent: &SendOutcome) -> String {
    let would_be = if sent.dry_run { "would be " } else { "" };
    if sent.queued {
        return format!("{would_be}kept for '{}' until its agent's turn has ended", sent.lane);
    }
    let window_note = if sent.leaves_window { ", without a window" } else { "" };
    format!("{would_be}sent to '{}'; {} continues{window_note}", sent.lane, sent.agent)
}
