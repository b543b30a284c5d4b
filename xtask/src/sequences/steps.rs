//! Sequences of commands and edits, and what must hold between them.

use fastrand::Rng;

use crate::dice;
use crate::states::{Disk, Head, IgnoreFile, Index, LaneChange, PathSetup, PathState, State};

/// Step of a sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// A command of git-proq.
    Proq(&'static [&'static str]),
    /// A shell script of the user in the main checkout. It may fail.
    UserScript(String),
    /// Edits in a preview: these paths get into these states; `true` also runs `git rm --cached` on a path
    /// that is ignored from then on.
    Edit(Vec<PathSetup>, bool),
    /// Commits in the lane `one`.
    Commit(&'static str),
    /// Remembers the checkout by this name.
    Remember(&'static str),
    /// Requires the checkout and all refs to be as remembered.
    Matches(&'static str),
    /// Requires files, index and HEAD to be as remembered; branches may have changed.
    FilesMatch(&'static str),
    /// Requires everything that a landing does not touch to be as remembered.
    UntouchedByLanding(&'static str),
    /// Requires everything that a landing does not touch to be as remembered. Everything the user had written
    /// by then must be in the checkout, or the last command must have named its file.
    EditsRestored(&'static str),
}

/// Interference with one command of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Disturbance {
    /// Another process holds `.git/index.lock`; when it is released, the command runs again.
    Locked,
    /// The command and all processes that it started are killed before this file-changing call, counted from
    /// one. Another command follows and recovers; if that undoes the command, it runs again.
    Killed(usize),
}

/// State of a checkout, and the steps that run on it.
#[derive(Debug, Clone)]
pub(super) struct Case {
    /// Start state.
    pub(super) state: State,
    /// Steps. [`START`] is remembered before the first one.
    pub(super) steps: Vec<Step>,
    /// Index of the disturbed command from zero, and its disturbance.
    pub(super) disturbance: Option<(usize, Disturbance)>,
}

/// Name of the state before the first step.
pub(super) const START: &str = "start";

/// Name of the state after everything that differs from HEAD was discarded by hand.
pub(super) const CLEAN: &str = "clean";

/// Name of the state after leaving a preview onto a commit that had moved.
pub(super) const HOME: &str = "home";

/// Discards everything that differs from HEAD, flags of index entries included.
const DISCARD_ALL: &str = "git ls-files -z | git update-index -z --no-assume-unchanged --stdin
git ls-files -z | git update-index -z --no-skip-worktree --stdin
git reset -q --hard; git clean -qfd";

/// Names of all sequences.
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

const PREVIEW_ONE: Step = Step::Proq(&["preview", "one"]);
const PREVIEW_TWO: Step = Step::Proq(&["preview", "two"]);
const REFRESH: Step = Step::Proq(&["preview", "--refresh"]);
const PREVIEW_BACK: Step = Step::Proq(&["preview", "--back"]);
const UNDO: Step = Step::Proq(&["undo"]);
const REDO: Step = Step::Proq(&["op", "redo"]);
const MATCHES_START: Step = Step::Matches(START);

impl Case {
    /// Returns the case with this number.
    pub(super) fn new(seed: u64, number: usize, name: &'static str, state: State) -> Case {
        let mut rng = dice::seeded(seed, &format!("case {number}"));
        let mut case = Case { state, steps: Vec::new(), disturbance: None };
        if name == "restore" {
            // `reset --hard` and `clean` by hand must not remove ignored files, which no snapshot contains.
            case.state.ignore = IgnoreFile::Exclude;
        }
        if name.contains("merge") && rng.usize(..4) > 0 {
            // Most landings must happen: the user's changes are not on the paths that they touch.
            case.state.paths.iter_mut().for_each(|spot| spot.lane_change = LaneChange::Nothing);
        }
        case.steps = steps(name, &mut rng);
        let commands = case.steps.iter().filter(|step| matches!(step, Step::Proq(_))).count();
        // The first calls are chosen as often as the many in the middle of a long command.
        let max_call = 2 << rng.usize(..9);
        case.disturbance = match rng.usize(..4) {
            0 | 1 => Some((rng.usize(..commands.max(1)), Disturbance::Locked)),
            2 => Some((rng.usize(..commands.max(1)), Disturbance::Killed(1 + rng.usize(..max_call)))),
            _ => None,
        };
        case
    }
}

fn steps(name: &str, rng: &mut Rng) -> Vec<Step> {
    let edit = random_edit("one.txt", rng);
    let new_path = random_new_path(rng);
    let by_hand = |script: &str| Step::UserScript(script.to_owned());
    match name {
        "preview" => {
            let later = Step::Commit("echo later > later.txt; echo later >> one.txt");
            // The lane's branch has moved since.
            vec![PREVIEW_ONE, PREVIEW_TWO, PREVIEW_ONE, later, REFRESH, PREVIEW_BACK, Step::FilesMatch(START)]
        }
        "edits" => edited_preview_steps(edit),
        "by-hand" => vec![PREVIEW_ONE, by_hand("git switch -q main"), PREVIEW_BACK, MATCHES_START],
        "detached" => {
            vec![
                PREVIEW_ONE,
                by_hand("git checkout -q --detach"),
                by_hand("git switch -q proq/one-preview"),
                PREVIEW_TWO,
                PREVIEW_BACK,
                MATCHES_START,
            ]
        }
        "carry" => {
            let carry = Step::Proq(&["spawn", "--empty", "--carry", "-n", "three"]);
            vec![carry, Step::FilesMatch(START), Step::Proq(&["undo", "--force"]), MATCHES_START]
        }
        "discard" => {
            let discard = Step::Proq(&["discard", "--force", "one"]);
            vec![
                PREVIEW_ONE,
                edit,
                Step::Remember("edited"),
                discard,
                Step::FilesMatch(START),
                UNDO,
                Step::FilesMatch("edited"),
            ]
        }
        "shown-merge" => {
            vec![PREVIEW_ONE, edit, Step::Proq(&["merge", "one"]), Step::UntouchedByLanding(START)]
        }
        "flags" => clean_start_steps(edit, true),
        "marked" => {
            let flag = ["--assume-unchanged", "--skip-worktree"][rng.usize(..2)];
            clean_start_steps(Step::UserScript(format!("git update-index {flag} shared one.txt")), false)
        }
        "late" => late_edit_steps(edit, new_path),
        moved if moved.starts_with("moved") => moved_base_steps(moved, rng),
        other => undo_redo_steps(other),
    }
}

/// Steps of a preview whose edits are restored after another preview and a refresh.
fn edited_preview_steps(edit: Step) -> Vec<Step> {
    let remember = Step::Remember("edited");
    vec![
        PREVIEW_ONE,
        edit,
        remember,
        PREVIEW_TWO,
        PREVIEW_ONE,
        Step::FilesMatch("edited"),
        REFRESH,
        PREVIEW_BACK,
        MATCHES_START,
    ]
}

/// Steps of a preview that is left, and whose return is undone after a late edit of `new_path` and another
/// file.
fn late_edit_steps(edit: Step, new_path: PathSetup) -> Vec<Step> {
    let other = PathSetup::new("in/here", PathState::plain(Head::File, Index::Same, Disk::Other));
    let late = Step::Edit(vec![new_path, other], false);
    vec![
        PREVIEW_ONE,
        edit,
        PREVIEW_BACK,
        MATCHES_START,
        late,
        Step::Remember("late"),
        UNDO,
        PREVIEW_BACK,
        Step::FilesMatch("late"),
    ]
}

/// Steps of a preview during which its base moves. The preview is left, the return is undone, and the preview
/// is left again.
fn moved_base_steps(name: &str, rng: &mut Rng) -> Vec<Step> {
    // Either the landed lane or the previewed one changes the paths of the state.
    let (preview, file, land) =
        if rng.usize(..3) > 0 { (PREVIEW_TWO, "two.txt", "one") } else { (PREVIEW_ONE, "one.txt", "two") };
    let edit = random_edit(file, rng);
    let (setup, home) = match name {
        "moved-clean" => (vec![Step::UserScript(DISCARD_ALL.to_owned()), Step::Remember(CLEAN)], CLEAN),
        _ => (Vec::new(), START),
    };
    let by_hand = name == "moved-by-hand";
    let land = match (by_hand, land) {
        (true, lane) => Step::UserScript(format!("git fetch -q . proq/{lane}:main")),
        (false, "one") => Step::Proq(&["merge", "one"]),
        (false, _) => Step::Proq(&["merge", "two"]),
    };
    let shown = Step::FilesMatch("edited");
    let steps = [
        preview,
        edit,
        Step::Remember("edited"),
        land,
        shown.clone(),
        PREVIEW_BACK,
        Step::EditsRestored(home),
        Step::Remember(HOME),
        UNDO,
        shown.clone(),
    ];
    let endings = [
        vec![PREVIEW_BACK, Step::FilesMatch(HOME)],
        vec![REDO, Step::FilesMatch(HOME), UNDO, shown.clone(), PREVIEW_BACK, Step::FilesMatch(HOME)],
        vec![REFRESH, PREVIEW_BACK, Step::EditsRestored(home)],
        if by_hand { Vec::new() } else { vec![UNDO, shown, PREVIEW_BACK, Step::FilesMatch(home)] },
    ];
    let ending = endings[rng.usize(..if by_hand { 3 } else { 4 })].clone();
    [setup, steps.to_vec(), ending].concat()
}

/// Steps of a preview that is entered from a clean checkout: no snapshot restores an index when it is left.
/// With `stays`, the edit is restored by the next preview.
fn clean_start_steps(edit: Step, stays: bool) -> Vec<Step> {
    let (clean, edited) = (Step::FilesMatch(CLEAN), Step::FilesMatch("edited"));
    let first = vec![
        Step::UserScript(DISCARD_ALL.to_owned()),
        Step::Remember(CLEAN),
        PREVIEW_ONE,
        edit,
        Step::Remember("edited"),
    ];
    let back = [PREVIEW_BACK, clean.clone(), UNDO, edited.clone(), REDO, clean.clone(), UNDO, edited.clone()];
    let switched = [PREVIEW_TWO, UNDO, edited.clone(), PREVIEW_TWO, PREVIEW_BACK, clean.clone()];
    let again = if stays { vec![PREVIEW_ONE, edited, PREVIEW_BACK, clean] } else { Vec::new() };
    [first, back.to_vec(), switched.to_vec(), again].concat()
}

/// Steps that undo and redo a command.
fn undo_redo_steps(name: &str) -> Vec<Step> {
    match name {
        "merge" => {
            let merge = Step::Proq(&["merge", "one"]);
            let after = [
                Step::UntouchedByLanding(START),
                Step::Remember("landed"),
                UNDO,
                MATCHES_START,
                REDO,
                Step::Matches("landed"),
                UNDO,
                MATCHES_START,
            ];
            [vec![merge], after.to_vec()].concat()
        }
        "restore" => {
            let clean = Step::UserScript(DISCARD_ALL.to_owned());
            let restore = Step::Proq(&["snap", "restore", "20260102"]);
            let first = vec![
                PREVIEW_ONE,
                PREVIEW_BACK,
                MATCHES_START,
                clean,
                Step::Remember(CLEAN),
                restore,
                MATCHES_START,
            ];
            [first, vec![UNDO, Step::Matches(CLEAN), REDO, MATCHES_START]].concat()
        }
        _ => vec![
            PREVIEW_ONE,
            Step::Remember("shown"),
            UNDO,
            MATCHES_START,
            REDO,
            Step::Matches("shown"),
            UNDO,
            MATCHES_START,
        ],
    }
}

/// Edits in a preview: two paths of the lane, one of them `path`, and a new path get into random states.
fn random_edit(path: &str, rng: &mut Rng) -> Step {
    let spots = vec![
        random_path(path, Head::File, rng),
        random_path("shared", Head::File, rng),
        random_new_path(rng),
    ];
    Step::Edit(spots, rng.usize(..2) == 0)
}

/// Returns a new path in a random state.
fn random_new_path(rng: &mut Rng) -> PathSetup {
    random_path("made", Head::Nothing, rng)
}

/// Returns a path in a random state without ignore rules and attributes.
fn random_path(path: &str, head: Head, rng: &mut Rng) -> PathSetup {
    let plain = |combo: &PathState| *combo == PathState::plain(head, combo.index, combo.disk);
    // A named pipe in place of a file makes every next command refuse.
    let fits = |combo: &PathState| plain(combo) && combo.disk != Disk::Fifo;
    let fitting: Vec<PathState> = PathState::possible().into_iter().filter(fits).collect();
    PathSetup::new(path, fitting[rng.usize(..fitting.len())])
}

/// Returns the shell script of an edit.
pub(super) fn edit_script(spots: &[PathSetup], removed: bool) -> String {
    let mut script: String = spots.iter().map(PathSetup::state_script).collect();
    if removed {
        script.push_str("git rm -q --cached in/here; echo in/here >> .git/info/exclude\n");
    }
    script
}

/// Returns variants of the step with less in it, for minimizing a failing case.
pub(super) fn smaller_steps(step: &Step) -> Vec<Step> {
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
