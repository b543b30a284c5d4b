//! Owns bringing a worktree from one commit to another in process, where no local change is in the way: the same files, and the same index,
//! as `git read-tree -m -u` makes of them.

use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use gix::bstr::{BStr, ByteSlice};
use gix::index::entry::{Flags, Mode, Stage, Stat};
use gix::index::extension::Tree as Cached;
use gix::index::fs::Metadata;
use gix::index::write::{Extensions, Options};
use gix::index::{Entry, Version};

use super::plain::is_plain;
use super::quarantine::{Quarantine, is_blob, prune_parents};
use super::transition::Tree;
use super::trees::Reader;
use super::{Change, Error, Oid, Repo, RepoPath, Side};

/// Brings the files of `changes` over and makes of `index`, a copy of the worktree's index, the one that belongs to commit
/// `to`. False when that is git's to do: then nothing was done. The index must hold what the worktree's commit has, each of
/// these files must be as the index has it, and those that are there must have a second name in `held`.
///
/// # Errors
/// When a file cannot be written or removed, or is another one by now; some were brought over, then.
pub(super) fn bring(
    tree: &Tree<'_>,
    held: &Quarantine,
    index: &Path,
    changes: &[Change],
    to: Oid,
) -> Result<bool, Error> {
    // Where a file system has no second names there is a copy, and nothing to know the file by.
    let known = |change: &Change| change.old.is_none() || held.is_same_file(tree.dir, &change.path);
    if !changes.iter().all(known) || !is_plain(tree, changes) {
        return Ok(false);
    }
    let Some(next) = Next::plan(tree.repo, index, changes, to)? else { return Ok(false) };
    for change in changes.iter().filter(|change| change.new.is_none()) {
        remove(tree, held, &change.path)?;
    }
    // Before others take the names of folders that are empty now, as with git.
    for change in changes.iter().filter(|change| change.new.is_none()) {
        prune_parents(tree.dir, &change.path);
    }
    for change in changes {
        let Some(side) = change.new else { continue };
        if change.old.is_some() {
            remove(tree, held, &change.path)?;
        }
        write(tree, &change.path, side)?;
    }
    next.save(tree, index, changes)?;
    Ok(true)
}

/// Removes a file, if it is the one that has a second name.
fn remove(tree: &Tree<'_>, held: &Quarantine, path: &RepoPath) -> Result<(), Error> {
    let file = path.under(tree.dir);
    if !held.is_same_file(tree.dir, path) && file.symlink_metadata().is_ok() {
        return Err(Error::Raced { dir: tree.dir.to_owned(), paths: vec![path.clone()] });
    }
    match std::fs::remove_file(&file) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(Error::io("remove", &file)(e)),
        _ => Ok(()),
    }
}

fn write(tree: &Tree<'_>, path: &RepoPath, side: Side) -> Result<(), Error> {
    let file = path.under(tree.dir);
    let content = tree.repo.blob(side.oid)?;
    let mode = if is_executable(side) { 0o777 } else { 0o666 };
    let parent = file.parent().unwrap_or(tree.dir);
    std::fs::create_dir_all(parent).map_err(Error::io("create", parent))?;
    // What somebody has put there meanwhile is not ours to write to.
    let made = OpenOptions::new().write(true).create_new(true).mode(mode).open(&file);
    made.and_then(|mut made| made.write_all(&content)).map_err(Error::io("write", &file))
}

fn is_executable(side: Side) -> bool {
    side.mode & 0o100 != 0
}

/// How many files are read again for what could have happened in the second in which the index was written. Beyond that git
/// is faster.
const RACY: usize = 256;

/// The index that is to be, but for the files that are brought.
struct Next(gix::index::File);

impl Next {
    /// Takes out of an index what goes, and brings what it knows of folders to what they will be. None when it holds more than
    /// is known here, or not what a commit has.
    fn plan(repo: &Repo, file: &Path, changes: &[Change], to: Oid) -> Result<Option<Next>, Error> {
        let read =
            gix::index::File::at(file, repo.gix.object_hash(), true, gix::index::decode::Options::default());
        let Ok(mut index) = read else { return Ok(None) };
        let known = changes.iter().all(|change| {
            let entry = index.entry_by_path(change.path.as_bytes().into());
            entry.map(|e| (e.id, e.mode.bits())) == change.old.map(|side| (side.oid.0, side.mode))
        });
        let racy = index.entries().iter().filter(|entry| is_racy(&index, entry)).count();
        if !known || holds_more(&index) || racy > RACY {
            return Ok(None);
        }
        let gone: HashSet<&[u8]> =
            changes.iter().filter(|c| c.new.is_none()).map(|c| c.path.as_bytes()).collect();
        let new = changes.iter().filter(|c| c.old.is_none()).count();
        index.remove_entries(|_, path, _| gone.contains(path.as_bytes()));
        let wanted = u32::try_from(index.entries().len() + new).ok();
        let Some(cached) = index.tree_mut() else { return Ok(None) };
        update(repo.reader(), cached, repo.tree_of(to)?.0)?;
        Ok((cached.num_entries == wanted).then_some(Next(index)))
    }

    /// Adds what was brought, and writes it down.
    fn save(mut self, tree: &Tree<'_>, file: &Path, changes: &[Change]) -> Result<(), Error> {
        let mut new = Vec::new();
        for change in changes {
            let Some(side) = change.new else { continue };
            let path: &BStr = change.path.as_bytes().into();
            let stat = stat_of(tree, &change.path);
            let mode = if is_executable(side) { Mode::FILE_EXECUTABLE } else { Mode::FILE };
            match self.0.entry_mut_by_path_and_stage(path, Stage::Unconflicted) {
                Some(entry) => (entry.id, entry.mode, entry.stat) = (side.oid.0, mode, stat),
                None => new.push((stat, side.oid.0, mode, path)),
            }
        }
        for (stat, id, mode, path) in new {
            self.0.dangerously_push_entry(stat, id, Flags::empty(), mode, path);
        }
        self.0.sort_entries();
        self.settle_racy(tree, changes);
        let extensions =
            Extensions::Given { tree_cache: true, end_of_index_entry: self.0.had_end_of_index_marker() };
        let mut bytes = Vec::new();
        let written = self.0.write_to(&mut bytes, Options { extensions, skip_hash: false });
        written.map_err(Error::object("the new index"))?;
        std::fs::write(file, bytes).map_err(Error::io("write", file))
    }
}

impl Next {
    /// Files that may have been changed after they were noted, in the same second, would pass for unchanged once the index is
    /// younger than they are: those that were just brought, and those that were as young as the index before. What differs
    /// gets a size that fits none, which is git's own way.
    fn settle_racy(&mut self, tree: &Tree<'_>, changes: &[Change]) {
        let brought: HashSet<&[u8]> = changes.iter().map(|change| change.path.as_bytes()).collect();
        let differs = |entry: &Entry| {
            let path = entry.path(&self.0);
            let young = is_racy(&self.0, entry) || brought.contains(path.as_bytes());
            let side = Side { mode: entry.mode.bits(), oid: Oid(entry.id) };
            let file = RepoPath::new(path.to_vec()).under(tree.dir);
            young && !side.is_gitlink() && !is_blob(tree.repo, &file, side)
        };
        let all: Vec<usize> =
            self.0.entries().iter().enumerate().filter(|(_, e)| differs(e)).map(|(at, _)| at).collect();
        for at in all {
            self.0.entries_mut()[at].stat.size = 0;
        }
    }
}

/// Whether a file was changed in the second in which the index was written, or later.
fn is_racy(index: &gix::index::File, entry: &Entry) -> bool {
    let by_second = gix::index::entry::stat::Options {
        trust_ctime: true,
        check_stat: true,
        use_nsec: false,
        use_stdev: false,
    };
    entry.stat.is_racy(index.timestamp(), by_second)
}

/// Whether an index holds anything that would not be written again, or in another way.
fn holds_more(index: &gix::index::File) -> bool {
    index.version() == Version::V4
        || index.is_sparse()
        || index.link().is_some()
        || index.resolve_undo().is_some()
        || index.untracked().is_some()
        || index.fs_monitor().is_some()
        || index.checksum().is_none()
}

/// What the index says of a file that was written; of one that is there no more, what fits none.
fn stat_of(tree: &Tree<'_>, path: &RepoPath) -> Stat {
    let meta = Metadata::from_path_no_follow(&path.under(tree.dir));
    meta.ok().and_then(|meta| Stat::from_fs(&meta).ok()).unwrap_or_default()
}

/// Brings what an index knows of a folder to the tree `id`. What is as it was is not entered.
fn update(reader: &Reader, cached: &mut Cached, id: gix::ObjectId) -> Result<(), Error> {
    if cached.id == id && cached.num_entries.is_some() {
        return Ok(());
    }
    let items = reader.tree(id)?;
    let mut before = std::mem::take(&mut cached.children);
    let mut count = 0;
    for (name, item) in items.iter() {
        if !item.is_tree() {
            count += 1;
            continue;
        }
        let at = before.iter().position(|child| child.name.as_slice() == name.as_bytes());
        let mut child = match at {
            Some(at) => before.swap_remove(at),
            None => {
                Cached { name: name.as_bytes().into(), id: item.id, num_entries: None, children: Vec::new() }
            }
        };
        update(reader, &mut child, item.id)?;
        count += child.num_entries.unwrap_or_default();
        cached.children.push(child);
    }
    // Git's own order.
    cached.children.sort_by(|a, b| a.name.len().cmp(&b.name.len()).then_with(|| a.name.cmp(&b.name)));
    (cached.id, cached.num_entries) = (id, Some(count));
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::path::PathBuf;
    use std::process::Command;

    use super::super::tree_changes;
    use super::*;

    /// A repository, and scratch folders beside it.
    struct Place {
        _dir: tempfile::TempDir,
        top: PathBuf,
    }

    impl Place {
        fn new() -> Place {
            let dir = tempfile::tempdir().unwrap();
            let top = dir.path().canonicalize().unwrap();
            let place = Place { _dir: dir, top };
            place.sh(".", "git init -q -b main repo; mkdir held");
            place
        }

        fn sh(&self, dir: &str, script: &str) -> String {
            let mut sh = Command::new("sh");
            sh.args(["-ec", script]).current_dir(self.top.join(dir)).env("HOME", &self.top);
            for (name, value) in [("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")] {
                sh.env(name, value);
            }
            for who in ["AUTHOR", "COMMITTER"] {
                sh.env(format!("GIT_{who}_NAME"), "a").env(format!("GIT_{who}_EMAIL"), "a@b");
            }
            let out = sh.output().unwrap();
            assert!(out.status.success(), "{script}: {}", String::from_utf8_lossy(&out.stderr));
            String::from_utf8_lossy(&out.stdout).trim_end().to_owned()
        }

        /// Brings the worktree of `repo` from one commit to the other as a transition would, with `before` happening between
        /// the links and the files.
        fn bring(&self, from: Oid, to: Oid, before: &str) -> Result<bool, Error> {
            let repo = Repo::discover(&self.top.join("repo")).unwrap();
            let (dir, scratch) = (self.top.join("repo"), self.top.join("held"));
            let tree = Tree {
                repo: &repo,
                dir: &dir,
                git_dir: dir.join(".git"),
                scratch: &scratch,
                off_limits: None,
                warn: &|_| (),
            };
            let changes = tree_changes(&repo, from, to).unwrap();
            let index = scratch.join("index");
            super::super::index::copy(&dir.join(".git/index"), &index).unwrap();
            let held = Quarantine::at(&scratch.join(to.to_string())).unwrap();
            for change in changes.iter().filter(|c| c.old.is_some()) {
                let _ = held.link(&dir, &change.path).unwrap();
            }
            self.sh("repo", before);
            let done = bring(&tree, &held, &index, &changes, to);
            if matches!(done, Ok(true)) {
                std::fs::rename(index, dir.join(".git/index")).unwrap();
                self.sh("repo", &format!("git update-ref HEAD {to}"));
            }
            done
        }

        fn commit(&self, script: &str) -> Oid {
            let id = self.sh(
                "repo",
                &format!("{script}\ngit add -A; git commit -qm x --allow-empty; git rev-parse HEAD"),
            );
            Oid::from_hex(id.as_bytes()).unwrap()
        }

        /// Files with their kinds and contents, the index without times, and what it knows of folders.
        fn state(&self, dir: &str) -> String {
            let files = "find . -path ./.git -prune -o -printf '%p %y %m\n' | sort; find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 sha1sum";
            let index = File::at(self.top.join(dir).join(".git/index"));
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
            let index =
                gix::index::File::at(path, kind, false, gix::index::decode::Options::default()).unwrap();
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
                _ => format!("mkdir -p ./{folder}; echo {} > {file}\n", below(1000)),
            });
        }
        out
    }

    #[test]
    fn files_and_index_are_as_git_makes_them() {
        let place = Place::new();
        let mut from = place.commit("echo > keep; mkdir -p a/b; echo > a/b/f1");
        for seed in 1..=40 {
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
        let place = Place::new();
        let from = place.commit("echo old > a");
        let to = place.commit("echo new > a; echo new > n");
        place.sh("repo", &format!("git reset -q --hard {from}"));
        assert!(place.bring(from, to, "echo mine > n").is_err());
        assert_eq!(place.sh("repo", "cat n"), "mine");
    }

    #[test]
    fn a_file_that_is_not_the_one_with_the_second_name_stays() {
        let place = Place::new();
        let from = place.commit("echo old > a");
        let to = place.commit("echo new > a; echo new > n");
        for act in ["echo mine > b; mv b a", "cp -p a b; mv b a"] {
            place.sh("repo", &format!("git reset -q --hard {from}"));
            assert!(!place.bring(from, to, act).unwrap(), "{act}");
            assert!(!place.sh("repo", "ls; cat a").contains("new"), "{act}");
        }
        let repo = Repo::discover(&place.top.join("repo")).unwrap();
        let (dir, scratch) = (place.top.join("repo"), place.top.join("held"));
        let (git_dir, warn) = (dir.join(".git"), |_| ());
        let tree = Tree { repo: &repo, dir: &dir, git_dir, scratch: &scratch, off_limits: None, warn: &warn };
        let held = Quarantine::at(&scratch.join("last")).unwrap();
        place.sh("repo", "echo mine > a");
        assert!(remove(&tree, &held, &RepoPath::new("a")).is_err(), "also at the last moment");
        assert_eq!(place.sh("repo", "cat a"), "mine");
    }

    #[test]
    fn an_edit_of_the_same_second_is_seen_afterwards() {
        let place = Place::new();
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
            "echo '* text=auto' > .gitattributes",
            "git config core.autocrlf input",
            "git config core.fileMode false",
            "git update-index --split-index",
            "git update-index --index-version 4",
            "git update-index --untracked-cache",
            "printf '#!/bin/sh\\n' > .git/hooks/post-index-change",
            "echo '* ident' > .git/info/attributes",
        ];
        for case in cases {
            let place = Place::new();
            let from = place.commit("mkdir -p .git/info .git/hooks; echo old > a; echo > keep");
            let to = place.commit(&format!("echo new > a\n{case}"));
            place.sh("repo", &format!("git reset -q --hard {from}; {case}; git checkout -q -f -- a"));
            assert!(!place.bring(from, to, "true").unwrap(), "{case}");
            assert_eq!(place.sh("repo", "cat a"), "old", "{case}");
        }
    }

    #[test]
    fn new_files_are_everybodys_as_far_as_the_user_has_it() {
        let place = Place::new();
        let from = place.commit("echo > keep");
        let to = place.commit("echo > plain; echo > run; chmod +x run");
        place.sh("repo", &format!("git reset -q --hard {from}"));
        assert!(place.bring(from, to, "true").unwrap());
        let mode =
            |name: &str| std::fs::metadata(place.top.join("repo").join(name)).unwrap().permissions().mode();
        let kept = mode("keep") & 0o777;
        assert_eq!((mode("plain") & 0o777, mode("run") & 0o777), (kept, kept | (kept & 0o444) >> 2));
        assert_eq!(std::fs::metadata(place.top.join("repo/run")).unwrap().size(), 1);
    }
}
