//! The runs of a lane as `git proq show` prints them, and the messages that are pending for its agent.

use proq_base::run_class::RunClass;
use proq_lib::board::rows::lane_details::LaneDetails;
use proq_lib::types::{Activity, MessageRecord, RunRecord, RunState, StepPhase};

use crate::cli::terminal::{ui, usage};

/// Prints the outcome, reason and usage of each run, their total usage, and the pending messages. `is_busy`
/// means that the last run still goes on; `activity` is that of its agent.
pub(crate) fn print_runs(
    print_field: &dyn Fn(&str, &str),
    details: &LaneDetails,
    is_busy: bool,
    activity: Option<Activity>,
) {
    for run in &details.runs {
        let outcome_text = describe_run(run, is_busy && Some(run) == details.runs.last(), activity);
        print_field(&format!("run {}", run.number), &outcome_text);
        if run.delivery_count > 0 {
            let times_text = if run.delivery_count == 1 {
                "once".to_owned()
            } else {
                format!("{} times", run.delivery_count)
            };
            print_field("", &format!("told more {times_text} while it was at work"));
        }
        let detail = run.detail.iter().filter(|detail| !outcome_text.contains(detail.as_str())).cloned();
        for phrase in detail.chain(usage::usage_phrases(&run.summary)) {
            print_field("", &phrase);
        }
    }
    let totals = usage::total_usage_phrases(&details.runs).join(", ");
    if !totals.is_empty() {
        print_field("in all", &totals);
    }
    print_pending_messages(print_field, details);
}

/// Prints the pending messages in full, because nobody has read them yet.
fn print_pending_messages(print_field: &dyn Fn(&str, &str), details: &LaneDetails) {
    for message in &details.pending_messages {
        let MessageRecord { agent, conversation: talk, sent_at: at, text, .. } = message;
        print_field(
            "waits",
            &format!("to be told to {agent}, in the conversation of run {talk}; sent at {at}"),
        );
        for text_line in text.trim_end().lines() {
            print_field("", &format!("  {}", ui::strip_control_chars(text_line)));
        }
    }
}

/// Returns whether the exit class of a run gives information beyond its state and exit code.
fn class_adds_detail(run: &RunRecord, state: RunState) -> bool {
    run.class.is_some_and(|class| class.to_string() != state.to_string())
        && !matches!(run.class, Some(RunClass::Failed | RunClass::Done))
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
    let outcome_text = match (run.outcome, run.exit_code, run.signal) {
        (None, ..) if !is_running => "nobody has written how it ended".to_owned(),
        (None, ..) if run.window.is_some() => format!("{}in a window of tmux", activity_prefix(activity)),
        (None, ..) => "at work".to_owned(),
        // git-proq ended this agent for a reason: its exit code or signal adds nothing.
        (Some(state), ..) if class_adds_detail(run, state) => {
            format!("{state}, {}", run.class.map(|class| class.to_string()).unwrap_or_default())
        }
        (Some(state), _, Some(signal)) => format!("{state}, signal {signal}"),
        (Some(state), Some(code), _) => format!("{state}, exit code {code}"),
        (Some(state), None, None) => state.to_string(),
    };
    let duration_suffix = run
        .ended
        .map(|ended| format!(", {}", ui::short_duration(ended.duration_since(run.started))))
        .unwrap_or_default();
    let purpose_suffix = match &run.step_run {
        _ if run.resolves_conflict => ", on the conflict".to_owned(),
        None => String::new(),
        Some(step_run) => match step_run.phase {
            StepPhase::Plan => format!(", the plan of step {}", step_run.step),
            StepPhase::Work => format!(", step {}", step_run.step),
            StepPhase::PlanReview | StepPhase::CodeReview => {
                format!(", a review of the {} of step {}", step_run.phase.subject(), step_run.step)
            }
        },
    };
    let strays_suffix = match run.stopped_strays {
        0 => String::new(),
        n => format!(", {} that it had left were ended", ui::pluralize(n, "process")),
    };
    format!("{}{purpose_suffix}: {outcome_text}{duration_suffix}{strays_suffix}", run.agent)
}
