//! Owns a program that is watched without an event loop: how it ended, its time limit, and the end of all it started.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::{WaitId, WaitIdOptions, waitid};
use serde::{Deserialize, Serialize};
use tokio::signal::unix::{SignalKind, signal};

use super::group::{end_group, pid};
use super::{Error, Start, birth_of};

/// How long whatever a program leaves running in its group may take to end.
const LEFT_OVER: Duration = Duration::from_secs(2);

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// By itself, with this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// After this many seconds it was ended.
    TimedOut(u64),
}

impl Ended {
    /// How a program ended that nobody timed.
    pub(crate) fn of(status: ExitStatus) -> Ended {
        match (status.code(), status.signal()) {
            (Some(code), _) => Ended::Code(code),
            (None, signal) => Ended::Signal(signal.unwrap_or_default()),
        }
    }

    /// Whether it took too long.
    pub(crate) fn is_timeout(self) -> bool {
        matches!(self, Ended::TimedOut(_))
    }

    /// Whether it says that all is well.
    pub(crate) fn is_success(self) -> bool {
        self == Ended::Code(0)
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ended::Code(code) => write!(f, "exit code {code}"),
            Ended::Signal(signal) => write!(f, "signal {signal}"),
            Ended::TimedOut(seconds) => write!(f, "timed out after {seconds} s"),
        }
    }
}

/// A program in a process group of its own. Dropping it ends the group.
#[derive(Debug)]
#[must_use]
pub(crate) struct Watched {
    child: Child,
    since: Instant,
    limit: Duration,
    grace: Duration,
    over: bool,
}

impl Start {
    /// Starts it in a process group of its own, to be asked from time to time. After `limit` it is ended: TERM, `grace`,
    /// KILL.
    pub(crate) fn spawn_limited(self, limit: Duration, grace: Duration) -> Result<Watched, Error> {
        let child = self.spawn_in_group()?;
        Ok(Watched { child, since: Instant::now(), limit, grace, over: false })
    }
}

impl Watched {
    /// Its number, which is also that of its group.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// What tells it from a later process of the same number.
    pub(crate) fn birth(&self) -> Option<String> {
        birth_of(self.child.id())
    }

    /// How long it has been running.
    pub(crate) fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }

    /// How it ended, once it has; its whole group is gone then.
    pub(crate) fn poll(&mut self) -> Result<Option<Ended>, Error> {
        if self.since.elapsed() >= self.limit {
            self.end(self.grace);
            return Ok(Some(Ended::TimedOut(self.limit.as_secs())));
        }
        // It stays on the list of processes until its group is ended: the number cannot be somebody else's meanwhile.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let Some(id) = pid(self.child.id()) else { return Ok(None) };
        match waitid(WaitId::Pid(id), options) {
            Ok(None) | Err(rustix::io::Errno::INTR) => return Ok(None),
            Ok(Some(_)) => {}
            Err(e) => return Err(self.lost(e.into())),
        }
        self.end(LEFT_OVER);
        let status = self.child.wait().map_err(|e| self.lost(e))?;
        Ok(Some(Ended::of(status)))
    }

    /// Waits for its end under a running event loop, asleep until a child of this process ends or its time is up. Whoever stops
    /// waiting can wait again.
    pub(crate) async fn ended(&mut self) -> Result<Ended, Error> {
        // Listened for before it is looked, so that no end falls between.
        let mut ends = signal(SignalKind::child()).map_err(|e| self.lost(e))?;
        loop {
            if let Some(ended) = self.poll()? {
                return Ok(ended);
            }
            tokio::select! {
                _ = ends.recv() => {}
                () = tokio::time::sleep(self.limit.saturating_sub(self.since.elapsed())) => {}
            }
        }
    }

    fn end(&mut self, grace: Duration) {
        if !self.over {
            self.over = true;
            end_group(self.child.id(), grace);
        }
    }

    fn lost(&self, source: std::io::Error) -> Error {
        Error::Signal { pid: self.child.id(), source }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.end(self.grace);
        // Collects it; whoever could not be ended even by KILL is not waited for.
        drop(self.child.try_wait());
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn sh(script: &str, limit: Duration) -> Watched {
        let start = Start::new(Path::new("/bin/sh"), Path::new("/")).args(["-c", script]);
        start.spawn_limited(limit, Duration::from_secs(5)).unwrap()
    }

    fn end_of(mut watched: Watched) -> Ended {
        loop {
            if let Some(ended) = watched.poll().unwrap() {
                return ended;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn it_is_waited_for_without_looking_again_and_again() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut watched = sh("exec sleep 0.3", Duration::from_mins(1));
        assert_eq!(runtime.block_on(watched.ended()).unwrap(), Ended::Code(0));
        let mut watched = sh("sleep 600 & exec sleep 600", Duration::from_millis(30));
        assert_eq!(runtime.block_on(watched.ended()).unwrap(), Ended::TimedOut(0));
        assert!(!super::super::group_lives(watched.id()));
    }

    #[test]
    fn the_end_is_told_as_it_was() {
        let long = Duration::from_mins(1);
        assert!(end_of(sh("exit 0", long)).is_success());
        assert_eq!(end_of(sh("exit 7", long)).to_string(), "exit code 7");
        assert_eq!(end_of(sh("kill -9 $$", long)), Ended::Signal(9));
    }

    #[test]
    fn a_limit_ends_it_and_all_that_it_started() {
        let watched = sh("sleep 600 & exec sleep 600", Duration::from_millis(30));
        let group = watched.id();
        assert_eq!(end_of(watched), Ended::TimedOut(0));
        assert!(!super::super::group_lives(group));
    }

    #[test]
    fn what_it_leaves_running_goes_with_it() {
        let watched = sh("sleep 600 & exit 3", Duration::from_mins(1));
        let group = watched.id();
        assert_eq!(end_of(watched), Ended::Code(3));
        assert!(!super::super::group_lives(group));
    }
}
