//! Hints about lanes, snapshots and operations.

use proq_test_kit::Sandbox;

use crate::scenes::{Row, play};

const OF_LISTS_AND_OF_SHOWN_LANES: &[Row] = &[
    ["program claude true", "git proq status", "start an agent in a lane", "lane", ""],
    ["run_lane a", "git proq", "land 1 lane", "a", "test -f new-a.txt"],
    [
        "run_lane a",
        "git proq show a",
        "try it in your checkout",
        "a",
        "test -f new-a.txt && git proq preview --back",
    ],
    ["run_lane a", "git proq show a", "see whether it can land", "a", "! test -f new-a.txt"],
    ["run_lane a", "git proq", "see 'a' in your checkout", "a", "test -f new-a.txt"],
    [
        "run_lane a; git proq merge -q --no-cleanup a",
        "git proq show a",
        "remove landed lanes",
        "a",
        "! test -d .proq-worktrees/a",
    ],
    [
        "run_lane a; git proq merge -q --no-cleanup a",
        "git proq",
        "remove lanes that have landed",
        "a",
        "! test -d .proq-worktrees/a",
    ],
    [
        "git proq spawn --wait -n a -- sh -c 'exit 3' || true",
        "git proq",
        "show what went wrong in",
        "exit",
        "",
    ],
    ["", "git proq preview zzz", "see all", "", ""],
    ["", "git proq preview", "list lanes", "", ""],
];

#[test]
fn hints_of_lists_and_of_shown_lanes_work() {
    play(OF_LISTS_AND_OF_SHOWN_LANES);
}

const ABOUT_NAMES_AND_FOLDERS_IN_THE_WAY: &[Row] = &[
    [
        "git branch proq",
        "git proq spawn --empty -n a",
        "use another prefix",
        "",
        "git proq spawn --empty -n a",
    ],
    [
        "git branch proq",
        "git proq spawn --empty -n a",
        "or rename the branch",
        "",
        "git proq spawn --empty -n a",
    ],
    [
        "git branch proq/a",
        "git proq spawn --empty -n a",
        "rename the branch",
        "",
        "git proq spawn --empty -n a",
    ],
    [
        "git symbolic-ref refs/heads/proq/a refs/heads/main",
        "git proq spawn --empty -n a",
        "remove the symbolic ref",
        "",
        "git proq spawn --empty -n a",
    ],
    [
        "mkdir -p .proq-worktrees/a && echo x > .proq-worktrees/a/x",
        "git proq spawn --empty -n a",
        "move it away",
        "",
        "git proq spawn --empty -n a && test -f .proq-worktrees/a.old/x",
    ],
    ["git checkout -q --detach", "git proq spawn --empty -n a", "name", "", ""],
];

#[test]
fn hints_about_names_and_folders_in_the_way_work() {
    play(ABOUT_NAMES_AND_FOLDERS_IN_THE_WAY);
}

#[test]
fn hints_about_changed_branches_of_lanes_work() {
    play(&[
        [
            "git proq spawn --empty -n a; git symbolic-ref refs/heads/proq/a refs/heads/main",
            "git proq rename a b",
            "make it a regular branch",
            "",
            "! git symbolic-ref -q refs/heads/proq/a && git proq rename a b",
        ],
        [
            "lane a; git proq preview -q a; git switch -qc x main; git branch -qD proq/a-preview",
            "git proq undo",
            "create it again and switch to it",
            "",
            "git proq undo && test \"$(git symbolic-ref --short HEAD)\" = main",
        ],
        [
            "lane a; git proq preview a; echo z > z; git add z; git commit -qm z",
            "git proq undo",
            "instead",
            "",
            "test \"$(git symbolic-ref --short HEAD)\" = main && git log --format=%s proq/a | grep -q z",
        ],
    ]);
}

const AFTER_CHANGES_OF_LANES: &[Row] = &[
    ["lane a", "git proq merge a; git proq undo", "redo it", "", "git log --format=%s | grep -q 'Add a'"],
    ["", "git proq op show 99", "list operations", "", ""],
    ["", "git proq snap show 99", "list snapshots", "", ""],
    [
        "git proq spawn --empty -n a; git worktree lock .proq-worktrees/a",
        "git proq discard a",
        "unlock it",
        "",
        "git proq discard a",
    ],
    [
        "git proq spawn --empty -n a; echo y > .proq-worktrees/a/y; git proq discard --force a",
        "git proq gc",
        "empty the trash for good",
        "",
        "! git proq gc 2>&1 | grep -q 'in the trash'",
    ],
    [
        "git proq spawn --empty -n a; git proq discard a",
        "git proq show a --json > /dev/null; git proq preview a",
        "see what it was",
        "a",
        "",
    ],
];

#[test]
fn hints_after_changes_of_lanes_work() {
    play(AFTER_CHANGES_OF_LANES);
}

#[test]
fn hint_in_a_removed_folder_leads_out_of_it() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "a"]).ok();
    let removed = sandbox.proq_in(&sandbox.lane_path("a"), &["discard", "a"]);
    assert_eq!(sandbox.follow_hint(&removed.stderr, "this folder was removed").code, 0);
}

const ABOUT_OPERATIONS_AND_RENAMES: &[Row] = &[
    [
        "lane a; git proq merge -q a; git proq spawn -q --empty -n b",
        "git proq undo 2",
        "undo it and everything after it",
        "",
        "! test -f new-a.txt && ! test -d .proq-worktrees/b",
    ],
    ["lane a", "git proq op show 1 --trace", "show what it did", "lane a created", ""],
    [
        "git proq spawn -q --empty -n a; git proq discard a; git proq undo; echo y > \
             .proq-worktrees/a/y",
        "git proq redo",
        "remove it; everything is saved first",
        "",
        "! test -d .proq-worktrees/a",
    ],
    [
        "lane a; git proq preview -q a; git proq preview -q --back; git switch -qc other",
        "git proq undo",
        "switch back to it",
        "",
        "git proq undo",
    ],
    [
        "conflict c; git proq merge c || true; git proq resolve c --shell || true",
        "git proq rename c d",
        "or give it up",
        "",
        "git proq rename c d",
    ],
    [
        "git proq spawn --empty -n a; git -C .proq-worktrees/a checkout -q --detach",
        "git proq rename a b",
        "show its state",
        "HEAD detached",
        "",
    ],
    [
        "lane b; git proq merge -q --no-cleanup b; git worktree lock .proq-worktrees/b",
        "git proq cleanup b",
        "unlock it",
        "",
        "git proq cleanup b",
    ],
    [
        "git switch -qc dev; echo dev > a.txt; git commit -qam dev; git switch -q main; \
             echo mine > a.txt",
        "git proq spawn --empty -n b --carry --base dev",
        "show them",
        "+mine",
        "",
    ],
    [
        "git proq spawn -q --empty -n y; git proq spawn -q --empty -n z",
        "cd .proq-worktrees/z; PROQ_LANE=y git-proq task update --status x",
        "show the worktree of",
        "proq-worktrees/y",
        "",
    ],
];

#[test]
fn hints_about_operations_and_renames_work() {
    play(ABOUT_OPERATIONS_AND_RENAMES);
}
