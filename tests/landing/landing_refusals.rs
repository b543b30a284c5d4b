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
