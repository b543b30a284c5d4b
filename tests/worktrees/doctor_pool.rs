//! Tests of what the doctor reports about pooled folders of landed lanes.

use std::process::Stdio;

use proq_test_kit::Sandbox;
use proq_test_kit::waiting::KilledOnDrop;
use serde_json::Value;

use super::pool::{land_lane, land_three_lanes, sandbox_with_cache, spawn_and_find_reused_lane, trash_entry};

/// Returns the doctor's notes, and from its JSON the pooled lanes and the findings about the pool.
fn pool_report(sandbox: &Sandbox) -> (String, Vec<String>, Vec<(String, String)>) {
    let notes = sandbox.proq(&["doctor"]).stderr;
    let answer = sandbox.proq(&["doctor", "--json"]).json();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let waiting = answer["checked"]["waiting"].as_array().unwrap().iter().map(text).collect();
    let found = answer["findings"].as_array().unwrap().iter().filter(|found| found["check"] == "pool");
    let found = found.map(|found| (text(&found["subject"]), text(&found["message"]))).collect();
    (notes, waiting, found)
}

#[test]
fn names_pooled_folders_and_unusable_ones() {
    let sandbox = sandbox_with_cache();
    assert_eq!(pool_report(&sandbox).1, [""; 0]);
    land_three_lanes(&sandbox);
    let (notes, waiting, found) = pool_report(&sandbox);
    let note = "note: in the trash: 3 removed lanes; the folders of 'c', 'b', 'a' are kept for new lanes\n\
                hint: show what is old enough to delete: git proq gc --dry-run\n";
    assert!(notes.contains(note), "{notes}");
    assert_eq!((waiting.as_slice(), found.len()), (&["c", "b", "a"].map(ToOwned::to_owned)[..], 0));
    let mut command = sandbox.command("cat", &trash_entry(&sandbox, "c").join("worktree"));
    let mut inside = KilledOnDrop(command.stdin(Stdio::piped()).spawn().unwrap());
    sandbox.sh(&format!("touch '{}/config.worktree'", trash_entry(&sandbox, "b").join("admin").display()));
    let (notes, waiting, found) = pool_report(&sandbox);
    assert_eq!(waiting, ["a"]);
    let prefix = "the next lane cannot reuse the folder of merged lane";
    assert_eq!(found[0].0, "lane 'c'");
    assert_eq!(found[0].1, format!("{prefix} 'c': cat (process {}) is in it", inside.0.id()));
    assert_eq!(found[1].1, format!("{prefix} 'b': it has a set-up of its own"));
    assert!(notes.contains(&format!("note: {}\n", found[0].1)), "{notes}");
    assert!(notes.contains("; the folder of 'a' is kept for a new lane\n"), "{notes}");
    drop(inside.0.stdin.take());
    assert_eq!(inside.exit_code(), Some(0));
    // New lanes get the folders that the doctor predicts.
    assert_eq!(spawn_and_find_reused_lane(&sandbox, "x").as_deref(), Some("c"));
    assert_eq!(spawn_and_find_reused_lane(&sandbox, "y").as_deref(), Some("a"));
}

#[test]
fn names_setting_that_prevents_reuse() {
    let sandbox = sandbox_with_cache();
    land_lane(&sandbox, "a", "");
    for (setting, off, subject, reason) in [
        (
            "proq.pool.size",
            "0",
            "pool.size",
            "the folder of merged lane 'a' is not reused, because pool.size is 0",
        ),
        ("core.autocrlf", "true", "lane 'a'", "settings or the system require other file formats"),
        ("core.sparseCheckout", "true", "lane 'a'", "the new lane is sparse"),
    ] {
        sandbox.git(&["config", setting, off]);
        let (notes, waiting, found) = pool_report(&sandbox);
        let [(actual_subject, message)] = found.as_slice() else { panic!("{notes}") };
        assert_eq!((waiting.len(), actual_subject.as_str()), (0, subject));
        assert!(message.ends_with(reason) && notes.contains(&format!("note: {message}")), "{notes}");
        assert!(notes.contains("note: in the trash: 1 removed lane\n"), "{notes}");
        assert_eq!(spawn_and_find_reused_lane(&sandbox, "b"), None, "{setting}");
        let _ = sandbox.proq(&["discard", "--force", "b"]).ok();
        sandbox.sh("rm -rf .git/proq/trash/b-*");
        sandbox.git(&["config", "--unset", setting]);
    }
    sandbox.git(&["config", "proq.pool.size", "0"]);
    let help = sandbox.proq(&["doctor"]).stderr;
    assert!(help.contains("because pool.size is 0\nhint: set it: git config proq.pool.size 2\n"), "{help}");
    sandbox.git(&["config", "proq.pool.size", "2"]);
    assert_eq!(pool_report(&sandbox).1, ["a"]);
    assert_eq!(spawn_and_find_reused_lane(&sandbox, "b").as_deref(), Some("a"));
}
