//! The records about a lane that `git proq show` prints.

use std::path::{Path, PathBuf};

use crate::agent::{self, LoopStatus};
use crate::cli::{Failure, guest_lane_output, usage};
use crate::lane::{self, LaneView, Project};
use crate::store::records::{
    AnyLane, ConflictRecord, FailedCheckRecord, LaneState, MessageRecord, ReportRecord, ResolutionRecord,
    RunRecord,
};
use crate::store::{Layout, Record};

/// Everything that `git proq show` prints about a lane, apart from the record of the lane itself.
pub(super) struct LaneDetails {
    pub(super) task: String,
    pub(super) runs: Vec<RunRecord>,
    pub(super) task_loop: Option<LoopStatus>,
    pub(super) waiting: Vec<MessageRecord>,
    pub(super) report: Option<ReportRecord>,
    pub(super) conflict: Option<ConflictRecord>,
    pub(super) check: Option<FailedCheckRecord>,
    pub(super) resolving: Option<ResolutionRecord>,
    pub(super) landed_by_hand: bool,
    /// Text of the last answer, and the file that holds it.
    pub(super) last_answer: Option<(String, PathBuf)>,
    pub(super) dir: PathBuf,
}

impl LaneDetails {
    /// Loads the details of a lane from `dir`, the folder of its records.
    pub(super) fn load(
        project: &Project,
        lane: &AnyLane,
        view: Option<&LaneView>,
        dir: PathBuf,
    ) -> Result<LaneDetails, Failure> {
        // A conflict or failed check on record may be outdated. It is shown only while the lane's current
        // state confirms it.
        let is_conflict_current =
            view.is_none_or(|view| view.state == LaneState::Conflict || view.state == lane.state);
        let is_check_current = lane.state == LaneState::CheckFailed
            && view.is_none_or(|view| view.state == LaneState::CheckFailed);
        Ok(LaneDetails {
            task: crate::regular_file::read_store_text(dir.join("task.md")).unwrap_or_default(),
            runs: load_runs(&dir, lane.attempt)?,
            task_loop: agent::read_loop_status(&dir, lane)?,
            waiting: lane::pending_messages(&dir)?.into_iter().map(|pending| pending.record).collect(),
            report: ReportRecord::load_if_exists(&dir.join(Layout::REPORT_FILE))?,
            conflict: ConflictRecord::load_if_exists(&dir.join("conflict.toml"))?
                .filter(|_| is_conflict_current),
            check: FailedCheckRecord::load_if_exists(&dir.join("check.toml"))?.filter(|_| is_check_current),
            resolving: ResolutionRecord::load_if_exists(&dir.join("resolve.toml"))?,
            last_answer: guest_lane_output::last_answer(&dir, lane)?,
            landed_by_hand: view.map_or(Ok(false), |view| is_landed_by_hand(project, view))?,
            dir,
        })
    }

    /// Returns the path of the log of the landing after `run`. The file exists only if there was one.
    pub(super) fn landing_log(&self, run: &RunRecord) -> PathBuf {
        self.dir.join(Layout::landing_log_in_lane(run.attempt))
    }
}

/// Returns whether the changes of a lane that git-proq did not land are on its base anyway.
fn is_landed_by_hand(project: &Project, view: &LaneView) -> Result<bool, Failure> {
    let (Some(tip), None) = (view.tip, &view.lane.landed) else { return Ok(false) };
    let Some(base) = project.repo.branch_tip(&view.lane.base)? else { return Ok(false) };
    Ok(project.repo.has_equivalent_changes(base, tip)?)
}

fn load_runs(dir: &Path, last_attempt: u32) -> Result<Vec<RunRecord>, Failure> {
    let mut out = Vec::new();
    for n in 1..=last_attempt {
        let run = RunRecord::load_if_exists(&dir.join(format!("runs/{n}.toml")))?;
        out.extend(run.map(|run| RunRecord { summary: usage::current_summary(dir, &run), ..run }));
    }
    Ok(out)
}
