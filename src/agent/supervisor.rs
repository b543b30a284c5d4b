//! Owns the process that watches a lane's runs: it holds the run lock for as long as one lasts or is to be tried again.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use tokio::runtime::Runtime;

use super::Error;
use super::afresh::Afresh;
use super::again::Patience;
use super::already::{self, Found};
use super::error::with_causes;
use super::fence::Fence;
use super::follow_up::FollowUp;
use super::inbox::Inbox;
use super::launch::{self, STARTED};
use super::order::Order;
use super::pane;
use super::settle::{Settle, Verdict};
use super::watch::{Ended, Watch};
use super::wishes::Wishes;
use crate::lane::{self, Project};
use crate::store::records::{AnyLane, LaneState, RunClass, RunRecord};
use crate::store::{Guard, LockName, Record, new_id};
use crate::{event, process};

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
    let lock = adopt_lock(project, name)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| process::Error::Start { program: "the event loop".into(), source })?;
    // Before any agent exists, so that no early signal is missed.
    let wishes = {
        let _inside = runtime.enter();
        Wishes::listen()?
    };
    let mark = std::env::var(process::MARK).ok().filter(|m| !m.is_empty()).unwrap_or_else(new_id);
    let mut supervisor = Supervisor {
        project,
        exe,
        lane: project.any_lane(name)?,
        runtime,
        wishes,
        mark,
        answered: false,
        former: Vec::new(),
        afresh: Afresh::default(),
        follow_up: FollowUp::default(),
    };
    let first = Order::of(project, &supervisor.lane, attempt, words, Vec::new());
    let done = first.and_then(|order| supervisor.work(order, lock));
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
    /// Which of its runs went on in a new conversation.
    afresh: Afresh,
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
}

impl Supervisor<'_> {
    /// Runs `order`, and whatever comes after it, until nothing does. The lock is free afterwards.
    fn work(&mut self, mut order: Order, mut lock: Guard) -> Result<(), Error> {
        loop {
            let next = self.one(&order);
            let next = match next {
                Ok(Next::End) => None,
                Ok(Next::Again(wait)) => self.again(&order, wait)?,
                Ok(Next::Afresh(first)) => self.go_on_afresh(first)?,
                Ok(Next::Message) => Some(launch::order_of_messages(self.project, &self.lane, self.exe)?),
                Err(e) => return Err(e),
            };
            if let Some(next) = next {
                order = next;
                continue;
            }
            drop(lock);
            // Whoever sent something while the lock was held has left it to this process.
            match self.late_message()? {
                Some((free, next)) => (lock, order) = (free, next),
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
        let next = self.next(order, &mut verdict);
        if matches!(next, Next::End) && verdict.state == LaneState::NoChange {
            self.look_whether_done_before(order, &mut verdict);
        }
        match &next {
            Next::End => (self.lane, self.follow_up) = settle.write(&verdict)?,
            Next::Again(_) | Next::Afresh(_) => {
                self.lane = settle.write_and_go_on(&verdict, event::Name::AgentRetry)?;
            }
            Next::Message => self.lane = settle.write_and_go_on(&verdict, event::Name::AgentTold)?,
        }
        Ok(next)
    }

    fn watch(&mut self, order: &Order) -> Result<Ended, Error> {
        let (project, lane) = (self.project, self.lane.clone());
        let limits = order.limits;
        let (attempt, mark, exe) = (order.attempt, &self.mark, self.exe);
        let watch = Watch { project, lane: &lane, attempt, order, limits, mark, exe };
        let (answered, mark, now) = (&mut self.answered, &self.mark, &mut self.lane);
        let started = |group: u32| {
            *now = note_start(project, &lane, order.attempt, group, mark)?;
            if !*answered {
                say(STARTED);
                *answered = true;
            }
            Ok(())
        };
        let wishes = &mut self.wishes;
        match order.in_window {
            true => self.runtime.block_on(pane::run(&watch, wishes, started)),
            false => self.runtime.block_on(watch.run(wishes, started)),
        }
    }

    /// What comes after a run, by what came of it. The verdict says so too.
    fn next(&mut self, order: &Order, verdict: &mut Verdict) -> Next {
        let waits = || Inbox::of(self.project, &self.lane.name).is_waiting();
        let heard = matches!(verdict.state, LaneState::Done | LaneState::NoChange)
            || matches!(verdict.class, RunClass::Failed | RunClass::Refused | RunClass::MaxTurns);
        if heard && !order.resolves && order.can_be_sent_to && waits() {
            self.former.clear();
            self.afresh = Afresh::default();
            return Next::Message;
        }
        // What was only looked at is nowhere but in the context that was full.
        if verdict.class == RunClass::ContextFull && self.lane.purpose().is_some() {
            return Next::End;
        }
        if verdict.class == RunClass::ContextFull {
            let first = self.afresh.after(order.attempt, self.project.settings.iterations);
            let add =
                if first.is_some() { "it goes on in a new conversation" } else { "it has had its runs" };
            verdict.detail = verdict.detail.take().map(|why| format!("{why}; {add}"));
            return first.map_or(Next::End, Next::Afresh);
        }
        if verdict.state == LaneState::Done || verdict.state == LaneState::NoChange || !order.may_try_again {
            return Next::End;
        }
        self.former.push(verdict.class);
        match Patience::of(&self.project.settings).wait(&self.former) {
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
        let run = RunRecord::load(&self.project.store.layout().run_record(&self.lane.name, order.attempt))?;
        let why = format!("what run {} of lane {} had done when it failed", order.attempt, self.lane.name);
        // One that only looks has left nothing.
        let back = self.lane.clone().with_tree().ok();
        let back = back.map(|lane| lane::put_back(self.project, &lane, run.tip_before, &why));
        if let Some(Err(e)) = back {
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

    /// The lane has no run any more.
    fn end(&mut self, state: LaneState, why: &str) -> Result<(), Error> {
        self.lane = self.project.update_lane(&self.lane.name, |record| {
            record.state = state;
            record.detail = Some(why.to_owned());
        })?;
        let told = format!("lane '{}': {state} ({why})", self.lane.name);
        self.project.tell(event::Name::RunEnded, Some(&self.lane), told);
        Ok(())
    }

    /// What was sent after this process had looked for the last time, if nobody else has the lane by now.
    fn late_message(&mut self) -> Result<Option<(Guard, Order)>, Error> {
        let name = &self.lane.name;
        if matches!(self.lane.state, LaneState::Stopped | LaneState::Conflict)
            || !Inbox::of(self.project, name).is_waiting()
        {
            return Ok(None);
        }
        let Some(lock) = self.project.store.locks().try_take(&LockName::Run(name.clone()))? else {
            return Ok(None);
        };
        self.lane = self.project.any_lane(name)?;
        let order = launch::order_of_messages(self.project, &self.lane, self.exe)?;
        Ok(Some((lock, order)))
    }
}

/// Writes that the agent runs, as which process.
fn note_start(
    project: &Project,
    lane: &AnyLane,
    attempt: u32,
    group: u32,
    mark: &str,
) -> Result<AnyLane, Error> {
    let path = project.store.layout().run_record(&lane.name, attempt);
    let mut run = RunRecord::load(&path)?;
    run.pid = Some(group);
    run.birth = process::birth_of(group);
    run.mark = Some(mark.to_owned());
    run.save(&path)?;
    let lane = project.update_lane(&lane.name, |record| {
        record.state = LaneState::Running;
    })?;
    let told = format!("lane '{}': {} started", lane.name, run.agent);
    project.tell(event::Name::RunStarted, Some(&lane), told);
    Ok(lane)
}

/// Takes the lock over from standard input, which becomes empty: the agent must not inherit it.
fn adopt_lock(project: &Project, name: &str) -> Result<Guard, Error> {
    let failed = |source| process::Error::Start { program: "the supervisor".into(), source };
    let stdin = std::io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
    let null = File::open("/dev/null").map_err(failed)?;
    rustix::stdio::dup2_stdin(&null).map_err(|e| failed(e.into()))?;
    Ok(project.store.locks().adopt(&LockName::Run(name.to_owned()), File::from(stdin)))
}

/// Answers the starter and lets go of the pipe, so that it does not wait for the agent's end.
fn say(line: &str) {
    let line = line.replace('\n', " ");
    let mut out = std::io::stdout();
    drop(writeln!(out, "{line}").and_then(|()| out.flush()));
    if let Ok(null) = File::options().write(true).open("/dev/null") {
        let _stays_open = rustix::stdio::dup2_stdout(&null);
    }
}
