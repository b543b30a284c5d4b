//! Tests of landings that a signing program or a hook of the user refuses. Each test runs the hints.

use proq_test_kit::Sandbox;
use proq_test_kit::conflict::hint_commands;

#[test]
fn unsignable_commit_is_refused_with_gpg_reason() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo lane > lane");
    sandbox.program_verbatim(
        "gpg",
        "echo 'gpg: skipped' >&2; echo 'gpg: signing failed: No secret key' >&2; exit 2",
    );
    sandbox.git(&["config", "commit.gpgSign", "true"]);
    // Older versions of git do not pass on what gpg printed.
    let git_output = sandbox.sh("git commit --allow-empty -m signed 2>&1 || :");
    let gpg_error = "gpg: signing failed: No secret key";
    let reason = if git_output.contains(gpg_error) { gpg_error } else { "gpg failed to sign the data" };
    for strategy in ["merge", "squash"] {
        let text = sandbox.proq(&["merge", "one", "--strategy", strategy]).fails(1);
        let line = format!(
            "refused one: cannot sign a commit, which commit.gpgSign asks for: {reason}; nothing was changed"
        );
        assert!(text.contains(&line), "{text}");
        assert_eq!(hint_commands(&sandbox, &text), ["git config commit.gpgSign false"]);
    }
    let refusal = sandbox.proq(&["merge", "one"]).fails(1);
    sandbox.sh(&hint_commands(&sandbox, &refusal)[0]);
    let _ = sandbox.proq(&["merge", "one"]).ok();
}

#[test]
fn ref_hook_refusal_quotes_the_last_line_of_the_hook() {
    for setup in ["true", "git checkout -q --detach"] {
        let sandbox = Sandbox::new();
        sandbox.lane_with_commit("one", "echo lane > lane");
        sandbox.sh(setup);
        let write_hook = |commands: &str| {
            sandbox.sh(&format!(
                "printf '#!/bin/sh\n[ \"$1\" = prepared ] || exit 0\ngrep -q refs/heads/main || exit 0\n{commands}\nexit 1\n' > .git/hooks/reference-transaction
                chmod +x .git/hooks/reference-transaction"
            ));
        };
        write_hook("echo first >&2; echo \"main is frozen\" >&2");
        let text = sandbox.proq(&["merge", "one"]).fails(1);
        let line = "refused one: cannot move 'main': the reference-transaction hook refused it: main is frozen; nothing was changed";
        assert!(text.contains(line), "{text}");
        let hints = hint_commands(&sandbox, &text);
        assert!(sandbox.sh(&hints[0]).contains("main is frozen"), "{hints:?}");
        assert_eq!(hints.len(), 1);
        write_hook("true");
        let text = sandbox.proq(&["merge", "one"]).fails(1);
        assert!(
            text.contains(
                "cannot move 'main': the reference-transaction hook refused it; nothing was changed"
            ),
            "{text}"
        );
        sandbox.sh("rm .git/hooks/reference-transaction");
        let _ = sandbox.proq(&["merge", "one"]).ok();
    }
}

#[test]
fn verbose_hook_output_blocks_no_command() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo lane > lane");
    let write_hook = |last_command: &str| {
        sandbox.sh(&format!(
            "printf '#!/bin/sh\ncat > /dev/null\nhead -c 200000 /dev/zero | tr \"\\0\" x >&2\necho >&2\n{last_command}\n' > .git/hooks/reference-transaction
            chmod +x .git/hooks/reference-transaction"
        ));
    };
    let run_with_timeout = |args: &[&str]| {
        let mut command = sandbox.command("timeout", &sandbox.repo);
        command.args(["-k", "1", "60", env!("CARGO_BIN_EXE_git-proq")]).args(args);
        sandbox.output(command)
    };
    write_hook("exit 0");
    let _ = run_with_timeout(&["preview", "one"]).ok();
    let _ = run_with_timeout(&["preview", "--back"]).ok();
    write_hook("echo frozen >&2; exit 1");
    let text = run_with_timeout(&["merge", "one"]).fails(1);
    assert!(text.contains("the reference-transaction hook refused it"), "{text}");
    write_hook("exit 0");
    let _ = run_with_timeout(&["merge", "one"]).ok();
}

/// Commands that make `proq.toml` something else than a file, and what the refusal of the lane names.
const NO_FILES: [(&str, &str); 4] = [
    ("mkdir proq.toml; echo x > proq.toml/x", "it is a folder"),
    ("ln -s nothing proq.toml", "it is a link"),
    ("ln -s /etc/hostname proq.toml", "it is a link"),
    (
        "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),proq.toml; mkdir proq.toml",
        "it is a submodule",
    ),
];

#[test]
fn settings_file_that_is_no_file_does_not_land() {
    for (script, reason) in NO_FILES {
        let sandbox = Sandbox::new();
        sandbox.lane_with_commit("x", script);
        let text = format!("refused x: its proq.toml is not valid: {reason}, not a regular file\n");
        for args in [&["merge", "x"][..], &["merge", "--dry-run", "x"]] {
            let out = sandbox.proq(args);
            assert!(out.code == 1 && out.stdout.contains(&text), "{}", out.to_text());
        }
        let shown = sandbox.proq(&["preview", "x"]).to_text();
        assert!(shown.contains(&format!("so 'x' cannot be merged: {reason}")), "{shown}");
        let _ = sandbox.proq(&["preview", "--back"]).ok();
    }
}

#[test]
fn repository_whose_settings_are_no_file_works() {
    for (script, _) in NO_FILES {
        let sandbox = Sandbox::new();
        sandbox.lane_with_commit("y", "echo y > y.txt");
        let _ = sandbox.proq(&["merge", "y"]).ok();
        sandbox.sh(&format!("{script}; git add -A; git commit -qm broken"));
        sandbox.lane_with_commit("more", "echo more > more.txt");
        sandbox.lane_with_commit("mend", "git rm -rqf --cached proq.toml; rm -rf proq.toml");
        for args in
            [&["list"][..], &["preview", "more"], &["preview", "--back"], &["merge", "more"], &["undo"]]
        {
            let out = sandbox.proq(args);
            assert!(out.code == 0, "{script}: {}", out.to_text());
        }
        let _ = sandbox.proq(&["merge", "mend"]).ok();
        let listed = sandbox.proq(&["list"]);
        assert!(listed.code == 0 && !listed.stderr.contains("proq.toml"), "{}", listed.to_text());
    }
}
