//! Runs of a batch's tasks: each is started once, watched until it finishes, and stopped on request.

use proq_base::diagnostics::Listener;
use proq_base::lane_name::LaneName;
use proq_base::run_class::RunClass;
use proq_git::CommitId;
use proq_plan::schedule::event::{ScheduleEvent, TaskRunEnd};
use proq_store::locks::lock::LockName;
use proq_store::records::lane_state::LaneState;

use super::attempt_runs::{RunChain, find_run_chain};
use super::runner::{RunStart, Runner};
use super::runner_event::RunnerEvent;
use crate::agent::command::agent_command::{AgentCommand, RunOptions};
use crate::agent::control::stop;
use crate::lane;
use crate::lane::Project;
use crate::swarm::Error;
use crate::swarm::batch::lanes::batch_lanes;
use crate::swarm::batch::log::EventFacts;
use crate::swarm::batch::record::Batch;
use crate::swarm::batch::scheduler::wake_other_schedulers;

/// Result of launching a run.
pub(super) struct LaunchResult {
    /// Name of the lane.
    pub(super) lane: LaneName,
    /// Whether an agent is running. A task whose checkboxes are all ticked has nothing left to do, so no
    /// agent is started for it.
    pub(super) is_running: bool,
    /// Commits of earlier, stopped runs of the task in this lane: their base and their tip.
    pub(super) earlier_commits: Option<(CommitId, CommitId)>,
}

impl Runner<'_> {
    /// Starts a run unless it was started before. A run without free capacity waits.
    pub(super) fn start_run(&mut self, run: RunStart) -> Result<(), Error> {
        if let Some(lane) = self.find_lane(run.lane)?
            && find_run_chain(self.project, &lane, self.batch.id(), (run.task, run.attempt))?.is_some()
        {
            let facts = EventFacts { lane: Some(lane.name), ..EventFacts::default() };
            self.pending_events
                .push_back((ScheduleEvent::RunStarted { task: run.task, attempt: run.attempt }, facts));
            self.watch_run(run.task, run.attempt);
            return Ok(());
        }
        self.pending_starts.push(run);
        self.start_waiting_runs()
    }

    /// Starts waiting runs as long as there is capacity.
    pub(super) fn start_waiting_runs(&mut self) -> Result<(), Error> {
        let waiting = std::mem::take(&mut self.pending_starts);
        let mut waiting = waiting.into_iter();
        // Without this lock, two batches that check at the same time would both take the same free capacity.
        let _lock = match self.project.settings.max_running {
            Some(_) => Some(self.project.store.locks().acquire(&LockName::RunCapacity)?),
            None => None,
        };
        for run in waiting.by_ref() {
            if !self.has_capacity()? {
                self.pending_starts.push(run);
                break;
            }
            let (task, attempt) = (run.task, run.attempt);
            match self.launch_run(run) {
                Ok(launched) => self.queue_launch_event((task, attempt), launched),
                Err(Error::Lane(lane::Error::Busy { name })) => self.requeue_for_idle_lane(run, &name)?,
                Err(e) => {
                    proq_base::interrupt::require_no_signal().map_err(proq_store::Error::from)?;
                    let facts = EventFacts {
                        lane: self.lane_names.get(&run.lane).cloned(),
                        ..EventFacts::with_detail(e.to_string())
                    };
                    self.pending_events.push_back((
                        ScheduleEvent::RunEnded { task, attempt, end: TaskRunEnd::NotStarted },
                        facts,
                    ));
                }
            }
        }
        self.pending_starts.extend(waiting);
        Ok(())
    }

    /// Queues the event that a run has started, or that the task had nothing left to do.
    fn queue_launch_event(&mut self, (task, attempt): (usize, u32), launched: LaunchResult) {
        let LaunchResult { lane, is_running, earlier_commits } = launched;
        if is_running {
            let (agent, model) = (self.batch.tasks[task].agent.clone(), self.batch.tasks[task].model.clone());
            let facts = EventFacts { lane: Some(lane), agent, model, ..EventFacts::default() };
            self.pending_events.push_back((ScheduleEvent::RunStarted { task, attempt }, facts));
            self.watch_run(task, attempt);
            return;
        }
        let facts =
            EventFacts { lane: Some(lane), ..EventFacts::with_detail("all of its boxes were ticked") };
        let (end, facts) = match earlier_commits {
            Some((from, to)) => {
                (TaskRunEnd::Done, EventFacts { work_start: Some(from), work_end: Some(to), ..facts })
            }
            None => (TaskRunEnd::AlreadyDone, facts),
        };
        self.pending_events.push_back((ScheduleEvent::RunEnded { task, attempt, end }, facts));
    }

    /// Queues a run again until its lane is idle: an agent still runs there although its supervisor has
    /// exited, or another process started one. This counts as no attempt; the lane is inspected again each
    /// second.
    fn requeue_for_idle_lane(&mut self, run: RunStart, lane_name: &LaneName) -> Result<(), Error> {
        self.pending_starts.push(run);
        if self.runs_waiting_for_lane.insert((run.task, run.attempt)) {
            self.log_note(&format!("it waits: an agent is running in lane '{lane_name}'"), &[run.task])?;
        }
        Ok(())
    }

    /// Moves the lane to the commit where the run begins, and starts the run. A run that continues a stopped
    /// one begins at the tip of that one.
    fn launch_run(&mut self, run: RunStart) -> Result<LaunchResult, Error> {
        let base_missing =
            || crate::swarm::batch::error::BatchError::CleanedUp { id: self.batch.id().clone() };
        let from = self.base_commit(run.base).ok_or_else(base_missing)?;
        let stopped_tip = self.interrupted_tip(run, from)?;
        let (lane, lock) = self.prepare_lane(run.lane, run.task, stopped_tip.unwrap_or(from))?;
        let mut text = task_prompt(&self.batch, run.task);
        if let Some(tip) = stopped_tip.filter(|tip| *tip != from) {
            text.push_str(&format!(
                "\nAn earlier run of this task was stopped. Its commits are in this branch ({}..{}): continue from there.\n",
                from.short(),
                tip.short()
            ));
        }
        let lane = self.assign_task(&lane, &lock, run.task, from, &text)?;
        let task = &self.batch.tasks[run.task];
        let options = RunOptions { model: task.model.clone(), ..RunOptions::default() };
        let agent = task.agent.as_deref().unwrap_or_default();
        let command = AgentCommand::from_profile(
            self.project,
            agent,
            &text,
            self.project.repo.command_dir(),
            &options,
        )?;
        self.start_work(run, (lane, lock), command, stopped_tip.map(|tip| (from, tip)))
    }

    /// Watches a run and sends a message to the scheduler once it has finished.
    pub(super) fn watch_run(&mut self, task: usize, attempt: u32) {
        self.watched_runs.insert((task, attempt));
        let sender = self.event_sender.clone();
        let notify_finished = move || drop(sender.send(RunnerEvent::RunFinished(task, attempt)));
        let chain = self.run_chain(task, attempt).ok().flatten();
        let lock = chain.map(|chain| {
            let name = chain.lane.name.clone();
            match chain.busy_state(self.project) {
                Ok(Some(LaneState::Orphaned)) => LockName::AgentAlive(name),
                _ => LockName::Run(name),
            }
        });
        // A run that cannot be waited for is inspected immediately.
        let is_waiting = lock.is_some_and(|lock| {
            let notify = notify_finished.clone();
            self.project.store.locks().notify_when_free(&lock, move |_| notify()).is_ok()
        });
        if !is_waiting {
            notify_finished();
        }
    }

    /// Returns the recorded runs of an attempt; none if it was never started.
    pub(super) fn run_chain(&self, task: usize, attempt: u32) -> Result<Option<RunChain>, Error> {
        for (_, lane) in batch_lanes(self.project, self.batch.id())? {
            if let Some(chain) = find_run_chain(self.project, &lane, self.batch.id(), (task, attempt))? {
                return Ok(Some(chain));
            }
        }
        Ok(None)
    }

    /// Returns the runs that have a record but no end in the batch's log, as task and attempt.
    pub(super) fn find_open_runs(&self) -> Result<Vec<(usize, u32)>, Error> {
        let mut open_runs = Vec::new();
        for (task, attempt) in self.state.open_runs() {
            if self.run_chain(task, attempt)?.is_some() {
                open_runs.push((task, attempt));
            }
        }
        Ok(open_runs)
    }

    /// Handles a run whose lock is free: resumes it, or queues its result.
    pub(super) fn handle_run_end(&mut self, task: usize, attempt: u32) -> Result<(), Error> {
        if !self.watched_runs.contains(&(task, attempt)) {
            return Ok(());
        }
        let Some(chain) = self.run_chain(task, attempt)? else {
            self.watched_runs.remove(&(task, attempt));
            let end = TaskRunEnd::Failed(RunClass::Interrupted);
            self.pending_events.push_back((
                ScheduleEvent::RunEnded { task, attempt, end },
                EventFacts::with_detail("its lane no longer exists"),
            ));
            return self.start_freed_runs();
        };
        if chain.busy_state(self.project)?.is_some() {
            self.watch_run(task, attempt);
            return Ok(());
        }
        let resume_failure = match self.resume_steps(task, &chain)? {
            Some(Ok(())) => {
                self.watch_run(task, attempt);
                return Ok(());
            }
            Some(Err(reason)) => Some(reason),
            None => None,
        };
        // A run whose supervisor crashed without an outcome is recorded as crashed.
        if chain.lane.state().is_claimed() {
            drop(self.project.lock_idle_lane(&chain.lane.name)?);
        }
        let Some(chain) = self.run_chain(task, attempt)? else { return Ok(()) };
        self.watched_runs.remove(&(task, attempt));
        let result = chain.result(&self.project.repo)?;
        let (cost, tokens) = chain.usage_totals();
        if let Some(cost) = cost.filter(|cost| !cost.amount.is_zero()) {
            // The cost comes before the end of the run, so that runs started because of that end stay within
            // the budget.
            let total = self.log_summary.total_cost().saturating_add(cost.amount);
            self.pending_events.push_back((ScheduleEvent::CostReported { total }, EventFacts::default()));
        }
        let last_work = chain.last_working_run();
        let facts = EventFacts {
            lane: Some(chain.lane.name.clone()),
            agent: last_work.map(|run| run.agent.clone()),
            model: last_work.and_then(|run| run.summary.model.clone()),
            run: chain.runs.last().map(|run| run.number),
            run_started: chain.started_at(),
            work_start: result.work_start,
            work_end: result.tip,
            cost,
            tokens,
            detail: resume_failure
                .map(|reason| proq_base::terminal_text::escape_line(&reason))
                .or(result.detail),
            ..EventFacts::default()
        };
        self.pending_events.push_back((ScheduleEvent::RunEnded { task, attempt, end: result.end }, facts));
        self.start_freed_runs()
    }

    /// Processes pending events, and starts waiting runs with the capacity that has become free.
    fn start_freed_runs(&mut self) -> Result<(), Error> {
        self.process_pending_events()?;
        if self.project.settings.max_running.is_some() {
            wake_other_schedulers(&self.project.store, self.batch.id());
            self.start_waiting_runs()?;
        }
        Ok(())
    }

    /// Stops a run. Its agent gets a wrap-up message and a grace period first, unless `immediately` is set.
    pub(super) fn stop_run(&mut self, task: usize, attempt: u32, immediately: bool) -> Result<(), Error> {
        let waiting_count = self.pending_starts.len();
        self.pending_starts.retain(|start| (start.task, start.attempt) != (task, attempt));
        if self.pending_starts.len() < waiting_count {
            let end = TaskRunEnd::Failed(RunClass::Stopped);
            self.pending_events
                .push_back((ScheduleEvent::RunEnded { task, attempt, end }, EventFacts::default()));
            return Ok(());
        }
        let Some(chain) = self.run_chain(task, attempt)? else { return Ok(()) };
        let (dir, lane) = (self.project.repo.command_dir().to_owned(), chain.lane);
        let grace = self.project.settings.abort_grace;
        let stop_agent = move || {
            let Ok(project) = Project::open(&dir, Listener::silent()) else { return };
            // The outcome is detected by the run's lock.
            drop(match immediately {
                true => stop::stop_without_grace(&project, &lane.name),
                false => stop::stop_after_wrap_up(&project, &lane.name, grace),
            });
        };
        std::thread::spawn(stop_agent);
        Ok(())
    }
}

/// Returns the prompt for a task's agent: the task in the plan's words, the group's prompt, and the task's
/// position in the plan. The lane's rules, with scope and checks, are added as for any lane.
pub(super) fn task_prompt(batch: &Batch, task: usize) -> String {
    let item = &batch.tasks[task];
    let mut out = item.prompt.trim_end().to_owned();
    if !item.group_prompt.trim().is_empty() {
        out.push_str(&format!("\n\n{}", item.group_prompt.trim()));
    }
    format!("{out}\n\n{}\n", describe_position(batch, task))
}

/// Returns the additional prompt for the agents that work on a task that is a folder: the group's prompt and
/// the task's position in the plan.
pub(super) fn folder_task_prompt(batch: &Batch, task: usize) -> String {
    let group_prompt = batch.tasks[task].group_prompt.trim();
    let separator = if group_prompt.is_empty() { "" } else { "\n\n" };
    format!("{group_prompt}{separator}{}", describe_position(batch, task))
}

/// Returns the sentences for an agent about its task's plan and the tasks that it depends on.
fn describe_position(batch: &Batch, task: usize) -> String {
    let item = &batch.tasks[task];
    let plan = match batch.record.summary.as_str() {
        "" => String::new(),
        summary => format!(" ({summary})"),
    };
    let mut out = format!(
        "This is task `{}` of a plan{plan}. Do only this task: other agents work on the rest of the plan.",
        item.name
    );
    let dependencies: Vec<String> =
        item.needs.iter().map(|need| format!("`{}`", batch.task_name(*need))).collect();
    if !dependencies.is_empty() {
        out.push_str(&format!(
            " The tasks that it depends on are done and included here: {}.",
            dependencies.join(", ")
        ));
    }
    out
}
