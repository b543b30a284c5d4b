//! Counts of the lines that lanes change, from the cache where possible.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use proq_base::lane_name::LaneName;
use proq_git::status::diff::DiffStat;
use proq_git::{Repo, TreeId};

use super::cache::ForecastCache;
use crate::merge::Error;

/// Time from which on counting was costly, so that its results are worth a write of the cache.
const COSTLY_COUNT_TIME: Duration = Duration::from_millis(5);

/// Number of lanes whose lines are counted however late it is.
const MIN_LANES_COUNTED: usize = 16;

/// How much time a forecast spends on counting lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LineCounting {
    /// Lines are not counted.
    #[default]
    Skip,
    /// Lines of lanes that are not in the cache are counted until this time has passed.
    Within(Duration),
    /// Lines of all lanes are counted.
    All,
}

/// Counted lines of lanes.
#[derive(Debug, Default)]
pub(crate) struct LaneLines {
    stats: BTreeMap<LaneName, DiffStat>,
    /// Whether counting took a noticeable time.
    pub is_costly: bool,
}

impl LaneLines {
    /// Returns the size of a lane's difference; none if it was not counted.
    pub fn of_lane(&self, lane: &LaneName) -> Option<DiffStat> {
        self.stats.get(lane).copied()
    }
}

/// Counts the lines that each lane changes between two trees.
///
/// # Errors
/// Fails if the repository's kind of ids is unknown.
pub(crate) fn count_lines(
    repo: &Repo,
    changes: Vec<(LaneName, [TreeId; 2])>,
    counting: LineCounting,
    cache: &mut ForecastCache,
) -> Result<LaneLines, Error> {
    let started = Instant::now();
    let deadline = match counting {
        LineCounting::Skip => return Ok(LaneLines::default()),
        LineCounting::Within(time) => Some(started + time),
        LineCounting::All => None,
    };
    let mut stats = BTreeMap::new();
    for (index, (lane, [from, to])) in changes.into_iter().enumerate() {
        let key = repo.fingerprint(&[b"lines", from.as_bytes(), to.as_bytes()])?;
        let known = cache.find_line(key).and_then(parse_line);
        let is_due = index < MIN_LANES_COUNTED || deadline.is_none_or(|end| Instant::now() < end);
        let counted = || is_due.then(|| repo.count_changed_lines(from, to, deadline)).flatten();
        let Some(stat) = known.or_else(counted) else { continue };
        if known.is_none() {
            cache.add_line(key, format!("{} {} {}", stat.files, stat.insertions, stat.deletions));
        }
        stats.insert(lane, stat);
    }
    Ok(LaneLines { stats, is_costly: started.elapsed() >= COSTLY_COUNT_TIME })
}

/// Parses a line of the cache: numbers of files, of added and of removed lines.
fn parse_line(line: &str) -> Option<DiffStat> {
    let mut numbers = line.split(' ').map(|number| number.parse().ok());
    Some(DiffStat { files: numbers.next()??, insertions: numbers.next()??, deletions: numbers.next()?? })
}
