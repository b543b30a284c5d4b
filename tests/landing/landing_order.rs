//! Tests of the order in which lanes land, of `--atomic`, and of lanes that must not land.

use proq_test_kit::{Sandbox, WorktreeState};

/// Creates lane `hub`, which conflicts with lanes `a` and `b`, is smaller than both, and is older.
fn sandbox_with_hub() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("echo 1 > one; echo 2 > two; git add .; git commit -qm files");
    sandbox.lane_with_commit("hub", "echo hub > one; echo hub > two");
    sandbox.lane_with_commit("a", "echo a > one; echo a > a1; echo a > a2");
    sandbox.lane_with_commit("b", "echo b > two; echo b > b1; echo b > b2");
    sandbox
}

fn landed_subjects(sandbox: &Sandbox) -> String {
    sandbox.git(&["log", "--first-parent", "--reverse", "--format=%s", "main", "--grep=^Merge lane"])
}

#[test]
fn finds_and_explains_the_best_order() {
    let sandbox = sandbox_with_hub();
    let out = sandbox.proq(&["merge", "--all"]);
    assert_eq!(out.code, 3, "{}", out.to_text());
    assert!(out.stderr.contains("order: a, b before hub: 1 conflict less"), "{}", out.to_text());
    assert_eq!(landed_subjects(&sandbox), "Merge lane a\nMerge lane b");
    assert_eq!(sandbox.row("hub")["state"], "conflict");
}

#[test]
fn dry_run_reports_the_same_order() {
    let sandbox = sandbox_with_hub();
    let out = sandbox.proq(&["merge", "--all", "--dry-run", "--json"]);
    let lanes = out.json()["lanes"].clone();
    let lines: Vec<String> =
        lanes.as_array().unwrap().iter().map(|l| format!("{} {}", l["lane"], l["result"])).collect();
    assert_eq!(lines, ["\"a\" \"landed\"", "\"b\" \"landed\"", "\"hub\" \"conflict\""]);
    assert_eq!(out.json()["order"][0], "a, b before hub: 1 conflict less");
}

#[test]
fn order_option_decides_the_first_lane() {
    // Each order puts a different lane first.
    for (order, first) in [("best", "a"), ("given", "b"), ("fewest-files", "hub"), ("oldest", "old")] {
        let sandbox = sandbox_with_hub();
        sandbox.commit_in_lane("b", "echo b > b3");
        let _ = sandbox.proq(&["spawn", "--empty", "-n", "old"]).ok();
        sandbox.sh("sed -i.bak 's/^created = \"2026/created = \"2025/' .git/proq/lanes/old/lane.toml; rm .git/proq/lanes/old/*.bak");
        sandbox.commit_in_lane("old", "seq 5 | while read n; do echo $n > o$n; done");
        let _ = sandbox.proq(&["merge", "b", "hub", "old", "a", "--order", order]);
        assert_eq!(
            landed_subjects(&sandbox).lines().next().unwrap(),
            format!("Merge lane {first}"),
            "{order}"
        );
    }
}

#[test]
fn lane_that_conflicted_before_lands_first_among_equals() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("old", "echo old > a.txt; echo more > more");
    sandbox.sh("echo base > a.txt; git commit -qam base");
    let _ = sandbox.proq(&["merge", "old"]).fails(3);
    sandbox.sh("git reset -q --hard HEAD^");
    sandbox.lane_with_commit("new", "echo new > a.txt");
    let _ = sandbox.proq(&["merge", "new", "old"]).fails(3);
    assert_eq!(landed_subjects(&sandbox), "Merge lane old");
}

#[test]
fn atomic_lands_none_on_conflict_and_names_the_lanes() {
    let sandbox = sandbox_with_hub();
    let before = (WorktreeState::capture(&sandbox, &sandbox.repo), sandbox.git(&["rev-parse", "main"]));
    let out = sandbox.proq(&["merge", "--all", "--atomic"]);
    assert_eq!(out.code, 3, "{}", out.to_text());
    let expected = "--atomic merges all or none, and 'hub' conflicts with 'a', 'b'";
    assert!(out.stdout.contains(expected), "{}", out.to_text());
    assert!(out.stdout.contains("hub conflicts with a, b in 2 files"), "{}", out.to_text());
    assert_eq!(
        before,
        (WorktreeState::capture(&sandbox, &sandbox.repo), sandbox.git(&["rev-parse", "main"]))
    );
    // The base is not part of the conflict, so no conflict is recorded.
    assert_eq!(sandbox.row("hub")["state"], "idle");
    assert_eq!(sandbox.git(&["for-each-ref", "refs/proq/conflict"]), "");
    let _ = sandbox.proq(&["discard", "hub", "--force"]).ok();
    let _ = sandbox.proq(&["merge", "--all", "--atomic"]).ok();
    assert_eq!(landed_subjects(&sandbox), "Merge lane a\nMerge lane b");
}

/// Creates two lanes that change the same line, which the base did not change.
fn two_conflicting_lanes() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("a", "echo one > a.txt");
    sandbox.lane_with_commit("b", "echo two > a.txt");
    sandbox
}

/// Promise: snapshots/conflict-of-lanes
#[test]
fn conflicting_lane_lands_once_the_other_is_discarded() {
    for dry in [&[][..], &["--dry-run"]] {
        let sandbox = two_conflicting_lanes();
        let args: Vec<&str> = ["merge", "--all", "--atomic"].iter().chain(dry).copied().collect();
        let out = sandbox.proq(&args);
        assert_eq!(out.code, 3, "{}", out.to_text());
        let conflict = if dry.is_empty() { "b conflicts with a" } else { "b would conflict with a" };
        assert!(out.stdout.contains(&format!("{conflict} in 1 file\n")), "{}", out.to_text());
        assert!(!out.stderr.contains("git proq resolve"), "{}", out.to_text());
        assert_ne!(sandbox.row("b")["state"], "conflict");
        let json = sandbox.proq(&[&args[..], &["--json"]].concat()).json();
        let line = |lane: &str| json["lanes"].as_array().unwrap().iter().find(|l| l["lane"] == lane).cloned();
        assert_eq!(line("b").unwrap()["with_lanes"], serde_json::json!(["a"]));
        let _ = sandbox.proq(&["discard", "a", "--force"]).ok();
        let _ = sandbox.proq(&["merge", "--all"]).ok();
        assert_eq!(sandbox.read("a.txt"), "two\n");
    }
}

#[test]
fn conflict_with_the_base_is_recorded_against_it() {
    let sandbox = two_conflicting_lanes();
    sandbox.commit_in_lane("a", "git rm -q a.txt; echo x > x");
    sandbox.commit_in_lane("b", "echo b > x");
    sandbox.sh("seq 9 > a.txt; git commit -qam base; git branch aside");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "c"]).ok();
    sandbox.commit_in_lane("c", "echo c > x");
    let _ = sandbox.proq(&["merge", "c", "b", "--atomic"]).fails(3);
    let record = std::fs::read_to_string(sandbox.repo.join(".git/proq/lanes/b/conflict.toml")).unwrap();
    let main = sandbox.git(&["rev-parse", "main"]);
    assert!(record.contains(&format!("ours = \"{main}\"")), "{record}");
    assert!(record.contains("paths = [\"a.txt\"]"), "{record}");
}

#[test]
fn atomic_reverts_first_base_when_second_cannot_move() {
    let sandbox = Sandbox::new();
    sandbox.git(&["branch", "other"]);
    sandbox.git(&["worktree", "add", "-q", "../other", "other"]);
    sandbox.lane_with_commit("one", "echo one > one.txt");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "two", "--base", "other"]).ok();
    sandbox.commit_in_lane("two", "echo two > a.txt");
    let other = sandbox.root().join("other");
    sandbox.write_in(&other, "a.txt", "mine\n");
    let state = || {
        let refs = sandbox.git(&["for-each-ref", "refs/heads", "refs/remotes"]);
        (refs, WorktreeState::capture(&sandbox, &sandbox.repo), WorktreeState::capture(&sandbox, &other))
    };
    let before = state();
    let text = sandbox.proq(&["merge", "--all", "--atomic"]).fails(1);
    assert!(text.contains("a.txt"), "{text}");
    assert_eq!(before, state());
    sandbox.git_in(&other, &["checkout", "-q", "a.txt"]);
    let _ = sandbox.proq(&["merge", "--all", "--atomic"]).ok();
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s", "main"]), "Merge lane one");
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s", "other"]), "Merge lane two");
    sandbox.assert_healthy();
}

#[test]
fn conflict_markers_land_only_with_force() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("x", "printf '<<<<<<< a\\n1\\n=======\\n2\\n>>>>>>> b\\n' > bad.txt");
    let text = sandbox.proq(&["merge", "x"]).fails(1);
    assert!(text.contains("bad.txt has conflict markers"), "{text}");
    let _ = sandbox.proq(&["merge", "x", "--force"]).ok();
    // In a file that had such lines before, they are content.
    sandbox.lane_with_commit("y", "echo more >> bad.txt");
    let _ = sandbox.proq(&["merge", "y"]).ok();
}

#[test]
fn atomic_lands_none_when_a_check_fails() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("good", "echo good > good.txt");
    sandbox.lane_with_commit("bad", "echo bad > bad.txt; echo more > more.txt");
    let before = sandbox.git(&["rev-parse", "main"]);
    let text = sandbox.proq(&["merge", "--all", "--atomic", "--verify", "test ! -e bad.txt"]).fails(4);
    assert!(text.contains("--atomic merges all or none, and 'bad' does not"), "{text}");
    assert_eq!(sandbox.git(&["rev-parse", "main"]), before);
    assert_eq!(sandbox.row("bad")["state"], "check-failed");
    assert_eq!(sandbox.git(&["for-each-ref", "refs/proq/pending"]), "");
    let _ = sandbox.proq(&["merge", "good", "--atomic", "--verify", "test ! -e bad.txt"]).ok();
    sandbox.assert_healthy();
}

#[test]
fn checks_run_in_the_best_order() {
    let sandbox = sandbox_with_hub();
    let check = "test ! -e b1";
    let out = sandbox.proq(&["merge", "--all", "--verify", check, "--json"]);
    assert_eq!(out.code, 4, "{}", out.to_text());
    let lanes = out.json()["lanes"].clone();
    let line =
        |l: &serde_json::Value| format!("{} {}", l["lane"].as_str().unwrap(), l["result"].as_str().unwrap());
    let mut lines: Vec<String> = lanes.as_array().unwrap().iter().map(line).collect();
    lines.sort();
    assert_eq!(lines, ["a landed", "b check-failed", "hub conflict"]);
    assert_eq!(landed_subjects(&sandbox), "Merge lane a");
}

/// Promise: snapshots/conflict-of-lanes
#[test]
fn state_follows_whether_the_conflict_still_exists() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("clash", "echo lane > a.txt");
    sandbox.sh("echo main > a.txt; git commit -qam main");
    let states = |sandbox: &Sandbox| {
        let shown = sandbox.proq(&["show", "clash", "--json"]).json();
        assert_eq!(shown["conflict"].is_null(), shown["current_state"] != "conflict");
        (sandbox.row("clash")["state"].clone(), shown["current_state"].clone())
    };
    let _ = sandbox.proq(&["merge", "clash"]).fails(3);
    assert_eq!(states(&sandbox), ("conflict".into(), "conflict".into()));
    // The conflict still exists after a side has moved.
    sandbox.sh("echo more > more.txt; git add .; git commit -qm more");
    assert_eq!(states(&sandbox), ("conflict".into(), "conflict".into()));
    // Resetting the base ends the conflict, and moving it forward again restores it.
    sandbox.git(&["reset", "-q", "--hard", "HEAD~2"]);
    assert_eq!(states(&sandbox), ("done".into(), "done".into()));
    sandbox.git(&["reset", "-q", "--hard", "HEAD@{1}"]);
    assert_eq!(states(&sandbox), ("conflict".into(), "conflict".into()));
    sandbox.sh_in(
        &sandbox.lane_path("clash"),
        "git merge -q main 2>&1 >/dev/null || true; echo both > a.txt; git commit -qam both",
    );
    assert_eq!(states(&sandbox), ("done".into(), "done".into()));
    let _ = sandbox.proq(&["merge", "--all"]).ok();
    assert_eq!(sandbox.read("a.txt"), "both\n");
}

#[test]
fn conflict_with_a_landed_lane_ends_with_base_reset() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("a", "echo one > a.txt");
    sandbox.lane_with_commit("b", "echo two > a.txt");
    let _ = sandbox.proq(&["merge", "a", "b", "--order", "given"]).fails(3);
    let retry = sandbox.proq(&["merge", "--all"]);
    assert!(retry.stderr.contains("neither the lane nor its base has moved since"), "{}", retry.to_text());
    sandbox.git(&["reset", "-q", "--hard", "HEAD^"]);
    assert_eq!(sandbox.row("b")["state"], "done");
    let _ = sandbox.proq(&["merge", "--all"]).ok();
    assert_eq!(sandbox.read("a.txt"), "two\n");
}
