//! The records about a lane that `git proq show` prints.

use std::path::{Path, PathBuf};

use proq_git::Repo;
use proq_lib::agent::task_loop::loop_status;
use proq_lib::agent::task_loop::loop_status::LoopStatus;
use proq_lib::lane::inspection::list::LaneView;
use proq_lib::lane::messages::inbox;
use proq_lib::session::read_only;
use proq_store::base::record::Record;
use proq_store::base::run_number::RunNumber;
use proq_store::paths::layout::Layout;
use proq_store::records::agent::ReportRecord;
use proq_store::records::check::FailedCheckRecord;
use proq_store::records::conflict::{ConflictRecord, ResolutionRecord};
use proq_store::records::lane::AnyLane;
use proq_store::records::lane_state::LaneState;
use proq_store::records::message::MessageRecord;
use proq_store::records::run::RunRecord;

use crate::cli::invocation::failure::Failure;
use crate::cli::terminal::usage;

/// Everything that `git proq show` prints about a lane, apart from the record of the lane itself.
pub(crate) struct LaneDetails {
    /// Text of the task; empty if there is none.
    pub(crate) task_text: String,
    pub(crate) runs: Vec<RunRecord>,
    pub(crate) task_loop: Option<LoopStatus>,
    /// Messages sent to the lane's agent and not delivered yet.
    pub(crate) pending_messages: Vec<MessageRecord>,
    pub(crate) report: Option<ReportRecord>,
    /// Captured conflict, while the lane's state is still that.
    pub(crate) conflict: Option<ConflictRecord>,
    /// Check that the lane failed, while its state is still that.
    pub(crate) failed_check: Option<FailedCheckRecord>,
    /// Open resolution of the lane's conflict.
    pub(crate) open_resolution: Option<ResolutionRecord>,
    /// Whether the base has the lane's changes although git-proq did not land them.
    pub(crate) landed_by_hand: bool,
    /// Text of the last answer, and the file that holds it.
    pub(crate) last_answer: Option<(String, PathBuf)>,
    /// Folder of the lane's records.
    pub(crate) record_dir: PathBuf,
}

impl LaneDetails {
    /// Loads the details of a lane from `dir`, the folder of its records.
    pub(crate) fn load(
        repo: &Repo,
        lane: &AnyLane,
        view: Option<&LaneView>,
        dir: PathBuf,
    ) -> Result<LaneDetails, Failure> {
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
            landed_by_hand: view.map_or(Ok(false), |view| is_landed_by_hand(repo, view))?,
            record_dir: dir,
        })
    }

    /// Returns the path of the log of the landing after `run`. The file exists only if there was one.
    pub(crate) fn landing_log(&self, run: &RunRecord) -> PathBuf {
        Layout::auto_merge_log_in(&self.record_dir, run.number)
    }
}

/// Returns whether the changes of a lane that git-proq did not land are on its base anyway.
fn is_landed_by_hand(repo: &Repo, view: &LaneView) -> Result<bool, Failure> {
    let (Some(tip), None) = (view.tip, &view.lane.landed) else { return Ok(false) };
    let Some(base) = repo.branch_tip(&view.lane.base)? else { return Ok(false) };
    Ok(repo.has_equivalent_changes(base, tip)?)
}

/// Loads the records of runs 1 to `last_run`, each with its usage so far. Missing records are left out.
fn load_runs(dir: &Path, last_run: RunNumber) -> Result<Vec<RunRecord>, Failure> {
    let mut out = Vec::new();
    for n in RunNumber::first().through(last_run) {
        let run = RunRecord::load_if_exists(&Layout::run_record_in(dir, n))?;
        out.extend(run.map(|run| RunRecord { summary: usage::run_usage(dir, &run), ..run }));
    }
    Ok(out)
}
