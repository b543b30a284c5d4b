//! Late writes to parked files, by programs that still have them open, and the snapshot that captures them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use super::clear::SnapshotFiles;
use super::snapshot::Snapshot;
use crate::checkout::quarantine::{Quarantine, move_without_replacing};
use crate::history::tree_diff::TreeFile;
use crate::index::sparse_entries::present_files;
use crate::repository::worktree_context::WorktreeContext;
use crate::{Error, RepoPath, TreeId};

/// Starts of the names of folders, next to parked files, with copies that a warning has named.
const NAMED_COPY_PREFIXES: [&str; 2] = [TRUNCATED_PREFIX, NOT_RESTORED_PREFIX];
/// Start of the name of a folder with truncated copies of parked files.
const TRUNCATED_PREFIX: &str = "cut-short-";
/// Start of the name of a folder with files that a restore could not restore, or replaced.
pub(crate) const NOT_RESTORED_PREFIX: &str = "not-restored-";

/// Returns whether the folder of parked files also has copies of files that a warning has named.
pub fn has_named_copies(parked_dir: &Path) -> bool {
    let mut names = parked_dir.read_dir().into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.any(|name| {
        NAMED_COPY_PREFIXES.iter().any(|prefix| name.as_encoded_bytes().starts_with(prefix.as_bytes()))
    })
}

/// Returns whether git's objects have every parked file of `snapshot` byte for byte, as no filter and no later write
/// has changed it.
pub fn has_only_saved_bytes(
    tree: &WorktreeContext<'_>,
    snapshot: &Snapshot,
    parked_dir: &Path,
) -> Result<bool, Error> {
    let parked = Quarantine::open(parked_dir)?;
    let saved: BTreeMap<RepoPath, TreeFile> =
        SnapshotFiles::load(tree, snapshot)?.files_with_objects().into_iter().collect();
    let is_saved = |path| saved.get(path).is_some_and(|side| parked.matches_blob(tree.repo, path, *side));
    Ok(parked.list_files()?.iter().all(is_saved))
}

/// Captures bytes that a logger or a server wrote to parked files through an open descriptor after `snapshot`
/// was taken: these bytes are the newest the user has. Returns the snapshot with them, or `None` when nothing
/// was written. A file that was only truncated has nothing that the snapshot lacks: it moves to a folder
/// named in a warning, and the snapshot's objects count.
pub fn capture_late_writes(
    tree: &WorktreeContext<'_>,
    snapshot: &Snapshot,
    parked_dir: &Path,
) -> Result<Option<Snapshot>, Error> {
    let files = SnapshotFiles::load(tree, snapshot)?;
    let parked = Quarantine::open(parked_dir)?;
    let mut parked_files = files.files_with_objects();
    let snapshot_paths: BTreeSet<RepoPath> =
        files.all_changes().into_iter().map(|change| change.path).collect();
    let sparse_files = present_files(tree, &parked_dir.join("index"), &snapshot.present_skipped);
    parked_files.extend(sparse_files.into_iter().filter(|(path, _)| !snapshot_paths.contains(path)));
    parked_files.retain(|(path, _)| parked.contains(path));
    let attributes = || files.attribute_files(tree, snapshot);
    let mut changed = parked.differing_files(tree, &parked_files, &attributes)?;
    let truncated: Vec<RepoPath> = parked_files
        .iter()
        .filter(|(path, _)| changed.contains(path))
        .filter(|(path, side)| is_truncated(tree, &parked.file_path(path), (path, *side), snapshot.work_tree))
        .map(|(path, _)| path.clone())
        .collect();
    move_truncated_copies(tree, &parked, parked_dir, &truncated)?;
    changed.retain(|path| !truncated.contains(path));
    if changed.is_empty() {
        return Ok(None);
    }
    let is_untracked = |p: &&RepoPath| files.untracked.iter().any(|(u, _)| u == *p);
    let (untracked, tracked): (Vec<_>, Vec<_>) = changed.iter().partition(is_untracked);
    let mut updated = Snapshot {
        work_tree: parked.write_tree_with_quarantined_files(tree, snapshot.work_tree, &tracked)?,
        ..snapshot.clone()
    };
    if let Some(old_tree) = snapshot.untracked_tree {
        updated.untracked_tree = Some(parked.write_tree_with_quarantined_files(tree, old_tree, &untracked)?);
    }
    updated.rewrite_commit(tree.repo)?;
    Ok(Some(updated))
}

/// Moves truncated copies to a new folder next to the parked files, and names it in a warning.
fn move_truncated_copies(
    tree: &WorktreeContext<'_>,
    parked: &Quarantine,
    parked_dir: &Path,
    paths: &[RepoPath],
) -> Result<(), Error> {
    if paths.is_empty() {
        return Ok(());
    }
    let is_free = |n: &u32| !parked_dir.join(format!("{TRUNCATED_PREFIX}{n}")).exists();
    let number = (1..u32::MAX).find(is_free).unwrap_or_default();
    let dir = parked_dir.join(format!("{TRUNCATED_PREFIX}{number}"));
    for path in paths {
        let target = path.to_fs_path(&dir);
        if let Some(parent) = target.parent() {
            std::fs::create_dir_all(parent).map_err(Error::io("create", parent))?;
        }
        move_without_replacing(&parked.file_path(path), &target)?;
        (tree.warn)(format!(
            "{path} was truncated while it was saved; it is restored from git's objects, and the truncated copy is saved as {}",
            target.display()
        ));
    }
    Ok(())
}

/// Returns whether `file` is a proper prefix of the snapshot's file at `path`: as git stores it, with other
/// line ends, or as its filters write it.
fn is_truncated(
    tree: &WorktreeContext<'_>,
    file: &Path,
    (path, side): (&RepoPath, TreeFile),
    attribute_source: TreeId,
) -> bool {
    if side.mode == 0o120_000 || !file.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
        return false;
    }
    let Ok(content) = std::fs::read(file) else { return false };
    let git_command = || tree.repo.git_in(tree.dir).env("GIT_ATTR_SOURCE", attribute_source.to_string());
    let stored = git_command().args(["cat-file", "blob"]).arg(side.oid.to_string()).run();
    let is_proper_prefix = |full: &[u8], prefix: &[u8]| prefix.len() < full.len() && full.starts_with(prefix);
    if stored.is_ok_and(|kept| {
        is_proper_prefix(&kept.stdout, &content)
            || is_proper_prefix(&with_unix_line_ends(&kept.stdout), &with_unix_line_ends(&content))
    }) {
        return true;
    }
    let mut path_arg = OsString::from("--path=").into_vec();
    path_arg.extend_from_slice(path.as_bytes());
    let converted = git_command()
        .args(["cat-file", "--filters"])
        .arg(OsString::from_vec(path_arg))
        .arg(side.oid.to_string())
        .run();
    converted.is_ok_and(|written| is_proper_prefix(&written.stdout, &content))
}

/// Converts a text to Unix line ends. A text that was truncated within a line end loses that line end's `\r`.
fn with_unix_line_ends(text: &[u8]) -> Vec<u8> {
    let is_cr_of_line_end =
        |at: usize| text[at] == b'\r' && text.get(at + 1).is_none_or(|next| *next == b'\n');
    (0..text.len()).filter(|at| !is_cr_of_line_end(*at)).map(|at| text[at]).collect()
}
