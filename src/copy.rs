//! Owns copying one file or link whole: shared blocks where the disk can, holes, mode and times kept, and never half of what
//! somebody was writing at the same time.

use std::ffi::OsStr;
use std::fs::{File, Metadata, Permissions};
use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, Mode, OFlags, SeekFrom, Stat, Timespec, Timestamps};

/// So much is copied between two looks at whether to go on.
const PART: u64 = 16 << 20;

/// What a block of a file takes, whatever the disk's own blocks are.
const BLOCK: u64 = 512;

/// Two writes that are closer than this may leave one and the same time on a file.
const TICK: Duration = Duration::from_millis(10);

/// What a file's size and the time of its last change were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// In bytes.
    pub(crate) size: u64,
    /// The time, in whole seconds.
    pub(crate) seconds: i64,
    /// The rest of it.
    pub(crate) nanos: i64,
}

impl Stamp {
    /// The stamp of a file that was looked at.
    pub(crate) fn of(meta: &Metadata) -> Stamp {
        Stamp { size: meta.size(), seconds: meta.mtime(), nanos: meta.mtime_nsec() }
    }
}

/// Why a file was not copied. Nothing of it is left at the place where it was to go.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failed {
    /// It is gone, is something else now, or was written to meanwhile.
    #[error("it was written to at the same time")]
    Changed,
    /// It may not be read.
    #[error("it may not be read")]
    Unreadable,
    /// Something stands at the place where it was to go.
    #[error("something stands in its place")]
    Taken,
    /// Whoever wants the copy does not want it any more.
    #[error("it was stopped")]
    Stopped,
    /// Reading or writing failed.
    #[error("{0}")]
    Io(#[source] io::Error),
}

impl Failed {
    /// Why something could not be opened or looked at.
    fn at_source(e: rustix::io::Errno) -> Failed {
        match io::Error::from(e) {
            e if e.kind() == ErrorKind::PermissionDenied => Failed::Unreadable,
            // What was a file is a link, a socket or gone.
            e if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Failed::Changed,
            e if matches!(e.raw_os_error(), Some(LOOP | NO_SUCH_DEVICE)) => Failed::Changed,
            e => Failed::Io(e),
        }
    }

    /// Why something could not be made.
    fn at_target(e: rustix::io::Errno) -> Failed {
        match io::Error::from(e) {
            e if e.kind() == ErrorKind::AlreadyExists => Failed::Taken,
            e => Failed::Io(e),
        }
    }
}

/// What opening a link says that is not to be followed, and what opening a socket says.
const LOOP: i32 = rustix::io::Errno::LOOP.raw_os_error();
const NO_SUCH_DEVICE: i32 = rustix::io::Errno::NXIO.raw_os_error();

/// A name in an open folder: whatever becomes of the folder's own name, this is the place.
pub(crate) type Place<'a> = (BorrowedFd<'a>, &'a OsStr);

/// Copies a file to a place where nothing may stand. No link is followed at either end. `go_on` is told of bytes as they are
/// copied, and says whether to.
///
/// # Errors
/// Then nothing stands there still.
pub(crate) fn copy_file_at(
    from: Place<'_>,
    to: Place<'_>,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<Stamp, Failed> {
    // One that is a pipe by now must not be waited for.
    let reading = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let source = rustix::fs::openat(from.0, from.1, reading, Mode::empty()).map_err(Failed::at_source)?;
    let source = File::from(source);
    let before = source.metadata().map_err(Failed::Io)?;
    if !before.is_file() {
        return Err(Failed::Changed);
    }
    let writing = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let owner = Mode::RUSR | Mode::WUSR;
    let target = rustix::fs::openat(to.0, to.1, writing, owner).map_err(Failed::at_target)?;
    let done = fill(&source, &before, &File::from(target), go_on);
    if done.is_err() {
        // It was made here a moment ago.
        let _gone = rustix::fs::unlinkat(to.0, to.1, AtFlags::empty());
    }
    done.map(|()| Stamp::of(&before))
}

fn fill(
    source: &File,
    before: &Metadata,
    target: &File,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<(), Failed> {
    copy_content(source, before, target, go_on)?;
    target.set_permissions(Permissions::from_mode(before.mode() & 0o7777)).map_err(Failed::Io)?;
    rustix::fs::futimens(target, &times(before)).map_err(|e| Failed::Io(e.into()))?;
    let after = source.metadata().map_err(Failed::Io)?;
    let seen = |m: &Metadata| (Stamp::of(m), m.ctime(), m.ctime_nsec());
    if seen(before) != seen(&after) || is_fresh(before) {
        return Err(Failed::Changed);
    }
    Ok(())
}

/// Copies what is in a file, which is read from its beginning, to an empty one: by sharing the disk's blocks where that can be.
/// Whether it was written to meanwhile is the caller's to look at.
///
/// # Errors
/// When it cannot be read or written, has become shorter, or `go_on` says so; a part of it may be there then.
pub(crate) fn copy_content(
    source: &File,
    meta: &Metadata,
    target: &File,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<(), Failed> {
    if !shares_blocks(source, target) {
        return copy_data(source, meta, target, go_on);
    }
    if go_on(meta.size()) { Ok(()) } else { Err(Failed::Stopped) }
}

/// Whether a file was written to so lately that a write during the copy might have left the same time.
fn is_fresh(meta: &Metadata) -> bool {
    meta.modified().is_ok_and(|at| SystemTime::now().duration_since(at).is_ok_and(|age| age < TICK))
}

/// Waits until a file that was written to a moment ago is old enough for [`copy_file_at`] to tell whether it changes.
pub(crate) fn let_settle() {
    std::thread::sleep(TICK * 2);
}

/// Has the copy share the disk's blocks with the file, where the file system can do that.
#[cfg(target_os = "linux")]
fn shares_blocks(source: &File, target: &File) -> bool {
    rustix::fs::ioctl_ficlone(target, source).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn shares_blocks(_source: &File, _target: &File) -> bool {
    false
}

fn copy_data(
    source: &File,
    meta: &Metadata,
    target: &File,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<(), Failed> {
    let size = meta.size();
    if meta.blocks() * BLOCK >= size {
        return copy_part(source, target, size, go_on);
    }
    let seek = |file: &File, to| rustix::fs::seek(file, to).map_err(|e| Failed::Io(e.into()));
    let mut at = 0;
    while at < size {
        let start = match rustix::fs::seek(source, SeekFrom::Data(at)) {
            Ok(start) => start,
            // Nothing but a hole is left.
            Err(rustix::io::Errno::NXIO) => break,
            // A file system without holes.
            Err(_) => at,
        };
        let end = rustix::fs::seek(source, SeekFrom::Hole(start)).unwrap_or(size).clamp(start, size);
        seek(source, SeekFrom::Start(start))?;
        seek(target, SeekFrom::Start(start))?;
        copy_part(source, target, end - start, go_on)?;
        at = end.max(start + 1);
    }
    target.set_len(size).map_err(Failed::Io)
}

/// Copies bytes from where both files stand, in the kernel where that can.
fn copy_part(
    source: &File,
    target: &File,
    length: u64,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<(), Failed> {
    let (mut left, mut to) = (length, target);
    while left > 0 {
        let done = io::copy(&mut source.take(left.min(PART)), &mut to).map_err(Failed::Io)?;
        if done == 0 {
            return Err(Failed::Changed);
        }
        left = left.saturating_sub(done);
        if !go_on(done) {
            return Err(Failed::Stopped);
        }
    }
    Ok(())
}

/// Copies so many bytes from the beginning of a file to an empty one, wherever both stand: in the kernel, which lets them share
/// the disk's blocks where that can be, and through `buffer` where it cannot. False when the source has fewer, or cannot be read.
///
/// # Errors
/// When the target cannot be written.
pub(crate) fn copy_bytes(
    source: &File,
    target: &File,
    length: u64,
    buffer: &mut Vec<u8>,
) -> io::Result<bool> {
    let done = copy_in_kernel(source, target, length);
    copy_rest(source, target, done..length, buffer)
}

/// Copies some bytes of a file to the same place in another one, through `buffer`. False when it has fewer, or cannot be read.
fn copy_rest(source: &File, target: &File, rest: Range<u64>, buffer: &mut Vec<u8>) -> io::Result<bool> {
    let Range { start: mut at, end: length } = rest;
    while at < length {
        buffer.resize(usize::try_from((length - at).min(PART)).unwrap_or(usize::MAX), 0);
        let read = match source.read_at(buffer, at) {
            Ok(0) => return Ok(false),
            Ok(read) => read,
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(_) => return Ok(false),
        };
        target.write_all_at(&buffer[..read], at)?;
        at += read as u64;
    }
    Ok(true)
}

/// How many bytes the kernel has copied from the beginning of a file to that of another one.
#[cfg(target_os = "linux")]
fn copy_in_kernel(source: &File, target: &File, length: u64) -> u64 {
    let (mut from, mut to) = (0, 0);
    while to < length {
        let left = usize::try_from(length - to).unwrap_or(usize::MAX);
        match rustix::fs::copy_file_range(source, Some(&mut from), target, Some(&mut to), left) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
    }
    to
}

#[cfg(not(target_os = "linux"))]
fn copy_in_kernel(_source: &File, _target: &File, _length: u64) -> u64 {
    0
}

fn times(meta: &Metadata) -> Timestamps {
    let time = |seconds, nanos| Timespec { tv_sec: seconds, tv_nsec: nanos };
    Timestamps {
        last_access: time(meta.atime(), meta.atime_nsec()),
        last_modification: time(meta.mtime(), meta.mtime_nsec()),
    }
}

/// Makes a link that says what another one says, with its times. Where it leads is not looked at.
///
/// # Errors
/// Then nothing stands there still.
pub(crate) fn copy_link_at(from: Place<'_>, to: Place<'_>) -> Result<(), Failed> {
    let stat = rustix::fs::statat(from.0, from.1, AtFlags::SYMLINK_NOFOLLOW).map_err(Failed::at_source)?;
    let text = rustix::fs::readlinkat(from.0, from.1, Vec::new()).map_err(|e| match e {
        rustix::io::Errno::INVAL => Failed::Changed,
        e => Failed::at_source(e),
    })?;
    rustix::fs::symlinkat(OsStr::from_bytes(text.as_bytes()), to.0, to.1).map_err(Failed::at_target)?;
    keep_times_at(&stat, to);
    Ok(())
}

/// Sets the times of a name to what was found elsewhere. Not every file system can for a link.
pub(crate) fn keep_times_at(stat: &Stat, to: Place<'_>) {
    let time = |seconds, nanos| Timespec { tv_sec: seconds, tv_nsec: nanos };
    let nanos = |nanos| i64::try_from(nanos).unwrap_or_default();
    let times = Timestamps {
        last_access: time(stat.st_atime, nanos(stat.st_atime_nsec)),
        last_modification: time(stat.st_mtime, nanos(stat.st_mtime_nsec)),
    };
    let _kept = rustix::fs::utimensat(to.0, to.1, &times, AtFlags::SYMLINK_NOFOLLOW);
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, Write};
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use rustix::fs::CWD;

    use super::*;

    fn copy_file(from: &Path, to: &Path) -> Result<Stamp, Failed> {
        copy_file_at((CWD, from.as_os_str()), (CWD, to.as_os_str()), &mut |_| true)
    }

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    /// A file that is an hour old.
    fn old(path: &Path, bytes: &[u8]) -> SystemTime {
        std::fs::write(path, bytes).unwrap();
        let then = SystemTime::now() - Duration::from_hours(1);
        File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
        then
    }

    #[test]
    fn bytes_mode_and_times_are_kept() {
        let dir = folder();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        let bytes: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
        let then = old(&from, &bytes);
        std::fs::set_permissions(&from, Permissions::from_mode(0o751)).unwrap();
        let stamp = copy_file(&from, &to).unwrap();
        let meta = to.metadata().unwrap();
        assert_eq!(std::fs::read(&to).unwrap(), bytes);
        assert_eq!((meta.mode() & 0o7777, meta.modified().unwrap()), (0o751, then));
        assert_eq!((stamp, stamp.size), (Stamp::of(&meta), 800_000));
    }

    #[test]
    fn so_many_bytes_are_copied_wherever_the_files_stand_or_it_is_said_that_there_are_fewer() {
        let dir = folder();
        let from = dir.path().join("from");
        let bytes: Vec<u8> = (0..30_000_u32).flat_map(u32::to_le_bytes).collect();
        std::fs::write(&from, &bytes).unwrap();
        let mut source = File::open(&from).unwrap();
        for (length, whole) in [(0, true), (1, true), (120_000, true), (120_001, false)] {
            source.seek(io::SeekFrom::Start(7)).unwrap();
            let to = dir.path().join(length.to_string());
            let target = File::create(&to).unwrap();
            assert_eq!(copy_bytes(&source, &target, length, &mut Vec::new()).unwrap(), whole, "{length}");
            let copied = bytes.len().min(usize::try_from(length).unwrap());
            assert!(std::fs::read(&to).unwrap() == bytes[..copied], "{length}");
            // Where the kernel copies nothing, or stops on the way.
            let target = File::create(&to).unwrap();
            for part in [40_000..length.max(40_000), 0..length.min(40_000)] {
                let enough = copy_rest(&source, &target, part.clone(), &mut Vec::new()).unwrap();
                assert_eq!(enough, whole || part.end <= 120_000, "{part:?}");
            }
            assert!(std::fs::read(&to).unwrap() == bytes[..copied], "{length}");
        }
        // No file that bytes can be read from, and one that none can be written to.
        let (top, unwritable) = (File::open(dir.path()).unwrap(), File::open(&from).unwrap());
        let target = File::create(dir.path().join("to")).unwrap();
        assert!(!copy_bytes(&top, &target, 1, &mut Vec::new()).unwrap());
        copy_bytes(&source, &unwritable, 1, &mut Vec::new()).unwrap_err();
    }

    #[test]
    fn what_stands_there_stays_and_links_are_not_followed() {
        let dir = folder();
        let [from, to, link] = ["from", "to", "link"].map(|name| dir.path().join(name));
        old(&from, b"new");
        std::fs::write(&to, "mine").unwrap();
        symlink(&to, &link).unwrap();
        assert!(matches!(copy_file(&from, &to), Err(Failed::Taken)));
        assert!(matches!(copy_file(&from, &link), Err(Failed::Taken)));
        assert_eq!(std::fs::read(&to).unwrap(), b"mine");
        let other = dir.path().join("other");
        assert!(matches!(copy_file(&link, &other), Err(Failed::Changed)));
        assert!(matches!(copy_file(&dir.path().join("nothing"), &other), Err(Failed::Changed)));
        assert!(other.symlink_metadata().is_err());
    }

    #[test]
    fn holes_stay_holes_and_the_end_is_where_it_was() {
        let dir = folder();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        let mut file = File::create(&from).unwrap();
        for at in [0, 3 << 20, 9 << 20] {
            file.seek(io::SeekFrom::Start(at)).unwrap();
            file.write_all(b"data").unwrap();
        }
        file.set_len(20 << 20).unwrap();
        drop(file);
        let_settle();
        copy_file(&from, &to).unwrap();
        assert!(std::fs::read(&from).unwrap() == std::fs::read(&to).unwrap());
        let meta = to.metadata().unwrap();
        let sparse = from.metadata().unwrap().blocks() * BLOCK < 1 << 20;
        assert!(!sparse || meta.blocks() * BLOCK < 1 << 20, "{} blocks", meta.blocks());
    }

    #[test]
    fn what_is_written_to_meanwhile_is_no_copy() {
        let dir = folder();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        old(&from, b"one half");
        let place = |path: &'_ Path| (CWD, path.as_os_str().to_owned());
        let ((from_dir, from_name), (to_dir, to_name)) = (place(&from), place(&to));
        let mut write = |_| {
            let mut file = File::options().write(true).open(&from).unwrap();
            file.write_all(b"TWO").unwrap();
            true
        };
        let copied = copy_file_at((from_dir, &from_name), (to_dir, &to_name), &mut write);
        assert!(matches!(copied, Err(Failed::Changed)));
        assert!(to.symlink_metadata().is_err());
        // Just written: whether it changes could not be told.
        std::fs::write(&from, "x").unwrap();
        assert!(matches!(copy_file(&from, &to), Err(Failed::Changed)));
        let_settle();
        copy_file(&from, &to).unwrap();
        std::fs::remove_file(&to).unwrap();
        let stopped = copy_file_at((from_dir, &from_name), (to_dir, &to_name), &mut |_| false);
        assert!(matches!(stopped, Err(Failed::Stopped)) && to.symlink_metadata().is_err());
    }

    #[test]
    fn a_pipe_is_not_waited_for() {
        let dir = folder();
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(CWD, &pipe, rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert!(matches!(copy_file(&pipe, &dir.path().join("to")), Err(Failed::Changed)));
    }

    #[test]
    fn a_link_is_copied_as_it_is() {
        let dir = folder();
        symlink("/nowhere/at all", dir.path().join("from")).unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        copy_link_at((CWD, from.as_os_str()), (CWD, to.as_os_str())).unwrap();
        assert_eq!(std::fs::read_link(&to).unwrap(), Path::new("/nowhere/at all"));
        let times = |path: &Path| path.symlink_metadata().unwrap().modified().unwrap();
        assert_eq!(times(&to), times(&from));
        assert!(matches!(copy_link_at((CWD, from.as_os_str()), (CWD, to.as_os_str())), Err(Failed::Taken)));
    }
}
