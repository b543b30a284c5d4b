//! Stat data in an index file: which files its entries match, and entries changed to match copies of these
//! files.

use std::ffi::OsStr;
use std::fs::Metadata;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::{Outcome, fail};

/// Sizes of an index's header, of the fixed part of an entry, and of the checksum at its end (SHA-1).
const HEADER_SIZE: usize = 12;
const ENTRY_SIZE: usize = 62;
const CHECKSUM_SIZE: usize = 20;

/// Position in an entry of the stat data that git compares: times, inode, size. Device, mode and owner are
/// between them.
const TIMES: Range<usize> = 0..16;
const INODE: Range<usize> = 20..24;
const SIZE: Range<usize> = 36..40;

/// Parsed index file.
#[derive(Debug)]
pub(super) struct Index {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    /// Offset of the end of the last entry.
    entries_end: usize,
}

/// Offset of an entry, and the range of its path.
type Entry = (usize, Range<usize>);

impl Index {
    /// Parses the entries. Returns the bytes as the error if they are no index of a known form.
    pub(super) fn parse(bytes: Vec<u8>) -> Result<Index, Vec<u8>> {
        match parse_entries(&bytes) {
            Some((entries, end)) => Ok(Index { bytes, entries, entries_end: end }),
            None => Err(bytes),
        }
    }

    /// Returns the index with its stat data replaced by what it means: which worktree's file an entry
    /// matches, whether the entry is racily clean, and whether git has set its size to zero because of that.
    pub(super) fn stat_meaning(&self, trees: &[impl AsRef<Path>], index: &Metadata) -> Vec<u8> {
        let mut out = self.bytes[..HEADER_SIZE].to_vec();
        for (at, path) in &self.entries {
            let entry = &self.bytes[*at..path.end];
            let name = &self.bytes[path.clone()];
            out.extend(
                trees.iter().map(|tree| u8::from(matching_file(entry, tree.as_ref(), name).is_some())),
            );
            let written = [index.mtime(), index.mtime_nsec()].map(|n| u32::try_from(n).unwrap_or(u32::MAX));
            out.push(u8::from([read_u32(entry, 8), read_u32(entry, 12)] >= written));
            out.push(u8::from(read_u32(entry, SIZE.start) == 0));
            push_stable_fields(&mut out, entry);
        }
        out.extend_from_slice(&self.bytes[self.entries_end..self.bytes.len() - CHECKSUM_SIZE]);
        out
    }

    /// Returns the index without checksum and without the stat data of its entries. None if git's listing of
    /// the index depends on more than these bytes: on the files of a sparse checkout, on another index, or on
    /// a wrong checksum.
    pub(super) fn without_stat_data(&self) -> Option<Vec<u8>> {
        let content = self.bytes.len() - CHECKSUM_SIZE;
        let extensions = &self.bytes[self.entries_end..content];
        let is_self_contained = !self.entries.iter().any(|entry| self.may_be_absent(entry))
            && ![b"link", b"sdir"].iter().any(|name| extensions.windows(4).any(|part| part == *name));
        if !is_self_contained || checksum(&self.bytes[..content]).ok()?.as_slice() != &self.bytes[content..] {
            return None;
        }
        let mut out = self.bytes[..HEADER_SIZE].to_vec();
        for (at, path) in &self.entries {
            push_stable_fields(&mut out, &self.bytes[*at..path.end]);
        }
        out.extend_from_slice(extensions);
        Some(out)
    }

    /// Returns whether an entry has the skip-worktree flag.
    fn may_be_absent(&self, (at, path): &Entry) -> bool {
        path.start == at + ENTRY_SIZE + 2 && self.bytes[at + ENTRY_SIZE] & 0x40 != 0
    }

    /// Returns the index for copies of its worktrees: an entry that matches a file is changed to match that
    /// file's copy. `trees` are pairs of a worktree and its copy.
    ///
    /// # Errors
    /// Fails if the checksum cannot be computed.
    pub(super) fn with_copied_stat(
        mut self,
        trees: &[(impl AsRef<Path>, impl AsRef<Path>)],
    ) -> Outcome<Vec<u8>> {
        for (at, path) in &self.entries {
            let name = self.bytes[path.clone()].to_vec();
            for (tree, copy) in trees {
                let Some(_) = matching_file(&self.bytes[*at..path.end], tree.as_ref(), &name) else {
                    continue;
                };
                let meta = copy.as_ref().join(OsStr::from_bytes(&name)).symlink_metadata()?;
                let [inode, times @ ..] = stat_fields(&meta);
                for (n, time) in times.into_iter().enumerate() {
                    self.bytes[at + 4 * n..at + 4 * n + 4].copy_from_slice(&time.to_be_bytes());
                }
                self.bytes[at + INODE.start..at + INODE.end].copy_from_slice(&inode.to_be_bytes());
                break;
            }
        }
        let content = self.bytes.len() - CHECKSUM_SIZE;
        let sum = checksum(&self.bytes[..content])?;
        // An index without a checksum, as `index.skipHash` leaves it, stays without one.
        if self.bytes[content..].iter().any(|b| *b != 0) {
            self.bytes[content..].copy_from_slice(sum.as_slice());
        }
        Ok(self.bytes)
    }
}

/// Returns the entries of an index, and the offset of the end of the last one.
fn parse_entries(bytes: &[u8]) -> Option<(Vec<Entry>, usize)> {
    let header = bytes.get(..HEADER_SIZE)?;
    if !header.starts_with(b"DIRC") || !matches!(read_u32(header, 4), 2 | 3) {
        return None;
    }
    let mut all = Vec::new();
    let mut at = HEADER_SIZE;
    for _ in 0..read_u32(header, 8) {
        let extended = bytes.get(at + 60)? & 0x40 != 0;
        let name = at + ENTRY_SIZE + if extended { 2 } else { 0 };
        let length = bytes.get(name..)?.iter().position(|b| *b == 0)?;
        all.push((at, name..name + length));
        // Entries are padded with one to eight zeros to a multiple of eight.
        at += (name - at + length + 8) & !7;
    }
    (at + CHECKSUM_SIZE <= bytes.len()).then_some((all, at))
}

/// Appends what an entry has besides stat data: mode, id, flags and path.
fn push_stable_fields(out: &mut Vec<u8>, entry: &[u8]) {
    out.extend_from_slice(&entry[24..28]);
    out.extend_from_slice(&entry[SIZE.end..]);
    out.push(0);
}

/// Returns the checksum of an index's bytes.
fn checksum(bytes: &[u8]) -> Outcome<gix_hash::ObjectId> {
    let mut hasher = gix_hash::hasher(gix_hash::Kind::Sha1);
    hasher.update(bytes);
    hasher.try_finalize().or_else(|_| fail("an index's checksum cannot be made"))
}

fn read_u32(bytes: &[u8], at: usize) -> u32 {
    let four = bytes.get(at..at + 4).and_then(|b| b.try_into().ok());
    four.map_or(0, u32::from_be_bytes)
}

/// Returns the metadata of a worktree's file if git would accept it as the entry's file.
fn matching_file(entry: &[u8], tree: &Path, name: &[u8]) -> Option<Metadata> {
    let meta = tree.join(OsStr::from_bytes(name)).symlink_metadata().ok()?;
    let [inode, times @ ..] = stat_fields(&meta);
    let same = times.iter().flat_map(|t| t.to_be_bytes()).eq(entry[TIMES].iter().copied())
        && read_u32(entry, INODE.start) == inode
        && read_u32(entry, SIZE.start) == u32::try_from(meta.len()).unwrap_or(u32::MAX);
    same.then_some(meta)
}

/// Returns a file's inode and times (changed, modified; seconds, nanoseconds), in the 32 bits that an index
/// has for each.
fn stat_fields(meta: &Metadata) -> [u32; 5] {
    let low = |n: i64| u32::try_from(n & 0xFFFF_FFFF).unwrap_or_default();
    let inode = low(i64::try_from(meta.ino() & 0xFFFF_FFFF).unwrap_or_default());
    [inode, low(meta.ctime()), low(meta.ctime_nsec()), low(meta.mtime()), low(meta.mtime_nsec())]
}
