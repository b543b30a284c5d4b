//! Tests of how often a list opens the records of lanes and batches.

use std::path::{Path, PathBuf};

use proq_test_kit::Sandbox;
use proq_test_kit::opens::count_opens;
use proq_test_kit::plans::repo_with_plan;

/// Returns a folder and all folders below it.
fn folders(dir: &Path) -> Vec<PathBuf> {
    let below =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    std::iter::once(dir.to_owned()).chain(below.flat_map(|path| folders(&path))).collect()
}

/// Creates lanes in states that depend on further records, and two finished batches: one that landed as one
/// commit, and one whose branch was deleted.
fn lanes_and_batches() -> Sandbox {
    let sandbox = repo_with_plan("format = 1\nagent = \"worker\"\n[[task]]\nid = \"x\"\ntitle = \"X\"\n");
    sandbox.commit_all("the plan");
    let _ = sandbox.proq(&["swarm", "plan.toml", "--yes", "-q"]).ok();
    let _ = sandbox.proq(&["merge", "--batch", "20260102-030405", "--strategy", "squash"]).ok();
    sandbox.write("other.toml", "format = 1\nagent = \"worker\"\n[[task]]\nid = \"y\"\ntitle = \"Y\"\n");
    sandbox.commit_all("another plan");
    let _ = sandbox.proq(&["swarm", "other.toml", "--yes", "-q"]).ok();
    sandbox.git(&["branch", "-D", "proq/batch-20260102-030405-2"]);
    sandbox.lane_with_commit("bad", "echo bad > bad.txt");
    let _ = sandbox.proq(&["merge", "bad", "--verify", "test ! -e bad.txt"]).fails(4);
    sandbox.lane_with_commit("clash", "echo clash > a.txt");
    sandbox.sh("echo main > a.txt; git commit -qam main");
    let _ = sandbox.proq(&["merge", "clash"]).fails(3);
    sandbox.run_lane("done", "echo done > done.txt");
    sandbox.start_lane("busy", "sleep 100");
    let _ = sandbox.started_row("busy");
    sandbox
}

#[test]
fn list_opens_each_record_at_most_once() {
    let sandbox = lanes_and_batches();
    let store = sandbox.repo.join(".git/proq");
    let dirs: Vec<PathBuf> =
        ["lanes", "history", "batches"].iter().flat_map(|name| folders(&store.join(name))).collect();
    let logs =
        ["20260102-030405", "20260102-030405-2"].map(|id| store.join(format!("batches/{id}/log.jsonl")));
    for args in [&["list"][..], &["list", "--json"], &["list", "--all"], &["list", "--all", "--json"]] {
        let opens = count_opens(&dirs, || {
            let _ = sandbox.proq(args).ok();
        });
        let repeated: Vec<_> = opens.iter().filter(|(_, count)| **count > 1).collect();
        assert_eq!(repeated, [], "{args:?}");
        assert_eq!(opens[&store.join("lanes/clash/lane.toml")], 1);
        // The text has no use for the log of a batch that has landed.
        let is_json = args.contains(&"--json");
        assert_eq!(logs.each_ref().map(|log| opens.contains_key(log)), [is_json, true], "{args:?}");
    }
    let _ = sandbox.proq(&["stop", "busy"]).ok();
}
