//! Copying of one file to another file system, and cleanup after a process that was killed while copying.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader};
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use proq_base::fail_points;

use super::fsync::sync_paths;
use crate::Error;

/// Copies a file or symlink with its mode and time. The copy is atomic: no partial file appears at `to`.
/// Where the file system can create unnamed files, a killed process leaves no temporary file.
pub fn copy_file(from: &Path, to: &Path) -> Result<(), Error> {
    remove_temp_copies(from, to);
    let result = copy_via_unnamed_file(from, to).and_then(|is_done| match is_done {
        true => Ok(()),
        false => copy_via_temp_file(from, to),
    });
    result.map_err(Error::io("copy to", to))?;
    // Sync the folder too: the original may be removed once the name exists.
    sync_paths(&[to.parent().unwrap_or(Path::new(".")).to_owned()])
}

/// Text between a file's name and the process id in the name of a temporary copy.
const TEMP_NAME_INFIX: &[u8] = b".proq-";

/// Returns the path of this process's temporary copy, next to `to`.
fn temp_path(to: &Path) -> PathBuf {
    let mut name = to.file_name().unwrap_or_default().to_owned();
    name.push(OsStr::from_bytes(TEMP_NAME_INFIX));
    name.push(std::process::id().to_string());
    to.with_file_name(name)
}

/// Removes incomplete copies of `from` that killed processes left next to `to`.
pub(crate) fn remove_temp_copies(from: &Path, to: &Path) {
    let device = |path: &Path| path.symlink_metadata().ok().map(|meta| meta.dev());
    // Files are not copied within one file system.
    if device(from) == to.parent().and_then(device) {
        return;
    }
    let prefix = [to.file_name().unwrap_or_default().as_bytes(), TEMP_NAME_INFIX].concat();
    let is_temp_name = |name: &OsStr| {
        let number = name.as_bytes().strip_prefix(prefix.as_slice());
        number.is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
    };
    let entries = to.parent().into_iter().filter_map(|dir| dir.read_dir().ok()).flatten().flatten();
    for temp in entries.filter(|entry| is_temp_name(&entry.file_name())).map(|entry| entry.path()) {
        if is_prefix(&temp, from).unwrap_or(false) {
            drop(std::fs::remove_file(&temp));
        }
    }
}

/// Returns whether two files are on different file systems and have the same kind, mode and contents.
pub(crate) fn is_copy_on_other_device(first: &Path, second: &Path) -> std::io::Result<bool> {
    Ok(first.symlink_metadata()?.dev() != second.symlink_metadata()?.dev() && is_identical(first, second)?)
}

/// Returns whether two files have the same kind, mode and contents.
pub(crate) fn is_identical(first: &Path, second: &Path) -> std::io::Result<bool> {
    let (a, b) = (first.symlink_metadata()?, second.symlink_metadata()?);
    Ok((a.mode(), a.len()) == (b.mode(), b.len()) && is_prefix(first, second)?)
}

/// Returns whether a regular file's content is a prefix of the other's, or both are the same symlink.
pub(crate) fn is_prefix(shorter: &Path, longer: &Path) -> std::io::Result<bool> {
    let meta = shorter.symlink_metadata()?;
    if meta.is_symlink() {
        return Ok(std::fs::read_link(shorter)? == std::fs::read_link(longer)?);
    }
    if !meta.is_file() || !longer.symlink_metadata()?.is_file() {
        return Ok(false);
    }
    let mut shorter = BufReader::new(File::open(shorter)?);
    let mut longer = BufReader::new(File::open(longer)?);
    loop {
        let (a, b) = (shorter.fill_buf()?, longer.fill_buf()?);
        let common_len = a.len().min(b.len());
        if a.is_empty() || a[..common_len] != b[..common_len] || common_len == 0 {
            return Ok(a.is_empty());
        }
        shorter.consume(common_len);
        longer.consume(common_len);
    }
}

/// Copies through an unnamed file; returns false when the source is not a regular file or the file system has
/// no unnamed files.
#[cfg(target_os = "linux")]
fn copy_via_unnamed_file(from: &Path, to: &Path) -> std::io::Result<bool> {
    use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};
    if !from.symlink_metadata()?.is_file() {
        return Ok(false);
    }
    let dir = to.parent().unwrap_or(Path::new("."));
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let Ok(file) = open(dir, flags, Mode::RUSR | Mode::WUSR) else { return Ok(false) };
    let mut file = File::from(file);
    copy_into(from, &mut file)?;
    let proc_path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let link_as = |to: &Path| linkat(CWD, proc_path.as_str(), CWD, to, AtFlags::SYMLINK_FOLLOW);
    match link_as(to) {
        Err(rustix::io::Errno::EXIST) => {
            let temp = temp_path(to);
            link_as(&temp)?;
            std::fs::rename(&temp, to).inspect_err(|_| drop(std::fs::remove_file(&temp)))?;
        }
        // There is no /proc.
        Err(_) => return Ok(false),
        Ok(()) => {}
    }
    Ok(true)
}

#[cfg(not(target_os = "linux"))]
fn copy_via_unnamed_file(_from: &Path, _to: &Path) -> std::io::Result<bool> {
    Ok(false)
}

/// Copies a file or symlink to a temporary file next to `to`, and renames that to `to`.
fn copy_via_temp_file(from: &Path, to: &Path) -> std::io::Result<()> {
    let temp = temp_path(to);
    let remove_temp = || drop(std::fs::remove_file(&temp));
    if from.symlink_metadata()?.is_symlink() {
        std::os::unix::fs::symlink(std::fs::read_link(from)?, &temp)?;
    } else {
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&temp)?;
        copy_into(from, &mut file).inspect_err(|_| remove_temp())?;
    }
    std::fs::rename(&temp, to).inspect_err(|_| remove_temp())
}

/// Writes contents and mode of a file into a new one, and syncs it. Then sets its modification time, if
/// possible.
fn copy_into(from: &Path, to: &mut File) -> std::io::Result<()> {
    let mut from = File::open(from)?;
    let meta = from.metadata()?;
    std::io::copy(&mut from, to)?;
    fail_points::hit("file.copied");
    to.set_permissions(meta.permissions())?;
    to.sync_all()?;
    // Setting a time needs no write access on your own file. If it fails, the copy is only younger.
    drop(to.set_modified(meta.modified()?));
    Ok(())
}
