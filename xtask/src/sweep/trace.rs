//! Owns running one program, with all that it starts, under a plan for one of its mutating calls.

use std::collections::HashSet;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use libc::{c_int, pid_t};

use super::Outcome;
use super::calls::Call;
use super::sys::{self, Stop};

/// What is to happen at which call. The first one is number 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plan {
    /// Nothing; the calls are listed.
    Watch,
    /// Everything is killed before this call takes effect.
    Kill(usize),
    /// The process that makes this call is killed before it takes effect. Only calls of processes other than the command
    /// count.
    KillChild(usize),
    /// This call fails, and the later ones too when `lasting`.
    Fail {
        /// The first call that fails.
        at: usize,
        /// With which error.
        errno: c_int,
        /// Whether all later calls fail as well: those that need room when the disk is full, else every one.
        lasting: bool,
    },
    /// A signal is sent to the command's process group, as a terminal does.
    Signal {
        /// At which call.
        at: usize,
        /// Which one.
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

/// How a run went.
#[derive(Debug, Default)]
pub(super) struct Run {
    /// The calls, up to the one that the plan was for; all of them when it was only watched.
    pub(super) calls: Vec<Call>,
    /// The call that the plan was for; None when the run ended before.
    pub(super) hit: Option<Call>,
    /// The exit code of the command itself.
    pub(super) code: i32,
    /// The command's process number.
    pub(super) pid: pid_t,
    /// Whether it wrote anything to its output.
    pub(super) has_answered: bool,
}

/// Looks at what is on disk before each call takes effect; it is given the command's process number.
pub(super) type Watcher<'a> = &'a mut (dyn FnMut(pid_t) -> Outcome<()> + 'a);

/// How long a run may take; none takes a hundredth of it. One that is watched waits for its watcher, too.
const LONG: Duration = Duration::from_mins(2);
const LONG_WATCHED: Duration = Duration::from_mins(20);

/// Runs a command to the end of it and of all its children. `ours` are files whose changes do not count.
pub(super) fn run(
    command: Command,
    plan: Plan,
    ours: &[PathBuf],
    watcher: Option<Watcher<'_>>,
) -> Outcome<Run> {
    let tracer = sys::thread();
    let (done, wait) = mpsc::channel::<()>();
    let long = if watcher.is_some() { LONG_WATCHED } else { LONG };
    std::thread::scope(|scope| {
        // Something that waits for ever is ended, and shows as 128 + 9.
        scope.spawn(move || {
            if wait.recv_timeout(long) == Err(RecvTimeoutError::Timeout) {
                for pid in traced_by(tracer) {
                    sys::signal(pid, libc::SIGKILL);
                }
            }
        });
        let run = run_to_its_end(command, plan, ours, watcher);
        drop(done);
        run
    })
}

/// Whether this system lets a process be traced by its parent; some containers do not.
pub(super) fn is_possible() -> bool {
    run(Command::new("true"), Plan::Watch, &[], None).is_ok_and(|run| run.code == 0)
}

/// All processes that a thread traces.
fn traced_by(tracer: pid_t) -> Vec<pid_t> {
    let line = format!("TracerPid:\t{tracer}");
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|e| e.file_name().to_str()?.parse().ok());
    let status = |pid: &pid_t| std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    pids.filter(|pid| status(pid).lines().any(|l| l == line)).collect()
}

fn run_to_its_end(
    mut command: Command,
    plan: Plan,
    ours: &[PathBuf],
    watcher: Option<Watcher<'_>>,
) -> Outcome<Run> {
    sys::traced(&mut command);
    let child = command.spawn()?;
    let root = pid_t::try_from(child.id())?;
    let run = Run { pid: root, ..Run::default() };
    let mut tracer =
        Tracer { root, plan, ours, watcher, count: 0, killed: false, alive: HashSet::new(), run };
    while let Some((pid, stop)) = sys::wait()? {
        tracer.see(pid, stop)?;
    }
    Ok(tracer.run)
}

struct Tracer<'a, 'w> {
    root: pid_t,
    plan: Plan,
    ours: &'a [PathBuf],
    watcher: Option<Watcher<'w>>,
    count: usize,
    killed: bool,
    alive: HashSet<pid_t>,
    run: Run,
}

impl Tracer<'_, '_> {
    fn see(&mut self, pid: pid_t, stop: Stop) -> Outcome<()> {
        if let Stop::End(code) = stop {
            self.alive.remove(&pid);
            if pid == self.root {
                self.run.code = code;
            }
            return Ok(());
        }
        let new = self.alive.insert(pid);
        if self.killed {
            sys::signal(pid, libc::SIGKILL);
            return Ok(());
        }
        match stop {
            Stop::Call => self.call(pid),
            // The first stop of the command is its exec, that of a child of its own making.
            Stop::Signal(libc::SIGTRAP) if new && pid == self.root => {
                sys::follow(pid)?;
                sys::resume(pid, 0);
                Ok(())
            }
            Stop::Signal(libc::SIGSTOP) if new => {
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

    fn call(&mut self, pid: pid_t) -> Outcome<()> {
        let call = sys::registers(pid).ok().and_then(|regs| Call::at(pid, self.root, &regs, self.ours));
        let counts = |call: &Call| call.of_child || !matches!(self.plan, Plan::KillChild(_));
        let Some(call) = call.filter(counts) else {
            sys::resume(pid, 0);
            return Ok(());
        };
        self.count += 1;
        if let Some(watcher) = &mut self.watcher {
            watcher(self.root)?;
        }
        let due = self.count == self.plan.at();
        match self.plan {
            Plan::Kill(_) if due => {
                self.killed = true;
                for pid in &self.alive {
                    sys::signal(*pid, libc::SIGKILL);
                }
            }
            Plan::KillChild(_) if due => sys::signal(pid, libc::SIGKILL),
            Plan::Fail { errno, .. } if due => sys::fail_call(pid, errno)?,
            Plan::Fail { at, errno, lasting: true }
                if self.count > at && (errno != libc::ENOSPC || call.needs_room) =>
            {
                sys::fail_call(pid, errno)?;
            }
            Plan::Signal { signal, .. } if due => sys::signal(-self.root, signal),
            _ => {}
        }
        if due {
            self.run.hit = Some(call.clone());
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
