//! Checkpoints: copies of everything on disk while a program is stopped before one of its calls. A test can
//! continue from one as if the program had been killed there.
//!
//! A copy's files are other files, which git and git-proq would notice: each index is changed to match the
//! copies where it matched the files, notes about created folders name the copy, and young locks stay young.
//! A fingerprint taken before and after shows that both are equal.

use std::fs::{self, File, Metadata};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::fingerprint::{
    Fingerprint, KnownProcess, folder_note, is_lock, noted_folder, step_start_times, steps_started_before,
    take_fingerprint,
};
use super::fixture::Fixture;
use super::index_stat::Index;
use super::{Outcome, fail};
use crate::copy::{copy, remove};

/// Checkpoint of a fixture.
#[derive(Debug)]
pub(super) struct Checkpoint {
    /// Number of the call that the program is stopped before, from 1.
    pub(super) call: usize,
    /// Fingerprint of the disk.
    pub(super) fingerprint: Fingerprint,
    processes: Vec<KnownProcess>,
    folder: PathBuf,
}

impl Checkpoint {
    /// Saves what is on disk now. `fingerprint` was taken of it with `processes`.
    ///
    /// # Errors
    /// Fails if the disk cannot be copied.
    pub(super) fn save(
        fixture: &Fixture,
        call: usize,
        fingerprint: Fingerprint,
        processes: &[KnownProcess],
    ) -> Outcome<Checkpoint> {
        let folder = fixture.sibling(&format!("still-{call}"));
        remove(&folder)?;
        copy(&fixture.root(), &folder)?;
        let step_starts = step_start_times(&fixture.repo().join(".git"))?;
        adapt_copy(fixture, &fixture.root(), &folder, step_starts)?;
        Ok(Checkpoint { call, fingerprint, processes: processes.to_vec(), folder })
    }

    /// Replaces the content of the fixture with the checkpoint.
    ///
    /// # Errors
    /// Fails if the result differs from what was saved.
    pub(super) fn restore(self, fixture: &Fixture) -> Outcome<()> {
        remove(&fixture.root())?;
        fs::rename(&self.folder, fixture.root())?;
        if take_fingerprint(fixture, &self.processes)? == self.fingerprint {
            return Ok(());
        }
        fail(format!("the still before call {} is not what was there", self.call))
    }
}

/// Adapts the files in `folder` to each other, as the files in `top` that they are copies of; one of both is
/// the fixture. Locks of git stay younger than the steps that had started by `step_starts`.
///
/// # Errors
/// Fails if a file cannot be read or written.
pub(super) fn adapt_copy(
    fixture: &Fixture,
    top: &Path,
    folder: &Path,
    step_starts: Vec<SystemTime>,
) -> Outcome<()> {
    let mut trees = Vec::new();
    for tree in fixture.all_worktrees()? {
        let name = tree.strip_prefix(fixture.root())?;
        trees.push((top.join(name), folder.join(name)));
    }
    let adapter = CopyAdapter { top: top.to_owned(), folder: folder.to_owned(), trees, step_starts };
    adapter.adapt_below(&folder.join("repo/.git"))
}

/// Adapts the files of a copy to each other.
struct CopyAdapter {
    top: PathBuf,
    /// Copy of `top`.
    folder: PathBuf,
    /// Worktrees that indexes may belong to, and their copies.
    trees: Vec<(PathBuf, PathBuf)>,
    step_starts: Vec<SystemTime>,
}

impl CopyAdapter {
    fn adapt_below(&self, dir: &Path) -> Outcome<()> {
        for entry in fs::read_dir(dir)? {
            let path = entry?.path();
            let meta = path.symlink_metadata()?;
            if meta.is_dir() {
                if path.file_name().is_none_or(|name| name != "objects") {
                    self.adapt_below(&path)?;
                }
            } else if meta.is_file() {
                self.adapt_file(&path, &meta)?;
            }
        }
        Ok(())
    }

    fn adapt_file(&self, path: &Path, meta: &Metadata) -> Outcome<()> {
        let bytes = fs::read(path)?;
        let original = self.top.join(path.strip_prefix(&self.folder)?);
        let noted =
            noted_folder(&original, &bytes, &self.top).and_then(|f| folder_note(&self.folder.join(f)));
        let time = if let Some(note) = noted {
            fs::write(path, note)?;
            meta.modified()?
        } else if let Ok(index) = Index::parse(bytes) {
            fs::write(path, index.with_copied_stat(&self.trees)?)?;
            meta.modified()?
        } else if is_lock(path) && steps_started_before(meta, &self.step_starts)? > 0 {
            // The copies of the steps' folders were created just now.
            SystemTime::now()
        } else {
            return Ok(());
        };
        Ok(File::options().write(true).open(path)?.set_modified(time)?)
    }
}
