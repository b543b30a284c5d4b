//! Owns the process between a supervisor and an agent that speaks the protocol: it starts the agent in its own process group,
//! holds the conversation, and tells it more for as long as somebody has more to tell.
//!
//! It is given the run's log, and a pipe that ends when the supervisor does; then the agent's turn is its last one.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe::Receiver;
use tokio::process::{ChildStdin, ChildStdout};

use super::leave::Leave;
use super::relay::Relay;
use super::talk::{Brief, Do, Talk};
use crate::agent::Error;
use crate::agent::gate::checks_of;
use crate::agent::outbox::Outbox;
use crate::agent::outfit::desk;
use crate::agent::profile::Permission;
use crate::agent::stream::Said;
use crate::agent::watch::until;
use crate::agent::wishes::Wishes;
use crate::lane::{self, Inbox, Project, Taken, join_messages};
use crate::process::{self, Spawned, Start};
use crate::store::Record;
use crate::store::records::{AnyLane, RunRecord};

/// How much is read at once.
const PART: usize = 64 * 1024;

/// How long an agent whose input has ended may take before it is asked to end, and then before it is killed.
const FAREWELL: Duration = Duration::from_secs(2);

/// How long the output of an agent that has ended is waited for: something that it left running may hold it open.
const ECHO: Duration = Duration::from_secs(1);

/// How the process is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// With this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// What the process was started with.
pub(crate) struct Hands {
    /// The run's log.
    pub(crate) log: File,
    /// What ends when the supervisor does; something else where there is none.
    pub(crate) leash: OwnedFd,
    /// This program.
    pub(crate) exe: PathBuf,
}

/// Talks to the agent that `words` start, for a run of a lane, to its end.
///
/// # Errors
/// When the run is not known or the agent cannot be started.
pub(crate) fn drive(
    project: &Project,
    name: &str,
    attempt: u32,
    words: &[OsString],
    hands: Hands,
) -> Result<Left, Error> {
    let failed = |source| process::Error::Start { program: "the event loop".into(), source };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    runtime.block_on(async {
        let mut driver = Driver::start(project, name, attempt, words, hands)?;
        let first = driver.talk.begin();
        driver.act(first);
        driver.run().await
    })
}

/// How far the end has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Talking,
    /// The agent was asked to end its turn.
    Cancelling,
    /// Its input has ended.
    Closing,
    /// It was asked to end.
    Asked,
    /// It was killed.
    Killed,
}

struct Driver<'a> {
    project: &'a Project,
    lane: AnyLane,
    attempt: u32,
    grace: Duration,
    child: Spawned,
    pid: u32,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    relay: Relay<File>,
    outbox: Outbox,
    talk: Talk,
    wishes: Wishes,
    /// As long as the supervisor is there.
    leash: Option<Receiver>,
    /// Whether messages may be taken: a run that resolves a conflict takes none.
    takes_more: bool,
    /// The conversation that the run belongs to: what is for another one is none of its business.
    conversation: u32,
    /// What the agent was told more and has not reacted to. Nobody else tells anything meanwhile.
    telling: Option<Taken>,
    stage: Stage,
    /// Whether somebody wants the run to end.
    stopped: bool,
    deadline: Option<Instant>,
    ended: Option<ExitStatus>,
    buffer: Vec<u8>,
}

/// What happens next.
enum Happening {
    /// Somebody wants it to end.
    Wish,
    /// The supervisor is gone.
    Alone,
    /// The agent wrote so much.
    Heard(std::io::Result<usize>),
    /// So much was written to the agent.
    Told(std::io::Result<usize>),
    Ended(std::io::Result<ExitStatus>),
    /// Patience is over.
    Due,
}

impl<'a> Driver<'a> {
    fn start(
        project: &'a Project,
        name: &str,
        attempt: u32,
        words: &[OsString],
        hands: Hands,
    ) -> Result<Driver<'a>, Error> {
        // Before the agent exists, so that no early signal is missed.
        let wishes = Wishes::listen()?;
        let lane = project.any_lane(name)?;
        let run = RunRecord::load(&project.store.layout().run_record(name, attempt))?;
        let (dir, _) = desk(project, &lane, attempt, run.resolves);
        let talk = Talk::new(brief(project, &lane, &run, &hands.exe)?, leave(project, &lane, &run, &dir)?);
        let (program, args) = words.split_first().ok_or(Error::NoCommand)?;
        // All that this process has, the fence around its git included.
        let mut start = Start::new(program.as_ref(), &dir).args(args).with_nothing_else();
        for (key, value) in std::env::vars_os() {
            start = start.env(key, value);
        }
        let mut child = start.spawn_conversing()?;
        Ok(Driver {
            project,
            attempt,
            grace: project.settings.stop_grace,
            pid: child.id().unwrap_or_default(),
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            child,
            relay: Relay::to(hands.log),
            outbox: Outbox::default(),
            talk,
            wishes,
            // Started by hand there may be none.
            leash: Receiver::from_owned_fd(hands.leash).ok(),
            takes_more: !run.resolves,
            conversation: run.talk(),
            telling: None,
            stage: Stage::Talking,
            stopped: false,
            deadline: None,
            ended: None,
            buffer: vec![0; PART],
            lane,
        })
    }

    async fn run(&mut self) -> Result<Left, Error> {
        loop {
            match self.next().await {
                Happening::Wish => self.stop(),
                Happening::Alone => (self.leash, self.takes_more) = (None, false),
                Happening::Heard(Ok(0) | Err(_)) => {
                    self.stdout = None;
                    if let Some(line) = self.relay.finish() {
                        let todo = self.talk.hear(&line);
                        self.act(todo);
                    }
                    self.close();
                }
                Happening::Heard(Ok(bytes)) => self.hear(bytes),
                Happening::Told(Ok(bytes)) => self.outbox.wrote(bytes),
                // It does not listen any more; its end, or that of its output, follows.
                Happening::Told(Err(_)) => self.stdin = None,
                Happening::Ended(status) => {
                    let failed = |source| process::Error::Start { program: "the agent".into(), source };
                    self.ended = Some(status.map_err(failed)?);
                    self.deadline = Some(Instant::now() + ECHO);
                }
                Happening::Due => self.escalate(),
            }
            if let Some(status) = self.ended.filter(|_| self.stdout.is_none()) {
                return Ok(self.left(status));
            }
        }
    }

    async fn next(&mut self) -> Happening {
        let Driver { wishes, leash, stdin, stdout, outbox, child, buffer, deadline, ended, .. } = self;
        let hears = !outbox.is_full();
        let waits = outbox.next().is_some();
        let told = async {
            match (stdin.as_mut(), outbox.next()) {
                (Some(stdin), Some(bytes)) => stdin.write(bytes).await,
                _ => std::future::pending().await,
            }
        };
        let heard = async {
            match stdout.as_mut() {
                Some(stdout) => stdout.read(buffer).await,
                None => std::future::pending().await,
            }
        };
        let alone = async {
            match leash.as_mut() {
                // Nothing is ever written to it.
                Some(leash) => drop(leash.read(&mut [0]).await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // What the agent writes comes last: one that never stops must not keep anything else from happening.
            biased;
            () = wishes.any() => Happening::Wish,
            () = alone => Happening::Alone,
            () = until(*deadline) => Happening::Due,
            status = child.wait(), if ended.is_none() => Happening::Ended(status),
            bytes = told, if waits => Happening::Told(bytes),
            bytes = heard, if hears => Happening::Heard(bytes),
        }
    }

    fn hear(&mut self, bytes: usize) {
        self.relay.feed(self.buffer.get(..bytes).unwrap_or_default());
        while let Some(line) = self.relay.next() {
            let todo = self.talk.hear(&line);
            self.act(todo);
        }
    }

    fn act(&mut self, todo: Vec<Do>) {
        for what in todo {
            match what {
                Do::Tell(message) => self.outbox.put(&message),
                Do::Say(said) => self.relay.say(&said),
                Do::Heard => self.was_told(),
                Do::TurnOver => {
                    let more = self.more();
                    self.act(more);
                }
                Do::Over => self.close(),
            }
        }
    }

    /// What comes after a turn: what waits in the lane's inbox for this conversation, or the end. While this process lives, the
    /// supervisor waits for its end and takes nothing; without a supervisor nothing is taken here.
    fn more(&mut self) -> Vec<Do> {
        if !self.takes_more {
            return self.talk.end();
        }
        match Inbox::of(self.project, &self.lane.name).take(self.conversation) {
            Ok(taken) if !taken.letters.is_empty() => {
                let text = join_messages(taken.texts());
                self.telling = Some(taken);
                self.talk.say_more(&text)
            }
            // Whatever is wrong with it is for the supervisor to find and tell.
            Ok(_) | Err(_) => self.talk.end(),
        }
    }

    /// The agent has what it was told more: nobody is to tell it again.
    fn was_told(&mut self) {
        let Some(taken) = self.telling.take() else { return };
        if let Err(e) = Inbox::of(self.project, &self.lane.name).told_at_work(self.attempt, &taken) {
            // It waits as before, and would be found again at the end of each turn.
            self.takes_more = false;
            let text = format!("what it was told may be told once more: {e}");
            self.relay.say(&Said::Notes { text });
        }
    }

    /// Asks the agent to end its turn, and ends it if it does not.
    fn stop(&mut self) {
        match self.stage {
            Stage::Talking => {
                let todo = self.talk.cancel();
                self.stage = Stage::Cancelling;
                self.deadline = Some(Instant::now() + self.grace / 3);
                self.act(todo);
            }
            _ => self.escalate(),
        }
    }

    /// Ends the agent's input: nothing more will be asked.
    fn close(&mut self) {
        if !matches!(self.stage, Stage::Talking | Stage::Cancelling) {
            return;
        }
        self.stdin = None;
        self.stopped = self.stage == Stage::Cancelling;
        self.stage = Stage::Closing;
        if self.ended.is_none() {
            self.deadline = Some(Instant::now() + self.patience());
        }
    }

    /// How long the agent has for each step of its end. Of a run that is being stopped the supervisor makes an end at the end of
    /// the time of grace.
    fn patience(&self) -> Duration {
        if self.stopped { self.grace / 3 } else { FAREWELL }
    }

    fn escalate(&mut self) {
        if self.ended.is_some() {
            // Somebody else holds the agent's output open.
            self.stdout = None;
            if let Some(line) = self.relay.finish() {
                let todo = self.talk.hear(&line);
                self.act(todo);
            }
            return;
        }
        match self.stage {
            Stage::Talking | Stage::Cancelling => self.close(),
            Stage::Closing => {
                // One that has just ended needs no signal.
                let _gone = process::signal_process(self.pid);
                self.stage = Stage::Asked;
                self.deadline = Some(Instant::now() + self.patience());
            }
            Stage::Asked | Stage::Killed => {
                let _gone = self.child.start_kill();
                self.stage = Stage::Killed;
                self.deadline = None;
            }
        }
    }

    /// An agent that ended by itself says by its end how; one that was let go of does not.
    fn left(&self, status: ExitStatus) -> Left {
        if self.talk.is_over() {
            return Left::Code(0);
        }
        match (status.signal(), status.code()) {
            (Some(signal), _) => Left::Signal(signal),
            (None, code) => Left::Code(code.unwrap_or(1)),
        }
    }
}

/// What the agent of a run is told.
fn brief(project: &Project, lane: &AnyLane, run: &RunRecord, exe: &Path) -> Result<Brief, Error> {
    let layout = project.store.layout();
    let (dir, file) = desk(project, lane, run.attempt, run.resolves);
    let read = |path: &Path| crate::regular_file::record_text(path).map_err(lane::Error::io("read", path));
    let prompt = read(&file)?;
    let anew = layout.run_anew(&lane.name, run.attempt);
    Ok(Brief {
        dir,
        lane: lane.name.clone(),
        attempt: run.attempt,
        exe: exe.to_owned(),
        session: run.session.clone().filter(|_| run.resumed),
        prompt,
        prompt_anew: anew.exists().then(|| read(&anew)).transpose()?,
    })
}

/// What the agent of a run may do.
fn leave(project: &Project, lane: &AnyLane, run: &RunRecord, dir: &Path) -> Result<Leave, Error> {
    let level = run.permission.as_deref().and_then(Permission::named).unwrap_or_default();
    let dir = dir.canonicalize().map_err(lane::Error::io("find", dir))?;
    Ok(Leave { level, dir, checks: checks_of(project, lane)? })
}
