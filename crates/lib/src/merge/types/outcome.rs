//! Plan and report of a landing, lane by lane.

use std::path::PathBuf;

use proq_base::explain::Exit;
use proq_base::hint::Hint;
use proq_base::lane_name::LaneName;
use proq_base::process::limited_process::ExitOutcome;
use proq_git::status::diff::DiffStat;
use proq_git::{CommitId, RepoPath, TreeId};
use proq_store::paths::path_form;
use proq_store::records::lane::MergeStrategy;
use serde::Serialize;

use super::autostash::AutostashReport;

/// Reason why `--all` skips a lane that has nothing to land yet.
pub const NO_COMMITS: &str = "it has no commits yet";

/// Lanes that a landing will land or refuse, shown to the user before anything moves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandingPlan {
    /// Strategy by which lanes land.
    pub strategy: MergeStrategy,
    /// Requested lanes: first those that will land, then the refused ones.
    pub lanes: Vec<PlannedLane>,
}

/// Entry of one lane in the plan of a landing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedLane {
    /// Name of the lane to land or refuse.
    pub lane: LaneName,
    /// Branch that the lane lands on.
    pub onto: String,
    /// Number of commits that the base lacks, and number of files that they change; none if the lane will not
    /// land.
    pub size: Option<(usize, usize)>,
    /// Reason why the lane will not land.
    #[serde(rename = "why")]
    pub reason: Option<String>,
}

/// Result of landing one lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The lane is on its base now; in a dry run, it would be.
    Landed,
    /// The lane conflicted, an agent resolved the conflict, and the lane is on its base now.
    Resolved,
    /// All changes of the lane were on its base before.
    AlreadyLanded,
    /// The lane conflicts; the conflict was captured.
    Conflict,
    /// A check fails with the lane and succeeds without it.
    CheckFailed,
    /// The lane may not land; `message` has the reason.
    Refused,
}

/// Check that failed with a lane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckFailure {
    /// Command line of the check.
    pub command: String,
    /// Lane whose task has the check; none for a check of every landing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "task_of")]
    pub task_lane: Option<LaneName>,
    /// Exit of the command.
    pub ended: ExitOutcome,
    /// Lanes below the failed lane in the stack, with which the check succeeds. For a check that could not be
    /// run, the lanes that it was started on.
    #[serde(rename = "with")]
    pub lanes_below: Vec<LaneName>,
    /// Log file of the check's output.
    #[serde(with = "path_form")]
    pub log: PathBuf,
    /// Last lines of the log.
    pub tail: Vec<String>,
}

/// Describes the base and the lanes that a checked commit contains: `main`, `main with a, b`, `main with a,
/// b, c and 7 more`.
pub fn describe_state(onto: &str, lanes: &[LaneName]) -> String {
    match lanes {
        [] => onto.to_owned(),
        [first, second, third, more @ ..] if !more.is_empty() => {
            format!("{onto} with {first}, {second}, {third} and {} more", more.len())
        }
        some => format!("{onto} with {}", some.join(", ")),
    }
}

/// Known result of checking what a lane would land.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "result", rename_all = "kebab-case")]
pub enum CheckStatus {
    /// No check commands exist.
    #[serde(rename = "none")]
    NoChecks,
    /// The checks were not run on the files that would land, or the lane does not merge.
    Unknown,
    /// All checks succeeded.
    Passed,
    /// One check failed.
    Failed {
        /// Command line of the check.
        command: String,
        /// Exit of the command, as text.
        ended: String,
        /// Last lines of output, if the check was run just now.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tail: Vec<String>,
    },
    /// A check cannot be run, or fails on the base itself.
    Inconclusive {
        /// Reason in words, with the command line.
        reason: String,
    },
}

/// Outcome of one lane in a landing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LaneOutcome {
    /// Name of the lane.
    pub lane: LaneName,
    /// Branch that the lane lands on.
    pub onto: String,
    /// Result for the lane.
    pub result: Verdict,
    /// Strategy by which the lane landed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "method")]
    pub strategy: Option<MergeStrategy>,
    /// Commit with which the base contains all of the lane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitId>,
    /// Files in conflict, or files that are the reason of a refusal.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "files")]
    pub conflicted_files: Vec<RepoPath>,
    /// Other lanes that the lane conflicts with, if it conflicts with lanes only and not with the base.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "with_lanes")]
    pub conflicting_lanes: Vec<LaneName>,
    /// Reason, or another note for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Hints for the user with commands to run next.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<Hint>,
    /// Check that failed with the lane; none for other results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<CheckFailure>,
    /// Whether git-proq removed the lane after it landed.
    pub cleaned_up: bool,
    /// Exit code of the refusal; none for the usual one. In the report, a lock that could not be acquired
    /// takes precedence.
    #[serde(skip)]
    pub exit_code: Option<Exit>,
    /// Whether the refusal lasts until a user changes the lane or a setting, so that a retry would fail
    /// again.
    #[serde(skip)]
    pub is_permanent: bool,
    /// Key of the part of the lane; none for all of the lane.
    #[serde(skip)]
    pub part_key: Option<usize>,
}

impl LaneOutcome {
    /// Creates an outcome without details.
    pub fn new(lane: &LaneName, onto: &str, result: Verdict) -> LaneOutcome {
        LaneOutcome {
            lane: lane.clone(),
            onto: onto.to_owned(),
            result,
            strategy: None,
            commit: None,
            conflicted_files: Vec::new(),
            conflicting_lanes: Vec::new(),
            message: None,
            hints: Vec::new(),
            check: None,
            cleaned_up: false,
            exit_code: None,
            is_permanent: false,
            part_key: None,
        }
    }

    /// Creates a refusal with its reason.
    pub fn refused(lane: &LaneName, onto: &str, reason: impl Into<String>) -> LaneOutcome {
        LaneOutcome { message: Some(reason.into()), ..LaneOutcome::new(lane, onto, Verdict::Refused) }
    }

    /// Removes "nothing was changed" from the message, of a landing that did change something.
    pub(crate) fn remove_assurance(&mut self) {
        self.message = self.message.take().map(|text| text.replace("; nothing was changed", ""));
    }
}

/// Summary of the checks that were run before anything landed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CheckSummary {
    /// Command lines for all lanes, in order.
    pub commands: Vec<String>,
    /// Commands that belong to a lane's task.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskChecks>,
    /// Commands of the repository that are not approved. Set in a dry run only; a landing is refused because
    /// of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unapproved: Vec<String>,
    /// Number of times that check commands were started on a commit, second attempts included.
    pub runs: usize,
    /// Number of cached results used.
    pub(crate) reused: usize,
    /// Commands that failed and then succeeded on the same files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) flaky: Vec<String>,
    /// Commands that fail on the base itself, and so did not count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "red_on_base")]
    pub(crate) failing_on_base: Vec<String>,
}

/// Check commands of one lane's task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskChecks {
    /// Name of the lane.
    pub lane: LaneName,
    /// Command lines, in order.
    pub commands: Vec<String>,
}

/// What a base would have after a landing, from the trees that the forecast merged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BaseForecast {
    /// Branch that the lanes land on.
    pub onto: String,
    /// Lanes that would land, in order.
    #[serde(skip)]
    pub lanes: Vec<LaneForecast>,
    /// Strategy by which they land.
    #[serde(rename = "method")]
    pub strategy: MergeStrategy,
    /// Tree that the base would have. Its objects may not exist.
    pub tree: TreeId,
    /// Difference from the base's present tree; none if git cannot compare them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diffstat: Option<DiffStat>,
    /// Command lines that would check the tree, in order.
    #[serde(rename = "checks")]
    pub check_commands: Vec<String>,
}

/// What one lane adds to its base in a forecast.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LaneForecast {
    /// Name of the lane.
    #[serde(skip)]
    pub lane: LaneName,
    /// Difference that the lane makes to its base with the lanes that land before it; none if git cannot
    /// compare them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diffstat: Option<DiffStat>,
    /// Command lines that would check the lane on its base, in order.
    #[serde(rename = "checks")]
    pub check_commands: Vec<String>,
}

/// Result of pushing a base that lanes landed on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PushReport {
    /// Branch to push.
    pub branch: String,
    /// Remote to push to; none if a missing remote is the reason for not pushing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// Whether the branch was pushed.
    pub done: bool,
    /// Reason why it was not pushed. None in a dry run of a push that would be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Output of git, a hook or the remote.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "said")]
    pub output: Vec<String>,
    /// Hints for the user with commands to run next.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<Hint>,
}

/// Report of a landing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LandingReport {
    /// Requested or eligible lanes, in the order in which they were handled.
    pub lanes: Vec<LaneOutcome>,
    /// Lanes that `--all` skipped: `(lane, reason)`.
    #[serde(rename = "left_out")]
    pub skipped: Vec<(LaneName, String)>,
    /// Lanes whose agents were stopped first; in a dry run, would be.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stopped: Vec<LaneName>,
    /// Reasons why lanes were not stacked by size and age: `b before a: 1 conflict less`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "order")]
    pub order_notes: Vec<String>,
    /// Summary of the checks; none without commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checks: Option<CheckSummary>,
    /// Uncommitted changes that were saved and restored, of each checkout of a base; in a dry run, would be.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "autostash")]
    pub autostashes: Vec<AutostashReport>,
    /// Result of pushing each base that lanes landed on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pushed: Vec<PushReport>,
    /// What each base would have that lanes would land on; empty unless this is a forecast.
    #[serde(skip)]
    pub forecasts: Vec<BaseForecast>,
}

impl LandingReport {
    /// Returns how much a forecast landing changes on all bases together; none if nothing would land, or git
    /// cannot compare a base.
    pub fn forecast_diffstat(&self) -> Option<DiffStat> {
        let stats: Option<Vec<DiffStat>> = self.forecasts.iter().map(|base| base.diffstat).collect();
        stats?.into_iter().reduce(DiffStat::plus)
    }

    /// Returns the exit code: the first that applies of a lock, a refusal (of a lane or a push), a failed
    /// check, a conflict (of a lane, or of changes that could not be restored), done.
    pub fn exit(&self) -> Exit {
        // A lane that was held back by a conflict or check of another lane was not refused itself.
        let is_held_back = |l: &LaneOutcome| matches!(l.exit_code, Some(Exit::Conflicts | Exit::Agent));
        let is_stopped_by_check = |l: &LaneOutcome| l.exit_code == Some(Exit::Agent);
        let is_refused = |l: &&LaneOutcome| l.result == Verdict::Refused && !is_held_back(l);
        let refused = || self.lanes.iter().filter(is_refused);
        if refused().any(|l| l.exit_code == Some(Exit::Locked)) {
            Exit::Locked
        } else if refused().next().is_some() || self.pushed.iter().any(|p| p.message.is_some()) {
            Exit::Refused
        } else if self.lanes.iter().any(|l| l.result == Verdict::CheckFailed || is_stopped_by_check(l)) {
            Exit::Agent
        } else if self.lanes.iter().any(|l| l.result == Verdict::Conflict)
            || self.autostashes.iter().any(AutostashReport::is_kept)
        {
            Exit::Conflicts
        } else {
            Exit::Success
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn describes_state_by_its_first_lanes() {
        let lanes = |n: usize| (0..n).map(|i| LaneName::parse(&format!("l{i}")).unwrap()).collect::<Vec<_>>();
        assert_eq!(describe_state("main", &lanes(0)), "main");
        assert_eq!(describe_state("main", &lanes(3)), "main with l0, l1, l2");
        assert_eq!(describe_state("main", &lanes(30)), "main with l0, l1, l2 and 27 more");
    }

    #[test]
    fn exit_code_is_the_most_severe() {
        let lane = LaneName::parse("x").unwrap();
        let line = |result| LaneOutcome::new(&lane, "main", result);
        let mut report = LandingReport::default();
        assert_eq!(report.exit(), Exit::Success);
        report.lanes.push(line(Verdict::Landed));
        report.lanes.push(line(Verdict::Conflict));
        assert_eq!(report.exit(), Exit::Conflicts);
        report.lanes.push(line(Verdict::CheckFailed));
        report.pushed.push(PushReport { done: true, ..PushReport::default() });
        assert_eq!(report.exit(), Exit::Agent);
        report.pushed.push(PushReport { message: Some("no".to_owned()), ..PushReport::default() });
        assert_eq!(report.exit(), Exit::Refused);
        report.pushed.clear();
        report.lanes.push(line(Verdict::Refused));
        assert_eq!(report.exit(), Exit::Refused);
        report.lanes.push(LaneOutcome { exit_code: Some(Exit::Locked), ..line(Verdict::Refused) });
        assert_eq!(report.exit(), Exit::Locked);
    }
}
