//! `git proq shell-init`: the function `proq` in real shells.

use proq_test_kit::Sandbox;

/// Runs a script in a shell after its start-up line, in the main checkout.
fn run_in(sandbox: &Sandbox, shell: &str, script: &str) -> String {
    let (options, start): (&[&str], _) = match shell {
        "fish" => (&["--no-config", "-c"], "git proq shell-init fish | source"),
        "zsh" => (&["-f", "-c"], "eval \"$(git proq shell-init zsh)\""),
        _ => (&["--norc", "-c"], "eval \"$(git proq shell-init bash)\""),
    };
    let mut command = sandbox.command(shell, &sandbox.repo);
    command.args(options).arg(format!("{start}\n{script}"));
    sandbox.output(command).ok()
}

#[test]
fn function_changes_to_lanes_and_back() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "docs"]).ok();
    for shell in ["bash", "zsh", "fish"] {
        if sandbox.sh(&format!("command -v {shell} || true")).is_empty() {
            continue;
        }
        let seen = run_in(
            &sandbox,
            shell,
            "proq cd do\npwd\nproq cd\npwd\nproq open docs --path\nproq cd nope 2>/dev/null || echo failed\npwd",
        );
        let lane = "[ROOT]/repo/.proq-worktrees/docs";
        assert_eq!(seen, format!("{lane}\n[ROOT]/repo\n{lane}\nfailed\n[ROOT]/repo\n"), "{shell}");
    }
}

#[test]
fn bash_completes_lanes_after_cd() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "docs"]).ok();
    let script =
        "COMP_WORDS=(proq cd d); COMP_CWORD=2; COMP_TYPE=9; _proq; printf '%s\\n' \"${COMPREPLY[@]}\"";
    assert_eq!(run_in(&sandbox, "bash", script), "docs\n");
}
