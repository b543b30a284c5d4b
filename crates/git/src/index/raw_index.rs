//! Raw git index: entries are accessed in place in the file's bytes, without parsing each into a structure.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::Read;
use std::ops::Range;
use std::path::Path;

use gix::hash::{Kind, ObjectId};
use rustix::fs::Stat;

use super::entry_stat::index_stat;
use super::no_conversion::is_verbatim_attribute_file;
use crate::{BlobId, Error, Repo, RepoPath};

/// Length in bytes of the stat data that starts an entry, four bytes each: ctime, mtime, device, inode, mode,
/// owner, group, size.
const STAT_LEN: usize = 40;
const MTIME_OFFSET: usize = 8;
const INODE_OFFSET: usize = 20;
const MODE_OFFSET: usize = 24;
const OWNER_OFFSET: usize = 28;
const SIZE_OFFSET: usize = 36;

/// Bit of an entry's flags: git treats the file as unchanged without a check.
const ASSUME_VALID_FLAG: u16 = 0x8000;
const EXTENDED_FLAG: u16 = 0x4000;
const STAGE_MASK: u16 = 0x3000;
const NAME_LEN_MASK: u16 = 0x0FFF;
/// Bit of the extended flags, which only some entries have: the file is not expected in the worktree.
const SKIP_WORKTREE_FLAG: u16 = 0x4000;
const INTENT_TO_ADD_FLAG: u16 = 0x2000;

/// Mode of an index entry for a file that is not executable.
pub(crate) const FILE_MODE: u32 = 0o100_644;
pub(crate) const EXECUTABLE_MODE: u32 = 0o100_755;
pub(crate) const SYMLINK_MODE: u32 = 0o120_000;

pub mod edit;
pub mod tree_comparison;

thread_local! {
    /// Buffer for the next index read: an index is large, and allocating memory costs as much as reading it.
    static REUSED_BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Bytes of one index file with the offsets of its entries, in order.
pub(crate) struct RawIndex {
    bytes: Vec<u8>,
    /// Byte offset of each entry in `bytes`, in path order.
    entry_offsets: Vec<u32>,
    hash_kind: Kind,
    /// Second in which the index was written.
    written_at: i64,
    /// Root tree in git's cached-tree extension, and its number of entries.
    cached_root_tree: Option<(ObjectId, u32)>,
    /// Whether `bytes` is the file's content without conversion.
    is_unconverted: bool,
    /// Whether the index has optional extensions besides cached trees, such as resolved conflicts or an
    /// untracked cache.
    has_other_extensions: bool,
    /// Byte offset of the end of the entries.
    entries_end: usize,
    /// Byte range of the cached-tree extension.
    tree_extension: Range<usize>,
    /// Whether the index has an end-of-entries extension.
    has_end_marker: bool,
}

/// One entry of the index.
#[derive(Clone, Copy)]
pub(crate) struct RawEntry<'a> {
    bytes: &'a [u8],
    hash_len: usize,
    path: &'a [u8],
}

impl RawIndex {
    /// Reads an index file; `None` when it is missing or broken, or has folders in place of files.
    pub fn read(path: &Path, hash: Kind) -> Option<RawIndex> {
        let mut file = std::fs::File::open(path).ok()?;
        let meta = file.metadata().ok()?;
        let mut bytes = REUSED_BUFFER.take();
        bytes.clear();
        bytes.reserve(usize::try_from(meta.len()).ok()?.saturating_add(1));
        file.read_to_end(&mut bytes).ok()?;
        let written_at = std::os::unix::fs::MetadataExt::mtime(&meta);
        RawIndex::new(bytes, hash, written_at, true)
            .parse()
            .or_else(|| RawIndex::read_converted(path, hash, written_at))
    }

    /// Reads an index in a format that cannot be accessed in place, and converts it. Such an index has
    /// prefix-compressed names, or entries in a shared index.
    fn read_converted(path: &Path, hash: Kind, written_at: i64) -> Option<RawIndex> {
        let options = gix::index::decode::Options::default();
        let index = gix::index::File::at(path, hash, true, options).ok()?;
        if index.is_sparse() || index.timestamp().unix_seconds() != written_at {
            return None;
        }
        let mut bytes = Vec::new();
        let options = gix::index::write::Options { skip_hash: true, ..Default::default() };
        index.write_to(&mut bytes, options).ok()?;
        RawIndex::new(bytes, hash, written_at, false).parse()
    }

    fn new(bytes: Vec<u8>, hash_kind: Kind, written_at: i64, is_unconverted: bool) -> RawIndex {
        let (entry_offsets, cached_root_tree, tree_extension) = (Vec::new(), None, 0..0);
        RawIndex {
            bytes,
            entry_offsets,
            hash_kind,
            written_at,
            cached_root_tree,
            is_unconverted,
            has_other_extensions: false,
            entries_end: 0,
            tree_extension,
            has_end_marker: false,
        }
    }

    fn parse(mut self) -> Option<RawIndex> {
        let header = self.bytes.get(..12)?;
        if &header[..4] != b"DIRC" || !matches!(read_u32(header, 4)?, 2 | 3) {
            return None;
        }
        let count = usize::try_from(read_u32(header, 8)?).ok()?;
        // Do not trust a count that exceeds the size of the file.
        self.entry_offsets.reserve(count.min(self.bytes.len() / STAT_LEN));
        let (mut offset, mut previous_path) = (12, 0..0);
        for _ in 0..count {
            let path = self.path_range_at(offset)?;
            if self.bytes[path.clone()] < self.bytes[previous_path] {
                return None;
            }
            self.entry_offsets.push(u32::try_from(offset).ok()?);
            offset += (path.end - offset + 8) & !7;
            previous_path = path;
        }
        self.parse_extensions(offset)?;
        Some(self)
    }

    /// Returns the byte range of the path of the entry at `offset`.
    fn path_range_at(&self, offset: usize) -> Option<Range<usize>> {
        let flags_offset = offset + STAT_LEN + self.hash_kind.len_in_bytes();
        let flags = read_u16(&self.bytes, flags_offset)?;
        let start = flags_offset + if flags & EXTENDED_FLAG == 0 { 2 } else { 4 };
        let recorded_len = usize::from(flags & NAME_LEN_MASK);
        let find_end = || self.bytes.get(start..)?.iter().position(|b| *b == 0);
        let len = if recorded_len < usize::from(NAME_LEN_MASK) { recorded_len } else { find_end()? };
        let path_and_nul = self.bytes.get(start..=start + len)?;
        matches!(path_and_nul, [.., last, 0] if *last != 0).then_some(start..start + len)
    }

    /// Parses the extensions behind the entries; `None` when a required extension is unknown.
    fn parse_extensions(&mut self, mut offset: usize) -> Option<()> {
        self.entries_end = offset;
        let end = self.bytes.len().checked_sub(self.hash_kind.len_in_bytes())?;
        while offset < end {
            let name = self.bytes.get(offset..offset + 4)?;
            let size = usize::try_from(read_u32(&self.bytes, offset + 4)?).ok()?;
            let body = self.bytes.get(offset + 8..(offset + 8).checked_add(size)?.min(end))?;
            match name {
                b"TREE" => {
                    (self.cached_root_tree, self.tree_extension) =
                        (self.parse_root_tree(body), offset + 8..offset + 8 + body.len());
                }
                // The first names the end of the entries, the other the starts of blocks of entries.
                b"EOIE" => self.has_end_marker = true,
                b"IEOT" => {}
                // Extensions that start with a capital letter are optional.
                [b'A'..=b'Z', ..] => self.has_other_extensions = true,
                _ => return None,
            }
            offset += 8 + size;
        }
        (offset == end).then_some(())
    }

    /// Parses the root of the cached-tree extension: an empty name, the number of entries and of subtrees,
    /// and the id.
    fn parse_root_tree(&self, body: &[u8]) -> Option<(ObjectId, u32)> {
        let end = body.iter().position(|b| *b == b'\n')?;
        let counts = std::str::from_utf8(body.get(1..end)?).ok()?;
        let count = counts.split(' ').next()?.parse().ok()?;
        let id = body.get(end + 1..end + 1 + self.hash_kind.len_in_bytes())?;
        (body[0] == 0).then_some((ObjectId::try_from(id).ok()?, count))
    }

    /// Returns whether the index equals a tree exactly, according to its cached root tree.
    pub(crate) fn matches_cached_root(&self, tree: ObjectId) -> bool {
        self.cached_root_tree
            .is_some_and(|(id, count)| id == tree && usize::try_from(count) == Ok(self.entry_offsets.len()))
    }

    /// Returns whether the index can be written back in its own format. It was read without conversion, and
    /// its only extensions are cached trees and those that locate entries.
    pub(crate) fn is_rewritable(&self) -> bool {
        self.is_unconverted && !self.has_other_extensions
    }

    /// Returns the byte offsets of all entries.
    pub(crate) fn entry_offsets(&self) -> &[u32] {
        &self.entry_offsets
    }

    /// Returns the entry at an offset.
    pub fn entry(&self, offset: u32) -> RawEntry<'_> {
        let start = usize::try_from(offset).unwrap_or_default();
        // The path was valid when the index was read.
        let path = self.path_range_at(start).unwrap_or_default();
        RawEntry {
            bytes: &self.bytes[start..path.end.max(start)],
            hash_len: self.hash_kind.len_in_bytes(),
            path: &self.bytes[path],
        }
    }

    /// Returns the path of the entry at an offset.
    pub fn path(&self, offset: u32) -> &[u8] {
        self.entry(offset).path
    }

    /// Finds the entry of a path.
    pub fn find(&self, path: &[u8]) -> Option<RawEntry<'_>> {
        self.offset_of(path).map(|at| self.entry(at))
    }

    /// Finds the offset of a path's entry.
    pub(crate) fn offset_of(&self, path: &[u8]) -> Option<u32> {
        let position = self.entry_offsets.binary_search_by(|offset| self.path(*offset).cmp(path)).ok()?;
        Some(self.entry_offsets[position])
    }

    /// Returns whether none of the `.gitattributes` files `files` in the index has rules that convert file
    /// contents.
    pub(crate) fn has_no_conversion_rules(&self, repo: &Repo, files: &BTreeSet<RepoPath>) -> bool {
        let mut entries = files.iter().filter_map(|file| self.find(file.as_bytes()));
        entries.all(|entry| {
            let id = ObjectId::try_from(entry.id()).map(BlobId);
            let text = id.ok().and_then(|id| repo.blob(id).ok());
            entry.mode() == FILE_MODE && text.is_some_and(|text| is_verbatim_attribute_file(&text))
        })
    }

    /// Returns the number of entries at the start of `offsets` whose paths start with `prefix`. `offsets` are
    /// in path order.
    pub(crate) fn count_with_prefix(&self, offsets: &[u32], prefix: &[u8]) -> usize {
        let mut step = 1;
        while offsets.get(step).is_some_and(|at| self.path(*at).starts_with(prefix)) {
            step *= 2;
        }
        let (low, high) = (step / 2, step.min(offsets.len()));
        low + offsets[low..high].partition_point(|at| self.path(*at).starts_with(prefix))
    }

    /// Returns whether the file of an entry was changed in the second in which the index was written, or
    /// later.
    pub(crate) fn is_racy(&self, entry: RawEntry<'_>) -> bool {
        read_u32(entry.bytes, MTIME_OFFSET).is_none_or(|second| self.written_at <= i64::from(second))
    }

    /// Returns the offsets of entries whose files changed in the second in which the index was written, or
    /// later.
    pub(crate) fn racy_entry_offsets(&self) -> impl Iterator<Item = u32> {
        self.entry_offsets.iter().copied().filter(|at| self.is_racy(self.entry(*at)))
    }

    /// Updates the stat data of the entry at an offset.
    pub(crate) fn update_stat(&mut self, offset: u32, meta: &Stat) {
        let stat = index_stat(meta);
        let times = [stat.ctime.secs, stat.ctime.nsecs, stat.mtime.secs, stat.mtime.nsecs];
        let write_number = |(bytes, number): (&mut [u8], u32)| bytes.copy_from_slice(&number.to_be_bytes());
        let start = usize::try_from(offset).unwrap_or_default();
        let Some(stat_bytes) = self.bytes.get_mut(start..start + STAT_LEN) else { return };
        stat_bytes
            .chunks_exact_mut(4)
            .zip(times.into_iter().chain([stat.dev, stat.ino]))
            .for_each(write_number);
        stat_bytes[OWNER_OFFSET..]
            .chunks_exact_mut(4)
            .zip([stat.uid, stat.gid, stat.size])
            .for_each(write_number);
    }

    /// Sets the recorded file size of an entry to zero, which makes git read the file again.
    pub(crate) fn clear_file_size(&mut self, offset: u32) {
        let start = usize::try_from(offset).unwrap_or_default();
        if let Some(size) = self.bytes.get_mut(start + SIZE_OFFSET..start + STAT_LEN) {
            size.fill(0);
        }
    }

    /// Returns the bytes of the entire file with a new checksum; `None` when the index had no checksum.
    pub(crate) fn into_checksummed_bytes(mut self) -> Option<Vec<u8>> {
        if !self.has_checksum() {
            return None;
        }
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.truncate(bytes.len() - self.hash_kind.len_in_bytes());
        let digest = compute_checksum(self.hash_kind, &bytes).ok()?;
        bytes.extend_from_slice(digest.as_slice());
        Some(bytes)
    }

    /// Returns whether the file ends with a checksum that is not zero.
    pub(crate) fn has_checksum(&self) -> bool {
        let body_len = self.bytes.len().checked_sub(self.hash_kind.len_in_bytes());
        body_len.is_some_and(|body| self.bytes[body..].iter().any(|byte| *byte != 0))
    }

    /// Returns the hash function of the ids.
    pub(crate) fn hash_kind(&self) -> Kind {
        self.hash_kind
    }
}

impl Drop for RawIndex {
    fn drop(&mut self) {
        drop(REUSED_BUFFER.try_with(|buffer| buffer.replace(std::mem::take(&mut self.bytes))));
    }
}

impl<'a> RawEntry<'a> {
    /// Returns the path of the entry.
    pub fn path(self) -> &'a [u8] {
        self.path
    }

    /// Returns whether another entry has the same stat data, mode and id.
    pub(crate) fn has_same_stat_and_id(self, other: RawEntry<'_>) -> bool {
        self.bytes.get(..STAT_LEN + self.hash_len) == other.bytes.get(..STAT_LEN + other.hash_len)
    }

    /// Returns the recorded mode of the file.
    pub fn mode(self) -> u32 {
        read_u32(self.bytes, MODE_OFFSET).unwrap_or_default()
    }

    /// Returns the recorded length of the file.
    pub fn size(self) -> u32 {
        read_u32(self.bytes, SIZE_OFFSET).unwrap_or_default()
    }

    /// Returns the id of the content as bytes.
    pub fn id(self) -> &'a [u8] {
        &self.bytes[STAT_LEN..STAT_LEN + self.hash_len]
    }

    /// Returns whether git compares the worktree's file with this entry. It does not for assume-unchanged,
    /// skip-worktree and intent-to-add entries, and for conflict stages.
    pub(crate) fn is_compared_by_git(self) -> bool {
        let flags_offset = STAT_LEN + self.hash_len;
        let flags = read_u16(self.bytes, flags_offset).unwrap_or(ASSUME_VALID_FLAG);
        let extended_flags =
            if flags & EXTENDED_FLAG == 0 { Some(0) } else { read_u16(self.bytes, flags_offset + 2) };
        flags & (ASSUME_VALID_FLAG | STAGE_MASK) == 0
            && extended_flags.is_some_and(|bits| bits & (SKIP_WORKTREE_FLAG | INTENT_TO_ADD_FLAG) == 0)
    }

    /// Returns whether the entry is one stage of a conflict; such a path has more than one entry.
    pub(crate) fn is_conflict_stage(self) -> bool {
        read_u16(self.bytes, STAT_LEN + self.hash_len).is_none_or(|flags| flags & STAGE_MASK != 0)
    }

    /// Returns whether the file has the recorded stat data. Mode and device are not compared: the device may
    /// change with each boot.
    pub(crate) fn stat_matches(self, meta: &Stat) -> bool {
        let stat = index_stat(meta);
        let times = [stat.ctime.secs, stat.ctime.nsecs, stat.mtime.secs, stat.mtime.nsecs];
        let owner_and_size = [stat.uid, stat.gid, stat.size];
        let matches_at = |start: usize, numbers: &[u32]| {
            let recorded = self.bytes[start..].chunks_exact(4);
            recorded.zip(numbers).all(|(bytes, number)| bytes == number.to_be_bytes())
        };
        matches_at(0, &times)
            && matches_at(INODE_OFFSET, &[stat.ino])
            && matches_at(OWNER_OFFSET, &owner_and_size)
    }
}

/// Computes the checksum of an index or of part of one.
fn compute_checksum(hash: Kind, bytes: &[u8]) -> Result<ObjectId, Error> {
    let mut hasher = gix::hash::hasher(hash);
    hasher.update(bytes);
    hasher.try_finalize().map_err(Error::object("the new index"))
}

fn read_u32(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(offset..offset + 4)?.try_into().ok()?))
}

fn read_u16(bytes: &[u8], offset: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(offset..offset + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::test_repo::TestRepo;

    /// Formats the entries read from the index like `git ls-files --stage`.
    fn list_stages(test_repo: &TestRepo) -> Option<String> {
        let entries = RawIndex::read(&test_repo.parent_dir.join("repo/.git/index"), Kind::Sha1)?;
        let line = |at: &u32| {
            let entry = entries.entry(*at);
            let id = ObjectId::try_from(entry.id()).unwrap();
            format!("{:06o} {id} 0\t{}", entry.mode(), String::from_utf8_lossy(entry.path()))
        };
        Some(entries.entry_offsets().iter().map(line).collect::<Vec<_>>().join("\n"))
    }

    #[test]
    fn reads_index_in_every_format() {
        let test_repo = TestRepo::new();
        test_repo.run_script(
            "repo",
            "mkdir -p d/e x; for n in a b d/c d/e/f d.g d-h x/1 x/22 x/333 x/4444 x/55555; do echo $n >$n; done
            long=$(printf 'l%.0s' $(seq 240)); for n in 1 2 3 4; do long=$long/$long; done
            ln -s a link; chmod +x b; git add -A; git update-index --add --cacheinfo 100644,$(git hash-object a),$long
            git commit -qm first",
        );
        for script in [
            "true",
            "git update-index --skip-worktree a",
            "git update-index --index-version 4",
            "git update-index --split-index; echo n >n; git add n",
            "git update-index --no-split-index --index-version 2; git config index.skipHash true; echo m >m; git add m",
            "git rm -rq --cached .",
        ] {
            test_repo.run_script("repo", script);
            assert_eq!(
                list_stages(&test_repo).unwrap(),
                test_repo.run_script("repo", "git ls-files --stage"),
                "{script}"
            );
        }
    }

    #[test]
    fn counts_entries_below_folder() {
        let test_repo = TestRepo::new();
        test_repo.run_script(
            "repo",
            "mkdir -p d/e; for n in a d-x d.x d/1 d/2 d/e/3 d0 z; do echo >$n; done; git add -A; git commit -qm first",
        );
        let entries = RawIndex::read(&test_repo.parent_dir.join("repo/.git/index"), Kind::Sha1).unwrap();
        let position =
            entries.entry_offsets().iter().position(|at| entries.path(*at).starts_with(b"d/")).unwrap();
        assert_eq!(entries.count_with_prefix(&entries.entry_offsets()[position..], b"d/"), 3);
        assert_eq!(entries.count_with_prefix(&entries.entry_offsets()[position + 2..], b"d/e/"), 1);
        assert_eq!(entries.count_with_prefix(&[], b"d/"), 0);
        assert_eq!(entries.find(b"d/e/3").unwrap().path(), b"d/e/3");
        assert!(entries.find(b"d/e").is_none());
        let tree = test_repo.run_script("repo", "git rev-parse HEAD^{tree}");
        assert!(entries.matches_cached_root(ObjectId::from_hex(tree.as_bytes()).unwrap()));
        test_repo.run_script("repo", "echo n >n; git add n");
        let entries = RawIndex::read(&test_repo.parent_dir.join("repo/.git/index"), Kind::Sha1).unwrap();
        assert!(!entries.matches_cached_root(ObjectId::from_hex(tree.as_bytes()).unwrap()));
    }

    #[test]
    fn refuses_truncated_or_corrupt_index() {
        let test_repo = TestRepo::new();
        test_repo
            .run_script("repo", "for n in a b c; do echo $n >$n; done; git add -A; git commit -qm first");
        let path = test_repo.parent_dir.join("repo/.git/index");
        let full = std::fs::read(&path).unwrap();
        for len in 0..full.len() {
            std::fs::write(&path, &full[..len]).unwrap();
            let found = RawIndex::read(&path, Kind::Sha1);
            // A cut may leave bytes behind a complete part that look like a trailing hash; that cannot be
            // detected.
            assert!(found.is_none_or(|found| found.entry_offsets().len() == 3), "{len}");
        }
        for (at, byte) in [(11, 200), (7, 9), (12 + 61, 0), (12 + 61, 2)] {
            let mut bytes = full.clone();
            bytes[at] = byte;
            std::fs::write(&path, bytes).unwrap();
            assert!(RawIndex::read(&path, Kind::Sha1).is_none(), "{at} {byte}");
        }
    }
}
