//! Conversion of one checkout's index into the index of a tree: entries that are the same in both retain
//! their stat data.

use gix::bstr::{BString, ByteSlice};
use gix::index::entry::{Flags, Mode, Stage, Stat};
use gix::index::extension::Tree as Cached;
use gix::index::{Entry, File};

use crate::index::cached_tree::update_cached_tree;
use crate::index::entry_stat::is_racy;
use crate::repository::tree_reader::TreeReader;
use crate::status::status_walk::UNCHECKED_ENTRY_FLAGS;
use crate::{Error, TreeId};

/// Index with exactly the entries of a tree. An entry whose stat data is not all zero was identical in the
/// source index and describes the file in that checkout.
pub(crate) struct TargetIndex(pub File);

/// Walk that compares a tree with an index.
struct TreeWalk<'a> {
    reader: &'a TreeReader,
    index: &'a File,
    /// For each entry of the index, whether the tree has the same blob there.
    is_same_in_tree: Vec<bool>,
    /// Path, mode and id of tree items that the index does not have.
    missing: Vec<(BString, Mode, gix::ObjectId)>,
}

impl TargetIndex {
    /// Converts an index. Returns `None` if the index is sparse, split or without a cached tree.
    ///
    /// # Errors
    /// Fails if a tree cannot be read.
    pub(crate) fn from_index(
        reader: &TreeReader,
        mut index: File,
        tree: TreeId,
    ) -> Result<Option<TargetIndex>, Error> {
        if index.is_sparse() || index.link().is_some() || index.tree().is_none() {
            return Ok(None);
        }
        let keep = vec![false; index.entries().len()];
        let mut walk = TreeWalk { reader, index: &index, is_same_in_tree: keep, missing: Vec::new() };
        walk.compare_tree(&mut BString::default(), index.tree(), tree.0)?;
        let TreeWalk { is_same_in_tree: keep, missing: add, .. } = walk;
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
        update_cached_tree(reader, cached, tree.0)?;
        Ok((cached.num_entries == count).then_some(TargetIndex(index)))
    }
}

/// Returns whether an index holds exactly the entries of a tree. Also false if the index is sparse, split or
/// without a cached tree.
///
/// # Errors
/// Fails if a tree cannot be read.
pub(crate) fn matches_tree(reader: &TreeReader, index: &File, tree: TreeId) -> Result<bool, Error> {
    if index.is_sparse() || index.link().is_some() || index.tree().is_none() {
        return Ok(false);
    }
    let mut walk =
        TreeWalk { reader, index, is_same_in_tree: vec![false; index.entries().len()], missing: Vec::new() };
    walk.compare_tree(&mut BString::default(), index.tree(), tree.0)?;
    Ok(walk.missing.is_empty() && walk.is_same_in_tree.iter().all(|kept| *kept))
}

/// Returns whether an index entry does not prove what its file is: it is flagged, conflicted or racy.
fn is_doubtful(index: &File, entry: &Entry) -> bool {
    entry.flags.intersects(UNCHECKED_ENTRY_FLAGS)
        || entry.stage() != Stage::Unconflicted
        || is_racy(index, entry)
}

impl TreeWalk<'_> {
    /// Compares the entries of a directory with its tree. `path` is the directory's name with the trailing
    /// slash, `cached` its record in the index's cached tree.
    fn compare_tree(
        &mut self,
        path: &mut BString,
        cached: Option<&Cached>,
        tree_id: gix::ObjectId,
    ) -> Result<(), Error> {
        if let Some(known) = cached.filter(|known| known.id == tree_id)
            && let Some(range) = self.index.prefixed_entries_range(path.as_bstr())
            && known.num_entries == u32::try_from(range.len()).ok()
        {
            self.is_same_in_tree[range].fill(true);
            return Ok(());
        }
        let items = self.reader.tree(tree_id)?;
        let prefix_len = path.len();
        for (name, item) in items.iter() {
            path.extend_from_slice(name);
            if item.is_tree() {
                let cached_subtree =
                    cached.and_then(|c| c.children.iter().find(|c| c.name.as_slice() == name.as_bytes()));
                path.push(b'/');
                self.compare_tree(path, cached_subtree, item.id)?;
            } else {
                let mode = Mode::from(item.mode);
                match self.index.entry_index_by_path_and_stage(path.as_bstr(), Stage::Unconflicted) {
                    Some(at) if self.has_same_blob(at, mode, item.id) => self.is_same_in_tree[at] = true,
                    _ => self.missing.push((path.clone(), mode, item.id)),
                }
            }
            path.truncate(prefix_len);
        }
        Ok(())
    }

    fn has_same_blob(&self, at: usize, mode: Mode, id: gix::ObjectId) -> bool {
        self.index.entries().get(at).is_some_and(|entry| entry.mode == mode && entry.id == id)
    }
}
