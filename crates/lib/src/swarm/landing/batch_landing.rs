//! Landing of a finished batch on its base through a landing lane.

use std::cell::LazyCell;
use std::path::PathBuf;

use proq_base::hint;
use proq_base::hint::Hint;
use proq_base::lane_name::LaneName;
use proq_git::worktrees::worktree::WorktreeList;
use proq_git::{CommitId, Repo};
use proq_plan::schedule::action::BatchOutcome;
use proq_plan::schedule::status_queries::TaskStatus;
use proq_plan::schedule::task_phase::TaskOutcome;
use proq_store::Store;
use proq_store::base::batch_id::BatchId;
use proq_store::paths::layout::Layout;
use proq_store::records::lane::{AnyLane, LandingInfo, LaneRecord, LaneWorktree};

use crate::lane;
use crate::lane::Project;
use crate::lane::creation::create;
use crate::lane::creation::create::NewLane;
use crate::lane::inspection::base::Base;
use crate::lane::removal::remove_lane::RemovalReason;
use crate::lane::worktree::set_up::commands;
use crate::operation::run_operation::operate;
use crate::preview::remove_lane;
use crate::run::rewind;
use crate::swarm::Error;
use crate::swarm::batch::create::list_batches as all_batches;
use crate::swarm::batch::error::BatchError;
use crate::swarm::batch::folded_batch::{FoldedBatch, ListedBatch};
use crate::swarm::batch::record::{Batch, BatchRecord};
use crate::swarm::batch::scheduler::is_running;

/// Prefix of the names of landing lanes.
const LANDING_LANE_PREFIX: &str = "swarm-";

/// Returns the name of a batch's landing lane.
pub(crate) fn landing_lane_name(id: &BatchId) -> String {
    format!("{LANDING_LANE_PREFIX}{id}")
}

/// Returns the landing lane of a batch.
///
/// # Errors
/// [`lane::Error::UnknownLane`] when there is none.
pub(crate) fn find_landing_lane(project: &Project, id: &BatchId) -> Result<LaneRecord, lane::Error> {
    project.lane(&project.lane_name(&landing_lane_name(id))?)
}

/// Returns the landing lane of a batch: it contains everything that has landed on the batch's own branch so
/// far, and lands on the batch's base. It is created if it does not exist; the second value is whether it
/// was. As an ordinary lane, it is verified, landed and, where it conflicts, resolved like any other.
///
/// # Errors
/// [`BatchError::NothingToLand`].
pub fn open_landing_lane(project: &Project, batch: &BatchRecord) -> Result<(LaneRecord, bool), Error> {
    let tip = tip_to_land(project, batch)?;
    let (lane, is_new) = match find_landing_lane(project, &batch.id) {
        Ok(lane) => (advance_landing_lane(project, batch, lane, tip)?, false),
        Err(lane::Error::UnknownLane { .. }) => match create_landing_lane(project, batch, tip) {
            // Another process creates the same landing lane and was faster.
            Err(Error::Lane(e)) if e.is_taken() => {
                (advance_landing_lane(project, batch, find_landing_lane(project, &batch.id)?, tip)?, false)
            }
            created => (created?, true),
        },
        Err(e) => return Err(e.into()),
    };
    if lane.start == batch.start {
        return Ok((lane, is_new));
    }
    // The lane's own work begins at the batch's start. This also repairs a lane whose creator crashed before
    // this step.
    project.update_lane(&lane.name, |record| record.start = batch.start)?;
    Ok((project.lane(&lane.name)?, is_new))
}

/// The lane through which a batch would land.
#[derive(Debug)]
pub struct LandingLaneForecast {
    /// Record of the landing lane; with the batch's own branch if the lane is missing or out of date.
    pub lane: LaneRecord,
    /// Whether the lane exists and contains everything that has landed on the batch's branch.
    pub is_up_to_date: bool,
}

/// Returns the lane that [`open_landing_lane`] would create or find, without a change. Where that lane does
/// not exist or is out of date, the returned record names the batch's own branch instead, and no existing
/// worktree.
///
/// # Errors
/// The errors of [`open_landing_lane`].
pub fn forecast_landing_lane(project: &Project, batch: &BatchRecord) -> Result<LandingLaneForecast, Error> {
    let tip = tip_to_land(project, batch)?;
    let lane = match find_landing_lane(project, &batch.id) {
        Ok(lane) if !is_behind(&project.repo, batch, &lane, tip)? => {
            return Ok(LandingLaneForecast { lane, is_up_to_date: true });
        }
        Ok(lane) => lane,
        Err(lane::Error::UnknownLane { .. }) => {
            let summary = landing_lane_title(batch);
            let plan = create::plan_lane(project, landing_lane_spec(batch, &summary, tip)?)?;
            let title = create::clean_title(&summary).unwrap_or_else(|| plan.name.to_string());
            let tree = LaneWorktree { branch: plan.branch, worktree_id: plan.name.to_string() };
            let lane = LaneRecord::new(&plan.name, tree, plan.path, batch.base.clone(), batch.start);
            LaneRecord { title, ..lane }
        }
        Err(e) => return Err(e.into()),
    };
    let tree = LaneWorktree { branch: batch.branch.clone(), ..lane.kind.clone() };
    let path = Layout::forecast_worktree_in(&project.store.layout().lane(&lane.name));
    Ok(LandingLaneForecast {
        lane: LaneRecord { kind: tree, path, start: batch.start, ..lane },
        is_up_to_date: false,
    })
}

/// Returns the tip of a batch's branch, which has the commits that are to land.
fn tip_to_land(project: &Project, batch: &BatchRecord) -> Result<CommitId, Error> {
    let nothing_to_land = |reason: String| Error::from(BatchError::NothingToLand { reason });
    if batch.auto_merge {
        return Err(nothing_to_land(format!(
            "the tasks of batch {} are merged into {} directly",
            batch.id, batch.base
        )));
    }
    if batch.cleaned.is_some() {
        return Err(BatchError::CleanedUp { id: batch.id.clone() }.into());
    }
    let Some(tip) = project.repo.branch_tip(&batch.branch)? else {
        let (id, branch, tip) = (batch.id.clone(), batch.branch.clone(), last_known_tip(project, batch)?);
        return Err(BatchError::BranchMissing { id, branch, tip: tip.map(CommitId::short_in_command) }.into());
    };
    if tip == batch.start {
        return Err(nothing_to_land(format!(
            "no task of batch {} is merged into {} yet",
            batch.id, batch.branch
        )));
    }
    Ok(tip)
}

/// Removes a landing lane that was created only to forecast the landing.
///
/// # Errors
/// The errors of any removal of a lane.
pub fn remove_landing_lane(project: &Project, name: &LaneName) -> Result<(), Error> {
    operate(project, "cleanup", |op| {
        remove_lane::remove_previewed_lane(op, name, RemovalReason::Cleanup, true).map(drop)
    })?;
    Ok(())
}

/// Creates a batch's landing lane at the commit `tip`.
fn create_landing_lane(project: &Project, batch: &BatchRecord, tip: CommitId) -> Result<LaneRecord, Error> {
    let summary = landing_lane_title(batch);
    Ok(create::create_lane(project, &create::plan_lane(project, landing_lane_spec(batch, &summary, tip)?)?)?
        .lane)
}

/// Returns the plan's summary, or the names of its sources if it has none. It is the title of the lane that
/// lands the batch.
fn landing_lane_title(batch: &BatchRecord) -> String {
    if batch.summary.is_empty() { batch.sources.join(" ") } else { batch.summary.clone() }
}

/// Returns the specification of a batch's landing lane.
fn landing_lane_spec<'a>(batch: &BatchRecord, summary: &'a str, tip: CommitId) -> Result<NewLane<'a>, Error> {
    Ok(NewLane {
        name: Some(LaneName::parse(&landing_lane_name(&batch.id)).map_err(lane::Error::from)?),
        name_hint: Some(summary.into()),
        set_up: commands::SetUpLevel::PortsOnly,
        ..NewLane::new(Base { branch: batch.base.clone(), start: tip })
    })
}

/// Moves the branch of a landing lane to `tip`, if more has landed on the batch's branch since the lane was
/// last moved.
fn advance_landing_lane(
    project: &Project,
    batch: &BatchRecord,
    lane: LaneRecord,
    tip: CommitId,
) -> Result<LaneRecord, Error> {
    if !is_behind(&project.repo, batch, &lane, tip)? {
        return Ok(lane);
    }
    let (lane, _lock) = project.lock_idle_lane(&lane.name)?;
    rewind::rewind_lane(project, &lane, tip, &format!("more of batch {} has landed", batch.id))?;
    Ok(project.lane(&lane.name)?)
}

/// Returns whether a landing lane lacks commits of the batch's branch up to `tip`.
///
/// # Errors
/// [`BatchError::NothingToLand`] when the lane also has commits that are not on the batch's branch.
fn is_behind(repo: &Repo, batch: &BatchRecord, lane: &LaneRecord, tip: CommitId) -> Result<bool, Error> {
    let Some(lane_tip) = repo.branch_tip(&lane.kind.branch)? else { return Ok(false) };
    if repo.is_ancestor(tip, lane_tip)? {
        return Ok(false);
    }
    if !repo.is_ancestor(lane_tip, tip)? {
        let reason = format!(
            "more of batch {} has landed on {} since lane '{2}' was made, which has commits of its own: land that first with \
             git proq merge {2}",
            batch.id, batch.branch, lane.name
        );
        return Err(BatchError::NothingToLand { reason }.into());
    }
    Ok(true)
}

/// A batch without a running scheduler whose branch has commits that its base lacks.
#[derive(Debug)]
pub struct UnlandedBatch {
    /// Settings of the unlanded batch, as stored in `batch.toml`.
    pub batch: BatchRecord,
    /// Tip of the batch's branch; if the branch was deleted, its last tip.
    tip: CommitId,
    /// Reason why the batch can continue, as words after its id; empty if all of its tasks are settled.
    state_phrase: &'static str,
    /// Number of tasks whose work is on the branch of the batch.
    landed_count: usize,
    /// Number of all tasks.
    task_count: usize,
}

impl UnlandedBatch {
    /// Describes how far the batch is and where its work is, in one line.
    pub fn describe(&self) -> String {
        let BatchRecord { id, base, branch, .. } = &self.batch;
        let (state, landed, all) = (self.state_phrase, self.landed_count, self.task_count);
        format!("batch {id}{state}: {landed} of {all} tasks landed on {branch}, which is not on {base} yet")
    }

    /// Returns whether all tasks of the batch are settled, so that it cannot continue.
    pub fn is_over(&self) -> bool {
        self.state_phrase.is_empty()
    }

    /// Returns a hint as [`landing_hint`] does.
    pub fn landing_hint(&self, project: &Project, purpose: &str) -> Hint {
        hint_with_tip(project, &self.batch, purpose, || Some(self.tip))
    }
}

/// Returns the batches on record that [`unlanded_among`] returns.
pub fn unlanded_batches(project: &Project) -> Vec<UnlandedBatch> {
    let read_lanes = || {
        let past = project.all_past_lanes().into_iter().map(|(_, lane)| lane);
        past.chain(project.load_lanes(&drop).unwrap_or_default()).collect()
    };
    unlanded_among(project, &ListedBatch::list(project), &read_lanes)
}

/// Returns those of `batches` that have no running scheduler and whose branches have commits that their bases
/// lack. Batches that cannot be read are left out. `read_lanes` returns all lanes, the removed ones first.
pub fn unlanded_among(
    project: &Project,
    batches: &[ListedBatch],
    read_lanes: &dyn Fn() -> Vec<AnyLane>,
) -> Vec<UnlandedBatch> {
    let lanes = LazyCell::new(read_lanes);
    let find_unlanded = |listed: &ListedBatch| {
        let (batch, folded) = (&listed.record, || listed.folded(&project.store));
        let last_tip = || Ok(folded().and_then(FoldedBatch::last_tip));
        let tip = find_tip(project, batch, last_tip).ok()?.filter(|tip| *tip != batch.start)?;
        let landings = || landings_of(&batch.id, lanes.as_slice());
        if find_branch_with(project, batch, tip, landings).ok()?.is_some() {
            return None;
        }
        let folded = folded()?;
        let state_phrase = unlanded_state(project, folded).ok()??;
        let is_landed =
            |task: &usize| folded.state.task_status(*task) == TaskStatus::Settled(TaskOutcome::Landed);
        let task_count = folded.batch.tasks.len();
        let landed_count = (0..task_count).filter(is_landed).count();
        Some(UnlandedBatch { batch: batch.clone(), tip, state_phrase, landed_count, task_count })
    };
    batches.iter().filter(|listed| !listed.record.auto_merge).filter_map(find_unlanded).collect()
}

/// Returns the tip of a batch's branch; if the branch was deleted, its last tip according to the log. None
/// where neither is known.
pub(crate) fn last_known_tip(project: &Project, batch: &BatchRecord) -> Result<Option<CommitId>, Error> {
    find_tip(project, batch, || Ok(FoldedBatch::load(&project.store, batch)?.last_tip()))
}

/// Returns the tip as [`last_known_tip`] does. `last_tip` returns the one that the log has.
fn find_tip(
    project: &Project,
    batch: &BatchRecord,
    last_tip: impl FnOnce() -> Result<Option<CommitId>, Error>,
) -> Result<Option<CommitId>, Error> {
    if let Some(tip) = project.repo.branch_tip(&batch.branch)? {
        return Ok(Some(tip));
    }
    if batch.cleaned.is_some() {
        return Ok(None);
    }
    Ok(last_tip()?.filter(|tip| project.repo.has_object(*tip)))
}

/// Returns a hint with the command that lands a batch on its base. Where the batch's branch was deleted, the
/// command restores that branch instead. Where the base is gone, the command lands on the branch that is
/// checked out now. `purpose` describes the plain landing command.
pub fn landing_hint(project: &Project, batch: &BatchRecord, purpose: &str) -> Hint {
    hint_with_tip(project, batch, purpose, || last_known_tip(project, batch).ok().flatten())
}

/// Returns a hint as [`landing_hint`] does. `last_tip` returns the last known tip of the batch's branch.
fn hint_with_tip(
    project: &Project,
    batch: &BatchRecord,
    purpose: &str,
    last_tip: impl FnOnce() -> Option<CommitId>,
) -> Hint {
    let BatchRecord { id, branch, base, .. } = batch;
    let has_branch = |branch: &str| project.repo.branch_tip(branch).is_ok_and(|tip| tip.is_some());
    if !has_branch(branch)
        && let Some(tip) = last_tip()
    {
        return hint!("create its branch again: git branch {branch} {}", tip.short_in_command());
    }
    if has_branch(base) {
        return hint!("{purpose}: git proq merge --batch {id}");
    }
    let worktrees = WorktreeList::read(&project.repo).ok();
    let main_branch =
        worktrees.as_ref().and_then(|all| all.with_top_folder(project.repo.main_worktree()?)?.branch.clone());
    let target_branch =
        main_branch.filter(|name| !project.is_managed_branch(name)).unwrap_or_else(|| "BRANCH".to_owned());
    hint!("merge it into {target_branch}: git proq merge --batch {id} --onto {target_branch}")
}

/// Refuses to land a batch whose base branch was deleted.
///
/// # Errors
/// [`BatchError::BaseMissing`].
pub fn require_base(project: &Project, batch: &BatchRecord) -> Result<(), Error> {
    if batch.auto_merge || project.repo.branch_tip(&batch.base)?.is_some() {
        return Ok(());
    }
    let (id, base, hint) = (batch.id.clone(), batch.base.clone(), landing_hint(project, batch, "merge it"));
    Err(BatchError::BaseMissing { id, base, hint }.into())
}

/// Returns the reason why an unlanded batch can continue, as words after its id; empty for one all of whose
/// tasks are settled, and none while it runs.
fn unlanded_state(project: &Project, folded: &FoldedBatch) -> Result<Option<&'static str>, Error> {
    let state = &folded.state;
    Ok(match state.final_outcome() {
        Some(BatchOutcome::Complete | BatchOutcome::Partial) => Some(""),
        _ if is_running(&project.store, folded.batch.id())? => None,
        Some(BatchOutcome::Stopped) => Some(" was stopped"),
        Some(BatchOutcome::Aborted) => Some(" was aborted"),
        None if state.pause_reason().is_some() => Some(" is paused"),
        None => Some(" was interrupted"),
    })
}

/// Returns the branch that has everything that landed on a batch's own branch: the batch's base or, where
/// that was deleted, another branch that the batch landed on.
///
/// # Errors
/// When the repository cannot be read.
pub(crate) fn find_landed_branch(project: &Project, batch: &BatchRecord) -> Result<Option<String>, Error> {
    let tip = if batch.auto_merge { None } else { last_known_tip(project, batch)? };
    let Some(tip) = tip.filter(|tip| *tip != batch.start) else { return Ok(None) };
    find_branch_with(project, batch, tip, || list_landings(project, &batch.id))
}

/// Returns the branch as [`find_landed_branch`] does. `tip` is that of the batch's branch, and `landings` returns
/// those of its landing lane.
fn find_branch_with(
    project: &Project,
    batch: &BatchRecord,
    tip: CommitId,
    landings: impl FnOnce() -> Vec<LandingInfo>,
) -> Result<Option<String>, Error> {
    let repo = &project.repo;
    let base = repo.branch_tip(&batch.base)?;
    if let Some(base) = base
        && repo.is_ancestor(tip, base)?
    {
        return Ok(Some(batch.base.clone()));
    }
    // A landing by squash or rebase does not put the batch's own commits on the base.
    for landing in landings() {
        if landing.tip == tip
            && (base.is_none() || landing.onto == batch.base)
            && let Some(tip) = repo.branch_tip(&landing.onto)?
            && repo.has_object(landing.commit)
            && repo.is_ancestor(landing.commit, tip)?
        {
            return Ok(Some(landing.onto));
        }
    }
    Ok(None)
}

/// Returns the landings of a batch's landing lane, on any branch.
fn list_landings(project: &Project, id: &BatchId) -> Vec<LandingInfo> {
    let past = project.past_owned_lanes().into_iter().map(|(_, lane)| lane);
    landings_of(id, &past.chain(find_landing_lane(project, id)).collect::<Vec<_>>())
}

/// Returns the landings of a batch's landing lane among `lanes`.
fn landings_of<P>(id: &BatchId, lanes: &[LaneRecord<P>]) -> Vec<LandingInfo> {
    let name = landing_lane_name(id);
    let lanes = lanes.iter().filter(|lane| lane.name == name.as_str());
    lanes.filter_map(|lane| lane.landed.clone()).collect()
}

/// Returns the id of the batch whose landing lane has this name; none for a name of another form.
pub(crate) fn batch_id_of_landing_lane(lane: &str) -> Option<BatchId> {
    lane.strip_prefix(LANDING_LANE_PREFIX).map(BatchId::new)
}

/// Returns the batch whose landing lane has this name, and the tips of its branch that have landed; none if
/// there is no such batch, or it was cleaned up.
pub fn batch_of_landing_lane(project: &Project, lane: &LaneName) -> Option<(BatchRecord, Vec<CommitId>)> {
    let id = batch_id_of_landing_lane(lane.as_str())?;
    let batch = all_batches(project, false).into_iter().find(|batch| batch.id == id)?;
    let tips = list_landings(project, &id).into_iter().map(|landed| landed.tip).collect();
    Some((batch, tips))
}

/// Refuses a strict batch whose criteria are not known to be met by its branch.
///
/// # Errors
/// [`BatchError::CriteriaNotMet`].
pub fn require_criteria_met(project: &Project, batch: &BatchRecord) -> Result<(), Error> {
    if !batch.strict || batch.criteria.is_empty() {
        return Ok(());
    }
    let tip = project.repo.branch_tip(&batch.branch)?;
    let reason = match batch
        .criteria_report(&project.store)
        .filter(|report| report.is_complete && Some(report.tip) == tip)
    {
        Some(report) if report.are_all_met() => return Ok(()),
        Some(report) => report.describe(),
        None => "its criteria have not been checked yet".to_owned(),
    };
    Err(BatchError::CriteriaNotMet { id: batch.id.clone(), reason }.into())
}

/// Returns the first batch that builds on landings, and whether it runs now. `proof_paths` are the landing
/// records that the landings wrote. With `only_running`, batches that do not run are ignored.
///
/// # Errors
/// When the log of a batch cannot be read.
pub(crate) fn first_dependent_batch(
    store: &Store,
    proof_paths: &[PathBuf],
    only_running: bool,
) -> Result<Option<(BatchId, bool)>, Error> {
    for id in proof_paths.iter().filter_map(|path| store.layout().batch_id_of_landed_record(path)) {
        // A batch that is gone or unreadable builds on nothing.
        let Ok(loaded) = Batch::load(store, &id) else { continue };
        let lines = loaded.read_log_lines(store)?;
        let is_finished = matches!(
            loaded.fold_state(&lines).final_outcome(),
            Some(BatchOutcome::Complete | BatchOutcome::Partial)
        );
        let runs = is_running(store, &id)?;
        if runs || !(is_finished || only_running || loaded.record.cleaned.is_some()) {
            return Ok(Some((id, runs)));
        }
    }
    Ok(None)
}
