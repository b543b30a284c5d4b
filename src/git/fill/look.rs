//! Owns looking at a folder that was a worktree once, by the index that it had: which of its files are surely as that says, and
//! what else lies there. Nothing is taken for granted that was true when the worktree was one.

use std::ffi::OsStr;
use std::fs::File as OpenFile;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use gix::index::entry::{Mode, Stat, stat};
use gix::index::{Entry, File};
use gix::objs::{FindHeader, Kind, compute_hash};
use rustix::fs::{AtFlags, Dir, FileType, OFlags, fstat, openat, readlinkat, statat};

use super::super::clean::{BY_SECOND, FOLDER, is_racy, noted, open_folder};
use super::super::ignored::Names;
use super::super::include::Included;
use super::super::modes::umask;
use super::super::threads::in_threads;
use super::super::{Repo, RepoPath};
use super::by_folder::{ByFolder, Inside};

/// So many bytes of files are read whose times do not settle what they are. Beyond that a copy is not slower.
const MOST_BYTES: u64 = 64 << 20;

/// What was seen.
#[derive(Default)]
pub(super) struct Seen {
    /// The places in the index of entries whose files have what it says, and are to be made anew all the same: they have other
    /// names or rights too, or git would write them otherwise.
    pub(super) again: Vec<usize>,
    /// What lies there besides, folders as a whole, and the `.git` at the top left out.
    pub(super) loose: Vec<Included>,
}

/// Looks at all of it. What an entry says that `made` has just the same is known to be the bytes of its blob. Why the folder is of no use where it is not: a file is not what the index says, or cannot be looked at.
pub(super) fn look(repo: &Repo, top: &Path, index: &File, made: Option<&File>) -> Result<Seen, &'static str> {
    let mask = umask().ok_or("the rights of new files are not known")?;
    let exact = made.map_or_else(Vec::new, |made| same_entries(index, made));
    let look = Look { top, index, mask, exact, bytes: AtomicU64::new(0), why_not: OnceLock::new() };
    let parts = ByFolder(index).parts();
    let store = repo.gix.objects.store();
    let all = in_threads(&parts, |(above, entries)| {
        let objects = gix::odb::Handle::from(store.to_handle_arc());
        let mut part = Part { look: &look, objects, seen: Seen::default() };
        if look.why_not.get().is_none() {
            part.whole(*above, entries);
        }
        part.seen
    });
    if let Some(why) = look.why_not.get() {
        return Err(why);
    }
    let mut seen = Seen::default();
    for part in all {
        seen.again.extend(part.again);
        seen.loose.extend(part.loose);
    }
    seen.loose.sort();
    Ok(seen)
}

/// Which entries of one index another has just the same, stat data included. Both are in order.
fn same_entries(index: &File, other: &File) -> Vec<bool> {
    let mut others = other.entries().iter().peekable();
    let same = |entry: &Entry| {
        let path = entry.path(index);
        while others.next_if(|known| known.path(other) < path).is_some() {}
        others.peek().is_some_and(|known| {
            let alike = known.id == entry.id && known.mode == entry.mode && known.stat == entry.stat;
            alike && known.path(other) == path
        })
    };
    index.entries().iter().map(same).collect()
}

struct Look<'a> {
    top: &'a Path,
    index: &'a File,
    mask: u32,
    /// Which entries are known to be the bytes of their blobs; none where that is not known of any.
    exact: Vec<bool>,
    bytes: AtomicU64,
    why_not: OnceLock<&'static str>,
}

/// One thread's share of it.
struct Part<'a> {
    look: &'a Look<'a>,
    objects: gix::odb::Handle,
    seen: Seen,
}

/// What is to become of a file.
enum Fate {
    Stays,
    Again,
}

impl Part<'_> {
    /// Looks at a folder of which only the length of the name, with the slash, is known.
    fn whole(&mut self, above: usize, entries: &[Entry]) {
        let name = entries.first().and_then(|e| e.path(self.look.index).get(..above)).unwrap_or_default();
        let dir = self.look.top.join(OsStr::from_bytes(name));
        match rustix::fs::open(&dir, FOLDER, rustix::fs::Mode::empty()) {
            Ok(open) => drop(self.folder(open, above, entries)),
            Err(_) => drop(self.fails::<()>("a folder is gone, or cannot be opened")),
        }
    }

    /// Notes why the folder is of no use.
    fn fails<T>(&self, why: &'static str) -> Option<T> {
        let _first = self.look.why_not.set(why);
        None
    }

    /// Looks at a folder with `entries`, which are all those below it, but for what is a part of its own.
    fn folder(&mut self, open: OwnedFd, above: usize, entries: &[Entry]) -> Option<()> {
        let Ok(meta) = fstat(&open) else { return self.fails("a folder cannot be looked at") };
        if meta.st_mode & 0o777 != 0o777 & !self.look.mask {
            return self.fails("a folder has other rights than a new one");
        }
        let all = ByFolder(self.look.index);
        let (mut names, mut rest) = (Vec::new(), entries);
        while let Some((name, inside)) = all.first(above, &mut rest) {
            let called = OsStr::from_bytes(name);
            let is_part = inside.is_part();
            match inside {
                Inside::File(entry) => {
                    if matches!(self.file(entry, &open, called)?, Fate::Again) {
                        self.seen.again.push(self.place_of(entry));
                    }
                }
                Inside::Folder(below) => {
                    let Ok(open) = open_folder(&open, called) else {
                        return self.fails("a folder is gone, or is none any more");
                    };
                    if !is_part {
                        self.folder(open, above + name.len() + 1, below)?;
                    }
                }
            }
            names.push(name);
        }
        let Some(first) = entries.first().filter(|_| rest.is_empty()) else {
            return self.fails("its index is of another form");
        };
        let name = first.path(self.look.index).get(..above).unwrap_or_default();
        self.loose(name, open, Names::new(names))
    }

    /// Notes what a folder has besides `names`.
    fn loose(&mut self, folder: &[u8], open: OwnedFd, mut names: Names<'_>) -> Option<()> {
        let Ok(all) = Dir::new(open) else { return self.fails("a folder cannot be read") };
        for entry in all {
            let Ok(entry) = entry else { return self.fails("a folder cannot be read") };
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") || names.has(name) || (folder.is_empty() && name == b".git") {
                continue;
            }
            let path = RepoPath::new([folder, name].concat());
            let is_folder = match entry.file_type() {
                FileType::Unknown => {
                    path.under(self.look.top).symlink_metadata().is_ok_and(|meta| meta.is_dir())
                }
                kind => kind.is_dir(),
            };
            self.seen.loose.push(Included { path, is_folder });
        }
        Some(())
    }

    /// The place of an entry in the index.
    fn place_of(&self, entry: &Entry) -> usize {
        let all = self.look.index.entries();
        let from = |entry: *const Entry| entry.addr();
        (from(entry) - from(all.as_ptr())) / size_of::<Entry>()
    }

    /// Whether the file of an entry is what that says.
    fn file(&self, entry: &Entry, above: &OwnedFd, name: &OsStr) -> Option<Fate> {
        let Ok(meta) = statat(above, name, AtFlags::SYMLINK_NOFOLLOW) else {
            return self.fails("a file is gone");
        };
        let (kind, executable) = (FileType::from_raw_mode(meta.st_mode), meta.st_mode & 0o100 != 0);
        let is_kind = match entry.mode {
            Mode::FILE => kind.is_file() && !executable,
            Mode::FILE_EXECUTABLE => kind.is_file() && executable,
            Mode::SYMLINK => kind.is_symlink(),
            Mode::COMMIT => return self.submodule(above, name),
            _ => false,
        };
        if !is_kind {
            return self.fails("a file is of another kind");
        }
        let as_noted = entry.stat.matches(&noted(&meta), stat::Options { use_nsec: true, ..BY_SECOND });
        let settled = as_noted && !is_racy(self.look.index, entry);
        if !settled && !self.has_content(entry, above, name, &meta) {
            return self.fails("a file was changed");
        }
        let rights = if executable { 0o777 } else { 0o666 } & !self.look.mask;
        let usual = kind.is_symlink() || meta.st_mode & 0o7777 == rights;
        let is_exact = || self.look.exact.get(self.place_of(entry)).is_some_and(|exact| *exact);
        let as_new =
            as_noted && usual && meta.st_nlink == 1 && (is_exact() || self.has_length(entry, &entry.stat));
        Some(if as_new { Fate::Stays } else { Fate::Again })
    }

    /// The folder of a submodule, as git makes it: empty.
    fn submodule(&self, above: &OwnedFd, name: &OsStr) -> Option<Fate> {
        let open = open_folder(above, name).ok().and_then(|open| Dir::new(open).ok());
        let is_empty =
            |mut all: Dir| all.all(|e| e.is_ok_and(|e| matches!(e.file_name().to_bytes(), b"." | b"..")));
        if open.is_some_and(is_empty) { Some(Fate::Stays) } else { self.fails("it has a submodule in it") }
    }

    /// Whether a file is as long as its blob. One that a filter, or a rule about line ends, has changed is not.
    fn has_length(&self, entry: &Entry, stat: &Stat) -> bool {
        let header = self.objects.try_header(&entry.id).ok().flatten();
        header.is_some_and(|found| found.kind == Kind::Blob && found.size == u64::from(stat.size))
    }

    /// Reads a file, as long as not too much was read already.
    fn has_content(&self, entry: &Entry, above: &OwnedFd, name: &OsStr, meta: &rustix::fs::Stat) -> bool {
        let size = u64::try_from(meta.st_size).unwrap_or(u64::MAX);
        if self.look.bytes.fetch_add(size.min(MOST_BYTES), Relaxed).saturating_add(size) > MOST_BYTES {
            return false;
        }
        let bytes = if entry.mode == Mode::SYMLINK {
            readlinkat(above, name, Vec::new()).ok().map(std::ffi::CString::into_bytes)
        } else {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let open = openat(above, name, flags, rustix::fs::Mode::empty());
            let mut bytes = Vec::new();
            open.ok().and_then(|open| OpenFile::from(open).read_to_end(&mut bytes).ok()).map(|_| bytes)
        };
        let id = bytes.and_then(|bytes| compute_hash(entry.id.kind(), Kind::Blob, &bytes).ok());
        id == Some(entry.id)
    }
}
