//! Owns telling, without starting git, that a worktree is surely as HEAD has it. Whatever is doubtful is left to git.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

use gix::index::File;
use gix::index::entry::stat::{self, Time};
use gix::index::entry::{Flags, Stat};
use gix::objs::{Kind, compute_hash};
use rustix::fs::{AtFlags, Dir, FileType, OFlags, openat, statat};
use rustix::io::Errno;

use super::RepoPath;
use super::entries::{self, Entries, Entry};
use super::folders::Folders;
use super::ignored::{Beside, Ignored, Names};
use super::status::{self, Kind as Differs};
use super::threads::in_threads;

/// How many files whose times do not settle it are read, and how many bytes of them. Beyond that git, which reads in many
/// threads, is faster.
const MOST_FILES: usize = 256;
const MOST_BYTES: u64 = 4 * 1024 * 1024;

/// How many paths that differ are listed. Beyond that git is asked.
const MOST_PATHS: usize = 1_000;

/// Entries that git was told not to look at, or that hold nothing yet.
pub(super) const UNSEEN: Flags = Flags::ASSUME_VALID.union(Flags::SKIP_WORKTREE).union(Flags::INTENT_TO_ADD);

/// How many files below a folder make it worth a thread's while.
const PART: usize = if cfg!(test) { 2 } else { 32 };

/// A look at a worktree that says only what is certain.
pub(super) struct Walk<'a> {
    top: &'a Path,
    index: &'a Entries,
    /// None when files that are not in the index do not matter.
    ignored: Option<Mutex<Ignored<'a>>>,
    /// A folder with as many files below it is a part of its own.
    part: usize,
    /// Whether paths that differ are listed.
    lists: bool,
    /// Whether all that lies there is.
    lists_all: bool,
    /// Files and bytes read so far.
    files: AtomicUsize,
    bytes: AtomicU64,
}

/// What is in one folder of the index.
enum Inside<'e> {
    File(Entry<'e>),
    /// A folder, and what is below it.
    Folder(&'e [u32]),
}

/// What one look found.
#[derive(Default)]
struct Found {
    /// What differs, in no order.
    paths: Vec<status::Entry>,
    /// What is known of the folders.
    folders: Option<Folders>,
    /// What else lies there.
    beside: BesideTracked,
}

/// What lies beside tracked files, each in no order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct BesideTracked {
    /// Files and folders that are ignored; of what is in such a folder nothing is said.
    pub(super) ignored: Vec<RepoPath>,
    /// Folders that are not, and that no tracked file is in, the topmost ones.
    pub(super) folders: Vec<RepoPath>,
    /// Whether something is ignored in one of those.
    pub(super) is_mixed: bool,
    /// Tracked files that were read as they lie there, since their times did not tell: a filter may make something else of them.
    pub(super) by_content: Vec<RepoPath>,
}

/// What a file is, compared with its entry.
enum As {
    Noted,
    Edited,
    /// Its times tell nothing, but it has the content, or has another one, unless a filter sees to it.
    Read(bool),
    Gone,
    Unsure,
}

impl<'a> Walk<'a> {
    /// A look at the worktree whose top is `top`, by its index; with `untracked`, also at files that are not in it.
    pub(super) fn new(top: &'a Path, index: &'a Entries, untracked: bool) -> Walk<'a> {
        Walk {
            top,
            index,
            ignored: untracked.then(|| Mutex::new(Ignored::with_all_files(top, index.hash()))),
            part: usize::MAX,
            lists: false,
            lists_all: false,
            files: AtomicUsize::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    /// Whether each file is as the index has it, and nothing else is there that matters. A worktree that is looked at `alone`
    /// is divided among threads.
    pub(super) fn finds_nothing(mut self, alone: bool) -> bool {
        self.part = if alone { PART } else { usize::MAX };
        let parts = self.parts();
        let differs = AtomicBool::new(false);
        in_threads(&parts, |(above, entries)| {
            if !differs.load(Relaxed) && !self.part(*above, entries, &mut Found::default()) {
                differs.store(true, Relaxed);
            }
        });
        !differs.into_inner()
    }

    /// What is not as the index has it, in git's order; none when not all of it is certain. `folders` is what is known of them,
    /// and what is known then.
    pub(super) fn finds(mut self, folders: &mut Option<Folders>) -> Option<Vec<status::Entry>> {
        self.lists = true;
        let mut found = Found { folders: folders.take(), ..Found::default() };
        let certain = self.part(0, self.index.all(), &mut found);
        *folders = found.folders;
        certain.then(|| in_order(found.paths))
    }

    /// The same of all that lies there, by many threads.
    pub(super) fn finds_all(mut self) -> Option<(Vec<status::Entry>, BesideTracked)> {
        (self.part, self.lists, self.lists_all) = (PART, true, true);
        let parts = self.parts();
        let given_up = AtomicBool::new(false);
        let all = in_threads(&parts, |(above, entries)| {
            let mut found = Found::default();
            if !given_up.load(Relaxed) && !self.part(*above, entries, &mut found) {
                given_up.store(true, Relaxed);
            }
            found
        });
        let (mut paths, mut beside) = (Vec::new(), BesideTracked::default());
        for found in all {
            paths.extend(found.paths);
            beside.ignored.extend(found.beside.ignored);
            beside.folders.extend(found.beside.folders);
            beside.is_mixed |= found.beside.is_mixed;
            beside.by_content.extend(found.beside.by_content);
        }
        (!given_up.into_inner()).then(|| (in_order(paths), beside))
    }

    /// Whether the file of an entry, of whatever folder, is as the index has it.
    pub(super) fn finds_as_it_was(&self, entry: Entry<'_>) -> bool {
        let name = OsStr::from_bytes(entry.path());
        let Ok(top) = rustix::fs::open(self.top, FOLDER, rustix::fs::Mode::empty()) else { return false };
        // A link in place of a folder would lead elsewhere.
        let mut above = Path::new(name).ancestors().skip(1).filter(|up| !up.as_os_str().is_empty());
        let real = |up: &Path| self.top.join(up).symlink_metadata().is_ok_and(|meta| meta.is_dir());
        above.all(real) && matches!(self.compare(entry, self.top, &top, name), As::Noted | As::Read(true))
    }

    /// The parts of the index that can be looked at independently: the length of a folder's name, with the slash, and the
    /// entries below it.
    fn parts(&self) -> Vec<(usize, &[u32])> {
        let mut parts = vec![(0, self.index.all())];
        let mut next = 0;
        while self.part < usize::MAX
            && let Some((above, entries)) = parts.get(next).copied()
        {
            next += 1;
            let mut rest = entries;
            while let Some((name, inside)) = self.first(above, &mut rest) {
                if let Inside::Folder(below) = inside
                    && below.len() >= self.part
                {
                    parts.push((above + name.len() + 1, below));
                }
            }
        }
        parts
    }

    /// Takes what comes first in a folder from its entries.
    fn first<'e>(&'e self, above: usize, rest: &mut &'e [u32]) -> Option<(&'e [u8], Inside<'e>)> {
        let first = self.index.entry(*rest.first()?);
        let path = first.path();
        let name = path.get(above..)?;
        let Some(end) = name.iter().position(|byte| *byte == b'/') else {
            *rest = &rest[1..];
            return Some((name, Inside::File(first)));
        };
        let (inside, after) = rest.split_at(self.index.below(rest, &path[..=above + end]));
        *rest = after;
        Some((&name[..end], Inside::Folder(inside)))
    }

    fn part(&self, above: usize, entries: &[u32], found: &mut Found) -> bool {
        let path = entries.first().map_or(&[][..], |first| self.index.path(*first));
        let dir = self.top.join(OsStr::from_bytes(path.get(..above).unwrap_or_default()));
        // A link further up is found where that folder is looked at.
        match rustix::fs::open(&dir, FOLDER, rustix::fs::Mode::empty()) {
            Ok(open) => self.folder(&dir, open, above, entries, found),
            Err(Errno::NOENT) => self.lists && self.is_gone(above, entries, found),
            Err(_) => false,
        }
    }

    /// Lists the files of a folder that is not there, but for what is a part of its own.
    fn is_gone(&self, above: usize, entries: &[u32], found: &mut Found) -> bool {
        let mut rest = entries;
        while let Some((name, inside)) = self.first(above, &mut rest) {
            let is_listed = match inside {
                Inside::File(entry) => {
                    entry.is_seen() && is_of_files(entry.mode()) && found.add(gone(), entry.path())
                }
                Inside::Folder(below) => {
                    below.len() >= self.part || self.is_gone(above + name.len() + 1, below, found)
                }
            };
            if !is_listed {
                return false;
            }
        }
        rest.is_empty()
    }

    /// Whether a folder has exactly `entries`, which are all those below it, but for what is a part of its own, and what is
    /// listed. `above` is the length of its name in the index, with the slash. Names are looked up in the open folder, which
    /// is faster than paths.
    fn folder(&self, dir: &Path, open: OwnedFd, above: usize, entries: &[u32], found: &mut Found) -> bool {
        let before = found.folders.as_ref().and_then(|_| rustix::fs::fstat(&open).ok());
        let known = match (&mut found.folders, &before) {
            (Some(folders), Some(meta)) => folders.knows(meta),
            _ => false,
        };
        let place = found.folders.as_ref().map(Folders::last);
        let reads = self.ignored.is_some() && !known;
        let mut names = Vec::new();
        let mut rest = entries;
        while let Some((name, inside)) = self.first(above, &mut rest) {
            let same = match inside {
                Inside::File(entry) => self.file(entry, dir, &open, OsStr::from_bytes(name), found),
                Inside::Folder(below) => self.below(dir, &open, name, above, below, found),
            };
            if !same {
                return false;
            }
            if reads {
                names.push(name);
            }
        }
        let Some(ignored) = self.ignored.as_ref().filter(|_| reads) else { return rest.is_empty() };
        match self.has_only(dir, open, Names::new(names), ignored, found) {
            Some(nothing) => {
                if let (Some(folders), Some(place), Some(meta), true) =
                    (&mut found.folders, place, &before, nothing)
                {
                    folders.learn(place, meta);
                }
                rest.is_empty()
            }
            None => false,
        }
    }

    /// The same for a folder in an open one.
    fn below(
        &self,
        dir: &Path,
        open: &OwnedFd,
        name: &[u8],
        above: usize,
        entries: &[u32],
        found: &mut Found,
    ) -> bool {
        let called = OsStr::from_bytes(name);
        match open_folder(open, called) {
            Ok(_) | Err(Errno::NOENT) if entries.len() >= self.part => true,
            Ok(open) => self.folder(&dir.join(called), open, above + name.len() + 1, entries, found),
            Err(Errno::NOENT) if self.lists => {
                if let Some(folders) = &mut found.folders {
                    folders.lose();
                }
                self.is_gone(above + name.len() + 1, entries, found)
            }
            Err(_) => false,
        }
    }

    /// Whether the file of an entry is as it was, or listed.
    fn file(&self, entry: Entry<'_>, dir: &Path, open: &OwnedFd, name: &OsStr, found: &mut Found) -> bool {
        match self.compare(entry, dir, open, name) {
            As::Noted => true,
            As::Edited if self.lists => found.add(edited(), entry.path()),
            As::Gone if self.lists => found.add(gone(), entry.path()),
            As::Read(same) if self.lists_all => {
                found.beside.by_content.push(RepoPath::new(entry.path()));
                same || found.add(edited(), entry.path())
            }
            As::Read(same) => same,
            As::Edited | As::Gone | As::Unsure => false,
        }
    }

    /// Whether a folder has nothing but `names`; beside them may be what is ignored, and what is listed. None when it may have
    /// more.
    fn has_only(
        &self,
        dir: &Path,
        open: OwnedFd,
        mut names: Names<'_>,
        ignored: &Mutex<Ignored<'_>>,
        found: &mut Found,
    ) -> Option<bool> {
        let mut nothing = true;
        for entry in Dir::new(open).ok()? {
            let entry = entry.ok()?;
            let name = entry.file_name().to_bytes();
            // At the top is git's own folder, or the link to it.
            if matches!(name, b"." | b"..") || names.has(name) || (dir == self.top && name == b".git") {
                continue;
            }
            // Anywhere else git passes over it, and over what it makes of the folder.
            if name.eq_ignore_ascii_case(b".git") {
                return None;
            }
            nothing = false;
            let path = dir.join(OsStr::from_bytes(name));
            let kind = path.symlink_metadata().ok()?.file_type();
            let is_folder = kind.is_dir();
            if self.lists_all && !is_folder && !kind.is_file() && !kind.is_symlink() {
                return None;
            }
            let mut rules = ignored.lock().ok()?;
            let more = rules.lacks(&path, is_folder, &mut |below, what| {
                let name = below.strip_prefix(self.top).map(|below| below.as_os_str().as_bytes());
                name.is_ok_and(|name| self.takes(name, what, below == path, found))
            });
            if more {
                return None;
            }
        }
        Some(nothing)
    }

    /// Whether something beside the index may be there, and is listed where it has to be. `is_first` says that what it lies in
    /// is tracked.
    fn takes(&self, name: &[u8], what: Beside, is_first: bool, found: &mut Found) -> bool {
        match what {
            Beside::File => self.lists && found.add(Differs::Untracked, name),
            Beside::Ignored | Beside::Folder if !self.lists_all => true,
            Beside::Folder => {
                if is_first {
                    found.beside.folders.push(RepoPath::new(name));
                }
                true
            }
            Beside::Ignored => {
                if is_first {
                    found.beside.ignored.push(RepoPath::new(name));
                }
                found.beside.is_mixed |= !is_first;
                true
            }
        }
    }

    /// What a file surely is, compared with its entry.
    fn compare(&self, entry: Entry<'_>, dir: &Path, open: &OwnedFd, name: &OsStr) -> As {
        if !entry.is_seen() {
            return As::Unsure;
        }
        let meta = match statat(open, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(meta) => meta,
            Err(Errno::NOENT) if is_of_files(entry.mode()) => return As::Gone,
            Err(_) => return As::Unsure,
        };
        let (kind, executable) = (FileType::from_raw_mode(meta.st_mode), meta.st_mode & 0o100 != 0);
        let same_kind = match entry.mode() {
            entries::FILE => kind.is_file() && !executable,
            entries::EXECUTABLE => kind.is_file() && executable,
            entries::LINK => kind.is_symlink(),
            _ => false,
        };
        if !same_kind {
            return As::Unsure;
        }
        // That none was says a length of zero, unless the file had nothing in it.
        let empty = gix::ObjectId::empty_blob(self.index.hash());
        let is_known = entry.size() != 0 || !kind.is_file() || entry.id() == empty.as_slice();
        if is_known && entry.has_numbers_of(&meta) && !self.index.is_racy(entry) {
            return As::Noted;
        }
        // Git reads no file that has another length than was noted.
        if kind.is_file() && entry.size() != 0 && entry.size() != noted(&meta).size {
            return As::Edited;
        }
        self.has_content(entry, &dir.join(name)).map_or(As::Unsure, As::Read)
    }

    /// Reads a file; none when there is too much to read. Filters are left out: a file whose bytes are those in the repository
    /// has nothing that could get lost.
    fn has_content(&self, entry: Entry<'_>, file: &Path) -> Option<bool> {
        let meta = file.symlink_metadata().ok()?;
        let files = self.files.fetch_add(1, Relaxed);
        let bytes = self.bytes.fetch_add(meta.len().min(MOST_BYTES), Relaxed);
        if files >= MOST_FILES || bytes.saturating_add(meta.len()) > MOST_BYTES {
            return None;
        }
        let bytes = if meta.is_symlink() {
            std::fs::read_link(file).map(|to| to.into_os_string().into_encoded_bytes())
        } else {
            std::fs::read(file)
        };
        let id = compute_hash(self.index.hash(), Kind::Blob, &bytes.ok()?).ok()?;
        Some(id.as_slice() == entry.id())
    }
}

impl Found {
    /// Lists a path; false when there are so many that git is asked.
    fn add(&mut self, kind: Differs, path: &[u8]) -> bool {
        self.paths.push(status::Entry { kind, path: RepoPath::new(path), nested: false, submodule: false });
        self.paths.len() <= MOST_PATHS
    }
}

/// Git's order: what is tracked comes first.
fn in_order(mut paths: Vec<status::Entry>) -> Vec<status::Entry> {
    paths.sort_by(|a, b| {
        let place = |entry: &status::Entry| entry.kind == Differs::Untracked;
        place(a).cmp(&place(b)).then_with(|| a.path.as_bytes().cmp(b.path.as_bytes()))
    });
    paths
}

fn edited() -> Differs {
    Differs::Tracked { staged: false, unstaged: true, deleted: false }
}

fn gone() -> Differs {
    Differs::Tracked { staged: false, unstaged: true, deleted: true }
}

/// Whether an entry is of a file or a link; else it is of a submodule.
fn is_of_files(mode: u32) -> bool {
    matches!(mode, entries::FILE | entries::EXECUTABLE | entries::LINK)
}

/// Times as git compares them: every number that an index has, by the second.
pub(super) const BY_SECOND: stat::Options =
    stat::Options { trust_ctime: true, check_stat: true, use_nsec: false, use_stdev: false };

/// Whether a file was changed in the second in which the index was written, or later.
pub(super) fn is_racy(index: &File, entry: &gix::index::Entry) -> bool {
    entry.stat.is_racy(index.timestamp(), BY_SECOND)
}

/// Opens a folder that is no link to one.
pub(super) fn open_folder(above: &OwnedFd, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    openat(above, name, FOLDER, rustix::fs::Mode::empty())
}

pub(super) const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// What an index would note of a file: the lower 32 bits of each number.
pub(super) fn noted(meta: &rustix::fs::Stat) -> Stat {
    let low = |n: i128| u32::try_from(n & 0xFFFF_FFFF).unwrap_or_default();
    let time = |secs: i128, nsecs: i128| Time { secs: low(secs), nsecs: low(nsecs) };
    Stat {
        mtime: time(meta.st_mtime.into(), meta.st_mtime_nsec.into()),
        ctime: time(meta.st_ctime.into(), meta.st_ctime_nsec.into()),
        dev: low(meta.st_dev.into()),
        ino: low(meta.st_ino.into()),
        uid: low(meta.st_uid.into()),
        gid: low(meta.st_gid.into()),
        size: low(meta.st_size.into()),
    }
}

#[cfg(test)]
mod tests;
