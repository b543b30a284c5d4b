//! Refs that an agent's git may not write, and reports of what an agent did outside its lane.

use proq_test_kit::Sandbox;

/// Runs a script as the agent of lane `name`, which continues whatever is refused, and returns its log.
#[track_caller]
fn run_agent(sandbox: &Sandbox, name: &str, script: &str) -> String {
    let _ =
        sandbox.proq(&["spawn", "--wait", "-n", name, "--", "sh", "-c", &format!("{script}\nexit 0")]).ok();
    sandbox.normalize(sandbox.proq(&["logs", name]).ok().as_bytes())
}

/// Promise: agent-git/protected-refs
#[test]
fn refuses_writes_to_other_branches() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("other", "echo o > o.txt");
    let refs = || sandbox.git(&["for-each-ref", "refs/heads/main", "refs/heads/proq/other", "refs/proq"]);
    let before = refs();
    let log = run_agent(
        &sandbox,
        "x",
        "git commit -q --allow-empty -m mine
        git update-ref refs/heads/main HEAD; git branch -q -D proq/other 2>/dev/null
        git update-ref -d refs/heads/proq/other; git update-ref refs/heads/proq/new HEAD; git update-ref refs/proq/a HEAD
        git -C \"$ROOT/repo\" commit -q --allow-empty -m astray",
    );
    insta::assert_snapshot!(log, @r"
    git-proq: refused: branch main is what lanes land on; the agent of lane 'x' may not write it
    git-proq: commit to proq/x in the lane instead; what is on it is landed from there
    fatal: ref updates aborted by hook
    git-proq: refused: branch proq/other is that of lane 'other'; the agent of lane 'x' may not write it
    git-proq: commit to proq/x in the lane instead; what is on it is landed from there
    fatal: ref updates aborted by hook
    git-proq: refused: branch proq/new is git-proq's own; the agent of lane 'x' may not write it
    git-proq: commit to proq/x in the lane instead; what is on it is landed from there
    fatal: ref updates aborted by hook
    git-proq: refused: refs/proq/a is git-proq's own; the agent of lane 'x' may not write it
    git-proq: commit to proq/x in the lane instead; what is on it is landed from there
    fatal: ref updates aborted by hook
    git-proq: refused: branch main is what lanes land on; the agent of lane 'x' may not write it
    git-proq: commit to proq/x in the lane instead; what is on it is landed from there
    fatal: ref updates aborted by hook
    ");
    assert_eq!(refs(), before);
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s", "proq/x"]), "mine");
    assert_eq!(sandbox.events("lane.escape").len(), 0);
}

/// Promise: agent-git/git-maintenance
#[test]
fn allows_own_branch_new_branches_tags_and_remotes() {
    let sandbox = Sandbox::new();
    sandbox.git(&["clone", "-q", "--bare", ".", "../far.git"]);
    sandbox.git(&["branch", "elsewhere"]);
    let script = "git commit -q --allow-empty -m a; git commit -q --amend --allow-empty -m b; git tag t; git branch feature
        git remote add far \"$ROOT/far.git\"; git fetch -q far; git push -q far HEAD:there; git reset -q --hard HEAD~1
        git commit -q --allow-empty -m c; git switch -q -c topic; git commit -q --allow-empty -m d; git switch -q -
        git merge -q --no-ff -m e topic; git branch -D topic; git update-ref refs/heads/elsewhere HEAD; git rebase -q -f --root";
    sandbox.run_lane("x", script);
    let refs =
        sandbox.git(&["for-each-ref", "--format=%(refname)", "refs/heads", "refs/tags", "refs/remotes"]);
    insta::assert_snapshot!(refs, @r"
    refs/heads/elsewhere
    refs/heads/feature
    refs/heads/main
    refs/heads/proq/x
    refs/remotes/far/main
    refs/remotes/far/there
    refs/tags/t
    ");
}

/// Promise: agent-git/protected-refs
#[test]
fn refuses_branch_of_main_checkout() {
    let sandbox = Sandbox::new();
    sandbox.git(&["switch", "-q", "-c", "topic"]);
    let log = run_agent(&sandbox, "x", "git -C ../.. commit -q --allow-empty -m y");
    assert!(log.contains("branch topic is what lanes land on"), "{log}");
    // No lane lands on the next branch.
    sandbox.git(&["switch", "-q", "-c", "unrelated"]);
    let script = "git commit -q --allow-empty -m z; git update-ref refs/heads/unrelated HEAD
        git -C ../.. commit -q --allow-empty -m y; exit 0";
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "y", "--base", "main", "--", "sh", "-c", script]).ok();
    let log = sandbox.proq(&["logs", "y"]).ok();
    let refusal = "git-proq: refused: branch unrelated is checked out in the main checkout; the agent of lane 'y' may not";
    assert_eq!(log.matches(refusal).count(), 2, "{log}");
    assert_eq!(sandbox.git(&["log", "--format=%s", "unrelated"]), "first");
}

/// Promise: agent-git/protected-refs
#[test]
fn refuses_other_refs_when_settings_are_unreadable() {
    let sandbox = Sandbox::new();
    let script = "git commit -q --allow-empty -m mine; echo '[broken' > \"$ROOT/repo/proq.toml\"
        git update-ref refs/heads/main HEAD && echo written; rm \"$ROOT/repo/proq.toml\"";
    let log = run_agent(&sandbox, "x", script);
    assert!(log.contains("git-proq: refused: it cannot be known whose this is: "), "{log}");
    assert!(!log.contains("written"), "{log}");
    assert_eq!(sandbox.git(&["log", "--format=%s", "main"]), "first");
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s", "proq/x"]), "mine");
}

/// Promise: agent-git/stash
#[test]
fn refuses_stash_and_saves_a_copy() {
    let sandbox = Sandbox::new();
    sandbox.sh("echo mine > a.txt; git stash -q");
    let before = sandbox.git(&["stash", "list"]);
    let log = run_agent(
        &sandbox,
        "x",
        "git config a.b c; echo edited > a.txt; echo new > new.txt; git stash -u && echo stashed; git status -s; git stash clear
        git checkout -q a.txt; rm new.txt; git commit -q --allow-empty -m end",
    );
    insta::assert_snapshot!(log, @r"
    git-proq: refused: the stash is one for all worktrees; the agent of lane 'x' may not write it
    git-proq: your changes are where they were; commit them instead (a copy is kept: git stash apply refs/proq/saved/x-stash-[ID])
    fatal: ref updates aborted by hook
     M a.txt
    ?? new.txt
    git-proq: refused: the stash is one for all worktrees; the agent of lane 'x' may not write it
    git-proq: what was its last entry is kept: git stash apply refs/stash
    fatal: ref updates aborted by hook
    ");
    assert_eq!(sandbox.git(&["stash", "list"]), before);
    let saved = sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/saved"]);
    assert_eq!(sandbox.git(&["show", &format!("{saved}:a.txt")]), "edited");
    assert_eq!(sandbox.git(&["show", &format!("{saved}^3:new.txt")]), "new");
}

/// Promise: agent-git/stash
#[test]
fn saves_stash_entries_dropped_by_agent() {
    let sandbox = Sandbox::new();
    sandbox.sh("for n in 1 2 3; do echo mine $n > a.txt; git stash -q; done");
    let ids = sandbox.git(&["stash", "list", "--format=%H"]);
    let ids: Vec<&str> = ids.lines().collect();
    // With and without git's own output.
    let script = "git stash drop 'stash@{1}'; git stash drop -q 'stash@{1}'";
    let _ = run_agent(&sandbox, "x", script);
    assert_eq!(sandbox.git(&["stash", "list", "--format=%H"]), ids[0]);
    let saved = sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/saved"]);
    assert!(saved.lines().count() == 2 && saved.contains(ids[1]) && saved.contains(ids[2]), "{saved}");
    let all = sandbox.events("lane.escape");
    let messages: Vec<&str> = all.iter().map(|e| e["message"].as_str().unwrap()).collect();
    assert_eq!(messages.len(), 2);
    assert!(messages[0].starts_with("while the agent of lane 'x' ran, the agent or someone else dropped an entry of the stash; it is saved: git stash apply refs/proq/saved/x-stash-"));
    // The dropped entries are saved already, so a later run reports nothing more.
    let _ = run_agent(&sandbox, "y", "git commit -q --allow-empty -m y");
    assert_eq!(sandbox.events("lane.escape").len(), 2);
}

/// Promise: agent-git/stash
#[test]
fn allows_autostash() {
    let sandbox = Sandbox::new();
    let script = "echo one > a.txt; git commit -qam one; echo two > a.txt; git commit -qam two
        echo fine > b.txt; git add b.txt; git rebase -q --autostash -f HEAD~1; test -e b.txt; git reset -q; rm b.txt
        echo three > a.txt; git rebase --autostash --onto HEAD~2 HEAD~1 || true; git rebase --abort || true; git stash list";
    sandbox.run_lane("x", script);
    let _ = run_agent(
        &sandbox,
        "y",
        "echo one > a.txt; git commit -qam one; echo mine > a.txt; git rebase --autostash --onto HEAD~1 HEAD; cat a.txt",
    );
    assert_eq!(sandbox.git(&["stash", "list", "--format=%gs"]), "autostash");
    assert!(sandbox.git(&["show", "stash@{0}:a.txt"]).contains("mine"));
    assert_eq!(sandbox.git(&["for-each-ref", "refs/proq/saved"]), "");
}

/// Promise: agent-git/git-maintenance
#[test]
fn allows_pack_refs_and_gc_but_not_deletion() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("other", "echo o > o.txt");
    sandbox.sh("echo mine > a.txt; git stash -q");
    let all = || sandbox.git(&["for-each-ref"]);
    let before = all();
    let script = "git pack-refs --all; git gc -q --prune=now; git pack-refs --all; git fetch -q \"$ROOT/repo\"
        ! git update-ref -d refs/heads/proq/other; ! git branch -D proq/other; ! git update-ref -d refs/stash";
    sandbox.run_lane("x", script);
    assert_eq!(
        all().lines().filter(|l| !l.ends_with("proq/x")).collect::<Vec<_>>(),
        before.lines().collect::<Vec<_>>()
    );
    assert!(!sandbox.repo.join(".git/refs/heads/proq/other").exists());
}

#[test]
fn git_proq_itself_may_write_other_branches() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("other", "echo o > o.txt");
    // Without `PROQ_ATTEMPT`, as in a hook of the user: the agent itself may not land other lanes.
    sandbox.run_lane("x", "env -u PROQ_ATTEMPT git proq merge other; git proq spawn --empty -n more; cd \"$ROOT/repo\"; git -c a.b=c proq discard more");
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s", "main"]), "Merge lane other");
}

#[test]
fn commit_emits_event_but_rebase_steps_do_not() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("x", "git commit -q --allow-empty -m 'one  thing'; git commit -q --allow-empty -m two; git rebase -q -f HEAD~2");
    let all = sandbox.events("lane.committed");
    let messages: Vec<&str> = all.iter().map(|e| e["message"].as_str().unwrap()).collect();
    assert_eq!(messages, ["lane 'x': ca3f0cb4 one  thing", "lane 'x': 7b550d8a two"]);
    assert_eq!((&all[0]["lane"], &all[0]["state"]), (&"x".into(), &"running".into()));
}

#[test]
fn preview_and_overlaps_follow_commits_of_running_agent() {
    let sandbox = Sandbox::new();
    sandbox.pipe("go");
    sandbox.pipe("end");
    sandbox.lane_with_commit("other", "echo other > a.txt");
    sandbox.start_lane("x", "cat \"$ROOT/go\"; echo x > a.txt; git commit -qam change; cat \"$ROOT/end\"");
    let _ = sandbox.proq(&["preview", "x"]).ok();
    sandbox.write_pipe("go");
    // The overlap is emitted last, after the preview has moved.
    sandbox.wait_for_events("lane.overlap", "x", 1);
    assert_eq!(sandbox.read("a.txt"), "x\n");
    assert_eq!(sandbox.events("run.ended").len(), 0);
    sandbox.write_pipe("end");
}

/// Promise: agent-git/escape-reports
#[test]
fn reports_git_in_another_lane_once() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("other", "echo o > o.txt");
    let _ = run_agent(
        &sandbox,
        "x",
        "cd \"$ROOT/repo\"; git worktree add -q ../tree -b tree; git worktree add -q --detach ../tree2; git -C ../tree commit -q --allow-empty -m t
        git fetch -q .; git status -s; cd .proq-worktrees/other; git switch -q --detach; git commit -q --allow-empty -m a; git commit -q --allow-empty -m b",
    );
    let all = sandbox.events("lane.escape");
    let messages: Vec<&str> = all.iter().map(|e| e["message"].as_str().unwrap()).collect();
    assert_eq!(messages, ["the agent of lane 'x' ran git in lane 'other', which wrote HEAD there"]);
    assert_eq!((&all[0]["lane"], &all[0]["other"]), (&"x".into(), &"other".into()));
}

#[test]
fn detached_worktree_with_newline_is_not_reported() {
    let sandbox = Sandbox::new();
    let tree = sandbox.root().join("two\nlines");
    sandbox.git(&["worktree", "add", "-q", "--detach", tree.to_str().unwrap()]);
    sandbox.git_in(&tree, &["commit", "-q", "--allow-empty", "-m", "lone"]);
    sandbox.run_lane("x", "true");
    assert_eq!(sandbox.events("lane.escape"), [serde_json::Value::Null; 0]);
}

/// Promise: agent-git/escape-reports
#[test]
fn reports_git_in_main_checkout() {
    let sandbox = Sandbox::new();
    let _ = run_agent(
        &sandbox,
        "x",
        "cd \"$ROOT/repo\"; git switch -q --detach; git commit -q --allow-empty -m astray",
    );
    let all = sandbox.events("lane.escape");
    let messages: Vec<&str> = all.iter().map(|e| e["message"].as_str().unwrap()).collect();
    assert_eq!(messages, ["the agent of lane 'x' ran git in the main checkout, which wrote HEAD there"]);
    assert_eq!((&all[0]["lane"], &all[0]["other"]), (&"x".into(), &serde_json::Value::Null));
}

/// Promise: agent-git/escape-reports
#[test]
fn changes_in_lane_with_running_agent_are_not_reported() {
    let sandbox = Sandbox::new();
    sandbox.pipe("go");
    sandbox.start_lane("busy", "read line < \"$ROOT/go\"");
    let _ = sandbox.started_row("busy");
    sandbox.run_lane(
        "x",
        "file=\"$ROOT/repo/.proq-worktrees/busy/a.txt\"; echo 2 > \"$file\"; echo \"wrote $file\"",
    );
    assert_eq!(sandbox.events("lane.escape"), [serde_json::Value::Null; 0]);
    sandbox.write_pipe("go");
    let _ = sandbox.proq(&["wait", "busy"]).ok();
    sandbox.run_lane(
        "y",
        "file=\"$ROOT/repo/.proq-worktrees/busy/a.txt\"; echo 3 > \"$file\"; echo \"wrote $file\"",
    );
    assert_eq!(sandbox.events("lane.escape").len(), 1);
}

/// Promise: agent-git/escape-reports
#[test]
fn distinguishes_changes_named_in_agent_output() {
    let sandbox = Sandbox::new();
    sandbox.sh("for f in named users old gone; do echo 1 > $f; done; echo ignored > .gitignore");
    sandbox.commit_all("files");
    sandbox.sh("echo 2 > old");
    sandbox.lane_with_commit("other", "echo o > o.txt");
    let script = "cd \"$ROOT/repo\"; echo 2 > named; echo 2 > users; echo 2 > ignored; rm gone; echo 2 > .proq-worktrees/other/o.txt
        echo \"{\\\"path\\\":\\\"$PWD/named\\\",\\\"n\\\":1} $PWD/old $PWD/a.txt $PWD/ignored, $PWD/.proq-worktrees/x/b $PWD/gone.\"
        echo \"wrote $PWD/.proq-worktrees/other/o.txt\"";
    sandbox.run_lane("x", script);
    let all = sandbox.events("lane.escape");
    let messages: Vec<&str> = all.iter().map(|e| e["message"].as_str().unwrap()).collect();
    let unknown = "git-proq does not know who changed them";
    let begin = "while the agent of lane 'x' ran, files that its output names changed in";
    assert_eq!(
        messages,
        [
            format!("{begin} the main checkout: gone, named; {unknown}"),
            format!("{begin} lane 'other': o.txt; {unknown}"),
            "while the agent of lane 'x' ran, these changed in the main checkout: users; git-proq cannot tell who changed them: this agent, you".to_owned(),
        ]
    );
    let certainties: Vec<&str> = all.iter().map(|e| e["certainty"].as_str().unwrap()).collect();
    assert_eq!(certainties, ["likely", "likely", "possible"]);
    assert_eq!(all[0]["paths"], serde_json::json!(["gone", "named"]));
    assert_eq!((&all[1]["other"], &all[1]["paths"]), (&"other".into(), &serde_json::json!(["o.txt"])));
}

/// Promise: agent-git/protected-refs
#[test]
fn push_to_same_repository_follows_ref_policy() {
    let sandbox = Sandbox::new();
    sandbox.sh("git checkout -q -b mine; git commit -q --allow-empty -m mine; git checkout -q -b work main; git pack-refs --all");
    let refs = || sandbox.git(&["rev-parse", "main", "mine"]);
    let (before, mine) = (refs(), sandbox.git(&["rev-parse", "mine"]));
    sandbox.git(&["clone", "-q", "--bare", ".", "../far.git"]);
    let script = "git commit -q --allow-empty -m evil; git push -q . HEAD:main; git push -q \"file://$ROOT/repo\" HEAD:main
        git remote add me ../..; git push -q me HEAD:main; git symbolic-ref refs/heads/proq/x refs/heads/main
        git push -q \"$ROOT/far.git\" HEAD:main && echo pushed; git push -q . :mine && echo deleted; exit 0";
    let args = ["spawn", "--wait", "-n", "x", "--base", "main", "--", "sh", "-c", script];
    let _ = sandbox.proq(&args).ok();
    let log = sandbox.proq(&["logs", "x"]).ok();
    assert_eq!(log.matches("refused: branch main is what lanes land on").count(), 3, "{log}");
    assert!(log.contains("pushed\n") && log.contains("deleted\n"), "{log}");
    assert_eq!(sandbox.git(&["rev-parse", "main"]), before.lines().next().unwrap());
    assert_eq!(sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/saved"]), mine);
}
