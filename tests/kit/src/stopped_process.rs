//! Processes stopped at a named point of the program (`PROQ_TEST_STAND_AT`), while others continue.

use super::Sandbox;
use super::waiting::{wait_for, wait_until};

/// Process that is stopped. It continues when this is dropped, also when its test fails.
#[must_use]
pub struct StoppedProcess<'a> {
    sandbox: &'a Sandbox,
    pid: String,
}

impl Drop for StoppedProcess<'_> {
    fn drop(&mut self) {
        let _ = self.sandbox.sh(&format!("kill -CONT {} || true", self.pid));
    }
}

impl Sandbox {
    /// Waits until a process is stopped.
    #[track_caller]
    pub fn wait_until_stopped(&self, pid: impl std::fmt::Display) -> StoppedProcess<'_> {
        let pid = pid.to_string();
        wait_until("it stands still", || {
            let mut command = self.command("ps", &self.root());
            command.args(["-o", "stat=", "-p", &pid]);
            self.output(command).stdout.trim().starts_with('T')
        });
        StoppedProcess { sandbox: self, pid }
    }

    /// Returns the id of the process that acquired a lock of a lane last: `run`, `moved`.
    #[track_caller]
    pub fn lock_holder(&self, lane: &str, lock: &str) -> String {
        let file = self.lane_lock(lane, &format!("{lock}.holder"));
        wait_for("a note of who holds it", || {
            let text = std::fs::read_to_string(&file).ok()?;
            text.lines().find_map(|line| line.strip_prefix("pid = ")).map(ToOwned::to_owned)
        })
    }
}
