//! Tests of how often a landing reads the record of its lane.

use proq_test_kit::Sandbox;
use proq_test_kit::opens::count_opens;

/// Maximum number of times that a landing opens the record of a lane to read it: when the lane is named, and
/// after each of at most two changes by the landing, such as the one to the state `landed`. Decisions under a
/// lock read a record only if it was replaced since.
const MAX_RECORD_READS: usize = 3;

#[test]
fn landing_reads_lane_record_few_times() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo one > one.txt");
    let dir = sandbox.repo.join(".git/proq/lanes/one");
    let opens = count_opens(std::slice::from_ref(&dir), || {
        let _ = sandbox.proq(&["merge", "one"]).ok();
    })[&dir.join("lane.toml")];
    assert_eq!(sandbox.read("one.txt"), "one\n");
    assert!((1..=MAX_RECORD_READS).contains(&opens), "{opens} times");
}

#[test]
fn landing_of_all_lanes_reads_each_record_few_times() {
    let sandbox = Sandbox::new();
    let lanes: Vec<String> = (0..10).map(|n| format!("lane{n}")).collect();
    for lane in &lanes {
        sandbox.lane_with_commit(lane, &format!("echo {lane} > {lane}"));
    }
    let dirs: Vec<_> = lanes.iter().map(|lane| sandbox.repo.join(".git/proq/lanes").join(lane)).collect();
    let opens = count_opens(&dirs, || {
        let _ = sandbox.proq(&["merge", "--all"]).ok();
    });
    let counts: Vec<usize> = dirs.iter().map(|dir| opens[&dir.join("lane.toml")]).collect();
    assert!(lanes.iter().all(|lane| sandbox.read(lane) == format!("{lane}\n")));
    assert!(counts.iter().all(|count| (1..=MAX_RECORD_READS).contains(count)), "{counts:?}");
}
