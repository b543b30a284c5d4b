//! Owns the tests of what agents do outside of their lanes that git-proq cannot or does not refuse: it is kept, and named.

use serde_json::Value;

use super::support::Sandbox;

/// A sandbox with branches and tags of the user's, none of them at the base.
fn sandbox() -> Sandbox {
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

/// Runs the commands that the events name, as they are.
fn run_commands(sandbox: &Sandbox) {
    let out = sandbox.proq_command(&sandbox.repo, &["events", "--json"]).output().unwrap();
    let all: Value = serde_json::from_slice(&out.stdout).unwrap();
    let told = all["events"].as_array().unwrap().iter().filter(|event| event["event"] == "lane.escape");
    for (_, command) in told.filter_map(|event| event["message"].as_str()?.rsplit_once(": git ")) {
        sandbox.sh(&format!("git {command}"));
    }
}

fn escapes(sandbox: &Sandbox) -> Vec<String> {
    let text = |event: &Value| event["message"].as_str().unwrap().to_owned();
    sandbox.events("lane.escape").iter().map(text).collect()
}

#[test]
fn a_run_that_may_only_look_writes_no_ref() {
    let sandbox = sandbox();
    let before = refs(&sandbox);
    let script = "for args in 'branch -D gone' 'branch -f moved HEAD' 'branch new' 'branch -m proq/x elsewhere' 'tag new' 'tag -d lost' \
        'update-ref refs/other/new HEAD' 'commit -q --allow-empty -m mine'; do
        if git $args; then echo \"$args: not refused\"; fi; done; git gc -q; git status";
    sandbox.agent("claude", script);
    let _ = sandbox.proq(&["spawn", "--wait", "--permission", "read", "-n", "x", "claude", "look"]);
    let said = sandbox.proq(&["logs", "--raw", "x"]).ok() + &sandbox.proq(&["logs", "--errors", "x"]).ok();
    assert!(!said.contains("not refused") && said.contains("is not for a run that only looks"), "{said}");
    sandbox.git(&["update-ref", "-d", "refs/heads/proq/x", "main"]);
    assert_eq!(refs(&sandbox), before);
}

#[test]
fn branches_and_tags_of_the_users_are_kept_when_an_agent_deletes_or_moves_them() {
    let sandbox = sandbox();
    let at = |name: &str| sandbox.git(&["rev-parse", name]);
    let names = ["gone", "moved", "lost", "again"];
    let was = names.map(at);
    sandbox.lane_with(
        "x",
        "git branch -D gone; git branch -f moved HEAD; git tag -d lost; git tag -f -m other again
        git branch own; git branch -D own; git tag own; git tag -d own; git pack-refs --all; git commit -q --allow-empty -m mine",
    );
    let mut kept: Vec<String> = sandbox
        .git(&["for-each-ref", "--format=%(objectname)", "refs/proq/saved"])
        .lines()
        .map(str::to_owned)
        .collect();
    let mut wanted = was.to_vec();
    kept.sort();
    wanted.sort();
    assert_eq!(kept, wanted);
    let told = escapes(&sandbox);
    assert_eq!(told.len(), 4, "{told:?}");
    assert!(told[0].starts_with(
        "the agent of lane 'x' deletes branch gone; what it was is kept: git branch gone-kept refs/proq/saved/x-"
    ));
    run_commands(&sandbox);
    assert_eq!(names.map(|name| at(&format!("{name}-kept"))), was);
    sandbox.assert_healthy();
}

#[test]
fn what_a_run_changes_for_all_worktrees_is_named() {
    let sandbox = Sandbox::new();
    sandbox.lane_with("other", "echo other > other; git add .; git commit -qm other");
    sandbox.lane_with(
        "calm",
        "git branch own; git commit -q --allow-empty -m mine; git config branch.own.remote far",
    );
    assert_eq!(escapes(&sandbox), [""; 0]);
    sandbox.lane_with(
        "x",
        "git worktree remove --force ../other; git config core.pager more; git config user.name Mallory
        printf '#!/bin/sh\\n' > ../../.git/hooks/pre-commit; git commit -q --allow-empty -m mine",
    );
    let what = "it or somebody else removed the worktree of lane 'other' and changed hook pre-commit, setting core.pager, setting \
        user.name of the repository";
    let told = escapes(&sandbox);
    assert!(
        told.contains(&format!("while the agent of lane 'x' ran, {what}: nothing says who it was")),
        "{told:?}"
    );
    let detail = format!("while it ran, {what}");
    assert_eq!(sandbox.row("x")["detail"], detail);
    assert!(sandbox.proq(&["show", "x"]).ok().replace('\n', " ").contains("removed the worktree"));
}

#[test]
fn a_worktree_that_a_run_finds_broken_was_not_removed_meanwhile() {
    let sandbox = Sandbox::new();
    sandbox.lane_with("other", "echo other > other; git add .; git commit -qm other");
    let remove = "rm -r ../../.git/worktrees/other; git commit -q --allow-empty -m mine";
    sandbox.lane_with("x", remove);
    let named = || escapes(&sandbox).iter().filter(|what| what.contains("removed the worktree")).count();
    assert_eq!(named(), 1);
    sandbox.lane_with("y", "git commit -q --allow-empty -m mine");
    assert_eq!((named(), &sandbox.row("y")["detail"]), (1, &serde_json::Value::Null));
}

#[test]
fn an_agent_neither_lands_nor_takes_back_nor_changes_what_is_others() {
    let sandbox = Sandbox::new();
    sandbox.lane_with("other", "echo other > other; git add .; git commit -qm other");
    let before = sandbox.git(&["rev-parse", "main"]);
    let script = "try() { name=$1; shift; \"$@\" > $ROOT/$name 2>&1 && echo 0 >> $ROOT/$name || echo $? >> $ROOT/$name; }
        try merge git proq merge other
        try all git proq merge --all
        try some git proq merge mine other
        try undo git proq undo
        try redo git proq op redo
        try restore git proq op restore 1
        try edit git proq edit other --title Other
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
    sandbox.lane_with("mine", script);
    let said = |name: &str| std::fs::read_to_string(sandbox.root().join(name)).unwrap();
    let landing = ["merge", "all", "some", "undo", "redo", "restore", "edit", "away"];
    let others = ["stop", "every", "run", "send", "redispatch", "resolve", "sync"];
    let checkout = ["preview", "back", "snap", "cleanup", "gc"];
    for name in landing.into_iter().chain(others).chain(checkout) {
        let said = said(name);
        assert!(
            said.contains("this is the agent of lane 'mine'") && said.ends_with("\n1\n"),
            "{name}: {said}"
        );
    }
    for name in ["own", "dry", "foresee"] {
        assert!(said(name).ends_with("\n0\n"), "{name}: {}", said(name));
    }
    assert_eq!(sandbox.git(&["rev-parse", "main"]), before);
    assert_eq!(
        (&sandbox.row("other")["state"], &sandbox.row("mine")["title"]),
        (&"done".into(), &"Mine".into())
    );
    // A person may, in the lane's folder too.
    let _ = sandbox.proq_in(&sandbox.lane("mine"), &["merge", "other"]).ok();
}

#[test]
fn an_end_without_words_has_those_of_its_errors() {
    let sandbox = Sandbox::new();
    sandbox.program("pi", "printf 'Error: Model \"nosuch\" not found.\\n\\033[2J' >&2; exit 1");
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "pi", "do it"]).fails(4);
    assert_eq!(
        sandbox.row("x")["detail"],
        "exit code 1; its errors end with: Error: Model \"nosuch\" not found."
    );
    let out = sandbox.proq(&["logs", "x"]);
    assert_eq!((out.stdout.as_str(), out.code), ("", 0));
    assert!(
        out.stderr.contains("hint: see what it wrote as errors: git proq logs --errors x"),
        "{}",
        out.shown()
    );
    assert!(sandbox.proq(&["logs", "--errors", "x"]).ok().contains("not found"));
    // Nothing comes on its output while it tries again.
    sandbox.program("gemini", "echo 'Attempt 4 failed: Rate limit reached' >&2; exec sleep 60");
    let _ = sandbox.proq(&["spawn", "--wait", "--max-time", "1s", "-n", "slow", "gemini", "do it"]).fails(4);
    let said = "it took longer than it may; its errors end with: Attempt 4 failed: Rate limit reached";
    assert_eq!(sandbox.row("slow")["detail"], said);
}

#[test]
fn what_is_gone_from_branches_and_tags_is_kept_though_no_hook_was_asked() {
    let sandbox = sandbox();
    let at = |name: &str| sandbox.git(&["rev-parse", name]);
    let names = ["gone", "moved", "again", "kept"];
    let was = names.map(at);
    sandbox.lane_with(
        "x",
        "git commit -q --allow-empty -m mine; git='git -c core.hooksPath=/dev/null'
        $git branch -q -D gone; $git tag -d again kept lost; git branch -C proq/x moved
        env -u GIT_CONFIG_PARAMETERS git -C \"$ROOT/repo\" commit -q --amend --allow-empty -m amended-by-the-user",
    );
    let kept = sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/saved"]);
    let mut kept: Vec<&str> = kept.lines().collect();
    let mut wanted: Vec<&str> = was.iter().map(String::as_str).collect();
    kept.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(kept, wanted);
    let told = escapes(&sandbox);
    let of = |what: &str| told.iter().any(|text| text.contains(what));
    let begin = "while the agent of lane 'x' ran, it or somebody else ";
    assert!(of(&format!(
        "{begin}deleted branch gone; what it was is there: git branch gone refs/proq/saved/x-"
    )));
    assert!(of(&format!("{begin}deleted tag again; what it was is there: git tag again refs/proq/saved/x-")));
    assert!(
        of(&format!("{begin}moved branch moved to "))
            && of("; what it was is kept: git log refs/proq/saved/x-")
    );
    assert!(!of("branch main"), "{told:?}");
    run_commands(&sandbox);
    assert_eq!((at("gone"), at("again")), (was[0].clone(), was[2].clone()));
    sandbox.assert_healthy();
}

#[test]
fn a_base_that_moved_otherwise_than_by_a_landing_is_named() {
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
    assert_eq!(escapes(&sandbox), [""; 0]);
    spawn("z", "git commit -q --allow-empty -m z; git branch -C proq/z main");
    let told = escapes(&sandbox);
    let begin = "while the agent of lane 'z' ran, it or somebody else moved branch main to ";
    assert!(told.len() == 1 && told[0].starts_with(begin), "{told:?}");
}

#[test]
#[ignore = "needs git 2.46"]
fn in_a_repository_whose_refs_are_a_table_what_is_gone_is_kept_too() {
    let sandbox = Sandbox::new();
    assert!(sandbox.git_version() >= (2, 46), "this test needs git 2.46");
    sandbox.sh("rm -rf .git; git init -q -b main --ref-format=reftable");
    sandbox.commit_all("first");
    sandbox.sh("for n in 1 2; do echo $n > a.txt; git stash -q; done");
    let entry = sandbox.git(&["rev-parse", "stash@{1}"]);
    sandbox.lane_with("x", "git commit -q --allow-empty -m mine; git stash drop -q 'stash@{1}'");
    let kept = || sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/saved"]);
    assert_eq!(kept(), entry);
    // While the run lasts: nobody may come to its end.
    sandbox.sh("git branch user $(git commit-tree -p HEAD -m user HEAD^{tree})");
    let user = sandbox.git(&["rev-parse", "user"]);
    sandbox.lane_with(
        "y",
        "git branch -D user; git for-each-ref --format='%(objectname)' refs/proq/saved > $ROOT/y",
    );
    let y = std::fs::read_to_string(sandbox.root().join("y")).unwrap();
    assert!(y.contains(&user), "{y}");
    let tip = sandbox.git(&["rev-parse", "proq/x"]);
    sandbox.git(&["update-ref", "-d", "refs/heads/proq/x"]);
    let doctor = sandbox.proq(&["doctor"]);
    let said = format!("{}{}", doctor.stdout, doctor.stderr);
    assert!(said.contains(&format!("its last commit {} is still there", &tip[..8])), "{}", doctor.shown());
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    assert!(kept().contains(&tip));
}

#[test]
fn the_command_for_a_kept_branch_works_whatever_its_name_and_what_became_of_it() {
    let sandbox = Sandbox::new();
    let names = ["feat(ui)", "v;touch${IFS}pwned", "again", "deep", "one/two", "moved", "elsewhere"];
    let make = |name: &str| {
        let commit = sandbox.git(&["commit-tree", "-p", "HEAD", "-m", name, "HEAD^{tree}"]);
        sandbox.git(&["branch", name, &commit]);
        commit
    };
    let was = names.map(make);
    let aside = sandbox.root().join("aside");
    sandbox.git(&["worktree", "add", "-q", aside.to_str().unwrap(), "elsewhere"]);
    sandbox.lane_with(
        "x",
        "git branch -D 'feat(ui)' 'v;touch${IFS}pwned' again deep one/two; git branch again; git branch deep/er; git branch one
        git checkout -q -B moved; git update-ref refs/heads/elsewhere HEAD; git checkout -q proq/x",
    );
    run_commands(&sandbox);
    let kept =
        names.map(|name| sandbox.git(&["rev-parse", &format!("refs/heads/{}-kept", name.replace('/', "-"))]));
    assert_eq!(kept, was);
    assert!(!sandbox.repo.join("pwned").exists());
}

#[test]
fn of_updates_that_are_refused_together_nothing_is_kept_or_told() {
    let sandbox = sandbox();
    sandbox.lane_with(
        "x",
        "if printf 'delete refs/heads/gone\\ndelete refs/heads/main\\n' | git update-ref --stdin; then exit 1; fi",
    );
    let _ = sandbox.git(&["rev-parse", "--verify", "refs/heads/gone"]);
    assert_eq!(sandbox.git(&["for-each-ref", "refs/proq/saved"]), "");
    assert_eq!(escapes(&sandbox), [""; 0]);
}

#[test]
fn a_branch_is_kept_each_time_that_it_goes_and_whatever_the_run_called_so_before() {
    let sandbox = sandbox();
    let gone = sandbox.git(&["rev-parse", "gone"]);
    sandbox.lane_with(
        "x",
        "user='env -u GIT_CONFIG_PARAMETERS git -C $ROOT/repo'
        git branch fix; git commit -q --allow-empty -m mine; git branch -f fix; git branch -D fix
        eval $user branch fix $(eval $user commit-tree -p main -m users main^{tree}); git rev-parse fix > $ROOT/fix; git branch -D fix
        git branch -D gone; saved=$(git for-each-ref --contains $(cat $ROOT/gone) --format='%(refname)' refs/proq/saved)
        eval $user branch gone $saved; eval $user update-ref -d $saved; git branch -D gone"
            .replace("$(cat $ROOT/gone)", &gone)
            .as_str(),
    );
    let fix = std::fs::read_to_string(sandbox.root().join("fix")).unwrap().trim().to_owned();
    let kept = sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/saved"]);
    let mut kept: Vec<&str> = kept.lines().collect();
    let mut wanted = [fix.as_str(), gone.as_str()];
    kept.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(kept, wanted);
    assert_eq!(escapes(&sandbox).len(), 3);
}

#[test]
fn what_is_gone_is_kept_though_another_ref_leads_to_nothing() {
    let sandbox = sandbox();
    let gone = sandbox.git(&["rev-parse", "gone"]);
    sandbox.sh("echo more >> a.txt; git stash -q");
    let entry = sandbox.git(&["rev-parse", "stash"]);
    sandbox.sh("mkdir -p .git/refs/remotes/far; echo 1234567890123456789012345678901234567890 > .git/refs/remotes/far/x");
    sandbox.lane_with("x", "git stash drop -q || true; git branch -C main gone || true");
    let kept = sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/saved"]);
    assert!(kept.contains(&gone) && kept.contains(&entry), "{kept}");
}

#[test]
fn what_is_copied_over_a_branch_that_something_landed_on_is_kept() {
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
    let _ = sandbox.hear("up");
    let _ = sandbox.proq(&["merge", "b"]).ok();
    let landed = sandbox.git(&["rev-parse", "feature"]);
    sandbox.tell("go");
    let _ = sandbox.proq(&["wait", "x"]);
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s", &format!("{landed}^1")]), "the user's");
    let kept = sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/saved"]);
    assert!(kept.contains(&landed), "{kept}");
    let told = escapes(&sandbox);
    assert!(told.len() == 1 && told[0].contains("moved branch feature to "), "{told:?}");
}

#[test]
fn commits_on_no_branch_are_kept_when_their_worktree_is_removed() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "idle"]).ok();
    let aside = sandbox.root().join("by hand");
    sandbox.git(&["worktree", "add", "-q", "--detach", aside.to_str().unwrap()]);
    sandbox.git_in(&sandbox.lane("idle"), &["checkout", "-q", "--detach"]);
    let tips = [sandbox.lane("idle"), aside].map(|dir| {
        sandbox.commit_all_in(&dir, "on no branch");
        sandbox.git_in(&dir, &["commit", "-q", "--amend", "--allow-empty", "-m", dir.to_str().unwrap()]);
        sandbox.git_in(&dir, &["rev-parse", "HEAD"])
    });
    sandbox.lane_with(
        "x",
        "git commit -q --allow-empty -m mine; git worktree remove --force ../idle; git worktree remove --force \"$ROOT/by hand\"",
    );
    run_commands(&sandbox);
    let at = |name: &str| sandbox.git(&["rev-parse", name]);
    assert_eq!(at("idle-kept"), tips[0]);
    let kept = sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/saved"]);
    assert!(tips.iter().all(|tip| kept.contains(tip)), "{kept}");
}

#[test]
fn notes_and_tags_of_files_are_kept_and_what_the_user_rebases_is_not() {
    let sandbox = sandbox();
    sandbox.sh("git notes add -m note; git tag file HEAD:a.txt; git tag tree HEAD^{tree}
        git commit -q --allow-empty -m base");
    let names = ["refs/notes/commits", "refs/tags/file", "refs/tags/tree"];
    let at = |name: &str| sandbox.git(&["rev-parse", name]);
    let was = names.map(at);
    sandbox.lane_with(
        "x",
        "git commit -q --allow-empty -m mine; git='git -c core.hooksPath=/dev/null'
        $git update-ref -d refs/notes/commits; $git tag -d file tree
        env -u GIT_CONFIG_PARAMETERS git -C $ROOT/repo rebase -q --keep-empty main moved",
    );
    let told = escapes(&sandbox);
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told.iter().any(|text| {
        text.contains(" deleted notes commits; what it was is there: git update-ref refs/notes/commits ")
    }));
    run_commands(&sandbox);
    assert_eq!(names.map(at), was);
}
