//! Owns how far a lane's task is that is a folder, for whoever shows it.

use std::path::Path;

use serde::Serialize;

use super::super::Error;
use super::begin::at_step;
use super::folder::{Folder, STATUS};
use super::status::Status;
use crate::store::records::{AnyLane, Judgement, PacketRecord};
use crate::store::{Layout, Record};

/// How far a task is.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Shown {
    /// Its folder.
    pub(crate) folder: String,
    /// How many boxes are ticked.
    pub(crate) done: usize,
    /// How many there are.
    pub(crate) of: usize,
    /// The step that it is at, by number and title; none when all are done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) step: Option<String>,
    /// How many iterations have ended.
    pub(crate) iterations: u32,
    /// How closely it is looked at.
    pub(crate) level: u8,
    /// Who looks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reviewer: Option<String>,
    /// The last review.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) review: Option<LastReview>,
}

/// The last review of a task.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct LastReview {
    /// Of what: `plan` or `code`.
    pub(crate) of: &'static str,
    /// Of which step.
    pub(crate) step: u32,
    /// The run that it was.
    pub(crate) run: u32,
    /// What it came to.
    pub(crate) judgement: Judgement,
}

/// How far a lane's task is, if it is a folder; `dir` is the lane's folder of records. Where its STATUS.md cannot be read any more, it is as far
/// as it was when a run ended last.
///
/// # Errors
/// When its record cannot be read.
pub(crate) fn shown(dir: &Path, lane: &AnyLane) -> Result<Option<Shown>, Error> {
    let Some(record) = PacketRecord::find(&dir.join(Layout::PACKET))? else { return Ok(None) };
    let text = Folder::new(&lane.path, &record.folder).text(STATUS).ok().flatten();
    let status = text.map(|text| Status::read(&text)).filter(|status| status.of() > 0);
    let (done, of) = status.as_ref().map_or((record.done, record.of), |status| (status.done(), status.of()));
    let reviewer =
        (record.level > 0).then(|| record.reviewer.clone().unwrap_or_else(|| record.agent.clone()));
    Ok(Some(Shown {
        done,
        of,
        step: status.as_ref().and_then(at_step),
        folder: record.folder,
        iterations: record.iterations,
        level: record.level,
        reviewer,
        review: record.last_review.map(|last| LastReview {
            of: last.part.subject(),
            step: last.step,
            run: last.run,
            judgement: last.judgement,
        }),
    }))
}
