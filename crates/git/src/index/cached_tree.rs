//! Cached trees of an index, updated to another tree.

use gix::bstr::ByteSlice;
use gix::index::extension::Tree as Cached;

use crate::Error;
use crate::repository::tree_reader::TreeReader;

/// Updates the cached tree of a folder to tree `new_tree`. Unchanged folders are not entered.
pub(crate) fn update_cached_tree(
    reader: &TreeReader,
    cached_tree: &mut Cached,
    new_tree: gix::ObjectId,
) -> Result<(), Error> {
    if cached_tree.id == new_tree && cached_tree.num_entries.is_some() {
        return Ok(());
    }
    let items = reader.tree(new_tree)?;
    let mut old_children = std::mem::take(&mut cached_tree.children);
    let mut count = 0;
    for (name, item) in items.iter() {
        if !item.is_tree() {
            count += 1;
            continue;
        }
        let position = old_children.iter().position(|child| child.name.as_slice() == name.as_bytes());
        let mut child = match position {
            Some(position) => old_children.swap_remove(position),
            None => {
                Cached { name: name.as_bytes().into(), id: item.id, num_entries: None, children: Vec::new() }
            }
        };
        update_cached_tree(reader, &mut child, item.id)?;
        count += child.num_entries.unwrap_or_default();
        cached_tree.children.push(child);
    }
    // Git sorts cached trees in this order.
    cached_tree.children.sort_by(|a, b| a.name.len().cmp(&b.name.len()).then_with(|| a.name.cmp(&b.name)));
    (cached_tree.id, cached_tree.num_entries) = (new_tree, Some(count));
    Ok(())
}
