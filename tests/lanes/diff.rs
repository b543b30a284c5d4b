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
