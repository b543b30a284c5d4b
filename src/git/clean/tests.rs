//! Owns the tests of what a look at a worktree says, against git's own word.

use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::super::glance::Glance;
use super::super::place::Place;
use super::super::{Program, Repo, status};

/// A repository with a few files, one of them executable, one a link, one ignored, and a worktree of it.
struct Lane(Place);

impl Lane {
    fn new() -> Lane {
        let place = Place::new();
        place.sh(
            ".",
            "cd repo
            mkdir -p d/e; echo a >a; echo b >d/b; echo c >d/e/c; echo x >d.x; echo '#!' >run; chmod +x run
            ln -s a link; printf 'out/\n*.o\n!keep.o\n' >.gitignore; git add -A; git commit -qm first
            git worktree add -q -b lane ../lane; cd ../lane; echo o >d/x.o; mkdir -p out/in; echo f >out/in/f",
        );
        Lane(place)
    }

    fn sh(&self, script: &str) -> String {
        self.0.sh(".", script)
    }

    fn finds_nothing(&self, untracked: bool) -> bool {
        let repo = Repo::discover(&self.0.top.join("repo")).unwrap();
        let Some(glance) = Glance::at(&repo, &self.0.top.join("lane")) else { return false };
        let answer = glance.finds_nothing(untracked, true);
        assert_eq!(glance.finds_nothing(untracked, false), answer, "in parts and as a whole");
        answer
    }

    /// What is listed, and what is left to be kept of a look at the time `now`.
    fn finds(
        &self,
        before: Option<Vec<u8>>,
        now: SystemTime,
    ) -> (Option<Vec<status::Entry>>, Option<Vec<u8>>) {
        let repo = Repo::discover(&self.0.top.join("repo")).unwrap();
        let glance = Glance::at(&repo, &self.0.top.join("lane"));
        glance.map(|glance| glance.finds(before, now)).unwrap_or_default()
    }

    /// What git lists.
    fn by_git(&self) -> Vec<status::Entry> {
        let program = Program::find().unwrap();
        status::ask(&program, &self.0.top.join("lane"), true).unwrap().entries
    }
}

#[test]
fn a_worktree_that_is_as_its_head_is_seen_to_be_so() {
    let place = Lane::new();
    assert!(place.finds_nothing(true));
    for script in [
        "cd lane; git checkout -q --detach",
        "cd lane; touch a",
        "cd lane; echo n >new; git add -A; git commit -qm new",
        "cd lane; git update-index --split-index",
        "cd lane; rm -r out d/x.o",
        "cd lane; mkdir -p empty/folder deep; echo o >deep/y.o",
        "echo '*.log' >>repo/.git/info/exclude; echo l >lane/d/e/l.log",
    ] {
        place.sh(script);
        assert!(place.finds_nothing(true), "{script}");
        assert_eq!(place.sh("cd lane; git status --porcelain -uall"), "", "{script}");
    }
}

#[test]
fn whatever_differs_is_left_to_git() {
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
        let place = Lane::new();
        place.sh(&format!("cd lane; {script}"));
        assert!(!place.finds_nothing(true), "{script}");
        if !untracked {
            assert!(!place.finds_nothing(false), "{script}");
        } else if !script.starts_with("mv") {
            assert!(place.finds_nothing(false), "{script}");
        }
    }
}

/// An edit of the same length in the tick of the clock in which git had looked at the file leaves the times that are in
/// the index.
#[test]
fn a_file_as_young_as_the_index_is_read() {
    let place = Lane::new();
    place.sh("cd lane; echo A >a");
    let index = place.0.top.join("repo/.git/worktrees/lane/index");
    let file = std::fs::metadata(place.0.top.join("lane/a")).unwrap();
    let mut bytes = std::fs::read(&index).unwrap();
    let path = bytes.windows(3).position(|w| w == b"\x01a\0").unwrap() + 1;
    let entry = path - 62;
    let stamps = [file.ctime(), file.ctime_nsec(), file.mtime(), file.mtime_nsec()];
    for (n, stamp) in stamps.into_iter().enumerate() {
        let stamp = u32::try_from(stamp).unwrap();
        bytes[entry + 4 * n..entry + 4 * n + 4].copy_from_slice(&stamp.to_be_bytes());
    }
    std::fs::write(&index, bytes).unwrap();
    let at = |seconds: i64| {
        let time = UNIX_EPOCH + Duration::from_secs(u64::try_from(file.mtime() + seconds).unwrap());
        std::fs::File::options().write(true).open(&index).unwrap().set_modified(time).unwrap();
    };
    at(0);
    assert!(!place.finds_nothing(false));
    // From the next second on nobody can tell, git neither.
    at(1);
    assert!(place.finds_nothing(false));
}

/// What may happen in a worktree, one line of shell each; whether it can be done does not matter.
const DEEDS: &[&str] = &[
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

/// Until the clock that files get their times from has moved on: what happens next has other times than what happened before.
fn next_tick() {
    let now = || rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
    let (begin, mut ticks) = (now(), 0);
    let mut last = begin;
    while ticks < 2 {
        std::hint::spin_loop();
        if now() != last {
            (last, ticks) = (now(), ticks + 1);
        }
    }
}

/// A time at which everything that there is has been there for long.
fn later() -> SystemTime {
    SystemTime::now() + Duration::from_hours(1)
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 24, ..Default::default() })]
    #[test]
    fn nothing_is_found_only_where_git_finds_nothing(
        deeds in proptest::collection::vec(proptest::sample::select(DEEDS), 1..14),
    ) {
        let place = Lane::new();
        for (n, deed) in deeds.iter().enumerate() {
            place.sh(&format!("cd lane; ({deed}) >../said 2>&1 || true"));
            if place.finds_nothing(true) {
                let status = place.sh("cd lane; git --no-optional-locks status --porcelain -uall");
                proptest::prop_assert_eq!(&status, "", "after {:?}", &deeds[..=n]);
            }
        }
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 24, ..Default::default() })]
    #[test]
    fn what_is_listed_is_what_git_lists(
        deeds in proptest::collection::vec(proptest::sample::select(DEEDS), 1..14),
    ) {
        let place = Lane::new();
        let mut kept = None;
        for (n, deed) in deeds.iter().enumerate() {
            next_tick();
            place.sh(&format!("cd lane; ({deed}) >../said 2>&1 || true"));
            // Whatever an earlier look left: what it says of folders holds, or is not used.
            let (found, left) = place.finds(kept.clone(), later());
            if let Some(found) = found {
                proptest::prop_assert_eq!(found, place.by_git(), "after {:?}", &deeds[..=n]);
            }
            next_tick();
            kept = left.or(kept);
        }
    }
}

#[test]
fn plain_changes_are_listed_without_git() {
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
        let place = Lane::new();
        place.sh(&format!("cd lane; ({script}) >/dev/null"));
        let (found, _) = place.finds(None, SystemTime::now());
        assert_eq!(found.as_ref(), Some(&place.by_git()), "{script}");
        assert_eq!(found.map(|found| found.len()), Some(paths), "{script}");
    }
}

#[test]
fn what_only_git_can_tell_is_left_to_it() {
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
        let place = Lane::new();
        place.sh(&format!("cd lane; {script}"));
        assert_eq!(place.finds(None, SystemTime::now()).0, None, "{script}");
    }
}

#[test]
fn folders_that_had_nothing_else_are_not_read_again() {
    let place = Lane::new();
    next_tick();
    place.sh("cd lane; rm -r out d/x.o");
    next_tick();
    let (found, kept) = place.finds(None, later());
    assert_eq!(found, Some(Vec::new()));
    assert!(kept.is_some());
    let again = |kept: &Option<Vec<u8>>| place.finds(kept.clone(), later());
    assert_eq!(again(&kept), (Some(Vec::new()), None), "nothing new is found out");
    // What is known is only that they hold no other names.
    place.sh("cd lane; echo more >>d/e/c");
    assert_eq!(again(&kept).0.unwrap().len(), 1);
    place.sh("cd lane; echo c >d/e/c");
    for script in [
        "echo u >d/e/u",
        "rm d/e/u; echo u >d/u; touch -r d/e d",
        "rm d/u; mkdir d/e/u; echo u >d/e/u/u",
        "rm -r d/e/u; mv d/e/c d/e/C; mkdir d/e/c; mv d/e/C d/e/c/c",
        "mv d/e/c/c d/e/C; rmdir d/e/c; mv d/e/C d/e/c; cp -R d old; mv d new; mv old d; rm -r new; echo u >d/u",
    ] {
        next_tick();
        place.sh(&format!("cd lane; {script}"));
        let found = again(&kept).0;
        assert!(found.as_ref().is_none_or(|found| !found.is_empty()), "{script}");
        assert!(found.is_none_or(|found| found == place.by_git()), "{script}");
    }
}

#[test]
fn what_is_known_of_folders_counts_for_their_tree_and_their_time() {
    let place = Lane::new();
    next_tick();
    let now = SystemTime::now();
    assert_eq!(place.finds(None, now).1, None, "all of it is too young");
    let kept = place.finds(None, later()).1;
    assert!(kept.is_some());
    assert_eq!(place.finds(kept.clone(), later()), (Some(Vec::new()), None));
    // A clock that was set back.
    assert!(place.finds(kept.clone(), later() - Duration::from_mins(10)).1.is_some());
    for broken in [0, 20, 60] {
        let mut bytes = kept.clone().unwrap();
        bytes[broken] ^= 1;
        assert!(place.finds(Some(bytes), later()).1.is_some(), "{broken}");
    }
    let short = kept.as_ref().map(|bytes| bytes[..bytes.len() - 1].to_vec());
    assert!(place.finds(short, later()).1.is_some());
    // A file that the tree has no more is a new one now.
    place.sh("cd lane; git rm -q --cached d/e/c; git commit -qm without");
    let found = place.finds(kept, later()).0;
    assert_eq!(found, Some(place.by_git()));
    assert_eq!(found.unwrap().len(), 1);
}
