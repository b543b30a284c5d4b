//! Owns the tests of how much memory supervisors take while their agents run. `benches/supervisors.sh` measures a release build.

use super::runs::with_claude;
use super::support::Sandbox;
use super::support::patience::wait_within;

/// How many agents run at once.
const AGENTS: usize = 20;

/// What a supervisor may have in memory, in kB: all of it, and what is in no file. A program that is not optimised has several times
/// the code, and as much again of what a loader fills in.
const MOST: (u64, u64) = if cfg!(debug_assertions) { (16_384, 4_096) } else { (6_144, 2_048) };

/// The process that supervises a lane's run.
fn supervisor(sandbox: &Sandbox, lane: &str) -> String {
    let holder = std::fs::read_to_string(sandbox.lock(lane, "run.holder")).unwrap();
    holder.lines().find_map(|line| line.strip_prefix("pid = ")).unwrap().to_owned()
}

/// How often any thread of a process has gone to sleep.
fn naps(pid: &str) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let of_one = |task: std::io::Result<std::fs::DirEntry>| -> u64 {
        let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
        line.trim().parse().unwrap()
    };
    tasks.map(of_one).sum()
}

/// Asserts that these processes sleep and do not wake to look whether something has come: over some span of time none of them does.
/// The first spans may see what was still to be done; who looks again and again does so in each.
fn none_wakes(pids: &[String]) {
    let all = || pids.iter().map(|pid| naps(pid)).collect::<Vec<u64>>();
    let spans = std::iter::repeat_with(|| {
        let before = all();
        std::thread::sleep(std::time::Duration::from_secs(2));
        all().iter().zip(before).map(|(now, before)| now - before).sum::<u64>()
    });
    let woken: Vec<u64> = spans.take(6).take_while(|woken| *woken > 0).collect();
    assert!(woken.len() < 6, "woken in spans of two seconds: {woken:?}");
}

/// Waits until each supervisor is as small as it has to be.
fn all_get_small(sandbox: &Sandbox, when: &str) {
    for lane in 1..=AGENTS {
        let pid = supervisor(sandbox, &format!("x{lane}"));
        let now = || {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
            let kb = |what: &str| -> u64 {
                let line = status.lines().find_map(|line| line.strip_prefix(what)).unwrap();
                line.trim().trim_end_matches(" kB").parse().unwrap()
            };
            (kb("VmRSS:"), kb("RssAnon:"))
        };
        let what = || format!("{when}, x{lane}: {:?} kB, of {MOST:?}", now());
        wait_within(std::time::Duration::from_secs(20), what, || {
            let (resident, anonymous) = now();
            (resident <= MOST.0 && anonymous <= MOST.1).then_some(())
        });
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
    let all: Vec<String> = (1..=AGENTS).map(|lane| supervisor(&sandbox, &format!("x{lane}"))).collect();
    none_wakes(&all);
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

#[test]
fn a_supervisor_of_an_agent_that_talks_keeps_nothing_of_it() {
    let line = r#"{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"word"}]}}"#;
    let sandbox = with_claude(&format!(
        "begin; read -r _ < \"$ROOT/go\"; i=0; while [ $i -lt 30000 ]; do i=$((i + 1)); echo '{line}'; done
        echo > \"$ROOT/up\"; echo new > n; well"
    ));
    sandbox.pipe("up");
    sandbox.pipe("go");
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x"]).ok();
    let pid = supervisor(&sandbox, "x");
    sandbox.tell("go");
    // Code that it reads with is in a file, and the system's to bring and to take; what is in no file is its own.
    let most = std::thread::scope(|scope| {
        let told = scope.spawn(|| sandbox.hear("up"));
        let mut most = 0;
        while !told.is_finished() {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
            most = most.max(line.trim().trim_end_matches(" kB").parse::<u64>().unwrap());
            std::thread::yield_now();
        }
        most
    });
    assert!(most > 0 && most <= MOST.1, "{most} kB, of {}", MOST.1);
    assert!(sandbox.proq(&["wait", "x"]).ok().contains(": done"));
}

#[test]
fn a_supervisor_sleeps_while_it_is_checked_whether_the_task_had_been_done_before() {
    let sandbox = Sandbox::new();
    sandbox.pipe("up");
    sandbox.pipe("go");
    let check = "echo > $ROOT/up; read -r _ < $ROOT/go";
    let _ = sandbox.proq(&["spawn", "-n", "x", "--check", check, "--", "true"]).ok();
    let _ = sandbox.hear("up");
    none_wakes(&[supervisor(&sandbox, "x")]);
    sandbox.tell("go");
    assert!(sandbox.proq(&["wait", "x"]).ok().contains("x: done (already"));
}
