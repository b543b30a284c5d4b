//! Owns what a landing is asked for with, and what it has to work with.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::Error;
use super::Resolver;
use super::order::Order;
use super::plan::Plan;
use super::push::Push;
use crate::config::Settings;
use crate::git::{Dirt, Oid};
use crate::lane::Project;
use crate::store::Limit;
use crate::store::records::{LaneRecord, Strategy};

/// What a landing is asked for with.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    /// Lanes by name.
    pub(crate) lanes: &'a [String],
    /// The one that is named, as it would be made; a dry run takes it for a lane on record.
    pub(crate) unrecorded: Option<&'a LaneRecord>,
    /// Every eligible lane.
    pub(crate) all: bool,
    /// Another branch than each lane's own base.
    pub(crate) onto: Option<&'a str>,
    /// Lanes that failed or were stopped too, when named; and what is not fit to land otherwise: conflict markers, commits of
    /// a submodule that no remote has.
    pub(crate) force: bool,
    /// Lanes that delete more than half of their base's files too.
    pub(crate) allow_deletions: bool,
    /// End the agents that still run in these lanes first; those of these have been. A lane that was stopped lands then, of
    /// all lanes only one that was stopped for this.
    pub(crate) stop: Option<&'a [String]>,
    /// Lanes whose sessions may be ended, if their agents are idle by then and all is done in them.
    pub(crate) ends: &'a [String],
    /// Lanes that are picked: refused where another attempt of their group has landed.
    pub(crate) pick: bool,
    /// Nobody asks for it just now: nothing that the main checkout shows is changed for it.
    pub(crate) by_itself: bool,
    /// Keep landed lanes.
    pub(crate) keep: bool,
    /// Another strategy than the settings say.
    pub(crate) strategy: Option<Strategy>,
    /// Without the repository's hooks that could refuse it.
    pub(crate) no_verify: bool,
    /// In which order lanes are stacked.
    pub(crate) order: Order,
    /// All of them, or none.
    pub(crate) atomic: bool,
    /// Is shown what will be tried, before anything moves.
    pub(crate) plan: &'a dyn Fn(&Plan),
    /// Only say what would happen.
    pub(crate) dry_run: bool,
    /// Command lines to check with, after those of the settings.
    pub(crate) verify: &'a [String],
    /// Leave those of the settings out.
    pub(crate) no_checks: bool,
    /// How many states to check beside each other, if not as the settings say.
    pub(crate) jobs: Option<usize>,
    /// Who is sent at the lanes that conflict.
    pub(crate) resolver: Option<Resolver<'a>>,
    /// Whether bases that something landed on are pushed.
    pub(crate) push: Push,
    /// How long to wait in the queue.
    pub(crate) patience: Limit,
}

impl<'a> Request<'a> {
    /// These lanes, as they are given and kept, each for itself.
    pub(super) fn of(lanes: &'a [String]) -> Request<'a> {
        Request {
            lanes,
            unrecorded: None,
            all: false,
            onto: None,
            force: false,
            allow_deletions: false,
            stop: None,
            ends: &[],
            pick: false,
            by_itself: false,
            keep: true,
            strategy: None,
            no_verify: false,
            order: Order::Given,
            atomic: false,
            plan: &|_| {},
            dry_run: false,
            verify: &[],
            no_checks: false,
            jobs: None,
            resolver: None,
            push: Push::No,
            patience: Limit::Forever,
        }
    }

    /// Whether agents are only said to be stopped: lanes in which something runs are taken as they are.
    pub(super) fn would_stop(&self) -> bool {
        self.dry_run && self.stop.is_some()
    }

    /// The branches that something may land on.
    ///
    /// # Errors
    /// When the records of lanes cannot be read.
    pub(super) fn bases(&self, project: &Project) -> Result<BTreeSet<String>, Error> {
        let unrecorded = self.unrecorded.filter(|_| self.onto.is_none()).map(|lane| lane.base.clone());
        Ok(unrecorded.into_iter().chain(bases(project, self.lanes, self.all, self.onto)?).collect())
    }

    /// How lanes land.
    pub(super) fn strategy(&self, settings: &Settings) -> Strategy {
        self.strategy.or_else(|| Strategy::named(&settings.strategy)).unwrap_or(Strategy::Merge)
    }
}

/// The branches that these lanes, or all, may land on: `onto`, or the base of each.
///
/// # Errors
/// When the records of lanes cannot be read.
pub(crate) fn bases(
    project: &Project,
    lanes: &[String],
    all: bool,
    onto: Option<&str>,
) -> Result<BTreeSet<String>, Error> {
    if let Some(onto) = onto {
        return Ok(std::iter::once(project.repo.branch_behind(onto)).collect());
    }
    // One that is not there is for the landing to refuse.
    let mut found: Vec<LaneRecord> = lanes.iter().filter_map(|name| project.lane(name).ok()).collect();
    if all {
        found.extend(project.lanes()?.into_iter().filter(|lane| !lane.state.is_over()));
    }
    Ok(found.into_iter().map(|lane| lane.base).collect())
}

/// A lane that may land.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    /// Its record.
    pub(super) lane: LaneRecord,
    /// The commit that will land.
    pub(super) tip: Oid,
    /// The branch it lands on.
    pub(super) onto: String,
    /// How often a conflict kept it from landing.
    pub(super) waited: u32,
    /// How many commits of its own it has.
    pub(super) commits: usize,
    /// How many files they change.
    pub(super) files: usize,
    /// The part of the lane that it is, where not all of it is to land.
    pub(super) part: Option<Part>,
    /// What a landing would commit in the lane first; none where that has been done.
    pub(super) uncommitted: Option<WouldCommit>,
}

/// Uncommitted work that a dry run leaves uncommitted and the landing would not.
#[derive(Debug, Clone)]
pub(super) struct WouldCommit {
    /// What differs from HEAD.
    pub(super) dirt: Dirt,
    /// The common ancestor of lane and base.
    pub(super) ancestor: Oid,
}

/// A part of a lane that lands by itself: the commits between two of the lane's.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    /// What it is called among those that land with it.
    pub(crate) key: usize,
    /// The lane.
    pub(crate) lane: String,
    /// Where it begins.
    pub(crate) from: Oid,
    /// Where it ends.
    pub(crate) to: Oid,
    /// What it is about, in a line.
    pub(crate) title: String,
    /// Shell command lines that must succeed with it.
    pub(crate) checks: Vec<String>,
    /// The parts, of those that land with it, that it is nothing without.
    pub(crate) needs: Vec<usize>,
    /// Where it is written down that it has landed, by the same step that lands it.
    pub(crate) proof: PathBuf,
}

impl Candidate {
    /// What its part is called, if it is one.
    pub(super) fn key(&self) -> Option<usize> {
        self.part.as_ref().map(|part| part.key)
    }

    /// Whether it is the same part of the same lane.
    pub(super) fn is(&self, other: &Candidate) -> bool {
        (&self.lane.name, self.key()) == (&other.lane.name, other.key())
    }
}
