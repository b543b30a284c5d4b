//! Tests of the stop gate with test agents that call their hooks as the real ones do.

use proq_test_kit::Sandbox;
use proq_test_kit::claude::write_user_config;

/// Agent name and shell code that sets its hook event names and defines `line_of`, which prints a hook's
/// command.
const CLAUDE: (&str, &str) = (
    "claude",
    r#"ASKED=UserPromptSubmit ENDS=Stop; for word; do test "$last" != --settings || settings=$word; last=$word; done
    line_of() { grep "\"$1\"" "$settings" | sed 's/.*"command": "\(.*\)", "timeout.*/\1/; s/\\"/"/g'; }"#,
);
const GEMINI: (&str, &str) = (
    "gemini",
    r#"ASKED=BeforeAgent ENDS=AfterAgent
    line_of() { grep "\"$1\"" "$GEMINI_CLI_SYSTEM_SETTINGS_PATH" | sed 's/.*"command": "\(.*\)", "timeout.*/\1/; s/\\"/"/g'; }"#,
);
const CODEX: (&str, &str) = (
    "codex",
    r#"ASKED=UserPromptSubmit ENDS=Stop; printf '%s\n' "$@" > "$ROOT/args"
    line_of() { sed -n "s/^hooks\.$1=.*command=\"\(.*\)\",timeout.*/\1/p" "$ROOT/args" | sed 's/\\"/"/g'; }"#,
);

/// Shell script of an agent that calls its stop hook at the end of each turn and takes the hook's reason as
/// its next prompt. Gemini does not report that an earlier stop was refused.
const TURN_LOOP_SCRIPT: &str = r#"hook() { printf %s "$2" | sh -c "$(line_of "$1")"; }
    cat > /dev/null; echo 1 > one; hook $ASKED '{"prompt":"do it"}'; n=0; again=false
    while [ $n -lt 9 ]; do
        n=$((n + 1)); answer=$(hook $ENDS "{\"stop_hook_active\":$again}"); printf '%s\n' "$answer" >> "$ROOT/answers"
        case "$answer" in *'"decision":"block"'*) ;; *) break ;; esac
        hook $ASKED "{\"prompt\":$(printf %s "$answer" | sed 's/^.*"reason"://; s/}$//')}"
        test $ENDS = AfterAgent || again=true
        mend
    done"#;

/// Runs an agent with the stop gate enabled, which runs `fix_command` after each refusal, and returns the
/// answers of its stop hook.
fn run_gated_agent(sandbox: &Sandbox, (agent, hook_setup): (&str, &str), fix_command: &str) -> Vec<String> {
    sandbox.agent(agent, &format!("mend() {{ {fix_command}; }}\n{hook_setup}\n{TURN_LOOP_SCRIPT}"));
    sandbox.git(&["config", "proq.agent.gate", "true"]);
    let check = "test -f good || { echo there is nothing good; false; }";
    let out = sandbox.proq(&["spawn", "--wait", "-n", "x", "--check", check, agent, "do it"]);
    assert_eq!((out.code, out.stderr.contains("agent.gate")), (0, false), "{}", out.to_text());
    let answers = std::fs::read_to_string(sandbox.root().join("answers")).unwrap();
    answers.lines().map(ToOwned::to_owned).collect()
}

fn enable_codex_hooks(sandbox: &Sandbox) {
    write_user_config(sandbox, "[agents.codex]\ncapabilities.hooks = true\ncapabilities.stop_gate = true\n");
}

#[test]
fn gate_blocks_with_check_output_until_it_passes() {
    for agent in [CLAUDE, GEMINI, CODEX] {
        let sandbox = Sandbox::new();
        enable_codex_hooks(&sandbox);
        let answers = run_gated_agent(&sandbox, agent, "echo 1 > good; git add good; git commit -qm good");
        assert_eq!(answers.len(), 2, "{}: {answers:#?}", agent.0);
        assert!(
            answers[0].contains("The lane cannot land yet") && answers[0].contains("there is nothing good")
        );
        assert_eq!(answers[1], "", "{}", agent.0);
        assert_eq!(sandbox.row("x")["state"], "done");
        let _ = sandbox.proq(&["merge", "x"]).ok();
    }
}

#[test]
fn gate_gives_up_after_three_refusals() {
    for agent in [CLAUDE, GEMINI, CODEX] {
        let sandbox = Sandbox::new();
        enable_codex_hooks(&sandbox);
        let answers = run_gated_agent(&sandbox, agent, "true");
        let refused = answers.iter().filter(|answer| answer.contains("\"decision\":\"block\"")).count();
        assert_eq!((refused, answers.len()), (3, 4), "{}: {answers:#?}", agent.0);
        assert!(sandbox.proq(&["merge", "x"]).code != 0);
    }
}

#[test]
fn warns_once_about_agent_without_stop_gate() {
    let sandbox = Sandbox::new();
    for agent in ["codex", "opencode", "tool"] {
        sandbox.agent(agent, "cat > /dev/null; echo 1 > one");
    }
    let warned = |agent: &str| {
        format!(
            "warning: agent.gate has no effect on {agent}, which has no stop hook; the checks run when the \
             lane is merged\n"
        )
    };
    let spawn = |agent: &str| sandbox.proq(&["spawn", "--wait", "-n", agent, agent, "do it"]);
    assert!(!spawn("codex").stderr.contains("agent.gate"));
    sandbox.git(&["config", "proq.agent.gate", "true"]);
    for agent in ["opencode", "tool"] {
        let out = spawn(agent);
        assert_eq!(out.stderr.matches(&warned(agent)).count(), 1, "{}", out.to_text());
    }
    let run = sandbox.proq(&["run", "codex", "codex", "more", "--wait"]);
    assert!(run.stderr.contains(&warned("codex")), "{}", run.to_text());
    // Concurrent attempts warn once for all of them.
    let many = sandbox.proq(&["spawn", "--count", "2", "-n", "many", "codex", "do it", "--dry-run"]);
    assert_eq!(many.stderr.matches(&warned("codex")).count(), 1, "{}", many.to_text());
    // Runs that do not land have no gate, and a plain command is not an agent.
    for args in [&["--mode", "answer", "codex", "why?"][..], &["--", "true"]] {
        let out = sandbox.proq(&[&["spawn", "-n", "other", "--dry-run"], args].concat());
        assert!(!out.stderr.contains("agent.gate"), "{}", out.to_text());
    }
}

#[test]
fn warns_about_settings_agent_cannot_apply() {
    let sandbox = Sandbox::new();
    for agent in ["claude", "codex", "amp", "tool"] {
        sandbox.agent(agent, "true");
    }
    let spawn = |args: &[&str]| {
        let out = sandbox.proq(&[&["spawn", "-n", "x", "--dry-run"], args].concat());
        assert_eq!(out.code, 0, "{}", out.to_text());
        let warnings: Vec<_> = out.stderr.lines().filter(|line| line.contains("no effect")).collect();
        warnings.join("\n")
    };
    // Defaults do not warn, only settings that the user chose.
    assert_eq!(spawn(&["codex", "do it"]), "");
    let warned = |agent: &str, keys: &str| {
        format!(
            "warning: the profile of {agent} does not support these options, so they have no effect: {keys}"
        )
    };
    sandbox.git(&["config", "proq.agent.maxTurns", "50"]);
    assert_eq!(spawn(&["codex", "do it"]), warned("codex", "agent.max_turns"));
    assert_eq!(spawn(&["claude", "do it"]), "");
    sandbox.git(&["config", "proq.agent.model", "some-model"]);
    assert_eq!(spawn(&["codex", "do it"]), warned("codex", "agent.max_turns"));
    assert_eq!(spawn(&["amp", "do it"]), warned("amp", "agent.max_turns, agent.model"));
    sandbox.git(&["config", "proq.agent.promptAppend", "be brief"]);
    assert_eq!(spawn(&["amp", "do it"]), warned("amp", "agent.max_turns, agent.model"));
    let all = "agent.max_turns, agent.model, agent.prompt_append";
    assert_eq!(spawn(&["tool", "do it"]), warned("tool", all));
    // A plain command is started exactly as written, so no setting applies to it.
    assert_eq!(spawn(&["--", "true"]), "");
    sandbox.git(&["config", "proq.agent.maxTurns", "0"]);
    sandbox.git(&["config", "--unset", "proq.agent.model"]);
    assert_eq!(spawn(&["codex", "do it"]), "");
}
