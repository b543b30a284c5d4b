//! Owns the form of what was found out of a batch's criteria: whether what was to be true in the end is.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::git::Oid;
use crate::store::records::Cost;
use crate::store::{Error, Moment, write_atomically};

/// Whether something is true.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Met {
    /// It is.
    Yes,
    /// It is not.
    No,
    /// Whoever looked could not tell.
    Unknown,
    /// Nobody has looked.
    NotVerified,
}

impl fmt::Display for Met {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Met::Yes => "met",
            Met::No => "not met",
            Met::Unknown => "unknown",
            Met::NotVerified => "not verified",
        })
    }
}

/// One criterion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Criterion {
    /// It, in the plan's words.
    pub(crate) text: String,
    /// What was found out; none while nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) met: Option<Met>,
    /// How that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) evidence: Option<String>,
    /// What a command wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) log: Option<PathBuf>,
}

/// The criteria of a batch, as they were looked at on one commit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Proof {
    /// The commit.
    pub(crate) tip: Oid,
    /// Whether all of it is known. Until then whoever goes on with the batch goes on with this.
    pub(crate) done: bool,
    /// Why nobody has looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) skipped: Option<String>,
    /// Each, in the plan's order.
    pub(crate) criteria: Vec<Criterion>,
    /// The lane in which an agent was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lane: Option<String>,
    /// When that was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) asked: Option<Moment>,
    /// What it cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cost: Option<Cost>,
}

impl Proof {
    /// One of which nothing is known.
    pub(crate) fn new(tip: Oid, criteria: &[String]) -> Proof {
        let one = |text: &String| Criterion { text: text.clone(), met: None, evidence: None, log: None };
        let criteria = criteria.iter().map(one).collect();
        Proof { tip, done: false, skipped: None, criteria, lane: None, asked: None, cost: None }
    }

    /// Reads what was found out, if anybody has begun to look. What cannot be read is looked at anew.
    pub(crate) fn find(path: &Path) -> Option<Proof> {
        serde_json::from_slice(&crate::regular_file::record(path).ok()?).ok()
    }

    /// Writes it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn save(&self, path: &Path) -> Result<(), Error> {
        let text = serde_json::to_vec_pretty(self).map_err(|e| Error::io("write", path)(e.into()))?;
        write_atomically(path, &text)
    }

    /// Says of a criterion what was found out.
    pub(crate) fn say(&mut self, at: usize, met: Met, evidence: impl Into<String>) {
        if let Some(it) = self.criteria.get_mut(at) {
            (it.met, it.evidence) = (Some(met), Some(crate::harmless::line(&evidence.into())));
        }
    }

    /// Whether each is met.
    pub(crate) fn is_met(&self) -> bool {
        self.done && self.skipped.is_none() && self.criteria.iter().all(|it| it.met == Some(Met::Yes))
    }

    /// In a line: `1 of 3 criteria met, 2 not verified`.
    pub(crate) fn in_words(&self) -> String {
        if let Some(why) = &self.skipped {
            return format!("its criteria were not looked at: {why}");
        }
        if !self.done {
            let known = self.criteria.iter().filter(|it| it.met.is_some()).count();
            return format!("{known} of {} criteria looked at", self.criteria.len());
        }
        let count = |met| self.criteria.iter().filter(|it| it.met == Some(met)).count();
        let what = if self.criteria.len() == 1 { "criterion" } else { "criteria" };
        let mut out = format!("{} of {} {what} met", count(Met::Yes), self.criteria.len());
        for met in [Met::Unknown, Met::NotVerified] {
            if count(met) > 0 {
                out.push_str(&format!(", {} {met}", count(met)));
            }
        }
        out
    }
}
