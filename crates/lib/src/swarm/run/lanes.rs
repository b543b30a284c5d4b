//! Lanes of a batch: creating them, moving them to a task's starting commit, and removing them.

use proq_base::lane_name::LaneName;
use proq_git::CommitId;
use proq_git::status::status_query;
use proq_plan::schedule::action::{Action, RunBase};
use proq_plan::schedule::event::ScheduleEvent;
use proq_store::locks::lock::LockGuard;
use proq_store::records::batched::BatchLane;
use proq_store::records::lane::LaneRecord;
use proq_store::records::lane_state::RunState;

use super::attempt_runs::find_run_chain;
use super::runner::{RunStart, Runner};
use crate::lane;
use crate::lane::creation::create::NewLane;
use crate::lane::creation::{create, create_many};
use crate::lane::inspection::base::Base as LaneBase;
use crate::lane::removal::remove_lane::RemovalReason;
use crate::lane::worktree::checkout_mode;
use crate::lane::worktree::set_up::commands::SetUpLevel;
use crate::operation::run_operation::operate;
use crate::preview::main_checkout;
use crate::run::rewind;
use crate::swarm::Error;
use crate::swarm::batch::log::EventFacts;

impl Runner<'_> {
    /// Creates all lanes that `actions` request in one step, which is faster than one after the other. Lanes
    /// that cannot be created this way are created one by one later.
    pub(super) fn create_lanes(&mut self, actions: &[Action]) -> Result<(), Error> {
        let mut requested = Vec::new();
        for action in actions {
            if let Action::CreateLane { lane, task, branch_updates } = *action
                && let Some(start) = self.log_summary.tip_after(branch_updates)
                && self.find_lane(lane)?.is_none()
            {
                requested.push((lane, task, start));
            }
        }
        if requested.len() < 2 {
            return Ok(());
        }
        let to_spec = |(lane, task, start): &(usize, usize, CommitId)| {
            self.new_lane_spec(*lane, *task, *start, SetUpLevel::NoCommands)
        };
        let plans: Result<Vec<_>, _> =
            requested.iter().map(|request| create::plan_lane(self.project, to_spec(request))).collect();
        match plans.and_then(|plans| create_many::create_lanes(self.project, &plans)) {
            Ok(created) => {
                for ((number, ..), created_lane) in requested.into_iter().zip(created) {
                    self.lane_names.insert(number, created_lane.lane.name);
                }
                Ok(())
            }
            Err(_) => Ok(proq_base::interrupt::require_no_signal().map_err(proq_store::Error::from)?),
        }
    }

    /// Creates a lane, unless it exists.
    pub(super) fn create_lane(
        &mut self,
        number: usize,
        task: usize,
        branch_updates: u32,
    ) -> Result<(), Error> {
        if self.find_lane(number)?.is_some() {
            return Ok(());
        }
        let result = match self.log_summary.tip_after(branch_updates) {
            // The set-up commands run later, in parallel with the other lanes of the batch.
            Some(start) => self.create_lane_at(number, task, start, SetUpLevel::NoCommands),
            None => {
                Err(crate::swarm::batch::error::BatchError::CleanedUp { id: self.batch.id().clone() }.into())
            }
        };
        match result {
            Ok(_) => drop(self.lane_creation_errors.remove(&number)),
            Err(e) => {
                proq_base::interrupt::require_no_signal().map_err(proq_store::Error::from)?;
                self.lane_creation_errors
                    .insert(number, proq_base::terminal_text::escape_line(&e.to_string()));
            }
        }
        Ok(())
    }

    /// Starts the set-up of an existing lane. Reports the lane as set up if nothing is to be set up, or as
    /// failed if it does not exist.
    pub(super) fn set_up_lane(&mut self, number: usize) -> Result<(), Error> {
        let lane = self.find_lane(number)?;
        match &lane {
            Some(lane) if self.spawn_set_up(number, lane)? => Ok(()),
            _ => self.queue_set_up_event(number, None),
        }
    }

    /// Queues the event that a lane is set up, or that its creation or set-up failed.
    pub(super) fn queue_set_up_event(&mut self, number: usize, failure: Option<String>) -> Result<(), Error> {
        let failed_event = |reason: String| {
            let facts = EventFacts {
                task: self.state.task_of_lane_set_up(number),
                ..EventFacts::with_detail(reason)
            };
            (ScheduleEvent::LaneSetUpFailed { lane: number }, facts)
        };
        if let Some(reason) = failure {
            let event = failed_event(reason);
            self.pending_events.push_back(event);
            return Ok(());
        }
        let event = match (self.find_lane(number)?, self.lane_creation_errors.get(&number)) {
            (Some(lane), _) => (
                ScheduleEvent::LaneSetUp { lane: number },
                EventFacts { lane: Some(lane.name), ..EventFacts::default() },
            ),
            (None, creation_error) => failed_event(
                creation_error.cloned().unwrap_or_else(|| "its lane no longer exists".to_owned()),
            ),
        };
        self.lane_creation_errors.remove(&number);
        self.pending_events.push_back(event);
        Ok(())
    }

    /// Creates the lane with this number at a commit. The lane is named after its first task.
    fn create_lane_at(
        &mut self,
        number: usize,
        task: usize,
        start: CommitId,
        set_up_level: SetUpLevel,
    ) -> Result<(LaneRecord, LockGuard), Error> {
        let created = create::create_lane(
            self.project,
            &create::plan_lane(self.project, self.new_lane_spec(number, task, start, set_up_level))?,
        )?;
        self.lane_names.insert(number, created.lane.name.clone());
        Ok((created.lane, created.run_lock))
    }

    /// Returns the specification of the lane with this number, whose first task is `task`.
    fn new_lane_spec(
        &self,
        number: usize,
        task: usize,
        start: CommitId,
        set_up_level: SetUpLevel,
    ) -> NewLane<'_> {
        let batch_task = &self.batch.tasks[task];
        NewLane {
            name_hint: Some(batch_task.name.as_str().into()),
            agent: batch_task.agent.clone(),
            checks: batch_task.checks.clone(),
            scope: batch_task.scope.clone(),
            batch: Some(BatchLane {
                batch: self.batch.id().clone(),
                lane: number,
                task: batch_task.name.clone(),
            }),
            set_up: set_up_level,
            ..NewLane::new(LaneBase { branch: self.batch.record.branch.clone(), start })
        }
    }

    /// Returns the commit that a run starts from.
    pub(super) fn base_commit(&self, base: RunBase) -> Option<CommitId> {
        match base {
            RunBase::BranchTip(branch_updates) => self.log_summary.tip_after(branch_updates),
            RunBase::OnTask(task) => self.log_summary.task_commits.get(&task).map(|work| work.work_end),
        }
    }

    /// Returns the lane with this number locked, clean and at the commit `target`. A lane at another commit
    /// is moved to `target`, with everything in it saved. A lane that does not exist or cannot be moved is
    /// created again.
    pub(super) fn prepare_lane(
        &mut self,
        number: usize,
        task: usize,
        target: CommitId,
    ) -> Result<(LaneRecord, LockGuard), Error> {
        let Some(lane) = self.find_lane(number)? else {
            return self.create_lane_at(number, task, target, SetUpLevel::Full);
        };
        match self.move_lane(&lane.name, target, task) {
            Ok(held) => Ok(held),
            Err(Error::Lane(e @ lane::Error::Busy { .. })) => Err(e.into()),
            Err(e) => {
                proq_base::interrupt::require_no_signal().map_err(proq_store::Error::from)?;
                // The worktree does not have its branch checked out: it is in the middle of a merge, or its
                // HEAD is elsewhere.
                self.log_note(&format!("lane '{}' is created again: {e}", lane.name), &[task])?;
                self.remove_lane(&lane.name, true)?;
                self.create_lane_at(number, task, target, SetUpLevel::Full)
            }
        }
    }

    /// Returns the commit from which the run of an interrupted task continues: the tip of its lane, if that
    /// descends from `base`.
    pub(super) fn interrupted_tip(&self, start: RunStart, base: CommitId) -> Result<Option<CommitId>, Error> {
        let Some(lane) = self.find_lane(start.lane)? else { return Ok(None) };
        for attempt in (1..start.attempt).rev() {
            let Some(chain) = find_run_chain(self.project, &lane, self.batch.id(), (start.task, attempt))?
            else {
                continue;
            };
            let tip = self.project.repo.branch_tip(&lane.kind.branch)?;
            return Ok(match tip {
                Some(tip) if chain.was_stopped() && self.project.repo.is_ancestor(base, tip)? => Some(tip),
                _ => None,
            });
        }
        Ok(None)
    }

    /// Locks a lane, and moves it to the commit `target` with everything in it saved, unless it is there and
    /// clean.
    fn move_lane(
        &mut self,
        name: &LaneName,
        target: CommitId,
        task: usize,
    ) -> Result<(LaneRecord, LockGuard), Error> {
        let (lane, lock) = self.project.lock_idle_lane(name)?;
        let repo = &self.project.repo;
        let is_at_target = repo.branch_tip(&lane.kind.branch)? == Some(target)
            && repo.head_commit(&lane.path)? == Some(target)
            && status_query::status(repo, &lane.path, true)?.is_clean();
        if !is_at_target {
            let reason = format!("lane {name} continues with {}", self.batch.task_name(task));
            let rewind = rewind::rewind_lane(self.project, &lane, target, &reason)?;
            if let Some(saved_text) = rewind.describe() {
                self.log_note(&format!("taken out of lane '{name}'; {saved_text}"), &[])?;
            }
        }
        Ok((lane, lock))
    }

    /// Removes the work of a failed run from its lane.
    pub(super) fn reset_lane(&mut self, number: usize, task: usize, base: RunBase) -> Result<(), Error> {
        let (Some(lane), Some(target)) = (self.find_lane(number)?, self.base_commit(base)) else {
            return Ok(());
        };
        if let Err(e) = self.prepare_lane(number, task, target) {
            proq_base::interrupt::require_no_signal().map_err(proq_store::Error::from)?;
            // The reset is tried again before the next run starts there.
            self.log_note(&format!("lane '{}' is kept for now: {e}", lane.name), &[task])?;
        }
        Ok(())
    }

    /// Writes a task into the record of its lane and into the lane's prompt file. The caller passes the
    /// lane's lock.
    pub(super) fn assign_task(
        &self,
        lane: &LaneRecord,
        _lock: &LockGuard,
        task: usize,
        start: CommitId,
        prompt: &str,
    ) -> Result<LaneRecord, Error> {
        let batch_task = &self.batch.tasks[task];
        let path = self.project.store.layout().task_prompt(&lane.name);
        proq_store::base::atomic::write(&path, prompt.as_bytes())?;
        let updated = self.project.update_lane(&lane.name, |record| {
            record.title.clone_from(&batch_task.title);
            record.checks.clone_from(&batch_task.checks);
            record.scope.clone_from(&batch_task.scope);
            record.agent.clone_from(&batch_task.agent);
            record.set_run(RunState::Idle);
            record.detail = None;
            record.already_done = false;
            record.landed = None;
            record.start = start;
            if let Some(in_batch) = &mut record.batch {
                in_batch.task.clone_from(&batch_task.name);
            }
        })?;
        let name = lane.name.clone();
        let lane =
            updated.into_owned_lane().map_err(|purpose| lane::Error::NoLaneBranch { name, purpose })?;
        checkout_mode::widen_sparse_cone(self.project, &lane)?;
        Ok(lane)
    }

    /// Removes a lane whose work has landed, unless the user or an agent has worked in it since.
    pub(super) fn remove_landed_lane(&mut self, number: usize) -> Result<(), Error> {
        let Some(lane) = self.find_lane(number)? else { return Ok(()) };
        if let Err(e) = self.remove_lane(&lane.name, false) {
            proq_base::interrupt::require_no_signal().map_err(proq_store::Error::from)?;
            self.log_note(&format!("lane '{}' stays: {e}", lane.name), &[])?;
        }
        Ok(())
    }

    /// Removes a lane; with `force`, also a lane with work, all of which is saved.
    fn remove_lane(&self, name: &LaneName, force: bool) -> Result<(), Error> {
        // Removing the lane would switch the main checkout of a user who previews it.
        if main_checkout::preview_status(self.project)?.is_some_and(|shown| shown.lane == *name) {
            return Err(lane::Error::RemovalRefused {
                name: name.clone(),
                reasons: vec!["the main checkout shows it".to_owned()],
                busy: false,
                force_helps: false,
                hint: None,
            }
            .into());
        }
        operate(self.project, "cleanup", |op| {
            crate::preview::remove_lane::remove_previewed_lane(op, name, RemovalReason::Cleanup, force)
                .map(drop)
        })?;
        Ok(())
    }
}
