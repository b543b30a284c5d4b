//! Owns the drawing of states: every combination is dealt once before any is dealt again.

use super::super::dice::Dice;
use super::combo::{Attr, Combo, Disk, Head};

/// How many paths a state has at least and at most.
const PATHS: (usize, usize) = (5, 10);

/// Folders that paths lie in. Some are named twice, so that odd paths meet in one folder.
const FOLDERS: [&str; 6] = ["", "", "dir/", "dir/", "dir/", "deep/er/"];

/// Folders that a sparse checkout by folders leaves out.
const OUTSIDE: [&str; 6] = ["out/", "out/", "out/", "out/er/", "out/er/", "deep/out/"];

/// Where the rule stands that ignores paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IgnoreFile {
    /// In `.gitignore`, committed.
    Committed,
    /// In `.gitignore`, changed after `git rm --cached` and not committed.
    Changed,
    /// In `.git/info/exclude`.
    Exclude,
}

/// What a lane does with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Touch {
    /// Nothing.
    Nothing,
    /// It writes a file there.
    Write,
    /// It removes what is there.
    Remove,
    /// It makes a folder with a file there.
    Folder,
    /// It makes a link there.
    Link,
}

/// One path, its state, and what the lane `one` does with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spot {
    /// The path from the top of the checkout.
    pub(crate) path: String,
    /// Its state.
    pub(crate) combo: Combo,
    /// What the lane does.
    pub(crate) touch: Touch,
}

impl Spot {
    /// A path called `name`, which gets endings that the rules for ignored and converted paths go by.
    pub(crate) fn new(name: &str, combo: Combo) -> Spot {
        let attr = match combo.attr {
            Attr::Plain => "",
            Attr::Crlf => "-crlf",
            Attr::Filter => "-filter",
            Attr::Sparse => "-sparse",
        };
        let ignored = if combo.ignored { "-ignored" } else { "" };
        Spot { path: format!("{name}{attr}{ignored}"), combo, touch: Touch::Nothing }
    }

    /// The same path, which the lane changes as well.
    pub(crate) fn touched(self, touch: Touch) -> Spot {
        Spot { touch, ..self }
    }
}

/// A state of a whole checkout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct State {
    /// Its paths.
    pub(crate) spots: Vec<Spot>,
    /// Where the rule for ignored paths stands.
    pub(crate) ignore: IgnoreFile,
    /// Whether the sparse checkout, if there is one, goes by folders and its index is sparse too.
    pub(crate) cone: bool,
}

impl State {
    /// A state of chosen paths.
    pub(crate) fn of(spots: Vec<Spot>, ignore: IgnoreFile) -> State {
        State { spots, ignore, cone: false }
    }

    /// The states with one path less, for making a failing state smaller.
    pub(crate) fn smaller(&self) -> Vec<State> {
        let without = |n: usize| {
            let mut state = self.clone();
            state.spots.remove(n);
            state
        };
        let untouched = |n: usize| {
            let mut state = self.clone();
            state.spots[n].touch = Touch::Nothing;
            state
        };
        let touched = (0..self.spots.len()).filter(|n| self.spots[*n].touch != Touch::Nothing);
        (0..self.spots.len()).map(without).chain(touched.map(untouched)).collect()
    }
}

/// One state in so many has only named pipes, which most commands refuse: they are not to hide what other paths show.
const PIPES: usize = 10;

/// All combinations in a random order, dealt out to states.
#[derive(Debug)]
pub(crate) struct Deck {
    seed: u64,
    pipes: Vec<Combo>,
    others: Vec<Combo>,
}

impl Deck {
    /// The deck of this seed.
    pub(crate) fn new(seed: u64) -> Deck {
        let (pipes, others) = Combo::all().into_iter().partition(|combo| combo.disk == Disk::Fifo);
        Deck { seed, pipes, others }
    }

    /// How many combinations there are.
    pub(crate) fn len(&self) -> usize {
        self.pipes.len() + self.others.len()
    }

    /// After how many states every combination has been dealt at least once.
    pub(crate) fn complete_after(&self) -> usize {
        let mut states = 0;
        while self.dealt(states, true) < self.pipes.len() || self.dealt(states, false) < self.others.len() {
            states += 1;
        }
        states
    }

    /// The state of this number.
    pub(crate) fn state(&self, number: usize) -> State {
        let mut dice = Dice::new(self.seed, &format!("state {number}"));
        let pipes = is_of_pipes(number);
        let first = self.dealt(number, pipes);
        let pile = if pipes { &self.pipes } else { &self.others };
        let combos: Vec<Combo> = (first..first + self.size(number)).map(|n| self.combo(pile, n)).collect();
        let cone = dice.below(3) == 0;
        let spots = combos.into_iter().enumerate().map(|(n, combo)| {
            let space = if dice.below(8) == 0 { "a 1 " } else { "" };
            let folders = if cone && combo.attr == Attr::Sparse { OUTSIDE } else { FOLDERS };
            let folder = folders[dice.below(folders.len())];
            let touch = match dice.below(10) {
                0 => Touch::Write,
                1 if combo.head != Head::Nothing => Touch::Remove,
                2 => Touch::Folder,
                3 => Touch::Link,
                _ => Touch::Nothing,
            };
            Spot::new(&format!("{folder}{space}p{n}"), combo).touched(touch)
        });
        let spots = spots.collect();
        let ignore = [IgnoreFile::Committed, IgnoreFile::Changed, IgnoreFile::Exclude][dice.below(3)];
        State { spots, ignore, cone }
    }

    /// How many combinations of a pile the states before this one have taken.
    fn dealt(&self, number: usize, pipes: bool) -> usize {
        (0..number).filter(|n| is_of_pipes(*n) == pipes).map(|n| self.size(n)).sum()
    }

    fn size(&self, number: usize) -> usize {
        let mut dice = Dice::new(self.seed, &format!("size {number}"));
        PATHS.0 + dice.below(PATHS.1 - PATHS.0 + 1)
    }

    /// The `n`-th combination dealt from a pile. Each time that all were dealt they are shuffled.
    fn combo(&self, pile: &[Combo], n: usize) -> Combo {
        let (round, at) = (n / pile.len(), n % pile.len());
        let mut dice = Dice::new(self.seed, &format!("round {round}"));
        // A walk over all places with a step that has no divisor in common with their number meets each of them once.
        let start = dice.below(pile.len());
        let step = loop {
            let step = 1 + dice.below(pile.len());
            if gcd(step, pile.len()) == 1 {
                break step;
            }
        };
        pile[(start + at * step) % pile.len()]
    }
}

fn is_of_pipes(number: usize) -> bool {
    number % PIPES == PIPES - 1
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}
