//! Targets watched by one inotify descriptor, also while their folders are created, moved or deleted.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::io;
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use proq_store::locks::inotify::{FileChange, InotifyFd};

use super::target::Target;

/// Maximum number of watched folders: watches are limited for each user, whose other programs need some.
const MAX_FOLDERS: usize = 20_000;

/// Targets, and the folders that are watched for them.
#[derive(Debug)]
pub(super) struct FolderWatch {
    inotify: InotifyFd,
    targets: Vec<Target>,
    /// Watched folders by the number of the watch.
    watched: HashMap<i32, WatchedFolder>,
}

#[derive(Debug)]
struct WatchedFolder {
    path: PathBuf,
    purposes: Vec<Purpose>,
}

/// Reason why a folder is watched.
#[derive(Debug)]
enum Purpose {
    /// The folder is a target's folder, at level 0, or below it.
    Content { target: usize, level: usize },
    /// The target's folder does not exist, and this is the nearest folder above it. `next` is the name in it
    /// that leads to the target.
    Creation { target: usize, next: OsString },
}

impl Purpose {
    fn target(&self) -> usize {
        let (Purpose::Content { target, .. } | Purpose::Creation { target, .. }) = self;
        *target
    }

    /// Returns whether the folder is below a target's folder.
    fn is_below_target(&self) -> bool {
        matches!(self, Purpose::Content { level: 1.., .. })
    }
}

impl FolderWatch {
    /// Creates a watch without targets.
    pub(super) fn new() -> io::Result<FolderWatch> {
        Ok(FolderWatch { inotify: InotifyFd::new()?, targets: Vec::new(), watched: HashMap::new() })
    }

    /// Starts watching another target. Changes after this call are reported under its number, which is that
    /// of the call, from 0.
    pub(super) fn add(&mut self, target: Target) -> io::Result<()> {
        self.targets.push(target);
        self.watch_target(self.targets.len() - 1)
    }

    /// Takes the targets, in the order in which they were added.
    pub(super) fn take_targets(&mut self) -> Vec<Target> {
        std::mem::take(&mut self.targets)
    }

    /// Returns the numbers of the targets that have changed since the last call, without waiting.
    pub(super) fn take_changed(&mut self) -> io::Result<BTreeSet<usize>> {
        let (mut changed, mut must_renew) = (BTreeSet::new(), false);
        loop {
            let changes = self.inotify.read_changes()?;
            if changes.is_empty() {
                break;
            }
            for change in changes {
                must_renew |= self.apply(&change, &mut changed)?;
            }
        }
        if must_renew {
            self.renew()?;
        }
        Ok(changed)
    }

    /// Adds the targets that a change concerns to `changed`. Returns whether the folders to watch have to be
    /// found again.
    fn apply(&mut self, change: &FileChange, changed: &mut BTreeSet<usize>) -> io::Result<bool> {
        match change {
            FileChange::Overflow => {
                changed.extend(0..self.targets.len());
                Ok(true)
            }
            // The kernel also reports the end of a watch that was removed here.
            FileChange::FolderMoved { watch } | FileChange::FolderDeleted { watch } => {
                let Some(folder) = self.watched.get(watch) else { return Ok(false) };
                changed.extend(folder.purposes.iter().map(Purpose::target));
                // A new folder of its name is reported in the folder above.
                let is_subfolder = folder.purposes.iter().all(Purpose::is_below_target);
                let is_done = is_subfolder && matches!(change, FileChange::FolderDeleted { .. });
                if is_done {
                    self.watched.remove(watch);
                }
                Ok(!is_done)
            }
            FileChange::Entry { watch, name, is_folder } => {
                let Some(folder) = self.watched.get(watch) else { return Ok(false) };
                let (path, mut must_renew, mut new) = (folder.path.join(name), false, Vec::new());
                for purpose in &folder.purposes {
                    let target = purpose.target();
                    match purpose {
                        Purpose::Creation { next, .. } if next == name => must_renew = true,
                        // At the depth limit, a folder matters by its name, as a file does.
                        Purpose::Content { level, .. }
                            if *is_folder && *level < self.targets[target].depth =>
                        {
                            if !self.targets[target].includes(&path, level + 1) {
                                continue;
                            }
                            new.push((target, level + 1));
                        }
                        Purpose::Content { .. } if self.targets[target].names.contains(name) => {}
                        Purpose::Creation { .. } | Purpose::Content { .. } => continue,
                    }
                    changed.insert(target);
                }
                new.into_iter().try_for_each(|(target, level)| self.watch_below(target, &path, level))?;
                Ok(must_renew)
            }
        }
    }

    /// Finds the folders to watch for all targets again. A folder that stays is watched without a gap.
    fn renew(&mut self) -> io::Result<()> {
        let old = std::mem::take(&mut self.watched);
        (0..self.targets.len()).try_for_each(|target| self.watch_target(target))?;
        old.keys()
            .filter(|watch| !self.watched.contains_key(watch))
            .for_each(|old| self.inotify.remove(*old));
        Ok(())
    }

    /// Watches a target's folder, or the nearest one above it that exists.
    fn watch_target(&mut self, target: usize) -> io::Result<()> {
        let folder = self.targets[target].folder.clone();
        loop {
            if folder.is_dir() {
                return self.watch_below(target, &folder, 0);
            }
            let mut below = folder.as_path();
            let Some(above) = folder.ancestors().skip(1).find(|above| {
                let exists = above.is_dir();
                below = if exists { below } else { above };
                exists
            }) else {
                return Ok(());
            };
            let next = below.file_name().unwrap_or_default().to_owned();
            let purpose = Purpose::Creation { target, next };
            // If the next folder has appeared before its parent was watched, there is no notice of it.
            if self.watch_folder(above, purpose)? && !below.is_dir() {
                return Ok(());
            }
        }
    }

    /// Watches the folder of a target at `level`, and those below it.
    fn watch_below(&mut self, target: usize, folder: &Path, level: usize) -> io::Result<()> {
        let mut folders = vec![(folder.to_owned(), level)];
        while let Some((folder, level)) = folders.pop() {
            // Watched before it is read, so that no new folder is missed in between.
            if self.watch_folder(&folder, Purpose::Content { target, level })? {
                let below = self.targets[target].subfolders(&folder, level);
                folders.extend(below.into_iter().map(|folder| (folder, level + 1)));
            } else if level == 0 {
                // It has been deleted since.
                return self.watch_target(target);
            }
        }
        Ok(())
    }

    /// Watches a folder. Returns false if it does not exist or, below a target's folder, cannot be read.
    fn watch_folder(&mut self, path: &Path, purpose: Purpose) -> io::Result<bool> {
        let is_below = purpose.is_below_target();
        let watch = match self.inotify.add_folder(path) {
            Ok(watch) => watch,
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(false),
            Err(e) if is_below && e.kind() == ErrorKind::PermissionDenied => return Ok(false),
            Err(e) => return Err(e),
        };
        let new = || WatchedFolder { path: path.to_owned(), purposes: Vec::new() };
        let folder = self.watched.entry(watch).or_insert_with(new);
        // It may have been moved here.
        path.clone_into(&mut folder.path);
        folder.purposes.retain(|old| old.target() != purpose.target());
        folder.purposes.push(purpose);
        match self.watched.len() > MAX_FOLDERS {
            true => Err(ErrorKind::QuotaExceeded.into()),
            false => Ok(true),
        }
    }
}

impl AsFd for FolderWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}
