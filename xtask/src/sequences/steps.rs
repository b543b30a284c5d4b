//! Owns the sequences: which commands and edits follow each other, and what must hold between them.

use crate::dice::Dice;
use crate::states::{Combo, Disk, Head, IgnoreFile, Index, Spot, State, Touch};

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// The program under test.
    Proq(&'static [&'static str]),
    /// What a person does by hand in the main checkout, as a shell script. It may fail.
    Hand(String),
    /// Edits in a preview: these paths get into these states; `true` for `git rm --cached` of a path that is ignored then.
    Edit(Vec<Spot>, bool),
    /// Commits in the lane `one`.
    Commit(&'static str),
    /// Remember the checkout by this name.
    Keep(&'static str),
    /// The checkout and all refs are as remembered.
    Is(&'static str),
    /// The files, the index and HEAD are as remembered; branches may have come or gone.
    FilesAre(&'static str),
    /// A landing has happened: everything that it does not touch is as remembered.
    Untouched(&'static str),
    /// A landing has happened: everything that it does not touch is as remembered, and all that the user had written by then is in
    /// the checkout, or the last command has named its file.
    Home(&'static str),
}

/// A way in which others get in the way of one command of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Disturbed {
    /// Somebody holds `.git/index.lock`; once it is gone the command runs again.
    Locked,
    /// The command and all that it has started are killed before this call that changes a file, counted from one. Another
    /// command follows, which recovers; where that has taken it back, it runs again.
    Killed(usize),
}

/// A state, and what is done with it.
#[derive(Debug, Clone)]
pub(super) struct Case {
    /// The start.
    pub(super) state: State,
    /// The steps. [`START`] is remembered before the first.
    pub(super) steps: Vec<Step>,
    /// The command, counted from zero, that is disturbed, and how.
    pub(super) disturbed: Option<(usize, Disturbed)>,
}

/// The name of the state before the first step.
pub(super) const START: &str = "start";

/// The name of the state after everything that differs from HEAD was thrown away by hand.
pub(super) const CLEAN: &str = "clean";

/// The name of the state after the way back onto a commit that had moved.
pub(super) const HOME: &str = "home";

/// Throws away all that differs from HEAD, flags of index entries included.
const THROW_AWAY: &str = "git ls-files -z | git update-index -z --no-assume-unchanged --stdin
git ls-files -z | git update-index -z --no-skip-worktree --stdin
git reset -q --hard; git clean -qfd";

/// The names of all sequences.
pub(super) const NAMES: &[&str] = &[
    "preview",
    "edits",
    "by-hand",
    "detached",
    "merge",
    "restore",
    "undo",
    "carry",
    "discard",
    "shown-merge",
    "flags",
    "marked",
    "moved",
    "moved-by-hand",
    "moved-clean",
    "late",
];

const ONE: Step = Step::Proq(&["preview", "one"]);
const TWO: Step = Step::Proq(&["preview", "two"]);
const REFRESH: Step = Step::Proq(&["preview", "--refresh"]);
const BACK: Step = Step::Proq(&["preview", "--back"]);
const UNDO: Step = Step::Proq(&["undo"]);
const REDO: Step = Step::Proq(&["op", "redo"]);
const DONE: Step = Step::Is(START);

impl Case {
    /// The case of this number.
    pub(super) fn new(seed: u64, number: usize, name: &'static str, state: State) -> Case {
        let mut dice = Dice::new(seed, &format!("case {number}"));
        let mut case = Case { state, steps: Vec::new(), disturbed: None };
        if name == "restore" {
            // `reset --hard` and `clean` by hand must not take ignored files, which no snapshot holds.
            case.state.ignore = IgnoreFile::Exclude;
        }
        if name.contains("merge") && dice.below(4) > 0 {
            // Most landings are to happen: what the user changed is not what they touch.
            case.state.spots.iter_mut().for_each(|spot| spot.touch = Touch::Nothing);
        }
        case.steps = steps(name, &mut dice);
        let commands = case.steps.iter().filter(|step| matches!(step, Step::Proq(_))).count();
        // The first calls are as likely to be met as the many in the middle of a long command.
        let up_to = 2 << dice.below(9);
        case.disturbed = match dice.below(4) {
            0 | 1 => Some((dice.below(commands), Disturbed::Locked)),
            2 => Some((dice.below(commands), Disturbed::Killed(1 + dice.below(up_to)))),
            _ => None,
        };
        case
    }
}

fn steps(name: &str, dice: &mut Dice) -> Vec<Step> {
    let edit = edit("one.txt", dice);
    let made = made(dice);
    let away = |script: &str| Step::Hand(script.to_owned());
    match name {
        "preview" => {
            let later = Step::Commit("echo later > later.txt; echo later >> one.txt");
            // The lane's branch has moved meanwhile.
            vec![ONE, TWO, ONE, later, REFRESH, BACK, Step::FilesAre(START)]
        }
        "edits" => {
            let kept = Step::Keep("edited");
            vec![ONE, edit, kept, TWO, ONE, Step::FilesAre("edited"), REFRESH, BACK, DONE]
        }
        "by-hand" => vec![ONE, away("git switch -q main"), BACK, DONE],
        "detached" => {
            vec![
                ONE,
                away("git checkout -q --detach"),
                away("git switch -q proq/one-preview"),
                TWO,
                BACK,
                DONE,
            ]
        }
        "carry" => {
            let carry = Step::Proq(&["spawn", "--empty", "--carry", "-n", "three"]);
            vec![carry, Step::FilesAre(START), Step::Proq(&["undo", "--force"]), DONE]
        }
        "discard" => {
            let discard = Step::Proq(&["discard", "--force", "one"]);
            vec![
                ONE,
                edit,
                Step::Keep("edited"),
                discard,
                Step::FilesAre(START),
                UNDO,
                Step::FilesAre("edited"),
            ]
        }
        "shown-merge" => vec![ONE, edit, Step::Proq(&["merge", "one"]), Step::Untouched(START)],
        "flags" => from_clean(edit, true),
        "marked" => {
            let flag = ["--assume-unchanged", "--skip-worktree"][dice.below(2)];
            from_clean(Step::Hand(format!("git update-index {flag} shared one.txt")), false)
        }
        "late" => {
            let other = Spot::new("in/here", Combo::plain(Head::File, Index::Same, Disk::Other));
            let late = Step::Edit(vec![made, other], false);
            vec![ONE, edit, BACK, DONE, late, Step::Keep("late"), UNDO, BACK, Step::FilesAre("late")]
        }
        moved if moved.starts_with("moved") => base_moves(moved, dice),
        other => taken_back(other),
    }
}

/// The steps of a preview during which the branch that it was entered from moves. The way back is undone, and gone again.
fn base_moves(name: &str, dice: &mut Dice) -> Vec<Step> {
    // The lane that lands is the one that changes the state's paths, or the one that is shown is.
    let (show, file, land) =
        if dice.below(3) > 0 { (TWO, "two.txt", "one") } else { (ONE, "one.txt", "two") };
    let edit = edit(file, dice);
    let (first, home) = match name {
        "moved-clean" => (vec![Step::Hand(THROW_AWAY.to_owned()), Step::Keep(CLEAN)], CLEAN),
        _ => (Vec::new(), START),
    };
    let by_hand = name == "moved-by-hand";
    let land = match (by_hand, land) {
        (true, lane) => Step::Hand(format!("git fetch -q . proq/{lane}:main")),
        (false, "one") => Step::Proq(&["merge", "one"]),
        (false, _) => Step::Proq(&["merge", "two"]),
    };
    let shown = Step::FilesAre("edited");
    let steps = [
        show,
        edit,
        Step::Keep("edited"),
        land,
        shown.clone(),
        BACK,
        Step::Home(home),
        Step::Keep(HOME),
        UNDO,
        shown.clone(),
    ];
    let ways = [
        vec![BACK, Step::FilesAre(HOME)],
        vec![REDO, Step::FilesAre(HOME), UNDO, shown.clone(), BACK, Step::FilesAre(HOME)],
        vec![REFRESH, BACK, Step::Home(home)],
        if by_hand { Vec::new() } else { vec![UNDO, shown, BACK, Step::FilesAre(home)] },
    ];
    let way = ways[dice.below(if by_hand { 3 } else { 4 })].clone();
    [first, steps.to_vec(), way].concat()
}

/// The steps of a preview that is entered from a clean checkout: no snapshot brings an index back on the way out. What `edit` does
/// comes with the next preview where it `stays`.
fn from_clean(edit: Step, stays: bool) -> Vec<Step> {
    let (clean, edited) = (Step::FilesAre(CLEAN), Step::FilesAre("edited"));
    let first = vec![Step::Hand(THROW_AWAY.to_owned()), Step::Keep(CLEAN), ONE, edit, Step::Keep("edited")];
    let back = [BACK, clean.clone(), UNDO, edited.clone(), REDO, clean.clone(), UNDO, edited.clone()];
    let switched = [TWO, UNDO, edited.clone(), TWO, BACK, clean.clone()];
    let again = if stays { vec![ONE, edited, BACK, clean] } else { Vec::new() };
    [first, back.to_vec(), switched.to_vec(), again].concat()
}

/// The steps of what is undone and done again.
fn taken_back(name: &str) -> Vec<Step> {
    match name {
        "merge" => {
            let merge = Step::Proq(&["merge", "one"]);
            let after = [
                Step::Untouched(START),
                Step::Keep("landed"),
                UNDO,
                DONE,
                REDO,
                Step::Is("landed"),
                UNDO,
                DONE,
            ];
            [vec![merge], after.to_vec()].concat()
        }
        "restore" => {
            let clean = Step::Hand(THROW_AWAY.to_owned());
            let restore = Step::Proq(&["snap", "restore", "20260102"]);
            let first = vec![ONE, BACK, DONE, clean, Step::Keep(CLEAN), restore, DONE];
            [first, vec![UNDO, Step::Is(CLEAN), REDO, DONE]].concat()
        }
        _ => vec![ONE, Step::Keep("shown"), UNDO, DONE, REDO, Step::Is("shown"), UNDO, DONE],
    }
}

/// Edits in a preview: two of the lane's own paths, of which `own` is one, and a new one get into random states.
fn edit(own: &str, dice: &mut Dice) -> Step {
    let spots = vec![somehow(own, Head::File, dice), somehow("shared", Head::File, dice), made(dice)];
    Step::Edit(spots, dice.below(2) == 0)
}

/// A new path in a random state.
fn made(dice: &mut Dice) -> Spot {
    somehow("made", Head::Nothing, dice)
}

/// A path in a random state that no ignore file and no attribute names.
fn somehow(path: &str, head: Head, dice: &mut Dice) -> Spot {
    let plain = |combo: &Combo| *combo == Combo::plain(head, combo.index, combo.disk);
    // A named pipe in place of a file is what every way on is refused for.
    let fits = |combo: &Combo| plain(combo) && combo.disk != Disk::Fifo;
    let fitting: Vec<Combo> = Combo::all().into_iter().filter(fits).collect();
    Spot::new(path, fitting[dice.below(fitting.len())])
}

/// The shell script of an edit.
pub(super) fn edit_script(spots: &[Spot], removed: bool) -> String {
    let mut script: String = spots.iter().map(Spot::whole).collect();
    if removed {
        script.push_str("git rm -q --cached in/here; echo in/here >> .git/info/exclude\n");
    }
    script
}

/// The step with less in it, for making a failing case smaller.
pub(super) fn smaller(step: &Step) -> Vec<Step> {
    let Step::Edit(spots, removed) = step else { return Vec::new() };
    let without = |n: usize| {
        let mut spots = spots.clone();
        spots.remove(n);
        Step::Edit(spots, *removed)
    };
    let mut out: Vec<Step> = (0..spots.len()).map(without).collect();
    if *removed {
        out.push(Step::Edit(spots.clone(), false));
    }
    out
}
