//! Owns bringing a worktree from one commit to another in process, where no local change is in the way: the same files, and
//! the same index, as `git read-tree -m -u` makes of them.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use gix::bstr::ByteSlice;
use gix::index::entry::Stat;
use gix::index::extension::Tree as Cached;

use super::clean::noted;
use super::entries::{self, Edit, Entries};
use super::index::{NewIndex, time_in};
use super::plain::is_plain;
use super::quarantine::{Quarantine, is_below_folders, is_blob, prune_parents};
use super::transition::{Tree, attribute_paths};
use super::trees::Reader;
use super::{Change, Error, Oid, Repo, RepoPath, Side};

/// Brings the files of `changes` over and makes of the worktree's `index` the one that belongs to commit `to`. None when that
/// is git's to do: then nothing was done. The index must hold what the worktree's commit has, each of these files must be as
/// the index has it, and those that are there must have a second name in `held`.
///
/// # Errors
/// When a file cannot be written or removed, or is another one by now; some were brought over, then.
pub(super) fn bring(
    tree: &Tree<'_>,
    held: &Quarantine,
    index: &Path,
    changes: &[Change],
    to: Oid,
) -> Result<Option<NewIndex>, Error> {
    // Where a file system has no second names there is a copy, and nothing to know the file by.
    let known = |change: &Change| match change.old {
        Some(_) => held.is_same_file(tree.dir, &change.path),
        // An empty folder may be there, which git removes.
        None => change.path.under(tree.dir).symlink_metadata().is_err(),
    };
    if !changes.iter().all(known) || !is_plain(tree, changes) {
        return Ok(None);
    }
    let Some(next) = Next::plan(tree.repo, index, changes, to)? else { return Ok(None) };
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
    next.made(tree, changes).map(Some)
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
struct Next {
    entries: Entries,
    /// Those whose files may have been changed after they were noted, in the same second.
    racy: Vec<u32>,
    /// What it is to know of folders.
    trees: Cached,
}

impl Next {
    /// Plans it from an index. None when that holds more than is known here, or not what a commit has.
    fn plan(repo: &Repo, file: &Path, changes: &[Change], to: Oid) -> Result<Option<Next>, Error> {
        let entries = Entries::read(file, repo.gix.object_hash());
        let Some(entries) = entries.filter(|all| all.is_simple() && all.has_sum()) else { return Ok(None) };
        let is_known = |change: &Change| match (entries.find(change.path.as_bytes()), change.old) {
            (Some(entry), Some(side)) => {
                entry.is_seen() && entry.mode() == side.mode && entry.id() == side.oid.0.as_slice()
            }
            (entry, side) => entry.is_none() && side.is_none(),
        };
        let racy: Vec<u32> = entries.racy().take(RACY + 1).collect();
        let attributes = attribute_paths(changes.iter().map(|change| &change.path));
        if !changes.iter().all(is_known)
            || racy.len() > RACY
            || !entries.say_nothing_of_files(repo, &attributes)
        {
            return Ok(None);
        }
        let Some(mut trees) = entries.trees() else { return Ok(None) };
        update(repo.reader(), &mut trees, repo.tree_of(to)?.0)?;
        let gone = changes.iter().filter(|c| c.new.is_none()).count();
        let new = changes.iter().filter(|c| c.old.is_none()).count();
        let wanted = u32::try_from(entries.all().len() + new - gone).ok();
        Ok((trees.num_entries == wanted).then_some(Next { entries, racy, trees }))
    }

    /// Adds what was brought.
    fn made(mut self, tree: &Tree<'_>, changes: &[Change]) -> Result<NewIndex, Error> {
        // A file that is brought and written to in one tick of the clock is, to git, as young as an index of that time, and is
        // read again.
        let time = time_in(tree.scratch)?;
        self.settle_racy(tree);
        let fresh = |change: &Change| change.new.map(|side| fresh(tree, &change.path, side));
        let mut edits: Vec<Edit<'_>> =
            changes.iter().map(|change| Edit { path: &change.path, new: fresh(change) }).collect();
        edits.sort_by_key(|edit| edit.path);
        Ok(NewIndex::Of(self.entries.edited(&edits, &self.trees)?, time))
    }

    /// Files that are as young as the index was would pass for unchanged once it is younger than they are. What differs gets a
    /// size that fits none, which is git's own way.
    fn settle_racy(&mut self, tree: &Tree<'_>) {
        for at in std::mem::take(&mut self.racy) {
            let entry = self.entries.entry(at);
            let Ok(id) = gix::ObjectId::try_from(entry.id()) else { continue };
            let side = Side { mode: entry.mode(), oid: Oid(id) };
            let file = RepoPath::new(entry.path()).under(tree.dir);
            if !side.is_gitlink() && !is_blob(tree.repo, &file, side) {
                self.entries.forget_length(at);
            }
        }
    }
}

/// What an index notes of a file that was brought. One that is something else by now, or is there no more, gets numbers that
/// fit none.
fn fresh(tree: &Tree<'_>, path: &RepoPath, side: Side) -> (Stat, u32, gix::ObjectId) {
    let file = path.under(tree.dir);
    let mut stat = rustix::fs::lstat(&file).map(|meta| noted(&meta)).unwrap_or_default();
    if !is_blob(tree.repo, &file, side) {
        stat.size = 0;
    }
    (stat, if is_executable(side) { entries::EXECUTABLE } else { entries::FILE }, side.oid.0)
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
