//! The records about one lane.

use std::path::{Path, PathBuf};

use proq_git::Repo;
use proq_git::status::diff::FileLineCounts;
use proq_store::base::record::Record;
use proq_store::base::run_number::RunNumber;
use proq_store::paths::layout::Layout;
use proq_store::records::agent::ReportRecord;
use proq_store::records::check::FailedCheckRecord;
use proq_store::records::conflict::{ConflictRecord, ResolutionRecord};
use proq_store::records::lane::AnyLane;
use proq_store::records::lane_state::LaneState;
use proq_store::records::message::MessageRecord;
use proq_store::records::pull_request::PullRequestStatus;
use proq_store::records::run::RunRecord;

use crate::agent::task_loop::loop_status;
use crate::agent::task_loop::loop_status::LoopStatus;
use crate::board::cost;
use crate::board::lookup::find_lane_or_task_lane;
use crate::lane::Project;
use crate::lane::inspection::list;
use crate::lane::inspection::list::LaneView;
use crate::lane::messages::inbox;
use crate::ops::error::Error;
use crate::session::read_only;

/// A lane as it is shown.
#[derive(Debug)]
pub struct ShownLane {
    /// Record of the lane.
    pub lane: AnyLane,
    /// Current state of the lane; none for a removed one.
    pub view: Option<LaneView>,
    /// Everything else about the lane.
    pub details: LaneDetails,
}

impl ShownLane {
    /// Reads all about the lane with this name or branch, the removed lane `NAME@N`, or the newest lane of the
    /// batch's task with this name.
    ///
    /// # Errors
    /// Fails if there is no such lane, and when a record or the repository cannot be read.
    pub fn load(project: &Project, name: &str) -> Result<ShownLane, Error> {
        let (lane, dir) = find_lane_or_task_lane(project, name)?;
        let is_past = name.contains('@');
        let view = if is_past { None } else { list::lane_views(project, vec![lane.clone()])?.pop() };
        let details = LaneDetails::load(&project.repo, &lane, view.as_ref(), dir)?;
        Ok(ShownLane { lane, view, details })
    }
}

/// Everything about a lane, apart from the record of the lane itself.
#[derive(Debug)]
pub struct LaneDetails {
    /// Text of the task; empty if there is none.
    pub task_text: String,
    /// Records of the runs, in order, each with its usage so far.
    pub runs: Vec<RunRecord>,
    /// Progress of a task that is a folder with steps.
    pub task_loop: Option<LoopStatus>,
    /// Messages sent to the lane's agent and not delivered yet.
    pub pending_messages: Vec<MessageRecord>,
    /// Last report that the agent wrote.
    pub report: Option<ReportRecord>,
    /// Captured conflict, while the lane's state is still that.
    pub conflict: Option<ConflictRecord>,
    /// Check that the lane failed, while its state is still that.
    pub failed_check: Option<FailedCheckRecord>,
    /// Open resolution of the lane's conflict.
    pub open_resolution: Option<ResolutionRecord>,
    /// Last known status of the lane's pull request.
    pub pull_request_status: Option<PullRequestStatus>,
    /// Whether the base has the lane's changes although git-proq did not land them.
    pub landed_by_hand: bool,
    /// Text of the last answer, and the file that holds it.
    pub last_answer: Option<(String, PathBuf)>,
    /// Files that the lane's commits change, with their lines; none if they cannot be compared.
    pub changed_files: Option<Vec<FileLineCounts>>,
    /// Folder of the lane's records.
    pub record_dir: PathBuf,
}

impl LaneDetails {
    /// Loads the details of a lane from `dir`, the folder of its records. `view` is `None` for a
    /// removed lane.
    ///
    /// # Errors
    /// Fails when a record or the repository cannot be read.
    fn load(
        repo: &Repo,
        lane: &AnyLane,
        view: Option<&LaneView>,
        dir: PathBuf,
    ) -> Result<LaneDetails, Error> {
        // A conflict or failed check on record may be outdated. It is shown only while the lane's current
        // state confirms it.
        let is_conflict_current =
            view.is_none_or(|view| view.state() == LaneState::Conflict || view.state() == lane.state());
        let is_check_current = lane.state() == LaneState::CheckFailed
            && view.is_none_or(|view| view.state() == LaneState::CheckFailed);
        Ok(LaneDetails {
            task_text: proq_base::regular_file::read_store_text(Layout::task_prompt_in(&dir))
                .unwrap_or_default(),
            runs: load_runs(&dir, lane.last_run)?,
            task_loop: loop_status::read_loop_status(&dir, lane)?,
            pending_messages: inbox::pending_messages(&dir)?
                .into_iter()
                .map(|pending| pending.record)
                .collect(),
            report: ReportRecord::load_if_exists(&Layout::lane_report_in(&dir))?,
            conflict: ConflictRecord::load_if_exists(&Layout::conflict_record_in(&dir))?
                .filter(|_| is_conflict_current),
            failed_check: FailedCheckRecord::load_if_exists(&Layout::failed_check_record_in(&dir))?
                .filter(|_| is_check_current),
            open_resolution: ResolutionRecord::load_if_exists(&Layout::resolution_record_in(&dir))?,
            last_answer: read_only::last_answer_file(&dir, lane)?,
            pull_request_status: lane.pull_request.as_ref().and_then(|request| {
                let path = Layout::pull_request_status_in(&dir);
                let status = PullRequestStatus::load_if_exists(&path).ok().flatten();
                status.filter(|status| status.number == request.number)
            }),
            landed_by_hand: view.map_or(Ok(false), |view| is_landed_by_hand(repo, view))?,
            changed_files: view.and_then(|view| changed_files(repo, view)),
            record_dir: dir,
        })
    }

    /// Returns the path of the log of `run`.
    #[must_use]
    pub fn log_path(&self, run: &RunRecord) -> PathBuf {
        Layout::run_log_in(&self.record_dir, run.number)
    }

    /// Returns the path of the prompt of `run`, which exists only if the run has one of its own.
    #[must_use]
    pub fn prompt_path(&self, run: &RunRecord) -> PathBuf {
        Layout::run_prompt_in(&self.record_dir, run.number)
    }

    /// Returns the path of the log of the landing after `run`. The file exists only if there was one.
    #[must_use]
    pub fn landing_log(&self, run: &RunRecord) -> PathBuf {
        Layout::auto_merge_log_in(&self.record_dir, run.number)
    }
}

/// Returns whether the changes of a lane that git-proq did not land are on its base anyway.
fn is_landed_by_hand(repo: &Repo, view: &LaneView) -> Result<bool, Error> {
    let (Some(tip), None) = (view.tip, &view.lane.landed) else { return Ok(false) };
    let Some(base) = repo.branch_tip(&view.lane.base)? else { return Ok(false) };
    Ok(repo.has_equivalent_changes(base, tip)?)
}

/// Returns the files that the commits of a lane change since it forked from its base, with their lines.
fn changed_files(repo: &Repo, view: &LaneView) -> Option<Vec<FileLineCounts>> {
    let from = repo.tree_of(view.lane.start).ok()?;
    repo.count_lines_by_file(from, repo.tree_of(view.tip?).ok()?, None)
}

/// Loads the records of runs 1 to `last_run`, each with its usage so far. Missing records are left out.
fn load_runs(dir: &Path, last_run: RunNumber) -> Result<Vec<RunRecord>, Error> {
    let mut out = Vec::new();
    for n in RunNumber::first().through(last_run) {
        let run = RunRecord::load_if_exists(&Layout::run_record_in(dir, n))?;
        out.extend(run.map(|run| RunRecord { summary: cost::run_usage(dir, &run), ..run }));
    }
    Ok(out)
}
