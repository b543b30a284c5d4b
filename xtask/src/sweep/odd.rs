//! Owns the scenarios whose checkout is in odd states: folders that became links or files, paths that only HEAD and the disk
//! have, flags of index entries, converted contents.

use super::Outcome;
use super::place::Place;
use super::scene::Scene;
use super::start::make;
use super::table::{LANDED_ONE, PLAIN};
use crate::states::{Attr, Combo, Disk, Head, IgnoreFile, Index, Spot, State, Touch};

/// The scenarios.
pub(super) const ODD: &[Scene] = &[
    Scene { name: "odd-enter-link", prepare: folder_to_link, command: ONE, ..PLAIN },
    Scene { name: "odd-enter-file", prepare: folder_to_file, command: ONE, ..PLAIN },
    Scene { name: "odd-enter-removed", prepare: removed, command: ONE, ..PLAIN },
    Scene { name: "odd-enter-converted", prepare: converted, command: ONE, ..PLAIN },
    Scene { name: "odd-switch-flags", prepare: shown_flags, command: &["preview", "two"], ..PLAIN },
    Scene {
        name: "odd-refresh-intent",
        prepare: outdated_intent,
        command: &["preview", "--refresh"],
        ..PLAIN
    },
    Scene { name: "odd-back-link", prepare: shown_link, command: BACK, ..PLAIN },
    Scene { name: "odd-back-folder", prepare: shown_folder, command: BACK, ..PLAIN },
    Scene { name: "odd-back-removed", prepare: shown_removed, command: BACK, ..PLAIN },
    Scene {
        name: "odd-merge-flags",
        prepare: flags,
        command: &["merge", "one"],
        also: &[LANDED_ONE],
        ..PLAIN
    },
    Scene { name: "odd-restore-converted", prepare: left_converted, command: RESTORE, ..PLAIN },
    Scene { name: "odd-restore-flags", prepare: left_flags, command: RESTORE, ..PLAIN },
    Scene { name: "odd-restore-link", prepare: left_link, command: RESTORE, ..PLAIN },
    Scene { name: "odd-redo-folder", prepare: undone_folder, command: &["op", "redo"], ..PLAIN },
    Scene {
        name: "odd-carry-intent",
        prepare: intent,
        command: &["spawn", "--empty", "--carry", "-n", "new"],
        undo: &["undo", "--force"],
        ..PLAIN
    },
    Scene {
        name: "odd-discard-shown",
        prepare: shown_link,
        command: &["discard", "--force", "one"],
        ..PLAIN
    },
];

const ONE: &[&str] = &["preview", "one"];
const BACK: &[&str] = &["preview", "--back"];
// The clock stands still, so that this is how every snapshot's name begins; there is one.
const RESTORE: &[&str] = &["snap", "restore", "20260102"];

/// These states, and six files that are plainly changed.
fn with(place: &Place, odd: &[(&str, Combo)]) -> Outcome<()> {
    let changed = Combo::plain(Head::File, Index::Same, Disk::Other);
    let names = ["t1", "t2", "t3", "dir/t4", "dir/t5", "dir/t6"];
    let spots = names.into_iter().map(|name| (name, changed)).chain(odd.iter().copied());
    let mut spots: Vec<Spot> = spots.map(|(name, combo)| Spot::new(name, combo)).collect();
    spots.push(Spot::new("gone", Combo::plain(Head::File, Index::Same, Disk::Same)).touched(Touch::Remove));
    make(place, &State::of(spots, IgnoreFile::Exclude))
}

fn folder_to_link(place: &Place) -> Outcome<()> {
    let link = Combo::plain(Head::Folder, Index::Same, Disk::FolderLink);
    with(place, &[("d", link), ("dir/d", Combo { disk: Disk::Link, ..link })])
}

fn folder_to_file(place: &Place) -> Outcome<()> {
    let file = Combo::plain(Head::Folder, Index::Same, Disk::File);
    with(place, &[("d", file), ("dir/d", Combo { disk: Disk::Empty, ..file })])
}

fn file_to_folder(place: &Place) -> Outcome<()> {
    let folder = Combo::plain(Head::File, Index::Same, Disk::Folder);
    let staged = Combo { index: Index::Other, ..folder };
    with(place, &[("f", folder), ("dir/f", staged), ("e", Combo { disk: Disk::EmptyFolder, ..folder })])
}

fn removed(place: &Place) -> Outcome<()> {
    let same = Combo::plain(Head::File, Index::Removed, Disk::Same);
    let other = Combo { disk: Disk::Other, ..same };
    with(place, &[("r", same), ("s", same.ignored()), ("dir/r", same.ignored()), ("dir/s", other.ignored())])
}

fn flags(place: &Place) -> Outcome<()> {
    let skip = Combo::plain(Head::File, Index::Skip, Disk::Other);
    let assume = Combo::plain(Head::File, Index::Assume, Disk::Other);
    with(place, &[("k", skip), ("u", assume), ("dir/k", Combo { disk: Disk::Absent, ..skip })])
}

fn intent(place: &Place) -> Outcome<()> {
    let new = Combo::plain(Head::Nothing, Index::Intent, Disk::Other);
    let known = Combo::plain(Head::File, Index::Intent, Disk::Other);
    with(place, &[("i", new), ("dir/i", known), ("dir/j", Combo { disk: Disk::Absent, ..new })])
}

fn converted(place: &Place) -> Outcome<()> {
    let crlf = Combo::plain(Head::File, Index::Same, Disk::Other).with(Attr::Crlf);
    let staged = Combo { index: Index::Other, ..crlf };
    with(place, &[("c", crlf), ("dir/c", staged), ("x", staged.with(Attr::Filter))])
}

fn show(place: &Place) -> Outcome<()> {
    place.proq_ok(ONE)?;
    place.keep("one.txt", "one, edited in the preview")?;
    place.keep("idea.txt", "untracked in the preview")
}

fn shown_link(place: &Place) -> Outcome<()> {
    folder_to_link(place)?;
    show(place)
}

fn shown_folder(place: &Place) -> Outcome<()> {
    file_to_folder(place)?;
    show(place)
}

/// A preview that was entered and taken back.
fn undone_folder(place: &Place) -> Outcome<()> {
    file_to_folder(place)?;
    place.proq_ok(ONE)?;
    place.proq_ok(&["undo"])
}

fn shown_removed(place: &Place) -> Outcome<()> {
    removed(place)?;
    show(place)
}

fn shown_flags(place: &Place) -> Outcome<()> {
    flags(place)?;
    show(place)
}

/// A preview whose lane has gone on.
fn outdated_intent(place: &Place) -> Outcome<()> {
    intent(place)?;
    show(place)?;
    place.keep(place.lane("one").join("later.txt"), "committed in the lane later")?;
    place.sh_in(&place.lane("one"), "git add -A; git commit -qm later")
}

/// A preview that was left, and everything thrown away by hand afterwards: the snapshot has it.
fn left(place: &Place) -> Outcome<()> {
    place.proq_ok(ONE)?;
    place.proq_ok(BACK)?;
    place.sh("git update-index -q --really-refresh || :; git reset -q --hard; git clean -qfd")
}

fn left_converted(place: &Place) -> Outcome<()> {
    converted(place)?;
    left(place)
}

fn left_flags(place: &Place) -> Outcome<()> {
    flags(place)?;
    left(place)
}

fn left_link(place: &Place) -> Outcome<()> {
    folder_to_link(place)?;
    left(place)
}
