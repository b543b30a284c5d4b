//! Owns filling new worktrees with the files of a commit: in process, out of a checkout that surely has them, or of the
//! repository's objects; by git's own hand where that might not be the same.

use std::fs::OpenOptions;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

use gix::index::File;
use gix::index::entry::Stat;

use super::entries::Draft;
use super::glance::Glance;
use super::shared::Sharing;
use super::threads::{in_threads, threads, while_in_threads};
use super::{Error, Oid, Repo, RepoPath, Worktree, WorktreeList};

mod by_folder;
mod conversions;
mod files;
mod kept;
mod look;
mod sizes;
mod so_far;
mod wanted;

use conversions::{Conversions, Wish, wish};
use files::{Making, Part};
pub(crate) use sizes::Sizes;
use wanted::Wanted;

pub(crate) use kept::{Kept, Left};
pub(crate) use so_far::{SoFar, Tell};

/// How many entries one thread takes at a time, at most and at least: to begin a thread takes as long as to make a few files.
const AT_ONCE: usize = 512;
const AT_LEAST: usize = if cfg!(test) { 4 } else { 64 };
/// More files than this are git's where no checkout has them: it keeps in memory what other files are packed against.
const MANY: usize = 2000;

/// So many files of a checkout that its index leaves doubtful are read. Beyond that a look at all of them is not slower.
const FEW: usize = 256;
/// How many checkouts are tried as a source.
const TRIES: usize = 4;

/// Whether somebody waits for it still.
pub(crate) type GoOn<'a> = &'a (dyn Fn() -> bool + Sync);

/// How the files of new worktrees came to be, each counted once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Filled {
    /// Copied from another checkout.
    pub(crate) copied: usize,
    /// Made of the repository's objects.
    pub(crate) written: usize,
    /// Why git had a hand in it, if it had: it made the others, or went over all of them.
    pub(crate) by_git: Option<&'static str>,
    /// The checkout that was copied from, if each of its files was seen to be as the commit at its HEAD has it.
    pub(crate) unchanged: Option<PathBuf>,
}

impl Filled {
    /// The same in words.
    pub(crate) fn in_words(&self) -> String {
        let Filled { copied, written, by_git, .. } = self;
        let mut out = Vec::new();
        if copied + written > 0 {
            out.push(format!("{copied} files copied from another checkout, {written} made of git's objects"));
        }
        out.extend(by_git.map(|why| format!("by git: {why}")));
        out.join("; ")
    }
}

impl Repo {
    /// Fills worktrees that have no files yet, and no index, with those of the commit that the HEAD of each is at, for as long
    /// as `go_on` says so. `sizes` is what is known of blobs, and what is known afterwards. Where that takes long, `tell` is told.
    ///
    /// # Errors
    /// When a file cannot be written, or it was cut short. What is there by then is the caller's to remove.
    pub(crate) fn fill_worktrees(
        &self,
        dirs: &[&Path],
        commit: Oid,
        sizes: &mut Sizes,
        go_on: GoOn<'_>,
        tell: Tell<'_>,
    ) -> Result<Filled, Error> {
        let mut why = "the files could not be made otherwise";
        match self.fill_in_process(dirs, commit, sizes, go_on, tell) {
            Ok(Ok(filled)) => return Ok(filled),
            Ok(Err(reason)) => why = reason,
            Err(e) if !go_on() => return Err(e),
            // It would fail once more, after as long.
            Err(e @ (Error::Filter { .. } | Error::NotFetched { .. })) => return Err(e),
            // A name that this file system takes for another one's, or a full disk: git says which.
            Err(_) => dirs.iter().try_for_each(|dir| self.empty(dir))?,
        }
        let made = self.fill_by_git(dirs, go_on, tell);
        made.map_err(|e| self.not_made(e, commit))?;
        Ok(Filled { by_git: Some(why), ..Filled::default() })
    }

    /// Makes what is not in the index yet, through git's own filters and sparse patterns.
    fn fill_by_git(&self, dirs: &[&Path], go_on: GoOn<'_>, tell: Tell<'_>) -> Result<(), Error> {
        for (at, dir) in dirs.iter().enumerate() {
            let call = self.git_in(dir).args(["read-tree", "-v", "-m", "-u", "HEAD"]).changes();
            // Until then it says nothing; two seconds, if nobody asks for less.
            let call = call.env("GIT_PROGRESS_DELAY", "1");
            call.run_with_progress(&|| !go_on(), &|line| {
                SoFar::from_git(line, at, dirs.len()).map(|so_far| tell(&so_far)).is_some()
            })?;
        }
        Ok(())
    }

    /// Why all of it is git's to do, where it is; nothing was done then.
    fn fill_in_process(
        &self,
        dirs: &[&Path],
        commit: Oid,
        sizes: &mut Sizes,
        go_on: GoOn<'_>,
        tell: Tell<'_>,
    ) -> Result<Result<Filled, &'static str>, Error> {
        let Some(first) = dirs.first() else { return Ok(Ok(Filled::default())) };
        let wish = wish(self, first);
        if wish == Wish::OtherFiles {
            return Ok(Err("settings or the system ask for files in a form of their own"));
        }
        let Some((source, index)) = self.source(dirs, commit)? else {
            return Ok(Err("there is no other checkout to copy from"));
        };
        if wish == Wish::Part && !self.are_cut_alike(&source, first) {
            return Ok(Err("the checkout is sparse, and the one to copy from is not, or in another way"));
        }
        let whole = index.entries().len();
        let is_head = index.tree().map(|tree| tree.id) == Some(self.tree_of(commit)?.0)
            && self.head_read(&source) == Some(commit);
        let Some(Wanted(index)) = Wanted::of(self.reader(), index, self.tree_of(commit)?)? else {
            return Ok(Err("the index of the other checkout is of another form"));
        };
        let Some(conversions) = Conversions::of(self, &index)? else {
            return Ok(Err("a file with attributes cannot be read"));
        };
        let unknown = index.entries().iter().filter(|e| e.stat == Stat::default()).count();
        let making = Making {
            index: &index,
            source: Some(&source),
            targets: dirs,
            conversions: &conversions,
            sizes,
            learned: Mutex::default(),
            most: if wish == Wish::Part || unknown > MANY { 0 } else { MANY },
            written: AtomicUsize::new(0),
            copied: AtomicUsize::new(0),
        };
        let made = make_all(self, &making, go_on, tell)?;
        let (copied, written) = (making.copied.into_inner(), making.written.into_inner());
        sizes.add(making.learned.into_inner().unwrap_or_default(), index.entries());
        let by_git = why_git(wish, &made);
        let files = dirs.iter().map(|dir| Ok(self.git_dir_of(dir)?.join("index")));
        let files: Vec<(usize, PathBuf)> =
            files.collect::<Result<Vec<_>, Error>>()?.into_iter().enumerate().collect();
        let sharing = self.sharing();
        let noted = in_threads(&files, |(at, file)| write_index(sharing, file, &index, &made, *at));
        noted.into_iter().collect::<Result<(), Error>>()?;
        if by_git.is_some() {
            self.fill_by_git(dirs, go_on, tell).map_err(|e| self.not_made(e, commit))?;
        }
        let is_same = is_head && index.entries().len() == whole;
        let unchanged = (is_same && self.is_as_committed(&source, commit, &index, copied)).then_some(source);
        Ok(Ok(Filled { copied, written, by_git, unchanged }))
    }

    /// Whether each file of a checkout is as `commit` has it, and so its index, of which `copied` were looked at when they were
    /// copied. The others are read where `index` says of them all that its checkout's leaves them doubtful.
    fn is_as_committed(&self, dir: &Path, commit: Oid, index: &File, copied: usize) -> bool {
        let all = index.entries();
        let doubtful: Vec<RepoPath> = all
            .iter()
            .filter(|entry| entry.stat == Stat::default())
            .take(FEW + 1)
            .map(|entry| RepoPath::new(entry.path(index).to_vec()))
            .collect();
        if doubtful.len() > FEW || copied + doubtful.len() != all.len() {
            return false;
        }
        let git_dir = self.git_dir_of(dir).ok();
        let glance = || git_dir.and_then(|git_dir| Glance::with(self, dir, &git_dir, commit));
        doubtful.is_empty() || glance().is_some_and(|glance| glance.finds_as_it_was(doubtful.iter()))
    }

    /// The checkout that most is to be had from, and its index: one that is at this very commit, the main one first.
    fn source(&self, dirs: &[&Path], commit: Oid) -> Result<Option<(PathBuf, File)>, Error> {
        let all = WorktreeList::read(self)?;
        let mut candidates: Vec<&Worktree> = all
            .iter()
            .filter(|w| !w.bare && w.prunable.is_none() && !dirs.contains(&w.path.as_path()))
            .collect();
        // Any other is nearer than none, and the main one is where the others come from. Where a worktree is, is read once:
        // agents commit meanwhile, and a sort whose keys change has no order.
        candidates.sort_by_cached_key(|w| w.head(self).ok().flatten() != Some(commit));
        for candidate in candidates.into_iter().take(TRIES) {
            let Ok(git_dir) = self.git_dir_of(&candidate.path) else { continue };
            let options = gix::index::decode::Options::default();
            if let Ok(index) = File::at(git_dir.join("index"), self.gix.object_hash(), true, options) {
                return Ok(Some((candidate.path.clone(), index)));
            }
        }
        Ok(None)
    }

    /// Takes away what was put into a new worktree, so that git finds it as it was.
    fn empty(&self, dir: &Path) -> Result<(), Error> {
        let git_dir = self.git_dir_of(dir)?;
        for file in ["index", "index.lock"] {
            drop(std::fs::remove_file(git_dir.join(file)));
        }
        let entries = std::fs::read_dir(dir).map_err(Error::io("read", dir))?;
        for entry in entries.flatten().filter(|entry| entry.file_name() != ".git") {
            let path = entry.path();
            let gone = match entry.file_type() {
                Ok(kind) if kind.is_dir() => std::fs::remove_dir_all(&path),
                _ => std::fs::remove_file(&path),
            };
            gone.map_err(Error::io("remove", &path))?;
        }
        Ok(())
    }
}

/// Why git has to go over what was made, if it has.
fn why_git(wish: Wish, made: &[Option<Vec<Stat>>]) -> Option<&'static str> {
    match wish {
        Wish::Part => Some("the checkout is sparse"),
        Wish::OtherIndex => Some("settings ask for an index of another form"),
        Wish::OtherFiles | Wish::Nothing => {
            let left = made.iter().any(Option::is_none);
            left.then_some(
                "some of them, for filters, other line ends, submodules, or too much that no checkout has",
            )
        }
    }
}

/// About how long an index of these entries is: each has 62 bytes and a few more beside its path.
fn room_for(index: &File) -> usize {
    index.entries().iter().map(|entry| entry.path(index).len() + 72).sum::<usize>() + (64 << 10)
}

/// Writes an index to `file`, for the new worktree that is the `at`-th: with what its files are noted as, and without those that
/// are git's.
fn write_index(
    sharing: Sharing,
    file: &Path,
    index: &File,
    made: &[Option<Vec<Stat>>],
    at: usize,
) -> Result<(), Error> {
    let mut next = Draft::new(index.object_hash(), room_for(index));
    for (entry, made) in index.entries().iter().zip(made) {
        if let Some(stat) = made.as_ref().and_then(|made| made.get(at)) {
            next.add(entry.path(index), stat, entry.mode.bits(), &entry.id);
        }
    }
    let is_whole = made.iter().all(Option::is_some);
    let bytes = next.whole(index.tree().filter(|_| is_whole), false)?;
    let lock = file.with_extension("lock");
    let written = OpenOptions::new().write(true).create_new(true).open(&lock);
    let written = written.and_then(|mut open| open.write_all(&bytes)).and_then(|()| sharing.adjust(&lock));
    written.map_err(Error::io("write", &lock))?;
    std::fs::rename(&lock, file).map_err(Error::io("write", file))?;
    kept::note_made(file);
    Ok(())
}

/// What each thread takes at a time of so many entries: some for each of them, so that none is left with the last share alone.
fn shares(entries: usize) -> Vec<Range<usize>> {
    let share = entries.div_ceil(threads() * 2).clamp(AT_LEAST, AT_ONCE);
    (0..entries).step_by(share).map(|from| from..entries.min(from + share)).collect()
}

/// Makes all files, in threads: what each is noted as in each of the new worktrees, or nothing where it is git's.
fn make_all(
    repo: &Repo,
    making: &Making<'_>,
    go_on: GoOn<'_>,
    tell: Tell<'_>,
) -> Result<Vec<Option<Vec<Stat>>>, Error> {
    let entries = making.index.entries();
    let ranges = shares(entries.len());
    let store = repo.gix.objects.store();
    let (teller, listener) = so_far::between(entries, &ranges);
    let part = |range: &Range<usize>| -> std::io::Result<Vec<Option<Vec<Stat>>>> {
        let _ended = teller.begin(range);
        crate::fault::point("fill.part");
        if !go_on() {
            return Err(std::io::ErrorKind::Interrupted.into());
        }
        let mut part = Part::new(making, gix::odb::Handle::from(store.to_handle_arc()))?;
        let made = entries[range.clone()].iter().map(|entry| part.make(entry)).collect();
        part.finish();
        made
    };
    let done = match ranges.len() {
        0 | 1 => ranges.iter().map(part).collect(),
        _ => while_in_threads(ranges.iter(), part, || listener.until_the_end(tell)).0,
    };
    let mut all = Vec::with_capacity(entries.len());
    for part in done {
        all.extend(part.map_err(Error::io("fill", making.targets[0]))?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
