//! Owns how each kind of agent is started as a supervising one: in its own terminal interface, with the lane tools.

use std::ffi::OsString;
use std::path::Path;

use serde_json::{Value, json};

use crate::cli::mcp::UNASKED;

/// What an agent calls the server with the tools.
const SERVER: &str = "proq";

/// How one kind of agent is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Takes the server and its session's id as options.
    Claude,
    /// Takes the server as a setting; chooses the session's id itself.
    Codex,
    /// Takes the server by a variable; chooses the session's id itself.
    Opencode,
    /// Takes the server by a file that a variable names, and its session's id as an option.
    Gemini,
}

/// The agents that can supervise, by program, in the order in which one is looked for.
pub(super) const KNOWN: &[(&str, Way)] =
    &[("claude", Way::Claude), ("codex", Way::Codex), ("opencode", Way::Opencode), ("gemini", Way::Gemini)];

/// A start of an agent.
pub(super) struct Ask<'a> {
    /// This program, which serves the tools.
    pub(super) exe: &'a str,
    /// What it is told first.
    pub(super) prompt: &'a str,
    /// Its session.
    pub(super) session: &'a str,
    /// Whether that session is gone on with.
    pub(super) resume: bool,
    /// Where a file of settings goes, if it takes one.
    pub(super) settings: &'a Path,
}

/// What is started.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    /// Its arguments.
    pub(super) args: Vec<OsString>,
    /// Its variables.
    pub(super) env: Vec<(&'static str, OsString)>,
    /// What its file of settings says, if it takes one.
    pub(super) settings: Option<String>,
}

impl Way {
    /// Whether its session is known beforehand, and so can be gone on with.
    pub(super) fn resumes(self) -> bool {
        matches!(self, Way::Claude | Way::Gemini)
    }

    /// What is started for it.
    pub(super) fn line(self, ask: &Ask<'_>) -> Line {
        match self {
            Way::Claude => claude(ask),
            Way::Codex => codex(ask),
            Way::Opencode => opencode(ask),
            Way::Gemini => gemini(ask),
        }
    }
}

/// The options in which some take several values end with `--`, or the prompt would be one of those.
fn claude(ask: &Ask<'_>) -> Line {
    let server =
        json!({ "type": "stdio", "command": ask.exe, "args": ["mcp", "--supervisor"], "alwaysLoad": true });
    let unasked: Vec<String> = UNASKED.iter().map(|tool| format!("mcp__{SERVER}__{tool}")).collect();
    let session = if ask.resume { "--resume" } else { "--session-id" };
    words(&[
        session,
        ask.session,
        "--mcp-config",
        &json!({ "mcpServers": { SERVER: server } }).to_string(),
        // Its other modes decide by themselves what the person need not be asked.
        "--permission-mode=default",
        &format!("--allowedTools={}", unasked.join(",")),
        "--",
        ask.prompt,
    ])
}

/// Without the names of variables its servers get hardly any, and neither would the agents that they start.
fn codex(ask: &Ask<'_>) -> Line {
    let text = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let names: Vec<String> = variables().map(|name| text(&name)).collect();
    let server = format!(
        "mcp_servers.{SERVER}={{command={},args=[\"mcp\",\"--supervisor\"],env_vars=[{}],tool_timeout_sec=3600}}",
        text(ask.exe),
        names.join(",")
    );
    words(&["-c", &server, "--", ask.prompt])
}

/// The names of this process's variables that others can be told of.
fn variables() -> impl Iterator<Item = String> {
    let fits = |name: &String| {
        !name.is_empty()
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
            && !name.starts_with("GIT_")
    };
    std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).filter(fits)
}

fn opencode(ask: &Ask<'_>) -> Line {
    const SETTINGS: &str = "OPENCODE_CONFIG_CONTENT";
    let own = std::env::var(SETTINGS).ok().and_then(|text| serde_json::from_str::<Value>(&text).ok());
    let mut settings = own.filter(Value::is_object).unwrap_or_else(|| json!({}));
    let server = json!({ "type": "local", "command": [ask.exe, "mcp", "--supervisor"], "enabled": true });
    if !settings["mcp"].is_object() {
        settings["mcp"] = json!({});
    }
    settings["mcp"][SERVER] = server;
    let env = vec![(SETTINGS, settings.to_string().into())];
    Line { env, ..words(&["--prompt", ask.prompt]) }
}

fn gemini(ask: &Ask<'_>) -> Line {
    let server = json!({ "command": ask.exe, "args": ["mcp", "--supervisor"] });
    let session = if ask.resume { "--resume" } else { "--session-id" };
    Line {
        env: vec![("GEMINI_CLI_SYSTEM_SETTINGS_PATH", ask.settings.into())],
        settings: Some(json!({ "mcpServers": { SERVER: server } }).to_string()),
        ..words(&[session, ask.session, "-i", ask.prompt])
    }
}

fn words(words: &[&str]) -> Line {
    Line { args: words.iter().map(OsString::from).collect(), ..Line::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(way: Way, resume: bool) -> Line {
        let (exe, prompt) = ("/a b/git-\"proq\"", "Hello");
        way.line(&Ask { exe, prompt, session: "ID", resume, settings: Path::new("/s/settings.json") })
    }

    fn text(word: &OsString) -> &str {
        word.to_str().unwrap()
    }

    #[test]
    fn each_gets_the_server_and_the_prompt_last() {
        for (name, way) in KNOWN {
            let line = line(*way, false);
            assert_eq!(text(line.args.last().unwrap()), "Hello", "{name}");
        }
        let claude = line(Way::Claude, true);
        assert_eq!(claude.args[0], "--resume");
        let server: Value = serde_json::from_str(text(&claude.args[3])).unwrap();
        assert_eq!(server["mcpServers"]["proq"]["command"], "/a b/git-\"proq\"");
        let codex = line(Way::Codex, false);
        let set: toml::Table = toml::from_str(text(&codex.args[1])).unwrap();
        assert_eq!(set["mcp_servers"]["proq"]["command"].as_str(), Some("/a b/git-\"proq\""));
        let opencode: Value = serde_json::from_str(text(&line(Way::Opencode, false).env[0].1)).unwrap();
        assert_eq!(opencode["mcp"]["proq"]["command"][1], "mcp");
        let gemini = line(Way::Gemini, false);
        assert_eq!((text(&gemini.args[0]), text(&gemini.env[0].1)), ("--session-id", "/s/settings.json"));
        let settings: Value = serde_json::from_str(&gemini.settings.unwrap()).unwrap();
        assert_eq!(settings["mcpServers"]["proq"]["args"][1], "--supervisor");
    }
}
