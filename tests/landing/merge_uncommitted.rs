//! Tests of landings that commit a lane's uncommitted work first, by the setting `merge.uncommitted`.

use proq_test_kit::Sandbox;

/// A dry run includes the commit that the landing would make first, without making it.
#[test]
fn dry_run_includes_work_committed_first() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.merge.uncommitted", "commit"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "b"]).ok();
    let lane = sandbox.lane_path("b");
    sandbox.write_in(&lane, "left.txt", "left\n");
    let state = || (sandbox.git(&["for-each-ref"]), sandbox.git_in(&lane, &["status", "--short"]));
    let before = state();
    let note = "its uncommitted changes would be committed first: left.txt\n";
    for (strategy, suffix) in [("merge", ""), ("squash", " (squash)"), ("rebase", " (rebase)")] {
        let out = sandbox.proq(&["merge", "b", "--dry-run", "--strategy", strategy]);
        assert_eq!(
            out.to_text(),
            format!("would land b on main{suffix}; {note}1 file changed, 1 insertion(+)\n--- code 0\n")
        );
    }
    assert_eq!(state(), before);
    // A dry run also forecasts refusals and conflicts.
    sandbox.write_in(&lane, "a.txt", "<<<<<<< a\n1\n=======\n2\n>>>>>>> b\n");
    let text = sandbox.proq(&["merge", "b", "--dry-run"]).fails(1);
    assert!(text.contains("a.txt has conflict markers"), "{text}");
    assert_eq!(sandbox.proq(&["merge", "b"]).fails(1), text);
    sandbox.git_in(&lane, &["checkout", "-q", "a.txt"]);
    sandbox.write("left.txt", "mine\n");
    sandbox.commit_all("mine");
    let text = sandbox.proq(&["merge", "b", "--dry-run"]).fails(3);
    assert!(text.starts_with("b would conflict with main") || text.contains("left.txt"), "{text}");
    assert_eq!(sandbox.git_in(&lane, &["status", "--short"]), "?? left.txt");
    // The dry run of a lane with commits includes uncommitted files too.
    sandbox.git(&["reset", "-q", "--hard", "HEAD~1"]);
    sandbox.commit_in_lane("b", "echo more > more.txt; rm left.txt");
    sandbox.write_in(&lane, "left.txt", "left\n");
    let text = sandbox.proq(&["merge", "b", "--dry-run"]).ok();
    assert_eq!(text, format!("would land b on main; {note}2 files changed, 2 insertions(+)\n"));
    let _ = sandbox.proq(&["merge", "b"]).ok();
    assert_eq!((sandbox.read("left.txt"), sandbox.read("more.txt")), ("left\n".into(), "more\n".into()));
    sandbox.assert_healthy();
}

#[test]
fn refused_commit_keeps_the_lane_index() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.merge.uncommitted", "commit"]);
    sandbox.sh("echo 1 >b; echo 1 >c");
    sandbox.commit_all("base");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "s"]).ok();
    let lane = sandbox.lane_path("s");
    sandbox.sh_in(&lane, "echo 2 >b; git add b; echo 3 >b; git rm -q --cached c; echo i >it; git add -N it");
    sandbox.sh(
        "printf '#!/bin/sh\\necho no >&2; exit 1\\n' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
    );
    // git uses the index file's modification time to decide which entries it must compare again.
    let time = || sandbox.repo.join(".git/worktrees/s/index").metadata().unwrap().modified().unwrap();
    let index = || (sandbox.git_in(&lane, &["ls-files", "--stage", "--debug"]), time());
    let status = sandbox.git_in(&lane, &["status", "--short"]);
    let before = index();
    let refused = sandbox.proq(&["merge", "s"]).fails(1);
    assert!(refused.contains("no"), "{refused}");
    assert_eq!(index(), before);
    assert_eq!(sandbox.git_in(&lane, &["status", "--short"]), status);
    let dry = sandbox.proq(&["merge", "s", "--dry-run"]).ok();
    let (note, size) =
        ("would be committed first: b, c, it", "2 files changed, 2 insertions(+), 1 deletion(-)");
    assert_eq!(dry, format!("would land s on main; its uncommitted changes {note}\n{size}\n"));
}

/// When `git commit` fails after it created the commit, the index stays the one of that commit.
#[test]
fn commit_killed_in_post_commit_keeps_its_index() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.merge.uncommitted", "commit"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "s"]).ok();
    let lane = sandbox.lane_path("s");
    sandbox.sh_in(&lane, "echo n >n");
    sandbox.sh(
        "printf '#!/bin/sh\\nkill -TERM $PPID\\n' >.git/hooks/post-commit; chmod +x .git/hooks/post-commit",
    );
    let _ = sandbox.proq(&["merge", "s"]);
    let status = sandbox.sh(&format!("git -C '{}' status --short 2>/dev/null || true", lane.display()));
    assert_eq!(status, "");
}

/// A change that was staged and then reverted in the file leaves nothing to commit, so the lane lands.
#[test]
fn change_staged_and_reverted_does_not_block_landing() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.merge.uncommitted", "commit"]);
    sandbox.lane_with_commit("s", "echo s >s");
    sandbox.sh_in(&sandbox.lane_path("s"), "echo x >>a.txt; git add a.txt; git show HEAD:a.txt >a.txt");
    let _ = sandbox.proq(&["merge", "s"]).ok();
    assert_eq!(sandbox.git(&["show", "main:s"]), "s");
}
