//! Tests of the worktree status walk, compared with git's own status.

use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::Repo;
use crate::base::test_repo::TestRepo;
use crate::program::command::Program;
use crate::status::stat_scan::StatScan;
use crate::status::status_query::query_git_status;
use crate::status::worktree_status::StatusEntry;

/// Fixture: a repository with a few files, one of them executable, one a symlink, one ignored, and a worktree
/// of it.
struct LaneFixture(TestRepo);

impl LaneFixture {
    fn new() -> LaneFixture {
        let test_repo = TestRepo::new();
        test_repo.run_script(
            ".",
            "cd repo
            mkdir -p d/e; echo a >a; echo b >d/b; echo c >d/e/c; echo x >d.x; echo '#!' >run; chmod +x run
            ln -s a link; printf 'out/\n*.o\n!keep.o\n' >.gitignore; git add -A; git commit -qm first
            git worktree add -q -b lane ../lane; cd ../lane; echo o >d/x.o; mkdir -p out/in; echo f >out/in/f",
        );
        LaneFixture(test_repo)
    }

    fn sh(&self, script: &str) -> String {
        self.0.run_script(".", script)
    }

    fn is_clean(&self, untracked: bool) -> bool {
        let repo = Repo::discover(&self.0.parent_dir.join("repo")).unwrap();
        let Some(scan) = StatScan::open(&repo, &self.0.parent_dir.join("lane")) else { return false };
        let clean = scan.is_clean(untracked, true);
        assert_eq!(scan.is_clean(untracked, false), clean, "in parts and as a whole");
        clean
    }

    /// Returns the listed changes at the time `now`, and the folder cache to save.
    fn list_changes(
        &self,
        folder_cache: Option<Vec<u8>>,
        now: SystemTime,
    ) -> (Option<Vec<StatusEntry>>, Option<Vec<u8>>) {
        let repo = Repo::discover(&self.0.parent_dir.join("repo")).unwrap();
        let scan = StatScan::open(&repo, &self.0.parent_dir.join("lane"));
        scan.map(|scan| scan.find_changes(folder_cache, now)).unwrap_or_default()
    }

    /// Returns the changes that git lists.
    fn git_status(&self) -> Vec<StatusEntry> {
        let program = Program::find().unwrap();
        query_git_status(&program, &self.0.parent_dir.join("lane"), true).unwrap().entries
    }
}

#[test]
fn recognizes_clean_worktree() {
    let fixture = LaneFixture::new();
    assert!(fixture.is_clean(true));
    for script in [
        "cd lane; git checkout -q --detach",
        "cd lane; touch a",
        "cd lane; echo n >new; git add -A; git commit -qm new",
        "cd lane; git update-index --split-index",
        "cd lane; rm -r out d/x.o",
        "cd lane; mkdir -p empty/folder deep; echo o >deep/y.o",
        "echo '*.log' >>repo/.git/info/exclude; echo l >lane/d/e/l.log",
    ] {
        fixture.sh(script);
        assert!(fixture.is_clean(true), "{script}");
        assert_eq!(fixture.sh("cd lane; git status --porcelain -uall"), "", "{script}");
    }
}

#[test]
fn leaves_doubtful_worktrees_to_git() {
    for (script, untracked) in [
        ("echo A >a", false),
        ("rm a", false),
        ("rm a; mkdir a", false),
        ("rm a; ln -s nowhere a", false),
        ("ln -sf b link", false),
        ("chmod +x a", false),
        ("chmod -x run", false),
        ("rm -r d; ln -s ../repo/d d", false),
        ("echo s >a; git add a", false),
        ("echo s >a; git add a; echo a >a", false),
        ("git rm -q --cached a", false),
        ("echo n >n; git add -N n", false),
        ("git update-index --assume-unchanged a; echo A >a", false),
        ("git update-index --skip-worktree a; rm a", false),
        (
            "git commit -q --allow-empty -m x; git reset -q --soft $(git commit-tree -m o $(git mktree </dev/null))",
            false,
        ),
        (
            "cd ../repo; echo 1 >a; git commit -qam 1; cd ../lane; echo 2 >a; git commit -qam 2; git merge -q main || true",
            false,
        ),
        (
            "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),sub; git commit -qm sub; mkdir sub",
            false,
        ),
        ("echo u >untracked", true),
        ("mkdir -p far/away; echo u >far/away/u", true),
        ("echo k >d/keep.o", true),
        ("git init -q nested", true),
        ("git init -q d/nested", true),
        ("mkfifo pipe", true),
        ("mv d D", true),
        ("git checkout -q --orphan unborn", false),
    ] {
        let fixture = LaneFixture::new();
        fixture.sh(&format!("cd lane; {script}"));
        assert!(!fixture.is_clean(true), "{script}");
        if !untracked {
            assert!(!fixture.is_clean(false), "{script}");
        } else if !script.starts_with("mv") {
            assert!(fixture.is_clean(false), "{script}");
        }
    }
}

/// An edit of the same length, in the clock tick in which git checked the file, leaves the times recorded in
/// the index.
#[test]
fn reads_files_as_young_as_index() {
    let fixture = LaneFixture::new();
    fixture.sh("cd lane; echo A >a");
    let index = fixture.0.parent_dir.join("repo/.git/worktrees/lane/index");
    let file = std::fs::metadata(fixture.0.parent_dir.join("lane/a")).unwrap();
    let mut bytes = std::fs::read(&index).unwrap();
    let path = bytes.windows(3).position(|w| w == b"\x01a\0").unwrap() + 1;
    let entry = path - 62;
    let stamps = [file.ctime(), file.ctime_nsec(), file.mtime(), file.mtime_nsec()];
    for (n, stamp) in stamps.into_iter().enumerate() {
        let stamp = u32::try_from(stamp).unwrap();
        bytes[entry + 4 * n..entry + 4 * n + 4].copy_from_slice(&stamp.to_be_bytes());
    }
    std::fs::write(&index, bytes).unwrap();
    let set_index_time = |seconds: i64| {
        let time = UNIX_EPOCH + Duration::from_secs(u64::try_from(file.mtime() + seconds).unwrap());
        std::fs::File::options().write(true).open(&index).unwrap().set_modified(time).unwrap();
    };
    set_index_time(0);
    assert!(!fixture.is_clean(false));
    // From the next second on, neither git-proq nor git can detect the edit.
    set_index_time(1);
    assert!(fixture.is_clean(false));
}

/// Shell scripts that a random test runs in a worktree; some may fail.
const RANDOM_SCRIPTS: &[&str] = &[
    "echo b >a",
    "printf 'a\n' >a",
    "touch -d 2001-01-01 a d/b",
    "git init -q d",
    "rm -rf d/.git; echo hi >d/.git",
    "chmod 755 a",
    "chmod 644 a run",
    "rm -f a",
    "mv d/b d/c",
    "mv d moved",
    "mv moved d",
    "rm -f link; ln -s a link",
    "rm -f link; echo a >link",
    "echo x >d/e/x.o",
    "echo x >d/e/keep.o",
    "rm -f d/e/keep.o",
    "printf '*\n!.gitignore\n' >d/e/.gitignore",
    "rm -f d/e/.gitignore",
    "printf 'new\n' >>.gitignore",
    "git checkout -q -- .gitignore",
    "mkdir -p new; echo n >new/n",
    "rm -rf new",
    "git add -A",
    "git add -N new",
    "git commit -qm work",
    "git commit -q --allow-empty -m nothing",
    "git reset -q --soft HEAD~1",
    "git reset -q HEAD~1",
    "git reset -q --hard",
    "git rm -q --cached d/e/c",
    "git stash -q",
    "git update-index --assume-unchanged a",
    "git update-index --no-assume-unchanged a",
    "git update-index --skip-worktree d/b",
    "git update-index --no-skip-worktree d/b",
    "git update-index --index-version 4",
    "git update-index --split-index",
    "git config core.fileMode false",
    "git config --unset core.fileMode",
    "git config core.autocrlf true",
    "git config --unset core.autocrlf",
    "printf 'a\r\n' >a",
    "git sparse-checkout set d",
    "git sparse-checkout disable",
    "git status >status.o",
    "echo longer >>a; echo longer >>d/e/c",
    "rm -f d/b d/e/c",
    "rm -rf d",
    "mkdir -p n/e/w n/o; echo n >n/e/w/n; echo n >n/o/x.o",
    "echo u >d/u; echo u >d.u; echo u >d/e/u",
    "rm -f d/u; echo u >d/e/v",
    "git init -q n/nested",
    "mkfifo d/pipe",
    "ln -s nowhere d/dangling",
    "touch -d 2001-01-01 d d/e .",
    "echo u >\"$(printf 'd/odd\\nname')\"",
];

/// Waits until the clock that sets file times has advanced, so that later changes get later times.
fn wait_for_next_tick() {
    let now = || rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
    let (start, mut ticks) = (now(), 0);
    let mut last = start;
    while ticks < 2 {
        std::hint::spin_loop();
        if now() != last {
            (last, ticks) = (now(), ticks + 1);
        }
    }
}

/// Returns a time at which every existing file is old.
fn one_hour_later() -> SystemTime {
    SystemTime::now() + Duration::from_hours(1)
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 24, ..Default::default() })]
    #[test]
    fn is_clean_only_where_git_finds_nothing(
        deeds in proptest::collection::vec(proptest::sample::select(RANDOM_SCRIPTS), 1..14),
    ) {
        let place = LaneFixture::new();
        for (n, deed) in deeds.iter().enumerate() {
            place.sh(&format!("cd lane; ({deed}) >../said 2>&1 || true"));
            if place.is_clean(true) {
                let status = place.sh("cd lane; git --no-optional-locks status --porcelain -uall");
                proptest::prop_assert_eq!(&status, "", "after {:?}", &deeds[..=n]);
            }
        }
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 24, ..Default::default() })]
    #[test]
    fn lists_same_changes_as_git(
        deeds in proptest::collection::vec(proptest::sample::select(RANDOM_SCRIPTS), 1..14),
    ) {
        let place = LaneFixture::new();
        let mut kept = None;
        for (n, deed) in deeds.iter().enumerate() {
            wait_for_next_tick();
            place.sh(&format!("cd lane; ({deed}) >../said 2>&1 || true"));
            // The cache of an earlier walk either holds or is not used.
            let (found, new_cache) = place.list_changes(kept.clone(), one_hour_later());
            if let Some(found) = found {
                proptest::prop_assert_eq!(found, place.git_status(), "after {:?}", &deeds[..=n]);
            }
            wait_for_next_tick();
            kept = new_cache.or(kept);
        }
    }
}

#[test]
fn lists_common_changes_without_git() {
    for (script, paths) in [
        ("true", 0),
        ("echo more >>a", 1),
        ("rm a link d/e/c", 3),
        ("rm -r d", 2),
        ("echo u >u; echo u >d/u; echo o >d/u.o", 2),
        ("mkdir -p n/e n/o; echo n >n/e/1; echo n >n/2; ln -s n n/3; echo o >n/o/x.o", 3),
        ("echo more >>d/b; rm run; echo u >0; echo l >>.gitignore", 4),
        ("rm .gitignore", 3),
        ("printf '*.o\n' >.gitignore; printf '!in/\n' >>.gitignore", 2),
        ("git commit -q --allow-empty -m more; echo more >>a", 1),
        ("git update-index --index-version 4; echo more >>a", 1),
        ("git update-index --split-index; echo more >>a", 1),
        ("git update-index --untracked-cache; git status; echo u >d/e/u", 1),
    ] {
        let fixture = LaneFixture::new();
        fixture.sh(&format!("cd lane; ({script}) >/dev/null"));
        let (found, _) = fixture.list_changes(None, SystemTime::now());
        assert_eq!(found.as_ref(), Some(&fixture.git_status()), "{script}");
        assert_eq!(found.map(|found| found.len()), Some(paths), "{script}");
    }
}

#[test]
fn leaves_uncertain_changes_to_git() {
    for script in [
        "echo A >a",
        "chmod +x a",
        "rm a; mkdir a",
        "rm a; ln -s nowhere a",
        "rm -r d; ln -s ../repo/d d",
        "rm -r d; echo d >d",
        "echo s >>a; git add a",
        "git update-index --assume-unchanged a; echo more >>a",
        "git update-index --skip-worktree d/b; rm -r d",
        "git init -q nested",
        "git init -q d/nested",
        "mkdir n; git init -q n/nested",
        "mkfifo pipe",
        "mkfifo d/pipe",
        "for n in $(seq 1001); do : >u$n; done",
        "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),sub; git commit -qm sub",
    ] {
        let fixture = LaneFixture::new();
        fixture.sh(&format!("cd lane; {script}"));
        assert_eq!(fixture.list_changes(None, SystemTime::now()).0, None, "{script}");
    }
}

#[test]
fn skips_known_folders_without_other_names() {
    let fixture = LaneFixture::new();
    wait_for_next_tick();
    fixture.sh("cd lane; rm -r out d/x.o");
    wait_for_next_tick();
    let (found, folder_cache) = fixture.list_changes(None, one_hour_later());
    assert_eq!(found, Some(Vec::new()));
    assert!(folder_cache.is_some());
    let rescan = |kept: &Option<Vec<u8>>| fixture.list_changes(kept.clone(), one_hour_later());
    assert_eq!(rescan(&folder_cache), (Some(Vec::new()), None), "nothing new is found out");
    // The cache only states that the folders hold no other names.
    fixture.sh("cd lane; echo more >>d/e/c");
    assert_eq!(rescan(&folder_cache).0.unwrap().len(), 1);
    fixture.sh("cd lane; echo c >d/e/c");
    for script in [
        "echo u >d/e/u",
        "rm d/e/u; echo u >d/u; touch -r d/e d",
        "rm d/u; mkdir d/e/u; echo u >d/e/u/u",
        "rm -r d/e/u; mv d/e/c d/e/C; mkdir d/e/c; mv d/e/C d/e/c/c",
        "mv d/e/c/c d/e/C; rmdir d/e/c; mv d/e/C d/e/c; cp -R d old; mv d new; mv old d; rm -r new; echo u >d/u",
        "mv d/e d/elsewhere; ln -s elsewhere d/e",
    ] {
        wait_for_next_tick();
        fixture.sh(&format!("cd lane; {script}"));
        let found = rescan(&folder_cache).0;
        assert!(found.as_ref().is_none_or(|found| !found.is_empty()), "{script}");
        assert!(found.is_none_or(|found| found == fixture.git_status()), "{script}");
    }
}

#[test]
fn folder_cache_is_bound_to_tree_and_time() {
    let fixture = LaneFixture::new();
    wait_for_next_tick();
    let now = SystemTime::now();
    assert_eq!(fixture.list_changes(None, now).1, None, "all of it is too young");
    let folder_cache = fixture.list_changes(None, one_hour_later()).1;
    assert!(folder_cache.is_some());
    assert_eq!(fixture.list_changes(folder_cache.clone(), one_hour_later()), (Some(Vec::new()), None));
    // The clock was set back.
    assert!(
        fixture.list_changes(folder_cache.clone(), one_hour_later() - Duration::from_mins(10)).1.is_some()
    );
    for broken in [0, 20, 60] {
        let mut bytes = folder_cache.clone().unwrap();
        bytes[broken] ^= 1;
        assert!(fixture.list_changes(Some(bytes), one_hour_later()).1.is_some(), "{broken}");
    }
    let truncated = folder_cache.as_ref().map(|bytes| bytes[..bytes.len() - 1].to_vec());
    assert!(fixture.list_changes(truncated, one_hour_later()).1.is_some());
    // A file that was removed from the tree counts as a new file.
    fixture.sh("cd lane; git rm -q --cached d/e/c; git commit -qm without");
    let found = fixture.list_changes(folder_cache, one_hour_later()).0;
    assert_eq!(found, Some(fixture.git_status()));
    assert_eq!(found.unwrap().len(), 1);
}
