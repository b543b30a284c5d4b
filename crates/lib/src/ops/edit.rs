//! Edit of a lane's title, scope, checks and base.

use proq_base::explain::Explain;
use proq_base::lane_name::LaneName;
use proq_git::status::scope::Scope;
use proq_store::base::batch_id::BatchId;
use proq_store::locks::lock::LockName;
use proq_store::records::lane::AnyLane;
use serde::Serialize;

use super::error::Error;
use crate::event::log::EventName;
use crate::lane;
use crate::lane::Project;
use crate::lane::context::lane_records::require_branch;
use crate::lane::inspection::base;
use crate::operation::run_operation::operate;

pub mod rename;

/// Reason why a lane cannot be edited.
#[derive(Debug, thiserror::Error, Explain)]
pub enum EditError {
    /// The lane belongs to a batch, whose plan decides where it lands.
    #[error("cannot change the base of lane '{lane}': it belongs to batch {batch}")]
    #[hint("land the batch elsewhere: git proq batch land {batch} --onto BRANCH")]
    BaseOfBatchLane {
        /// Name of the lane.
        lane: LaneName,
        /// Id of the batch.
        batch: BatchId,
    },
    /// A glob of the scope is an absolute path, which matches no file.
    #[error(
        "cannot set the scope of lane '{lane}' to '{glob}': it is not relative to the top of the repository"
    )]
    #[exit(Usage)]
    AbsoluteScope {
        /// Name of the lane.
        lane: LaneName,
        /// The glob, as it was given.
        glob: String,
    },
}

/// New values of a lane; none for those that stay.
#[derive(Debug, Clone)]
pub struct EditRequest {
    /// The lane.
    pub lane: AnyLane,
    /// The title, as [`crate::lane::creation::create::clean_title`] returns it.
    pub title: Option<String>,
    /// Globs of the files that the task should touch. Blank ones are left out.
    pub scope: Option<Vec<String>>,
    /// Command lines that must pass before the lane lands. Blank ones are left out.
    pub checks: Option<Vec<String>>,
    /// Branch that the lane lands on.
    pub base: Option<String>,
}

/// Values that a lane got or would get.
#[derive(Debug, Serialize)]
pub struct LaneEdit {
    /// Name of the lane.
    pub lane: LaneName,
    /// Title of the lane afterwards.
    pub title: String,
    /// Title before.
    #[serde(rename = "before")]
    pub old_title: String,
    /// New scope; none if it stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<Vec<String>>,
    /// New checks; none if they stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checks: Option<Vec<String>>,
    /// New base; none if it stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Whether a value is or would be another one than before; otherwise nothing is recorded.
    pub changed: bool,
    /// Whether nothing was changed.
    pub dry_run: bool,
}

/// Validates an edit; the plan serializes as the outcome.
///
/// # Errors
/// Fails for an invalid glob, and for a base that is no branch of the user or that the lane cannot land on.
pub fn plan(project: &Project, request: EditRequest) -> Result<LaneEdit, Error> {
    let EditRequest { lane, title, scope, checks, base } = request;
    let without_blank = |mut texts: Vec<String>| {
        texts.retain(|text| !text.trim().is_empty());
        texts
    };
    let scope = scope.map(without_blank);
    let globs = scope.as_deref().unwrap_or_default();
    Scope::parse(globs)?;
    if let Some(glob) = globs.iter().find(|glob| glob.starts_with('/')) {
        return Err(EditError::AbsoluteScope { lane: lane.name, glob: glob.clone() }.into());
    }
    let base = base.map(|branch| base::resolve(project, None, Some(&branch))).transpose()?;
    if base.is_some() {
        if let Some(in_batch) = &lane.batch {
            return Err(EditError::BaseOfBatchLane { lane: lane.name, batch: in_batch.batch.clone() }.into());
        }
        require_branch(lane.clone())?;
    }
    let mut edit = LaneEdit {
        title: title.unwrap_or_else(|| lane.title.clone()),
        old_title: lane.title.clone(),
        lane: lane.name.clone(),
        scope,
        checks: checks.map(without_blank),
        base: base.map(|base| base.branch),
        changed: true,
        dry_run: true,
    };
    let mut after = lane.clone();
    edit.apply(&mut after);
    edit.changed = after != lane;
    Ok(edit)
}

impl LaneEdit {
    fn apply(&self, record: &mut AnyLane) {
        record.title.clone_from(&self.title);
        record.scope = self.scope.clone().unwrap_or_else(|| record.scope.clone());
        record.checks = self.checks.clone().unwrap_or_else(|| record.checks.clone());
        record.base = self.base.clone().unwrap_or_else(|| record.base.clone());
    }

    /// Changes the lane.
    ///
    /// # Errors
    /// Fails if the lane has been removed, its record cannot be written, or its base is to change while its agent
    /// runs.
    pub fn execute(self, project: &Project) -> Result<LaneEdit, Error> {
        if !self.changed {
            return Ok(LaneEdit { dry_run: false, ..self });
        }
        let _idle = self.base.as_ref().map(|_| project.lock_idle_lane(&self.lane)).transpose()?;
        operate(project, "edit", |op| {
            // A landing reads base and checks once more under this lock, before its base moves.
            let decides_landing = self.base.is_some() || self.checks.is_some();
            let _lock =
                decides_landing.then(|| project.store.locks().acquire(&LockName::Merge)).transpose()?;
            let lane = op.update_lane(&self.lane, |record| self.apply(record))?;
            let message = match self.title == self.old_title {
                true => format!("lane '{}' was edited", self.lane),
                false => format!("lane '{}' is called: {}", self.lane, self.title),
            };
            op.emit(EventName::LaneEdited, Some(&lane), message);
            Ok::<_, lane::Error>(())
        })?;
        Ok(LaneEdit { dry_run: false, ..self })
    }
}
