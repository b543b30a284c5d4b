//! Owns the tests of what the doctor says of folders of landed lanes that wait for new ones.

use std::process::Stdio;

use serde_json::Value;

use super::pool::{entry, landed, spawn, three_landed, with_cache};
use super::support::Sandbox;
use super::support::patience::Beside;

/// What the doctor says of the folders that wait: its notes, and in JSON the lanes and the findings.
fn prospects(sandbox: &Sandbox) -> (String, Vec<String>, Vec<(String, String)>) {
    let notes = sandbox.proq(&["doctor"]).stderr;
    let answer = sandbox.proq(&["doctor", "--json"]).json();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let waiting = answer["checked"]["waiting"].as_array().unwrap().iter().map(text).collect();
    let found = answer["findings"].as_array().unwrap().iter().filter(|found| found["check"] == "pool");
    let found = found.map(|found| (text(&found["subject"]), text(&found["message"]))).collect();
    (notes, waiting, found)
}

#[test]
fn the_doctor_says_which_folders_wait_and_why_the_next_lane_gets_one_of_them_not() {
    let sandbox = with_cache();
    assert_eq!(prospects(&sandbox).1, [""; 0]);
    three_landed(&sandbox);
    let (notes, waiting, found) = prospects(&sandbox);
    let note = "note: in the trash for now: 3 removed lanes; the folders of 'c', 'b', 'a' wait for new lanes; how much room \
                that takes: git proq gc --dry-run\n";
    assert!(notes.contains(note), "{notes}");
    assert_eq!((waiting.as_slice(), found.len()), (&["c", "b", "a"].map(ToOwned::to_owned)[..], 0));
    let mut command = sandbox.command("cat", &entry(&sandbox, "c").join("worktree"));
    let mut inside = Beside(command.stdin(Stdio::piped()).spawn().unwrap());
    sandbox.sh(&format!("touch '{}/config.worktree'", entry(&sandbox, "b").join("admin").display()));
    let (notes, waiting, found) = prospects(&sandbox);
    assert_eq!(waiting, ["a"]);
    let begin = "the next lane cannot be given the folder of landed lane";
    assert_eq!(found[0].0, "lane 'c'");
    assert_eq!(found[0].1, format!("{begin} 'c': cat (process {}) is in it", inside.0.id()));
    assert_eq!(found[1].1, format!("{begin} 'b': it was set up in a way of its own"));
    assert!(notes.contains(&format!("note: {}\n", found[0].1)), "{notes}");
    assert!(notes.contains("; the folder of 'a' waits for a new lane; "), "{notes}");
    drop(inside.0.stdin.take());
    assert_eq!(inside.code(), Some(0));
    // It is as the doctor says.
    assert_eq!(spawn(&sandbox, "x").as_deref(), Some("c"));
    assert_eq!(spawn(&sandbox, "y").as_deref(), Some("a"));
}

#[test]
fn the_doctor_names_the_setting_that_keeps_folders_from_being_used_again() {
    let sandbox = with_cache();
    landed(&sandbox, "a", "");
    for (setting, off, subject, why) in [
        (
            "proq.pool.size",
            "0",
            "pool.size",
            "the folder of landed lane 'a' is not used again, since pool.size is 0",
        ),
        ("core.autocrlf", "true", "lane 'a'", "settings or the system ask for files in a form of their own"),
        ("core.sparseCheckout", "true", "lane 'a'", "the new lane has a part of the files only (sparse)"),
    ] {
        sandbox.git(&["config", setting, off]);
        let (notes, waiting, found) = prospects(&sandbox);
        let [(of, message)] = found.as_slice() else { panic!("{notes}") };
        assert_eq!((waiting.len(), of.as_str()), (0, subject));
        assert!(message.ends_with(why) && notes.contains(&format!("note: {message}")), "{notes}");
        assert!(notes.contains("note: in the trash for now: 1 removed lane; how much room"), "{notes}");
        assert_eq!(spawn(&sandbox, "b"), None, "{setting}");
        let _ = sandbox.proq(&["discard", "--force", "b"]).ok();
        sandbox.sh("rm -rf .git/proq/trash/b-*");
        sandbox.git(&["config", "--unset", setting]);
    }
    sandbox.git(&["config", "proq.pool.size", "0"]);
    let help = sandbox.proq(&["doctor"]).stderr;
    assert!(help.contains("since pool.size is 0: git config proq.pool.size 2\n"), "{help}");
    sandbox.git(&["config", "proq.pool.size", "2"]);
    assert_eq!(prospects(&sandbox).1, ["a"]);
    assert_eq!(spawn(&sandbox, "b").as_deref(), Some("a"));
}
