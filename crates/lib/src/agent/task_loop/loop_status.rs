//! Progress of a lane's task folder, for display.

use std::path::Path;

use proq_plan::task_status::TaskProgress;
use proq_store::base::record::Record;
use proq_store::base::run_number::RunNumber;
use proq_store::paths::layout::Layout;
use proq_store::records::lane::AnyLane;
use proq_store::records::task_loop::{ReviewVerdict, TaskLoopRecord};
use serde::Serialize;

use super::step_prompt::step_label;
use super::task_folder::{LaneTaskFolder, STATUS_FILE};
use crate::agent::Error;

/// Progress of a task folder.
#[derive(Debug, Clone, Serialize)]
pub struct LoopStatus {
    /// Path of the folder, relative to the top of the worktree.
    pub folder: String,
    /// Number of ticked boxes.
    #[serde(rename = "done")]
    pub boxes_ticked: usize,
    /// Number of boxes.
    #[serde(rename = "of")]
    pub boxes_total: usize,
    /// Number, title and position of the first step that is not done. `None` when all are done, or STATUS.md
    /// has no boxes or cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Number of finished iterations.
    pub iterations: u32,
    /// Review level: 0 reviews nothing, 1 plans, 2 plans and code.
    #[serde(rename = "level")]
    pub review_level: u8,
    /// Agent that reviews.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reviewer: Option<String>,
    /// Last review in the task loop; none before the first review.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<ReviewSummary>,
}

/// Last review of a task folder.
#[derive(Debug, Clone, Serialize)]
pub struct ReviewSummary {
    /// Subject of the review: `plan` or `code`.
    #[serde(rename = "of")]
    pub subject: &'static str,
    /// Number of the reviewed step.
    pub step: u32,
    /// Number of the run that reviewed.
    pub run: RunNumber,
    /// Reviewer's verdict: whether the work is approved or must be revised.
    #[serde(rename = "judgement")]
    pub verdict: ReviewVerdict,
}

/// Returns the progress of a lane's task loop, if the lane has one. `dir` is the lane's folder of records.
/// When STATUS.md has no boxes or cannot be read, the counts are those in the record.
///
/// # Errors
/// Fails when the record of the task loop cannot be read.
pub fn read_loop_status(dir: &Path, lane: &AnyLane) -> Result<Option<LoopStatus>, Error> {
    let Some(record) = TaskLoopRecord::load_if_exists(&Layout::task_loop_record_in(dir))? else {
        return Ok(None);
    };
    let text = LaneTaskFolder::new(&lane.path, &record.folder).read_text(STATUS_FILE).ok().flatten();
    let status = text.map(|text| TaskProgress::parse(&text)).filter(|status| status.boxes_total() > 0);
    let (boxes_ticked, boxes_total) =
        status.as_ref().map_or((record.boxes_ticked, record.boxes_total), |status| {
            (status.boxes_ticked(), status.boxes_total())
        });
    let reviewer =
        (record.review_level > 0).then(|| record.reviewer.clone().unwrap_or_else(|| record.agent.clone()));
    Ok(Some(LoopStatus {
        boxes_ticked,
        boxes_total,
        step: status.as_ref().and_then(current_step_label),
        folder: record.folder,
        iterations: record.iterations,
        review_level: record.review_level,
        reviewer,
        review: record.last_review.map(|last| ReviewSummary {
            subject: last.phase.subject(),
            step: last.step,
            run: last.run,
            verdict: last.verdict,
        }),
    }))
}

/// Returns a label for the first step that is not done, with its position among the steps.
fn current_step_label(status: &TaskProgress) -> Option<String> {
    let open_step = status.first_open_step()?;
    let step_count = status.steps.len();
    let position = status.steps.iter().position(|step| step.number == open_step.number)? + 1;
    Some(format!("{} ({position} of {step_count})", step_label(open_step)))
}
