//! Owns the stat data in an index file: which files its entries agree with, and entries made to agree with other files.

use std::ffi::OsStr;
use std::fs::Metadata;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::{Outcome, fail};

/// The size of an index's header, of the fixed part of an entry, and of the checksum at its end (SHA-1).
const HEADER: usize = 12;
const ENTRY: usize = 62;
const CHECKSUM: usize = 20;

/// Where the stat data that git compares is in an entry: times, inode, size. Between them are device, mode and owner.
const TIMES: Range<usize> = 0..16;
const INODE: Range<usize> = 20..24;
const SIZE: Range<usize> = 36..40;

/// An index file, with its entries found.
#[derive(Debug)]
pub(super) struct Index {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    /// Where the last entry ends.
    end: usize,
}

/// Where an entry begins, and where its path is.
type Entry = (usize, Range<usize>);

impl Index {
    /// Finds the entries; the bytes are given back when they are no index of a form that is known here.
    pub(super) fn of(bytes: Vec<u8>) -> Result<Index, Vec<u8>> {
        match entries(&bytes) {
            Some((entries, end)) => Ok(Index { bytes, entries, end }),
            None => Err(bytes),
        }
    }

    /// The index with what its stat data means in place of that data: which tree's file an entry agrees with, whether that
    /// is too young to tell, and whether git has put a zero for the size because it could not tell.
    pub(super) fn meaning(&self, trees: &[impl AsRef<Path>], index: &Metadata) -> Vec<u8> {
        let mut out = self.bytes[..HEADER].to_vec();
        for (at, path) in &self.entries {
            let entry = &self.bytes[*at..path.end];
            let name = &self.bytes[path.clone()];
            out.extend(trees.iter().map(|tree| u8::from(agreeing(entry, tree.as_ref(), name).is_some())));
            let written = [index.mtime(), index.mtime_nsec()].map(|n| u32::try_from(n).unwrap_or(u32::MAX));
            out.push(u8::from([number(entry, 8), number(entry, 12)] >= written));
            out.push(u8::from(number(entry, SIZE.start) == 0));
            push_lasting(&mut out, entry);
        }
        out.extend_from_slice(&self.bytes[self.end..self.bytes.len() - CHECKSUM]);
        out
    }

    /// The index's bytes without the stat data of its entries and without the checksum. None where what git lists of the index depends
    /// on more than these: on which files of a sparse checkout are there, on another index, or on a checksum that does not fit.
    pub(super) fn without_stat_data(&self) -> Option<Vec<u8>> {
        let content = self.bytes.len() - CHECKSUM;
        let extensions = &self.bytes[self.end..content];
        let is_alone = !self.entries.iter().any(|entry| self.may_be_absent(entry))
            && ![b"link", b"sdir"].iter().any(|name| extensions.windows(4).any(|part| part == *name));
        if !is_alone || checksum(&self.bytes[..content]).ok()?.as_slice() != &self.bytes[content..] {
            return None;
        }
        let mut out = self.bytes[..HEADER].to_vec();
        for (at, path) in &self.entries {
            push_lasting(&mut out, &self.bytes[*at..path.end]);
        }
        out.extend_from_slice(extensions);
        Some(out)
    }

    /// Whether an entry has the flag of those that a sparse checkout leaves out.
    fn may_be_absent(&self, (at, path): &Entry) -> bool {
        path.start == at + ENTRY + 2 && self.bytes[at + ENTRY] & 0x40 != 0
    }

    /// The same index for copies of its trees: where an entry agrees with a file, it then agrees with that file's copy.
    /// `trees` are pairs of a tree and its copy.
    ///
    /// # Errors
    /// When the checksum cannot be made.
    pub(super) fn for_copies(mut self, trees: &[(impl AsRef<Path>, impl AsRef<Path>)]) -> Outcome<Vec<u8>> {
        for (at, path) in &self.entries {
            let name = self.bytes[path.clone()].to_vec();
            for (tree, copy) in trees {
                let Some(_) = agreeing(&self.bytes[*at..path.end], tree.as_ref(), &name) else { continue };
                let meta = copy.as_ref().join(OsStr::from_bytes(&name)).symlink_metadata()?;
                let [inode, times @ ..] = stat(&meta);
                for (n, time) in times.into_iter().enumerate() {
                    self.bytes[at + 4 * n..at + 4 * n + 4].copy_from_slice(&time.to_be_bytes());
                }
                self.bytes[at + INODE.start..at + INODE.end].copy_from_slice(&inode.to_be_bytes());
                break;
            }
        }
        let content = self.bytes.len() - CHECKSUM;
        let sum = checksum(&self.bytes[..content])?;
        // One without a checksum, as `index.skipHash` leaves it, stays one.
        if self.bytes[content..].iter().any(|b| *b != 0) {
            self.bytes[content..].copy_from_slice(sum.as_slice());
        }
        Ok(self.bytes)
    }
}

/// The entries of an index, and where the last of them ends.
fn entries(bytes: &[u8]) -> Option<(Vec<Entry>, usize)> {
    let header = bytes.get(..HEADER)?;
    if !header.starts_with(b"DIRC") || !matches!(number(header, 4), 2 | 3) {
        return None;
    }
    let mut all = Vec::new();
    let mut at = HEADER;
    for _ in 0..number(header, 8) {
        let extended = bytes.get(at + 60)? & 0x40 != 0;
        let name = at + ENTRY + if extended { 2 } else { 0 };
        let length = bytes.get(name..)?.iter().position(|b| *b == 0)?;
        all.push((at, name..name + length));
        // Entries are padded with one to eight zeros to a multiple of eight.
        at += (name - at + length + 8) & !7;
    }
    (at + CHECKSUM <= bytes.len()).then_some((all, at))
}

/// Adds what an entry has beside stat data: mode, id, flags and path.
fn push_lasting(out: &mut Vec<u8>, entry: &[u8]) {
    out.extend_from_slice(&entry[24..28]);
    out.extend_from_slice(&entry[SIZE.end..]);
    out.push(0);
}

/// The checksum of an index's bytes.
fn checksum(bytes: &[u8]) -> Outcome<gix_hash::ObjectId> {
    let mut hasher = gix_hash::hasher(gix_hash::Kind::Sha1);
    hasher.update(bytes);
    hasher.try_finalize().or_else(|_| fail("an index's checksum cannot be made"))
}

fn number(bytes: &[u8], at: usize) -> u32 {
    let four = bytes.get(at..at + 4).and_then(|b| b.try_into().ok());
    four.map_or(0, u32::from_be_bytes)
}

/// The file of a tree that git would take for the one that an entry was made of.
fn agreeing(entry: &[u8], tree: &Path, name: &[u8]) -> Option<Metadata> {
    let meta = tree.join(OsStr::from_bytes(name)).symlink_metadata().ok()?;
    let [inode, times @ ..] = stat(&meta);
    let same = times.iter().flat_map(|t| t.to_be_bytes()).eq(entry[TIMES].iter().copied())
        && number(entry, INODE.start) == inode
        && number(entry, SIZE.start) == u32::try_from(meta.len()).unwrap_or(u32::MAX);
    same.then_some(meta)
}

/// A file's inode and times (changed, modified; seconds, nanoseconds), in the 32 bits that an index has for each.
fn stat(meta: &Metadata) -> [u32; 5] {
    let low = |n: i64| u32::try_from(n & 0xFFFF_FFFF).unwrap_or_default();
    let inode = low(i64::try_from(meta.ino() & 0xFFFF_FFFF).unwrap_or_default());
    [inode, low(meta.ctime()), low(meta.ctime_nsec()), low(meta.mtime()), low(meta.mtime_nsec())]
}
