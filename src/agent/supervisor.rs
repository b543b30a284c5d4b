//! Owns the process that watches a lane's runs: it holds the run lock for as long as one lasts or is to be tried again.

mod steps;
mod tries;

use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;

use super::Error;
use super::afresh::Afresh;
use super::already::{self, Found};
use super::auto_snapshots;
use super::begin::{adopt_lock, note_start, say};
use super::fence::Fence;
use super::follow_up::FollowUp;
use super::launch::{self, STARTED};
use super::order::Order;
use super::outfit::new_session;
use super::settle::{Settle, Verdict, with_remark};
use super::watch::{Ended, Watch};
use super::wishes::Wishes;
use crate::explain::with_causes;
use crate::lane::{self, Inbox, Project};
use crate::store::records::{AnyLane, LaneState, RunClass, RunRecord};
use crate::store::{LockName, Record};
use crate::{event, process};
use tries::{Again, SPENT, Tries};

/// How long what came of a run is tried to be written: as long as somebody may need to make room.
const INSISTENCE: Duration = Duration::from_mins(10);

/// How long after a signal asked the supervisor to exit.
const HURRIED: Duration = Duration::from_secs(1);

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
        tries: Tries::default(),
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
    /// The runs of what was asked last, this one included.
    tries: Tries,
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
    Again(Again),
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
                Ok(Next::Again(again)) => self.again(&order, again)?,
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
        let outside = Fence::finish(self.project, &self.lane, order.attempt);
        let (project, lane) = (self.project, self.lane.clone());
        let settle = Settle { project, lane: &lane, attempt: order.attempt, order, ended: &ended };
        let mut verdict = settle.judge(outside);
        if lane.looks_apart()
            && let Err(e) = lane::close_apart(project, &lane)
        {
            project.listener.warn(e.to_string());
        }
        self.tries.take_in(order, &ended);
        let stands = self.take_in(&settle, &verdict)?;
        self.ended_as = Some((order.attempt, verdict.clone()));
        let mut hears = hears(order, &verdict) && stands.is_none() && !self.wraps_up();
        let mut untold = None;
        if hears && self.tries.has_spent_all {
            // What is sent is told to a run of its own, and that only by somebody who sees what this one has cost.
            hears = false;
            untold = self.has_letters(order).then(|| SPENT.to_owned());
        }
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
        self.tries = Tries::default();
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
            // The one that was started before the run may have ended, as no agent was at work yet.
            auto_snapshots::ensure_running(project, exe);
            if !*answered {
                say(STARTED);
                *answered = true;
            }
            Ok(())
        };
        auto_snapshots::ensure_running(project, exe);
        let wishes = &mut self.wishes;
        self.runtime.block_on(async {
            tokio::select! {
                ended = order.launcher.run(&watch, wishes, started) => ended,
                never = auto_snapshots::keep_running(project, exe) => match never {},
            }
        })
    }

    /// What comes after a run, by what came of it. The verdict says so too.
    fn next(&mut self, order: &Order, verdict: &mut Verdict) -> Next {
        if !order.resolves && self.wraps_up() {
            wrap_up(verdict);
            return Next::End;
        }
        // What was only looked at is nowhere but in the context that was full.
        if verdict.class == RunClass::ContextFull && self.lane.only_looks() {
            return Next::End;
        }
        if verdict.class == RunClass::ContextFull && self.tries.has_spent_all {
            verdict.detail = with_remark(verdict.detail.take(), Some(SPENT.to_owned()));
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

    /// Leaves the lane as it is, and says how to go on with what its run of this number was asked.
    fn go_on_afresh(&mut self, first: u32) -> Result<Option<Order>, Error> {
        let path = self.project.store.layout().run_record(&self.lane.name, first);
        let order = RunRecord::load(&path).map_err(Error::from).and_then(|first| {
            launch::order_afresh(self.project, &self.lane, &first, self.tries.spent, self.exe)
        });
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
            // `stop` waits for this process to exit, and its signal may have come before there was anything to write.
            let insistence = if self.wishes.received() { HURRIED } else { INSISTENCE };
            match write() {
                Err(e) if !is_of_nothing(&e) && since.elapsed() < insistence => {}
                done => return done,
            }
            self.runtime.block_on(async {
                tokio::select! {
                    () = self.wishes.any() => {}
                    () = tokio::time::sleep(wait) => {}
                }
            });
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

/// Calls a run stopped that ended well after it was asked to wrap up: its work may be half of its task.
fn wrap_up(verdict: &mut Verdict) {
    if matches!(verdict.class, RunClass::Done | RunClass::ContextFull) {
        (verdict.state, verdict.class) = (LaneState::Stopped, RunClass::Stopped);
        verdict.detail = with_remark(verdict.detail.take(), Some("asked to wrap up".to_owned()));
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

/// Whether an error says that something is not there, such as a repository that was removed.
fn is_of_nothing(e: &Error) -> bool {
    let first: &(dyn std::error::Error + 'static) = e;
    std::iter::successors(Some(first), |e| e.source())
        .filter_map(|e| e.downcast_ref::<std::io::Error>())
        .any(|e| e.kind() == std::io::ErrorKind::NotFound)
}
