//! Owns the making of histories: the same seed and number give the same one, everywhere.

use super::super::dice::Dice;
use super::super::states::{Attr, Combo, Disk, Head, Index};
use super::parts::is_ignored;
use super::step::{At, Change, Edit, MAIN, Step};

/// Files that everybody writes to. Some are a file here and a folder there; the last ones are ignored.
const PATHS: &[&str] = &[
    "a", "a", "b", "b", "d/one", "d/two", "t", "t/u", "new", "e/f", "e/f", "x.log", "d/y.log", "t/z.log",
    "k.log",
];

/// Names of lanes. The first two are there from the start.
const LANES: &[At] = &["one", "two", "three"];

/// What a person may do by hand without a thought of what is open.
const HAND: &[&[&str]] = &[
    &["switch", "-q", "main"],
    &["switch", "-q", "main"],
    &["stash", "-q", "-u"],
    &["stash", "-q"],
    &["reset", "-q", "--hard"],
    &["reset", "-q", "--hard", "main"],
    &["checkout", "-q", "-B", "other"],
    &["checkout", "-q", "--detach"],
];

/// Paths that get into odd states, with what HEAD has there at the start.
const ODD: &[(&str, Head)] = &[
    ("a", Head::File),
    ("d", Head::Folder),
    ("d/one", Head::File),
    ("t", Head::File),
    ("new", Head::Nothing),
    ("k.log", Head::File),
];

/// Why the model cannot follow a state; None when it can. Such states are for `cargo xtask states`, which needs no model.
fn beyond(combo: Combo) -> Option<&'static str> {
    match (combo.index, combo.disk) {
        (Index::Skip | Index::Assume, _) => {
            Some("what a flag hides is a change or not by rules of git's that the model does not have")
        }
        (_, Disk::EmptyFolder) => Some("the model's folders are only the files in them"),
        (_, Disk::Fifo) => Some("the model reads every file"),
        _ if combo.attr != Attr::Plain => Some("the model knows no attributes"),
        (Index::Same, _) => None,
        // Its two entries have other names than the files of the folder that histories have.
        _ if combo.head == Head::Folder => Some("the folder's files are called otherwise"),
        _ => None,
    }
}

/// What is known of a history while it is made: enough to choose steps that are likely to do something.
struct Sketch {
    dice: Dice,
    tokens: usize,
    shown: bool,
    /// The last step was one of git-proq's that may be taken back.
    fresh: bool,
    /// The last step was an undo.
    undone: bool,
}

/// The history of this number.
pub(crate) fn choose(seed: u64, number: usize, length: usize) -> Vec<Step> {
    let dice = Dice::new(seed, &format!("history {number}"));
    let mut sketch = Sketch { dice, tokens: 0, shown: false, fresh: false, undone: false };
    // Most begin with something to show and to land.
    let first = [("one", 4), ("two", 2)].into_iter().filter(|(_, nth)| !number.is_multiple_of(*nth));
    let mut steps: Vec<Step> =
        first.map(|(at, _)| Step::Commit { at, edits: sketch.edits(), amend: false }).take(length).collect();
    while steps.len() < length {
        steps.push(sketch.step());
    }
    steps
}

impl Sketch {
    fn step(&mut self) -> Step {
        let roll = self.dice.below(100);
        let (fresh, undone) = (self.fresh, self.undone);
        (self.fresh, self.undone) = (false, false);
        if fresh && roll < 15 || undone && roll < 12 {
            self.undone = true;
            return Step::Proq(vec!["undo"]);
        }
        if undone && roll < 45 {
            self.fresh = true;
            return Step::Proq(vec!["op", "redo"]);
        }
        match self.dice.below(100) {
            0..44 => self.work(),
            44..49 if self.shown || roll < 15 => Step::Hand(HAND[self.dice.below(HAND.len())].to_vec()),
            49 | 50 => Step::Proq(vec!["snap", "list"]),
            51 => Step::Proq(vec!["op", "log"]),
            52..56 => {
                self.undone = true;
                Step::Proq(vec!["undo"])
            }
            56 => Step::Proq(vec!["op", "redo"]),
            _ => self.command(),
        }
    }

    fn command(&mut self) -> Step {
        self.fresh = true;
        let lane = self.lane();
        Step::Proq(match self.dice.below(20) {
            0..2 => vec!["spawn", "--empty", "-n", "three"],
            2 => vec!["spawn", "--empty", "-n", lane],
            3..8 if self.shown => {
                self.shown = false;
                vec!["preview", "--back"]
            }
            8 if self.shown => vec!["preview", "--refresh"],
            3..11 => {
                self.shown = true;
                vec!["preview", lane]
            }
            11..14 => vec!["merge", lane],
            14..16 => vec!["merge", "--all", "--order", "oldest"],
            16 => vec!["discard", lane],
            17..19 => vec!["discard", "--force", lane],
            _ => vec!["cleanup"],
        })
    }

    fn work(&mut self) -> Step {
        let at = match self.dice.below(10) {
            0..5 => MAIN,
            _ => self.lane(),
        };
        match self.dice.below(12) {
            10.. => self.odd(at),
            0..4 => Step::Edit { at, edits: self.edits() },
            4 => Step::Stage { at, path: self.path() },
            5 => Step::CommitStaged { at },
            _ if at == MAIN && !self.shown && self.dice.below(2) == 0 => {
                Step::Edit { at, edits: self.edits() }
            }
            _ => {
                let amend = self.dice.below(10) == 0;
                Step::Commit { at, edits: self.edits(), amend }
            }
        }
    }

    fn odd(&mut self, at: At) -> Step {
        let (path, head) = ODD[self.dice.below(ODD.len())];
        let ignored = is_ignored(path);
        let fits = |combo: &Combo| combo.head == head && combo.ignored == ignored && beyond(*combo).is_none();
        let all: Vec<Combo> = Combo::all().into_iter().filter(fits).collect();
        Step::Odd { at, path, combo: all[self.dice.below(all.len())] }
    }

    fn lane(&mut self) -> At {
        match self.dice.below(7) {
            0..3 => LANES[0],
            3..6 => LANES[1],
            _ => LANES[2],
        }
    }

    fn path(&mut self) -> &'static str {
        PATHS[self.dice.below(PATHS.len())]
    }

    fn edits(&mut self) -> Vec<Edit> {
        (0..=self.dice.below(3)).map(|_| self.edit()).collect()
    }

    fn edit(&mut self) -> Edit {
        self.tokens += 1;
        let path = self.path();
        let change = match self.dice.below(10) {
            0..6 => Change::Line(self.dice.below(8), self.tokens),
            6 => Change::Whole(self.tokens),
            7 | 8 => Change::Delete,
            _ => Change::Chmod,
        };
        Edit { path, change }
    }
}
