//! Owns the tests of `git proq matrix`.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::SystemTime;

use super::recovery::kit::with_git;
use super::support::{Image, Output, Sandbox, names};

/// Two files with lines, and one that lanes remove and change.
fn with_lines() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("mkdir src; seq 60 > long.txt; seq 30 > src/lib.rs; echo old > old.txt; printf '*.log\\n' > .gitignore");
    sandbox.commit_all("lines");
    sandbox
}

/// Lanes that get along, and lanes that do not.
fn a_few() -> Sandbox {
    let sandbox = with_lines();
    sandbox.lane_of("auth", "sed -i '10,12s/^/a/' long.txt");
    sandbox.lane_of("docs", "echo docs > docs.md");
    sandbox.lane_of("gone", "git rm -q old.txt");
    sandbox.lane_of("kept", "echo more >> old.txt");
    sandbox.lane_of(
        "pay",
        "sed -i '11s/^/b/' long.txt; sed -i '1i new' src/lib.rs; sed -i '21s/^/p/' src/lib.rs",
    );
    sandbox.sh("sed -i '20s/^/main/' src/lib.rs; git commit -qam main");
    sandbox
}

/// The result for two, in the order of the answer.
fn result(answer: &serde_json::Value, ours: &str, theirs: &str) -> String {
    let all = answer["pairs"].as_array().unwrap();
    let pair = all.iter().find(|p| p["ours"] == ours && p["theirs"] == theirs);
    pair.unwrap_or_else(|| panic!("{ours} and {theirs} in {answer:#}"))["result"].as_str().unwrap().to_owned()
}

/// Runs it with a git that fails when it is to merge.
fn without_merges(sandbox: &Sandbox, args: &[&str]) -> Output {
    sandbox.output(with_git(sandbox, "merge-tree", "exit 70", args))
}

#[test]
fn a_triangle_shows_which_lanes_get_along() {
    let sandbox = a_few();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "idle"]).ok();
    insta::assert_snapshot!(sandbox.proq(&["matrix"]).shown(), @r"
            main  1  2  3  4
    1 auth  ·
    2 docs  ·     ·
    3 gone  ·     ·  ·
    4 kept  ·     ·  ·  x
    5 pay   x     x  ·  ·  ·

    main x pay: src/lib.rs:20
    auth x pay: long.txt:10-12
    gone x kept: old.txt (modify/delete)
    5 lanes: 1 in conflict with the base, 2 pairs of them with each other
    --- stderr
    left out: idle (it has changed nothing)
    --- code 0
    ");
    insta::assert_snapshot!(sandbox.proq(&["matrix", "docs", "auth"]).shown(), @r"
            main  1
    1 auth  ·
    2 docs  ·     ·

    2 lanes, no conflicts
    --- code 0
    ");
    insta::assert_snapshot!(sandbox.proq(&["matrix", "autg"]).shown(), @r"
    --- stderr
    error: there is no lane 'autg'
    hint: did you mean 'auth'?
    hint: see all: git proq list
    --- code 1
    ");
}

#[test]
fn programs_get_the_lines_of_both_sides() {
    let sandbox = a_few();
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
fn without_lanes_there_is_nothing_to_compare() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.proq(&["matrix"]).ok(), "no lanes to compare\n");
    assert_eq!(sandbox.proq(&["matrix", "--json"]).json()["pairs"], serde_json::json!([]));
}

#[test]
fn many_lanes_are_told_by_what_conflicts() {
    let sandbox = with_lines();
    for n in 0..17 {
        let file = if n % 8 == 0 { "same".to_owned() } else { format!("own{n}") };
        sandbox.lane_of(&format!("l{n:02}"), &format!("echo {n} > {file}"));
    }
    insta::assert_snapshot!(sandbox.proq(&["matrix"]).shown(), @r"
    l00 x l08: same:1
    l00 x l16: same:1
    l08 x l16: same:1
    17 lanes: 0 in conflict with the base, 3 pairs of them with each other
    --- code 0
    ");
}

#[test]
fn what_is_uncommitted_counts_and_what_is_ignored_does_not() {
    let sandbox = with_lines();
    for lane in ["one", "two"] {
        let _ = sandbox.proq(&["spawn", "--empty", "-n", lane]).ok();
        sandbox.sh_in(
            &sandbox.lane(lane),
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
fn filters_decide_what_an_uncommitted_file_is() {
    let sandbox = with_lines();
    sandbox.git(&["config", "filter.up.clean", "tr a-z A-Z"]);
    sandbox.sh("echo '*.up filter=up' > .gitattributes; git add .; git commit -qm filter");
    for (lane, text) in [("one", "same"), ("two", "SAME")] {
        let _ = sandbox.proq(&["spawn", "--empty", "-n", lane]).ok();
        sandbox.write_in(&sandbox.lane(lane), "x.up", text);
    }
    let answer = sandbox.proq(&["matrix", "--json"]).json();
    assert_eq!(result(&answer, "one", "two"), "clean");
}

/// Every file below a folder with its content and time; folders by name.
fn everything(dir: &Path, spare: &[&str], out: &mut BTreeMap<String, (Vec<u8>, Option<SystemTime>)>) {
    for name in names(dir) {
        let path = dir.join(name);
        if spare.iter().any(|s| path.ends_with(s)) {
            continue;
        }
        let meta = path.symlink_metadata().unwrap();
        if meta.is_dir() {
            out.insert(path.display().to_string(), (Vec::new(), None));
            everything(&path, spare, out);
        } else {
            let text = std::fs::read(&path).unwrap_or_default();
            // Git renews the time of what it finds there and would else write: objects, shared indexes.
            let renewed =
                ["/.git/objects/", "/sharedindex."].map(|part| path.display().to_string().contains(part));
            let time = (renewed == [false; 2]).then(|| meta.modified().unwrap());
            out.insert(path.display().to_string(), (text, time));
        }
    }
}

#[test]
fn looking_changes_nothing_anywhere() {
    let sandbox = a_few();
    sandbox.sh_in(
        &sandbox.lane("docs"),
        "echo more >> docs.md; echo staged > s.txt; git add s.txt; echo late > s.txt; rm old.txt; echo l > x.log
        echo planned > p.txt; git add -N p.txt; git update-index --split-index",
    );
    sandbox.sh("echo mine >> a.txt; echo new > n.txt");
    // Who is in whose way is told the first time, and is no news when all of it is found out once more.
    let _ = sandbox.proq(&["matrix"]).ok();
    std::fs::remove_file(sandbox.repo.join(".git/proq/cache/forecast")).unwrap();
    let look = || {
        let mut all = BTreeMap::new();
        // The cache is the one thing that is written; the folder of what is under way is empty again.
        everything(&sandbox.repo, &["proq/cache"], &mut all);
        all
    };
    let before = look();
    let cache = sandbox.repo.join(".git/proq/cache");
    // What spawning notes there depends on how old the index was.
    let mut cached = names(&cache);
    cached.push("forecast".to_owned());
    cached.sort();
    let answer = sandbox.proq(&["matrix", "--json"]).json();
    assert_eq!(result(&answer, "gone", "kept"), "conflict");
    assert_eq!(result(&answer, "docs", "kept"), "conflict", "by git, with a commit made aside");
    let after = look();
    for (path, was) in &before {
        assert!(after.get(path) == Some(was), "{path}");
    }
    assert_eq!(before.len(), after.len());
    assert_eq!(names(&cache), cached);
    sandbox.assert_healthy();
}

#[test]
fn a_worktree_that_is_elsewhere_is_told_and_left_alone() {
    let sandbox = a_few();
    sandbox.sh_in(&sandbox.lane("docs"), "git switch -q -c other; echo x > docs.md");
    let out = sandbox.proq(&["matrix", "docs", "auth"]);
    assert!(
        out.stderr
            .contains("only what is committed in lane 'docs' was compared: its worktree is not on proq/docs"),
        "{}",
        out.shown()
    );
    let image = Image::of(&sandbox, &sandbox.lane("docs"));
    std::fs::remove_dir_all(sandbox.lane("kept")).unwrap();
    let out = sandbox.proq(&["matrix", "kept", "gone"]);
    assert!(
        out.stderr.contains("lane 'kept' was compared: its worktree could not be looked at"),
        "{}",
        out.shown()
    );
    assert!(out.stdout.contains("gone x kept: old.txt"), "{}", out.stdout);
    assert_eq!(image, Image::of(&sandbox, &sandbox.lane("docs")));
}

#[test]
fn merge_drivers_of_attributes_decide() {
    let sandbox = with_lines();
    sandbox.sh("echo l > list.md; mkdir d; echo 'list.md merge=union' > .gitattributes; echo '*.x -merge' > d/.gitattributes
        seq 9 > d/a.x; git add .; git commit -qm attributes");
    sandbox.lane_of("one", "echo 1 >> list.md; sed -i 1s/^/1/ d/a.x");
    sandbox.lane_of("two", "echo 2 >> list.md; sed -i 9s/^/2/ d/a.x");
    sandbox.lane_of("three", "echo 3 >> list.md");
    let answer = sandbox.proq(&["matrix", "--json"]).json();
    assert_eq!(result(&answer, "one", "three"), "clean", "joined");
    assert_eq!(result(&answer, "one", "two"), "conflict", "taken for binary");
    // What lies in the checkout says nothing, and what the settings say does.
    std::fs::remove_file(sandbox.repo.join(".gitattributes")).unwrap();
    assert_eq!(sandbox.proq(&["matrix", "--json"]).json(), answer);
    sandbox.sh("git checkout -q .gitattributes; echo 'list.md merge=text' > .git/info/attributes");
    let answer = sandbox.proq(&["matrix", "--json"]).json();
    assert_eq!(result(&answer, "one", "three"), "conflict");
}

#[test]
fn answers_are_remembered_until_a_lane_moves() {
    let sandbox = a_few();
    let first = sandbox.proq(&["matrix", "--json"]).json();
    let again = without_merges(&sandbox, &["matrix", "--json"]).json();
    assert_eq!(first, again, "no merge was needed");
    sandbox.commit_in_lane("kept", "git checkout -q HEAD~1 old.txt; echo docs! > docs.md");
    let moved = without_merges(&sandbox, &["matrix", "--json"]).json();
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
fn a_merge_that_git_dies_of_takes_no_other_with_it() {
    let sandbox = with_lines();
    for n in 0..4 {
        sandbox.lane_of(&format!("l{n}"), &format!("echo {n} > same.txt"));
    }
    // Git says nothing before the end, and dies of each batch with these two.
    let fatal =
        format!("{} {}", sandbox.git(&["rev-parse", "proq/l1"]), sandbox.git(&["rev-parse", "proq/l2"]));
    let act = format!(
        "cat > \"$ROOT/in\"; grep -q '{fatal}' \"$ROOT/in\" && kill -ABRT $$; exec $REAL \"$@\" < \"$ROOT/in\""
    );
    // One batch after the other, as they share a file.
    let act = format!("exec 9> \"$ROOT/lock\"; flock 9; {act}");
    let out = sandbox.output(with_git(&sandbox, "merge-tree", &act, &["matrix", "--json"])).json();
    for (ours, theirs) in [("l0", "l1"), ("l0", "l2"), ("l0", "l3"), ("l1", "l3"), ("l2", "l3")] {
        assert_eq!(result(&out, ours, theirs), "conflict", "{ours} {theirs}");
    }
    assert_eq!(result(&out, "l1", "l2"), "unknown");
    // Nothing is remembered of it.
    let answer = sandbox.proq(&["matrix", "--json"]).json();
    assert_eq!(result(&answer, "l1", "l2"), "conflict");
}

#[test]
fn git_is_asked_once_for_many_merges() {
    let sandbox = with_lines();
    sandbox.git(&["config", "merge.default", "text-of-mine"]);
    for n in 1..6 {
        sandbox.lane_of(&format!("l{n}"), &format!("sed -i '{}s/^/{n}/' long.txt", n * 10));
    }
    let act = "echo call >> \"$ROOT/calls\"; exec $REAL \"$@\"";
    let answer = sandbox.output(with_git(&sandbox, "merge-tree", act, &["matrix", "--json"])).json();
    assert_eq!(result(&answer, "l1", "l5"), "clean");
    let calls = std::fs::read_to_string(sandbox.root().join("calls")).unwrap();
    assert!(calls.lines().count() <= 2, "one for each half of the merges: {calls}");
}

#[test]
fn histories_with_several_merge_bases_are_gits() {
    let sandbox = with_lines();
    sandbox.lane_of("one", "echo 1 > one.txt");
    sandbox.lane_of("two", "echo 2 > two.txt");
    let (one, two) = (sandbox.git(&["rev-parse", "proq/one"]), sandbox.git(&["rev-parse", "proq/two"]));
    sandbox.git_in(&sandbox.lane("one"), &["merge", "-q", "--no-edit", &two]);
    sandbox.git_in(&sandbox.lane("two"), &["merge", "-q", "--no-edit", &one]);
    sandbox.commit_in_lane("one", "echo x > x.txt");
    sandbox.commit_in_lane("two", "echo y > y.txt");
    // With any one of the two merge bases there would be nothing to decide.
    assert_eq!(result(&without_merges(&sandbox, &["matrix", "--json"]).json(), "one", "two"), "unknown");
    assert_eq!(result(&sandbox.proq(&["matrix", "--json"]).json(), "one", "two"), "clean");
}

#[test]
fn lanes_of_other_bases_and_without_one_are_apart() {
    let sandbox = with_lines();
    sandbox.git(&["branch", "release"]);
    sandbox.lane_of("one", "echo 1 > same.txt");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "two", "--base", "release"]).ok();
    sandbox.commit_in_lane("two", "echo 2 > same.txt");
    sandbox.git(&["switch", "-q", "--orphan", "bare"]);
    sandbox.git(&["commit", "-q", "--allow-empty", "-m", "other"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "three", "--base", "bare"]).ok();
    sandbox.git(&["switch", "-q", "main"]);
    sandbox.git(&["branch", "-q", "-D", "bare"]);
    insta::assert_snapshot!(sandbox.proq(&["matrix"]).shown(), @r"
           main
    1 one  ·

           release
    1 two  ·

    2 lanes, no conflicts
    --- stderr
    left out: three (its base 'bare' is gone)
    --- code 0
    ");
}

#[test]
fn watching_shows_what_changes_until_it_is_stopped() {
    let sandbox = a_few();
    let mut watch = sandbox.proq_command(&sandbox.repo, &["matrix", "--watch", "--json", "auth", "docs"]);
    let mut watch = watch.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut next = || -> serde_json::Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    assert_eq!(result(&next(), "auth", "docs"), "clean");
    sandbox.sh_in(&sandbox.lane("docs"), "echo edit > docs.md");
    assert_eq!(next()["lanes"][1]["uncommitted"], 1, "a file");
    sandbox.commit_in_lane("auth", "echo auth > docs.md");
    let seen = next();
    assert_eq!((&*result(&seen, "auth", "docs"), &seen["schema"]), ("conflict", &1.into()), "a ref");
    let stop = format!("kill -INT {}", watch.id());
    sandbox.sh(&stop);
    assert_eq!(watch.wait().unwrap().code(), Some(130));
    assert_eq!(names(&sandbox.repo.join(".git/proq/work")), [""; 0]);
}

#[test]
fn a_list_says_what_conflicts_as_far_as_that_needs_no_git() {
    let sandbox = a_few();
    // Nothing of this starts a merge, so `gone` and `kept` are left blank: only git can tell.
    insta::assert_snapshot!(without_merges(&sandbox, &["list"]).shown(), @r"
    LANE  STATE  AGENT  COMMITS  CHANGES  CONFLICTS      AGE  TITLE
    auth  idle   -      +1 -1    -        1 lane         0s
    docs  idle   -      +1 -1    -        -              0s
    gone  idle   -      +1 -1    -                       0s
    kept  idle   -      +1 -1    -                       0s
    pay   idle   -      +1 -1    -        base + 1 lane  0s
    --- code 0
    ");
    let row = |name: &str| sandbox.row(name)["conflicts"].clone();
    assert_eq!(row("pay"), serde_json::json!({ "base": true, "lanes": ["auth"], "complete": true }));
    assert_eq!(row("docs"), serde_json::json!({ "base": false, "lanes": [], "complete": true }));
    assert_eq!(row("gone"), serde_json::json!({ "base": false, "lanes": [], "complete": false }));
    let _ = sandbox.proq(&["matrix"]).ok();
    let known = serde_json::json!({ "base": false, "lanes": ["kept"], "complete": true });
    assert_eq!(row("gone"), known, "remembered");
    let _ = sandbox.proq(&["discard", "--force", "pay", "gone"]).ok();
    insta::assert_snapshot!(sandbox.proq(&["list"]).shown(), @r"
    LANE  STATE  AGENT  COMMITS  CHANGES  AGE  TITLE
    auth  idle   -      +1 -1    -        0s
    docs  idle   -      +1 -1    -        0s
    kept  idle   -      +1 -1    -        0s
    --- code 0
    ");
}

#[test]
fn lanes_that_share_no_file_can_be_in_each_others_way_all_the_same() {
    let sandbox = Sandbox::new();
    sandbox.sh("mkdir d; for f in a b c; do seq 30 > d/$f; done");
    sandbox.commit_all("a folder");
    sandbox.lane_of("moves", "git mv d e");
    sandbox.lane_of("adds", "echo > d/new");
    sandbox.lane_of("file", "echo > n");
    sandbox.lane_of("folder", "mkdir n; echo > n/x");
    sandbox.lane_of("near", "echo > n-x; echo > na");
    // What was found out of each is remembered; the second time must say the same.
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
