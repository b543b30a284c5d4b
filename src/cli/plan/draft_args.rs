//! Flags of `git proq plan` about drafts, and the action of each flag.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use clap_complete::engine::ArgValueCompleter;

use super::super::candidates::agent_names;
use super::super::confirm::{cannot_prompt_user, confirm};
use super::super::{CommandContext, CommandResult, Failure, UsageError, caller};
use super::plan_file::{self, OutputFile};
use super::{PlanArgs, draft_conversation, draft_list};
use crate::explain::Exit;
use crate::lane::Project;
use crate::swarm::drafts::{self, Draft};
use crate::swarm::{self, DraftError, planner};

/// What is asked of an agent, or done with what it made.
#[derive(Debug, Args)]
#[command(next_help_heading = "Plans by agents")]
pub(crate) struct DraftArgs {
    /// Have an agent make a plan for GOAL
    #[arg(
        long,
        value_name = "GOAL",
        conflicts_with_all = ["sources", "format", "milestone", "init", "schema", "toml"]
    )]
    pub(super) ai: Option<String>,
    /// With --ai, a file that the plan is to follow: a roadmap, notes, an issue
    #[arg(long, value_name = "FILE", requires = "ai", value_hint = ValueHint::FilePath)]
    pub(super) from: Option<PathBuf>,
    /// With --ai, the agent; without it, the first that is installed and can be kept from changing things
    #[arg(long, value_name = "AGENT", requires = "ai", add = ArgValueCompleter::new(agent_names))]
    pub(super) agent: Option<String>,
    /// With --ai, the model that it is asked to use
    #[arg(long, value_name = "MODEL", requires = "ai")]
    pub(super) model: Option<String>,
    /// With --ai, say what would be started and what it would be told, and start nothing
    #[arg(long, requires = "ai")]
    pub(super) dry_run: bool,
    /// Have the agent change DRAFT as TEXT says
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true,
          conflicts_with_all = ["ai", "format", "milestone", "init", "schema", "toml"])]
    pub(super) feedback: Option<String>,
    /// Write the plan to FILE, in TOML
    #[arg(long, short = 'o', value_name = "FILE", conflicts_with_all = ["init", "schema", "toml"],
          value_hint = ValueHint::FilePath)]
    pub(super) save: Option<PathBuf>,
    /// With -o, replace FILE if it is there; what was in it is kept
    #[arg(long, requires = "save")]
    pub(super) force: bool,
    /// Let DRAFT be run, once you have read it
    #[arg(long, conflicts_with_all = ["ai", "feedback", "save", "format", "milestone", "init", "schema", "toml"])]
    pub(super) approve: bool,
    /// With --approve, without a question
    #[arg(long, short, requires = "approve")]
    pub(super) yes: bool,
    /// List the drafts, the one changed last first
    #[arg(long, conflicts_with_all = ["ai", "feedback", "save", "approve", "sources", "init", "schema", "toml"])]
    pub(super) drafts: bool,
}

impl DraftArgs {
    /// Returns whether the flags request more than showing a plan.
    pub(super) fn is_requested(&self) -> bool {
        self.ai.is_some() || self.feedback.is_some() || self.save.is_some() || self.approve || self.drafts
    }
}

pub(super) fn run(session: &CommandContext, args: &PlanArgs) -> CommandResult {
    let draft_args = &args.draft_args;
    if draft_args.drafts {
        return draft_list::run(session);
    }
    // An unusable output file is refused before an agent spends anything.
    let target =
        draft_args.save.as_ref().map(|file| OutputFile::new(session, file, draft_args.force)).transpose()?;
    if let Some(goal) = &draft_args.ai {
        return draft_conversation::create_draft(session, args, goal, target.as_ref());
    }
    if let Some(text) = &draft_args.feedback {
        return draft_conversation::change_draft(session, args, text, target.as_ref());
    }
    let project = session.project_for_write()?;
    match target {
        Some(target) => save_plan(session, &project, args, &target),
        None => approve_draft(session, &project, args),
    }
}

/// Returns the name of the requested draft; without a name, the name of the only draft.
///
/// # Errors
/// Fails if the draft is unknown, or if no name was given and the number of drafts is not one.
pub(super) fn resolve_draft_name(project: &Project, args: &PlanArgs) -> Result<String, Failure> {
    match args.source.source_names() {
        [name] => Ok(drafts::read_draft(project, name)?.record.name),
        [] => {
            let mut names: Vec<String> =
                drafts::list_drafts(project)?.into_iter().map(|record| record.name).collect();
            match names.len() {
                0 => Err(DraftError::NoDrafts.into()),
                1 => Ok(names.swap_remove(0)),
                _ => Err(DraftError::AmbiguousDraft { names }.into()),
            }
        }
        _ => Err(UsageError::Missing {
            problem: "one draft at a time",
            example: "git proq plan --approve DRAFT",
        }
        .into()),
    }
}

/// Writes a draft, or a plan in any other format, as a plan in TOML.
fn save_plan(
    session: &CommandContext,
    project: &Project,
    args: &PlanArgs,
    target: &OutputFile,
) -> CommandResult {
    let is_draft =
        args.source.source_names().is_empty() || args.source.draft_name(session, project).is_some();
    let path = if is_draft {
        let draft = planner::refresh_draft(project, &resolve_draft_name(project, args)?)?.0;
        save_draft(session, project, args, &draft, target)?
    } else {
        let found = args.source.read_plan(session, project, "git proq plan -o plan.toml DRAFT")?;
        let header = [format!("From {}.", args.source.source_names().join(" "))];
        let text = plan_file::with_comments(&swarm::plan_to_toml(&found.plan), &header, &target_text(args));
        target.write(session, project, &text)?
    };
    if session.ui.json {
        session.ui.print_json(serde_json::json!({ "saved": crate::store::path_form::to_text(&path) }));
    } else {
        session.ui.print_line(format!("wrote {}", target_text(args)));
        session.ui.hint(format!("see what it comes to: git proq plan {}", target_text(args)));
    }
    Ok(Exit::Success)
}

/// Returns the output file as it was given, for printing.
pub(super) fn target_text(args: &PlanArgs) -> String {
    let name = args.draft_args.save.as_ref().map(|file| file.display().to_string());
    crate::terminal_text::escape_line(&name.unwrap_or_default())
}

/// Writes a draft's plan to the output file.
pub(super) fn save_draft(
    session: &CommandContext,
    project: &Project,
    args: &PlanArgs,
    draft: &Draft,
    target: &OutputFile,
) -> Result<PathBuf, Failure> {
    let record = &draft.record;
    let no_plan = || DraftError::NoPlan { name: record.name.clone(), why: record.rejection.clone() };
    let plan = draft.plan.as_ref().ok_or_else(no_plan)?;
    let mut header = vec![
        format!("A plan by {}, made with git proq plan --ai (draft {}).", record.agent, record.name),
        format!("Goal: {}", record.goal.trim()),
    ];
    header.extend(record.source_file.as_ref().map(|from| format!("From: {from}")));
    target.write(session, project, &plan_file::with_comments(&plan.text, &header, &target_text(args)))
}

/// Shows a draft and approves it for running, after a confirmation prompt or with `--yes`.
fn approve_draft(session: &CommandContext, project: &Project, args: &PlanArgs) -> CommandResult {
    caller::refuse_in_lane(session, project)?;
    let name = resolve_draft_name(project, args)?;
    let (draft, is_busy) = planner::refresh_draft(project, &name)?;
    if is_busy {
        return Err(DraftError::AgentRunning { name }.into());
    }
    if draft.plan.is_none() {
        return Err(DraftError::NoPlan { name, why: draft.record.rejection }.into());
    }
    if !session.ui.json {
        draft_conversation::show_draft(session, project, args, &draft, &[])?;
    }
    if !drafts::is_approved(project, &draft) && !args.draft_args.yes {
        confirm_approval(session, &name)?;
    }
    let record = drafts::approve(project, &draft)?;
    let draft = Draft { record, plan: draft.plan };
    if session.ui.json {
        draft_conversation::show_draft(session, project, args, &draft, &[])?;
    } else {
        session.ui.print_line(format!("\napproved draft '{name}'"));
    }
    Ok(Exit::Success)
}

fn confirm_approval(session: &CommandContext, name: &str) -> Result<(), Failure> {
    if cannot_prompt_user(session) {
        let question = format!("draft '{name}' may be run");
        return Err(DraftError::ApprovalRequired {
            question,
            approve_command: format!("git proq plan --approve --yes {name}"),
        }
        .into());
    }
    confirm(&format!("let draft '{name}' be run? [y/N] "))
}
