//! Owns the files that belong to a lane's task, or to what its agent is told later: copies beside its record, for it to read.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::{Error, Project};
use crate::store::{Layout, make_private, new_id};

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
    let (mut from, _) = crate::regular_file::open(file, crate::regular_file::Links::Follow)
        .map_err(Error::io("read", file))?;
    let to = dir.join(name);
    let mut made = std::fs::File::create_new(&to).map_err(Error::io("write", &to))?;
    std::io::copy(&mut from, &mut made).map_err(Error::io("copy", file))?;
    Ok(())
}

/// Files that belong to something that is said to a lane's agent. Unless they are kept, the copies go again.
#[derive(Debug, Default)]
#[must_use]
pub(crate) struct SaidFiles {
    /// Where the copies are; none without files.
    dir: Option<PathBuf>,
}

impl SaidFiles {
    /// Copies files to where the lane's agent reads them.
    ///
    /// # Errors
    /// When one cannot be read, or the lane is gone.
    pub(crate) fn copy(project: &Project, lane: &str, files: &[PathBuf]) -> Result<SaidFiles, Error> {
        if files.is_empty() {
            return Ok(SaidFiles::default());
        }
        // Not those above: the folder of a lane that is being removed must not be made anew.
        let make = |dir: &Path| DirBuilder::new().mode(0o700).create(dir).map_err(Error::io("create", dir));
        let all = project.store.layout().lane(lane).join(Layout::SAID_FILES);
        if !all.is_dir() {
            make(&all)?;
        }
        let dir = all.join(new_id());
        make(&dir)?;
        let copies = SaidFiles { dir: Some(dir.clone()) };
        files.iter().try_for_each(|file| copy(file, &dir))?;
        Ok(copies)
    }

    /// What is said, with the names of the copies.
    ///
    /// # Errors
    /// When they cannot be looked at.
    pub(crate) fn with(&self, text: &str) -> Result<String, Error> {
        let Some(dir) = &self.dir else { return Ok(text.to_owned()) };
        let belong = "These files belong to this; read them where they are:";
        Ok(format!("{}\n\n{belong}\n\n{}", text.trim_end(), named(&files_in(dir)?)))
    }

    /// Leaves the copies there: it was said.
    pub(crate) fn keep(mut self) {
        self.dir = None;
    }
}

impl Drop for SaidFiles {
    fn drop(&mut self) {
        if let Some(dir) = &self.dir {
            // Where they stay, they go with the lane.
            drop(std::fs::remove_dir_all(dir));
        }
    }
}

/// Files in a text for an agent, a line each.
pub(crate) fn named(files: &[PathBuf]) -> String {
    let lines: Vec<String> = files.iter().map(|path| format!("- {}\n", path.display())).collect();
    lines.concat()
}
