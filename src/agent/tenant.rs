//! Owns the first process of a window: it starts the agent there, and tells the supervisor how that goes.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use rustix::io::{FdFlags, fcntl_setfd};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::Error;
use super::window;
use crate::explain::with_causes;
use crate::lane::{self, Project};
use crate::process::{self, Spawned, Start};
use crate::store::{Guard, LockName, write_atomically};

/// The socket in the run's own folder by which a window and its supervisor talk.
pub(super) const DOOR: &str = "pane";

/// The file in the run's own folder for what its window showed last.
pub(super) const SCREEN: &str = "screen";

/// Variables that say what a terminal is like. The window's count, not those of the terminal that the run was asked for on.
const OF_THE_TERMINAL: &[&str] = &[
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

/// What is to be started. It goes by a socket: tmux would show it to everybody, and takes no long words.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Lease {
    /// The command line.
    pub(super) words: Vec<OsString>,
    /// All its variables but those of the terminal.
    pub(super) env: Vec<(OsString, OsString)>,
    /// Where it runs.
    pub(super) dir: OsString,
}

impl Lease {
    /// The variables of this process, without those of its terminal.
    pub(super) fn variables() -> Vec<(OsString, OsString)> {
        std::env::vars_os().filter(|(key, _)| !is_of_the_terminal(key)).collect()
    }
}

fn is_of_the_terminal(key: &OsString) -> bool {
    key.to_str().is_some_and(|key| OF_THE_TERMINAL.contains(&key))
}

/// What the first process of a window says, a line each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Word {
    /// The agent runs, in the group of this process.
    Started(u32),
    /// It could not be started.
    Failed(String),
    /// The terminal is gone.
    Closed,
    /// The agent has ended, with this status as the system has it.
    Ended(i32),
}

/// Starts what the supervisor of a lane's run says, on this process's terminal, and waits for its end.
///
/// # Errors
/// When nobody is there to say so. Everything else is told to the supervisor.
pub(crate) fn inhabit(project: &Project, lane: &str, attempt: u32) -> Result<(), Error> {
    let failed = |source| process::Error::Start { program: "the window's event loop".into(), source };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    runtime.block_on(live(project, lane, attempt))
}

async fn live(project: &Project, lane: &str, attempt: u32) -> Result<(), Error> {
    let dir = project.store.layout().run_dir(lane, attempt);
    let unheard = lane::Error::io("talk to the supervisor in", &dir);
    // They are the agent's to obey, which is in the same group; this process ends when the agent has.
    let listen = |kind| signal(kind).map_err(lane::Error::io("listen in", &dir));
    let mut closed = listen(SignalKind::hangup())?;
    let _for_the_agent = [SignalKind::interrupt(), SignalKind::quit(), SignalKind::terminate()].map(listen);
    // A socket's name may be short only.
    std::env::set_current_dir(&dir).map_err(lane::Error::io("enter", &dir))?;
    let mut line = UnixStream::connect(DOOR).await.map_err(unheard)?;
    let mut bytes = Vec::new();
    line.read_to_end(&mut bytes).await.map_err(lane::Error::io("read from the supervisor in", &dir))?;
    // As long as this process lives, it keeps the lock too: it is a part of the run.
    let (mut child, _alive) = match begin(project, lane, &bytes) {
        Ok(begun) => begun,
        Err(e) => {
            say(&mut line, Word::Failed(with_causes(&e))).await;
            return Ok(());
        }
    };
    say(&mut line, Word::Started(std::process::id())).await;
    let status = attend(&mut child, &mut closed, &mut line).await;
    let raw = status.map_or(9, ExitStatusExt::into_raw);
    // The window goes when this process does.
    if let Some(screen) = window::shown_here() {
        drop(write_atomically(&dir.join(SCREEN), screen.as_bytes()));
    }
    say(&mut line, Word::Ended(raw)).await;
    Ok(())
}

/// Waits for the agent's end, and tells of the terminal's.
async fn attend(
    child: &mut Spawned,
    closed: &mut Signal,
    line: &mut UnixStream,
) -> std::io::Result<std::process::ExitStatus> {
    let mut told = false;
    process::let_go_of_code();
    loop {
        tokio::select! {
            // The agent may end of it too; why it did is the terminal all the same.
            biased;
            _ = closed.recv(), if !told => {
                told = true;
                say(line, Word::Closed).await;
            }
            status = child.wait() => {
                // An agent that reads the end of its input may be faster than the signal.
                if !told && !rustix::stdio::stdin().is_terminal() {
                    say(line, Word::Closed).await;
                }
                return status;
            }
        }
    }
}

fn begin(project: &Project, lane: &str, bytes: &[u8]) -> Result<(Spawned, Guard), Error> {
    let unread = |e: serde_json::Error| Error::Window { why: e.to_string() };
    let lease: Lease = serde_json::from_slice(bytes).map_err(unread)?;
    // Where a person opens another pane beside this one, tmux opens it in this process's folder.
    std::env::set_current_dir(&lease.dir).map_err(lane::Error::io("enter", Path::new(&lease.dir)))?;
    let (program, args) = lease.words.split_first().ok_or(Error::NoCommand)?;
    let mut start = Start::new(program.as_ref(), Path::new(&lease.dir)).args(args).with_nothing_else();
    for (key, value) in std::env::vars_os().filter(|(key, _)| is_of_the_terminal(key)).chain(lease.env) {
        start = start.env(key, value);
    }
    let alive = project.store.locks().take(&LockName::Alive(lane.to_owned()))?;
    // Inherited on purpose, as it is without a window. Nothing else is started by this process while the agent lives.
    let failed =
        |e: rustix::io::Errno| process::Error::Start { program: "the agent".into(), source: e.into() };
    fcntl_setfd(alive.file(), FdFlags::empty()).map_err(failed)?;
    let child = start.spawn_beside()?;
    Ok((child, alive))
}

/// The supervisor may be gone: the agent lives on without it, as it does without a window.
async fn say(line: &mut UnixStream, word: Word) {
    let text = serde_json::to_string(&word).unwrap_or_default();
    drop(line.write_all(format!("{text}\n").as_bytes()).await);
}
