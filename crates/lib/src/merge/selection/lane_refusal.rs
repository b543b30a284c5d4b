//! Refusals of a lane that do not depend on its state: unrelated history, mass deletion, conflict markers,
//! another picked attempt, and a removed lane.

use proq_base::explain::shell_quote_path;
use proq_base::hint;
use proq_base::lane_name::LaneName;
use proq_git::history::deletions;
use proq_git::history::tree_diff::{TreeChange, TreeFile};
use proq_git::{CommitId, Repo};
use proq_store::records::lane::LaneRecord;
use proq_store::records::lane_state::LaneState;

use crate::lane::Project;
use crate::merge::Error;
use crate::merge::types::options::LandingOptions;
use crate::merge::types::outcome::{LaneOutcome, Verdict};
use crate::run::leftovers::contains_conflict_markers;

/// Returns the refusal of a lane whose history has no commit in common with that of the branch `onto`.
pub(crate) fn unrelated_history_refusal(lane: &LaneRecord, onto: &str) -> LaneOutcome {
    let dir = shell_quote_path(&lane.path);
    let rebase_hint = hint!("rebase its commits onto {onto}: git -C {dir} rebase --root --onto {onto}");
    let reason = format!("it has no common history with {onto}");
    LaneOutcome {
        hints: vec![rebase_hint],
        is_permanent: true,
        ..LaneOutcome::refused(&lane.name, onto, reason)
    }
}

/// Returns the refusal of a lane that deletes most files of `base`, the tip of `onto`; none if the lane does
/// not.
pub(crate) fn mass_deletion_refusal(
    repo: &Repo,
    lane: &LaneName,
    onto: &str,
    base: CommitId,
    changes: &[TreeChange],
) -> Result<Option<LaneOutcome>, Error> {
    let changed = changes.iter().map(|change| (&change.path, change.new.is_some()));
    let Some(deletion) = deletions::detect_mass_deletion(repo, base, changed)? else { return Ok(None) };
    let hints = vec![hint!("if that is intended: git proq merge {lane} --allow-deletions")];
    let reason = format!("it deletes {deletion} of {onto}");
    Ok(Some(LaneOutcome { hints, is_permanent: true, ..LaneOutcome::refused(lane, onto, reason) }))
}

/// Maximum size of files that are searched for conflict markers.
const MAX_MARKER_SCAN_BYTES: u64 = 4 * 1024 * 1024;

/// Returns whether a change adds conflict markers to a file that had none.
pub(crate) fn adds_conflict_markers(repo: &Repo, change: &TreeChange) -> bool {
    let has_markers = |side: Option<TreeFile>| {
        let blob =
            side.filter(|s| s.is_file()).and_then(|s| repo.small_blob(s.blob(), MAX_MARKER_SCAN_BYTES));
        blob.is_some_and(|text| contains_conflict_markers(&text))
    };
    has_markers(change.new) && !has_markers(change.old)
}

/// Refuses to pick a lane while another attempt of its group is on the base `onto`. Only attempts that landed
/// after `lane` was created count. Returns none when the lane may be picked.
pub(crate) fn refuse_second_pick(
    project: &Project,
    lane: &LaneRecord,
    onto: &str,
) -> Result<Option<LaneOutcome>, Error> {
    let (Some(group), repo) = (&lane.group, &project.repo) else { return Ok(None) };
    let removed_lanes = project.past_owned_lanes().into_iter().map(|(_, past)| past);
    for other in project.owned_lanes()?.into_iter().chain(removed_lanes) {
        let is_other = other.group.as_ref() == Some(group) && other.name != lane.name;
        let Some(landed) = other.landed.filter(|landed| is_other && lane.created <= landed.landed_at) else {
            continue;
        };
        let Some(tip) = repo.branch_tip(&landed.onto)? else { continue };
        if repo.has_object(landed.commit) && repo.is_ancestor(landed.commit, tip)? {
            let reason =
                format!("another attempt of '{group}' was picked: '{}' is on {}", other.name, landed.onto);
            return Ok(Some(LaneOutcome::refused(&lane.name, onto, reason)));
        }
    }
    Ok(None)
}

/// Returns the outcome of a lane that was removed while this landing waited or ran.
pub(crate) fn removed_lane_outcome(
    project: &Project,
    lane: &LaneRecord,
    options: &LandingOptions,
) -> LaneOutcome {
    let onto = options.onto.as_ref().unwrap_or(&lane.base);
    let removed_lanes = project.past_owned_lanes().into_iter().map(|(_, past)| past);
    let landed = removed_lanes.filter(|past| past.name == lane.name && past.start == lane.start);
    let landed = landed.filter(|past| past.state() == LaneState::Landed).find_map(|past| past.landed);
    if landed.is_some_and(|landed| landed.onto == *onto) {
        let message = Some("another merge was faster".to_owned());
        return LaneOutcome {
            message,
            cleaned_up: true,
            ..LaneOutcome::new(&lane.name, onto, Verdict::AlreadyLanded)
        };
    }
    if options.pick
        && let Ok(Some(refused)) = refuse_second_pick(project, lane, onto)
    {
        return refused;
    }
    LaneOutcome::refused(&lane.name, onto, "it was removed before it could be merged")
}
