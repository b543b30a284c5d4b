//! Eligibility of lanes for landing: which lanes may land, and the reason for each that may not.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use proq_base::hint;
use proq_base::lane_name::LaneName;
use proq_git::history::tree_diff;
use proq_git::status::status_query;
use proq_git::status::worktree_status::WorktreeStatus;
use proq_git::worktrees::worktree::WorktreeList;
use proq_git::{CommitId, Repo};
use proq_store as store;
use proq_store::base::record::Record;
use proq_store::records::conflict::ConflictRecord;
use proq_store::records::lane::{LaneRecord, MergeStrategy};
use proq_store::records::lane_state::LaneState;

use super::lane_examination::{LaneExamination, tip_to_land};
use super::lane_refusal::{
    adds_conflict_markers, mass_deletion_refusal, refuse_second_pick, removed_lane_outcome,
    unrelated_history_refusal,
};
use crate::lane;
use crate::lane::Project;
use crate::lane::inspection::evidence::{has_landed_on, inspect_worktree};
use crate::merge::Error;
use crate::merge::types::candidate::{Candidate, PendingCommit};
use crate::merge::types::options::Landing;
use crate::merge::types::outcome::{LandingPlan, LaneOutcome, PlannedLane, Verdict};
use crate::operation::journaled_operation::Operation;

/// Requested lanes, sorted by whether they may land.
#[derive(Debug, Default)]
pub(crate) struct ClassifiedLanes {
    /// Lanes that may land, in this order.
    pub(crate) eligible: Vec<Candidate>,
    /// Outcomes of lanes that were requested by name and may not land.
    pub refused: Vec<LaneOutcome>,
    /// Lanes that `--all` skips: `(lane, reason)`.
    pub skipped: Vec<(LaneName, String)>,
}

impl ClassifiedLanes {
    /// Returns the plan of a landing of these lanes by `strategy`.
    pub fn plan(&self, strategy: MergeStrategy) -> LandingPlan {
        let to_land = self.eligible.iter().map(|c| PlannedLane {
            lane: c.lane.name.clone(),
            onto: c.onto.clone(),
            size: Some((c.commits, c.files)),
            reason: None,
        });
        let refused = self.refused.iter().map(|o| PlannedLane {
            lane: o.lane.clone(),
            onto: o.onto.clone(),
            size: None,
            reason: Some(o.message.clone().unwrap_or_else(|| format!("all of it is on {} already", o.onto))),
        });
        LandingPlan { strategy, lanes: to_land.chain(refused).collect() }
    }

    /// Moves lanes whose outcome is already known to the refused ones, with that outcome.
    pub(crate) fn set_known_outcomes(&mut self, known_outcomes: &[LaneOutcome]) {
        let is_known = |lane: &LaneName| known_outcomes.iter().any(|outcome| outcome.lane == *lane);
        self.eligible.retain(|candidate| !is_known(&candidate.lane.name));
        self.refused.retain(|outcome| !is_known(&outcome.lane));
        self.skipped.retain(|(lane, _)| !is_known(lane));
        self.refused.extend_from_slice(known_outcomes);
    }
}

/// Sorts the requested lanes into those that may land, those that may not, and those that `--all` skips.
pub(crate) fn classify_lanes(op: &Operation<'_>, landing: &Landing) -> Result<ClassifiedLanes, Error> {
    let (project, options) = (op.project, &landing.options);
    let mut out = ClassifiedLanes::default();
    let mut lanes = requested_lanes(project, landing)?;
    if options.all {
        skip_rival_attempts(&mut lanes, &mut out);
        skip_batch_lanes(&mut lanes, &mut out);
    }
    let worktrees = WorktreeList::read(&project.repo)?;
    let mut examinations = Vec::new();
    for lane in lanes {
        let onto = options.onto.as_ref().unwrap_or(&lane.base).clone();
        let examination = LaneExamination {
            op,
            project,
            landing,
            lane,
            onto,
            worktrees: &worktrees,
            was_incomplete: AtomicBool::default(),
        };
        match examination.state_refusal()? {
            None => examinations.push(examination),
            Some(reason) if options.all => out.skipped.push((examination.lane.name, reason)),
            Some(reason) => out.refused.push(examination.refuse_state(reason)?),
        }
    }
    let folders: Vec<PathBuf> =
        examinations.iter().map(|examination| examination.lane.path.clone()).collect();
    let as_clean = || {
        examinations
            .iter()
            .map(|examination| examination.decide(Some(WorktreeStatus::default())))
            .collect::<Vec<_>>()
    };
    let (statuses, as_clean) = status_query::query_statuses(&project.repo, &folders, as_clean);
    for ((examination, status), as_clean) in examinations.iter().zip(statuses).zip(as_clean) {
        let Some(decision) = examination.decide_or_reexamine(status, as_clean)? else {
            out.refused
                .extend((!options.all).then(|| removed_lane_outcome(project, &examination.lane, options)));
            continue;
        };
        match decision {
            Ok(candidate) => out.eligible.push(candidate),
            Err(outcome) => out.refused.push(*outcome),
        }
    }
    Ok(out)
}

/// Returns the requested lanes, each once: all lanes by age, or the named lanes.
fn requested_lanes(project: &Project, landing: &Landing) -> Result<Vec<LaneRecord>, Error> {
    let mut lanes: Vec<LaneRecord> = Vec::new();
    if landing.options.all {
        lanes = project.owned_lanes()?;
        lanes.sort_by(|a, b| a.created.cmp(&b.created).then_with(|| a.name.cmp(&b.name)));
    }
    for lane in &landing.lanes {
        if lanes.iter().all(|known| known.name != lane.name) {
            lanes.push(lane.clone());
        }
    }
    Ok(lanes)
}

/// Skips lanes that are attempts at one task while it has more than one: only one may land, and the user has
/// to pick it.
fn skip_rival_attempts(lanes: &mut Vec<LaneRecord>, out: &mut ClassifiedLanes) {
    let all_lanes = lanes.clone();
    lanes.retain(|lane| {
        let attempts =
            all_lanes.iter().filter(|other| lane.group.is_some() && other.group == lane.group).count();
        if attempts > 1 {
            let reason =
                format!("it is one of {attempts} attempts; to merge it: git proq pick {}", lane.name);
            out.skipped.push((lane.name.clone(), reason));
        }
        attempts < 2
    });
}

/// Skips lanes of a batch: the batch lands them automatically, in its own order.
fn skip_batch_lanes(lanes: &mut Vec<LaneRecord>, out: &mut ClassifiedLanes) {
    lanes.retain(|lane| {
        if let Some(batch_lane) = &lane.batch {
            out.skipped.push((lane.name.clone(), format!("batch {} lands it", batch_lane.batch)));
        }
        lane.batch.is_none()
    });
}

impl LaneExamination<'_, '_> {
    /// Returns the decision on the lane with this status of its worktree; `as_clean` is the decision for a
    /// clean worktree. A refusal or an error that may be outdated is replaced by a fresh decision. Returns
    /// none when the lane no longer exists.
    fn decide_or_reexamine(
        &self,
        status: Option<WorktreeStatus>,
        as_clean: Result<Result<Candidate, Box<LaneOutcome>>, Error>,
    ) -> Result<Option<Result<Candidate, Box<LaneOutcome>>>, Error> {
        let clean = status.as_ref().is_some_and(WorktreeStatus::is_clean);
        let decision = if clean { as_clean } else { self.decide(status) };
        let may_be_outdated = || {
            decision.is_err()
                || self.was_incomplete.load(Ordering::Relaxed)
                || !has_branch_and_worktree(&self.project.repo, &self.lane)
        };
        if !matches!(decision, Ok(Ok(_))) && !self.landing.is_simulated && may_be_outdated() {
            return self.reexamine();
        }
        decision.map(Some)
    }

    /// Examines the lane again once no other process is removing or restoring it. Returns none when the lane
    /// no longer exists.
    fn reexamine(&self) -> Result<Option<Result<Candidate, Box<LaneOutcome>>>, Error> {
        let project = self.project;
        match project.lock_idle_lane(&self.lane.name).map(drop) {
            Err(lane::Error::UnknownLane { .. }) => Ok(None),
            Err(lane::Error::Store(store::Error::Locked { resource: what, holder, .. })) => {
                Ok(Some(Err(self.refuse_incomplete(format!("{what} is held by {holder}")))))
            }
            _ => {
                let worktrees = &WorktreeList::read(&project.repo)?;
                let (op, landing, was_incomplete) = (self.op, self.landing, AtomicBool::default());
                let (lane, onto) = (self.lane.clone(), self.onto.clone());
                LaneExamination { op, project, landing, lane, onto, worktrees, was_incomplete }
                    .decide(None)
                    .map(Some)
            }
        }
    }

    /// Returns the lane as a candidate, or the outcome with the reason why it may not land. `status` is the
    /// uncommitted work of its worktree, if known.
    fn decide(&self, status: Option<WorktreeStatus>) -> Result<Result<Candidate, Box<LaneOutcome>>, Error> {
        match self.examine(status)? {
            Ok(examined) => self.check_changes(examined),
            Err(outcome) => Ok(Err(outcome)),
        }
    }

    /// Returns the lane as a candidate with its size, or refuses it because of its changes: conflict markers,
    /// or too many deletions.
    fn check_changes(&self, examined: ExaminedLane) -> Result<Result<Candidate, Box<LaneOutcome>>, Error> {
        let (repo, lane) = (&self.project.repo, &self.lane);
        let ExaminedLane { tip, base_tip: base, common_ancestor: from, status_to_commit: would_commit } =
            examined;
        let changes = tree_diff::tree_changes(repo, from, tip)?;
        if !self.landing.options.force
            && let Some(path) =
                changes.iter().find(|c| adds_conflict_markers(repo, c)).map(|c| c.path.clone())
        {
            let reason = format!(
                "{path} has conflict markers; to merge it anyway: git proq merge --force {}",
                lane.name
            );
            let files = vec![path];
            return Ok(Err(Box::new(LaneOutcome {
                conflicted_files: files,
                ..LaneOutcome::refused(&lane.name, &self.onto, reason)
            })));
        }
        if !self.landing.options.allow_deletions
            && let Some(refused) = mass_deletion_refusal(repo, &lane.name, &self.onto, base, &changes)?
        {
            return Ok(Err(Box::new(refused)));
        }
        let record =
            ConflictRecord::load_if_exists(&self.project.store.layout().conflict_record(&lane.name))?;
        Ok(Ok(Candidate {
            lane: lane.clone(),
            tip,
            onto: self.onto.clone(),
            conflicted_landings: record.map_or(0, |r| r.capture_count),
            commits: repo.count_ahead(tip, base)?,
            files: changes.len(),
            part: None,
            pending_commit: would_commit.map(|status| PendingCommit { status, common_ancestor: from }),
        }))
    }

    /// Returns the refusal of a lane whose branch or worktree is missing or damaged, and sets
    /// `was_incomplete`.
    fn refuse_incomplete(&self, reason: String) -> Box<LaneOutcome> {
        self.was_incomplete.store(true, Ordering::Relaxed);
        Box::new(LaneOutcome::refused(&self.lane.name, &self.onto, reason))
    }

    /// Examines the lane's branch and worktree, and handles uncommitted work as the setting
    /// `merge.uncommitted` requires. Returns the commits that may land, or the outcome with the reason why
    /// none may.
    fn examine(
        &self,
        status: Option<WorktreeStatus>,
    ) -> Result<Result<ExaminedLane, Box<LaneOutcome>>, Error> {
        let (project, lane) = (self.project, &self.lane);
        let refused = |why: String| Ok(Err(Box::new(LaneOutcome::refused(&lane.name, &self.onto, why))));
        let Some(base) = project.repo.branch_tip(&self.onto)? else {
            return refused(format!("its base '{}' is missing; --onto names another branch", self.onto));
        };
        if self.landing.options.pick
            && let Some(pick_refused) = refuse_second_pick(project, lane, &self.onto)?
        {
            let hint = hint!("merge it as well: git proq merge {}", lane.name);
            return Ok(Err(Box::new(LaneOutcome { hints: vec![hint], ..pick_refused })));
        }
        let evidence = inspect_worktree(project, lane, self.worktrees, status)?;
        if evidence.tip.is_none() {
            return Ok(Err(self.refuse_incomplete(format!("its branch {} is missing", lane.kind.branch))));
        }
        if let Some(reason) =
            evidence.broken_reason.clone().or_else(|| evidence.registration_mismatch.clone())
        {
            let repair_hint = evidence.repair_command.map(|command| hint!("repair it: {command}"));
            return Ok(Err(Box::new(LaneOutcome {
                hints: repair_hint.into_iter().collect(),
                ..*self.refuse_incomplete(reason)
            })));
        }
        if let Some((location, _)) = &evidence.detached_work {
            return refused(format!("its worktree has commits on {location}, not on {}", lane.kind.branch));
        }
        if let Some(git_operation) = evidence.open_git_operation {
            return refused(format!("a {git_operation} is in progress in it"));
        }
        if let (Some(name), false) = (evidence.unpushed_submodules.first(), self.landing.options.force) {
            return refused(format!(
                "its submodule {name} has commits that are on no remote; push them, or merge it anyway: git proq merge --force {}",
                lane.name
            ));
        }
        let mut to_commit = None;
        if !evidence.dirty_state.is_clean() {
            match self.apply_uncommitted_setting(&evidence)? {
                Ok(is_to_commit) => to_commit = is_to_commit.then(|| evidence.dirty_state.clone()),
                Err(outcome) => return Ok(Err(outcome)),
            }
        }
        self.check_against_base(base, to_commit)
    }

    /// Compares the lane with the tip of its base, after uncommitted work has been handled. Refuses unrelated
    /// histories, and lanes that have no commits or have landed already.
    fn check_against_base(
        &self,
        base_tip: CommitId,
        status_to_commit: Option<WorktreeStatus>,
    ) -> Result<Result<ExaminedLane, Box<LaneOutcome>>, Error> {
        let (project, lane) = (self.project, &self.lane);
        let refused = |why: String| Ok(Err(Box::new(LaneOutcome::refused(&lane.name, &self.onto, why))));
        let Some(tip) = tip_to_land(project, lane, self.landing.dry_run)? else {
            return Ok(Err(self.refuse_incomplete(format!("its branch {} is missing", lane.kind.branch))));
        };
        let Some(ancestor) = project.repo.merge_base(base_tip, tip)? else {
            return Ok(Err(Box::new(unrelated_history_refusal(lane, &self.onto))));
        };
        if status_to_commit.is_some() {
            return Ok(Ok(ExaminedLane { tip, base_tip, common_ancestor: ancestor, status_to_commit }));
        }
        if has_landed_on(lane, &project.repo, tip, base_tip)? {
            let outcome = LaneOutcome::new(&lane.name, &self.onto, Verdict::AlreadyLanded);
            if tip != lane.start || lane.landed.is_some() {
                return Ok(Err(Box::new(outcome)));
            }
            if lane.already_done && lane.state() == LaneState::Done {
                let message = Some("its task had been done before".to_owned());
                return Ok(Err(Box::new(LaneOutcome { message, ..outcome })));
            }
            return refused("it has no commits".to_owned());
        }
        if project.repo.has_equivalent_changes(base_tip, tip)? {
            let message = Some("in other commits, by patch id".to_owned());
            let outcome = LaneOutcome::new(&lane.name, &self.onto, Verdict::AlreadyLanded);
            return Ok(Err(Box::new(LaneOutcome { message, ..outcome })));
        }
        Ok(Ok(ExaminedLane { tip, base_tip, common_ancestor: ancestor, status_to_commit }))
    }
}

/// Lane that passed the examination of its branch and worktree, with the commits that may land.
struct ExaminedLane {
    /// Tip of the lane's branch.
    tip: CommitId,
    /// Tip of the base.
    base_tip: CommitId,
    /// Common ancestor of both tips.
    common_ancestor: CommitId,
    /// Uncommitted work that a landing would commit first; a dry run leaves it.
    status_to_commit: Option<WorktreeStatus>,
}

/// Returns whether a lane has its branch and its worktree.
fn has_branch_and_worktree(repo: &Repo, lane: &LaneRecord) -> bool {
    lane.path.join(".git").exists() && repo.branch_tip(&lane.kind.branch).is_ok_and(|tip| tip.is_some())
}
