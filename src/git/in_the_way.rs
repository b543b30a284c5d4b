//! Owns files that git ignores and that stand where HEAD has something else: `git rm --cached FILE`, and the file is ignored from
//! then on. They are a user's own and move aside with everything else, as files: no object may hold what git was told to ignore.

use std::collections::BTreeSet;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::left_out::covering;
use super::make_way::stranger_above;
use super::quarantine::{FILES, is_below_folders};
use super::special;
use super::status::{Dirt, Entry, Kind};
use super::transition::Tree;
use super::{Change, Error, Oid, Repo, RepoPath, Side, flags, tree_changes};
use crate::regular_file::{self, Links};

/// An ignored file of a snapshot. Its content is only in the file itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IgnoredFile {
    /// The path.
    pub(crate) path: RepoPath,
    /// Git's mode of such a file.
    mode: u32,
    /// The id that a blob with its bytes would have. There is no such blob.
    content: Oid,
}

impl IgnoredFile {
    /// Whether it is as it was in the worktree at `dir`, or below `aside`, where a snapshot's files are set aside.
    pub(crate) fn is_kept(&self, repo: &Repo, dir: &Path, aside: &Path) -> bool {
        let is_below = |top: &Path| described(repo, top, &self.path).is_ok_and(|now| now == *self);
        is_below(dir) || is_below(&aside.join(FILES))
    }

    /// Mode and content.
    pub(super) fn side(&self) -> Side {
        Side { mode: self.mode, oid: self.content }
    }
}

/// The ignored files that stand where HEAD, which is at `base`, has a file that the worktree has not, in place of a folder above
/// it, or below a folder in its place; and those of `brought` that are there, which a snapshot has brought back.
pub(super) fn ignored_in_the_way(
    tree: &Tree<'_>,
    dirt: &Dirt,
    hidden: &[RepoPath],
    (base, work_tree): (Oid, Oid),
    brought: &[RepoPath],
) -> Result<Vec<IgnoredFile>, Error> {
    let is_elsewhere =
        |e: &Entry| matches!(e.kind, Kind::Tracked { staged, deleted, .. } if staged || deleted);
    // Else HEAD has nothing there that the worktree has not.
    let changes = if !hidden.is_empty() || dirt.tracked().any(is_elsewhere) {
        tree_changes(tree.repo, base, work_tree)?
    } else {
        Vec::new()
    };
    let known = dirt.untracked().filter(|e| !e.nested).map(|e| &e.path).collect();
    describe(tree, &changes, &known, brought)
}

/// The ignored files of a worktree in which nothing differs from HEAD that have to move aside all the same: those that stand in
/// place of a folder of files which the user has marked skip-worktree, see [`covering`], and those of `brought`, as above.
pub(super) fn ignored_in_place(tree: &Tree<'_>, brought: &[RepoPath]) -> Result<Vec<IgnoredFile>, Error> {
    describe(tree, &[], &BTreeSet::new(), brought)
}

fn describe(
    tree: &Tree<'_>,
    changes: &[Change],
    known: &BTreeSet<&RepoPath>,
    brought: &[RepoPath],
) -> Result<Vec<IgnoredFile>, Error> {
    let mut found = Found::of(tree, changes, known)?;
    found.files.extend(still_ignored(tree, brought)?);
    let readable = |path: &&RepoPath| special::unreadable(tree.dir, [*path]).is_empty();
    found.files.iter().filter(readable).map(|path| described(tree.repo, tree.dir, path)).collect()
}

/// Those of `paths` that are files or links which git ignores, and does not track.
fn still_ignored(tree: &Tree<'_>, paths: &[RepoPath]) -> Result<Vec<RepoPath>, Error> {
    let is_file = |path: &&RepoPath| {
        let meta = path.under(tree.dir).symlink_metadata();
        meta.is_ok_and(|meta| meta.is_file() || meta.is_symlink()) && is_below_folders(tree.dir, path)
    };
    let there: Vec<RepoPath> = paths.iter().filter(is_file).cloned().collect();
    if there.is_empty() {
        return Ok(there);
    }
    // Left to its index, git takes a file for tracked that stands in place of a folder of such.
    let mut ignored = tree.repo.ignores(tree.dir, &there)?;
    let has = flags::has_entry(tree.repo, &tree.git_dir.join("index"));
    // The last is for a folder that the index has in place of its files.
    ignored.retain(|path| !has(path) && !path.parents().any(|up| has(&up.join(b""))));
    Ok(ignored)
}

/// Refuses when anything else stands there: what no snapshot can hold cannot be moved aside with it.
///
/// # Errors
/// [`Error::NoFile`], [`Error::Unreadable`]; [`Error::Raced`] for files that came after the snapshot.
pub(super) fn refuse_in_the_way(
    tree: &Tree<'_>,
    changes: &[Change],
    known: &BTreeSet<&RepoPath>,
) -> Result<(), Error> {
    let found = Found::of(tree, changes, known)?;
    if !found.no_files.is_empty() {
        return Err(Error::NoFile { dir: tree.dir.to_owned(), paths: found.no_files });
    }
    let mut all: Vec<RepoPath> = found.files.into_iter().chain(found.unread).collect();
    let unread = special::unreadable(tree.dir, &all);
    if !unread.is_empty() {
        return Err(Error::Unreadable { dir: tree.dir.to_owned(), paths: unread });
    }
    all.sort();
    if all.is_empty() { Ok(()) } else { Err(Error::Raced { dir: tree.dir.to_owned(), paths: all }) }
}

/// What is in the way.
#[derive(Default)]
struct Found {
    files: BTreeSet<RepoPath>,
    /// Folders that cannot be looked into.
    unread: Vec<RepoPath>,
    /// What is neither a file nor a folder of files, in words.
    no_files: Vec<String>,
}

impl Found {
    fn of(tree: &Tree<'_>, changes: &[Change], known: &BTreeSet<&RepoPath>) -> Result<Found, Error> {
        let tracked: BTreeSet<&RepoPath> =
            changes.iter().filter(|c| c.new.is_some()).map(|c| &c.path).collect();
        let mut found = Found::default();
        let is_gone = |c: &&Change| c.new.is_none() && c.old.is_some_and(|side| !side.is_gitlink());
        let mut places = covering(tree)?;
        let gone = changes.iter().filter(is_gone).map(|c| &c.path);
        places.extend(gone.map(|path| stranger_above(tree.dir, path).unwrap_or_else(|| path.clone())));
        for path in &places {
            found.look_at(tree, path);
        }
        found.files.retain(|path| !known.contains(path) && !tracked.contains(path));
        Ok(found)
    }

    fn look_at(&mut self, tree: &Tree<'_>, path: &RepoPath) {
        let place = path.under(tree.dir);
        let Ok(meta) = place.symlink_metadata() else { return };
        if let Some(what) = special::special(meta.file_type()) {
            self.no_files.push(format!("{path} is {what}"));
        } else if !meta.is_dir() {
            self.files.insert(path.clone());
        } else if place.join(".git").symlink_metadata().is_ok() {
            self.no_files.push(format!("{path} is a repository of its own"));
        } else if let Ok(entries) = std::fs::read_dir(&place) {
            for entry in entries.flatten() {
                self.look_at(tree, &path.join(entry.file_name().as_bytes()));
            }
        } else {
            self.unread.push(path.clone());
        }
    }
}

/// Describes the file or link at a path below the folder `top`.
fn described(repo: &Repo, top: &Path, path: &RepoPath) -> Result<IgnoredFile, Error> {
    let file = path.under(top);
    let failed = |e| Error::io("read", &file)(e);
    let meta = file.symlink_metadata().map_err(failed)?;
    let (mode, bytes) = if meta.is_symlink() {
        (0o120_000, std::fs::read_link(&file).map(|target| target.into_os_string().into_vec()))
    } else {
        let mode = if meta.permissions().mode() & 0o100 == 0 { 0o100_644 } else { 0o100_755 };
        // A pipe may be there by now.
        (mode, regular_file::read(&file, u64::MAX - 1, Links::Refuse))
    };
    let content = repo.blob_id(&bytes.map_err(failed)?);
    let content = content.ok_or_else(|| failed(std::io::ErrorKind::InvalidData.into()))?;
    Ok(IgnoredFile { path: path.clone(), mode, content })
}
