//! Owns the tests of landings that a program of the user's refuses: one that signs, or a hook. Each hint is followed.

use super::support::Sandbox;

/// The commands of an answer's hints.
pub fn hints(sandbox: &Sandbox, text: &str) -> Vec<String> {
    let root = sandbox.root().display().to_string();
    let hints = text.lines().filter_map(|line| line.strip_prefix("hint: "));
    hints.map(|hint| hint.split_once(": ").unwrap().1.replace("[ROOT]", &root)).collect()
}

#[test]
fn a_commit_that_cannot_be_signed_is_refused_in_plain_words() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo lane > lane");
    sandbox.program_as_it_is(
        "gpg",
        "echo 'gpg: skipped' >&2; echo 'gpg: signing failed: No secret key' >&2; exit 2",
    );
    sandbox.git(&["config", "commit.gpgSign", "true"]);
    // Older versions of git keep what gpg printed to themselves.
    let of_git = sandbox.sh("git commit --allow-empty -m signed 2>&1 || :");
    let of_gpg = "gpg: signing failed: No secret key";
    let why = if of_git.contains(of_gpg) { of_gpg } else { "gpg failed to sign the data" };
    for strategy in ["merge", "squash"] {
        let text = sandbox.proq(&["merge", "one", "--strategy", strategy]).fails(1);
        let line = format!(
            "refused one: cannot sign a commit, which commit.gpgSign asks for: {why}; nothing was changed"
        );
        assert!(text.contains(&line), "{text}");
        assert_eq!(hints(&sandbox, &text)[1], "git config commit.gpgSign false");
    }
    let key = sandbox.proq(&["merge", "one"]).fails(1);
    sandbox.sh(&hints(&sandbox, &key)[0]);
    assert_eq!(sandbox.git(&["config", "user.signingKey"]), "KEY");
    sandbox.sh(&hints(&sandbox, &key)[1]);
    let _ = sandbox.proq(&["merge", "one"]).ok();
}

#[test]
fn a_hook_that_refuses_the_base_is_named_with_its_words() {
    for before in ["true", "git checkout -q --detach"] {
        let sandbox = Sandbox::new();
        sandbox.lane_of("one", "echo lane > lane");
        sandbox.sh(before);
        let hook = |words: &str| {
            sandbox.sh(&format!(
                "printf '#!/bin/sh\n[ \"$1\" = prepared ] || exit 0\ngrep -q refs/heads/main || exit 0\n{words}\nexit 1\n' > .git/hooks/reference-transaction
                chmod +x .git/hooks/reference-transaction"
            ));
        };
        hook("echo first >&2; echo \"main is frozen\" >&2");
        let text = sandbox.proq(&["merge", "one"]).fails(1);
        let line = "refused one: cannot move 'main': the reference-transaction hook refused it: main is frozen; nothing was changed";
        assert!(text.contains(line), "{text}");
        let hints = hints(&sandbox, &text);
        assert!(sandbox.sh(&hints[0]).contains("main is frozen"), "{hints:?}");
        assert_eq!(hints.len(), 1);
        hook("true");
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
fn a_hook_that_says_more_than_a_pipe_holds_keeps_nobody_waiting() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo lane > lane");
    let hook = |end: &str| {
        sandbox.sh(&format!(
            "printf '#!/bin/sh\ncat > /dev/null\nhead -c 200000 /dev/zero | tr \"\\0\" x >&2\necho >&2\n{end}\n' > .git/hooks/reference-transaction
            chmod +x .git/hooks/reference-transaction"
        ));
    };
    let runs = |args: &[&str]| {
        let mut command = sandbox.command("timeout", &sandbox.repo);
        command.args(["-k", "1", "60", env!("CARGO_BIN_EXE_git-proq")]).args(args);
        sandbox.output(command)
    };
    hook("exit 0");
    let _ = runs(&["preview", "one"]).ok();
    let _ = runs(&["preview", "--back"]).ok();
    hook("echo frozen >&2; exit 1");
    let text = runs(&["merge", "one"]).fails(1);
    assert!(text.contains("the reference-transaction hook refused it"), "{text}");
    hook("exit 0");
    let _ = runs(&["merge", "one"]).ok();
}
