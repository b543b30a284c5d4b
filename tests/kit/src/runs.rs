//! The state of a repository while and after agents run, and the end of a supervisor.

use crate::Sandbox;
use crate::claude::sandbox_with_claude;
use crate::waiting::wait_until_unlocked;

/// Returns all refs, the status of the main checkout, and the worktrees.
pub fn repository_state(sandbox: &Sandbox) -> [String; 3] {
    [&["for-each-ref"][..], &["status", "--porcelain"], &["worktree", "list"]].map(|args| sandbox.git(args))
}

/// Returns the messages of all events about changes outside of a lane.
pub fn escape_messages(sandbox: &Sandbox) -> Vec<String> {
    let all = sandbox.events("lane.escape");
    all.iter().map(|event| sandbox.normalize(event["message"].as_str().unwrap().as_bytes())).collect()
}

/// Kills the supervisor of a lane, as a crash would.
pub fn kill_supervisor(sandbox: &Sandbox, lane: &str) {
    let holder = std::fs::read_to_string(sandbox.lane_lock(lane, "run.holder")).unwrap();
    let pid = holder.lines().find_map(|l| l.strip_prefix("pid = ")).unwrap();
    kill_process(sandbox, pid);
    wait_for_supervisor_exit(sandbox, lane);
}

/// Kills a process by its id, which fails the test if there is none.
pub fn kill_process(sandbox: &Sandbox, pid: &str) {
    let mut command = sandbox.command("kill", &sandbox.root());
    command.args(["-9", pid]);
    let _ = sandbox.output(command).ok();
}

/// Waits until the supervisor of a lane has exited: its lock is free then.
pub fn wait_for_supervisor_exit(sandbox: &Sandbox, lane: &str) {
    wait_until_unlocked(&sandbox.lane_lock(lane, "run.lock"));
}

/// Returns lane `x`, whose first run is over and whose automatic landing is under way: the base has moved,
/// and the landing continues once `end` is written. The lane stays when it has landed.
pub fn sandbox_with_running_landing() -> Sandbox {
    let sandbox = sandbox_with_claude(
        r#"begin; if [ $n = 1 ]; then echo > "$ROOT/up"; read go < "$ROOT/go"; fi; echo $n >> work; well"#,
    );
    for pipe in ["up", "go", "landed", "end"] {
        sandbox.pipe(pipe);
    }
    let hook =
        r#"test -e "$ROOT/once" || { echo > "$ROOT/once"; echo > "$ROOT/landed"; read go < "$ROOT/end"; }"#;
    sandbox.sh(&format!(
        "printf '#!/bin/sh\n%s\n' '{hook}' > .git/hooks/post-merge; chmod +x .git/hooks/post-merge"
    ));
    let _ = sandbox.proq(&["spawn", "-n", "x", "--auto-merge", "claude", "do it"]).ok();
    sandbox.read_pipe("up");
    // Makes the lane stay.
    sandbox.git(&["worktree", "lock", ".proq-worktrees/x"]);
    sandbox.write_pipe("go");
    sandbox.read_pipe("landed");
    sandbox
}

/// Returns a sandbox whose lane `old` has commits and uncommitted work, on a base that has moved on.
pub fn sandbox_with_old_lane() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.program(
        "writer",
        "cat \"$PROQ_TASK_FILE\" > said.txt; ls > seen.txt; git add .; git commit -qm said",
    );
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "old", "writer", "Say it"]).ok();
    sandbox.write_in(&sandbox.lane_path("old"), "left.txt", "left\n");
    sandbox.sh("echo new > new.txt; git add new.txt; git commit -qm 'main goes on'");
    sandbox
}

impl Sandbox {
    /// Returns a file that the fake agent recorded.
    #[track_caller]
    pub fn agent_record(&self, name: &str) -> String {
        std::fs::read_to_string(self.root().join("notes").join(name)).unwrap()
    }

    /// Returns the last run of a lane, as `show --json` prints it.
    #[track_caller]
    pub fn last_run(&self, lane: &str) -> serde_json::Value {
        let shown = self.proq(&["show", lane, "--json"]).json();
        shown["runs"].as_array().unwrap().last().unwrap().clone()
    }
}
