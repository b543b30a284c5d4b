//! Tests of recorded hook events of agents: the activity that each yields, and that every recording is read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proq_base::config::layers::Layers;
use serde_json::Value;

use super::*;
use crate::agent::profiles::profile::Profile;
use crate::agent::profiles::profile_catalog::load_profiles;

/// How the events of a recording reach git-proq.
enum HookSource {
    /// By hooks in the profile's settings file, each with its kind.
    Settings,
    /// By hooks in the profile's options, each with its kind.
    Options,
    /// By the profile's plugin, with this kind.
    Plugin(&'static str),
    /// Never: these hooks cannot be set for one run.
    Unsupported,
}

/// Returns how the events of a recording reach git-proq, by its path below the folder of recordings.
fn hook_source(file: &str) -> HookSource {
    match file {
        "claude/hooks.jsonl" | "claude/hooks-stop-gate.jsonl" | "gemini/hooks.jsonl" => HookSource::Settings,
        "codex/hooks.jsonl" | "codex/hooks-stop-gate.jsonl" => HookSource::Options,
        "opencode/plugin-events.jsonl" => HookSource::Plugin("opencode"),
        "pi-0.73/extension-events.jsonl" | "pi-0.87/extension-events.jsonl" => HookSource::Plugin("pi"),
        // The `notify` setting belongs to the user's own program. The other two agents have their hooks in
        // files of the user or the repository.
        "codex/notify.jsonl" | "copilot/hooks.jsonl" | "qwen/hooks.jsonl" => HookSource::Unsupported,
        other => panic!("nobody reads {other}"),
    }
}

/// Returns the kind of event that a hook's command line passes to git-proq.
fn command_hook_kind(command: &str) -> String {
    command.rsplit(' ').next().unwrap().to_owned()
}

/// Returns the kind of each of a profile's hooks, by its event.
fn hook_kinds(profile: &Profile) -> BTreeMap<String, String> {
    let options =
        profile.options.get("hooks").into_iter().flatten().filter_map(|word| word.strip_prefix("hooks."));
    let option_kinds = options.map(|word| {
        let (event, hook) = word.split_once('=').unwrap();
        let hook = hook.replace("{hook_timeout}", "9");
        let table: toml::Table = toml::from_str(&format!("x={hook}")).unwrap();
        (event.to_owned(), command_hook_kind(table["x"][0]["hooks"][0]["command"].as_str().unwrap()))
    });
    let option_kinds: BTreeMap<String, String> = option_kinds.collect();
    let Some(settings) = profile.files.get("settings") else { return option_kinds };
    let text = ["{hook_timeout}", "{hook_timeout_ms}", "{exe:quoted}", "{lane:quoted}"]
        .iter()
        .fold(settings.clone(), |text, name| text.replace(name, "1"));
    let settings: Value = serde_json::from_str(&text).unwrap();
    let hooks = settings["hooks"].as_object().unwrap().iter();
    let kind = |hook: &Value| command_hook_kind(hook[0]["hooks"][0]["command"].as_str().unwrap());
    hooks.map(|(event, hook)| (event.clone(), kind(hook))).collect()
}

/// Returns the activity that one line of a recording reports.
fn activity_after_line(source: &HookSource, profile: &Profile, line: &str) -> Option<Activity> {
    let record: Value = serde_json::from_str(line).unwrap();
    let kind = match source {
        HookSource::Unsupported => return None,
        HookSource::Settings | HookSource::Options => {
            hook_kinds(profile).get(record["hook_event_name"].as_str().unwrap())?.clone()
        }
        HookSource::Plugin(kind) => {
            let event = ["ev", "type"].iter().find_map(|name| record[name].as_str())?;
            // Only events that the plugin forwards reach git-proq.
            let is_forwarded = match *kind {
                "opencode" => record["hook"] == "event" && event.starts_with("session."),
                _ => profile.files["plugin"].contains(&format!("\"{event}\"")),
            };
            is_forwarded.then(|| (*kind).to_owned())?
        }
    };
    parse_activity(&kind, &HookInput::parse(line.as_bytes())).map(|(activity, _)| activity)
}

/// Returns all files below a folder.
fn files_below(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

#[test]
fn recordings_yield_expected_activities() {
    let known_profiles = load_profiles(&Layers::default()).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/agent-hooks");
    let mut recordings: Vec<PathBuf> = files_below(&root);
    recordings.sort();
    let mut out = String::new();
    for path in recordings {
        let file = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        let agent = file.split(['/', '-']).next().unwrap();
        let (profile, source) = (&known_profiles[agent], hook_source(&file));
        let text = std::fs::read_to_string(&path).unwrap();
        let mut states: Vec<String> = text
            .lines()
            .filter_map(|line| activity_after_line(&source, profile, line))
            .map(|s| s.to_string())
            .collect();
        states.dedup();
        assert!(
            !text.trim().is_empty() && states.is_empty() == matches!(source, HookSource::Unsupported),
            "{file}"
        );
        out.push_str(&format!("{file}: {}\n", states.join(", ")));
    }
    insta::assert_snapshot!(out, @r"
    claude/hooks-stop-gate.jsonl: idle
    claude/hooks.jsonl: working, idle
    codex/hooks-stop-gate.jsonl: idle
    codex/hooks.jsonl: working, idle
    codex/notify.jsonl: 
    copilot/hooks.jsonl: 
    gemini/hooks.jsonl: working, idle
    opencode/plugin-events.jsonl: working, idle
    pi-0.73/extension-events.jsonl: working, idle
    pi-0.87/extension-events.jsonl: working, idle
    qwen/hooks.jsonl:
    ");
}

#[test]
fn plugin_permission_event_needs_approval() {
    let parsed = |kind: &str, text: &str| parse_activity(kind, &HookInput::parse(text.as_bytes()));
    let event = r#"{"type":"permission.asked","properties":{"permission":"bash","sessionID":"s"}}"#;
    assert_eq!(
        parsed("opencode", event),
        Some((Activity::NeedsApproval, Some("requests approval: bash".to_owned())))
    );
    assert_eq!(parsed("opencode", r#"{"type":"permission.replied"}"#), Some((Activity::Working, None)));
    assert_eq!(parsed("opencode", r#"{"type":"session.error"}"#), Some((Activity::Idle, None)));
    assert_eq!(parsed("opencode", "no json"), None);
    assert_eq!(parsed("pi", r#"{"ev":"agent_end","willRetry":true}"#), Some((Activity::Working, None)));
    assert_eq!(parsed("pi", r#"{"ev":"session_start"}"#), None);
}
