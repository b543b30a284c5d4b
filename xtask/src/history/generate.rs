//! Generation of histories. The same seed and number give the same history on every machine.

use fastrand::Rng;

use super::super::dice;
use super::super::states::{Attr, Disk, Head, Index, PathState};
use super::step::{Change, Edit, MAIN, Step, WorktreeName};
use super::worktree::is_ignored;

/// Paths that any edit may write to. Some of them are a file in one place and a folder in another; the last
/// ones are ignored.
const PATHS: &[&str] = &[
    "a", "a", "b", "b", "d/one", "d/two", "t", "t/u", "new", "e/f", "e/f", "x.log", "d/y.log", "t/z.log",
    "k.log",
];

/// Names of lanes. The first two exist at the start.
const LANES: &[WorktreeName] = &["one", "two", "three"];

/// Git commands that a user may run by hand whether or not a preview is open.
const USER_COMMANDS: &[&[&str]] = &[
    &["switch", "-q", "main"],
    &["switch", "-q", "main"],
    &["stash", "-q", "-u"],
    &["stash", "-q"],
    &["reset", "-q", "--hard"],
    &["reset", "-q", "--hard", "main"],
    &["checkout", "-q", "-B", "other"],
    &["checkout", "-q", "--detach"],
];

/// Paths that get into unusual states, with what HEAD has there at the start.
const UNUSUAL_PATHS: &[(&str, Head)] = &[
    ("a", Head::File),
    ("d", Head::Folder),
    ("d/one", Head::File),
    ("t", Head::File),
    ("new", Head::Nothing),
    ("k.log", Head::File),
];

/// Returns the reason why the model cannot follow a state, or none if it can. `cargo xtask states`, which
/// needs no model, covers such states.
fn unmodeled_reason(combo: PathState) -> Option<&'static str> {
    match (combo.index, combo.disk) {
        (Index::Skip | Index::Assume, _) => {
            Some("what a flag hides is a change or not by rules of git's that the model does not have")
        }
        (_, Disk::EmptyFolder) => Some("the model's folders are only the files in them"),
        (_, Disk::Fifo) => Some("the model reads every file"),
        _ if combo.attr != Attr::Plain => Some("the model knows no attributes"),
        (Index::Same, _) => None,
        // Its two entries have other names than the files of the folder in histories.
        _ if combo.head == Head::Folder => Some("the folder's files are called otherwise"),
        _ => None,
    }
}

/// What the generator knows of a history so far: enough to choose steps that are likely to have an effect.
struct Generator {
    rng: Rng,
    token_count: usize,
    shown: bool,
    /// Whether the last step was a command of git-proq that can be undone.
    last_can_be_undone: bool,
    /// Whether the last step was an undo.
    last_was_undo: bool,
}

/// Returns the history with this number.
pub(crate) fn generate_history(seed: u64, number: usize, length: usize) -> Vec<Step> {
    let rng = dice::seeded(seed, &format!("history {number}"));
    let mut generator =
        Generator { rng, token_count: 0, shown: false, last_can_be_undone: false, last_was_undo: false };
    // Most histories start with commits in lanes, so that there is something to preview and to land.
    let first = [("one", 4), ("two", 2)].into_iter().filter(|(_, nth)| !number.is_multiple_of(*nth));
    let mut steps: Vec<Step> = first
        .map(|(at, _)| Step::Commit { at, edits: generator.edits(), amend: false })
        .take(length)
        .collect();
    while steps.len() < length {
        steps.push(generator.next_step());
    }
    steps
}

impl Generator {
    fn next_step(&mut self) -> Step {
        let roll = self.rng.usize(..100);
        let (fresh, undone) = (self.last_can_be_undone, self.last_was_undo);
        (self.last_can_be_undone, self.last_was_undo) = (false, false);
        if fresh && roll < 15 || undone && roll < 12 {
            self.last_was_undo = true;
            return Step::Proq(vec!["undo"]);
        }
        if undone && roll < 45 {
            self.last_can_be_undone = true;
            return Step::Proq(vec!["op", "redo"]);
        }
        match self.rng.usize(..100) {
            0..44 => self.user_step(),
            44..49 if self.shown || roll < 15 => {
                Step::UserGit(USER_COMMANDS[self.rng.usize(..USER_COMMANDS.len())].to_vec())
            }
            49 | 50 => Step::Proq(vec!["snap", "list"]),
            51 => Step::Proq(vec!["op", "log"]),
            52..56 => {
                self.last_was_undo = true;
                Step::Proq(vec!["undo"])
            }
            56 => Step::Proq(vec!["op", "redo"]),
            _ => self.command(),
        }
    }

    fn command(&mut self) -> Step {
        self.last_can_be_undone = true;
        let lane = self.lane();
        Step::Proq(match self.rng.usize(..20) {
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

    fn user_step(&mut self) -> Step {
        let at = match self.rng.usize(..10) {
            0..5 => MAIN,
            _ => self.lane(),
        };
        match self.rng.usize(..12) {
            10.. => self.unusual_step(at),
            0..4 => Step::Edit { at, edits: self.edits() },
            4 => Step::Stage { at, path: self.path() },
            5 => Step::CommitStaged { at },
            _ if at == MAIN && !self.shown && self.rng.usize(..2) == 0 => {
                Step::Edit { at, edits: self.edits() }
            }
            _ => {
                let amend = self.rng.usize(..10) == 0;
                Step::Commit { at, edits: self.edits(), amend }
            }
        }
    }

    fn unusual_step(&mut self, at: WorktreeName) -> Step {
        let (path, head) = UNUSUAL_PATHS[self.rng.usize(..UNUSUAL_PATHS.len())];
        let ignored = is_ignored(path);
        let fits = |combo: &PathState| {
            combo.head == head && combo.ignored == ignored && unmodeled_reason(*combo).is_none()
        };
        let all: Vec<PathState> = PathState::possible().into_iter().filter(fits).collect();
        Step::SetPathState { at, path, combo: all[self.rng.usize(..all.len())] }
    }

    fn lane(&mut self) -> WorktreeName {
        match self.rng.usize(..7) {
            0..3 => LANES[0],
            3..6 => LANES[1],
            _ => LANES[2],
        }
    }

    fn path(&mut self) -> &'static str {
        PATHS[self.rng.usize(..PATHS.len())]
    }

    fn edits(&mut self) -> Vec<Edit> {
        (0..=self.rng.usize(..3)).map(|_| self.edit()).collect()
    }

    fn edit(&mut self) -> Edit {
        self.token_count += 1;
        let path = self.path();
        let change = match self.rng.usize(..10) {
            0..6 => Change::Line(self.rng.usize(..8), self.token_count),
            6 => Change::Overwrite(self.token_count),
            7 | 8 => Change::Delete,
            _ => Change::Chmod,
        };
        Edit { path, change }
    }
}
