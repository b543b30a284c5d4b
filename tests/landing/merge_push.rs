//! Tests of pushing a base after a landing.

use std::os::unix::fs::PermissionsExt;

use proq_test_kit::Sandbox;

/// Creates a repository whose `main` was pushed to the bare remote `origin`, with lane `x`.
fn sandbox_with_remote() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh(
        "git init -q --bare -b main ../origin.git; git remote add origin ../origin.git; git push -q -u origin main",
    );
    sandbox.lane_with_commit("x", "echo x > x.txt");
    sandbox
}

/// Returns the refs of the remote.
fn remote_refs(sandbox: &Sandbox) -> String {
    sandbox.git(&["ls-remote", "origin"])
}

/// Pushes a commit to the remote from another clone.
fn push_foreign_commit(sandbox: &Sandbox) {
    sandbox.sh("git clone -q ../origin.git ../other; cd ../other; echo o > o.txt; git add .; git commit -qm other; git push -q");
}

/// Promise: checks/push
#[test]
fn pushes_nothing_by_default() {
    let sandbox = sandbox_with_remote();
    let before = remote_refs(&sandbox);
    let out = sandbox.proq(&["merge", "x", "--json"]).json();
    assert_eq!((before, out["pushed"].is_null()), (remote_refs(&sandbox), true));
}

/// Promise: checks/push
#[test]
fn pushes_only_the_base() {
    let sandbox = sandbox_with_remote();
    sandbox.git(&["config", "remote.origin.push", "refs/heads/*:refs/heads/*"]);
    insta::assert_snapshot!(sandbox.proq(&["merge", "x", "--push", "--no-cleanup"]).to_text().replace(&sandbox.git(&["rev-parse", "--short=8", "main"]), "[ID]"), @r"
    landed x on main ([ID])
    pushed main to origin
    --- code 0
    ");
    let main = sandbox.git(&["rev-parse", "main"]);
    assert_eq!(remote_refs(&sandbox).replace('\t', " "), format!("{main} HEAD\n{main} refs/heads/main"));
    let text = sandbox.proq(&["undo"]).fails(1);
    assert!(text.contains("origin/main") && text.contains("--force"), "{text}");
    assert_eq!(sandbox.git(&["rev-parse", "main"]), main);
}

/// Promise: checks/push
#[test]
fn push_setting_and_no_push_option() {
    let sandbox = sandbox_with_remote();
    sandbox.lane_with_commit("y", "echo y > y.txt");
    sandbox.git(&["config", "proq.merge.push", "true"]);
    let before = remote_refs(&sandbox);
    let _ = sandbox.proq(&["merge", "x", "--no-push"]).ok();
    assert_eq!(before, remote_refs(&sandbox));
    let _ = sandbox.proq(&["merge", "y"]).ok();
    assert!(remote_refs(&sandbox).contains(&sandbox.git(&["rev-parse", "main"])));
    sandbox.write("proq.toml", "[merge]\npush = true\n");
    let text = sandbox.proq(&["merge", "x"]).fails(1);
    assert!(text.contains("may not set merge.push"), "{text}");
}

#[test]
fn dry_run_names_the_remote_and_pushes_nothing() {
    let sandbox = sandbox_with_remote();
    sandbox.sh("echo own > own.txt; git add .; git commit -qm own");
    let before = remote_refs(&sandbox);
    insta::assert_snapshot!(sandbox.proq(&["merge", "x", "--push", "--dry-run"]).to_text(), @r"
    would land x on main
    would push main to origin
    1 file changed, 1 insertion(+)
    --- code 0
    ");
    assert_eq!(before, remote_refs(&sandbox));
}

#[test]
fn base_without_remote_lands_and_reports_it() {
    let sandbox = sandbox_with_remote();
    sandbox.git(&["branch", "--unset-upstream", "main"]);
    let out = sandbox.proq(&["merge", "x", "--push", "--json"]);
    assert_eq!(out.code, 1);
    let out = out.json();
    assert_eq!(out["lanes"][0]["result"], "landed");
    assert_eq!(out["pushed"][0]["done"], false);
    assert_eq!(out["pushed"][0]["message"], "it has no remote");
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s"]), "Merge lane x");
}

/// Promise: checks/push
#[test]
fn never_overwrites_commits_of_the_remote() {
    for refspec in ["", "+refs/heads/main:refs/heads/main", "+refs/heads/*:refs/heads/*"] {
        let sandbox = sandbox_with_remote();
        push_foreign_commit(&sandbox);
        if !refspec.is_empty() {
            sandbox.git(&["config", "remote.origin.push", refspec]);
        }
        let before = remote_refs(&sandbox);
        let text = sandbox.proq(&["merge", "x", "--push"]).fails(1);
        assert_eq!(before, remote_refs(&sandbox));
        assert!(text.contains("not pushed main") && text.contains("what landed stays landed"), "{text}");
        assert!(text.contains("(fetch first)"), "{text}");
        assert_eq!(sandbox.git(&["log", "-1", "--format=%s"]), "Merge lane x");
        assert!(!sandbox.lane_path("x").exists());
        let hint = text.lines().find_map(|line| line.split_once("merge them, then push: ")).unwrap().1;
        assert_eq!(hint, "git pull --no-rebase --no-edit origin main && git push origin main:main");
        // The pushing half of the hint is refused until the pulling half has run.
        sandbox.sh("! git push -q origin main:main 2> /dev/null");
        assert_eq!(before, remote_refs(&sandbox));
        sandbox.sh(hint);
        assert!(remote_refs(&sandbox).contains(&sandbox.git(&["rev-parse", "main"])));
        assert!(sandbox.git(&["log", "--format=%s", "main"]).contains("other"));
    }
}

#[test]
fn pre_push_hook_can_refuse() {
    let sandbox = sandbox_with_remote();
    sandbox
        .write(".git/hooks/pre-push", "#!/bin/sh\ncat > $ROOT/asked\necho \"not on a Friday\" >&2\nexit 1\n");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(sandbox.repo.join(".git/hooks/pre-push"), mode).unwrap();
    let before = remote_refs(&sandbox);
    let text = sandbox.proq(&["merge", "x", "--push"]).fails(1);
    assert!(text.contains("not on a Friday") && text.contains("git push failed"), "{text}");
    assert_eq!(before, remote_refs(&sandbox));
    let hook_input = std::fs::read_to_string(sandbox.root().join("asked")).unwrap();
    assert!(
        hook_input.starts_with(&format!("refs/heads/main {}", sandbox.git(&["rev-parse", "main"]))),
        "{hook_input}"
    );
}

#[test]
fn pushes_where_git_push_would() {
    let sandbox = sandbox_with_remote();
    sandbox.sh("git init -q --bare ../fork.git; git remote add fork ../fork.git; git config branch.main.pushRemote fork");
    let before = remote_refs(&sandbox);
    let _ = sandbox.proq(&["merge", "x", "--push"]).ok();
    let main = sandbox.git(&["rev-parse", "main"]);
    assert!(sandbox.git(&["ls-remote", "fork"]).contains(&main));
    assert_eq!(before, remote_refs(&sandbox));

    let sandbox = sandbox_with_remote();
    sandbox.sh("git branch -m main work");
    let text = sandbox.proq(&["merge", "x", "--onto", "work", "--push"]).fails(1);
    assert!(text.contains("origin/main") && text.contains("git push origin work:main"), "{text}");
    sandbox.lane_with_commit("y", "echo y > y.txt");
    sandbox.git(&["config", "push.default", "upstream"]);
    let _ = sandbox.proq(&["merge", "y", "--push"]).ok();
    assert!(
        remote_refs(&sandbox).ends_with("refs/heads/main")
            && remote_refs(&sandbox).contains(&sandbox.git(&["rev-parse", "work"]))
    );
}

/// Promise: checks/push
#[test]
fn pushes_no_tags_or_other_branches() {
    let sandbox = sandbox_with_remote();
    sandbox
        .sh("git config push.followTags true; git config remote.origin.push '+refs/heads/*:refs/heads/qa/*'");
    sandbox.sh("git tag -a -m 'of an agent' v9 proq/x; git branch mine");
    let _ = sandbox.proq(&["merge", "x", "--push", "--no-cleanup"]).ok();
    let names = sandbox.git(&["ls-remote", "origin", "refs/*"]);
    let names: Vec<&str> = names.lines().map(|line| line.split_once('\t').unwrap().1).collect();
    assert_eq!(names, ["refs/heads/main", "refs/heads/qa/main"]);
    assert!(
        remote_refs(&sandbox)
            .contains(&format!("{}\trefs/heads/qa/main", sandbox.git(&["rev-parse", "main"])))
    );
}

/// Promise: checks/push
#[test]
fn push_default_nothing_pushes_nothing() {
    let sandbox = sandbox_with_remote();
    sandbox.git(&["config", "push.default", "nothing"]);
    let before = remote_refs(&sandbox);
    let text = sandbox.proq(&["merge", "x", "--push"]).fails(1);
    assert!(text.contains("push.default is nothing") && text.contains("git push origin main:main"), "{text}");
    assert_eq!(before, remote_refs(&sandbox));
    sandbox.sh("git push -q origin main:main");
    assert!(remote_refs(&sandbox).contains(&sandbox.git(&["rev-parse", "main"])));
}

/// Promise: checks/push
#[test]
fn hint_pulls_where_the_base_is_checked_out() {
    for (command, pull_command) in [
        ("git worktree add -q ../place main", "git -C '[ROOT]/place' pull"),
        (":", "git switch main && git pull"),
    ] {
        let sandbox = sandbox_with_remote();
        push_foreign_commit(&sandbox);
        sandbox.sh(&format!("git switch -qc elsewhere; {command}"));
        let text = sandbox.proq(&["merge", "x", "--push"]).fails(1);
        assert!(
            text.contains(&format!("then push: {pull_command} --no-rebase --no-edit origin main && ")),
            "{text}"
        );
        let hint = text.lines().find_map(|line| line.split_once("then push: ")).unwrap().1;
        sandbox.sh(&hint.replace("[ROOT]", &sandbox.root().display().to_string()));
        assert!(remote_refs(&sandbox).contains(&sandbox.git(&["rev-parse", "main"])));
    }
}

#[test]
fn pushes_only_bases_that_moved() {
    let sandbox = sandbox_with_remote();
    sandbox.sh("git branch -q side; echo mine > a.txt; git commit -qam mine");
    sandbox.lane_with_commit("clash", "echo theirs > b.txt");
    sandbox.sh_in(
        &sandbox.lane_path("clash"),
        "git reset -q --hard main~1; echo theirs > a.txt; git commit -qam theirs",
    );
    let before = remote_refs(&sandbox);
    let out = sandbox.proq(&["merge", "clash", "--push", "--json"]);
    assert_eq!((out.code, out.json()["pushed"].is_null()), (3, true));
    assert_eq!(before, remote_refs(&sandbox));
}

#[test]
fn push_disables_terminal_prompts() {
    let sandbox = sandbox_with_remote();
    sandbox.git(&["config", "remote.origin.pushurl", "ext::sh -c env% >% $ROOT/env"]);
    sandbox.git(&["config", "protocol.ext.allow", "always"]);
    let _ = sandbox.proq(&["merge", "x", "--push"]).fails(1);
    let env = std::fs::read_to_string(sandbox.root().join("env")).unwrap();
    assert!(env.lines().any(|line| line == "GIT_TERMINAL_PROMPT=0"), "{env}");
}

/// Promise: checks/push
#[test]
fn pushes_to_the_review_ref_only() {
    for rule in ["HEAD:refs/for/main", "@:refs/for/main"] {
        let sandbox = sandbox_with_remote();
        let before = sandbox.git(&["rev-parse", "main"]);
        sandbox.git(&["config", "--add", "remote.origin.push", "refs/heads/rel/*:refs/heads/rel/*"]);
        sandbox.git(&["config", "--add", "remote.origin.push", rule]);
        let _ = sandbox.proq(&["merge", "x", "--push"]).ok();
        let main = sandbox.git(&["rev-parse", "main"]);
        let refs = sandbox.git(&["ls-remote", "origin", "refs/*"]).replace('\t', " ");
        assert_eq!(refs, format!("{main} refs/for/main\n{before} refs/heads/main"), "{rule}");
    }
}

/// The base lands although nothing is pushed, and the command of the hint pushes it.
/// Promise: checks/push
#[test]
fn refused_push_gives_a_hint_that_pushes() {
    for (command, reason) in [
        ("git config remote.origin.push 'refs/heads/rel/*:refs/heads/rel/*'", "remote.origin.push is set"),
        (
            "git config remote.origin.push 'refs/heads/*:refs/heads/*'; git config --add remote.origin.push '^refs/heads/main'",
            "remote.origin.push is set",
        ),
        ("git config remote.origin.push :; git update-ref -d refs/remotes/origin/main", "does not have it"),
        ("git config push.default matching; git update-ref -d refs/remotes/origin/main", "does not have it"),
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
        let sandbox = sandbox_with_remote();
        sandbox.sh(command);
        let before = remote_refs(&sandbox);
        let text = sandbox.proq(&["merge", "x", "--push"]).fails(1);
        assert!(text.contains("landed x on main") && text.contains(reason), "{command}: {text}");
        assert_eq!(before, remote_refs(&sandbox), "{command}");
        let hint =
            text.lines().find_map(|line| line.split_once("hint: push it")?.1.split_once(": ")).unwrap().1;
        sandbox.sh(hint);
        assert!(remote_refs(&sandbox).contains(&sandbox.git(&["rev-parse", "main"])), "{command}: {hint}");
    }
}
