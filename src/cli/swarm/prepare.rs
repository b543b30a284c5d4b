//! Owns what a batch is begun with: checked before anything is made.

use std::path::{Path, PathBuf};

use super::super::wishes::warn_of;
use super::super::{Failure, Mistake, Session};
use super::Swarm;
use crate::agent::{Asked, Job};
use crate::config::nano_dollars;
use crate::event::{Approvals, Command};
use crate::git;
use crate::lane::{self, Base, Project};
use crate::store::LockName;
use crate::swarm::{
    self, Batch, BatchError, BatchRecord, Defaults, Format, Found, Ledger, MergePolicy, Mode, NewBatch,
    Options, Outcome, Spread, TaskPolicy,
};
use crate::{harmless, merge};

/// Everything but the plan itself.
pub(super) struct Wanted {
    pub(super) base: Base,
    pub(super) options: Options,
    tasks: Vec<swarm::BatchTask>,
    auto_merge: bool,
    dir: PathBuf,
}

impl Wanted {
    /// What the command line and the settings ask for.
    pub(super) fn of(
        session: &Session,
        project: &Project,
        args: &Swarm,
        found: &Found,
    ) -> Result<Wanted, Failure> {
        let settings = &project.settings;
        let top = project.repo.here().unwrap_or(project.repo.home());
        let top = std::fs::canonicalize(top).unwrap_or_else(|_| top.to_owned());
        // A draft is called by a name, and lies among the others.
        let drafts = project.store.layout().drafts();
        let defaults = Defaults {
            agent: args.agent.as_deref().or(settings.swarm.agent.as_deref()),
            model: args.model.as_deref(),
            dir: if found.format == Format::Draft { &drafts } else { &session.dir },
            top: &top,
            ledger: &Ledger::read(project)?,
        };
        let plan = harmless::line(&args.source.names().join(" "));
        let mut tasks = swarm::tasks_of(found, &defaults)?;
        for name in &args.retry {
            let same = |task: &&mut swarm::BatchTask| {
                task.name.eq_ignore_ascii_case(name) || task.id.eq_ignore_ascii_case(name)
            };
            let none = || BatchError::NoSuchTask { name: name.clone(), plan: plan.clone() };
            tasks.iter_mut().find(same).ok_or_else(none).map_err(swarm::Error::from)?.failures = 0;
        }
        if tasks.iter().all(|task| task.done) {
            return Err(swarm::Error::from(BatchError::AllDone { plan }).into());
        }
        let mut jobs = Vec::new();
        for task in tasks.iter().filter(|task| !task.done) {
            jobs.push(require_agent(project, task)?);
        }
        warn_of(session, project, &jobs)?;
        let others = |criterion: &&String| swarm::command_of(criterion).is_none();
        if let (Some(agent), Some(_)) =
            (&settings.swarm.verify_agent, found.plan.criteria.iter().find(others))
        {
            crate::agent::require(project, agent, project.repo.home())?;
        }
        Ok(Wanted {
            base: base(project, args)?,
            options: options(project, args)?,
            tasks,
            auto_merge: args.auto_merge || settings.swarm.auto_merge,
            dir: session.dir.clone(),
        })
    }

    /// A batch of the same plan that is not over, and how far it is.
    pub(super) fn open_batch(&self, project: &Project) -> Option<(BatchRecord, String)> {
        self.batches(project).find_map(|read| {
            let state = read.state(&read.log(project).ok()?);
            let word = match state.outcome_if_over() {
                Some(Outcome::Complete | Outcome::Partly) => return None,
                Some(Outcome::Aborted) => "aborted",
                Some(Outcome::Stopped) => "stopped",
                // It says that it goes on, and nobody does.
                None if state.word() != "paused" && !swarm::is_run(project, read.id()).ok()? => "interrupted",
                None => state.word(),
            };
            Some((read.record, word.to_owned()))
        })
    }

    /// The batches of this plan, the last one first. Another milestone of a roadmap is another plan.
    fn batches<'a>(&'a self, project: &'a Project) -> impl Iterator<Item = Batch> + 'a {
        let same = |batch: &BatchRecord| self.tasks.iter().any(|task| batch.files.contains(&task.file));
        let milestone = |tasks: &[swarm::BatchTask]| tasks.first().map(|task| task.milestone.clone());
        let all = swarm::batches(project, false).into_iter().rev().filter(same);
        let all = all.filter_map(|batch| Batch::load(project, &batch.id).ok());
        all.filter(move |batch| milestone(&batch.tasks) == milestone(&self.tasks))
    }

    /// Refuses a plan whose last batch is done and has not landed: all of it would be done, and paid for, once more.
    pub(super) fn require_landed(&self, project: &Project) -> Result<(), Failure> {
        let Some(Batch { record: last, .. }) = self.batches(project).next() else { return Ok(()) };
        let tip = if last.auto_merge { None } else { project.repo.branch_tip(&last.branch)? };
        let (Some(tip), Some(base)) = (tip, project.repo.branch_tip(&last.base)?) else { return Ok(()) };
        if tip == last.start || lane::is_contained(project, tip, base)? {
            return Ok(());
        }
        let help = swarm::how_to_land(project, &last, "land it");
        Err(swarm::Error::from(BatchError::Unlanded { help, id: last.id, base: last.base }).into())
    }

    /// Refuses where files that git knows were changed and are not committed: no lane would have that.
    pub(super) fn require_clean(&self, project: &Project, ignore: bool) -> Result<(), Failure> {
        let here = project.repo.here().or(project.repo.main_worktree());
        let (Some(here), false) = (here, ignore) else { return Ok(()) };
        let dirt = git::status(&project.repo, here, false)?;
        let paths: Vec<git::RepoPath> = dirt.tracked().map(|entry| entry.path.clone()).collect();
        if paths.is_empty() {
            return Ok(());
        }
        Err(swarm::Error::from(BatchError::Dirty { names: git::names(&paths) }).into())
    }

    /// Refuses what every landing would refuse: commands of the repository's that nobody has approved.
    /// So are those of the plan, if it comes with a repository.
    pub(super) fn require_approved(
        &self,
        project: &Project,
        args: &Swarm,
        of_plan: &[Command],
    ) -> Result<(), Failure> {
        let open: Vec<&Command> = of_plan.iter().filter(|command| !command.approved).collect();
        if let Some(path) = open.first().and_then(|command| command.from.clone()) {
            let commands = open.iter().map(|command| harmless::line(&command.line)).collect();
            let plan = harmless::line(&args.source.to_approve());
            return Err(swarm::Error::from(BatchError::Unapproved { path, commands, plan }).into());
        }
        let approvals = Approvals::read(&project.repo, &project.store)?;
        let checks = project.checks_on(&self.base.branch)?;
        let commands = approvals.of_settings(&checks.layers, &checks.commands);
        let open: Vec<_> = commands.into_iter().filter(|command| !command.approved).collect();
        if let Some(path) = open.first().and_then(|command| command.from.clone()) {
            let commands = open.into_iter().map(|command| command.line).collect();
            let base = self.base.branch.clone();
            return Err(merge::Error::Unapproved { path, commands, base }.into());
        }
        lane::require_approved(project, lane::Given::Whole)?;
        if let Some(agent) = &project.settings.conflict_agent {
            merge::require_approved(project, agent)?;
        }
        Ok(())
    }

    /// How it will be run, in a line.
    pub(super) fn in_words(&self) -> String {
        let Base { branch, start } = &self.base;
        let lands = match self.options.mode {
            Mode::Continuous => "each task lands as it is done",
            Mode::Waves => "each wave lands together",
            Mode::Phases => "each phase lands together",
            Mode::OneLane => "all of it is done in one lane and lands together",
        };
        let onto =
            if self.auto_merge { format!("on {branch} itself") } else { "on a branch of its own".to_owned() };
        format!("From {branch} ({}): {lands}, {onto}.", start.short())
    }

    /// Makes the batch and starts who goes on with it.
    pub(super) fn begin(
        self,
        project: &Project,
        args: &Swarm,
        found: &Found,
        overlaps: Vec<Vec<usize>>,
        exe: &Path,
    ) -> Result<BatchRecord, Failure> {
        // Two who begin the same plan at the same time: one of them sees the other's batch here.
        let plans = project.store.locks().take(&LockName::Ledger)?;
        if let Some((BatchRecord { id, .. }, state)) = self.open_batch(project).filter(|_| !args.new) {
            return Err(swarm::Error::from(BatchError::Open { id, state }).into());
        }
        let plan = &found.plan;
        let progress_file = args.progress_file.as_ref().map(|file| self.dir.join(file));
        let new = NewBatch {
            summary: harmless::line(&plan.summary),
            base: self.base.branch,
            start: self.base.start,
            auto_merge: self.auto_merge,
            sources: args.source.names(),
            form: found.format.word(),
            milestone: args.source.milestone(),
            criteria: plan.criteria.clone(),
            strict: args.strict || project.settings.swarm.strict,
            overlaps,
            phases: swarm::phases_of(plan),
            options: self.options,
            tasks: self.tasks,
            plan: swarm::written(plan),
            progress_file,
        };
        let (batch, lock) = swarm::make_batch(project, new)?;
        drop(plans);
        swarm::start_batch(project, &batch.id, lock, exe)?;
        Ok(batch)
    }
}

/// The branch that all of it is for.
fn base(project: &Project, args: &Swarm) -> Result<Base, Failure> {
    lane::resolve_base(project, args.base.as_deref(), None).map_err(|e| match e {
        lane::Error::NeedsOnto { why } => swarm::Error::from(BatchError::NoBase { why }).into(),
        e => e.into(),
    })
}

/// What a task's agent is started for. Refuses one that could not be, as it is asked for.
fn require_agent(project: &Project, task: &swarm::BatchTask) -> Result<Job, Failure> {
    let asked = Asked { model: task.model.clone(), ..Asked::default() };
    let name = task.agent.as_deref().unwrap_or_default();
    let job = Job::agent(project, name, &task.prompt, project.repo.home(), &asked)?;
    if let Some(packet) = swarm::packet_of(project, task, None)? {
        packet.require_reviewer(project, &job)?;
    }
    Ok(job)
}

fn options(project: &Project, args: &Swarm) -> Result<Options, Failure> {
    let settings = &project.settings.swarm;
    let mode = match (args.waves, args.phases, args.one_lane) {
        (true, _, _) => "waves",
        (_, true, _) => "phases",
        (_, _, true) => "one-lane",
        _ => settings.mode.as_str(),
    };
    let budget = match &args.budget {
        None => settings.budget,
        Some(text) => {
            let what = "--budget takes US dollars";
            let example = "git proq swarm plan.toml --budget 12.50";
            Some(nano_dollars(text).filter(|n| *n > 0).ok_or(Mistake::Missing { what, example })?)
        }
    };
    let pick = |flag: &Option<String>, setting: &str| flag.clone().unwrap_or_else(|| setting.to_owned());
    Ok(Options {
        mode: Mode::named(mode),
        spread: Spread::named(&pick(&args.strategy, &settings.strategy)),
        max_parallel: args.max_parallel.map_or(settings.max_parallel, usize::from).max(1),
        max_attempts: settings.max_attempts.max(1),
        on_failure: match pick(&args.on_task_failure, &settings.on_task_failure).as_str() {
            "stop-wave" => TaskPolicy::StopWave,
            "stop-all" => TaskPolicy::StopAll,
            _ => TaskPolicy::SkipDependents,
        },
        on_merge_failure: match pick(&args.on_merge_failure, &settings.on_merge_failure).as_str() {
            "abort" => MergePolicy::Abort,
            _ => MergePolicy::Pause,
        },
        resolve: true,
        budget,
    })
}
