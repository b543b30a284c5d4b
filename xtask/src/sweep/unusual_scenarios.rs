//! Scenarios with unusual checkout states: folders that became links or files, paths that only HEAD and the
//! disk have, flags of index entries, converted contents.

use super::Outcome;
use super::fixture::Fixture;
use super::scenario::Scenario;
use super::scenarios::{DEFAULT_SCENARIO, LANDED_ONE};
use super::start_state::create_state;
use crate::states::{Attr, Disk, Head, IgnoreFile, Index, LaneChange, PathSetup, PathState, State};

/// Scenarios of this module.
pub(super) const UNUSUAL_SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "odd-enter-link",
        prepare: prepare_folder_to_link,
        command: PREVIEW_ONE,
        ..DEFAULT_SCENARIO
    },
    Scenario {
        name: "odd-enter-file",
        prepare: prepare_folder_to_file,
        command: PREVIEW_ONE,
        ..DEFAULT_SCENARIO
    },
    Scenario {
        name: "odd-enter-removed",
        prepare: prepare_removed,
        command: PREVIEW_ONE,
        ..DEFAULT_SCENARIO
    },
    Scenario {
        name: "odd-enter-converted",
        prepare: prepare_converted,
        command: PREVIEW_ONE,
        ..DEFAULT_SCENARIO
    },
    Scenario {
        name: "odd-switch-flags",
        prepare: preview_flags,
        command: &["preview", "two"],
        ..DEFAULT_SCENARIO
    },
    Scenario {
        name: "odd-refresh-intent",
        prepare: preview_outdated_intent,
        command: &["preview", "--refresh"],
        ..DEFAULT_SCENARIO
    },
    Scenario { name: "odd-back-link", prepare: preview_link, command: PREVIEW_BACK, ..DEFAULT_SCENARIO },
    Scenario { name: "odd-back-folder", prepare: preview_folder, command: PREVIEW_BACK, ..DEFAULT_SCENARIO },
    Scenario {
        name: "odd-back-removed",
        prepare: preview_removed,
        command: PREVIEW_BACK,
        ..DEFAULT_SCENARIO
    },
    Scenario {
        name: "odd-merge-flags",
        prepare: prepare_flags,
        command: &["merge", "one"],
        allowed_states: &[LANDED_ONE],
        ..DEFAULT_SCENARIO
    },
    Scenario {
        name: "odd-restore-converted",
        prepare: leave_converted,
        command: RESTORE_SNAPSHOT,
        ..DEFAULT_SCENARIO
    },
    Scenario {
        name: "odd-restore-flags",
        prepare: leave_flags,
        command: RESTORE_SNAPSHOT,
        ..DEFAULT_SCENARIO
    },
    Scenario { name: "odd-restore-link", prepare: leave_link, command: RESTORE_SNAPSHOT, ..DEFAULT_SCENARIO },
    Scenario {
        name: "odd-redo-folder",
        prepare: undo_preview_folder,
        command: &["op", "redo"],
        ..DEFAULT_SCENARIO
    },
    Scenario {
        name: "odd-carry-intent",
        prepare: prepare_intent,
        command: &["spawn", "--empty", "--carry", "-n", "new"],
        undo_args: &["undo", "--force"],
        ..DEFAULT_SCENARIO
    },
    Scenario {
        name: "odd-discard-shown",
        prepare: preview_link,
        command: &["discard", "--force", "one"],
        ..DEFAULT_SCENARIO
    },
];

const PREVIEW_ONE: &[&str] = &["preview", "one"];
const PREVIEW_BACK: &[&str] = &["preview", "--back"];
// The clock stands still, so every snapshot's name starts like this; there is one.
const RESTORE_SNAPSHOT: &[&str] = &["snap", "restore", "20260102"];

/// Creates these path states, and six plainly changed files.
fn prepare_states(fixture: &Fixture, states: &[(&str, PathState)]) -> Outcome<()> {
    let changed = PathState::plain(Head::File, Index::Same, Disk::Other);
    let names = ["t1", "t2", "t3", "dir/t4", "dir/t5", "dir/t6"];
    let paths = names.into_iter().map(|name| (name, changed)).chain(states.iter().copied());
    let mut paths: Vec<PathSetup> = paths.map(|(name, combo)| PathSetup::new(name, combo)).collect();
    paths.push(
        PathSetup::new("gone", PathState::plain(Head::File, Index::Same, Disk::Same))
            .with_lane_change(LaneChange::Remove),
    );
    create_state(fixture, &State::from_paths(paths, IgnoreFile::Exclude))
}

fn prepare_folder_to_link(fixture: &Fixture) -> Outcome<()> {
    let link = PathState::plain(Head::Folder, Index::Same, Disk::FolderLink);
    prepare_states(fixture, &[("d", link), ("dir/d", PathState { disk: Disk::Link, ..link })])
}

fn prepare_folder_to_file(fixture: &Fixture) -> Outcome<()> {
    let file = PathState::plain(Head::Folder, Index::Same, Disk::File);
    prepare_states(fixture, &[("d", file), ("dir/d", PathState { disk: Disk::Empty, ..file })])
}

fn prepare_file_to_folder(fixture: &Fixture) -> Outcome<()> {
    let folder = PathState::plain(Head::File, Index::Same, Disk::Folder);
    let staged = PathState { index: Index::Other, ..folder };
    prepare_states(
        fixture,
        &[("f", folder), ("dir/f", staged), ("e", PathState { disk: Disk::EmptyFolder, ..folder })],
    )
}

fn prepare_removed(fixture: &Fixture) -> Outcome<()> {
    let same = PathState::plain(Head::File, Index::Removed, Disk::Same);
    let other = PathState { disk: Disk::Other, ..same };
    prepare_states(
        fixture,
        &[("r", same), ("s", same.ignored()), ("dir/r", same.ignored()), ("dir/s", other.ignored())],
    )
}

fn prepare_flags(fixture: &Fixture) -> Outcome<()> {
    let skip = PathState::plain(Head::File, Index::Skip, Disk::Other);
    let assume = PathState::plain(Head::File, Index::Assume, Disk::Other);
    prepare_states(
        fixture,
        &[("k", skip), ("u", assume), ("dir/k", PathState { disk: Disk::Absent, ..skip })],
    )
}

fn prepare_intent(fixture: &Fixture) -> Outcome<()> {
    let new = PathState::plain(Head::Nothing, Index::Intent, Disk::Other);
    let known = PathState::plain(Head::File, Index::Intent, Disk::Other);
    prepare_states(
        fixture,
        &[("i", new), ("dir/i", known), ("dir/j", PathState { disk: Disk::Absent, ..new })],
    )
}

fn prepare_converted(fixture: &Fixture) -> Outcome<()> {
    let crlf = PathState::plain(Head::File, Index::Same, Disk::Other).with_attr(Attr::Crlf);
    let staged = PathState { index: Index::Other, ..crlf };
    prepare_states(fixture, &[("c", crlf), ("dir/c", staged), ("x", staged.with_attr(Attr::Filter))])
}

fn preview_one(fixture: &Fixture) -> Outcome<()> {
    fixture.proq_ok(PREVIEW_ONE)?;
    fixture.write_token("one.txt", "one, edited in the preview")?;
    fixture.write_token("idea.txt", "untracked in the preview")
}

fn preview_link(fixture: &Fixture) -> Outcome<()> {
    prepare_folder_to_link(fixture)?;
    preview_one(fixture)
}

fn preview_folder(fixture: &Fixture) -> Outcome<()> {
    prepare_file_to_folder(fixture)?;
    preview_one(fixture)
}

/// Prepares a preview that was entered and undone.
fn undo_preview_folder(fixture: &Fixture) -> Outcome<()> {
    prepare_file_to_folder(fixture)?;
    fixture.proq_ok(PREVIEW_ONE)?;
    fixture.proq_ok(&["undo"])
}

fn preview_removed(fixture: &Fixture) -> Outcome<()> {
    prepare_removed(fixture)?;
    preview_one(fixture)
}

fn preview_flags(fixture: &Fixture) -> Outcome<()> {
    prepare_flags(fixture)?;
    preview_one(fixture)
}

/// Prepares a preview whose lane has new commits.
fn preview_outdated_intent(fixture: &Fixture) -> Outcome<()> {
    prepare_intent(fixture)?;
    preview_one(fixture)?;
    fixture.write_token(fixture.lane("one").join("later.txt"), "committed in the lane later")?;
    fixture.sh_in(&fixture.lane("one"), "git add -A; git commit -qm later")
}

/// Leaves a preview and discards everything by hand afterwards: only the snapshot has it.
fn leave_and_discard(fixture: &Fixture) -> Outcome<()> {
    fixture.proq_ok(PREVIEW_ONE)?;
    fixture.proq_ok(PREVIEW_BACK)?;
    fixture.sh("git update-index -q --really-refresh || :; git reset -q --hard; git clean -qfd")
}

fn leave_converted(fixture: &Fixture) -> Outcome<()> {
    prepare_converted(fixture)?;
    leave_and_discard(fixture)
}

fn leave_flags(fixture: &Fixture) -> Outcome<()> {
    prepare_flags(fixture)?;
    leave_and_discard(fixture)
}

fn leave_link(fixture: &Fixture) -> Outcome<()> {
    prepare_folder_to_link(fixture)?;
    leave_and_discard(fixture)
}
