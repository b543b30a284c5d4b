//! Lanes that delete most of the files of their base: they land only with `--allow-deletions`.

use proq_test_kit::Sandbox;

/// Returns a sandbox whose base has twelve files.
fn twelve_files() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("mkdir src; for n in $(seq 11); do echo $n > src/f$n.js; done");
    sandbox.commit_all("eleven more");
    sandbox
}

fn file_count(sandbox: &Sandbox) -> usize {
    sandbox.git(&["ls-tree", "-r", "--name-only", "main"]).lines().count()
}

/// Promise: new-lane/mass-deletion
#[test]
fn mass_deletion_lands_only_when_allowed() {
    let sandbox = twelve_files();
    sandbox.lane_with_commit("x", "git rm -q src/f[1-7].js; echo new > new.txt");
    insta::assert_snapshot!(sandbox.proq(&["merge", "x"]).to_text(), @r"
    refused x: it deletes 7 of 12 files of main
    --- stderr
    hint: if that is intended: git proq merge x --allow-deletions
    --- code 1
    ");
    let _ = sandbox.proq(&["merge", "--all"]).fails(1);
    let _ = sandbox.proq(&["merge", "x", "--force"]).fails(1);
    assert_eq!(file_count(&sandbox), 12);
    let _ = sandbox.proq(&["merge", "x", "--allow-deletions"]).ok();
    assert_eq!(file_count(&sandbox), 6);
}

#[test]
fn half_deletion_and_moves_are_allowed() {
    let sandbox = twelve_files();
    sandbox.lane_with_commit("half", "git rm -q src/f[1-6].js");
    let _ = sandbox.proq(&["merge", "half"]).ok();
    assert_eq!(file_count(&sandbox), 6);
    let sandbox = twelve_files();
    let script =
        "mkdir lib; for f in src/*; do n=$(basename $f .js); (cat $f; echo more) > lib/$n.ts; rm $f; done";
    sandbox.run_lane("moved", script);
    let _ = sandbox.proq(&["merge", "moved"]).ok();
    assert_eq!(file_count(&sandbox), 12);
}

/// Promise: new-lane/mass-deletion
#[test]
fn autocommit_refuses_mass_deletion() {
    let sandbox = twelve_files();
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
    let reason = "11 of 12 files are deleted, which git proq merge --allow-deletions allows";
    assert!(refused.stdout.contains(reason), "{}", refused.to_text());
    let mut command = sandbox.proq_command(&sandbox.repo, &["merge", "x", "--allow-deletions"]);
    command.env("PROQ_MERGE_UNCOMMITTED", "commit");
    let _ = sandbox.output(command).ok();
    assert_eq!(sandbox.git(&["ls-tree", "-r", "--name-only", "main"]), "a.txt\nnew.txt");
}
