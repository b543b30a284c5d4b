//! Owns bringing a worktree from one commit to another in process, where no local change is in the way: the same files, and
//! the same index, as `git read-tree -m -u` makes of them.

use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use gix::bstr::{BStr, ByteSlice};
use gix::index::entry::{Flags, Mode, Stage, Stat};
use gix::index::extension::Tree as Cached;
use gix::index::fs::Metadata;
use gix::index::write::{Extensions, Options};
use gix::index::{Entry, Version};

use super::clean::is_racy;
use super::plain::{is_plain, says_nothing_of_files};
use super::quarantine::{Quarantine, is_below_folders, is_blob, prune_parents};
use super::transition::{Tree, attribute_paths};
use super::trees::Reader;
use super::{Change, Error, Oid, Repo, RepoPath, Side};

/// Brings the files of `changes` over and makes of `index`, a copy of the worktree's index, the one that belongs to commit
/// `to`. False when that is git's to do: then nothing was done. The index must hold what the worktree's commit has, each of
/// these files must be as the index has it, and those that are there must have a second name in `held`.
///
/// # Errors
/// When a file cannot be written or removed, or is another one by now; some were brought over, then.
pub(super) fn bring(
    tree: &Tree<'_>,
    held: &Quarantine,
    index: &Path,
    changes: &[Change],
    to: Oid,
) -> Result<bool, Error> {
    // Where a file system has no second names there is a copy, and nothing to know the file by.
    let known = |change: &Change| match change.old {
        Some(_) => held.is_same_file(tree.dir, &change.path),
        // An empty folder may be there, which git removes.
        None => change.path.under(tree.dir).symlink_metadata().is_err(),
    };
    if !changes.iter().all(known) || !is_plain(tree, changes) {
        return Ok(false);
    }
    let Some(next) = Next::plan(tree.repo, index, changes, to)? else { return Ok(false) };
    for change in changes.iter().filter(|change| change.new.is_none()) {
        remove(tree, held, &change.path)?;
    }
    // Before others take the names of folders that are empty now, as with git.
    for change in changes.iter().filter(|change| change.new.is_none()) {
        prune_parents(tree.dir, &change.path);
    }
    for change in changes {
        let Some(side) = change.new else { continue };
        if change.old.is_some() {
            remove(tree, held, &change.path)?;
        }
        write(tree, &change.path, side)?;
    }
    next.save(tree, index, changes)?;
    Ok(true)
}

/// Removes a file, if it is the one that has a second name.
fn remove(tree: &Tree<'_>, held: &Quarantine, path: &RepoPath) -> Result<(), Error> {
    let file = path.under(tree.dir);
    if !held.is_same_file(tree.dir, path) && file.symlink_metadata().is_ok() {
        return Err(Error::Raced { dir: tree.dir.to_owned(), paths: vec![path.clone()] });
    }
    match std::fs::remove_file(&file) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(Error::io("remove", &file)(e)),
        _ => Ok(()),
    }
}

/// Writes a file where none is.
pub(super) fn write(tree: &Tree<'_>, path: &RepoPath, side: Side) -> Result<(), Error> {
    let file = path.under(tree.dir);
    let content = tree.repo.blob(side.oid)?;
    let mode = if is_executable(side) { 0o777 } else { 0o666 };
    let parent = file.parent().unwrap_or(tree.dir);
    if !is_below_folders(tree.dir, path) {
        return Err(Error::io("create", parent)(std::io::ErrorKind::NotADirectory.into()));
    }
    std::fs::create_dir_all(parent).map_err(Error::io("create", parent))?;
    // What somebody has put there meanwhile is not ours to write to.
    let made = OpenOptions::new().write(true).create_new(true).mode(mode).open(&file);
    let mut made = made.map_err(Error::io("write", &file))?;
    made.write_all(&content).map_err(|e| {
        // Half a file would pass for somebody else's.
        let ours = made.metadata().ok().zip(file.symlink_metadata().ok());
        if ours.is_some_and(|(made, there)| (made.dev(), made.ino()) == (there.dev(), there.ino())) {
            drop(std::fs::remove_file(&file));
        }
        Error::io("write", &file)(e)
    })
}

fn is_executable(side: Side) -> bool {
    side.mode & 0o100 != 0
}

/// How many files are read again for what could have happened in the second in which the index was written. Beyond that git
/// is faster.
const RACY: usize = 256;

/// The index that is to be, but for the files that are brought.
struct Next(gix::index::File);

impl Next {
    /// Takes out of an index what goes, and brings what it knows of folders to what they will be. None when it holds more than
    /// is known here, or not what a commit has.
    fn plan(repo: &Repo, file: &Path, changes: &[Change], to: Oid) -> Result<Option<Next>, Error> {
        let read =
            gix::index::File::at(file, repo.gix.object_hash(), true, gix::index::decode::Options::default());
        let Ok(mut index) = read else { return Ok(None) };
        let known = changes.iter().all(|change| {
            let entry = index.entry_by_path(change.path.as_bytes().into());
            entry.map(|e| (e.id, e.mode.bits())) == change.old.map(|side| (side.oid.0, side.mode))
        });
        let racy = index.entries().iter().filter(|entry| is_racy(&index, entry)).count();
        if !known || holds_more(&index) || racy > RACY || !attributes_are_harmless(repo, &index, changes) {
            return Ok(None);
        }
        let gone: HashSet<&[u8]> =
            changes.iter().filter(|c| c.new.is_none()).map(|c| c.path.as_bytes()).collect();
        let new = changes.iter().filter(|c| c.old.is_none()).count();
        index.remove_entries(|_, path, _| gone.contains(path.as_bytes()));
        let wanted = u32::try_from(index.entries().len() + new).ok();
        let Some(cached) = index.tree_mut() else { return Ok(None) };
        update(repo.reader(), cached, repo.tree_of(to)?.0)?;
        Ok((cached.num_entries == wanted).then_some(Next(index)))
    }

    /// Adds what was brought, and writes it down.
    fn save(mut self, tree: &Tree<'_>, file: &Path, changes: &[Change]) -> Result<(), Error> {
        let mut new = Vec::new();
        for change in changes {
            let Some(side) = change.new else { continue };
            let path: &BStr = change.path.as_bytes().into();
            let stat = stat_of(tree, &change.path);
            let mode = if is_executable(side) { Mode::FILE_EXECUTABLE } else { Mode::FILE };
            match self.0.entry_mut_by_path_and_stage(path, Stage::Unconflicted) {
                Some(entry) => (entry.id, entry.mode, entry.stat) = (side.oid.0, mode, stat),
                None => new.push((stat, side.oid.0, mode, path)),
            }
        }
        for (stat, id, mode, path) in new {
            self.0.dangerously_push_entry(stat, id, Flags::empty(), mode, path);
        }
        self.0.sort_entries();
        self.settle_racy(tree, changes);
        let extensions =
            Extensions::Given { tree_cache: true, end_of_index_entry: self.0.had_end_of_index_marker() };
        let mut bytes = Vec::new();
        let written = self.0.write_to(&mut bytes, Options { extensions, skip_hash: false });
        written.map_err(Error::object("the new index"))?;
        std::fs::write(file, bytes).map_err(Error::io("write", file))
    }

    /// Files that may have been changed after they were noted, in the same second, would pass for unchanged once the index is
    /// younger than they are: those that were just brought, and those that were as young as the index before. What differs
    /// gets a size that fits none, which is git's own way.
    fn settle_racy(&mut self, tree: &Tree<'_>, changes: &[Change]) {
        let brought: HashSet<&[u8]> = changes.iter().map(|change| change.path.as_bytes()).collect();
        let differs = |entry: &Entry| {
            let path = entry.path(&self.0);
            let young = is_racy(&self.0, entry) || brought.contains(path.as_bytes());
            let side = Side { mode: entry.mode.bits(), oid: Oid(entry.id) };
            let file = RepoPath::new(path.to_vec()).under(tree.dir);
            young && !side.is_gitlink() && !is_blob(tree.repo, &file, side)
        };
        let all: Vec<usize> =
            self.0.entries().iter().enumerate().filter(|(_, e)| differs(e)).map(|(at, _)| at).collect();
        for at in all {
            self.0.entries_mut()[at].stat.size = 0;
        }
    }
}

/// Whether no attribute of these paths matters, by the files in the index, where git looks first.
fn attributes_are_harmless(repo: &Repo, index: &gix::index::File, changes: &[Change]) -> bool {
    let files = attribute_paths(changes.iter().map(|change| &change.path));
    files.iter().filter_map(|file| index.entry_by_path(file.as_bytes().into())).all(|entry| {
        entry.mode == Mode::FILE && repo.blob(Oid(entry.id)).is_ok_and(|text| says_nothing_of_files(&text))
    })
}

/// Whether an index holds anything that would not be written again, or in another way.
fn holds_more(index: &gix::index::File) -> bool {
    index.version() == Version::V4
        || index.is_sparse()
        || index.link().is_some()
        || index.resolve_undo().is_some()
        || index.untracked().is_some()
        || index.fs_monitor().is_some()
        || index.checksum().is_none()
}

/// What the index says of a file that was written; of one that is there no more, what fits none.
fn stat_of(tree: &Tree<'_>, path: &RepoPath) -> Stat {
    let meta = Metadata::from_path_no_follow(&path.under(tree.dir));
    meta.ok().and_then(|meta| Stat::from_fs(&meta).ok()).unwrap_or_default()
}

/// Brings what an index knows of a folder to the tree `id`. What is as it was is not entered.
pub(super) fn update(reader: &Reader, cached: &mut Cached, id: gix::ObjectId) -> Result<(), Error> {
    if cached.id == id && cached.num_entries.is_some() {
        return Ok(());
    }
    let items = reader.tree(id)?;
    let mut before = std::mem::take(&mut cached.children);
    let mut count = 0;
    for (name, item) in items.iter() {
        if !item.is_tree() {
            count += 1;
            continue;
        }
        let at = before.iter().position(|child| child.name.as_slice() == name.as_bytes());
        let mut child = match at {
            Some(at) => before.swap_remove(at),
            None => {
                Cached { name: name.as_bytes().into(), id: item.id, num_entries: None, children: Vec::new() }
            }
        };
        update(reader, &mut child, item.id)?;
        count += child.num_entries.unwrap_or_default();
        cached.children.push(child);
    }
    // Git's own order.
    cached.children.sort_by(|a, b| a.name.len().cmp(&b.name.len()).then_with(|| a.name.cmp(&b.name)));
    (cached.id, cached.num_entries) = (id, Some(count));
    Ok(())
}

#[cfg(test)]
mod tests;
