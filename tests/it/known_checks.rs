//! Owns the tests of what has to be the same for a landing to be known to be good.

use super::support::{Output, Sandbox};

/// Lands `one` with a check, with these variables.
fn merge(sandbox: &Sandbox, check: &str, env: &[(&str, &str)]) -> Output {
    let mut command = sandbox.proq_command(&sandbox.repo, &["merge", "one", "--verify", check]);
    command.envs(env.iter().copied());
    sandbox.output(command)
}

fn sandbox_with_a_lane() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo one > one.txt");
    sandbox
}

#[test]
fn every_variable_that_a_check_gets_counts() {
    let settings = [("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "x.y"), ("GIT_CONFIG_VALUE_0", "1")];
    for (asks, env) in [
        ("test \"$(git config x.y)\" = 1", &settings[..]),
        ("test \"$GIT_AUTHOR_NAME\" = me", &[("GIT_AUTHOR_NAME", "me")]),
        ("test \"$PROQ_FAST\" = 1", &[("PROQ_FAST", "1")]),
        ("test -n \"$DISPLAY\"", &[("DISPLAY", ":0")]),
    ] {
        let sandbox = sandbox_with_a_lane();
        let check = format!("{asks} || test ! -e one.txt");
        let _ = merge(&sandbox, &check, env).ok();
        let _ = sandbox.proq(&["undo"]).ok();
        let said = merge(&sandbox, &check, &[]).fails(4);
        assert!(said.contains("check failed one"), "{asks}: {said}");
        let out = merge(&sandbox, &check, env);
        assert!(out.stderr.contains("known to be good"), "{asks}: {}", out.shown());
    }
}

#[test]
fn what_describes_the_terminal_reaches_no_check_and_does_not_count() {
    let sandbox = sandbox_with_a_lane();
    let check =
        "env | grep -E '^(TMUX|SSH_TTY|TERM_PROGRAM|COLUMNS|GIT_DIR)=' >> $ROOT/seen; echo run >> $ROOT/seen";
    for value in ["a", "b"] {
        let names = ["TMUX", "SSH_TTY", "TERM_PROGRAM", "COLUMNS"];
        let _ = merge(&sandbox, check, &names.map(|name| (name, value))).ok();
        let _ = sandbox.proq(&["undo"]).ok();
    }
    assert_eq!(std::fs::read_to_string(sandbox.root().join("seen")).unwrap(), "run\n");
}

#[test]
fn files_in_another_form_are_checked_anew() {
    for set in [
        "git config core.autocrlf true",
        "echo '*.txt text eol=crlf' >> .git/info/attributes",
        "mkdir -p ~/.config/git; echo '*.txt text eol=crlf' > ~/.config/git/attributes",
    ] {
        let sandbox = sandbox_with_a_lane();
        let check = "! grep -q \"$(printf '\\r')\" one.txt";
        let _ = merge(&sandbox, check, &[]).ok();
        let _ = sandbox.proq(&["undo"]).ok();
        sandbox.sh(set);
        let said = merge(&sandbox, check, &[]).fails(4);
        assert!(said.contains("check failed one"), "{set}: {said}");
    }
}
