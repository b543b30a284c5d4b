//! Owns the tests of bringing files over in process: beside git, and against whoever works there at the same time.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::super::index::IndexLock;
use super::super::place::Place;
use super::super::transition::{Moved, REPLACED};
use super::super::tree_changes;
use super::*;

/// What the moves of the tests take place in: the worktree of `repo`, with its files' second names below `held`.
struct Scene {
    place: Place,
    repo: Repo,
    dir: PathBuf,
    scratch: PathBuf,
}

impl Scene {
    fn new() -> Scene {
        let place = Place::new();
        place.sh(".", "mkdir held");
        let (dir, scratch) = (place.top.join("repo"), place.top.join("held"));
        Scene { repo: Repo::discover(&dir).unwrap(), place, dir, scratch }
    }

    /// The worktree, of a repository that is opened anew: what it has in its settings may have changed.
    fn tree<'t>(&'t self, repo: &'t Repo) -> Tree<'t> {
        let git_dir = self.dir.join(".git");
        Tree { repo, dir: &self.dir, git_dir, scratch: &self.scratch, off_limits: None, warn: &|_| () }
    }

    fn sh(&self, dir: &str, script: &str) -> String {
        self.place.sh(dir, script)
    }

    /// Brings the worktree of `repo` from one commit to the other as a transition would, with `before` happening between
    /// the links and the files.
    fn bring(&self, from: Oid, to: Oid, before: &str) -> Result<bool, Error> {
        let repo = Repo::discover(&self.dir).unwrap();
        let (tree, dir, scratch) = (self.tree(&repo), &self.dir, &self.scratch);
        let changes = tree_changes(&repo, from, to).unwrap();
        let index = dir.join(".git/index");
        let held = Quarantine::at(&scratch.join(to.to_string())).unwrap();
        for change in changes.iter().filter(|c| c.old.is_some()) {
            let _ = held.link(dir, &change.path).unwrap();
        }
        self.sh("repo", before);
        let Some(made) = bring(&tree, &held, &index, &changes, to)? else { return Ok(false) };
        let lock = IndexLock::take(dir, &dir.join(".git"), scratch).unwrap();
        lock.install(made).unwrap();
        self.sh("repo", &format!("git update-ref HEAD {to}"));
        Ok(true)
    }

    fn commit(&self, script: &str) -> Oid {
        let id = self
            .sh("repo", &format!("{script}\ngit add -A; git commit -qm x --allow-empty; git rev-parse HEAD"));
        Oid::from_hex(id.as_bytes()).unwrap()
    }

    /// Files with their kinds and contents, the index without times, and what it knows of folders.
    fn state(&self, dir: &str) -> String {
        let files = "find . -path ./.git -prune -o -printf '%p %y %m\n' | sort; find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 sha1sum";
        let index = File::at(self.place.top.join(dir).join(".git/index"));
        format!(
            "{}\n{}\n{index}",
            self.sh(dir, files),
            self.sh(dir, "git ls-files -s -t -v; git status --short")
        )
    }
}

/// What an index knows of folders, in its order.
struct File;

impl File {
    fn at(path: PathBuf) -> String {
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

/// A few changes, the same for the same numbers.
fn change(seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut below = |n: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 16) % n
    };
    let mut out = String::new();
    for _ in 0..=below(8) {
        let folder = ["", "a/", "a/b/", "c/", "c/d/e/", "a-b/", "z/"][usize::try_from(below(7)).unwrap()];
        let file = format!("{folder}f{}", below(4));
        out.push_str(&match below(6) {
            0 => format!("rm -f {file}\n"),
            1 => format!("test ! -e {file} || chmod +x {file}\n"),
            2 => format!("rm -rf ./{folder}[!.]*\n"),
            3 => format!("mkdir -p ./{folder}; printf '{}\\r\\nx\\n' > {file}\n", below(1000)),
            _ => format!("mkdir -p ./{folder}; echo {} > {file}\n", below(1000)),
        });
    }
    out
}

#[test]
fn files_and_index_are_as_git_makes_them() {
    for attributes in ["# none", "* text=auto", "* text eol=lf", "* -text\n*/f* text !eol"] {
        files_are_as_git_makes_them(attributes);
    }
}

fn files_are_as_git_makes_them(attributes: &str) {
    let place = Scene::new();
    place.sh("repo", "mkdir -p a/b; printf '1\\r\\n2\\n' > a/b/f0; git add -A; git commit -qm ends");
    let mut from = place.commit(&format!(
        "echo > keep; echo > a/b/f1; printf '{attributes}\n' > .gitattributes; git add --renormalize ."
    ));
    for seed in 1..=12 {
        let to = place.commit(&change(seed));
        place.sh("repo", &format!("git reset -q --hard {from}; git status >/dev/null"));
        place.sh(".", &format!("rm -rf git; cp -a repo git; cd git; git update-index -q --refresh; git read-tree -m -u {from} {to}; git update-ref HEAD {to}"));
        assert!(place.bring(from, to, "true").unwrap(), "seed {seed} is nothing for git");
        assert_eq!(place.state("repo"), place.state("git"), "seed {seed}");
        from = to;
    }
    place.sh("repo", "git fsck --strict");
}

#[test]
fn what_somebody_puts_in_the_way_stays() {
    let place = Scene::new();
    let from = place.commit("echo old > a");
    let to = place.commit("echo new > a; echo new > n");
    place.sh("repo", &format!("git reset -q --hard {from}"));
    for act in ["echo mine > n", "mkdir -p n/empty"] {
        assert!(!place.bring(from, to, act).unwrap(), "{act}");
        assert_eq!(place.sh("repo", "cat a"), "old", "{act}");
        place.sh("repo", "rm -rf n");
    }
}

#[test]
fn a_file_that_is_not_the_one_with_the_second_name_stays() {
    let place = Scene::new();
    let from = place.commit("echo old > a");
    let to = place.commit("echo new > a; echo new > n");
    for act in ["echo mine > b; mv b a", "cp -p a b; mv b a"] {
        place.sh("repo", &format!("git reset -q --hard {from}"));
        assert!(!place.bring(from, to, act).unwrap(), "{act}");
        assert!(!place.sh("repo", "ls; cat a").contains("new"), "{act}");
    }
    let held = Quarantine::at(&place.scratch.join("last")).unwrap();
    place.sh("repo", "echo mine > a");
    assert!(remove(&place.tree(&place.repo), &held, &RepoPath::new("a")).is_err(), "also at the last moment");
    assert_eq!(place.sh("repo", "cat a"), "mine");
}

#[test]
fn a_file_that_appears_at_the_last_moment_is_not_written_to() {
    let place = Scene::new();
    let to = place.commit("echo new > n");
    let side = tree_changes(&place.repo, place.commit("rm n"), to).unwrap()[0].new.unwrap();
    let tree = place.tree(&place.repo);
    for (act, there) in [("echo mine > n", "mine"), ("ln -s elsewhere n", "elsewhere")] {
        place.sh("repo", act);
        assert!(write(&tree, &RepoPath::new("n"), side).is_err(), "{act}");
        assert_eq!(place.sh("repo", "readlink n || cat n; test ! -e elsewhere; rm n"), there);
    }
    write(&tree, &RepoPath::new("n"), side).unwrap();
    assert_eq!(place.sh("repo", "cat n"), "new");
}

#[test]
fn an_edit_of_the_same_second_is_seen_afterwards() {
    let place = Scene::new();
    let from = place.commit("echo one > other; echo old > a");
    let to = place.commit("echo new > a");
    place.sh("repo", &format!("git reset -q --hard {from}; git status >/dev/null"));
    // As long as before, in the second in which the index was written, and nothing else to tell it by.
    place.sh("repo", "git config core.trustctime false");
    let edit = "echo two > other; touch -d '2026-01-01 00:00:00' other";
    place.sh("repo", "touch -d '2026-01-01 00:00:00' other a; git update-index -q --refresh");
    place.sh("repo", "touch -d '2026-01-01 00:00:00' .git/index");
    assert!(place.bring(from, to, edit).unwrap());
    assert_eq!(place.sh("repo", "git status --short"), " M other");
}

#[test]
fn whatever_needs_more_is_left_to_git() {
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
        let place = Scene::new();
        let from = place.commit("mkdir -p .git/info .git/hooks; echo old > a; echo > keep");
        let to = place.commit(&format!("echo new > a\n{case}"));
        place.sh("repo", &format!("git reset -q --hard {from}; {case}; git checkout -q -f -- a"));
        assert!(!place.bring(from, to, "true").unwrap(), "{case}");
        assert_eq!(place.sh("repo", "cat a"), "old", "{case}");
    }
}

#[test]
fn going_back_leaves_what_somebody_put_there_meanwhile() {
    for (held, kept) in [("true", true), ("echo edited >> a", false)] {
        let place = Scene::new();
        let from = place.commit("echo old > a; echo old > b");
        let to = place.commit("echo new > a; echo new > b");
        place.sh("repo", &format!("git reset -q --hard {from}"));
        let (repo, tree) = (&place.repo, place.tree(&place.repo));
        let changes = tree_changes(repo, from, to).unwrap();
        let moved = Moved::found(&tree, changes.clone(), to).unwrap();
        let links = Quarantine::at(&place.scratch.join(REPLACED)).unwrap();
        assert!(changes.iter().all(|change| links.link(&place.dir, &change.path).unwrap()));
        place.sh("repo", &format!("{held}; echo mine > c; mv c a; echo new > c; mv c b"));
        assert_eq!(moved.undo(&tree).is_ok(), kept, "what was edited before that is kept too");
        assert_eq!(place.sh("repo", "cat a b"), "mine\nold");
        assert_eq!(place.sh(".", "cat held/replaced/files/a").contains("edited"), !kept);
    }
}

#[test]
fn attributes_count_also_where_their_file_is_gone_or_edited() {
    for gone in ["rm .gitattributes", "echo > .gitattributes"] {
        let place = Scene::new();
        let from = place.commit("echo '*.t eol=crlf' > .gitattributes; echo old > a.t");
        let to = place.commit("echo new > a.t");
        place.sh("repo", &format!("git reset -q --hard {from}; {gone}"));
        assert!(!place.bring(from, to, "true").unwrap(), "{gone}");
    }
}

#[test]
fn new_files_are_everybodys_as_far_as_the_user_has_it() {
    let place = Scene::new();
    let from = place.commit("echo > keep");
    let to = place.commit("echo > plain; echo > run; chmod +x run");
    place.sh("repo", &format!("git reset -q --hard {from}"));
    assert!(place.bring(from, to, "true").unwrap());
    let mode = |name: &str| std::fs::metadata(place.dir.join(name)).unwrap().permissions().mode();
    let kept = mode("keep") & 0o777;
    assert_eq!((mode("plain") & 0o777, mode("run") & 0o777), (kept, kept | (kept & 0o444) >> 2));
    assert_eq!(std::fs::metadata(place.dir.join("run")).unwrap().size(), 1);
}
