//! Owns the tests of what the next command makes of files of which a power cut left only the beginning. Nobody syncs what is in a
//! working tree, so a command is killed and the files that it had written are cut short by hand.

use super::kit::{dies, recovers_after_a_start};
use crate::snap::ids;
use crate::support::{Sandbox, State, scenes};

/// A scene, a command that dies in it, the point where, and shell commands that cut short what it had written by then.
type Cut = (fn() -> Sandbox, &'static [&'static str], &'static str, &'static str);

const CUT: &[Cut] = &[
    (scenes::dirty, &["preview", "one"], "clear.installed", ": >a.txt; : >b.txt; : >dir/gone.txt"),
    (scenes::dirty, &["preview", "one"], "transition.installed", ": >shared.txt; : >one.txt; : >a.txt"),
    (scenes::dirty, &["preview", "one"], "transition.moved", ": >shared.txt; : >dir/gone.txt; : >deep/one"),
    (scenes::edited, &["preview", "two"], "transition.installed", ": >shared.txt; : >two.txt"),
    (scenes::edited, &["preview", "--back"], "restore.installed", ": >shared.txt; : >run.sh; : >dir/c.txt"),
];

#[test]
fn a_beginning_of_what_a_command_wrote_is_nobodys_change() {
    for (scene, args, at, cut) in CUT {
        let sandbox = scene();
        let (before, snapshots) = (State::of(&sandbox), ids(&sandbox));
        dies(&sandbox, at, args);
        sandbox.sh(cut);
        recovers_after_a_start(&sandbox);
        State::of(&sandbox).is(&before, at);
        assert_eq!(ids(&sandbox), snapshots, "{args:?} {at}");
    }
}

#[test]
fn a_beginning_of_what_a_filter_makes_is_made_whole_though_its_attributes_were_cut_short_too() {
    let sandbox = scenes::edited();
    sandbox.commit_in_lane("two", "echo '*.txt text eol=crlf' >.gitattributes; seq 200 >two.txt");
    let before = State::of(&sandbox);
    dies(&sandbox, "transition.installed", &["preview", "two"]);
    assert!(sandbox.read("two.txt").starts_with("1\r\n2\r\n"));
    sandbox.sh(": >.gitattributes");
    let file = std::fs::File::options().write(true).open(sandbox.repo.join("two.txt")).unwrap();
    // A disk writes whole blocks.
    file.set_len(512).unwrap();
    recovers_after_a_start(&sandbox);
    State::of(&sandbox).is(&before, "taken back");
}

#[test]
fn what_was_written_over_what_a_command_wrote_is_kept() {
    // Also where a person took something off its end.
    for mine in ["mine\n", "changed\nand more\n", "chan"] {
        let sandbox = scenes::dirty();
        dies(&sandbox, "transition.installed", &["preview", "one"]);
        sandbox.write("shared.txt", mine);
        recovers_after_a_start(&sandbox);
        let kept = ids(&sandbox).iter().any(|id| {
            let shown = sandbox.git(&["show", &format!("refs/proq/snap/{id}:shared.txt")]);
            shown == mine.trim_end()
        });
        assert!(kept || sandbox.read("shared.txt") == mine, "{mine:?} is nowhere");
    }
}

/// Nothing but a power cut leaves a beginning, so a file that was emptied while the machine ran was emptied by somebody.
#[test]
fn a_file_that_was_emptied_after_a_kill_is_kept_empty() {
    let sandbox = scenes::dirty();
    dies(&sandbox, "transition.installed", &["preview", "one"]);
    sandbox.write("shared.txt", "");
    let _ = sandbox.proq(&["list"]).ok();
    let is_kept = ids(&sandbox).iter().any(|id| {
        let there = format!("refs/proq/snap/{id}:shared.txt");
        sandbox.git(&["cat-file", "-s", &there]) == "0"
    });
    assert!(is_kept || sandbox.read("shared.txt").is_empty(), "the empty file is nowhere");
}

/// Also in the step that was under way, where what git was writing has to be told from what somebody wrote.
#[test]
fn a_file_that_was_shortened_after_a_kill_is_kept_so() {
    for at in ["transition.brought", "transition.staged"] {
        let sandbox = scenes::two_lanes();
        sandbox.commit_in_lane("two", "seq 300 >long.txt; git commit -qam long");
        sandbox.write("mine.txt", "mine\n");
        dies(&sandbox, at, &["preview", "two"]);
        let long = sandbox.read("long.txt");
        let short: String = long.split_inclusive('\n').take(100).collect();
        assert_ne!(short, long, "{at}: nothing was brought yet");
        sandbox.write("long.txt", &short);
        let _ = sandbox.proq(&["list"]).ok();
        std::fs::write(sandbox.root().join("short"), &short).unwrap();
        let kept = sandbox
            .sh("for ref in $(git for-each-ref --format='%(refname)' refs/proq/saved refs/proq/snap); do
                 git show $ref:long.txt 2>/dev/null | cmp -s - ../short && echo kept; done; true");
        assert!(kept.contains("kept") || sandbox.read("long.txt") == short, "{at}: it is nowhere");
    }
}

#[test]
fn a_file_that_was_shortened_in_a_lane_that_was_being_made_is_kept() {
    let sandbox = scenes::clean();
    sandbox.sh("seq 300 >long.txt; git commit -qam long");
    dies(&sandbox, "worktree.added", &["spawn", "--empty", "-n", "new"]);
    sandbox.sh("head -100 long.txt >.proq-worktrees/new/long.txt");
    let _ = sandbox.proq(&["list"]).ok();
    let kept = sandbox.sh("head -100 long.txt | cmp - .git/proq/trash/*/worktree/long.txt && echo kept");
    assert_eq!(kept.trim(), "kept");
}

#[test]
fn a_beginning_of_what_a_restore_was_bringing_is_nobodys_file() {
    let sandbox = scenes::dirty();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    let id = ids(&sandbox)[0].clone();
    sandbox.sh("git reset -q --hard; git clean -qfd");
    let before = State::of(&sandbox);
    dies(&sandbox, "restore.given", &["snap", "restore", &id]);
    sandbox.sh(": >a.txt; : >notes.txt");
    recovers_after_a_start(&sandbox);
    assert_eq!(sandbox.git(&["for-each-ref", "refs/proq/saved/"]), "");
    State::of(&sandbox).is(&before, "taken back");
}

#[test]
fn a_file_that_stands_for_a_link_is_made_whole_too() {
    let sandbox = scenes::clean();
    sandbox.lane_of("one", "echo one >one.txt");
    sandbox.sh("git config core.symlinks false; rm link; git checkout -q -- link; printf b.txt >link");
    let before = State::of(&sandbox);
    dies(&sandbox, "transition.installed", &["preview", "one"]);
    assert_eq!(sandbox.read("link"), "a.txt");
    sandbox.sh(": >link");
    recovers_after_a_start(&sandbox);
    State::of(&sandbox).is(&before, "taken back");
}

#[test]
fn a_beginning_of_what_a_snapshot_brought_is_nobodys_change_either() {
    for onto in ["", "echo moved >long.txt; git commit -qam moved"] {
        // How many snapshots there are without a cut: of what was merged, one is kept.
        let snapshots = ["", ": >a.txt; : >b.txt; : >notes.txt; : >'new dir/with space.txt'"].map(|cut| {
            let sandbox = scenes::dirty();
            let _ = sandbox.proq(&["preview", "one"]).ok();
            let _ = sandbox.proq(&["preview", "--back"]).ok();
            let id = ids(&sandbox)[0].clone();
            sandbox.sh("git reset -q --hard; git clean -qfd");
            sandbox.sh(onto);
            let before = State::of(&sandbox);
            dies(&sandbox, "restore.installed", &["snap", "restore", &id]);
            assert_eq!(sandbox.read("notes.txt"), "notes\n");
            sandbox.sh(cut);
            recovers_after_a_start(&sandbox);
            State::of(&sandbox).is(&before, &format!("{onto}, {cut}"));
            ids(&sandbox).len()
        });
        assert_eq!(snapshots[0], snapshots[1], "{onto}");
    }
}
