//! Summary of a run. Its exit class comes from what the agent reported, or else from how the process ended.

use proq_base::terminal_text;
use proq_base::usage::{Cost, SessionTotals, Tokens};
use serde::Serialize;

use super::base::limit_reset;
use crate::base::collector::EventCollector;
use crate::base::failure_kind::{FailureKind, classify_failure};
use crate::base::json::truncate;
use crate::base::limit_reset::LimitReset;
use crate::base::progress::Refusal;
use crate::base::run_end::{Exit, ExitClass, RunEnd};

/// Summary of a finished run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Id of the session, for resuming it.
    pub session: Option<String>,
    /// Model that the agent used.
    pub model: Option<String>,
    /// Exit class of the run.
    pub class: ExitClass,
    /// Kind of failure, if the run failed.
    #[serde(rename = "trouble")]
    pub failure: Option<FailureKind>,
    /// Time at which the limit resets that ended the run, where the agent reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "lift")]
    pub limit_reset: Option<LimitReset>,
    /// One line about the end of the run, for users.
    pub detail: Option<String>,
    /// Tokens that the run used.
    pub tokens: Tokens,
    /// Cost of the run, if it is known.
    pub cost: Option<Cost>,
    /// Number of model requests, where the agent reports it.
    pub turns: Option<u64>,
    /// Number of tool calls, those of subagents included.
    pub tool_calls: u64,
    /// Name of the last tool that was called.
    pub last_tool: Option<String>,
    /// Refused tool calls; only the first ones, if they are many.
    #[serde(rename = "refused")]
    pub refusals: Vec<Refusal>,
    /// Last message of the agent.
    pub answer: Option<String>,
    /// Whether neither the reported end nor the output explains a failed run, so that `detail` is only the
    /// exit status.
    #[serde(skip)]
    pub lacks_error_text: bool,
    /// Totals of the session, to save for the next run of that session.
    #[serde(rename = "totals")]
    pub session_totals: SessionTotals,
}

/// Creates the summary of a run. `end` is the end that the dialect's parser returned, if any.
pub fn summarize(collector: &EventCollector, end: Option<RunEnd>, exit: Exit) -> Summary {
    let lacks_text = end.as_ref().is_none_or(|end| end.text.is_none());
    let end = end.unwrap_or_else(|| end_without_result(collector, exit));
    let lacks_error_text =
        lacks_text && end.class != ExitClass::Done && collector.last_error_message().is_none();
    let detail = match (end.class, &end.text) {
        (ExitClass::Done, _) => (!exit.is_clean()).then(|| format!("{} after its result", exit.describe())),
        (_, Some(text)) => Some(one_line(text)),
        (_, None) => Some(one_line(&collector.last_error_message().unwrap_or_else(|| exit.describe()))),
    };
    let error_text = end.text.as_deref().or(collector.error.as_ref().map(|(_, message)| message.as_str()));
    let rate_limited = Some(end.class).filter(|class| *class == ExitClass::RateLimited);
    let limit_reset = rate_limited.and_then(|_| {
        collector
            .limit_reset
            .clone()
            .or_else(|| limit_reset::parse_limit_reset(error_text.unwrap_or_default()))
    });
    let progress = collector.progress();
    Summary {
        session: progress.session.clone(),
        model: progress.model.clone(),
        class: end.class,
        failure: end.failure,
        limit_reset,
        detail,
        tokens: progress.tokens,
        cost: progress.cost,
        turns: progress.turns,
        tool_calls: progress.tool_calls,
        last_tool: progress.last_tool.clone(),
        refusals: collector.refusals.clone(),
        answer: collector.answer.clone(),
        lacks_error_text,
        session_totals: collector.session_totals(),
    }
}

/// Returns the end of a run for which the parser returned none. It is never `Done`, whatever the exit code.
fn end_without_result(collector: &EventCollector, exit: Exit) -> RunEnd {
    let exit_text = exit.describe();
    match exit.terminating_signal() {
        Some(6 | 11) => return RunEnd::with_class(ExitClass::Crashed, &exit_text),
        Some(_) => {
            return RunEnd::with_class(ExitClass::Interrupted, &format!("{exit_text} before its result"));
        }
        None if exit.code == Some(0) && collector.error.is_none() => {
            return RunEnd::with_class(ExitClass::Interrupted, "it ended without a result");
        }
        None => {}
    }
    if let Some((failure, message)) = &collector.error {
        return RunEnd::failed(*failure, message);
    }
    let output = collector.last_non_event_line.as_deref().unwrap_or_default();
    match classify_failure(None, output) {
        FailureKind::Other if collector.progress().session.is_some() => {
            let suffix = if output.is_empty() { String::new() } else { format!(": {output}") };
            RunEnd::with_class(ExitClass::Crashed, &format!("{exit_text} without a result{suffix}"))
        }
        FailureKind::Other if output.is_empty() => RunEnd::with_class(ExitClass::Failed, &exit_text),
        failure => RunEnd::failed(failure, output),
    }
}

/// Returns a message as one line, escaped and truncated for a list.
pub fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    truncate(&terminal_text::escape_line(&words.join(" ")), 300)
}
