//! Views of all lanes for lists: record, effective state, distance to the base and uncommitted changes,
//! reconciled with git's list of worktrees.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

use proq_base::run_class::RunClass;
use proq_git::history::graph::Distance;
use proq_git::status::status_query::{ScanRequest, scan_statuses as scan_all_statuses};
use proq_git::status::worktree_status::WorktreeStatus;
use proq_git::worktrees::broken_worktree::WorktreeDefect;
use proq_git::worktrees::worktree::WorktreeList;
use proq_git::{CommitId, Repo};
use proq_store::base::clock::Moment;
use proq_store::locks::lock::LockName;
use proq_store::records::agent::Activity;
use proq_store::records::lane::{AnyLane, LaneRecord};
use proq_store::records::lane_state::{LandingState, LaneState, LaneStatus, RunState};

use super::status_cache::StatusCache;
use crate::lane::messages::inbox::Inbox;
use crate::lane::state::conflict_validity;
use crate::lane::state::lane_state::{RESULT_PENDING_DETAIL, status_by_records};
use crate::lane::state::state_records::StateRecords;
use crate::lane::{Error, Project};

/// One lane as a list shows it.
#[derive(Debug, Clone)]
pub struct LaneView {
    /// Record of the lane.
    pub lane: AnyLane,
    /// Effective status, which depends on locks besides the record.
    pub status: LaneStatus,
    /// Word that is shown instead of that of the status, because the branches have moved since or an interactive
    /// agent is idle; none where the status counts.
    pub shown_state: Option<LaneState>,
    /// Time of the last output of a running agent, or else of the last change of the lane's state.
    pub active_at: Moment,
    /// Detail of the state, for the user.
    pub detail: Option<String>,
    /// Latest activity of the lane's agent, while it runs.
    pub activity: Option<Activity>,
    /// Tip of the lane's branch, or `None` if the branch is missing.
    pub tip: Option<CommitId>,
    /// Whether the lane's worktree folder is missing.
    pub is_folder_missing: bool,
    /// Part of git's data that the worktree lacks; none for an intact worktree.
    pub worktree_defect: Option<WorktreeDefect>,
    /// Commits ahead of and behind the base, or `None` if the branch or the base is missing.
    pub distance: Option<Distance>,
    /// Number of messages that are not yet delivered to the lane's agent.
    pub pending_messages: usize,
    /// Uncommitted changes of the worktree, or `None` if they could not be determined.
    pub dirty: Option<WorktreeStatus>,
    /// Records that the state depends on.
    pub records: StateRecords,
}

impl LaneView {
    /// Returns the word for the lane's state as it is shown.
    pub fn state(&self) -> LaneState {
        self.shown_state.unwrap_or_else(|| self.status.state())
    }

    /// Returns why the last run failed, while it waits to be retried; none for any other lane.
    pub fn awaited_retry(&self) -> Option<RunClass> {
        let run = (self.status.run == RunState::Retrying).then(|| self.records.run.get()).flatten()?;
        run.class
    }
}

/// Partial result of [`lane_views_with_progress`], reported while the rest is computed.
pub struct LaneViewProgress<'a, M> {
    /// Views of all lanes, some of them incomplete.
    pub views: &'a [LaneView],
    /// Number of views, from the first on, that have been compared with their bases.
    pub compared_count: usize,
    /// For each view, whether its worktree has been inspected.
    pub inspected: &'a [bool],
    /// Result of the caller's extra work, once it is available.
    pub extra_result: Option<&'a M>,
}

/// Maximum time between two progress reports.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(50);

/// Returns the views of all these lanes. A read-only lane in the main checkout leaves no uncommitted changes,
/// so its checkout is not inspected.
pub fn lane_views(project: &Project, lanes: Vec<AnyLane>) -> Result<Vec<LaneView>, Error> {
    lane_views_with_progress(project, lanes, &mut |_| {}, || ()).map(|(views, ())| views)
}

/// Returns the views of all these lanes and the result of `extra_work`, which runs while the worktrees are
/// inspected. `on_progress` is called repeatedly with the views so far.
pub fn lane_views_with_progress<M>(
    project: &Project,
    lanes: Vec<AnyLane>,
    on_progress: &mut dyn FnMut(&LaneViewProgress<'_, M>),
    extra_work: impl FnOnce() -> M,
) -> Result<(Vec<LaneView>, M), Error> {
    let worktree_lanes: Vec<usize> = (0..lanes.len()).filter(|at| lanes[*at].branch().is_some()).collect();
    let cache = StatusCache::new(&project.store, worktree_lanes.iter().map(|at| &lanes[*at].name));
    let folders: Vec<PathBuf> = worktree_lanes.iter().map(|at| lanes[*at].path.clone()).collect();
    let (results_tx, results) = mpsc::channel();
    let on_inspected = |index: usize, dirty: Option<&WorktreeStatus>, cache_bytes: Option<&[u8]>| {
        drop(results_tx.send((worktree_lanes[index], dirty.cloned())));
        if let Some(bytes) = cache_bytes {
            cache.save(index, bytes);
        }
    };
    let scans = folders.iter().enumerate().map(|(at, dir)| ScanRequest { dir, cached_scan: cache.read(at) });
    let concurrent_work = || {
        let views: Result<Vec<LaneView>, Error> =
            lanes.into_iter().map(|lane| uninspected_view(project, lane)).collect();
        let mut pending = PendingViews {
            inspected: vec![false; views.as_ref().map_or(0, Vec::len)],
            views: views?,
            results,
        };
        pending.compare_with_bases(&project.repo, on_progress)?;
        let extra = extra_work();
        pending.wait_for_inspections(worktree_lanes.len(), &extra, on_progress);
        Ok::<_, Error>((pending.views, extra))
    };
    let (views, extra) = scan_all_statuses(&project.repo, scans, on_inspected, concurrent_work)?;
    let views =
        views.into_iter().map(|view| apply_displayed_state(project, view)).collect::<Result<_, Error>>()?;
    Ok((views, extra))
}

/// Views of lanes whose worktrees are still being inspected.
struct PendingViews {
    views: Vec<LaneView>,
    inspected: Vec<bool>,
    /// Results of finished inspections: index of the view, and its uncommitted changes.
    results: mpsc::Receiver<(usize, Option<WorktreeStatus>)>,
}

impl PendingViews {
    /// Compares each lane with its base, and records inspection results that arrive in between.
    fn compare_with_bases<M>(
        &mut self,
        repo: &Repo,
        on_progress: &mut dyn FnMut(&LaneViewProgress<'_, M>),
    ) -> Result<(), Error> {
        let mut base_tips: HashMap<String, Option<CommitId>> = HashMap::new();
        for at in 0..self.views.len() {
            let view = &self.views[at];
            if let Some(tip) = view.tip {
                let base = match base_tips.get(&view.lane.base) {
                    Some(known) => *known,
                    None => {
                        *base_tips.entry(view.lane.base.clone()).or_insert(repo.branch_tip(&view.lane.base)?)
                    }
                };
                self.views[at].distance = base.map(|base| repo.distance(tip, base)).transpose()?;
            }
            while let Ok(result) = self.results.try_recv() {
                self.record_result(result);
            }
            on_progress(&LaneViewProgress {
                views: &self.views,
                compared_count: at + 1,
                inspected: &self.inspected,
                extra_result: None,
            });
        }
        Ok(())
    }

    /// Waits until `expected_count` worktrees have been inspected.
    fn wait_for_inspections<M>(
        &mut self,
        expected_count: usize,
        extra: &M,
        on_progress: &mut dyn FnMut(&LaneViewProgress<'_, M>),
    ) {
        while self.inspected.iter().filter(|looked| **looked).count() < expected_count {
            match self.results.recv_timeout(PROGRESS_INTERVAL) {
                Ok(result) => self.record_result(result),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            }
            let (views, inspected) = (&self.views, &self.inspected);
            on_progress(&LaneViewProgress {
                views,
                compared_count: views.len(),
                inspected,
                extra_result: Some(extra),
            });
        }
    }

    /// Records the uncommitted changes of the view at `index`, whose worktree has been inspected.
    fn record_result(&mut self, (index, dirty): (usize, Option<WorktreeStatus>)) {
        self.views[index].dirty = dirty;
        self.inspected[index] = true;
    }
}

/// Sets the state to done for a running lane with finished work whose agent is idle, and reassesses a
/// conflict that may be over.
fn apply_displayed_state(project: &Project, mut view: LaneView) -> Result<LaneView, Error> {
    if conflict_validity::is_landing_outdated(project, &view.lane, &view.records, view.state()) {
        view.status.landing = LandingState::Open;
        (view.shown_state, view.detail) = (Some(LaneState::Done), None);
    }
    let Ok(lane) = view.lane.clone().into_owned_lane() else { return Ok(view) };
    let is_resting = view.state() == LaneState::Running
        && view.dirty.is_some()
        && view.records.is_agent_idle()
        && super::idle_lane::has_committed_work(project, &lane, view.dirty.clone())?;
    Ok(match is_resting {
        true => LaneView {
            shown_state: Some(LaneState::Done),
            detail: Some(super::idle_lane::IDLE_DETAIL.to_owned()),
            activity: None,
            ..view
        },
        false => view,
    })
}

/// Returns the view of a lane, without inspecting its worktree and without comparing it with its base.
fn uninspected_view(project: &Project, lane: AnyLane) -> Result<LaneView, Error> {
    let records = StateRecords::new(project.store.layout(), &lane);
    let (status, detail) = status_by_records(project, &lane, &records)?;
    let tip = lane.branch().map(|branch| project.repo.branch_tip(branch)).transpose()?.flatten();
    let folder_gone = lane.branch().is_some() && !lane.path.exists();
    let pending_messages = Inbox::new(&project.store, &lane.name).count();
    let is_running = status.state() == LaneState::Running && detail.as_deref() != Some(RESULT_PENDING_DETAIL);
    let activity = is_running.then(|| records.last_activity()).flatten();
    let broken = crate::lane::context::broken_lane::missing_git_data(&project.repo, &lane).ok().flatten();
    let log = status.state().is_busy().then(|| project.store.layout().run_log(&lane.name, lane.last_run));
    let log_time = log.and_then(|path| Moment::from_system_time(path.metadata().ok()?.modified().ok()?));
    Ok(LaneView {
        active_at: log_time.unwrap_or(lane.state_changed_at).max(lane.state_changed_at),
        lane,
        status,
        shown_state: None,
        detail,
        activity,
        tip,
        is_folder_missing: folder_gone,
        worktree_defect: broken,
        distance: None,
        pending_messages,
        dirty: None,
        records,
    })
}

/// Returns worktrees in lane locations that belong to no record: left by a process that was killed while
/// creating or removing a lane.
pub fn unrecorded_worktrees(
    project: &Project,
    lanes: &[LaneRecord],
    worktrees: &WorktreeList,
) -> Result<Vec<PathBuf>, Error> {
    let mut out = Vec::new();
    for worktree in worktrees.iter().filter(|w| !lanes.iter().any(|l| l.path == w.path)) {
        if let Some(name) = project.lane_name_at(&worktree.path, worktree.branch.as_deref())
            // While the run lock of that name is held, the lane is being created or removed. Its record is
            // written before the lock is released, so the record is checked after the lock. An unreadable
            // record counts as a record.
            && !project.store.locks().is_held(&LockName::Run(name.clone()))?
            && !project.store.layout().has_lane_record(&name)
        {
            out.push(worktree.path.clone());
        }
    }
    Ok(out)
}
