//! Owns files of which a power cut left only the beginning: neither git nor a step syncs what it writes to a worktree, so that a file
//! can be empty whose step is known to have happened. No beginning of what was being written is somebody's work.

use std::collections::HashSet;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::clear::Held;
use super::durable::sync_files;
use super::entries::{EXECUTABLE, Entries, Entry, FILE, LINK};
use super::index::INDEX;
use super::quarantine::{Quarantine, is_blob, stands_no_folder};
use super::repair::as_written;
use super::restore_plan::merged_onto;
use super::transition::Tree;
use super::{Change, Error, Oid, RepoPath, Side, Snapshot, tree_changes};

/// A step that has changed the files of a worktree, by what it did to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wrote {
    /// Brought them from one commit to another.
    Commit { from: Oid, to: Oid },
    /// Put HEAD's files in the places of what a snapshot holds.
    Cleared(Snapshot),
    /// Put a snapshot's files back onto a commit. They are somebody's own, and where they are whole nothing is missing from them.
    Restored { snapshot: Snapshot, onto: Oid },
}

/// Changed files, and the commit or tree that has their new content; none where no object has it.
type Changed = (Vec<Change>, Option<Oid>);

/// A file as git writes it.
struct Written {
    path: RepoPath,
    side: Side,
    /// The commit or tree that has it.
    of: Oid,
}

/// Bytes of the smallest block of any file system. A power cut leaves a file that is empty or ends with a block, and so does a kill: git
/// writes 16 kB at a time, with filters or without, and the kernel pages. A person who removes lines from the end of a file almost never
/// leaves such a length.
const BLOCK: usize = 512;

/// Whether bytes can be what is there of a file that was being written.
pub(super) fn is_beginning(there: &[u8], whole: &[u8]) -> bool {
    there.len().is_multiple_of(BLOCK) && there.len() < whole.len() && whole.starts_with(there)
}

/// Names the variable that says under test that the machine was only just started, whatever its value.
const BOOT: &str = "PROQ_TEST_BOOT";

/// When this machine was started, by its clock; within some milliseconds. None where the system does not say.
fn booted() -> Option<SystemTime> {
    if std::env::var_os(BOOT).is_some() {
        return Some(SystemTime::now());
    }
    // Each goes on while the machine sleeps.
    #[cfg(target_os = "linux")]
    let clock = rustix::time::ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    let clock = rustix::time::ClockId::Monotonic;
    SystemTime::now().checked_sub(rustix::time::clock_gettime(clock).try_into().ok()?)
}

/// Makes the files whole that `steps`, newest first, have written to a worktree and of which a power cut left only a beginning. A
/// file that anybody has written something else to stays as it is, and so does one that git cannot write: that one counts as changed.
/// So does one that was written or emptied since the machine was started: that was no power cut.
///
/// # Errors
/// When the objects that say what the steps did cannot be read, or a file cannot be replaced; the others were.
pub(crate) fn complete(tree: &Tree<'_>, steps: &[Wrote]) -> Result<(), Error> {
    let Some(booted) = booted() else { return Ok(()) };
    let mut wanted = newest(tree, steps)?;
    // What a file is like depends on them.
    wanted.sort_by_key(|file| !file.path.ends_with_name(b".gitattributes"));
    let index = Entries::read(&tree.git_dir.join(INDEX), tree.repo.gix.object_hash());
    let whole = Quarantine::at(&tree.scratch.join("whole"))?;
    let mut done = Ok(());
    for file in &wanted {
        if let Some(content) = cut_short(tree, index.as_ref(), file, booted)
            && let Err(e) = put(tree, &whole, &file.path, &content)
        {
            done = Err(e);
        }
    }
    done
}

/// Whether a power cut left only a beginning of a file of a snapshot that was being brought back. `expected` has what its files are
/// like.
pub(super) fn is_cut_short(
    tree: &Tree<'_>,
    snapshot: &Snapshot,
    path: &RepoPath,
    expected: &[(RepoPath, Side)],
) -> bool {
    let Some(booted) = booted() else { return false };
    let Some((_, side)) = expected.iter().find(|(expected, _)| expected == path) else { return false };
    let trees = [Some(snapshot.work_tree), snapshot.untracked_tree];
    trees.into_iter().flatten().any(|of| {
        let file = Written { path: path.clone(), side: *side, of };
        cut_short(tree, None, &file, booted).is_some()
    })
}

/// The whole content of a file of which a power cut left only a beginning.
fn cut_short(
    tree: &Tree<'_>,
    index: Option<&Entries>,
    file: &Written,
    booted: SystemTime,
) -> Option<Vec<u8>> {
    let there = short(tree, index, file, booted)?;
    as_written(tree, &file.path, file.of).ok().filter(|content| is_beginning(&there, content))
}

/// Makes durable what `steps`, newest first, have written to a worktree.
///
/// # Errors
/// When the objects that say what the steps did cannot be read, or the disk cannot be written to.
pub(crate) fn sync_written(tree: &Tree<'_>, steps: &[Wrote]) -> Result<(), Error> {
    let files: Vec<PathBuf> = newest(tree, steps)?.iter().map(|file| file.path.under(tree.dir)).collect();
    sync_files(&files)
}

/// Lists the files that steps, newest first, have left in a worktree: each path as the newest step that changed it has written it.
fn newest(tree: &Tree<'_>, steps: &[Wrote]) -> Result<Vec<Written>, Error> {
    let mut known = HashSet::new();
    let mut wanted = Vec::new();
    for step in steps {
        let all = match step {
            Wrote::Commit { from, to } => vec![(tree_changes(tree.repo, *from, *to)?, Some(*to))],
            Wrote::Cleared(snapshot) => {
                let inverted = |c: Change| Change { old: c.new, new: c.old, path: c.path };
                let held = Held::to_clear(tree, snapshot)?.all();
                vec![(held.into_iter().map(inverted).collect(), Some(snapshot.base))]
            }
            Wrote::Restored { snapshot, onto } => restored(tree, snapshot, *onto)?,
        };
        for (changes, of) in all {
            for Change { path, new, .. } in changes {
                if known.insert(path.clone())
                    && let Some((side, of)) = new.zip(of)
                {
                    wanted.push(Written { path, side, of });
                }
            }
        }
    }
    Ok(wanted)
}

/// Lists the files that restoring a snapshot onto a commit has changed, with the trees that have their content.
fn restored(tree: &Tree<'_>, snapshot: &Snapshot, onto: Oid) -> Result<Vec<Changed>, Error> {
    let held = Held::of(tree, snapshot)?;
    let fresh = |(path, side): &(RepoPath, Side)| Change { path: path.clone(), old: None, new: Some(*side) };
    let merged = merged_onto(tree, snapshot, onto, snapshot.work_tree)?.ok();
    let tracked = match merged {
        Some(merged) => tree_changes(tree.repo, onto, merged)?,
        None => held.tracked.clone(),
    };
    let untracked: Vec<Change> = held.untracked.iter().map(fresh).collect();
    // No object has these.
    let ignored: Vec<Change> = held.ignored.iter().map(fresh).collect();
    Ok(vec![(tracked, merged), (untracked, snapshot.untracked_tree), (ignored, None)])
}

/// Reads a regular file that may be cut short. None where it has the content of its blob, or the length that the index notes of it,
/// and where it was changed since the machine was `booted`.
fn short(tree: &Tree<'_>, index: Option<&Entries>, file: &Written, booted: SystemTime) -> Option<Vec<u8>> {
    let at = file.path.under(tree.dir);
    let meta = at
        .symlink_metadata()
        .ok()
        .filter(|meta| meta.is_file() && changed(meta).is_some_and(|at| at < booted))?;
    let is_written =
        matches!(file.side.mode, FILE | EXECUTABLE) || (file.side.mode == LINK && !tree.repo.makes_links());
    if !is_written || !stands_no_folder(tree.dir, &file.path) {
        return None;
    }
    let entry = index.and_then(|index| index.find(file.path.as_bytes()));
    let noted = entry.filter(|entry| entry.id() == file.side.oid.0.as_slice()).map(Entry::size);
    // Git notes no length of a file that may have been written to in the same moment.
    let is_as_long = noted.is_some_and(|size| size > 0 && u64::from(size) == meta.len());
    if is_as_long || is_blob(tree.repo, &at, file.side) { None } else { std::fs::read(&at).ok() }
}

/// When a file was last changed, which nobody can set back. A time before 1970 counts as 1970.
fn changed(meta: &Metadata) -> Option<SystemTime> {
    let seconds = Duration::from_secs(u64::try_from(meta.ctime()).unwrap_or(0));
    UNIX_EPOCH.checked_add(seconds)
}

/// Puts a whole file in the place of its beginning, with the same permission bits.
fn put(tree: &Tree<'_>, whole: &Quarantine, path: &RepoPath, content: &[u8]) -> Result<(), Error> {
    let (draft, file) = (whole.place(path), path.under(tree.dir));
    whole.remove_drafts(tree.dir, std::iter::once(path));
    let folder = draft.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
    let rights = file.symlink_metadata().map(|meta| meta.permissions()).map_err(Error::io("read", &file))?;
    std::fs::write(&draft, content)
        .and_then(|()| std::fs::set_permissions(&draft, rights))
        .and_then(|()| std::fs::File::open(&draft)?.sync_all())
        .map_err(Error::io("write", &draft))?;
    whole.give_over(tree.dir, path)
}
