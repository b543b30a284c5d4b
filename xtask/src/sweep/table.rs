//! Owns the table of scenarios, and how each one's repository is made.

use super::Outcome;
use super::fresh::{BACK, FRESH};
use super::odd::ODD;
use super::place::Place;
use super::scene::{Also, Scene};

/// A scenario without further states whose command ends with 0.
pub(super) const PLAIN: Scene = Scene {
    name: "",
    prepare: nothing,
    command: &[],
    code: 0,
    also: &[],
    undone: false,
    undo: &["undo"],
    spare: &[],
    holds: nothing_else,
};

/// A landing is decided by one compare-and-swap of the base. What comes after it, taking the landed lanes away, is
/// `cleanup`'s work, and may be left to it.
pub(super) const LANDED_ONE: Also = Also {
    why: "landed, and the lane is still there",
    by: &[&["merge", "--no-cleanup", "one"]],
    finish: &["cleanup"],
};
const LANDED_ALL: Also = Also {
    why: "landed, and the lanes are still there",
    by: &[&["merge", "--no-cleanup", "--all"]],
    finish: &["cleanup"],
};
const LANDED_HALF_CLEANED: Also = Also {
    why: "landed, and the first lane is cleaned up",
    by: &[&["merge", "--no-cleanup", "--all"], &["cleanup", "clash"]],
    finish: &["cleanup"],
};
const LANDED_OTHER_CLEANED: Also = Also {
    why: "landed, and only the second lane could be cleaned up",
    by: &[&["merge", "--no-cleanup", "--all"], &["cleanup", "two"]],
    finish: &["cleanup"],
};
// A lane that could not be tried stays for another time. Against what it is tried then is not what it was now.
const LANDED_WITHOUT_ONE: Also = without(&[&["merge", "clash", "two"]]);
const LANDED_WITHOUT_TWO: Also = without(&[&["merge", "clash", "one"]]);
const LANDED_WITHOUT_CLASH: Also = without(&[&["merge", "one", "two"]]);

const fn without(by: &'static [&'static [&'static str]]) -> Also {
    Also { why: "landed, but for a lane that could not be tried", by, finish: &[] }
}

/// All scenarios, without their undoing.
const SCENES: &[Scene] = &[
    Scene { name: "spawn", prepare: base, command: &["spawn", "--empty", "-n", "new"], ..PLAIN },
    Scene {
        name: "spawn-carry",
        prepare: carried,
        command: &["spawn", "--empty", "--carry", "-n", "new"],
        // What was carried over is a commit that only the lane has.
        undo: &["undo", "--force"],
        ..PLAIN
    },
    Scene { name: "preview-enter", prepare: dirty_with_lanes, command: &["preview", "one"], ..PLAIN },
    Scene { name: "preview-enter-clean", prepare: two_lanes, command: &["preview", "one"], ..PLAIN },
    Scene { name: "preview-switch", prepare: edited_preview, command: &["preview", "two"], ..PLAIN },
    Scene { name: "preview-refresh", prepare: outdated_preview, command: &["preview", "--refresh"], ..PLAIN },
    Scene { name: "preview-back", prepare: edited_preview, command: &["preview", "--back"], ..PLAIN },
    Scene {
        name: "preview-back-commit",
        prepare: committed_preview,
        command: &["preview", "--back"],
        ..PLAIN
    },
    Scene { name: "preview-back-moved", prepare: moved_preview, command: &["preview", "--back"], ..PLAIN },
    Scene {
        name: "merge",
        prepare: dirty_with_lanes,
        command: &["merge", "one"],
        also: &[LANDED_ONE],
        ..PLAIN
    },
    Scene { name: "merge-conflict", prepare: conflicting, command: &["merge", "clash"], code: 3, ..PLAIN },
    Scene {
        name: "merge-all",
        prepare: all_lanes,
        command: &["merge", "--all"],
        code: 3,
        also: &[
            LANDED_ALL,
            LANDED_HALF_CLEANED,
            LANDED_OTHER_CLEANED,
            LANDED_WITHOUT_ONE,
            LANDED_WITHOUT_TWO,
            LANDED_WITHOUT_CLASH,
        ],
        ..PLAIN
    },
    Scene {
        name: "merge-elsewhere",
        prepare: elsewhere,
        command: &["merge", "one"],
        also: &[LANDED_ONE],
        ..PLAIN
    },
    Scene { name: "redo", prepare: taken_back, command: &["op", "redo"], ..PLAIN },
    // The clock stands still, so that this is how every snapshot's name begins; there is one.
    Scene { name: "snap-restore", prepare: waiting, command: &["snap", "restore", "20260102"], ..PLAIN },
    Scene { name: "discard", prepare: unfinished, command: &["discard", "--force", "one"], ..PLAIN },
    Scene { name: "cleanup", prepare: landed, command: &["cleanup"], ..PLAIN },
];

/// Scenarios that cannot be undone: what is old goes for good.
const FINAL: &[Scene] = &[Scene { name: "gc", prepare: outlived, command: &["gc"], ..PLAIN }];

/// Whether what a scenario's command did can be undone.
pub(super) fn is_undone(scene: &Scene) -> bool {
    SCENES.iter().chain(FRESH).chain(ODD).any(|known| known.name == scene.name)
}

/// All scenarios: each command, then the undoing of each.
pub(super) fn all() -> Vec<Scene> {
    let scenes = || SCENES.iter().chain(FRESH).chain(ODD);
    let undone = scenes().map(|scene| Scene { undone: true, ..*scene });
    scenes().chain(FINAL).chain(BACK).copied().chain(undone).collect()
}

fn nothing(_: &Place) -> Outcome<()> {
    Ok(())
}

fn nothing_else(_: &Place) -> Outcome<Vec<String>> {
    Ok(Vec::new())
}

/// Some files of every kind, committed.
pub(super) fn base(place: &Place) -> Outcome<()> {
    place.keep("a.txt", "a, committed")?;
    place.keep("b.txt", "b, committed")?;
    place.keep("dir/c.txt", "c, committed")?;
    place.keep("dir/gone.txt", "deleted, committed")?;
    place.write("shared.txt", "one line for all\n")?;
    place.write("long.txt", &"a line like the others\n".repeat(30))?;
    place.write("run.sh", "#!/bin/sh\n")?;
    place.write(".gitignore", "*.log\nbuild/\n")?;
    place.sh("ln -s a.txt link; git add -A; git commit -qm first")
}

/// A lane with one commit that adds a file and changes the long one at its end.
pub(super) fn lane(place: &Place, name: &str) -> Outcome<()> {
    place.proq_ok(&["spawn", "--empty", "-n", name])?;
    let dir = place.lane(name);
    place.keep(dir.join(format!("{name}.txt")), &format!("of {name}, committed"))?;
    place.sh_in(
        &dir,
        &format!("mkdir -p deep; echo {name} > deep/{name}.txt; git add -A; git commit -qm {name}"),
    )
}

fn two_lanes(place: &Place) -> Outcome<()> {
    base(place)?;
    lane(place, "one")?;
    let dir = place.lane("one");
    place.sh_in(
        &dir,
        "echo changed > shared.txt; git rm -q dir/c.txt; chmod +x run.sh; git commit -qam more",
    )?;
    lane(place, "two")
}

/// Every kind of change that a checkout can have at once.
fn dirty(place: &Place) -> Outcome<()> {
    place.keep("b.txt", "b, staged")?;
    place.keep("staged.txt", "new, staged")?;
    place.git(&["add", "b.txt", "staged.txt"])?;
    place.keep("b.txt", "b, changed after it was staged")?;
    place.keep("a.txt", "a, changed")?;
    place.keep("notes.txt", "untracked")?;
    place.keep("new dir/with space.txt", "untracked in a folder")?;
    place.keep("line\nbreak.txt", "untracked with a line break")?;
    place.keep("planned.txt", "intended to be added")?;
    place.keep("debug.log", "ignored in the main checkout")?;
    let name = place.precious("untracked, not UTF-8");
    place.sh(&format!("printf '%s' '{name}' > \"$(printf 'caf\\351.txt')\""))?;
    place.sh(
        "git add -N planned.txt; rm dir/gone.txt; chmod +x a.txt; ln -sf b.txt link; ln -s nowhere dangling",
    )
}

fn carried(place: &Place) -> Outcome<()> {
    base(place)?;
    dirty(place)
}

fn dirty_with_lanes(place: &Place) -> Outcome<()> {
    two_lanes(place)?;
    dirty(place)
}

/// A preview of lane one over a dirty checkout, with edits made while it is shown.
fn edited_preview(place: &Place) -> Outcome<()> {
    dirty_with_lanes(place)?;
    place.proq_ok(&["preview", "one"])?;
    place.keep("one.txt", "one, edited in the preview")?;
    place.keep("idea.txt", "untracked in the preview")?;
    place.keep("chosen.txt", "staged in the preview")?;
    place.git(&["add", "chosen.txt"])
}

/// A preview whose lane has gone on.
fn outdated_preview(place: &Place) -> Outcome<()> {
    edited_preview(place)?;
    place.keep(place.lane("one").join("later.txt"), "committed in the lane later")?;
    place.sh_in(&place.lane("one"), "git rm -q b.txt; git add -A; git commit -qm later")
}

/// A preview with a commit of its own, which belongs to the lane.
fn committed_preview(place: &Place) -> Outcome<()> {
    dirty_with_lanes(place)?;
    place.proq_ok(&["preview", "one"])?;
    place.keep("fix.txt", "committed in the preview")?;
    place.sh("git add fix.txt; git commit -qm fix")?;
    place.keep("one.txt", "one, edited after a commit in the preview")
}

/// A preview whose base has moved meanwhile, in a file that the user had changed as well.
fn moved_preview(place: &Place) -> Outcome<()> {
    two_lanes(place)?;
    place.sh_in(&place.lane("two"), "sed -i '1s/.*/first/' long.txt; git commit -qam first-line")?;
    let mine = place.precious("last line, changed");
    place.sh(&format!("printf '%s' '{mine}' >> long.txt"))?;
    place.keep("notes.txt", "untracked")?;
    place.proq_ok(&["preview", "one"])?;
    place.proq_ok(&["merge", "two"])
}

/// A lane that changes what has changed on the base.
fn conflicting(place: &Place) -> Outcome<()> {
    dirty_with_lanes(place)?;
    lane(place, "clash")?;
    place.sh_in(&place.lane("clash"), "echo mine > shared.txt; git commit -qam clash")?;
    place.sh("echo theirs > shared.txt; git commit -qm theirs shared.txt")
}

/// Two lanes that land together, `clash` and `two`, and `one`, which conflicts with the first.
fn all_lanes(place: &Place) -> Outcome<()> {
    two_lanes(place)?;
    lane(place, "clash")?;
    place.sh_in(&place.lane("clash"), "echo mine > shared.txt; git commit -qam clash")?;
    dirty(place)
}

/// The base is checked out nowhere.
fn elsewhere(place: &Place) -> Outcome<()> {
    two_lanes(place)?;
    place.git(&["switch", "-q", "-c", "other"])?;
    dirty(place)
}

/// A lane with work of every kind that is on no base.
fn unfinished(place: &Place) -> Outcome<()> {
    two_lanes(place)?;
    let dir = place.lane("one");
    place.keep(dir.join("one.txt"), "one, changed in the lane")?;
    place.keep(dir.join("staged.txt"), "staged in the lane")?;
    place.sh_in(&dir, "git add staged.txt")?;
    place.keep(dir.join("new.txt"), "untracked in the lane")?;
    place.keep(dir.join("debug.log"), "ignored in the lane")?;
    place.keep(dir.join("build/out"), "in an ignored folder of the lane")
}

/// A lane that has landed and was kept.
fn landed(place: &Place) -> Outcome<()> {
    two_lanes(place)?;
    place.proq_ok(&["merge", "--no-cleanup", "one"])
}

/// A landing that was undone.
fn taken_back(place: &Place) -> Outcome<()> {
    dirty_with_lanes(place)?;
    place.proq_ok(&["merge", "one"])?;
    place.proq_ok(&["undo"])
}

/// A snapshot that conflicted with the base where it was to come back, and that fits again.
fn waiting(place: &Place) -> Outcome<()> {
    two_lanes(place)?;
    place.sh_in(&place.lane("two"), "sed -i '1s/.*/first/' long.txt; git commit -qam first-line")?;
    place.keep("long.txt", "long, changed")?;
    place.keep("notes.txt", "untracked")?;
    place.proq_ok(&["preview", "one"])?;
    place.proq_ok(&["merge", "--no-cleanup", "two"])?;
    let _conflict = place.proq(&["preview", "--back"])?;
    place.sh("git reset -q --hard HEAD~1")
}

/// A lane that landed and was removed, in a trash that keeps nothing.
fn outlived(place: &Place) -> Outcome<()> {
    landed(place)?;
    place.proq_ok(&["cleanup"])?;
    place.git(&["config", "proq.trash.keep", "0"])
}
