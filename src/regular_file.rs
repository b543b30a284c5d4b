//! Owns reading files that others may have put there: regular files only, no more of them than is useful, and never waiting.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// The most that a settings file may have, in bytes.
pub(crate) const SETTINGS: u64 = 1 << 20;

/// The most that a record in TOML may have, in bytes.
pub(crate) const TOML: u64 = 16 << 20;

/// The most that a prompt, or any other file that git-proq keeps, may have, in bytes.
pub(crate) const RECORD: u64 = 64 << 20;

/// What becomes of a symbolic link at the end of a path.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Links<'a> {
    /// It is followed: the user named the path.
    Follow,
    /// It is refused.
    Refuse,
    /// It is followed if it leads to something below this folder.
    Below(&'a Path),
}

/// Opens a regular file for reading, and returns its metadata beside.
///
/// # Errors
/// Those of opening, and [`ErrorKind::InvalidInput`] for a link that may not be followed, a device, a pipe or a socket;
/// nothing of these is opened.
pub(crate) fn open(path: &Path, links: Links<'_>) -> io::Result<(File, Metadata)> {
    let path = &allowed(path, links)?;
    require_regular(&path.metadata()?)?;
    // Something else may stand there by now: a pipe is not waited for, and a terminal does not become this process's.
    let nofollow = if matches!(links, Links::Follow) { OFlags::empty() } else { OFlags::NOFOLLOW };
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY | nofollow).bits();
    let file =
        OpenOptions::new().read(true).custom_flags(i32::try_from(flags).unwrap_or_default()).open(path)?;
    let meta = file.metadata()?;
    require_regular(&meta)?;
    Ok((file, meta))
}

/// Reads a regular file of at most `most` bytes.
///
/// # Errors
/// Those of [`open`], and [`ErrorKind::FileTooLarge`].
pub(crate) fn read(path: &Path, most: u64, links: Links<'_>) -> io::Result<Vec<u8>> {
    let (file, meta) = open(path, links)?;
    let mut bytes = Vec::new();
    if meta.len() <= most {
        file.take(most + 1).read_to_end(&mut bytes)?;
    }
    if meta.len() > most || bytes.len() as u64 > most {
        return Err(too_large(most));
    }
    Ok(bytes)
}

/// Reads a regular file of at most `most` bytes that is UTF-8.
///
/// # Errors
/// Those of [`read`], and [`ErrorKind::InvalidData`].
pub(crate) fn read_text(path: &Path, most: u64, links: Links<'_>) -> io::Result<String> {
    as_text(read(path, most, links)?)
}

/// Bytes as text.
///
/// # Errors
/// [`ErrorKind::InvalidData`] when they are not UTF-8.
pub(crate) fn as_text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|e| io::Error::new(ErrorKind::InvalidData, e.utf8_error()))
}

/// Opens a file that git-proq keeps: no link is followed.
///
/// # Errors
/// Those of [`open`].
pub(crate) fn open_record(path: impl AsRef<Path>) -> io::Result<File> {
    open(path.as_ref(), Links::Refuse).map(|(file, _)| file)
}

/// Reads a file that git-proq keeps: no link is followed, and one that is larger than [`RECORD`] is refused.
///
/// # Errors
/// Those of [`read`].
pub(crate) fn record(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    read(path.as_ref(), RECORD, Links::Refuse)
}

/// Reads a file that git-proq keeps and that is UTF-8.
///
/// # Errors
/// Those of [`read_text`].
pub(crate) fn record_text(path: impl AsRef<Path>) -> io::Result<String> {
    read_text(path.as_ref(), RECORD, Links::Refuse)
}

/// Reads a file that the user named on the command line: links are followed, and so is what a shell has opened for `<(command)`.
///
/// # Errors
/// Those of [`read`].
pub(crate) fn given(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    if !is_descriptor(path) {
        return read(path, most, Links::Follow);
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(too_large(most)) } else { Ok(bytes) }
}

/// Whether a path names a descriptor that this process was started with, as a shell's `<(command)` does: opening that waits for
/// nobody.
fn is_descriptor(path: &Path) -> bool {
    path == Path::new("/dev/stdin") || path.starts_with("/dev/fd") || path.starts_with("/proc/self/fd")
}

/// Replaces the content of a regular file that git-proq keeps, or makes one: no link is followed.
///
/// # Errors
/// Those of opening and writing, and [`ErrorKind::InvalidInput`] for a link, a folder, a device, a pipe or a socket; nothing of these
/// is opened.
pub(crate) fn overwrite(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(meta) if meta.is_symlink() => return Err(refused("it is a link")),
        Ok(meta) if meta.is_dir() => return Err(refused("it is a folder")),
        Ok(meta) => require_regular(&meta)?,
        Err(_) => {}
    }
    // As in `open`: it may have been replaced since.
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW).bits();
    let flags = i32::try_from(flags).unwrap_or_default();
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(false).custom_flags(flags).open(path)?;
    require_regular(&file.metadata()?)?;
    file.set_len(0)?;
    file.write_all(bytes)
}

/// The path to open.
fn allowed(path: &Path, links: Links<'_>) -> io::Result<PathBuf> {
    if matches!(links, Links::Follow) || !path.symlink_metadata()?.is_symlink() {
        return Ok(path.to_owned());
    }
    match links {
        Links::Below(top) => {
            let real = path.canonicalize()?;
            match real.starts_with(top.canonicalize()?) {
                true => Ok(real),
                false => Err(refused("it is a link that leads out of the repository")),
            }
        }
        _ => Err(refused("it is a link")),
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
    Err(refused(match () {
        () if kind.is_fifo() => "it is a pipe, not a regular file",
        () if kind.is_socket() => "it is a socket, not a regular file",
        () => "it is a device, not a regular file",
    }))
}

/// The error for a file of more than `most` bytes.
pub(crate) fn too_large(most: u64) -> io::Error {
    io::Error::new(ErrorKind::FileTooLarge, format!("it is larger than {}", size(most)))
}

/// The error for something that is no file to read, and why.
pub(crate) fn refused(why: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, why)
}

/// A number of bytes in the largest unit that divides it.
fn size(bytes: u64) -> String {
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

    fn why(path: &Path, links: Links<'_>) -> String {
        read(path, 8, links).unwrap_err().to_string()
    }

    #[test]
    fn only_regular_files_of_a_fitting_size_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path();
        std::fs::write(top.join("small"), "12345678").unwrap();
        std::fs::write(top.join("large"), "123456789").unwrap();
        assert_eq!(read_text(&top.join("small"), 8, Links::Refuse).unwrap(), "12345678");
        assert_eq!(why(&top.join("large"), Links::Follow), "it is larger than 8 bytes");
        assert_eq!(why(Path::new("/dev/zero"), Links::Follow), "it is a device, not a regular file");
        assert_eq!(read(top, 8, Links::Follow).unwrap_err().kind(), ErrorKind::IsADirectory);
        assert_eq!(read(&top.join("none"), 8, Links::Refuse).unwrap_err().kind(), ErrorKind::NotFound);
        let pipe = top.join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
            .unwrap();
        assert_eq!(why(&pipe, Links::Follow), "it is a pipe, not a regular file");
    }

    #[test]
    fn a_link_is_followed_only_where_it_may_be() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().join("top");
        std::fs::create_dir(&top).unwrap();
        for place in [dir.path().join("file"), top.join("file")] {
            std::fs::write(place, "x").unwrap();
        }
        symlink("file", top.join("in")).unwrap();
        symlink("../file", top.join("out")).unwrap();
        symlink("/dev/zero", top.join("zero")).unwrap();
        let outside = "it is a link that leads out of the repository";
        assert_eq!(read(&top.join("in"), 8, Links::Below(&top)).unwrap(), b"x");
        assert_eq!(why(&top.join("out"), Links::Below(&top)), outside);
        assert_eq!(why(&top.join("zero"), Links::Below(&top)), outside);
        assert_eq!(why(&top.join("in"), Links::Refuse), "it is a link");
        assert_eq!(read(&top.join("out"), 8, Links::Follow).unwrap(), b"x");
        assert_eq!(why(&top.join("zero"), Links::Follow), "it is a device, not a regular file");
    }
}
