//! Owns stills: copies of all that is on disk while a program stands before one of its calls, to go on from as if it had
//! been killed there.
//!
//! A copy's files are other files, which git and this program would notice: each index is made to agree with the copies where
//! it agreed with the files, notes of which folder was made name its copy, and young locks stay young. A fingerprint taken
//! before and after shows that the two say the same.

use std::fs::{self, File, Metadata};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::place::Place;
use super::stat::Index;
use super::state::{Left, State, begun, folder_noted, is_lock, note_of, since, state};
use super::{Outcome, fail};
use crate::copy::{copy, remove};

/// One still.
#[derive(Debug)]
pub(super) struct Still {
    /// Which of the program's calls it stands before; the first one is number 1.
    pub(super) call: usize,
    /// What is on disk.
    pub(super) state: State,
    left: Vec<Left>,
    folder: PathBuf,
}

impl Still {
    /// Keeps what is on disk now. `state` is its fingerprint, made with `left`.
    ///
    /// # Errors
    /// When it cannot be copied.
    pub(super) fn take(place: &Place, call: usize, state: State, left: &[Left]) -> Outcome<Still> {
        let folder = place.beside(&format!("still-{call}"));
        remove(&folder)?;
        copy(&place.top(), &folder)?;
        let begun = begun(&place.repo().join(".git"))?;
        adapt(place, &place.top(), &folder, begun)?;
        Ok(Still { call, state, left: left.to_vec(), folder })
    }

    /// Puts it in the place of what is there.
    ///
    /// # Errors
    /// When that is not what it was taken of.
    pub(super) fn put(self, place: &Place) -> Outcome<()> {
        remove(&place.top())?;
        fs::rename(&self.folder, place.top())?;
        if state(place, &self.left)? == self.state {
            return Ok(());
        }
        fail(format!("the still before call {} is not what was there", self.call))
    }
}

/// Makes what is in `folder` stand to each other as what it is a copy of, in `top`; one of them is the place. Steps of the
/// program that had `begun` then have locks of git that are younger.
///
/// # Errors
/// When a file cannot be read or written.
pub(super) fn adapt(place: &Place, top: &Path, folder: &Path, begun: Vec<SystemTime>) -> Outcome<()> {
    let mut trees = Vec::new();
    for tree in place.trees()? {
        let name = tree.strip_prefix(place.top())?;
        trees.push((top.join(name), folder.join(name)));
    }
    let adapt = Adapt { top: top.to_owned(), folder: folder.to_owned(), trees, begun };
    adapt.below(&folder.join("repo/.git"))
}

/// Makes a copy's files stand to each other as what they are copies of.
struct Adapt {
    top: PathBuf,
    /// The copy of that.
    folder: PathBuf,
    /// What indexes may be of, and the copies of that.
    trees: Vec<(PathBuf, PathBuf)>,
    begun: Vec<SystemTime>,
}

impl Adapt {
    fn below(&self, dir: &Path) -> Outcome<()> {
        for entry in fs::read_dir(dir)? {
            let path = entry?.path();
            let meta = path.symlink_metadata()?;
            if meta.is_dir() {
                if path.file_name().is_none_or(|name| name != "objects") {
                    self.below(&path)?;
                }
            } else if meta.is_file() {
                self.file(&path, &meta)?;
            }
        }
        Ok(())
    }

    fn file(&self, path: &Path, meta: &Metadata) -> Outcome<()> {
        let bytes = fs::read(path)?;
        let original = self.top.join(path.strip_prefix(&self.folder)?);
        let noted = folder_noted(&original, &bytes, &self.top).and_then(|f| note_of(&self.folder.join(f)));
        let time = if let Some(note) = noted {
            fs::write(path, note)?;
            meta.modified()?
        } else if let Ok(index) = Index::of(bytes) {
            fs::write(path, index.for_copies(&self.trees)?)?;
            meta.modified()?
        } else if is_lock(path) && since(meta, &self.begun)? > 0 {
            // The copies of the steps' folders were made just now.
            SystemTime::now()
        } else {
            return Ok(());
        };
        Ok(File::options().write(true).open(path)?.set_modified(time)?)
    }
}
