//! Criteria report of a batch: whether each criterion of the plan is met, and the evidence.

use std::fmt;
use std::path::{Path, PathBuf};

use proq_base::lane_name::LaneName;
use proq_base::usage::Cost;
use proq_git::CommitId;
use proq_store::Error;
use proq_store::base::atomic::write as write_atomically;
use proq_store::base::clock::Moment;
use serde::{Deserialize, Serialize};

/// Verification result of one criterion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CriterionStatus {
    /// The criterion is met.
    Yes,
    /// The criterion is not met.
    No,
    /// Verification ran and could not decide whether the criterion is met.
    Unknown,
    /// The criterion was not verified, because the settings name no agent for it.
    NotVerified,
}

impl fmt::Display for CriterionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            CriterionStatus::Yes => "met",
            CriterionStatus::No => "not met",
            CriterionStatus::Unknown => "unknown",
            CriterionStatus::NotVerified => "not verified",
        })
    }
}

/// A criterion of a plan with its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Criterion {
    /// The text of the criterion, as in the plan.
    pub text: String,
    /// The result; none before verification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "met")]
    pub status: Option<CriterionStatus>,
    /// The evidence for the result, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// The file with the output of the criterion's command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<PathBuf>,
}

/// Results of all criteria of a batch, verified on one commit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CriteriaReport {
    /// The commit that was verified.
    pub tip: CommitId,
    /// Whether verification has ended: all results are known, or it was skipped. Until then the scheduler of
    /// the batch continues the verification.
    #[serde(rename = "done")]
    pub is_complete: bool,
    /// The reason why verification was skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// The criteria, in the plan's order.
    pub criteria: Vec<Criterion>,
    /// The lane of the agent that verifies the criteria.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<LaneName>,
    /// The time when the lane was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "asked")]
    pub lane_created: Option<Moment>,
    /// The cost of the agent's verification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

impl CriteriaReport {
    /// Returns a report in which no criterion has a result.
    pub fn new(tip: CommitId, criteria: &[String]) -> CriteriaReport {
        let unverified =
            |text: &String| Criterion { text: text.clone(), status: None, evidence: None, log: None };
        let criteria = criteria.iter().map(unverified).collect();
        CriteriaReport {
            tip,
            is_complete: false,
            skipped: None,
            criteria,
            lane: None,
            lane_created: None,
            cost: None,
        }
    }

    /// Reads the report at `path`. Returns none when it is missing or unreadable; verification then starts
    /// over.
    pub fn load(path: &Path) -> Option<CriteriaReport> {
        serde_json::from_slice(&proq_base::regular_file::read_store_file(path).ok()?).ok()
    }

    /// Writes the report to `path`.
    ///
    /// # Errors
    /// Fails when the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        let text = serde_json::to_vec_pretty(self).map_err(|e| Error::io("write", path)(e.into()))?;
        write_atomically(path, &text)
    }

    /// Sets the result and the evidence of the criterion at `index`.
    pub fn set_status(&mut self, index: usize, status: CriterionStatus, evidence: impl Into<String>) {
        if let Some(criterion) = self.criteria.get_mut(index) {
            (criterion.status, criterion.evidence) =
                (Some(status), Some(proq_base::terminal_text::escape_line(&evidence.into())));
        }
    }

    /// Returns whether verification is complete and every criterion is met.
    pub fn are_all_met(&self) -> bool {
        self.is_complete
            && self.skipped.is_none()
            && self.criteria.iter().all(|criterion| criterion.status == Some(CriterionStatus::Yes))
    }

    /// Describes the report in one line: `1 of 3 criteria met, 2 not verified`.
    pub fn describe(&self) -> String {
        if let Some(reason) = &self.skipped {
            return format!("its criteria were not checked: {reason}");
        }
        if !self.is_complete {
            let verified = self.criteria.iter().filter(|criterion| criterion.status.is_some()).count();
            return format!("{verified} of {} criteria checked", self.criteria.len());
        }
        let count = |met| self.criteria.iter().filter(|criterion| criterion.status == Some(met)).count();
        let noun = if self.criteria.len() == 1 { "criterion" } else { "criteria" };
        let mut out = format!("{} of {} {noun} met", count(CriterionStatus::Yes), self.criteria.len());
        for met in [CriterionStatus::Unknown, CriterionStatus::NotVerified] {
            if count(met) > 0 {
                out.push_str(&format!(", {} {met}", count(met)));
            }
        }
        out
    }
}
