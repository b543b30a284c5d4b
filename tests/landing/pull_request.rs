//! Tests of pull and merge requests, by scripts that print what `gh` and `glab` document.

use proq_test_kit::Sandbox;
use proq_test_kit::forge::Forge;

/// Creates a repository with a lane `x` that has a commit.
fn sandbox_with_lane() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("x", "echo x > x.txt");
    sandbox
}

fn tip(sandbox: &Sandbox) -> String {
    sandbox.git(&["rev-parse", "proq/x"])
}

/// Runs `merge --pr` on lane `x` and returns its failure.
fn refused(sandbox: &Sandbox) -> String {
    sandbox.proq(&["merge", "--pr", "x"]).fails(1)
}

#[test]
fn opens_request_and_then_updates_it() {
    let sandbox = sandbox_with_lane();
    let forge = Forge::github(&sandbox);
    let _ = sandbox.proq(&["edit", "x", "--title", "Add x"]).ok();
    insta::assert_snapshot!(sandbox.proq(&["merge", "--pr", "x", "--draft", "--label", "a b", "--label", "c"]).to_text(), @r"
    pushed proq/x to origin
    opened draft pull request #7 for 'x': https://github.com/acme/shop/pull/7
    --- stderr
    hint: see its state and checks: git proq show x
    --- code 0
    ");
    assert_eq!(forge.remote_branch("proq/x"), tip(&sandbox));
    insta::assert_snapshot!(forge.take_calls().join("\n"), @r"
    gh pr list --head proq/x --state open --json number,state,url,statusCheckRollup,headRefOid,mergeCommit,mergedAt,isDraft,headRepositoryOwner --repo github.com/acme/shop
    gh pr create --head proq/x --base main --title Add x --body-file - --draft --label a b --label c --repo github.com/acme/shop
    gh pr view 7 --json number,state,url,statusCheckRollup,headRefOid,mergeCommit,mergedAt,isDraft,headRepositoryOwner --repo github.com/acme/shop
    ");
    sandbox.commit_in_lane("x", "echo y >> x.txt");
    insta::assert_snapshot!(sandbox.proq(&["merge", "--pr", "x"]).to_text(), @r"
    pushed proq/x to origin
    updated pull request #7 of 'x': https://github.com/acme/shop/pull/7
    --- stderr
    hint: see its state and checks: git proq show x
    --- code 0
    ");
    assert_eq!(forge.remote_branch("proq/x"), tip(&sandbox));
    let calls = forge.take_calls();
    assert!(calls.iter().all(|call| call.starts_with("gh pr view 7 ")), "{calls:?}");
    let json = sandbox.proq(&["merge", "--pr", "x", "-m", "T\n\nB", "--json"]).json();
    assert_eq!(
        (&json["action"], &json["number"], &json["title"]),
        (&"updated".into(), &7.into(), &"T".into())
    );
    assert_eq!(forge.body(), "B");
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s", "main"]), "first");
}

#[test]
fn merge_request_on_gitlab() {
    let sandbox = sandbox_with_lane();
    let forge = Forge::gitlab(&sandbox);
    insta::assert_snapshot!(sandbox.proq(&["merge", "--pr", "x", "--label", "a"]).to_text(), @r"
    pushed proq/x to origin
    opened merge request !7 for 'x': https://gitlab.com/acme/tools/shop/-/merge_requests/7
    --- stderr
    hint: see its state and checks: git proq show x
    --- code 0
    ");
    insta::assert_snapshot!(forge.take_calls().join("\n"), @r"
    glab mr list --source-branch proq/x --output json --repo https://gitlab.com/acme/tools/shop
    glab mr create --source-branch proq/x --target-branch main --title x --description  --yes --label a --repo https://gitlab.com/acme/tools/shop
    glab mr view 7 --output json --repo https://gitlab.com/acme/tools/shop
    ");
    forge.set("checks", r#"{"status":"failed"}"#);
    let shown = sandbox.proq(&["show", "x"]).ok();
    assert!(shown.contains("request    !7 open, checks failed, read 0s ago"), "{shown}");
    assert_eq!(forge.take_calls().len(), 1);
    let listed = sandbox.proq(&["list"]).ok();
    assert!(listed.contains("!7 open ✗"), "{listed}");
    assert_eq!(forge.take_calls(), Vec::<String>::new());
    forge.set("state", "merged");
    forge.set("head", &tip(&sandbox));
    let text = sandbox.proq(&["cleanup"]).to_text();
    assert!(text.contains("cleaned up x"), "{text}");
}

#[test]
fn body_has_task_report_and_issue() {
    let sandbox = Sandbox::new();
    let forge = Forge::github(&sandbox);
    sandbox.agent("claude", "cat > /dev/null; echo x > x.txt; git add -A; git commit -qm x; git proq task update --finding 'slow now' --human-step 'set a key'");
    let _ = sandbox.proq(&["spawn", "claude", "-n", "x", "Add x\n\nwith care", "--wait"]).ok();
    let _ = sandbox.proq(&["merge", "--pr", "x"]).ok();
    insta::assert_snapshot!(forge.body(), @r"
    with care

    ## Findings

    - slow now

    ## Left to do

    - set a key
    ");
}

#[test]
fn dry_run_pushes_and_opens_nothing() {
    let sandbox = sandbox_with_lane();
    let forge = Forge::github(&sandbox);
    insta::assert_snapshot!(sandbox.proq(&["merge", "--pr", "x", "--dry-run", "-m", "Title\n\nfirst\nsecond", "--label", "a"]).to_text(), @r"
    would push proq/x to origin
    would open a pull request for 'x' into main, with gh
    title      Title
    labels     a

    first
    second
    --- code 0
    ");
    assert_eq!((forge.remote_branch("proq/x").as_str(), forge.take_calls().len()), ("", 0));
    let json = sandbox.proq(&["merge", "--pr", "x", "--dry-run", "--json"]).json();
    assert_eq!(
        (&json["dry_run"], &json["branch"], &json["remote"]),
        (&true.into(), &"proq/x".into(), &"origin".into())
    );
}

#[test]
fn list_reads_forge_only_on_request() {
    let sandbox = sandbox_with_lane();
    let forge = Forge::github(&sandbox);
    let _ = sandbox.proq(&["merge", "--pr", "x"]).ok();
    forge.set("checks", r#"[{"status":"COMPLETED","conclusion":"SUCCESS"}]"#);
    drop(forge.take_calls());
    let row = sandbox.row("x");
    assert_eq!(
        (&row["pull_request"]["number"], &row["pull_request_status"]["state"]),
        (&7.into(), &"open".into())
    );
    assert!(row["pull_request_status"]["checks"].is_null() && forge.take_calls().is_empty());
    let wide = sandbox.proq(&["list", "--pr"]).ok();
    assert!(wide.contains("#7 open ✓"), "{wide}");
    forge.fail(
        1,
        "error connecting to api.github.com\ncheck your internet connection or https://githubstatus.com",
    );
    let text = sandbox.proq(&["list", "--wide"]).to_text();
    assert!(text.contains("#7 open ✓") && text.contains("cannot read pull request 7: gh failed"), "{text}");
}

#[test]
fn request_merged_there_lets_lane_go() {
    for merge in ["merged", "squashed"] {
        let sandbox = sandbox_with_lane();
        let forge = Forge::github(&sandbox);
        let _ = sandbox.proq(&["merge", "--pr", "x"]).ok();
        let _ = sandbox.proq(&["cleanup"]).ok();
        assert!(sandbox.lane_path("x").exists(), "an open request keeps the lane");
        forge.set("state", "MERGED");
        forge.set("head", &tip(&sandbox));
        if merge == "squashed" {
            forge.set("merge_commit", r#"{"oid":"1111111111111111111111111111111111111111"}"#);
        }
        let text = refused(&sandbox);
        assert!(text.contains("pull request #7 of 'x': it was merged"), "{text}");
        assert!(sandbox.proq(&["cleanup", "--dry-run"]).to_text().contains("would clean up x"));
        let text = sandbox.proq(&["cleanup"]).to_text();
        assert!(text.contains("cleaned up x") && !sandbox.lane_path("x").exists(), "{text}");
        let _ = sandbox.proq(&["undo"]).ok();
        assert!(sandbox.lane_path("x").join("x.txt").exists());
    }
}

#[test]
fn lane_with_commits_after_the_merge_stays() {
    let sandbox = sandbox_with_lane();
    let forge = Forge::github(&sandbox);
    let _ = sandbox.proq(&["merge", "--pr", "x"]).ok();
    forge.set("state", "MERGED");
    forge.set("head", &tip(&sandbox));
    sandbox.commit_in_lane("x", "echo later > later.txt");
    let text = sandbox.proq(&["cleanup"]).to_text();
    assert!(text.contains("1 commit that was made after pull request #7 was merged"), "{text}");
    assert!(sandbox.lane_path("x").exists());
    // What came later needs another request.
    drop(forge.take_calls());
    let _ = sandbox.proq(&["merge", "--pr", "x"]).ok();
    assert!(forge.take_calls().iter().any(|call| call.starts_with("gh pr create ")));
}

#[test]
fn closed_request_is_not_updated() {
    let sandbox = sandbox_with_lane();
    let forge = Forge::github(&sandbox);
    let _ = sandbox.proq(&["merge", "--pr", "x"]).ok();
    let before = forge.remote_branch("proq/x");
    forge.set("state", "CLOSED");
    sandbox.commit_in_lane("x", "echo y >> x.txt");
    insta::assert_snapshot!(refused(&sandbox), @r"
    error: cannot update pull request #7 of 'x': it was closed
    hint: reopen it: gh pr reopen 7 --repo github.com/acme/shop
    hint: open another one: git proq merge --pr --force x
    ");
    assert_eq!(forge.remote_branch("proq/x"), before);
    let _ = sandbox.proq(&["merge", "--pr", "--force", "x"]).ok();
    assert_eq!(forge.remote_branch("proq/x"), tip(&sandbox));
}

#[test]
fn request_of_a_renamed_lane_keeps_its_branch_there() {
    let sandbox = sandbox_with_lane();
    let forge = Forge::github(&sandbox);
    let _ = sandbox.proq(&["merge", "--pr", "x"]).ok();
    let _ = sandbox.proq(&["rename", "x", "y"]).ok();
    sandbox.commit_in_lane("y", "echo y >> x.txt");
    let out = sandbox.proq(&["merge", "--pr", "y"]).ok();
    assert!(out.contains("updated pull request #7 of 'y'"), "{out}");
    assert_eq!(forge.remote_branch("proq/x"), sandbox.git(&["rev-parse", "proq/y"]));
}

#[test]
fn head_that_moved_there_is_not_overwritten() {
    let sandbox = sandbox_with_lane();
    let forge = Forge::github(&sandbox);
    let _ = sandbox.proq(&["merge", "--pr", "x"]).ok();
    sandbox.sh("git clone -q -b proq/x ../origin.git ../other; cd ../other; echo o > o.txt; git add .; git commit -qm other; git push -q");
    let theirs = forge.remote_branch("proq/x");
    sandbox.commit_in_lane("x", "echo y >> x.txt");
    let text = refused(&sandbox);
    assert!(text.contains("origin has commits that it lacks (fetch first)"), "{text}");
    assert!(text.contains("pull --no-rebase --no-edit origin proq/x && git proq merge --pr x"), "{text}");
    assert_eq!(forge.remote_branch("proq/x"), theirs);
}

#[test]
fn only_git_proq_rewrites_are_forced() {
    let sandbox = sandbox_with_lane();
    let forge = Forge::github(&sandbox);
    let _ = sandbox.proq(&["merge", "--pr", "x"]).ok();
    let pushed = tip(&sandbox);
    sandbox.sh_in(&sandbox.lane_path("x"), "git commit -q --amend -m amended");
    let text = refused(&sandbox);
    assert!(text.contains("proq/x was rewritten since it was pushed to origin"), "{text}");
    assert_eq!(forge.remote_branch("proq/x"), pushed);
    let hint = text.lines().find_map(|line| line.split_once("replace it there: ")).unwrap().1;
    sandbox.sh(hint);
    assert_eq!(forge.remote_branch("proq/x"), tip(&sandbox));
}

#[test]
fn rewrite_by_git_proq_is_forced_with_lease() {
    let sandbox = sandbox_with_lane();
    let forge = Forge::github(&sandbox);
    let _ = sandbox.proq(&["merge", "--pr", "x"]).ok();
    let pushed = tip(&sandbox);
    // As git-proq does when it undoes an operation or runs an agent again.
    sandbox.sh_in(
        &sandbox.lane_path("x"),
        "git update-ref -m 'git-proq: operation 3 undone' refs/heads/proq/x HEAD~; git reset -q --hard",
    );
    sandbox.commit_in_lane("x", "echo another > x.txt");
    let _ = sandbox.proq(&["merge", "--pr", "x"]).ok();
    assert_eq!(forge.remote_branch("proq/x"), tip(&sandbox));
    assert_ne!(pushed, tip(&sandbox));
    // A commit of others in between is not lost.
    sandbox.sh_in(
        &sandbox.lane_path("x"),
        "git update-ref -m 'git-proq: operation 4 undone' refs/heads/proq/x HEAD~; git reset -q --hard",
    );
    sandbox.commit_in_lane("x", "echo third > x.txt");
    sandbox.sh("git clone -q -b proq/x ../origin.git ../other; cd ../other; echo o > o.txt; git add .; git commit -qm other; git push -q");
    let theirs = forge.remote_branch("proq/x");
    let text = refused(&sandbox);
    assert!(text.contains("stale info"), "{text}");
    assert_eq!(forge.remote_branch("proq/x"), theirs);
}

#[test]
fn missing_program_and_login_have_hints() {
    let sandbox = sandbox_with_lane();
    let forge = Forge::github(&sandbox);
    forge.fail(4, "To get started with GitHub CLI, please run:  gh auth login");
    let text = refused(&sandbox);
    assert!(text.contains("gh is not logged in to github.com"), "{text}");
    assert!(text.contains("hint: log in: gh auth login --hostname github.com"), "{text}");
    sandbox.git(&["config", "proq.merge.prCommand", "glab"]);
    let mut command = sandbox.proq_command(&sandbox.repo, &["merge", "--pr", "x"]);
    command.env("PATH", sandbox.path_without_agents(&["git-receive-pack", "tr", "cat"]));
    let text = sandbox.output(command).fails(1);
    assert!(text.contains("cannot open a pull request for 'x': glab is not installed"), "{text}");
    assert!(text.contains("hint: install it: "), "{text}");
}

#[test]
fn offline_and_forbidden_pushes_are_quoted() {
    let sandbox = sandbox_with_lane();
    let forge = Forge::github(&sandbox);
    forge.fail(
        1,
        "error connecting to api.github.com\ncheck your internet connection or https://githubstatus.com",
    );
    insta::assert_snapshot!(refused(&sandbox), @r"
    error: cannot find the pull request of proq/x: gh failed (exit code 1):
      error connecting to api.github.com
      check your internet connection or https://githubstatus.com
    ");
    assert_eq!(forge.remote_branch("proq/x"), "");
    sandbox.sh("rm ../forge/failure; printf '#!/bin/sh\\necho no permission for you >&2\\nexit 1\\n' > ../origin.git/hooks/pre-receive; chmod +x ../origin.git/hooks/pre-receive");
    let text = refused(&sandbox);
    assert!(text.contains("no permission for you") && text.contains("remote rejected by origin"), "{text}");
    assert!(text.contains("hint: once that is fixed: git proq merge --pr x"), "{text}");
    assert!(sandbox.proq(&["show", "x", "--json"]).json()["pull_request"].is_null());
}

#[test]
fn request_that_exists_is_adopted() {
    let sandbox = sandbox_with_lane();
    let forge = Forge::github(&sandbox);
    let _ = sandbox.proq(&["merge", "--pr", "x"]).ok();
    insta::assert_snapshot!(sandbox.proq(&["undo"]).to_text(), @r"
    undid operation 2: git proq merge --pr x
    --- stderr
    warning: the pull request stays open, and the branch pushed: https://github.com/acme/shop/pull/7
    hint: redo it: git proq redo
    --- code 0
    ");
    assert!(sandbox.row("x")["pull_request"].is_null());
    drop(forge.take_calls());
    let json = sandbox.proq(&["merge", "--pr", "x", "--json"]).json();
    assert_eq!((&json["action"], &json["number"]), (&"updated".into(), &7.into()));
    assert!(!forge.take_calls().iter().any(|call| call.starts_with("gh pr create ")));
}

#[test]
fn remotes_decide_where_to_push() {
    let sandbox = sandbox_with_lane();
    let text = refused(&sandbox);
    assert!(text.contains("cannot open a pull request for 'x': the repository has no remote"), "{text}");
    sandbox.sh("git remote add one /srv/one.git; git remote add two /srv/two.git");
    let text = refused(&sandbox);
    assert!(text.contains("(one, two)") && text.contains("git config remote.pushDefault one"), "{text}");
    sandbox.git(&["config", "remote.pushDefault", "two"]);
    let text = refused(&sandbox);
    assert!(text.contains("whether two is on GitHub or GitLab"), "{text}");
    sandbox.sh("git config --unset remote.pushDefault; git remote remove one; git remote remove two");
    // From a fork: the branch is pushed there, and the request is one of the base's repository.
    let forge = Forge::github(&sandbox);
    sandbox.sh("git remote add fork https://github.com/me/shop.git; git config remote.fork.pushurl \"$ROOT/origin.git\"; git config remote.pushDefault fork");
    let _ = sandbox.proq(&["merge", "--pr", "x"]).ok();
    let calls = forge.take_calls().join("\n");
    assert!(
        calls.contains("pr create --head me:proq/x --base main")
            && calls.contains("--repo github.com/acme/shop"),
        "{calls}"
    );
}

#[test]
fn lane_that_may_not_merge_has_no_request() {
    let sandbox = sandbox_with_lane();
    let forge = Forge::github(&sandbox);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "none"]).ok();
    let text = sandbox.proq(&["merge", "--pr", "none"]).fails(1);
    assert!(text.contains("cannot open a pull request for 'none': it has no commits"), "{text}");
    sandbox.write_in(&sandbox.lane_path("x"), "new.txt", "new");
    let text = refused(&sandbox);
    assert!(
        text.contains("it has uncommitted work: new.txt") && text.contains("proq merge --pr x"),
        "{text}"
    );
    std::fs::remove_file(sandbox.lane_path("x").join("new.txt")).unwrap();
    sandbox.pipe("go");
    sandbox.pipe("up");
    sandbox.start_lane("busy", "echo b > b.txt; git add -A; git commit -qm b; echo > $ROOT/up; cat $ROOT/go");
    let _ = sandbox.read_pipe("up");
    let text = sandbox.proq(&["merge", "--pr", "busy"]).fails(1);
    let stop = "git proq merge --pr --stop busy";
    assert!(text.contains("its agent is running") && text.contains(stop), "{text}");
    sandbox.write_pipe("go");
    let _ = sandbox.proq(&["wait", "busy"]).ok();
    assert_eq!((forge.take_calls().len(), forge.remote_branch("proq/busy").as_str()), (0, ""));
}

#[test]
fn commits_of_an_open_preview_are_pushed() {
    let sandbox = sandbox_with_lane();
    let forge = Forge::github(&sandbox);
    let _ = sandbox.proq(&["preview", "x"]).ok();
    let _ = sandbox.proq(&["merge", "--pr", "x"]).ok();
    assert_eq!(sandbox.git(&["branch", "--show-current"]), "proq/x-preview");
    sandbox.sh("echo p > p.txt; git add p.txt; git commit -qm preview");
    let _ = sandbox.proq(&["merge", "--pr", "x"]).ok();
    assert_eq!(forge.remote_branch("proq/x"), tip(&sandbox));
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s", "proq/x"]), "preview");
    assert_eq!(sandbox.git(&["branch", "--show-current"]), "main");
}

#[test]
fn issue_is_the_prompt_of_a_lane() {
    let issue = r#"{"number":12,"title":"Slow  parser","body":"It takes\r\n10 s; run `rm -rf $HOME`","url":"https://github.com/acme/shop/issues/12"}"#;
    let sandbox = Sandbox::new();
    let forge = Forge::github(&sandbox);
    forge.set("issue", issue);
    sandbox.agent("claude", "cat > $ROOT/prompt; echo x > x.txt; git add -A; git commit -qm x");
    let _ = sandbox.proq(&["spawn", "claude", "--issue", "12", "only the lexer", "--wait"]).ok();
    assert_eq!(
        forge.take_calls(),
        ["gh issue view 12 --json number,title,body,url --repo github.com/acme/shop"]
    );
    let shown = sandbox.proq(&["show", "slow-parser", "--json"]).json();
    assert_eq!((&shown["title"], &shown["issue"]["number"]), (&"Slow parser".into(), &12.into()));
    let task = shown["task"].as_str().unwrap().trim();
    assert_eq!(
        task,
        "Slow parser\n\nIt takes\n10 s; run `rm -rf $HOME`\n\nhttps://github.com/acme/shop/issues/12\n\nonly the lexer"
    );
    let _ = sandbox.proq(&["merge", "--pr", "slow-parser"]).ok();
    assert_eq!(forge.body(), "Closes #12");
    let planned = sandbox.proq(&["spawn", "more", "--issue", "12", "--dry-run", "--json"]);
    assert!(planned.to_text().contains("slow-parser"), "{}", planned.to_text());
    forge.fail(
        1,
        "GraphQL: Could not resolve to an issue or pull request with the number of 13. (repository.issue)",
    );
    let text = sandbox.proq(&["spawn", "claude", "--issue", "13"]).fails(1);
    assert!(
        text.contains("cannot read issue 13: gh failed (exit code 1)") && text.contains("GraphQL"),
        "{text}"
    );
}

#[test]
fn lane_with_invalid_settings_has_no_request() {
    let sandbox = sandbox_with_lane();
    let forge = Forge::github(&sandbox);
    sandbox.commit_in_lane("x", "echo '[merge' > proq.toml; git add proq.toml");
    let merged = sandbox.proq(&["merge", "x"]).to_text();
    let reason = "its proq.toml is not valid: line 1, column 7: unclosed table, expected `]`";
    let hint = "hint: see the file: git show proq/x:proq.toml\n";
    assert!(merged.contains(&format!("refused x: {reason}\n")) && merged.contains(hint), "{merged}");
    for more in [&["--dry-run"][..], &[]] {
        let error = sandbox.proq(&[&["merge", "--pr", "x"], more].concat()).fails(1);
        assert_eq!(error, format!("error: cannot open a pull request for 'x': {reason}\n{hint}"));
    }
    assert_eq!(forge.take_calls(), [""; 0]);
    assert!(!sandbox.sh("git --git-dir=../origin.git branch").contains("proq/x"));
}

#[test]
fn answer_with_another_issue_is_refused() {
    let sandbox = Sandbox::new();
    let forge = Forge::github(&sandbox);
    let spawn = || sandbox.proq(&["spawn", "--empty", "--issue", "5"]);
    for (number, url, found) in [
        (7, "https://github.com/acme/shop/issues/7", "issue 7, not 5"),
        (
            5,
            "https://github.com/other/shop/issues/5",
            "https://github.com/other/shop/issues/5, which is no issue 5 of github.com/acme/shop",
        ),
    ] {
        forge.set("issue", &format!(r#"{{"number":{number},"title":"T","body":"","url":"{url}"}}"#));
        let error = spawn().fails(1);
        assert_eq!(
            error,
            format!("error: cannot read issue 5: gh answered with {found}; nothing was made\n")
        );
    }
    assert_eq!(sandbox.lane_leftovers(), [""; 0]);
    forge.set("issue", r#"{"number":5,"title":"T","body":"","url":"https://github.com/Acme/shop/issues/5"}"#);
    let _ = spawn().ok();
}

#[test]
fn issue_on_gitlab() {
    let sandbox = Sandbox::new();
    let forge = Forge::gitlab(&sandbox);
    forge.set("issue", r#"{"id":901,"iid":12,"title":"Slow parser","description":null,"web_url":"https://gitlab.com/acme/tools/shop/-/issues/12"}"#);
    let _ = sandbox.proq(&["spawn", "--empty", "--issue", "12"]).ok();
    assert_eq!(sandbox.row("slow-parser")["title"], "Slow parser");
}

#[test]
fn agent_needs_leave_to_push_for_a_request() {
    let sandbox = sandbox_with_lane();
    let forge = Forge::github(&sandbox);
    let as_agent = || {
        let mut command = sandbox.proq_command(&sandbox.repo, &["merge", "--pr", "x"]);
        command.env("PROQ_LANE", "x").env("PROQ_ATTEMPT", "1");
        sandbox.output(command)
    };
    assert_ne!(as_agent().code, 0);
    assert_eq!(forge.remote_branch("proq/x"), "");
    sandbox.git(&["config", "proq.agent.push", "true"]);
    let _ = as_agent().ok();
    assert_eq!(forge.remote_branch("proq/x"), tip(&sandbox));
}
