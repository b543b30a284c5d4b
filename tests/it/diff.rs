//! Owns the tests of `git proq diff`.

use super::support::Sandbox;

/// A lane with a commit, an edit, and files that git does not know.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(".gitignore", "*.log\n");
    sandbox.commit_all("base");
    sandbox.lane_of("one", "echo lane > lane");
    let script = "echo edit >> a.txt; mkdir in; echo new > in/new; echo 'x y' > 'sp ace'; echo i > i.log
        git init -q nested; git -C nested commit -q --allow-empty -m n; echo staged > staged; git add staged";
    sandbox.sh_in(&sandbox.lane("one"), script);
    sandbox
}

#[test]
fn untracked_files_are_part_of_what_a_lane_changes() {
    let sandbox = sandbox();
    let state = || {
        let lane = sandbox.lane("one");
        (sandbox.raw(&lane, &["status", "--porcelain"]), sandbox.raw(&lane, &["ls-files", "--stage"]))
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
fn a_file_that_cannot_be_read_leaves_the_rest_of_a_difference() {
    let sandbox = sandbox();
    sandbox.sh_in(&sandbox.lane("one"), "chmod 0 in/new");
    // Root reads everything.
    if std::fs::read(sandbox.lane("one").join("in/new")).is_err() {
        let out = sandbox.proq(&["diff", "one"]);
        assert!(out.stderr.contains("in/new"), "{}", out.stderr);
        let text = out.ok();
        assert!(text.contains("b/sp ace\n") && !text.contains("b/in/new"), "{text}");
    }
    sandbox.sh_in(&sandbox.lane("one"), "chmod 600 in/new");
}
