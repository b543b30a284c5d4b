//! The actions of `git proq plan` on drafts: save, approve, and what an agent is prompted for.

use proq_base::explain::Exit;
use proq_lib::lane::Project;
use proq_lib::swarm::planner::draft_error::DraftError;
use proq_lib::swarm::planner::drafts::Draft;
use proq_lib::swarm::planner::{draft_session, drafts};
use proq_plan::toml_plan::write;

use super::plan_file::{OutputFile, write_draft_plan};
use super::{draft_conversation, draft_list, plan_file};
use crate::cli::invocation::caller;
use crate::cli::invocation::confirm::{cannot_prompt_user, require_confirmation};
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure::Failure;
use crate::cli::plans::plan_args::PlanArgs;

pub(crate) fn run(context: &CommandContext, args: &PlanArgs) -> CommandResult {
    let draft_args = &args.draft_args;
    if draft_args.drafts {
        return draft_list::run(context);
    }
    // An unusable output file is refused before an agent spends anything.
    let target =
        draft_args.save.as_ref().map(|file| OutputFile::new(context, file, draft_args.force)).transpose()?;
    if let Some(goal) = &draft_args.ai {
        return draft_conversation::create_draft(context, args, goal, target.as_ref());
    }
    if let Some(text) = &draft_args.feedback {
        return draft_conversation::change_draft(context, args, text, target.as_ref());
    }
    let project = context.project_for_write()?;
    match target {
        Some(target) => save_plan(context, &project, args, &target),
        None => approve_draft(context, &project, args),
    }
}

/// Writes a draft, or a plan in any other format, as a plan in TOML.
fn save_plan(
    context: &CommandContext,
    project: &Project,
    args: &PlanArgs,
    target: &OutputFile,
) -> CommandResult {
    let is_draft =
        args.source.source_names().is_empty() || args.source.draft_name(context, &project.store).is_some();
    let path = if is_draft {
        let draft = draft_session::refresh_draft(project, &args.resolve_draft_name(project)?)?.0;
        write_draft_plan(context, &project.store, args, &draft, target)?
    } else {
        let found = args.source.read_plan(context, project, "git proq plan -o plan.toml DRAFT")?;
        let header = [format!("From {}.", args.source.source_names().join(" "))];
        let text = plan_file::with_header_comments(
            &write::plan_to_toml(&found.plan),
            &header,
            &args.draft_args.output_file_text(),
        );
        target.write(context, &project.store, &text)?
    };
    if context.ui.json {
        context.ui.print_json(serde_json::json!({ "saved": proq_store::paths::path_form::to_text(&path) }));
    } else {
        context.ui.print_line(format!("wrote {}", args.draft_args.output_file_text()));
        context
            .ui
            .hint(format!("see what it comes to: git proq plan {}", args.draft_args.output_file_text()));
    }
    Ok(Exit::Success)
}

/// Shows a draft and approves it for running, after a confirmation prompt or with `--yes`.
fn approve_draft(context: &CommandContext, project: &Project, args: &PlanArgs) -> CommandResult {
    caller::refuse_in_lane(context, project)?;
    let name = args.resolve_draft_name(project)?;
    let (draft, is_busy) = draft_session::refresh_draft(project, &name)?;
    if is_busy {
        return Err(DraftError::AgentRunning { name }.into());
    }
    if draft.plan.is_none() {
        return Err(DraftError::NoPlan { name, why: draft.record.invalid_answer_reason }.into());
    }
    if !context.ui.json {
        draft_conversation::show_draft(context, project, args, &draft, &[])?;
    }
    if !drafts::is_approved(&project.repo, &draft) && !args.draft_args.yes {
        confirm_approval(context, &name)?;
    }
    let record = drafts::approve(project, &draft)?;
    let draft = Draft { record, plan: draft.plan };
    if context.ui.json {
        draft_conversation::show_draft(context, project, args, &draft, &[])?;
    } else {
        context.ui.print_line(format!("\napproved draft '{name}'"));
    }
    Ok(Exit::Success)
}

fn confirm_approval(context: &CommandContext, name: &str) -> Result<(), Failure> {
    if cannot_prompt_user(context) {
        let question = format!("draft '{name}' may be run");
        return Err(DraftError::ApprovalRequired {
            question,
            approve_command: format!("git proq plan --approve --yes {name}"),
        }
        .into());
    }
    require_confirmation(&format!("let draft '{name}' be run? [y/N] "))
}
