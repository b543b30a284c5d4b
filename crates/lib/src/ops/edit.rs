//! Edit of a lane's title.

use proq_base::lane_name::LaneName;
use proq_store::records::lane::AnyLane;
use serde::Serialize;

use super::error::Error;
use crate::event::log::EventName;
use crate::lane;
use crate::lane::Project;
use crate::operation::run_operation::operate;

/// New title of a lane.
#[derive(Debug, Clone)]
pub struct EditRequest {
    /// The lane.
    pub lane: AnyLane,
    /// The title, as [`crate::lane::creation::create::clean_title`] returns it.
    pub title: String,
}

/// Title that a lane got or would get.
#[derive(Debug, Serialize)]
pub struct TitleChange {
    /// Name of the lane.
    pub lane: LaneName,
    /// New title of the lane.
    pub title: String,
    /// Title before.
    #[serde(rename = "before")]
    old_title: String,
    /// Whether nothing was changed.
    pub dry_run: bool,
}

/// Plans the change of a title; the plan serializes as the outcome.
#[must_use]
pub fn plan(request: EditRequest) -> TitleChange {
    let AnyLane { name, title: old_title, .. } = request.lane;
    TitleChange { lane: name, title: request.title, old_title, dry_run: true }
}

impl TitleChange {
    /// Changes the title.
    ///
    /// # Errors
    /// Fails if the lane has been removed, or its record cannot be written.
    pub fn execute(self, project: &Project) -> Result<TitleChange, Error> {
        let set_title = |record: &mut AnyLane| record.title.clone_from(&self.title);
        operate(project, "edit", |op| {
            let lane = op.update_lane(&self.lane, set_title)?;
            let message = format!("lane '{}' is called: {}", self.lane, self.title);
            op.emit(EventName::LaneEdited, Some(&lane), message);
            Ok::<_, lane::Error>(())
        })?;
        Ok(TitleChange { dry_run: false, ..self })
    }
}
