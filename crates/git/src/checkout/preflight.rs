//! Check, before anything is touched, that the files of a worktree can be changed: it finds unwritable and
//! unreadable folders and files, and blobs that git replaces with others.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;

use rustix::fs::{Access, access};
use rustix::io::Errno;

use crate::history::tree_diff::{TreeChange, TreeFile};
use crate::repository::worktree_context::WorktreeContext;
use crate::{Error, Oid, RepoPath};

/// Fails if git could not remove or replace a file of `changes`.
///
/// # Errors
/// [`Error::ReplacedBlobs`], [`Error::Unreadable`], [`Error::NotWritable`].
pub(crate) fn refuse_unchangeable(tree: &WorktreeContext<'_>, changes: &[TreeChange]) -> Result<(), Error> {
    refuse_replaced_objects(tree, changes)?;
    let dir = tree.dir;
    let (mut folder_cache, mut unreadable, mut unchangeable) = (BTreeMap::new(), Vec::new(), BTreeSet::new());
    let is_submodule =
        |change: &&TreeChange| [change.old, change.new].into_iter().flatten().any(TreeFile::is_gitlink);
    for TreeChange { path, .. } in changes.iter().filter(|change| !is_submodule(change)) {
        let parent = path.parents().last();
        unchangeable.extend(
            folder_cache
                .entry(parent)
                .or_insert_with_key(|parent| unwritable_folder(dir, parent.as_ref()))
                .clone(),
        );
        let file = path.to_fs_path(dir);
        if !file.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
            continue;
        }
        if access(&file, Access::READ_OK) == Err(Errno::ACCESS) {
            unreadable.push(path.clone());
        }
        // Removing an unwritable file depends on its folder only, unless the file system protects the file.
        if access(&file, Access::WRITE_OK) == Err(Errno::PERM) {
            unchangeable.insert(path.clone());
        }
    }
    match (unchangeable.is_empty(), unreadable.is_empty()) {
        (true, true) => Ok(()),
        (true, false) => Err(Error::Unreadable { dir: dir.to_owned(), unreadable_paths: unreadable }),
        (false, _) => Err(Error::NotWritable {
            dir: dir.to_owned(),
            unwritable_paths: unchangeable.into_iter().collect(),
        }),
    }
}

/// Returns the folder whose permissions prevent creating or removing files in `folder`. If `folder` does not
/// exist, its nearest existing ancestor decides.
fn unwritable_folder(dir: &Path, folder: Option<&RepoPath>) -> Option<RepoPath> {
    let mut ancestors: Vec<RepoPath> = folder.into_iter().flat_map(RepoPath::parents).collect();
    ancestors.extend(folder.cloned());
    let is_denied = |folder: &RepoPath, wanted: Access| {
        matches!(access(folder.to_fs_path(dir), wanted), Err(Errno::ACCESS | Errno::PERM | Errno::ROFS))
    };
    let mut nearest = RepoPath::new(".");
    for folder in ancestors {
        // A file or link at the path of a folder is removed first, or is reported as an obstruction.
        if !folder.to_fs_path(dir).symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
            break;
        }
        nearest = folder;
        // The contents of a folder without search permission cannot be inspected.
        if is_denied(&nearest, Access::EXEC_OK) {
            return Some(nearest);
        }
    }
    is_denied(&nearest, Access::WRITE_OK).then_some(nearest)
}

/// Fails if `git replace` substitutes the old or the new blob of a changed file. git would write the
/// substitute, and then report the file as changed.
fn refuse_replaced_objects(tree: &WorktreeContext<'_>, changes: &[TreeChange]) -> Result<(), Error> {
    let replaced: HashSet<Oid> =
        tree.repo.gix.objects.store_ref().replacements().map(|(original, _)| Oid(original)).collect();
    let replaced_side = |change: &TreeChange| {
        [change.old, change.new].into_iter().flatten().find(|side| replaced.contains(&side.oid))
    };
    let mut paths = Vec::new();
    let mut first_oid = None;
    for change in changes.iter().filter(|_| !replaced.is_empty()) {
        let Some(side) = replaced_side(change) else { continue };
        first_oid.get_or_insert(side.oid);
        paths.push(change.path.clone());
    }
    match first_oid {
        Some(oid) => Err(Error::ReplacedBlobs {
            dir: tree.dir.to_owned(),
            first_replaced_blob: oid,
            replaced_paths: paths,
        }),
        None => Ok(()),
    }
}
