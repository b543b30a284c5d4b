//! Refusals of a lane that do not depend on its state: unrelated history, mass deletion, and conflict
//! markers.

use super::Error;
use super::outcome::LaneOutcome;
use crate::explain::shell_quote_path;
use crate::git::{self, Change, Oid, Repo, TreeFile};
use crate::lane::contains_conflict;
use crate::store::records::LaneRecord;

/// Returns the refusal of a lane whose history has no commit in common with that of the branch `onto`.
pub(super) fn unrelated_history_refusal(lane: &LaneRecord, onto: &str) -> LaneOutcome {
    let dir = shell_quote_path(&lane.path);
    let rebase_hint = format!("put its commits on top of {onto}: git -C {dir} rebase --root --onto {onto}");
    let reason = format!("its history has no commit in common with that of {onto}");
    LaneOutcome {
        hints: vec![rebase_hint],
        is_permanent: true,
        ..LaneOutcome::refused(&lane.name, onto, reason)
    }
}

/// Returns the refusal of a lane that deletes most files of `base`, the tip of `onto`; none if the lane does
/// not.
pub(super) fn mass_deletion_refusal(
    repo: &Repo,
    lane: &str,
    (onto, base): (&str, Oid),
    changes: &[Change],
) -> Result<Option<LaneOutcome>, Error> {
    let changed = changes.iter().map(|change| (&change.path, change.new.is_some()));
    let Some(deletion) = git::detect_mass_deletion(repo, base, changed)? else { return Ok(None) };
    let hints = vec![format!("if that is meant: git proq merge {lane} --allow-deletions")];
    let reason = format!("it deletes {deletion} of {onto}");
    Ok(Some(LaneOutcome { hints, is_permanent: true, ..LaneOutcome::refused(lane, onto, reason) }))
}

/// Maximum size of files that are searched for conflict markers.
const MAX_MARKER_SCAN_BYTES: u64 = 4 * 1024 * 1024;

/// Returns whether a change adds conflict markers to a file that had none.
pub(super) fn adds_conflict_markers(repo: &Repo, change: &Change) -> bool {
    let has_markers = |side: Option<TreeFile>| {
        let blob = side.filter(|s| s.is_file()).and_then(|s| repo.small_blob(s.oid, MAX_MARKER_SCAN_BYTES));
        blob.is_some_and(|text| contains_conflict(&text))
    };
    has_markers(change.new) && !has_markers(change.old)
}
