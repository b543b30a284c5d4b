//! Landings of a batch's tasks: orders to the landing thread, its results, and landings that were undone.

use proq_plan::schedule::event::ScheduleEvent;

use super::landing_thread::LandingOrder;
use super::runner::Runner;
use super::runner_event::LandingResult;
use crate::merge::types::candidate::LanePart;
use crate::swarm::Error;
use crate::swarm::batch::log::EventFacts;
use crate::swarm::batch::log_summary::event_task;
use crate::swarm::status::undone_landings::find_undone_landings;

impl Runner<'_> {
    /// Queues tasks to land in this order, with one update of the branch.
    pub(super) fn queue_landing(&mut self, tasks: &[usize]) {
        let mut parts = Vec::new();
        for task in tasks {
            if let Some(part) = self.build_lane_part(*task, tasks) {
                parts.push(part);
            } else {
                let facts = EventFacts::with_detail("its lane no longer exists");
                self.pending_events.push_back((ScheduleEvent::CheckFailed { task: *task }, facts));
            }
        }
        if !parts.is_empty() {
            let (batch, record) = (self.batch.id().clone(), &self.batch.record);
            let tip = self.log_summary.branch_tips.last().copied().filter(|_| !record.auto_merge);
            // The thread lives as long as this process.
            drop(self.landing_thread.order_sender.send(LandingOrder {
                batch,
                onto: record.branch.clone(),
                tip,
                parts,
            }));
        }
    }

    /// Returns a task's own work as a part of its lane. None when the lane is gone, or the log has no work of
    /// the task.
    pub(super) fn find_lane_part(
        &self,
        task: usize,
        landing_tasks: &[usize],
    ) -> Result<Option<LanePart>, Error> {
        let Some(part) = self.build_lane_part(task, landing_tasks) else { return Ok(None) };
        Ok(self.find_lane_by_name(&part.lane)?.map(|_| part))
    }

    /// Returns a task's own work as a part of its lane; none if the log has no work of the task. The part
    /// requires those of `landing_tasks` that the task depends on.
    fn build_lane_part(&self, task: usize, landing_tasks: &[usize]) -> Option<LanePart> {
        let work = self.log_summary.task_commits.get(&task)?;
        let batch_task = &self.batch.tasks[task];
        Some(LanePart {
            key: task,
            lane: work.lane.clone(),
            commit_before: work.work_start,
            last_commit: work.work_end,
            title: batch_task.title.clone(),
            checks: batch_task.checks.clone(),
            required_parts: batch_task
                .needs
                .iter()
                .copied()
                .filter(|need| landing_tasks.contains(need))
                .collect(),
            proof_path: self.project.store.layout().batch_landed_record(self.batch.id(), task),
        })
    }

    /// Queues the events of a landing's result for the scheduler.
    pub(super) fn queue_landing_events(&mut self, landing: LandingResult) -> Result<(), Error> {
        let LandingResult { landed_tasks, not_landed_events: not_landed, tip, passed_checks: checks } =
            landing;
        self.pending_events.extend(not_landed);
        if !landed_tasks.is_empty() {
            let tasks = landed_tasks.iter().map(|landed_task| landed_task.task).collect();
            self.pending_events.push_back((
                ScheduleEvent::Landed { tasks },
                EventFacts {
                    landed: landed_tasks,
                    branch_tip: tip,
                    passed_checks: checks,
                    ..EventFacts::default()
                },
            ));
        }
        Ok(())
    }

    /// Logs the landings that were undone while no process ran the batch. The take-over that follows returns
    /// the actions that are due because of them.
    pub(super) fn log_undone_landings(&mut self) -> Result<(), Error> {
        for (event, facts) in find_undone_landings(self.project, &self.batch, &self.state, &self.log_summary)?
        {
            drop(self.log_and_apply(&event, &facts)?);
        }
        Ok(())
    }

    /// Continues the tasks whose landings were undone, as far as no other batch has claimed them.
    pub(super) fn continue_undone_tasks(&mut self) -> Result<(), Error> {
        let undone = find_undone_landings(self.project, &self.batch, &self.state, &self.log_summary)?;
        let tasks: Vec<usize> = undone.iter().filter_map(|(event, _)| event_task(event)).collect();
        self.claim_tasks(&tasks)?;
        self.pending_events.extend(undone);
        self.process_pending_events()
    }
}
