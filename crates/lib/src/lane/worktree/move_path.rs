//! The step that renames a file or folder.

use std::path::{Path, PathBuf};

use proq_store::base::atomic::sync_dir;
use proq_store::paths::layout::Layout;
use serde::{Deserialize, Serialize};

use super::{move_undo, pool};
use crate::lane::Error;
use crate::operation::journaled_operation::Operation;
use crate::operation::journaled_operation::step::effects::{Change, Effect, SummarizedSteps};
use crate::operation::journaled_operation::step::undo::{StepUndo, UndoForecast};
use crate::operation::journaled_operation::step::{MovedPath, Step, StepOutcome};

/// Rename of a folder or file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "do", rename = "move")]
pub struct MovePath {
    /// Old path.
    #[serde(with = "proq_store::paths::path_form")]
    pub from: PathBuf,
    /// New path.
    #[serde(with = "proq_store::paths::path_form")]
    pub to: PathBuf,
}

impl Step for MovePath {
    fn paths_mut(&mut self) -> Vec<&mut PathBuf> {
        vec![&mut self.from, &mut self.to]
    }

    fn moved_path(&self) -> Option<MovedPath<'_>> {
        Some(MovedPath { from: &self.from, to: &self.to })
    }

    fn effect(&self, _summarized: &SummarizedSteps<'_>) -> Option<Effect> {
        let MovePath { from, to } = self;
        let removed = moved_lane_name(from, to).map(|name| (Change::Removed, name));
        let moved = removed.or_else(|| Some((Change::Restored, moved_lane_name(to, from)?)));
        match moved {
            Some((change, name)) => Some(Effect::Named { change, noun: "lane", name }),
            None => {
                Layout::is_new_trash_file(from).then(|| Effect::Minor("files given to a lane".to_owned()))
            }
        }
    }

    fn log_line(&self) -> Option<String> {
        Some(format!("{} -> {}", self.from.display(), self.to.display()))
    }

    fn apply(&self, _op: &Operation<'_>, _scratch: &Path) -> Result<StepOutcome, Error> {
        let MovePath { from, to } = self;
        if from.symlink_metadata().is_err() {
            return Err(Error::PathMissing { path: from.clone() });
        }
        if to.symlink_metadata().is_ok() {
            return Err(Error::PathTaken { path: to.clone() });
        }
        if let Some(parent) = to.parent() {
            std::fs::create_dir_all(parent).map_err(Error::io("create", parent))?;
        }
        std::fs::rename(from, to).map_err(Error::io("move", from))?;
        // If a power cut undid only one side of the rename, the state of both paths would be unknown.
        for dir in [from.parent(), to.parent()].into_iter().flatten() {
            sync_dir(dir)?;
        }
        Ok(StepOutcome::done())
    }

    fn invert(&self, op: &Operation<'_>) -> Result<(), Error> {
        let MovePath { from, to } = self;
        pool::with_recreated_folder(op, to, || op.move_path(to, from))
    }

    fn prepare_undo(undo: &StepUndo<'_, '_>) -> Result<(), Error> {
        // The undo of a step that covers others locks what it moves.
        if undo.covering_steps().is_empty() {
            move_undo::lock_moved_lanes(undo)?;
        }
        move_undo::refuse_new_work(undo)
    }

    fn check_undo(&self, _undo: &StepUndo<'_, '_>, forecast: &mut UndoForecast) -> Result<(), Error> {
        let MovePath { from, to } = self;
        if forecast.is_newest && !forecast.moves_or_removes(to) && to.symlink_metadata().is_err() {
            return Err(Error::PathMissing { path: to.clone() });
        }
        if forecast.is_newest && !forecast.moves_or_removes(from) && from.symlink_metadata().is_ok() {
            return Err(Error::PathTaken { path: from.clone() });
        }
        forecast.add_move(from, to);
        Ok(())
    }

    fn recover(&self, _op: &Operation<'_>, _scratch: &Path) -> Result<bool, Error> {
        Ok(self.from.symlink_metadata().is_err() && self.to.symlink_metadata().is_ok())
    }
}

/// Returns the name of the lane whose records move between these folders of active and past lanes; none for
/// another move.
fn moved_lane_name(active: &Path, past: &Path) -> Option<String> {
    let is_move = Layout::is_lane_folder(active) && Layout::is_removed_lane_folder(past);
    let name = active.file_name().filter(|_| is_move)?;
    Some(name.to_string_lossy().split('@').next().unwrap_or_default().to_owned())
}

impl Operation<'_> {
    /// Moves a file or folder to another path.
    pub(crate) fn move_path(&self, from: &Path, to: &Path) -> Result<(), Error> {
        self.perform(MovePath { from: from.to_owned(), to: to.to_owned() }).map(drop)
    }
}
