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
fn a_budget_that_nobody_can_hold_is_named() {
    let sandbox = Sandbox::new();
    sandbox.agent("codex", "cat > /dev/null; echo 1 > one");
    let spawn = |agent: &str| {
        sandbox.proq(&["spawn", "-n", "x", "--dry-run", "--budget", "1", agent, "do it"]).stderr
    };
    let said = spawn("codex");
    assert!(
        said.contains("codex does not say what it costs without a price for its model in [prices]: its budget cannot hold"),
        "{said}"
    );
    sandbox.agent("claude", "true");
    assert!(!spawn("claude").contains("budget"));
    configure(&sandbox, "[prices]\n'*' = 'input=1, output=1'\n");
    let said = spawn("codex");
    assert!(!said.contains("budget"), "{said}");
}
