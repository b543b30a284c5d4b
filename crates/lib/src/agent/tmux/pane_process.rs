//! First process of an agent's tmux pane: it starts the agent there and reports its start and exit to the
//! supervisor.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use proq_base::explain::describe_with_causes;
use proq_base::lane_name::LaneName;
use proq_base::process;
use proq_base::process::command_builder::{AsyncChild, CommandBuilder};
use proq_store::Store;
use proq_store::base::atomic::write as write_atomically;
use proq_store::base::run_number::RunNumber;
use proq_store::locks::lock::{LockGuard, LockName};
use proq_store::paths::layout::Layout;
use rustix::io::{FdFlags, fcntl_setfd};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::tmux_window;
use crate::agent::Error;
use crate::lane;

/// Variables that describe a terminal. The agent gets those of its pane, not those of the terminal on which
/// you requested the run.
const TERMINAL_VARIABLES: &[&str] = &[
    "COLORTERM",
    "COLUMNS",
    "LINES",
    "TERM",
    "TERMINFO",
    "TERM_PROGRAM",
    "TERM_PROGRAM_VERSION",
    "TMUX",
    "TMUX_PANE",
];

/// Request to launch an agent in a pane. It is sent over a socket, because tmux would show its command line
/// to every user and does not accept long arguments.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LaunchRequest {
    /// The agent's argument vector.
    #[serde(rename = "words")]
    pub argv: Vec<OsString>,
    /// All environment variables of the agent, except those that describe the terminal.
    pub env: Vec<(OsString, OsString)>,
    /// Working directory of the agent.
    pub dir: OsString,
}

impl LaunchRequest {
    /// Returns the environment of the current process, without the variables that describe its terminal.
    pub(crate) fn inherited_env() -> Vec<(OsString, OsString)> {
        std::env::vars_os().filter(|(key, _)| !is_terminal_variable(key)).collect()
    }
}

fn is_terminal_variable(key: &OsString) -> bool {
    key.to_str().is_some_and(|key| TERMINAL_VARIABLES.contains(&key))
}

/// Message from the first process of a pane to the supervisor, one JSON value per line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PaneMessage {
    /// The agent runs, in the process group with this id.
    Started(u32),
    /// The agent could not be started, for this reason.
    Failed(String),
    /// The terminal was closed.
    Closed,
    /// The agent exited with this raw wait status.
    Ended(i32),
}

/// Starts the agent that the supervisor of a lane's run requests, on this process's terminal, and waits for
/// its exit.
///
/// # Errors
/// Fails when the connection to the supervisor cannot be made or read. Every other failure is reported to the
/// supervisor.
pub fn run_pane_process(store: &Store, lane: &LaneName, run_number: RunNumber) -> Result<(), Error> {
    let failed = |source| process::Error::NotStarted { program: "the window's event loop".into(), source };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    runtime.block_on(run_agent(store, lane, run_number))
}

async fn run_agent(store: &Store, lane: &LaneName, run_number: RunNumber) -> Result<(), Error> {
    let dir = store.layout().run_dir(lane, run_number);
    let connect_failed = lane::Error::io("talk to the supervisor in", &dir);
    // These signals are meant for the agent, which is in the same process group. This process exits after the
    // agent.
    let listen = |kind| signal(kind).map_err(lane::Error::io("listen in", &dir));
    let mut hangup = listen(SignalKind::hangup())?;
    let _ignored_signals = [SignalKind::interrupt(), SignalKind::quit(), SignalKind::terminate()].map(listen);
    // The length of a socket path is limited.
    std::env::set_current_dir(&dir).map_err(lane::Error::io("enter", &dir))?;
    let mut socket = UnixStream::connect(Layout::PANE_SOCKET).await.map_err(connect_failed)?;
    let mut bytes = Vec::new();
    socket.read_to_end(&mut bytes).await.map_err(lane::Error::io("read from the supervisor in", &dir))?;
    // This process is part of the run, so it holds the lock as long as it lives.
    let (mut child, _alive_lock) = match start_agent(store, lane, &bytes) {
        Ok(started) => started,
        Err(e) => {
            send_message(&mut socket, PaneMessage::Failed(describe_with_causes(&e))).await;
            return Ok(());
        }
    };
    send_message(&mut socket, PaneMessage::Started(std::process::id())).await;
    let status = wait_for_exit(&mut child, &mut hangup, &mut socket).await;
    let wait_status = status.map_or(9, ExitStatusExt::into_raw);
    // The pane closes when this process exits.
    if let Some(screen) = tmux_window::capture_own_window() {
        drop(write_atomically(&Layout::pane_screen(&dir), screen.as_bytes()));
    }
    send_message(&mut socket, PaneMessage::Ended(wait_status)).await;
    Ok(())
}

/// Waits for the agent to exit, and reports a closed terminal to the supervisor.
async fn wait_for_exit(
    child: &mut AsyncChild,
    hangup: &mut Signal,
    socket: &mut UnixStream,
) -> std::io::Result<std::process::ExitStatus> {
    let mut is_close_sent = false;
    loop {
        tokio::select! {
            // A closed terminal may also end the agent. The terminal is then still the cause to report.
            biased;
            _ = hangup.recv(), if !is_close_sent => {
                is_close_sent = true;
                send_message(socket, PaneMessage::Closed).await;
            }
            status = child.wait() => {
                // An agent that reads the end of its input may exit before the signal arrives.
                if !is_close_sent && !rustix::stdio::stdin().is_terminal() {
                    send_message(socket, PaneMessage::Closed).await;
                }
                return status;
            }
        }
    }
}

fn start_agent(store: &Store, lane: &LaneName, bytes: &[u8]) -> Result<(AsyncChild, LockGuard), Error> {
    let invalid_request = |e: serde_json::Error| Error::WindowFailed { reason: e.to_string() };
    let request: LaunchRequest = serde_json::from_slice(bytes).map_err(invalid_request)?;
    // When you open another pane next to this one, tmux opens it in this process's working directory.
    std::env::set_current_dir(&request.dir).map_err(lane::Error::io("enter", Path::new(&request.dir)))?;
    let (program, args) = request.argv.split_first().ok_or(Error::NoCommand)?;
    let mut command =
        CommandBuilder::new(program.as_ref(), Path::new(&request.dir)).args(args).with_cleared_env();
    for (key, value) in std::env::vars_os().filter(|(key, _)| is_terminal_variable(key)).chain(request.env) {
        command = command.env(key, value);
    }
    let alive_lock = store.locks().acquire(&LockName::AgentAlive(lane.clone()))?;
    // Inherited on purpose, as without a window. This process starts nothing else while the agent lives.
    let failed =
        |e: rustix::io::Errno| process::Error::NotStarted { program: "the agent".into(), source: e.into() };
    fcntl_setfd(alive_lock.file(), FdFlags::empty()).map_err(failed)?;
    let child = command.spawn_on_terminal()?;
    Ok((child, alive_lock))
}

/// Sends a message to the supervisor. A failure is ignored: the agent continues without its supervisor, as it
/// does without a window.
async fn send_message(socket: &mut UnixStream, message: PaneMessage) {
    let text = serde_json::to_string(&message).unwrap_or_default();
    drop(socket.write_all(format!("{text}\n").as_bytes()).await);
}
