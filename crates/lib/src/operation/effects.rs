//! Summary of an operation's effects in a few words, as a user notices them.

use proq_git::CommitId;

/// Effects of the steps of one operation, collected step by step.
#[derive(Debug, Clone, Default)]
pub struct EffectSummary<'a> {
    /// Prefix of the branches that git-proq manages, without the slash.
    pub prefix: &'a str,
    /// Names of the lanes that were created.
    pub created_lanes: Vec<String>,
    /// Names of the lanes that were removed.
    pub removed_lanes: Vec<String>,
    /// Names of the lanes that were restored.
    pub restored_lanes: Vec<String>,
    /// Other effects, as short clauses.
    pub effects: Vec<String>,
    /// Minor effects, shown only when there are no others: what a user notices when a lane was restored to an
    /// earlier state.
    pub minor_effects: Vec<String>,
    /// Lane whose conflict got a worktree to be resolved in.
    pub opened_conflict: Option<String>,
    /// Lane whose conflict has no such worktree any more.
    pub closed_conflict: Option<String>,
    /// Whether the branch of a lane moved.
    has_moved_lane_branch: bool,
}

impl<'a> EffectSummary<'a> {
    /// Returns a summary without effects.
    pub(crate) fn new(prefix: &'a str) -> EffectSummary<'a> {
        EffectSummary { prefix, ..EffectSummary::default() }
    }

    /// Adds the move or removal of a branch. A new branch is no effect of its own.
    pub(crate) fn add_branch_move(&mut self, branch: &str, old: Option<CommitId>, new: Option<CommitId>) {
        let Some(old) = old else { return };
        let is_own = branch.strip_prefix(self.prefix).is_some_and(|rest| rest.starts_with('/'));
        self.has_moved_lane_branch |= is_own && new.is_some();
        let text = match new {
            Some(new) => format!("{branch} {} -> {}", old.short(), new.short()),
            None => format!("branch {branch} removed"),
        };
        if is_own { self.minor_effects.push(text) } else { self.effects.push(text) }
    }

    /// Returns the summary as text; none without effects.
    pub(crate) fn into_text(self) -> Option<String> {
        let mut parts = self.effects;
        parts.extend(match (self.opened_conflict, self.closed_conflict, self.has_moved_lane_branch) {
            (Some(lane), ..) => Some(format!("conflict of {lane} laid out")),
            (_, Some(lane), true) => Some(format!("conflict of {lane} resolved")),
            (_, Some(lane), false) => Some(format!("resolving of {lane} given up")),
            _ => None,
        });
        let lanes = |verb: &str, names: Vec<String>| {
            let noun = if names.len() == 1 { "lane" } else { "lanes" };
            (!names.is_empty()).then(|| format!("{noun} {} {verb}", names.join(", ")))
        };
        parts.extend(lanes("made", self.created_lanes));
        parts.extend(lanes("removed", self.removed_lanes));
        parts.extend(lanes("back", self.restored_lanes));
        if parts.is_empty() {
            parts = self.minor_effects;
        }
        parts.dedup();
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}
