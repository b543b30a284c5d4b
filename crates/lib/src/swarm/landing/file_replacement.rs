//! Replacement of a file that the user may be editing at the same time.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use proq_base::fail_points;
use proq_store::base::atomic::{exchange_files, rename_no_replace};
use proq_store::paths::layout::Layout;

/// Replaces a file by one with the same permissions, unless it was changed since it was read. The new and the
/// old file are exchanged atomically, and the old one is compared only once no other process can find it
/// under `path`. The old file stays among the store's parked files, since a program may still have it open.
/// If `path` is on another disk than the store, the old file lies next to `path` during the exchange and is
/// then deleted.
pub fn replace_file(layout: &Layout, path: &Path, old: &[u8], new: &[u8]) -> std::io::Result<()> {
    let parked = layout.new_parked_path(path).map_err(std::io::Error::other)?;
    match replace_by_exchange(&parked, path, old, new) {
        Err(e) if e.kind() == ErrorKind::CrossesDevices => {
            let name = parked.file_name().unwrap_or_default().to_string_lossy();
            let sibling = path.with_file_name(format!(".{name}"));
            replace_by_exchange(&sibling, path, old, new)?;
            match std::fs::remove_file(&sibling) {
                Err(e) if e.kind() != ErrorKind::NotFound => Err(e),
                _ => Ok(()),
            }
        }
        result => result,
    }
}

/// Writes `new` to the free path `parked` and exchanges it with the file at `path`, whose former content is
/// at `parked` afterwards.
fn replace_by_exchange(parked: &Path, path: &Path, old: &[u8], new: &[u8]) -> std::io::Result<()> {
    let mut draft = File::options().write(true).create_new(true).mode(0o600).open(parked)?;
    let write_result = draft
        .write_all(new)
        .and_then(|()| draft.set_permissions(path.metadata()?.permissions()))
        .and_then(|()| draft.sync_all());
    fail_points::hit("plan.drafted");
    match write_result.and_then(|()| exchange_files(parked, path)) {
        Ok(()) if is_file_with_content(parked, old) => Ok(()),
        Ok(()) => restore_concurrent_edit(parked, path, new),
        Err(e) if e.kind() == ErrorKind::InvalidInput || e.kind() == ErrorKind::Unsupported => {
            rename_if_unchanged(parked, path, old)
        }
        Err(e) => {
            drop(std::fs::remove_file(parked));
            Err(e)
        }
    }
}

/// Restores a concurrent edit that the exchange moved to `parked`, and always returns an error.
fn restore_concurrent_edit(parked: &Path, path: &Path, new: &[u8]) -> std::io::Result<()> {
    fail_points::hit("plan.taken");
    let failure = match exchange_files(parked, path) {
        Ok(()) if is_file_with_content(parked, new) => {
            drop(std::fs::remove_file(parked));
            return Err(std::io::Error::other("another program is changing it"));
        }
        // The file was changed twice during the exchange: the later text counts.
        Ok(()) => exchange_files(parked, path).err(),
        // An editor has moved the file away in order to write it again.
        Err(e) if e.kind() == ErrorKind::NotFound => rename_no_replace(parked, path).err(),
        Err(e) => Some(e),
    };
    let failure_note = failure.map_or(String::new(), |e| format!(" ({e})"));
    let saved_note = if parked.symlink_metadata().is_ok() {
        format!("; its earlier content is in {}", parked.display())
    } else {
        String::new()
    };
    Err(std::io::Error::other(format!("another program is changing it{failure_note}{saved_note}")))
}

/// Renames a draft over a file that still has the bytes `old`, on a disk that cannot exchange two files. An
/// edit saved between this check and the rename is lost.
fn rename_if_unchanged(draft: &Path, path: &Path, old: &[u8]) -> std::io::Result<()> {
    let result = match is_file_with_content(path, old) {
        true => std::fs::rename(draft, path),
        false => Err(std::io::Error::other("another program is changing it")),
    };
    if result.is_err() {
        drop(std::fs::remove_file(draft));
    }
    result
}

/// Returns whether `path` is a regular file with these bytes, and no symbolic link.
fn is_file_with_content(path: &Path, bytes: &[u8]) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.is_file() && meta.len() == bytes.len() as u64)
        && std::fs::read(path).is_ok_and(|content| content == bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renames_over_plan_only_if_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        let (plan, draft) = (dir.path().join("plan"), dir.path().join("draft"));
        for (content, is_done) in [("old", true), ("new", false)] {
            std::fs::write(&plan, content).unwrap();
            std::fs::write(&draft, "noted").unwrap();
            assert_eq!(rename_if_unchanged(&draft, &plan, b"old").is_ok(), is_done);
            assert_eq!(std::fs::read_to_string(&plan).unwrap(), if is_done { "noted" } else { content });
            assert!(!draft.exists());
        }
    }
}
