//! Owns making the files of an index's entries in new worktrees: from a checkout whose file is proved to be what the entry
//! says, else from the repository's objects.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Result, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use gix::index::Entry;
use gix::index::entry::stat::Options;
use gix::index::entry::{Mode, Stat};
use gix::objs::{Find, FindHeader, Kind};
use rustix::fs::{AtFlags, OFlags, Timespec, Timestamps, UTIME_OMIT};
use rustix::fs::{fstat, futimens, mkdirat, openat, readlinkat, statat, symlinkat, unlinkat, utimensat};
use rustix::io::Errno;

use super::super::RepoPath;
use super::super::clean::{BY_SECOND, FOLDER, noted, open_folder};
use super::super::plain::is_ordinary;
use super::conversions::Conversions;
use super::sizes::{Known, Sizes, known};
use crate::copy::{Failed, copy_bytes, copy_content};

/// A longer file may have holes.
const LONG: u64 = 256 << 10;
/// A longer blob is git's, which need not have all of it in memory.
const LARGEST: u64 = 32 << 20;

/// What files are made of, and where.
pub(super) struct Making<'a> {
    /// The index that says what they are.
    pub(super) index: &'a gix::index::File,
    /// The checkout that is copied from; none where there is no other.
    pub(super) source: Option<&'a Path>,
    /// The tops of the new worktrees.
    pub(super) targets: &'a [&'a Path],
    /// Which paths git would write in another form.
    pub(super) conversions: &'a Conversions,
    /// Which blobs are known to be as long as their files.
    pub(super) sizes: &'a Sizes,
    /// Those that were found to be.
    pub(super) learned: Mutex<Vec<Known>>,
    /// How many files may be made of objects.
    pub(super) most: usize,
    /// How many were, and how many were copied.
    pub(super) written: AtomicUsize,
    pub(super) copied: AtomicUsize,
}

/// One thread's share of it.
pub(super) struct Part<'a> {
    making: &'a Making<'a>,
    objects: gix::odb::Handle,
    /// The name of the last entry's folder, with the slash.
    above: Vec<u8>,
    /// The folders from the top down to that one.
    folders: Vec<Open>,
    buffer: Vec<u8>,
    learned: Vec<Known>,
    /// A file was not what its entry says: each is looked at before it is copied, and not only afterwards.
    doubts: bool,
}

/// A folder that is open in the source, if it is there, and in each target, once something is made in it.
struct Open {
    /// The length of its name, with the slash.
    name: usize,
    from: Option<OwnedFd>,
    to: Vec<OwnedFd>,
}

impl<'a> Part<'a> {
    /// Begins at the top.
    ///
    /// # Errors
    /// When a new worktree cannot be opened.
    pub(super) fn new(making: &'a Making<'a>, objects: gix::odb::Handle) -> Result<Part<'a>> {
        let open = |dir: &&Path| rustix::fs::open(*dir, FOLDER, rustix::fs::Mode::empty());
        let to = making.targets.iter().map(open).collect::<rustix::io::Result<_>>()?;
        let top = Open { name: 0, from: making.source.as_ref().and_then(|dir| open(dir).ok()), to };
        Ok(Part {
            making,
            objects,
            above: Vec::new(),
            folders: vec![top],
            buffer: Vec::new(),
            learned: Vec::new(),
            doubts: false,
        })
    }

    /// Hands over what was learned on the way.
    pub(super) fn finish(self) {
        if let Ok(mut learned) = self.making.learned.lock() {
            learned.extend(self.learned);
        }
    }

    /// Makes the file of an entry in each target: what it is noted as there. None where that is git's to do; then nothing was.
    ///
    /// # Errors
    /// When it cannot be made, or something stands in its place.
    pub(super) fn make(&mut self, entry: &Entry) -> Result<Option<Vec<Stat>>> {
        let path: &[u8] = entry.path(self.making.index);
        // No folder is made for what a sparse checkout leaves out.
        let may_be_made =
            entry.stat != Stat::default() || self.making.written.load(Relaxed) < self.making.most;
        if !may_be_made || self.making.conversions.concern(path) {
            return Ok(None);
        }
        self.enter(path);
        let name = OsStr::from_bytes(&path[self.above.len()..]);
        match entry.mode {
            Mode::FILE | Mode::FILE_EXECUTABLE => self.file(entry, name),
            Mode::SYMLINK => self.link(entry, name),
            Mode::COMMIT => self.submodule(name).map(Some),
            _ => Ok(None),
        }
    }

    /// Goes to the folder of a path.
    fn enter(&mut self, path: &[u8]) {
        while !path.starts_with(&self.above) {
            self.folders.pop();
            self.above.truncate(self.folders.last().map_or(0, |folder| folder.name));
        }
        while let Some(end) = path[self.above.len()..].iter().position(|b| *b == b'/') {
            let name = OsStr::from_bytes(&path[self.above.len()..][..end]);
            let from = self.folders.last().and_then(|last| open_folder(last.from.as_ref()?, name).ok());
            self.above.extend_from_slice(&path[self.above.len()..][..=end]);
            self.folders.push(Open { name: self.above.len(), from, to: Vec::new() });
        }
    }

    /// That folder in each target, made where it is not there yet.
    fn targets(&mut self) -> Result<&[OwnedFd]> {
        for at in 1..self.folders.len() {
            let (above, rest) = self.folders.split_at_mut(at);
            if let (Some(above), Some(folder)) = (above.last(), rest.first_mut())
                && folder.to.is_empty()
            {
                let name = OsStr::from_bytes(&self.above[above.name..folder.name - 1]);
                folder.to = above.to.iter().map(|to| make_folder(to, name)).collect::<Result<_>>()?;
            }
        }
        Ok(self.folders.last().map_or(&[], |folder| &folder.to))
    }

    /// That folder in the source, if the entry's file there may be what it says.
    fn origin(&self, entry: &Entry) -> Option<&OwnedFd> {
        self.folders.last()?.from.as_ref().filter(|_| entry.stat != Stat::default())
    }

    fn file(&mut self, entry: &Entry, name: &OsStr) -> Result<Option<Vec<Stat>>> {
        if let Some(from) = self.original(entry, name) {
            if let Some(made) = self.copies(entry, name, &from)? {
                self.count(false);
                return Ok(Some(made));
            }
            self.doubts = true;
        }
        if !self.read_object(entry) {
            return Ok(None);
        }
        let buffer = std::mem::take(&mut self.buffer);
        let mut made = Vec::with_capacity(self.making.targets.len());
        for to in self.targets()? {
            let mut file = create(entry, to, name)?;
            file.write_all(&buffer)?;
            made.push(noted(&fstat(&file)?));
        }
        self.buffer = buffer;
        self.count(true);
        Ok(Some(made))
    }

    /// Copies a file to each target. None where it is not what its entry says; then nothing is there. It is looked at when it
    /// has been copied, so that whoever wrote to it until then has changed its times.
    fn copies(&mut self, entry: &Entry, name: &OsStr, from: &File) -> Result<Option<Vec<Stat>>> {
        crate::fault::point("fill.copies");
        let size = u64::from(entry.stat.size);
        let mut buffer = std::mem::take(&mut self.buffer);
        let (mut made, mut whole) = (Vec::with_capacity(self.making.targets.len()), true);
        for to in self.targets()? {
            let file = create(entry, to, name)?;
            whole = whole
                && if size > LONG { long(from, &file)? } else { copy_bytes(from, &file, size, &mut buffer)? };
            futimens(&file, &stamps(modified(entry)))?;
            made.push(noted(&fstat(&file)?));
        }
        self.buffer = buffer;
        if whole && is_as_noted(entry, &fstat(from)?) {
            return Ok(Some(made));
        }
        for to in self.targets()? {
            unlinkat(to, name, AtFlags::empty())?;
        }
        Ok(None)
    }

    fn count(&self, written: bool) {
        let counter = if written { &self.making.written } else { &self.making.copied };
        counter.fetch_add(1, Relaxed);
    }

    /// What the source has in a file's place, if that may be what the entry says.
    fn original(&mut self, entry: &Entry, name: &OsStr) -> Option<File> {
        self.origin(entry)?;
        self.is_as_long(entry).then_some(())?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(self.origin(entry)?, name, flags, rustix::fs::Mode::empty()).ok()?;
        let is_fit = || fstat(&file).is_ok_and(|meta| is_as_noted(entry, &meta));
        (!self.doubts || is_fit()).then(|| File::from(file))
    }

    /// Whether the blob of an entry is as long as its file.
    fn is_as_long(&mut self, entry: &Entry) -> bool {
        let known = known(entry);
        if self.making.sizes.has(&known) {
            return true;
        }
        let same = self.size_of(entry) == Some(entry.stat.size.into());
        if same {
            self.learned.push(known);
        }
        same
    }

    /// How long the blob of an entry is. A file whose line ends git would change when it takes it in is longer or shorter.
    fn size_of(&self, entry: &Entry) -> Option<u64> {
        let header = self.objects.try_header(&entry.id).ok().flatten()?;
        (header.kind == Kind::Blob).then_some(header.size)
    }

    /// Reads the blob of an entry into the buffer; false where that is git's.
    fn read_object(&mut self, entry: &Entry) -> bool {
        let ordinary = is_ordinary(&RepoPath::new(entry.path(self.making.index).to_vec()));
        if !ordinary || self.making.written.load(Relaxed) >= self.making.most {
            return false;
        }
        self.size_of(entry).is_some_and(|size| size <= LARGEST)
            && matches!(self.objects.try_find(&entry.id, &mut self.buffer), Ok(Some(found)) if found.kind == Kind::Blob)
    }

    /// The folder of a submodule, which git leaves empty.
    fn submodule(&mut self, name: &OsStr) -> Result<Vec<Stat>> {
        let make = |to: &OwnedFd| {
            make_folder(to, name)?;
            Ok(noted(&statat(to, name, AtFlags::SYMLINK_NOFOLLOW)?))
        };
        self.targets()?.iter().map(make).collect()
    }

    fn link(&mut self, entry: &Entry, name: &OsStr) -> Result<Option<Vec<Stat>>> {
        let copied = self.origin(entry).and_then(|from| {
            let leads = readlinkat(from, name, Vec::new()).ok()?;
            let meta = statat(from, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
            let same =
                has_numbers(entry, &meta) && self.size_of(entry) == Some(leads.as_bytes().len() as u64);
            same.then(|| (leads.into_bytes(), Some(modified(entry))))
        });
        let (leads, time) = match copied {
            Some(copied) => copied,
            // What git does with an empty one is its own.
            None if self.read_object(entry) && !self.buffer.is_empty() && !self.buffer.contains(&0) => {
                (self.buffer.clone(), None)
            }
            None => return Ok(None),
        };
        let mut made = Vec::with_capacity(self.making.targets.len());
        for to in self.targets()? {
            symlinkat(OsStr::from_bytes(&leads), to, name)?;
            if let Some(time) = time {
                utimensat(to, name, &stamps(time), AtFlags::SYMLINK_NOFOLLOW)?;
            }
            made.push(noted(&statat(to, name, AtFlags::SYMLINK_NOFOLLOW)?));
        }
        self.count(time.is_none());
        Ok(Some(made))
    }
}

/// Opens a folder, which another thread may have made.
fn make_folder(above: &OwnedFd, name: &OsStr) -> Result<OwnedFd> {
    match mkdirat(above, name, 0o777.into()) {
        Ok(()) | Err(Errno::EXIST) => Ok(open_folder(above, name)?),
        Err(e) => Err(e.into()),
    }
}

/// Makes the file of an entry, where nothing may be.
fn create(entry: &Entry, to: &OwnedFd, name: &OsStr) -> Result<File> {
    let mode = if entry.mode == Mode::FILE { 0o666 } else { 0o777 };
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    Ok(File::from(openat(to, name, flags, mode.into())?))
}

/// Whether something is a file, with every number that an index has of it.
fn is_as_noted(entry: &Entry, meta: &rustix::fs::Stat) -> bool {
    rustix::fs::FileType::from_raw_mode(meta.st_mode).is_file() && has_numbers(entry, meta)
}

/// Whether it has those, to the tick.
fn has_numbers(entry: &Entry, meta: &rustix::fs::Stat) -> bool {
    entry.stat.matches(&noted(meta), Options { use_nsec: true, ..BY_SECOND })
}

/// The time of a file that is as it is noted.
fn modified(entry: &Entry) -> Timespec {
    let time = entry.stat.mtime;
    Timespec { tv_sec: time.secs.into(), tv_nsec: time.nsecs.into() }
}

/// The time of a copied file is that of its source: it is older than the index, so git need not read it again, and what was
/// built of the source is not older than it.
fn stamps(modified: Timespec) -> Timestamps {
    Timestamps { last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT }, last_modification: modified }
}

/// Copies a long file from its beginning; false where it is none any more.
fn long(mut from: &File, to: &File) -> Result<bool> {
    let meta = from.metadata()?;
    if !meta.is_file() {
        return Ok(false);
    }
    from.rewind()?;
    match copy_content(from, &meta, to, &mut |_| true) {
        Ok(()) => Ok(true),
        Err(Failed::Changed) => Ok(false),
        Err(e) => Err(std::io::Error::other(e)),
    }
}
