//! Owns the files that belong to a lane's task: copies beside its record, for its agent to read.

use std::path::{Path, PathBuf};

use super::{Error, Project};
use crate::store::make_private;

/// The files that belong to a lane's task, by name.
pub(crate) fn attachments(project: &Project, name: &str) -> Result<Vec<PathBuf>, Error> {
    files_in(&project.store.layout().attachments(name))
}

/// The same of a removed lane, by its name in the history.
pub(crate) fn past_attachments(project: &Project, past: &str) -> Result<Vec<PathBuf>, Error> {
    files_in(&project.store.layout().past_attachments(past))
}

fn files_in(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Error::io("read", dir)(e)),
    };
    let mut out: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    out.sort();
    Ok(out)
}

/// Copies files to where the lane's agent reads them.
///
/// # Errors
/// When one cannot be read, or two have the same name.
pub(crate) fn attach(project: &Project, name: &str, files: &[PathBuf]) -> Result<(), Error> {
    copy_into(&project.store.layout().attachments(name), files)
}

/// Copies files into a folder, which is made when there are any.
pub(super) fn copy_into(dir: &Path, files: &[PathBuf]) -> Result<(), Error> {
    if files.is_empty() {
        return Ok(());
    }
    make_private(dir)?;
    for file in files {
        copy(file, dir)?;
    }
    Ok(())
}

fn copy(file: &Path, dir: &Path) -> Result<(), Error> {
    let name =
        file.file_name().ok_or_else(|| Error::io("copy", file)(std::io::ErrorKind::InvalidInput.into()))?;
    let mut from = std::fs::File::open(file).map_err(Error::io("read", file))?;
    let to = dir.join(name);
    let mut made = std::fs::File::create_new(&to).map_err(Error::io("write", &to))?;
    std::io::copy(&mut from, &mut made).map_err(Error::io("copy", file))?;
    Ok(())
}
