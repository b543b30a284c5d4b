//! Processes stopped at a named point of the program (`PROQ_TEST_STAND_AT`), while others continue.

use std::process::Stdio;

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
    /// Runs the program, which stops at the point `stop_at`, and `script` while it is stopped. Then it continues, and
    /// is killed at `die_at` if that point is not empty. Returns its exit code and what it printed.
    #[track_caller]
    pub fn run_while_stopped(
        &self,
        args: &[&str],
        (stop_at, die_at): (&str, &str),
        script: &str,
    ) -> (Option<i32>, String) {
        let mut command = self.proq_command(&self.repo, args);
        command.env("PROQ_TEST_STAND_AT", stop_at).env("PROQ_TEST_DIE_AT", die_at);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stopped = self.wait_until_stopped(child.id());
        self.sh(script);
        drop(stopped);
        let out = child.wait_with_output().unwrap();
        (out.status.code(), String::from_utf8([out.stdout, out.stderr].concat()).unwrap())
    }

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
