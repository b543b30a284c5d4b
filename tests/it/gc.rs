//! Owns the tests of `git proq gc`: what goes at which age, what stays whatever its age, and what is said of it.

use serde_json::Value;

use super::support::{Output, Sandbox};

/// A day after the sandbox's own.
fn day(n: u32) -> String {
    format!("2026-{:02}-{:02}T03:04:05Z", 1 + (n + 1) / 28, 1 + (n + 1) % 28)
}

/// What goes at a time, as `(kind, count)`, by a dry run that changes nothing and then in earnest.
#[track_caller]
fn goes(sandbox: &Sandbox, time: &str) -> Vec<(String, u64)> {
    let before = state(sandbox);
    let planned = sandbox.proq_at(time, &["gc", "--dry-run", "--json"]).json();
    assert_eq!(state(sandbox), before, "a dry run");
    let done = sandbox.proq_at(time, &["gc", "--json"]).json();
    for answer in [&planned, &done] {
        let sum: u64 = groups(answer).iter().map(|g| g["bytes"].as_u64().unwrap()).sum();
        assert_eq!(answer["bytes"], sum, "{answer:#}");
    }
    assert_eq!((&planned["freed"], &planned["kept"]), (&done["freed"], &done["kept"]));
    assert_eq!(groups(&sandbox.proq_at(time, &["gc", "--json"]).json()), Vec::<Value>::new(), "done once");
    let left = sandbox.repo.join(".git/proq/work").read_dir().unwrap().count();
    assert_eq!(left, 0);
    let group = |g: &Value| (g["kind"].as_str().unwrap().to_owned(), g["count"].as_u64().unwrap());
    groups(&done).iter().map(group).collect()
}

fn groups(answer: &Value) -> Vec<Value> {
    answer["freed"].as_array().unwrap().clone()
}

/// Everything that could go.
fn state(sandbox: &Sandbox) -> String {
    sandbox.sh("cd .git/proq; find ops trash snaps lanes -type f | sort; git for-each-ref refs/proq")
}

fn count(sandbox: &Sandbox, what: &str) -> usize {
    let entries = std::fs::read_dir(sandbox.repo.join(".git/proq").join(what)).into_iter().flatten();
    entries.filter(|e| !e.as_ref().unwrap().file_name().to_string_lossy().starts_with('.')).count()
}

fn saved(sandbox: &Sandbox) -> Vec<String> {
    let refs = sandbox.git(&["for-each-ref", "--format=%(refname)", "refs/proq/saved/"]);
    refs.lines().map(ToOwned::to_owned).collect()
}

/// A lane that landed, one that was discarded with work in it, and a preview that is over.
fn used() -> Sandbox {
    let sandbox = Sandbox::new();
    for lane in ["landed", "thrown", "shown"] {
        sandbox.lane_of(lane, &format!("echo {lane} > {lane}"));
    }
    let _ = sandbox.proq(&["merge", "landed"]).ok();
    let _ = sandbox.proq(&["discard", "--force", "thrown"]).ok();
    sandbox.sh("echo mine > a.txt");
    let _ = sandbox.proq(&["preview", "shown"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox
}

/// The same as words of a script: what is read from the program has no ids.
fn first_saved() -> &'static str {
    "$(git for-each-ref --format='%(refname)' refs/proq/saved/ | head -1)"
}

fn of(kinds: &[(&str, u64)]) -> Vec<(String, u64)> {
    kinds.iter().map(|(kind, n)| ((*kind).to_owned(), *n)).collect()
}

#[test]
fn each_kind_goes_when_it_is_old_and_not_before() {
    let sandbox = used();
    let ops = count(&sandbox, "ops") as u64;
    assert_eq!((saved(&sandbox).len(), count(&sandbox, "trash"), count(&sandbox, "snaps")), (2, 2, 1));
    assert_eq!(goes(&sandbox, "2026-01-09T03:04:04Z"), of(&[]));
    assert_eq!(goes(&sandbox, "2026-01-09T03:04:05Z"), of(&[("trash", 2)]));
    assert_eq!(goes(&sandbox, "2026-02-01T03:04:04Z"), of(&[]));
    let rest = of(&[("snapshots", 1), ("operations", ops - 1), ("saved-refs", 1)]);
    assert_eq!(goes(&sandbox, "2026-02-01T03:04:06Z"), rest);
    let kept = saved(&sandbox);
    assert!(kept.len() == 1 && kept[0].starts_with("refs/proq/saved/thrown-"), "{kept:?}");
    sandbox.assert_healthy();
    assert_eq!(sandbox.sh(&format!("git show {}:thrown", first_saved())), "thrown");
}

#[test]
fn it_says_in_a_line_for_each_kind_what_goes_and_what_stays() {
    let sandbox = used();
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
    nothing is old enough to go
    in the trash for now: 2 removed lanes, N SIZE; the folder of 'landed' waits for a new lane
    hint: free that too, for good: PROQ_TRASH_KEEP=0 git proq gc
    ");
    insta::assert_snapshot!(plain(sandbox.proq_at(&day(40), &["gc", "--dry-run"])), @r"
    would free 2 removed lanes from the trash, N SIZE
      landed-[ID] (43d old, N SIZE)
      thrown-[ID] (43d old, N SIZE)
    would free 1 snapshot that came back, N SIZE
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
    freed 1 snapshot that came back, N SIZE
    freed 6 operations from the log, N SIZE
    freed 1 saved ref whose commits are elsewhere
    kept ref refs/proq/saved/thrown-[ID]: no branch or tag has its commits; delete it: git update-ref -d refs/proq/saved/thrown-[ID]
    hint: what git keeps of them goes with its own clean-up: git gc
    ");
}

#[test]
fn the_log_stays_a_suffix_and_its_last_operation_stays() {
    let sandbox = used();
    let ops = count(&sandbox, "ops");
    // The clock was ahead when the third ended.
    sandbox.sh("sed -i '$ s/2026-01-02/2026-03-02/' .git/proq/ops/3.jsonl");
    assert!(goes(&sandbox, &day(40)).contains(&("operations".to_owned(), 2)));
    sandbox.sh("sed -i '$ s/2026-03-02/2026-01-02/; 1 s/open/nonsense/' .git/proq/ops/3.jsonl");
    let answer = sandbox.proq_at(&day(40), &["gc", "--json"]).json();
    assert!(groups(&answer).is_empty(), "{answer:#}");
    let kept = answer["kept"].as_array().unwrap().iter().find(|k| k["kind"] == "operations").unwrap();
    assert!(kept["name"] == "3" && kept["why"].as_str().unwrap().contains("3.jsonl"), "{kept:#}");
    sandbox.sh("sed -i '1 s/nonsense/open/' .git/proq/ops/3.jsonl");
    let _ = sandbox.proq_at(&day(40), &["gc"]).ok();
    assert_eq!(sandbox.sh("ls .git/proq/ops"), format!("{ops}.jsonl"));
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "next"]).ok();
    assert_eq!(sandbox.sh("ls .git/proq/ops | sort -n"), format!("{ops}.jsonl\n{}.jsonl", ops + 1));
}

#[test]
fn an_operation_goes_with_the_refs_that_keep_its_objects() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("x", "echo x > x");
    let _ = sandbox.proq(&["merge", "--no-cleanup", "x"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    let refs = || sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/op/"]);
    let kept = refs();
    assert_eq!(kept.lines().count(), 1, "the landing, which nothing else has");
    assert_eq!(goes(&sandbox, &day(40)), of(&[("operations", 2)]));
    assert_eq!(refs(), kept, "the undo is the last operation, and stays");
    let _ = sandbox.proq_at(&day(40), &["op", "redo"]).ok();
    let _ = sandbox.proq_at(&day(80), &["gc"]).ok();
    assert!(!refs().contains(&kept), "{}", refs());
    sandbox.assert_healthy();
}

#[test]
fn operations_go_with_cleanup_and_with_a_landing_too() {
    for command in [&["cleanup"][..], &["merge", "shown"]] {
        let sandbox = used();
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

#[test]
fn a_clock_that_has_jumped_makes_nothing_old() {
    let sandbox = used();
    let before = state(&sandbox);
    assert_eq!(goes(&sandbox, "2020-01-01T00:00:00Z"), of(&[]));
    let _ = sandbox.proq_at("2020-01-01T00:00:00Z", &["cleanup"]).ok();
    assert_eq!(state(&sandbox), before);
}

#[test]
fn a_saved_ref_stays_as_long_as_nothing_else_has_all_of_its_commits() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("x", "echo 1 > one");
    sandbox.write_in(&sandbox.lane("x"), "draft", "d");
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    let parent = |n: u32| sandbox.sh(&format!("git rev-parse {}^{n}", first_saved()));
    let (tip, work) = (parent(1), parent(2));
    let kept = |sandbox: &Sandbox| {
        let _ = sandbox.proq_at(&day(40), &["gc"]).ok();
        saved(sandbox).len() == 1
    };
    assert!(kept(&sandbox));
    // It ties the lane's tip and its uncommitted work together.
    sandbox.git(&["branch", "tip", &tip]);
    assert!(kept(&sandbox), "the uncommitted work is nowhere else");
    sandbox.git(&["branch", "work", &work]);
    sandbox.git(&["branch", "-D", "tip"]);
    assert!(!kept(&sandbox), "the work was made on the tip");

    // An amended commit on top of what is there is somebody's, whatever its tree.
    sandbox.git(&["update-ref", "refs/proq/saved/y-20260102-030405-1-0", "HEAD"]);
    let tree = sandbox.git(&["rev-parse", "HEAD^{tree}"]);
    let empty = sandbox.git(&["commit-tree", "-p", "HEAD", "-m", "notes", &tree]);
    sandbox.git(&["update-ref", "refs/proq/saved/z-20260102-030405-1-0", &empty]);
    sandbox.git(&["update-ref", "refs/proq/saved/odd", "HEAD"]);
    sandbox.git(&["update-ref", "refs/stash", &empty]);
    let answer = sandbox.proq_at(&day(40), &["gc", "--json"]).json();
    assert_eq!(saved(&sandbox), ["refs/proq/saved/odd", "refs/proq/saved/z-[ID]"], "{answer:#}");
    let helps: Vec<&str> =
        answer["kept"].as_array().unwrap().iter().filter_map(|k| k["help"].as_str()).collect();
    assert_eq!(helps, ["git update-ref -d refs/proq/saved/odd", "git update-ref -d refs/proq/saved/z-[ID]"]);
}

#[test]
fn what_trash_that_stays_needs_stays_too() {
    let sandbox = used();
    sandbox.git(&["config", "proq.trash.keep", "60"]);
    let _ = sandbox.proq_at(&day(40), &["gc"]).ok();
    assert_eq!((saved(&sandbox).len(), count(&sandbox, "trash")), (2, 2));
    sandbox.assert_healthy();
    let _ = sandbox.proq_at(&day(61), &["gc"]).ok();
    assert_eq!((saved(&sandbox).len(), count(&sandbox, "trash")), (1, 0));
}

#[test]
fn what_cannot_be_read_stays_and_is_named() {
    let sandbox = used();
    sandbox
        .sh("for f in .git/proq/trash/*/trash.toml .git/proq/snaps/*/snap.toml; do echo broken > $f; done");
    let out = sandbox.proq_at(&day(40), &["gc"]);
    assert_eq!(out.code, 0, "{out:?}");
    assert_eq!((count(&sandbox, "trash"), count(&sandbox, "snaps")), (2, 1));
    for what in ["kept trash landed-", "kept trash thrown-", "kept snapshot [ID]"] {
        assert!(out.stderr.contains(what), "{out:?}");
    }
    sandbox.sh("rm .git/proq/trash/landed-*/trash.toml");
    let out = sandbox.proq_at(&day(40), &["gc"]);
    assert!(out.stderr.contains("no record tells when it was removed"), "{out:?}");
    assert_eq!(count(&sandbox, "trash"), 2);
}

#[test]
fn a_record_that_names_a_folder_of_the_users_deletes_nothing() {
    let sandbox = used();
    sandbox.sh("mkdir ../mine; echo m > ../mine/m; cd .git/proq/trash/thrown-*; sed -i \"s|^worktree = .*|worktree = '$ROOT/mine'|\" trash.toml");
    let out = sandbox.proq_at(&day(40), &["gc"]);
    assert!(out.stderr.contains("which git-proq did not make"), "{out:?}");
    assert_eq!(sandbox.sh("cat ../mine/m"), "m");
}

#[test]
fn the_trash_of_a_repository_that_was_moved_goes_too() {
    let sandbox = used();
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
fn what_dead_processes_had_begun_goes_after_a_day() {
    let sandbox = used();
    let lane = ".git/proq/lanes/shown";
    let me = std::process::id();
    for name in ["20260102-030405-4999999-0", &format!("20260102-030405-{me}-0"), "other"] {
        sandbox.write(&format!("{lane}/.lane.toml.{name}"), "half");
    }
    sandbox.sh("mkdir -p .git/proq/snaps/20260102-030405-4999999-7/files");
    sandbox.sh("mkdir -p .git/proq/trash/x-20260102-030405-4999999-8/worktree");
    assert_eq!(goes(&sandbox, "2026-01-03T03:04:04Z"), of(&[]));
    assert_eq!(goes(&sandbox, "2026-01-03T03:04:05Z"), of(&[("drafts", 3)]));
    let left = sandbox.sh(&format!("cat {lane}/.lane.toml.*"));
    assert_eq!(left, "halfhalf", "of a living process, and of nobody knows whom");
}

#[test]
fn size_is_counted_on_disk_and_links_are_not_followed() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    sandbox.sh("head -c 3000000 /dev/zero | tr '\\0' x > ../big");
    sandbox.sh_in(&sandbox.lane("x"), "ln -s $ROOT/big link; head -c 1000000 /dev/zero | tr '\\0' x > own");
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    let answer = sandbox.proq_at(&day(10), &["gc", "--json"]).json();
    let bytes = answer["freed"][0]["bytes"].as_u64().unwrap();
    assert!((1_000_000..2_000_000).contains(&bytes), "{answer:#}");
    assert!(sandbox.root().join("big").exists());
}

#[test]
fn refs_of_operations_that_are_gone_go_at_the_age_of_operations() {
    let sandbox = used();
    let kept = sandbox.git(&["rev-parse", "HEAD"]);
    let gone = "refs/proq/op/20260102-030405-4711-0-1";
    let nameless = "refs/proq/op/mine";
    sandbox.sh(&format!("git update-ref {gone} {kept}; git update-ref {nameless} {kept}"));
    let at_work = sandbox.repo.join(".git/proq/aside-x");
    std::fs::create_dir(&at_work).unwrap();
    let owned = "refs/proq/op/20260102-030405-4712-0-1";
    sandbox.git(&["update-ref", owned, &kept]);
    let log = sandbox.repo.join(".git/proq/ops");
    let first = std::fs::read_dir(log).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(first).unwrap();
    let header = text.lines().next().unwrap();
    let id = header.split("\"id\":\"").nth(1).unwrap().split('"').next().unwrap();
    std::fs::write(at_work.join("journal"), format!("{}\n", header.replace(id, "20260102-030405-4712-0")))
        .unwrap();
    let list = ["for-each-ref", "--format=%(refname)", "refs/proq/op/"];
    let refs = || String::from_utf8(sandbox.raw(&sandbox.repo, &list)).unwrap();
    assert!(!goes(&sandbox, &day(20)).iter().any(|(kind, _)| kind == "operation-refs"));
    assert!(refs().contains(gone), "{}", refs());
    assert!(goes(&sandbox, &day(31)).contains(&("operation-refs".to_owned(), 1)));
    assert!(!refs().contains(gone), "{}", refs());
    assert!(refs().contains(nameless) && refs().contains(owned), "{}", refs());
}
