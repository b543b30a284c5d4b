//! Reading files that may come from others: regular files only, with a size limit, and without ever blocking.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// Maximum size of a settings file, in bytes.
pub const MAX_SETTINGS_BYTES: u64 = 1 << 20;

/// Maximum size of a TOML record, in bytes.
pub const MAX_TOML_RECORD_BYTES: u64 = 16 << 20;

/// Maximum size of a prompt, or any other file that git-proq stores, in bytes.
pub const MAX_STORE_FILE_BYTES: u64 = 64 << 20;

/// Treatment of a symbolic link at the end of a path.
#[derive(Debug, Clone, Copy)]
pub enum LinkPolicy<'a> {
    /// Follows the link: the user named the path.
    Follow,
    /// Refuses the link.
    Refuse,
    /// Follows the link if it leads to a file below this folder.
    FollowBelow(&'a Path),
}

/// Opens a regular file for reading, and returns it with its metadata.
///
/// # Errors
/// The errors of opening, and [`ErrorKind::InvalidInput`] for a link that may not be followed, a device, a
/// pipe or a socket. None of these is opened.
pub fn open(path: &Path, links: LinkPolicy<'_>) -> io::Result<(File, Metadata)> {
    let path = &resolve_path(path, links)?;
    require_regular(&path.metadata()?)?;
    // The file may have been replaced since. The flags keep a pipe from blocking, and a terminal from
    // becoming this process's.
    let nofollow = if matches!(links, LinkPolicy::Follow) { OFlags::empty() } else { OFlags::NOFOLLOW };
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY | nofollow).bits();
    let file =
        OpenOptions::new().read(true).custom_flags(i32::try_from(flags).unwrap_or_default()).open(path)?;
    let meta = file.metadata()?;
    require_regular(&meta)?;
    Ok((file, meta))
}

/// Reads a regular file of at most `max_bytes` bytes.
///
/// # Errors
/// The errors of [`open`], and [`ErrorKind::FileTooLarge`].
pub fn read(path: &Path, max_bytes: u64, links: LinkPolicy<'_>) -> io::Result<Vec<u8>> {
    let (file, meta) = open(path, links)?;
    read_open_file(&file, &meta, max_bytes)
}

/// Reads a file of at most `max_bytes` bytes that [`open`] has returned with its metadata.
///
/// # Errors
/// The errors of reading, and [`ErrorKind::FileTooLarge`].
pub fn read_open_file(file: &File, meta: &Metadata, max_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if meta.len() <= max_bytes {
        // Without the space for all of it, the first reads are of a few bytes each.
        bytes.try_reserve(usize::try_from(meta.len()).unwrap_or_default().saturating_add(1))?;
        file.take(max_bytes + 1).read_to_end(&mut bytes)?;
    }
    if meta.len() > max_bytes || bytes.len() as u64 > max_bytes {
        return Err(too_large(max_bytes));
    }
    Ok(bytes)
}

/// Reads a regular UTF-8 file of at most `max_bytes` bytes.
///
/// # Errors
/// The errors of [`read`], and [`ErrorKind::InvalidData`].
pub fn read_text(path: &Path, max_bytes: u64, links: LinkPolicy<'_>) -> io::Result<String> {
    to_utf8_text(read(path, max_bytes, links)?)
}

/// Converts bytes to text.
///
/// # Errors
/// [`ErrorKind::InvalidData`] if they are not UTF-8.
pub fn to_utf8_text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|e| io::Error::new(ErrorKind::InvalidData, e.utf8_error()))
}

/// Opens a file that git-proq stores. Follows no link.
///
/// # Errors
/// The errors of [`open`].
pub fn open_store_file(path: impl AsRef<Path>) -> io::Result<File> {
    open(path.as_ref(), LinkPolicy::Refuse).map(|(file, _)| file)
}

/// Reads a file that git-proq stores. Follows no link, and refuses a file larger than
/// [`MAX_STORE_FILE_BYTES`].
///
/// # Errors
/// The errors of [`read`].
pub fn read_store_file(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    read(path.as_ref(), MAX_STORE_FILE_BYTES, LinkPolicy::Refuse)
}

/// Reads a UTF-8 file that git-proq stores.
///
/// # Errors
/// The errors of [`read_text`].
pub fn read_store_text(path: impl AsRef<Path>) -> io::Result<String> {
    read_text(path.as_ref(), MAX_STORE_FILE_BYTES, LinkPolicy::Refuse)
}

/// Reads a file that the user named on the command line. Follows links, and also reads the pipe that a shell
/// opens for `<(command)`.
///
/// # Errors
/// The errors of [`read`].
pub fn read_user_file(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    if !is_descriptor(path) {
        return read(path, max_bytes, LinkPolicy::Follow);
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(max_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes { Err(too_large(max_bytes)) } else { Ok(bytes) }
}

/// Returns whether a path names a file descriptor of this process, as a shell's `<(command)` does. Opening it
/// does not block.
fn is_descriptor(path: &Path) -> bool {
    path == Path::new("/dev/stdin") || path.starts_with("/dev/fd") || path.starts_with("/proc/self/fd")
}

/// Replaces the content of a regular file that git-proq stores, or creates it. Follows no link.
///
/// # Errors
/// The errors of opening and writing, and [`ErrorKind::InvalidInput`] for a link, a folder, a device, a pipe
/// or a socket. None of these is opened.
pub fn overwrite(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(meta) if meta.is_symlink() => return Err(invalid_input("it is a link")),
        Ok(meta) if meta.is_dir() => return Err(invalid_input("it is a folder")),
        Ok(meta) => require_regular(&meta)?,
        Err(_) => {}
    }
    // As in `open`: the file may have been replaced since.
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW).bits();
    let flags = i32::try_from(flags).unwrap_or_default();
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(false).custom_flags(flags).open(path)?;
    require_regular(&file.metadata()?)?;
    file.set_len(0)?;
    file.write_all(bytes)
}

/// Returns the path to open, after applying the link policy.
fn resolve_path(path: &Path, links: LinkPolicy<'_>) -> io::Result<PathBuf> {
    if matches!(links, LinkPolicy::Follow) || !path.symlink_metadata()?.is_symlink() {
        return Ok(path.to_owned());
    }
    match links {
        LinkPolicy::FollowBelow(folder) => {
            let target = path.canonicalize()?;
            match target.starts_with(folder.canonicalize()?) {
                true => Ok(target),
                false => Err(invalid_input("it is a link that is outside of the repository")),
            }
        }
        _ => Err(invalid_input("it is a link")),
    }
}

fn require_regular(meta: &Metadata) -> io::Result<()> {
    let kind = meta.file_type();
    if kind.is_file() {
        return Ok(());
    }
    if kind.is_dir() {
        return Err(rustix::io::Errno::ISDIR.into());
    }
    Err(invalid_input(match () {
        () if kind.is_fifo() => "it is a pipe, not a regular file",
        () if kind.is_socket() => "it is a socket, not a regular file",
        () => "it is a device, not a regular file",
    }))
}

/// Creates the error for a file of more than `max_bytes` bytes.
pub fn too_large(max_bytes: u64) -> io::Error {
    io::Error::new(ErrorKind::FileTooLarge, format!("it is larger than {}", format_size(max_bytes)))
}

/// Creates the error for a path that is no readable file, with the reason.
pub fn invalid_input(reason: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, reason)
}

/// Formats a number of bytes in the largest unit that divides it.
fn format_size(bytes: u64) -> String {
    match bytes {
        n if n >= 1 << 20 && n % (1 << 20) == 0 => format!("{} MiB", n >> 20),
        n if n >= 1 << 10 && n % (1 << 10) == 0 => format!("{} KiB", n >> 10),
        n => format!("{n} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn read_error(path: &Path, links: LinkPolicy<'_>) -> String {
        read(path, 8, links).unwrap_err().to_string()
    }

    /// Promise: strangers/irregular-files
    #[test]
    fn reads_only_regular_files_within_size_limit() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path();
        std::fs::write(top.join("small"), "12345678").unwrap();
        std::fs::write(top.join("large"), "123456789").unwrap();
        assert_eq!(read_text(&top.join("small"), 8, LinkPolicy::Refuse).unwrap(), "12345678");
        assert_eq!(read_error(&top.join("large"), LinkPolicy::Follow), "it is larger than 8 bytes");
        assert_eq!(
            read_error(Path::new("/dev/zero"), LinkPolicy::Follow),
            "it is a device, not a regular file"
        );
        assert_eq!(read(top, 8, LinkPolicy::Follow).unwrap_err().kind(), ErrorKind::IsADirectory);
        assert_eq!(read(&top.join("none"), 8, LinkPolicy::Refuse).unwrap_err().kind(), ErrorKind::NotFound);
        let pipe = top.join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
            .unwrap();
        assert_eq!(read_error(&pipe, LinkPolicy::Follow), "it is a pipe, not a regular file");
    }

    /// Promise: strangers/irregular-files
    #[test]
    fn follows_links_only_where_allowed() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().join("top");
        std::fs::create_dir(&top).unwrap();
        for file in [dir.path().join("file"), top.join("file")] {
            std::fs::write(file, "x").unwrap();
        }
        symlink("file", top.join("in")).unwrap();
        symlink("../file", top.join("out")).unwrap();
        symlink("/dev/zero", top.join("zero")).unwrap();
        let outside = "it is a link that is outside of the repository";
        assert_eq!(read(&top.join("in"), 8, LinkPolicy::FollowBelow(&top)).unwrap(), b"x");
        assert_eq!(read_error(&top.join("out"), LinkPolicy::FollowBelow(&top)), outside);
        assert_eq!(read_error(&top.join("zero"), LinkPolicy::FollowBelow(&top)), outside);
        assert_eq!(read_error(&top.join("in"), LinkPolicy::Refuse), "it is a link");
        assert_eq!(read(&top.join("out"), 8, LinkPolicy::Follow).unwrap(), b"x");
        assert_eq!(read_error(&top.join("zero"), LinkPolicy::Follow), "it is a device, not a regular file");
    }
}
