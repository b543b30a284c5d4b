//! Process between a supervisor and an agent that speaks the Agent Client Protocol. It starts the agent in
//! the agent's own process group, exchanges the protocol's messages, and delivers follow-up messages from the
//! lane's inbox.
//!
//! The driver process receives the run's log as an open file, and a pipe that closes when the supervisor
//! exits. Once the pipe has closed, the agent's current turn is its last one.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use proq_base::lane_name::LaneName;
use proq_base::process;
use proq_base::process::command_builder::{AsyncChild, CommandBuilder};
use proq_base::process::signals;
use proq_store::Store;
use proq_store::base::record::Record;
use proq_store::base::run_number::RunNumber;
use proq_store::records::lane::AnyLane;
use proq_store::records::run::RunRecord;
use proq_stream::base::client_line::ClientLine;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe::Receiver;
use tokio::process::{ChildStdin, ChildStdout};

use super::client::{Client, ClientAction, ClientConfig};
use super::relay::OutputRelay;
use super::tool_policy::ToolPolicy;
use crate::agent::Error;
use crate::agent::base::limits::wait_until;
use crate::agent::base::outbox::Outbox;
use crate::agent::base::shutdown_signals::ShutdownSignals;
use crate::agent::command::allowed_commands::AllowedCommands;
use crate::agent::hook_events::stop_gate::lane_checks;
use crate::agent::launch::run_spec::work_dir_and_prompt_file;
use crate::agent::profiles::profile::permission::Permission;
use crate::agent::profiles::profile_catalog::find_profile;
use crate::lane;
use crate::lane::Project;
use crate::lane::messages::inbox::{ClaimedMessages, Inbox, join_texts as join_message_texts};

/// Size in bytes of the buffer for one read of the agent's output.
const READ_BUFFER_SIZE: usize = 64 * 1024;

/// Time that an agent whose input is closed has to exit before SIGTERM, and then again before SIGKILL.
const EXIT_WAIT_LIMIT: Duration = Duration::from_secs(2);

/// Time to wait for further output of an agent that has exited. A process that the agent left running may
/// hold the output open.
const OUTPUT_DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Exit code or signal with which the driver process ends, so that the supervisor sees how the agent exited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriverExit {
    /// Exit with this code.
    Code(i32),
    /// End by this signal.
    Signal(i32),
}

/// Log and pipe that the driver process was started with.
pub struct DriverHandles {
    /// The run's log, open for writing.
    pub log: File,
    /// Pipe that closes when the supervisor exits. Any other file where no supervisor started the process.
    pub supervisor_pipe: OwnedFd,
}

/// Starts the agent with `command` for a run of a lane, and speaks the Agent Client Protocol with it until
/// the agent has exited.
///
/// # Errors
/// Fails when the run has no record or the agent cannot be started.
pub fn run_protocol_agent(
    project: &Project,
    name: &LaneName,
    run_number: RunNumber,
    command: &[OsString],
    handles: DriverHandles,
) -> Result<DriverExit, Error> {
    let runtime_error = |source| process::Error::NotStarted { program: "the event loop".into(), source };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(runtime_error)?;
    runtime.block_on(async {
        let mut driver = Driver::start(project, name, run_number, command, handles)?;
        let actions = driver.client.initialize();
        driver.perform(actions);
        driver.run().await
    })
}

/// How far the driver is in ending the agent, from a running agent to a killed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShutdownProgress {
    Running,
    /// The agent was sent a request to end its turn.
    Cancelling,
    /// The agent's input is closed.
    InputClosed,
    /// The agent was sent SIGTERM.
    Terminating,
    /// The agent was sent SIGKILL.
    Killed,
}

struct Driver<'a> {
    store: &'a Store,
    lane: AnyLane,
    run_number: RunNumber,
    stop_grace: Duration,
    child: AsyncChild,
    agent_pid: u32,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    relay: OutputRelay<File>,
    outbox: Outbox,
    client: Client,
    signals: ShutdownSignals,
    /// Pipe from the supervisor; none once the supervisor has exited.
    supervisor_pipe: Option<Receiver>,
    /// Whether messages from the inbox are delivered. A run that resolves a conflict accepts none.
    accepts_messages: bool,
    /// Number of the run that began the conversation. Messages for another conversation stay in the inbox.
    conversation: RunNumber,
    /// Messages that were sent to the agent and to which it has not reacted. No other process delivers
    /// messages until it has.
    pending_messages: Option<ClaimedMessages>,
    /// How far the driver is in ending the agent.
    shutdown: ShutdownProgress,
    /// Whether a stop was requested before the agent's input was closed.
    is_stop_requested: bool,
    /// Time at which the driver uses the next means of ending the agent, or stops waiting for the output of
    /// an exited one; none while it waits for neither.
    escalation_deadline: Option<Instant>,
    /// Exit status of the agent; none while it runs.
    agent_exit_status: Option<ExitStatus>,
    output_buffer: Vec<u8>,
}

/// Occurrence to which the driver reacts: a signal, input or output, an exit, or a passed deadline.
enum DriverEvent {
    /// A signal requests that the run stops.
    StopRequested,
    /// The supervisor has exited.
    SupervisorGone,
    /// This many bytes of the agent's output were read.
    OutputRead(std::io::Result<usize>),
    /// This many bytes were written to the agent's input.
    InputWritten(std::io::Result<usize>),
    AgentExited(std::io::Result<ExitStatus>),
    /// The deadline of the current shutdown action, or of the wait for further output, has passed.
    DeadlinePassed,
}

impl<'a> Driver<'a> {
    fn start(
        project: &'a Project,
        name: &LaneName,
        run_number: RunNumber,
        command: &[OsString],
        handles: DriverHandles,
    ) -> Result<Driver<'a>, Error> {
        // Listen for signals before the agent exists, so that no early signal is missed.
        let signals = ShutdownSignals::listen()?;
        let lane = project.any_lane(name)?;
        let run = RunRecord::load(&project.store.layout().run_record(name, run_number))?;
        let (dir, _) = work_dir_and_prompt_file(project, &lane, run_number, run.resolves_conflict);
        let client = Client::new(
            load_client_config(project, &lane, &run)?,
            load_tool_policy(project, &lane, &run, &dir)?,
        );
        let (program, args) = command.split_first().ok_or(Error::NoCommand)?;
        // The agent gets the environment of this process, including the variables of the git guard.
        let mut start = CommandBuilder::new(program.as_ref(), &dir).args(args).with_cleared_env();
        for (key, value) in std::env::vars_os() {
            start = start.env(key, value);
        }
        let mut child = start.spawn_with_pipes()?;
        Ok(Driver {
            store: &project.store,
            run_number,
            stop_grace: project.settings.stop_grace,
            agent_pid: child.id().unwrap_or_default(),
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            child,
            relay: OutputRelay::new(handles.log),
            outbox: Outbox::default(),
            client,
            signals,
            // There may be no supervisor pipe when the process was started by hand.
            supervisor_pipe: Receiver::from_owned_fd(handles.supervisor_pipe).ok(),
            accepts_messages: !run.resolves_conflict,
            conversation: run.conversation_number(),
            pending_messages: None,
            shutdown: ShutdownProgress::Running,
            is_stop_requested: false,
            escalation_deadline: None,
            agent_exit_status: None,
            output_buffer: vec![0; READ_BUFFER_SIZE],
            lane,
        })
    }

    async fn run(&mut self) -> Result<DriverExit, Error> {
        loop {
            match self.next_event().await {
                DriverEvent::StopRequested => self.stop_or_escalate(),
                DriverEvent::SupervisorGone => (self.supervisor_pipe, self.accepts_messages) = (None, false),
                DriverEvent::OutputRead(Ok(0) | Err(_)) => {
                    self.stdout = None;
                    if let Some(line) = self.relay.finish_last_line() {
                        let actions = self.client.receive_line(&line);
                        self.perform(actions);
                    }
                    self.close_input();
                }
                DriverEvent::OutputRead(Ok(bytes)) => self.process_output(bytes),
                DriverEvent::InputWritten(Ok(bytes)) => self.outbox.consume(bytes),
                // The agent no longer reads its input. Its exit, or the end of its output, follows.
                DriverEvent::InputWritten(Err(_)) => self.stdin = None,
                DriverEvent::AgentExited(status) => {
                    let wait_error =
                        |source| process::Error::NotStarted { program: "the agent".into(), source };
                    self.agent_exit_status = Some(status.map_err(wait_error)?);
                    self.escalation_deadline = Some(Instant::now() + OUTPUT_DRAIN_TIMEOUT);
                }
                DriverEvent::DeadlinePassed => self.escalate(),
            }
            if let Some(status) = self.agent_exit_status.filter(|_| self.stdout.is_none()) {
                return Ok(self.driver_exit(status));
            }
        }
    }

    async fn next_event(&mut self) -> DriverEvent {
        let Driver {
            signals,
            supervisor_pipe,
            stdin,
            stdout,
            outbox,
            child,
            output_buffer: buffer,
            escalation_deadline: deadline,
            agent_exit_status: exit_status,
            ..
        } = self;
        let can_read = !outbox.is_full();
        let has_output = outbox.next_bytes().is_some();
        let writing = async {
            match (stdin.as_mut(), outbox.next_bytes()) {
                (Some(stdin), Some(bytes)) => stdin.write(bytes).await,
                _ => std::future::pending().await,
            }
        };
        let reading = async {
            match stdout.as_mut() {
                Some(stdout) => stdout.read(buffer).await,
                None => std::future::pending().await,
            }
        };
        let supervisor_exit = async {
            match supervisor_pipe.as_mut() {
                // The supervisor never writes to the pipe, so a read returns only when it is closed.
                Some(pipe) => drop(pipe.read(&mut [0]).await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // The agent's output comes last: an agent that never stops writing must not block the other
            // events.
            biased;
            () = signals.wait() => DriverEvent::StopRequested,
            () = supervisor_exit => DriverEvent::SupervisorGone,
            () = wait_until(*deadline) => DriverEvent::DeadlinePassed,
            status = child.wait(), if exit_status.is_none() => DriverEvent::AgentExited(status),
            bytes = writing, if has_output => DriverEvent::InputWritten(bytes),
            bytes = reading, if can_read => DriverEvent::OutputRead(bytes),
        }
    }

    /// Processes the first `length` bytes of the buffer, which were just read from the agent's output.
    fn process_output(&mut self, length: usize) {
        self.relay.feed(self.output_buffer.get(..length).unwrap_or_default());
        while let Some(line) = self.relay.next_line() {
            let actions = self.client.receive_line(&line);
            self.perform(actions);
        }
    }

    fn perform(&mut self, actions: Vec<ClientAction>) {
        for action in actions {
            match action {
                ClientAction::Send(message) => self.outbox.push(&message),
                ClientAction::Log(entry) => self.relay.write_entry(&entry),
                ClientAction::ConfirmDelivery => self.confirm_delivery(),
                ClientAction::ContinueAfterTurn => {
                    let next_actions = self.next_turn_or_finish();
                    self.perform(next_actions);
                }
                ClientAction::CloseInput => self.close_input(),
            }
        }
    }

    /// Returns the actions after a finished turn: send the messages that wait in the inbox for this
    /// conversation, or finish. While this process lives, the supervisor waits for its exit and takes no
    /// messages. Without a supervisor this process takes none either.
    fn next_turn_or_finish(&mut self) -> Vec<ClientAction> {
        if !self.accepts_messages {
            return self.client.finish();
        }
        match Inbox::new(self.store, &self.lane.name).claim(self.conversation) {
            Ok(messages) if !messages.messages.is_empty() => {
                let text = join_message_texts(messages.texts());
                self.pending_messages = Some(messages);
                self.client.send_message(&text)
            }
            // The supervisor finds the fault of the inbox and reports it.
            Ok(_) | Err(_) => self.client.finish(),
        }
    }

    /// Records that the agent has received the pending messages, so that they are not sent again.
    fn confirm_delivery(&mut self) {
        let Some(messages) = self.pending_messages.take() else { return };
        if let Err(e) = Inbox::new(self.store, &self.lane.name).record_delivered(self.run_number, &messages) {
            // The messages still wait in the inbox, and would be found again at the end of each turn.
            self.accepts_messages = false;
            let text = format!("its messages may be sent once more: {e}");
            self.relay.write_entry(&ClientLine::Note { text });
        }
    }

    /// Requests that the agent ends its turn. On a repeated request, continues with the next means of ending
    /// the agent.
    fn stop_or_escalate(&mut self) {
        match self.shutdown {
            ShutdownProgress::Running => {
                let actions = self.client.cancel();
                self.shutdown = ShutdownProgress::Cancelling;
                self.escalation_deadline = Some(Instant::now() + self.stop_grace / 3);
                self.perform(actions);
            }
            _ => self.escalate(),
        }
    }

    /// Closes the agent's input, after which no request can follow.
    fn close_input(&mut self) {
        if !matches!(self.shutdown, ShutdownProgress::Running | ShutdownProgress::Cancelling) {
            return;
        }
        self.stdin = None;
        self.is_stop_requested = self.shutdown == ShutdownProgress::Cancelling;
        self.shutdown = ShutdownProgress::InputClosed;
        if self.agent_exit_status.is_none() {
            self.escalation_deadline = Some(Instant::now() + self.exit_wait_limit());
        }
    }

    /// Returns the time that the agent has to exit before the driver uses the next means of ending it. When a
    /// run is being stopped, the supervisor ends the run once the stop grace has passed, so each means gets a
    /// third of it.
    fn exit_wait_limit(&self) -> Duration {
        if self.is_stop_requested { self.stop_grace / 3 } else { EXIT_WAIT_LIMIT }
    }

    /// Uses the next means of ending the agent: closed input, SIGTERM, SIGKILL. After its exit, stops waiting
    /// for more output.
    fn escalate(&mut self) {
        if self.agent_exit_status.is_some() {
            // Another process holds the agent's output open.
            self.stdout = None;
            if let Some(line) = self.relay.finish_last_line() {
                let actions = self.client.receive_line(&line);
                self.perform(actions);
            }
            return;
        }
        match self.shutdown {
            ShutdownProgress::Running | ShutdownProgress::Cancelling => self.close_input(),
            ShutdownProgress::InputClosed => {
                // An error means that the agent has just exited and needs no signal.
                let _already_exited = signals::terminate_process(self.agent_pid);
                self.shutdown = ShutdownProgress::Terminating;
                self.escalation_deadline = Some(Instant::now() + self.exit_wait_limit());
            }
            ShutdownProgress::Terminating | ShutdownProgress::Killed => {
                let _already_exited = self.child.start_kill();
                self.shutdown = ShutdownProgress::Killed;
                self.escalation_deadline = None;
            }
        }
    }

    /// Returns the exit of the driver process: success when this process has finished the conversation, and
    /// otherwise the agent's exit code or signal.
    fn driver_exit(&self, status: ExitStatus) -> DriverExit {
        if self.client.is_finished() {
            return DriverExit::Code(0);
        }
        match (status.signal(), status.code()) {
            (Some(signal), _) => DriverExit::Signal(signal),
            (None, code) => DriverExit::Code(code.unwrap_or(1)),
        }
    }
}

/// Loads the working directory, session and prompts of a run's agent.
fn load_client_config(project: &Project, lane: &AnyLane, run: &RunRecord) -> Result<ClientConfig, Error> {
    let layout = project.store.layout();
    let (dir, prompt_file) = work_dir_and_prompt_file(project, lane, run.number, run.resolves_conflict);
    let read =
        |path: &Path| proq_base::regular_file::read_store_text(path).map_err(lane::Error::io("read", path));
    let prompt = read(&prompt_file)?;
    let restart_prompt_file = layout.run_restart_prompt(&lane.name, run.number);
    Ok(ClientConfig {
        work_dir: dir,
        lane: lane.name.clone(),
        run_number: run.number,
        git_proq_path: project.git_proq_path()?.to_owned(),
        session_to_resume: run.chosen_session.clone().filter(|_| run.resumes_session),
        prompt,
        restart_prompt: restart_prompt_file.exists().then(|| read(&restart_prompt_file)).transpose()?,
    })
}

/// Loads the permission level, directory and checks that limit a run's agent.
fn load_tool_policy(
    project: &Project,
    lane: &AnyLane,
    run: &RunRecord,
    work_dir: &Path,
) -> Result<ToolPolicy, Error> {
    let level = run.permission.as_deref().and_then(Permission::from_name).unwrap_or_default();
    let dir = work_dir.canonicalize().map_err(lane::Error::io("find", work_dir))?;
    let profile = find_profile(&project.layers, &run.agent)?;
    let allowed = AllowedCommands::collect(project, &profile, &run.agent, level, &run.allow)?.patterns;
    Ok(ToolPolicy { level, lane_dir: dir, checks: lane_checks(project, lane)?, allowed })
}
