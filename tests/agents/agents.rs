//! Tests of `git proq agents`: installed programs, their versions, and their capabilities.

use proq_test_kit::Sandbox;
use proq_test_kit::waiting::wait_for;

/// Installs a program that prints `version_text` and records each call.
fn install(sandbox: &Sandbox, name: &str, version_text: &str) {
    sandbox.program(name, &format!("echo \"$1\" >> \"$ROOT/{name}-asked\"; echo '{version_text}'"));
}

fn version_query_count(sandbox: &Sandbox, name: &str) -> usize {
    std::fs::read_to_string(sandbox.root().join(format!("{name}-asked"))).unwrap_or_default().lines().count()
}

/// Collapses column padding, whose width depends on the path of the sandbox.
fn collapse_columns(table: &str) -> String {
    let lines = table.lines().map(|line| {
        let cells: Vec<&str> = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
        cells.join("  ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn row(sandbox: &Sandbox, name: &str) -> serde_json::Value {
    let json = sandbox.proq(&["agents", "--json"]).json();
    json["agents"].as_array().unwrap().iter().find(|a| a["name"] == name).unwrap().clone()
}

#[test]
fn lists_agents_with_versions() {
    let sandbox = Sandbox::new();
    install(&sandbox, "claude", "2.1.329 (Claude Code)");
    install(&sandbox, "codex", "codex-cli 99.0.1");
    install(&sandbox, "amp", "0.0.1790142911-abc");
    sandbox.program("pi", "exit 3");
    let mut command = sandbox.proq_command(&sandbox.repo, &["agents"]);
    command.env("PATH", sandbox.path_without_agents(&[]));
    insta::assert_snapshot!(collapse_columns(&sandbox.output(command).to_text()), @r"
    AGENT  VERSION  TESTED  PROGRAM  DESCRIPTION
    amp  0.0.1790142911-abc  no (from its documentation)  [ROOT]/bin/amp  Amp
    claude  2.1.329  yes  [ROOT]/bin/claude  Claude Code
    codex  99.0.1  with 0.169.0  [ROOT]/bin/codex  OpenAI Codex CLI
    pi  ?  [ROOT]/bin/pi  Pi
    acp  any program  any command that speaks the Agent Client Protocol
    aider  not installed  Aider
    command  any program  any command of your own
    copilot  not installed  GitHub Copilot CLI
    cursor  no (from its documentation)  not installed  Cursor CLI
    gemini  not installed  Gemini CLI
    opencode  not installed  opencode
    qwen  not installed  Qwen Code
    --- stderr
    hint: run any other program: git proq spawn -n docs -- make docs
    --- code 0
    ");
    let claude = row(&sandbox, "claude");
    assert_eq!(claude["path"], "[ROOT]/bin/claude");
    assert_eq!((&claude["version"], &claude["tried"]), (&"2.1.329".into(), &true.into()));
    assert_eq!(claude["profile"]["dialect"], "claude");
    assert_eq!(row(&sandbox, "codex")["tried"], false);
    assert!(row(&sandbox, "pi")["version"].is_null());
    let wide = sandbox.proq(&["agents", "--wide"]).ok();
    assert!(wide.contains("session id, resume, cost"), "{wide}");
    let reported_states = |name: &str| {
        let table_row =
            collapse_columns(&wide).lines().find(|line| line.starts_with(name)).unwrap().to_owned();
        let json = row(&sandbox, name)["tells"].as_array().unwrap().len();
        (table_row, json)
    };
    let (claude, all) = reported_states("claude");
    assert!(claude.contains("  working, needs-approval, idle  ") && all == 3, "{claude}");
    let (codex, none) = reported_states("codex");
    assert!(codex.contains("  nothing without capabilities.hooks  ") && none == 0, "{codex}");
    let (pi, two) = reported_states("pi");
    assert!(pi.contains("  working, idle  ") && two == 2, "{pi}");
    assert!(reported_states("qwen").0.contains("  nothing  "), "{wide}");
    let mut command = sandbox.proq_command(&sandbox.root(), &["agents"]);
    command.env("PATH", sandbox.root());
    let out = sandbox.output(command);
    assert_eq!((out.code, out.stdout.matches("not installed").count()), (0, 10), "{}", out.stdout);
}

#[test]
fn queries_version_again_after_replacement() {
    let sandbox = Sandbox::new();
    install(&sandbox, "claude", "2.1.329 (Claude Code)");
    assert_eq!(row(&sandbox, "claude")["version"], "2.1.329");
    assert_eq!(row(&sandbox, "claude")["version"], "2.1.329");
    assert_eq!(version_query_count(&sandbox, "claude"), 1);
    assert_eq!(std::fs::read_to_string(sandbox.root().join("claude-asked")).unwrap(), "--version\n");
    // The new file has the same size, and an old modification time as package managers set it.
    std::fs::remove_file(sandbox.root().join("bin/claude")).unwrap();
    install(&sandbox, "claude", "2.1.330 (Claude Code)");
    sandbox.sh_in(&sandbox.root(), "touch -d 1985-10-26T08:15:00Z bin/claude");
    assert_eq!(row(&sandbox, "claude")["version"], "2.1.330");
    assert_eq!(row(&sandbox, "claude")["tried"], false);
    assert_eq!(version_query_count(&sandbox, "claude"), 2);
    let cache = sandbox.root().join("home/.cache/git-proq/agents.toml");
    std::fs::write(&cache, "broken").unwrap();
    assert_eq!(row(&sandbox, "claude")["version"], "2.1.330");
    std::fs::remove_dir_all(cache.parent().unwrap()).unwrap();
    std::fs::write(cache.parent().unwrap(), "a file in its way").unwrap();
    assert_eq!(row(&sandbox, "claude")["version"], "2.1.330");
}

#[test]
fn missing_version_is_cached_for_ten_minutes() {
    let sandbox = Sandbox::new();
    install(&sandbox, "claude", "no idea");
    let at = |time: &str| sandbox.proq_at(time, &["agents", "--json"]).json();
    let version = |answer: &serde_json::Value| {
        let agents = answer["agents"].as_array().unwrap().iter();
        agents.clone().find(|agent| agent["name"] == "claude").unwrap()["version"].clone()
    };
    assert!(version(&at("2026-01-02T00:00:00Z")).is_null());
    assert!(version(&at("2026-01-02T00:09:00Z")).is_null());
    assert_eq!(version_query_count(&sandbox, "claude"), 1);
    // The program may only have been slow, so it is queried again later.
    let _ = at("2026-01-02T00:11:00Z");
    assert_eq!(version_query_count(&sandbox, "claude"), 2);
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "needs setsid")]
fn version_query_ignores_background_process() {
    let sandbox = Sandbox::new();
    // The program prints its version once its background process has started.
    sandbox.program(
        "codex",
        "setsid sh -c 'echo $$ > \"$ROOT/left\"; exec sleep 60' &
        until test -s \"$ROOT/left\"; do :; done; echo codex-cli 0.169.0",
    );
    let since = std::time::Instant::now();
    let table = sandbox.proq(&["agents"]).ok();
    assert!(since.elapsed() < std::time::Duration::from_secs(40), "{:?}", since.elapsed());
    assert!(collapse_columns(&table).contains("codex  0.169.0"), "{table}");
    let left = wait_for("its number", || {
        std::fs::read_to_string(sandbox.root().join("left")).ok().filter(|number| number.ends_with('\n'))
    });
    let _ = std::process::Command::new("kill").arg(left.trim()).status();
}
