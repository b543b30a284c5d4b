//! Conflict resolution by an agent in the lane of a batch's task.

use std::path::PathBuf;

use proq_base::diagnostics::Listener;
use proq_base::usage::Cost;
use proq_git::CommitId;
use proq_plan::schedule::event::ScheduleEvent;
use proq_plan::schedule::task_phase::TaskOutcome;
use proq_store::base::record::Record;
use proq_store::locks::lock::{LockName, WaitLimit};
use proq_store::records::conflict::ConflictRecord;
use proq_store::records::run::RunRecord;

use super::initial_checks::InitialChecks;
use super::runner::Runner;
use super::runner_event::RunnerEvent;
use crate::agent::command::agent_command::RunOptions;
use crate::agent::control::stop;
use crate::agent::launch::start_supervisor;
use crate::lane::Project;
use crate::merge::land::parts::{PartsRequest, land_parts};
use crate::merge::resolution::resolve_agent;
use crate::merge::types::candidate::LanePart;
use crate::merge::types::outcome::Verdict;
use crate::merge::types::resolver::{Allowance, Resolver};
use crate::run::rewind;
use crate::swarm::Error;
use crate::swarm::batch::log::EventFacts;
use crate::swarm::batch::log_summary::TaskCommits;

/// A run of an agent that resolves the conflict of one task, with all its inputs.
struct ResolverRun {
    repo_dir: PathBuf,
    checks: InitialChecks,
    agent: String,
    part: LanePart,
    onto: String,
    /// Title of the lane while its conflict is being resolved.
    title: String,
    task_prompt: String,
}

/// Result of resolving a conflict: the lane's new tip, the agent that resolved it, and the cost.
struct ResolverResult {
    tip: CommitId,
    agent: Option<String>,
    cost: Option<Cost>,
}

impl Runner<'_> {
    /// Starts an agent that resolves a task's conflict. Where none can be started, queues the event that the
    /// conflict is given up, with the reason.
    pub(super) fn start_resolver(&mut self, task: usize) -> Result<(), Error> {
        if !self.resolving_tasks.insert(task) {
            return Ok(());
        }
        match self.prepare_resolver(task)? {
            Ok(resolver_run) => {
                let sender = self.event_sender.clone();
                std::thread::spawn(move || {
                    let (event, facts) = resolver_run.run(task);
                    // An interrupted resolution continues when the batch is resumed.
                    if proq_base::interrupt::require_no_signal().is_ok() {
                        drop(sender.send(RunnerEvent::ConflictFinished(task, event, Box::new(facts))));
                    }
                });
            }
            Err(reason) => {
                self.resolving_tasks.remove(&task);
                self.pending_events
                    .push_back((ScheduleEvent::ConflictGivenUp { task }, EventFacts::with_detail(reason)));
            }
        }
        Ok(())
    }

    /// Returns the run of a resolver for a task. The inner error is the reason why none can be started.
    fn prepare_resolver(&self, task: usize) -> Result<Result<ResolverRun, String>, Error> {
        let Some(part) = self.find_lane_part(task, &[])? else {
            return Ok(Err("its lane no longer exists".to_owned()));
        };
        if let Some(blocker) = self.unlanded_task_below(task) {
            let blocker_name = self.batch.task_name(blocker);
            return Ok(Err(format!("its lane is based on the work of {blocker_name}, which is not merged")));
        }
        let item = &self.batch.tasks[task];
        let settings = &self.project.settings;
        let Some(agent) = settings.conflict_agent.clone().or_else(|| item.agent.clone()) else {
            return Ok(Err("no conflict agent is set".to_owned()));
        };
        let home = self.project.repo.command_dir();
        let approval = match settings.conflict_agent {
            Some(_) => resolve_agent::require_agent_approved(self.project, &agent),
            None => Ok(()),
        };
        if let Err(reason) = approval
            .and_then(|()| Ok(start_supervisor::require_installed(&self.project.layers, &agent, home)?))
        {
            return Ok(Err(reason.to_string()));
        }
        Ok(Ok(ResolverRun {
            repo_dir: home.to_owned(),
            checks: self.checks.clone(),
            agent,
            part,
            onto: self.batch.record.branch.clone(),
            title: item.title.clone(),
            task_prompt: super::task_runs::task_prompt(&self.batch, task),
        }))
    }

    /// Returns the task right below another one in its lane, if that task has not landed.
    fn unlanded_task_below(&self, task: usize) -> Option<usize> {
        let TaskCommits { lane, work_start: from, .. } = self.log_summary.task_commits.get(&task)?;
        let is_below = |(other, work): &(&usize, &TaskCommits)| {
            **other != task && work.lane == *lane && work.work_end == *from
        };
        let (below, _) = self.log_summary.task_commits.iter().find(is_below)?;
        let is_landed =
            matches!(self.state.task_outcome(*below), Some(TaskOutcome::Landed | TaskOutcome::AlreadyDone));
        (!is_landed).then_some(*below)
    }

    /// Stops the agent that resolves a task's conflict. If there is none, queues the event that the conflict
    /// is given up.
    pub(super) fn stop_resolver(&mut self, task: usize, immediately: bool) -> Result<(), Error> {
        if !self.resolving_tasks.contains(&task) {
            self.pending_events.push_back((ScheduleEvent::ConflictGivenUp { task }, EventFacts::default()));
            return Ok(());
        }
        let Some(lane) = self.log_summary.task_commits.get(&task).map(|work| work.lane.clone()) else {
            return Ok(());
        };
        let dir = self.project.repo.command_dir().to_owned();
        std::thread::spawn(move || {
            let Ok(project) = Project::open(&dir, Listener::silent()) else { return };
            // An agent that is only being started is reported once it has finished.
            drop(if immediately {
                stop::stop_without_grace(&project, &lane)
            } else {
                stop::stop(&project, &lane)
            });
        });
        Ok(())
    }
}

impl ResolverRun {
    /// Resolves the conflict and returns the event for the scheduler.
    fn run(&self, task: usize) -> (ScheduleEvent, EventFacts) {
        match self.try_resolve() {
            Ok(result) => {
                let lane = Some(self.part.lane.clone());
                let (from, to) = (Some(self.part.commit_before), Some(result.tip));
                let facts = EventFacts {
                    lane,
                    work_start: from,
                    work_end: to,
                    agent: result.agent,
                    cost: result.cost,
                    ..EventFacts::default()
                };
                (ScheduleEvent::ConflictResolved { task }, facts)
            }
            Err(reason) => {
                let lane = Some(self.part.lane.clone());
                (
                    ScheduleEvent::ConflictGivenUp { task },
                    EventFacts { lane, ..EventFacts::with_detail(reason) },
                )
            }
        }
    }

    /// Resolves the conflict, if it still exists. The error is the reason why it is not resolved.
    fn try_resolve(&self) -> Result<ResolverResult, String> {
        let to_text = |e: &dyn std::error::Error| e.to_string();
        let project = self.checks.open_project(&self.repo_dir)?;
        let name = &self.part.lane;
        // An agent started by another process may still be working on the conflict.
        project.store.locks().wait_until_free(&LockName::Run(name.clone())).map_err(|e| to_text(&e))?;
        let is_open = project.find_resolution(name).map_err(|e| to_text(&e))?.is_some();
        if !is_open && self.land_if_no_conflict(&project).map_err(|e| to_text(&e))? {
            return Ok(ResolverResult { tip: self.part.last_commit, agent: None, cost: None });
        }
        let resolver = Resolver {
            agent: self.agent.clone(),
            retries: project.settings.conflict_retries,
            allowance: Allowance::default(),
            run_options: RunOptions::default(),
            current_dir: self.repo_dir.clone(),
        };
        let run_before = project.lane(name).map_err(|e| to_text(&e))?.last_run;
        let resolved = resolve_agent::resume_by_agent(&project, name, &resolver).map_err(|e| to_text(&e))?;
        let lane = project.lane(name).map_err(|e| to_text(&e))?;
        let tip = project.repo.branch_tip(&lane.kind.branch).map_err(|e| to_text(&e))?;
        let run_record = |number| {
            RunRecord::load_if_exists(&project.store.layout().run_record(name, number)).ok().flatten()
        };
        let resolver_runs =
            run_before.through(lane.last_run).filter_map(run_record).filter(|run| run.resolves_conflict);
        let cost = resolver_runs.filter_map(|run| run.summary.cost).reduce(Cost::plus);
        Ok(ResolverResult { tip: tip.unwrap_or(self.part.last_commit), agent: resolved.resolver, cost })
    }

    /// Moves the lane to the task's work and tries to land that work, which captures the conflict with the
    /// current branch. A conflict of this work that is already on record is left as it is. Returns whether
    /// there is no conflict any more.
    fn land_if_no_conflict(&self, project: &Project) -> Result<bool, Error> {
        let name = &self.part.lane;
        {
            let (lane, _lock) = project.lock_idle_lane(name)?;
            if project.repo.branch_tip(&lane.kind.branch)? != Some(self.part.last_commit) {
                let reason = format!("the conflict of {} is resolved first", self.part.title);
                rewind::rewind_lane(project, &lane, self.part.last_commit, &reason)?;
            }
            proq_store::base::atomic::write(
                &project.store.layout().task_prompt(name),
                self.task_prompt.as_bytes(),
            )?;
            project.update_lane(name, |record| {
                record.title.clone_from(&self.title);
                record.checks.clone_from(&self.part.checks);
                record.start = self.part.commit_before;
            })?;
        }
        let recorded = ConflictRecord::load_if_exists(&project.store.layout().conflict_record(name))?;
        if recorded.is_some_and(|known| known.theirs == self.part.last_commit) {
            return Ok(false);
        }
        let parts = std::slice::from_ref(&self.part);
        let options =
            PartsRequest { parts, onto: &self.onto, no_checks: false, queue_wait: WaitLimit::Forever };
        let report = land_parts(project, &options)?;
        let has_conflict = report.lanes.iter().any(|line| line.result == Verdict::Conflict);
        Ok(!has_conflict)
    }
}
