//! A child process with a time limit that needs no event loop: its exit, and stopping every process that it
//! started.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::{WaitId, WaitIdOptions, waitid};
use serde::{Deserialize, Serialize};
use tokio::signal::unix::{SignalKind, signal};

use super::Error;
use super::command_builder::CommandBuilder;
use super::identity::{start_time_of, to_signalable_pid};
use super::signals::stop_group;

/// Grace period for processes that a program leaves running in its group.
const LEFTOVER_GRACE: Duration = Duration::from_secs(2);

/// How a program exited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExitOutcome {
    /// Exited normally, with this exit code.
    Code(i32),
    /// Was killed by this signal.
    Signal(i32),
    /// Was stopped at this time limit.
    TimedOut(#[serde(with = "crate::time_form::seconds")] Duration),
}

impl ExitOutcome {
    /// Converts the exit status of a program without a time limit.
    pub fn from_status(status: ExitStatus) -> ExitOutcome {
        match (status.code(), status.signal()) {
            (Some(code), _) => ExitOutcome::Code(code),
            (None, signal) => ExitOutcome::Signal(signal.unwrap_or_default()),
        }
    }

    /// Returns whether the program exceeded its time limit.
    pub fn is_timeout(self) -> bool {
        matches!(self, ExitOutcome::TimedOut(_))
    }

    /// Returns whether the program exited with code 0.
    pub fn is_success(self) -> bool {
        self == ExitOutcome::Code(0)
    }
}

impl std::fmt::Display for ExitOutcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ExitOutcome::Code(code) => write!(f, "exit code {code}"),
            ExitOutcome::Signal(signal) => write!(f, "signal {signal}"),
            ExitOutcome::TimedOut(limit) => write!(f, "timed out after {} s", limit.as_secs()),
        }
    }
}

/// A child process in its own process group, with a time limit. Dropping it stops the group.
#[derive(Debug)]
#[must_use]
pub struct LimitedProcess {
    child: Child,
    started: Instant,
    /// Time after which the group is stopped.
    limit: Duration,
    /// Time between TERM and KILL.
    grace: Duration,
    /// Whether the group was stopped, so that it is not stopped twice.
    is_stopped: bool,
}

impl CommandBuilder {
    /// Starts the program in a new process group, for polling. After `limit` it is stopped: TERM, `grace`,
    /// KILL.
    pub fn spawn_limited(self, limit: Duration, grace: Duration) -> Result<LimitedProcess, Error> {
        let child = self.spawn_in_group()?;
        Ok(LimitedProcess { child, started: Instant::now(), limit, grace, is_stopped: false })
    }
}

impl LimitedProcess {
    /// Returns the process id, which is also the id of the group.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the start time, which distinguishes the process from a later one with the same id.
    pub fn start_time(&self) -> Option<String> {
        start_time_of(self.child.id())
    }

    /// Returns how long the program has been running.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns how the program exited, or none while it runs. Its group has been stopped by the time this
    /// returns an outcome.
    pub fn poll(&mut self) -> Result<Option<ExitOutcome>, Error> {
        if self.started.elapsed() >= self.limit {
            self.stop(self.grace);
            return Ok(Some(ExitOutcome::TimedOut(self.limit)));
        }
        // The process stays a zombie until its group is stopped, so that its id cannot be reused before.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let Some(id) = to_signalable_pid(self.child.id()) else { return Ok(None) };
        match waitid(WaitId::Pid(id), options) {
            Ok(None) | Err(rustix::io::Errno::INTR) => return Ok(None),
            Ok(Some(_)) => {}
            Err(e) => return Err(self.signal_error(e.into())),
        }
        self.stop(LEFTOVER_GRACE);
        let status = self.child.wait().map_err(|e| self.signal_error(e))?;
        Ok(Some(ExitOutcome::from_status(status)))
    }

    /// Waits for the exit under a running event loop, asleep until a child of this process exits or the time
    /// limit is reached. A canceled wait can be repeated.
    pub async fn wait_for_exit(&mut self) -> Result<ExitOutcome, Error> {
        // Registers the signal before the first poll, so that no exit is missed.
        let mut child_exits = signal(SignalKind::child()).map_err(|e| self.signal_error(e))?;
        loop {
            if let Some(outcome) = self.poll()? {
                return Ok(outcome);
            }
            tokio::select! {
                _ = child_exits.recv() => {}
                () = tokio::time::sleep(self.limit.saturating_sub(self.started.elapsed())) => {}
            }
        }
    }

    /// Stops the group, once: TERM, `grace`, KILL.
    fn stop(&mut self, grace: Duration) {
        if !self.is_stopped {
            self.is_stopped = true;
            stop_group(self.child.id(), grace);
        }
    }

    fn signal_error(&self, source: std::io::Error) -> Error {
        Error::NotSignaled { pid: self.child.id(), source }
    }
}

impl Drop for LimitedProcess {
    fn drop(&mut self) {
        self.stop(self.grace);
        // Reaps the process without waiting: one that survived even KILL would block.
        drop(self.child.try_wait());
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn shell(script: &str, limit: Duration) -> LimitedProcess {
        let builder = CommandBuilder::new(Path::new("/bin/sh"), Path::new("/")).args(["-c", script]);
        builder.spawn_limited(limit, Duration::from_secs(5)).unwrap()
    }

    fn poll_until_exit(mut process: LimitedProcess) -> ExitOutcome {
        loop {
            if let Some(outcome) = process.poll().unwrap() {
                return outcome;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn waits_for_exit_without_polling() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut process = shell("exec sleep 0.3", Duration::from_mins(1));
        assert_eq!(runtime.block_on(process.wait_for_exit()).unwrap(), ExitOutcome::Code(0));
        let mut process = shell("sleep 600 & exec sleep 600", Duration::from_millis(30));
        assert_eq!(
            runtime.block_on(process.wait_for_exit()).unwrap(),
            ExitOutcome::TimedOut(Duration::from_millis(30))
        );
        assert!(!crate::process::signals::is_group_alive(process.id()));
    }

    #[test]
    fn reports_exit_code_or_signal() {
        let long = Duration::from_mins(1);
        assert!(poll_until_exit(shell("exit 0", long)).is_success());
        assert_eq!(poll_until_exit(shell("exit 7", long)).to_string(), "exit code 7");
        assert_eq!(poll_until_exit(shell("kill -9 $$", long)), ExitOutcome::Signal(9));
    }

    #[test]
    fn time_limit_stops_whole_group() {
        let process = shell("sleep 600 & exec sleep 600", Duration::from_millis(30));
        let group = process.id();
        assert_eq!(poll_until_exit(process), ExitOutcome::TimedOut(Duration::from_millis(30)));
        assert!(!crate::process::signals::is_group_alive(group));
    }

    /// Promise: checks/time-limit
    #[test]
    fn stops_processes_left_in_group() {
        let process = shell("sleep 600 & exit 3", Duration::from_mins(1));
        let group = process.id();
        assert_eq!(poll_until_exit(process), ExitOutcome::Code(3));
        assert!(!crate::process::signals::is_group_alive(group));
    }
}
