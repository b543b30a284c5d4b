//! Owns making of one checkout's index the one that a tree asks for: what both have alike keeps what is known of its file.

use gix::bstr::{BString, ByteSlice};
use gix::index::entry::{Flags, Mode, Stage, Stat};
use gix::index::extension::Tree as Cached;
use gix::index::{Entry, File};

use super::super::bring::update;
use super::super::clean::{UNSEEN, is_racy};
use super::super::trees::Reader;
use super::super::{Error, Oid};

/// An index that has what a tree has. An entry whose stat data is not all zero was in the other index alike, and is what
/// its file there was noted as.
pub(super) struct Wanted(pub(super) File);

/// What the walk has found so far.
struct Walk<'a> {
    reader: &'a Reader,
    index: &'a File,
    /// Which of the entries there are wanted.
    keep: Vec<bool>,
    /// What is wanted besides.
    add: Vec<(BString, Mode, gix::ObjectId)>,
}

impl Wanted {
    /// Makes it of an index that is not used afterwards. None where that one holds what is not known here.
    ///
    /// # Errors
    /// When a tree cannot be read.
    pub(super) fn of(reader: &Reader, mut index: File, tree: Oid) -> Result<Option<Wanted>, Error> {
        if index.is_sparse() || index.link().is_some() || index.tree().is_none() {
            return Ok(None);
        }
        let keep = vec![false; index.entries().len()];
        let mut walk = Walk { reader, index: &index, keep, add: Vec::new() };
        walk.enter(&mut BString::default(), index.tree(), tree.0)?;
        let Walk { keep, add, .. } = walk;
        let doubtful: Vec<bool> = index.entries().iter().map(|e| is_doubtful(&index, e)).collect();
        for (entry, doubtful) in index.entries_mut().iter_mut().zip(doubtful) {
            entry.flags = Flags::empty();
            if doubtful {
                entry.stat = Stat::default();
            }
        }
        index.remove_entries(|at, _, _| !keep.get(at).copied().unwrap_or_default());
        for (path, mode, id) in add {
            index.dangerously_push_entry(Stat::default(), id, Flags::empty(), mode, path.as_bstr());
        }
        index.sort_entries();
        let count = u32::try_from(index.entries().len()).ok();
        let Some(cached) = index.tree_mut() else { return Ok(None) };
        update(reader, cached, tree.0)?;
        Ok((cached.num_entries == count).then_some(Wanted(index)))
    }
}

/// Whether an index has what a tree has, and nothing else. False where it does not say so itself.
///
/// # Errors
/// When a tree cannot be read.
pub(super) fn has_exactly(reader: &Reader, index: &File, tree: Oid) -> Result<bool, Error> {
    if index.is_sparse() || index.link().is_some() || index.tree().is_none() {
        return Ok(false);
    }
    let mut walk = Walk { reader, index, keep: vec![false; index.entries().len()], add: Vec::new() };
    walk.enter(&mut BString::default(), index.tree(), tree.0)?;
    Ok(walk.add.is_empty() && walk.keep.iter().all(|kept| *kept))
}

/// Whether an index does not say for sure what a file is.
fn is_doubtful(index: &File, entry: &Entry) -> bool {
    entry.flags.intersects(UNSEEN) || entry.stage() != Stage::Unconflicted || is_racy(index, entry)
}

impl Walk<'_> {
    /// Compares a folder with its tree. `path` is its name with the slash; `cached` what the index knows of it.
    fn enter(&mut self, path: &mut BString, cached: Option<&Cached>, id: gix::ObjectId) -> Result<(), Error> {
        if let Some(known) = cached.filter(|known| known.id == id)
            && let Some(range) = self.index.prefixed_entries_range(path.as_bstr())
            && known.num_entries == u32::try_from(range.len()).ok()
        {
            self.keep[range].fill(true);
            return Ok(());
        }
        let items = self.reader.tree(id)?;
        let above = path.len();
        for (name, item) in items.iter() {
            path.extend_from_slice(name);
            if item.is_tree() {
                let below =
                    cached.and_then(|c| c.children.iter().find(|c| c.name.as_slice() == name.as_bytes()));
                path.push(b'/');
                self.enter(path, below, item.id)?;
            } else {
                let mode = Mode::from(item.mode);
                match self.index.entry_index_by_path_and_stage(path.as_bstr(), Stage::Unconflicted) {
                    Some(at) if self.is_alike(at, mode, item.id) => self.keep[at] = true,
                    _ => self.add.push((path.clone(), mode, item.id)),
                }
            }
            path.truncate(above);
        }
        Ok(())
    }

    fn is_alike(&self, at: usize, mode: Mode, id: gix::ObjectId) -> bool {
        self.index.entries().get(at).is_some_and(|entry| entry.mode == mode && entry.id == id)
    }
}
