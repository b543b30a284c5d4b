//! Owns copying files and folders from one worktree to another while others may write to the first: nothing is replaced, no
//! link is followed at either end, and what cannot be copied is named.

use std::ffi::{CStr, OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fchmod, mkdirat, openat, statat};
use rustix::io::Errno;

use crate::copy::{Failed, Place, Stamp, copy_file_at, copy_link_at, keep_times_at, let_settle};
use crate::git::{Included, RepoPath};
use crate::lane::Error;
use crate::note::Listener;

/// A folder that is opened to look into it, and never by a link.
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Folders deeper than this are left: each takes two open files while it is copied.
const DEEPEST: usize = 200;

/// After this long it is said what is being copied, and how often from then on.
const QUIET: Duration = Duration::from_millis(500);
const TELL: Duration = Duration::from_millis(200);

/// What was copied, and what was not.
#[derive(Debug, Default)]
pub(super) struct Copied {
    /// Each file, with what it was like.
    pub(super) files: Vec<(RepoPath, Stamp)>,
    /// What was left out, with the reason in a few words.
    pub(super) left_out: Vec<(RepoPath, String)>,
}

/// Why one is not copied.
enum Left {
    /// It changes or goes meanwhile; it may be better later.
    Changed,
    /// For good.
    Because(String),
    /// Nothing more is copied.
    Stop(Error),
}

/// Why the folder above one cannot be opened: in the main checkout, or in the lane.
enum Above {
    There(Errno),
    Here(Errno),
}

impl Left {
    fn because(why: &str) -> Left {
        Left::Because(why.to_owned())
    }
}

impl From<Failed> for Left {
    fn from(failed: Failed) -> Left {
        match failed {
            Failed::Changed => Left::Changed,
            Failed::Stopped => Left::Stop(crate::interrupt::Interrupted.into()),
            Failed::Io(e) if is_full(&e) => Left::Stop(Error::io("copy to the lane", Path::new("."))(e)),
            other => Left::Because(other.to_string()),
        }
    }
}

/// Copies one after the other.
pub(super) struct Copier<'a> {
    listener: &'a Listener,
    /// What is never copied, whatever folder it lies in.
    leaves_out: &'a dyn Fn(&RepoPath, bool) -> bool,
    from: OwnedFd,
    to: OwnedFd,
    done: Copied,
    /// What was written to meanwhile.
    again: Vec<RepoPath>,
    began: Instant,
    told: Option<Instant>,
    bytes: u64,
}

impl<'a> Copier<'a> {
    /// From the top of one folder to that of another.
    pub(super) fn new(
        from: &Path,
        to: &Path,
        listener: &'a Listener,
        leaves_out: &'a dyn Fn(&RepoPath, bool) -> bool,
    ) -> Result<Copier<'a>, Error> {
        let open = |dir: &Path| {
            let opened = rustix::fs::open(dir, FOLDER, Mode::empty());
            opened.map_err(|e| Error::io("open", dir)(e.into()))
        };
        Ok(Copier {
            listener,
            leaves_out,
            from: open(from)?,
            to: open(to)?,
            done: Copied::default(),
            again: Vec::new(),
            began: Instant::now(),
            told: None,
            bytes: 0,
        })
    }

    /// Copies what was found, each to the same place. What changes meanwhile is tried once more in the end.
    ///
    /// # Errors
    /// When it was interrupted, or the disk is full: then a part of it is there.
    pub(super) fn copy(mut self, all: &[Included]) -> Result<Copied, Error> {
        for one in all {
            self.one(&one.path)?;
        }
        let again = std::mem::take(&mut self.again);
        if !again.is_empty() {
            let_settle();
        }
        for path in again {
            self.one(&path)?;
        }
        for path in std::mem::take(&mut self.again) {
            self.leave(path, "it changes or goes while it is copied");
        }
        if self.told.is_some() {
            self.listener.progress("");
        }
        Ok(self.done)
    }

    fn leave(&mut self, path: RepoPath, why: impl Into<String>) {
        self.done.left_out.push((path, why.into()));
    }

    /// Copies a file, a link or a folder, with the folders above it.
    fn one(&mut self, path: &RepoPath) -> Result<(), Error> {
        let name = name_of(path);
        let above = path.parents().last();
        let folders = match &above {
            None => self.tops().map_err(Above::There),
            Some(above) => self.open_above(above),
        };
        match folders {
            Ok((from, to)) => {
                self.entry(&from, &to, path, &name, 0)?;
                // It may be a second try, long after the folder was closed.
                if let Some(above) = &above
                    && let Ok(stat) = rustix::fs::fstat(&from)
                {
                    self.keep_times(above, &stat);
                }
            }
            Err(Above::Here(e)) if is_full(&e.into()) => {
                return Err(Error::io("copy to the lane", &path.under(Path::new("")))(e.into()));
            }
            Err(Above::There(e)) => self.leave(path.clone(), in_words(e)),
            Err(Above::Here(Errno::NOTDIR | Errno::LOOP)) => {
                self.leave(path.clone(), "a folder above it is something else in the lane");
            }
            Err(Above::Here(e)) => self.leave(path.clone(), std::io::Error::from(e).to_string()),
        }
        Ok(())
    }

    fn tops(&self) -> Result<(OwnedFd, OwnedFd), Errno> {
        let again = |dir: &OwnedFd| rustix::io::fcntl_dupfd_cloexec(dir, 0);
        Ok((again(&self.from)?, again(&self.to)?))
    }

    fn keep_times(&self, folder: &RepoPath, stat: &Stat) {
        if let Ok((_, to)) = self.tops()
            && let Ok(to) = openat(&to, path_of(folder), FOLDER, Mode::empty())
        {
            keep_times_at(stat, (to.as_fd(), OsStr::new(".")));
        }
    }

    /// Opens a folder on both sides, one name at a time, and makes it where it is missing.
    fn open_above(&self, folder: &RepoPath) -> Result<(OwnedFd, OwnedFd), Above> {
        let (mut from, mut to) = self.tops().map_err(Above::There)?;
        for name in folder.as_bytes().split(|b| *b == b'/').map(OsStr::from_bytes) {
            from = openat(&from, name, FOLDER, Mode::empty()).map_err(Above::There)?;
            to = folder_in(&to, name).map_err(Above::Here)?;
        }
        Ok((from, to))
    }

    /// Copies one name of an open folder.
    fn entry(
        &mut self,
        from: &OwnedFd,
        to: &OwnedFd,
        path: &RepoPath,
        name: &OsStr,
        depth: usize,
    ) -> Result<(), Error> {
        crate::interrupt::check()?;
        match self.try_entry(from, to, path, name, depth) {
            Ok(()) => {}
            Err(Left::Changed) => self.again.push(path.clone()),
            Err(Left::Because(why)) => self.leave(path.clone(), why),
            Err(Left::Stop(Error::Io { verb, source, .. })) => {
                return Err(Error::Io { verb, path: path.under(Path::new("")), source });
            }
            Err(Left::Stop(e)) => return Err(e),
        }
        Ok(())
    }

    fn try_entry(
        &mut self,
        from: &OwnedFd,
        to: &OwnedFd,
        path: &RepoPath,
        name: &OsStr,
        depth: usize,
    ) -> Result<(), Left> {
        let stat = statat(from, name, AtFlags::SYMLINK_NOFOLLOW).map_err(|e| match e {
            Errno::NOENT => Left::Changed,
            e => Left::Because(in_words(e)),
        })?;
        let (source, target): (Place<'_>, Place<'_>) = ((from.as_fd(), name), (to.as_fd(), name));
        let done = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => copy_file_at(source, target, &mut |bytes| self.goes_on(path, bytes))
                .map(|stamp| self.done.files.push((path.clone(), stamp))),
            FileType::Symlink => copy_link_at(source, target),
            FileType::Directory => return self.folder((from, to), path, name, &stat, depth),
            kind => return Err(Left::because(kind_in_words(kind))),
        };
        match done {
            // Whatever stands there was put there by the checkout, or is the lane's own.
            Ok(()) | Err(Failed::Taken) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    fn folder(
        &mut self,
        (from, to): (&OwnedFd, &OwnedFd),
        path: &RepoPath,
        name: &OsStr,
        stat: &Stat,
        depth: usize,
    ) -> Result<(), Left> {
        if depth == DEEPEST {
            return Err(Left::because("it lies too deep"));
        }
        let inside = openat(from, name, FOLDER, Mode::empty()).map_err(|e| Left::Because(in_words(e)))?;
        let is_new = statat(to, name, AtFlags::SYMLINK_NOFOLLOW).is_err();
        let copy = folder_in(to, name).map_err(|e| match e {
            Errno::NOTDIR | Errno::LOOP => Left::because("something else stands there in the lane"),
            e => Failed::Io(e.into()).into(),
        })?;
        let names = names_in(&inside).map_err(|e| Left::Because(in_words(e)))?;
        for name in names {
            let below = path.join(name.as_bytes());
            let stat = statat(&inside, &name, AtFlags::SYMLINK_NOFOLLOW);
            let is_folder = stat.is_ok_and(|s| FileType::from_raw_mode(s.st_mode) == FileType::Directory);
            if !(self.leaves_out)(&below, is_folder) {
                self.entry(&inside, &copy, &below, &name, depth + 1).map_err(Left::Stop)?;
            }
        }
        // What a checkout made keeps its mode.
        if is_new {
            let _kept = fchmod(&copy, Mode::from_raw_mode(stat.st_mode));
            keep_times_at(stat, (to.as_fd(), name));
        }
        Ok(())
    }

    /// Counts what was copied, says so from time to time, and whether to go on.
    fn goes_on(&mut self, path: &RepoPath, bytes: u64) -> bool {
        self.bytes += bytes;
        if self.began.elapsed() > QUIET && self.told.is_none_or(|told| told.elapsed() > TELL) {
            self.told = Some(Instant::now());
            let (megabytes, files) = (self.bytes / 1_000_000, self.done.files.len());
            self.listener.progress(format!("copying to the lane: {megabytes} MB, {files} files: {path}"));
        }
        crate::interrupt::check().is_ok()
    }
}

/// Opens a folder, and makes it where nothing has the name.
fn folder_in(above: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    match mkdirat(above, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => openat(above, name, FOLDER, Mode::empty()),
        Err(e) => Err(e),
    }
}

/// The names in a folder, all read before anything is done with them.
fn names_in(folder: &OwnedFd) -> Result<Vec<OsString>, Errno> {
    let owned = |name: &CStr| OsString::from_vec(name.to_bytes().to_vec());
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            names.push(owned(entry.file_name()));
        }
    }
    Ok(names)
}

fn name_of(path: &RepoPath) -> OsString {
    let name = path.as_bytes().rsplit(|b| *b == b'/').next().unwrap_or_default();
    OsStr::from_bytes(name).to_owned()
}

fn path_of(path: &RepoPath) -> &OsStr {
    OsStr::from_bytes(path.as_bytes())
}

fn is_full(e: &std::io::Error) -> bool {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(e.kind(), StorageFull | QuotaExceeded | FileTooLarge | ReadOnlyFilesystem)
}

fn in_words(e: Errno) -> String {
    match e {
        Errno::ACCESS | Errno::PERM => "it may not be read".to_owned(),
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP => "it changes or goes while it is copied".to_owned(),
        e => std::io::Error::from(e).to_string(),
    }
}

fn kind_in_words(kind: FileType) -> &'static str {
    match kind {
        FileType::Fifo => "a named pipe",
        FileType::Socket => "a socket",
        FileType::BlockDevice | FileType::CharacterDevice => "a device",
        _ => "no file",
    }
}
