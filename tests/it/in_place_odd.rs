//! Owns the tests of what is rare about a run in the main checkout: an index that is gone, hooks of the repository's that hang or
//! stage, files that come and go, refs that cannot be made.

use super::in_place::{assert_untouched, at_work, begin, in_place, operations, status, subjects};
use super::support::Sandbox;

/// A hook of the repository's own.
fn pre_commit(sandbox: &Sandbox, script: &str) {
    sandbox.sh(&format!("printf '#!/bin/sh\\n%s\\n' {} > .git/hooks/pre-commit", quoted(script)));
    sandbox.sh("chmod +x .git/hooks/pre-commit");
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[test]
fn without_an_index_nothing_is_taken_out_of_git() {
    let sandbox = Sandbox::new();
    sandbox.sh("echo b > b; git add b; git commit -qm b");
    let head = sandbox.git(&["rev-parse", "HEAD"]);
    let said = in_place(&sandbox, "rm .git/index; echo new > new").ok();
    assert!(
        said.contains("git's index is gone there, so nothing is committed for it; make it anew: git reset"),
        "{said}"
    );
    assert_eq!(sandbox.git(&["rev-parse", "HEAD"]), head);
    sandbox.sh("git reset -q");
    assert_eq!(status(&sandbox), "?? new");
}

#[test]
fn what_was_taken_out_of_the_index_and_lies_there_stays_in_git() {
    let sandbox = Sandbox::new();
    sandbox.sh("echo b > b; git add b; git commit -qm b");
    assert_eq!(in_place(&sandbox, "git rm -r -q --cached .; echo new > new").ok(), "x: done\n");
    assert_eq!(sandbox.git(&["show", "--format=", "--name-status", "HEAD"]), "A\tnew");
    assert_eq!((status(&sandbox), sandbox.read("b")), (String::new(), "b\n".into()));
}

#[test]
fn a_hook_that_hangs_ends_when_the_run_is_stopped() {
    let sandbox = at_work();
    sandbox.pipe("up");
    pre_commit(&sandbox, "echo > \"$ROOT/up\"; exec sleep 600");
    begin(&sandbox, "echo more >> b");
    let _ = sandbox.hear("up");
    let _ = sandbox.proq(&["stop", "x"]);
    let said = sandbox.proq(&["show", "x"]).ok();
    assert!(said.contains("what it changed is not committed: b"), "{said}");
    assert!(said.contains("it was ended: it took too long, or this was to be stopped"), "{said}");
    assert_eq!((sandbox.read("b"), subjects(&sandbox).len()), ("b\nmore\n".into(), 1));
    assert_eq!(sandbox.git(&["diff", "--cached", "--name-only"]), "");
    assert_untouched(&sandbox);
    sandbox.sh("rm .git/hooks/pre-commit; git checkout -q -- b");
    assert_eq!(
        sandbox.proq(&["spawn", "--in-place", "--wait", "-n", "y", "--", "sh", "-c", "echo y > y"]).ok(),
        "y: done\n"
    );
}

#[test]
fn what_somebody_staged_while_a_hook_ran_stays_staged() {
    let sandbox = at_work();
    let script = "unset GIT_INDEX_FILE; echo theirs > c; git add c; echo later > c; exit 1";
    pre_commit(&sandbox, script);
    let said = in_place(&sandbox, "echo more >> b; echo more >> c").ok();
    assert!(said.contains("staged by somebody else meanwhile, and left so: c"), "{said}");
    assert_eq!(sandbox.git(&["show", ":c"]), "theirs");
    assert_eq!(sandbox.git(&["diff", "--cached", "--name-only"]), "c");
    assert_eq!((sandbox.read("b"), sandbox.read("c")), ("b\nmore\n".into(), "later\n".into()));
}

#[test]
fn a_message_that_somebody_is_writing_stays() {
    let sandbox = at_work();
    sandbox.sh("echo 'a long thought' > .git/COMMIT_EDITMSG");
    assert_eq!(in_place(&sandbox, "echo more >> b").ok(), "x: done\n");
    assert_eq!(sandbox.read(".git/COMMIT_EDITMSG"), "a long thought\n");
    assert_eq!(subjects(&sandbox).len(), 2);
}

#[test]
fn who_switches_branches_at_that_moment_is_told_where_it_is_committed() {
    let sandbox = at_work();
    let main = sandbox.git(&["rev-parse", "main"]);
    pre_commit(&sandbox, "git switch -q -c feature");
    let said = in_place(&sandbox, "echo more >> b").ok();
    assert!(
        said.contains("somebody switched to feature at that moment, and what it changed is committed there"),
        "{said}"
    );
    assert_eq!(sandbox.git(&["rev-parse", "main"]), main);
    assert_eq!(sandbox.git(&["show", "--format=", "--name-only", "feature"]), "b");
    assert_eq!(operations(&sandbox), 0);
    assert_untouched(&sandbox);
}

#[test]
fn a_landing_on_its_branch_is_refused_while_its_agent_is_elsewhere() {
    let sandbox = at_work();
    sandbox.lane_of("y", "echo y > y");
    sandbox.pipe("up");
    sandbox.pipe("go");
    begin(
        &sandbox,
        "git checkout -q --detach; echo > \"$ROOT/up\"; read line < \"$ROOT/go\"; git checkout -q main; echo more >> b",
    );
    let _ = sandbox.hear("up");
    let said = sandbox.proq(&["merge", "y"]);
    assert_eq!(said.code, 1);
    assert!(said.shown().contains("the agent of lane 'x' works in the main checkout"), "{}", said.shown());
    sandbox.tell("go");
    assert_eq!(sandbox.proq(&["wait", "x"]).ok(), "x: done\n");
    let _ = sandbox.proq(&["merge", "y"]).ok();
    assert_eq!((sandbox.read("y"), sandbox.read("b")), ("y\n".into(), "b\nmore\n".into()));
}

#[test]
fn a_folder_that_became_a_link_and_ignored_files_that_went_are_seen() {
    let sandbox = at_work();
    sandbox.sh("mkdir d e; echo d > d/d; echo e > e/e; git add d e; git commit -qm folders; mkdir -p cache/x; echo /cache >> .git/info/exclude; echo 1 > cache/x/1");
    let said = in_place(&sandbox, "rm -r d; ln -s e d; git clean -qfdX").ok();
    assert!(said.contains("changed while it ran, and are not committed for it: .env, cache"), "{said}");
    assert_eq!(sandbox.git(&["show", "--format=", "--name-status", "--no-renames", "HEAD"]), "A\td\nD\td/d");
}

#[test]
fn files_that_come_and_go_keep_nothing_from_being_committed() {
    let sandbox = at_work();
    let mut command = sandbox.proq_command(
        &sandbox.repo,
        &["spawn", "--in-place", "-n", "x", "--", "sh", "-ec", "echo more >> b; echo swap > .b.swp"],
    );
    command.env("PROQ_TEST_STAND_AT", "in-place.looked");
    let _ = sandbox.output(command).ok();
    let standing = sandbox.standing(sandbox.holder("x", "run"));
    sandbox.sh("rm .b.swp");
    drop(standing);
    assert_eq!(sandbox.proq(&["wait", "x"]).ok(), "x: done\n");
    assert_eq!(sandbox.git(&["show", "--format=", "--name-status", "HEAD"]), "M\tb");
}

#[test]
fn what_an_amend_leaves_behind_is_kept_also_where_the_hook_can_make_no_ref() {
    let sandbox = at_work();
    let script = "echo more >> b; git commit -qm one b; git rev-parse HEAD > \"$ROOT/left\"; \
                  mv .git/refs/proq/saved .git/aside; echo > .git/refs/proq/saved; \
                  git commit -q --amend -m two; rm .git/refs/proq/saved; mv .git/aside .git/refs/proq/saved";
    assert_eq!(in_place(&sandbox, script).ok(), "x: done\n");
    let left = std::fs::read_to_string(sandbox.root().join("left")).unwrap();
    let kept = sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/saved"]);
    assert!(kept.lines().any(|id| id == left.trim()), "{left} is not in {kept}");
    assert_eq!(subjects(&sandbox), ["two", "files"]);
    assert!(!sandbox.repo.join(".git/proq/lanes/x/left-behind").exists());
}

#[test]
fn several_operations_about_one_lane_are_taken_back_at_once() {
    let sandbox = Sandbox::new();
    for file in ["one", "two"] {
        assert_eq!(in_place(&sandbox, &format!("echo {file} > {file}")).ok(), "x: done\n");
        let _ = sandbox.proq(&["discard", "x"]).ok();
    }
    let out = sandbox.proq(&["op", "restore", "0"]);
    assert_ne!(out.code, 5, "{}", out.shown());
}

#[test]
fn nothing_is_committed_through_a_branch_that_became_a_symbolic_ref() {
    let sandbox = Sandbox::new();
    sandbox.git(&["branch", "other"]);
    let other = sandbox.git(&["rev-parse", "other"]);
    let run = in_place(&sandbox, "echo 'ref: refs/heads/other' > .git/refs/heads/main; echo new > new");
    assert!(run.fails(4).contains("the main checkout is on other now, and nothing was committed for it"));
    assert_eq!(sandbox.git(&["rev-parse", "other"]), other);
    assert_eq!(status(&sandbox), "?? new");
}
