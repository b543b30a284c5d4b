//! Owns what a landing answers, lane by lane.

use serde::Serialize;

use crate::explain::Exit;
use crate::git::{Oid, RepoPath};
use crate::store::records::Strategy;

/// What became of one lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It is on its base now; in a dry run, it would be.
    Landed,
    /// Everything in it was on its base before.
    AlreadyLanded,
    /// It conflicts; the conflict was captured.
    Conflict,
    /// It may not land; `message` says why.
    Refused,
}

/// One lane's line of the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// The lane.
    pub lane: String,
    /// The branch it lands on.
    pub onto: String,
    /// What became of it.
    pub result: Verdict,
    /// How its commits came there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<Strategy>,
    /// The commit with which all of it was there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<Oid>,
    /// Conflicted files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<RepoPath>,
    /// Why, or what else a person should know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Commands that help.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
    /// Whether the lane was cleaned up.
    pub cleaned_up: bool,
    /// The exit code this line asks for when it was refused; a lock that could not be had outranks the rest.
    #[serde(skip)]
    pub(crate) exit: Option<Exit>,
}

impl Outcome {
    /// A line without particulars.
    pub(crate) fn new(lane: &str, onto: &str, result: Verdict) -> Outcome {
        Outcome {
            lane: lane.to_owned(),
            onto: onto.to_owned(),
            result,
            method: None,
            commit: None,
            files: Vec::new(),
            message: None,
            hints: Vec::new(),
            cleaned_up: false,
            exit: None,
        }
    }

    /// A refusal.
    pub(crate) fn refused(lane: &str, onto: &str, why: impl Into<String>) -> Outcome {
        Outcome { message: Some(why.into()), ..Outcome::new(lane, onto, Verdict::Refused) }
    }
}

/// The whole answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The lanes that were asked for or eligible, in the order they were taken.
    pub lanes: Vec<Outcome>,
    /// Lanes that `--all` left out: `(lane, why)`.
    pub left_out: Vec<(String, String)>,
    /// Why lanes were not stacked by size and age: `b before a: 1 conflict less`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<String>,
}

impl Report {
    /// The exit code: the first that applies of a lock, a refusal, a conflict, done.
    pub(crate) fn exit(&self) -> Exit {
        // What was held back by a conflict elsewhere was not refused itself.
        let of_itself = |l: &&Outcome| l.result == Verdict::Refused && l.exit != Some(Exit::Conflicts);
        let refused = || self.lanes.iter().filter(of_itself);
        if refused().any(|l| l.exit == Some(Exit::Locked)) {
            Exit::Locked
        } else if refused().next().is_some() {
            Exit::Refused
        } else if self.lanes.iter().any(|l| l.result == Verdict::Conflict) {
            Exit::Conflicts
        } else {
            Exit::Done
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_applies_decides_the_exit_code() {
        let line = |result| Outcome::new("x", "main", result);
        let mut report = Report::default();
        assert_eq!(report.exit(), Exit::Done);
        report.lanes.push(line(Verdict::Landed));
        report.lanes.push(line(Verdict::Conflict));
        assert_eq!(report.exit(), Exit::Conflicts);
        report.lanes.push(line(Verdict::Refused));
        assert_eq!(report.exit(), Exit::Refused);
        report.lanes.push(Outcome { exit: Some(Exit::Locked), ..line(Verdict::Refused) });
        assert_eq!(report.exit(), Exit::Locked);
    }
}
