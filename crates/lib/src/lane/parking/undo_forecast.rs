//! Forecast of the undo of steps that parked or restored changes.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::lane::Error;
use crate::operation::journaled_operation::missing_worktree;
use crate::operation::journaled_operation::step::Step;
use crate::operation::journaled_operation::step::undo::{StepUndo, UndoForecast};

/// Worktrees whose parked changes the forecast of an undo restored or parked again. The value is the snapshot
/// that would then be restored to the worktree; none if its changes would be parked.
#[derive(Default)]
pub(crate) struct RestoredSnapshots(pub(crate) BTreeMap<PathBuf, Option<String>>);

/// Checks whether a step that parked or restored changes can be undone. Records that its worktree would then
/// have the changes of the snapshot `restored`, or that its changes would be parked.
pub(super) fn check_parking_undo(
    step: &dyn Step,
    undo: &StepUndo<'_, '_>,
    forecast: &UndoForecast,
    restored: Option<&str>,
) -> Result<(), Error> {
    let Some(dir) = step.parked_worktree() else { return Ok(()) };
    if forecast.is_newest && !forecast.moves_or_removes(dir) {
        missing_worktree::refuse_missing_worktree(&undo.op.project.repo, step)?;
    }
    let restored = restored.map(str::to_owned);
    undo.op.with_memory(|snapshots: &mut RestoredSnapshots| snapshots.0.insert(dir.to_owned(), restored));
    Ok(())
}
