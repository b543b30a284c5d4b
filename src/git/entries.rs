//! Owns an index as it lies in its file: its entries are found where they are, and nothing is made of each of them.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::Read;
use std::ops::Range;
use std::path::Path;

use gix::hash::{Kind, ObjectId};
use rustix::fs::Stat;

use super::plain::says_nothing_of_files;
use super::{Error, Oid, Repo, RepoPath};

/// The numbers of a file that come first in an entry, four bytes each: ctime, mtime, device, inode, mode, owner, group, size.
const NUMBERS: usize = 40;
const MTIME: usize = 8;
const INODE: usize = 20;
const MODE: usize = 24;
const OWNER: usize = 28;
const SIZE: usize = 36;

/// Bits of an entry's flags.
const ASSUME_VALID: u16 = 0x8000;
const EXTENDED: u16 = 0x4000;
const STAGE: u16 = 0x3000;
const NAME: u16 = 0x0FFF;
/// Bits of those that follow them in an entry that has more: not to be looked at, and announced.
const SKIP_WORKTREE: u16 = 0x4000;
const INTENT_TO_ADD: u16 = 0x2000;

/// What an entry is.
pub(super) const FILE: u32 = 0o100_644;
pub(super) const EXECUTABLE: u32 = 0o100_755;
pub(super) const LINK: u32 = 0o120_000;

mod edit;
mod holds;

pub(super) use edit::{Draft, Edit};

thread_local! {
    /// Room for the next index: it is large, and new memory costs as much as reading does.
    static ROOM: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The entries of one index, in order.
pub(super) struct Entries {
    bytes: Vec<u8>,
    /// Where each entry begins.
    all: Vec<u32>,
    hash: Kind,
    /// The second in which the index was written.
    written: i64,
    /// The tree that git noted for all of it, and how many entries that has.
    root: Option<(ObjectId, u32)>,
    /// Whether it lies in its file in this form.
    as_it_lies: bool,
    /// Whether it notes more than entries and trees: resolved conflicts, what else lies in the worktree.
    notes_more: bool,
    /// Where the entries end.
    end: usize,
    /// What git noted of trees.
    trees: Range<usize>,
    /// Whether that is noted as well.
    notes_end: bool,
}

/// One entry.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    bytes: &'a [u8],
    hash: usize,
    path: &'a [u8],
}

impl Entries {
    /// Reads an index; none where there is no such file, it is broken, or it has folders in place of files.
    pub(super) fn read(path: &Path, hash: Kind) -> Option<Entries> {
        let mut file = std::fs::File::open(path).ok()?;
        let meta = file.metadata().ok()?;
        let mut bytes = ROOM.take();
        bytes.clear();
        bytes.reserve(usize::try_from(meta.len()).ok()?.saturating_add(1));
        file.read_to_end(&mut bytes).ok()?;
        let written = std::os::unix::fs::MetadataExt::mtime(&meta);
        Entries::new(bytes, hash, written, true).parse().or_else(|| Entries::unfolded(path, hash, written))
    }

    /// The same for an index in another form: names that build on each other, or entries in a second file.
    fn unfolded(path: &Path, hash: Kind, written: i64) -> Option<Entries> {
        let options = gix::index::decode::Options::default();
        let index = gix::index::File::at(path, hash, true, options).ok()?;
        if index.is_sparse() || index.timestamp().unix_seconds() != written {
            return None;
        }
        let mut bytes = Vec::new();
        let options = gix::index::write::Options { skip_hash: true, ..Default::default() };
        index.write_to(&mut bytes, options).ok()?;
        Entries::new(bytes, hash, written, false).parse()
    }

    fn new(bytes: Vec<u8>, hash: Kind, written: i64, as_it_lies: bool) -> Entries {
        let (all, root, trees) = (Vec::new(), None, 0..0);
        Entries {
            bytes,
            all,
            hash,
            written,
            root,
            as_it_lies,
            notes_more: false,
            end: 0,
            trees,
            notes_end: false,
        }
    }

    fn parse(mut self) -> Option<Entries> {
        let head = self.bytes.get(..12)?;
        if &head[..4] != b"DIRC" || !matches!(number(head, 4)?, 2 | 3) {
            return None;
        }
        let count = usize::try_from(number(head, 8)?).ok()?;
        // A number that the file cannot hold is not believed.
        self.all.reserve(count.min(self.bytes.len() / NUMBERS));
        let (mut at, mut before) = (12, 0..0);
        for _ in 0..count {
            let path = self.path_at(at)?;
            if self.bytes[path.clone()] < self.bytes[before] {
                return None;
            }
            self.all.push(u32::try_from(at).ok()?);
            at += (path.end - at + 8) & !7;
            before = path;
        }
        self.extensions(at)?;
        Some(self)
    }

    /// Where the path of the entry at some place is.
    fn path_at(&self, at: usize) -> Option<Range<usize>> {
        let flags_at = at + NUMBERS + self.hash.len_in_bytes();
        let flags = short(&self.bytes, flags_at)?;
        let from = flags_at + if flags & EXTENDED == 0 { 2 } else { 4 };
        let known = usize::from(flags & NAME);
        let long = || self.bytes.get(from..)?.iter().position(|b| *b == 0);
        let len = if known < usize::from(NAME) { known } else { long()? };
        let ends = self.bytes.get(from..=from + len)?;
        matches!(ends, [.., last, 0] if *last != 0).then_some(from..from + len)
    }

    /// Reads what comes behind the entries; none when something is there that has to be understood and is not.
    fn extensions(&mut self, mut at: usize) -> Option<()> {
        self.end = at;
        let end = self.bytes.len().checked_sub(self.hash.len_in_bytes())?;
        while at < end {
            let name = self.bytes.get(at..at + 4)?;
            let size = usize::try_from(number(&self.bytes, at + 4)?).ok()?;
            let body = self.bytes.get(at + 8..(at + 8).checked_add(size)?.min(end))?;
            match name {
                b"TREE" => (self.root, self.trees) = (self.root(body), at + 8..at + 8 + body.len()),
                // Where the others begin, and where parts of the entries do.
                b"EOIE" => self.notes_end = true,
                b"IEOT" => {}
                // Those are the ones that may be left out.
                [b'A'..=b'Z', ..] => self.notes_more = true,
                _ => return None,
            }
            at += 8 + size;
        }
        (at == end).then_some(())
    }

    /// The root of git's notes of trees: an empty name, how many entries it has and how many folders, and its id.
    fn root(&self, body: &[u8]) -> Option<(ObjectId, u32)> {
        let end = body.iter().position(|b| *b == b'\n')?;
        let counts = std::str::from_utf8(body.get(1..end)?).ok()?;
        let count = counts.split(' ').next()?.parse().ok()?;
        let id = body.get(end + 1..end + 1 + self.hash.len_in_bytes())?;
        (body[0] == 0).then_some((ObjectId::try_from(id).ok()?, count))
    }

    /// Whether the index holds exactly a tree, and says so.
    pub(super) fn is(&self, tree: ObjectId) -> bool {
        self.root.is_some_and(|(id, count)| id == tree && usize::try_from(count) == Ok(self.all.len()))
    }

    /// Whether it lies in its file as it is read here, and has nothing but entries and what is known of their trees.
    pub(super) fn is_simple(&self) -> bool {
        self.as_it_lies && !self.notes_more
    }

    /// All entries.
    pub(super) fn all(&self) -> &[u32] {
        &self.all
    }

    /// One of them.
    pub(super) fn entry(&self, at: u32) -> Entry<'_> {
        let at = usize::try_from(at).unwrap_or_default();
        // It was found there when the index was read.
        let path = self.path_at(at).unwrap_or_default();
        Entry {
            bytes: &self.bytes[at..path.end.max(at)],
            hash: self.hash.len_in_bytes(),
            path: &self.bytes[path],
        }
    }

    /// The path of one of them.
    pub(super) fn path(&self, at: u32) -> &[u8] {
        self.entry(at).path
    }

    /// The entry of a path.
    pub(super) fn find(&self, path: &[u8]) -> Option<Entry<'_>> {
        self.place_of(path).map(|at| self.entry(at))
    }

    /// Where that is.
    pub(super) fn place_of(&self, path: &[u8]) -> Option<u32> {
        let at = self.all.binary_search_by(|at| self.path(*at).cmp(path)).ok()?;
        Some(self.all[at])
    }

    /// Whether those of `files`, which have attributes, that are among the entries say nothing of what git writes and reads.
    pub(super) fn say_nothing_of_files(&self, repo: &Repo, files: &BTreeSet<RepoPath>) -> bool {
        let mut there = files.iter().filter_map(|file| self.find(file.as_bytes()));
        there.all(|entry| {
            let id = ObjectId::try_from(entry.id()).map(Oid);
            let text = id.ok().and_then(|id| repo.blob(id).ok());
            entry.mode() == FILE && text.is_some_and(|text| says_nothing_of_files(&text))
        })
    }

    /// How many of `rest`, which are in order, begin with `prefix`.
    pub(super) fn below(&self, rest: &[u32], prefix: &[u8]) -> usize {
        let mut step = 1;
        while rest.get(step).is_some_and(|at| self.path(*at).starts_with(prefix)) {
            step *= 2;
        }
        let (from, to) = (step / 2, step.min(rest.len()));
        from + rest[from..to].partition_point(|at| self.path(*at).starts_with(prefix))
    }

    /// Whether the file of an entry was changed in the second in which the index was written, or later.
    pub(super) fn is_racy(&self, entry: Entry<'_>) -> bool {
        number(entry.bytes, MTIME).is_none_or(|second| self.written <= i64::from(second))
    }

    /// Those of which that is so.
    pub(super) fn racy(&self) -> impl Iterator<Item = u32> {
        self.all.iter().copied().filter(|at| self.is_racy(self.entry(*at)))
    }

    /// Notes anew what the file of one of them is like.
    pub(super) fn renumber(&mut self, at: u32, meta: &Stat) {
        let noted = super::clean::noted(meta);
        let times = [noted.ctime.secs, noted.ctime.nsecs, noted.mtime.secs, noted.mtime.nsecs];
        let set = |(bytes, number): (&mut [u8], u32)| bytes.copy_from_slice(&number.to_be_bytes());
        let at = usize::try_from(at).unwrap_or_default();
        let Some(all) = self.bytes.get_mut(at..at + NUMBERS) else { return };
        all.chunks_exact_mut(4).zip(times.into_iter().chain([noted.dev, noted.ino])).for_each(set);
        all[OWNER..].chunks_exact_mut(4).zip([noted.uid, noted.gid, noted.size]).for_each(set);
    }

    /// Notes a length of one of them that is no file's, so that git reads its file again.
    pub(super) fn forget_length(&mut self, at: u32) {
        let at = usize::try_from(at).unwrap_or_default();
        if let Some(size) = self.bytes.get_mut(at + SIZE..at + NUMBERS) {
            size.fill(0);
        }
    }

    /// The whole file, with a new sum at its end; none where it had none.
    pub(super) fn sealed(mut self) -> Option<Vec<u8>> {
        if !self.has_sum() {
            return None;
        }
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.truncate(bytes.len() - self.hash.len_in_bytes());
        let sum = sum(self.hash, &bytes).ok()?;
        bytes.extend_from_slice(sum.as_slice());
        Some(bytes)
    }

    /// Whether there is a sum at the end of the file.
    pub(super) fn has_sum(&self) -> bool {
        let body = self.bytes.len().checked_sub(self.hash.len_in_bytes());
        body.is_some_and(|body| self.bytes[body..].iter().any(|byte| *byte != 0))
    }

    /// What ids are made with.
    pub(super) fn hash(&self) -> Kind {
        self.hash
    }
}

impl Drop for Entries {
    fn drop(&mut self) {
        drop(ROOM.try_with(|room| room.replace(std::mem::take(&mut self.bytes))));
    }
}

impl<'a> Entry<'a> {
    /// Its path.
    pub(super) fn path(self) -> &'a [u8] {
        self.path
    }

    /// Whether the same is noted of the same content.
    pub(super) fn is_noted_like(self, other: Entry<'_>) -> bool {
        self.bytes.get(..NUMBERS + self.hash) == other.bytes.get(..NUMBERS + other.hash)
    }

    /// What it is.
    pub(super) fn mode(self) -> u32 {
        number(self.bytes, MODE).unwrap_or_default()
    }

    /// How long its file was.
    pub(super) fn size(self) -> u32 {
        number(self.bytes, SIZE).unwrap_or_default()
    }

    /// The content.
    pub(super) fn id(self) -> &'a [u8] {
        &self.bytes[NUMBERS..NUMBERS + self.hash]
    }

    /// Whether git looks at its file, and takes what it finds for what there is: nobody told it not to, nothing is in conflict.
    pub(super) fn is_seen(self) -> bool {
        let at = NUMBERS + self.hash;
        let flags = short(self.bytes, at).unwrap_or(ASSUME_VALID);
        let more = if flags & EXTENDED == 0 { Some(0) } else { short(self.bytes, at + 2) };
        flags & (ASSUME_VALID | STAGE) == 0
            && more.is_some_and(|more| more & (SKIP_WORKTREE | INTENT_TO_ADD) == 0)
    }

    /// Whether it is one side of a conflict. Such a path has more than one entry.
    pub(super) fn is_of_conflict(self) -> bool {
        short(self.bytes, NUMBERS + self.hash).is_none_or(|flags| flags & STAGE != 0)
    }

    /// Whether its file has each number that was noted, but for the mode, and for the device, which may be another one after
    /// each start of a machine.
    pub(super) fn has_numbers_of(self, meta: &Stat) -> bool {
        let noted = super::clean::noted(meta);
        let times = [noted.ctime.secs, noted.ctime.nsecs, noted.mtime.secs, noted.mtime.nsecs];
        let rest = [noted.uid, noted.gid, noted.size];
        let are = |from: usize, numbers: &[u32]| {
            let noted = self.bytes[from..].chunks_exact(4);
            noted.zip(numbers).all(|(bytes, number)| bytes == number.to_be_bytes())
        };
        are(0, &times) && are(INODE, &[noted.ino]) && are(OWNER, &rest)
    }
}

/// The sum of what is to be an index, or a part of one.
fn sum(hash: Kind, bytes: &[u8]) -> Result<ObjectId, Error> {
    let mut hasher = gix::hash::hasher(hash);
    hasher.update(bytes);
    hasher.try_finalize().map_err(Error::object("the new index"))
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::super::place::Place;
    use super::*;

    /// What is read of an index, in the form of `git ls-files --stage`.
    fn listed(place: &Place) -> Option<String> {
        let entries = Entries::read(&place.top.join("repo/.git/index"), Kind::Sha1)?;
        let line = |at: &u32| {
            let entry = entries.entry(*at);
            let id = ObjectId::try_from(entry.id()).unwrap();
            format!("{:06o} {id} 0\t{}", entry.mode(), String::from_utf8_lossy(entry.path()))
        };
        Some(entries.all().iter().map(line).collect::<Vec<_>>().join("\n"))
    }

    #[test]
    fn an_index_of_each_form_is_read() {
        let place = Place::new();
        place.sh(
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
            place.sh("repo", script);
            assert_eq!(listed(&place).unwrap(), place.sh("repo", "git ls-files --stage"), "{script}");
        }
    }

    #[test]
    fn folders_are_found_among_the_entries() {
        let place = Place::new();
        place.sh(
            "repo",
            "mkdir -p d/e; for n in a d-x d.x d/1 d/2 d/e/3 d0 z; do echo >$n; done; git add -A; git commit -qm first",
        );
        let entries = Entries::read(&place.top.join("repo/.git/index"), Kind::Sha1).unwrap();
        let at = entries.all().iter().position(|at| entries.path(*at).starts_with(b"d/")).unwrap();
        assert_eq!(entries.below(&entries.all()[at..], b"d/"), 3);
        assert_eq!(entries.below(&entries.all()[at + 2..], b"d/e/"), 1);
        assert_eq!(entries.below(&[], b"d/"), 0);
        assert_eq!(entries.find(b"d/e/3").unwrap().path(), b"d/e/3");
        assert!(entries.find(b"d/e").is_none());
        let tree = place.sh("repo", "git rev-parse HEAD^{tree}");
        assert!(entries.is(ObjectId::from_hex(tree.as_bytes()).unwrap()));
        place.sh("repo", "echo n >n; git add n");
        let entries = Entries::read(&place.top.join("repo/.git/index"), Kind::Sha1).unwrap();
        assert!(!entries.is(ObjectId::from_hex(tree.as_bytes()).unwrap()));
    }

    #[test]
    fn what_is_cut_short_or_made_up_is_no_index() {
        let place = Place::new();
        place.sh("repo", "for n in a b c; do echo $n >$n; done; git add -A; git commit -qm first");
        let path = place.top.join("repo/.git/index");
        let whole = std::fs::read(&path).unwrap();
        for len in 0..whole.len() {
            std::fs::write(&path, &whole[..len]).unwrap();
            let found = Entries::read(&path, Kind::Sha1);
            // Where the cut leaves something that could be a trailing hash behind whole parts, there is no telling.
            assert!(found.is_none_or(|found| found.all().len() == 3), "{len}");
        }
        for (at, byte) in [(11, 200), (7, 9), (12 + 61, 0), (12 + 61, 2)] {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            std::fs::write(&path, bytes).unwrap();
            assert!(Entries::read(&path, Kind::Sha1).is_none(), "{at} {byte}");
        }
    }
}
