//! Drawing of states: every combination is dealt once before any is dealt again.

use super::super::dice;
use super::path_state::{Attr, Disk, Head, PathState};

/// Minimum and maximum number of paths of a state.
const PATH_COUNT_RANGE: (usize, usize) = (5, 10);

/// Folders that paths are in. Some occur twice, so that unusual paths share a folder.
const FOLDERS: [&str; 6] = ["", "", "dir/", "dir/", "dir/", "deep/er/"];

/// Folders outside a cone-mode sparse checkout.
const OUTSIDE: [&str; 6] = ["out/", "out/", "out/", "out/er/", "out/er/", "deep/out/"];

/// File with the rule that ignores paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IgnoreFile {
    /// `.gitignore`, committed.
    Committed,
    /// `.gitignore`, changed after `git rm --cached` and not committed.
    Changed,
    /// `.git/info/exclude`.
    Exclude,
}

/// Change that a lane makes at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LaneChange {
    /// No change.
    Nothing,
    /// Writes a file.
    Write,
    /// Removes the path.
    Remove,
    /// Creates a folder with a file.
    Folder,
    /// Creates a link.
    Link,
}

/// Path, its state, and the change that the lane `one` makes there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathSetup {
    /// Path from the top of the checkout.
    pub(crate) path: String,
    /// State of the path.
    pub(crate) state: PathState,
    /// Change of the lane.
    pub(crate) lane_change: LaneChange,
}

impl PathSetup {
    /// Returns a path named `name` with the suffixes that the ignore and attribute rules match.
    pub(crate) fn new(name: &str, state: PathState) -> PathSetup {
        let attr = match state.attr {
            Attr::Plain => "",
            Attr::Crlf => "-crlf",
            Attr::Filter => "-filter",
            Attr::Sparse => "-sparse",
        };
        let ignored = if state.ignored { "-ignored" } else { "" };
        PathSetup { path: format!("{name}{attr}{ignored}"), state, lane_change: LaneChange::Nothing }
    }

    /// Returns the path with a change of the lane.
    pub(crate) fn with_lane_change(self, lane_change: LaneChange) -> PathSetup {
        PathSetup { lane_change, ..self }
    }
}

/// State of a checkout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct State {
    /// Its paths.
    pub(crate) paths: Vec<PathSetup>,
    /// File with the ignore rule.
    pub(crate) ignore: IgnoreFile,
    /// Whether the sparse checkout, if there is one, is in cone mode with a sparse index.
    pub(crate) cone: bool,
}

impl State {
    /// Returns a state of chosen paths.
    pub(crate) fn from_paths(paths: Vec<PathSetup>, ignore: IgnoreFile) -> State {
        State { paths, ignore, cone: false }
    }

    /// Returns the states with one path or one lane change less, for minimizing a failing state.
    pub(crate) fn smaller_states(&self) -> Vec<State> {
        let without = |n: usize| {
            let mut state = self.clone();
            state.paths.remove(n);
            state
        };
        let untouched = |n: usize| {
            let mut state = self.clone();
            state.paths[n].lane_change = LaneChange::Nothing;
            state
        };
        let touched = (0..self.paths.len()).filter(|n| self.paths[*n].lane_change != LaneChange::Nothing);
        (0..self.paths.len()).map(without).chain(touched.map(untouched)).collect()
    }
}

/// Interval of states that have only named pipes. Most commands refuse pipes, which would hide faults of
/// other paths.
const PIPE_STATE_INTERVAL: usize = 10;

/// All combinations in a random order, dealt out to states.
#[derive(Debug)]
pub(crate) struct Deck {
    seed: u64,
    pipes: Vec<PathState>,
    others: Vec<PathState>,
}

impl Deck {
    /// Returns the deck of this seed.
    pub(crate) fn new(seed: u64) -> Deck {
        let (pipes, others) = PathState::possible().into_iter().partition(|combo| combo.disk == Disk::Fifo);
        Deck { seed, pipes, others }
    }

    /// Returns the number of combinations.
    pub(crate) fn len(&self) -> usize {
        self.pipes.len() + self.others.len()
    }

    /// Returns the number of states after which every combination has been dealt at least once.
    pub(crate) fn complete_after(&self) -> usize {
        let mut states = 0;
        while self.dealt_before(states, true) < self.pipes.len()
            || self.dealt_before(states, false) < self.others.len()
        {
            states += 1;
        }
        states
    }

    /// Returns the state with this number.
    pub(crate) fn state(&self, number: usize) -> State {
        let mut rng = dice::seeded(self.seed, &format!("state {number}"));
        let pipes = has_only_pipes(number);
        let first = self.dealt_before(number, pipes);
        let pile = if pipes { &self.pipes } else { &self.others };
        let combos: Vec<PathState> =
            (first..first + self.path_count(number)).map(|n| self.combination(pile, n)).collect();
        let cone = rng.usize(..3) == 0;
        let paths = combos.into_iter().enumerate().map(|(n, combo)| {
            let space = if rng.usize(..8) == 0 { "a 1 " } else { "" };
            let folders = if cone && combo.attr == Attr::Sparse { OUTSIDE } else { FOLDERS };
            let folder = folders[rng.usize(..folders.len())];
            let lane_change = match rng.usize(..10) {
                0 => LaneChange::Write,
                1 if combo.head != Head::Nothing => LaneChange::Remove,
                2 => LaneChange::Folder,
                3 => LaneChange::Link,
                _ => LaneChange::Nothing,
            };
            PathSetup::new(&format!("{folder}{space}p{n}"), combo).with_lane_change(lane_change)
        });
        let paths = paths.collect();
        let ignore = [IgnoreFile::Committed, IgnoreFile::Changed, IgnoreFile::Exclude][rng.usize(..3)];
        State { paths, ignore, cone }
    }

    /// Returns how many combinations of a pile the states before this one have taken.
    fn dealt_before(&self, number: usize, pipes: bool) -> usize {
        (0..number).filter(|n| has_only_pipes(*n) == pipes).map(|n| self.path_count(n)).sum()
    }

    fn path_count(&self, number: usize) -> usize {
        let mut rng = dice::seeded(self.seed, &format!("size {number}"));
        PATH_COUNT_RANGE.0 + rng.usize(..=PATH_COUNT_RANGE.1 - PATH_COUNT_RANGE.0)
    }

    /// Returns the `n`-th combination dealt from a pile. The pile is shuffled each time that all were dealt.
    fn combination(&self, pile: &[PathState], n: usize) -> PathState {
        let (round, at) = (n / pile.len(), n % pile.len());
        let mut rng = dice::seeded(self.seed, &format!("round {round}"));
        // A walk over all positions whose step is coprime to their number reaches each position once.
        let start = rng.usize(..pile.len());
        let step = loop {
            let step = 1 + rng.usize(..pile.len());
            if gcd(step, pile.len()) == 1 {
                break step;
            }
        };
        pile[(start + at * step) % pile.len()]
    }
}

fn has_only_pipes(number: usize) -> bool {
    number % PIPE_STATE_INTERVAL == PIPE_STATE_INTERVAL - 1
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}
