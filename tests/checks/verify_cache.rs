//! Inputs that must be the same for a landing to count as verified already.

use proq_test_kit::{Output, Sandbox};

/// Lands lane `one` with a check and these environment variables.
fn merge(sandbox: &Sandbox, check: &str, env: &[(&str, &str)]) -> Output {
    let mut command = sandbox.proq_command(&sandbox.repo, &["merge", "one", "--verify", check]);
    command.envs(env.iter().copied());
    sandbox.output(command)
}

fn sandbox_with_a_lane() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo one > one.txt");
    sandbox
}

/// Promise: checks/exact-commit
#[test]
fn check_environment_is_part_of_cache_key() {
    let settings = [("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "x.y"), ("GIT_CONFIG_VALUE_0", "1")];
    for (condition, env) in [
        ("test \"$(git config x.y)\" = 1", &settings[..]),
        ("test \"$GIT_AUTHOR_NAME\" = me", &[("GIT_AUTHOR_NAME", "me")]),
        ("test \"$PROQ_FAST\" = 1", &[("PROQ_FAST", "1")]),
        ("test -n \"$DISPLAY\"", &[("DISPLAY", ":0")]),
    ] {
        let sandbox = sandbox_with_a_lane();
        let check = format!("{condition} || test ! -e one.txt");
        let _ = merge(&sandbox, &check, env).ok();
        let _ = sandbox.proq(&["undo"]).ok();
        let output = merge(&sandbox, &check, &[]).fails(4);
        assert!(output.contains("check failed on one"), "{condition}: {output}");
        let out = merge(&sandbox, &check, env);
        assert!(out.stderr.contains("passed before"), "{condition}: {}", out.to_text());
    }
}

/// Promise: checks/exact-commit
#[test]
fn terminal_variables_do_not_reach_checks() {
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

/// Promise: checks/exact-commit
#[test]
fn changed_file_conversion_is_verified_again() {
    for script in [
        "git config core.autocrlf true",
        "echo '*.txt text eol=crlf' >> .git/info/attributes",
        "mkdir -p ~/.config/git; echo '*.txt text eol=crlf' > ~/.config/git/attributes",
    ] {
        let sandbox = sandbox_with_a_lane();
        let check = "! grep -q \"$(printf '\\r')\" one.txt";
        let _ = merge(&sandbox, check, &[]).ok();
        let _ = sandbox.proq(&["undo"]).ok();
        sandbox.sh(script);
        let output = merge(&sandbox, check, &[]).fails(4);
        assert!(output.contains("check failed on one"), "{script}: {output}");
    }
}
