//! Agent command, prompt and limits of each run of a task folder.

use std::ffi::OsString;
use std::time::Duration;

use proq_base::money::NanoDollars;
use proq_git::Repo;
use proq_store::Store;
use proq_store::records::lane::AnyLane;
use proq_store::records::run::RunLimits;
use proq_store::records::step_run::{StepPhase, StepRun};
use proq_store::records::task_loop::TaskLoopRecord;

use crate::agent::Error;
use crate::agent::command::agent_command::{AgentCommand, RunOptions};
use crate::agent::profiles::profile::permission::Permission;
use crate::agent::task_loop::active_task::ActiveTask;
use crate::agent::task_loop::step_prompt::StepPrompt;
use crate::agent::task_loop::task_folder::PROMPT_FILE;
use crate::lane::Project;
use crate::run::lane_costs;

impl ActiveTask<'_> {
    /// Builds the command and the prompt of one run, and saves the number of its conversation in the record
    /// of the task loop.
    pub(crate) fn build_step_command(
        &mut self,
        project: &Project,
        lane: &AnyLane,
        phase: StepPhase,
        step_number: u32,
    ) -> Result<(AgentCommand, String), Error> {
        let limits = self.remaining_limits(&project.store, lane)?;
        let status = self.status()?;
        let step = status.step(step_number).cloned().unwrap_or_default();
        let prompt = self.folder().read_text(PROMPT_FILE)?.unwrap_or_default();
        let record = self.record();
        let requested_changes = self.requested_changes(phase, step_number);
        let step_prompt = StepPrompt {
            title: &record.title,
            folder: self.folder(),
            task_prompt: &prompt,
            extra_prompt: &record.extra_prompt,
            phase,
            step: &step,
            requested_changes: requested_changes.as_deref(),
            commit_range: self.step_commit_range(&project.repo, lane, step_number)?,
            is_status_ignored_by_git: record.exclude_status,
        };
        let prompt_text = step_prompt.render();
        let (agent, options) = match phase.is_review() {
            true => reviewer_options(
                record.reviewer.as_deref(),
                &record.agent,
                &record.agent_command,
                record.model.clone(),
            ),
            false => (record.agent.clone(), worker_options(record)),
        };
        let command = AgentCommand::from_profile(
            project,
            &agent,
            &prompt_text,
            project.repo.command_dir(),
            &RunOptions { limits, ..options },
        )?;
        let iteration = record.iterations + u32::from(!phase.is_review());
        let step_run = StepRun {
            phase,
            step: step_number,
            iteration,
            was_clean: false,
            fingerprint_before_review: None,
        };
        let batch = record.batch.clone();
        let conversation = *self.record_mut().conversation.get_or_insert(lane.last_run.next());
        self.save()?;
        Ok((
            command.with_conversation(conversation).with_batch_task(batch).with_step_run(Some(step_run)),
            prompt_text,
        ))
    }

    /// Returns the range of a step's commits: the tip before the step, or else before the task, and the
    /// current tip. `None` for a lane without a branch tip.
    fn step_commit_range(
        &self,
        repo: &Repo,
        lane: &AnyLane,
        step_number: u32,
    ) -> Result<Option<(proq_git::CommitId, proq_git::CommitId)>, Error> {
        let Some(tip) = lane.branch().map(|branch| repo.branch_tip(branch)).transpose()?.flatten() else {
            return Ok(None);
        };
        let from =
            self.record().step(step_number).and_then(|step| step.start_tip).unwrap_or(self.record().start);
        Ok(Some((from, tip)))
    }

    /// Returns what the earlier runs left of the task loop's limits on time and budget. Fails when nothing is
    /// left.
    fn remaining_limits(&self, store: &Store, lane: &AnyLane) -> Result<RunLimits, Error> {
        let record = self.record();
        let spent = lane_costs::total_costs(store, lane)?;
        let cost = spent.cost.map(|cost| cost.amount).unwrap_or_default();
        let duration = spent.duration.saturating_sub(record.duration_before_loop);
        let time = record.limits.max_duration.map(|limit| limit.saturating_sub(duration));
        let cost = cost.saturating_sub(record.cost_before_loop);
        let budget = record.limits.budget.map(|limit| limit.saturating_sub(cost));
        let loop_finished =
            |reason: &str| Err(Error::TaskLoopStopped { lane: lane.name.clone(), reason: reason.to_owned() });
        match (time, budget) {
            (Some(Duration::ZERO), _) => loop_finished("it has used up its time limit"),
            (_, Some(NanoDollars::ZERO)) => loop_finished("it has used up its budget"),
            _ => Ok(RunLimits {
                max_duration: time.or(Some(Duration::ZERO)),
                budget: budget.or(Some(NanoDollars::ZERO)),
                max_stall: record.limits.max_stall.or(Some(Duration::ZERO)),
            }),
        }
    }
}

/// Returns the agent that reviews, and the options of a read-only run of it.
pub(crate) fn reviewer_options(
    reviewer: Option<&str>,
    worker: &str,
    worker_command: &[String],
    model: Option<String>,
) -> (String, RunOptions) {
    let is_worker = reviewer.is_none_or(|reviewer| reviewer == worker);
    let agent_command = if is_worker { worker_command } else { &[] };
    let options = RunOptions {
        permission: Some(Permission::Read),
        model: model.filter(|_| is_worker),
        agent_command: agent_command.iter().map(OsString::from).collect(),
        ..RunOptions::default()
    };
    (reviewer.unwrap_or(worker).to_owned(), options)
}

fn worker_options(record: &TaskLoopRecord) -> RunOptions {
    RunOptions {
        permission: record.permission.as_deref().and_then(Permission::from_name),
        model: record.model.clone(),
        max_turns: record.max_turns,
        allow: record.allow.clone(),
        agent_command: record.agent_command.iter().map(OsString::from).collect(),
        ..RunOptions::default()
    }
}
