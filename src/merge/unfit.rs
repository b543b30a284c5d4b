//! Owns what keeps a lane from landing whatever state it is in: its history, deletions, and conflict markers.

use super::Error;
use super::outcome::Outcome;
use crate::explain::quoted_path;
use crate::git::{self, Change, Oid, Repo, Side};
use crate::lane::holds_conflict;
use crate::store::records::LaneRecord;

/// The refusal of a lane whose history has no commit in common with that of the branch `onto`.
pub(super) fn apart(lane: &LaneRecord, onto: &str) -> Outcome {
    let dir = quoted_path(&lane.path);
    let onto_it = format!("put its commits on top of {onto}: git -C {dir} rebase --root --onto {onto}");
    let why = format!("its history has no commit in common with that of {onto}");
    Outcome { hints: vec![onto_it], lasting: true, ..Outcome::refused(&lane.name, onto, why) }
}

/// The refusal of a lane that deletes most of what `base`, the tip of `onto`, has; none where it does not.
pub(super) fn deletes_too_much(
    repo: &Repo,
    lane: &str,
    (onto, base): (&str, Oid),
    changes: &[Change],
) -> Result<Option<Outcome>, Error> {
    let changed = changes.iter().map(|change| (&change.path, change.new.is_some()));
    let Some(found) = git::mass_deletion(repo, base, changed)? else { return Ok(None) };
    let hints = vec![format!("if that is meant: git proq merge {lane} --allow-deletions")];
    let why = format!("it deletes {found} of {onto}");
    Ok(Some(Outcome { hints, lasting: true, ..Outcome::refused(lane, onto, why) }))
}

/// Files longer than this are not searched for conflict markers.
const SEARCHED: u64 = 4 * 1024 * 1024;

/// Whether a file has conflict markers that were not in it before.
pub(super) fn brings_markers(repo: &Repo, change: &Change) -> bool {
    let marked = |side: Option<Side>| {
        let blob = side.filter(|s| s.is_file()).and_then(|s| repo.small_blob(s.oid, SEARCHED));
        blob.is_some_and(|text| holds_conflict(&text))
    };
    marked(change.new) && !marked(change.old)
}
