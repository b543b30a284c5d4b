//! Table of scenarios, and the preparation of their repositories.

use super::Outcome;
use super::fixture::Fixture;
use super::new_lane_scenarios::{NEW_LANE_SCENARIOS, POOL_UNDO_SCENARIOS};
use super::scenario::{AllowedState, Scenario};
use super::unusual_scenarios::UNUSUAL_SCENARIOS;

/// Scenario without further allowed states whose command exits with 0.
pub(super) const DEFAULT_SCENARIO: Scenario = Scenario {
    name: "",
    prepare: prepare_nothing,
    command: &[],
    exit_code: 0,
    allowed_states: &[],
    tests_undo: false,
    undo_args: &["undo"],
    ignored_prefixes: &[],
    extra_check: no_extra_check,
};

/// One compare-and-swap of the base decides a landing. The removal of the landed lanes that follows is the
/// work of `cleanup`, and may be left to it.
pub(super) const LANDED_ONE: AllowedState = AllowedState {
    reason: "landed, and the lane is still there",
    commands: &[&["merge", "--no-cleanup", "one"]],
    finish_args: &["cleanup"],
};
const LANDED_WITH_AUTOSTASH: AllowedState = AllowedState {
    reason: "landed, the changes are back, and the lane is still there",
    commands: &[&["merge", "--autostash", "--no-cleanup", "one"]],
    finish_args: &["cleanup"],
};
const LANDED_ALL: AllowedState = AllowedState {
    reason: "landed, and the lanes are still there",
    commands: &[&["merge", "--no-cleanup", "--all"]],
    finish_args: &["cleanup"],
};
const LANDED_HALF_CLEANED: AllowedState = AllowedState {
    reason: "landed, and the first lane is cleaned up",
    commands: &[&["merge", "--no-cleanup", "--all"], &["cleanup", "clash"]],
    finish_args: &["cleanup"],
};
const LANDED_OTHER_CLEANED: AllowedState = AllowedState {
    reason: "landed, and only the second lane could be cleaned up",
    commands: &[&["merge", "--no-cleanup", "--all"], &["cleanup", "two"]],
    finish_args: &["cleanup"],
};
// A lane that could not be tried stays for a later landing, which then merges it with another base than now.
const LANDED_WITHOUT_ONE: AllowedState = landed_without(&[&["merge", "clash", "two"]]);
const LANDED_WITHOUT_TWO: AllowedState = landed_without(&[&["merge", "clash", "one"]]);
const LANDED_WITHOUT_CLASH: AllowedState = landed_without(&[&["merge", "one", "two"]]);

const fn landed_without(commands: &'static [&'static [&'static str]]) -> AllowedState {
    AllowedState { reason: "landed, but for a lane that could not be tried", commands, finish_args: &[] }
}

/// All scenarios that can be undone, except those of other modules.
const BASE_SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "spawn",
        prepare: prepare_base,
        command: &["spawn", "--empty", "-n", "new"],
        ..DEFAULT_SCENARIO
    },
    Scenario {
        name: "spawn-carry",
        prepare: prepare_carried,
        command: &["spawn", "--empty", "--carry", "-n", "new"],
        // The carried changes are a commit that only the lane has.
        undo_args: &["undo", "--force"],
        ..DEFAULT_SCENARIO
    },
    Scenario {
        name: "preview-enter",
        prepare: prepare_dirty_with_lanes,
        command: &["preview", "one"],
        ..DEFAULT_SCENARIO
    },
    Scenario {
        name: "preview-enter-clean",
        prepare: prepare_two_lanes,
        command: &["preview", "one"],
        ..DEFAULT_SCENARIO
    },
    Scenario {
        name: "preview-switch",
        prepare: prepare_edited_preview,
        command: &["preview", "two"],
        ..DEFAULT_SCENARIO
    },
    Scenario {
        name: "preview-refresh",
        prepare: prepare_outdated_preview,
        command: &["preview", "--refresh"],
        ..DEFAULT_SCENARIO
    },
    Scenario {
        name: "preview-back",
        prepare: prepare_edited_preview,
        command: &["preview", "--back"],
        ..DEFAULT_SCENARIO
    },
    Scenario {
        name: "preview-back-commit",
        prepare: prepare_committed_preview,
        command: &["preview", "--back"],
        ..DEFAULT_SCENARIO
    },
    Scenario {
        name: "preview-back-moved",
        prepare: prepare_moved_preview,
        command: &["preview", "--back"],
        ..DEFAULT_SCENARIO
    },
    Scenario {
        name: "merge",
        prepare: prepare_dirty_with_lanes,
        command: &["merge", "one"],
        allowed_states: &[LANDED_ONE],
        ..DEFAULT_SCENARIO
    },
    Scenario {
        name: "merge-autostash",
        prepare: prepare_changes_in_the_way,
        command: &["merge", "--autostash", "one"],
        allowed_states: &[LANDED_WITH_AUTOSTASH],
        ..DEFAULT_SCENARIO
    },
    Scenario {
        name: "merge-autostash-conflict",
        prepare: prepare_changes_that_conflict,
        command: &["merge", "--autostash", "one"],
        exit_code: 3,
        allowed_states: &[LANDED_WITH_AUTOSTASH],
        ..DEFAULT_SCENARIO
    },
    Scenario {
        name: "merge-conflict",
        prepare: prepare_conflicting,
        command: &["merge", "clash"],
        exit_code: 3,
        ..DEFAULT_SCENARIO
    },
    Scenario {
        name: "merge-all",
        prepare: prepare_all_lanes,
        command: &["merge", "--all"],
        exit_code: 3,
        allowed_states: &[
            LANDED_ALL,
            LANDED_HALF_CLEANED,
            LANDED_OTHER_CLEANED,
            LANDED_WITHOUT_ONE,
            LANDED_WITHOUT_TWO,
            LANDED_WITHOUT_CLASH,
        ],
        ..DEFAULT_SCENARIO
    },
    Scenario {
        name: "merge-elsewhere",
        prepare: prepare_elsewhere,
        command: &["merge", "one"],
        allowed_states: &[LANDED_ONE],
        ..DEFAULT_SCENARIO
    },
    Scenario { name: "redo", prepare: prepare_undone_landing, command: &["op", "redo"], ..DEFAULT_SCENARIO },
    // The clock stands still, so every snapshot's name starts like this; there is one.
    Scenario {
        name: "snap-restore",
        prepare: prepare_waiting_snapshot,
        command: &["snap", "restore", "20260102"],
        ..DEFAULT_SCENARIO
    },
    Scenario {
        name: "discard",
        prepare: prepare_unfinished,
        command: &["discard", "--force", "one"],
        ..DEFAULT_SCENARIO
    },
    Scenario {
        name: "rename",
        prepare: prepare_unfinished,
        command: &["rename", "one", "first"],
        ..DEFAULT_SCENARIO
    },
    Scenario { name: "cleanup", prepare: prepare_landed, command: &["cleanup"], ..DEFAULT_SCENARIO },
];

/// Scenarios that cannot be undone: expired data is deleted permanently.
const PERMANENT_SCENARIOS: &[Scenario] =
    &[Scenario { name: "gc", prepare: prepare_expired, command: &["gc"], ..DEFAULT_SCENARIO }];

/// Returns whether the command of a scenario can be undone.
pub(super) fn can_be_undone(scenario: &Scenario) -> bool {
    BASE_SCENARIOS
        .iter()
        .chain(NEW_LANE_SCENARIOS)
        .chain(UNUSUAL_SCENARIOS)
        .any(|known| known.name == scenario.name)
}

/// Returns all scenarios: each command, then the undo of each.
pub(super) fn all_scenarios() -> Vec<Scenario> {
    let scenarios = || BASE_SCENARIOS.iter().chain(NEW_LANE_SCENARIOS).chain(UNUSUAL_SCENARIOS);
    let undo_scenarios = scenarios().map(|scenario| Scenario { tests_undo: true, ..*scenario });
    scenarios().chain(PERMANENT_SCENARIOS).chain(POOL_UNDO_SCENARIOS).copied().chain(undo_scenarios).collect()
}

fn prepare_nothing(_: &Fixture) -> Outcome<()> {
    Ok(())
}

fn no_extra_check(_: &Fixture) -> Outcome<Vec<String>> {
    Ok(Vec::new())
}

/// Prepares files of every kind, committed.
pub(super) fn prepare_base(fixture: &Fixture) -> Outcome<()> {
    fixture.write_token("a.txt", "a, committed")?;
    fixture.write_token("b.txt", "b, committed")?;
    fixture.write_token("dir/c.txt", "c, committed")?;
    fixture.write_token("dir/gone.txt", "deleted, committed")?;
    fixture.write("shared.txt", "one line for all\n")?;
    fixture.write("long.txt", &"a line like the others\n".repeat(30))?;
    fixture.write("run.sh", "#!/bin/sh\n")?;
    fixture.write(".gitignore", "*.log\nbuild/\n")?;
    fixture.sh("ln -s a.txt link; git add -A; git commit -qm first")
}

/// Prepares a lane with one commit that adds two files.
pub(super) fn prepare_lane(fixture: &Fixture, name: &str) -> Outcome<()> {
    fixture.proq_ok(&["spawn", "--empty", "-n", name])?;
    let dir = fixture.lane(name);
    fixture.write_token(dir.join(format!("{name}.txt")), &format!("of {name}, committed"))?;
    fixture.sh_in(
        &dir,
        &format!("mkdir -p deep; echo {name} > deep/{name}.txt; git add -A; git commit -qm {name}"),
    )
}

fn prepare_two_lanes(fixture: &Fixture) -> Outcome<()> {
    prepare_base(fixture)?;
    prepare_lane(fixture, "one")?;
    let dir = fixture.lane("one");
    fixture.sh_in(
        &dir,
        "echo changed > shared.txt; git rm -q dir/c.txt; chmod +x run.sh; git commit -qam more",
    )?;
    prepare_lane(fixture, "two")
}

/// Prepares every kind of change that a checkout can have at once.
fn prepare_dirty(fixture: &Fixture) -> Outcome<()> {
    fixture.write_token("b.txt", "b, staged")?;
    fixture.write_token("staged.txt", "new, staged")?;
    fixture.git(&["add", "b.txt", "staged.txt"])?;
    fixture.write_token("b.txt", "b, changed after it was staged")?;
    fixture.write_token("a.txt", "a, changed")?;
    fixture.write_token("notes.txt", "untracked")?;
    fixture.write_token("new dir/with space.txt", "untracked in a folder")?;
    fixture.write_token("line\nbreak.txt", "untracked with a line break")?;
    fixture.write_token("planned.txt", "intended to be added")?;
    fixture.write_token("debug.log", "ignored in the main checkout")?;
    let name = fixture.new_token("untracked, not UTF-8");
    fixture.sh(&format!("printf '%s' '{name}' > \"$(printf 'caf\\351.txt')\""))?;
    fixture.sh(
        "git add -N planned.txt; rm dir/gone.txt; chmod +x a.txt; ln -sf b.txt link; ln -s nowhere dangling",
    )
}

fn prepare_carried(fixture: &Fixture) -> Outcome<()> {
    prepare_base(fixture)?;
    prepare_dirty(fixture)
}

fn prepare_dirty_with_lanes(fixture: &Fixture) -> Outcome<()> {
    prepare_two_lanes(fixture)?;
    prepare_dirty(fixture)
}

/// Prepares a preview of lane one over a dirty checkout, with edits made in it.
fn prepare_edited_preview(fixture: &Fixture) -> Outcome<()> {
    prepare_dirty_with_lanes(fixture)?;
    fixture.proq_ok(&["preview", "one"])?;
    fixture.write_token("one.txt", "one, edited in the preview")?;
    fixture.write_token("idea.txt", "untracked in the preview")?;
    fixture.write_token("chosen.txt", "staged in the preview")?;
    fixture.git(&["add", "chosen.txt"])
}

/// Prepares a preview whose lane has new commits.
fn prepare_outdated_preview(fixture: &Fixture) -> Outcome<()> {
    prepare_edited_preview(fixture)?;
    fixture.write_token(fixture.lane("one").join("later.txt"), "committed in the lane later")?;
    fixture.sh_in(&fixture.lane("one"), "git rm -q b.txt; git add -A; git commit -qm later")
}

/// Prepares a preview with a commit of its own, which belongs to the lane.
fn prepare_committed_preview(fixture: &Fixture) -> Outcome<()> {
    prepare_dirty_with_lanes(fixture)?;
    fixture.proq_ok(&["preview", "one"])?;
    fixture.write_token("fix.txt", "committed in the preview")?;
    fixture.sh("git add fix.txt; git commit -qm fix")?;
    fixture.write_token("one.txt", "one, edited after a commit in the preview")
}

/// Prepares a preview whose base has moved, in a file that the user had changed as well.
fn prepare_moved_preview(fixture: &Fixture) -> Outcome<()> {
    prepare_two_lanes(fixture)?;
    fixture.sh_in(&fixture.lane("two"), "sed -i '1s/.*/first/' long.txt; git commit -qam first-line")?;
    let mine = fixture.new_token("last line, changed");
    fixture.sh(&format!("printf '%s' '{mine}' >> long.txt"))?;
    fixture.write_token("notes.txt", "untracked")?;
    fixture.proq_ok(&["preview", "one"])?;
    fixture.proq_ok(&["merge", "two"])
}

/// Prepares a dirty checkout with a change in a file that a lane changes elsewhere.
fn prepare_changes_in_the_way(fixture: &Fixture) -> Outcome<()> {
    prepare_dirty_with_lanes(fixture)?;
    fixture.sh_in(&fixture.lane("one"), "sed -i '1s/.*/first/' long.txt; git commit -qam first-line")?;
    let mine = fixture.new_token("last line, changed");
    fixture.sh(&format!("printf '%s' '{mine}' >> long.txt"))
}

/// Prepares a dirty checkout with a change that conflicts with a lane.
fn prepare_changes_that_conflict(fixture: &Fixture) -> Outcome<()> {
    prepare_changes_in_the_way(fixture)?;
    fixture.write_token("shared.txt", "shared, changed")
}

/// Prepares a lane that changes what has changed on the base.
fn prepare_conflicting(fixture: &Fixture) -> Outcome<()> {
    prepare_dirty_with_lanes(fixture)?;
    prepare_lane(fixture, "clash")?;
    fixture.sh_in(&fixture.lane("clash"), "echo mine > shared.txt; git commit -qam clash")?;
    fixture.sh("echo theirs > shared.txt; git commit -qm theirs shared.txt")
}

/// Prepares two lanes that land together, `clash` and `two`, and `one`, which conflicts with the first.
fn prepare_all_lanes(fixture: &Fixture) -> Outcome<()> {
    prepare_two_lanes(fixture)?;
    prepare_lane(fixture, "clash")?;
    fixture.sh_in(&fixture.lane("clash"), "echo mine > shared.txt; git commit -qam clash")?;
    prepare_dirty(fixture)
}

/// Prepares a base that is checked out nowhere.
fn prepare_elsewhere(fixture: &Fixture) -> Outcome<()> {
    prepare_two_lanes(fixture)?;
    fixture.git(&["switch", "-q", "-c", "other"])?;
    prepare_dirty(fixture)
}

/// Prepares a lane with work of every kind that is on no base.
fn prepare_unfinished(fixture: &Fixture) -> Outcome<()> {
    prepare_two_lanes(fixture)?;
    let dir = fixture.lane("one");
    fixture.write_token(dir.join("one.txt"), "one, changed in the lane")?;
    fixture.write_token(dir.join("staged.txt"), "staged in the lane")?;
    fixture.sh_in(&dir, "git add staged.txt")?;
    fixture.write_token(dir.join("new.txt"), "untracked in the lane")?;
    fixture.write_token(dir.join("debug.log"), "ignored in the lane")?;
    fixture.write_token(dir.join("build/out"), "in an ignored folder of the lane")
}

/// Prepares a lane that has landed and was kept.
fn prepare_landed(fixture: &Fixture) -> Outcome<()> {
    prepare_two_lanes(fixture)?;
    fixture.proq_ok(&["merge", "--no-cleanup", "one"])
}

/// Prepares a landing that was undone.
fn prepare_undone_landing(fixture: &Fixture) -> Outcome<()> {
    prepare_dirty_with_lanes(fixture)?;
    fixture.proq_ok(&["merge", "one"])?;
    fixture.proq_ok(&["undo"])
}

/// Prepares a snapshot that conflicted with the base when it was to be restored, and that applies again.
fn prepare_waiting_snapshot(fixture: &Fixture) -> Outcome<()> {
    prepare_two_lanes(fixture)?;
    fixture.sh_in(&fixture.lane("two"), "sed -i '1s/.*/first/' long.txt; git commit -qam first-line")?;
    fixture.write_token("long.txt", "long, changed")?;
    fixture.write_token("notes.txt", "untracked")?;
    fixture.proq_ok(&["preview", "one"])?;
    fixture.proq_ok(&["merge", "--no-cleanup", "two"])?;
    let _conflict = fixture.proq(&["preview", "--back"])?;
    fixture.sh("git reset -q --hard HEAD~1")
}

/// Prepares a lane that landed and was removed, in a trash that expires at once.
fn prepare_expired(fixture: &Fixture) -> Outcome<()> {
    prepare_landed(fixture)?;
    fixture.proq_ok(&["cleanup"])?;
    fixture.git(&["config", "proq.trash.keep", "0"])
}
