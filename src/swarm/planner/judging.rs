//! Owns the conversation in which an agent looks whether criteria are met.

use serde_json::Value as Json;

use super::super::DraftError;
use super::super::batch::Met;
use super::ask::{self, Asker, Heard};
use super::lenient::pieces;
use super::prompt;
use crate::lane::{self, Project, Why, operate};
use crate::store::Moment;
use crate::store::records::{AnyLane, Cost, LaneState};

/// What was found out of a criterion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Judged {
    /// Its place among those that were asked for, from 0.
    pub(crate) at: usize,
    /// Whether it is met.
    pub(crate) met: Met,
    /// How that is known.
    pub(crate) evidence: String,
}

/// What an agent came to.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// This.
    Judged(Vec<Judged>),
    /// Something that cannot be used.
    Wrong {
        /// Why.
        why: String,
        /// What it said.
        answer: String,
    },
    /// Nothing.
    Nothing {
        /// Why.
        why: String,
    },
}

/// Criteria that somebody is asked about.
pub(crate) struct Judging<'a> {
    asker: Asker<'a>,
    count: usize,
    prompt: String,
}

impl<'a> Judging<'a> {
    /// For these, of a plan that is about `summary`.
    pub(crate) fn of(asker: Asker<'a>, summary: &str, criteria: &[&str]) -> Judging<'a> {
        Judging { asker, count: criteria.len(), prompt: prompt::for_criteria(summary, criteria) }
    }

    /// Asks. `made` is told of the lane before the agent starts.
    ///
    /// # Errors
    /// When the agent cannot be started.
    pub(crate) fn begin(
        &self,
        made: impl FnOnce(&AnyLane) -> Result<(), DraftError>,
    ) -> Result<AnyLane, DraftError> {
        let job = self.asker.job(&self.prompt)?;
        let plan = self.asker.look(None, &self.prompt)?;
        self.asker.begin(&plan, &job, made)
    }

    /// The lane in which it was asked then, if it is still there.
    ///
    /// # Errors
    /// When its record cannot be read.
    pub(crate) fn find(&self, lane: &str, asked: Option<Moment>) -> Result<Option<AnyLane>, DraftError> {
        Ok(ask::find(self.asker.project, lane, asked)?)
    }

    /// Asks once more, in a new conversation.
    ///
    /// # Errors
    /// When the agent cannot be started.
    pub(crate) fn once_more(&self, lane: &AnyLane) -> Result<AnyLane, DraftError> {
        self.asker.begin_anew(lane, &self.prompt)
    }

    /// Tells the agent what is wrong with its answer, and asks once more.
    ///
    /// # Errors
    /// When the agent cannot be started.
    pub(crate) fn mistake(&self, lane: &AnyLane, answer: &str, why: &str) -> Result<AnyLane, DraftError> {
        let whole = || Ok(prompt::for_mistake_anew(&self.prompt, answer, why));
        self.asker.go_on(lane, &prompt::for_mistake(why), whole)
    }

    /// What came of a run that is over.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn heard(&self, lane: &AnyLane, state: LaneState) -> Result<Verdict, DraftError> {
        Ok(match ask::heard(self.asker.project, lane, state)? {
            Heard::Nothing { why } => Verdict::Nothing { why },
            Heard::Answer { text } => match judged_in(&text, self.count) {
                Ok(all) => Verdict::Judged(all),
                Err(why) => Verdict::Wrong { why, answer: text },
            },
        })
    }

    /// What it has cost so far.
    ///
    /// # Errors
    /// When that cannot be read.
    pub(crate) fn cost(&self, lane: &AnyLane) -> Result<Option<Cost>, DraftError> {
        Ok(lane::spent(self.asker.project, lane)?.cost)
    }
}

/// Lets the lane go in which it was asked then, if it is still there; what was said stays in the history.
///
/// # Errors
/// When it cannot go.
pub(crate) fn close(project: &Project, lane: &str, asked: Option<Moment>) -> Result<(), DraftError> {
    if let Some(lane) = ask::find(project, lane, asked)? {
        operate(project, "cleanup", |op| lane::remove_look(op, &lane, Why::Tidy).map(drop))?;
    }
    Ok(())
}

/// What an agent said of each of so many criteria.
///
/// # Errors
/// What is wrong with it, for the agent and for people.
pub(crate) fn judged_in(text: &str, count: usize) -> Result<Vec<Judged>, String> {
    let mut wrong = None;
    for piece in pieces(text).into_iter().rev() {
        let all = piece
            .value
            .map_err(|why| format!("this is no JSON: {why}"))
            .and_then(|json| all_of(&json, count));
        match all {
            Ok(all) => return Ok(all),
            Err(why) => wrong = wrong.or(Some(why)),
        }
    }
    Err(wrong.unwrap_or_else(|| "there is no JSON in it".to_owned()))
}

fn all_of(json: &Json, count: usize) -> Result<Vec<Judged>, String> {
    let within = |key: &str| json.get(key).and_then(Json::as_array);
    let list = json.as_array().or_else(|| ["criteria", "results"].iter().find_map(|key| within(key)));
    let list = list.ok_or("there is no list of criteria in it")?;
    let mut out: Vec<Judged> = Vec::new();
    for entry in list {
        let one = one_of(entry, count)?;
        if out.iter().any(|other| other.at == one.at) {
            return Err(format!("criterion {} is answered twice", one.at + 1));
        }
        out.push(one);
    }
    match (0..count).find(|at| out.iter().all(|one| one.at != *at)) {
        Some(at) => Err(format!("criterion {} is not answered", at + 1)),
        None => Ok(out),
    }
}

fn one_of(entry: &Json, count: usize) -> Result<Judged, String> {
    let get = |keys: &[&str]| keys.iter().find_map(|key| entry.get(*key)).cloned().unwrap_or_default();
    let number = get(&["n", "number", "criterion", "id"]);
    let number = number.as_u64().or_else(|| number.as_str()?.trim().trim_start_matches('#').parse().ok());
    let at = number.and_then(|n| usize::try_from(n).ok()).filter(|n| (1..=count).contains(n));
    let at = at.ok_or_else(|| format!("an entry has no number \"n\" from 1 to {count}"))? - 1;
    let said = get(&["met", "answer", "result", "status"]);
    let word = said.as_str().unwrap_or_default().trim().to_lowercase();
    let met = match (said.as_bool(), word.as_str()) {
        (Some(true), _) | (_, "yes" | "met" | "true") => Met::Yes,
        (Some(false), _) | (_, "no" | "not met" | "unmet" | "false") => Met::No,
        (_, "unknown" | "unclear") => Met::Unknown,
        _ => return Err(format!("\"met\" of criterion {} is none of yes, no, unknown", at + 1)),
    };
    let evidence = get(&["evidence", "because", "why"]).as_str().unwrap_or_default().trim().to_owned();
    if evidence.is_empty() && met != Met::Unknown {
        return Err(format!("criterion {} has no \"evidence\"", at + 1));
    }
    Ok(Judged { at, met, evidence })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Result<Vec<(usize, Met)>, String> {
        judged_in(text, 2).map(|all| all.into_iter().map(|one| (one.at, one.met)).collect())
    }

    #[test]
    fn answers_are_read_as_they_come() {
        let all = [(1, Met::No), (0, Met::Yes)];
        for text in [
            r#"[{"n":2,"met":"no","evidence":"x"},{"n":1,"met":"yes","evidence":"y"}]"#,
            "So:\n```json\n{\"criteria\": [{\"number\": \"2\", \"met\": false, \"why\": \"x\"}, {\"n\": \"#1\", \"met\": \"Met\", \"evidence\": \"y\",}]} // done\n```\n",
        ] {
            assert_eq!(said(text).unwrap(), all, "{text}");
        }
        let unknown = r#"[{"n":1,"met":"unknown"},{"n":2,"met":"unknown"}]"#;
        assert_eq!(said(unknown).unwrap(), [(0, Met::Unknown), (1, Met::Unknown)]);
    }

    #[test]
    fn each_is_answered_once_and_with_evidence() {
        let one = r#"{"n":1,"met":"yes","evidence":"x"}"#;
        for (text, why) in [
            ("all is well".to_owned(), "there is no JSON in it"),
            (format!("[{one}]"), "criterion 2 is not answered"),
            (format!("[{one},{one}]"), "criterion 1 is answered twice"),
            (
                format!("[{one},{}]", one.replace("\"n\":1", "\"n\":3")),
                "an entry has no number \"n\" from 1 to 2",
            ),
            (
                format!("[{one},{}]", one.replace("yes", "well")),
                "\"met\" of criterion 1 is none of yes, no, unknown",
            ),
            (format!("[{}]", one.replace("\"x\"", "\" \"")), "criterion 1 has no \"evidence\""),
            ("{\"a\": 1}".to_owned(), "there is no list of criteria in it"),
        ] {
            assert_eq!(said(&text).unwrap_err(), why, "{text}");
        }
    }
}
