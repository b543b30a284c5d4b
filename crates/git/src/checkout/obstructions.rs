//! Obstructions in the way of restored files: files that others wrote at those places are saved in a commit
//! or under another name.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::base::folders::{obstruction_above, remove_empty_tree};
use crate::base::path::nul_separated;
use crate::checkout::quarantine::move_without_replacing;
use crate::history::commit::NewCommit;
use crate::index::scratch_index;
use crate::repository::worktree_context::WorktreeContext;
use crate::{CommitId, Error, RepoPath};

/// Path that occupies the place of a file to restore.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Obstruction {
    /// Path of the obstruction.
    pub path: RepoPath,
    /// Whether renaming the restored file into place replaces the obstruction: it is neither a folder nor in
    /// place of one.
    pub(crate) is_replaceable: bool,
}

/// Removes folders at `path` that contain no file, and returns what still prevents a file from being placed
/// there; `None` if nothing does.
pub(crate) fn obstruction_after_cleanup(root: &Path, path: &RepoPath) -> Option<Obstruction> {
    if let Some(path) = obstruction_above(root, path) {
        return Some(Obstruction { path, is_replaceable: false });
    }
    let target = path.to_fs_path(root);
    remove_empty_tree(&target);
    let meta = target.symlink_metadata().ok()?;
    Some(Obstruction { path: path.clone(), is_replaceable: !meta.is_dir() })
}

/// Saves obstructions. Those that a rename replaces go into a commit if git can read them and does not ignore
/// them. All others are renamed within their folder, with a warning. Returns the commit, if one was written.
pub(crate) fn preserve_obstructions(
    tree: &WorktreeContext<'_>,
    mut obstructions: Vec<Obstruction>,
) -> Result<Option<CommitId>, Error> {
    obstructions.sort();
    obstructions.dedup();
    let ignored = ignored_obstructions(tree, &obstructions);
    let (committable, others): (Vec<_>, Vec<_>) = obstructions.into_iter().partition(|s| {
        s.is_replaceable && is_readable(&s.path.to_fs_path(tree.dir)) && !ignored.contains(&s.path)
    });
    rename_to_free_names(tree, &others)?;
    if committable.is_empty() {
        return Ok(None);
    }
    match commit_obstructions(tree, &committable) {
        Ok(saved) => Ok(Some(saved)),
        // A rename needs neither git nor disk space.
        Err(_) => rename_to_free_names(tree, &committable).map(|()| None),
    }
}

/// Renames each obstruction to a free name in its folder.
pub(crate) fn rename_to_free_names(
    tree: &WorktreeContext<'_>,
    obstructions: &[Obstruction],
) -> Result<(), Error> {
    for Obstruction { path, .. } in obstructions {
        move_to_free_name(tree, &path.to_fs_path(tree.dir), path)?;
    }
    Ok(())
}

/// Moves the file or folder `from`, which is or was at `path`, to a free name next to that path, and names it
/// in a warning. Does nothing if it no longer exists.
pub(crate) fn move_to_free_name(
    tree: &WorktreeContext<'_>,
    from: &Path,
    path: &RepoPath,
) -> Result<(), Error> {
    // No file can be created below a path that is itself a file.
    let place = obstruction_above(tree.dir, path).unwrap_or_else(|| path.clone()).to_fs_path(tree.dir);
    if let Some(folder) = place.parent() {
        std::fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
    }
    let mut candidates = (1..u32::MAX).map(|n| sibling_path(&place, n));
    let to = loop {
        let Some(to) = candidates.find(|to| to.symlink_metadata().is_err()) else { return Ok(()) };
        // A rename of a folder replaces no file, on any file system.
        let result = match from.is_dir() && !from.is_symlink() {
            true => std::fs::rename(from, &to).map_err(Error::io("move a file to", &to)),
            false => move_without_replacing(from, &to),
        };
        match result {
            Ok(()) => break to,
            Err(_) if from.symlink_metadata().is_err() => return Ok(()),
            // Another program took the name in the meantime.
            Err(_) if to.symlink_metadata().is_ok() => {}
            Err(e) => return Err(e),
        }
    };
    let to = to.strip_prefix(tree.dir).ok().and_then(RepoPath::from_path);
    let to = to.as_ref().map_or_else(String::new, ToString::to_string);
    (tree.warn)(format!("{path} was in the place of a restored file: it is now {to}"));
    Ok(())
}

/// Returns the `n`-th name next to `place` for a file that was there.
fn sibling_path(place: &Path, n: u32) -> PathBuf {
    let mut name = place.file_name().unwrap_or_default().to_owned();
    name.push(format!(".proq-saved-{n}"));
    // The suffix alone is used if the name would be longer than file systems allow.
    place.with_file_name(if name.len() > 255 { format!("proq-saved-{n}").into() } else { name })
}

/// Returns whether a path is a symbolic link, or a file that this user may read.
fn is_readable(file: &Path) -> bool {
    let Ok(meta) = file.symlink_metadata() else { return false };
    meta.is_symlink() || (meta.is_file() && access(file, Access::READ_OK).is_ok())
}

/// Returns the paths that git ignores; all paths if git fails.
fn ignored_obstructions(tree: &WorktreeContext<'_>, obstructions: &[Obstruction]) -> BTreeSet<RepoPath> {
    let paths = || obstructions.iter().map(|s| &s.path);
    if obstructions.is_empty() {
        return BTreeSet::new();
    }
    let call = tree.repo.git_in(tree.dir).args(["check-ignore", "--no-index", "-z", "--stdin"]);
    match call.input(nul_separated(paths())).accept_exit_codes(&[1]).run() {
        Ok(out) => out.nul_separated_fields().map(RepoPath::new).collect(),
        Err(_) => paths().cloned().collect(),
    }
}

/// Writes a commit without parents that holds the files of the obstructions.
fn commit_obstructions(tree: &WorktreeContext<'_>, files: &[Obstruction]) -> Result<CommitId, Error> {
    let index = tree.scratch.join("strange");
    scratch_index::remove_scratch_index(&index);
    let call = || tree.repo.git_in(tree.dir).use_index(&index);
    let paths = nul_separated(files.iter().map(|s| &s.path));
    let update_args = ["-c", "core.safecrlf=false", "update-index", "--add", "-z", "--stdin"];
    call().args(update_args).input(paths).mutating().durable().run()?;
    let id = call().mutating().durable().run_write_tree()?;
    let message = "git-proq: files that were written before others went back\n";
    NewCommit { tree: id, parents: &[], message }.write_as_proq(tree.repo, None)
}
