//! Events from an agent's hooks while its run is under way: the agent's activity, and whether it may end its
//! turn.

use proq_base::lane_name::LaneName;
use proq_store::Store;
use proq_store::base::clock::now;
use proq_store::base::record::Record;
use proq_store::base::run_number::RunNumber;
use proq_store::records::agent::{Activity, ActivityRecord};
use proq_store::records::lane::AnyLane;
use proq_store::records::run::RunRecord;
use proq_stream::base::collector::is_session_id;
use serde::Deserialize;
use serde_json::Value;

use super::stop_gate;
use crate::event::log;
use crate::event::log::Event;
use crate::lane::Project;

/// Maximum number of characters of an agent's message that are saved.
const MAX_MESSAGE_CHARS: usize = 300;

/// Fields of the JSON input that agents give their hooks, as far as git-proq uses them. Each agent has more
/// fields, and some use other names.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct HookInput {
    /// Text of a notification.
    message: Option<String>,
    /// Kind of a notification.
    notification_type: Option<String>,
    /// Tool that the agent requests consent for.
    tool_name: Option<String>,
    /// Prompt that the agent was given.
    prompt: Option<String>,
    /// Event type, for a plugin of opencode.
    r#type: Option<String>,
    /// Properties of the event that `type` names, for a plugin of opencode.
    properties: Value,
    /// Event name, for an extension of Pi.
    ev: Option<String>,
    /// Whether Pi retries automatically.
    #[serde(rename = "willRetry")]
    will_retry: bool,
    /// Session id of Pi. Pi reports it nowhere else when a user sits at its terminal.
    #[serde(rename = "piSession")]
    pi_session: Option<String>,
}

impl HookInput {
    /// Parses the input of a hook. Input that is not JSON counts as empty.
    pub fn parse(bytes: &[u8]) -> HookInput {
        serde_json::from_slice(bytes).unwrap_or_default()
    }
}

/// Returns the activity and message that a hook event of this kind reports; none when it reports no activity.
fn parse_activity(kind: &str, input: &HookInput) -> Option<(Activity, Option<String>)> {
    match kind {
        "prompt" | "tool" => Some((Activity::Working, None)),
        "idle" | "stop" => Some((Activity::Idle, None)),
        "permission" => {
            let message = input.tool_name.as_ref().map(|tool| format!("wants to use {tool}"));
            Some((Activity::NeedsApproval, message.or_else(|| input.message.clone())))
        }
        "notification" => {
            let notification_kind = input.notification_type.as_deref().unwrap_or_default().to_lowercase();
            let needs_approval =
                ["permission", "elicitation", "input"].iter().any(|word| notification_kind.contains(word));
            if needs_approval {
                Some((Activity::NeedsApproval, input.message.clone()))
            } else {
                notification_kind.starts_with("idle").then_some((Activity::Idle, None))
            }
        }
        "opencode" => parse_opencode_event(input),
        "pi" => match input.ev.as_deref()? {
            "agent_start" | "tool_call" => Some((Activity::Working, None)),
            "agent_end" if input.will_retry => Some((Activity::Working, None)),
            "agent_end" => Some((Activity::Idle, None)),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the activity and message that an event of opencode reports.
fn parse_opencode_event(input: &HookInput) -> Option<(Activity, Option<String>)> {
    match input.r#type.as_deref()? {
        "session.status" if input.properties["status"]["type"] == "idle" => Some((Activity::Idle, None)),
        "session.status" | "permission.replied" => Some((Activity::Working, None)),
        "session.idle" | "session.error" => Some((Activity::Idle, None)),
        kind if kind.starts_with("permission.") => {
            let detail =
                ["title", "permission", "type"].iter().find_map(|name| input.properties[name].as_str());
            Some((Activity::NeedsApproval, detail.map(|detail| format!("requests approval: {detail}"))))
        }
        _ => None,
    }
}

/// Records the activity that a hook event of a run reports. Returns the reason for the agent to continue,
/// where the end of its turn is refused.
///
/// # Errors
/// Fails when the lane or its records cannot be read or written. Nothing else depends on the record.
pub fn handle_hook_event(
    project: &Project,
    lane: &LaneName,
    run_number: RunNumber,
    kind: &str,
    input: &HookInput,
) -> Result<Option<String>, crate::agent::Error> {
    let lane = project.any_lane(lane)?;
    // The event comes from a leftover process of an earlier run.
    if lane.last_run != run_number {
        return Ok(None);
    }
    let update = parse_activity(kind, input);
    // Without a terminal nobody can answer: the agent's request is refused at once, and the agent continues.
    let needs_approval = update.as_ref().is_some_and(|(activity, _)| *activity == Activity::NeedsApproval);
    if needs_approval
        && kind != "notification"
        && !RunRecord::load(&project.store.layout().run_record(&lane.name, run_number))?.interactive
    {
        return Ok(None);
    }
    let path = project.store.layout().run_activity(&lane.name, run_number);
    // A broken record is replaced.
    let previous = ActivityRecord::load_if_exists(&path).ok().flatten();
    let mut refused_stops = previous.as_ref().map_or(0, |record| record.refused_stops);
    // Some agents report the refusal itself as a prompt. Not all report with the end of a turn whether an
    // earlier end was refused.
    if kind == "prompt"
        && !input.prompt.as_deref().is_some_and(|text| text.contains(stop_gate::REFUSAL_PREFIX))
    {
        refused_stops = 0;
    }
    let mut refusal = None;
    if kind == "stop" && project.settings.stop_gate && refused_stops < project.settings.stop_gate_rounds {
        refusal = stop_gate::run_stop_gate_checks(project, &lane, run_number)?;
        refused_stops += u32::from(refusal.is_some());
    }
    let update = if refusal.is_some() { Some((Activity::Working, None)) } else { update };
    let Some((activity, message)) = update else { return Ok(None) };
    let message = message.map(|text| to_short_line(&text));
    let changed = previous.as_ref().is_none_or(|record| record.activity != activity);
    let known_session = previous.as_ref().and_then(|record| record.session.clone());
    let session = input.pi_session.clone().filter(|id| is_session_id(id)).or(known_session);
    let record =
        ActivityRecord { activity, since: now(), waits_for: message.clone(), refused_stops, session };
    if previous.is_none_or(|before| ActivityRecord { since: record.since, ..before } != record) {
        record.save_unsynced(&path)?;
    }
    if changed {
        emit_activity(project, &lane, activity, message.as_deref());
    }
    Ok(refusal)
}

/// Returns the session id that the hooks of a run have reported, if any.
pub(crate) fn reported_session(store: &Store, lane: &LaneName, run_number: RunNumber) -> Option<String> {
    ActivityRecord::load_if_exists(&store.layout().run_activity(lane, run_number)).ok().flatten()?.session
}

/// Records the activity of a run before its hooks have reported anything.
///
/// # Errors
/// Fails when the record cannot be written.
pub(crate) fn record_initial_activity(
    store: &Store,
    lane: &AnyLane,
    run_number: RunNumber,
    activity: Activity,
    message: Option<String>,
) -> Result<(), crate::agent::Error> {
    let path = store.layout().run_activity(&lane.name, run_number);
    Ok(ActivityRecord { activity, since: now(), waits_for: message, refused_stops: 0, session: None }
        .save(&path)?)
}

/// Emits an event if the activity recorded at the start of a run is that the agent needs an approval by the
/// user.
pub(crate) fn emit_initial_needs_approval(project: &Project, lane: &AnyLane, run_number: RunNumber) {
    let record = ActivityRecord::load_if_exists(&project.store.layout().run_activity(&lane.name, run_number))
        .ok()
        .flatten();
    if let Some(record) = record.filter(|record| record.activity == Activity::NeedsApproval) {
        emit_activity(project, lane, record.activity, record.waits_for.as_deref());
    }
}

fn emit_activity(project: &Project, lane: &AnyLane, activity: Activity, message: Option<&str>) {
    let suffix = message.map(|text| format!(" ({text})")).unwrap_or_default();
    let mut event =
        Event::new(log::EventName::AgentState, format!("lane '{}': {activity}{suffix}", lane.name));
    event.lane = Some(lane.name.to_string());
    event.state = Some(activity.to_string());
    project.emit_event(event);
}

/// Returns an agent's text as one short line without control characters.
fn to_short_line(text: &str) -> String {
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .filter(|c| !c.is_control())
        .take(MAX_MESSAGE_CHARS)
        .collect()
}

#[cfg(test)]
mod recorded;
#[cfg(test)]
mod tests {
    use super::*;

    fn parsed_activity(kind: &str, input: &str) -> Option<Activity> {
        parse_activity(kind, &HookInput::parse(input.as_bytes())).map(|(activity, _)| activity)
    }

    #[test]
    fn reads_session_of_pi() {
        let input = HookInput::parse(br#"{"ev":"agent_end","piSession":"0198-a"}"#);
        assert_eq!(input.pi_session.as_deref(), Some("0198-a"));
    }

    #[test]
    fn parses_activity_of_hook_events() {
        assert_eq!(parsed_activity("prompt", "{}"), Some(Activity::Working));
        assert_eq!(
            parsed_activity("permission", r#"{"tool_name":"Bash","new":{}}"#),
            Some(Activity::NeedsApproval)
        );
        assert_eq!(parsed_activity("tool", "not json"), Some(Activity::Working));
        assert_eq!(parsed_activity("stop", ""), Some(Activity::Idle));
        let notification =
            |kind: &str| parsed_activity("notification", &format!("{{\"notification_type\":\"{kind}\"}}"));
        assert_eq!(notification("permission_prompt"), Some(Activity::NeedsApproval));
        assert_eq!(notification("ToolPermission"), Some(Activity::NeedsApproval));
        assert_eq!(notification("agent_needs_input"), Some(Activity::NeedsApproval));
        assert_eq!(notification("idle_prompt"), Some(Activity::Idle));
        assert_eq!(notification("auth_success"), None);
        assert_eq!(parsed_activity("something-new", "{}"), None);
    }

    #[test]
    fn shortens_message_to_one_line() {
        assert_eq!(to_short_line("a\n\tb\u{1b}[31m"), "a b[31m");
        assert_eq!(to_short_line(&"x".repeat(999)).len(), MAX_MESSAGE_CHARS);
    }
}
