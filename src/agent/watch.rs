//! Owns one run while it lasts: the agent's process, what it says, and its limits.

use std::fs::File;
use std::io::PipeWriter;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rustix::io::{FdFlags, fcntl_setfd};

use super::Error;
use super::feed::Feed;
use super::fence::Fence;
use super::launcher::Launcher;
use super::limits::{Cause, Clock, Limits};
use super::live::Live;
use super::order::{self, Order, spent};
use super::retries::Retries;
use super::stream::{Event, Exit, Reader, Summary};
use super::tail::Tail;
use super::wishes::Wishes;
use crate::event;
use crate::lane::{self, Project};
use crate::process::{self, Spawned};
use crate::store::records::{Account, AnyLane, RunRecord};
use crate::store::{LockName, Record, write_atomically};

/// How many parts of a log are read before anything else gets its turn.
const PARTS: usize = 16;

/// How a process ended that was killed.
pub(super) const KILLED: i32 = 9;

/// How a run ended.
pub(super) struct Ended {
    /// The agent's process.
    pub(super) status: ExitStatus,
    /// Why it was ended; none when it ended by itself.
    pub(super) cause: Option<Cause>,
    /// How many processes it had left running.
    pub(super) strays: usize,
    /// What it said.
    pub(super) summary: Summary,
    /// The same, for its record.
    pub(super) account: Account,
    /// Why it could not be watched any more, where that is what ended it.
    pub(super) lost: Option<String>,
    /// A hint at why the run ended as it did, for where its output says nothing.
    pub(super) hint: Option<Hint>,
}

/// A hint at why a run ended as it did.
pub(super) enum Hint {
    /// In the end the agent only sent failing requests again; the words say which.
    Retrying(String),
    /// How long the agent had written nothing when its run ended.
    Silent(Duration),
    /// The last words that the tmux window of the run showed.
    Screen(String),
}

/// One run to be watched.
pub(super) struct Watch<'a> {
    pub(super) project: &'a Project,
    pub(super) lane: &'a AnyLane,
    pub(super) attempt: u32,
    pub(super) order: &'a Order,
    pub(super) limits: Limits,
    /// What marks its processes.
    pub(super) mark: &'a str,
    /// This program.
    pub(super) exe: &'a Path,
}

/// What is kept of a run while it lasts.
struct Hearing {
    tail: Tail,
    /// What it writes as errors, where that tells anything.
    errors: Option<Tail>,
    retries: Retries,
    reader: Reader,
    clock: Clock,
    live: Live,
    feed: Feed,
    events: Vec<Event>,
    /// The session's id, until it is on record.
    session: Option<String>,
    /// How often it was told more that is not on record.
    told: u32,
    /// Why the run cannot be watched any more.
    lost: Option<String>,
    /// Whether the run has been asked to come to its end.
    asked_to_wrap_up: bool,
    /// The lane's tip, and when its notes were changed, when it was last looked.
    signs: Signs,
}

#[derive(PartialEq, Eq)]
struct Signs {
    tip: Option<crate::git::Oid>,
    notes: Option<std::time::SystemTime>,
}

impl Watch<'_> {
    /// Starts the agent, tells `started` its process, and waits for its end, or for a reason to end it. Whatever it left running is
    /// ended too.
    ///
    /// # Errors
    /// When nothing runs: it could not be started, or was ended at once because `started` failed.
    pub(super) async fn run(
        &self,
        wishes: &mut Wishes,
        started: impl FnOnce(u32) -> Result<(), Error>,
    ) -> Result<Ended, Error> {
        // As long as the other end is open, the protocol's client knows that it is watched.
        let (mut child, mut leash) = self.start()?;
        let group = child.id().unwrap_or_default();
        let mut feed = || match leash.take_if(|_| self.order.launcher == Launcher::Fed) {
            Some(pipe) => Feed::begin(self.order, pipe),
            None => Ok(Feed::default()),
        };
        let mut hearing = match started(group).and_then(|()| feed()).and_then(|feed| self.hearing(feed)) {
            Ok(hearing) => hearing,
            Err(e) => {
                self.end_all(group);
                return Err(e);
            }
        };
        // From here on nothing that cannot be read or written leaves the agent alone.
        let outcome = self.attend(&mut child, &mut hearing, wishes).await;
        // Before it is stopped, which may take as long as it likes.
        let silent = hearing.clock.silent(Instant::now());
        let (status, cause) = match outcome {
            Outcome::Ended(status) => (status, None),
            Outcome::End(cause) => (self.stop(&mut child, group, wishes).await, Some(cause)),
        };
        let strays = self.end_all(group);
        while self.hear(&mut hearing) {}
        let usage = self.project.store.layout().run_dir(&self.lane.name, self.attempt).join("usage.json");
        if let Ok(bytes) = crate::regular_file::record(usage) {
            hearing.reader.read_usage_file(&bytes, &mut hearing.events);
        }
        let exit = Exit { code: status.code(), signal: status.signal() };
        let summary = hearing.reader.finish(exit, &mut hearing.events);
        let account = order::account(hearing.reader.progress(), &summary, None);
        hearing.live.remove();
        let hint = hearing.retries.in_words().map_or(Hint::Silent(silent), Hint::Retrying);
        Ok(Ended { status, cause, strays, summary, account, lost: hearing.lost, hint: Some(hint) })
    }

    fn hearing(&self, feed: Feed) -> Result<Hearing, Error> {
        let layout = self.project.store.layout();
        let log = layout.run_log(&self.lane.name, self.attempt);
        let errors = layout.run_errors(&self.lane.name, self.attempt);
        Ok(Hearing {
            tail: Tail::open(&log).map_err(lane::Error::io("read", &log))?,
            // What they would tell is worth no run.
            errors: self.order.dialect.tells_by_errors().then(|| Tail::open(&errors).ok()).flatten(),
            retries: Retries::default(),
            reader: self.order.reader(),
            clock: Clock::start(self.limits, Instant::now()),
            live: Live::new(layout.run_live(&self.lane.name, self.attempt)),
            feed,
            events: Vec::new(),
            session: None,
            told: 0,
            lost: None,
            asked_to_wrap_up: false,
            signs: self.signs(),
        })
    }

    /// Ends what is left of the agent's group, and what fled from it. Returns how many of the latter there were.
    pub(super) fn end_all(&self, group: u32) -> usize {
        let grace = self.project.settings.stop_grace;
        if process::group_lives(group) {
            process::end_group(group, grace);
        }
        if self.order.keeps_strays { 0 } else { process::end_strays(self.mark, grace) }
    }

    async fn attend(&self, child: &mut Spawned, hearing: &mut Hearing, wishes: &mut Wishes) -> Outcome {
        process::let_go_of_code();
        // What it wrote before the file was watched.
        self.hear_errors(hearing);
        loop {
            let more = self.hear(hearing);
            if let Some(cause) = self.is_too_much(hearing) {
                return Outcome::End(cause);
            }
            self.ask_to_wrap_up(hearing);
            if !more {
                self.say_what_follows(hearing);
            }
            let next = hearing.clock.next();
            let limit = next.map(|(at, _)| at);
            let due = hearing.live.due();
            let tells = hearing.feed.is_at_it();
            tokio::select! {
                biased;
                () = wishes.any() => return Outcome::End(Cause::Asked),
                status = child.wait() => match status {
                    Ok(status) => return Outcome::Ended(status),
                    Err(e) => hearing.lost = Some(e.to_string()),
                },
                () = until(due) => {
                    // Reading lines takes as much code as writing does, and neither needs the other's.
                    process::let_go_of_code();
                    hearing.live.write(hearing.reader.progress());
                    self.take_note(hearing);
                    process::let_go_of_code();
                }
                () = until(limit) => {
                    if let Some((_, cause)) = next && !self.shows_signs(hearing, cause) {
                        return Outcome::End(cause);
                    }
                }
                bytes = hearing.feed.write(), if tells => hearing.feed.wrote(&bytes),
                () = std::future::ready(()), if more => {}
                () = hearing.tail.grown(), if !more => {}
                () = grown(&mut hearing.errors) => self.hear_errors(hearing),
            }
        }
    }

    /// Tells an agent that can be told more what comes after its turn, if that is over.
    fn say_what_follows(&self, hearing: &mut Hearing) {
        let reader = &hearing.reader;
        if hearing.feed.is_open() && reader.is_over() && reader.is_between_lines() {
            let log = self.project.store.layout().run_log(&self.lane.name, self.attempt);
            let has_spent_all = hearing.clock.is_spent(spent(reader.progress()));
            let (talk, is_done) = (self.order.talk, reader.is_done() && !has_spent_all);
            hearing.feed.turn_over(self.project, self.lane, talk, is_done, &log);
        }
    }

    /// Reads on in the log, for a while. Whether there may be more.
    fn hear(&self, hearing: &mut Hearing) -> bool {
        for _ in 0..PARTS {
            let part = match hearing.tail.rest() {
                Ok(part) => part,
                Err(e) => {
                    hearing.lost = Some(format!("its log could not be read: {e}"));
                    return false;
                }
            };
            if part.is_empty() {
                return false;
            }
            hearing.reader.feed(part, &mut hearing.events);
            let now = Instant::now();
            hearing.clock.alive(now);
            hearing.clock.set_over(hearing.reader.is_over(), now);
            hearing.live.changed();
            self.note(hearing);
        }
        true
    }

    /// Reads on in what it writes as errors. Where that cannot be read any more, it is left.
    fn hear_errors(&self, hearing: &mut Hearing) {
        loop {
            match hearing.errors.as_mut().map(Tail::rest) {
                Some(Ok(part)) if !part.is_empty() => hearing.reader.feed_errors(part, &mut hearing.events),
                Some(Ok(_)) | None => break,
                Some(Err(_)) => {
                    hearing.errors = None;
                    break;
                }
            }
        }
        self.note(hearing);
    }

    /// Takes note of what is to be on record at once.
    fn note(&self, hearing: &mut Hearing) {
        let told = hearing.told;
        for event in hearing.events.drain(..) {
            hearing.retries.hears(&event);
            hearing.told +=
                u32::from(hearing.feed.hears(self.project, &self.lane.name, self.attempt, &event));
            match event {
                Event::Session { id, .. } => hearing.session = Some(id),
                Event::Told { .. } => hearing.told += u32::from(self.order.launcher == Launcher::Protocol),
                _ => {}
            }
        }
        if hearing.told > told {
            let agent = self.lane.agent.as_deref().unwrap_or("its agent");
            let text = format!("lane '{}': {agent} is told more in the same run", self.lane.name);
            self.project.tell(event::Name::AgentTold, Some(self.lane), text);
        }
        if let Some(what) = hearing.retries.due() {
            let agent = self.lane.agent.as_deref().unwrap_or("its agent");
            let text = format!("lane '{}': {agent} {what}", self.lane.name);
            self.project.tell(event::Name::AgentRetry, Some(self.lane), text);
        }
        self.take_note(hearing);
    }

    /// Keeps the session's id as soon as it is known: whatever happens, it can be gone on with. So is how often it was told more.
    /// What cannot be written now, on a full disk, is tried again a second later; the session is in the run's result in any case.
    fn take_note(&self, hearing: &mut Hearing) {
        if hearing.session.is_none() && hearing.told == 0 {
            return;
        }
        // Reading and writing a record takes more code than all the rest of a run.
        process::let_go_of_code();
        let path = self.project.store.layout().run_record(&self.lane.name, self.attempt);
        let noted = RunRecord::load(&path).and_then(|mut run| {
            let known = run.clone();
            run.account.session = hearing.session.clone().or(run.account.session);
            run.told += hearing.told;
            if run != known {
                run.save(&path)?;
            }
            Ok(())
        });
        match noted {
            Ok(()) => (hearing.session, hearing.told) = (None, 0),
            Err(_) => hearing.live.changed(),
        }
        process::let_go_of_code();
    }

    fn is_too_much(&self, hearing: &Hearing) -> Option<Cause> {
        if hearing.lost.is_some() {
            return Some(Cause::Lost);
        }
        if hearing.reader.runaway().is_some() {
            return Some(Cause::Runaway);
        }
        // One that has said its last word costs nothing more, and what it came to counts.
        if !hearing.reader.is_over() && hearing.clock.is_beyond(spent(hearing.reader.progress())) {
            return Some(Cause::Budget);
        }
        self.is_as_full(hearing, self.project.settings.context_stop).then_some(Cause::Context)
    }

    /// Whether so many percent of the context of a run at the lane's task are full. One that has said its last word is as good as
    /// over.
    fn is_as_full(&self, hearing: &Hearing, limit: Option<u64>) -> bool {
        let full = hearing.reader.progress().context_percent();
        !self.order.resolves
            && !hearing.reader.is_over()
            && limit.zip(full).is_some_and(|(limit, full)| full >= limit)
    }

    /// Makes the file once that tells the agent to come to its end; on a full disk it is tried again.
    fn ask_to_wrap_up(&self, hearing: &mut Hearing) {
        if !hearing.asked_to_wrap_up && self.is_as_full(hearing, self.project.settings.context_warn) {
            let file = self.project.store.layout().run_wrap_up(&self.lane.name, self.attempt);
            let text = b"The context is nearly full. Finish, commit, and end.\n";
            hearing.asked_to_wrap_up = write_atomically(&file, text).is_ok();
        }
    }

    /// Whether something came of a silent run after all: a commit, or a change of its notes.
    fn shows_signs(&self, hearing: &mut Hearing, cause: Cause) -> bool {
        if cause != Cause::Stall {
            return false;
        }
        let signs = self.signs();
        let any = signs != hearing.signs;
        if any {
            hearing.signs = signs;
            hearing.clock.alive(Instant::now());
        }
        any
    }

    fn signs(&self) -> Signs {
        let notes = std::fs::metadata(self.order.dir.join("STATUS.md"));
        Signs {
            tip: self
                .lane
                .commits_to()
                .and_then(|branch| self.project.repo.branch_tip(branch).ok().flatten()),
            notes: notes.and_then(|meta| meta.modified()).ok(),
        }
    }

    fn start(&self) -> Result<(Spawned, Option<PipeWriter>), Error> {
        let (name, order) = (&self.lane.name, self.order);
        let layout = self.project.store.layout();
        let open = |path: &PathBuf| {
            let opened = File::options().append(true).create(true).open(path);
            opened.map_err(lane::Error::io("write", path))
        };
        // Half a line of one stream inside a line of the other would spoil a machine's reading.
        let log = open(&layout.run_log(name, self.attempt))?;
        let apart = match order.dialect.is_for_machines() {
            true => open(&layout.run_errors(name, self.attempt))?,
            false => open(&layout.run_log(name, self.attempt))?,
        };
        let fence = Fence::prepare(self.project, self.lane, self.attempt, &order.dir, self.exe)?;
        let (variable, hooks) = fence.env();
        let mut start = order.launcher.command(self)?.env(variable, hooks).output(log, apart);
        for (key, value) in &order.env {
            start = start.env(key, value);
        }
        start = start.env(process::MARK, self.mark);
        if let Some(file) = order.stdin.as_ref().filter(|_| order.launcher != Launcher::Fed) {
            start = start.stdin(File::open(file).map_err(lane::Error::io("read", file))?);
        }
        let (start, leash) = order.launcher.leash(start)?;
        let alive = self.project.store.locks().take(&LockName::Alive(name.clone()))?;
        // Inherited on purpose: as long as one of the agent's processes keeps it open, the run is not over. This process
        // has one thread, so nothing else can be started while the flag is off.
        let failed =
            |e: rustix::io::Errno| process::Error::Start { program: "the agent".into(), source: e.into() };
        fcntl_setfd(alive.file(), FdFlags::empty()).map_err(failed)?;
        Ok((start.spawn_watched()?, leash))
    }

    /// TERM, a time of grace, KILL; a wish ends the grace.
    async fn stop(&self, child: &mut Spawned, group: u32, wishes: &mut Wishes) -> ExitStatus {
        self.order.launcher.ask_to_end(group);
        let status = tokio::select! {
            status = child.wait() => status,
            () = self.patience(wishes) => {
                process::end_group(group, Duration::ZERO);
                child.wait().await
            }
        };
        // Nobody knows how one ended that cannot be waited for.
        status.unwrap_or_else(|_| ExitStatus::from_raw(KILLED))
    }

    /// Returns when one that was asked to end has had the time for it.
    pub(super) async fn patience(&self, wishes: &mut Wishes) {
        tokio::select! {
            () = tokio::time::sleep(self.project.settings.stop_grace) => {}
            () = wishes.any() => {}
        }
    }
}

/// What became of attending to a run.
enum Outcome {
    /// It ended by itself.
    Ended(ExitStatus),
    /// It is to be ended.
    End(Cause),
}

/// Returns when a file may have grown; never without one.
async fn grown(tail: &mut Option<Tail>) {
    match tail {
        Some(tail) => tail.grown().await,
        None => std::future::pending().await,
    }
}

/// Returns at that time; never without one.
pub(super) async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}
