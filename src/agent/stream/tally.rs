//! Owns what a run has come to so far, and the events that are told of it. Every dialect writes into this.

use std::collections::VecDeque;

use serde::Serialize;
use serde_json::Value;

use super::json::{LONGEST_MESSAGE, LONGEST_NAME, LONGEST_OUTPUT, LONGEST_TEXT, cut};
use super::summary::End;
use super::{Cost, Event, Lift, Prices, SessionTotals, Tokens, Trouble};
use crate::harmless;

/// How many refusals are kept.
const MOST_REFUSALS: usize = 50;
/// The longest last text for a list.
const LAST_TEXT: usize = 500;

/// What a run has come to so far.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Progress {
    /// The session.
    pub(crate) session: Option<String>,
    /// The model.
    pub(crate) model: Option<String>,
    /// How many tools were called.
    pub(crate) tool_calls: u64,
    /// The last of them.
    pub(crate) last_tool: Option<String>,
    /// What it has used.
    pub(crate) tokens: Tokens,
    /// What it has cost.
    pub(crate) cost: Option<Cost>,
    /// Tokens in the model's context.
    pub(crate) context_used: Option<u64>,
    /// Tokens that fit into it.
    pub(crate) context_size: Option<u64>,
    /// How often the model was asked, where the agent tells.
    pub(crate) turns: Option<u64>,
    /// How often a request was tried again.
    pub(crate) retries: u64,
    /// The beginning of what the agent said last.
    pub(crate) last_text: Option<String>,
}

impl Progress {
    /// How full the context is, in percent, where the agent tells its size.
    pub(crate) fn context_percent(&self) -> Option<u64> {
        let (used, size) = (self.context_used?, self.context_size.filter(|size| *size > 0)?);
        Some(used.saturating_mul(100) / size)
    }
}

/// A tool that was not allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Refusal {
    /// The call, where it has a name.
    pub(crate) id: Option<String>,
    /// The tool.
    pub(crate) tool: String,
    /// What the agent was told.
    pub(crate) message: String,
}

/// All that a run is known by.
#[derive(Default)]
pub(super) struct Tally {
    progress: Progress,
    queue: Vec<Event>,
    before: SessionTotals,
    prices: Prices,
    /// The session's counters as the agent gave them last, for agents that count on.
    counted: (Option<Tokens>, Option<u64>),
    /// What the agent has said that this run has cost.
    said: Option<u64>,
    /// What has been used since would cost, by the prices of the models.
    since_said: u64,
    /// What was said in pieces and is not told yet.
    piece: Option<(String, bool)>,
    pub(super) end: Option<End>,
    /// The last error, while nothing has come right since.
    pub(super) error: Option<(Trouble, String)>,
    /// When the limit is lifted that was reached last.
    pub(super) lift: Option<Lift>,
    pub(super) refused: Vec<Refusal>,
    pub(super) answer: Option<String>,
    /// The last line that is no event, preferably one that speaks of an error.
    pub(super) noise: Option<String>,
}

impl Tally {
    pub(super) fn new(before: &SessionTotals) -> Tally {
        let progress = Progress { context_size: before.context_size, ..Progress::default() };
        Tally { progress, before: before.clone(), ..Tally::default() }
    }

    pub(super) fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Prices for what the agent does not say, and the model that was asked for if it does not say that either.
    pub(super) fn expect(&mut self, prices: Prices, model: Option<String>) {
        self.prices = prices;
        self.progress.model = model;
    }

    /// What is to be told.
    pub(super) fn drain(&mut self, out: &mut Vec<Event>) {
        out.append(&mut self.queue);
        self.queue.shrink_to(64);
    }

    fn push(&mut self, event: Event) {
        self.flush();
        self.queue.push(event);
    }

    /// Tells what was said in pieces.
    pub(super) fn flush(&mut self) {
        if let Some((text, thought)) = self.piece.take() {
            if thought {
                self.queue.push(Event::Thinking { text, parent: None });
            } else {
                self.answer = Some(text.clone());
                self.queue.push(Event::Text { text, parent: None });
            }
        }
    }

    /// The session is this one from here on.
    pub(super) fn session(&mut self, id: &str, model: Option<&str>) {
        let model = model.filter(|m| !m.is_empty()).map(name);
        // It is going to stand on a command line.
        if !is_session(id) {
            return;
        }
        let id = id.to_owned();
        let news =
            self.progress.session.as_ref() != Some(&id) || model.is_some() && model != self.progress.model;
        if !news {
            return;
        }
        self.progress.session = Some(id.clone());
        self.progress.model = model.clone().or(self.progress.model.take());
        self.push(Event::Session { id, model });
    }

    /// The agent names its model elsewhere.
    pub(super) fn model(&mut self, model: &str) {
        if !model.is_empty() {
            self.progress.model = Some(name(model));
        }
    }

    /// The agent, or a subagent of it, said something.
    pub(super) fn text(&mut self, text: &str, parent: Option<&str>) {
        if text.trim().is_empty() {
            return;
        }
        let text = cut(text, LONGEST_TEXT);
        if parent.is_none() {
            self.progress.last_text = Some(cut(&text, LAST_TEXT));
            self.answer = Some(text.clone());
        }
        self.push(Event::Text { text, parent: parent.map(|p| cut(p, LONGEST_NAME)) });
    }

    /// The agent said or thought a piece of something. It is told when the next thing happens.
    pub(super) fn piece(&mut self, text: &str, thought: bool) {
        if self.piece.as_ref().is_some_and(|(held, as_thought)| {
            *as_thought != thought || held.len().saturating_add(text.len()) > LONGEST_TEXT
        }) {
            self.flush();
        }
        let (held, _) = self.piece.get_or_insert_with(|| (String::new(), thought));
        held.push_str(&cut(text, LONGEST_TEXT));
        let said = cut(held, LAST_TEXT);
        if held.is_empty() {
            self.piece = None;
        } else if !thought {
            self.progress.last_text = Some(said);
        }
    }

    /// The agent, or a subagent of it, thought something.
    pub(super) fn thinking(&mut self, text: &str, parent: Option<&str>) {
        if !text.trim().is_empty() {
            let parent = parent.map(|p| cut(p, LONGEST_NAME));
            self.push(Event::Thinking { text: cut(text, LONGEST_TEXT), parent });
        }
    }

    /// A tool was called.
    pub(super) fn tool(&mut self, id: &str, name: &str, input: Value, parent: Option<&str>) {
        let name = self::name(name);
        self.progress.tool_calls += 1;
        self.progress.last_tool = Some(name.clone());
        let parent = parent.map(|p| cut(p, LONGEST_NAME));
        self.push(Event::ToolUse { id: cut(id, LONGEST_NAME), name, input, parent });
    }

    /// A tool has answered.
    pub(super) fn tool_result(&mut self, id: &str, ok: bool, output: &str) {
        self.push(Event::ToolResult { id: cut(id, LONGEST_NAME), ok, output: cut(output, LONGEST_OUTPUT) });
    }

    /// What this run has used so far.
    pub(super) fn usage(&mut self, tokens: Tokens) {
        if tokens == self.progress.tokens {
            return;
        }
        self.progress.tokens = tokens;
        self.push(Event::Usage(tokens));
        if self.progress.cost.is_none_or(|cost| cost.estimated) {
            let model = self.progress.model.as_deref().unwrap_or_default();
            if let Some(cost) = self.prices.estimate(model, &tokens) {
                self.spent(cost);
            }
        }
    }

    /// This much more was used.
    pub(super) fn used(&mut self, more: Tokens) {
        self.usage(self.progress.tokens.plus(more));
    }

    /// The same by a model of its own, as a subagent may have one. What a model without a price used is not in the estimate.
    pub(super) fn used_by(&mut self, model: Option<&str>, more: Tokens) {
        self.progress.tokens = self.progress.tokens.plus(more);
        self.push(Event::Usage(self.progress.tokens));
        let model = model.or(self.progress.model.as_deref()).unwrap_or_default();
        if let Some(cost) = self.prices.estimate(model, &more) {
            self.since_said = self.since_said.saturating_add(cost.nanos);
            let nanos = self.said.unwrap_or(0).saturating_add(self.since_said);
            self.spent(Cost { nanos, estimated: true });
        }
    }

    /// What this run has cost so far, as the agent says it.
    pub(super) fn cost(&mut self, nanos: u64) {
        (self.said, self.since_said) = (Some(nanos), 0);
        self.spent(Cost { nanos, estimated: false });
    }

    fn spent(&mut self, cost: Cost) {
        if self.progress.cost != Some(cost) {
            self.progress.cost = Some(cost);
            self.push(Event::Cost(cost));
        }
    }

    /// What the session has used in all its runs. Returns what of it is this run's: what came on top of what was known.
    /// Where the counters have gone down, the agent has begun to count anew. Where what was known is behind, only what was
    /// counted in this run is.
    pub(super) fn session_used(&mut self, total: Tokens) -> Tokens {
        self.counted.0 = Some(total);
        let counted_here = self.progress.tokens;
        if self.before.is_behind && self.goes_on_with() {
            return counted_here;
        }
        let own = if self.goes_on_with() { total.since(self.before.tokens) } else { Some(total) };
        own.unwrap_or(if counted_here.is_none() { total } else { counted_here })
    }

    /// What the session has cost in all its runs. Returns what of it is this run's, if that can be known.
    pub(super) fn session_cost(&mut self, total: u64) -> Option<u64> {
        self.counted.1 = Some(total);
        if self.before.is_behind && self.goes_on_with() {
            return None;
        }
        let known = self.before.cost_nanos.filter(|_| self.goes_on_with()).unwrap_or(0);
        Some(total.checked_sub(known).unwrap_or(total))
    }

    fn goes_on_with(&self) -> bool {
        self.progress.session.is_some() && self.progress.session == self.before.session
    }

    /// How full the context is.
    pub(super) fn context(&mut self, used: u64, size: Option<u64>) {
        let size = size.filter(|s| *s > 0).or(self.progress.context_size);
        if (self.progress.context_used, self.progress.context_size) != (Some(used), size) {
            (self.progress.context_used, self.progress.context_size) = (Some(used), size);
            self.push(Event::Context { used, size });
        }
    }

    /// The model was asked that often.
    pub(super) fn turns(&mut self, turns: u64) {
        self.progress.turns = Some(turns);
    }

    /// The model was asked once more.
    pub(super) fn turn(&mut self) {
        self.progress.turns = Some(self.progress.turns.unwrap_or(0) + 1);
    }

    /// The agent wants leave to use a tool.
    pub(super) fn asked(&mut self, id: &str, tool: &str, input: Value) {
        let (id, tool) = (cut(id, LONGEST_NAME), name(tool));
        self.push(Event::PermissionAsked { id, tool, input });
    }

    /// The agent is told more: another turn begins.
    pub(super) fn told(&mut self, text: &str) {
        self.push(Event::Told { text: cut(text, LONGEST_TEXT) });
    }

    /// A tool was not allowed. Some agents say it twice.
    pub(super) fn refuse(&mut self, id: Option<&str>, tool: &str, message: &str) {
        let id = id.map(|id| cut(id, LONGEST_NAME));
        if id.is_some() && self.refused.iter().any(|r| r.id == id) {
            return;
        }
        let (tool, message) = (name(tool), cut(message, LONGEST_MESSAGE));
        if self.refused.len() < MOST_REFUSALS {
            self.refused.push(Refusal { id, tool: tool.clone(), message: message.clone() });
        }
        self.push(Event::PermissionRefused { tool, message });
    }

    /// A request is tried again.
    pub(super) fn retry(&mut self, attempt: Option<u64>, of: Option<u64>, delay_ms: Option<u64>, why: &str) {
        self.progress.retries += 1;
        self.push(Event::Retry { attempt, of, delay_ms, why: cut(why, LONGEST_MESSAGE) });
    }

    /// Something to know.
    pub(super) fn warn(&mut self, message: &str) {
        if !message.trim().is_empty() {
            self.push(Event::Warning { message: cut(message, LONGEST_MESSAGE) });
        }
    }

    /// Something failed.
    pub(super) fn fail(&mut self, kind: Trouble, message: &str) {
        let message = cut(message, LONGEST_MESSAGE);
        self.error = Some((kind, message.clone()));
        self.push(Event::Error { message, kind });
    }

    /// The agent says that it has finished, like this; `answer` is its last word where it repeats it.
    pub(super) fn finished(&mut self, end: End, answer: Option<&str>) {
        self.flush();
        let ok = end.class == super::Class::Done;
        if ok {
            self.error = None;
            if let Some(answer) = answer.filter(|a| !a.is_empty()) {
                self.answer = Some(cut(answer, LONGEST_TEXT));
            }
        }
        let text = if ok { answer.map(|a| cut(a, LONGEST_TEXT)) } else { end.text.clone() };
        self.end = Some(end);
        self.push(Event::Result { ok, text });
    }

    /// It has not finished after all: another turn has begun.
    pub(super) fn goes_on(&mut self) {
        self.end = None;
    }

    /// A line of another kind.
    pub(super) fn unknown(&mut self, kind: &str) {
        self.push(Event::Unknown { kind: cut(kind, LONGEST_NAME) });
    }

    /// A line that is no event: a message of the agent's program, mostly.
    pub(super) fn noise(&mut self, line: &str) {
        let line = console::strip_ansi_codes(line);
        let line = line.trim();
        if line.is_empty() {
            return;
        }
        let speaks_of_error = |text: &str| text.to_lowercase().contains("error");
        if speaks_of_error(line) || !self.noise.as_deref().is_some_and(speaks_of_error) {
            self.noise = Some(cut(line, LONGEST_MESSAGE));
        }
        self.unknown("no event");
    }

    /// What was wrong last, in words.
    pub(super) fn last_trouble(&self) -> Option<String> {
        self.error.as_ref().map(|(_, message)| message.clone()).or_else(|| self.noise.clone())
    }

    /// What is known of the session after this run.
    pub(super) fn totals(&self) -> SessionTotals {
        if self.progress.session.is_none() {
            return self.before.clone();
        }
        let before = if self.goes_on_with() { self.before.clone() } else { SessionTotals::default() };
        let added =
            self.said.map(|own| own.saturating_add(before.cost_nanos.unwrap_or(0))).or(before.cost_nanos);
        SessionTotals {
            session: self.progress.session.clone(),
            tokens: self.counted.0.unwrap_or_else(|| before.tokens.plus(self.progress.tokens)),
            cost_nanos: self.counted.1.or(added),
            context_size: self.progress.context_size,
            is_behind: before.is_behind && self.counted == (None, None),
        }
    }

    /// How many bytes it takes in memory, but for what is waiting to be told.
    #[cfg(test)]
    pub(super) fn weight(&self) -> usize {
        let texts = [&self.answer, &self.noise, &self.progress.last_text, &self.progress.session];
        let refused: usize = self.refused.iter().map(|r| r.tool.len() + r.message.len()).sum();
        texts.into_iter().flatten().map(String::len).sum::<usize>()
            + refused
            + self.piece.as_ref().map_or(0, |(text, _)| text.len())
            + self.queue.len() * size_of::<Event>()
    }
}

/// A name that is shown to people.
fn name(text: &str) -> String {
    cut(&harmless::line(text), LONGEST_NAME)
}

/// Whether a text can be a session's id: no option, nothing that a shell or a path would take for more than a word.
pub(in crate::agent) fn is_session(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.:/@".contains(&b);
    (1..=LONGEST_NAME).contains(&text.len()) && !text.starts_with('-') && text.bytes().all(plain)
}

/// The last few names that were seen: enough to tell a message or call that goes on from a new one.
#[derive(Default)]
pub(super) struct Recent {
    names: VecDeque<(String, Tokens)>,
}

impl Recent {
    /// How many names are kept.
    const MOST: usize = 64;

    /// Notes a name; whether it is a new one.
    pub(super) fn is_new(&mut self, name: &str) -> bool {
        self.place_of(name).is_none()
    }

    /// What something has used on top of what it had told before, if that is more.
    pub(super) fn more(&mut self, name: &str, told: Tokens) -> Option<Tokens> {
        let known = match self.place_of(name) {
            Some(at) => self.names.get_mut(at),
            None => self.names.back_mut(),
        };
        let (_, known) = known?;
        let more = told.since(*known).filter(|more| !more.is_none())?;
        *known = told;
        Some(more)
    }

    /// Where a name is kept; one that was not there is the last from now on.
    fn place_of(&mut self, name: &str) -> Option<usize> {
        let name = self::name(name);
        let known = self.names.iter().position(|(known, _)| *known == name);
        if known.is_none() {
            if self.names.len() == Self::MOST {
                self.names.pop_front();
            }
            self.names.push_back((name, Tokens::default()));
        }
        known
    }
}
