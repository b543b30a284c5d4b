//! Owns the tests of how much memory supervisors take while their agents run. `benches/supervisors.sh` measures a release build.

use super::runs::with_claude;
use super::support::Sandbox;

/// How many agents run at once.
const AGENTS: usize = 20;

/// What a supervisor may have in memory, in kB: all of it, and what is in no file. A program that is not optimised has several times
/// the code, and as much again of what a loader fills in.
const MOST: (u64, u64) = if cfg!(debug_assertions) { (16_384, 4_096) } else { (6_144, 2_048) };

/// Waits until each supervisor is as small as it has to be.
fn all_get_small(sandbox: &Sandbox, when: &str) {
    for lane in 1..=AGENTS {
        let holder = std::fs::read_to_string(sandbox.lock(&format!("x{lane}"), "run.holder")).unwrap();
        let pid = holder.lines().find_map(|line| line.strip_prefix("pid = ")).unwrap();
        let begin = std::time::Instant::now();
        loop {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
            let kb = |what: &str| -> u64 {
                let line = status.lines().find_map(|line| line.strip_prefix(what)).unwrap();
                line.trim().trim_end_matches(" kB").parse().unwrap()
            };
            let now = (kb("VmRSS:"), kb("RssAnon:"));
            if now.0 <= MOST.0 && now.1 <= MOST.1 {
                break;
            }
            assert!(begin.elapsed().as_secs() < 20, "{when}, x{lane}: {now:?} kB, of {MOST:?}");
            std::thread::yield_now();
        }
    }
}

#[test]
fn twenty_supervisors_are_small_while_their_agents_are_silent_also_after_they_have_talked() {
    let line = r#"{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"word"}]}}"#;
    let sandbox = with_claude(&format!(
        "begin; echo > \"$ROOT/up\"; read -r _ < \"$ROOT/go-$PROQ_LANE\"
        i=0; while [ $i -lt 300 ]; do i=$((i + 1)); echo '{line}'; done
        echo > \"$ROOT/up\"; read -r _ < \"$ROOT/go-$PROQ_LANE\"; echo new > n; well"
    ));
    sandbox.pipe("up");
    for lane in 1..=AGENTS {
        sandbox.pipe(&format!("go-x{lane}"));
        let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", &format!("x{lane}")]).ok();
        let _ = sandbox.hear("up");
    }
    all_get_small(&sandbox, "silent");
    for lane in 1..=AGENTS {
        sandbox.tell(&format!("go-x{lane}"));
        let _ = sandbox.hear("up");
    }
    all_get_small(&sandbox, "silent again");
    for lane in 1..=AGENTS {
        sandbox.tell(&format!("go-x{lane}"));
        assert!(sandbox.proq(&["wait", &format!("x{lane}")]).ok().contains(": done"));
    }
}
