//! Owns the tests of what an agent's git may not write, and of what is noticed that it did outside of its lane.

use super::support::Sandbox;

/// Runs a script as an agent that goes on whatever is refused, and returns what it wrote.
#[track_caller]
fn agent(sandbox: &Sandbox, name: &str, script: &str) -> String {
    let _ =
        sandbox.proq(&["spawn", "--wait", "-n", name, "--", "sh", "-c", &format!("{script}\nexit 0")]).ok();
    sandbox.plain(sandbox.proq(&["logs", name]).ok().as_bytes())
}

#[test]
fn branches_of_others_are_refused_in_clear_words() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("other", "echo o > o.txt");
    let refs = || sandbox.git(&["for-each-ref", "refs/heads/main", "refs/heads/proq/other", "refs/proq"]);
    let before = refs();
    let said = agent(
        &sandbox,
        "x",
        "git commit -q --allow-empty -m mine
        git update-ref refs/heads/main HEAD; git branch -q -D proq/other 2>/dev/null
        git update-ref -d refs/heads/proq/other; git update-ref refs/heads/proq/new HEAD; git update-ref refs/proq/a HEAD
        git -C \"$ROOT/repo\" commit -q --allow-empty -m astray",
    );
    insta::assert_snapshot!(said, @r"
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

#[test]
fn its_own_branch_new_branches_tags_and_remotes_are_an_agents_own() {
    let sandbox = Sandbox::new();
    sandbox.git(&["clone", "-q", "--bare", ".", "../far.git"]);
    sandbox.git(&["branch", "elsewhere"]);
    let script = "git commit -q --allow-empty -m a; git commit -q --amend --allow-empty -m b; git tag t; git branch feature
        git remote add far \"$ROOT/far.git\"; git fetch -q far; git push -q far HEAD:there; git reset -q --hard HEAD~1
        git commit -q --allow-empty -m c; git switch -q -c topic; git commit -q --allow-empty -m d; git switch -q -
        git merge -q --no-ff -m e topic; git branch -D topic; git update-ref refs/heads/elsewhere HEAD; git rebase -q -f --root";
    sandbox.lane_with("x", script);
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

#[test]
fn what_the_main_checkout_is_on_is_refused_whatever_lands_there() {
    let sandbox = Sandbox::new();
    sandbox.git(&["switch", "-q", "-c", "topic"]);
    let said = agent(&sandbox, "x", "git -C ../.. commit -q --allow-empty -m y");
    assert!(said.contains("branch topic is what lanes land on"), "{said}");
    // Nothing lands on the next one.
    sandbox.git(&["switch", "-q", "-c", "unrelated"]);
    let script = "git commit -q --allow-empty -m z; git update-ref refs/heads/unrelated HEAD
        git -C ../.. commit -q --allow-empty -m y; exit 0";
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "y", "--base", "main", "--", "sh", "-c", script]).ok();
    let said = sandbox.proq(&["logs", "y"]).ok();
    let why = "git-proq: refused: branch unrelated is checked out in the main checkout; the agent of lane 'y' may not";
    assert_eq!(said.matches(why).count(), 2, "{said}");
    assert_eq!(sandbox.git(&["log", "--format=%s", "unrelated"]), "first");
}

#[test]
fn where_settings_cannot_be_read_nothing_of_others_is_written() {
    let sandbox = Sandbox::new();
    let script = "git commit -q --allow-empty -m mine; echo '[broken' > \"$ROOT/repo/proq.toml\"
        git update-ref refs/heads/main HEAD && echo written; rm \"$ROOT/repo/proq.toml\"";
    let said = agent(&sandbox, "x", script);
    assert!(said.contains("git-proq: refused: it cannot be known whose this is: "), "{said}");
    assert!(!said.contains("written"), "{said}");
    assert_eq!(sandbox.git(&["log", "--format=%s", "main"]), "first");
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s", "proq/x"]), "mine");
}

#[test]
fn a_stash_is_refused_kept_and_changes_nothing() {
    let sandbox = Sandbox::new();
    sandbox.sh("echo mine > a.txt; git stash -q");
    let before = sandbox.git(&["stash", "list"]);
    let said = agent(
        &sandbox,
        "x",
        "git config a.b c; echo edited > a.txt; echo new > new.txt; git stash -u && echo stashed; git status -s; git stash clear
        git checkout -q a.txt; rm new.txt; git commit -q --allow-empty -m end",
    );
    insta::assert_snapshot!(said, @r"
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
    let kept = sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/saved"]);
    assert_eq!(sandbox.git(&["show", &format!("{kept}:a.txt")]), "edited");
    assert_eq!(sandbox.git(&["show", &format!("{kept}^3:new.txt")]), "new");
}

#[test]
fn entries_that_an_agent_drops_from_the_stash_are_kept() {
    let sandbox = Sandbox::new();
    sandbox.sh("for n in 1 2 3; do echo mine $n > a.txt; git stash -q; done");
    let ids = sandbox.git(&["stash", "list", "--format=%H"]);
    let ids: Vec<&str> = ids.lines().collect();
    // Whatever git writes about it.
    let script = "git stash drop 'stash@{1}'; git stash drop -q 'stash@{1}'";
    let _ = agent(&sandbox, "x", script);
    assert_eq!(sandbox.git(&["stash", "list", "--format=%H"]), ids[0]);
    let kept = sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/saved"]);
    assert!(kept.lines().count() == 2 && kept.contains(ids[1]) && kept.contains(ids[2]), "{kept}");
    let all = sandbox.events("lane.escape");
    let told: Vec<&str> = all.iter().map(|e| e["message"].as_str().unwrap()).collect();
    assert_eq!(told.len(), 2);
    assert!(told[0].starts_with("while the agent of lane 'x' ran, it or somebody else dropped an entry of the stash; it is kept: git stash apply refs/proq/saved/x-stash-"));
    // An agent that runs later drops what is kept already, and nothing more is to be done.
    let _ = agent(&sandbox, "y", "git commit -q --allow-empty -m y");
    assert_eq!(sandbox.events("lane.escape").len(), 2);
}

#[test]
fn an_autostash_goes_where_git_puts_it() {
    let sandbox = Sandbox::new();
    let script = "echo one > a.txt; git commit -qam one; echo two > a.txt; git commit -qam two
        echo fine > b.txt; git add b.txt; git rebase -q --autostash -f HEAD~1; test -e b.txt; git reset -q; rm b.txt
        echo three > a.txt; git rebase --autostash --onto HEAD~2 HEAD~1 || true; git rebase --abort || true; git stash list";
    sandbox.lane_with("x", script);
    let _ = agent(
        &sandbox,
        "y",
        "echo one > a.txt; git commit -qam one; echo mine > a.txt; git rebase --autostash --onto HEAD~1 HEAD; cat a.txt",
    );
    assert_eq!(sandbox.git(&["stash", "list", "--format=%gs"]), "autostash");
    assert!(sandbox.git(&["show", "stash@{0}:a.txt"]).contains("mine"));
    assert_eq!(sandbox.git(&["for-each-ref", "refs/proq/saved"]), "");
}

#[test]
fn packing_and_pruning_touch_everybodys_refs_and_are_let_through() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("other", "echo o > o.txt");
    sandbox.sh("echo mine > a.txt; git stash -q");
    let all = || sandbox.git(&["for-each-ref"]);
    let before = all();
    let script = "git pack-refs --all; git gc -q --prune=now; git pack-refs --all; git fetch -q \"$ROOT/repo\"
        ! git update-ref -d refs/heads/proq/other; ! git branch -D proq/other; ! git update-ref -d refs/stash";
    sandbox.lane_with("x", script);
    assert_eq!(
        all().lines().filter(|l| !l.ends_with("proq/x")).collect::<Vec<_>>(),
        before.lines().collect::<Vec<_>>()
    );
    assert!(!sandbox.repo.join(".git/refs/heads/proq/other").exists());
}

#[test]
fn this_program_is_free_to_do_what_an_agents_git_may_not() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("other", "echo o > o.txt");
    // As a hook of the user's would: an agent may not land what is others'.
    sandbox.lane_with("x", "env -u PROQ_ATTEMPT git proq merge other; git proq spawn --empty -n more; cd \"$ROOT/repo\"; git -c a.b=c proq discard more");
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s", "main"]), "Merge lane other");
}

#[test]
fn a_commit_in_a_lane_is_an_event_and_a_rebase_is_not_one_for_each_step() {
    let sandbox = Sandbox::new();
    sandbox.lane_with("x", "git commit -q --allow-empty -m 'one  thing'; git commit -q --allow-empty -m two; git rebase -q -f HEAD~2");
    let all = sandbox.events("lane.committed");
    let told: Vec<&str> = all.iter().map(|e| e["message"].as_str().unwrap()).collect();
    assert_eq!(told, ["lane 'x': ca3f0cb4 one  thing", "lane 'x': 7b550d8a two"]);
    assert_eq!((&all[0]["lane"], &all[0]["state"]), (&"x".into(), &"running".into()));
}

#[test]
fn a_preview_and_overlaps_keep_up_with_a_lane_while_its_agent_works() {
    let sandbox = Sandbox::new();
    sandbox.pipe("go");
    sandbox.pipe("end");
    sandbox.lane_of("other", "echo other > a.txt");
    sandbox.start_lane("x", "cat \"$ROOT/go\"; echo x > a.txt; git commit -qam change; cat \"$ROOT/end\"");
    let _ = sandbox.proq(&["preview", "x"]).ok();
    sandbox.tell("go");
    // It is told last, when the preview has moved.
    sandbox.until("lane.overlap", "x", 1);
    assert_eq!(sandbox.read("a.txt"), "x\n");
    assert_eq!(sandbox.events("run.ended").len(), 0);
    sandbox.tell("end");
}

#[test]
fn what_git_does_in_another_worktree_is_told_once() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("other", "echo o > o.txt");
    let _ = agent(
        &sandbox,
        "x",
        "cd \"$ROOT/repo\"; git worktree add -q ../tree -b tree; git worktree add -q --detach ../tree2; git -C ../tree commit -q --allow-empty -m t
        git fetch -q .; git status -s; cd .proq-worktrees/other; git switch -q --detach; git commit -q --allow-empty -m a; git commit -q --allow-empty -m b",
    );
    let all = sandbox.events("lane.escape");
    let told: Vec<&str> = all.iter().map(|e| e["message"].as_str().unwrap()).collect();
    assert_eq!(told, ["the agent of lane 'x' ran git in lane 'other', which wrote HEAD there"]);
    assert_eq!((&all[0]["lane"], &all[0]["other"]), (&"x".into(), &"other".into()));
}

#[test]
fn a_worktree_on_no_branch_that_stays_is_not_called_removed_whatever_its_name() {
    let sandbox = Sandbox::new();
    let tree = sandbox.root().join("two\nlines");
    sandbox.git(&["worktree", "add", "-q", "--detach", tree.to_str().unwrap()]);
    sandbox.git_in(&tree, &["commit", "-q", "--allow-empty", "-m", "lone"]);
    sandbox.lane_with("x", "true");
    assert_eq!(sandbox.events("lane.escape"), [serde_json::Value::Null; 0]);
}

#[test]
fn what_git_does_in_the_main_checkout_is_told_too() {
    let sandbox = Sandbox::new();
    let _ = agent(
        &sandbox,
        "x",
        "cd \"$ROOT/repo\"; git switch -q --detach; git commit -q --allow-empty -m astray",
    );
    let all = sandbox.events("lane.escape");
    let told: Vec<&str> = all.iter().map(|e| e["message"].as_str().unwrap()).collect();
    assert_eq!(told, ["the agent of lane 'x' ran git in the main checkout, which wrote HEAD there"]);
    assert_eq!((&all[0]["lane"], &all[0]["other"]), (&"x".into(), &serde_json::Value::Null));
}

#[test]
fn what_changes_in_a_lane_whose_own_agent_is_at_work_says_nothing() {
    let sandbox = Sandbox::new();
    sandbox.pipe("go");
    sandbox.start_lane("busy", "read line < \"$ROOT/go\"");
    let _ = sandbox.started_row("busy");
    sandbox.lane_with(
        "x",
        "file=\"$ROOT/repo/.proq-worktrees/busy/a.txt\"; echo 2 > \"$file\"; echo \"wrote $file\"",
    );
    assert_eq!(sandbox.events("lane.escape"), [serde_json::Value::Null; 0]);
    sandbox.tell("go");
    let _ = sandbox.proq(&["wait", "busy"]).ok();
    sandbox.lane_with(
        "y",
        "file=\"$ROOT/repo/.proq-worktrees/busy/a.txt\"; echo 3 > \"$file\"; echo \"wrote $file\"",
    );
    assert_eq!(sandbox.events("lane.escape").len(), 1);
}

#[test]
fn a_file_that_an_agent_names_and_that_changed_is_told_apart_from_others() {
    let sandbox = Sandbox::new();
    sandbox.sh("for f in named users old gone; do echo 1 > $f; done; echo ignored > .gitignore");
    sandbox.commit_all("files");
    sandbox.sh("echo 2 > old");
    sandbox.lane_of("other", "echo o > o.txt");
    let script = "cd \"$ROOT/repo\"; echo 2 > named; echo 2 > users; echo 2 > ignored; rm gone; echo 2 > .proq-worktrees/other/o.txt
        echo \"{\\\"path\\\":\\\"$PWD/named\\\",\\\"n\\\":1} $PWD/old $PWD/a.txt $PWD/ignored, $PWD/.proq-worktrees/x/b $PWD/gone.\"
        echo \"wrote $PWD/.proq-worktrees/other/o.txt\"";
    sandbox.lane_with("x", script);
    let all = sandbox.events("lane.escape");
    let told: Vec<&str> = all.iter().map(|e| e["message"].as_str().unwrap()).collect();
    let unknown = "it is not known who changed them";
    let begin = "while the agent of lane 'x' ran, files that its output names changed in";
    assert_eq!(
        told,
        [
            format!("{begin} the main checkout: gone, named; {unknown}"),
            format!("{begin} lane 'other': o.txt; {unknown}"),
            "while the agent of lane 'x' ran, these changed in the main checkout: users; that may have been you: nothing says who it was".to_owned(),
        ]
    );
    let sure: Vec<&str> = all.iter().map(|e| e["certainty"].as_str().unwrap()).collect();
    assert_eq!(sure, ["likely", "likely", "possible"]);
    assert_eq!(all[0]["paths"], serde_json::json!(["gone", "named"]));
    assert_eq!((&all[1]["other"], &all[1]["paths"]), (&"other".into(), &serde_json::json!(["o.txt"])));
}

#[test]
fn a_push_into_the_repository_itself_is_judged_like_any_other_write() {
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
    let said = sandbox.proq(&["logs", "x"]).ok();
    assert_eq!(said.matches("refused: branch main is what lanes land on").count(), 3, "{said}");
    assert!(said.contains("pushed\n") && said.contains("deleted\n"), "{said}");
    assert_eq!(sandbox.git(&["rev-parse", "main"]), before.lines().next().unwrap());
    assert_eq!(sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/saved"]), mine);
}
