//! Tracer: runs one program, with all processes that it starts, under a plan for one of its mutating calls.

use std::collections::HashSet;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use libc::{c_int, pid_t};

use super::Outcome;
use super::mutating_calls::Call;
use super::sys::{self, Stop};

/// Plan of what happens at which call. The first call is number 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plan {
    /// Only list the calls.
    Watch,
    /// Kill all processes before this call takes effect.
    Kill(usize),
    /// Kill the process that makes this call before it takes effect. Only calls of processes other than the
    /// command count.
    KillChild(usize),
    /// Let this call fail, and the later ones too if `lasting`.
    Fail {
        /// First call that fails.
        at: usize,
        /// Error number.
        errno: c_int,
        /// Whether later calls fail as well: those that need disk space if the disk is full, otherwise every
        /// one.
        lasting: bool,
    },
    /// Send a signal to the command's process group, as a terminal does.
    Signal {
        /// Number of the call.
        at: usize,
        /// Signal number.
        signal: c_int,
    },
}

impl Plan {
    fn at(self) -> usize {
        match self {
            Plan::Watch => usize::MAX,
            Plan::Kill(at) | Plan::KillChild(at) | Plan::Fail { at, .. } | Plan::Signal { at, .. } => at,
        }
    }
}

/// Result of a traced run.
#[derive(Debug, Default)]
pub(super) struct TracedRun {
    /// Calls up to the planned one; all of them when the run was only watched.
    pub(super) calls: Vec<Call>,
    /// Planned call; none if the run ended before it.
    pub(super) planned_call: Option<Call>,
    /// Exit code of the command itself.
    pub(super) code: i32,
    /// Process number of the command.
    pub(super) pid: pid_t,
    /// Whether the command wrote to its standard output.
    pub(super) wrote_output: bool,
}

/// Callback that inspects the disk before each call takes effect; its argument is the command's process
/// number.
pub(super) type Watcher<'a> = &'a mut (dyn FnMut(pid_t) -> Outcome<()> + 'a);

/// Time limits of a run; no run takes a hundredth of it. A watched run also waits for its watcher.
const RUN_TIMEOUT: Duration = Duration::from_mins(2);
const WATCHED_RUN_TIMEOUT: Duration = Duration::from_mins(20);

/// Runs a command to its end and to that of all its children. Changes to `ignored_files` do not count.
pub(super) fn run_traced(
    command: Command,
    plan: Plan,
    ignored_files: &[PathBuf],
    watcher: Option<Watcher<'_>>,
) -> Outcome<TracedRun> {
    let tracer = sys::thread_id();
    let (done, wait) = mpsc::channel::<()>();
    let timeout = if watcher.is_some() { WATCHED_RUN_TIMEOUT } else { RUN_TIMEOUT };
    std::thread::scope(|scope| {
        // A process that waits forever is killed, and its exit code is 128 + 9.
        scope.spawn(move || {
            if wait.recv_timeout(timeout) == Err(RecvTimeoutError::Timeout) {
                for pid in traced_by(tracer) {
                    sys::signal(pid, libc::SIGKILL);
                }
            }
        });
        let run = trace_to_end(command, plan, ignored_files, watcher);
        drop(done);
        run
    })
}

/// Returns whether this system lets a process be traced by its parent; some containers do not.
pub(super) fn can_trace() -> bool {
    run_traced(Command::new("true"), Plan::Watch, &[], None).is_ok_and(|run| run.code == 0)
}

/// Returns all processes that a thread traces.
fn traced_by(tracer: pid_t) -> Vec<pid_t> {
    let line = format!("TracerPid:\t{tracer}");
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|e| e.file_name().to_str()?.parse().ok());
    let status = |pid: &pid_t| std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    pids.filter(|pid| status(pid).lines().any(|l| l == line)).collect()
}

fn trace_to_end(
    mut command: Command,
    plan: Plan,
    ignored_files: &[PathBuf],
    watcher: Option<Watcher<'_>>,
) -> Outcome<TracedRun> {
    sys::enable_tracing(&mut command);
    let child = command.spawn()?;
    let root = pid_t::try_from(child.id())?;
    let run = TracedRun { pid: root, ..TracedRun::default() };
    let mut tracer =
        Tracer { root, plan, ignored_files, watcher, count: 0, killed: false, alive: HashSet::new(), run };
    while let Some((pid, stop)) = sys::wait()? {
        tracer.handle_stop(pid, stop)?;
    }
    Ok(tracer.run)
}

struct Tracer<'a, 'w> {
    root: pid_t,
    plan: Plan,
    ignored_files: &'a [PathBuf],
    watcher: Option<Watcher<'w>>,
    count: usize,
    killed: bool,
    alive: HashSet<pid_t>,
    run: TracedRun,
}

impl Tracer<'_, '_> {
    fn handle_stop(&mut self, pid: pid_t, stop: Stop) -> Outcome<()> {
        if let Stop::End(code) = stop {
            self.alive.remove(&pid);
            if pid == self.root {
                self.run.code = code;
            }
            return Ok(());
        }
        let is_new = self.alive.insert(pid);
        if self.killed {
            sys::signal(pid, libc::SIGKILL);
            return Ok(());
        }
        match stop {
            Stop::Call => self.handle_call(pid),
            // The first stop of the command is its exec; a child's first stop is its creation.
            Stop::Signal(libc::SIGTRAP) if is_new && pid == self.root => {
                sys::set_trace_options(pid)?;
                sys::resume(pid, 0);
                Ok(())
            }
            Stop::Signal(libc::SIGSTOP) if is_new => {
                sys::resume(pid, 0);
                Ok(())
            }
            Stop::Signal(signal) => {
                sys::resume(pid, signal);
                Ok(())
            }
            Stop::Event | Stop::End(_) => {
                sys::resume(pid, 0);
                Ok(())
            }
        }
    }

    fn handle_call(&mut self, pid: pid_t) -> Outcome<()> {
        let call = sys::registers(pid)
            .ok()
            .and_then(|regs| Call::from_stopped(pid, self.root, &regs, self.ignored_files));
        let counts = |call: &Call| call.is_from_child || !matches!(self.plan, Plan::KillChild(_));
        let Some(call) = call.filter(counts) else {
            sys::resume(pid, 0);
            return Ok(());
        };
        self.count += 1;
        if let Some(watcher) = &mut self.watcher {
            watcher(self.root)?;
        }
        let is_due = self.count == self.plan.at();
        match self.plan {
            Plan::Kill(_) if is_due => {
                self.killed = true;
                for pid in &self.alive {
                    sys::signal(*pid, libc::SIGKILL);
                }
            }
            Plan::KillChild(_) if is_due => sys::signal(pid, libc::SIGKILL),
            Plan::Fail { errno, .. } if is_due => sys::fail_call(pid, errno)?,
            Plan::Fail { at, errno, lasting: true }
                if self.count > at && (errno != libc::ENOSPC || call.needs_disk_space) =>
            {
                sys::fail_call(pid, errno)?;
            }
            Plan::Signal { signal, .. } if is_due => sys::signal(-self.root, signal),
            _ => {}
        }
        if is_due {
            self.run.planned_call = Some(call.clone());
        }
        if self.count <= self.plan.at() {
            self.run.calls.push(call);
        }
        if !self.killed {
            sys::resume(pid, 0);
        }
        Ok(())
    }
}
