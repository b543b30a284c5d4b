//! Record of a run that is about to start.

use proq_git::{CommitId, Repo};
use proq_store::base::clock::now;
use proq_store::base::run_number::RunNumber;
use proq_store::records::lane::AnyLane;
use proq_store::records::run::{RunRecord, RunSummary};

use super::launch_spec::LaunchSpec;
use crate::agent::Error;
use crate::agent::command::agent_command::AgentCommand;
use crate::agent::profiles::profile::StrayPolicy;

/// Returns the record of a run that is about to start.
pub(crate) fn new_run_record(
    repo: &Repo,
    lane: &AnyLane,
    command: &AgentCommand,
    launch_spec: &LaunchSpec,
    run_number: RunNumber,
    resolves_conflict: bool,
) -> Result<RunRecord, Error> {
    Ok(RunRecord {
        number: run_number,
        agent: command.agent.clone(),
        command: launch_spec.argv.iter().map(|w| w.to_string_lossy().chars().take(400).collect()).collect(),
        prompt_on_stdin: command.prompt_on_stdin(),
        accepts_more_prompts: command.accepts_more_prompts(),
        dialect: (!command.in_window).then(|| command.dialect().to_string()),
        permission: command.permission_level(),
        model: command.model.clone(),
        allow: command.allow_flags().to_vec(),
        chosen_session: launch_spec.session.clone(),
        resumes_session: command.resume.is_some(),
        interactive: command.in_window,
        window: None,
        keeps_strays: command.stray_policy() == StrayPolicy::None,
        max_turns: command.max_turns,
        has_prompt_override: false,
        conversation: command.conversation,
        prompt_message_ids: command.message_ids.clone(),
        delivery_count: 0,
        agent_command: command.user_agent_command(),
        resolves_conflict,
        tip_before: tip_before(repo, lane)?,
        started: now(),
        process_mark: None,
        supervisor: None,
        pid: None,
        start_time: None,
        ended: None,
        outcome: None,
        class: None,
        detail: None,
        exit_code: None,
        signal: None,
        tip_after: None,
        stopped_strays: 0,
        summary: RunSummary {
            session: launch_spec.session.clone(),
            model: command.model.clone(),
            ..RunSummary::default()
        },
        session_totals: None,
        limits: command.limits,
        budget_spent_before: command.budget_spent_before,
        batch: command.batch_task.clone(),
        step_run: None,
    })
}

/// Returns the tip of the lane before a run; for a read-only lane, the commit that it reads.
fn tip_before(repo: &Repo, lane: &AnyLane) -> Result<CommitId, Error> {
    Ok(match lane.branch() {
        Some(branch) => repo.require_commit(&format!("refs/heads/{branch}"))?,
        None => repo.head_commit(&lane.path)?.unwrap_or(lane.start),
    })
}
