//! Traversal of an index folder by folder, in chunks that threads can share.

use gix::bstr::ByteSlice;
use gix::index::{Entry, File};

/// Minimum number of files below a folder that make it a separate chunk.
const MIN_FILES_PER_CHUNK: usize = if cfg!(test) { 2 } else { 32 };

/// Folder view of an index whose entries are sorted.
pub(crate) struct IndexFolders<'a>(pub &'a File);

/// Child of a folder in the index.
pub(crate) enum FolderChild<'e> {
    /// A file.
    File(&'e Entry),
    /// Subfolder with all entries below it.
    Folder(&'e [Entry]),
}

impl FolderChild<'_> {
    /// Returns whether the child is a separate chunk.
    pub(crate) fn is_chunk(&self) -> bool {
        matches!(self, FolderChild::Folder(below) if below.len() >= MIN_FILES_PER_CHUNK)
    }
}

impl<'a> IndexFolders<'a> {
    /// Returns the chunks that threads can process independently: the length of a folder's name with its
    /// slash, and the entries below it.
    pub fn chunks(&self) -> Vec<(usize, &'a [Entry])> {
        let mut chunks = vec![(0, self.0.entries())];
        let mut next = 0;
        while let Some((prefix_len, entries)) = chunks.get(next).copied() {
            next += 1;
            let mut remaining = entries;
            while let Some((name, child)) = self.take_first_child(prefix_len, &mut remaining) {
                if child.is_chunk()
                    && let FolderChild::Folder(below) = child
                {
                    chunks.push((prefix_len + name.len() + 1, below));
                }
            }
        }
        chunks
    }

    /// Removes the first child of a folder from `remaining` and returns its name and content.
    pub(crate) fn take_first_child<'e>(
        &self,
        folder_path_len: usize,
        remaining: &mut &'e [Entry],
    ) -> Option<(&'a [u8], FolderChild<'e>)> {
        let first_entry = remaining.first()?;
        let path: &[u8] = first_entry.path(self.0);
        let name = path.get(folder_path_len..)?;
        let Some(end) = name.find_byte(b'/') else {
            *remaining = &remaining[1..];
            return Some((name, FolderChild::File(first_entry)));
        };
        let prefix = &path[..=folder_path_len + end];
        let child_count = remaining.iter().take_while(|e| e.path(self.0).starts_with(prefix)).count();
        let (children, later) = remaining.split_at(child_count);
        *remaining = later;
        Some((&name[..end], FolderChild::Folder(children)))
    }
}
