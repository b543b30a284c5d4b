//! Owns the tests of which lanes land first, of landing all or none, and of what is not fit to land.

use super::support::{Image, Sandbox};

/// Lane `hub` conflicts with lanes `a` and `b`, is smaller than both, and came first.
fn hub() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("echo 1 > one; echo 2 > two; git add .; git commit -qm files");
    sandbox.lane_of("hub", "echo hub > one; echo hub > two");
    sandbox.lane_of("a", "echo a > one; echo a > a1; echo a > a2");
    sandbox.lane_of("b", "echo b > two; echo b > b1; echo b > b2");
    sandbox
}

fn landed(sandbox: &Sandbox) -> String {
    sandbox.git(&["log", "--first-parent", "--reverse", "--format=%s", "main", "--grep=^Merge lane"])
}

#[test]
fn the_order_in_which_most_lanes_land_is_found_and_explained() {
    let sandbox = hub();
    let out = sandbox.proq(&["merge", "--all"]);
    assert_eq!(out.code, 3, "{}", out.shown());
    assert!(out.stderr.contains("order: a, b before hub: 1 conflict less"), "{}", out.shown());
    assert_eq!(landed(&sandbox), "Merge lane a\nMerge lane b");
    assert_eq!(sandbox.row("hub")["state"], "conflict");
}

#[test]
fn a_dry_run_finds_the_same_order() {
    let sandbox = hub();
    let out = sandbox.proq(&["merge", "--all", "--dry-run", "--json"]);
    let lanes = out.json()["lanes"].clone();
    let lines: Vec<String> =
        lanes.as_array().unwrap().iter().map(|l| format!("{} {}", l["lane"], l["result"])).collect();
    assert_eq!(lines, ["\"a\" \"landed\"", "\"b\" \"landed\"", "\"hub\" \"conflict\""]);
    assert_eq!(out.json()["order"][0], "a, b before hub: 1 conflict less");
}

#[test]
fn an_order_that_is_asked_for_is_kept() {
    // Each puts another lane first.
    for (order, first) in [("best", "a"), ("given", "b"), ("fewest-files", "hub"), ("oldest", "old")] {
        let sandbox = hub();
        sandbox.commit_in_lane("b", "echo b > b3");
        let _ = sandbox.proq(&["spawn", "--empty", "-n", "old"]).ok();
        sandbox.sh("sed -i.bak 's/^created = \"2026/created = \"2025/' .git/proq/lanes/old/lane.toml; rm .git/proq/lanes/old/*.bak");
        sandbox.commit_in_lane("old", "seq 5 | while read n; do echo $n > o$n; done");
        let _ = sandbox.proq(&["merge", "b", "hub", "old", "a", "--order", order]);
        assert_eq!(landed(&sandbox).lines().next().unwrap(), format!("Merge lane {first}"), "{order}");
    }
}

#[test]
fn a_lane_that_had_to_wait_goes_first_among_equals() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("old", "echo old > a.txt; echo more > more");
    sandbox.sh("echo base > a.txt; git commit -qam base");
    let _ = sandbox.proq(&["merge", "old"]).fails(3);
    sandbox.sh("git reset -q --hard HEAD^");
    sandbox.lane_of("new", "echo new > a.txt");
    let _ = sandbox.proq(&["merge", "new", "old"]).fails(3);
    assert_eq!(landed(&sandbox), "Merge lane old");
}

#[test]
fn all_or_none_lands_none_when_one_conflicts_and_names_with_which() {
    let sandbox = hub();
    let before = (Image::of(&sandbox, &sandbox.repo), sandbox.git(&["rev-parse", "main"]));
    let out = sandbox.proq(&["merge", "--all", "--atomic"]);
    assert_eq!(out.code, 3, "{}", out.shown());
    let both = "--atomic lands all or none, and 'hub' conflicts with 'a', 'b'";
    assert!(out.stdout.contains(both), "{}", out.shown());
    assert!(
        out.stdout.contains("conflict hub with a, b in 2 files; main was not touched"),
        "{}",
        out.shown()
    );
    assert_eq!(before, (Image::of(&sandbox, &sandbox.repo), sandbox.git(&["rev-parse", "main"])));
    // The base has no part in it.
    assert_eq!(sandbox.row("hub")["state"], "idle");
    assert_eq!(sandbox.git(&["for-each-ref", "refs/proq/conflict"]), "");
    let _ = sandbox.proq(&["discard", "hub", "--force"]).ok();
    let _ = sandbox.proq(&["merge", "--all", "--atomic"]).ok();
    assert_eq!(landed(&sandbox), "Merge lane a\nMerge lane b");
}

/// Two lanes that change one line, and nobody else did.
fn rivals() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.lane_of("a", "echo one > a.txt");
    sandbox.lane_of("b", "echo two > a.txt");
    sandbox
}

#[test]
fn what_conflicts_with_another_lane_only_lands_once_that_is_gone() {
    for dry in [&[][..], &["--dry-run"]] {
        let sandbox = rivals();
        let args: Vec<&str> = ["merge", "--all", "--atomic"].iter().chain(dry).copied().collect();
        let out = sandbox.proq(&args);
        assert_eq!(out.code, 3, "{}", out.shown());
        assert!(out.stdout.contains("conflict b with a in 1 file; main"), "{}", out.shown());
        assert!(!out.stderr.contains("git proq resolve"), "{}", out.shown());
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
fn what_conflicts_with_the_base_too_is_recorded_as_it_conflicts_with_that() {
    let sandbox = rivals();
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
fn all_or_none_takes_the_first_base_back_when_the_second_cannot_move() {
    let sandbox = Sandbox::new();
    sandbox.git(&["branch", "other"]);
    sandbox.git(&["worktree", "add", "-q", "../other", "other"]);
    sandbox.lane_of("one", "echo one > one.txt");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "two", "--base", "other"]).ok();
    sandbox.commit_in_lane("two", "echo two > a.txt");
    let other = sandbox.root().join("other");
    sandbox.write_in(&other, "a.txt", "mine\n");
    let state = || {
        let refs = sandbox.git(&["for-each-ref", "refs/heads", "refs/remotes"]);
        (refs, Image::of(&sandbox, &sandbox.repo), Image::of(&sandbox, &other))
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
fn a_lane_that_brings_conflict_markers_lands_by_force_only() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("x", "printf '<<<<<<< a\\n1\\n=======\\n2\\n>>>>>>> b\\n' > bad.txt");
    let text = sandbox.proq(&["merge", "x"]).fails(1);
    assert!(text.contains("bad.txt holds conflict markers"), "{text}");
    let _ = sandbox.proq(&["merge", "x", "--force"]).ok();
    // A file that had such lines before is somebody's text about conflicts.
    sandbox.lane_of("y", "echo more >> bad.txt");
    let _ = sandbox.proq(&["merge", "y"]).ok();
}

#[test]
fn all_or_none_lands_none_when_a_check_fails_and_says_with_which_lane() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("good", "echo good > good.txt");
    sandbox.lane_of("bad", "echo bad > bad.txt; echo more > more.txt");
    let before = sandbox.git(&["rev-parse", "main"]);
    let text = sandbox.proq(&["merge", "--all", "--atomic", "--verify", "test ! -e bad.txt"]).fails(4);
    assert!(text.contains("--atomic lands all or none, and 'bad' does not"), "{text}");
    assert_eq!(sandbox.git(&["rev-parse", "main"]), before);
    assert_eq!(sandbox.row("bad")["state"], "check-failed");
    assert_eq!(sandbox.git(&["for-each-ref", "refs/proq/pending"]), "");
    let _ = sandbox.proq(&["merge", "good", "--atomic", "--verify", "test ! -e bad.txt"]).ok();
    sandbox.assert_healthy();
}

#[test]
fn checks_see_the_lanes_in_the_order_that_was_found() {
    let sandbox = hub();
    let check = "test ! -e b1";
    let out = sandbox.proq(&["merge", "--all", "--verify", check, "--json"]);
    assert_eq!(out.code, 4, "{}", out.shown());
    let lanes = out.json()["lanes"].clone();
    let line =
        |l: &serde_json::Value| format!("{} {}", l["lane"].as_str().unwrap(), l["result"].as_str().unwrap());
    let mut lines: Vec<String> = lanes.as_array().unwrap().iter().map(line).collect();
    lines.sort();
    assert_eq!(lines, ["a landed", "b check-failed", "hub conflict"]);
    assert_eq!(landed(&sandbox), "Merge lane a");
}

#[test]
fn a_conflict_that_is_over_is_not_shown_as_one() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("clash", "echo lane > a.txt");
    sandbox.sh("echo main > a.txt; git commit -qam main");
    let states = |sandbox: &Sandbox| {
        let shown = sandbox.proq(&["show", "clash", "--json"]).json();
        assert_eq!(shown["conflict"].is_null(), shown["current_state"] != "conflict");
        (sandbox.row("clash")["state"].clone(), shown["current_state"].clone())
    };
    let _ = sandbox.proq(&["merge", "clash"]).fails(3);
    assert_eq!(states(&sandbox), ("conflict".into(), "conflict".into()));
    // Still, though a side has moved.
    sandbox.sh("echo more > more.txt; git add .; git commit -qm more");
    assert_eq!(states(&sandbox), ("conflict".into(), "conflict".into()));
    // Not any more, with the base as it was before; and once more.
    sandbox.git(&["reset", "-q", "--hard", "HEAD~2"]);
    assert_eq!(states(&sandbox), ("done".into(), "done".into()));
    sandbox.git(&["reset", "-q", "--hard", "HEAD@{1}"]);
    assert_eq!(states(&sandbox), ("conflict".into(), "conflict".into()));
    sandbox.sh_in(
        &sandbox.lane("clash"),
        "git merge -q main 2>&1 >/dev/null || true; echo both > a.txt; git commit -qam both",
    );
    assert_eq!(states(&sandbox), ("done".into(), "done".into()));
    let _ = sandbox.proq(&["merge", "--all"]).ok();
    assert_eq!(sandbox.read("a.txt"), "both\n");
}

#[test]
fn a_conflict_with_what_landed_beside_it_is_over_when_the_base_goes_back_by_hand() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("a", "echo one > a.txt");
    sandbox.lane_of("b", "echo two > a.txt");
    let _ = sandbox.proq(&["merge", "a", "b", "--order", "given"]).fails(3);
    let again = sandbox.proq(&["merge", "--all"]);
    assert!(again.stderr.contains("neither it nor its base has moved since"), "{}", again.shown());
    sandbox.git(&["reset", "-q", "--hard", "HEAD^"]);
    assert_eq!(sandbox.row("b")["state"], "done");
    let _ = sandbox.proq(&["merge", "--all"]).ok();
    assert_eq!(sandbox.read("a.txt"), "two\n");
}
