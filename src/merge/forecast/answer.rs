//! Owns what a forecast says.

use serde::Serialize;

use crate::git::{Clash, Oid};

/// What would come of a merge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "result", rename_all = "lowercase")]
pub(crate) enum Result {
    /// Nothing would need a person.
    Clean,
    /// It would conflict.
    Conflict {
        /// On these paths.
        conflicts: Vec<Clash>,
    },
    /// That could not be found out.
    Unknown {
        /// Why.
        why: String,
    },
}

impl Result {
    /// What clashes say: none of them is a clean merge.
    pub(super) fn of(conflicts: Vec<Clash>) -> Result {
        if conflicts.is_empty() { Result::Clean } else { Result::Conflict { conflicts } }
    }

    /// Whether it is known at all.
    pub(crate) fn is_known(&self) -> bool {
        !matches!(self, Result::Unknown { .. })
    }

    /// Whether it would conflict.
    pub(crate) fn is_conflict(&self) -> bool {
        matches!(self, Result::Conflict { .. })
    }
}

/// A lane that was compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Compared {
    /// Its name.
    pub(crate) lane: String,
    /// The branch it lands on.
    pub(crate) base: String,
    /// The tip of its branch.
    pub(crate) tip: Oid,
    /// The tree that was compared: the tip's, or what would be committed now.
    pub(crate) tree: Oid,
    /// How many of its commits its base lacks.
    pub(crate) commits: usize,
    /// How many uncommitted paths are part of what was compared.
    pub(crate) uncommitted: usize,
    /// Why its uncommitted work was not compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
}

/// A lane that was not compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct LeftOut {
    /// Its name.
    pub(crate) lane: String,
    /// Why not.
    pub(crate) why: String,
}

/// Two that were compared: `theirs`, a lane, would be merged into `ours`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Pair {
    /// The base of `theirs`, or another lane of the same base.
    pub(crate) ours: String,
    /// A lane.
    pub(crate) theirs: String,
    /// Whether `ours` is the base.
    pub(crate) with_base: bool,
    /// What would come of it.
    #[serde(flatten)]
    pub(crate) result: Result,
}

/// All that was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Forecast {
    /// The lanes that were compared, base by base, by name.
    pub(crate) lanes: Vec<Compared>,
    /// Those that were not.
    pub(crate) left_out: Vec<LeftOut>,
    /// Each lane with its base, and with every other of the same base.
    pub(crate) pairs: Vec<Pair>,
}
