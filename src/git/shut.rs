//! Owns what keeps files of a worktree from being changed at all, found before anything is touched: folders and files that may not
//! be written to or read, and blobs that git takes others for.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;

use rustix::fs::{Access, access};
use rustix::io::Errno;

use super::transition::Tree;
use super::{Change, Error, Oid, RepoPath, Side};

/// Refuses when a file of `changes` could not be taken away, or another one put in its place.
///
/// # Errors
/// [`Error::Replaced`], [`Error::Unreadable`], [`Error::Shut`].
pub(super) fn refuse_shut(tree: &Tree<'_>, changes: &[Change]) -> Result<(), Error> {
    refuse_replaced(tree, changes)?;
    let dir = tree.dir;
    let (mut folders, mut unread, mut shut) = (BTreeMap::new(), Vec::new(), BTreeSet::new());
    let links = |change: &&Change| [change.old, change.new].into_iter().flatten().any(Side::is_gitlink);
    for Change { path, .. } in changes.iter().filter(|change| !links(change)) {
        let above = path.parents().last();
        shut.extend(
            folders.entry(above).or_insert_with_key(|above| shut_folder(dir, above.as_ref())).clone(),
        );
        let file = path.under(dir);
        if !file.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
            continue;
        }
        if access(&file, Access::READ_OK) == Err(Errno::ACCESS) {
            unread.push(path.clone());
        }
        // Of a file that may not be written to the folder decides, unless the file system holds on to it.
        if access(&file, Access::WRITE_OK) == Err(Errno::PERM) {
            shut.insert(path.clone());
        }
    }
    match (shut.is_empty(), unread.is_empty()) {
        (true, true) => Ok(()),
        (true, false) => Err(Error::Unreadable { dir: dir.to_owned(), paths: unread }),
        (false, _) => Err(Error::Shut { dir: dir.to_owned(), paths: shut.into_iter().collect() }),
    }
}

/// The folder that keeps files from being made or removed in `folder`, or in the nearest one above it that is there.
fn shut_folder(dir: &Path, folder: Option<&RepoPath>) -> Option<RepoPath> {
    let mut chain: Vec<RepoPath> = folder.into_iter().flat_map(RepoPath::parents).collect();
    chain.extend(folder.cloned());
    let denied = |folder: &RepoPath, what: Access| {
        matches!(access(folder.under(dir), what), Err(Errno::ACCESS | Errno::PERM | Errno::ROFS))
    };
    let mut nearest = RepoPath::new(".");
    for folder in chain {
        // A file or link in its place goes before, or is in the way.
        if !folder.under(dir).symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
            break;
        }
        nearest = folder;
        // What is in a folder that may not be entered cannot be asked for.
        if denied(&nearest, Access::EXEC_OK) {
            return Some(nearest);
        }
    }
    denied(&nearest, Access::WRITE_OK).then_some(nearest)
}

/// Refuses when `git replace` has other content in the place of what a file has, before or after: git writes that one, and
/// then calls the file changed.
fn refuse_replaced(tree: &Tree<'_>, changes: &[Change]) -> Result<(), Error> {
    let replaced: HashSet<Oid> =
        tree.repo.gix.objects.store_ref().replacements().map(|(of, _)| Oid(of)).collect();
    let found = |change: &Change| {
        [change.old, change.new].into_iter().flatten().find(|side| replaced.contains(&side.oid))
    };
    let mut paths = Vec::new();
    let mut first = None;
    for change in changes.iter().filter(|_| !replaced.is_empty()) {
        let Some(side) = found(change) else { continue };
        first.get_or_insert(side.oid);
        paths.push(change.path.clone());
    }
    match first {
        Some(oid) => Err(Error::Replaced { dir: tree.dir.to_owned(), oid, paths }),
        None => Ok(()),
    }
}
