//! Owns processes that stand still at a named point of the program (`PROQ_TEST_STAND_AT`), while others go on.

use super::Sandbox;
use super::patience::{wait_for, wait_until};

/// One that stands still. It goes on when this is dropped, also where its test fails.
#[must_use]
pub struct Standing<'a> {
    sandbox: &'a Sandbox,
    pid: String,
}

impl Drop for Standing<'_> {
    fn drop(&mut self) {
        let _ = self.sandbox.sh(&format!("kill -CONT {} || true", self.pid));
    }
}

impl Sandbox {
    /// Waits until a process stands still.
    #[track_caller]
    pub fn standing(&self, pid: impl std::fmt::Display) -> Standing<'_> {
        let pid = pid.to_string();
        wait_until("it stands still", || {
            let mut command = self.command("ps", &self.root());
            command.args(["-o", "stat=", "-p", &pid]);
            self.output(command).stdout.trim().starts_with('T')
        });
        Standing { sandbox: self, pid }
    }

    /// The process that has taken a lock of a lane last: `run`, `moved`.
    #[track_caller]
    pub fn holder(&self, lane: &str, lock: &str) -> String {
        let file = self.lock(lane, &format!("{lock}.holder"));
        wait_for("a note of who holds it", || {
            let text = std::fs::read_to_string(&file).ok()?;
            text.lines().find_map(|line| line.strip_prefix("pid = ")).map(ToOwned::to_owned)
        })
    }
}
