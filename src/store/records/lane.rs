//! Owns the form of a lane's record.

use std::fmt;
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{InBatch, Ports};
use crate::git::Oid;
use crate::store::{Moment, Record, now};

/// What a lane is doing, or how it ended. What a process claims (`starting`, `running`) is true only while its lock
/// is held; who reads a record looks at the lock too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LaneState {
    /// No run yet.
    Idle,
    /// A run is being started.
    Starting,
    /// A run is under way.
    Running,
    /// The agent ended well and there is something to show.
    Done,
    /// The agent ended well and changed nothing.
    NoChange,
    /// The agent failed, or its supervisor died.
    Failed,
    /// Nothing came of it for too long, and it was ended.
    Stalled,
    /// Somebody stopped it.
    Stopped,
    /// Its supervisor is gone and its agent lives on.
    Orphaned,
    /// The last landing captured a conflict.
    Conflict,
    /// With it, checks failed that succeed without it.
    CheckFailed,
    /// It is on its base.
    Landed,
    /// It was thrown away.
    Discarded,
}

impl LaneState {
    /// Whether a process claims this state: it is true only while that process holds the run lock.
    pub(crate) fn is_claimed(self) -> bool {
        matches!(self, LaneState::Starting | LaneState::Running)
    }

    /// Whether something runs in a lane of this state.
    pub(crate) fn is_busy(self) -> bool {
        self.is_claimed() || self == LaneState::Orphaned
    }

    /// Whether nothing of the lane is left to land.
    pub(crate) fn is_over(self) -> bool {
        matches!(self, LaneState::Landed | LaneState::Discarded)
    }
}

impl fmt::Display for LaneState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            LaneState::Idle => "idle",
            LaneState::Starting => "starting",
            LaneState::Running => "running",
            LaneState::Done => "done",
            LaneState::NoChange => "no-change",
            LaneState::Failed => "failed",
            LaneState::Stalled => "stalled",
            LaneState::Stopped => "stopped",
            LaneState::Orphaned => "orphaned",
            LaneState::Conflict => "conflict",
            LaneState::CheckFailed => "check-failed",
            LaneState::Landed => "landed",
            LaneState::Discarded => "discarded",
        })
    }
}

/// How a lane's commits come to its base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Strategy {
    /// As they are, with a merge commit.
    Merge,
    /// Each anew on top of the base, without a merge commit.
    Rebase,
    /// As one commit.
    Squash,
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Strategy::Merge => "merge",
            Strategy::Rebase => "rebase",
            Strategy::Squash => "squash",
        })
    }
}

impl Strategy {
    /// The strategy of this name.
    pub(crate) fn named(name: &str) -> Option<Strategy> {
        match name {
            "merge" => Some(Strategy::Merge),
            "rebase" => Some(Strategy::Rebase),
            "squash" => Some(Strategy::Squash),
            _ => None,
        }
    }
}

/// How a lane landed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Landed {
    /// The commit with which all of it was there.
    pub(crate) commit: Oid,
    /// The branch.
    pub(crate) onto: String,
    /// The tip that landed.
    pub(crate) tip: Oid,
    /// When.
    pub(crate) at: Moment,
    /// How its commits came there.
    #[serde(default = "by_merge")]
    pub(crate) method: Strategy,
}

/// How all lanes landed when records did not say.
fn by_merge() -> Strategy {
    Strategy::Merge
}

/// Why a lane that was to land by itself did not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refusal {
    /// When.
    pub(crate) at: Moment,
    /// Why.
    pub(crate) message: String,
    /// The exit code of the landing.
    pub(crate) exit: u8,
    /// Whether it is not tried again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) lasting: bool,
}

/// A branch and a worktree of a lane's own: it can be landed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tree {
    /// The branch, without `refs/heads/`.
    pub(crate) branch: String,
    /// The name of git's admin folder for the worktree.
    pub(crate) worktree_id: String,
}

/// What a lane is for that has nothing of its own in the repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Purpose {
    /// To say how something should be done.
    Plan,
    /// To answer a question.
    Answer,
    /// To do its task in the main checkout, on the branch that is checked out there.
    InPlace,
}

impl Purpose {
    /// Whether it changes nothing, and comes to what its agent says.
    pub(crate) fn only_looks(self) -> bool {
        self != Purpose::InPlace
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Purpose::Plan => "plan",
            Purpose::Answer => "answer",
            Purpose::InPlace => "in-place",
        })
    }
}

/// A lane that is a guest in what others have: it only looks, and comes to what its agent says, or it works in the main checkout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Look {
    /// What for.
    pub(crate) purpose: Purpose,
    /// Whether it does so in a worktree that is made for it, and not in the main checkout.
    pub(crate) apart: bool,
}

/// What a lane has of its own in the repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "PlaceForm", into = "PlaceForm")]
pub(crate) enum Place {
    /// A branch and a worktree.
    Own(Tree),
    /// Nothing: its agent looks at what others have, or works there.
    Look(Look),
}

/// Any lane, whether it can be landed or not.
pub(crate) type AnyLane = LaneRecord<Place>;

/// The keys of a [`Place`] among those of its lane.
#[derive(Serialize, Deserialize)]
struct PlaceForm {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mode: Option<Purpose>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    isolated: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    worktree_id: Option<String>,
}

impl TryFrom<PlaceForm> for Place {
    type Error = &'static str;

    fn try_from(form: PlaceForm) -> Result<Place, Self::Error> {
        match (form.mode, form.branch, form.worktree_id) {
            (None, Some(branch), Some(worktree_id)) if !form.isolated => {
                Ok(Place::Own(Tree { branch, worktree_id }))
            }
            (Some(purpose), None, None) => Ok(Place::Look(Look { purpose, apart: form.isolated })),
            _ => Err("a lane has a branch and a worktree_id, or a mode"),
        }
    }
}

impl From<Place> for PlaceForm {
    fn from(place: Place) -> PlaceForm {
        match place {
            Place::Own(Tree { branch, worktree_id }) => PlaceForm {
                mode: None,
                isolated: false,
                branch: Some(branch),
                worktree_id: Some(worktree_id),
            },
            Place::Look(Look { purpose, apart }) => {
                PlaceForm { mode: Some(purpose), isolated: apart, branch: None, worktree_id: None }
            }
        }
    }
}

/// A lane, as it is kept. One that can be landed has a [`Tree`]; what may be any lane is an [`AnyLane`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LaneRecord<P = Tree> {
    /// Its name.
    pub(crate) name: String,
    /// The first line of its task; the name when it has none.
    pub(crate) title: String,
    /// What it has of its own in the repository.
    #[serde(flatten)]
    pub(crate) place: P,
    /// The top of the worktree that its agent works in.
    #[serde(with = "crate::store::path_form")]
    pub(crate) path: PathBuf,
    /// The branch it lands on; of one that only looks, what it looks at.
    pub(crate) base: String,
    /// The commit it was cut from, or that it looks at.
    pub(crate) start: Oid,
    /// What it is doing.
    pub(crate) state: LaneState,
    /// More about the state, for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<String>,
    /// The agent of its last run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    /// The number of its last run; zero before the first.
    pub(crate) attempt: u32,
    /// When it was made.
    pub(crate) created: Moment,
    /// When its state changed last.
    pub(crate) updated: Moment,
    /// Shell command lines that must succeed with it before it lands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) checks: Vec<String>,
    /// The files that it is expected to touch, as globs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) scope: Vec<String>,
    /// Edits made while it was previewed: the snapshots that hold them, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) preview_edits: Vec<String>,
    /// Whether its run changed nothing because its task had been done before; it is `done` then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) already: bool,
    /// Whether it lands by itself when its run is done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) auto_merge: bool,
    /// The group that it is one attempt of, by its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) group: Option<String>,
    /// How it landed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) landed: Option<Landed>,
    /// Why it did not land by itself, when it was last tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<Refusal>,
    /// Its place in a batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) batch: Option<InBatch>,
    /// The ports that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) port: Option<Ports>,
}

impl<P: Serialize + DeserializeOwned> Record for LaneRecord<P> {
    const FORMAT: u32 = 1;
}

impl<P> LaneRecord<P> {
    /// A lane that begins now, in which nothing has been done: idle, called as it is named.
    pub(crate) fn new(name: &str, place: P, path: PathBuf, base: String, start: Oid) -> LaneRecord<P> {
        LaneRecord {
            name: name.to_owned(),
            title: name.to_owned(),
            place,
            path,
            base,
            start,
            state: LaneState::Idle,
            detail: None,
            agent: None,
            attempt: 0,
            created: now(),
            updated: now(),
            checks: Vec::new(),
            scope: Vec::new(),
            preview_edits: Vec::new(),
            already: false,
            auto_merge: false,
            group: None,
            landed: None,
            refused: None,
            batch: None,
            port: None,
        }
    }

    /// Whether another lane is to land where this one is, so that they may be in each other's way.
    pub(crate) fn is_beside<Q>(&self, other: &LaneRecord<Q>) -> bool {
        other.base == self.base && other.name != self.name && !other.state.is_over()
    }

    /// The same lane, with this for its place.
    fn placed<Q>(self, place: Q) -> LaneRecord<Q> {
        LaneRecord {
            place,
            name: self.name,
            title: self.title,
            path: self.path,
            base: self.base,
            start: self.start,
            state: self.state,
            detail: self.detail,
            agent: self.agent,
            attempt: self.attempt,
            created: self.created,
            updated: self.updated,
            checks: self.checks,
            scope: self.scope,
            preview_edits: self.preview_edits,
            already: self.already,
            auto_merge: self.auto_merge,
            group: self.group,
            landed: self.landed,
            refused: self.refused,
            batch: self.batch,
            port: self.port,
        }
    }

    /// Whether two records are of one lane, and not of two that had a name one after the other.
    pub(crate) fn is_same_lane<Q>(&self, other: &LaneRecord<Q>) -> bool {
        (&self.name, self.created, self.start) == (&other.name, other.created, other.start)
    }
}

impl LaneRecord {
    /// The same, where any lane will do.
    pub(crate) fn any(self) -> AnyLane {
        let place = Place::Own(self.place.clone());
        self.placed(place)
    }
}

impl AnyLane {
    /// The same with its branch, if it has one.
    pub(crate) fn with_tree(self) -> Result<LaneRecord, Purpose> {
        match self.place.clone() {
            Place::Own(tree) => Ok(self.placed(tree)),
            Place::Look(look) => Err(look.purpose),
        }
    }

    /// The same with `change` made to it, which is noted when its state is another one then.
    pub(crate) fn changed(mut self, change: impl FnOnce(&mut AnyLane)) -> AnyLane {
        let state = self.state;
        change(&mut self);
        if self.state != state {
            self.updated = now();
        }
        self
    }

    /// Its branch, if it has one.
    pub(crate) fn branch(&self) -> Option<&str> {
        match &self.place {
            Place::Own(tree) => Some(&tree.branch),
            Place::Look(_) => None,
        }
    }

    /// Whether it looks in a worktree that is there for as long as its run.
    pub(crate) fn looks_apart(&self) -> bool {
        matches!(&self.place, Place::Look(look) if look.apart)
    }

    /// The branch that its agent commits to; none when it only looks.
    pub(crate) fn commits_to(&self) -> Option<&str> {
        match &self.place {
            Place::Own(tree) => Some(&tree.branch),
            Place::Look(look) => Some(self.base.as_str()).filter(|_| !look.purpose.only_looks()),
        }
    }

    /// Whether it comes to what its agent says, and changes nothing.
    pub(crate) fn only_looks(&self) -> bool {
        self.purpose().is_some_and(Purpose::only_looks)
    }

    /// Whether its agent works in the main checkout.
    pub(crate) fn works_in_place(&self) -> bool {
        self.purpose() == Some(Purpose::InPlace)
    }

    /// What it is for, if it has nothing of its own.
    pub(crate) fn purpose(&self) -> Option<Purpose> {
        match &self.place {
            Place::Own(_) => None,
            Place::Look(look) => Some(look.purpose),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_show_as_they_are_written() {
        let all = [LaneState::Idle, LaneState::NoChange, LaneState::CheckFailed, LaneState::Orphaned];
        for state in all {
            assert_eq!(serde_json::to_string(&state).unwrap(), format!("\"{state}\""));
        }
    }

    const COMMON: &str = "name = \"x\"\ntitle = \"x\"\npath = \"/r\"\nbase = \"main\"\nstate = \"idle\"\nattempt = 0\n\
        start = \"7f85e07d4d69da1e41b721a39f72c20b0d2a2e1b\"\ncreated = \"2026-01-02T03:04:05Z\"\n\
        updated = \"2026-01-02T03:04:05Z\"\n";

    #[test]
    fn a_lane_has_a_tree_or_only_looks_and_older_records_have_a_tree() {
        let read = |more: &str| toml::from_str::<AnyLane>(&format!("{COMMON}{more}"));
        let own = read("branch = \"proq/x\"\nworktree_id = \"x1\"").unwrap();
        assert_eq!((own.branch(), own.purpose()), (Some("proq/x"), None));
        assert_eq!(own.clone().with_tree().unwrap().any(), own);
        let look = read("mode = \"plan\"").unwrap();
        assert_eq!((look.branch(), look.purpose()), (None, Some(Purpose::Plan)));
        assert_eq!(look.clone().with_tree().unwrap_err(), Purpose::Plan);
        let apart = read("mode = \"answer\"\nisolated = true").unwrap();
        assert!(apart.looks_apart() && !look.looks_apart());
        for lane in [own, look, apart] {
            assert_eq!(toml::from_str::<AnyLane>(&toml::to_string(&lane).unwrap()).unwrap(), lane);
        }
        for bad in [
            "",
            "mode = \"build\"",
            "isolated = true",
            "branch = \"b\"",
            "mode = \"plan\"\nbranch = \"b\"\nworktree_id = \"x\"",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
