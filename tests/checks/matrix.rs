//! `git proq matrix`.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::SystemTime;

use proq_test_kit::faults::with_git_wrapper;
use proq_test_kit::{Output, Sandbox, WorktreeState, file_names};

/// Returns a repository with two files of many lines, and one file that lanes remove and change.
fn sandbox_with_lines() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("mkdir src; seq 60 > long.txt; seq 30 > src/lib.rs; echo old > old.txt; printf '*.log\\n' > .gitignore");
    sandbox.commit_all("lines");
    sandbox
}

/// Returns a repository with lanes that conflict, and lanes that do not.
fn sandbox_with_lanes() -> Sandbox {
    let sandbox = sandbox_with_lines();
    sandbox.lane_with_commit("auth", "sed -i '10,12s/^/a/' long.txt");
    sandbox.lane_with_commit("docs", "echo docs > docs.md");
    sandbox.lane_with_commit("gone", "git rm -q old.txt");
    sandbox.lane_with_commit("kept", "echo more >> old.txt");
    sandbox.lane_with_commit(
        "pay",
        "sed -i '11s/^/b/' long.txt; sed -i '1i new' src/lib.rs; sed -i '21s/^/p/' src/lib.rs",
    );
    sandbox.sh("sed -i '20s/^/main/' src/lib.rs; git commit -qam main");
    sandbox
}

/// Returns the result for two lanes, which must be in the order of the answer.
fn result(answer: &serde_json::Value, ours: &str, theirs: &str) -> String {
    let all = answer["pairs"].as_array().unwrap();
    let pair = all.iter().find(|p| p["ours"] == ours && p["theirs"] == theirs);
    pair.unwrap_or_else(|| panic!("{ours} and {theirs} in {answer:#}"))["result"].as_str().unwrap().to_owned()
}

/// Runs the program with a git that fails at every merge.
fn run_without_merges(sandbox: &Sandbox, args: &[&str]) -> Output {
    sandbox.output(with_git_wrapper(sandbox, "merge-tree", "exit 70", args))
}

#[test]
fn triangle_shows_conflicting_lanes() {
    let sandbox = sandbox_with_lanes();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "idle"]).ok();
    insta::assert_snapshot!(sandbox.proq(&["matrix"]).to_text(), @r"
            main  1  2  3  4
    1 auth  ·
    2 docs  ·     ·
    3 gone  ·     ·  ·
    4 kept  ·     ·  ·  x
    5 pay   x     x  ·  ·  ·

    main x pay: src/lib.rs:20
    auth x pay: long.txt:10-12
    gone x kept: old.txt (modify/delete)
    5 lanes: 1 conflicts with the base, 2 pairs conflict with each other
    --- stderr
    not compared: idle (it has changed nothing)
    --- code 0
    ");
    insta::assert_snapshot!(sandbox.proq(&["matrix", "docs", "auth"]).to_text(), @r"
            main  1
    1 auth  ·
    2 docs  ·     ·

    2 lanes, no conflicts
    --- code 0
    ");
    insta::assert_snapshot!(sandbox.proq(&["matrix", "autg"]).to_text(), @r"
    --- stderr
    error: there is no lane 'autg'
    hint: did you mean 'auth'?
    hint: see all: git proq list
    --- code 1
    ");
}

#[test]
fn json_has_lines_of_both_sides() {
    let sandbox = sandbox_with_lanes();
    let answer = sandbox.proq(&["matrix", "--json", "pay"]).json();
    assert_eq!(answer["lanes"][0]["lane"], "pay");
    assert_eq!(
        answer["pairs"],
        serde_json::json!([{
            "ours": "main", "theirs": "pay", "with_base": true, "result": "conflict",
            "conflicts": [{ "path": "src/lib.rs", "kind": "contents", "hunks": [{
                "base": { "start": 20, "count": 1 },
                "ours": { "start": 20, "count": 1 },
                "theirs": { "start": 21, "count": 1 },
            }]}],
        }])
    );
}

#[test]
fn no_lanes_means_nothing_to_compare() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.proq(&["matrix"]).ok(), "no lanes to compare\n");
    assert_eq!(sandbox.proq(&["matrix", "--json"]).json()["pairs"], serde_json::json!([]));
}

#[test]
fn many_lanes_are_listed_by_conflict() {
    let sandbox = sandbox_with_lines();
    for n in 0..17 {
        let file = if n % 8 == 0 { "same".to_owned() } else { format!("own{n}") };
        sandbox.lane_with_commit(&format!("l{n:02}"), &format!("echo {n} > {file}"));
    }
    insta::assert_snapshot!(sandbox.proq(&["matrix"]).to_text(), @r"
    l00 x l08: same:1
    l00 x l16: same:1
    l08 x l16: same:1
    17 lanes: 3 pairs conflict with each other
    --- code 0
    ");
}

#[test]
fn uncommitted_files_count_and_ignored_do_not() {
    let sandbox = sandbox_with_lines();
    for lane in ["one", "two"] {
        let _ = sandbox.proq(&["spawn", "--empty", "-n", lane]).ok();
        sandbox.sh_in(
            &sandbox.lane_path(lane),
            &format!(
                "echo {lane} > new.txt; sed -i '5s/^/{lane}/' long.txt; git add long.txt; echo {lane} > x.log"
            ),
        );
    }
    let answer = sandbox.proq(&["matrix", "--json"]).json();
    assert_eq!(answer["lanes"][1]["uncommitted"], 2);
    let paths: Vec<_> =
        answer["pairs"][2]["conflicts"].as_array().unwrap().iter().map(|c| &c["path"]).collect();
    assert_eq!(paths, ["long.txt", "new.txt"]);
    let committed = sandbox.proq(&["matrix", "--committed"]);
    assert_eq!(committed.stdout, "no lanes to compare\n");
}

#[test]
fn filters_apply_to_uncommitted_files() {
    let sandbox = sandbox_with_lines();
    sandbox.git(&["config", "filter.up.clean", "tr a-z A-Z"]);
    sandbox.sh("echo '*.up filter=up' > .gitattributes; git add .; git commit -qm filter");
    for (lane, text) in [("one", "same"), ("two", "SAME")] {
        let _ = sandbox.proq(&["spawn", "--empty", "-n", lane]).ok();
        sandbox.write_in(&sandbox.lane_path(lane), "x.up", text);
    }
    let answer = sandbox.proq(&["matrix", "--json"]).json();
    assert_eq!(result(&answer, "one", "two"), "clean");
}

/// Collects every file below a folder with its content and modification time, and every folder.
fn collect_files(dir: &Path, excluded: &[&str], out: &mut BTreeMap<String, (Vec<u8>, Option<SystemTime>)>) {
    for name in file_names(dir) {
        let path = dir.join(name);
        if excluded.iter().any(|s| path.ends_with(s)) {
            continue;
        }
        let meta = path.symlink_metadata().unwrap();
        if meta.is_dir() {
            out.insert(path.display().to_string(), (Vec::new(), None));
            collect_files(&path, excluded, out);
        } else {
            let text = std::fs::read(&path).unwrap_or_default();
            // Git renews the time of existing objects and shared indexes instead of writing them again.
            let renewed =
                ["/.git/objects/", "/sharedindex."].map(|part| path.display().to_string().contains(part));
            let time = (renewed == [false; 2]).then(|| meta.modified().unwrap());
            out.insert(path.display().to_string(), (text, time));
        }
    }
}

/// Promise: snapshots/no-writes
#[test]
fn matrix_changes_no_files() {
    let sandbox = sandbox_with_lanes();
    sandbox.sh_in(
        &sandbox.lane_path("docs"),
        "echo more >> docs.md; echo staged > s.txt; git add s.txt; echo late > s.txt; rm old.txt; echo l > x.log
        echo planned > p.txt; git add -N p.txt; git update-index --split-index",
    );
    sandbox.sh("echo mine >> a.txt; echo new > n.txt");
    // Overlaps are reported the first time, and are not news when all of them are computed again.
    let _ = sandbox.proq(&["matrix"]).ok();
    std::fs::remove_file(sandbox.repo.join(".git/proq/cache/forecast")).unwrap();
    let snapshot = || {
        let mut all = BTreeMap::new();
        // Only the cache is written; the folder of operations under way is empty again.
        collect_files(&sandbox.repo, &["proq/cache"], &mut all);
        all
    };
    let before = snapshot();
    let cache = sandbox.repo.join(".git/proq/cache");
    // What a spawn caches depends on how old the index was.
    let mut cached = file_names(&cache);
    cached.push("forecast".to_owned());
    cached.sort();
    let answer = sandbox.proq(&["matrix", "--json"]).json();
    assert_eq!(result(&answer, "gone", "kept"), "conflict");
    assert_eq!(result(&answer, "docs", "kept"), "conflict", "by git, with a commit made aside");
    let after = snapshot();
    for (path, was) in &before {
        assert!(after.get(path) == Some(was), "{path}");
    }
    assert_eq!(before.len(), after.len());
    assert_eq!(file_names(&cache), cached);
    sandbox.assert_healthy();
}

#[test]
fn worktree_on_other_branch_is_reported_and_unchanged() {
    let sandbox = sandbox_with_lanes();
    sandbox.sh_in(&sandbox.lane_path("docs"), "git switch -q -c other; echo x > docs.md");
    let out = sandbox.proq(&["matrix", "docs", "auth"]);
    assert!(
        out.stderr.contains("compared only the commits of lane 'docs': its worktree is not on proq/docs"),
        "{}",
        out.to_text()
    );
    let image = WorktreeState::capture(&sandbox, &sandbox.lane_path("docs"));
    std::fs::remove_dir_all(sandbox.lane_path("kept")).unwrap();
    let out = sandbox.proq(&["matrix", "kept", "gone"]);
    assert!(
        out.stderr.contains("the commits of lane 'kept': its worktree could not be inspected"),
        "{}",
        out.to_text()
    );
    assert!(out.stdout.contains("gone x kept: old.txt"), "{}", out.stdout);
    assert_eq!(image, WorktreeState::capture(&sandbox, &sandbox.lane_path("docs")));
}

#[test]
fn merge_drivers_of_attributes_apply() {
    let sandbox = sandbox_with_lines();
    sandbox.sh("echo l > list.md; mkdir d; echo 'list.md merge=union' > .gitattributes; echo '*.x -merge' > d/.gitattributes
        seq 9 > d/a.x; git add .; git commit -qm attributes");
    sandbox.lane_with_commit("one", "echo 1 >> list.md; sed -i 1s/^/1/ d/a.x");
    sandbox.lane_with_commit("two", "echo 2 >> list.md; sed -i 9s/^/2/ d/a.x");
    sandbox.lane_with_commit("three", "echo 3 >> list.md");
    let answer = sandbox.proq(&["matrix", "--json"]).json();
    assert_eq!(result(&answer, "one", "three"), "clean", "joined");
    assert_eq!(result(&answer, "one", "two"), "conflict", "taken for binary");
    // Attributes in the checkout do not count, and those of the settings do.
    std::fs::remove_file(sandbox.repo.join(".gitattributes")).unwrap();
    assert_eq!(sandbox.proq(&["matrix", "--json"]).json(), answer);
    sandbox.sh("git checkout -q .gitattributes; echo 'list.md merge=text' > .git/info/attributes");
    let answer = sandbox.proq(&["matrix", "--json"]).json();
    assert_eq!(result(&answer, "one", "three"), "conflict");
}

#[test]
fn results_are_cached_until_a_lane_moves() {
    let sandbox = sandbox_with_lanes();
    let first = sandbox.proq(&["matrix", "--json"]).json();
    let again = run_without_merges(&sandbox, &["matrix", "--json"]).json();
    assert_eq!(first, again, "no merge was needed");
    sandbox.commit_in_lane("kept", "git checkout -q HEAD~1 old.txt; echo docs! > docs.md");
    let moved = run_without_merges(&sandbox, &["matrix", "--json"]).json();
    assert_eq!(result(&moved, "docs", "kept"), "unknown", "git would have to say");
    assert_eq!(result(&moved, "gone", "kept"), "clean");
    assert_eq!(result(&moved, "auth", "pay"), "conflict");
    let cold = sandbox.proq(&["matrix", "--json"]).json();
    assert_eq!(result(&cold, "docs", "kept"), "conflict");
    for broken in ["", "nonsense", "\0\0\0\0"] {
        std::fs::write(sandbox.repo.join(".git/proq/cache/forecast"), broken).unwrap();
        assert_eq!(sandbox.proq(&["matrix", "--json"]).json(), cold);
    }
}

#[test]
fn crashing_merge_does_not_affect_others() {
    let sandbox = sandbox_with_lines();
    for n in 0..4 {
        sandbox.lane_with_commit(&format!("l{n}"), &format!("echo {n} > same.txt"));
    }
    // Git prints nothing before its end, and crashes on each batch with these two.
    let fatal =
        format!("{} {}", sandbox.git(&["rev-parse", "proq/l1"]), sandbox.git(&["rev-parse", "proq/l2"]));
    let act = format!(
        "cat > \"$ROOT/in\"; grep -q '{fatal}' \"$ROOT/in\" && kill -ABRT $$; exec $REAL \"$@\" < \"$ROOT/in\""
    );
    // One batch after the other, since they share a file.
    let act = format!("exec 9> \"$ROOT/lock\"; flock 9; {act}");
    let out = sandbox.output(with_git_wrapper(&sandbox, "merge-tree", &act, &["matrix", "--json"])).json();
    for (ours, theirs) in [("l0", "l1"), ("l0", "l2"), ("l0", "l3"), ("l1", "l3"), ("l2", "l3")] {
        assert_eq!(result(&out, ours, theirs), "conflict", "{ours} {theirs}");
    }
    assert_eq!(result(&out, "l1", "l2"), "unknown");
    // The failure is not cached.
    let answer = sandbox.proq(&["matrix", "--json"]).json();
    assert_eq!(result(&answer, "l1", "l2"), "conflict");
}

#[test]
fn many_merges_take_few_git_calls() {
    let sandbox = sandbox_with_lines();
    sandbox.git(&["config", "merge.default", "text-of-mine"]);
    for n in 1..6 {
        sandbox.lane_with_commit(&format!("l{n}"), &format!("sed -i '{}s/^/{n}/' long.txt", n * 10));
    }
    let act = "echo call >> \"$ROOT/calls\"; exec $REAL \"$@\"";
    let answer = sandbox.output(with_git_wrapper(&sandbox, "merge-tree", act, &["matrix", "--json"])).json();
    assert_eq!(result(&answer, "l1", "l5"), "clean");
    let calls = std::fs::read_to_string(sandbox.root().join("calls")).unwrap();
    assert!(calls.lines().count() <= 2, "one for each half of the merges: {calls}");
}

#[test]
fn multiple_merge_bases_are_left_to_git() {
    let sandbox = sandbox_with_lines();
    sandbox.lane_with_commit("one", "echo 1 > one.txt");
    sandbox.lane_with_commit("two", "echo 2 > two.txt");
    let (one, two) = (sandbox.git(&["rev-parse", "proq/one"]), sandbox.git(&["rev-parse", "proq/two"]));
    sandbox.git_in(&sandbox.lane_path("one"), &["merge", "-q", "--no-edit", &two]);
    sandbox.git_in(&sandbox.lane_path("two"), &["merge", "-q", "--no-edit", &one]);
    sandbox.commit_in_lane("one", "echo x > x.txt");
    sandbox.commit_in_lane("two", "echo y > y.txt");
    // With either one of the two merge bases there would be nothing to decide.
    assert_eq!(result(&run_without_merges(&sandbox, &["matrix", "--json"]).json(), "one", "two"), "unknown");
    assert_eq!(result(&sandbox.proq(&["matrix", "--json"]).json(), "one", "two"), "clean");
}

#[test]
fn lanes_are_grouped_by_base() {
    let sandbox = sandbox_with_lines();
    sandbox.git(&["branch", "release"]);
    sandbox.lane_with_commit("one", "echo 1 > same.txt");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "two", "--base", "release"]).ok();
    sandbox.commit_in_lane("two", "echo 2 > same.txt");
    sandbox.git(&["switch", "-q", "--orphan", "bare"]);
    sandbox.git(&["commit", "-q", "--allow-empty", "-m", "other"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "three", "--base", "bare"]).ok();
    sandbox.git(&["switch", "-q", "main"]);
    sandbox.git(&["branch", "-q", "-D", "bare"]);
    insta::assert_snapshot!(sandbox.proq(&["matrix"]).to_text(), @r"
           main
    1 one  ·

           release
    1 two  ·

    2 lanes, no conflicts
    --- stderr
    not compared: three (its base 'bare' is missing)
    --- code 0
    ");
}

#[test]
fn watch_prints_changes_until_stopped() {
    let sandbox = sandbox_with_lanes();
    let mut watch = sandbox.proq_command(&sandbox.repo, &["matrix", "--watch", "--json", "auth", "docs"]);
    let mut watch = watch.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut next = || -> serde_json::Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    assert_eq!(result(&next(), "auth", "docs"), "clean");
    sandbox.sh_in(&sandbox.lane_path("docs"), "echo edit > docs.md");
    assert_eq!(next()["lanes"][1]["uncommitted"], 1, "a file");
    sandbox.commit_in_lane("auth", "echo auth > docs.md");
    let update = next();
    assert_eq!((&*result(&update, "auth", "docs"), &update["schema"]), ("conflict", &1.into()), "a ref");
    let stop = format!("kill -INT {}", watch.id());
    sandbox.sh(&stop);
    assert_eq!(watch.wait().unwrap().code(), Some(130));
    assert_eq!(file_names(&sandbox.repo.join(".git/proq/work")), [""; 0]);
}

#[test]
fn list_shows_conflicts_known_without_git() {
    let sandbox = sandbox_with_lanes();
    // No merge is started here, so `gone` and `kept` are unknown: only git can decide.
    insta::assert_snapshot!(run_without_merges(&sandbox, &["list"]).to_text(), @"
    LANE  STATE  LINES  COMMITS  CHANGES  CONFLICTS  AGENT  UPDATED
    auth  idle   +3 -3  ↑1 ↓1    -        -          -      0s ago
    docs  idle   +1     ↑1 ↓1    -        -          -      0s ago
    gone  idle   -1     ↑1 ↓1    -        ?          -      0s ago
    kept  idle   +1     ↑1 ↓1    -        ?          -      0s ago
    pay   idle   +3 -2  ↑1 ↓1    -        base       -      0s ago
    --- code 0
    ");
    let row = |name: &str| sandbox.row(name)["conflicts"].clone();
    assert_eq!(row("pay"), serde_json::json!({ "base": true, "lanes": [], "complete": true }));
    assert_eq!(row("docs"), serde_json::json!({ "base": false, "lanes": [], "complete": true }));
    assert_eq!(row("gone"), serde_json::json!({ "base": false, "lanes": [], "complete": false }));
    let _ = sandbox.proq(&["matrix"]).ok();
    let known = serde_json::json!({ "base": false, "lanes": ["kept"], "complete": true });
    assert_eq!(row("gone"), known, "remembered");
    let _ = sandbox.proq(&["discard", "--force", "pay", "gone"]).ok();
    insta::assert_snapshot!(sandbox.proq(&["list"]).to_text(), @r"
    LANE  STATE  LINES  COMMITS  CHANGES  CONFLICTS  AGENT  UPDATED
    auth  idle   +3 -3  ↑1 ↓1    -        -          -      0s ago
    docs  idle   +1     ↑1 ↓1    -        -          -      0s ago
    kept  idle   +1     ↑1 ↓1    -        -          -      0s ago
    --- code 0
    ");
}

#[test]
fn lanes_without_common_files_can_conflict() {
    let sandbox = Sandbox::new();
    sandbox.sh("mkdir d; for f in a b c; do seq 30 > d/$f; done");
    sandbox.commit_all("a folder");
    sandbox.lane_with_commit("moves", "git mv d e");
    sandbox.lane_with_commit("adds", "echo > d/new");
    sandbox.lane_with_commit("file", "echo > n");
    sandbox.lane_with_commit("folder", "mkdir n; echo > n/x");
    sandbox.lane_with_commit("near", "echo > n-x; echo > na");
    // Each result is cached; the second run must give the same.
    for _ in 0..2 {
        let answer = sandbox.proq(&["matrix", "--json"]).json();
        let pairs = answer["pairs"].as_array().unwrap().iter();
        let conflicts: Vec<String> = pairs
            .filter(|pair| pair["result"] != "clean")
            .map(|pair| format!("{} {} {}", pair["ours"], pair["theirs"], pair["result"]).replace('"', ""))
            .collect();
        assert_eq!(conflicts, ["adds moves conflict", "file folder conflict"]);
    }
}
