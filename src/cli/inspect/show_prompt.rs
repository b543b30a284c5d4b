//! `git proq show --prompt`: prints the prompt that the last run of a lane was given.

use std::io::IsTerminal;
use std::path::Path;

use proq_base::explain::Exit;
use proq_base::lane_name::LaneName;
use proq_lib::lane::messages::delivered_messages::read_delivered;
use proq_store::base::run_number::RunNumber;
use proq_store::paths::layout::Layout;
use proq_store::records::lane::AnyLane;
use serde::Serialize;

use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure::Failure;
use crate::cli::invocation::usage_error::UsageError;

#[derive(Serialize)]
struct PromptOutput<'a> {
    lane: &'a LaneName,
    run: RunNumber,
    /// Rules that the agent was given separately from the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    rules: Option<String>,
    prompt: String,
    /// Messages delivered while the run was active, each in full.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "told")]
    delivered_messages: Vec<String>,
}

/// Prints the prompt of the lane's last run from `dir`, the lane's record folder.
pub(crate) fn print_prompt(context: &CommandContext, lane: &AnyLane, dir: &Path) -> CommandResult {
    let run = lane.last_run;
    let no_run = || UsageError::NoSuchRun { lane: lane.name.clone(), run };
    let prompt = read_if_exists(&Layout::run_prompt_in(dir, run))?.ok_or_else(no_run)?;
    let rules = read_if_exists(&Layout::run_rules_in(dir, run))?;
    let delivered = read_delivered(dir, run)?;
    if context.ui.json {
        context.ui.print_json(PromptOutput {
            lane: &lane.name,
            run,
            rules,
            prompt,
            delivered_messages: delivered,
        });
        return Ok(Exit::Success);
    }
    if let Some(rules) = rules {
        context.ui.status("apart from the prompt:");
        context.ui.print_text(&rules);
        context.ui.print_line("");
        context.ui.status("the prompt:");
    }
    for (n, text) in std::iter::once(&prompt).chain(&delivered).enumerate() {
        if n > 0 {
            context.ui.print_line("");
            context.ui.status("then, while it was at work:");
        }
        context.ui.print_text(text);
        if !std::io::stdout().is_terminal() && !text.ends_with('\n') {
            context.ui.print_line("");
        }
    }
    Ok(Exit::Success)
}

fn read_if_exists(path: &Path) -> Result<Option<String>, Failure> {
    match proq_base::regular_file::read_store_file(path) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(UsageError::Unreadable { path: path.to_owned(), source }.into()),
    }
}
