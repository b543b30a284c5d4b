//! Owns making the files of a new worktree of a folder that was another one's: what both commits have alike stays, the rest is
//! made as in any new worktree.

use std::collections::{BTreeSet, HashSet};
use std::fs::File as OpenFile;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

use gix::bstr::{BStr, ByteSlice};
use gix::index::entry::{Mode, Stage, Stat};
use gix::index::{File, Version};

use super::super::clean::UNSEEN;
use super::super::ignored::Ignored;
use super::super::include::Included;
use super::super::open_op::open_operation;
use super::super::threads::in_threads;
use super::super::{Error, Oid, Repo, RepoPath};
use super::conversions::{Conversions, Wish, wish};
use super::files::{Making, Part};
use super::look::look;
use super::wanted::{Wanted, has_exactly};
use super::{GoOn, MANY, Sizes, Tell, shares, write_index};

/// What git keeps in its folder for a worktree that is set up in a way of its own, or in the middle of something.
const OF_ITS_OWN: &[&str] =
    &["config.worktree", "info/sparse-checkout", "info/attributes", "locked", "modules"];

/// Why a folder of which more is known than its commit says is of no use.
const OTHER_INDEX: &str = "its index is not that of its commit";

/// A folder that is no worktree any more.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Left<'a> {
    /// The folder.
    pub(crate) dir: &'a Path,
    /// What was git's folder for it.
    pub(crate) admin: &'a Path,
    /// The commit that it was at.
    pub(crate) tip: Oid,
}

/// What a folder has for a new worktree. It is true for as long as nobody touches the folder.
pub(crate) struct Kept {
    /// What lies in it that is in no commit, folders as a whole.
    pub(crate) loose: Vec<Included>,
    /// The index that is to be. What an entry has no stat data of is made anew.
    index: File,
    conversions: Conversions,
    wish: Wish,
    /// The files that go first, and whether each is the empty folder of a submodule.
    gone: Vec<(RepoPath, bool)>,
    /// The index that the folder had, where the new one is just the same.
    same: Option<PathBuf>,
}

/// How the files of a worktree came to be that was made of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reused {
    /// Files that stayed.
    pub(crate) kept: usize,
    /// Made of the repository's objects.
    pub(crate) written: usize,
    /// Why git had a hand in it, if it had.
    pub(crate) by_git: Option<&'static str>,
}

impl Reused {
    /// The same in words; `whose` says where the folder is from.
    pub(crate) fn in_words(&self, whose: &str) -> String {
        let Reused { kept, written, by_git } = self;
        let by_git = by_git.map_or_else(String::new, |why| format!("; by git: {why}"));
        format!("{kept} files kept from the folder of {whose}, {written} made of git's objects{by_git}")
    }
}

impl Repo {
    /// Looks what a folder has for the worktree at `new`, which git has on record by now and that is to be at `commit`. Why it is
    /// of no use, where it is not.
    ///
    /// # Errors
    /// When an object or an attribute file cannot be read.
    pub(crate) fn look_at_left(
        &self,
        left: &Left<'_>,
        new: &Path,
        commit: Oid,
    ) -> Result<Result<Kept, &'static str>, Error> {
        let hash = self.gix.object_hash();
        let (found, made) = std::thread::scope(|scope| {
            let made = scope.spawn(|| made_before(left.admin, hash));
            (self.index_of_left(left, new), made.join().ok().flatten())
        });
        let (wish, old) = match found {
            Ok(found) => found,
            Err(why) => return Ok(Err(why)),
        };
        if !has_exactly(self.reader(), &old, self.tree_of(left.tip)?)? {
            return Ok(Err(OTHER_INDEX));
        }
        let seen = match look(self, left.dir, &old, made.as_ref()) {
            Ok(seen) => seen,
            Err(why) => return Ok(Err(why)),
        };
        let again: HashSet<usize> = seen.again.into_iter().collect();
        let Some(before) = Conversions::of(self, &old)? else {
            return Ok(Err("a file with attributes cannot be read"));
        };
        let tree = self.tree_of(commit)?.0;
        let plain = is_plain(&old) && wish == Wish::Nothing;
        let count = u32::try_from(old.entries().len()).ok();
        let has_tree = old.tree().is_some_and(|known| known.id == tree && known.num_entries == count);
        let is_same = plain && again.is_empty() && has_tree;
        if is_same && !old.entries().iter().any(|e| before.concern(e.path(&old))) {
            let (conversions, same) = (before, Some(left.admin.join("index")));
            return Ok(Ok(Kept { loose: seen.loose, index: old, conversions, wish, gone: Vec::new(), same }));
        }
        let Some(Wanted(index)) = Wanted::of(self.reader(), old.clone(), Oid(tree))? else {
            return Ok(Err("its index is of another form"));
        };
        let Some(conversions) = Conversions::of(self, &index)? else {
            return Ok(Err("a file with attributes cannot be read"));
        };
        let mut kept = Kept { loose: seen.loose, index, conversions, wish, gone: Vec::new(), same: None };
        let new = kept.compare(&old, |at, path| again.contains(&at) || before.concern(path));
        if new > MANY {
            return Ok(Err("too much has changed since"));
        }
        Ok(Ok(kept))
    }
}

impl Repo {
    /// Why a folder is of no use for a worktree like the one at `like`, where that is plain without a look at its files.
    pub(crate) fn cannot_keep(&self, left: &Left<'_>, like: &Path) -> Option<&'static str> {
        self.index_of_left(left, like).err()
    }

    /// What settings ask for in the worktree at `new`, and the index that a folder had; or why it is of no use.
    fn index_of_left(&self, left: &Left<'_>, new: &Path) -> Result<(Wish, File), &'static str> {
        let wish = wish(self, new);
        match wish {
            Wish::OtherFiles => return Err("settings or the system ask for files in a form of their own"),
            Wish::Part => return Err("the new lane has a part of the files only (sparse)"),
            Wish::OtherIndex | Wish::Nothing => {}
        }
        if is_special(left.admin) {
            return Err("it was set up in a way of its own");
        }
        let options = gix::index::decode::Options::default();
        let Ok(old) = File::at(left.admin.join("index"), self.gix.object_hash(), true, options) else {
            return Err("its index cannot be read");
        };
        let unseen = |e: &gix::index::Entry| e.flags.intersects(UNSEEN) || e.stage() != Stage::Unconflicted;
        if old.entries().iter().any(unseen) {
            return Err(OTHER_INDEX);
        }
        Ok((wish, old))
    }
}

/// Whether git would write an index in the form that it has.
fn is_plain(index: &File) -> bool {
    index.version() == Version::V2
        && index.untracked().is_none()
        && index.fs_monitor().is_none()
        && index.resolve_undo().is_none()
}

/// Whether a worktree was set up in a way of its own, is in the middle of something, or has its index in parts.
fn is_special(admin: &Path) -> bool {
    let is_there = |name: &&str| admin.join(name).symlink_metadata().is_ok();
    let is_part =
        |entry: std::fs::DirEntry| entry.file_name().as_encoded_bytes().starts_with(b"sharedindex.");
    OF_ITS_OWN.iter().any(is_there)
        || open_operation(admin).is_some()
        || std::fs::read_dir(admin).into_iter().flatten().flatten().any(is_part)
}

impl Kept {
    /// Goes through the index that the folder had beside the one that is to be: takes stat data from it for what stays, and notes
    /// what goes. How many files are made anew.
    fn compare(&mut self, old: &File, goes: impl Fn(usize, &[u8]) -> bool) -> usize {
        let is_folder = |at: usize| old.entries()[at].mode == Mode::COMMIT;
        let path_of = |at: usize| old.entries().get(at).map(|e| e.path(old));
        let (mut at, mut new) = (0, 0);
        for (entry, path) in self.index.entries_mut_with_paths() {
            while path_of(at).is_some_and(|known| known < path) {
                self.gone.extend(path_of(at).map(|known| (RepoPath::new(known.to_vec()), is_folder(at))));
                at += 1;
            }
            entry.stat = Stat::default();
            if path_of(at) == Some(path) {
                let known = &old.entries()[at];
                let alike = known.id == entry.id && known.mode == entry.mode;
                if alike && !goes(at, path) && !self.conversions.concern(path) {
                    entry.stat = known.stat;
                } else {
                    self.gone.push((RepoPath::new(path.to_vec()), is_folder(at)));
                }
                at += 1;
            }
            new += usize::from(entry.stat == Stat::default());
        }
        while let Some(known) = path_of(at) {
            self.gone.push((RepoPath::new(known.to_vec()), is_folder(at)));
            at += 1;
        }
        new
    }

    /// Which of what lies there may stay in the worktree at `new`, which has no files yet: git has nothing in its place, and
    /// ignores it.
    pub(crate) fn room<'a>(&'a self, new: &'a Path) -> impl FnMut(&Included) -> bool {
        let mut ignored = Ignored::in_index(new, &self.index);
        move |one| {
            let path = one.path.as_bytes();
            let is_tracked = |path: &[u8]| self.index.entry_by_path(BStr::new(path)).is_some();
            let below = [path, b"/"].concat();
            let has_below = self.index.prefixed_entries_range(below.as_bstr()).is_some_and(|r| !r.is_empty());
            let in_the_way =
                is_tracked(path) || has_below || one.path.parents().any(|up| is_tracked(up.as_bytes()));
            !in_the_way && ignored.names(&one.path.under(new), one.is_folder)
        }
    }

    /// Makes of the folder, which lies at `dir` by now, the worktree that git has on record there. None where that could not be
    /// done: then it is empty, for files to be made as in any other. Where git takes long over it, `tell` is told.
    ///
    /// # Errors
    /// When it was cut short, or cannot be emptied.
    pub(crate) fn finish(
        &self,
        repo: &Repo,
        dir: &Path,
        go_on: GoOn<'_>,
        tell: Tell<'_>,
    ) -> Result<Option<Reused>, Error> {
        match self.make(repo, dir, go_on, tell) {
            Ok(made) => Ok(Some(made)),
            Err(e) if !go_on() => Err(e),
            Err(_) => repo.empty(dir).map(|()| None),
        }
    }

    fn make(&self, repo: &Repo, dir: &Path, go_on: GoOn<'_>, tell: Tell<'_>) -> Result<Reused, Error> {
        let count = self.index.entries().len();
        if let Some(same) = &self.same {
            install(same, &repo.git_dir_of(dir)?)?;
            return Ok(Reused { kept: count, written: 0, by_git: None });
        }
        self.clear(dir)?;
        crate::fault::point("pool.cleared");
        let targets = [dir];
        // Nothing is copied.
        let sizes = Sizes::default();
        let making = Making {
            sizes: &sizes,
            learned: Mutex::default(),
            index: &self.index,
            source: None,
            targets: &targets,
            conversions: &self.conversions,
            most: MANY,
            written: AtomicUsize::new(0),
            copied: AtomicUsize::new(0),
        };
        let made = make_new(repo, &making, go_on)?;
        let written = making.written.into_inner();
        let left = made.iter().filter(|made| made.is_none()).count();
        let new = self.index.entries().iter().filter(|e| e.stat == Stat::default()).count();
        write_index(repo.sharing(), &repo.git_dir_of(dir)?.join("index"), &self.index, &made, 0)?;
        let by_git = match self.wish {
            Wish::OtherIndex => Some("settings ask for an index of another form"),
            _ => (left > 0).then_some("filters or other line ends"),
        };
        if by_git.is_some() {
            repo.fill_by_git(&targets, go_on, tell)?;
        }
        Ok(Reused { kept: count - new, written, by_git })
    }

    /// Removes what does not stay, and the folders that are empty then.
    fn clear(&self, dir: &Path) -> Result<(), Error> {
        let mut folders = BTreeSet::new();
        for (path, is_folder) in &self.gone {
            let place = path.under(dir);
            let gone = if *is_folder { std::fs::remove_dir(&place) } else { std::fs::remove_file(&place) };
            gone.map_err(Error::io("remove", &place))?;
            folders.extend(path.parents());
        }
        // What lies in another comes after it.
        for folder in folders.iter().rev() {
            drop(std::fs::remove_dir(folder.under(dir)));
        }
        Ok(())
    }
}

/// Makes the files of those entries that have no stat data, in threads: what each entry is noted as, or nothing where it is git's.
fn make_new(repo: &Repo, making: &Making<'_>, go_on: GoOn<'_>) -> Result<Vec<Option<Vec<Stat>>>, Error> {
    let entries = making.index.entries();
    let mut all: Vec<Option<Vec<Stat>>> = Vec::with_capacity(entries.len());
    all.extend(entries.iter().map(|e| (e.stat != Stat::default()).then(|| vec![e.stat])));
    let new: Vec<usize> = (0..all.len()).filter(|at| all[*at].is_none()).collect();
    let parts: Vec<&[usize]> = shares(new.len()).into_iter().map(|share| &new[share]).collect();
    let store = repo.gix.objects.store();
    let done = in_threads(&parts, |part| -> std::io::Result<Vec<Option<Vec<Stat>>>> {
        if !go_on() {
            return Err(std::io::ErrorKind::Interrupted.into());
        }
        let mut maker = Part::new(making, gix::odb::Handle::from(store.to_handle_arc()))?;
        part.iter().map(|at| maker.make(&entries[*at])).collect()
    });
    let mut places = new.iter();
    for part in done {
        for (made, at) in part.map_err(Error::io("fill", making.targets[0]))?.into_iter().zip(&mut places) {
            all[*at] = made;
        }
    }
    Ok(all)
}

/// The second name of an index that was written for files which were made byte for byte, in git's folder for the worktree. Git
/// replaces an index and never writes into one, so what it says stays true of every file that has the same numbers still.
const MADE: &str = "proq-made";

/// Notes that the files of an index are made byte for byte. Without the note they are looked up one by one.
pub(super) fn note_made(index: &Path) {
    let note = index.with_file_name(MADE);
    drop(std::fs::remove_file(&note));
    drop(std::fs::hard_link(index, &note));
}

/// What was noted so, if it was.
fn made_before(admin: &Path, hash: gix::hash::Kind) -> Option<File> {
    let options = gix::index::decode::Options::default();
    File::at(admin.join(MADE), hash, true, options).ok().filter(|f| f.link().is_none())
}

/// Gives a worktree an index that is there already.
fn install(index: &Path, git_dir: &Path) -> Result<(), Error> {
    let (file, lock) = (git_dir.join("index"), git_dir.join("index.lock"));
    let mut from = OpenFile::open(index).map_err(Error::io("read", index))?;
    let to = OpenFile::create_new(&lock);
    to.and_then(|mut to| std::io::copy(&mut from, &mut to)).map_err(Error::io("write", &lock))?;
    std::fs::rename(&lock, &file).map_err(Error::io("write", &file))?;
    note_made(&file);
    Ok(())
}
