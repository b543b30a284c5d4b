//! Anonymous memory that supervisors take while their agents run: what one more supervisor takes from all
//! other processes. Code is in the system's page cache, once for all of them.

use proq_test_kit::Sandbox;
use proq_test_kit::claude::sandbox_with_claude;
use proq_test_kit::waiting::{assert_no_wakeups, wait_within};

/// How many agents run at once.
const AGENTS: usize = 20;

/// Limit of a supervisor's memory that no file backs, in kB. An unoptimized program has several times as much
/// that a loader relocates.
const MAX_ANONYMOUS_KB: u64 = if cfg!(debug_assertions) { 4_096 } else { 2_048 };

/// Returns the id of the process that supervises a lane's run.
fn supervisor_pid(sandbox: &Sandbox, lane: &str) -> String {
    let holder = std::fs::read_to_string(sandbox.lane_lock(lane, "run.holder")).unwrap();
    holder.lines().find_map(|line| line.strip_prefix("pid = ")).unwrap().to_owned()
}

/// Returns the memory of a process that no file backs, in kB.
fn anonymous_kb(pid: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Waits until each supervisor is within the memory limit.
fn wait_until_all_small(sandbox: &Sandbox, when: &str) {
    for lane in 1..=AGENTS {
        let pid = supervisor_pid(sandbox, &format!("x{lane}"));
        let describe = || format!("{when}, x{lane}: {} kB, of {MAX_ANONYMOUS_KB}", anonymous_kb(&pid));
        wait_within(std::time::Duration::from_secs(20), describe, || {
            (anonymous_kb(&pid) <= MAX_ANONYMOUS_KB).then_some(())
        });
    }
}

#[test]
fn twenty_supervisors_stay_small_while_agents_are_silent() {
    let line = r#"{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"word"}]}}"#;
    let sandbox = sandbox_with_claude(&format!(
        "begin; echo > \"$ROOT/up\"; read -r _ < \"$ROOT/go-$PROQ_LANE\"
        i=0; while [ $i -lt 300 ]; do i=$((i + 1)); echo '{line}'; done
        echo > \"$ROOT/up\"; read -r _ < \"$ROOT/go-$PROQ_LANE\"; echo new > n; well"
    ));
    sandbox.pipe("up");
    for lane in 1..=AGENTS {
        sandbox.pipe(&format!("go-x{lane}"));
        let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", &format!("x{lane}")]).ok();
        let _ = sandbox.read_pipe("up");
    }
    wait_until_all_small(&sandbox, "silent");
    let all: Vec<String> = (1..=AGENTS).map(|lane| supervisor_pid(&sandbox, &format!("x{lane}"))).collect();
    assert_no_wakeups(&all);
    for lane in 1..=AGENTS {
        sandbox.write_pipe(&format!("go-x{lane}"));
        let _ = sandbox.read_pipe("up");
    }
    wait_until_all_small(&sandbox, "silent again");
    for lane in 1..=AGENTS {
        sandbox.write_pipe(&format!("go-x{lane}"));
        assert!(sandbox.proq(&["wait", &format!("x{lane}")]).ok().contains(": done"));
    }
}

#[test]
fn supervisor_retains_no_agent_output() {
    let line = r#"{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"word"}]}}"#;
    let sandbox = sandbox_with_claude(&format!(
        "begin; read -r _ < \"$ROOT/go\"; i=0; while [ $i -lt 30000 ]; do i=$((i + 1)); echo '{line}'; done
        echo > \"$ROOT/up\"; echo new > n; well"
    ));
    sandbox.pipe("up");
    sandbox.pipe("go");
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x"]).ok();
    let pid = supervisor_pid(&sandbox, "x");
    sandbox.write_pipe("go");
    // Parser code is mapped from a file and the system manages it; anonymous memory is the supervisor's own.
    let peak = std::thread::scope(|scope| {
        let reader = scope.spawn(|| sandbox.read_pipe("up"));
        let mut peak = 0;
        while !reader.is_finished() {
            peak = peak.max(anonymous_kb(&pid));
            std::thread::yield_now();
        }
        peak
    });
    assert!(peak > 0 && peak <= MAX_ANONYMOUS_KB, "{peak} kB, of {MAX_ANONYMOUS_KB}");
    assert!(sandbox.proq(&["wait", "x"]).ok().contains(": done"));
}

#[test]
fn supervisor_sleeps_during_already_done_check() {
    let sandbox = Sandbox::new();
    sandbox.pipe("up");
    sandbox.pipe("go");
    let check = "echo > $ROOT/up; read -r _ < $ROOT/go";
    let _ = sandbox.proq(&["spawn", "-n", "x", "--check", check, "--", "true"]).ok();
    let _ = sandbox.read_pipe("up");
    assert_no_wakeups(&[supervisor_pid(&sandbox, "x")]);
    sandbox.write_pipe("go");
    assert!(sandbox.proq(&["wait", "x"]).ok().contains("x: done (already"));
}
