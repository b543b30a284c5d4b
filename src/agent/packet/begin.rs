//! Owns beginning the work at a task that is a folder, going on with it, and each run of it.

use std::ffi::OsString;
use std::path::Path;

use super::super::Error;
use super::super::job::{Asked, Job};
use super::super::launch;
use super::super::order::Order;
use super::super::outfit::Errand;
use super::super::profile::Permission;
use super::at_work::{AtWork, Told};
use super::course::Next;
use super::folder::{Brought, Folder, KeptOut, PROMPT, read_all};
use super::status::Status;
use super::words::{Words, called};
use crate::fault;
use crate::lane::{self, Project};
use crate::store::records::{
    AnyLane, ForTask, LaneState, PacketRecord, Part, RunClass, RunLimits, RunRecord, StepRecord, Stint,
};
use crate::store::{Guard, Record, new_id};

/// A task that is a folder, as it is to be worked at in a lane.
#[derive(Debug, Clone)]
pub(crate) struct Packet {
    /// The folder, from the top of the worktree.
    folder: String,
    title: String,
    level: u8,
    reviewer: Option<String>,
    files: Vec<Brought>,
    batch: Option<ForTask>,
    more: String,
}

impl Packet {
    /// Reads the folder `dir`, which lies at `folder` in a worktree. `level` is how closely the task is looked at: 0 not at all, 1 the plan
    /// of each step, 2 what was done of it as well. `reviewer` looks; without one, the one in the settings, else the agent itself.
    ///
    /// # Errors
    /// [`Error::TaskFolder`] for a folder that cannot be brought into a lane.
    pub(crate) fn read(
        project: &Project,
        dir: &Path,
        folder: &str,
        title: &str,
        level: u8,
        reviewer: Option<String>,
    ) -> Result<Packet, Error> {
        let wrong =
            |why: &str| Error::TaskFolder { path: crate::harmless::line(folder), why: why.to_owned() };
        if folder.is_empty() || folder.chars().any(char::is_control) {
            return Err(wrong("cannot be the folder of a task: it is named to agents, in a line"));
        }
        Ok(Packet {
            folder: folder.to_owned(),
            title: title.to_owned(),
            level: level.min(2),
            reviewer: reviewer.or_else(|| project.settings.swarm.reviewer.clone()),
            files: read_all(dir)?,
            batch: None,
            more: String::new(),
        })
    }

    /// The same as a task of a batch; those who work at it are told `more` besides.
    pub(crate) fn for_task(self, batch: ForTask, more: String) -> Packet {
        Packet { batch: Some(batch), more, ..self }
    }

    /// What it is, in a line.
    pub(crate) fn in_words(&self, worker: &Job) -> String {
        let reviewer = self.reviewer.as_deref().unwrap_or(&worker.agent);
        let how = match self.level {
            0 => "nobody reviews it".to_owned(),
            1 => format!("{reviewer} reviews the plan of each step"),
            _ => format!("{reviewer} reviews the plan and the code of each step"),
        };
        format!("{}, one run after the other; {how}", self.folder)
    }

    /// Refuses a reviewer that cannot be started or be kept from changing things, before anything is made.
    ///
    /// # Errors
    /// As [`Job::agent`].
    pub(crate) fn require_reviewer(&self, project: &Project, worker: &Job) -> Result<(), Error> {
        if self.level == 0 {
            return Ok(());
        }
        let own = worker.named_command();
        let (agent, asked) =
            as_reviewer(self.reviewer.as_deref(), (&worker.agent, &own), worker.model.clone());
        Job::agent(project, &agent, &self.title, project.repo.home(), &asked).map(drop)
    }
}

/// The task of a lane that is made anew, if it is a folder: as it is in the main checkout now, or, where that has none of it, as the lane has
/// it but for how far it has come.
///
/// # Errors
/// As [`Packet::read`].
pub(crate) fn packet_again(project: &Project, lane: &AnyLane) -> Result<Option<Packet>, Error> {
    let Some(at_work) = AtWork::find(project, lane)? else { return Ok(None) };
    let record = at_work.record();
    let (folder, title, level) = (&record.folder, &record.title, record.level);
    let dir = project.repo.home().join(folder);
    let reviewer = record.reviewer.clone();
    if dir.join(PROMPT).is_file() {
        return Packet::read(project, &dir, folder, title, level, reviewer).map(Some);
    }
    let mut packet = Packet::read(project, &lane.path.join(folder), folder, title, level, reviewer)?;
    packet.files.retain(|file| !file.is_status());
    Ok(Some(packet))
}

/// Who reviews, and how: as somebody who only looks.
fn as_reviewer(reviewer: Option<&str>, worker: (&str, &[String]), model: Option<String>) -> (String, Asked) {
    let is_worker = reviewer.is_none_or(|reviewer| reviewer == worker.0);
    let own = if is_worker { worker.1 } else { &[] };
    let asked = Asked {
        permission: Some(Permission::Read),
        model: model.filter(|_| is_worker),
        own: own.iter().map(OsString::from).collect(),
        ..Asked::default()
    };
    (reviewer.unwrap_or(worker.0).to_owned(), asked)
}

/// Starts the work at a task that is a folder under a supervisor, in a lane that nothing runs in, and returns when the first agent runs.
/// `job` is how the work is done, `lock` the lane's run lock, `exe` this program.
///
/// This is the one way in for whoever runs such tasks: the lane is made for the task as for any other, with the text of its PROMPT.md as
/// its prompt; from here on its supervisor goes on from run to run until the task is done, fails, or is stopped. How that went is
/// the lane's state and detail, as of any run; [`super::shown()`] tells how far it is. To end it gracefully, see
/// [`super::super::stop_gently`].
///
/// What the lane has of it already and is not committed there was left by somebody whose work was taken back: it is moved away, to the
/// last run's own folder, and the task begins as it is brought.
///
/// # Errors
/// As [`launch::launch`], and [`Error::TaskFolder`]: then the lane is as it was, without a run.
pub(crate) fn launch_packet(
    project: &Project,
    lane: &AnyLane,
    lock: Guard,
    job: &Job,
    exe: &Path,
    packet: &Packet,
) -> Result<AnyLane, Error> {
    let tree = project.lane(&lane.name)?;
    let folder = Folder::new(&tree.path, &packet.folder);
    let out = folder.kept_out(project)?;
    let record = new_record(project, lane, job, packet, out)?;
    let mut at_work = AtWork::of(project, lane, record)?;
    // Killed from here on, the lane is known to have this task; what is brought is never anybody's uncommitted work.
    at_work.save()?;
    fault::point("packet.noted");
    folder.keep_out(project, out)?;
    if out.copied || out.hidden {
        let (layout, left) = (project.store.layout(), new_id());
        let keep = |file: &Path| layout.run_left(&lane.name, lane.attempt, &left, file);
        folder.move_away(&packet.files, out.copied, &keep)?;
        fault::point("packet.cleared");
    }
    if out.copied {
        folder.bring(&packet.files)?;
    } else if out.hidden {
        folder.bring_status(&packet.files)?;
    }
    at_work.lay_out()?;
    let status = at_work.status()?;
    let record = at_work.record_mut();
    (record.done, record.of) = (status.done(), status.of());
    let done = status.steps.iter().filter(|step| step.is_done());
    record.steps = done
        .map(|step| StepRecord { number: step.number, done_before: true, ..StepRecord::default() })
        .collect();
    at_work.save()?;
    match begin(project, lane, lock, exe, &mut at_work)? {
        Begun::Runs(lane) | Begun::Over(lane) => Ok(lane),
    }
}

/// The record of a task that is about to begin.
fn new_record(
    project: &Project,
    lane: &AnyLane,
    job: &Job,
    packet: &Packet,
    out: KeptOut,
) -> Result<PacketRecord, Error> {
    let spent = lane::spent(project, lane)?;
    let tip = lane
        .branch()
        .map(|branch| project.repo.branch_tip(branch))
        .transpose()?
        .flatten()
        .unwrap_or(lane.start);
    Ok(PacketRecord {
        folder: packet.folder.clone(),
        title: packet.title.clone(),
        agent: job.agent.clone(),
        own: job.named_command(),
        permission: job.level(),
        model: job.model.clone(),
        max_turns: job.max_turns,
        batch: packet.batch.clone(),
        more: packet.more.clone(),
        level: packet.level,
        reviewer: packet.reviewer.clone(),
        copied: out.copied,
        hidden: out.hidden,
        talk: None,
        iterations: 0,
        idle: 0,
        taken: lane.attempt,
        start: tip,
        tip,
        done: 0,
        of: 0,
        limits: job.limits,
        seconds_before: spent.seconds,
        cost_before: spent.cost.map_or(0, |cost| cost.nanos),
        last_review: None,
        steps: Vec::new(),
    })
}

/// Whether a lane has such a task.
///
/// # Errors
/// When its record cannot be read.
pub(crate) fn has_packet(project: &Project, lane: &AnyLane) -> Result<bool, Error> {
    Ok(AtWork::find(project, lane)?.is_some())
}

/// Goes on with a lane's task as [`resume_packet`] does, as another attempt at a task of a batch.
///
/// # Errors
/// As [`resume_packet`].
pub(crate) fn resume_packet_as(
    project: &Project,
    lane: &AnyLane,
    lock: Guard,
    exe: &Path,
    by: Option<&Job>,
    of: ForTask,
) -> Result<Begun, Error> {
    let none = || Error::NoPacket { lane: lane.name.clone() };
    let mut at_work = AtWork::find(project, lane)?.ok_or_else(none)?;
    at_work.record_mut().batch = Some(of);
    at_work.save()?;
    resume_packet(project, lane, lock, exe, by)
}

/// What came of going on.
pub(crate) enum Begun {
    /// An agent runs.
    Runs(AnyLane),
    /// Nothing was left to do.
    Over(AnyLane),
}

/// Goes on with a lane's task where it was, as [`launch_packet`] began it: no step that is done is done again. `by` does the work from now
/// on, if it is another agent or is to be another way. `lock` is the lane's run lock.
///
/// # Errors
/// As [`launch_packet`]; [`Error::NoPacket`] for a lane without such a task, [`Error::PacketOver`] where it is not gone on with.
pub(crate) fn resume_packet(
    project: &Project,
    lane: &AnyLane,
    lock: Guard,
    exe: &Path,
    by: Option<&Job>,
) -> Result<Begun, Error> {
    let none = || Error::NoPacket { lane: lane.name.clone() };
    let mut at_work = AtWork::find(project, lane)?.ok_or_else(none)?;
    at_work.lay_out()?;
    let run = RunRecord::find(&project.store.layout().run_record(&lane.name, lane.attempt))?;
    if let Some(run) = run.filter(|run| run.ended.is_some()) {
        let class = run.class.unwrap_or(RunClass::Crashed);
        let text = run.account.answer.clone();
        // A death of its supervisor says nothing of it.
        let told = Told {
            class,
            detail: run.detail.as_deref(),
            answer: text.as_deref(),
            counts: class == RunClass::Done,
        };
        if let Some(why) = at_work.take_in(&run, told)? {
            return Err(Error::PacketOver { lane: lane.name.clone(), why });
        }
    }
    let spent = lane::spent(project, lane)?;
    let record = at_work.record_mut();
    record.idle = 0;
    if let Some(job) = by {
        (record.agent, record.own) = (job.agent.clone(), job.named_command());
        (record.permission, record.model, record.max_turns) = (job.level(), job.model.clone(), job.max_turns);
        record.limits = job.limits;
    }
    // What it may take, it may take from now on.
    record.seconds_before = spent.seconds;
    record.cost_before = spent.cost.map_or(0, |cost| cost.nanos);
    at_work.save()?;
    begin(project, lane, lock, exe, &mut at_work)
}

/// Starts what comes next.
fn begin(
    project: &Project,
    lane: &AnyLane,
    lock: Guard,
    exe: &Path,
    at_work: &mut AtWork<'_>,
) -> Result<Begun, Error> {
    match at_work.next()? {
        Next::Run { part, step } => {
            let (job, text) = at_work.run(project, lane, part, step)?;
            Ok(Begun::Runs(launch::start(project, lane, lock, &job, exe, Errand::Said(&text))?))
        }
        Next::Done => {
            let detail = at_work.in_words()?;
            let lane = project.update_lane(&lane.name, |record| {
                record.state = LaneState::Done;
                record.detail = Some(detail);
            })?;
            drop(lock);
            Ok(Begun::Over(lane))
        }
        Next::Fail(why) => Err(Error::PacketOver { lane: lane.name.clone(), why }),
    }
}

/// What comes next, for a supervisor that is there.
pub(crate) fn order_of_step(project: &Project, lane: &AnyLane, exe: &Path) -> Result<Order, Error> {
    let over = |why: String| Error::PacketOver { lane: lane.name.clone(), why };
    let mut at_work = AtWork::find(project, lane)?.ok_or_else(|| over("its record is gone".to_owned()))?;
    match at_work.next()? {
        Next::Run { part, step } => {
            let (job, text) = at_work.run(project, lane, part, step)?;
            launch::order(project, lane, &job, exe, Errand::Said(&text))
        }
        Next::Done => Err(over("nothing is left of it".to_owned())),
        Next::Fail(why) => Err(over(why)),
    }
}

/// What is left of a limit.
fn left(limit: Option<u64>, used: u64) -> Option<u64> {
    limit.map(|limit| limit.saturating_sub(used))
}

impl AtWork<'_> {
    /// One run of it: how it is done, and what it is told.
    fn run(
        &mut self,
        project: &Project,
        lane: &AnyLane,
        part: Part,
        number: u32,
    ) -> Result<(Job, String), Error> {
        let limits = self.limits_left(project, lane)?;
        let status = self.status()?;
        let step = status.step(number).cloned().unwrap_or_default();
        let prompt = self.folder().text(PROMPT)?.unwrap_or_default();
        let record = self.record();
        let review = self.review_for(part, number);
        let words = Words {
            title: &record.title,
            folder: self.folder(),
            prompt: &prompt,
            more: &record.more,
            part,
            step: &step,
            review: review.as_deref(),
            range: self.range(project, lane, number)?,
            hidden: record.hidden,
        };
        let text = words.text();
        let (agent, asked) = match part.is_review() {
            true => {
                as_reviewer(record.reviewer.as_deref(), (&record.agent, &record.own), record.model.clone())
            }
            false => (record.agent.clone(), as_worker(record)),
        };
        let job = Job::agent(project, &agent, &text, project.repo.home(), &Asked { limits, ..asked })?;
        let iteration = record.iterations + u32::from(!part.is_review());
        let stint = Stint { part, step: number, iteration, clean: false, traces: None };
        let batch = record.batch.clone();
        let talk = *self.record_mut().talk.get_or_insert(lane.attempt + 1);
        self.save()?;
        Ok((job.in_talk(talk).for_task(batch).with_part(Some(stint)), text))
    }

    /// The commits of a step.
    fn range(
        &self,
        project: &Project,
        lane: &AnyLane,
        number: u32,
    ) -> Result<Option<(crate::git::Oid, crate::git::Oid)>, Error> {
        let Some(tip) = lane.branch().map(|branch| project.repo.branch_tip(branch)).transpose()?.flatten()
        else {
            return Ok(None);
        };
        let from = self.record().step(number).and_then(|step| step.from).unwrap_or(self.record().start);
        Ok(Some((from, tip)))
    }

    /// What may be used still of what all runs together may.
    fn limits_left(&self, project: &Project, lane: &AnyLane) -> Result<RunLimits, Error> {
        let record = self.record();
        let spent = lane::spent(project, lane)?;
        let cost = spent.cost.map_or(0, |cost| cost.nanos);
        let time = left(record.limits.time, spent.seconds.saturating_sub(record.seconds_before));
        let budget = left(record.limits.budget, cost.saturating_sub(record.cost_before));
        let over = |why: &str| Err(Error::PacketOver { lane: lane.name.clone(), why: why.to_owned() });
        match (time, budget) {
            (Some(0), _) => over("it took longer than it may"),
            (_, Some(0)) => over("it cost more than it may"),
            _ => Ok(RunLimits {
                time: time.or(Some(0)),
                budget: budget.or(Some(0)),
                stall: record.limits.stall.or(Some(0)),
            }),
        }
    }
}

fn as_worker(record: &PacketRecord) -> Asked {
    Asked {
        permission: record.permission.as_deref().and_then(Permission::named),
        model: record.model.clone(),
        max_turns: record.max_turns,
        own: record.own.iter().map(OsString::from).collect(),
        ..Asked::default()
    }
}

/// What a run of a task that is a folder is doing, in words.
pub(crate) fn doing(stint: &Stint, agent: &str) -> String {
    let Stint { part, step, iteration, .. } = stint;
    match part {
        Part::Plan => format!("iteration {iteration}: the plan of step {step}"),
        Part::Work => format!("iteration {iteration}: step {step}"),
        Part::PlanReview => format!("{agent} reviews the plan of step {step}"),
        Part::CodeReview => format!("{agent} reviews the code of step {step}"),
    }
}

/// Notes what a lane is like before a run of it.
pub(crate) fn before_run(
    project: &Project,
    lane: &AnyLane,
    attempt: u32,
    stint: Stint,
) -> Result<Stint, Error> {
    match AtWork::find(project, lane)? {
        Some(at_work) => at_work.before_run(attempt, stint),
        None => Ok(stint),
    }
}

/// Says which step a status is at.
pub(super) fn at_step(status: &Status) -> Option<String> {
    let open = status.open()?;
    let of = status.steps.len();
    let at = status.steps.iter().position(|step| step.number == open.number)? + 1;
    Some(format!("{} ({at} of {of})", called(open)))
}
