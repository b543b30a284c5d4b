//! The runs of a lane as `git proq show` prints them, and the messages that are pending for its agent.

use proq_base::run_class::RunClass;
use proq_lib::board::rows::lane_details::LaneDetails;
use proq_lib::types::{Activity, MessageRecord, RunRecord, StepPhase};

use crate::cli::terminal::ui::Ui;
use crate::cli::terminal::{ui, usage};

/// Prints the outcome, reason and usage of each run, their total usage, and the pending messages in full,
/// because nobody has read them yet. `is_busy` means that the last run still goes on; `activity` is that of
/// its agent. A reason that is `shown_reason` is on the screen already.
pub(crate) fn print_runs(
    ui: Ui,
    details: &LaneDetails,
    is_busy: bool,
    activity: Option<Activity>,
    shown_reason: Option<&str>,
) {
    for run in &details.runs {
        let outcome_text = describe_run(run, is_busy && Some(run) == details.runs.last(), activity);
        ui.print_field(&format!("run {}", run.number), &outcome_text);
        match run.delivery_count {
            0 => {}
            n => ui.print_field("", format!("received {} while it ran", ui::pluralize(n, "message"))),
        }
        let is_new = |detail: &&String| {
            !outcome_text.contains(detail.as_str()) && shown_reason != Some(detail.as_str())
        };
        let detail = run.detail.iter().filter(is_new).cloned();
        detail.chain(usage::usage_phrases(&run.summary)).for_each(|phrase| ui.print_field("", phrase));
    }
    let totals = usage::total_usage_phrases(&details.runs).join(", ");
    if !totals.is_empty() {
        ui.print_field("total", totals);
    }
    for MessageRecord { agent, conversation: talk, sent_at: at, text, .. } in &details.pending_messages {
        ui.print_field(
            "queued",
            format!("for {agent}, in the conversation of run {talk}; sent {}", ui::age(*at)),
        );
        for text_line in text.trim_end().lines() {
            ui.print_field("", format!("  {}", ui::strip_control_chars(text_line)));
        }
    }
}

/// Describes the activity of an agent in a tmux window, as far as its hooks have reported it; ends with a
/// comma.
fn activity_prefix(activity: Option<Activity>) -> &'static str {
    match activity {
        Some(Activity::Working) => "at work, ",
        Some(Activity::NeedsApproval) => "waits for you, ",
        Some(Activity::Idle) => "idle, ",
        Some(Activity::Unknown) | None => "",
    }
}

/// Describes how a run ended, or that it goes on, with its duration and purpose.
fn describe_run(run: &RunRecord, is_running: bool, activity: Option<Activity>) -> String {
    let class = run.class.filter(|class| !matches!(class, RunClass::Failed | RunClass::Done));
    let class = class.map(|class| class.to_string()).unwrap_or_default();
    let outcome_text = match (run.outcome, run.exit_code, run.signal) {
        (None, ..) if !is_running => "its end is not recorded".to_owned(),
        (None, ..) if run.window.is_some() => format!("{}in a window of tmux", activity_prefix(activity)),
        (None, ..) => "at work".to_owned(),
        // git-proq ended this agent for a reason: its exit code or signal adds nothing.
        (Some(state), ..) if !class.is_empty() && class != state.to_string() => format!("{state}, {class}"),
        (Some(state), _, Some(signal)) => format!("{state}, signal {signal}"),
        (Some(state), Some(code), _) => format!("{state}, exit code {code}"),
        (Some(state), None, None) => state.to_string(),
    };
    let duration = run.ended.map(|ended| ui::short_duration(ended.duration_since(run.started)));
    let duration_suffix = duration.map(|duration| format!(", {duration}")).unwrap_or_default();
    let purpose_suffix = match run.step_run.as_ref().map(|step_run| (step_run.phase, step_run.step)) {
        _ if run.resolves_conflict => ", on the conflict".to_owned(),
        None => String::new(),
        Some((StepPhase::Plan, step)) => format!(", the plan of step {step}"),
        Some((StepPhase::Work, step)) => format!(", step {step}"),
        Some((phase, step)) => format!(", a review of the {} of step {step}", phase.subject()),
    };
    let strays_suffix = match run.stopped_strays {
        0 => String::new(),
        n => format!(", {} that it had left behind were stopped", ui::pluralize(n, "process")),
    };
    format!("{}{purpose_suffix}: {outcome_text}{duration_suffix}{strays_suffix}", run.agent)
}
