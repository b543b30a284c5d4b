//! Owns replacing a file so that a reader, or a power cut, sees the old one or the new one and nothing else.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use super::{Error, layout};
use crate::fault;

/// Writes `bytes` beside `path`, makes them durable, and renames them into place.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    layout::make_private(path.parent().unwrap_or(Path::new(".")))?;
    write_there(path, bytes)
}

/// The same where the folder has to be there already: one that is moved away meanwhile is not made anew.
pub(crate) fn write_there(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    replace(path, bytes)?;
    sync_dir(path.parent().unwrap_or(Path::new(".")))
}

/// The same for the first of several files of a folder: that it is there at all is durable with the last one only, and until
/// then a power cut may leave the old one.
pub(crate) fn write_first(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    layout::make_private(path.parent().unwrap_or(Path::new(".")))?;
    replace(path, bytes)
}

fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let parent = path.parent().unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = parent.join(format!(".{name}.{}", layout::new_id()));
    let written = File::create_new(&beside).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    if let Err(e) = written {
        drop(std::fs::remove_file(&beside));
        return Err(Error::io("write", path)(e));
    }
    fault::point("record.drafted");
    std::fs::rename(&beside, path).map_err(|e| {
        drop(std::fs::remove_file(&beside));
        Error::io("replace", path)(e)
    })
}

/// The same for what can be made anew at any time: a power cut may leave anything in its place, which its readers notice.
pub(crate) fn write_cache(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let parent = path.parent().unwrap_or(Path::new("."));
    layout::make_private(parent)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = parent.join(format!(".{name}.{}", layout::new_id()));
    let written = std::fs::write(&beside, bytes).and_then(|()| std::fs::rename(&beside, path));
    written.map_err(|e| {
        drop(std::fs::remove_file(&beside));
        Error::io("write", path)(e)
    })
}

/// Removes what a killed process was writing beside `path`. Whoever else may write it has to be kept out meanwhile.
pub(crate) fn remove_drafts(path: &Path) -> std::io::Result<()> {
    let start = format!(".{}.", path.file_name().unwrap_or_default().to_string_lossy());
    let Some(Ok(entries)) = path.parent().map(std::fs::read_dir) else { return Ok(()) };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(&start) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Gives a file or folder a name that must be free. Only the first of two that want it gets it, on every file system.
pub(crate) fn rename_new(from: &Path, to: &Path) -> std::io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::NOTSUP) => {
            // Some file systems cannot refuse to replace in a rename. A link can; a folder only replaces an empty one.
            if from.is_dir() {
                return match to.symlink_metadata() {
                    Ok(_) => Err(std::io::ErrorKind::AlreadyExists.into()),
                    Err(_) => std::fs::rename(from, to),
                };
            }
            std::fs::hard_link(from, to)?;
            std::fs::remove_file(from)
        }
        Err(e) => Err(e.into()),
    }
}

/// Gives each of two files the other's name, in one step. Not every file system can.
pub(crate) fn exchange(one: &Path, other: &Path) -> std::io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
}

/// Makes the names in a folder durable.
pub(crate) fn sync_dir(dir: &Path) -> Result<(), Error> {
    File::open(dir).and_then(|d| d.sync_all()).map_err(Error::io("sync", dir))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_fails_leaves_the_old_file_and_nothing_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("taken");
        std::fs::create_dir_all(path.join("full")).unwrap();
        assert!(write(&path, b"x").is_err());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        write(&dir.path().join("a"), b"1").unwrap();
        write(&dir.path().join("a"), b"2").unwrap();
        assert_eq!(std::fs::read(dir.path().join("a")).unwrap(), b"2");
        assert!(write_there(&dir.path().join("gone/a"), b"3").is_err());
        write_there(&dir.path().join("a"), b"2").unwrap();
        write_first(&dir.path().join("a"), b"3").unwrap();
        assert_eq!(std::fs::read(dir.path().join("a")).unwrap(), b"3");
        assert!(write_first(&path, b"x").is_err());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}
