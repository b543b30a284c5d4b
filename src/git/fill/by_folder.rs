//! Owns going through an index folder by folder, in parts that threads can share.

use gix::bstr::ByteSlice;
use gix::index::{Entry, File};

/// A folder with as many files below it is a part of its own.
const PART: usize = if cfg!(test) { 2 } else { 32 };

/// An index whose entries are in order.
pub(super) struct ByFolder<'a>(pub(super) &'a File);

/// What is in one folder of the index.
pub(super) enum Inside<'e> {
    /// A file.
    File(&'e Entry),
    /// A folder, and what is below it.
    Folder(&'e [Entry]),
}

impl Inside<'_> {
    /// Whether it is looked at by itself.
    pub(super) fn is_part(&self) -> bool {
        matches!(self, Inside::Folder(below) if below.len() >= PART)
    }
}

impl<'a> ByFolder<'a> {
    /// The parts that can be looked at independently: the length of a folder's name, with the slash, and the entries below it.
    pub(super) fn parts(&self) -> Vec<(usize, &'a [Entry])> {
        let mut parts = vec![(0, self.0.entries())];
        let mut next = 0;
        while let Some((above, entries)) = parts.get(next).copied() {
            next += 1;
            let mut rest = entries;
            while let Some((name, inside)) = self.first(above, &mut rest) {
                if inside.is_part()
                    && let Inside::Folder(below) = inside
                {
                    parts.push((above + name.len() + 1, below));
                }
            }
        }
        parts
    }

    /// Takes what comes first in a folder from its entries.
    pub(super) fn first<'e>(&self, above: usize, rest: &mut &'e [Entry]) -> Option<(&'a [u8], Inside<'e>)> {
        let first = rest.first()?;
        let path: &[u8] = first.path(self.0);
        let name = path.get(above..)?;
        let Some(end) = name.find_byte(b'/') else {
            *rest = &rest[1..];
            return Some((name, Inside::File(first)));
        };
        let prefix = &path[..=above + end];
        let below = rest.iter().take_while(|e| e.path(self.0).starts_with(prefix)).count();
        let (inside, after) = rest.split_at(below);
        *rest = after;
        Some((&name[..end], Inside::Folder(inside)))
    }
}
