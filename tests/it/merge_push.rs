//! Owns the tests of pushing what landed.

use std::os::unix::fs::PermissionsExt;

use super::support::Sandbox;

/// A repository whose `main` was pushed to the bare `origin`, with lane `x`.
fn pushed() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh(
        "git init -q --bare -b main ../origin.git; git remote add origin ../origin.git; git push -q -u origin main",
    );
    sandbox.lane_of("x", "echo x > x.txt");
    sandbox
}

/// What the remote has.
fn there(sandbox: &Sandbox) -> String {
    sandbox.git(&["ls-remote", "origin"])
}

/// Somebody else pushes a commit.
fn somebody_pushes(sandbox: &Sandbox) {
    sandbox.sh("git clone -q ../origin.git ../other; cd ../other; echo o > o.txt; git add .; git commit -qm other; git push -q");
}

#[test]
fn nothing_is_pushed_unless_it_is_asked_for() {
    let sandbox = pushed();
    let before = there(&sandbox);
    let out = sandbox.proq(&["merge", "x", "--json"]).json();
    assert_eq!((before, out["pushed"].is_null()), (there(&sandbox), true));
}

#[test]
fn the_base_is_pushed_and_nothing_of_git_proqs() {
    let sandbox = pushed();
    sandbox.git(&["config", "remote.origin.push", "refs/heads/*:refs/heads/*"]);
    insta::assert_snapshot!(sandbox.proq(&["merge", "x", "--push", "--no-cleanup"]).shown().replace(&sandbox.git(&["rev-parse", "--short=8", "main"]), "[ID]"), @r"
    landed x on main ([ID])
    pushed main to origin
    --- code 0
    ");
    let main = sandbox.git(&["rev-parse", "main"]);
    assert_eq!(there(&sandbox).replace('\t', " "), format!("{main} HEAD\n{main} refs/heads/main"));
    let text = sandbox.proq(&["undo"]).fails(1);
    assert!(text.contains("origin/main") && text.contains("--force"), "{text}");
    assert_eq!(sandbox.git(&["rev-parse", "main"]), main);
}

#[test]
fn the_setting_pushes_too_and_a_flag_leaves_it_out() {
    let sandbox = pushed();
    sandbox.lane_of("y", "echo y > y.txt");
    sandbox.git(&["config", "proq.merge.push", "true"]);
    let before = there(&sandbox);
    let _ = sandbox.proq(&["merge", "x", "--no-push"]).ok();
    assert_eq!(before, there(&sandbox));
    let _ = sandbox.proq(&["merge", "y"]).ok();
    assert!(there(&sandbox).contains(&sandbox.git(&["rev-parse", "main"])));
    sandbox.write("proq.toml", "[merge]\npush = true\n");
    let text = sandbox.proq(&["list"]).fails(1);
    assert!(text.contains("may not set merge.push"), "{text}");
}

#[test]
fn a_dry_run_says_where_to_and_pushes_nothing() {
    let sandbox = pushed();
    sandbox.sh("echo own > own.txt; git add .; git commit -qm own");
    let before = there(&sandbox);
    insta::assert_snapshot!(sandbox.proq(&["merge", "x", "--push", "--dry-run"]).shown(), @r"
    would land x on main
    would push main to origin
    --- code 0
    ");
    assert_eq!(before, there(&sandbox));
}

#[test]
fn a_base_without_a_remote_lands_and_says_so() {
    let sandbox = pushed();
    sandbox.git(&["branch", "--unset-upstream", "main"]);
    let out = sandbox.proq(&["merge", "x", "--push", "--json"]);
    assert_eq!(out.code, 1);
    let out = out.json();
    assert_eq!(out["lanes"][0]["result"], "landed");
    assert_eq!(out["pushed"][0]["done"], false);
    assert_eq!(out["pushed"][0]["message"], "it has no remote to be pushed to");
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s"]), "Merge lane x");
}

#[test]
fn what_the_remote_has_is_never_pushed_over() {
    for force in ["", "+refs/heads/main:refs/heads/main", "+refs/heads/*:refs/heads/*"] {
        let sandbox = pushed();
        somebody_pushes(&sandbox);
        if !force.is_empty() {
            sandbox.git(&["config", "remote.origin.push", force]);
        }
        let before = there(&sandbox);
        let text = sandbox.proq(&["merge", "x", "--push"]).fails(1);
        assert_eq!(before, there(&sandbox));
        assert!(text.contains("not pushed main") && text.contains("what landed stays landed"), "{text}");
        assert!(text.contains("(fetch first)"), "{text}");
        assert_eq!(sandbox.git(&["log", "-1", "--format=%s"]), "Merge lane x");
        assert!(!sandbox.lane("x").exists());
        let hint =
            text.lines().find_map(|line| line.split_once("bring them together, then push: ")).unwrap().1;
        assert_eq!(hint, "git pull --no-rebase --no-edit origin main && git push origin main:main");
        // The half that pushes is refused as long as the other one was left out.
        sandbox.sh("! git push -q origin main:main 2> /dev/null");
        assert_eq!(before, there(&sandbox));
        sandbox.sh(hint);
        assert!(there(&sandbox).contains(&sandbox.git(&["rev-parse", "main"])));
        assert!(sandbox.git(&["log", "--format=%s", "main"]).contains("other"));
    }
}

#[test]
fn the_pre_push_hook_has_its_say() {
    let sandbox = pushed();
    sandbox
        .write(".git/hooks/pre-push", "#!/bin/sh\ncat > $ROOT/asked\necho \"not on a Friday\" >&2\nexit 1\n");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(sandbox.repo.join(".git/hooks/pre-push"), mode).unwrap();
    let before = there(&sandbox);
    let text = sandbox.proq(&["merge", "x", "--push"]).fails(1);
    assert!(text.contains("not on a Friday") && text.contains("git push failed"), "{text}");
    assert_eq!(before, there(&sandbox));
    let asked = std::fs::read_to_string(sandbox.root().join("asked")).unwrap();
    assert!(
        asked.starts_with(&format!("refs/heads/main {}", sandbox.git(&["rev-parse", "main"]))),
        "{asked}"
    );
}

#[test]
fn it_goes_where_git_push_would_and_not_where_it_would_not() {
    let sandbox = pushed();
    sandbox.sh("git init -q --bare ../fork.git; git remote add fork ../fork.git; git config branch.main.pushRemote fork");
    let before = there(&sandbox);
    let _ = sandbox.proq(&["merge", "x", "--push"]).ok();
    let main = sandbox.git(&["rev-parse", "main"]);
    assert!(sandbox.git(&["ls-remote", "fork"]).contains(&main));
    assert_eq!(before, there(&sandbox));

    let sandbox = pushed();
    sandbox.sh("git branch -m main work");
    let text = sandbox.proq(&["merge", "x", "--onto", "work", "--push"]).fails(1);
    assert!(text.contains("origin/main") && text.contains("git push origin work:main"), "{text}");
    sandbox.lane_of("y", "echo y > y.txt");
    sandbox.git(&["config", "push.default", "upstream"]);
    let _ = sandbox.proq(&["merge", "y", "--push"]).ok();
    assert!(
        there(&sandbox).ends_with("refs/heads/main")
            && there(&sandbox).contains(&sandbox.git(&["rev-parse", "work"]))
    );
}

#[test]
fn no_setting_pushes_tags_or_other_branches_along() {
    let sandbox = pushed();
    sandbox
        .sh("git config push.followTags true; git config remote.origin.push '+refs/heads/*:refs/heads/qa/*'");
    sandbox.sh("git tag -a -m 'of an agent' v9 proq/x; git branch mine");
    let _ = sandbox.proq(&["merge", "x", "--push", "--no-cleanup"]).ok();
    let names = sandbox.git(&["ls-remote", "origin", "refs/*"]);
    let names: Vec<&str> = names.lines().map(|line| line.split_once('\t').unwrap().1).collect();
    assert_eq!(names, ["refs/heads/main", "refs/heads/qa/main"]);
    assert!(
        there(&sandbox).contains(&format!("{}\trefs/heads/qa/main", sandbox.git(&["rev-parse", "main"])))
    );
}

#[test]
fn where_git_push_pushes_nothing_nothing_is_pushed() {
    let sandbox = pushed();
    sandbox.git(&["config", "push.default", "nothing"]);
    let before = there(&sandbox);
    let text = sandbox.proq(&["merge", "x", "--push"]).fails(1);
    assert!(text.contains("push.default is nothing") && text.contains("git push origin main:main"), "{text}");
    assert_eq!(before, there(&sandbox));
    sandbox.sh("git push -q origin main:main");
    assert!(there(&sandbox).contains(&sandbox.git(&["rev-parse", "main"])));
}

#[test]
fn a_base_that_is_not_checked_out_here_is_brought_together_where_it_is() {
    for (place, git) in [
        ("git worktree add -q ../place main", "git -C '[ROOT]/place' pull"),
        (":", "git switch main && git pull"),
    ] {
        let sandbox = pushed();
        somebody_pushes(&sandbox);
        sandbox.sh(&format!("git switch -qc elsewhere; {place}"));
        let text = sandbox.proq(&["merge", "x", "--push"]).fails(1);
        assert!(text.contains(&format!("then push: {git} --no-rebase --no-edit origin main && ")), "{text}");
        let hint = text.lines().find_map(|line| line.split_once("then push: ")).unwrap().1;
        sandbox.sh(&hint.replace("[ROOT]", &sandbox.root().display().to_string()));
        assert!(there(&sandbox).contains(&sandbox.git(&["rev-parse", "main"])));
    }
}

#[test]
fn only_bases_that_something_landed_on_are_pushed() {
    let sandbox = pushed();
    sandbox.sh("git branch -q side; echo mine > a.txt; git commit -qam mine");
    sandbox.lane_of("clash", "echo theirs > b.txt");
    sandbox.sh_in(
        &sandbox.lane("clash"),
        "git reset -q --hard main~1; echo theirs > a.txt; git commit -qam theirs",
    );
    let before = there(&sandbox);
    let out = sandbox.proq(&["merge", "clash", "--push", "--json"]);
    assert_eq!((out.code, out.json()["pushed"].is_null()), (3, true));
    assert_eq!(before, there(&sandbox));
}

#[test]
fn git_asks_nobody_where_nobody_is() {
    let sandbox = pushed();
    sandbox.git(&["config", "remote.origin.pushurl", "ext::sh -c env% >% $ROOT/env"]);
    sandbox.git(&["config", "protocol.ext.allow", "always"]);
    let _ = sandbox.proq(&["merge", "x", "--push"]).fails(1);
    let env = std::fs::read_to_string(sandbox.root().join("env")).unwrap();
    assert!(env.lines().any(|line| line == "GIT_TERMINAL_PROMPT=0"), "{env}");
}

#[test]
fn a_base_that_git_push_sends_for_review_goes_there_and_nowhere_else() {
    for rule in ["HEAD:refs/for/main", "@:refs/for/main"] {
        let sandbox = pushed();
        let before = sandbox.git(&["rev-parse", "main"]);
        sandbox.git(&["config", "--add", "remote.origin.push", "refs/heads/rel/*:refs/heads/rel/*"]);
        sandbox.git(&["config", "--add", "remote.origin.push", rule]);
        let _ = sandbox.proq(&["merge", "x", "--push"]).ok();
        let main = sandbox.git(&["rev-parse", "main"]);
        let refs = sandbox.git(&["ls-remote", "origin", "refs/*"]).replace('\t', " ");
        assert_eq!(refs, format!("{main} refs/for/main\n{before} refs/heads/main"), "{rule}");
    }
}

/// The base lands, and the hint pushes it.
#[test]
fn what_git_push_would_not_push_is_not_pushed_and_the_hint_does() {
    for (set, why) in [
        ("git config remote.origin.push 'refs/heads/rel/*:refs/heads/rel/*'", "remote.origin.push is set"),
        (
            "git config remote.origin.push 'refs/heads/*:refs/heads/*'; git config --add remote.origin.push '^refs/heads/main'",
            "remote.origin.push is set",
        ),
        (
            "git config remote.origin.push :; git update-ref -d refs/remotes/origin/main",
            "not known to have it",
        ),
        (
            "git config push.default matching; git update-ref -d refs/remotes/origin/main",
            "not known to have it",
        ),
        ("git config --unset branch.main.merge", "it has no upstream"),
        ("git config --add branch.main.merge refs/heads/other", "more than one upstream"),
        (
            "git config push.default upstream; git remote add fork ../fork.git; git config branch.main.remote fork; \
             git config branch.main.pushRemote origin",
            "origin is not its upstream's remote",
        ),
        ("git config push.default nothing", "push.default is nothing"),
        ("git config remote.origin.mirror true; git config push.default nothing", "origin is a mirror"),
    ] {
        let sandbox = pushed();
        sandbox.sh(set);
        let before = there(&sandbox);
        let text = sandbox.proq(&["merge", "x", "--push"]).fails(1);
        assert!(text.contains("landed x on main") && text.contains(why), "{set}: {text}");
        assert_eq!(before, there(&sandbox), "{set}");
        let hint =
            text.lines().find_map(|line| line.split_once("hint: push it")?.1.split_once(": ")).unwrap().1;
        sandbox.sh(hint);
        assert!(there(&sandbox).contains(&sandbox.git(&["rev-parse", "main"])), "{set}: {hint}");
    }
}
