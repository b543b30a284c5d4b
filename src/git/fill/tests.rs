//! Owns the tests of filling worktrees: beside git, for whatever a repository may hold and its main checkout look like.

mod kept;

use std::cell::{Cell, RefCell};
use std::os::unix::fs::MetadataExt;

use proptest::prelude::*;
use proptest::sample::select;

use super::super::place::Place;
use super::super::{Head, Oid};
use super::*;

/// A repository with files of every kind, and its first commit; the year its files are of, and what is known of its blobs.
struct Scene(Place, Cell<u32>, RefCell<Sizes>);

const FIRST: &str = "
    mkdir -p d/e/f a-b bin
    for n in 1 2 3 4 5; do seq $n 40 >d/n$n.txt; seq $n 9 >d/e/n$n.c; done
    printf 'one\\r\\ntwo\\r\\n' >d/crlf.txt; printf 'x $Id$ y\\n' >d/e/id.c; : >empty; printf 'no end' >d/e/f/end
    echo '#!/bin/sh' >bin/run; chmod +x bin/run; ln -s d/n1.txt link; ln -s nowhere d/e/broken; ln -s ../bin d/bin
    echo a >a; echo ab >a-b/x; echo a.b >a.b; printf 'gr\\303\\274n' >'d/gr\\303\\274n'; echo t >'with space'
    head -c 300000 /dev/zero >bin/long; git add -A; git commit -qm first; git status >/dev/null";

impl Scene {
    fn new() -> Scene {
        let place = Place::new();
        place.sh("repo", FIRST);
        // From the next second on, git knows what it has written.
        let scene = Scene(place, Cell::new(2000), RefCell::default());
        scene.settle();
        scene
    }

    /// Makes the index of the main checkout one that is younger than all files, each of which it has looked at.
    fn settle(&self) {
        // Another time each time: git compares by the second, and would not note what else has changed.
        self.1.set(self.1.get() + 1);
        let touch = format!("find . -path ./.git -prune -o -exec touch -h -d {}-01-01 {{}} +", self.1.get());
        self.sh(&format!("{touch}; git update-index -q --refresh || true"));
    }

    fn sh(&self, script: &str) -> String {
        self.0.sh("repo", script)
    }

    /// Fills worktrees of these names, at HEAD of the main checkout.
    fn fill(&self, names: &[&str]) -> Filled {
        let repo = Repo::discover(&self.0.top.join("repo")).unwrap();
        let commit = Oid::from_hex(self.sh("git rev-parse HEAD").as_bytes()).unwrap();
        let dirs: Vec<PathBuf> = names.iter().map(|name| self.0.top.join(name)).collect();
        for dir in &dirs {
            repo.add_worktree(dir, &Head::Detached(commit)).unwrap();
        }
        let dirs: Vec<&Path> = dirs.iter().map(PathBuf::as_path).collect();
        let filled = repo.fill_worktrees(&dirs, commit, &mut self.2.borrow_mut(), &|| true, &|_| ()).unwrap();
        if filled.unchanged.is_some() {
            // Where attributes ask for other line ends than HEAD has, git calls a file changed that has HEAD's bytes.
            let changed = "git status --porcelain -uno | while read -r how file; do
                [ \"$how $(git hash-object --no-filters \"$file\")\" = \"M $(git rev-parse HEAD:\"$file\")\" ] || echo $how $file
            done; git diff --summary HEAD";
            assert_eq!(self.sh(changed), "");
        }
        filled
    }

    /// Files with their kinds, modes and contents, the index without times, and what git says.
    fn state(&self, name: &str) -> String {
        // What git thinks of a file that is as young as the index depends on the clock: all of them are looked into.
        // That needs a time which no file had before: git compares the other one, of the change, by the second only.
        let script = "find . -path ./.git -prune -o -printf '%p %y %m %l\n' | sort
            find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 sha1sum
            git ls-files -s -t -v; git ls-files --debug | grep flags
            find . -path ./.git -prune -o -exec touch -h -d 1999-01-01 {} +
            git status --porcelain=v2; git diff --stat; git rev-parse HEAD:";
        self.0.sh(name, script)
    }

    fn assert_as_git(&self, names: &[&str], why: &str) {
        self.sh("git worktree add -q --detach ../git");
        let theirs = self.state("git");
        for name in names {
            assert_eq!(self.state(name), theirs, "{why}");
        }
        self.sh("git worktree remove --force ../git");
    }
}

#[test]
fn a_worktree_is_copied_and_nothing_is_read_again() {
    let scene = Scene::new();
    let filled = scene.fill(&["one"]);
    let files: usize = scene.sh("git ls-files | wc -l").parse().unwrap();
    let unchanged = Some(scene.0.top.join("repo"));
    assert_eq!(filled, Filled { copied: files, written: 0, by_git: None, unchanged });
    let place = |dir: &str, file: &str| std::fs::metadata(scene.0.top.join(dir).join(file)).unwrap();
    assert_eq!(place("one", "d/n1.txt").mtime(), place("repo", "d/n1.txt").mtime());
    assert_ne!(place("one", "d/n1.txt").ino(), place("repo", "d/n1.txt").ino());
    // A status that has to write would have read something again.
    let index = scene.0.top.join("repo/.git/worktrees/one/index");
    let before = std::fs::metadata(&index).unwrap().ino();
    assert_eq!(scene.0.sh("one", "git status --porcelain"), "");
    assert_eq!(std::fs::metadata(&index).unwrap().ino(), before);
    scene.assert_as_git(&["one"], "plain");
    scene.sh("git fsck --strict");
}

#[test]
fn a_checkout_whose_files_are_as_young_as_its_index_is_seen_to_be_unchanged() {
    let young =
        "find . -path ./.git -prune -o -type f -exec touch -d 2001-01-01 {} +; git update-index -q --refresh
        touch -d 2001-01-01 .git/index";
    let is_unchanged = |deed: &str| {
        let scene = Scene::new();
        scene.sh(young);
        scene.sh(deed);
        let filled = scene.fill(&["one"]);
        assert!(filled.written > 4, "{deed}: {filled:?}");
        filled.unchanged.is_some()
    };
    assert!(is_unchanged("true"));
    let same_time = "git config core.trustctime false";
    assert!(!is_unchanged(&format!(
        "{same_time}; printf b >a; truncate -s $(git cat-file -s :a) a; touch -d 2001-01-01 a"
    )));
    assert!(!is_unchanged("rm a"));
    assert!(!is_unchanged("git rm -q --cached a; touch -d 2001-01-01 .git/index"));
}

#[test]
fn several_are_filled_at_once() {
    let scene = Scene::new();
    let filled = scene.fill(&["one", "two", "three"]);
    assert!(filled.by_git.is_none() && filled.written == 0);
    scene.assert_as_git(&["one", "two", "three"], "several");
    scene.0.sh("two", "echo more >>d/n1.txt");
    assert_eq!(scene.0.sh("three", "git status --porcelain"), "", "no file is shared");
}

#[test]
fn what_the_main_checkout_has_otherwise_is_made_of_objects() {
    for (deed, written) in [
        ("echo more >>d/n1.txt", 1),
        ("rm d/n1.txt; mkdir d/n1.txt; echo x >d/n1.txt/x", 1),
        ("rm -rf d/e; ln -s /etc d/e", 8),
        ("rm link; ln -s elsewhere link", 1),
        ("chmod +x a; chmod -x bin/run", 2),
        ("git update-index --assume-unchanged a; echo b >a", 1),
        ("git update-index --skip-worktree a; rm a", 1),
        ("echo staged >a; git add a; git rm -q --cached d/n2.txt", 2),
        ("git rm -q d/n2.txt", 1),
        (
            "echo 1 >a; git commit -qam 1; git checkout -q HEAD^; git checkout -q main; touch -d 2020-01-01 a; git update-index -q --refresh",
            0,
        ),
    ] {
        let scene = Scene::new();
        scene.sh(deed);
        let filled = scene.fill(&["one"]);
        assert_eq!((filled.written, filled.by_git), (written, None), "{deed}");
        scene.assert_as_git(&["one"], deed);
    }
}

#[test]
fn a_file_that_git_takes_for_the_same_and_is_not_is_no_source() {
    // Line ends that git took out when it was added; an `$Id$` that was written while an attribute asked for it.
    let scene = Scene::new();
    scene.sh("echo 'n1.txt text' >.gitattributes; git add .gitattributes; git commit -qm text; sed -i 's/$/\\r/' d/n1.txt; git add -A; git status --porcelain");
    scene.settle();
    assert_eq!(scene.sh("git status --porcelain"), "");
    let filled = scene.fill(&["one"]);
    assert_eq!((filled.written, filled.by_git), (1, None));
    scene.assert_as_git(&["one"], "crlf");
    let scene = Scene::new();
    scene.sh("git checkout -qb ident; echo '*.c ident' >.gitattributes; git add -A; git commit -qm ident
        rm d/e/id.c; git checkout -q -- d/e/id.c; grep -q 'Id: ' d/e/id.c; git checkout -q main; grep -q 'Id: ' d/e/id.c");
    scene.settle();
    assert_eq!(scene.fill(&["one"]).written, 1);
    scene.assert_as_git(&["one"], "ident");
}

#[test]
fn what_git_would_write_in_another_form_it_writes_itself() {
    for (deed, all) in [
        ("echo '*.txt eol=crlf' >.gitattributes", false),
        ("echo '*.c ident' >d/e/.gitattributes", false),
        (
            "echo '*.txt filter=x' >.gitattributes; git config filter.x.smudge 'tr a-z A-Z'; git config filter.x.clean 'tr A-Z a-z'",
            false,
        ),
        (
            "git config filter.x.smudge 'tr 1 2'; git config filter.x.clean cat; echo '*.txt filter=x' >.git/info/attributes",
            false,
        ),
        ("echo '*.c working-tree-encoding=UTF-16LE' >.git/info/attributes", false),
        ("git config core.autocrlf true", true),
        ("git config core.eol crlf; echo '* text=auto' >.gitattributes", true),
        ("git config core.symlinks false", true),
        ("git config core.splitIndex true", false),
        ("git config index.version 4", false),
        ("git config core.untrackedCache true", false),
        (
            "mkdir -p .git/hooks; printf '#!/bin/sh\\n' >.git/hooks/post-index-change; chmod +x .git/hooks/post-index-change",
            false,
        ),
        ("git sparse-checkout set d/e bin", false),
        ("git sparse-checkout set --no-cone '/d/' '!/d/n*'", false),
        ("git sparse-checkout set --cone --sparse-index d", true),
    ] {
        let scene = Scene::new();
        scene.sh(&format!("mkdir -p .git/info; {deed}; git add -A; git commit -qm more || true"));
        scene.settle();
        let filled = scene.fill(&["one", "two"]);
        assert!(filled.by_git.is_some(), "{deed}");
        assert_eq!(filled.copied == 0, all, "{deed}");
        scene.assert_as_git(&["one", "two"], deed);
    }
}

#[test]
fn submodules_are_left_as_git_leaves_them() {
    let scene = Scene::new();
    scene.sh("git clone -q . sub; git -c advice.addEmbeddedRepo=false add sub; git commit -qm sub");
    scene.settle();
    assert_eq!(scene.fill(&["one"]).by_git, None);
    scene.assert_as_git(&["one"], "submodule");
}

#[test]
fn without_another_checkout_or_room_git_does_all_of_it() {
    let scene = Scene::new();
    scene.sh("git clone -q --bare . ../bare; mv ../bare/* .git/ 2>/dev/null || true; git config core.bare true; rm -rf [a-z]* ");
    let repo = Repo::discover(&scene.0.top.join("repo/.git")).unwrap();
    let commit = repo.branch_tip("main").unwrap().unwrap();
    let dir = scene.0.top.join("one");
    repo.add_worktree(&dir, &Head::Detached(commit)).unwrap();
    assert!(
        repo.fill_worktrees(&[&dir], commit, &mut Sizes::default(), &|| true, &|_| ())
            .unwrap()
            .by_git
            .is_some()
    );
    assert_eq!(scene.0.sh("one", "git status --porcelain"), "");
    // Two names that would be one: what was begun is taken away, and git does it.
    let (scene, other) = (Scene::new(), scene.0.top.join("unused"));
    assert!(!other.exists());
    let repo = Repo::discover(&scene.0.top.join("repo")).unwrap();
    let commit = repo.branch_tip("main").unwrap().unwrap();
    let dir = scene.0.top.join("two");
    repo.add_worktree(&dir, &Head::Detached(commit)).unwrap();
    std::fs::write(dir.join("a"), "in the way").unwrap();
    assert!(
        repo.fill_worktrees(&[&dir], commit, &mut Sizes::default(), &|| true, &|_| ())
            .unwrap()
            .by_git
            .is_some()
    );
    scene.assert_as_git(&["two"], "taken back");
}

/// What may be in a repository and its main checkout; whether a line can be done does not matter.
const DEEDS: &[&str] = &[
    "echo \"$RANDOM\" >>d/n1.txt",
    "git commit -qam work",
    "git add -A",
    "git add -A; git commit -qm all",
    "rm -rf d/e",
    "git rm -rq d/e",
    "mv d moved",
    "git mv d moved",
    "chmod +x d/n2.txt",
    "rm -f a; ln -s d a",
    "rm -rf a-b; echo file >a-b",
    "rm -f a; mkdir a; echo in >a/b",
    "printf 'x\\r\\ny\\r\\n' >d/n3.txt",
    "echo '* text=auto' >.gitattributes",
    "echo '*.txt text eol=lf' >.gitattributes",
    "echo '*.txt eol=crlf' >.gitattributes",
    "echo '*.c ident' >d/.gitattributes",
    "printf '[attr]mine ident\\n*.c mine\\n' >.gitattributes",
    "echo 'n1.txt filter=up' >d/.gitattributes; git config filter.up.smudge 'tr a-z A-Z'; git config filter.up.clean 'tr A-Z a-z'",
    "rm -f .gitattributes d/.gitattributes",
    "git config core.autocrlf input",
    "git config core.autocrlf true",
    "git config --unset core.autocrlf",
    "git update-index --assume-unchanged d/n4.txt",
    "git update-index --skip-worktree d/n5.txt; rm d/n5.txt",
    "git update-index --split-index",
    "git update-index --index-version 4",
    "git sparse-checkout set d",
    "git sparse-checkout set --no-cone '*.txt'",
    "git sparse-checkout disable",
    "git config core.fileMode false",
    "git checkout -q HEAD~1",
    "git checkout -q main",
    "git stash -q",
    "git reset -q --hard",
    "git reset -q --soft HEAD~1",
    "mkdir -p new/deep; for n in 1 2 3; do echo $n >new/deep/$n; done",
    "printf 'b' >'d/odd\\name'; printf 'c' >'d/with\"quote'",
    "rm .git/index; git reset -q",
    "touch d/n1.txt d/n2.txt",
    "git update-index -q --refresh",
    "git pack-refs --all; git gc -q",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..Default::default() })]
    #[test]
    fn whatever_there_is_a_worktree_is_as_git_makes_it(
        deeds in proptest::collection::vec(select(DEEDS), 1..12), settled in any::<bool>(),
    ) {
        let scene = Scene::new();
        for deed in &deeds {
            scene.sh(&format!("({deed}) >/dev/null 2>&1 || true"));
        }
        if settled {
            scene.settle();
        }
        scene.fill(&["one", "two"]);
        scene.assert_as_git(&["one", "two"], &format!("{deeds:?}"));
        scene.0.sh("one", "git fsck --no-dangling");
    }
}

#[test]
fn what_is_known_of_blobs_is_no_more_than_what_is_needed() {
    let scene = Scene::new();
    scene.fill(&["one"]);
    let kept = scene.2.borrow().changed().unwrap().to_vec();
    assert_eq!(
        scene.sh("git ls-files -s | grep -v ^120000 | cut -d' ' -f2 | sort -u | wc -l"),
        (kept.len() / 16).to_string()
    );
    // What was kept serves, whatever becomes of it.
    for bytes in [kept.clone(), kept[1..].to_vec(), kept.iter().rev().copied().collect(), vec![255; 64]] {
        scene.2.replace(Sizes::read(&bytes));
        assert_eq!(scene.fill(&["two"]).written, 0);
        let same = bytes == kept;
        assert_eq!(scene.2.borrow().changed().is_none(), same, "what is known is not asked for again");
        scene.sh("git worktree remove --force ../two");
    }
    let many: Vec<u8> = (0..1000_u64).flat_map(|n| [n.to_be_bytes(); 2].concat()).collect();
    scene.2.replace(Sizes::read(&many));
    scene.fill(&["two"]);
    assert_eq!(scene.2.borrow().changed(), Some(&kept[..]));
}

#[test]
fn every_entry_is_in_one_share() {
    for entries in [0, 1, 3, 4, 5, 300, 5000, 40_000] {
        let shares = shares(entries);
        let all: Vec<usize> = shares.iter().cloned().flatten().collect();
        assert_eq!(all, (0..entries).collect::<Vec<_>>());
        assert!(shares.iter().all(|share| share.len() <= AT_ONCE));
        assert!(entries < threads() * AT_LEAST || shares.len() >= threads(), "{entries}: {shares:?}");
    }
}
