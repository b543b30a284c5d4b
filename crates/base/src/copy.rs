//! Copying one file or link completely: shared blocks where the file system supports it, with holes, mode and
//! times. Never returns a partial copy of a file that is being written at the same time.

use std::ffi::OsStr;
use std::fs::{File, Metadata, Permissions};
use std::io;
use std::io::{ErrorKind, Read};
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, Mode, OFlags, SeekFrom, Stat, Timespec, Timestamps};

/// Number of bytes that are copied between two calls of `should_continue`.
const CHUNK_SIZE: u64 = 16 << 20;

/// Unit of the block count in file metadata, regardless of the file system's own block size.
const STAT_BLOCK_SIZE: u64 = 512;

/// Two writes within this time may leave the same modification time on a file.
const MTIME_GRANULARITY: Duration = Duration::from_millis(10);

/// Size and modification time of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    /// Size in bytes.
    pub size: u64,
    /// Modification time in seconds since the epoch.
    pub mtime_seconds: i64,
    /// Nanosecond part of the modification time.
    pub mtime_nanos: i64,
}

impl FileStamp {
    /// Creates the stamp from the metadata of a file.
    pub fn from_metadata(meta: &Metadata) -> FileStamp {
        FileStamp { size: meta.size(), mtime_seconds: meta.mtime(), mtime_nanos: meta.mtime_nsec() }
    }
}

/// Reason why a file was not copied. The target then does not exist.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The source is gone, has become another kind of file, or was written to during the copy.
    #[error("it changed while being copied")]
    SourceChanged,
    /// The source may not be read.
    #[error("permission denied")]
    Unreadable,
    /// The target already exists.
    #[error("the target exists")]
    TargetExists,
    /// The caller canceled the copy.
    #[error("interrupted")]
    Canceled,
    /// Reading or writing failed.
    #[error("{0}")]
    Io(#[source] io::Error),
}

impl CopyError {
    /// Classifies the error of opening or inspecting the source.
    fn from_source_errno(e: rustix::io::Errno) -> CopyError {
        match io::Error::from(e) {
            e if e.kind() == ErrorKind::PermissionDenied => CopyError::Unreadable,
            // The file has become a link or a socket, or is gone.
            e if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                CopyError::SourceChanged
            }
            e if matches!(e.raw_os_error(), Some(ERRNO_LOOP | ERRNO_NXIO)) => CopyError::SourceChanged,
            e => CopyError::Io(e),
        }
    }

    /// Classifies the error of creating the target.
    fn from_target_errno(e: rustix::io::Errno) -> CopyError {
        match io::Error::from(e) {
            e if e.kind() == ErrorKind::AlreadyExists => CopyError::TargetExists,
            e => CopyError::Io(e),
        }
    }
}

/// Errors of opening a link with `O_NOFOLLOW`, and of opening a socket.
const ERRNO_LOOP: i32 = rustix::io::Errno::LOOP.raw_os_error();
const ERRNO_NXIO: i32 = rustix::io::Errno::NXIO.raw_os_error();

/// Entry of an open folder: descriptor of the folder and name of the entry. Stays valid if the folder is
/// renamed.
pub type EntryAt<'a> = (BorrowedFd<'a>, &'a OsStr);

/// Copies a file to a target that must not exist. Follows no link at either end. `should_continue` receives
/// the number of bytes after each chunk and returns whether to continue.
///
/// # Errors
/// Fails with a [`CopyError`]; no partial target is left.
pub fn copy_file_at(
    from: EntryAt<'_>,
    to: EntryAt<'_>,
    should_continue: &mut dyn FnMut(u64) -> bool,
) -> Result<FileStamp, CopyError> {
    // Non-blocking: if the source has become a pipe, the open must not wait.
    let read_flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let source = rustix::fs::openat(from.0, from.1, read_flags, Mode::empty())
        .map_err(CopyError::from_source_errno)?;
    let source = File::from(source);
    let metadata = source.metadata().map_err(CopyError::Io)?;
    if !metadata.is_file() {
        return Err(CopyError::SourceChanged);
    }
    let write_flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let owner_mode = Mode::RUSR | Mode::WUSR;
    let target =
        rustix::fs::openat(to.0, to.1, write_flags, owner_mode).map_err(CopyError::from_target_errno)?;
    let result = copy_with_metadata(&source, &metadata, &File::from(target), should_continue);
    if result.is_err() {
        // This call created the target.
        let _gone = rustix::fs::unlinkat(to.0, to.1, AtFlags::empty());
    }
    result.map(|()| FileStamp::from_metadata(&metadata))
}

/// Copies content, mode and times of an open file to an empty one. Fails if the source changed during the
/// copy, or so recently that a change might go unnoticed.
fn copy_with_metadata(
    source: &File,
    metadata: &Metadata,
    target: &File,
    should_continue: &mut dyn FnMut(u64) -> bool,
) -> Result<(), CopyError> {
    copy_content(source, metadata, target, should_continue)?;
    target.set_permissions(Permissions::from_mode(metadata.mode() & 0o7777)).map_err(CopyError::Io)?;
    rustix::fs::futimens(target, &to_timestamps(metadata)).map_err(|e| CopyError::Io(e.into()))?;
    let metadata_after = source.metadata().map_err(CopyError::Io)?;
    let change_marker = |m: &Metadata| (FileStamp::from_metadata(m), m.ctime(), m.ctime_nsec());
    if change_marker(metadata) != change_marker(&metadata_after) || was_just_modified(metadata) {
        return Err(CopyError::SourceChanged);
    }
    Ok(())
}

/// Copies the content of a file, from its beginning, to an empty one, by sharing blocks where possible. The
/// caller checks whether the source changed during the copy.
///
/// # Errors
/// Fails if the source cannot be read or has become shorter, the target cannot be written, or
/// `should_continue` returns false. The target may then have part of the content.
pub fn copy_content(
    source: &File,
    meta: &Metadata,
    target: &File,
    should_continue: &mut dyn FnMut(u64) -> bool,
) -> Result<(), CopyError> {
    if !share_blocks(source, target) {
        return copy_data_ranges(source, meta, target, should_continue);
    }
    if should_continue(meta.size()) { Ok(()) } else { Err(CopyError::Canceled) }
}

/// Returns whether a file was modified so recently that a write during the copy could leave the same time.
fn was_just_modified(meta: &Metadata) -> bool {
    meta.modified().is_ok_and(|modified| {
        SystemTime::now().duration_since(modified).is_ok_and(|age| age < MTIME_GRANULARITY)
    })
}

/// Sleeps until a file that was just written is old enough for [`copy_file_at`] to detect changes.
pub fn wait_for_mtime_tick() {
    std::thread::sleep(MTIME_GRANULARITY * 2);
}

/// Makes the target share the source's blocks, where the file system supports it. Returns whether it did.
#[cfg(target_os = "linux")]
fn share_blocks(source: &File, target: &File) -> bool {
    rustix::fs::ioctl_ficlone(target, source).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn share_blocks(_source: &File, _target: &File) -> bool {
    false
}

/// Copies the parts of a file that hold data; its holes become holes of the target.
fn copy_data_ranges(
    source: &File,
    meta: &Metadata,
    target: &File,
    should_continue: &mut dyn FnMut(u64) -> bool,
) -> Result<(), CopyError> {
    let size = meta.size();
    if meta.blocks() * STAT_BLOCK_SIZE >= size {
        return copy_in_chunks(source, target, size, should_continue);
    }
    let seek = |file: &File, to| rustix::fs::seek(file, to).map_err(|e| CopyError::Io(e.into()));
    let mut offset = 0;
    while offset < size {
        let start = match rustix::fs::seek(source, SeekFrom::Data(offset)) {
            Ok(start) => start,
            // Only a hole is left.
            Err(rustix::io::Errno::NXIO) => break,
            // A file system without holes.
            Err(_) => offset,
        };
        let end = rustix::fs::seek(source, SeekFrom::Hole(start)).unwrap_or(size).clamp(start, size);
        seek(source, SeekFrom::Start(start))?;
        seek(target, SeekFrom::Start(start))?;
        copy_in_chunks(source, target, end - start, should_continue)?;
        offset = end.max(start + 1);
    }
    target.set_len(size).map_err(CopyError::Io)
}

/// Copies bytes from the current positions of both files, in the kernel where possible.
fn copy_in_chunks(
    source: &File,
    target: &File,
    length: u64,
    should_continue: &mut dyn FnMut(u64) -> bool,
) -> Result<(), CopyError> {
    let (mut remaining, mut output) = (length, target);
    while remaining > 0 {
        let copied =
            io::copy(&mut source.take(remaining.min(CHUNK_SIZE)), &mut output).map_err(CopyError::Io)?;
        if copied == 0 {
            return Err(CopyError::SourceChanged);
        }
        remaining = remaining.saturating_sub(copied);
        if !should_continue(copied) {
            return Err(CopyError::Canceled);
        }
    }
    Ok(())
}

/// Copies the first `length` bytes of a file to an empty one, regardless of both file positions. The kernel
/// copies and may share blocks; where it cannot, the copy uses `buffer`. Returns false if the source is
/// shorter or cannot be read.
///
/// # Errors
/// Fails if the target cannot be written.
pub fn copy_prefix(source: &File, target: &File, length: u64, buffer: &mut Vec<u8>) -> io::Result<bool> {
    let copied = copy_in_kernel(source, target, length);
    copy_range_buffered(source, target, copied..length, buffer)
}

/// Copies a byte range of a file to the same range of another one, through `buffer`. Returns false if the
/// source is shorter or cannot be read.
fn copy_range_buffered(
    source: &File,
    target: &File,
    range: Range<u64>,
    buffer: &mut Vec<u8>,
) -> io::Result<bool> {
    let Range { start: mut offset, end: length } = range;
    while offset < length {
        buffer.resize(usize::try_from((length - offset).min(CHUNK_SIZE)).unwrap_or(usize::MAX), 0);
        let read = match source.read_at(buffer, offset) {
            Ok(0) => return Ok(false),
            Ok(read) => read,
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(_) => return Ok(false),
        };
        target.write_all_at(&buffer[..read], offset)?;
        offset += read as u64;
    }
    Ok(true)
}

/// Copies from the beginning of a file to the beginning of another one in the kernel. Returns the number of
/// bytes copied.
#[cfg(target_os = "linux")]
fn copy_in_kernel(source: &File, target: &File, length: u64) -> u64 {
    let (mut source_offset, mut target_offset) = (0, 0);
    while target_offset < length {
        let remaining = usize::try_from(length - target_offset).unwrap_or(usize::MAX);
        match rustix::fs::copy_file_range(
            source,
            Some(&mut source_offset),
            target,
            Some(&mut target_offset),
            remaining,
        ) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
    }
    target_offset
}

#[cfg(not(target_os = "linux"))]
fn copy_in_kernel(_source: &File, _target: &File, _length: u64) -> u64 {
    0
}

/// Returns the access and modification time of a file in the form of a system call.
fn to_timestamps(meta: &Metadata) -> Timestamps {
    let timespec = |seconds, nanos| Timespec { tv_sec: seconds, tv_nsec: nanos };
    Timestamps {
        last_access: timespec(meta.atime(), meta.atime_nsec()),
        last_modification: timespec(meta.mtime(), meta.mtime_nsec()),
    }
}

/// Creates a copy of a symbolic link, with its times. The link's target is not checked.
///
/// # Errors
/// Fails with a [`CopyError`]; then no link was created.
pub fn copy_link_at(from: EntryAt<'_>, to: EntryAt<'_>) -> Result<(), CopyError> {
    let stat = rustix::fs::statat(from.0, from.1, AtFlags::SYMLINK_NOFOLLOW)
        .map_err(CopyError::from_source_errno)?;
    let link_target = rustix::fs::readlinkat(from.0, from.1, Vec::new()).map_err(|e| match e {
        rustix::io::Errno::INVAL => CopyError::SourceChanged,
        e => CopyError::from_source_errno(e),
    })?;
    rustix::fs::symlinkat(OsStr::from_bytes(link_target.as_bytes()), to.0, to.1)
        .map_err(CopyError::from_target_errno)?;
    set_times_at(&stat, to);
    Ok(())
}

/// Sets the times of a file or link to those in `stat`. Ignores failure: not every file system can for a
/// link.
pub fn set_times_at(stat: &Stat, to: EntryAt<'_>) {
    let timespec = |seconds, nanos| Timespec { tv_sec: seconds, tv_nsec: nanos };
    let to_nanos = |nanos| i64::try_from(nanos).unwrap_or_default();
    let times = Timestamps {
        last_access: timespec(stat.st_atime, to_nanos(stat.st_atime_nsec)),
        last_modification: timespec(stat.st_mtime, to_nanos(stat.st_mtime_nsec)),
    };
    let _result = rustix::fs::utimensat(to.0, to.1, &times, AtFlags::SYMLINK_NOFOLLOW);
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, Write};
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use rustix::fs::CWD;

    use super::*;

    fn copy_file(from: &Path, to: &Path) -> Result<FileStamp, CopyError> {
        copy_file_at((CWD, from.as_os_str()), (CWD, to.as_os_str()), &mut |_| true)
    }

    fn temp_dir() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    /// Writes a file with a modification time one hour ago.
    fn write_old_file(path: &Path, bytes: &[u8]) -> SystemTime {
        std::fs::write(path, bytes).unwrap();
        let mtime = SystemTime::now() - Duration::from_hours(1);
        File::options().write(true).open(path).unwrap().set_modified(mtime).unwrap();
        mtime
    }

    #[test]
    fn preserves_bytes_mode_and_times() {
        let dir = temp_dir();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        let bytes: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
        let mtime = write_old_file(&from, &bytes);
        std::fs::set_permissions(&from, Permissions::from_mode(0o751)).unwrap();
        let stamp = copy_file(&from, &to).unwrap();
        let meta = to.metadata().unwrap();
        assert_eq!(std::fs::read(&to).unwrap(), bytes);
        assert_eq!((meta.mode() & 0o7777, meta.modified().unwrap()), (0o751, mtime));
        assert_eq!((stamp, stamp.size), (FileStamp::from_metadata(&meta), 800_000));
    }

    #[test]
    fn copies_prefix_or_reports_short_source() {
        let dir = temp_dir();
        let from = dir.path().join("from");
        let bytes: Vec<u8> = (0..30_000_u32).flat_map(u32::to_le_bytes).collect();
        std::fs::write(&from, &bytes).unwrap();
        let mut source = File::open(&from).unwrap();
        for (length, is_complete) in [(0, true), (1, true), (120_000, true), (120_001, false)] {
            source.seek(io::SeekFrom::Start(7)).unwrap();
            let to = dir.path().join(length.to_string());
            let target = File::create(&to).unwrap();
            assert_eq!(
                copy_prefix(&source, &target, length, &mut Vec::new()).unwrap(),
                is_complete,
                "{length}"
            );
            let copied = bytes.len().min(usize::try_from(length).unwrap());
            assert!(std::fs::read(&to).unwrap() == bytes[..copied], "{length}");
            // The cases where the kernel copies no bytes, or stops halfway.
            let target = File::create(&to).unwrap();
            for range in [40_000..length.max(40_000), 0..length.min(40_000)] {
                let has_bytes =
                    copy_range_buffered(&source, &target, range.clone(), &mut Vec::new()).unwrap();
                assert_eq!(has_bytes, is_complete || range.end <= 120_000, "{range:?}");
            }
            assert!(std::fs::read(&to).unwrap() == bytes[..copied], "{length}");
        }
        // A source that cannot be read, and a target that cannot be written.
        let (folder, unwritable) = (File::open(dir.path()).unwrap(), File::open(&from).unwrap());
        let target = File::create(dir.path().join("to")).unwrap();
        assert!(!copy_prefix(&folder, &target, 1, &mut Vec::new()).unwrap());
        copy_prefix(&source, &unwritable, 1, &mut Vec::new()).unwrap_err();
    }

    /// Promise: new-lane/set-up-inside-lane
    #[test]
    fn keeps_existing_target_and_follows_no_link() {
        let dir = temp_dir();
        let [from, to, link] = ["from", "to", "link"].map(|name| dir.path().join(name));
        write_old_file(&from, b"new");
        std::fs::write(&to, "mine").unwrap();
        symlink(&to, &link).unwrap();
        assert!(matches!(copy_file(&from, &to), Err(CopyError::TargetExists)));
        assert!(matches!(copy_file(&from, &link), Err(CopyError::TargetExists)));
        assert_eq!(std::fs::read(&to).unwrap(), b"mine");
        let other = dir.path().join("other");
        assert!(matches!(copy_file(&link, &other), Err(CopyError::SourceChanged)));
        assert!(matches!(copy_file(&dir.path().join("nothing"), &other), Err(CopyError::SourceChanged)));
        assert!(other.symlink_metadata().is_err());
    }

    #[test]
    fn preserves_holes_and_length() {
        let dir = temp_dir();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        let mut file = File::create(&from).unwrap();
        for offset in [0, 3 << 20, 9 << 20] {
            file.seek(io::SeekFrom::Start(offset)).unwrap();
            file.write_all(b"data").unwrap();
        }
        file.set_len(20 << 20).unwrap();
        drop(file);
        wait_for_mtime_tick();
        copy_file(&from, &to).unwrap();
        assert!(std::fs::read(&from).unwrap() == std::fs::read(&to).unwrap());
        let meta = to.metadata().unwrap();
        let sparse = from.metadata().unwrap().blocks() * STAT_BLOCK_SIZE < 1 << 20;
        assert!(!sparse || meta.blocks() * STAT_BLOCK_SIZE < 1 << 20, "{} blocks", meta.blocks());
    }

    /// Promise: new-lane/copy-consistent
    #[test]
    fn fails_when_source_changes_during_copy() {
        let dir = temp_dir();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        write_old_file(&from, b"one half");
        let dir_and_name = |path: &'_ Path| (CWD, path.as_os_str().to_owned());
        let ((from_dir, from_name), (to_dir, to_name)) = (dir_and_name(&from), dir_and_name(&to));
        let mut write = |_| {
            let mut file = File::options().write(true).open(&from).unwrap();
            file.write_all(b"TWO").unwrap();
            true
        };
        let copied = copy_file_at((from_dir, &from_name), (to_dir, &to_name), &mut write);
        assert!(matches!(copied, Err(CopyError::SourceChanged)));
        assert!(to.symlink_metadata().is_err());
        // The file was just written, so a change could not be detected.
        std::fs::write(&from, "x").unwrap();
        assert!(matches!(copy_file(&from, &to), Err(CopyError::SourceChanged)));
        wait_for_mtime_tick();
        copy_file(&from, &to).unwrap();
        std::fs::remove_file(&to).unwrap();
        let stopped = copy_file_at((from_dir, &from_name), (to_dir, &to_name), &mut |_| false);
        assert!(matches!(stopped, Err(CopyError::Canceled)) && to.symlink_metadata().is_err());
    }

    /// Promise: new-lane/copy-consistent
    #[test]
    fn does_not_wait_for_pipe() {
        let dir = temp_dir();
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(CWD, &pipe, rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert!(matches!(copy_file(&pipe, &dir.path().join("to")), Err(CopyError::SourceChanged)));
    }

    #[test]
    fn copies_link_with_target_and_times() {
        let dir = temp_dir();
        symlink("/nowhere/at all", dir.path().join("from")).unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        copy_link_at((CWD, from.as_os_str()), (CWD, to.as_os_str())).unwrap();
        assert_eq!(std::fs::read_link(&to).unwrap(), Path::new("/nowhere/at all"));
        let modified = |path: &Path| path.symlink_metadata().unwrap().modified().unwrap();
        assert_eq!(modified(&to), modified(&from));
        assert!(matches!(
            copy_link_at((CWD, from.as_os_str()), (CWD, to.as_os_str())),
            Err(CopyError::TargetExists)
        ));
    }
}
