//! Owns the tests of lanes that delete most of the files of their base: they land only where that is said to be meant.

use super::support::Sandbox;

/// A sandbox whose base has twelve files.
fn twelve() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("mkdir src; for n in $(seq 11); do echo $n > src/f$n.js; done");
    sandbox.commit_all("eleven more");
    sandbox
}

fn files(sandbox: &Sandbox) -> usize {
    sandbox.git(&["ls-tree", "-r", "--name-only", "main"]).lines().count()
}

#[test]
fn a_lane_that_deletes_most_files_lands_when_that_is_allowed() {
    let sandbox = twelve();
    sandbox.lane_of("x", "git rm -q src/f[1-7].js; echo new > new.txt");
    insta::assert_snapshot!(sandbox.proq(&["merge", "x"]).shown(), @r"
    refused x: it deletes 7 of 12 files of main
    --- stderr
    hint: if that is meant: git proq merge x --allow-deletions
    --- code 1
    ");
    let _ = sandbox.proq(&["merge", "--all"]).fails(1);
    let _ = sandbox.proq(&["merge", "x", "--force"]).fails(1);
    assert_eq!(files(&sandbox), 12);
    let _ = sandbox.proq(&["merge", "x", "--allow-deletions"]).ok();
    assert_eq!(files(&sandbox), 6);
}

#[test]
fn half_of_the_files_and_files_that_move_are_no_matter() {
    let sandbox = twelve();
    sandbox.lane_of("half", "git rm -q src/f[1-6].js");
    let _ = sandbox.proq(&["merge", "half"]).ok();
    assert_eq!(files(&sandbox), 6);
    let sandbox = twelve();
    let script =
        "mkdir lib; for f in src/*; do n=$(basename $f .js); (cat $f; echo more) > lib/$n.ts; rm $f; done";
    sandbox.lane_with("moved", script);
    let _ = sandbox.proq(&["merge", "moved"]).ok();
    assert_eq!(files(&sandbox), 12);
}

#[test]
fn what_an_agent_leaves_is_not_committed_where_most_files_are_gone() {
    let sandbox = twelve();
    let script = "rm src/*; echo new > new.txt";
    let _ = sandbox.proq(&["spawn", "-n", "x", "--wait", "--", "sh", "-c", script]).ok();
    assert_eq!(sandbox.git(&["rev-parse", "proq/x"]), sandbox.git(&["rev-parse", "main"]));
    let row = sandbox.row("x");
    assert!(row["detail"].as_str().unwrap().contains("11 of 12 files are deleted"), "{row:#}");
    assert_eq!(row["uncommitted"], 12);
    let mut command = sandbox.proq_command(&sandbox.repo, &["merge", "x"]);
    command.env("PROQ_MERGE_UNCOMMITTED", "commit");
    let refused = sandbox.output(command);
    assert_eq!(refused.code, 1);
    let why = "11 of 12 files are deleted, which git proq merge --allow-deletions allows";
    assert!(refused.stdout.contains(why), "{}", refused.shown());
    let mut command = sandbox.proq_command(&sandbox.repo, &["merge", "x", "--allow-deletions"]);
    command.env("PROQ_MERGE_UNCOMMITTED", "commit");
    let _ = sandbox.output(command).ok();
    assert_eq!(sandbox.git(&["ls-tree", "-r", "--name-only", "main"]), "a.txt\nnew.txt");
}
