//! Record of a lane.

use std::fmt;
use std::path::PathBuf;

use proq_base::lane_name::LaneName;
use proq_git::CommitId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::batched::BatchLane;
use super::lane_state::{LandingState, LaneState, LaneStatus, RunState};
use super::ports::Ports;
use super::pull_request::{IssueLink, PullRequest};
use crate::base::clock::{Moment, now};
use crate::base::record::Record;
use crate::base::run_number::RunNumber;

/// Agent of a lane in which a command works instead.
pub const COMMAND_AGENT: &str = "command";

/// Method by which a lane's commits get onto its base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MergeStrategy {
    /// Keep the commits and add a merge commit.
    Merge,
    /// Rebase each commit onto the base, without a merge commit.
    Rebase,
    /// Squash all commits into one.
    Squash,
}

impl fmt::Display for MergeStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            MergeStrategy::Merge => "merge",
            MergeStrategy::Rebase => "rebase",
            MergeStrategy::Squash => "squash",
        })
    }
}

impl MergeStrategy {
    /// Parses the name of a strategy.
    pub fn from_name(name: &str) -> Option<MergeStrategy> {
        match name {
            "merge" => Some(MergeStrategy::Merge),
            "rebase" => Some(MergeStrategy::Rebase),
            "squash" => Some(MergeStrategy::Squash),
            _ => None,
        }
    }
}

/// Details of a lane's landing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LandingInfo {
    /// First commit of the branch that contains the entire lane.
    pub commit: CommitId,
    /// Branch that the lane landed on.
    pub onto: String,
    /// Tip of the lane that landed.
    pub tip: CommitId,
    /// Time of the landing.
    #[serde(rename = "at")]
    pub landed_at: Moment,
    /// Method of the landing.
    #[serde(default = "by_merge")]
    pub method: MergeStrategy,
}

/// Returns the method of all landings whose records do not name one.
fn by_merge() -> MergeStrategy {
    MergeStrategy::Merge
}

/// Refusal of an automatic merge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AutoMergeRefusal {
    /// Time of the refusal.
    #[serde(rename = "at")]
    pub refused_at: Moment,
    /// Why the automatic merge was refused.
    #[serde(rename = "message")]
    pub refusal_reason: String,
    /// Exit code of the landing that was refused.
    #[serde(rename = "exit")]
    pub landing_exit_code: u8,
    /// Whether the automatic merge is not attempted again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "lasting")]
    pub is_refusal_final: bool,
}

/// Branch and worktree of a lane that can land.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneWorktree {
    /// Branch, without `refs/heads/`.
    pub branch: String,
    /// Name of git's admin folder for the worktree.
    pub worktree_id: String,
}

/// Purpose of a lane without a branch and a worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LanePurpose {
    /// Plan how a task should be done.
    Plan,
    /// Answer a question.
    Answer,
    /// Do the task in the main checkout, on the branch that is checked out there.
    InPlace,
}

impl LanePurpose {
    /// Returns whether the lane changes nothing, so that its result is the agent's answer.
    pub fn is_read_only(self) -> bool {
        self != LanePurpose::InPlace
    }
}

impl fmt::Display for LanePurpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            LanePurpose::Plan => "plan",
            LanePurpose::Answer => "answer",
            LanePurpose::InPlace => "in-place",
        })
    }
}

/// Lane without a branch and a worktree: it is read-only and results in the agent's answer, or it works in
/// the main checkout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestLane {
    /// Work that the lane's agent does: plan, answer, or change the main checkout.
    pub purpose: LanePurpose,
    /// Whether the agent runs in a temporary worktree instead of the main checkout.
    pub detached: bool,
}

/// Kind of a lane: with a branch and a worktree, or without.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "LaneKindForm", into = "LaneKindForm")]
pub enum LaneKind {
    /// Lane with a branch and a worktree.
    Owned(LaneWorktree),
    /// Lane without a branch and a worktree: its agent reads other checkouts, or works in the main checkout.
    Guest(GuestLane),
}

/// Record of a lane of any kind: owned, with a branch and worktree that can land, or a guest (read-only or in
/// place).
pub type AnyLane = LaneRecord<LaneKind>;

/// Serialized form of a [`LaneKind`], as keys of the lane's record.
#[derive(Serialize, Deserialize)]
struct LaneKindForm {
    /// Purpose of a guest lane; none for an owned lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mode: Option<LanePurpose>,
    /// Whether the agent of a guest lane runs in a detached worktree.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    isolated: bool,
    /// Branch of an owned lane, without `refs/heads/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    /// Name of git's admin folder for the worktree of an owned lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    worktree_id: Option<String>,
}

impl TryFrom<LaneKindForm> for LaneKind {
    type Error = &'static str;

    fn try_from(form: LaneKindForm) -> Result<LaneKind, Self::Error> {
        match (form.mode, form.branch, form.worktree_id) {
            (None, Some(branch), Some(worktree_id)) if !form.isolated => {
                Ok(LaneKind::Owned(LaneWorktree { branch, worktree_id }))
            }
            (Some(purpose), None, None) => {
                Ok(LaneKind::Guest(GuestLane { purpose, detached: form.isolated }))
            }
            _ => Err("a lane has a branch and a worktree_id, or a mode"),
        }
    }
}

impl From<LaneKind> for LaneKindForm {
    fn from(kind: LaneKind) -> LaneKindForm {
        match kind {
            LaneKind::Owned(LaneWorktree { branch, worktree_id }) => LaneKindForm {
                mode: None,
                isolated: false,
                branch: Some(branch),
                worktree_id: Some(worktree_id),
            },
            LaneKind::Guest(GuestLane { purpose, detached: apart }) => {
                LaneKindForm { mode: Some(purpose), isolated: apart, branch: None, worktree_id: None }
            }
        }
    }
}

/// Record of a lane. A lane that can land has a [`LaneWorktree`]; [`AnyLane`] stands for a lane of any kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneRecord<P = LaneWorktree> {
    /// Name of the lane.
    pub name: LaneName,
    /// First line of the task; the name when there is none.
    pub title: String,
    /// Kind of the lane, with its branch and worktree if it has them.
    #[serde(flatten)]
    pub kind: P,
    /// Top folder of the worktree that the agent works in.
    #[serde(with = "crate::paths::path_form")]
    pub path: PathBuf,
    /// Branch that the lane lands on; for a read-only lane, the branch that it reads.
    pub base: String,
    /// Fork point of the lane; for a read-only lane, the commit that it reads.
    pub start: CommitId,
    /// State of the lane's last run and of its landing.
    #[serde(flatten)]
    pub status: LaneStatus,
    /// Details about the state, for the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Agent of the last run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Number of the last run; zero before the first.
    #[serde(rename = "attempt")]
    pub last_run: RunNumber,
    /// Creation time of the lane.
    pub created: Moment,
    /// Time of the last change of the lane's state.
    #[serde(rename = "updated")]
    pub state_changed_at: Moment,
    /// Shell command lines that must succeed before the lane lands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<String>,
    /// Files that the lane is expected to change, as globs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scope: Vec<String>,
    /// Ids of the snapshots of edits made during previews of the lane, oldest first.
    #[serde(rename = "preview_edits", default, skip_serializing_if = "Vec::is_empty")]
    pub preview_edit_snapshots: Vec<String>,
    /// Whether the run changed nothing because its task had been done before. The state is `done` then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "already")]
    pub already_done: bool,
    /// Whether the lane merges automatically when its run is done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub auto_merge: bool,
    /// Name of the group of attempts that the lane belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Landing of the lane, once it has landed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landed: Option<LandingInfo>,
    /// Refusal of the last automatic merge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "refused")]
    pub auto_merge_refusal: Option<AutoMergeRefusal>,
    /// Batch that the lane is used in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<BatchLane>,
    /// Ports of the lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "port")]
    pub ports: Option<Ports>,
    /// Issue that the lane is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issue: Option<IssueLink>,
    /// Pull or merge request of the lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<PullRequest>,
}

impl<P: Serialize + DeserializeOwned> Record for LaneRecord<P> {
    const FORMAT: u32 = 1;
}

impl<P> LaneRecord<P> {
    /// Creates the record of a new lane: idle, with its name as title.
    pub fn new(name: &LaneName, kind: P, path: PathBuf, base: String, start: CommitId) -> LaneRecord<P> {
        LaneRecord {
            name: name.clone(),
            title: name.to_string(),
            kind,
            path,
            base,
            start,
            status: LaneStatus::of_run(RunState::Idle),
            detail: None,
            agent: None,
            last_run: RunNumber::NONE,
            created: now(),
            state_changed_at: now(),
            checks: Vec::new(),
            scope: Vec::new(),
            preview_edit_snapshots: Vec::new(),
            already_done: false,
            auto_merge: false,
            group: None,
            landed: None,
            auto_merge_refusal: None,
            batch: None,
            ports: None,
            issue: None,
            pull_request: None,
        }
    }

    /// Returns the word for the lane's status by its record. A claimed state is true only while the run lock
    /// is held.
    pub fn state(&self) -> LaneState {
        self.status.state()
    }

    /// Sets the state of the lane's last run, and opens its landing again.
    pub fn set_run(&mut self, run: RunState) {
        self.status = LaneStatus::of_run(run);
    }

    /// Sets the state of the lane's landing. A run that is still claimed then has ended without a record: lanes
    /// with an active run do not land.
    pub fn set_landing(&mut self, landing: LandingState) {
        let run = self.status.run;
        self.status = LaneStatus { run: if run.is_claimed() { RunState::Failed } else { run }, landing };
    }

    /// Returns whether another lane that can still land has the same base, so that the two may conflict.
    pub fn may_conflict_with<Q>(&self, other: &LaneRecord<Q>) -> bool {
        other.base == self.base && other.name != self.name && !other.status.landing.is_closed()
    }

    /// Replaces the kind of the lane.
    fn with_kind<Q>(self, kind: Q) -> LaneRecord<Q> {
        LaneRecord {
            kind,
            name: self.name,
            title: self.title,
            path: self.path,
            base: self.base,
            start: self.start,
            status: self.status,
            detail: self.detail,
            agent: self.agent,
            last_run: self.last_run,
            created: self.created,
            state_changed_at: self.state_changed_at,
            checks: self.checks,
            scope: self.scope,
            preview_edit_snapshots: self.preview_edit_snapshots,
            already_done: self.already_done,
            auto_merge: self.auto_merge,
            group: self.group,
            landed: self.landed,
            auto_merge_refusal: self.auto_merge_refusal,
            batch: self.batch,
            ports: self.ports,
            issue: self.issue,
            pull_request: self.pull_request,
        }
    }

    /// Returns whether two records are of one lane, and not of two lanes that had the same name one after the
    /// other.
    pub fn is_same_lane<Q>(&self, other: &LaneRecord<Q>) -> bool {
        (&self.name, self.created, self.start) == (&other.name, other.created, other.start)
    }
}

impl LaneRecord {
    /// Converts the record of an owned lane to the record type for lanes of any kind.
    pub fn into_any(self) -> AnyLane {
        let kind = LaneKind::Owned(self.kind.clone());
        self.with_kind(kind)
    }
}

impl AnyLane {
    /// Converts the record to the record type for owned lanes. Fails with the purpose of a guest lane.
    pub fn into_owned_lane(self) -> Result<LaneRecord, LanePurpose> {
        match self.kind.clone() {
            LaneKind::Owned(tree) => Ok(self.with_kind(tree)),
            LaneKind::Guest(look) => Err(look.purpose),
        }
    }

    /// Applies an edit, and sets the time of the last change if the state has changed.
    pub fn with_change(mut self, edit: impl FnOnce(&mut AnyLane)) -> AnyLane {
        let old_status = self.status;
        edit(&mut self);
        if self.status != old_status {
            self.state_changed_at = now();
        }
        self
    }

    /// Returns the branch of the lane, if it has one.
    pub fn branch(&self) -> Option<&str> {
        match &self.kind {
            LaneKind::Owned(tree) => Some(&tree.branch),
            LaneKind::Guest(_) => None,
        }
    }

    /// Returns whether the agent reads in a temporary worktree that exists only during its run.
    pub fn is_detached(&self) -> bool {
        matches!(&self.kind, LaneKind::Guest(look) if look.detached)
    }

    /// Returns the branch that the agent commits to; none for a read-only lane.
    pub fn commit_branch(&self) -> Option<&str> {
        match &self.kind {
            LaneKind::Owned(tree) => Some(&tree.branch),
            LaneKind::Guest(look) => Some(self.base.as_str()).filter(|_| !look.purpose.is_read_only()),
        }
    }

    /// Returns whether the lane changes nothing, so that its result is the agent's answer.
    pub fn is_read_only(&self) -> bool {
        self.purpose().is_some_and(LanePurpose::is_read_only)
    }

    /// Returns whether the agent works in the main checkout.
    pub fn works_in_place(&self) -> bool {
        self.purpose() == Some(LanePurpose::InPlace)
    }

    /// Returns the purpose of a lane without a branch and a worktree.
    pub fn purpose(&self) -> Option<LanePurpose> {
        match &self.kind {
            LaneKind::Owned(_) => None,
            LaneKind::Guest(look) => Some(look.purpose),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMON_KEYS: &str = "name = \"x\"\ntitle = \"x\"\npath = \"/r\"\nbase = \"main\"\nstate = \"idle\"\nattempt = 0\n\
        start = \"7f85e07d4d69da1e41b721a39f72c20b0d2a2e1b\"\ncreated = \"2026-01-02T03:04:05Z\"\n\
        updated = \"2026-01-02T03:04:05Z\"\n";

    #[test]
    fn lane_kind_round_trips_and_rejects_mixed_keys() {
        let parse = |more: &str| toml::from_str::<AnyLane>(&format!("{COMMON_KEYS}{more}"));
        let own = parse("branch = \"proq/x\"\nworktree_id = \"x1\"").unwrap();
        assert_eq!((own.branch(), own.purpose()), (Some("proq/x"), None));
        assert_eq!(own.clone().into_owned_lane().unwrap().into_any(), own);
        let look = parse("mode = \"plan\"").unwrap();
        assert_eq!((look.branch(), look.purpose()), (None, Some(LanePurpose::Plan)));
        assert_eq!(look.clone().into_owned_lane().unwrap_err(), LanePurpose::Plan);
        let detached = parse("mode = \"answer\"\nisolated = true").unwrap();
        assert!(detached.is_detached() && !look.is_detached());
        for lane in [own, look, detached] {
            assert_eq!(toml::from_str::<AnyLane>(&toml::to_string(&lane).unwrap()).unwrap(), lane);
        }
        for bad in [
            "",
            "mode = \"build\"",
            "isolated = true",
            "branch = \"b\"",
            "mode = \"plan\"\nbranch = \"b\"\nworktree_id = \"x\"",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
