//! Owns what a landing answers, lane by lane.

use std::path::PathBuf;

use serde::Serialize;

use crate::explain::Exit;
use crate::git::{Oid, RepoPath};
use crate::process::Ended;
use crate::store::path_form;
use crate::store::records::Strategy;

/// What became of one lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It is on its base now; in a dry run, it would be.
    Landed,
    /// It conflicted, an agent resolved that, and it is on its base now.
    Resolved,
    /// Everything in it was on its base before.
    AlreadyLanded,
    /// It conflicts; the conflict was captured.
    Conflict,
    /// With it a check fails that succeeds without it.
    CheckFailed,
    /// It may not land; `message` says why.
    Refused,
}

/// A check that failed with a lane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// The command line.
    pub command: String,
    /// The lane to whose task that belongs; none when it is for every landing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_of: Option<String>,
    /// How it ended.
    pub ended: Ended,
    /// The lanes below it, with which it succeeds.
    pub with: Vec<String>,
    /// What was written.
    #[serde(with = "path_form")]
    pub log: PathBuf,
    /// The last lines of that.
    pub tail: Vec<String>,
}

/// What is known of the checks of what a lane would land.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "result", rename_all = "kebab-case")]
pub(crate) enum Checked {
    /// There is nothing to check with.
    None,
    /// They were not run on these files, or it does not merge.
    Unknown,
    /// All of them succeeded.
    Passed,
    /// One failed.
    Failed {
        /// The command line.
        command: String,
        /// How it ended.
        ended: String,
        /// The last lines that it wrote, where it was run just now.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tail: Vec<String>,
    },
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
    /// Lanes that it conflicts with, where it conflicts with no other side.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub with_lanes: Vec<String>,
    /// Why, or what else a person should know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Commands that help.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
    /// The check that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<Check>,
    /// Whether the lane was cleaned up.
    pub cleaned_up: bool,
    /// The exit code this line asks for when it was refused; a lock that could not be had outranks the rest.
    #[serde(skip)]
    pub(crate) exit: Option<Exit>,
    /// Whether a refusal stands until a person changes the lane or a setting: to try again would be in vain.
    #[serde(skip)]
    pub(crate) lasting: bool,
    /// Which part of the lane it is about, where that is not all of it.
    #[serde(skip)]
    pub(crate) part: Option<usize>,
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
            with_lanes: Vec::new(),
            message: None,
            hints: Vec::new(),
            check: None,
            cleaned_up: false,
            exit: None,
            lasting: false,
            part: None,
        }
    }

    /// A refusal.
    pub(crate) fn refused(lane: &str, onto: &str, why: impl Into<String>) -> Outcome {
        Outcome { message: Some(why.into()), ..Outcome::new(lane, onto, Verdict::Refused) }
    }
}

/// What was run before anything landed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Checks {
    /// The command lines for all lanes, in order.
    pub commands: Vec<String>,
    /// Those that belong to a lane's task.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskChecks>,
    /// Those that come with the repository and were not approved. Only in a dry run: they keep lanes from landing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unapproved: Vec<String>,
    /// How often they were begun on a state of the files.
    pub runs: usize,
    /// How often a result from before was taken.
    pub reused: usize,
    /// Those that failed and then succeeded on the same files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flaky: Vec<String>,
    /// Those that fail on the base itself, and so did not count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub red_on_base: Vec<String>,
}

/// What has to succeed for one lane's task to be done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TaskChecks {
    /// The lane.
    pub lane: String,
    /// The command lines, in order.
    pub commands: Vec<String>,
}

/// A base that something landed on and that was to be pushed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Pushed {
    /// The branch.
    pub branch: String,
    /// Where to; none when that is why it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// Whether it was.
    pub done: bool,
    /// Why it was not. None in a dry run of one that would be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What git, a hook or the remote said to that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<String>,
    /// Commands that help.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
}

/// The whole answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The lanes that were asked for or eligible, in the order they were taken.
    pub lanes: Vec<Outcome>,
    /// Lanes that `--all` left out: `(lane, why)`.
    pub left_out: Vec<(String, String)>,
    /// Lanes whose agents were stopped first; in a dry run, would be.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stopped: Vec<String>,
    /// Why lanes were not stacked by size and age: `b before a: 1 conflict less`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<String>,
    /// What was checked; none without commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checks: Option<Checks>,
    /// The bases that were to be pushed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pushed: Vec<Pushed>,
}

impl Report {
    /// The exit code: the first that applies of a lock, a refusal (of a lane, or of a push), a failed check, a conflict, done.
    pub(crate) fn exit(&self) -> Exit {
        // What was held back by a conflict or a check elsewhere was not refused itself.
        let elsewhere = |l: &Outcome| matches!(l.exit, Some(Exit::Conflicts | Exit::Agent));
        let of_itself = |l: &&Outcome| l.result == Verdict::Refused && !elsewhere(l);
        let refused = || self.lanes.iter().filter(of_itself);
        if refused().any(|l| l.exit == Some(Exit::Locked)) {
            Exit::Locked
        } else if refused().next().is_some() || self.pushed.iter().any(|p| p.message.is_some()) {
            Exit::Refused
        } else if self.lanes.iter().any(|l| l.result == Verdict::CheckFailed) {
            Exit::Agent
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
        report.lanes.push(line(Verdict::CheckFailed));
        report.pushed.push(Pushed { done: true, ..Pushed::default() });
        assert_eq!(report.exit(), Exit::Agent);
        report.pushed.push(Pushed { message: Some("no".to_owned()), ..Pushed::default() });
        assert_eq!(report.exit(), Exit::Refused);
        report.pushed.clear();
        report.lanes.push(line(Verdict::Refused));
        assert_eq!(report.exit(), Exit::Refused);
        report.lanes.push(Outcome { exit: Some(Exit::Locked), ..line(Verdict::Refused) });
        assert_eq!(report.exit(), Exit::Locked);
    }
}
