//! Owns copying one file to another file system, and knowing what is left of that when somebody was killed meanwhile.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader};
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::Error;
use super::durable::sync_all;
use crate::fault;

/// Copies a file or link with its mode and time, whole or not at all: what lies under the name is never a part. Where the file
/// system can make files without a name, who is killed leaves nothing beside it.
pub(super) fn copy_file(from: &Path, to: &Path) -> Result<(), Error> {
    remove_drafts(from, to);
    let copied = copy_unnamed(from, to).and_then(|done| match done {
        true => Ok(()),
        false => copy_by_draft(from, to),
    });
    copied.map_err(Error::io("copy to", to))?;
    // Whoever takes the other one away relies on the name, too.
    sync_all(&[to.parent().unwrap_or(Path::new(".")).to_owned()])
}

/// How the name of a copy that is being made goes on after that of its file; the number of the process follows.
const DRAFT: &[u8] = b".proq-";

fn draft_of(to: &Path) -> PathBuf {
    let mut name = to.file_name().unwrap_or_default().to_owned();
    name.push(OsStr::from_bytes(DRAFT));
    name.push(std::process::id().to_string());
    to.with_file_name(name)
}

/// Removes beginnings of a copy of `from` that killed processes left beside `to`.
pub(super) fn remove_drafts(from: &Path, to: &Path) {
    let disk = |path: &Path| path.symlink_metadata().ok().map(|meta| meta.dev());
    // Within one file system nothing is copied.
    if disk(from) == to.parent().and_then(disk) {
        return;
    }
    let start = [to.file_name().unwrap_or_default().as_bytes(), DRAFT].concat();
    let is_draft = |name: &OsStr| {
        let number = name.as_bytes().strip_prefix(start.as_slice());
        number.is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
    };
    let entries = to.parent().into_iter().filter_map(|dir| dir.read_dir().ok()).flatten().flatten();
    for draft in entries.filter(|entry| is_draft(&entry.file_name())).map(|entry| entry.path()) {
        if is_beginning(&draft, from).unwrap_or(false) {
            drop(std::fs::remove_file(&draft));
        }
    }
}

/// Whether a file on another file system is the same as this one in kind, mode and contents.
pub(super) fn is_copy(one: &Path, other: &Path) -> std::io::Result<bool> {
    Ok(one.symlink_metadata()?.dev() != other.symlink_metadata()?.dev() && is_alike(one, other)?)
}

/// Whether two files are the same in kind, mode and contents.
pub(super) fn is_alike(one: &Path, other: &Path) -> std::io::Result<bool> {
    let (a, b) = (one.symlink_metadata()?, other.symlink_metadata()?);
    Ok((a.mode(), a.len()) == (b.mode(), b.len()) && is_beginning(one, other)?)
}

/// Whether a regular file has nothing but what another one begins with, or is the same link.
pub(super) fn is_beginning(part: &Path, whole: &Path) -> std::io::Result<bool> {
    let meta = part.symlink_metadata()?;
    if meta.is_symlink() {
        return Ok(std::fs::read_link(part)? == std::fs::read_link(whole)?);
    }
    if !meta.is_file() || !whole.symlink_metadata()?.is_file() {
        return Ok(false);
    }
    let mut part = BufReader::new(File::open(part)?);
    let mut whole = BufReader::new(File::open(whole)?);
    loop {
        let (a, b) = (part.fill_buf()?, whole.fill_buf()?);
        let both = a.len().min(b.len());
        if a.is_empty() || a[..both] != b[..both] || both == 0 {
            return Ok(a.is_empty());
        }
        part.consume(both);
        whole.consume(both);
    }
}

/// False where it is no regular file, or the file system makes none without a name.
#[cfg(target_os = "linux")]
fn copy_unnamed(from: &Path, to: &Path) -> std::io::Result<bool> {
    use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};
    if !from.symlink_metadata()?.is_file() {
        return Ok(false);
    }
    let dir = to.parent().unwrap_or(Path::new("."));
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let Ok(file) = open(dir, flags, Mode::RUSR | Mode::WUSR) else { return Ok(false) };
    let mut file = File::from(file);
    fill(from, &mut file)?;
    let own = format!("/proc/self/fd/{}", file.as_raw_fd());
    let name = |to: &Path| linkat(CWD, own.as_str(), CWD, to, AtFlags::SYMLINK_FOLLOW);
    match name(to) {
        Err(rustix::io::Errno::EXIST) => {
            let draft = draft_of(to);
            name(&draft)?;
            std::fs::rename(&draft, to).inspect_err(|_| drop(std::fs::remove_file(&draft)))?;
        }
        // Without /proc.
        Err(_) => return Ok(false),
        Ok(()) => {}
    }
    Ok(true)
}

#[cfg(not(target_os = "linux"))]
fn copy_unnamed(_from: &Path, _to: &Path) -> std::io::Result<bool> {
    Ok(false)
}

fn copy_by_draft(from: &Path, to: &Path) -> std::io::Result<()> {
    let draft = draft_of(to);
    let gone = || drop(std::fs::remove_file(&draft));
    if from.symlink_metadata()?.is_symlink() {
        std::os::unix::fs::symlink(std::fs::read_link(from)?, &draft)?;
    } else {
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&draft)?;
        fill(from, &mut file).inspect_err(|_| gone())?;
    }
    std::fs::rename(&draft, to).inspect_err(|_| gone())
}

/// Writes contents, mode and time of a file into a new one, and syncs it.
fn fill(from: &Path, to: &mut File) -> std::io::Result<()> {
    let mut from = File::open(from)?;
    let meta = from.metadata()?;
    std::io::copy(&mut from, to)?;
    fault::point("file.copied");
    to.set_permissions(meta.permissions())?;
    to.sync_all()?;
    // Reading is enough to set a time on a file of one's own; where it is not, the copy is only younger.
    drop(to.set_modified(meta.modified()?));
    Ok(())
}
