//! Owns telling which lanes have come into each other's way since that was last looked at: once, and not again while it stays
//! so.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::Error;
use super::forecast::{Ask, Forecast, Pair, Result as Answer, forecast};
use crate::event::{Event, Name};
use crate::git::{self, RepoPath};
use crate::lane::Project;
use crate::store::records::LaneRecord;
use crate::store::{LockName, write_cache};

/// How many bytes of paths an event names at most: who looks for the last number reads only so much of the log's end.
const NAMED: usize = 8 * 1024;

/// Looks which other lanes of its base a lane conflicts with by now, what is committed only, and tells of those with which it
/// did not before.
///
/// # Errors
/// When lanes or commits cannot be read.
pub(crate) fn look_for_overlaps(project: &Project, name: &str) -> Result<(), Error> {
    let lane = project.lane(name)?;
    let lanes = project.lanes()?;
    let beside = |other: &&LaneRecord| other.base == lane.base && !other.state.is_over();
    let asked = lanes.iter().filter(beside).cloned().collect();
    let ask = Ask { lanes: asked, uncommitted: false, within: None, about: Some(lane.name.clone()) };
    let found = forecast(project, ask)?;
    tell_overlaps(project, &lanes, &found, false, Some(&lane.name))
}

/// Tells of each two lanes that would conflict and did not when they were last looked at. `lanes` are all there are,
/// `uncommitted` says whether the forecast has what is uncommitted; `mover` is the lane that has moved, if that is known.
///
/// # Errors
/// When the store cannot be written.
pub(crate) fn tell_overlaps(
    project: &Project,
    lanes: &[LaneRecord],
    found: &Forecast,
    uncommitted: bool,
    mover: Option<&str>,
) -> Result<(), Error> {
    // Mostly nothing is new.
    if Look::new(lanes, found, uncommitted).update(&mut Known::read(project)).is_none() {
        return Ok(());
    }
    let _lock = project.store.locks().take(&LockName::Store)?;
    let mut known = Known::read(project);
    // One that another process told of meanwhile may be of a lane that was not there before.
    let lanes = project.lanes()?;
    let Some(new) = Look::new(&lanes, found, uncommitted).update(&mut known) else { return Ok(()) };
    for pair in new {
        tell(project, &lanes, pair, mover);
    }
    // Last: what a crash leaves out is told once more.
    known.save(project)
}

fn tell(project: &Project, lanes: &[LaneRecord], pair: &Pair, mover: Option<&str>) {
    let Answer::Conflict { conflicts } = &pair.result else { return };
    let (one, other) = match mover == Some(pair.theirs.as_str()) {
        true => (&pair.theirs, &pair.ours),
        false => (&pair.ours, &pair.theirs),
    };
    let paths: BTreeSet<RepoPath> = conflicts.iter().map(|clash| clash.path.clone()).collect();
    let all: Vec<RepoPath> = paths.into_iter().collect();
    let message = format!("lanes '{one}' and '{other}' conflict in {}", git::names(&all));
    let mut bytes = 0;
    let paths = all.into_iter().take_while(|path| {
        bytes += path.to_string().len();
        bytes <= NAMED
    });
    let mut event = Event::now(Name::LaneOverlap, message);
    event.lane = Some(one.clone());
    event.state = lanes.iter().find(|lane| lane.name == *one).map(|lane| lane.state.to_string());
    event.other = Some(other.clone());
    event.paths = paths.collect();
    project.tell_event(event);
}

/// Pairs of lanes that conflicted when they were last looked at. What cannot be read is forgotten, and told again.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Known {
    pairs: Vec<KnownPair>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct KnownPair {
    /// Both lanes, as [`id_of`] has them, in order.
    lanes: [String; 2],
    /// Whether what was uncommitted in them was part of it. Who does not look at that cannot say that it is over.
    uncommitted: bool,
}

impl Known {
    fn read(project: &Project) -> Known {
        let text = crate::regular_file::record(project.store.layout().overlaps()).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    fn save(&self, project: &Project) -> Result<(), Error> {
        let text = serde_json::to_vec(self).unwrap_or_default();
        Ok(write_cache(&project.store.layout().overlaps(), &text)?)
    }
}

/// What tells a lane from a later one of its name.
fn id_of(lane: &LaneRecord) -> String {
    format!("{} {} {}", lane.name, lane.created, lane.start)
}

/// What was found, and with what.
struct Look<'a> {
    /// What each lane is told by, by name.
    ids: HashMap<&'a str, String>,
    found: &'a Forecast,
    uncommitted: bool,
}

impl<'a> Look<'a> {
    fn new(lanes: &'a [LaneRecord], found: &'a Forecast, uncommitted: bool) -> Look<'a> {
        let ids = lanes.iter().map(|lane| (lane.name.as_str(), id_of(lane))).collect();
        Look { ids, found, uncommitted }
    }

    /// Brings what is known up to date and returns the pairs to tell of; none when all of it was known before.
    fn update(&self, known: &mut Known) -> Option<Vec<&'a Pair>> {
        let before = known.pairs.clone();
        self.forget_what_is_over(known);
        let at = self.places(known);
        let dirty: HashSet<&str> =
            self.found.lanes.iter().filter(|l| l.uncommitted > 0).map(|l| l.lane.as_str()).collect();
        let (mut new, mut over) = (Vec::new(), HashSet::new());
        for pair in self.found.pairs.iter().filter(|pair| !pair.with_base) {
            let uncommitted = || dirty.contains(pair.ours.as_str()) || dirty.contains(pair.theirs.as_str());
            match (pair.result.is_conflict(), at.get(&in_order(&pair.ours, &pair.theirs))) {
                (true, Some(at)) => known.pairs[*at].uncommitted &= uncommitted(),
                (true, None) => {
                    let Some(lanes) = self.ids(pair) else { continue };
                    known.pairs.push(KnownPair { lanes, uncommitted: uncommitted() });
                    new.push(pair);
                }
                (false, Some(at)) if self.uncommitted || !known.pairs[*at].uncommitted => {
                    over.insert(*at);
                }
                (false, _) => {}
            }
        }
        let mut next = 0..;
        known.pairs.retain(|_| next.next().is_none_or(|at| !over.contains(&at)));
        (known.pairs != before).then_some(new)
    }

    /// Pairs of lanes that are gone, or that nothing is left of: a lane without any change is in nobody's way.
    fn forget_what_is_over(&self, known: &mut Known) {
        let there: HashSet<&String> = self.ids.values().collect();
        let left_out = self.found.left_out.iter();
        let unchanged: HashSet<&String> =
            left_out.filter_map(|left| self.ids.get(left.lane.as_str())).collect();
        let is_over = |pair: &KnownPair| {
            (self.uncommitted || !pair.uncommitted) && pair.lanes.iter().any(|lane| unchanged.contains(lane))
        };
        known.pairs.retain(|pair| pair.lanes.iter().all(|lane| there.contains(lane)) && !is_over(pair));
    }

    /// Where each known pair stands, by the names of its lanes.
    fn places(&self, known: &Known) -> HashMap<(&'a str, &'a str), usize> {
        let names: HashMap<&String, &'a str> = self.ids.iter().map(|(name, id)| (id, *name)).collect();
        let place = |(at, pair): (usize, &KnownPair)| {
            let [one, other] = pair.lanes.each_ref().map(|id| names.get(id).copied());
            Some((in_order(one?, other?), at))
        };
        known.pairs.iter().enumerate().filter_map(place).collect()
    }

    fn ids(&self, pair: &Pair) -> Option<[String; 2]> {
        let id = |lane: &String| self.ids.get(lane.as_str()).cloned();
        let mut lanes = [id(&pair.ours)?, id(&pair.theirs)?];
        lanes.sort();
        Some(lanes)
    }
}

/// Two names in an order of their own.
fn in_order<'n>(one: &'n str, other: &'n str) -> (&'n str, &'n str) {
    (one.min(other), one.max(other))
}
