//! Command line as the caller of use cases: questions and progress on the terminal.

use proq_base::terminal_text;
use proq_lib::event::approval::ShellCommand;
use proq_lib::health::examine::examine;
use proq_lib::merge::types::outcome::{LandingPlan, PlannedLane};
use proq_lib::ops::reporter::{Progress, Question, Reporter};
use proq_lib::types::ResolutionRecord;

use super::approval_prompt::{APPROVE_QUESTION, print_commands};
use super::confirm::{cannot_prompt_user, prompt_yes_by_default, prompt_yes_no};
use super::context::CommandContext;
use crate::cli::terminal::table::Column;
use crate::cli::terminal::{table, ui};

impl Reporter for CommandContext {
    fn progress(&self, progress: Progress<'_>) {
        let text = match progress {
            Progress::Landing(plan) => return print_lanes_to_try(self, plan),
            Progress::ResolutionOpen { resolution, in_shell } => {
                print_open_resolution(self, resolution);
                if !in_shell {
                    return;
                }
                "resolve it, then `exit` to finish; unfinished work is kept".to_owned()
            }
            Progress::ConfirmationNeeded(question) => {
                format!("{}\nwould ask whether to undo it", describe_undo(question))
            }
            Progress::PreviewLeft(left) => {
                format!("left the preview of '{}'; the main checkout is on {} again", left.lane, left.head)
            }
            Progress::StartingBatch => return warn_of_health_problems(self),
            Progress::DraftApproved { name } => {
                format!("the plan '{name}', which an agent made, is approved by --yes")
            }
            Progress::DraftRequested { name, agent, is_new: true } => {
                format!("{agent} makes a plan: draft '{name}'")
            }
            Progress::DraftRequested { name, agent, is_new: false } => {
                format!("{agent} changes draft '{name}'")
            }
            Progress::SearchingNeeds { agent, lane } => {
                format!("{agent} is searching for missing dependencies: lane '{lane}'")
            }
            Progress::NeedsKnown { agent, at } => {
                let agent = terminal_text::escape_line(agent);
                format!("reusing the answer of {agent} from {at}; --refresh requests a new one")
            }
            Progress::AnswerRejected { agent, expected, reason, has_answer } => {
                let reason = terminal_text::escape_line(reason);
                match has_answer {
                    true => format!("the answer of {agent} is not {expected}; asking again: {reason}"),
                    false => format!("{agent} could not continue; starting it again: {reason}"),
                }
            }
            // Commands that show the rest have a reporter of their own.
            _ => return,
        };
        self.ui.status(text);
    }

    fn can_prompt_user(&self) -> bool {
        !cannot_prompt_user(self)
    }

    fn confirm(&self, question: Question<'_>) -> bool {
        match question {
            Question::EndSession { lane, detail } => prompt_yes_no(&format!(
                "lane '{lane}' is done, and {detail}: end its session and merge it? [y/N] "
            )),
            Question::RunPlan => prompt_yes_by_default("run it? [Y/n] "),
            Question::ResumeBatch { batch, state } => prompt_yes_by_default(&format!(
                "batch {batch} of this plan has not ended ({state}): resume it? [Y/n] "
            )),
            Question::ApproveDraft { name } => prompt_yes_no(&format!("let draft '{name}' be run? [y/N] ")),
            Question::UseProposedNeeds { agent, needs } => {
                prompt_yes_no(&format!("use {needs} of {agent}'s from now on? [y/N] "))
            }
            Question::UndoOfOtherTerminal { .. } => {
                prompt_yes_no(&format!("{}\nundo it? [y/N] ", describe_undo(question)))
            }
        }
    }

    fn approve(&self, commands: &[ShellCommand]) -> bool {
        print_commands(self, commands);
        prompt_yes_no(APPROVE_QUESTION)
    }
}

/// Warns of the problems that `git proq doctor` finds: a plan runs for hours, and what is wrong now is still
/// wrong then.
fn warn_of_health_problems(context: &CommandContext) {
    for finding in examine(&context.dir, false).findings.iter().filter(|finding| finding.is_problem()) {
        context.ui.warn(&finding.message);
        finding.hint().iter().for_each(|hint| context.ui.hint(hint));
    }
}

/// Describes the operation that a question is about.
fn describe_undo(question: Question<'_>) -> String {
    let Question::UndoOfOtherTerminal { number, command } = question else { return String::new() };
    format!("operation {number} was started in another terminal or by another program: {command}")
}

/// Columns of the table of lanes that a landing will try.
const COLUMNS: [Column; 5] = [
    Column::name("LANE"),
    Column::text("ONTO", 8).hidden_at(3),
    Column::number("COMMITS").hidden_at(2),
    Column::number("FILES").hidden_at(1),
    Column::text("PLAN", 10),
];

/// Prints the lanes that a landing will try, so that a user at a terminal can read them before a ref moves.
fn print_lanes_to_try(context: &CommandContext, plan: &LandingPlan) {
    if context.ui.json || context.ui.quiet || plan.lanes.len() < 2 || !ui::stderr_is_terminal() {
        return;
    }
    let row = |plan_line: &PlannedLane| {
        let (commits, files) =
            plan_line.size.map_or_else(Default::default, |(c, f)| (c.to_string(), f.to_string()));
        let plan_cell = plan_line
            .reason
            .as_ref()
            .map_or_else(|| plan.strategy.to_string(), |reason| format!("not: {reason}"));
        vec![plan_line.lane.to_string(), plan_line.onto.clone(), commits, files, plan_cell]
    };
    context.ui.status(table::render(&COLUMNS, plan.lanes.iter().map(row).collect()));
    context.ui.status("");
}

/// Prints the conflict that is open in a worktree, and git's messages about it.
fn print_open_resolution(context: &CommandContext, resolution: &ResolutionRecord) {
    let files = ui::pluralize(resolution.conflicted_paths().len(), "file");
    let (onto, dir) = (&resolution.onto, resolution.worktree_path.display());
    context.ui.status(format!("opened the conflict with {onto} ({files}) in {dir}:"));
    for message in &resolution.git_messages {
        context.ui.status(format!("  {message}"));
    }
}
