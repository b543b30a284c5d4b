//! Owns the tests of the gate at an agent's end, with agents that call the hooks that they are given as the real ones do.

use super::profiles::configure;
use super::support::Sandbox;

/// How each finds the line of a hook of this name, what its hooks are called, and what they are told.
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

/// An agent that has to end its turn by the hook, and takes what that says for its next prompt. Gemini does not say that its end
/// was refused before.
const WORK: &str = r#"hook() { printf %s "$2" | sh -c "$(line_of "$1")"; }
    cat > /dev/null; echo 1 > one; hook $ASKED '{"prompt":"do it"}'; n=0; again=false
    while [ $n -lt 9 ]; do
        n=$((n + 1)); answer=$(hook $ENDS "{\"stop_hook_active\":$again}"); printf '%s\n' "$answer" >> "$ROOT/answers"
        case "$answer" in *'"decision":"block"'*) ;; *) break ;; esac
        hook $ASKED "{\"prompt\":$(printf %s "$answer" | sed 's/^.*"reason"://; s/}$//')}"
        test $ENDS = AfterAgent || again=true
        mend
    done"#;

/// What became of a lane whose agent is this one and mends so: the hook's answers.
fn answers(sandbox: &Sandbox, (agent, finds): (&str, &str), mend: &str) -> Vec<String> {
    sandbox.agent(agent, &format!("mend() {{ {mend}; }}\n{finds}\n{WORK}"));
    sandbox.git(&["config", "proq.agent.gate", "true"]);
    let check = "test -f good || { echo there is nothing good; false; }";
    let out = sandbox.proq(&["spawn", "--wait", "-n", "x", "--check", check, agent, "do it"]);
    assert_eq!((out.code, out.stderr.contains("agent.gate")), (0, false), "{}", out.shown());
    let answers = std::fs::read_to_string(sandbox.root().join("answers")).unwrap();
    answers.lines().map(ToOwned::to_owned).collect()
}

fn wants_hooks(sandbox: &Sandbox) {
    configure(sandbox, "[agents.codex]\ncapabilities.hooks = true\ncapabilities.stop_gate = true\n");
}

#[test]
fn an_agent_is_sent_back_with_what_the_check_wrote_and_let_go_when_it_has_mended_it() {
    for agent in [CLAUDE, GEMINI, CODEX] {
        let sandbox = Sandbox::new();
        wants_hooks(&sandbox);
        let answers = answers(&sandbox, agent, "echo 1 > good; git add good; git commit -qm good");
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
fn an_agent_that_never_mends_it_is_sent_back_so_often_and_no_more() {
    for agent in [CLAUDE, GEMINI, CODEX] {
        let sandbox = Sandbox::new();
        wants_hooks(&sandbox);
        let answers = answers(&sandbox, agent, "true");
        let refused = answers.iter().filter(|answer| answer.contains("\"decision\":\"block\"")).count();
        assert_eq!((refused, answers.len()), (3, 4), "{}: {answers:#?}", agent.0);
        assert!(sandbox.proq(&["merge", "x"]).code != 0);
    }
}

#[test]
fn whoever_cannot_be_sent_back_is_named_once_when_it_starts() {
    let sandbox = Sandbox::new();
    for agent in ["codex", "opencode", "tool"] {
        sandbox.agent(agent, "cat > /dev/null; echo 1 > one");
    }
    let warned = |agent: &str| {
        format!(
            "warning: agent.gate has no effect on {agent}: nothing of it asks before it ends; the checks are asked when the \
             lane lands\n"
        )
    };
    let spawn = |agent: &str| sandbox.proq(&["spawn", "--wait", "-n", agent, agent, "do it"]);
    assert!(!spawn("codex").stderr.contains("agent.gate"));
    sandbox.git(&["config", "proq.agent.gate", "true"]);
    for agent in ["opencode", "tool"] {
        let out = spawn(agent);
        assert_eq!(out.stderr.matches(&warned(agent)).count(), 1, "{}", out.shown());
    }
    let run = sandbox.proq(&["run", "codex", "codex", "more", "--wait"]);
    assert!(run.stderr.contains(&warned("codex")), "{}", run.shown());
    // Several attempts are one start.
    let many = sandbox.proq(&["spawn", "--count", "2", "-n", "many", "codex", "do it", "--dry-run"]);
    assert_eq!(many.stderr.matches(&warned("codex")).count(), 1, "{}", many.shown());
    // What does not land has no gate, and a command of one's own is no agent.
    for args in [&["--mode", "answer", "codex", "why?"][..], &["--", "true"]] {
        let out = sandbox.proq(&[&["spawn", "-n", "other", "--dry-run"], args].concat());
        assert!(!out.stderr.contains("agent.gate"), "{}", out.shown());
    }
}

#[test]
fn settings_that_do_not_reach_an_agent_are_named() {
    let sandbox = Sandbox::new();
    for agent in ["claude", "codex", "amp", "tool"] {
        sandbox.agent(agent, "true");
    }
    let spawn = |args: &[&str]| {
        let out = sandbox.proq(&[&["spawn", "-n", "x", "--dry-run"], args].concat());
        assert_eq!(out.code, 0, "{}", out.shown());
        let said: Vec<_> = out.stderr.lines().filter(|line| line.contains("no effect")).collect();
        said.join("\n")
    };
    // A default is nobody's wish.
    assert_eq!(spawn(&["codex", "do it"]), "");
    let warned = |agent: &str, keys: &str| {
        format!("warning: this has no effect on {agent}, whose profile has no way to tell it: {keys}")
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
    // A command is started as it is written.
    assert_eq!(spawn(&["--", "true"]), "");
    sandbox.git(&["config", "proq.agent.maxTurns", "0"]);
    sandbox.git(&["config", "--unset", "proq.agent.model"]);
    assert_eq!(spawn(&["codex", "do it"]), "");
}
