//! Index writing: entry by entry, or as a copy of an existing index with some paths changed.

use std::ops::Range;

use gix::hash::{Kind, ObjectId};
use gix::index::entry::Stat;
use gix::index::extension::{Tree, tree};

use super::{NAME_LEN_MASK, RawIndex};
use crate::{Error, RepoPath};

/// Length in bytes of the index header: signature, version, and number of entries.
const HEADER_LEN: usize = 12;

/// Change of one path in an index: `new` is the new entry's stat data, mode and content id, or `None` to
/// remove the entry.
pub(crate) struct IndexEdit<'a> {
    pub path: &'a RepoPath,
    pub new: Option<(Stat, u32, ObjectId)>,
}

impl RawIndex {
    /// Decodes the cached trees; `None` when the index has none or they cannot be parsed.
    pub(crate) fn cached_trees(&self) -> Option<Tree> {
        tree::decode(&self.bytes[self.tree_extension.clone()], self.hash_kind, None)
    }

    /// Returns the bytes of the index with `edits`, which are sorted by path, and with `cached_trees`. Each
    /// edited path has at most one entry.
    pub(crate) fn with_edits(&self, edits: &[IndexEdit<'_>], cached_trees: &Tree) -> Result<Vec<u8>, Error> {
        let extra_len: usize =
            edits.iter().map(|edit| super::STAT_LEN + edit.path.as_bytes().len() + 64).sum();
        let mut writer = IndexWriter::new(self.hash_kind, self.bytes.len() + extra_len);
        writer.out.copy_from_slice(&self.bytes[..HEADER_LEN]);
        let mut copied_to = HEADER_LEN;
        writer.entry_count = self.entry_offsets.len();
        for edit in edits {
            let old_range = self.entry_range(edit.path.as_bytes());
            writer.out.extend_from_slice(&self.bytes[copied_to..old_range.start]);
            copied_to = old_range.end;
            writer.entry_count -= usize::from(!old_range.is_empty());
            if let Some((stat, mode, id)) = &edit.new {
                writer.add(edit.path.as_bytes(), stat, *mode, id);
            }
        }
        writer.out.extend_from_slice(&self.bytes[copied_to..self.entries_end]);
        writer.finish(Some(cached_trees), self.has_end_marker)
    }

    /// Returns the byte range of a path's entry; without an entry, the empty range where it would be
    /// inserted.
    fn entry_range(&self, path: &[u8]) -> Range<usize> {
        let start_of = |n: usize| {
            let offset = self.entry_offsets.get(n).and_then(|at| usize::try_from(*at).ok());
            offset.unwrap_or(self.entries_end)
        };
        match self.entry_offsets.binary_search_by(|at| self.path(*at).cmp(path)) {
            Ok(n) => start_of(n)..start_of(n + 1),
            Err(n) => start_of(n)..start_of(n),
        }
    }
}

/// Writer of an index, entry by entry in sorted order.
pub(crate) struct IndexWriter {
    out: Vec<u8>,
    entry_count: usize,
    hash: Kind,
}

impl IndexWriter {
    /// Starts an index whose entries have no flags, with a buffer of about `capacity` bytes.
    pub fn new(hash: Kind, capacity: usize) -> IndexWriter {
        let mut out = Vec::with_capacity(capacity);
        out.extend_from_slice(b"DIRC\0\0\0\x02\0\0\0\0");
        IndexWriter { out, entry_count: 0, hash }
    }

    /// Appends the entry of a path with its stat data, mode and id.
    pub fn add(&mut self, path: &[u8], stat: &Stat, mode: u32, id: &ObjectId) {
        let start = self.out.len();
        let times = [stat.ctime.secs, stat.ctime.nsecs, stat.mtime.secs, stat.mtime.nsecs];
        let other_fields = [stat.dev, stat.ino, mode, stat.uid, stat.gid, stat.size];
        for number in times.into_iter().chain(other_fields) {
            self.out.extend_from_slice(&number.to_be_bytes());
        }
        self.out.extend_from_slice(id.as_slice());
        let len = u16::try_from(path.len()).map_or(NAME_LEN_MASK, |len| len.min(NAME_LEN_MASK));
        self.out.extend_from_slice(&len.to_be_bytes());
        self.out.extend_from_slice(path);
        let padded_len = (self.out.len() - start + 8) & !7;
        self.out.resize(start + padded_len, 0);
        self.entry_count += 1;
    }

    /// Returns the bytes of the finished index with the cached trees, and with an end-of-entries extension if
    /// `with_end_marker` is set.
    pub fn finish(mut self, cached_trees: Option<&Tree>, with_end_marker: bool) -> Result<Vec<u8>, Error> {
        self.out[8..HEADER_LEN].copy_from_slice(&to_u32_bytes(self.entry_count));
        let end = self.out.len();
        if let Some(cached_trees) = cached_trees {
            cached_trees.write_to(&mut self.out).map_err(Error::object("the new index"))?;
        }
        if with_end_marker {
            // Git's format: the end of the entries, and a checksum of the names and lengths of the following
            // extensions.
            let names = &self.out[end..self.out.len().min(end + 8)];
            let digest = super::compute_checksum(self.hash, names)?;
            self.out.extend_from_slice(b"EOIE");
            self.out.extend_from_slice(&to_u32_bytes(4 + digest.as_slice().len()));
            self.out.extend_from_slice(&to_u32_bytes(end));
            self.out.extend_from_slice(digest.as_slice());
        }
        let digest = super::compute_checksum(self.hash, &self.out)?;
        self.out.extend_from_slice(digest.as_slice());
        Ok(self.out)
    }
}

/// Encodes a number of the index. No number is larger than 32 bits: an entry takes 72 bytes, and git itself
/// cannot store more.
fn to_u32_bytes(number: usize) -> [u8; 4] {
    u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::test_repo::TestRepo;

    /// Sets of edits to an index, each a path and whether it gets an entry; otherwise its entry is removed.
    const EDITS: &[&[(&str, bool)]] = &[
        &[],
        &[("a", false), ("z/z", false)],
        &[("0", true), ("d", false), ("d.x", true), ("d/e/f", true), ("zz", true)],
        &[
            ("a", true),
            ("b", false),
            ("b/a", true),
            ("b/b", true),
            ("x/1", false),
            ("x/2", true),
            ("x/22", true),
        ],
        &[
            ("LONG", true),
            ("a", false),
            ("b", false),
            ("d", false),
            ("x/1", false),
            ("x/2", false),
            ("z/z", false),
        ],
    ];

    #[test]
    fn writes_same_index_as_git() {
        for settings in ["true", "git config index.recordEndOfIndexEntries true"] {
            for edits in EDITS {
                assert_written_like_git(settings, edits);
            }
        }
    }

    /// Compares the written index with git's; both start from the same entries, none of which has a file.
    fn assert_written_like_git(settings: &str, edits: &[(&str, bool)]) {
        let test_repo = TestRepo::new();
        let ids = test_repo.run_script(
            "repo",
            &format!(
                "{settings}; echo old | git hash-object -w --stdin; echo new | git hash-object -w --stdin"
            ),
        );
        let (old, new) = ids.split_once('\n').unwrap();
        let entry_line = |name: &str| format!("100644 {old}\t{name}\n");
        let base_lines: String = ["a", "b", "d", "x/1", "x/2", "z/z"].map(entry_line).concat();
        let long = "l".repeat(200) + "/";
        let long = long.repeat(25) + "f";
        let mut edits: Vec<(RepoPath, bool)> = edits
            .iter()
            .map(|(path, stays)| (RepoPath::new(if *path == "LONG" { long.as_str() } else { path }), *stays))
            .collect();
        edits.sort();
        let edit_line = |(path, stays): &(RepoPath, bool)| match stays {
            true => format!("100644 {new}\t{path}\n"),
            false => format!("0 {old}\t{path}\n"),
        };
        let edit_lines: String = edits.iter().filter(|(_, stays)| !stays).map(edit_line).collect::<String>()
            + &edits.iter().filter(|(_, stays)| *stays).map(edit_line).collect::<String>();
        std::fs::write(test_repo.parent_dir.join("before"), base_lines).unwrap();
        std::fs::write(test_repo.parent_dir.join("after"), edit_lines).unwrap();
        test_repo.run_script("repo", "rm -f .git/index; git update-index --index-info <../before; git write-tree; cp .git/index ../base
            git update-index --index-info <../after; git write-tree");
        let read = |path: &str| RawIndex::read(&test_repo.parent_dir.join(path), Kind::Sha1).unwrap();
        let git_index = read("repo/.git/index");
        let id = ObjectId::from_hex(new.as_bytes()).unwrap();
        let edits: Vec<IndexEdit<'_>> = edits
            .iter()
            .map(|(path, stays)| IndexEdit {
                path,
                new: stays.then(|| (Stat::default(), crate::index::raw_index::FILE_MODE, id)),
            })
            .collect();
        let written_bytes = read("base").with_edits(&edits, &git_index.cached_trees().unwrap()).unwrap();
        let git_bytes = std::fs::read(test_repo.parent_dir.join("repo/.git/index")).unwrap();
        assert!(written_bytes == git_bytes, "{settings}, {} edits", edits.len());
    }
}
