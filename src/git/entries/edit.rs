//! Owns writing an index: entry by entry, or as another one lies in its file but for some paths.

use std::ops::Range;

use gix::hash::{Kind, ObjectId};
use gix::index::entry::Stat;
use gix::index::extension::{Tree, tree};

use super::super::{Error, RepoPath};
use super::{Entries, NAME};

/// How long what comes before the entries is: a name, a version, and how many there are.
const HEAD: usize = 12;

/// What a path is to hold: a file with its numbers, its mode and its content; none where there is to be nothing.
pub(in super::super) struct Edit<'a> {
    pub(in super::super) path: &'a RepoPath,
    pub(in super::super) new: Option<(Stat, u32, ObjectId)>,
}

impl Entries {
    /// What git noted of trees; none where it noted nothing, or not in a way that is understood.
    pub(in super::super) fn trees(&self) -> Option<Tree> {
        tree::decode(&self.bytes[self.trees.clone()], self.hash, None)
    }

    /// The whole file with `edits`, which are in the order of their paths, and with `trees` as what is noted of trees. Each of
    /// those paths has one entry at most.
    pub(in super::super) fn edited(&self, edits: &[Edit<'_>], trees: &Tree) -> Result<Vec<u8>, Error> {
        let more: usize = edits.iter().map(|edit| super::NUMBERS + edit.path.as_bytes().len() + 64).sum();
        let mut draft = Draft::new(self.hash, self.bytes.len() + more);
        draft.out.copy_from_slice(&self.bytes[..HEAD]);
        let mut from = HEAD;
        draft.count = self.all.len();
        for edit in edits {
            let old = self.room_of(edit.path.as_bytes());
            draft.out.extend_from_slice(&self.bytes[from..old.start]);
            from = old.end;
            draft.count -= usize::from(!old.is_empty());
            if let Some((stat, mode, id)) = &edit.new {
                draft.add(edit.path.as_bytes(), stat, *mode, id);
            }
        }
        draft.out.extend_from_slice(&self.bytes[from..self.end]);
        draft.whole(Some(trees), self.notes_end)
    }

    /// Where the entry of a path lies; where none does, the empty place that it would have.
    fn room_of(&self, path: &[u8]) -> Range<usize> {
        let start = |n: usize| {
            let at = self.all.get(n).and_then(|at| usize::try_from(*at).ok());
            at.unwrap_or(self.end)
        };
        match self.all.binary_search_by(|at| self.path(*at).cmp(path)) {
            Ok(n) => start(n)..start(n + 1),
            Err(n) => start(n)..start(n),
        }
    }
}

/// An index that is written entry by entry, in their order.
pub(in super::super) struct Draft {
    out: Vec<u8>,
    count: usize,
    hash: Kind,
}

impl Draft {
    /// Begins one without flags, that takes about so many bytes.
    pub(in super::super) fn new(hash: Kind, room: usize) -> Draft {
        let mut out = Vec::with_capacity(room);
        out.extend_from_slice(b"DIRC\0\0\0\x02\0\0\0\0");
        Draft { out, count: 0, hash }
    }

    /// Adds the file of a path: with its numbers, its mode and its content.
    pub(in super::super) fn add(&mut self, path: &[u8], stat: &Stat, mode: u32, id: &ObjectId) {
        let at = self.out.len();
        let times = [stat.ctime.secs, stat.ctime.nsecs, stat.mtime.secs, stat.mtime.nsecs];
        let rest = [stat.dev, stat.ino, mode, stat.uid, stat.gid, stat.size];
        for number in times.into_iter().chain(rest) {
            self.out.extend_from_slice(&number.to_be_bytes());
        }
        self.out.extend_from_slice(id.as_slice());
        let len = u16::try_from(path.len()).map_or(NAME, |len| len.min(NAME));
        self.out.extend_from_slice(&len.to_be_bytes());
        self.out.extend_from_slice(path);
        let whole = (self.out.len() - at + 8) & !7;
        self.out.resize(at + whole, 0);
        self.count += 1;
    }

    /// The whole file, with what is known of trees, and where that begins if `notes_end` says so.
    pub(in super::super) fn whole(mut self, trees: Option<&Tree>, notes_end: bool) -> Result<Vec<u8>, Error> {
        self.out[8..HEAD].copy_from_slice(&word(self.count));
        let end = self.out.len();
        if let Some(trees) = trees {
            trees.write_to(&mut self.out).map_err(Error::object("the new index"))?;
        }
        if notes_end {
            // git's own form: where the entries end, and a sum of the names and lengths of what follows them.
            let names = &self.out[end..self.out.len().min(end + 8)];
            let sum = super::sum(self.hash, names)?;
            self.out.extend_from_slice(b"EOIE");
            self.out.extend_from_slice(&word(4 + sum.as_slice().len()));
            self.out.extend_from_slice(&word(end));
            self.out.extend_from_slice(sum.as_slice());
        }
        let sum = super::sum(self.hash, &self.out)?;
        self.out.extend_from_slice(sum.as_slice());
        Ok(self.out)
    }
}

/// A number as it lies in an index. None is larger: an entry takes 72 bytes, and git itself has no room for more.
fn word(number: usize) -> [u8; 4] {
    u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::super::super::place::Place;
    use super::*;

    /// Paths, and whether they are to hold something; in git's own form: what is to hold nothing has mode 0.
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
    fn what_is_written_is_what_git_writes() {
        for settings in ["true", "git config index.recordEndOfIndexEntries true"] {
            for edits in EDITS {
                written_like_git(settings, edits);
            }
        }
    }

    /// Both begin with the same entries, none of which has a file.
    fn written_like_git(settings: &str, edits: &[(&str, bool)]) {
        let place = Place::new();
        let ids = place.sh(
            "repo",
            &format!(
                "{settings}; echo old | git hash-object -w --stdin; echo new | git hash-object -w --stdin"
            ),
        );
        let (old, new) = ids.split_once('\n').unwrap();
        let add = |name: &str| format!("100644 {old}\t{name}\n");
        let before: String = ["a", "b", "d", "x/1", "x/2", "z/z"].map(add).concat();
        let long = "l".repeat(200) + "/";
        let long = long.repeat(25) + "f";
        let mut edits: Vec<(RepoPath, bool)> = edits
            .iter()
            .map(|(path, stays)| (RepoPath::new(if *path == "LONG" { long.as_str() } else { path }), *stays))
            .collect();
        edits.sort();
        let line = |(path, stays): &(RepoPath, bool)| match stays {
            true => format!("100644 {new}\t{path}\n"),
            false => format!("0 {old}\t{path}\n"),
        };
        let after: String = edits.iter().filter(|(_, stays)| !stays).map(line).collect::<String>()
            + &edits.iter().filter(|(_, stays)| *stays).map(line).collect::<String>();
        std::fs::write(place.top.join("before"), before).unwrap();
        std::fs::write(place.top.join("after"), after).unwrap();
        place.sh("repo", "rm -f .git/index; git update-index --index-info <../before; git write-tree; cp .git/index ../base
            git update-index --index-info <../after; git write-tree");
        let read = |path: &str| Entries::read(&place.top.join(path), Kind::Sha1).unwrap();
        let theirs = read("repo/.git/index");
        let id = ObjectId::from_hex(new.as_bytes()).unwrap();
        let edits: Vec<Edit<'_>> = edits
            .iter()
            .map(|(path, stays)| Edit { path, new: stays.then(|| (Stat::default(), super::super::FILE, id)) })
            .collect();
        let ours = read("base").edited(&edits, &theirs.trees().unwrap()).unwrap();
        let theirs = std::fs::read(place.top.join("repo/.git/index")).unwrap();
        assert!(ours == theirs, "{settings}, {} edits", edits.len());
    }
}
