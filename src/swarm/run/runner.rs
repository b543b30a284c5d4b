//! Owns the loop of a batch's process: hear, write down, decide, do.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use super::agents::Starting;
use super::checks::ChecksThen;
use super::closing::note_landed;
use super::evidence::lanes_of;
use super::known::Known;
use super::landing::{Landed, Lander};
use super::told::told;
use crate::lane::{self, Project};
use crate::process;
use crate::store::records::LaneRecord;
use crate::store::{Guard, Record};
use crate::swarm::batch::{Batch, Facts, Log, SchedulerRecord, wake_others};
use crate::swarm::schedule::{Action, Event, Fate, State};
use crate::swarm::{Error, Ledger};
use crate::{fault, interrupt};

/// How long what could not be written waits for the next try.
const FULL_DISK: Duration = Duration::from_millis(500);

/// How often room is looked for that nobody tells of: runs that are of no batch end, too.
const ROOM: Duration = Duration::from_secs(1);

/// What the loop hears.
pub(super) enum Heard {
    /// Somebody wants something, or something may be free now.
    Woken,
    /// Nobody holds the lock of a run any more.
    RunOver(usize, u32),
    /// A landing is over.
    Landed(Landed),
    /// Why a landing could not be tried; it is tried again.
    Delayed(Vec<usize>, String),
    /// A lane is ready, or why it is not.
    Ready(usize, Option<String>),
    /// A conflict is over, or given up.
    Conflict(usize, Event, Box<Facts>),
}

/// One batch, and whoever works on it.
pub(super) struct Runner<'p> {
    pub(super) project: &'p Project,
    /// This program.
    pub(super) exe: PathBuf,
    pub(super) batch: Batch,
    pub(super) state: State,
    pub(super) known: Known,
    pub(super) tell: Sender<Heard>,
    /// The lanes, by number.
    pub(super) lanes: BTreeMap<usize, String>,
    /// Why lanes could not be made.
    pub(super) unmade: BTreeMap<usize, String>,
    /// Runs that are to start and wait for room.
    pub(super) starting: Vec<Starting>,
    /// Runs that wait for whoever works in their lane.
    pub(super) busy: BTreeSet<(usize, u32)>,
    /// Runs whose end is waited for.
    pub(super) watched: BTreeSet<(usize, u32)>,
    pub(super) lander: Lander,
    pub(super) checks: ChecksThen,
    /// Tasks whose conflict somebody is at.
    pub(super) resolving: BTreeSet<usize>,
    /// Lanes are not got ready any more.
    pub(super) cold: Arc<AtomicBool>,
    /// What is to be told to the scheduler next.
    pub(super) due: VecDeque<(Event, Facts)>,
    hear: Receiver<Heard>,
    log: Log,
    _lock: Guard,
}

/// Goes on with a batch until it is over, or paused with nothing on its way. `lock` is the batch's. `begun` is called as soon as
/// wishes are heard.
///
/// # Errors
/// When the batch cannot be read.
pub(crate) fn run(
    project: &Project,
    id: &str,
    exe: &Path,
    lock: Guard,
    begun: impl FnOnce(),
) -> Result<(), Error> {
    interrupt::arm();
    let batch = Batch::load(project, id)?;
    let (log, lines) = Log::open(&project.store.layout().batch_log(id))?;
    let (tell, hear) = mpsc::channel();
    listen(&tell)
        .map_err(|e| super::super::BatchError::NotStarted { id: id.to_owned(), why: e.to_string() })?;
    let me = std::process::id();
    SchedulerRecord { pid: me, birth: process::birth_of(me) }
        .save(&project.store.layout().batch_scheduler(id))?;
    begun();
    // Whoever went on with it before may have died in the middle of something.
    lane::recover(project)?;
    let checks = ChecksThen::of(project)?;
    let lander = Lander::begin(project, checks.clone(), tell.clone());
    let mut runner = Runner {
        project,
        exe: exe.to_owned(),
        state: batch.state(&lines),
        known: Known::of(&batch, &lines),
        batch,
        tell,
        lanes: BTreeMap::new(),
        unmade: BTreeMap::new(),
        starting: Vec::new(),
        busy: BTreeSet::new(),
        watched: BTreeSet::new(),
        lander,
        checks,
        resolving: BTreeSet::new(),
        cold: Arc::default(),
        due: VecDeque::new(),
        hear,
        log,
        _lock: lock,
    };
    let done = runner.begin().and_then(|()| runner.go_on());
    if let Err(e) = &done
        && interrupt::check().is_ok()
    {
        // Whoever looks at the batch has to see why nobody goes on with it.
        drop(runner.note(&format!("nobody goes on with this batch any more: {e}"), &[]));
    }
    done
}

/// Has signals heard: those that wake, and those that end this process.
fn listen(tell: &Sender<Heard>) -> std::io::Result<()> {
    let (mut ear, mouth) = UnixStream::pair()?;
    process::hear_wakes(&mouth)?;
    // It is heard for as long as this process lives.
    std::mem::forget(interrupt::hear(&mouth)?);
    let tell = tell.clone();
    std::thread::Builder::new().spawn(move || {
        let _open = mouth;
        while ear.read(&mut [0]).is_ok_and(|n| n > 0) && tell.send(Heard::Woken).is_ok() {}
    })?;
    Ok(())
}

impl Runner<'_> {
    /// Begins the batch, or takes up what another process left.
    fn begin(&mut self) -> Result<(), Error> {
        for (number, lane) in lanes_of(self.project, self.batch.id())? {
            self.lanes.insert(number, lane.name);
        }
        // One that is over goes on only when a person wants it to.
        if self.state.outcome_if_over().is_none() {
            self.note_taken_back()?;
        }
        self.claim()?;
        self.look_for_room()?;
        if self.known.begun {
            let runs = self.find_runs()?;
            self.due.push_back((Event::TakenUp { runs: runs.clone() }, Facts::default()));
            self.take_due()?;
            for (task, attempt) in runs {
                self.watch(task, attempt);
            }
        } else {
            self.due.push_back((Event::Begun, Facts::default()));
        }
        self.take_due()
    }

    /// Hears and acts until there is nothing left to hear of.
    fn go_on(&mut self) -> Result<(), Error> {
        loop {
            self.hear_wishes()?;
            self.take_due()?;
            interrupt::check().map_err(crate::store::Error::from)?;
            let over = self.state.outcome_if_over().is_some();
            if over || self.state.pause_reason().is_some() {
                if over {
                    self.note_in_plan();
                    // The last thing: as long as it has tasks, what an end is made of may be owed.
                    Ledger::release_all(self.project, self.batch.id())?;
                }
                wake_others(self.project, self.batch.id());
                return Ok(());
            }
            let limited = self.is_short_of_room();
            let heard = match limited {
                true => self.hear.recv_timeout(ROOM),
                false => self.hear.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match heard {
                Ok(heard) => self.act_on(heard)?,
                Err(_) => self.look_around()?,
            }
        }
    }

    fn act_on(&mut self, heard: Heard) -> Result<(), Error> {
        match heard {
            Heard::Woken => self.look_around(),
            Heard::RunOver(task, attempt) => self.see_run_end(task, attempt),
            Heard::Landed(landed) => self.take_landed(landed),
            Heard::Delayed(tasks, why) => self.note(&format!("the landing is tried again: {why}"), &tasks),
            Heard::Ready(lane, why) => self.see_ready(lane, why),
            Heard::Conflict(task, event, facts) => {
                self.resolving.remove(&task);
                self.due.push_back((event, *facts));
                Ok(())
            }
        }
    }

    /// Looks what may have become free.
    fn look_around(&mut self) -> Result<(), Error> {
        self.claim_again()?;
        self.look_for_room()?;
        self.start_waiting()
    }

    /// Tells the scheduler all that is due, and does what it answers.
    pub(super) fn take_due(&mut self) -> Result<(), Error> {
        while let Some((event, facts)) = self.due.pop_front() {
            self.take(&event, &facts)?;
        }
        Ok(())
    }

    /// Writes an event down, tells the scheduler, and does what it answers.
    fn take(&mut self, event: &Event, facts: &Facts) -> Result<(), Error> {
        let failed_before = self.failed_before(event);
        let actions = self.write_down(event, facts)?;
        self.count_failures(event)?;
        self.note_stop_all(event, &actions)?;
        self.make_lanes(&actions)?;
        let is_known = |action: &&Action| matches!(action, Action::MarkFailed { task, .. } if failed_before.contains(task));
        for action in actions.iter().filter(|action| !is_known(action)) {
            fault::point("batch.action");
            self.carry_out(action)?;
        }
        self.show_progress();
        Ok(())
    }

    /// Writes an event down and tells the scheduler. Returns what is to be done.
    pub(super) fn write_down(&mut self, event: &Event, facts: &Facts) -> Result<Vec<Action>, Error> {
        fault::point("batch.event");
        let line = self.insist(|log| log.add(event, facts.clone()))?;
        fault::point("batch.written");
        self.known.take(&line);
        Ok(self.state.on(event))
    }

    /// The tasks that had failed before another process went on with the batch: the event log has them.
    fn failed_before(&self, event: &Event) -> Vec<usize> {
        let has_failed = |task: &usize| matches!(self.state.fate(*task), Some(Fate::Failed(_)));
        match event {
            Event::TakenUp { .. } => (0..self.batch.tasks.len()).filter(has_failed).collect(),
            _ => Vec::new(),
        }
    }

    /// Writes that a failure has everything stopped that still runs.
    fn note_stop_all(&mut self, event: &Event, actions: &[Action]) -> Result<(), Error> {
        let stops = |action: &Action| matches!(action, Action::StopRun { hard: true, .. });
        let Event::Ended { task, .. } = event else { return Ok(()) };
        match actions.iter().filter(|action| stops(action)).count() {
            0 => Ok(()),
            count => {
                let name = self.batch.name(*task);
                let agents = if count == 1 { "1 agent is".to_owned() } else { format!("{count} agents are") };
                self.note(
                    &format!("'{name}' failed and stop-all is set: {agents} being stopped at once"),
                    &[],
                )
            }
        }
    }

    /// Writes a remark.
    pub(super) fn note(&mut self, text: &str, tasks: &[usize]) -> Result<(), Error> {
        let line = self.insist(|log| log.note(text, tasks))?;
        self.known.take(&line);
        Ok(())
    }

    /// Writes what must not get lost because a disk is full: nothing goes on before it is there.
    fn insist<T>(
        &mut self,
        mut write: impl FnMut(&mut Log) -> Result<T, crate::store::Error>,
    ) -> Result<T, Error> {
        loop {
            match write(&mut self.log) {
                Ok(done) => return Ok(done),
                Err(e) => self.project.listener.warn(e.to_string()),
            }
            interrupt::check().map_err(crate::store::Error::from)?;
            // Without its folder there is no batch any more.
            if !self.project.store.layout().batch(self.batch.id()).is_dir() {
                return Err(crate::swarm::BatchError::Cleaned { id: self.batch.id().to_owned() }.into());
            }
            std::thread::sleep(FULL_DISK);
        }
    }

    fn carry_out(&mut self, action: &Action) -> Result<(), Error> {
        match action {
            Action::MakeLane { lane, task, from } => self.make_lane(*lane, *task, *from),
            Action::SetUpLane { lane } => self.set_up(*lane),
            Action::StartRun { task, lane, attempt, from } => {
                let starting = Starting { task: *task, lane: *lane, attempt: *attempt, from: *from };
                self.start_run(starting)
            }
            Action::StopRun { task, attempt, hard } => self.stop_run(*task, *attempt, *hard),
            Action::TakeBack { lane, task, to } => self.take_back(*lane, *task, *to),
            Action::Land { tasks, .. } => {
                self.land(tasks);
                Ok(())
            }
            Action::Resolve { task } => self.resolve(*task),
            Action::StopResolve { task, hard } => self.stop_resolve(*task, *hard),
            Action::Release { task } => self.release(*task),
            Action::DiscardLane { lane } => self.discard_lane(*lane),
            Action::MarkOver { .. } | Action::MarkPaused { .. } | Action::MarkFailed { .. } => {
                let proof = match action {
                    Action::MarkOver { outcome } => self.verify(*outcome)?,
                    _ => None,
                };
                told(self.project, &self.batch, &self.known, (action, proof.as_ref()));
                Ok(())
            }
            // What they say is in the log, for whoever reads it with the scheduler's eyes.
            Action::Queue { .. }
            | Action::KeepLane { .. }
            | Action::MarkWaiting { .. }
            | Action::MarkSkipped { .. }
            | Action::MarkSetAside { .. } => Ok(()),
        }
    }

    /// Notes what landed in the files of the plan. It has landed, also where that cannot be noted.
    fn note_in_plan(&self) {
        // What is on a branch of its own is not done yet for anybody else.
        if !self.batch.record.auto_merge {
            return;
        }
        let record = &self.batch.record;
        let noted = match self.project.repo.branch_tip(&record.base) {
            Ok(Some(tip)) => note_landed(self.project, record, &record.base, tip).map(drop),
            Ok(None) => return,
            Err(e) => Err(e.into()),
        };
        if let Err(e) = noted {
            self.project.listener.warn(format!("what has landed could not be noted in the plan: {e}"));
        }
    }

    /// The record of a lane, if it is there.
    pub(super) fn lane(&self, number: usize) -> Result<Option<LaneRecord>, Error> {
        let Some(name) = self.lanes.get(&number) else { return Ok(None) };
        self.lane_named(name)
    }

    /// The same by its name, which another one may have by now.
    pub(super) fn lane_named(&self, name: &str) -> Result<Option<LaneRecord>, Error> {
        own_lane(self.project, self.batch.id(), name)
    }
}

/// Finds the lane of this name, if it is there and of this batch.
pub(super) fn own_lane(project: &Project, batch: &str, name: &str) -> Result<Option<LaneRecord>, Error> {
    let own = |lane: &LaneRecord| lane.batch.as_ref().is_some_and(|of| of.batch == batch);
    match project.lane(name) {
        Ok(lane) => Ok(Some(lane).filter(own)),
        Err(lane::Error::Unknown { .. } | lane::Error::NoTree { .. }) => Ok(None),
        Err(e) => Err(e.into()),
    }
}
