//! Owns feeding an agent that reads one prompt after the other on its standard input: its task at once, and what is sent to it
//! when a turn has ended. Its input ends as soon as nothing is there to be told then.

use std::fs::File;
use std::io::{PipeWriter, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe::Sender;

use super::Error;
use super::order::Order;
use super::outbox::Outbox;
use super::profile::as_prompt;
use super::stream::{Event, Said};
use crate::lane::{self, Inbox, Project, Taken, join_messages};
use crate::process;
use crate::store::records::AnyLane;

/// What somebody says on the way in, in the agent's own words for it.
const METHOD: &str = "user";

/// One agent's input.
#[derive(Default)]
pub(super) struct Feed {
    /// Where it reads; none where it reads nothing of ours, or nothing any more.
    pipe: Option<Sender>,
    outbox: Outbox,
    /// What it was told more and has not reacted to. Nobody else tells anything meanwhile.
    telling: Option<Taken>,
    /// Whether its log says that it is being told that.
    is_logged: bool,
    /// Whether it is told anything but its task.
    takes_more: bool,
    /// How often it was told more.
    count: u64,
    /// How a prompt begins that it would take for a command of its own.
    commands: Vec<String>,
}

impl Feed {
    /// Feeds the agent of `order` through `pipe`, its task first.
    ///
    /// # Errors
    /// When its task cannot be read.
    pub(super) fn begin(order: &Order, pipe: PipeWriter) -> Result<Feed, Error> {
        let failed = |source| process::Error::Start { program: "the agent".into(), source };
        let mut outbox = Outbox::default();
        if let Some(file) = &order.stdin {
            let text = crate::regular_file::record_text(file).map_err(lane::Error::io("read", file))?;
            outbox.put(&prompt(&text));
        }
        let pipe = Sender::from_owned_fd(OwnedFd::from(pipe)).map_err(failed)?;
        let takes_more = order.can_be_sent_to && !order.resolves;
        let commands = order.commands.clone();
        Ok(Feed { pipe: Some(pipe), outbox, takes_more, commands, ..Feed::default() })
    }

    /// Whether there is anything on its way.
    pub(super) fn is_at_it(&self) -> bool {
        self.pipe.is_some() && self.outbox.next().is_some()
    }

    /// Writes some of what is on its way. Never returns when there is nothing.
    pub(super) async fn write(&mut self) -> std::io::Result<usize> {
        match (self.pipe.as_mut(), self.outbox.next()) {
            (Some(pipe), Some(bytes)) => pipe.write(bytes).await,
            _ => std::future::pending().await,
        }
    }

    /// So much of it was written. One that does not read any more is told nothing any more; its end follows.
    pub(super) fn wrote(&mut self, bytes: &std::io::Result<usize>) {
        match bytes {
            Ok(bytes) => self.outbox.wrote(*bytes),
            Err(_) => self.pipe = None,
        }
    }

    /// Whether it has to hear what comes after its turn.
    pub(super) fn is_open(&self) -> bool {
        self.pipe.is_some() && self.telling.is_none()
    }

    /// Its turn is over: it is told what waits in the lane's inbox for its conversation, or that nothing more comes. `log` is the
    /// run's, in which no line is begun.
    pub(super) fn turn_over(
        &mut self,
        project: &Project,
        lane: &AnyLane,
        talk: u32,
        is_done: bool,
        log: &Path,
    ) {
        let wraps_up = project.store.layout().wrap_up(&lane.name).exists();
        if !self.takes_more || !is_done || wraps_up || !self.is_read() {
            self.pipe = None;
            return;
        }
        match Inbox::of(project, &lane.name).take(talk) {
            Ok(taken) if !taken.letters.is_empty() => {
                let text = as_prompt(&self.commands, join_messages(taken.texts()));
                if self.say(&text, log).is_err() {
                    self.pipe = None;
                    return;
                }
                self.outbox.put(&prompt(&text));
                (self.telling, self.is_logged) = (Some(taken), false);
            }
            // Whatever is wrong with it is for the supervisor to find and tell.
            Ok(_) | Err(_) => self.pipe = None,
        }
    }

    /// Whether anybody has the other end open: one that has only read its task has ended by itself.
    fn is_read(&self) -> bool {
        let Some(pipe) = &self.pipe else { return false };
        let descriptor = pipe.as_fd();
        let mut ends = [PollFd::new(&descriptor, PollFlags::OUT)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let looked = poll(&mut ends, Some(&now));
        let gone = PollFlags::ERR | PollFlags::HUP;
        looked.is_ok() && ends.iter().all(|end| !end.revents().intersects(gone))
    }

    /// Writes into the log what the agent is being told, before it can react to it.
    fn say(&mut self, text: &str, log: &Path) -> std::io::Result<()> {
        self.count += 1;
        let (id, method) = (self.count, METHOD.to_owned());
        let said = Said::Asks { id, method, session: None, more: Some(text.to_owned()) };
        File::options().append(true).open(log)?.write_all(said.line().as_bytes())
    }

    /// Takes note of what the agent does. Whether that is its reaction to what it was told: nobody is to tell it again.
    pub(super) fn hears(&mut self, project: &Project, lane: &str, attempt: u32, event: &Event) -> bool {
        match event {
            Event::Told { .. } => self.is_logged = true,
            // They say nothing of a turn.
            Event::Session { .. } | Event::Warning { .. } | Event::Unknown { .. } | Event::Retry { .. } => {}
            _ if self.is_logged => {
                self.is_logged = false;
                let Some(taken) = self.telling.take() else { return false };
                if Inbox::of(project, lane).told_at_work(attempt, &taken).is_err() {
                    // It waits as before, and would be found again at the end of each turn.
                    self.takes_more = false;
                }
                return true;
            }
            _ => {}
        }
        false
    }
}

/// A prompt as a line of `--input-format stream-json`.
fn prompt(text: &str) -> Value {
    json!({ "type": "user", "message": { "role": "user", "content": text } })
}
