//! Tests of the in-process checkout: compared with git, and with files that change concurrently.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use fastrand::Rng;

use super::*;
use crate::CommitId;
use crate::base::test_repo::TestRepo;
use crate::checkout::transition::{AppliedChanges, REPLACED_DIR};
use crate::history::tree_diff::tree_changes;
use crate::index::index_lock::IndexLock;

/// Fixture of a checkout test: the worktree of `repo`, with hard links of its files below `held`.
struct CheckoutFixture {
    test_repo: TestRepo,
    repo: Repo,
    dir: PathBuf,
    scratch: PathBuf,
}

impl CheckoutFixture {
    fn new() -> CheckoutFixture {
        let test_repo = TestRepo::new();
        test_repo.run_script(".", "mkdir held");
        let (dir, scratch) = (test_repo.parent_dir.join("repo"), test_repo.parent_dir.join("held"));
        CheckoutFixture { repo: Repo::discover(&dir).unwrap(), test_repo, dir, scratch }
    }

    /// Returns the context of the fixture's worktree for `repo`. Each caller opens `repo` again, because its
    /// settings may have changed.
    fn worktree_context<'t>(&'t self, repo: &'t Repo) -> WorktreeContext<'t> {
        let git_dir = self.dir.join(".git");
        WorktreeContext {
            repo,
            dir: &self.dir,
            git_dir,
            scratch: &self.scratch,
            off_limits: None,
            warn: &|_| (),
        }
    }

    fn run_script(&self, dir: &str, script: &str) -> String {
        self.test_repo.run_script(dir, script)
    }

    /// Checks out `to` over `from` in the worktree as a transition would, and runs `racing_script` between
    /// linking and writing the files.
    fn run_checkout(&self, from: CommitId, to: CommitId, racing_script: &str) -> Result<bool, Error> {
        let repo = Repo::discover(&self.dir).unwrap();
        let (tree, dir, scratch) = (self.worktree_context(&repo), &self.dir, &self.scratch);
        let changes = tree_changes(&repo, from, to).unwrap();
        let index = dir.join(".git/index");
        let links = Quarantine::open(&scratch.join(to.to_string())).unwrap();
        for change in changes.iter().filter(|c| c.old.is_some()) {
            let _ = links.link_in(dir, &change.path).unwrap();
        }
        self.run_script("repo", racing_script);
        let Some(new_index) = checkout_changes(&tree, &links, &index, &changes, to.oid())? else {
            return Ok(false);
        };
        let lock = IndexLock::acquire(dir, &dir.join(".git"), scratch).unwrap();
        lock.install(new_index).unwrap();
        self.run_script("repo", &format!("git update-ref HEAD {to}"));
        Ok(true)
    }

    fn commit(&self, script: &str) -> CommitId {
        let id = self.run_script(
            "repo",
            &format!("{script}\ngit add -A; git commit -qm x --allow-empty; git rev-parse HEAD"),
        );
        CommitId::from_hex(id.as_bytes()).unwrap()
    }

    /// Returns a text dump of a worktree: files with kinds and contents, the index without times, and the
    /// index's cached trees.
    fn worktree_dump(&self, dir: &str) -> String {
        let files = "find . -path ./.git -prune -o -printf '%p %y %m\n' | sort; find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 sha1sum";
        let index = CachedTreeDump::read(self.test_repo.parent_dir.join(dir).join(".git/index"));
        format!(
            "{}\n{}\n{index}",
            self.run_script(dir, files),
            self.run_script(dir, "git ls-files -s -t -v; git status --short")
        )
    }
}

/// Dump of an index's cached trees, in their order.
struct CachedTreeDump;

impl CachedTreeDump {
    fn read(path: PathBuf) -> String {
        fn add(tree: &Cached, depth: usize, out: &mut String) {
            let name = String::from_utf8_lossy(&tree.name);
            out.push_str(&format!("{depth} {name} {} {:?}\n", tree.id, tree.num_entries));
            tree.children.iter().for_each(|child| add(child, depth + 1, out));
        }
        let kind = gix::hash::Kind::Sha1;
        let index = gix::index::File::at(path, kind, false, gix::index::decode::Options::default()).unwrap();
        let mut out = String::new();
        add(index.tree().unwrap(), 0, &mut out);
        out
    }
}

/// Returns a shell script with a few changes, the same for the same seed.
fn random_change_script(seed: u64) -> String {
    let mut rng = Rng::with_seed(seed);
    let mut out = String::new();
    for _ in 0..=rng.u64(..8) {
        let folder = ["", "a/", "a/b/", "c/", "c/d/e/", "a-b/", "z/"][rng.usize(..7)];
        let file = format!("{folder}f{}", rng.u64(..4));
        out.push_str(&match rng.u64(..6) {
            0 => format!("rm -f {file}\n"),
            1 => format!("test ! -e {file} || chmod +x {file}\n"),
            2 => format!("rm -rf ./{folder}[!.]*\n"),
            3 => format!("mkdir -p ./{folder}; printf '{}\\r\\nx\\n' > {file}\n", rng.u64(..1000)),
            _ => format!("mkdir -p ./{folder}; echo {} > {file}\n", rng.u64(..1000)),
        });
    }
    out
}

/// Promise: worktree/native-checkout
#[test]
fn writes_same_files_and_index_as_git() {
    for attributes in ["# none", "* text=auto", "* text eol=lf", "* -text\n*/f* text !eol"] {
        assert_same_result_as_git(attributes);
    }
}

fn assert_same_result_as_git(attributes: &str) {
    let fixture = CheckoutFixture::new();
    fixture
        .run_script("repo", "mkdir -p a/b; printf '1\\r\\n2\\n' > a/b/f0; git add -A; git commit -qm ends");
    let mut from = fixture.commit(&format!(
        "echo > keep; echo > a/b/f1; printf '{attributes}\n' > .gitattributes; git add --renormalize ."
    ));
    for seed in 1..=12 {
        let to = fixture.commit(&random_change_script(seed));
        fixture.run_script("repo", &format!("git reset -q --hard {from}; git status >/dev/null"));
        fixture.run_script(".", &format!("rm -rf git; cp -a repo git; cd git; git update-index -q --refresh; git read-tree -m -u {from} {to}; git update-ref HEAD {to}"));
        assert!(fixture.run_checkout(from, to, "true").unwrap(), "seed {seed} is nothing for git");
        assert_eq!(fixture.worktree_dump("repo"), fixture.worktree_dump("git"), "seed {seed}");
        from = to;
    }
    fixture.run_script("repo", "git fsck --strict");
}

/// Promise: worktree/native-checkout
#[test]
fn keeps_obstructing_files() {
    let fixture = CheckoutFixture::new();
    let from = fixture.commit("echo old > a");
    let to = fixture.commit("echo new > a; echo new > n");
    fixture.run_script("repo", &format!("git reset -q --hard {from}"));
    for script in ["echo mine > n", "mkdir -p n/empty"] {
        assert!(!fixture.run_checkout(from, to, script).unwrap(), "{script}");
        assert_eq!(fixture.run_script("repo", "cat a"), "old", "{script}");
        fixture.run_script("repo", "rm -rf n");
    }
}

/// Promise: worktree/native-checkout
#[test]
fn keeps_files_replaced_after_linking() {
    let fixture = CheckoutFixture::new();
    let from = fixture.commit("echo old > a");
    let to = fixture.commit("echo new > a; echo new > n");
    for script in ["echo mine > b; mv b a", "cp -p a b; mv b a"] {
        fixture.run_script("repo", &format!("git reset -q --hard {from}"));
        assert!(!fixture.run_checkout(from, to, script).unwrap(), "{script}");
        assert!(!fixture.run_script("repo", "ls; cat a").contains("new"), "{script}");
    }
    let links = Quarantine::open(&fixture.scratch.join("last")).unwrap();
    fixture.run_script("repo", "echo mine > a");
    assert!(
        remove_linked_file(&fixture.worktree_context(&fixture.repo), &links, &RepoPath::new("a")).is_err(),
        "also at the last moment"
    );
    assert_eq!(fixture.run_script("repo", "cat a"), "mine");
}

#[test]
fn refuses_to_overwrite_file_that_just_appeared() {
    let fixture = CheckoutFixture::new();
    let to = fixture.commit("echo new > n");
    let side = tree_changes(&fixture.repo, fixture.commit("rm n"), to).unwrap()[0].new.unwrap();
    let tree = fixture.worktree_context(&fixture.repo);
    for (script, expected) in [("echo mine > n", "mine"), ("ln -s elsewhere n", "elsewhere")] {
        fixture.run_script("repo", script);
        assert!(write_new_file(&tree, &RepoPath::new("n"), side).is_err(), "{script}");
        assert_eq!(fixture.run_script("repo", "readlink n || cat n; test ! -e elsewhere; rm n"), expected);
    }
    write_new_file(&tree, &RepoPath::new("n"), side).unwrap();
    assert_eq!(fixture.run_script("repo", "cat n"), "new");
}

/// Promise: worktree/native-checkout
#[test]
fn detects_edit_in_same_second_as_index() {
    let fixture = CheckoutFixture::new();
    let from = fixture.commit("echo one > other; echo old > a");
    let to = fixture.commit("echo new > a");
    fixture.run_script("repo", &format!("git reset -q --hard {from}; git status >/dev/null"));
    // The edit has the old length and falls into the second in which the index was written; only its content
    // differs.
    fixture.run_script("repo", "git config core.trustctime false");
    let edit = "echo two > other; touch -d '2026-01-01 00:00:00' other";
    fixture.run_script("repo", "touch -d '2026-01-01 00:00:00' other a; git update-index -q --refresh");
    fixture.run_script("repo", "touch -d '2026-01-01 00:00:00' .git/index");
    assert!(fixture.run_checkout(from, to, edit).unwrap());
    assert_eq!(fixture.run_script("repo", "git status --short"), " M other");
}

/// Promise: worktree/native-checkout
#[test]
fn leaves_unsupported_cases_to_git() {
    let cases = [
        "ln -sf keep a",
        "echo '* ident' > .gitattributes",
        "echo '* text=auto' > .git/info/attributes; git config core.eol crlf",
        "git config core.autocrlf input",
        "git config core.fileMode false",
        "git update-index --split-index",
        "git update-index --index-version 4",
        "git update-index --untracked-cache",
        "printf '#!/bin/sh\\n' > .git/hooks/post-index-change",
        "echo '* ident' > .git/info/attributes",
        "printf '[core]\\n\\tautocrlf\\n' >> .git/config",
        "git config attr.tree HEAD",
        "echo '* eol=crlf' > attributes; git config core.attributesFile attributes",
        "git config core.hooksPath hooks; mkdir -p hooks; : > hooks/post-index-change",
    ];
    for case in cases {
        let fixture = CheckoutFixture::new();
        let from = fixture.commit("mkdir -p .git/info .git/hooks; echo old > a; echo > keep");
        let to = fixture.commit(&format!("echo new > a\n{case}"));
        fixture.run_script("repo", &format!("git reset -q --hard {from}; {case}; git checkout -q -f -- a"));
        assert!(!fixture.run_checkout(from, to, "true").unwrap(), "{case}");
        assert_eq!(fixture.run_script("repo", "cat a"), "old", "{case}");
    }
}

/// Promise: worktree/appearing-files
#[test]
fn undo_keeps_concurrently_written_files() {
    for (early_edit, undo_succeeds) in [("true", true), ("echo edited >> a", false)] {
        let fixture = CheckoutFixture::new();
        let from = fixture.commit("echo old > a; echo old > b");
        let to = fixture.commit("echo new > a; echo new > b");
        fixture.run_script("repo", &format!("git reset -q --hard {from}"));
        let (repo, tree) = (&fixture.repo, fixture.worktree_context(&fixture.repo));
        let changes = tree_changes(repo, from, to).unwrap();
        let transition = AppliedChanges::open_from_scratch_folder(&tree, changes.clone(), to.oid()).unwrap();
        let links = Quarantine::open(&fixture.scratch.join(REPLACED_DIR)).unwrap();
        assert!(changes.iter().all(|change| links.link_in(&fixture.dir, &change.path).unwrap()));
        fixture.run_script("repo", &format!("{early_edit}; echo mine > c; mv c a; echo new > c; mv c b"));
        assert_eq!(transition.undo(&tree).is_ok(), undo_succeeds, "what was edited before that is kept too");
        assert_eq!(fixture.run_script("repo", "cat a b"), "mine\nold");
        assert_eq!(fixture.run_script(".", "cat held/replaced/files/a").contains("edited"), !undo_succeeds);
    }
}

/// Promise: worktree/native-checkout
#[test]
fn applies_attributes_of_removed_or_edited_file() {
    for script in ["rm .gitattributes", "echo > .gitattributes"] {
        let fixture = CheckoutFixture::new();
        let from = fixture.commit("echo '*.t eol=crlf' > .gitattributes; echo old > a.t");
        let to = fixture.commit("echo new > a.t");
        fixture.run_script("repo", &format!("git reset -q --hard {from}; {script}"));
        assert!(!fixture.run_checkout(from, to, "true").unwrap(), "{script}");
    }
}

#[test]
fn new_file_modes_follow_umask() {
    let fixture = CheckoutFixture::new();
    let from = fixture.commit("echo > keep");
    let to = fixture.commit("echo > plain; echo > run; chmod +x run");
    fixture.run_script("repo", &format!("git reset -q --hard {from}"));
    assert!(fixture.run_checkout(from, to, "true").unwrap());
    let mode = |name: &str| std::fs::metadata(fixture.dir.join(name)).unwrap().permissions().mode();
    let default_mode = mode("keep") & 0o777;
    assert_eq!(
        (mode("plain") & 0o777, mode("run") & 0o777),
        (default_mode, default_mode | (default_mode & 0o444) >> 2)
    );
    assert_eq!(std::fs::metadata(fixture.dir.join("run")).unwrap().size(), 1);
}
