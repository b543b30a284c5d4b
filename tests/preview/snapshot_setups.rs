//! Previews and snapshots in repositories with unusual git features: long-running filters, file system
//! monitors, submodules, reftable.

use proq_test_kit::snapshots::{assert_same_image, snapshot_ids};
use proq_test_kit::{Sandbox, WorktreeState};

/// Starts and ends a preview, with a `gc` in between; then discards everything and restores it from the
/// snapshot.
#[track_caller]
fn assert_restored_twice(sandbox: &Sandbox) {
    let before = WorktreeState::capture(sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "show"]).ok();
    assert_eq!(sandbox.read("a.txt").trim_end(), "lane");
    assert_eq!(sandbox.git(&["status", "--short", "--ignore-submodules=dirty"]), "");
    sandbox.sh("git reflog expire --expire=now --all; git gc -q --prune=now");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_same_image(&before, &WorktreeState::capture(sandbox, &sandbox.repo));
    sandbox.sh("git reset -q --hard; git clean -qfd");
    let id = snapshot_ids(sandbox).pop().unwrap();
    let _ = sandbox.proq(&["snap", "restore", &id]).ok();
    assert_same_image(&before, &WorktreeState::capture(sandbox, &sandbox.repo));
}

/// Filter that speaks git's protocol for long-running ones. Its clean and its smudge are the same: a rotation
/// by 13.
const PROCESS_FILTER: &str = r#"exec perl -e '
    $| = 1; binmode STDIN; binmode STDOUT;
    sub get { read(STDIN, my $n, 4) == 4 or exit 0; $n = hex $n; return undef if $n == 0; read(STDIN, my $t, $n - 4); $t }
    sub all { my @l; while (defined(my $t = get())) { push @l, $t } @l }
    sub put { printf "%04x%s", 4 + length $_[0], $_[0] }
    sub flush { print "0000" }
    all(); put("git-filter-server\n"); put("version=2\n"); flush();
    all(); put("capability=clean\n"); put("capability=smudge\n"); flush();
    while (1) {
        all(); my $t = join "", all(); $t =~ tr/a-zA-Z/n-za-mN-ZA-M/;
        put("status=success\n"); flush();
        while (length $t) { put(substr $t, 0, 60000, "") }
        flush(); flush();
    }'"#;

/// Promise: snapshots/byte-for-byte
#[test]
#[ignore = "needs perl"]
fn restores_through_long_running_filter() {
    let sandbox = Sandbox::new();
    sandbox.program("rotate", PROCESS_FILTER);
    sandbox.sh("git config filter.rot.process rotate; git config filter.rot.required true
        echo '*.rot filter=rot' > .gitattributes; echo word > w.rot; seq -f 'line %g' 1 9000 > big.rot; echo k > keep.txt");
    sandbox.commit_all("base");
    assert_eq!(sandbox.git(&["cat-file", "blob", ":w.rot"]), "jbeq", "the filter is at work");
    sandbox.lane_with_commit("show", "echo lane > a.txt; echo lane > w.rot; echo fresh > f.rot");
    assert_eq!(sandbox.git(&["cat-file", "blob", "proq/show:f.rot"]), "serfu");
    sandbox.sh("echo Mine > w.rot; echo new > n.rot; echo staged > s.rot; git add s.rot; echo later > s.rot
        sed -i 's/line 5$/five/' big.rot; git add big.rot");
    assert_restored_twice(&sandbox);
}

#[test]
fn failing_filter_leaves_everything_unchanged() {
    let sandbox = Sandbox::new();
    sandbox.sh(
        "git config filter.x.clean cat; git config filter.x.smudge cat; git config filter.x.required true
        echo '*.x filter=x' > .gitattributes; echo w > w.x",
    );
    sandbox.commit_all("base");
    sandbox.lane_with_commit("show", "echo lane > a.txt; echo lane > w.x");
    sandbox.sh("echo mine > w.x; echo mine > a.txt");
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    sandbox.git(&["config", "filter.x.clean", "false"]);
    let text = sandbox.proq(&["preview", "show"]).fails(1);
    assert!(text.contains("external filter 'false' failed"), "{text}");
    sandbox.git(&["config", "filter.x.clean", "cat"]);
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
    sandbox.git(&["config", "filter.x.smudge", "false"]);
    let _ = sandbox.proq(&["preview", "show"]).fails(1);
    sandbox.git(&["config", "filter.x.smudge", "cat"]);
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
    let _ = sandbox.proq(&["preview", "show"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
}

fn make_dirty(sandbox: &Sandbox) {
    sandbox.sh("echo k > keep.txt; mkdir sub; echo x > sub/x");
    sandbox.commit_all("base");
    sandbox.lane_with_commit("show", "echo lane > a.txt; echo lane > lane.txt; rm sub/x");
    sandbox.sh("echo s > a.txt; git add a.txt; echo u > a.txt; echo u > keep.txt; rm sub/x; echo l > loose; echo n > sub/n");
}

#[test]
fn restores_with_fsmonitor_hook() {
    let sandbox = Sandbox::new();
    // Reports that every file may have changed, which is always true.
    sandbox.program("monitor", r"printf 'token\0/\0'");
    let hook = sandbox.root().join("bin/monitor");
    sandbox.git(&["config", "core.fsmonitor", hook.to_str().unwrap()]);
    make_dirty(&sandbox);
    sandbox.sh("git update-index --fsmonitor; git status --short");
    assert_restored_twice(&sandbox);
}

#[test]
fn restores_with_builtin_fsmonitor() {
    let sandbox = Sandbox::new();
    let mut start = sandbox.command("git", &sandbox.repo);
    start.args(["fsmonitor--daemon", "start"]);
    if sandbox.output(start).code != 0 {
        // This git has none for this system; the setting may be there all the same.
        sandbox.git(&["config", "core.fsmonitor", "true"]);
        make_dirty(&sandbox);
        assert_restored_twice(&sandbox);
        return;
    }
    sandbox.git(&["config", "core.fsmonitor", "true"]);
    make_dirty(&sandbox);
    sandbox.sh("git status --short");
    assert_restored_twice(&sandbox);
    sandbox.git(&["fsmonitor--daemon", "stop"]);
}

/// Promise: snapshots/byte-for-byte
#[test]
fn restores_with_many_index_caches() {
    let sandbox = Sandbox::new();
    // Not the split index: with index.skipHash, which manyFiles sets, git itself loses entries.
    sandbox.sh(
        "git config feature.manyFiles true; git config index.version 4; git config core.preloadIndex true",
    );
    make_dirty(&sandbox);
    sandbox.sh("git update-index --untracked-cache; git status --short; echo more > sub/more");
    assert_restored_twice(&sandbox);
}

/// Promise: snapshots/byte-for-byte
#[test]
fn mixed_line_endings_are_restored_exactly() {
    let sandbox = Sandbox::new();
    sandbox.sh("printf 'a\\r\\nb\\n' > mixed.txt; printf 'a\\nb\\n' > unix.txt; printf 'a\\r\\n' > dos.txt; echo '*.bat eol=crlf' > .gitattributes; printf 'b\\n' > x.bat");
    sandbox.commit_all("base");
    // From here on, checked out files have git's line endings.
    sandbox.sh("git config core.autocrlf true; git ls-files -z | xargs -0 rm; git checkout -q .");
    sandbox.lane_with_commit("show", "printf 'lane' > a.txt; printf 'lane\\r\\n' > dos.txt; rm unix.txt");
    sandbox.sh("printf 'a\\r\\nb\\nc\\n' > mixed.txt; printf 'mine\\r\\n' > unix.txt; printf 'x\\ny\\r\\n' > new.txt; printf 'n\\r\\n' > s.txt; git add s.txt; printf 'o\\n' >> x.bat");
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "show"]).ok();
    assert_eq!(sandbox.git(&["status", "--short"]), "");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
}

#[test]
fn staged_submodule_commit_is_restored() {
    let sandbox = Sandbox::new();
    sandbox
        .sh("git init -q ../other; echo o > ../other/o; git -C ../other add o; git -C ../other commit -qm o
        git -c protocol.file.allow=always submodule --quiet add ../other mod");
    sandbox.commit_all("base");
    sandbox.lane_with_commit("show", "echo lane > a.txt");
    sandbox.sh(
        "echo more > mod/o; git -C mod commit -qam more; git add mod; echo mine > a.txt; echo dirty > mod/u",
    );
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "show"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
    let id = snapshot_ids(&sandbox).pop().unwrap();
    sandbox.sh("git reset -q --hard");
    assert_eq!(
        sandbox.git(&["status", "--short", "mod"]),
        " M mod",
        "what is checked out there is not the index's"
    );
    let _ = sandbox.proq(&["snap", "restore", &id]).ok();
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
}

#[test]
#[ignore = "needs git 2.46"]
fn snapshots_work_with_reftable() {
    let sandbox = Sandbox::new();
    assert!(sandbox.git_version() >= (2, 46), "this test needs git 2.46");
    sandbox.sh("rm -rf .git; git init -q -b main --ref-format=reftable");
    sandbox.commit_all("first");
    make_dirty(&sandbox);
    assert_restored_twice(&sandbox);
    let json = sandbox.proq(&["snap", "list", "--json"]).json();
    assert_eq!(json["snapshots"][0]["state"], "restored");
    let _ = sandbox.proq_at("2026-03-01T00:00:00Z", &["cleanup"]).ok();
    assert_eq!(snapshot_ids(&sandbox), Vec::<String>::new());
}
