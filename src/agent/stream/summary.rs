//! Owns what a run came to: its class, by what the agent said last and then by how its process ended.

use serde::{Deserialize, Serialize};

use super::json::{LONGEST_MESSAGE, cut};
use super::tally::Tally;
use super::trouble::judge;
use super::{Cost, Lift, Refusal, SessionTotals, Tokens, Trouble, lift};
use crate::harmless;

/// How a process ended.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Exit {
    /// Its exit code.
    pub(crate) code: Option<i32>,
    /// The signal that ended it.
    pub(crate) signal: Option<i32>,
}

impl Exit {
    /// Whether it ended by itself and without complaint.
    pub(crate) fn is_clean(self) -> bool {
        self.code == Some(0) && self.signal.is_none()
    }

    /// The signal that ended it. Programs that catch one say so by 128 and its number, by an old custom of shells; only
    /// signals that people send and that crashes raise are meant, since some agents make other use of such codes.
    pub(crate) fn ended_by(self) -> Option<i32> {
        self.signal.or_else(|| self.code.map(|code| code - 128).filter(|s| [1, 2, 6, 9, 11, 15].contains(s)))
    }

    fn words(self) -> String {
        match (self.ended_by(), self.code) {
            (Some(signal), _) => format!("ended by signal {signal}"),
            (None, Some(code)) => format!("exit code {code}"),
            (None, None) => "it is not known how it ended".to_owned(),
        }
    }
}

/// How a run ended, as far as its agent and its process tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Class {
    /// The agent says that it finished.
    Done,
    /// The agent gave up, or did not start.
    Failed,
    /// A limit that time lifts.
    RateLimited,
    /// The service could not be reached, broke off, or had an error of its own.
    Unavailable,
    /// The context is full, or the answer was too long.
    TokenLimit,
    /// The key or login is missing or refused.
    Auth,
    /// No more turns were allowed.
    MaxTurns,
    /// No more money was allowed, or there is none.
    Budget,
    /// A tool that was not allowed ended the turn.
    Refused,
    /// It was stopped before it had finished.
    Interrupted,
    /// It ended by itself before it had finished, and does not say why.
    Crashed,
}

/// What a run came to, or would if its process ended well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct End {
    pub(super) class: Class,
    pub(super) trouble: Option<Trouble>,
    pub(super) text: Option<String>,
}

impl End {
    /// It went well.
    pub(super) fn done() -> End {
        End { class: Class::Done, trouble: None, text: None }
    }

    /// It failed, for this reason.
    pub(super) fn failed(trouble: Trouble, text: &str) -> End {
        End::of(trouble.class(), text).because(trouble)
    }

    /// It ended like this.
    pub(super) fn of(class: Class, text: &str) -> End {
        let text = Some(text).filter(|t| !t.trim().is_empty()).map(|t| cut(t, LONGEST_MESSAGE));
        End { class, trouble: None, text }
    }

    fn because(self, trouble: Trouble) -> End {
        End { trouble: Some(trouble), ..self }
    }
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Summary {
    /// The session, to go on with it.
    pub(crate) session: Option<String>,
    /// The model.
    pub(crate) model: Option<String>,
    /// How it ended.
    pub(crate) class: Class,
    /// What was wrong, if something was.
    pub(crate) trouble: Option<Trouble>,
    /// When the limit is lifted that ended it, where the agent says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lift: Option<Lift>,
    /// One line about the end, for a person.
    pub(crate) detail: Option<String>,
    /// What it used.
    pub(crate) tokens: Tokens,
    /// What it cost, if that is known.
    pub(crate) cost: Option<Cost>,
    /// How often the model was asked, where the agent tells.
    pub(crate) turns: Option<u64>,
    /// How many tools were called, those of subagents included.
    pub(crate) tool_calls: u64,
    /// The last of them.
    pub(crate) last_tool: Option<String>,
    /// Tools that were not allowed; the first of them, if they are many.
    pub(crate) refused: Vec<Refusal>,
    /// The agent's last words.
    pub(crate) answer: Option<String>,
    /// Whether the output has no word for a bad end: the detail is the exit code alone.
    #[serde(skip)]
    pub(crate) wordless: bool,
    /// To be kept, for the next run of that session.
    pub(crate) totals: SessionTotals,
}

/// Sums up: `end` is what the dialect makes of it.
pub(super) fn sum_up(tally: &Tally, end: Option<End>, exit: Exit) -> Summary {
    let has_no_text = end.as_ref().is_none_or(|end| end.text.is_none());
    let end = end.unwrap_or_else(|| without_result(tally, exit));
    let wordless = has_no_text && end.class != Class::Done && tally.last_trouble().is_none();
    let detail = match (end.class, &end.text) {
        (Class::Done, _) => (!exit.is_clean()).then(|| format!("{} after its result", exit.words())),
        (_, Some(text)) => Some(one_line(text)),
        (_, None) => Some(one_line(&tally.last_trouble().unwrap_or_else(|| exit.words()))),
    };
    let said = end.text.as_deref().or(tally.error.as_ref().map(|(_, said)| said.as_str()));
    let lift = Some(end.class).filter(|class| *class == Class::RateLimited);
    let lift = lift.and_then(|_| tally.lift.clone().or_else(|| lift::read(said.unwrap_or_default())));
    let progress = tally.progress();
    Summary {
        session: progress.session.clone(),
        model: progress.model.clone(),
        class: end.class,
        trouble: end.trouble,
        lift,
        detail,
        tokens: progress.tokens,
        cost: progress.cost,
        turns: progress.turns,
        tool_calls: progress.tool_calls,
        last_tool: progress.last_tool.clone(),
        refused: tally.refused.clone(),
        answer: tally.answer.clone(),
        wordless,
        totals: tally.totals(),
    }
}

/// The end of a run whose agent did not say that it ends: never `Done`, whatever the exit code.
fn without_result(tally: &Tally, exit: Exit) -> End {
    let words = exit.words();
    match exit.ended_by() {
        Some(6 | 11) => return End::of(Class::Crashed, &words),
        Some(_) => return End::of(Class::Interrupted, &format!("{words} before its result")),
        None if exit.code == Some(0) && tally.error.is_none() => {
            return End::of(Class::Interrupted, "it ended without a result");
        }
        None => {}
    }
    if let Some((trouble, message)) = &tally.error {
        return End::failed(*trouble, message);
    }
    let said = tally.noise.as_deref().unwrap_or_default();
    match judge(None, said) {
        Trouble::Other if tally.progress().session.is_some() => {
            let said = if said.is_empty() { String::new() } else { format!(": {said}") };
            End::of(Class::Crashed, &format!("{words} without a result{said}"))
        }
        Trouble::Other if said.is_empty() => End::of(Class::Failed, &words),
        trouble => End::failed(trouble, said),
    }
}

/// A message as one line that fits in a list.
pub(super) fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    cut(&harmless::line(&words.join(" ")), 300)
}
