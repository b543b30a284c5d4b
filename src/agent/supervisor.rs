//! Owns the process that watches a lane's runs: it holds the run lock for as long as one lasts or is to be tried again.

mod steps;

use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;

use super::Error;
use super::afresh::Afresh;
use super::again::Patience;
use super::already::{self, Found};
use super::begin::{adopt_lock, note_start, say};
use super::error::with_causes;
use super::fence::Fence;
use super::follow_up::FollowUp;
use super::launch::{self, STARTED};
use super::order::Order;
use super::outfit::new_session;
use super::settle::{Settle, Verdict};
use super::watch::{Ended, Watch};
use super::wishes::Wishes;
use crate::lane::{self, Inbox, Project, Traces};
use crate::store::records::{AnyLane, LaneState, RunClass, RunRecord};
use crate::store::{LockName, Record};
use crate::{event, process};

/// How long what came of a run is tried to be written: as long as somebody may need to make room.
const INSISTENCE: Duration = Duration::from_mins(10);

/// How long until the second try.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// How long between tries at most.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Supervises a lane's runs to their end, and starts what follows; `exe` is this program. Standard input carries the run lock; on
/// standard output the starter waits for a word.
pub(crate) fn supervise(
    project: &Project,
    name: &str,
    attempt: u32,
    words: Vec<OsString>,
    exe: &Path,
) -> Result<(), Error> {
    process::leave_session();
    process::adopt_orphans();
    let lock = adopt_lock(project, &LockName::Run(name.to_owned()))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| process::Error::Start { program: "the event loop".into(), source })?;
    // Before any agent exists, so that no early signal is missed.
    let wishes = {
        let _inside = runtime.enter();
        Wishes::listen()?
    };
    let mark = match std::env::var(process::MARK).ok().filter(|mark| !mark.is_empty()) {
        Some(mark) => mark,
        None => new_session()?,
    };
    let mut supervisor = Supervisor {
        project,
        exe,
        lane: project.any_lane(name)?,
        runtime,
        wishes,
        mark,
        answered: false,
        hurries: false,
        former: Vec::new(),
        afresh: Afresh::default(),
        ended_as: None,
        follow_up: FollowUp::default(),
    };
    let first = Order::of(project, &supervisor.lane, attempt, words, Vec::new());
    let done = first.and_then(|order| supervisor.work(order));
    // Whoever wants the lane from now on finds it as its record says, and nothing in its inbox that it was left to tell.
    drop(lock);
    if let Err(e) = &done
        && !supervisor.answered
    {
        // The starter still listens: this is its answer.
        say(&with_causes(e));
    }
    supervisor.follow_up.begin(project, &supervisor.lane, exe);
    done
}

/// One lane's supervisor.
struct Supervisor<'a> {
    project: &'a Project,
    /// This program.
    exe: &'a Path,
    lane: AnyLane,
    runtime: Runtime,
    wishes: Wishes,
    /// What marks the processes of its runs.
    mark: String,
    /// Whether the starter has its answer.
    answered: bool,
    /// How the runs before ended that are being tried again.
    former: Vec<RunClass>,
    /// Whether somebody wants this process to end, whatever could not be written.
    hurries: bool,
    /// Which of its runs went on in a new conversation.
    afresh: Afresh,
    /// How the last run ended, by its number, until what was sent has reached its agent: so its lane ends if that cannot be told.
    ended_as: Option<(u32, Verdict)>,
    /// What is to follow once the run lock is free.
    follow_up: FollowUp,
}

/// What comes after a run.
enum Next {
    /// Nothing.
    End,
    /// The same once more, after a while.
    Again(Duration),
    /// What this run was asked, in a new conversation.
    Afresh(u32),
    /// What was sent to the lane meanwhile.
    Message,
    /// The next run of a task that is a folder.
    Step,
}

impl Supervisor<'_> {
    /// Runs `order`, and whatever comes after it, until nothing does.
    fn work(&mut self, mut order: Order) -> Result<(), Error> {
        loop {
            let next = match self.one(&order) {
                Ok(Next::End) => None,
                Ok(Next::Again(wait)) => self.again(&order, wait)?,
                Ok(Next::Afresh(first)) => self.go_on_afresh(first)?,
                Ok(Next::Message) => self.order_of_letters(&order)?,
                Ok(Next::Step) => self.order_of_step()?,
                Err(e) => return Err(self.give_up(&order, e)),
            };
            match next {
                Some(next) => order = next,
                None => return Ok(()),
            }
        }
    }

    /// One run: from its start to what follows it.
    fn one(&mut self, order: &Order) -> Result<Next, Error> {
        let ended = self.watch(order)?;
        Fence::finish(self.project, &self.lane, order.attempt);
        let (project, lane) = (self.project, self.lane.clone());
        let settle = Settle { project, lane: &lane, attempt: order.attempt, order, ended: &ended };
        let mut verdict = settle.judge();
        if lane.looks_apart()
            && let Err(e) = lane::close_apart(project, &lane)
        {
            project.listener.warn(e.to_string());
        }
        let stands = self.take_in(&settle, &verdict)?;
        self.ended_as = Some((order.attempt, verdict.clone()));
        let mut hears = hears(order, &verdict) && stands.is_none() && !self.wraps_up();
        let mut untold = None;
        if hears && self.has_letters(order) {
            untold = self.go_on_with_letters(&settle, &verdict)?;
            if untold.is_none() {
                return Ok(Next::Message);
            }
            hears = false;
        }
        let next = match order.stint {
            Some(_) => self.next_step(order, &mut verdict, stands),
            None => self.next(order, &mut verdict),
        };
        if !matches!(next, Next::End) {
            let then =
                if matches!(next, Next::Step) { event::Name::AgentStep } else { event::Name::AgentRetry };
            self.lane = self.insist(|| settle.write_and_go_on(&verdict, then))?;
            self.ended_as = None;
            return Ok(next);
        }
        if verdict.state == LaneState::NoChange {
            self.look_whether_done_before(order, &mut verdict);
        }
        loop {
            verdict.detail = with_remark(verdict.detail, untold.take());
            self.ended_as = Some((order.attempt, verdict.clone()));
            let inbox = Inbox::of(project, &lane.name);
            if let Some(end) =
                self.insist(|| settle.write(&verdict, || hears && inbox.has_for(order.talk)))?
            {
                (self.lane, self.follow_up) = end;
                return Ok(Next::End);
            }
            // It was sent while this was looked at.
            untold = self.go_on_with_letters(&settle, &verdict)?;
            if untold.is_none() {
                return Ok(Next::Message);
            }
            hears = false;
        }
    }

    /// Whether anything waits for the conversation of a run.
    fn has_letters(&self, order: &Order) -> bool {
        Inbox::of(self.project, &self.lane.name).has_for(order.talk)
    }

    /// Writes how a run ended, and that it goes on with what was sent; why not, if that cannot be told.
    fn go_on_with_letters(
        &mut self,
        settle: &Settle<'_>,
        verdict: &Verdict,
    ) -> Result<Option<String>, Error> {
        if let Err(e) = launch::try_messages(self.project, &self.lane, settle.order.talk) {
            return Ok(Some(untold(&e)));
        }
        self.former.clear();
        self.afresh = Afresh::default();
        self.lane = self.insist(|| settle.write_and_go_on(verdict, event::Name::AgentTold))?;
        Ok(None)
    }

    /// What goes on with what was sent. None when it cannot: the lane is as its run has left it then.
    fn order_of_letters(&mut self, order: &Order) -> Result<Option<Order>, Error> {
        match launch::order_of_messages(self.project, &self.lane, order.talk, self.exe) {
            Ok(order) => Ok(Some(order)),
            Err(e) => {
                self.end_as_before(&untold(&e))?;
                Ok(None)
            }
        }
    }

    fn watch(&mut self, order: &Order) -> Result<Ended, Error> {
        let (project, lane) = (self.project, self.lane.clone());
        let limits = order.limits;
        let (attempt, mark, exe) = (order.attempt, &self.mark, self.exe);
        let watch = Watch { project, lane: &lane, attempt, order, limits, mark, exe };
        let (answered, mark, now) = (&mut self.answered, &self.mark, &mut self.lane);
        let before = &mut self.ended_as;
        let started = |group: u32| {
            *now = note_start(project, &lane, order.attempt, group, mark)?;
            // What it tells is gone from the inbox by now.
            drop(order.taken.take());
            *before = None;
            if !*answered {
                say(STARTED);
                *answered = true;
            }
            Ok(())
        };
        let wishes = &mut self.wishes;
        self.runtime.block_on(order.launcher.run(&watch, wishes, started))
    }

    /// What comes after a run, by what came of it. The verdict says so too.
    fn next(&mut self, order: &Order, verdict: &mut Verdict) -> Next {
        // What was only looked at is nowhere but in the context that was full.
        if verdict.class == RunClass::ContextFull && self.lane.only_looks() {
            return Next::End;
        }
        if verdict.class == RunClass::ContextFull {
            let first = self.afresh.after(order.attempt, self.project.settings.iterations);
            let add =
                if first.is_some() { "it goes on in a new conversation" } else { "it has had its runs" };
            verdict.detail = verdict.detail.take().map(|why| format!("{why}; {add}"));
            return first.map_or(Next::End, Next::Afresh);
        }
        self.tried_again(order, verdict)
    }

    /// The same for a run that failed.
    fn tried_again(&mut self, order: &Order, verdict: &mut Verdict) -> Next {
        if verdict.state == LaneState::Done || verdict.state == LaneState::NoChange || !order.may_try_again {
            return Next::End;
        }
        self.former.push(verdict.class);
        let patience = Patience::of(&self.project.settings);
        let patience = if order.of_batch { patience.of_batch() } else { patience };
        match patience.wait(&self.former) {
            None => Next::End,
            Some(wait) => {
                let again = format!("{}; it is tried again in {} s", verdict.class, wait.as_secs());
                verdict.detail =
                    Some(verdict.detail.take().map_or_else(|| again.clone(), |d| format!("{d}: {again}")));
                Next::Again(wait)
            }
        }
    }

    /// A run that changed nothing is done all the same when there was nothing to do.
    fn look_whether_done_before(&mut self, order: &Order, verdict: &mut Verdict) {
        let Ok(lane) = self.lane.clone().with_tree() else { return };
        let looking = already::look(self.project, &lane, order.attempt, &mut self.wishes);
        let found = self.runtime.block_on(looking).unwrap_or_else(|e| {
            Found::Open(Some(format!("whether its task had been done before could not be found out: {e}")))
        });
        match found {
            Found::Done(how) => {
                (verdict.state, verdict.already) = (LaneState::Done, true);
                verdict.detail = Some(how.to_owned());
            }
            Found::Open(why) => verdict.detail = verdict.detail.take().or(why),
        }
    }

    /// Waits, brings the lane back to where it was before the run, and says what to run then. None when somebody stops it
    /// meanwhile, or nothing can be tried again.
    fn again(&mut self, order: &Order, wait: Duration) -> Result<Option<Order>, Error> {
        let before = self.traces();
        let stopped = self.runtime.block_on(async {
            tokio::select! {
                () = self.wishes.any() => true,
                () = tokio::time::sleep(wait) => false,
            }
        });
        if stopped {
            self.end(LaneState::Stopped, "stopped before it was tried again")?;
            return Ok(None);
        }
        let run = match self.make_room(order.attempt, before) {
            Ok(run) => run,
            Err(why) => {
                self.end(LaneState::Failed, &format!("it is not tried again: {why}"))?;
                return Ok(None);
            }
        };
        // The work of what it was told meanwhile is taken back too.
        let put_back = Inbox::of(self.project, &self.lane.name).put_back(order.attempt);
        if let Err(e) = put_back.map_err(|e| e.to_string()).and_then(|()| self.put_status_back(order)) {
            self.end(LaneState::Failed, &format!("it is not tried again: {e}"))?;
            return Ok(None);
        }
        match launch::order_again(self.project, &self.lane, &run, self.exe) {
            Ok(order) => Ok(Some(order)),
            Err(e) => {
                self.end(LaneState::Failed, &format!("it could not be tried again: {e}"))?;
                Ok(None)
            }
        }
    }

    /// What the lane is like; one that only looks has nothing of its own.
    fn traces(&self) -> Result<Option<Traces>, lane::Error> {
        self.lane.clone().with_tree().ok().map(|lane| Traces::of(self.project, &lane)).transpose()
    }

    /// Brings the lane back to where it was before a run, and notes in that run's record where its work is kept. What a person
    /// did there since stays: then why not is returned.
    fn make_room(
        &self,
        attempt: u32,
        before: Result<Option<Traces>, lane::Error>,
    ) -> Result<RunRecord, String> {
        let project = self.project;
        let now = self.traces().map_err(|e| e.to_string())?;
        if before.map_err(|e| e.to_string())? != now {
            return Err("somebody worked in the lane meanwhile, and that stays as it is".to_owned());
        }
        let path = project.store.layout().run_record(&self.lane.name, attempt);
        let mut run = RunRecord::load(&path).map_err(|e| e.to_string())?;
        if self.lane.works_in_place() {
            return match lane::has_changed_in_place(project, &self.lane, &run) {
                Ok(false) => Ok(run),
                Ok(true) => Err("the main checkout is not as it was, and is not put back".to_owned()),
                Err(e) => Err(e.to_string()),
            };
        }
        let Ok(lane) = self.lane.clone().with_tree() else { return Ok(run) };
        let why = format!("what run {attempt} of lane {} had done when it failed", lane.name);
        let kept = lane::put_back(project, &lane, run.tip_before, &why).map_err(|e| e.to_string())?;
        if let Some(kept) = kept.in_words() {
            run.detail = Some(run.detail.take().map_or_else(|| kept.clone(), |why| format!("{why}; {kept}")));
            // It is kept, whether that could be noted or not.
            drop(run.save(&path));
        }
        Ok(run)
    }

    /// Leaves the lane as it is, and says how to go on with what its run of this number was asked.
    fn go_on_afresh(&mut self, first: u32) -> Result<Option<Order>, Error> {
        let path = self.project.store.layout().run_record(&self.lane.name, first);
        let order = RunRecord::load(&path)
            .map_err(Error::from)
            .and_then(|first| launch::order_afresh(self.project, &self.lane, &first, self.exe));
        match order {
            Ok(order) => Ok(Some(order)),
            Err(e) => {
                self.end(LaneState::Failed, &format!("it could not go on in a new conversation: {e}"))?;
                Ok(None)
            }
        }
    }

    /// Writes what must not get lost because a disk is full: it is tried until there is room, somebody wants the supervisor to
    /// end, or too long has passed. What is not there any more is not waited for.
    fn insist<T>(&mut self, mut write: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
        let since = Instant::now();
        let mut wait = FIRST_WAIT;
        loop {
            let e = match write() {
                Err(e) if !self.hurries && !is_of_nothing(&e) && since.elapsed() < INSISTENCE => e,
                done => return done,
            };
            self.hurries = self.runtime.block_on(async {
                tokio::select! {
                    () = self.wishes.any() => true,
                    () = tokio::time::sleep(wait) => false,
                }
            });
            if self.hurries {
                return Err(e);
            }
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    /// The lane has no run any more.
    fn end(&mut self, state: LaneState, why: &str) -> Result<(), Error> {
        self.end_with(state, Some(why.to_owned()), false)
    }

    fn end_with(&mut self, state: LaneState, detail: Option<String>, already: bool) -> Result<(), Error> {
        let (project, name) = (self.project, self.lane.name.clone());
        self.lane = self.insist(|| {
            Ok(project.update_lane(&name, |record| {
                record.state = state;
                record.detail.clone_from(&detail);
                record.already = already;
            })?)
        })?;
        let told = format!("lane '{}': {state} ({})", self.lane.name, detail.unwrap_or_default());
        self.project.tell(event::Name::RunEnded, Some(&self.lane), told);
        Ok(())
    }

    /// The lane has no run any more, and is as the last one left it, with this remark.
    fn end_as_before(&mut self, why: &str) -> Result<(), Error> {
        let Some((_, verdict)) = self.ended_as.take() else { return self.end(LaneState::Failed, why) };
        let detail = with_remark(verdict.detail, Some(why.to_owned()));
        self.follow_up = FollowUp::prepare(self.project, &self.lane, verdict.state, true);
        self.end_with(verdict.state, detail, verdict.already)
    }

    /// Ends the lane after an error that left nobody to do so; the error.
    fn give_up(&mut self, order: &Order, e: Error) -> Error {
        // The starter listens still, and puts the lane back.
        if !self.answered {
            return e;
        }
        let why = with_causes(&e);
        drop(launch::note_not_started(self.project, &self.lane.name, order.attempt, &why));
        let ended = match self.ended_as.as_ref().map(|(attempt, _)| *attempt == order.attempt) {
            Some(true) if order.resolves => self.end(LaneState::Conflict, &why),
            Some(true) => self.end_as_before(&format!("not all of that could be written down: {why}")),
            Some(false) => self.end_as_before(&untold(&e)),
            None => self.end(lane::state_after(self.project, &self.lane.name, LaneState::Failed), &why),
        };
        // Where nothing can be written, the next command finds it as that of a dead supervisor.
        drop(ended);
        e
    }
}

/// Whether the agent of a run that ended so is there to be told more.
fn hears(order: &Order, verdict: &Verdict) -> bool {
    let ended_well = matches!(verdict.state, LaneState::Done | LaneState::NoChange);
    let by_itself = matches!(verdict.class, RunClass::Failed | RunClass::Refused | RunClass::MaxTurns);
    (ended_well || by_itself) && !order.resolves && order.can_be_sent_to
}

fn untold(e: &Error) -> String {
    let why = with_causes(e);
    format!("what was sent could not be told: {}", why.strip_suffix("; nothing was made").unwrap_or(&why))
}

fn with_remark(detail: Option<String>, remark: Option<String>) -> Option<String> {
    let parts: Vec<String> = detail.into_iter().chain(remark).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Whether an error says that something is not there, such as a repository that was removed.
fn is_of_nothing(e: &Error) -> bool {
    let first: &(dyn std::error::Error + 'static) = e;
    std::iter::successors(Some(first), |e| e.source())
        .filter_map(|e| e.downcast_ref::<std::io::Error>())
        .any(|e| e.kind() == std::io::ErrorKind::NotFound)
}
