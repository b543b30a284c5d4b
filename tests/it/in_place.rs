//! Owns the tests of `git proq spawn --in-place`: a run in the main checkout, what it commits there, and what it leaves alone.

use super::runs::with_claude;
use super::stop::kill_supervisor;
use super::support::{Output, Sandbox};

/// A repository with three files, in which the user has changed one, staged another and begun a third.
fn at_work() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("echo a > a; echo b > b; echo c > c");
    sandbox.commit_all("files");
    sandbox.sh("echo mine >> a; echo staged > staged; git add staged; echo loose > loose");
    sandbox
}

/// Runs a script in the main checkout as lane `x`, to its end.
fn in_place(sandbox: &Sandbox, script: &str) -> Output {
    sandbox.proq(&["spawn", "--in-place", "--wait", "-n", "x", "--", "sh", "-ec", script])
}

/// Starts a script in the main checkout as lane `x`.
fn begin(sandbox: &Sandbox, script: &str) {
    let _ = sandbox.proq(&["spawn", "--in-place", "-n", "x", "--", "sh", "-ec", script]).ok();
}

/// What is uncommitted, as git tells it.
fn status(sandbox: &Sandbox) -> String {
    sandbox.git(&["status", "--porcelain"])
}

/// The subjects of the commits on the branch that is checked out, without the first.
fn subjects(sandbox: &Sandbox) -> Vec<String> {
    let all = sandbox.git(&["log", "--format=%s"]);
    all.lines().map(str::to_owned).filter(|line| line != "first").collect()
}

/// The snapshot of what was uncommitted before the last run.
fn kept_before(sandbox: &Sandbox) -> String {
    let args =
        ["for-each-ref", "--sort=-refname", "--count=1", "--format=%(refname:lstrip=3)", "refs/proq/snap"];
    String::from_utf8(sandbox.raw(&sandbox.repo, &args)).unwrap().trim().to_owned()
}

fn operations(sandbox: &Sandbox) -> usize {
    sandbox.proq(&["op", "log", "--json"]).json()["operations"].as_array().unwrap().len()
}

#[test]
fn what_it_changed_is_committed_and_what_was_the_users_is_not() {
    let sandbox = at_work();
    let before = status(&sandbox);
    let shown = in_place(&sandbox, "echo more >> b; echo new > new; mkdir d; echo deep > d/e; rm c").shown();
    insta::assert_snapshot!(shown, @r"
    x: done
    --- code 0
    ");
    assert_eq!(status(&sandbox), before);
    assert_eq!(sandbox.git(&["show", "--format=", "--name-status", "HEAD"]), "M\tb\nD\tc\nA\td/e\nA\tnew");
    assert_eq!((sandbox.read("a"), sandbox.git(&["show", ":staged"])), ("a\nmine\n".into(), "staged".into()));
    assert_eq!(sandbox.row("x")["mode"], "in-place");
    sandbox.assert_healthy();

    let number = |args: &[&str]| sandbox.proq(args).ok();
    assert!(number(&["op", "log"]).contains("run 1 of lane x"));
    let _ = number(&["undo", "1"]);
    assert_eq!((status(&sandbox), subjects(&sandbox).len()), (before.clone(), 1));
    assert_eq!((sandbox.read("c"), sandbox.repo.join("d").exists()), ("c\n".into(), false));
    let _ = number(&["op", "redo"]);
    assert_eq!((status(&sandbox), subjects(&sandbox).len()), (before, 2));
    sandbox.assert_healthy();
}

#[test]
fn a_file_that_was_changed_by_both_stays_uncommitted_and_is_kept_as_it_was() {
    let sandbox = at_work();
    let out =
        in_place(&sandbox, "echo more >> a; echo more >> b; echo more >> loose; echo more >> staged").ok();
    assert!(
        out.contains(
            "files that had changes of yours, or were ignored, changed while it ran, and are not committed for you: a, loose, staged; as they were"
        ),
        "{out}"
    );
    assert_eq!(sandbox.git(&["show", "--format=", "--name-only", "HEAD"]), "b");
    assert_eq!(status(&sandbox), " M a\nAM staged\n?? loose");
    let id = kept_before(&sandbox);
    let kept =
        |file: &str| sandbox.proq(&["snap", "show", &id, "--json"]).ok().contains(&format!("\"{file}\""));
    assert!(["a", "staged", "loose"].iter().all(|file| kept(file)));
    let snap = format!("refs/proq/snap/{id}");
    assert_eq!(sandbox.git(&["show", &format!("{snap}:a")]), "a\nmine");
    assert_eq!(sandbox.git(&["show", &format!("{snap}^3:loose")]), "loose");
    sandbox.assert_healthy();
}

#[test]
fn commits_of_the_agents_own_are_undone_too_and_edits_stay() {
    let sandbox = at_work();
    let script =
        "echo more >> b; git add b; git commit -qm 'by hand' b; echo again >> b; git commit -qm again b";
    assert_eq!(in_place(&sandbox, script).ok(), "x: done\n");
    assert_eq!(subjects(&sandbox)[..2], ["again", "by hand"]);
    let _ = sandbox.proq(&["undo", "1"]).ok();
    assert_eq!((sandbox.read("b"), sandbox.read("a")), ("b\n".into(), "a\nmine\n".into()));
    // What was built on it meanwhile is nobody's to take back without being told.
    let _ = sandbox.proq(&["op", "redo"]).ok();
    sandbox.sh("git commit -qm mine --allow-empty");
    let refused = sandbox.proq(&["undo", "1"]).fails(1);
    assert!(refused.contains("main"), "{refused}");
}

#[test]
fn what_the_agent_committed_of_the_users_is_told_and_no_undo_takes_it_away() {
    let sandbox = at_work();
    let out = in_place(&sandbox, "echo more >> b; git commit -qam everything").ok();
    assert!(
        out.contains(
            "it committed changes of yours: a, staged; no undo would know whose is what: git reset "
        ),
        "{out}"
    );
    assert_eq!((sandbox.git(&["show", "HEAD:a"]), operations(&sandbox)), ("a\nmine".into(), 0));
    // The way that it says leaves every file as it is.
    let reset = out.split(": git reset ").nth(1).unwrap().trim_end().trim_end_matches(')').to_owned();
    sandbox.git(&["reset", "-q", &reset]);
    assert_eq!((sandbox.read("a"), sandbox.read("b")), ("a\nmine\n".into(), "b\nmore\n".into()));

    let _ = sandbox.proq(&["discard", "x"]).ok();
    sandbox.sh("git checkout -q b; echo mine >> c");
    let out = in_place(&sandbox, "git checkout -q c").ok();
    assert!(out.contains("are not committed for you: c"), "{out}");
    assert_eq!(sandbox.read("c"), "c\n");
    let id = kept_before(&sandbox);
    sandbox.sh("git stash -q -u");
    let _ = sandbox.proq(&["snap", "restore", &id]).ok();
    assert_eq!(sandbox.read("c"), "c\nmine\n");
}

#[test]
fn what_was_ignored_is_the_users_also_when_it_is_not_ignored_any_more() {
    let sandbox = Sandbox::new();
    sandbox.sh("printf '.env\nmodules/\n' > .gitignore; git add .; git commit -qm ignore; echo secret > .env; mkdir modules; echo m > modules/m");
    let out = in_place(&sandbox, "echo '*.log' > .gitignore; echo one > one").ok();
    assert!(out.contains("are not committed for you: .env, modules/m"), "{out}");
    assert_eq!(sandbox.git(&["show", "--format=", "--name-status", "HEAD"]), "M\t.gitignore\nA\tone");
    let _ = sandbox.proq(&["undo", "1"]).ok();
    assert_eq!((sandbox.read(".env"), sandbox.read("modules/m")), ("secret\n".into(), "m\n".into()));
    let _ = sandbox.proq(&["discard", "x"]).ok();
    let out = in_place(&sandbox, "git add -f .env; git commit -qm secret").ok();
    assert!(out.contains("it committed changes of yours: .env"), "{out}");
}

#[test]
fn commits_of_others_meanwhile_are_never_a_part_of_what_an_undo_takes_back() {
    let sandbox = at_work();
    sandbox.pipe("up");
    sandbox.pipe("go");
    begin(&sandbox, "echo more >> b; echo > \"$ROOT/up\"; read line < \"$ROOT/go\"");
    let _ = sandbox.hear("up");
    sandbox.sh("echo mine >> c; git commit -qm mine c");
    sandbox.tell("go");
    let out = sandbox.proq(&["wait", "x"]).ok();
    assert!(
        out.contains("others moved main too while it ran, so that no undo takes that back as one"),
        "{out}"
    );
    assert_eq!((operations(&sandbox), sandbox.git(&["show", "HEAD:c"])), (0, "c\nmine".into()));
    assert!(sandbox.git(&["show", "HEAD:b"]).contains("more"));
}

#[test]
fn what_its_git_does_to_the_branch_loses_nothing() {
    let sandbox = Sandbox::new();
    sandbox.sh("echo two > two; git add two; git commit -qm two");
    let tip = sandbox.git(&["rev-parse", "HEAD"]);
    let script = "git update-ref -d refs/heads/main && exit 9; git reset -q --hard HEAD~1; git reflog expire --expire=now --all; \
        rm -f .git/ORIG_HEAD; git gc -q --prune=now";
    let out = in_place(&sandbox, script).ok();
    assert!(out.contains("what main was before is kept: git log refs/proq/saved/x-"), "{out}");
    assert_eq!(sandbox.git(&["cat-file", "-t", &tip]), "commit");
    let _ = sandbox.proq(&["undo", "1"]).ok();
    assert_eq!((sandbox.git(&["rev-parse", "HEAD"]), sandbox.read("two")), (tip, "two\n".into()));
}

#[test]
fn hooks_see_a_commit_like_any_other_and_what_they_change_is_committed() {
    let sandbox = at_work();
    let hook = "#!/bin/sh\nenv | grep PATHSPECS && exit 1\ngit diff --cached --name-only -- '*.py' | grep -q . && exit 1\n\
        sed -i s/more/MORE/ b; git add b\n";
    sandbox.write(".git/hooks/pre-commit", hook);
    sandbox.sh("chmod +x .git/hooks/pre-commit");
    let before = status(&sandbox);
    assert_eq!(in_place(&sandbox, "echo more >> b").ok(), "x: done\n");
    assert_eq!((sandbox.git(&["show", "HEAD:b"]), status(&sandbox)), ("b\nMORE".into(), before));
    let _ = sandbox.proq(&["discard", "x"]).ok();
    let out = in_place(&sandbox, "echo x > x.py").ok();
    assert!(out.contains("git refused"), "{out}");
}

#[test]
fn files_and_folders_may_take_each_others_place() {
    let sandbox = Sandbox::new();
    sandbox.sh("echo a > a; mkdir d; echo d > d/d; mkdir mine; echo m > mine/m; git add .; git commit -qm all; echo more >> mine/m");
    let out =
        in_place(&sandbox, "rm a; mkdir a; echo i > a/i; rm -r d; echo d > d; rm -r mine; echo m > mine")
            .ok();
    assert!(out.contains("are not committed for you: mine, mine/m"), "{out}");
    assert_eq!(
        sandbox.git(&["show", "--format=", "--name-status", "--no-renames", "HEAD"]),
        "D\ta\nA\ta/i\nA\td\nD\td/d"
    );
    assert_eq!(status(&sandbox), " D mine/m\n?? mine");
    let _ = sandbox.proq(&["undo", "1"]).ok();
    assert_eq!((sandbox.read("a"), sandbox.read("d/d")), ("a\n".into(), "d\n".into()));
}

#[test]
fn what_it_takes_out_of_git_stays_out_and_repositories_are_told_of() {
    let sandbox = Sandbox::new();
    sandbox.sh("echo s > secret; git add secret; git commit -qm secret");
    let script = "git rm -q --cached secret; echo secret > .gitignore; git init -q nest; git -C nest commit -q --allow-empty -m n";
    let out = in_place(&sandbox, script).ok();
    assert!(out.contains("not committed, since they are repositories of their own: nest"), "{out}");
    assert_eq!(sandbox.git(&["show", "--format=", "--name-status", "HEAD"]), "A\t.gitignore\nD\tsecret");
    assert_eq!(sandbox.read("secret"), "s\n");
    let _ = sandbox.proq(&["discard", "x"]).ok();
    let out =
        in_place(&sandbox, "git init -q two; git -C two commit -q --allow-empty -m n; git add two 2>&1").ok();
    assert!(out.contains("two is a repository of its own"), "{out}");
}

#[test]
fn what_git_has_open_is_not_ended_by_a_commit() {
    let sandbox = at_work();
    sandbox.pipe("up");
    sandbox.pipe("go");
    sandbox.sh("git commit -qm c2 --allow-empty; echo d > d; git add d; git commit -qm d d");
    begin(&sandbox, "echo more >> b; echo > \"$ROOT/up\"; read line < \"$ROOT/go\"");
    let _ = sandbox.hear("up");
    sandbox.sh("git stash -q -- staged; git revert -n HEAD");
    sandbox.tell("go");
    let out = sandbox.proq(&["wait", "x"]).ok();
    assert!(out.contains("a revert is under way there, so nothing is committed for it"), "{out}");
    assert!(sandbox.repo.join(".git/REVERT_HEAD").exists() && sandbox.repo.join("b").exists());
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s"]), "d");
}

#[test]
fn what_was_staged_and_is_not_any_more_is_told() {
    let sandbox = Sandbox::new();
    sandbox.sh("echo a > a; git add a; git commit -qm a; echo s >> a; git add a; echo w >> a");
    let out = in_place(&sandbox, "git add a").ok();
    assert!(
        out.contains("what you had staged is not staged as it was: a; as they were: git proq snap show"),
        "{out}"
    );
    assert!(out.starts_with("x: no-change"), "{out}");
}

#[test]
fn in_a_sparse_checkout_all_that_it_changed_is_committed() {
    let sandbox = Sandbox::new();
    sandbox.sh("mkdir in out; echo i > in/i; echo o > out/o; git add .; git commit -qm d; git sparse-checkout set in");
    assert_eq!(in_place(&sandbox, "mkdir -p out; echo n > out/n; echo y > in/y").ok(), "x: done\n");
    assert_eq!(sandbox.git(&["show", "--format=", "--name-status", "HEAD"]), "A\tin/y\nA\tout/n");
    assert_eq!(status(&sandbox), "");
}

#[test]
fn there_is_one_at_a_time_and_none_beside_a_preview() {
    let sandbox = Sandbox::new();
    sandbox.pipe("go");
    sandbox.lane_of("y", "echo y > y");
    let _ = sandbox.proq(&["preview", "y"]).ok();
    let spawn = ["spawn", "--in-place", "-n", "x", "--", "sh", "-c", "echo one > one"];
    insta::assert_snapshot!(sandbox.proq(&spawn).shown(), @r"
    --- stderr
    error: the main checkout shows lane 'y'; nothing was changed
    hint: go back first: git proq preview --back
    --- code 1
    ");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    begin(&sandbox, "echo one > one; read line < \"$ROOT/go\"");
    let other = ["spawn", "--in-place", "-n", "z", "--", "sh", "-c", "echo two > two"];
    insta::assert_snapshot!(sandbox.proq(&other).shown(), @r"
    --- stderr
    error: the agent of lane 'x' works in the main checkout; nothing was changed
    hint: wait for it: git proq wait x
    --- code 1
    ");
    insta::assert_snapshot!(sandbox.proq(&["preview", "y"]).shown(), @r"
    --- stderr
    error: the agent of lane 'x' works in the main checkout; nothing was changed
    hint: wait for it: git proq wait x
    --- code 1
    ");
    assert!(sandbox.proq(&["show", "z"]).fails(1).contains("there is no lane 'z'"));
    kill_supervisor(&sandbox, "x");
    // Its agent is there still.
    assert!(sandbox.proq(&other).fails(1).contains("works in the main checkout"));
    sandbox.tell("go");
    let _ = sandbox.proq(&["wait", "x"]);
    let _ = sandbox.proq(&other).ok();
    let _ = sandbox.proq(&["wait", "z"]).ok();
    let _ = sandbox.proq(&["preview", "y"]).ok();
}

#[test]
fn it_takes_a_branch_and_nothing_half_done() {
    let sandbox = Sandbox::new();
    let spawn = ["spawn", "--in-place", "-n", "x", "--", "sh", "-c", "echo one > one"];
    let refused = |what: &str| {
        let said = sandbox.proq(&spawn).fails(1);
        assert!(said.contains(what) && said.contains("nothing was changed"), "{said}");
        assert!(sandbox.row("x").is_null());
    };
    sandbox.git(&["checkout", "-q", "--detach"]);
    refused("the main checkout is on no branch");
    sandbox.git(&["checkout", "-q", "main"]);
    sandbox.git(&["branch", "other"]);
    sandbox.sh("echo a > a; git add a; git commit -qm a; git checkout -q other; echo b > a; git add a; git commit -qm b");
    sandbox.sh("git merge -q main || true");
    refused("a merge is under way in the main checkout");
    sandbox.sh("git merge --abort");
    sandbox.git(&["branch", "-q", "-m", "other", "proq/mine"]);
    refused("which is git-proq's own");
    for flag in [&["--auto-merge"][..], &["--check", "true"], &["--onto", "main"], &["--count", "2"]] {
        let args = [&["spawn", "--in-place"][..], flag, &["--", "true"]].concat();
        let said = sandbox.proq(&args).fails(2);
        assert!(said.contains("does not go with --in-place"), "{said}");
    }
    let _ = sandbox.proq(&["spawn", "--in-place", "--mode", "plan", "claude", "x"]).fails(2);
}

#[test]
fn one_that_fails_leaves_what_it_did_uncommitted_and_one_that_did_nothing_says_so() {
    let sandbox = at_work();
    let out = in_place(&sandbox, "echo more >> b; echo new > new; exit 3").fails(4);
    assert!(out.contains("exit code 3; it left uncommitted: b, new"), "{out}");
    assert_eq!(
        (subjects(&sandbox).len(), status(&sandbox)),
        (1, " M a\n M b\nA  staged\n?? loose\n?? new".into())
    );
    let _ = sandbox.proq(&["discard", "x"]).ok();
    assert_eq!(in_place(&sandbox, "true").ok(), "x: no-change\n");
    assert_eq!(subjects(&sandbox).len(), 1);
    // What a person has is the person's, whatever the settings say.
    let _ = sandbox.proq(&["discard", "x"]).ok();
    sandbox.git(&["config", "proq.agent.autocommit", "never"]);
    let out = in_place(&sandbox, "echo more >> c").ok();
    assert!(out.contains("it left uncommitted: c"), "{out}");
    assert_eq!(subjects(&sandbox).len(), 1);
}

#[test]
fn a_commit_that_the_repositorys_hook_refuses_leaves_all_as_it_was() {
    let sandbox = at_work();
    sandbox.sh("printf '#!/bin/sh\\necho no such style >&2; exit 1\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit");
    let out = in_place(&sandbox, "echo more >> b; echo new > new").ok();
    assert!(
        out.contains("what it changed is not committed, git refused") && out.contains("no such style"),
        "{out}"
    );
    assert_eq!(status(&sandbox), " M a\n M b\nA  staged\n?? loose\n?? new");
}

#[test]
fn what_must_not_be_committed_is_not() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.agent.autocommitLimit", "1"]);
    let out = in_place(&sandbox, "echo one > one; head -c 2000000 /dev/zero > big").ok();
    assert!(out.contains("what it changed is not committed: big has 1 MiB"), "{out}");
    assert_eq!(status(&sandbox), "?? big\n?? one");
}

#[test]
fn one_that_leaves_the_branch_is_told_and_not_committed_for() {
    let sandbox = Sandbox::new();
    let out = in_place(
        &sandbox,
        "git commit -q --allow-empty -m here; git checkout -q -b elsewhere; echo one > one",
    )
    .fails(4);
    assert!(out.contains("the main checkout is on elsewhere now, and nothing was committed for it"), "{out}");
    assert_eq!(status(&sandbox), "?? one");
    // What it committed before it left can be taken back all the same.
    assert_eq!(operations(&sandbox), 1);
    let said = sandbox.proq(&["run", "x", "claude", "go on"]).fails(1);
    assert!(said.contains("claude") || said.contains("lane 'x' works on 'main'"), "{said}");
}

#[test]
fn it_goes_on_where_it_was_and_begins_anew() {
    let sandbox = with_claude("begin; echo $n >> \"$cd_back/file\"; well");
    let spawn = ["spawn", "--in-place", "--wait", "-n", "x", "claude", "write into file"];
    assert_eq!(sandbox.proq(&spawn).ok(), "x: done\n");
    assert_eq!(sandbox.git(&["show", "HEAD:file"]), "1");
    let prompt = std::fs::read_to_string(sandbox.root().join("notes/prompt.1")).unwrap();
    assert!(prompt.is_empty() || prompt.contains("write into file"), "{prompt}");
    let all = sandbox.proq(&["show", "x", "--prompt"]).ok();
    assert!(all.contains("You work in the main checkout") && !all.contains("is to land"), "{all}");
    assert_eq!(sandbox.proq(&["send", "--wait", "x", "more"]).ok(), "x: done\n");
    assert_eq!(sandbox.git(&["show", "HEAD:file"]), "1\n2");
    sandbox.git(&["checkout", "-q", "-b", "other"]);
    let said = sandbox.proq(&["send", "x", "still more"]).fails(1);
    assert!(said.contains("the main checkout is on 'other', and lane 'x' works on 'main'"), "{said}");
    let _ = sandbox.proq(&["redispatch", "x"]).ok();
    assert_eq!(sandbox.proq(&["wait", "x"]).ok(), "x: done\n");
    assert_eq!(sandbox.git(&["show", "other:file"]), "1\n2\n3");
    assert_eq!(sandbox.git(&["show", "main:file"]), "1\n2");
}

#[test]
fn a_try_that_changed_something_is_not_tried_again() {
    let sandbox = with_claude(
        "begin; if [ $n = 1 ]; then busy; exit 1; fi; echo $n >> \"$cd_back/file\"; busy; exit 1",
    );
    let out = sandbox.proq(&["spawn", "--in-place", "--wait", "-n", "x", "claude", "write"]).fails(4);
    assert!(out.contains("the main checkout is not as it was, and is not put back"), "{out}");
    assert_eq!(sandbox.read("file"), "2\n");
    assert!(!sandbox.root().join("notes/3").exists());
}

#[test]
fn its_git_may_write_its_branch_and_nobody_elses() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("y", "echo y > y");
    let tip = sandbox.git(&["rev-parse", "proq/y"]);
    let script = "git commit -q --allow-empty -m own; git proq task read | grep 'main, in the main checkout'; git branch -f proq/y HEAD && exit 9; echo one > one";
    assert_eq!(in_place(&sandbox, script).ok(), "x: done\n");
    assert_eq!(sandbox.git(&["rev-parse", "proq/y"]), tip);
    assert_eq!(sandbox.events("lane.escape").len(), 0);
}

#[test]
fn a_supervisor_that_was_killed_leaves_all_that_there_was() {
    let sandbox = at_work();
    sandbox.pipe("go");
    begin(&sandbox, "echo more >> b; echo more >> a; read line < \"$ROOT/go\"");
    kill_supervisor(&sandbox, "x");
    assert_eq!(sandbox.row("x")["state"], "orphaned");
    sandbox.tell("go");
    let _ = sandbox.proq(&["wait", "x"]);
    assert_eq!(sandbox.row("x")["state"], "failed");
    assert_eq!(sandbox.read("a"), "a\nmine\nmore\n");
    let snap = format!("refs/proq/snap/{}", kept_before(&sandbox));
    assert_eq!(sandbox.git(&["show", &format!("{snap}:a")]), "a\nmine");
    let _ = sandbox.proq(&["cleanup", "x"]).ok();
    sandbox.assert_healthy();
}
