//! Task folder that is in progress in its lane: recording each finished run once, and the choice of the next
//! run.

use proq_base::fail_points;
use proq_base::run_class::RunClass;
use proq_plan::task_status;
use proq_plan::task_status::TaskProgress;
use proq_store::base::atomic::{remove_temp_files_of, write as write_atomically};
use proq_store::base::record::Record;
use proq_store::base::run_number::RunNumber;
use proq_store::records::lane::{AnyLane, LaneRecord};
use proq_store::records::run::RunRecord;
use proq_store::records::step_run::{StepPhase, StepRun};
use proq_store::records::task_loop::{ReviewState, ReviewVerdict, TaskLoopRecord};

use super::loop_planner::{LoopLimits, NextAction, RunResult};
use super::review::RevertOutcome;
use super::review_verdict::parse_verdict;
use super::task_folder::{CommitExclusions, LaneTaskFolder, PROMPT_FILE, STATUS_FILE};
use super::{loop_planner, review};
use crate::agent::Error;
use crate::lane;
use crate::lane::Project;
use crate::lane::context::head_ownership;

/// Task folder in progress, in its lane.
pub(crate) struct ActiveTask<'a> {
    project: &'a Project,
    lane: LaneRecord,
    folder: LaneTaskFolder,
    record: TaskLoopRecord,
}

/// Result of a finished run, as the task loop needs it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FinishedRun<'a> {
    /// Exit class of the run.
    pub class: RunClass,
    /// Reason for the exit class, in one line.
    pub detail: Option<&'a str>,
    /// Final message of the agent.
    pub answer: Option<&'a str>,
    /// Whether a review without a verdict counts as a failure of the reviewer. Otherwise the review is
    /// repeated.
    pub(crate) missing_verdict_is_failure: bool,
}

impl<'a> ActiveTask<'a> {
    /// Returns the task folder in progress in a lane, if the lane has one.
    ///
    /// # Errors
    /// Fails when the record of the task loop cannot be read.
    pub fn find(project: &'a Project, lane: &AnyLane) -> Result<Option<ActiveTask<'a>>, Error> {
        let Some(record) =
            TaskLoopRecord::load_if_exists(&project.store.layout().task_loop_record(&lane.name))?
        else {
            return Ok(None);
        };
        let Ok(lane) = lane.clone().into_owned_lane() else { return Ok(None) };
        let folder = LaneTaskFolder::new(&lane.path, &record.folder);
        Ok(Some(ActiveTask { project, lane, folder, record }))
    }

    /// Returns the task folder of a lane whose record is given.
    pub(crate) fn with_record(
        project: &'a Project,
        lane: &AnyLane,
        record: TaskLoopRecord,
    ) -> Result<ActiveTask<'a>, Error> {
        let lane = project.lane(&lane.name)?;
        let folder = LaneTaskFolder::new(&lane.path, &record.folder);
        Ok(ActiveTask { project, lane, folder, record })
    }

    /// Returns the record of the task loop.
    pub fn record(&self) -> &TaskLoopRecord {
        &self.record
    }

    pub(crate) fn record_mut(&mut self) -> &mut TaskLoopRecord {
        &mut self.record
    }

    pub fn folder(&self) -> &LaneTaskFolder {
        &self.folder
    }

    pub fn save(&self) -> Result<(), Error> {
        Ok(self.record.save(&self.project.store.layout().task_loop_record(&self.lane.name))?)
    }

    /// Returns the progress that STATUS.md contains.
    pub fn status(&self) -> Result<TaskProgress, Error> {
        Ok(TaskProgress::parse(&self.folder.read_text(STATUS_FILE)?.unwrap_or_default()))
    }

    /// Prepares the folder for a run: STATUS.md exists and has boxes, and files that must not be committed
    /// are excluded.
    pub(crate) fn prepare_folder(&self) -> Result<(), Error> {
        let status_path = self.lane.path.join(self.folder.path_in_worktree(STATUS_FILE));
        // Temporary files of a killed process.
        remove_temp_files_of(&status_path).map_err(lane::Error::io("inspect the folder of", &status_path))?;
        self.folder.exclude_from_commits(&self.project.repo, self.exclusions())?;
        let current_text = self.folder.read_text(STATUS_FILE)?;
        if current_text.as_deref().is_some_and(|text| TaskProgress::parse(text).boxes_total() > 0) {
            return Ok(());
        }
        let prompt_missing = || Error::InvalidTaskFolder {
            path: self.folder.path_in_worktree(PROMPT_FILE),
            reason: "is not in the lane".to_owned(),
        };
        let prompt = self.folder.read_text(PROMPT_FILE)?.ok_or_else(prompt_missing)?;
        let new_status = task_status::build_status_text(&self.record.title, &prompt);
        let text = match current_text.filter(|text| !text.trim().is_empty()) {
            Some(notes) => format!("{}\n\n{new_status}", notes.trim_end()),
            None => new_status,
        };
        self.folder.write_status(&text)
    }

    fn exclusions(&self) -> CommitExclusions {
        CommitExclusions {
            exclude_folder: self.record.exclude_folder,
            exclude_status: self.record.exclude_status,
        }
    }

    /// Returns the text that STATUS.md had before a run; empty when it was not saved.
    fn status_text_before(&self, run_number: RunNumber) -> String {
        let path = self.project.store.layout().status_md_before_run(&self.lane.name, run_number);
        proq_base::regular_file::read_store_text(path).unwrap_or_default()
    }

    /// Restores STATUS.md to its text before a run. Text that differs is first saved in the run's folder.
    pub(crate) fn restore_status(&self, run_number: RunNumber) -> Result<(), Error> {
        let (before, current) = (self.status_text_before(run_number), self.folder.read_text(STATUS_FILE)?);
        if current.as_ref() == Some(&before) {
            return Ok(());
        }
        if let Some(current) = current {
            let saved_path = self.project.store.layout().status_md_after_run(&self.lane.name, run_number);
            write_atomically(&saved_path, current.as_bytes())?;
        }
        self.folder.write_status(&before)
    }

    /// Records a finished run in the task loop, unless that was done already. Returns the reason why the task
    /// cannot continue, or `None`.
    ///
    /// # Errors
    /// Fails when a file cannot be read or written.
    pub(crate) fn record_run(
        &mut self,
        run: &RunRecord,
        finished: FinishedRun<'_>,
    ) -> Result<Option<String>, Error> {
        let Some(step_run) = run.step_run.clone().filter(|_| run.number > self.record.last_counted_run)
        else {
            return Ok(None);
        };
        if step_run.phase.is_review() {
            return self.record_review(run, &step_run, finished);
        }
        if TaskProgress::parse(&self.folder.read_text(STATUS_FILE)?.unwrap_or_default()).boxes_total() == 0 {
            // The agent deleted the boxes, and with them its notes of this run.
            self.restore_status(run.number)?;
        }
        self.folder.exclude_from_commits(&self.project.repo, self.exclusions())?;
        let message = format!("{}\n\nTake the task's own files out of the branch again.\n", self.lane.title);
        // HEAD may be on a branch that is not the lane's. A commit must not go there.
        if head_ownership::head_commit_refusal(self.project, &self.lane)?.is_none() {
            self.folder.remove_from_branch(&self.project.repo, self.exclusions(), &message)?;
        }
        if finished.class == RunClass::Done && step_run.phase == StepPhase::Work {
            self.tick_title_box(run)?;
        }
        if completes_iteration(finished.class) {
            let status_changed = self.folder.read_text(STATUS_FILE)?.unwrap_or_default()
                != self.status_text_before(run.number);
            self.apply_run_result(run, &step_run, status_changed, Err(String::new()))?;
        }
        Ok(None)
    }

    /// Ticks the only box of a task without steps or list items, after a successful run with new commits.
    /// git-proq created that box, so the agent may not know of it.
    fn tick_title_box(&self, run: &RunRecord) -> Result<(), Error> {
        let has_exclusions = self.record.exclude_folder || self.record.exclude_status;
        let tip = self.project.repo.branch_tip(&self.lane.kind.branch)?;
        let prompt = self.folder.read_text(PROMPT_FILE)?.unwrap_or_default();
        if !has_exclusions
            || tip.is_none_or(|tip| tip == run.tip_before)
            || !task_status::has_only_title_box(&prompt)
        {
            return Ok(());
        }
        let text = self.folder.read_text(STATUS_FILE)?.unwrap_or_default();
        let boxes = TaskProgress::parse(&text);
        if (boxes.boxes_ticked(), boxes.boxes_total()) != (0, 1) {
            return Ok(());
        }
        self.folder.write_status(&task_status::tick_first_box(&text))
    }

    /// Records a finished review after reverting what changed in the lane during it. Returns the reason why
    /// the task cannot continue, or `None`.
    fn record_review(
        &mut self,
        run: &RunRecord,
        step_run: &StepRun,
        finished: FinishedRun<'_>,
    ) -> Result<Option<String>, Error> {
        let subject = step_run.phase.subject();
        let reverted = match review::revert_review_changes(self.project, &self.lane, run, step_run)? {
            RevertOutcome::Failed(reason) => {
                self.apply_run_result(run, step_run, false, Err(reason.clone()))?;
                return Ok(Some(reason));
            }
            RevertOutcome::Reverted(saved_location) => Some(saved_location),
            RevertOutcome::Unchanged
                if self.folder.read_text(STATUS_FILE)?.as_ref()
                    != Some(&self.status_text_before(run.number)) =>
            {
                Some(format!("its {STATUS_FILE} is unchanged"))
            }
            RevertOutcome::Unchanged => None,
        };
        self.restore_status(run.number)?;
        let verdict = match (reverted, finished.answer.and_then(parse_verdict)) {
            (Some(saved_location), _) => {
                let reviewer = &run.agent;
                let text = format!(
                    "lane '{}': while {reviewer} reviewed the {subject} of step {}, the lane was changed, which was undone: {saved_location}",
                    self.lane.name, step_run.step
                );
                self.project.emit(crate::event::log::EventName::LaneEscape, Some(&self.lane), text);
                Err(format!(
                    "the lane was changed while {reviewer} reviewed it, which was undone ({saved_location})"
                ))
            }
            (None, Some(verdict)) if finished.class == RunClass::Done => Ok(verdict),
            (None, _) if finished.class == RunClass::Done => {
                Err(format!("{} answered neither APPROVE nor REVISE", run.agent))
            }
            (None, _) => {
                let reason = finished.detail.map_or_else(
                    || finished.class.to_string(),
                    |detail| format!("{}, {detail}", finished.class),
                );
                Err(format!("{} ended without a judgement ({reason})", run.agent))
            }
        };
        if verdict.is_err() && !finished.missing_verdict_is_failure {
            return Ok(None);
        }
        if verdict.is_ok() {
            self.save_review(run, step_run, finished.answer.unwrap_or_default())?;
        }
        self.apply_run_result(run, step_run, false, verdict)?;
        Ok(None)
    }

    /// Saves a reviewer's answer in the run's folder, and in the task folder for the agents that work on the
    /// step later.
    fn save_review(&self, run: &RunRecord, step_run: &StepRun, answer: &str) -> Result<(), Error> {
        let path = self.project.store.layout().run_review(&self.lane.name, run.number);
        let text = format!("{}\n", answer.trim());
        write_atomically(&path, text.as_bytes())?;
        let step = self.record.step(step_run.step).cloned().unwrap_or_default();
        let count = if step_run.phase == StepPhase::PlanReview {
            step.plan_review_count
        } else {
            step.code_review_count
        };
        self.folder.write_review(
            &format!("step-{}-{}-{}.md", step_run.step, step_run.phase.subject(), count + 1),
            &text,
        )
    }

    /// Updates and saves the record of the task loop with the result of a run.
    fn apply_run_result(
        &mut self,
        run: &RunRecord,
        step_run: &StepRun,
        status_changed: bool,
        verdict: Result<ReviewVerdict, String>,
    ) -> Result<(), Error> {
        fail_points::hit("step.ended");
        let tip = self.project.repo.branch_tip(&self.lane.kind.branch)?.unwrap_or(run.tip_before);
        let result = RunResult {
            run: run.number,
            step_run,
            tip_before: run.tip_before,
            tip_after: tip,
            status_changed,
            verdict,
        };
        let status = self.status()?;
        loop_planner::apply_run(&mut self.record, &result, &status);
        self.save()?;
        fail_points::hit("step.taken");
        Ok(())
    }

    /// Decides the next action of the task loop.
    pub(crate) fn next_action(&self) -> Result<NextAction, Error> {
        let settings = &self.project.settings;
        let limits = LoopLimits {
            max_iterations: settings.swarm.max_iterations,
            max_idle_iterations: settings.swarm.max_idle,
        };
        Ok(loop_planner::next_action(&self.record, &self.status()?, limits))
    }

    /// Describes the progress of the task.
    pub(crate) fn describe_progress(&self) -> Result<String, Error> {
        let status = self.status()?;
        let iterations = match self.record.iterations {
            1 => "1 iteration".to_owned(),
            n => format!("{n} iterations"),
        };
        let boxes = format!("{} of {} boxes in {iterations}", status.boxes_ticked(), status.boxes_total());
        Ok(std::iter::once(boxes)
            .chain(loop_planner::unapproved_notes(&self.record))
            .collect::<Vec<_>>()
            .join("; "))
    }

    /// Returns the last review of step `number` if it requested changes that a run of `phase` makes. `None`
    /// otherwise.
    pub(crate) fn requested_changes(&self, phase: StepPhase, number: u32) -> Option<String> {
        let step = self.record.step(number)?;
        let (state, review_phase) = match phase {
            StepPhase::Plan => (step.plan_review, StepPhase::PlanReview),
            StepPhase::Work if step.code_review == ReviewState::Revise => {
                (step.code_review, StepPhase::CodeReview)
            }
            // The work continues with a plan that was not approved.
            StepPhase::Work if step.plan_review == ReviewState::Overridden && step.start_tip.is_none() => {
                (ReviewState::Revise, StepPhase::PlanReview)
            }
            StepPhase::Work | StepPhase::PlanReview | StepPhase::CodeReview => return None,
        };
        let last = self
            .record
            .last_review
            .as_ref()
            .filter(|last| last.step == number && last.phase == review_phase)?;
        let path = self.project.store.layout().run_review(&self.lane.name, last.run);
        (state == ReviewState::Revise).then(|| proq_base::regular_file::read_store_text(path).ok()).flatten()
    }
}

/// Returns whether a lane has a task loop.
///
/// # Errors
/// Fails when the record of the task loop cannot be read.
pub(crate) fn has_task_loop(project: &Project, lane: &AnyLane) -> Result<bool, Error> {
    Ok(ActiveTask::find(project, lane)?.is_some())
}

/// Saves STATUS.md before a run of a task loop and, for a review, adds the state of the lane to `step_run`.
/// For a lane without a task loop, returns `step_run` unchanged.
pub(crate) fn save_state_before_run(
    project: &Project,
    lane: &AnyLane,
    run_number: RunNumber,
    step_run: StepRun,
) -> Result<StepRun, Error> {
    let Some(active) = ActiveTask::find(project, lane)? else { return Ok(step_run) };
    let path = project.store.layout().status_md_before_run(&lane.name, run_number);
    write_atomically(&path, active.folder.read_text(STATUS_FILE)?.unwrap_or_default().as_bytes())?;
    review::with_state_before_review(&project.repo, &active.lane, step_run)
}

/// Returns whether a run of this class counts as an iteration, so that the loop continues with the next run.
pub(crate) fn completes_iteration(class: RunClass) -> bool {
    matches!(class, RunClass::Done | RunClass::MaxTurns | RunClass::ContextFull)
}
