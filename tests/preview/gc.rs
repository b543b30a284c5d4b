//! `git proq gc`: what is deleted at which age, what stays at any age, and what is printed.

use proq_test_kit::{Output, RepoState, Sandbox};
use serde_json::Value;

/// Returns the time `n` days after the sandbox's own.
fn day(n: u32) -> String {
    format!("2026-{:02}-{:02}T03:04:05Z", 1 + (n + 1) / 28, 1 + (n + 1) % 28)
}

/// Returns what `gc` frees at a time, as `(kind, count)`: a dry run that changes nothing, then the real run.
#[track_caller]
fn freed_kinds(sandbox: &Sandbox, time: &str) -> Vec<(String, u64)> {
    let before = state(sandbox);
    let planned = sandbox.proq_at(time, &["gc", "--dry-run", "--json"]).json();
    assert_eq!(state(sandbox), before, "a dry run");
    let done = sandbox.proq_at(time, &["gc", "--json"]).json();
    for answer in [&planned, &done] {
        let sum: u64 = freed_groups(answer).iter().map(|g| g["bytes"].as_u64().unwrap()).sum();
        assert_eq!(answer["bytes"], sum, "{answer:#}");
    }
    assert_eq!((&planned["freed"], &planned["kept"]), (&done["freed"], &done["kept"]));
    assert_eq!(
        freed_groups(&sandbox.proq_at(time, &["gc", "--json"]).json()),
        Vec::<Value>::new(),
        "done once"
    );
    let left = sandbox.repo.join(".git/proq/work").read_dir().unwrap().count();
    assert_eq!(left, 0);
    let group = |g: &Value| (g["kind"].as_str().unwrap().to_owned(), g["count"].as_u64().unwrap());
    freed_groups(&done).iter().map(group).collect()
}

fn freed_groups(answer: &Value) -> Vec<Value> {
    answer["freed"].as_array().unwrap().clone()
}

/// Returns the names of all files and refs that `gc` could delete.
fn state(sandbox: &Sandbox) -> String {
    sandbox.sh("cd .git/proq; find ops trash snaps lanes -type f | sort; git for-each-ref refs/proq")
}

fn count(sandbox: &Sandbox, folder: &str) -> usize {
    let entries = std::fs::read_dir(sandbox.repo.join(".git/proq").join(folder)).into_iter().flatten();
    entries.filter(|e| !e.as_ref().unwrap().file_name().to_string_lossy().starts_with('.')).count()
}

fn saved_refs(sandbox: &Sandbox) -> Vec<String> {
    let refs = sandbox.git(&["for-each-ref", "--format=%(refname)", "refs/proq/saved/"]);
    refs.lines().map(ToOwned::to_owned).collect()
}

/// Returns a sandbox with a landed lane, a lane that was discarded with work in it, and a preview that has
/// ended.
fn used_sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    for lane in ["landed", "thrown", "shown"] {
        sandbox.lane_with_commit(lane, &format!("echo {lane} > {lane}"));
    }
    let _ = sandbox.proq(&["merge", "landed"]).ok();
    let _ = sandbox.proq(&["discard", "--force", "thrown"]).ok();
    sandbox.sh("echo mine > a.txt");
    let _ = sandbox.proq(&["preview", "shown"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox
}

/// Shell expression for the first saved ref; output of the program has its ids masked.
fn first_saved_ref() -> &'static str {
    "$(git for-each-ref --format='%(refname)' refs/proq/saved/ | head -1)"
}

fn kind_counts(kinds: &[(&str, u64)]) -> Vec<(String, u64)> {
    kinds.iter().map(|(kind, n)| ((*kind).to_owned(), *n)).collect()
}

#[test]
fn frees_each_kind_at_its_age() {
    let sandbox = used_sandbox();
    let ops = count(&sandbox, "ops") as u64;
    assert_eq!((saved_refs(&sandbox).len(), count(&sandbox, "trash"), count(&sandbox, "snaps")), (2, 2, 1));
    assert_eq!(freed_kinds(&sandbox, "2026-01-09T03:04:04Z"), kind_counts(&[]));
    assert_eq!(freed_kinds(&sandbox, "2026-01-09T03:04:05Z"), kind_counts(&[("trash", 2)]));
    assert_eq!(freed_kinds(&sandbox, "2026-02-01T03:04:04Z"), kind_counts(&[]));
    let rest = kind_counts(&[("snapshots", 1), ("operations", ops - 1), ("saved-refs", 1)]);
    assert_eq!(freed_kinds(&sandbox, "2026-02-01T03:04:06Z"), rest);
    let kept = saved_refs(&sandbox);
    assert!(kept.len() == 1 && kept[0].starts_with("refs/proq/saved/thrown-"), "{kept:?}");
    sandbox.assert_healthy();
    assert_eq!(sandbox.sh(&format!("git show {}:thrown", first_saved_ref())), "thrown");
}

#[test]
fn prints_freed_and_kept_by_kind() {
    let sandbox = used_sandbox();
    let plain = |out: Output| {
        let lines = format!("{}{}", out.stdout, out.stderr);
        let masked = lines.lines().map(|line| {
            let words = line
                .split(' ')
                .map(|w| if w.parse::<f64>().is_ok_and(|n| n > 10.0 || w.contains('.')) { "N" } else { w });
            words.collect::<Vec<_>>().join(" ").replace(" B", " SIZE").replace(" kB", " SIZE")
        });
        masked.collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(plain(sandbox.proq_at(&day(1), &["gc"])), @r"
    nothing has expired
    in the trash: 2 removed lanes, N SIZE; the folder of 'landed' is kept for a new lane
    hint: empty the trash for good: PROQ_TRASH_KEEP=0 git proq gc
    ");
    insta::assert_snapshot!(plain(sandbox.proq_at(&day(40), &["gc", "--dry-run"])), @r"
    would free 2 removed lanes from the trash, N SIZE
      landed-[ID] (43d old, N SIZE)
      thrown-[ID] (43d old, N SIZE)
    would free 1 snapshot restored before, N SIZE
      [ID] (43d old, N SIZE)
    would free 6 operations from the log, N SIZE
      1 (43d old, N SIZE)
      2 (43d old, N SIZE)
      3 (43d old, N SIZE)
      4 (43d old, N SIZE)
      5 (43d old, N SIZE)
      6 (43d old, N SIZE)
    would free 1 saved ref whose commits are elsewhere
      refs/proq/saved/landed-[ID] (43d old)
    kept ref refs/proq/saved/thrown-[ID]: no branch or tag has its commits; delete it: git update-ref -d refs/proq/saved/thrown-[ID]
    ");
    insta::assert_snapshot!(plain(sandbox.proq_at(&day(40), &["gc"])), @r"
    freed 2 removed lanes from the trash, N SIZE
    freed 1 snapshot restored before, N SIZE
    freed 6 operations from the log, N SIZE
    freed 1 saved ref whose commits are elsewhere
    kept ref refs/proq/saved/thrown-[ID]: no branch or tag has its commits; delete it: git update-ref -d refs/proq/saved/thrown-[ID]
    hint: free their objects in git too: git gc
    ");
}

#[test]
fn operation_log_keeps_a_suffix_and_last_entry() {
    let sandbox = used_sandbox();
    let ops = count(&sandbox, "ops");
    // The clock was ahead when the third operation finished.
    sandbox.sh("sed -i '$ s/2026-01-02/2026-03-02/' .git/proq/ops/3.jsonl");
    assert!(freed_kinds(&sandbox, &day(40)).contains(&("operations".to_owned(), 2)));
    sandbox.sh("sed -i '$ s/2026-03-02/2026-01-02/; 1 s/open/nonsense/' .git/proq/ops/3.jsonl");
    let answer = sandbox.proq_at(&day(40), &["gc", "--json"]).json();
    assert!(freed_groups(&answer).is_empty(), "{answer:#}");
    let kept = answer["kept"].as_array().unwrap().iter().find(|k| k["kind"] == "operations").unwrap();
    assert!(kept["name"] == "3" && kept["why"].as_str().unwrap().contains("3.jsonl"), "{kept:#}");
    sandbox.sh("sed -i '1 s/nonsense/open/' .git/proq/ops/3.jsonl");
    let _ = sandbox.proq_at(&day(40), &["gc"]).ok();
    assert_eq!(sandbox.sh("ls .git/proq/ops"), format!("{ops}.jsonl"));
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "next"]).ok();
    assert_eq!(sandbox.sh("ls .git/proq/ops | sort -n"), format!("{ops}.jsonl\n{}.jsonl", ops + 1));
}

#[test]
fn operation_is_freed_with_its_refs() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("x", "echo x > x");
    let _ = sandbox.proq(&["merge", "--no-cleanup", "x"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    let refs = || sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/op/"]);
    let kept = refs();
    assert_eq!(kept.lines().count(), 1, "the landing, which nothing else has");
    assert_eq!(freed_kinds(&sandbox, &day(40)), kind_counts(&[("operations", 2)]));
    assert_eq!(refs(), kept, "the undo is the last operation, and stays");
    let _ = sandbox.proq_at(&day(40), &["op", "redo"]).ok();
    let _ = sandbox.proq_at(&day(80), &["gc"]).ok();
    assert!(!refs().contains(&kept), "{}", refs());
    sandbox.assert_healthy();
}

#[test]
fn cleanup_and_merge_free_old_operations() {
    for command in [&["cleanup"][..], &["merge", "shown"]] {
        let sandbox = used_sandbox();
        sandbox.sh("git checkout -q a.txt");
        let last = count(&sandbox, "ops");
        let _ = sandbox.proq_at(&day(20), command).ok();
        assert!(sandbox.repo.join(".git/proq/ops/1.jsonl").exists());
        let _ = sandbox.proq_at(&day(40), &["spawn", "--empty", "-n", "late"]).ok();
        sandbox.commit_in_lane("late", "echo l > late");
        let _ = sandbox.proq_at(&day(40), &["merge", "late"]).ok();
        let _ = sandbox.proq_at(&day(40), &["cleanup"]).ok();
        assert!(!sandbox.repo.join(format!(".git/proq/ops/{last}.jsonl")).exists());
        assert!(count(&sandbox, "ops") >= 2);
    }
}

/// Promise: snapshots/clock-jump
#[test]
fn clock_jump_frees_nothing() {
    let sandbox = used_sandbox();
    let before = state(&sandbox);
    assert_eq!(freed_kinds(&sandbox, "2020-01-01T00:00:00Z"), kind_counts(&[]));
    let _ = sandbox.proq_at("2020-01-01T00:00:00Z", &["cleanup"]).ok();
    assert_eq!(state(&sandbox), before);
}

#[test]
fn keeps_saved_ref_until_its_commits_are_elsewhere() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("x", "echo 1 > one");
    sandbox.write_in(&sandbox.lane_path("x"), "draft", "d");
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    let parent = |n: u32| sandbox.sh(&format!("git rev-parse {}^{n}", first_saved_ref()));
    let (tip, work) = (parent(1), parent(2));
    let kept = |sandbox: &Sandbox| {
        let _ = sandbox.proq_at(&day(40), &["gc"]).ok();
        saved_refs(sandbox).len() == 1
    };
    assert!(kept(&sandbox));
    // The saved ref joins the lane's tip and its uncommitted work.
    sandbox.git(&["branch", "tip", &tip]);
    assert!(kept(&sandbox), "the uncommitted work is nowhere else");
    sandbox.git(&["branch", "work", &work]);
    sandbox.git(&["branch", "-D", "tip"]);
    assert!(!kept(&sandbox), "the work was made on the tip");

    // An amended commit on top of an existing one counts as separate work, whatever its tree.
    sandbox.git(&["update-ref", "refs/proq/saved/y-20260102-030405-1-0", "HEAD"]);
    let tree = sandbox.git(&["rev-parse", "HEAD^{tree}"]);
    let empty = sandbox.git(&["commit-tree", "-p", "HEAD", "-m", "notes", &tree]);
    sandbox.git(&["update-ref", "refs/proq/saved/z-20260102-030405-1-0", &empty]);
    sandbox.git(&["update-ref", "refs/proq/saved/odd", "HEAD"]);
    sandbox.git(&["update-ref", "refs/stash", &empty]);
    let answer = sandbox.proq_at(&day(40), &["gc", "--json"]).json();
    assert_eq!(saved_refs(&sandbox), ["refs/proq/saved/odd", "refs/proq/saved/z-[ID]"], "{answer:#}");
    let helps: Vec<&str> =
        answer["kept"].as_array().unwrap().iter().filter_map(|k| k["help"].as_str()).collect();
    assert_eq!(helps, ["git update-ref -d refs/proq/saved/odd", "git update-ref -d refs/proq/saved/z-[ID]"]);
}

#[test]
fn kept_trash_keeps_its_saved_refs() {
    let sandbox = used_sandbox();
    sandbox.git(&["config", "proq.trash.keep", "60"]);
    let _ = sandbox.proq_at(&day(40), &["gc"]).ok();
    assert_eq!((saved_refs(&sandbox).len(), count(&sandbox, "trash")), (2, 2));
    sandbox.assert_healthy();
    let _ = sandbox.proq_at(&day(61), &["gc"]).ok();
    assert_eq!((saved_refs(&sandbox).len(), count(&sandbox, "trash")), (1, 0));
}

#[test]
fn keeps_and_names_unreadable_records() {
    let sandbox = used_sandbox();
    sandbox
        .sh("for f in .git/proq/trash/*/trash.toml .git/proq/snaps/*/snap.toml; do echo broken > $f; done");
    let out = sandbox.proq_at(&day(40), &["gc"]);
    assert_eq!(out.code, 0, "{out:?}");
    assert_eq!((count(&sandbox, "trash"), count(&sandbox, "snaps")), (2, 1));
    for expected in ["kept trash landed-", "kept trash thrown-", "kept snapshot [ID]"] {
        assert!(out.stderr.contains(expected), "{out:?}");
    }
    sandbox.sh("rm .git/proq/trash/landed-*/trash.toml");
    let out = sandbox.proq_at(&day(40), &["gc"]);
    assert!(out.stderr.contains("no record says when it was removed"), "{out:?}");
    assert_eq!(count(&sandbox, "trash"), 2);
}

#[test]
fn record_naming_user_folder_deletes_nothing() {
    let sandbox = used_sandbox();
    sandbox.sh("mkdir ../mine; echo m > ../mine/m; cd .git/proq/trash/thrown-*; sed -i \"s|^worktree = .*|worktree = '$ROOT/mine'|\" trash.toml");
    let out = sandbox.proq_at(&day(40), &["gc"]);
    assert!(out.stderr.contains("which git-proq did not create"), "{out:?}");
    assert_eq!(sandbox.sh("cat ../mine/m"), "m");
}

#[test]
fn frees_trash_of_moved_repository() {
    let sandbox = used_sandbox();
    let _ = sandbox.proq_at(&day(40), &["gc", "--dry-run"]).ok();
    sandbox.sh("cp -a ../repo ../moved");
    let mut command = sandbox.proq_command(&sandbox.root().join("moved"), &["gc"]);
    command.env("PROQ_TEST_NOW", day(40));
    let _ = sandbox.output(command).ok();
    assert_eq!(sandbox.sh("ls ../moved/.git/proq/trash"), "");
    assert_eq!(count(&sandbox, "trash"), 2);
    assert_eq!(sandbox.sh("cat .git/proq/trash/*/worktree/thrown"), "thrown");
}

#[test]
fn frees_temp_files_of_crashed_processes_after_a_day() {
    let sandbox = used_sandbox();
    let lane = ".git/proq/lanes/shown";
    let own_pid = std::process::id();
    for name in ["20260102-030405-4999999-0", &format!("20260102-030405-{own_pid}-0"), "other"] {
        sandbox.write(&format!("{lane}/.lane.toml.{name}"), "half");
    }
    sandbox.sh("mkdir -p .git/proq/snaps/20260102-030405-4999999-7/files");
    sandbox.sh("mkdir -p .git/proq/trash/x-20260102-030405-4999999-8/worktree");
    assert_eq!(freed_kinds(&sandbox, "2026-01-03T03:04:04Z"), kind_counts(&[]));
    assert_eq!(freed_kinds(&sandbox, "2026-01-03T03:04:05Z"), kind_counts(&[("drafts", 3)]));
    let left = sandbox.sh(&format!("cat {lane}/.lane.toml.*"));
    assert_eq!(left, "halfhalf", "of a living process, and of nobody knows whom");
}

#[test]
fn counts_disk_size_without_following_links() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    sandbox.sh("head -c 3000000 /dev/zero | tr '\\0' x > ../big");
    sandbox
        .sh_in(&sandbox.lane_path("x"), "ln -s $ROOT/big link; head -c 1000000 /dev/zero | tr '\\0' x > own");
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    let answer = sandbox.proq_at(&day(10), &["gc", "--json"]).json();
    let bytes = answer["freed"][0]["bytes"].as_u64().unwrap();
    assert!((1_000_000..2_000_000).contains(&bytes), "{answer:#}");
    assert!(sandbox.root().join("big").exists());
}

#[test]
fn frees_orphaned_operation_refs_at_their_age() {
    let sandbox = used_sandbox();
    let kept = sandbox.git(&["rev-parse", "HEAD"]);
    let orphaned = "refs/proq/op/20260102-030405-4711-0-1";
    let nameless = "refs/proq/op/mine";
    sandbox.sh(&format!("git update-ref {orphaned} {kept}; git update-ref {nameless} {kept}"));
    let running_operation = sandbox.repo.join(".git/proq/aside-x");
    std::fs::create_dir(&running_operation).unwrap();
    let owned = "refs/proq/op/20260102-030405-4712-0-1";
    sandbox.git(&["update-ref", owned, &kept]);
    let log = sandbox.repo.join(".git/proq/ops");
    let first = std::fs::read_dir(log).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(first).unwrap();
    let header = text.lines().next().unwrap();
    let id = header.split("\"id\":\"").nth(1).unwrap().split('"').next().unwrap();
    std::fs::write(
        running_operation.join("journal"),
        format!("{}\n", header.replace(id, "20260102-030405-4712-0")),
    )
    .unwrap();
    let list = ["for-each-ref", "--format=%(refname)", "refs/proq/op/"];
    let refs = || String::from_utf8(sandbox.git_bytes(&sandbox.repo, &list)).unwrap();
    assert!(!freed_kinds(&sandbox, &day(20)).iter().any(|(kind, _)| kind == "operation-refs"));
    assert!(refs().contains(orphaned), "{}", refs());
    assert!(freed_kinds(&sandbox, &day(31)).contains(&("operation-refs".to_owned(), 1)));
    assert!(!refs().contains(orphaned), "{}", refs());
    assert!(refs().contains(nameless) && refs().contains(owned), "{}", refs());
}

/// Promise: preview/commit-on-no-branch
#[test]
fn gc_keeps_commit_on_no_branch_that_preview_returns_to() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo one > one.txt");
    sandbox.lane_with_commit("two", "echo two > two.txt");
    sandbox.sh("git checkout -q --detach; echo own > own.txt; git add own.txt; git commit -qm own");
    let own = sandbox.git(&["rev-parse", "HEAD"]);
    let state = RepoState::capture(&sandbox);
    let assert_kept = |done: &str| {
        sandbox.sh("git reflog expire --expire=now --all; git gc -q --prune=now");
        assert_eq!(sandbox.git(&["cat-file", "-t", &own]), "commit", "{done}");
        sandbox.assert_healthy();
    };
    let origin_refs = || sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/preview/"]);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    assert_kept("entered");
    let _ = sandbox.proq(&["preview", "two"]).ok();
    assert_kept("another lane");
    let _ = sandbox.proq(&["undo"]).ok();
    assert_kept("undone");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    state.assert_same(&RepoState::capture(&sandbox), "back");
    assert_eq!(origin_refs(), "");
    let _ = sandbox.proq(&["undo"]).ok();
    assert_kept("shown again");
    let _ = sandbox.proq(&["undo", "3"]).ok();
    state.assert_same(&RepoState::capture(&sandbox), "never entered");
    assert_eq!(origin_refs(), "");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.git(&["switch", "-q", "--detach", &own]);
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!((sandbox.git(&["rev-parse", "HEAD"]), origin_refs()), (own, String::new()));
    sandbox.assert_healthy();
}
