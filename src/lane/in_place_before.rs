//! Owns what was in the main checkout before a run, and whether a path is somebody's from then.

use std::collections::{BTreeSet, HashSet};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::{Checkout, Error, Project};
use crate::git::{self, Dirt, RepoPath};
use crate::store::records::{BeforeRecord, FileBefore};

/// How many ignored files and folders are known again under another name.
const KNOWN: usize = 10_000;

/// Looks at the main checkout before a run.
pub(super) fn look_before(
    project: &Project,
    checkout: &Checkout<'_>,
    keeper: String,
    snap: Option<String>,
) -> Result<BeforeRecord, Error> {
    let dir = checkout.dir();
    let ignored = checkout.ignored(&checkout.seen())?;
    let ignored_ids = ids_below(dir, &ignored, &project.lanes_dir());
    let mut paths = git::status(&project.repo, dir, true)?.paths();
    paths.extend(checkout.hidden_edits()?);
    let files = paths.into_iter().map(|path| seen(dir, path)).collect();
    Ok(BeforeRecord { keeper, snap, ignored, ignored_ids, files })
}

/// A file as it is.
fn seen(dir: &Path, path: RepoPath) -> FileBefore {
    let meta = path.under(dir).symlink_metadata().ok();
    let state = meta
        .as_ref()
        .filter(|meta| !meta.is_dir())
        .map(|meta| format!("{} {}.{} {:o}", meta.size(), meta.mtime(), meta.mtime_nsec(), meta.mode()));
    let (ids, unread) = (meta.as_ref().map(ids_of), !git::unreadable(dir, [&path]).is_empty());
    FileBefore { path, ids: ids.unwrap_or_default(), state: state.unwrap_or_default(), unread }
}

/// What a file keeps under another name. The number alone is soon given to another one, so its birth counts too; or its size and
/// time, where a layer over the file system gives what is changed there another birth.
fn ids_of(meta: &Metadata) -> Vec<String> {
    let born = meta.created().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let place = format!("{} {}", meta.dev(), meta.ino());
    let by_birth = format!("{place} {}", born.map_or(0, |at| at.as_nanos()));
    let by_state = format!("{place} {} {}.{}", meta.size(), meta.mtime(), meta.mtime_nsec());
    std::iter::once(by_birth).chain(meta.is_file().then_some(by_state)).collect()
}

/// The ids of these and of what is in them, up to a number of them. Lanes are no part of the checkout.
fn ids_below(dir: &Path, paths: &[RepoPath], lanes: &Path) -> Vec<String> {
    let mut todo: Vec<PathBuf> = paths.iter().map(|path| path.under(dir)).collect();
    // What lies deeper comes last: the top of each is known in any case.
    let mut next = 0;
    while next < todo.len() && todo.len() < KNOWN {
        let here = todo[next].clone();
        next += 1;
        if here != lanes && here.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
            todo.extend(std::fs::read_dir(&here).into_iter().flatten().flatten().map(|entry| entry.path()));
        }
    }
    todo.truncate(KNOWN.max(paths.len()));
    todo.iter()
        .filter(|path| *path != lanes)
        .filter_map(|p| p.symlink_metadata().ok())
        .flat_map(|m| ids_of(&m))
        .collect()
}

/// What was the user's before a run: not the run's to commit.
pub(super) struct Yours<'a> {
    dir: &'a Path,
    before: &'a BeforeRecord,
    /// Files, and folders that were ignored.
    paths: BTreeSet<&'a RepoPath>,
    /// The folders that any of them lies in.
    above: BTreeSet<RepoPath>,
    ids: HashSet<&'a str>,
}

impl<'a> Yours<'a> {
    pub(super) fn new(dir: &'a Path, before: &'a BeforeRecord) -> Yours<'a> {
        let paths: BTreeSet<&RepoPath> =
            before.files.iter().map(|file| &file.path).chain(&before.ignored).collect();
        let above = paths.iter().flat_map(|path| path.parents()).collect();
        let ids = before.files.iter().flat_map(|file| &file.ids).map(String::as_str);
        let ids = ids.chain(before.ignored_ids.iter().map(String::as_str)).collect();
        Yours { dir, before, paths, above, ids }
    }

    /// Whether a path is one of these, lies where one was or in place of a folder with one, or is one under another name.
    pub(super) fn holds(&self, path: &RepoPath) -> bool {
        self.paths.contains(path)
            || self.above.contains(path)
            || path.parents().any(|up| self.paths.contains(&up))
            || self.is_known(path)
            || path.parents().any(|up| self.is_known(&up))
    }

    fn is_known(&self, path: &RepoPath) -> bool {
        let meta = path.under(self.dir).symlink_metadata();
        meta.is_ok_and(|meta| ids_of(&meta).iter().any(|id| self.ids.contains(id.as_str())))
    }

    /// Those that are not as they were, not there any more, or seen for the first time.
    pub(super) fn touched(&self, dirt: &Dirt) -> Vec<RepoPath> {
        let differs = |file: &&FileBefore| seen(self.dir, file.path.clone()) != **file;
        let mut out: BTreeSet<RepoPath> =
            self.before.files.iter().filter(differs).map(|file| file.path.clone()).collect();
        let before: BTreeSet<&RepoPath> = self.before.files.iter().map(|file| &file.path).collect();
        out.extend(dirt.paths().into_iter().filter(|path| !before.contains(path) && self.holds(path)));
        let is_gone = |path: &&RepoPath| path.under(self.dir).symlink_metadata().is_err();
        out.extend(self.before.ignored.iter().filter(is_gone).cloned());
        out.into_iter().collect()
    }
}
