//! Fast copies of folder trees: contents, modes, times and links.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Copies `from` to `to`, which must not exist yet. Hard links stay hard links of one copy. Git's objects,
/// which nobody rewrites once they have their names, are shared.
pub(crate) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    copy_entry(from, to, &mut HashMap::new())
}

/// Copies one file, folder, link or pipe. `linked` holds the copies of files with several names, by inode.
fn copy_entry(from: &Path, to: &Path, linked: &mut HashMap<u64, PathBuf>) -> io::Result<()> {
    let meta = fs::symlink_metadata(from)?;
    if meta.is_symlink() {
        symlink(fs::read_link(from)?, to)?;
        return Ok(set_link_modified(to, &meta)?);
    }
    if meta.is_dir() {
        fs::DirBuilder::new().mode(0o700).create(to)?;
        for entry in fs::read_dir(from)? {
            let name = entry?.file_name();
            copy_entry(&from.join(&name), &to.join(&name), linked)?;
        }
        fs::set_permissions(to, meta.permissions())?;
        return File::open(to)?.set_modified(meta.modified()?);
    }
    if meta.file_type().is_fifo() {
        return create_fifo(to, meta.permissions().mode());
    }
    let is_temporary = from.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"tmp_"));
    if !is_temporary && from.parent().and_then(Path::parent).is_some_and(|p| p.ends_with(".git/objects")) {
        return fs::hard_link(from, to);
    }
    if meta.nlink() > 1 {
        if let Some(copy) = linked.get(&meta.ino()) {
            return fs::hard_link(copy, to);
        }
        linked.insert(meta.ino(), to.to_owned());
    }
    let mode = meta.permissions().mode() & 0o7777;
    let mut out = OpenOptions::new().write(true).create_new(true).mode(mode).open(to)?;
    io::copy(&mut File::open(from)?, &mut out)?;
    if out.metadata()?.permissions().mode() & 0o7777 != mode {
        out.set_permissions(meta.permissions())?;
    }
    out.set_modified(meta.modified()?)
}

/// Creates a named pipe. `rustix` has no call for that on macOS.
fn create_fifo(to: &Path, mode: u32) -> io::Result<()> {
    let status = Command::new("mkfifo").args(["-m", &format!("{:o}", mode & 0o7777)]).arg(to).status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other("a named pipe could not be made")) }
}

/// Sets the modification time of a link itself to that of `meta`.
fn set_link_modified(link: &Path, meta: &fs::Metadata) -> rustix::io::Result<()> {
    use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};
    let time = Timespec { tv_sec: meta.mtime(), tv_nsec: meta.mtime_nsec() };
    let times = Timestamps { last_access: time, last_modification: time };
    utimensat(CWD, link, &times, AtFlags::SYMLINK_NOFOLLOW)
}

/// Removes a folder with its contents; a missing folder is no error.
pub(crate) fn remove(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_contents_modes_times_and_links() {
        let dir = std::env::temp_dir().join(format!("xtask-copy-{}", std::process::id()));
        remove(&dir).unwrap();
        fs::create_dir_all(dir.join("a/sub")).unwrap();
        fs::write(dir.join("a/sub/f"), "text").unwrap();
        fs::set_permissions(dir.join("a/sub/f"), fs::Permissions::from_mode(0o754)).unwrap();
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
        File::open(dir.join("a/sub/f")).unwrap().set_modified(time).unwrap();
        File::open(dir.join("a/sub")).unwrap().set_modified(time).unwrap();
        symlink("gone", dir.join("a/link")).unwrap();
        fs::hard_link(dir.join("a/sub/f"), dir.join("a/other name")).unwrap();
        copy(&dir.join("a"), &dir.join("b")).unwrap();
        let meta = fs::metadata(dir.join("b/sub/f")).unwrap();
        assert_eq!(meta.permissions().mode() & 0o777, 0o754);
        assert_eq!(meta.modified().unwrap(), time);
        assert_eq!(fs::metadata(dir.join("b/sub")).unwrap().modified().unwrap(), time);
        assert_eq!(fs::read(dir.join("b/sub/f")).unwrap(), b"text");
        let link = |name: &str| fs::symlink_metadata(dir.join(name)).unwrap().modified().unwrap();
        assert_eq!(link("b/link"), link("a/link"));
        assert_eq!(fs::read_link(dir.join("b/link")).unwrap(), Path::new("gone"));
        assert_eq!(fs::metadata(dir.join("b/other name")).unwrap().ino(), meta.ino());
        assert_ne!(fs::metadata(dir.join("a/sub/f")).unwrap().ino(), meta.ino());
        remove(&dir).unwrap();
    }
}
