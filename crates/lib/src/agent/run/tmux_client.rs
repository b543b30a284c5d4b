//! Supervisor's part of a run in a tmux window: it communicates with the pane process and enforces the run's
//! time limit.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use proq_base::process::{signals, strays};
use proq_store::base::atomic::write as write_atomically;
use proq_store::base::record::Record;
use proq_store::paths::layout::Layout;
use proq_store::records::run::{RunRecord, TmuxWindow};
use proq_stream::base::run_end::Exit;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::unix::OwnedReadHalf;
use tokio::net::{UnixListener, UnixStream};

use super::watch::{ExitHint, RunExit, RunWatcher, SIGKILL_WAIT_STATUS};
use crate::agent::Error;
use crate::agent::base::limits::{StopCause, wait_until};
use crate::agent::base::shutdown_signals::ShutdownSignals;
use crate::agent::git_guard::GitGuard;
use crate::agent::hook_events::activity;
use crate::agent::launch::run_spec::final_summary;
use crate::agent::tmux::pane_process::{LaunchRequest, PaneMessage};
use crate::agent::tmux::tmux_window;
use crate::lane;
use crate::lane::state::crash_reason;

/// Time limit for the first message of a new window's first process.
const FIRST_MESSAGE_TIMEOUT: Duration = Duration::from_secs(30);

/// Connection to the pane process, from which the supervisor receives messages.
struct PaneConnection {
    /// Id of the pane process, and of the process group that it leads.
    pid: u32,
    lines: Lines<BufReader<OwnedReadHalf>>,
}

/// Starts the agent in a tmux window and waits until it exits or git-proq must stop it. Passes the agent's
/// process group to `on_started`. Afterwards ends every process that the agent left running.
///
/// # Errors
/// Fails when no window can be opened, or when the agent cannot be started in it.
pub async fn run(
    watch: &RunWatcher<'_>,
    shutdown: &mut ShutdownSignals,
    on_started: impl FnOnce(u32) -> Result<(), Error>,
) -> Result<RunExit, Error> {
    let listener = bind_socket(watch)?;
    let launch_request = encode_launch_request(watch)?;
    let window = tmux_window::open_window(watch.project, watch.lane, watch.run_number)?;
    let connect = async { accept_pane_process(&listener, &launch_request).await };
    let timed_out = || Err(Error::WindowFailed { reason: "it did not respond".to_owned() });
    let connected =
        tokio::time::timeout(FIRST_MESSAGE_TIMEOUT, connect).await.unwrap_or_else(|_| timed_out());
    drop(listener);
    // The socket file is removed, so that no other process can connect.
    drop(std::fs::remove_file(Layout::pane_socket(&socket_dir(watch))));
    let mut pane = match connected {
        Ok(pane_process) => pane_process,
        Err(e) => {
            // The window may have started the agent before the connection failed.
            watch.end_all_processes(0);
            return Err(e);
        }
    };
    let process_group = pane.pid;
    if let Err(e) = record_window(watch, &window).and_then(|()| on_started(process_group)) {
        watch.end_all_processes(process_group);
        tmux_window::close_window(&window, process_group);
        return Err(e);
    }
    activity::emit_initial_needs_approval(watch.project, watch.lane, watch.run_number);
    let (status, cause) = wait_for_end(watch, &mut pane, shutdown).await;
    let strays = watch.end_all_processes(process_group);
    tmux_window::close_window(&window, process_group);
    let hint = write_final_screen(watch).map(ExitHint::Screen);
    let mut reader = watch.spec.new_output_reader();
    let exit = Exit { code: status.code(), signal: status.signal() };
    let summary = reader.finish(exit, &mut Vec::new());
    let account = final_summary(reader.progress(), &summary, None);
    Ok(RunExit {
        status,
        cause,
        stray_count: strays,
        summary,
        recorded_summary: account,
        watch_error: None,
        hint,
    })
}

/// Binds a socket in the run's own folder, on which the window's first process connects.
fn bind_socket(watch: &RunWatcher<'_>) -> Result<UnixListener, Error> {
    let dir = socket_dir(watch);
    let failed = |what| lane::Error::io(what, &dir);
    // The length of a socket's path is limited, so the socket is bound by its bare file name from inside the
    // folder.
    std::env::set_current_dir(&dir).map_err(failed("enter"))?;
    let bound = UnixListener::bind(Layout::PANE_SOCKET).map_err(failed("create a socket in"));
    std::env::set_current_dir(watch.project.repo.command_dir()).map_err(failed("leave"))?;
    Ok(bound?)
}

/// Returns the run's folder, in which the socket and the saved screen are.
fn socket_dir(watch: &RunWatcher<'_>) -> PathBuf {
    watch.project.store.layout().run_dir(&watch.lane.name, watch.run_number)
}

/// Encodes as JSON what the pane process starts: argument vector, environment and working directory.
fn encode_launch_request(watch: &RunWatcher<'_>) -> Result<Vec<u8>, Error> {
    let spec = watch.spec;
    let git_guard = GitGuard::prepare(watch.project, watch.lane, watch.run_number, &spec.work_dir)?;
    let (variable, hooks) = git_guard.hooks_env_var();
    let mut env = LaunchRequest::inherited_env();
    env.extend(spec.env.iter().map(|(key, value)| (key.into(), value.clone())));
    env.push((variable.into(), hooks));
    env.push((strays::RUN_MARK_VAR.into(), watch.process_mark.into()));
    let launch_request = LaunchRequest { argv: spec.argv.clone(), env, dir: spec.work_dir.clone().into() };
    serde_json::to_vec(&launch_request).map_err(|e| Error::WindowFailed { reason: e.to_string() })
}

/// Accepts the connection of the pane process, sends it the launch request, and waits for its report. Fails
/// when it reports that the agent could not be started.
async fn accept_pane_process(
    listener: &UnixListener,
    launch_request: &[u8],
) -> Result<PaneConnection, Error> {
    let connection_error = |e: std::io::Error| Error::WindowFailed { reason: e.to_string() };
    let (stream, _) = listener.accept().await.map_err(connection_error)?;
    let (read_half, mut write_half) = UnixStream::into_split(stream);
    write_half.write_all(launch_request).await.map_err(connection_error)?;
    write_half.shutdown().await.map_err(connection_error)?;
    let mut pane = PaneConnection { pid: 0, lines: BufReader::new(read_half).lines() };
    match pane.next_message().await {
        Some(PaneMessage::Started(pid)) => Ok(PaneConnection { pid, ..pane }),
        Some(PaneMessage::Failed(why)) => Err(Error::WindowFailed { reason: why }),
        _ => Err(Error::WindowFailed { reason: "it was closed at once".to_owned() }),
    }
}

impl PaneConnection {
    /// Receives the next message of the process; none when the process is gone.
    async fn next_message(&mut self) -> Option<PaneMessage> {
        let line = self.lines.next_line().await.ok()??;
        serde_json::from_str(&line).ok()
    }

    /// Waits until the agent has exited and returns its status. If the pane process disappears without a
    /// report, the agent counts as killed.
    async fn wait_for_exit(&mut self) -> ExitStatus {
        loop {
            match self.next_message().await {
                Some(PaneMessage::Ended(raw)) => return ExitStatus::from_raw(raw),
                Some(_) => {}
                None => return ExitStatus::from_raw(SIGKILL_WAIT_STATUS),
            }
        }
    }
}

async fn wait_for_end(
    watch: &RunWatcher<'_>,
    pane: &mut PaneConnection,
    shutdown: &mut ShutdownSignals,
) -> (ExitStatus, Option<StopCause>) {
    let deadline = watch.limits.time.and_then(|time| Instant::now().checked_add(time));
    let cause = tokio::select! {
        biased;
        () = shutdown.wait() => StopCause::Requested,
        word = pane.next_message() => match word {
            Some(PaneMessage::Ended(raw)) => return (ExitStatus::from_raw(raw), None),
            _ => StopCause::WindowClosed,
        },
        () = wait_until(deadline) => StopCause::TimeLimit,
    };
    signals::terminate_group(pane.pid);
    tokio::select! {
        status = pane.wait_for_exit() => return (status, Some(cause)),
        () = watch.wait_stop_grace(shutdown) => {}
    }
    signals::stop_group(pane.pid, Duration::ZERO);
    (pane.wait_for_exit().await, Some(cause))
}

/// Replaces the run's log, which until now only names the attach command, by the last screen of its window.
/// Returns the last text of that screen, if it was saved.
fn write_final_screen(watch: &RunWatcher<'_>) -> Option<String> {
    let screen_bytes = proq_base::regular_file::read_store_file(Layout::pane_screen(&socket_dir(watch))).ok();
    let mut text = b"This run was in a window of tmux".to_vec();
    match &screen_bytes {
        Some(screen) => text.extend([b", which ended with:\n\n", screen.as_slice()].concat()),
        None => text.extend(b"; its last screen was not saved.\n"),
    }
    let log = watch.project.store.layout().run_log(&watch.lane.name, watch.run_number);
    // Ignored: only users read the log, and the outcome of the run does not depend on it.
    drop(write_atomically(&log, &text));
    screen_bytes.and_then(|_| crash_reason::last_output(&Layout::pane_screen(&socket_dir(watch))))
}

/// Records the window in the run's record, and writes the command that attaches to it into the run's log.
fn record_window(watch: &RunWatcher<'_>, window: &TmuxWindow) -> Result<(), Error> {
    let (layout, lane) = (watch.project.store.layout(), &watch.lane.name);
    let path = layout.run_record(lane, watch.run_number);
    let mut run = RunRecord::load(&path)?;
    run.window = Some(window.clone());
    run.save(&path)?;
    let log: &Path = &layout.run_log(lane, watch.run_number);
    let text = format!("This run is in a window of tmux: git proq open {lane}\n");
    Ok(std::fs::write(log, text).map_err(lane::Error::io("write", log))?)
}
