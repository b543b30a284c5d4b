//! Stand-ins for Claude Code that record their calls, and the user's settings for them.

use crate::Sandbox;

/// First event of the fake agent.
pub const SESSION_START: &str =
    r#"{"type":"system","subtype":"init","session_id":"s-1","model":"claude-x","cwd":"/"}"#;

/// Last event of a successful run.
pub const SUCCESS_RESULT: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"All done.","session_id":"s-1","num_turns":2,"total_cost_usd":0.0125,"usage":{"input_tokens":100,"cache_read_input_tokens":20,"cache_creation_input_tokens":5,"output_tokens":50},"modelUsage":{"claude-x":{"inputTokens":100,"cacheReadInputTokens":20,"cacheCreationInputTokens":5,"outputTokens":50,"costUSD":0.0125}}}"#;

/// Result event when the service is overloaded.
pub const OVERLOADED_RESULT: &str = r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":529,"result":"API Error: 529 Overloaded","session_id":"s-1","num_turns":1,"total_cost_usd":0,"usage":{"input_tokens":0,"output_tokens":0}}"#;

/// Returns a repository in which `claude` is a shell script. The script records its calls in files `args.N`,
/// `prompt.N` and `env.N`, N being the number of the call, and prints events with `begin`, `well` and `busy`.
pub fn sandbox_with_claude(script: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let root = sandbox.root();
    let notes = root.join("notes");
    std::fs::create_dir(&notes).unwrap();
    for (name, text) in [("begin", SESSION_START), ("well", SUCCESS_RESULT), ("busy", OVERLOADED_RESULT)] {
        std::fs::write(notes.join(name), format!("{text}\n")).unwrap();
    }
    sandbox.program(
        "claude",
        &format!(
            r#"cd_back=$PWD; notes='{0}'
            if [ "$1" = --version ]; then echo '9.9.9 (Claude Code)'; exit 0; fi
            n=1; while ! mkdir "$notes/$n" 2>/dev/null; do n=$((n + 1)); done
            for word; do printf '%s\n' "$word"; done > "$notes/args.$n"; cat > "$notes/prompt.$n"; env > "$notes/env.$n"
            begin() {{ cat "$notes/begin"; }}; well() {{ cat "$notes/well"; }}; busy() {{ cat "$notes/busy"; }}
            {script}"#,
            notes.display()
        ),
    );
    for (key, value) in [("backoff", "0"), ("linger", "0"), ("stopGrace", "1")] {
        sandbox.git(&["config", &format!("proq.agent.{key}"), value]);
    }
    sandbox
}

/// Start of an agent's script: it records the prompt and prints the session. `say TEXT` prints the last
/// message.
pub const AGENT_PREAMBLE: &str = r#"cat > "$ROOT/told"; printf '%s\n' "$@" > "$ROOT/args"
    say() { printf '{"type":"result","subtype":"success","is_error":false,"session_id":"s-1","result":"%s"}\n' "$1"; }
    echo '{"type":"system","subtype":"init","session_id":"s-1","model":"m"}'"#;

/// Returns a sandbox whose `claude` runs this script.
pub fn with_claude(script: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.program("claude", &format!("{AGENT_PREAMBLE}\n{script}"));
    sandbox
}

/// Writes the user's own configuration file.
pub fn write_user_config(sandbox: &Sandbox, text: &str) {
    let dir = sandbox.root().join("home/.config/git-proq");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("config.toml"), text).unwrap();
}
