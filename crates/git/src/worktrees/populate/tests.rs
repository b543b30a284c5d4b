//! Tests of populating worktrees, compared with git, over many states of a repository and its main checkout.

pub mod reuse;

use std::cell::{Cell, RefCell};
use std::os::unix::fs::MetadataExt;

use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::CommitId;
use crate::base::head::Head;
use crate::base::test_repo::TestRepo;

/// Test repository with files of every kind and a first commit. Its other fields are the year given to file
/// times in the next refresh, and the known blob lengths.
struct PopulateFixture(TestRepo, Cell<u32>, RefCell<BlobSizes>);

const FIRST_COMMIT_SCRIPT: &str = "
    mkdir -p d/e/f a-b bin
    for n in 1 2 3 4 5; do seq $n 40 >d/n$n.txt; seq $n 9 >d/e/n$n.c; done
    printf 'one\\r\\ntwo\\r\\n' >d/crlf.txt; printf 'x $Id$ y\\n' >d/e/id.c; : >empty; printf 'no end' >d/e/f/end
    echo '#!/bin/sh' >bin/run; chmod +x bin/run; ln -s d/n1.txt link; ln -s nowhere d/e/broken; ln -s ../bin d/bin
    echo a >a; echo ab >a-b/x; echo a.b >a.b; printf 'gr\\303\\274n' >'d/gr\\303\\274n'; echo t >'with space'
    head -c 300000 /dev/zero >bin/long; git add -A; git commit -qm first; git status >/dev/null";

impl PopulateFixture {
    fn new() -> PopulateFixture {
        let test_repo = TestRepo::new();
        test_repo.run_script("repo", FIRST_COMMIT_SCRIPT);
        // Git trusts its own index only from the next second on.
        let fixture = PopulateFixture(test_repo, Cell::new(2000), RefCell::default());
        fixture.refresh_main_index();
        fixture
    }

    /// Sets a new time on all files of the main checkout and refreshes its index, so that the index is newer
    /// than every file.
    fn refresh_main_index(&self) {
        // Each call needs another time: git compares by the second, and would not notice other changes.
        self.1.set(self.1.get() + 1);
        let touch = format!("find . -path ./.git -prune -o -exec touch -h -d {}-01-01 {{}} +", self.1.get());
        self.sh(&format!("{touch}; git update-index -q --refresh || true"));
    }

    fn sh(&self, script: &str) -> String {
        self.0.run_script("repo", script)
    }

    /// Creates worktrees with the given folder names at HEAD of the main checkout, and populates them in
    /// process.
    fn populate(&self, names: &[&str]) -> PopulateOutcome {
        let repo = Repo::discover(&self.0.parent_dir.join("repo")).unwrap();
        let commit = CommitId::from_hex(self.sh("git rev-parse HEAD").as_bytes()).unwrap();
        let dirs: Vec<PathBuf> = names.iter().map(|name| self.0.parent_dir.join(name)).collect();
        for dir in &dirs {
            repo.add_worktree(dir, &Head::Detached(commit)).unwrap();
        }
        let dirs: Vec<&Path> = dirs.iter().map(PathBuf::as_path).collect();
        let outcome =
            repo.populate_worktrees(&dirs, commit, &mut self.2.borrow_mut(), &|| true, &|_| ()).unwrap();
        if outcome.clean_source.is_some() {
            // If attributes require other line endings than HEAD has, git reports files as changed that have
            // HEAD's bytes.
            let changed = "git status --porcelain -uno | while read -r how file; do
                [ \"$how $(git hash-object --no-filters \"$file\")\" = \"M $(git rev-parse HEAD:\"$file\")\" ] || echo $how $file
            done; git diff --summary HEAD";
            assert_eq!(self.sh(changed), "");
        }
        outcome
    }

    /// Returns one text about the worktree `name`: its files with kinds, modes and contents, its index
    /// without times, and its status.
    fn worktree_state(&self, name: &str) -> String {
        // Git's view of a file that is as new as the index depends on the clock, so all files are read. That
        // needs a time which no file had before: git compares the change time by the second only.
        let script = "find . -path ./.git -prune -o -printf '%p %y %m %l\n' | sort
            find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 sha1sum
            git ls-files -s -t -v; git ls-files --debug | grep flags
            find . -path ./.git -prune -o -exec touch -h -d 1999-01-01 {} +
            git status --porcelain=v2; git diff --stat; git rev-parse HEAD:";
        self.0.run_script(name, script)
    }

    fn assert_same_as_git(&self, names: &[&str], context: &str) {
        self.sh("git worktree add -q --detach ../git");
        let expected = self.worktree_state("git");
        for name in names {
            assert_eq!(self.worktree_state(name), expected, "{context}");
        }
        self.sh("git worktree remove --force ../git");
    }
}

#[test]
fn copies_worktree_with_fresh_index() {
    let scene = PopulateFixture::new();
    let filled = scene.populate(&["one"]);
    let files: usize = scene.sh("git ls-files | wc -l").parse().unwrap();
    let unchanged = Some(scene.0.parent_dir.join("repo"));
    assert_eq!(
        filled,
        PopulateOutcome { copied: files, written: 0, git_reason: None, clean_source: unchanged }
    );
    let metadata =
        |dir: &str, file: &str| std::fs::metadata(scene.0.parent_dir.join(dir).join(file)).unwrap();
    assert_eq!(metadata("one", "d/n1.txt").mtime(), metadata("repo", "d/n1.txt").mtime());
    assert_ne!(metadata("one", "d/n1.txt").ino(), metadata("repo", "d/n1.txt").ino());
    // A `git status` that rewrites the index would have read a file again.
    let index = scene.0.parent_dir.join("repo/.git/worktrees/one/index");
    let before = std::fs::metadata(&index).unwrap().ino();
    assert_eq!(scene.0.run_script("one", "git status --porcelain"), "");
    assert_eq!(std::fs::metadata(&index).unwrap().ino(), before);
    scene.assert_same_as_git(&["one"], "plain");
    scene.sh("git fsck --strict");
}

#[test]
fn detects_unchanged_source_with_racy_index() {
    let young =
        "find . -path ./.git -prune -o -type f -exec touch -d 2001-01-01 {} +; git update-index -q --refresh
        touch -d 2001-01-01 .git/index";
    let is_unchanged = |deed: &str| {
        let scene = PopulateFixture::new();
        scene.sh(young);
        scene.sh(deed);
        let filled = scene.populate(&["one"]);
        assert!(filled.written > 4, "{deed}: {filled:?}");
        filled.clean_source.is_some()
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
fn populates_three_worktrees_at_once() {
    let scene = PopulateFixture::new();
    let filled = scene.populate(&["one", "two", "three"]);
    assert!(filled.git_reason.is_none() && filled.written == 0);
    scene.assert_same_as_git(&["one", "two", "three"], "several");
    scene.0.run_script("two", "echo more >>d/n1.txt");
    assert_eq!(scene.0.run_script("three", "git status --porcelain"), "", "no file is shared");
}

#[test]
fn writes_files_changed_in_source_from_objects() {
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
        let scene = PopulateFixture::new();
        scene.sh(deed);
        let filled = scene.populate(&["one"]);
        assert_eq!((filled.written, filled.git_reason), (written, None), "{deed}");
        scene.assert_same_as_git(&["one"], deed);
    }
}

#[test]
fn does_not_copy_converted_files() {
    // Line endings that git removed on `git add`; an `$Id$` that was written while an attribute required it.
    let scene = PopulateFixture::new();
    scene.sh("echo 'n1.txt text' >.gitattributes; git add .gitattributes; git commit -qm text; sed -i 's/$/\\r/' d/n1.txt; git add -A; git status --porcelain");
    scene.refresh_main_index();
    assert_eq!(scene.sh("git status --porcelain"), "");
    let filled = scene.populate(&["one"]);
    assert_eq!((filled.written, filled.git_reason), (1, None));
    scene.assert_same_as_git(&["one"], "crlf");
    let scene = PopulateFixture::new();
    scene.sh("git checkout -qb ident; echo '*.c ident' >.gitattributes; git add -A; git commit -qm ident
        rm d/e/id.c; git checkout -q -- d/e/id.c; grep -q 'Id: ' d/e/id.c; git checkout -q main; grep -q 'Id: ' d/e/id.c");
    scene.refresh_main_index();
    assert_eq!(scene.populate(&["one"]).written, 1);
    scene.assert_same_as_git(&["one"], "ident");
}

#[test]
fn leaves_converted_files_to_git() {
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
        let scene = PopulateFixture::new();
        scene.sh(&format!("mkdir -p .git/info; {deed}; git add -A; git commit -qm more || true"));
        scene.refresh_main_index();
        let filled = scene.populate(&["one", "two"]);
        assert!(filled.git_reason.is_some(), "{deed}");
        assert_eq!(filled.copied == 0, all, "{deed}");
        scene.assert_same_as_git(&["one", "two"], deed);
    }
}

#[test]
fn leaves_submodule_folders_as_git_does() {
    let scene = PopulateFixture::new();
    scene.sh("git clone -q . sub; git -c advice.addEmbeddedRepo=false add sub; git commit -qm sub");
    scene.refresh_main_index();
    assert_eq!(scene.populate(&["one"]).git_reason, None);
    scene.assert_same_as_git(&["one"], "submodule");
}

#[test]
fn falls_back_to_git_without_source_checkout() {
    let scene = PopulateFixture::new();
    scene.sh("git clone -q --bare . ../bare; mv ../bare/* .git/ 2>/dev/null || true; git config core.bare true; rm -rf [a-z]* ");
    let repo = Repo::discover(&scene.0.parent_dir.join("repo/.git")).unwrap();
    let commit = repo.branch_tip("main").unwrap().unwrap();
    let dir = scene.0.parent_dir.join("one");
    repo.add_worktree(&dir, &Head::Detached(commit)).unwrap();
    assert!(
        repo.populate_worktrees(&[&dir], commit, &mut BlobSizes::default(), &|| true, &|_| ())
            .unwrap()
            .git_reason
            .is_some()
    );
    assert_eq!(scene.0.run_script("one", "git status --porcelain"), "");
    // A file is in the way: the started work is removed, and git does all of it.
    let (scene, other) = (PopulateFixture::new(), scene.0.parent_dir.join("unused"));
    assert!(!other.exists());
    let repo = Repo::discover(&scene.0.parent_dir.join("repo")).unwrap();
    let commit = repo.branch_tip("main").unwrap().unwrap();
    let dir = scene.0.parent_dir.join("two");
    repo.add_worktree(&dir, &Head::Detached(commit)).unwrap();
    std::fs::write(dir.join("a"), "in the way").unwrap();
    assert!(
        repo.populate_worktrees(&[&dir], commit, &mut BlobSizes::default(), &|| true, &|_| ())
            .unwrap()
            .git_reason
            .is_some()
    );
    scene.assert_same_as_git(&["two"], "taken back");
}

/// Scripts that change a repository or its main checkout; a failing script does not matter.
const REPO_SCRIPTS: &[&str] = &[
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
        deeds in proptest::collection::vec(select(REPO_SCRIPTS), 1..12), settled in any::<bool>(),
    ) {
        let scene = PopulateFixture::new();
        for deed in &deeds {
            scene.sh(&format!("({deed}) >/dev/null 2>&1 || true"));
        }
        if settled {
            scene.refresh_main_index();
        }
        scene.populate(&["one", "two"]);
        scene.assert_same_as_git(&["one", "two"], &format!("{deeds:?}"));
        scene.0.run_script("one", "git fsck --no-dangling");
    }
}

#[test]
fn saves_only_needed_blob_sizes() {
    let scene = PopulateFixture::new();
    scene.populate(&["one"]);
    let saved = scene.2.borrow().changed_bytes().unwrap().to_vec();
    assert_eq!(
        scene.sh("git ls-files -s | grep -v ^120000 | cut -d' ' -f2 | sort -u | wc -l"),
        (saved.len() / 16).to_string()
    );
    // The saved bytes work whatever happens to them.
    for bytes in [saved.clone(), saved[1..].to_vec(), saved.iter().rev().copied().collect(), vec![255; 64]] {
        scene.2.replace(BlobSizes::parse(&bytes));
        assert_eq!(scene.populate(&["two"]).written, 0);
        let same = bytes == saved;
        assert_eq!(scene.2.borrow().changed_bytes().is_none(), same, "what is known is not asked for again");
        scene.sh("git worktree remove --force ../two");
    }
    let many: Vec<u8> = (0..1000_u64).flat_map(|n| [n.to_be_bytes(); 2].concat()).collect();
    scene.2.replace(BlobSizes::parse(&many));
    scene.populate(&["two"]);
    assert_eq!(scene.2.borrow().changed_bytes(), Some(&saved[..]));
}

#[test]
fn puts_every_entry_into_one_chunk() {
    for entries in [0, 1, 3, 4, 5, 300, 5000, 40_000] {
        let shares = chunk_ranges(entries);
        let all: Vec<usize> = shares.iter().cloned().flatten().collect();
        assert_eq!(all, (0..entries).collect::<Vec<_>>());
        assert!(shares.iter().all(|share| share.len() <= MAX_ENTRIES_PER_CHUNK));
        assert!(
            entries < max_thread_count() * MIN_ENTRIES_PER_CHUNK || shares.len() >= max_thread_count(),
            "{entries}: {shares:?}"
        );
    }
}
