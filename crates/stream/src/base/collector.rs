//! Collector of a run's progress and events, which the parsers of all dialects write to.

use std::collections::VecDeque;
use std::time::Duration;

use proq_base::money::NanoDollars;
use proq_base::terminal_text;
use proq_base::usage::{Cost, SessionTotals, Tokens};
use serde_json::Value;

use super::event::StreamEvent;
use super::failure_kind::FailureKind;
use super::json::{MAX_MESSAGE_BYTES, MAX_NAME_BYTES, MAX_OUTPUT_BYTES, MAX_TEXT_BYTES, truncate};
use super::limit_reset::LimitReset;
use super::price::Prices;
use super::progress::{Progress, Refusal};
use super::run_end::RunEnd;

/// Maximum number of refusals that are retained.
const MAX_REFUSALS: usize = 50;
/// Maximum number of denied commands that are retained.
const MAX_DENIED_COMMANDS: usize = 5;
/// Maximum number of tool calls whose shell commands are remembered for a later refusal.
const MAX_REMEMBERED_COMMANDS: usize = 16;
/// Size limit of a remembered shell command, in bytes.
const MAX_COMMAND_BYTES: usize = 200;
/// Size limit of the last text, which is shown in lists, in bytes.
const MAX_LAST_TEXT_BYTES: usize = 500;

/// Collector of one run: its progress, its end, and the events that no caller has received yet.
#[derive(Default)]
pub struct EventCollector {
    progress: Progress,
    /// Events that no caller has received yet.
    undelivered_events: Vec<StreamEvent>,
    /// Totals of the session before this run.
    earlier_totals: SessionTotals,
    prices: Prices,
    /// Last reported counters of the session (tokens and cost), for agents whose counters continue from run
    /// to run.
    session_counters: (Option<Tokens>, Option<NanoDollars>),
    /// Cost of this run that the agent reported last.
    reported_cost: Option<NanoDollars>,
    /// Estimated cost, by the models' prices, of the usage since the agent last reported a cost.
    estimated_since_report: NanoDollars,
    /// Text that arrived in chunks and is not emitted yet, and whether it is reasoning.
    pending_chunk: Option<(String, bool)>,
    /// End of the run that the agent reported last; none while it has reported no end.
    pub end: Option<RunEnd>,
    /// Last error of the run. `None` after the agent has reported success.
    pub error: Option<(FailureKind, String)>,
    /// Time at which the last reached limit resets.
    pub limit_reset: Option<LimitReset>,
    /// Refused tool calls of the run, oldest first, up to a maximum number.
    pub refusals: Vec<Refusal>,
    /// Ids and shell commands of the last tool calls that have one.
    recent_commands: VecDeque<(String, String)>,
    /// Last text of the agent itself, without its subagents' texts; none before the first.
    pub answer: Option<String>,
    /// Last line that is not an event, preferably one that mentions an error.
    pub(crate) last_non_event_line: Option<String>,
}

impl EventCollector {
    /// Creates the collector of a run; `earlier_totals` is the usage of its session before the run.
    pub fn new(earlier_totals: &SessionTotals) -> EventCollector {
        let progress = Progress { context_size: earlier_totals.context_size, ..Progress::default() };
        EventCollector { progress, earlier_totals: earlier_totals.clone(), ..EventCollector::default() }
    }

    /// Returns the progress of the run so far, such as its session, model, tokens and cost.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Sets prices for an agent that does not report cost, and the requested model for one that does not name
    /// its model.
    pub(crate) fn set_prices_and_model(&mut self, prices: Prices, model: Option<String>) {
        self.prices = prices;
        self.progress.model = model;
    }

    /// Moves the collected events to `out`.
    pub fn drain(&mut self, out: &mut Vec<StreamEvent>) {
        out.append(&mut self.undelivered_events);
        self.undelivered_events.shrink_to(64);
    }

    /// Adds an event, after the pending chunks.
    fn push(&mut self, event: StreamEvent) {
        self.flush_chunks();
        self.undelivered_events.push(event);
    }

    /// Emits the pending chunks of text or reasoning as one event.
    pub fn flush_chunks(&mut self) {
        if let Some((text, is_thinking)) = self.pending_chunk.take() {
            if is_thinking {
                self.undelivered_events.push(StreamEvent::Thinking { text, parent_call: None });
            } else {
                self.answer = Some(text.clone());
                self.undelivered_events.push(StreamEvent::Text { text, parent_call: None });
            }
        }
    }

    /// Sets the session id and, where given, the model. Emits an event if one of them changed. An invalid id
    /// is ignored together with its model.
    pub(crate) fn set_session(&mut self, id: &str, model: Option<&str>) {
        let model = model.filter(|m| !m.is_empty()).map(display_name);
        // The id will be an argument on a command line.
        if !is_session_id(id) {
            return;
        }
        let id = id.to_owned();
        let is_new =
            self.progress.session.as_ref() != Some(&id) || model.is_some() && model != self.progress.model;
        if !is_new {
            return;
        }
        self.progress.session = Some(id.clone());
        self.progress.model = model.clone().or(self.progress.model.take());
        self.push(StreamEvent::Session { id, model });
    }

    /// Sets the model, for an agent that does not name it with the session.
    pub(crate) fn set_model(&mut self, model: &str) {
        if !model.is_empty() {
            self.progress.model = Some(display_name(model));
        }
    }

    /// Adds a text of the agent or of a subagent.
    pub fn add_text(&mut self, text: &str, parent: Option<&str>) {
        if text.trim().is_empty() {
            return;
        }
        let text = truncate(text, MAX_TEXT_BYTES);
        if parent.is_none() {
            self.progress.last_text = Some(truncate(&text, MAX_LAST_TEXT_BYTES));
            self.answer = Some(text.clone());
        }
        self.push(StreamEvent::Text { text, parent_call: parent.map(|p| truncate(p, MAX_NAME_BYTES)) });
    }

    /// Adds a chunk to the pending text or reasoning, which is emitted as one event before the next event.
    pub(crate) fn add_chunk(&mut self, text: &str, is_thinking: bool) {
        if self.pending_chunk.as_ref().is_some_and(|(pending_text, pending_is_thinking)| {
            *pending_is_thinking != is_thinking
                || pending_text.len().saturating_add(text.len()) > MAX_TEXT_BYTES
        }) {
            self.flush_chunks();
        }
        let (pending_text, _) = self.pending_chunk.get_or_insert_with(|| (String::new(), is_thinking));
        pending_text.push_str(&truncate(text, MAX_TEXT_BYTES));
        let last_text = truncate(pending_text, MAX_LAST_TEXT_BYTES);
        if pending_text.is_empty() {
            self.pending_chunk = None;
        } else if !is_thinking {
            self.progress.last_text = Some(last_text);
        }
    }

    /// Adds reasoning of the agent or of a subagent.
    pub(crate) fn add_thinking(&mut self, text: &str, parent: Option<&str>) {
        if !text.trim().is_empty() {
            let parent = parent.map(|p| truncate(p, MAX_NAME_BYTES));
            self.push(StreamEvent::Thinking { text: truncate(text, MAX_TEXT_BYTES), parent_call: parent });
        }
    }

    /// Adds a tool call.
    pub(crate) fn add_tool_call(&mut self, id: &str, name: &str, input: Value, parent: Option<&str>) {
        let name = self::display_name(name);
        self.progress.tool_calls += 1;
        self.progress.last_tool = Some(name.clone());
        self.progress.last_command = self.remember_command(id, &input);
        let (id, parent_call) = (truncate(id, MAX_NAME_BYTES), parent.map(|p| truncate(p, MAX_NAME_BYTES)));
        self.push(StreamEvent::ToolUse { id, name, input, parent_call });
    }

    /// Remembers the shell command of a call, by the call's id and its input, for a refusal of it. Returns the
    /// command; none if the call has none.
    pub(crate) fn remember_command(&mut self, id: &str, input: &Value) -> Option<String> {
        let command = input.get("command").and_then(Value::as_str)?;
        let command = truncate(&terminal_text::escape_line(command), MAX_COMMAND_BYTES);
        self.recent_commands.truncate(MAX_REMEMBERED_COMMANDS - 1);
        self.recent_commands.push_front((truncate(id, MAX_NAME_BYTES), command.clone()));
        Some(command)
    }

    /// Adds the result of a tool call.
    pub(crate) fn add_tool_result(&mut self, id: &str, ok: bool, output: &str) {
        self.push(StreamEvent::ToolResult {
            id: truncate(id, MAX_NAME_BYTES),
            ok,
            output: truncate(output, MAX_OUTPUT_BYTES),
        });
    }

    /// Sets the number of tokens that this run has used so far. Estimates the cost from it, unless the agent
    /// has reported a cost.
    pub(crate) fn set_usage(&mut self, tokens: Tokens) {
        if tokens == self.progress.tokens {
            return;
        }
        self.progress.tokens = tokens;
        self.push(StreamEvent::Usage(tokens));
        if self.progress.cost.is_none_or(|cost| cost.estimated) {
            let model = self.progress.model.as_deref().unwrap_or_default();
            if let Some(cost) = self.prices.estimate_cost(model, &tokens) {
                self.update_cost(cost);
            }
        }
    }

    /// Adds tokens to those that this run has used.
    pub(crate) fn add_usage(&mut self, added: Tokens) {
        self.set_usage(self.progress.tokens.plus(added));
    }

    /// Adds tokens used by `model`, which may be the model of a subagent, and adds their price to the
    /// estimated cost. Tokens of a model without a price are not in the estimate.
    pub(crate) fn add_model_usage(&mut self, model: Option<&str>, added: Tokens) {
        self.progress.tokens = self.progress.tokens.plus(added);
        self.push(StreamEvent::Usage(self.progress.tokens));
        let model = model.or(self.progress.model.as_deref()).unwrap_or_default();
        if let Some(cost) = self.prices.estimate_cost(model, &added) {
            self.estimated_since_report = self.estimated_since_report.saturating_add(cost.amount);
            let amount = self.reported_cost.unwrap_or_default().saturating_add(self.estimated_since_report);
            self.update_cost(Cost { amount, estimated: true });
        }
    }

    /// Sets the cost of this run so far, as the agent reports it.
    pub(crate) fn set_cost(&mut self, amount: NanoDollars) {
        (self.reported_cost, self.estimated_since_report) = (Some(amount), NanoDollars::ZERO);
        self.update_cost(Cost { amount, estimated: false });
    }

    /// Sets the cost of the run so far, and adds an event if it changed.
    fn update_cost(&mut self, cost: Cost) {
        if self.progress.cost != Some(cost) {
            self.progress.cost = Some(cost);
            self.push(StreamEvent::Cost(cost));
        }
    }

    /// Records `total`, the tokens of all runs of the session, and returns the share of this run: the
    /// increase over the earlier totals. If a counter has decreased, the agent has started to count from
    /// zero. If the earlier totals are outdated, the share is what was counted during this run.
    pub(crate) fn run_usage_from_session(&mut self, total: Tokens) -> Tokens {
        self.session_counters.0 = Some(total);
        let counted_in_run = self.progress.tokens;
        if self.earlier_totals.is_outdated && self.resumes_known_session() {
            return counted_in_run;
        }
        let run_usage = if self.resumes_known_session() {
            total.increase_since(self.earlier_totals.tokens)
        } else {
            Some(total)
        };
        run_usage.unwrap_or(if counted_in_run.is_zero() { total } else { counted_in_run })
    }

    /// Records `total`, the cost of all runs of the session, and returns the share of this run. `None` if the
    /// earlier totals are outdated.
    pub(crate) fn run_cost_from_session(&mut self, total: NanoDollars) -> Option<NanoDollars> {
        self.session_counters.1 = Some(total);
        if self.earlier_totals.is_outdated && self.resumes_known_session() {
            return None;
        }
        let earlier_cost =
            self.earlier_totals.cost.filter(|_| self.resumes_known_session()).unwrap_or_default();
        Some(total.checked_sub(earlier_cost).unwrap_or(total))
    }

    /// Returns whether the run's session is the one that the earlier totals belong to.
    fn resumes_known_session(&self) -> bool {
        self.progress.session.is_some() && self.progress.session == self.earlier_totals.session
    }

    /// Sets how many tokens are in the context, and how many fit into it.
    pub(crate) fn set_context(&mut self, used: u64, size: Option<u64>) {
        let size = size.filter(|s| *s > 0).or(self.progress.context_size);
        if (self.progress.context_used, self.progress.context_size) != (Some(used), size) {
            (self.progress.context_used, self.progress.context_size) = (Some(used), size);
            self.push(StreamEvent::Context { tokens_in_context: used, context_size: size });
        }
    }

    /// Sets the number of model requests.
    pub(crate) fn set_turns(&mut self, turns: u64) {
        self.progress.turns = Some(turns);
    }

    /// Adds one model request.
    pub(crate) fn add_turn(&mut self) {
        self.progress.turns = Some(self.progress.turns.unwrap_or(0) + 1);
    }

    /// Adds an event for the agent's request for permission to use a tool.
    pub(crate) fn add_permission_request(&mut self, id: &str, tool: &str, input: Value) {
        let (id, tool) = (truncate(id, MAX_NAME_BYTES), display_name(tool));
        self.push(StreamEvent::PermissionRequested { id, tool, input });
    }

    /// Adds an event for a message that was sent to the agent and starts another turn.
    pub(crate) fn add_sent_message(&mut self, text: &str) {
        self.push(StreamEvent::MessageSent { text: truncate(text, MAX_TEXT_BYTES) });
    }

    /// Records a refused tool call and adds its event. Some agents report a refusal twice, so a call id that
    /// is already recorded is ignored.
    pub(crate) fn add_refusal(&mut self, id: Option<&str>, tool: &str, message: &str) {
        let id = id.map(|id| truncate(id, MAX_NAME_BYTES));
        if id.is_some() && self.refusals.iter().any(|r| r.id == id) {
            return;
        }
        let (tool, message) = (display_name(tool), truncate(message, MAX_MESSAGE_BYTES));
        let command = self.recent_commands.iter().find(|(call, _)| Some(call) == id.as_ref());
        let command = command.map(|(_, command)| command.clone());
        if self.refusals.len() < MAX_REFUSALS {
            self.progress.denied += 1;
            let known = &mut self.progress.denied_commands;
            known.extend(
                command.clone().filter(|new| known.len() < MAX_DENIED_COMMANDS && !known.contains(new)),
            );
            self.refusals.push(Refusal { id, tool: tool.clone(), message: message.clone() });
        }
        self.push(StreamEvent::PermissionRefused { tool, message, command });
    }

    /// Adds a retry of a request.
    pub(crate) fn add_retry(
        &mut self,
        attempt: Option<u64>,
        max_attempts: Option<u64>,
        delay: Option<Duration>,
        reason: &str,
    ) {
        self.progress.retries += 1;
        self.push(StreamEvent::Retry {
            attempt,
            max_attempts,
            delay,
            reason: truncate(reason, MAX_MESSAGE_BYTES),
        });
    }

    /// Adds a warning, unless it is blank.
    pub(crate) fn add_warning(&mut self, message: &str) {
        if !message.trim().is_empty() {
            self.push(StreamEvent::Warning { message: truncate(message, MAX_MESSAGE_BYTES) });
        }
    }

    /// Sets the last error.
    pub(crate) fn set_error(&mut self, kind: FailureKind, message: &str) {
        let message = truncate(message, MAX_MESSAGE_BYTES);
        self.error = Some((kind, message.clone()));
        self.push(StreamEvent::Error { message, kind });
    }

    /// Sets the end of the run that the agent reports. `answer` is the agent's last message, where the report
    /// contains it.
    pub(crate) fn set_end(&mut self, end: RunEnd, answer: Option<&str>) {
        self.flush_chunks();
        let ok = end.class == super::run_end::ExitClass::Done;
        if ok {
            self.error = None;
            if let Some(answer) = answer.filter(|a| !a.is_empty()) {
                self.answer = Some(truncate(answer, MAX_TEXT_BYTES));
            }
        }
        let text = if ok { answer.map(|a| truncate(a, MAX_TEXT_BYTES)) } else { end.text.clone() };
        self.end = Some(end);
        self.push(StreamEvent::Result { ok, text });
    }

    /// Clears the end, since another turn has started.
    pub(crate) fn clear_end(&mut self) {
        self.end = None;
    }

    /// Adds an event for a line that no parser interprets. `kind` names the type of the line.
    pub(crate) fn add_unknown_line(&mut self, kind: &str) {
        self.push(StreamEvent::Unknown { kind: truncate(kind, MAX_NAME_BYTES) });
    }

    /// Adds a line that is not an event: usually a message of the agent's program.
    pub(crate) fn add_non_event_line(&mut self, line: &str) {
        let line = console::strip_ansi_codes(line);
        let line = line.trim();
        if line.is_empty() {
            return;
        }
        let mentions_error = |text: &str| text.to_lowercase().contains("error");
        if mentions_error(line) || !self.last_non_event_line.as_deref().is_some_and(mentions_error) {
            self.last_non_event_line = Some(truncate(line, MAX_MESSAGE_BYTES));
        }
        self.add_unknown_line("no event");
    }

    /// Returns the message of the last error; the last line that is not an event where there was none.
    pub(crate) fn last_error_message(&self) -> Option<String> {
        self.error.as_ref().map(|(_, message)| message.clone()).or_else(|| self.last_non_event_line.clone())
    }

    /// Returns the totals of the session after this run.
    pub fn session_totals(&self) -> SessionTotals {
        if self.progress.session.is_none() {
            return self.earlier_totals.clone();
        }
        let earlier =
            if self.resumes_known_session() { self.earlier_totals.clone() } else { SessionTotals::default() };
        let reported_total = self
            .reported_cost
            .map(|run_cost| run_cost.saturating_add(earlier.cost.unwrap_or_default()))
            .or(earlier.cost);
        SessionTotals {
            session: self.progress.session.clone(),
            tokens: self.session_counters.0.unwrap_or_else(|| earlier.tokens.plus(self.progress.tokens)),
            cost: self.session_counters.1.or(reported_total),
            context_size: self.progress.context_size,
            is_outdated: earlier.is_outdated && self.session_counters == (None, None),
        }
    }

    /// Returns the number of bytes held in memory, without the texts of events that wait for delivery.
    #[cfg(test)]
    pub(crate) fn memory_bytes(&self) -> usize {
        let texts =
            [&self.answer, &self.last_non_event_line, &self.progress.last_text, &self.progress.session];
        let refusal_bytes: usize = self.refusals.iter().map(|r| r.tool.len() + r.message.len()).sum();
        texts.into_iter().flatten().map(String::len).sum::<usize>()
            + refusal_bytes
            + self.recent_commands.iter().map(|(id, command)| id.len() + command.len()).sum::<usize>()
            + self.progress.denied_commands.iter().map(String::len).sum::<usize>()
            + self.pending_chunk.as_ref().map_or(0, |(text, _)| text.len())
            + self.undelivered_events.len() * size_of::<StreamEvent>()
    }
}

/// Returns a name with its control characters escaped and its length bounded.
fn display_name(text: &str) -> String {
    truncate(&terminal_text::escape_line(text), MAX_NAME_BYTES)
}

/// Returns whether a text is safe as a session id: not empty, not long, no option, no shell characters.
pub fn is_session_id(text: &str) -> bool {
    let is_allowed = |b: u8| b.is_ascii_alphanumeric() || b"-_.:/@".contains(&b);
    (1..=MAX_NAME_BYTES).contains(&text.len()) && !text.starts_with('-') && text.bytes().all(is_allowed)
}

/// The most recent ids of messages or calls, each with its last reported usage, to recognize an id that
/// appears again.
#[derive(Default)]
pub(crate) struct RecentIds {
    ids_with_usage: VecDeque<(String, Tokens)>,
}

impl RecentIds {
    /// Maximum number of ids that are retained.
    const CAPACITY: usize = 64;

    /// Inserts an id and returns whether it is new.
    pub fn insert(&mut self, name: &str) -> bool {
        self.find_or_insert(name).is_none()
    }

    /// Records the reported usage of a message, and returns the increase since its last report, if there is
    /// one.
    pub(crate) fn record_usage_increase(&mut self, name: &str, reported: Tokens) -> Option<Tokens> {
        let entry = match self.find_or_insert(name) {
            Some(at) => self.ids_with_usage.get_mut(at),
            None => self.ids_with_usage.back_mut(),
        };
        let (_, previous) = entry?;
        let increase = reported.increase_since(*previous).filter(|more| !more.is_zero())?;
        *previous = reported;
        Some(increase)
    }

    /// Returns the position of an id; none for a new one, which is inserted as the last entry.
    fn find_or_insert(&mut self, name: &str) -> Option<usize> {
        let name = self::display_name(name);
        let position = self.ids_with_usage.iter().position(|(known, _)| *known == name);
        if position.is_none() {
            if self.ids_with_usage.len() == Self::CAPACITY {
                self.ids_with_usage.pop_front();
            }
            self.ids_with_usage.push_back((name, Tokens::default()));
        }
        position
    }
}
