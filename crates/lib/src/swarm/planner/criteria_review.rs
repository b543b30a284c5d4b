//! Review of acceptance criteria: the conversation in which a read-only agent checks whether they are met.

use proq_base::lane_name::LaneName;
use proq_base::usage::Cost;
use proq_store::base::clock::Moment;
use proq_store::records::lane::AnyLane;
use proq_store::records::lane_state::LaneState;
use serde_json::Value as Json;

use super::agent_query::{AgentQuery, AgentReply};
use super::draft_error::DraftError;
use super::json_extract::find_json;
use super::{agent_query, prompt};
use crate::lane::Project;
use crate::lane::removal::remove_lane::RemovalReason;
use crate::operation::run_operation::operate;
use crate::run::lane_costs;
use crate::session::read_only;
use crate::swarm::batch::criteria_report::CriterionStatus;

/// An agent's verdict on one acceptance criterion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CriterionVerdict {
    /// Index of the criterion in the list that was sent, from 0.
    pub index: usize,
    /// Whether the criterion is met, or unknown.
    pub status: CriterionStatus,
    /// Evidence for the verdict, in one line; may be empty for an unknown status.
    pub evidence: String,
}

/// Result of a finished review run.
#[derive(Debug)]
pub(crate) enum ReviewOutcome {
    /// The agent gave one verdict for each criterion.
    Verdicts(Vec<CriterionVerdict>),
    /// The agent's answer cannot be used.
    Invalid {
        /// Reason why the answer cannot be used.
        reason: String,
        /// Text of the answer.
        answer: String,
    },
    /// The run ended without an answer.
    NoAnswer {
        /// Reason why there is no answer.
        reason: String,
    },
}

/// A review of acceptance criteria by an agent.
pub(crate) struct CriteriaReview<'a> {
    query: AgentQuery<'a>,
    criteria_count: usize,
    prompt: String,
}

impl<'a> CriteriaReview<'a> {
    /// Prepares the review of these criteria of a plan with this summary.
    pub fn new(query: AgentQuery<'a>, summary: &str, criteria: &[&str]) -> CriteriaReview<'a> {
        CriteriaReview {
            query,
            criteria_count: criteria.len(),
            prompt: prompt::criteria_prompt(summary, criteria),
        }
    }

    /// Starts the review. `on_created` receives the lane before the agent starts.
    ///
    /// # Errors
    /// Fails when the agent cannot be started.
    pub fn start(
        &self,
        on_created: impl FnOnce(&AnyLane) -> Result<(), DraftError>,
    ) -> Result<AnyLane, DraftError> {
        let command = self.query.build_command(&self.prompt)?;
        let plan = self.query.plan_lane(None, &self.prompt)?;
        self.query.start(&plan, &command, on_created)
    }

    /// Returns the lane of a review that was started before, if that lane still exists.
    ///
    /// # Errors
    /// Fails when the lane's record cannot be read.
    pub fn find_lane(
        &self,
        lane: &LaneName,
        lane_created: Option<Moment>,
    ) -> Result<Option<AnyLane>, DraftError> {
        Ok(agent_query::find_lane(&self.query.project.store, lane, lane_created)?)
    }

    /// Repeats the review in a new conversation in the same lane.
    ///
    /// # Errors
    /// Fails when the agent cannot be started.
    pub fn retry(&self, lane: &AnyLane) -> Result<AnyLane, DraftError> {
        self.query.start_new_conversation(lane, &self.prompt)
    }

    /// Sends the agent the reason why its answer cannot be used, and requests a new answer.
    ///
    /// # Errors
    /// Fails when the agent cannot be started.
    pub fn reject_answer(&self, lane: &AnyLane, answer: &str, reason: &str) -> Result<AnyLane, DraftError> {
        let full_prompt = || Ok(prompt::full_rejection_prompt(&self.prompt, answer, reason));
        self.query.send_follow_up(lane, &prompt::rejection_prompt(reason), full_prompt)
    }

    /// Reads the result of a finished run.
    ///
    /// # Errors
    /// Fails when the answer cannot be read.
    pub(crate) fn read_outcome(&self, lane: &AnyLane, state: LaneState) -> Result<ReviewOutcome, DraftError> {
        Ok(match agent_query::read_reply(&self.query.project.store, lane, state)? {
            AgentReply::NoAnswer { reason } => ReviewOutcome::NoAnswer { reason },
            AgentReply::Answer { text } => match parse_verdicts(&text, self.criteria_count) {
                Ok(verdicts) => ReviewOutcome::Verdicts(verdicts),
                Err(reason) => ReviewOutcome::Invalid { reason, answer: text },
            },
        })
    }

    /// Returns the cost of the review so far; none where it is unknown.
    ///
    /// # Errors
    /// Fails when the cost cannot be read.
    pub fn cost(&self, lane: &AnyLane) -> Result<Option<Cost>, DraftError> {
        Ok(lane_costs::total_costs(&self.query.project.store, lane)?.cost)
    }
}

/// Removes the lane of a review, if it still exists. The conversation stays in the history.
///
/// # Errors
/// Fails when the lane cannot be removed.
pub(crate) fn remove_review_lane(
    project: &Project,
    lane: &LaneName,
    lane_created: Option<Moment>,
) -> Result<(), DraftError> {
    if let Some(lane) = agent_query::find_lane(&project.store, lane, lane_created)? {
        operate(project, "cleanup", |op| {
            read_only::remove_guest_lane(op, &lane, RemovalReason::Cleanup).map(drop)
        })?;
    }
    Ok(())
}

/// Parses an agent's verdicts on criteria numbered from 1 to `count`.
///
/// # Errors
/// Describes the problem with the answer, for the agent and for the user.
pub(crate) fn parse_verdicts(text: &str, count: usize) -> Result<Vec<CriterionVerdict>, String> {
    let mut rejection = None;
    for piece in find_json(text).into_iter().rev() {
        let parsed = piece
            .value
            .map_err(|cause| format!("this is not JSON: {cause}"))
            .and_then(|json| verdicts_from_json(&json, count));
        match parsed {
            Ok(verdicts) => return Ok(verdicts),
            Err(reason) => rejection = rejection.or(Some(reason)),
        }
    }
    Err(rejection.unwrap_or_else(|| "it has no JSON".to_owned()))
}

/// Reads a list that has exactly one verdict on each of `count` criteria.
fn verdicts_from_json(json: &Json, count: usize) -> Result<Vec<CriterionVerdict>, String> {
    let list_at = |key: &str| json.get(key).and_then(Json::as_array);
    let list = json.as_array().or_else(|| ["criteria", "results"].iter().find_map(|key| list_at(key)));
    let list = list.ok_or("there is no list of criteria in it")?;
    let mut verdicts: Vec<CriterionVerdict> = Vec::new();
    for entry in list {
        let verdict = verdict_from_json(entry, count)?;
        if verdicts.iter().any(|other| other.index == verdict.index) {
            return Err(format!("criterion {} is answered twice", verdict.index + 1));
        }
        verdicts.push(verdict);
    }
    match (0..count).find(|index| verdicts.iter().all(|known| known.index != *index)) {
        Some(index) => Err(format!("criterion {} is not answered", index + 1)),
        None => Ok(verdicts),
    }
}

/// Reads one verdict, whose number is from 1 to `count`.
fn verdict_from_json(entry: &Json, count: usize) -> Result<CriterionVerdict, String> {
    let first_value =
        |keys: &[&str]| keys.iter().find_map(|key| entry.get(*key)).cloned().unwrap_or_default();
    let number = first_value(&["n", "number", "criterion", "id"]);
    let number = number.as_u64().or_else(|| number.as_str()?.trim().trim_start_matches('#').parse().ok());
    let index = number.and_then(|n| usize::try_from(n).ok()).filter(|n| (1..=count).contains(n));
    let index = index.ok_or_else(|| format!("an entry has no number \"n\" from 1 to {count}"))? - 1;
    let answer = first_value(&["met", "answer", "result", "status"]);
    let word = answer.as_str().unwrap_or_default().trim().to_lowercase();
    let status = match (answer.as_bool(), word.as_str()) {
        (Some(true), _) | (_, "yes" | "met" | "true") => CriterionStatus::Yes,
        (Some(false), _) | (_, "no" | "not met" | "unmet" | "false") => CriterionStatus::No,
        (_, "unknown" | "unclear") => CriterionStatus::Unknown,
        _ => return Err(format!("\"met\" of criterion {} is none of yes, no, unknown", index + 1)),
    };
    let evidence =
        first_value(&["evidence", "because", "why"]).as_str().unwrap_or_default().trim().to_owned();
    if evidence.is_empty() && status != CriterionStatus::Unknown {
        return Err(format!("criterion {} has no \"evidence\"", index + 1));
    }
    Ok(CriterionVerdict { index, status, evidence })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_statuses(text: &str) -> Result<Vec<(usize, CriterionStatus)>, String> {
        parse_verdicts(text, 2)
            .map(|all| all.into_iter().map(|verdict| (verdict.index, verdict.status)).collect())
    }

    #[test]
    fn parses_lenient_answers() {
        let expected = [(1, CriterionStatus::No), (0, CriterionStatus::Yes)];
        for text in [
            r#"[{"n":2,"met":"no","evidence":"x"},{"n":1,"met":"yes","evidence":"y"}]"#,
            "So:\n```json\n{\"criteria\": [{\"number\": \"2\", \"met\": false, \"why\": \"x\"}, {\"n\": \"#1\", \"met\": \"Met\", \"evidence\": \"y\",}]} // done\n```\n",
        ] {
            assert_eq!(parse_statuses(text).unwrap(), expected, "{text}");
        }
        let unknown = r#"[{"n":1,"met":"unknown"},{"n":2,"met":"unknown"}]"#;
        assert_eq!(
            parse_statuses(unknown).unwrap(),
            [(0, CriterionStatus::Unknown), (1, CriterionStatus::Unknown)]
        );
    }

    #[test]
    fn requires_one_verdict_with_evidence_each() {
        let entry = r#"{"n":1,"met":"yes","evidence":"x"}"#;
        for (text, message) in [
            ("all is well".to_owned(), "it has no JSON"),
            (format!("[{entry}]"), "criterion 2 is not answered"),
            (format!("[{entry},{entry}]"), "criterion 1 is answered twice"),
            (
                format!("[{entry},{}]", entry.replace("\"n\":1", "\"n\":3")),
                "an entry has no number \"n\" from 1 to 2",
            ),
            (
                format!("[{entry},{}]", entry.replace("yes", "well")),
                "\"met\" of criterion 1 is none of yes, no, unknown",
            ),
            (format!("[{}]", entry.replace("\"x\"", "\" \"")), "criterion 1 has no \"evidence\""),
            ("{\"a\": 1}".to_owned(), "there is no list of criteria in it"),
        ] {
            assert_eq!(parse_statuses(&text).unwrap_err(), message, "{text}");
        }
    }
}
