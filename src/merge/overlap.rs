//! Owns telling which lanes have come into each other's way since that was last looked at: once, and not again while it stays
//! so.

use std::collections::{BTreeMap, BTreeSet};

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
    let mut lanes = project.lanes()?;
    lanes.retain(|other| other.base == lane.base && !other.state.is_over());
    let ask = Ask { lanes, uncommitted: false, within: None, about: Some(lane.name.clone()) };
    let found = forecast(project, ask)?;
    tell_overlaps(project, &found, false, Some(&lane.name))
}

/// Tells of each two lanes that would conflict and did not when they were last looked at. `uncommitted` says whether the
/// forecast has what is uncommitted; `mover` is the lane that has moved, if that is known.
///
/// # Errors
/// When the store cannot be written.
pub(crate) fn tell_overlaps(
    project: &Project,
    found: &Forecast,
    uncommitted: bool,
    mover: Option<&str>,
) -> Result<(), Error> {
    let lanes: BTreeMap<String, LaneRecord> =
        project.lanes()?.into_iter().map(|lane| (lane.name.clone(), lane)).collect();
    let look = Look { lanes: &lanes, found, uncommitted };
    // Mostly nothing is new.
    if look.update(&mut Known::read(project)).is_none() {
        return Ok(());
    }
    let _lock = project.store.locks().take(&LockName::Store)?;
    let mut known = Known::read(project);
    let Some(new) = look.update(&mut known) else { return Ok(()) };
    for pair in new {
        tell(project, &lanes, pair, mover);
    }
    // Last: what a crash leaves out is told once more.
    known.save(project)
}

fn tell(project: &Project, lanes: &BTreeMap<String, LaneRecord>, pair: &Pair, mover: Option<&str>) {
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
    event.state = lanes.get(one).map(|lane| lane.state.to_string());
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
        let text = std::fs::read(project.store.layout().overlaps()).unwrap_or_default();
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
    lanes: &'a BTreeMap<String, LaneRecord>,
    found: &'a Forecast,
    uncommitted: bool,
}

impl<'a> Look<'a> {
    /// Brings what is known up to date and returns the pairs to tell of; none when all of it was known before.
    fn update(&self, known: &mut Known) -> Option<Vec<&'a Pair>> {
        let before = known.pairs.clone();
        let there: BTreeSet<String> = self.lanes.values().map(id_of).collect();
        // A lane without any change is in nobody's way.
        let unchanged: BTreeSet<String> =
            self.found.left_out.iter().filter_map(|left| self.lanes.get(&left.lane)).map(id_of).collect();
        let is_over = |pair: &KnownPair| {
            (self.uncommitted || !pair.uncommitted) && pair.lanes.iter().any(|lane| unchanged.contains(lane))
        };
        known.pairs.retain(|pair| pair.lanes.iter().all(|lane| there.contains(lane)) && !is_over(pair));
        let mut new = Vec::new();
        for pair in self.found.pairs.iter().filter(|pair| !pair.with_base) {
            let Some(lanes) = self.ids(pair) else { continue };
            let uncommitted = self.has_uncommitted(pair);
            let at = known.pairs.iter().position(|known| known.lanes == lanes);
            match (pair.result.is_conflict(), at) {
                (true, Some(at)) => known.pairs[at].uncommitted &= uncommitted,
                (true, None) => {
                    known.pairs.push(KnownPair { lanes, uncommitted });
                    new.push(pair);
                }
                (false, Some(at)) if self.uncommitted || !known.pairs[at].uncommitted => {
                    known.pairs.remove(at);
                }
                (false, _) => {}
            }
        }
        (known.pairs != before).then_some(new)
    }

    fn ids(&self, pair: &Pair) -> Option<[String; 2]> {
        let mut lanes = [id_of(self.lanes.get(&pair.ours)?), id_of(self.lanes.get(&pair.theirs)?)];
        lanes.sort();
        Some(lanes)
    }

    fn has_uncommitted(&self, pair: &Pair) -> bool {
        let of_pair = |lane: &str| lane == pair.ours || lane == pair.theirs;
        self.found.lanes.iter().any(|lane| of_pair(&lane.lane) && lane.uncommitted > 0)
    }
}
