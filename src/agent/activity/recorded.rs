//! Owns the tests of what agents' hooks were recorded to say: what comes of each, and that no recording lies unread.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::super::catalogue::profiles;
use super::super::profile::Profile;
use super::*;
use crate::config::Layers;

/// How the lines of a recording would have reached us.
enum Way {
    /// By hooks of the profile's settings, each with its kind.
    Settings,
    /// By hooks of its options, the same.
    Options,
    /// By the profile's plugin, with this kind.
    Plugin(&'static str),
    /// Not at all: these hooks cannot be given for one run.
    None,
}

/// The recording of this name, below its folder.
fn way_of(file: &str) -> Way {
    match file {
        "claude/hooks.jsonl" | "claude/hooks-stop-gate.jsonl" | "gemini/hooks.jsonl" => Way::Settings,
        "codex/hooks.jsonl" | "codex/hooks-stop-gate.jsonl" => Way::Options,
        "opencode/plugin-events.jsonl" => Way::Plugin("opencode"),
        "pi-0.73/extension-events.jsonl" | "pi-0.87/extension-events.jsonl" => Way::Plugin("pi"),
        // That place is the user's own program's. The others have their hooks in files of the user's or the repository's.
        "codex/notify.jsonl" | "copilot/hooks.jsonl" | "qwen/hooks.jsonl" => Way::None,
        other => panic!("nobody reads {other}"),
    }
}

/// The kind that a line of settings calls us with.
fn kind_in(command: &str) -> String {
    command.rsplit(' ').next().unwrap().to_owned()
}

/// The kinds of a profile's hooks, by their events.
fn kinds(profile: &Profile) -> BTreeMap<String, String> {
    let options =
        profile.options.get("hooks").into_iter().flatten().filter_map(|word| word.strip_prefix("hooks."));
    let of_options = options.map(|word| {
        let (event, hook) = word.split_once('=').unwrap();
        let hook = hook.replace("{hook_timeout}", "9");
        let set: toml::Table = toml::from_str(&format!("x={hook}")).unwrap();
        (event.to_owned(), kind_in(set["x"][0]["hooks"][0]["command"].as_str().unwrap()))
    });
    let of_options: BTreeMap<String, String> = of_options.collect();
    let Some(settings) = profile.files.get("settings") else { return of_options };
    let text = ["{hook_timeout}", "{hook_timeout_ms}", "{exe:quoted}", "{lane:quoted}"]
        .iter()
        .fold(settings.clone(), |text, name| text.replace(name, "1"));
    let settings: Value = serde_json::from_str(&text).unwrap();
    let hooks = settings["hooks"].as_object().unwrap().iter();
    let kind = |hook: &Value| kind_in(hook[0]["hooks"][0]["command"].as_str().unwrap());
    hooks.map(|(event, hook)| (event.clone(), kind(hook))).collect()
}

/// What comes of one line.
fn state_after(way: &Way, profile: &Profile, line: &str) -> Option<Activity> {
    let record: Value = serde_json::from_str(line).unwrap();
    let kind = match way {
        Way::None => return None,
        Way::Settings | Way::Options => {
            kinds(profile).get(record["hook_event_name"].as_str().unwrap())?.clone()
        }
        Way::Plugin(kind) => {
            let event = ["ev", "type"].iter().find_map(|name| record[name].as_str())?;
            // Only what the plugin tells reaches us.
            let told = match *kind {
                "opencode" => record["hook"] == "event" && event.starts_with("session."),
                _ => profile.files["plugin"].contains(&format!("\"{event}\"")),
            };
            told.then(|| (*kind).to_owned())?
        }
    };
    said(&kind, &HookInput::read(line.as_bytes())).map(|(activity, _)| activity)
}

/// All files of a folder, and of those in it.
fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn every_recording_comes_to_what_the_agent_did() {
    let known = profiles(&Layers::default()).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/agent-hooks");
    let mut found: Vec<PathBuf> = files(&root);
    found.sort();
    let mut out = String::new();
    for path in found {
        let file = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        let agent = file.split(['/', '-']).next().unwrap();
        let (profile, way) = (&known[agent], way_of(&file));
        let text = std::fs::read_to_string(&path).unwrap();
        let mut states: Vec<String> =
            text.lines().filter_map(|line| state_after(&way, profile, line)).map(|s| s.to_string()).collect();
        states.dedup();
        assert!(!text.trim().is_empty() && states.is_empty() == matches!(way, Way::None), "{file}");
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
fn leave_that_a_plugin_tells_of_is_seen() {
    let state = |kind: &str, text: &str| said(kind, &HookInput::read(text.as_bytes()));
    let asked = r#"{"type":"permission.asked","properties":{"permission":"bash","sessionID":"s"}}"#;
    assert_eq!(
        state("opencode", asked),
        Some((Activity::NeedsApproval, Some("wants leave: bash".to_owned())))
    );
    assert_eq!(state("opencode", r#"{"type":"permission.replied"}"#), Some((Activity::Working, None)));
    assert_eq!(state("opencode", r#"{"type":"session.error"}"#), Some((Activity::Idle, None)));
    assert_eq!(state("opencode", "no json"), None);
    assert_eq!(state("pi", r#"{"ev":"agent_end","willRetry":true}"#), Some((Activity::Working, None)));
    assert_eq!(state("pi", r#"{"ev":"session_start"}"#), None);
}
