//! Owns what an agent's own hooks say while its run is under way: what it does, and whether it may end its turn.

use serde::Deserialize;
use serde_json::Value;

use super::gate;
use super::stream::is_session;
use crate::event::{self, Event};
use crate::lane::Project;
use crate::store::records::{Activity, ActivityRecord, AnyLane, RunRecord};
use crate::store::{Record, now};

/// How much of an agent's own words is kept.
const WORDS: usize = 300;

/// What agents give their hooks, as far as it matters here. Each has more, and some call things otherwise.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct HookInput {
    /// What a notification says.
    message: Option<String>,
    /// What kind of notification it is.
    notification_type: Option<String>,
    /// The tool that consent is wanted for.
    tool_name: Option<String>,
    /// What the agent was asked.
    prompt: Option<String>,
    /// What kind of event it is, for a plugin of opencode.
    r#type: Option<String>,
    /// What is known of that.
    properties: Value,
    /// The event, for an extension of Pi.
    ev: Option<String>,
    /// Whether Pi tries again by itself.
    #[serde(rename = "willRetry")]
    will_retry: bool,
    /// The session that Pi is in, which it tells nobody else where a person sits before it.
    #[serde(rename = "piSession")]
    pi_session: Option<String>,
}

impl HookInput {
    /// Reads what a hook was given. What is no JSON says nothing.
    pub(crate) fn read(bytes: &[u8]) -> HookInput {
        serde_json::from_slice(bytes).unwrap_or_default()
    }
}

/// What a hook says, by its kind; none when it says nothing about what the agent does.
fn said(kind: &str, input: &HookInput) -> Option<(Activity, Option<String>)> {
    match kind {
        "prompt" | "tool" => Some((Activity::Working, None)),
        "idle" | "stop" => Some((Activity::Idle, None)),
        "permission" => {
            let message = input.tool_name.as_ref().map(|tool| format!("wants to use {tool}"));
            Some((Activity::NeedsApproval, message.or_else(|| input.message.clone())))
        }
        "notification" => {
            let what = input.notification_type.as_deref().unwrap_or_default().to_lowercase();
            let asks = ["permission", "elicitation", "input"].iter().any(|word| what.contains(word));
            if asks {
                Some((Activity::NeedsApproval, input.message.clone()))
            } else {
                what.starts_with("idle").then_some((Activity::Idle, None))
            }
        }
        "opencode" => of_opencode(input),
        "pi" => match input.ev.as_deref()? {
            "agent_start" | "tool_call" => Some((Activity::Working, None)),
            "agent_end" if input.will_retry => Some((Activity::Working, None)),
            "agent_end" => Some((Activity::Idle, None)),
            _ => None,
        },
        _ => None,
    }
}

/// What an event of opencode's says.
fn of_opencode(input: &HookInput) -> Option<(Activity, Option<String>)> {
    match input.r#type.as_deref()? {
        "session.status" if input.properties["status"]["type"] == "idle" => Some((Activity::Idle, None)),
        "session.status" | "permission.replied" => Some((Activity::Working, None)),
        "session.idle" | "session.error" => Some((Activity::Idle, None)),
        kind if kind.starts_with("permission.") => {
            let said =
                ["title", "permission", "type"].iter().find_map(|name| input.properties[name].as_str());
            Some((Activity::NeedsApproval, said.map(|what| format!("wants leave: {what}"))))
        }
        _ => None,
    }
}

/// Notes what a hook of a run says. Returns why the agent has to go on, where the end of its turn is refused.
///
/// # Errors
/// When the lane or its records cannot be read or written; nothing depends on it.
pub(crate) fn hear(
    project: &Project,
    lane: &str,
    attempt: u32,
    kind: &str,
    input: &HookInput,
) -> Result<Option<String>, super::Error> {
    let lane = project.any_lane(lane)?;
    // A process that an earlier run has left behind speaks for nobody.
    if lane.attempt != attempt {
        return Ok(None);
    }
    let told = said(kind, input);
    // Without a terminal nobody is asked: it is refused right away, and the agent goes on.
    let asks = told.as_ref().is_some_and(|(activity, _)| *activity == Activity::NeedsApproval);
    if asks
        && kind != "notification"
        && !RunRecord::load(&project.store.layout().run_record(&lane.name, attempt))?.interactive
    {
        return Ok(None);
    }
    let path = project.store.layout().run_activity(&lane.name, attempt);
    // What is broken is written anew.
    let before = ActivityRecord::find(&path).ok().flatten();
    let mut sent_back = before.as_ref().map_or(0, |record| record.sent_back);
    // What sends it back comes as a prompt with some. Not all say with the end of a turn whether that had been refused before.
    if kind == "prompt" && !input.prompt.as_deref().is_some_and(|text| text.contains(gate::REFUSAL)) {
        sent_back = 0;
    }
    let mut refusal = None;
    if kind == "stop" && project.settings.gate && sent_back < project.settings.gate_rounds {
        refusal = gate::refuse_end(project, &lane, attempt)?;
        sent_back += u32::from(refusal.is_some());
    }
    let told = if refusal.is_some() { Some((Activity::Working, None)) } else { told };
    let Some((activity, message)) = told else { return Ok(None) };
    let message = message.map(|text| shortened(&text));
    let changed = before.as_ref().is_none_or(|record| record.activity != activity);
    let known = before.as_ref().and_then(|record| record.session.clone());
    let session = input.pi_session.clone().filter(|id| is_session(id)).or(known);
    let record = ActivityRecord { activity, since: now(), message: message.clone(), sent_back, session };
    if before.is_none_or(|before| ActivityRecord { since: record.since, ..before } != record) {
        record.note(&path)?;
    }
    if changed {
        tell(project, &lane, activity, message.as_deref());
    }
    Ok(refusal)
}

/// The session that the hooks of a run have told, if they have.
pub(super) fn session_of(project: &Project, lane: &str, attempt: u32) -> Option<String> {
    ActivityRecord::find(&project.store.layout().run_activity(lane, attempt)).ok().flatten()?.session
}

/// Notes what is known of a run before its hooks have said anything.
///
/// # Errors
/// When it cannot be written.
pub(super) fn expect(
    project: &Project,
    lane: &AnyLane,
    attempt: u32,
    activity: Activity,
    message: Option<String>,
) -> Result<(), super::Error> {
    let path = project.store.layout().run_activity(&lane.name, attempt);
    Ok(ActivityRecord { activity, since: now(), message, sent_back: 0, session: None }.save(&path)?)
}

/// Tells what was noted like that once the agent was started, if it is something to act on.
pub(super) fn tell_expected(project: &Project, lane: &AnyLane, attempt: u32) {
    let said = ActivityRecord::find(&project.store.layout().run_activity(&lane.name, attempt)).ok().flatten();
    if let Some(said) = said.filter(|said| said.activity == Activity::NeedsApproval) {
        tell(project, lane, said.activity, said.message.as_deref());
    }
}

fn tell(project: &Project, lane: &AnyLane, activity: Activity, message: Option<&str>) {
    let more = message.map(|text| format!(" ({text})")).unwrap_or_default();
    let mut event = Event::now(event::Name::AgentState, format!("lane '{}': {activity}{more}", lane.name));
    event.lane = Some(lane.name.clone());
    event.state = Some(activity.to_string());
    project.tell_event(event);
}

/// One line of an agent's own words.
fn shortened(text: &str) -> String {
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .filter(|c| !c.is_control())
        .take(WORDS)
        .collect()
}

#[cfg(test)]
mod recorded;
#[cfg(test)]
mod tests {
    use super::*;

    fn after(kind: &str, input: &str) -> Option<Activity> {
        said(kind, &HookInput::read(input.as_bytes())).map(|(activity, _)| activity)
    }

    #[test]
    fn pi_says_which_session_it_is_in() {
        let input = HookInput::read(br#"{"ev":"agent_end","piSession":"0198-a"}"#);
        assert_eq!(input.pi_session.as_deref(), Some("0198-a"));
    }

    #[test]
    fn hooks_say_what_the_agent_does() {
        assert_eq!(after("prompt", "{}"), Some(Activity::Working));
        assert_eq!(after("permission", r#"{"tool_name":"Bash","new":{}}"#), Some(Activity::NeedsApproval));
        assert_eq!(after("tool", "not json"), Some(Activity::Working));
        assert_eq!(after("stop", ""), Some(Activity::Idle));
        let note = |what: &str| after("notification", &format!("{{\"notification_type\":\"{what}\"}}"));
        assert_eq!(note("permission_prompt"), Some(Activity::NeedsApproval));
        assert_eq!(note("ToolPermission"), Some(Activity::NeedsApproval));
        assert_eq!(note("agent_needs_input"), Some(Activity::NeedsApproval));
        assert_eq!(note("idle_prompt"), Some(Activity::Idle));
        assert_eq!(note("auth_success"), None);
        assert_eq!(after("something-new", "{}"), None);
    }

    #[test]
    fn an_agents_words_become_one_short_line() {
        assert_eq!(shortened("a\n\tb\u{1b}[31m"), "a b[31m");
        assert_eq!(shortened(&"x".repeat(999)).len(), WORDS);
    }
}
