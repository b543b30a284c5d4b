//! Tests of `git proq diff`.

use proq_test_kit::Sandbox;

/// Creates a lane with a commit, an edit, and untracked files.
fn with_changed_lane() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(".gitignore", "*.log\n");
    sandbox.commit_all("base");
    sandbox.lane_with_commit("one", "echo lane > lane");
    let script = "echo edit >> a.txt; mkdir in; echo new > in/new; echo 'x y' > 'sp ace'; echo i > i.log
        git init -q nested; git -C nested commit -q --allow-empty -m n; echo staged > staged; git add staged";
    sandbox.sh_in(&sandbox.lane_path("one"), script);
    sandbox
}

#[test]
fn diff_includes_untracked_files() {
    let sandbox = with_changed_lane();
    let state = || {
        let lane = sandbox.lane_path("one");
        (
            sandbox.git_bytes(&lane, &["status", "--porcelain"]),
            sandbox.git_bytes(&lane, &["ls-files", "--stage"]),
        )
    };
    let before = state();
    let text = sandbox.proq(&["diff", "one"]).ok();
    for file in ["a.txt", "in/new", "lane", "sp ace", "staged"] {
        assert!(text.contains(&format!("diff --git a/{file} b/{file}\n")), "{file}: {text}");
    }
    assert!(
        text.contains(
            "new file mode 100644\nindex 0000000..3e75765\n--- /dev/null\n+++ b/in/new\n@@ -0,0 +1 @@\n+new\n"
        ),
        "{text}"
    );
    assert!(!text.contains("nested") && !text.contains("i.log"), "{text}");
    let stat = sandbox.proq(&["diff", "--stat", "one"]).ok();
    assert!(stat.contains(" in/new ") && stat.contains("5 files changed"), "{stat}");
    let json = sandbox.proq(&["diff", "--json", "one"]).json();
    assert_eq!(json["files"], serde_json::json!(["a.txt", "in/new", "lane", "sp ace", "staged"]));
    assert_eq!(before, state());
    assert_eq!(sandbox.sh("ls .git/proq/work 2>/dev/null | wc -l").trim(), "0");
}

#[test]
fn diff_skips_unreadable_file() {
    let sandbox = with_changed_lane();
    sandbox.sh_in(&sandbox.lane_path("one"), "chmod 0 in/new");
    // Root can read every file.
    if std::fs::read(sandbox.lane_path("one").join("in/new")).is_err() {
        let out = sandbox.proq(&["diff", "one"]);
        assert!(out.stderr.contains("in/new"), "{}", out.stderr);
        let text = out.ok();
        assert!(text.contains("b/sp ace\n") && !text.contains("b/in/new"), "{text}");
    }
    sandbox.sh_in(&sandbox.lane_path("one"), "chmod 600 in/new");
}

#[test]
fn patch_has_hunks_lines_and_words() {
    let sandbox = Sandbox::new();
    sandbox.write("src/pay.rs", "one\nlet total = price;\nthree\nfour\nfive\nsix\n");
    sandbox.commit_all("base");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "one"]).ok();
    let script = "sed -i 's/total/sum/' src/pay.rs; echo new > 'sp \tace'; printf '\\0' > bin";
    sandbox.sh_in(&sandbox.lane_path("one"), script);
    let out = sandbox.proq(&["diff", "one", "--json", "--patch"]).json();
    assert_eq!(out["files"], serde_json::json!(["bin", "sp \\tace", "src/pay.rs"]));
    assert_eq!(out.get("cut"), None);
    let patch =
        |path: &str| out["patch"].as_array().unwrap().iter().find(|file| file["path"] == path).unwrap();
    assert_eq!((&patch("bin")["binary"], &patch("bin")["change"]), (&true.into(), &"added".into()));
    assert_eq!(patch("sp \\tace")["hunks"][0]["lines"][0]["text"], "new");
    let hunk = &patch("src/pay.rs")["hunks"][0];
    assert_eq!(hunk["lines"].as_array().unwrap().len(), 6);
    assert_eq!(
        [&hunk["lines"][1], &hunk["lines"][2]],
        [
            &serde_json::json!({"kind": "removed", "old": 2, "text": "let total = price;", "words": [[4, 9]]}),
            &serde_json::json!({"kind": "added", "new": 2, "text": "let sum = price;", "words": [[4, 7]]}),
        ]
    );
    let narrow = ["diff", "one", "--json", "--patch", "--path", "src", "--context", "0"];
    let narrow = sandbox.proq(&narrow).json();
    assert_eq!(narrow["patch"].as_array().unwrap().len(), 1);
    assert_eq!(narrow["patch"][0]["hunks"][0]["lines"].as_array().unwrap().len(), 2);
    sandbox.sh_in(&sandbox.lane_path("one"), "seq 9000 > long");
    let long = sandbox.proq(&["diff", "one", "--json", "--patch", "--path", "long"]).json();
    assert_eq!((&long["cut"], &long["patch"][0]["cut"]), (&true.into(), &true.into()));
}

#[test]
fn diff_of_one_run_leaves_out_other_runs() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("x", "echo 1 > first");
    sandbox.program("robot", "echo 2 > second");
    let _ = sandbox.proq(&["run", "x", "robot", "go on", "--wait"]).ok();
    let files =
        |args: &[&str]| sandbox.proq(&[&["diff", "x", "--json"], args].concat()).json()["files"].clone();
    assert_eq!(files(&[]), serde_json::json!(["first", "second"]));
    assert_eq!(files(&["--run", "1"]), serde_json::json!(["first"]));
    assert_eq!(files(&["--run", "2"]), serde_json::json!(["second"]));
    let out = sandbox.proq(&["diff", "x", "--run", "3"]).fails(1);
    assert!(out.contains("lane 'x' has no run 3"), "{out}");
}
