//! Writer for the standard input of an agent that reads one prompt after another: its task at once, and
//! messages when a turn has finished. The input is closed as soon as no message waits at the end of a turn.

use std::fs::File;
use std::io::{PipeWriter, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use proq_base::lane_name::LaneName;
use proq_base::process;
use proq_store::Store;
use proq_store::base::run_number::RunNumber;
use proq_store::records::lane::AnyLane;
use proq_stream::base::client_line::ClientLine;
use proq_stream::base::event::StreamEvent;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe::Sender;

use crate::agent::Error;
use crate::agent::base::outbox::Outbox;
use crate::agent::launch::run_spec::RunSpec;
use crate::agent::profiles::profile::escape_command_prompt;
use crate::lane;
use crate::lane::messages::inbox::{ClaimedMessages, Inbox, join_texts as join_message_texts};

/// Method name of a user message in the run's log, as the agent calls it.
const USER_METHOD: &str = "user";

/// Standard input of one agent.
#[derive(Default)]
pub(crate) struct StdinWriter {
    /// Pipe to the agent; none when the agent reads no prompts from git-proq, or no longer.
    pipe: Option<Sender>,
    outbox: Outbox,
    /// Messages that were sent to the agent and to which it has not reacted. No other process delivers
    /// messages until it has.
    pending_messages: Option<ClaimedMessages>,
    /// Whether the reader of the run's log has read the log entry of the pending messages.
    is_log_entry_read: bool,
    /// Whether the agent gets messages after its task.
    accepts_messages: bool,
    /// Number of messages that were sent.
    message_count: u64,
    /// Prefixes by which the agent would take a prompt for a command of its own.
    command_prefixes: Vec<String>,
}

impl StdinWriter {
    /// Starts to write to the agent of `spec` through `pipe`, its task first.
    ///
    /// # Errors
    /// Fails when the task cannot be read.
    pub fn start(spec: &RunSpec, pipe: PipeWriter) -> Result<StdinWriter, Error> {
        let pipe_error = |source| process::Error::NotStarted { program: "the agent".into(), source };
        let mut outbox = Outbox::default();
        if let Some(file) = &spec.stdin_file {
            let text =
                proq_base::regular_file::read_store_text(file).map_err(lane::Error::io("read", file))?;
            outbox.push(&prompt_line(&text));
        }
        let pipe = Sender::from_owned_fd(OwnedFd::from(pipe)).map_err(pipe_error)?;
        let accepts_messages = spec.accepts_messages && !spec.resolves_conflict;
        let command_prefixes = spec.command_prefixes.clone();
        Ok(StdinWriter {
            pipe: Some(pipe),
            outbox,
            accepts_messages,
            command_prefixes,
            ..StdinWriter::default()
        })
    }

    /// Returns whether bytes wait to be written.
    pub(crate) fn has_pending_output(&self) -> bool {
        self.pipe.is_some() && self.outbox.next_bytes().is_some()
    }

    /// Writes some of the waiting bytes and returns their number. Never returns when none wait.
    pub async fn write(&mut self) -> std::io::Result<usize> {
        match (self.pipe.as_mut(), self.outbox.next_bytes()) {
            (Some(pipe), Some(bytes)) => pipe.write(bytes).await,
            _ => std::future::pending().await,
        }
    }

    /// Records that bytes were written. After an error the pipe is closed: the agent no longer reads, and its
    /// exit follows.
    pub(crate) fn record_written(&mut self, written: &std::io::Result<usize>) {
        match written {
            Ok(bytes) => self.outbox.consume(*bytes),
            Err(_) => self.pipe = None,
        }
    }

    /// Returns whether the end of the agent's turn must be handled.
    pub(crate) fn awaits_turn_end(&self) -> bool {
        self.pipe.is_some() && self.pending_messages.is_none()
    }

    /// Sends the agent, after a finished turn, the messages that wait in the lane's inbox for its
    /// conversation. Closes its input if none wait or `may_continue` is false. `log` is the run's log, which
    /// is not inside a line.
    pub(crate) fn handle_turn_end(
        &mut self,
        store: &Store,
        lane: &AnyLane,
        conversation: RunNumber,
        may_continue: bool,
        log: &Path,
    ) {
        let is_wrapping_up = store.layout().lane_wrap_up_marker(&lane.name).exists();
        if !self.accepts_messages || !may_continue || is_wrapping_up || !self.has_reader() {
            self.pipe = None;
            return;
        }
        match Inbox::new(store, &lane.name).claim(conversation) {
            Ok(messages) if !messages.messages.is_empty() => {
                let text =
                    escape_command_prompt(&self.command_prefixes, join_message_texts(messages.texts()));
                if self.log_message(&text, log).is_err() {
                    self.pipe = None;
                    return;
                }
                self.outbox.push(&prompt_line(&text));
                (self.pending_messages, self.is_log_entry_read) = (Some(messages), false);
            }
            // The supervisor finds the fault of the inbox and reports it.
            Ok(_) | Err(_) => self.pipe = None,
        }
    }

    /// Returns whether a process has the other end of the pipe open. An agent that only reads its task exits
    /// without a further prompt.
    fn has_reader(&self) -> bool {
        let Some(pipe) = &self.pipe else { return false };
        let descriptor = pipe.as_fd();
        let mut ends = [PollFd::new(&descriptor, PollFlags::OUT)];
        let no_wait = Timespec { tv_sec: 0, tv_nsec: 0 };
        let polled = poll(&mut ends, Some(&no_wait));
        let closed_flags = PollFlags::ERR | PollFlags::HUP;
        polled.is_ok() && ends.iter().all(|end| !end.revents().intersects(closed_flags))
    }

    /// Writes the message into the log before the agent can react to it.
    fn log_message(&mut self, text: &str, log: &Path) -> std::io::Result<()> {
        self.message_count += 1;
        let (id, method) = (self.message_count, USER_METHOD.to_owned());
        let entry = ClientLine::Request { id, method, session: None, message: Some(text.to_owned()) };
        File::options().append(true).open(log)?.write_all(entry.to_line().as_bytes())
    }

    /// Processes an event of the agent. Returns whether it is the agent's reaction to the pending messages,
    /// which are then marked as delivered.
    pub(crate) fn observe_event(
        &mut self,
        store: &Store,
        lane: &LaneName,
        run_number: RunNumber,
        event: &StreamEvent,
    ) -> bool {
        match event {
            StreamEvent::MessageSent { .. } => self.is_log_entry_read = true,
            // These events do not belong to a turn.
            StreamEvent::Session { .. }
            | StreamEvent::Warning { .. }
            | StreamEvent::Unknown { .. }
            | StreamEvent::Retry { .. } => {}
            _ if self.is_log_entry_read => {
                self.is_log_entry_read = false;
                let Some(messages) = self.pending_messages.take() else { return false };
                if Inbox::new(store, lane).record_delivered(run_number, &messages).is_err() {
                    // The messages still wait in the inbox, and would be found again at the end of each turn.
                    self.accepts_messages = false;
                }
                return true;
            }
            _ => {}
        }
        false
    }
}

/// Returns a prompt as a line of `--input-format stream-json`.
fn prompt_line(text: &str) -> Value {
    json!({ "type": "user", "message": { "role": "user", "content": text } })
}
