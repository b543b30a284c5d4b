//! Cached trees of an index, updated to another tree.

use gix::bstr::ByteSlice;
use gix::index::extension::Tree as Cached;

use crate::Error;
use crate::repository::tree_reader::TreeReader;

/// Updates the cached tree of a folder to tree `id`. Unchanged folders are not entered.
pub(crate) fn update_cached_tree(
    reader: &TreeReader,
    cached: &mut Cached,
    id: gix::ObjectId,
) -> Result<(), Error> {
    if cached.id == id && cached.num_entries.is_some() {
        return Ok(());
    }
    let items = reader.tree(id)?;
    let mut old_children = std::mem::take(&mut cached.children);
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
        cached.children.push(child);
    }
    // Git sorts cached trees in this order.
    cached.children.sort_by(|a, b| a.name.len().cmp(&b.name.len()).then_with(|| a.name.cmp(&b.name)));
    (cached.id, cached.num_entries) = (id, Some(count));
    Ok(())
}
