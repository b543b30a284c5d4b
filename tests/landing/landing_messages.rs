//! Messages of the commits by which lanes land: templates, messages of the user, trailers.

use proq_test_kit::Sandbox;
use proq_test_kit::claude::sandbox_with_claude;

/// Returns the message of the newest commit of the base.
fn last_message(sandbox: &Sandbox) -> String {
    sandbox.git(&["log", "-1", "--format=%B", "main"])
}

/// Returns a repository with the lane `x`, which has two commits, on a base that has moved since.
fn lane_with_two_commits() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("x", "echo one > one");
    sandbox.commit_in_lane("x", "echo two > two");
    let _ = sandbox.proq(&["edit", "x", "--title", "Add payments"]).ok();
    sandbox.sh("echo base > base; git add base; git commit -qm base");
    sandbox
}

/// Sets an editor that runs a shell script on the file, `$1`.
fn set_editor(sandbox: &Sandbox, script: &str) {
    let path = sandbox.root().join("editor");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    sandbox.git(&["config", "core.editor", &format!("sh '{}'", path.display())]);
}

#[test]
fn templates_make_the_message() {
    let sandbox = lane_with_two_commits();
    sandbox.git(&["config", "proq.merge.subject", "feat({lane}): {title}"]);
    sandbox.git(&["config", "proq.merge.message", "{subject}\n\nOn {base}{{1}}:\n{commits}\n"]);
    let _ = sandbox.proq(&["merge", "x"]).ok();
    insta::assert_snapshot!(last_message(&sandbox), @r"
    feat(x): Add payments

    On main{1}:
    * work of x
    * work of x

    Proq-Lane: x
    ");
    sandbox.lane_with_commit("y", "echo y > y");
    sandbox.git(&["config", "--unset", "proq.merge.message"]);
    let _ = sandbox.proq(&["merge", "y", "--squash"]).ok();
    insta::assert_snapshot!(last_message(&sandbox), @r"
    feat(y): y

    Proq-Lane: y
    ");
}

#[test]
fn unknown_placeholder_refuses_landing() {
    let sandbox = lane_with_two_commits();
    sandbox.git(&["config", "proq.merge.subject", "{ticket}: {title}"]);
    let before = sandbox.git(&["rev-parse", "main"]);
    insta::assert_snapshot!(sandbox.proq(&["merge", "x"]).to_text(), @r"
    refused x: cannot write the commit message: merge.subject has the unknown placeholder '{ticket}'; known are {agent}, {base}, {body}, {commits}, {lane}, {subject}, {title}
    --- stderr
    hint: see where it is set: git proq config list
    --- code 1
    ");
    assert_eq!(sandbox.git(&["rev-parse", "main"]), before);
    let _ = sandbox.proq(&["merge", "x", "--dry-run"]).fails(1);
    sandbox.assert_healthy();
}

#[test]
fn message_of_the_user_is_taken_literally() {
    let sandbox = lane_with_two_commits();
    sandbox.git(&["config", "proq.merge.subject", "{unknown}"]);
    let _ = sandbox.proq(&["merge", "x", "-m", "fix: {braces}\n\nBody.", "--signoff"]).ok();
    insta::assert_snapshot!(last_message(&sandbox), @r"
    fix: {braces}

    Body.

    Proq-Lane: x
    Signed-off-by: Cal Committer <cal@example.org>
    ");
    sandbox.lane_with_commit("y", "echo y > y");
    sandbox.lane_with_commit("z", "echo z > z");
    insta::assert_snapshot!(sandbox.proq(&["merge", "y", "z", "-m", "both"]).to_text(), @r"
    --- stderr
    error: cannot use one message for 2 lanes: --message needs exactly one lane
    hint: set a template for all landings: git config proq.merge.subject 'feat({lane}): {title}'
    --- code 2
    ");
    insta::assert_snapshot!(sandbox.proq(&["merge", "y", "--rebase", "-m", "new"]).to_text(), @r"
    --- stderr
    error: cannot give 'y' a message: a rebase keeps the messages of its commits
    hint: land it as one commit: git proq merge --squash y
    --- code 1
    ");
    let _ = sandbox.proq(&["merge", "y", "-m", " "]).fails(1);
    let _ = sandbox.proq(&["merge", "--all", "-m", "all"]).fails(2);
    assert_eq!(sandbox.git(&["ls-files"]), "a.txt\nbase\none\ntwo");
}

#[test]
fn editor_edits_the_message_of_each_lane() {
    let sandbox = lane_with_two_commits();
    sandbox.lane_with_commit("y", "echo y > y");
    set_editor(&sandbox, "cat \"$1\" >> \"$ROOT/seen\"; sed -i 's/^Merge lane/Land/' \"$1\"");
    let _ = sandbox.proq(&["merge", "x", "y", "--edit", "--order", "given"]).ok();
    let log = sandbox.git(&["log", "-2", "--first-parent", "--format=%B"]);
    insta::assert_snapshot!(log, @r"
    Land y

    Proq-Lane: y

    Land x: Add payments

    Proq-Lane: x
    ");
    let seen = std::fs::read_to_string(sandbox.root().join("seen")).unwrap();
    assert!(seen.contains("\n# Enter the message"), "{seen}");
}

#[test]
fn emptied_message_or_failed_editor_lands_nothing() {
    let sandbox = lane_with_two_commits();
    let before = sandbox.git(&["rev-parse", "main"]);
    set_editor(&sandbox, "echo '# only a comment' > \"$1\"");
    insta::assert_snapshot!(sandbox.proq(&["merge", "x", "--edit"]).to_text(), @r"
    --- stderr
    error: cannot merge 'x': its commit message is empty
    --- code 1
    ");
    set_editor(&sandbox, "exit 7");
    insta::assert_snapshot!(sandbox.proq(&["merge", "x", "--edit"]).fails(1).replace(&sandbox.root().display().to_string(), "[ROOT]"), @r"
    error: cannot merge 'x': the editor `sh '[ROOT]/editor'` failed (exit code 7)
    hint: choose another editor: git config core.editor vi
    ");
    assert_eq!(sandbox.git(&["rev-parse", "main"]), before);
    assert!(sandbox.lane_path("x").exists());
    assert!(!sandbox.repo.join(".git/proq/lanes/x/landing-message.txt").exists());
    // What was typed is offered again.
    set_editor(&sandbox, "echo 'Typed text' > \"$1\"; exit 7");
    assert!(sandbox.proq(&["merge", "x", "--edit"]).fails(1).contains("is kept in"), "the text is named");
    set_editor(&sandbox, "cp \"$1\" \"$ROOT/offered\"; exit 7");
    let _ = sandbox.proq(&["merge", "x", "--edit"]).fails(1);
    assert!(std::fs::read_to_string(sandbox.root().join("offered")).unwrap().starts_with("Typed text\n"));
    // A dry run opens no editor.
    let _ = sandbox.proq(&["merge", "x", "--edit", "--dry-run"]).ok();
}

/// How a lane is known as landed does not depend on its trailers.
#[test]
fn lane_without_trailers_is_known_as_landed() {
    let sandbox = lane_with_two_commits();
    sandbox.git(&["config", "proq.merge.trailers", "false"]);
    let _ = sandbox.proq(&["merge", "x", "--squash", "--no-cleanup"]).ok();
    insta::assert_snapshot!(last_message(&sandbox), @r"
    Add payments

    * work of x
    * work of x
    ");
    assert_eq!(sandbox.row("x")["state"], "landed");
    let _ = sandbox.proq(&["cleanup"]).ok();
    assert!(!sandbox.lane_path("x").exists());
    sandbox.assert_healthy();
}

#[test]
fn trailers_join_those_of_the_commit() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("x", "echo x > x");
    let message = "git commit -q --amend -m subject -m 'Reviewed-by: Bob <bob@example.org>'";
    sandbox.sh_in(&sandbox.lane_path("x"), message);
    sandbox.sh("echo y > y; git add .; git commit -qm y");
    sandbox.git(&["config", "proq.merge.signoff", "true"]);
    let _ = sandbox.proq(&["merge", "x", "--squash"]).ok();
    insta::assert_snapshot!(last_message(&sandbox), @r"
    subject

    Reviewed-by: Bob <bob@example.org>
    Proq-Lane: x
    Signed-off-by: Cal Committer <cal@example.org>
    ");
}

#[test]
fn agent_is_credited_if_configured() {
    let sandbox = sandbox_with_claude("begin; echo x > x.txt; git add .; git commit -qm x; well");
    sandbox.git(&["config", "proq.merge.coAuthor", "{agent} <agents@example.org>"]);
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "claude", "Add x"]).ok();
    let _ = sandbox.proq(&["merge", "x"]).ok();
    let message = last_message(&sandbox);
    let trailers = "Proq-Lane: x\nProq-Agent: claude\nCo-authored-by: claude <agents@example.org>";
    assert!(message.trim_end().ends_with(trailers), "{message}");
}

#[test]
fn shell_code_is_no_subject() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "pay", "--", "sh", "-c", "echo pay > pay.txt"]).ok();
    let _ = sandbox.proq(&["merge", "pay"]).ok();
    assert_eq!(
        sandbox.git(&["log", "-3", "--topo-order", "--format=%s"]),
        "Merge lane pay\npay: uncommitted changes\nfirst"
    );
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "tip", "--", "touch", "tip.txt"]).ok();
    let _ = sandbox.proq(&["merge", "tip"]).ok();
    assert_eq!(
        sandbox.git(&["log", "-2", "--topo-order", "--format=%s"]),
        "Merge lane tip: touch tip.txt\ntouch tip.txt"
    );
}

#[test]
fn template_without_text_gives_the_usual_message() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.merge.trailers", "false"]);
    for (lane, setting) in [("x", "proq.merge.subject"), ("y", "proq.merge.message")] {
        sandbox.lane_with_commit(lane, &format!("echo {lane} > {lane}"));
        sandbox.git(&["config", setting, "{agent}"]);
        let out = sandbox.proq(&["merge", lane]);
        let key = setting.trim_start_matches("proq.");
        let warning = format!("warning: {key} is empty for '{lane}': the usual text is used\n");
        assert!(out.code == 0 && out.stderr.matches(&warning).count() == 1, "{}", out.to_text());
        assert_eq!(last_message(&sandbox), format!("Merge lane {lane}"));
        sandbox.git(&["config", "--unset", setting]);
    }
}

#[test]
fn rebase_signs_each_commit_off() {
    let sandbox = lane_with_two_commits();
    sandbox.lane_with_commit("y", "echo y > y");
    let planned = sandbox.proq(&["merge", "x", "--rebase", "--signoff", "--dry-run"]).ok();
    assert!(planned.starts_with("would land x on main (rebase)\n"), "{planned}");
    // The second lane is linear on the base, and signed off all the same.
    let _ = sandbox.proq(&["merge", "x", "--rebase", "--signoff"]).ok();
    sandbox.lane_with_commit("z", "echo z > z");
    let _ = sandbox.proq(&["merge", "z", "--rebase", "--signoff"]).ok();
    let log = sandbox.git(&["log", "-3", "--format=%s: %(trailers:separator=%x2C)"]);
    let line = |lane: &str| format!("work of {lane}: Signed-off-by: Cal Committer <cal@example.org>");
    assert_eq!(log, [line("z"), line("x"), line("x")].join("\n"));
}

#[test]
fn edited_message_is_kept_until_the_lane_lands() {
    let sandbox = lane_with_two_commits();
    set_editor(&sandbox, "cp \"$1\" \"$ROOT/seen\"; echo 'A long text' > \"$1\"");
    let refused = sandbox.proq(&["merge", "x", "--edit", "--check", "test ! -e one"]);
    let kept = sandbox.repo.join(".git/proq/lanes/x/landing-message.txt");
    let note = "warning: the message of 'x' is kept in [ROOT]/repo/.git/proq/lanes/x/landing-message.txt";
    assert!(refused.code == 4 && refused.stderr.contains(note), "{}", refused.to_text());
    assert_eq!(std::fs::read_to_string(kept).unwrap(), "A long text\n");
    let _ = sandbox.proq(&["merge", "x", "--edit", "--no-cleanup"]).ok();
    let seen = std::fs::read_to_string(sandbox.root().join("seen")).unwrap();
    assert!(seen.starts_with("A long text\n"), "{seen}");
    assert_eq!(last_message(&sandbox), "A long text");
    assert!(!sandbox.repo.join(".git/proq/lanes/x/landing-message.txt").exists());
}
