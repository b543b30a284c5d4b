//! Tests of changes that agents make outside of their lanes and that git-proq cannot or does not refuse: the
//! old state is saved and the change reported.

use proq_test_kit::Sandbox;
use serde_json::Value;

/// Creates a sandbox with branches and tags of the user, none of which point to the base's commit.
fn sandbox_with_user_refs() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh(
        "for branch in gone moved; do git checkout -q -b $branch main; git commit -q --allow-empty -m $branch; done
        git tag -m annotated kept; git tag lost; git tag -m another again; git checkout -q main",
    );
    sandbox
}

fn refs(sandbox: &Sandbox) -> String {
    sandbox.git(&[
        "for-each-ref",
        "--format=%(refname) %(objectname)",
        "refs/heads",
        "refs/tags",
        "refs/stash",
    ])
}

/// Runs the commands in the `lane.escape` events unchanged.
fn run_reported_commands(sandbox: &Sandbox) {
    let out = sandbox.proq_command(&sandbox.repo, &["events", "--json"]).output().unwrap();
    let all: Value = serde_json::from_slice(&out.stdout).unwrap();
    let escape_events =
        all["events"].as_array().unwrap().iter().filter(|event| event["event"] == "lane.escape");
    for (_, command) in escape_events.filter_map(|event| event["message"].as_str()?.rsplit_once(": git ")) {
        sandbox.sh(&format!("git {command}"));
    }
}

fn escape_messages(sandbox: &Sandbox) -> Vec<String> {
    let text = |event: &Value| event["message"].as_str().unwrap().to_owned();
    sandbox.events("lane.escape").iter().map(text).collect()
}

/// Promise: agent-git/read-only-refs
#[test]
fn read_only_run_cannot_write_refs() {
    let sandbox = sandbox_with_user_refs();
    let before = refs(&sandbox);
    let script = "for args in 'branch -D gone' 'branch -f moved HEAD' 'branch new' 'branch -m proq/x elsewhere' 'tag new' 'tag -d lost' \
        'update-ref refs/other/new HEAD' 'commit -q --allow-empty -m mine'; do
        if git $args; then echo \"$args: not refused\"; fi; done; git gc -q; git status";
    sandbox.agent("claude", script);
    let _ = sandbox.proq(&["spawn", "--wait", "--permission", "read", "-n", "x", "claude", "look"]);
    let output = sandbox.proq(&["logs", "--raw", "x"]).ok() + &sandbox.proq(&["logs", "--errors", "x"]).ok();
    assert!(
        !output.contains("not refused") && output.contains("is not for a run that only looks"),
        "{output}"
    );
    sandbox.git(&["update-ref", "-d", "refs/heads/proq/x", "main"]);
    assert_eq!(refs(&sandbox), before);
}

/// Promise: agent-git/deleted-refs
#[test]
fn keeps_user_branches_and_tags_lost_by_an_agent() {
    let sandbox = sandbox_with_user_refs();
    let object_id = |name: &str| sandbox.git(&["rev-parse", name]);
    let names = ["gone", "moved", "lost", "again"];
    let original_ids = names.map(object_id);
    sandbox.run_lane(
        "x",
        "git branch -D gone; git branch -f moved HEAD; git tag -d lost; git tag -f -m other again
        git branch own; git branch -D own; git tag own; git tag -d own; git pack-refs --all; git commit -q --allow-empty -m mine",
    );
    let mut saved: Vec<String> = sandbox
        .git(&["for-each-ref", "--format=%(objectname)", "refs/proq/saved"])
        .lines()
        .map(str::to_owned)
        .collect();
    let mut expected = original_ids.to_vec();
    saved.sort();
    expected.sort();
    assert_eq!(saved, expected);
    let messages = escape_messages(&sandbox);
    assert_eq!(messages.len(), 4, "{messages:?}");
    assert!(messages[0].starts_with(
        "the agent of lane 'x' deletes branch gone; its earlier value is saved: git branch gone-kept refs/proq/saved/x-"
    ));
    run_reported_commands(&sandbox);
    assert_eq!(names.map(|name| object_id(&format!("{name}-kept"))), original_ids);
    sandbox.assert_healthy();
}

/// Promise: agent-git/changed-settings-named
#[test]
fn names_changes_that_affect_all_worktrees() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("other", "echo other > other; git add .; git commit -qm other");
    sandbox.run_lane(
        "calm",
        "git branch own; git commit -q --allow-empty -m mine; git config branch.own.remote far",
    );
    assert_eq!(escape_messages(&sandbox), [""; 0]);
    sandbox.run_lane(
        "x",
        "git worktree remove --force ../other; git config core.pager more; git config user.name Mallory
        printf '#!/bin/sh\\n' > ../../.git/hooks/pre-commit; git commit -q --allow-empty -m mine",
    );
    let summary = "the agent or someone else removed the worktree of lane 'other' and changed hook pre-commit, setting core.pager, setting \
        user.name of the repository";
    let messages = escape_messages(&sandbox);
    assert!(
        messages.contains(&format!("while the agent of lane 'x' ran, {summary}: git-proq does not know who")),
        "{messages:?}"
    );
    let detail = format!("while it ran, {summary}");
    assert_eq!(sandbox.row("x")["detail"], detail);
    assert!(sandbox.proq(&["show", "x"]).ok().replace('\n', " ").contains("removed the worktree"));
}

#[test]
fn worktree_missing_before_the_run_is_not_reported() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("other", "echo other > other; git add .; git commit -qm other");
    let remove = "rm -r ../../.git/worktrees/other; git commit -q --allow-empty -m mine";
    sandbox.run_lane("x", remove);
    let removal_count = || {
        escape_messages(&sandbox).iter().filter(|message| message.contains("removed the worktree")).count()
    };
    assert_eq!(removal_count(), 1);
    sandbox.run_lane("y", "git commit -q --allow-empty -m mine");
    assert_eq!((removal_count(), &sandbox.row("y")["detail"]), (1, &serde_json::Value::Null));
}

/// Promise: agent-requests/no-commands-on-others
#[test]
fn agent_cannot_run_commands_that_affect_others() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("other", "echo other > other; git add .; git commit -qm other");
    let before = sandbox.git(&["rev-parse", "main"]);
    let script = "try() { name=$1; shift; \"$@\" > $ROOT/$name 2>&1 && echo 0 >> $ROOT/$name || echo $? >> $ROOT/$name; }
        try merge git proq merge other
        try all git proq merge --all
        try some git proq merge mine other
        try undo git proq undo
        try redo git proq op redo
        try restore git proq op restore 1
        try edit git proq edit other --title Other
        try rename git proq rename other mine2
        try stop git proq stop other
        try every git proq stop --all
        try run git proq run other
        try send git proq send other more
        try preview git proq preview other
        try back git proq preview --back
        try snap git proq snap restore 1
        try cleanup git proq cleanup mine
        try gc git proq gc
        try redispatch git proq redispatch other
        try resolve git proq resolve other --abort
        try sync git proq sync other
        cd $ROOT/repo
        try away git proq merge other
        try own git proq edit mine --title Mine
        try dry git proq merge --dry-run other
        try foresee git proq stop --all --dry-run";
    sandbox.run_lane("mine", script);
    let output_of = |name: &str| std::fs::read_to_string(sandbox.root().join(name)).unwrap();
    let landing = ["merge", "all", "some", "undo", "redo", "restore", "edit", "rename", "away"];
    let others = ["stop", "every", "run", "send", "redispatch", "resolve", "sync"];
    let checkout = ["preview", "back", "snap", "cleanup", "gc"];
    for name in landing.into_iter().chain(others).chain(checkout) {
        let text = output_of(name);
        assert!(
            text.contains("this is the agent of lane 'mine'") && text.ends_with("\n1\n"),
            "{name}: {text}"
        );
    }
    for name in ["own", "dry", "foresee"] {
        assert!(output_of(name).ends_with("\n0\n"), "{name}: {}", output_of(name));
    }
    assert_eq!(sandbox.git(&["rev-parse", "main"]), before);
    assert_eq!(
        (&sandbox.row("other")["state"], &sandbox.row("mine")["title"]),
        (&"done".into(), &"Mine".into())
    );
    // The user may run them, also in the lane's folder.
    let _ = sandbox.proq_in(&sandbox.lane_path("mine"), &["merge", "other"]).ok();
}

#[test]
fn failed_run_detail_quotes_its_last_error_line() {
    let sandbox = Sandbox::new();
    sandbox.program("pi", "printf 'Error: Model \"nosuch\" not found.\\n\\033[2J' >&2; exit 1");
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "pi", "do it"]).fails(4);
    assert_eq!(
        sandbox.row("x")["detail"],
        "exit code 1; its errors end with: Error: Model \"nosuch\" not found."
    );
    let out = sandbox.proq(&["logs", "x"]);
    assert_eq!((out.stdout.as_str(), out.code), ("", 0));
    assert!(out.stderr.contains("hint: show its stderr: git proq logs --errors x"), "{}", out.to_text());
    assert!(sandbox.proq(&["logs", "--errors", "x"]).ok().contains("not found"));
    // The agent prints nothing on its standard output while it retries.
    sandbox.program("gemini", "echo 'Attempt 4 failed: Rate limit reached' >&2; exec sleep 60");
    let _ = sandbox.proq(&["spawn", "--wait", "--max-time", "1s", "-n", "slow", "gemini", "do it"]).fails(4);
    let expected = "it reached its time limit; its errors end with: Attempt 4 failed: Rate limit reached";
    assert_eq!(sandbox.row("slow")["detail"], expected);
}

/// Promise: agent-git/lost-commits
#[test]
fn keeps_lost_refs_when_hooks_are_bypassed() {
    let sandbox = sandbox_with_user_refs();
    let object_id = |name: &str| sandbox.git(&["rev-parse", name]);
    let names = ["gone", "moved", "again", "kept"];
    let original_ids = names.map(object_id);
    sandbox.run_lane(
        "x",
        "git commit -q --allow-empty -m mine; git='git -c core.hooksPath=/dev/null'
        $git branch -q -D gone; $git tag -d again kept lost; git branch -C proq/x moved
        env -u GIT_CONFIG_PARAMETERS git -C \"$ROOT/repo\" commit -q --amend --allow-empty -m amended-by-the-user",
    );
    let listing = sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/saved"]);
    let mut saved: Vec<&str> = listing.lines().collect();
    let mut expected: Vec<&str> = original_ids.iter().map(String::as_str).collect();
    saved.sort_unstable();
    expected.sort_unstable();
    assert_eq!(saved, expected);
    let messages = escape_messages(&sandbox);
    let is_reported = |part: &str| messages.iter().any(|text| text.contains(part));
    let prefix = "while the agent of lane 'x' ran, the agent or someone else ";
    assert!(is_reported(&format!(
        "{prefix}deleted branch gone; its earlier value: git branch gone refs/proq/saved/x-"
    )));
    assert!(is_reported(&format!(
        "{prefix}deleted tag again; its earlier value: git tag again refs/proq/saved/x-"
    )));
    assert!(
        is_reported(&format!("{prefix}moved branch moved to "))
            && is_reported("; the earlier commits are saved: git log refs/proq/saved/x-")
    );
    assert!(!is_reported("branch main"), "{messages:?}");
    run_reported_commands(&sandbox);
    assert_eq!((object_id("gone"), object_id("again")), (original_ids[0].clone(), original_ids[2].clone()));
    sandbox.assert_healthy();
}

/// Promise: agent-git/moved-base
#[test]
fn names_base_moved_other_than_by_a_landing() {
    let sandbox = Sandbox::new();
    sandbox.git(&["switch", "-q", "-c", "work"]);
    let spawn = |name: &str, script: &str| {
        let args = ["spawn", "--wait", "-n", name, "--base", "main", "--", "sh", "-ec", script];
        let _ = sandbox.proq(&args).ok();
    };
    spawn("x", "git commit -q --allow-empty -m x");
    let landed = "echo y > y; git add y; git commit -q -m y; env -u GIT_CONFIG_PARAMETERS -C \"$ROOT/repo\" git checkout -q main
        env -u GIT_CONFIG_PARAMETERS git -C \"$ROOT/repo\" commit -q --allow-empty -m by-the-user
        env -u GIT_CONFIG_PARAMETERS -C \"$ROOT/repo\" git checkout -q work";
    spawn("y", landed);
    assert_eq!(escape_messages(&sandbox), [""; 0]);
    spawn("z", "git commit -q --allow-empty -m z; git branch -C proq/z main");
    let messages = escape_messages(&sandbox);
    let prefix = "while the agent of lane 'z' ran, the agent or someone else moved branch main to ";
    assert!(messages.len() == 1 && messages[0].starts_with(prefix), "{messages:?}");
}

/// Promise: agent-git/lost-commits
#[test]
#[ignore = "needs git 2.46"]
fn keeps_lost_refs_in_reftable_repository() {
    let sandbox = Sandbox::new();
    assert!(sandbox.git_version() >= (2, 46), "this test needs git 2.46");
    sandbox.sh("rm -rf .git; git init -q -b main --ref-format=reftable");
    sandbox.commit_all("first");
    sandbox.sh("for n in 1 2; do echo $n > a.txt; git stash -q; done");
    let entry = sandbox.git(&["rev-parse", "stash@{1}"]);
    sandbox.run_lane("x", "git commit -q --allow-empty -m mine; git stash drop -q 'stash@{1}'");
    let saved_ids = || sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/saved"]);
    assert_eq!(saved_ids(), entry);
    // Saved while the run lasts, because the end of a run may never be reached.
    sandbox.sh("git branch user $(git commit-tree -p HEAD -m user HEAD^{tree})");
    let user = sandbox.git(&["rev-parse", "user"]);
    sandbox.run_lane(
        "y",
        "git branch -D user; git for-each-ref --format='%(objectname)' refs/proq/saved > $ROOT/y",
    );
    let y = std::fs::read_to_string(sandbox.root().join("y")).unwrap();
    assert!(y.contains(&user), "{y}");
    let tip = sandbox.git(&["rev-parse", "proq/x"]);
    sandbox.git(&["update-ref", "-d", "refs/heads/proq/x"]);
    let doctor = sandbox.proq(&["doctor"]);
    let text = format!("{}{}", doctor.stdout, doctor.stderr);
    assert!(text.contains(&format!("its last commit {} still exists", &tip[..8])), "{}", doctor.to_text());
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    assert!(saved_ids().contains(&tip));
}

/// Promise: agent-git/deleted-refs
#[test]
fn restore_command_works_for_any_branch_name() {
    let sandbox = Sandbox::new();
    let names = ["feat(ui)", "v;touch${IFS}pwned", "again", "deep", "one/two", "moved", "elsewhere"];
    let make = |name: &str| {
        let commit = sandbox.git(&["commit-tree", "-p", "HEAD", "-m", name, "HEAD^{tree}"]);
        sandbox.git(&["branch", name, &commit]);
        commit
    };
    let original_ids = names.map(make);
    let other_worktree = sandbox.root().join("aside");
    sandbox.git(&["worktree", "add", "-q", other_worktree.to_str().unwrap(), "elsewhere"]);
    sandbox.run_lane(
        "x",
        "git branch -D 'feat(ui)' 'v;touch${IFS}pwned' again deep one/two; git branch again; git branch deep/er; git branch one
        git checkout -q -B moved; git update-ref refs/heads/elsewhere HEAD; git checkout -q proq/x",
    );
    run_reported_commands(&sandbox);
    let restored =
        names.map(|name| sandbox.git(&["rev-parse", &format!("refs/heads/{}-kept", name.replace('/', "-"))]));
    assert_eq!(restored, original_ids);
    assert!(!sandbox.repo.join("pwned").exists());
}

/// Promise: agent-git/deleted-refs
#[test]
fn refused_ref_transaction_keeps_and_reports_nothing() {
    let sandbox = sandbox_with_user_refs();
    sandbox.run_lane(
        "x",
        "if printf 'delete refs/heads/gone\\ndelete refs/heads/main\\n' | git update-ref --stdin; then exit 1; fi",
    );
    let _ = sandbox.git(&["rev-parse", "--verify", "refs/heads/gone"]);
    assert_eq!(sandbox.git(&["for-each-ref", "refs/proq/saved"]), "");
    assert_eq!(escape_messages(&sandbox), [""; 0]);
}

/// Promise: agent-git/deleted-refs
#[test]
fn keeps_a_branch_each_time_it_is_deleted() {
    let sandbox = sandbox_with_user_refs();
    let gone_tip = sandbox.git(&["rev-parse", "gone"]);
    sandbox.run_lane(
        "x",
        "user='env -u GIT_CONFIG_PARAMETERS git -C $ROOT/repo'
        git branch fix; git commit -q --allow-empty -m mine; git branch -f fix; git branch -D fix
        eval $user branch fix $(eval $user commit-tree -p main -m users main^{tree}); git rev-parse fix > $ROOT/fix; git branch -D fix
        git branch -D gone; saved=$(git for-each-ref --contains $(cat $ROOT/gone) --format='%(refname)' refs/proq/saved)
        eval $user branch gone $saved; eval $user update-ref -d $saved; git branch -D gone"
            .replace("$(cat $ROOT/gone)", &gone_tip)
            .as_str(),
    );
    let fix = std::fs::read_to_string(sandbox.root().join("fix")).unwrap().trim().to_owned();
    let listing = sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/saved"]);
    let mut saved: Vec<&str> = listing.lines().collect();
    let mut expected = [fix.as_str(), gone_tip.as_str()];
    saved.sort_unstable();
    expected.sort_unstable();
    assert_eq!(saved, expected);
    assert_eq!(escape_messages(&sandbox).len(), 3);
}

/// Promise: agent-git/lost-commits
#[test]
fn keeps_lost_refs_beside_a_broken_ref() {
    let sandbox = sandbox_with_user_refs();
    let gone_tip = sandbox.git(&["rev-parse", "gone"]);
    sandbox.sh("echo more >> a.txt; git stash -q");
    let entry = sandbox.git(&["rev-parse", "stash"]);
    sandbox.sh("mkdir -p .git/refs/remotes/far; echo 1234567890123456789012345678901234567890 > .git/refs/remotes/far/x");
    sandbox.run_lane("x", "git stash drop -q || true; git branch -C main gone || true");
    let saved = sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/saved"]);
    assert!(saved.contains(&gone_tip) && saved.contains(&entry), "{saved}");
}

/// Promise: agent-git/lost-commits
#[test]
fn keeps_landed_commits_replaced_by_branch_copy() {
    let sandbox = Sandbox::new();
    sandbox.git(&["branch", "feature"]);
    let _ = sandbox.proq(&["spawn", "--empty", "--base", "feature", "-n", "b"]).ok();
    sandbox.commit_in_lane("b", "echo b > b");
    sandbox.git(&["checkout", "-q", "feature"]);
    sandbox.commit_all("the user's");
    sandbox.git(&["checkout", "-q", "main"]);
    sandbox.pipe("up");
    sandbox.pipe("go");
    let script = "echo > \"$ROOT/up\"; read -r _ < \"$ROOT/go\"; git branch -C proq/x feature";
    let _ = sandbox.proq(&["spawn", "-q", "-n", "x", "--", "sh", "-ec", script]).ok();
    let _ = sandbox.read_pipe("up");
    let _ = sandbox.proq(&["merge", "b"]).ok();
    let landed = sandbox.git(&["rev-parse", "feature"]);
    sandbox.write_pipe("go");
    let _ = sandbox.proq(&["wait", "x"]);
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s", &format!("{landed}^1")]), "the user's");
    let saved = sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/saved"]);
    assert!(saved.contains(&landed), "{saved}");
    let messages = escape_messages(&sandbox);
    assert!(messages.len() == 1 && messages[0].contains("moved branch feature to "), "{messages:?}");
}

/// Promise: agent-git/lost-commits
#[test]
fn keeps_detached_commits_of_removed_worktrees() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "idle"]).ok();
    let other_worktree = sandbox.root().join("by hand");
    sandbox.git(&["worktree", "add", "-q", "--detach", other_worktree.to_str().unwrap()]);
    sandbox.git_in(&sandbox.lane_path("idle"), &["checkout", "-q", "--detach"]);
    let tips = [sandbox.lane_path("idle"), other_worktree].map(|dir| {
        sandbox.commit_all_in(&dir, "on no branch");
        sandbox.git_in(&dir, &["commit", "-q", "--amend", "--allow-empty", "-m", dir.to_str().unwrap()]);
        sandbox.git_in(&dir, &["rev-parse", "HEAD"])
    });
    sandbox.run_lane(
        "x",
        "git commit -q --allow-empty -m mine; git worktree remove --force ../idle; git worktree remove --force \"$ROOT/by hand\"",
    );
    run_reported_commands(&sandbox);
    let object_id = |name: &str| sandbox.git(&["rev-parse", name]);
    assert_eq!(object_id("idle-kept"), tips[0]);
    let saved = sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/saved"]);
    assert!(tips.iter().all(|tip| saved.contains(tip)), "{saved}");
}

/// Promise: agent-git/lost-commits
#[test]
fn keeps_notes_and_object_tags_but_no_rebased_commits() {
    let sandbox = sandbox_with_user_refs();
    sandbox.sh("git notes add -m note; git tag file HEAD:a.txt; git tag tree HEAD^{tree}
        git commit -q --allow-empty -m base");
    let names = ["refs/notes/commits", "refs/tags/file", "refs/tags/tree"];
    let object_id = |name: &str| sandbox.git(&["rev-parse", name]);
    let original_ids = names.map(object_id);
    sandbox.run_lane(
        "x",
        "git commit -q --allow-empty -m mine; git='git -c core.hooksPath=/dev/null'
        $git update-ref -d refs/notes/commits; $git tag -d file tree
        env -u GIT_CONFIG_PARAMETERS git -C $ROOT/repo rebase -q --keep-empty main moved",
    );
    let messages = escape_messages(&sandbox);
    assert_eq!(messages.len(), 3, "{messages:?}");
    assert!(messages.iter().any(|text| {
        text.contains(" deleted notes commits; its earlier value: git update-ref refs/notes/commits ")
    }));
    run_reported_commands(&sandbox);
    assert_eq!(names.map(object_id), original_ids);
}
