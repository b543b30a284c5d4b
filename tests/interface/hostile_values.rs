//! Hostile values that do not come from files: shell commands in names, environment variables, and output of
//! hooks, checks and agents' tools.

use std::path::Path;
use std::process::Stdio;

use proq_test_kit::Sandbox;
use serde_json::{Value, json};

use super::hostile_input::{
    ESCAPES, active_escapes, argv, pair_count, run_on_terminals, sandbox_with_escapes,
};

/// Name of the file that a shell, git or a format string creates if it interprets a hostile name.
const CANARY: &str = "canary";

/// Names that one shell or program or another runs as a command that creates the canary file.
const SHELL_INJECTIONS: &[&str] = &[
    "$(touch canary)",
    "`touch canary`",
    ";touch canary;",
    "|touch canary",
    "&touch canary&",
    "'\";touch canary;'\"",
    "a\ntouch canary\n",
    "--exec=touch canary",
    "--upload-pack=touch canary",
    "-ccore.pager=touch canary",
    "ext::sh -c touch% canary",
    "${IFS}touch${IFS}canary",
    "../canary",
    "%s%n{}{lane}",
];

/// Commands that take a word from others; `W` stands for it.
const COMMANDS: &[&[&str]] = &[
    &["spawn", "--empty", "-n", "W"],
    &["spawn", "--empty", "-n", "y", "--base", "W"],
    &["spawn", "--empty", "-n", "y", "--onto", "W"],
    &["spawn", "claude", "W", "-n", "z", "--wait"],
    &["show", "z"],
    &["show", "z", "--prompt"],
    &["run", "z", "--wait", "--", "echo", "W"],
    &["discard", "--force", "z"],
    &["show", "W"],
    &["merge", "W"],
    &["merge", "--all", "--onto", "W"],
    &["merge", "--all", "--dry-run", "--no-checks"],
    &["merge", "--all", "--dry-run", "--strategy", "W"],
    &["preview", "W"],
    &["diff", "W"],
    &["logs", "W"],
    &["snap", "restore", "W"],
    &["op", "show", "W"],
    &["edit", "named", "--title", "W"],
    &["edit", "named", "--note", "W"],
    &["edit", "named", "--scope", "W"],
    &["edit", "named", "--base", "W"],
    &["rename", "W", "named"],
    &["rename", "named", "W"],
    &["open", "W", "--path"],
    &["config", "get", "W"],
    &["config", "set", "agent.commit_style", "W"],
    &["config", "describe", "agent.commit_style"],
    &["plan", "W"],
    &["plan", "plan.toml"],
    &["deps", "plan.toml", "--dot"],
    &["swarm", "plan.toml", "--dry-run"],
    &["list", "--wide"],
    &["matrix"],
    &["report"],
    &["batch"],
    &["status"],
    &["statusline"],
    &["doctor"],
    &["events", "--json"],
    &["preview", "named"],
    &["preview", "--back"],
    &["help", "W"],
    &["man", "W"],
    &["W"],
    &["--W"],
];

/// Collects every path below a folder whose last component is `name`.
fn find_named(name: &str, dir: &Path, out: &mut Vec<String>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_name() == name {
            out.push(entry.path().display().to_string());
        }
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            find_named(name, &entry.path(), out);
        }
    }
}

/// Returns a text as a quoted TOML string.
fn toml_quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

#[test]
fn tables_have_at_least_six_hundred_pairs() {
    let all = pair_count() + SHELL_INJECTIONS.len() * COMMANDS.len();
    assert!(all >= 600, "{all}");
}

/// Promise: strangers/names-are-data
#[test]
fn shell_metacharacters_are_plain_names() {
    let mut wrong = Vec::new();
    for word in SHELL_INJECTIONS {
        let sandbox = Sandbox::new();
        sandbox.agent("claude", "printf '%s\\n' \"$*\"");
        sandbox.lane_with_commit("named", "echo named > named");
        // Files, and a branch where git allows its name.
        let file = word.replace('/', "_");
        sandbox.write_in(&sandbox.lane_path("named"), &file, "text\n");
        sandbox.commit_all_in(&sandbox.lane_path("named"), word);
        sandbox.write(&format!("mine {file}"), "mine\n");
        let mut branch = sandbox.command("git", &sandbox.repo);
        branch.args(["update-ref", &format!("refs/heads/{word}"), "HEAD"]);
        let _allowed_or_not = sandbox.output(branch);
        sandbox.git(&["config", "proq.agent.model", word]);
        let word_quoted = toml_quoted(word);
        let plan = format!(
            "format = 1\nsummary = {word_quoted}\n[[phase]]\ntitle = {word_quoted}\n[[phase.task]]\nid = \"a\"\ntitle = {word_quoted}\n\
             prompt = {word_quoted}\nscope = [{word_quoted}]\n"
        );
        sandbox.write("plan.toml", &plan);
        let commands: Vec<Vec<String>> = COMMANDS
            .iter()
            .map(|line| {
                let words = line.iter().map(|w| w.replace('W', word));
                std::iter::once("git-proq".to_owned()).chain(words).collect()
            })
            .collect();
        for (line, (code, text)) in COMMANDS.iter().zip(run_on_terminals(&sandbox, &commands)) {
            let output = String::from_utf8_lossy(&text[..text.len().min(300)]).into_owned();
            if !(0..=5).contains(&code) {
                wrong.push(format!("{word:?} {line:?}: ends with {code}: {output}"));
            }
            if !active_escapes(&text).is_empty() {
                wrong.push(format!("{word:?} {line:?}: is obeyed: {output:?}"));
            }
        }
        let mut found = Vec::new();
        find_named(CANARY, &sandbox.root(), &mut found);
        // One of the commands requests a file of that very name.
        found.retain(|path| !path.ends_with("named/canary"));
        wrong.extend(found.iter().map(|path| format!("{word:?} made {path}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Environment variables that git-proq or git reads, and that others may have set. `PAGER` and `GIT_PAGER` are
/// commands that the shell runs, as git does.
const ENV_VARIABLES: &[&str] = &[
    "PROQ_LOCK_TIMEOUT",
    "PROQ_SNAPSHOT_INTERVAL",
    "PROQ_LANE",
    "PROQ_AGENT",
    "PROQ_WRAP_UP",
    "NO_COLOR",
    "TERM",
    "COLUMNS",
    "EDITOR",
    "GIT_EDITOR",
    "LANG",
    "TMPDIR",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "XDG_STATE_HOME",
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_NAMESPACE",
];

/// Promise: strangers/terminal-escapes
#[test]
fn variables_print_no_escapes_and_run_nothing() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("x", "echo x > x");
    let mut commands = Vec::new();
    for variable in ENV_VARIABLES {
        for value in ["\u{1b}]52;c;ZXZpbA==\u{7}\u{202e}", "$(touch canary)", ";touch canary;"] {
            for line in ["list", "show x", "merge x --dry-run", "config list"] {
                let mut command = vec!["env".to_owned(), format!("{variable}={value}")];
                command.extend(argv(line, ""));
                commands.push(command);
            }
        }
    }
    let mut wrong = Vec::new();
    for (command, (code, text)) in commands.iter().zip(run_on_terminals(&sandbox, &commands)) {
        let output = String::from_utf8_lossy(&text[..text.len().min(300)]).into_owned();
        if !(0..=5).contains(&code) {
            wrong.push(format!("{command:?} ends with {code}: {output}"));
        }
        if !active_escapes(&text).is_empty() {
            wrong.push(format!("{command:?} is obeyed: {output:?}"));
        }
    }
    let mut found = Vec::new();
    find_named(CANARY, &sandbox.root(), &mut found);
    wrong.extend(found);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    sandbox.assert_healthy();
}

/// Promise: strangers/terminal-escapes
#[test]
fn output_of_hooks_and_checks_is_escaped() {
    let mut wrong = Vec::new();
    for (kind, escapes) in ESCAPES {
        let sandbox = Sandbox::new();
        sandbox.write_in(&sandbox.root(), "said", &format!("{escapes}\nmore {escapes}"));
        sandbox.lane_with_commit("x", "echo x > x");
        let escapes_file = sandbox.root().join("said");
        let fails = format!("cat '{0}'; cat '{0}' >&2; exit 1", escapes_file.display());
        let hook = sandbox.repo.join(".git/hooks/pre-merge-commit");
        sandbox.program_verbatim("hook", &format!("#!/bin/sh\n{fails}\n"));
        std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
        std::fs::rename(sandbox.root().join("bin/hook"), &hook).unwrap();
        let setting = |name: &str| format!("proq.{name}={fails}");
        let git = |settings: &[String], line: &[&str]| {
            let mut all = vec!["git".to_owned()];
            all.extend(settings.iter().flat_map(|setting| ["-c".to_owned(), setting.clone()]));
            all.push("proq".to_owned());
            all.extend(line.iter().map(|word| (*word).to_owned()));
            all
        };
        let commands = [
            git(&[], &["merge", "x"]),
            git(&[setting("verify.commands")], &["merge", "x"]),
            git(&[], &["show", "x"]),
            git(&[], &["list", "--wide"]),
            git(&[setting("lane.setup")], &["spawn", "--empty", "-n", "y"]),
            git(&[], &["logs", "--setup", "y"]),
            git(&[], &["logs", "--check", "x"]),
            git(&[setting("hook.lane.created")], &["spawn", "--empty", "-n", "w"]),
            git(&[], &["doctor"]),
            git(&[], &["events"]),
        ];
        for (command, (code, text)) in commands.iter().zip(run_on_terminals(&sandbox, &commands)) {
            let found = active_escapes(&text);
            if !(0..=5).contains(&code) || !found.is_empty() {
                wrong.push(format!("{kind}: {command:?} ends with {code}: {}", found.join("; ")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Promise: strangers/terminal-escapes
#[test]
fn refused_settings_are_named_without_escapes() {
    const LINES: &[&str] =
        &["list", "show x", "doctor", "config list", "spawn --empty -n y", "merge x", "agents"];
    let mut wrong = Vec::new();
    for (kind, escapes) in ESCAPES {
        let sandbox = Sandbox::new();
        sandbox.lane_with_commit("x", "echo x > x");
        for (setting, value) in [
            ("hook", format!("{{ {} = {} }}", toml_quoted(&format!("no{escapes}")), toml_quoted(escapes))),
            ("lane", format!("{{ setup = [{}] }}", toml_quoted(escapes))),
            ("verify", format!("{{ commands = {} }}", toml_quoted(escapes))),
            ("merge", format!("{{ strategy = {} }}", toml_quoted(escapes))),
            (&toml_quoted(escapes), format!("{{ {} = {} }}", toml_quoted(escapes), toml_quoted(escapes))),
        ] {
            sandbox.write("proq.toml", &format!("{setting} = {value}\n"));
            let commands: Vec<Vec<String>> = LINES.iter().map(|line| argv(line, "")).collect();
            for (line, (code, text)) in LINES.iter().zip(run_on_terminals(&sandbox, &commands)) {
                let found = active_escapes(&text);
                if !(0..=5).contains(&code) || !found.is_empty() {
                    wrong.push(format!("{kind}, {setting}, {line}: ends with {code}: {}", found.join("; ")));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns lines that no client of the tools would send.
fn malformed_requests() -> Vec<Vec<u8>> {
    let deep = format!("{}{}", "[".repeat(20_000), "]".repeat(20_000));
    let call = |name: &str, arguments: &Value| {
        let params = json!({ "name": name, "arguments": arguments });
        json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params }).to_string()
    };
    let mut out: Vec<Vec<u8>> = [
        "",
        "{",
        "null",
        "[]",
        "7",
        "\"text\"",
        r#"{"jsonrpc":"2.0"}"#,
        r#"{"jsonrpc":"1.0","id":1,"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":{},"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":1e999,"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"no/such"}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call"}"#,
        r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":[]}"#,
        r#"{"jsonrpc":"2.0","id":5,"method":"resources/read","params":{"uri":"file:///etc/passwd"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}"#,
    ]
    .map(|line| line.as_bytes().to_vec())
    .to_vec();
    out.push(deep.clone().into_bytes());
    out.push(format!(r#"{{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{deep}}}"#).into_bytes());
    out.push(b"{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"\xff\xfe\"}".to_vec());
    out.push(b"{\"jsonrpc\":\"2.0\",\0\"id\":9}".to_vec());
    for word in SHELL_INJECTIONS.iter().copied().chain(ESCAPES.iter().map(|(_, escapes)| *escapes)) {
        for name in ["show", "diff", "merge", "spawn", "send", "list", word] {
            out.push(
                call(name, &json!({ "lane": word, "prompt": word, "agent": "claude", "text": word })).into(),
            );
        }
    }
    out
}

/// Promise: strangers/names-are-data
#[test]
fn mcp_server_answers_after_malformed_requests() {
    let sandbox = sandbox_with_escapes(ESCAPES[0].1);
    let first = json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": { "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "x", "version": "1" } },
    });
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let request = json!({
        "jsonrpc": "2.0", "id": 4242, "method": "tools/call", "params": { "name": "list", "arguments": {} },
    });
    let mut wrong = Vec::new();
    for line in malformed_requests() {
        let shown = String::from_utf8_lossy(&line[..line.len().min(120)]).into_owned();
        let mut input = format!("{first}\n{initialized}\n").into_bytes();
        input.extend_from_slice(&line);
        input.extend_from_slice(format!("\n{request}\n").as_bytes());
        let mut server = sandbox.proq_command(&sandbox.repo, &["mcp", "--supervisor"]);
        server.stdout(Stdio::piped()).stderr(Stdio::piped());
        let answer = sandbox.output_with(server, &input);
        if !(0..=5).contains(&answer.code) || answer.stderr.contains("panicked") {
            wrong.push(format!("{shown}: ends with {}: {}", answer.code, answer.stderr));
        }
        // Whatever came before, the next request is answered.
        if !answer.stdout.contains("4242") {
            wrong.push(format!("{shown}: nothing is answered any more: {}", answer.stderr));
        }
        if answer.stdout.contains(['\u{1b}', '\u{9b}', '\r', '\u{202e}']) {
            wrong.push(format!("{shown}: escapes in the answer"));
        }
    }
    let mut found = Vec::new();
    find_named(CANARY, &sandbox.root(), &mut found);
    wrong.extend(found);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
