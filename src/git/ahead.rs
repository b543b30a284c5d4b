//! Owns looking ahead at merges in process, many of them in threads: whether they would conflict, and where. Nothing is
//! written, and nothing that is found here may decide a landing.
//!
//! Where no path needs a decision the rules are those of `exact`. Files that both sides changed in place are merged line by
//! line, as long as git's own text merge is what would merge them. Anything else is left to git.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use gix::objs::tree::{Entry, EntryKind};
use serde::{Deserialize, Serialize};

use super::exact::{self, Merger};
use super::merge_rules::{Everywhere, Rules};
use super::text_merge::{self, Edit, Hunk};
use super::threads::threads;
use super::trees::{Item, Reader};
use super::{Error, Oid, Repo, RepoPath, ThrowAway};

/// Files that are larger are git's to merge.
const LARGEST: u64 = 4 << 20;
/// How many bytes of files one thread keeps.
const KEPT: usize = 64 << 20;
/// How many merges a thread takes at a time, at most: neighbours share most of what they read.
const AT_ONCE: usize = 16;
/// Fewer merges are not worth a thread: what one reads the other has to wait for.
const FEW: usize = 8;
/// How often each thread should come back for more, so that none is left alone with the last ones.
const ROUNDS: usize = 4;

/// Three trees to be merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Three {
    /// What both were before.
    pub(crate) base: Oid,
    /// What is merged into.
    pub(crate) ours: Oid,
    /// What is merged.
    pub(crate) theirs: Oid,
}

/// A path on which a merge would conflict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clash {
    /// The path.
    pub path: RepoPath,
    /// What kind of conflict it is, in git's words.
    pub kind: String,
    /// The places in it; none when it is not about lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hunks: Vec<Hunk>,
}

/// What two sides that changed the same lines are called, in git's words.
const CONTENTS: &str = "contents";

/// Looks ahead at all of `merges`. None for those that are git's, or that `until` came before. Clean ones have no clashes.
pub(crate) fn look_ahead(
    repo: &Repo,
    objects: Option<&ThrowAway>,
    merges: &[Three],
    until: Option<Instant>,
) -> Result<Vec<Option<Vec<Clash>>>, Error> {
    if merges.is_empty() {
        return Ok(Vec::new());
    }
    let store = store_of(repo, objects)?;
    let everywhere = Everywhere::read(repo);
    let next = AtomicUsize::new(0);
    let found = Mutex::new(vec![None; merges.len()]);
    let threads = threads();
    let at_once = merges.len().div_ceil(threads * ROUNDS).clamp(1, AT_ONCE);
    let threads = threads.min(merges.len().div_ceil(at_once.max(FEW)));
    let work = |store: gix::OdbHandle| {
        let rules = Rules::new(everywhere.clone());
        let mut ahead = Ahead { reader: Reader::of(store), rules, texts: Texts::default(), now: None };
        loop {
            let from = next.fetch_add(at_once, Ordering::Relaxed);
            if from >= merges.len() || until.is_some_and(|end| Instant::now() >= end) {
                break;
            }
            for (at, three) in merges.iter().enumerate().skip(from).take(at_once) {
                // What cannot be read is git's to explain.
                let answer = ahead.merge(*three).ok().flatten();
                if let Ok(mut found) = found.lock() {
                    found[at] = answer;
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            let store = store.clone();
            scope.spawn(|| work(store));
        }
        work(store.clone());
    });
    Ok(found.into_inner().unwrap_or_default())
}

/// Where two versions of a file, and what both were before, cannot be brought together line by line. Empty when they can, or
/// when one of them is no text.
pub(super) fn clashing_lines(
    reader: &Reader,
    base: Option<Oid>,
    ours: Oid,
    theirs: Oid,
) -> Result<Vec<Hunk>, Error> {
    for id in [Some(ours), Some(theirs), base].into_iter().flatten() {
        if reader.size(id.0)? > LARGEST {
            return Ok(Vec::new());
        }
    }
    let base = base.map_or_else(|| Ok(Vec::new()), |id| reader.blob(id.0))?;
    let (ours, theirs) = (reader.blob(ours.0)?, reader.blob(theirs.0)?);
    if ![&base, &ours, &theirs].into_iter().all(|text| text_merge::is_text(text)) {
        return Ok(Vec::new());
    }
    let edits = |to: &[u8]| text_merge::edits(&base, to);
    Ok(text_merge::conflicts(&ours, &edits(&ours), &theirs, &edits(&theirs)))
}

/// The repository's objects, or those of a throw-away folder in front of them.
pub(super) fn store_of(repo: &Repo, objects: Option<&ThrowAway>) -> Result<gix::OdbHandle, Error> {
    match objects {
        None => Ok(repo.gix.objects.clone()),
        Some(aside) => aside.open(repo),
    }
}

/// Everything that decides a forecast besides the three trees, as bytes that two moments can be compared by.
pub(crate) fn circumstances(repo: &Repo) -> Result<Vec<u8>, Error> {
    let mut out = Everywhere::read(repo).source;
    out.extend_from_slice(repo.version()?.to_string().as_bytes());
    Ok(out)
}

impl Repo {
    /// A short name for some bytes, for comparing.
    pub(crate) fn fingerprint(&self, parts: &[&[u8]]) -> Result<Oid, Error> {
        let bytes = parts.concat();
        let made = gix::objs::compute_hash(self.gix.object_hash(), gix::objs::Kind::Blob, &bytes);
        made.map(Oid).map_err(Error::object("a fingerprint"))
    }
}

/// The merge that is being looked at.
struct Now {
    three: Three,
    clashes: Vec<Clash>,
}

/// One thread's work.
struct Ahead {
    reader: Reader,
    rules: Rules,
    texts: Texts,
    now: Option<Now>,
}

impl Ahead {
    fn merge(&mut self, three: Three) -> Result<Option<Vec<Clash>>, Error> {
        if three.ours == three.base || three.theirs == three.base {
            return Ok(Some(Vec::new()));
        }
        self.now = Some(Now { three, clashes: Vec::new() });
        let walked = exact::walk(self, three.base.0, three.ours.0, three.theirs.0)?;
        let clashes = self.now.take().map(|now| now.clashes).unwrap_or_default();
        // A merge in which nothing is left is git's, as in `exact`.
        Ok(walked.ok().flatten().map(|_| clashes))
    }

    /// Whether git's own text merge would merge this path, whichever side is merged into the other.
    fn is_plain(&self, path: &[u8], three: Three) -> Result<bool, Error> {
        for root in [three.ours, three.theirs] {
            if self.rules.is_special(&self.reader, root.0, path)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Merger for Ahead {
    const KEEPS: bool = false;

    fn reader(&self) -> &Reader {
        &self.reader
    }

    fn decide(
        &mut self,
        path: &[u8],
        base: Option<Item>,
        ours: Item,
        theirs: Item,
    ) -> Result<Option<Item>, Error> {
        let (Some(base), Some(three)) = (base, self.now.as_ref().map(|now| now.three)) else {
            return Ok(None);
        };
        let all = [base, ours, theirs];
        let alike = all.iter().all(|item| item.mode == base.mode);
        let files = matches!(base.mode.kind(), EntryKind::Blob | EntryKind::BlobExecutable);
        if !(alike && files && self.is_plain(path, three)?) {
            return Ok(None);
        }
        let Some(hunks) = self.texts.merge(&self.reader, base.id, ours.id, theirs.id)? else {
            return Ok(None);
        };
        if let (false, Some(now)) = (hunks.is_empty(), &mut self.now) {
            now.clashes.push(Clash { path: RepoPath::new(path), kind: CONTENTS.to_owned(), hunks });
        }
        Ok(Some(ours))
    }

    fn keep(&mut self, _: Vec<Entry>) -> Result<gix::ObjectId, Error> {
        // Nobody will look at it.
        Ok(gix::ObjectId::null(gix::hash::Kind::Sha1))
    }
}

/// A file's content; none for what is no text or too large.
type Text = Option<Rc<Vec<u8>>>;

/// A file before and after.
type FromTo = (gix::ObjectId, gix::ObjectId);

/// Files and what was changed in them, each looked at once by one thread.
#[derive(Default)]
struct Texts {
    files: RefCell<HashMap<gix::ObjectId, Text>>,
    edits: RefCell<HashMap<FromTo, Rc<Vec<Edit>>>>,
    bytes: usize,
}

impl Texts {
    /// The places that conflict; none when that is git's to say.
    fn merge(
        &mut self,
        reader: &Reader,
        base: gix::ObjectId,
        ours: gix::ObjectId,
        theirs: gix::ObjectId,
    ) -> Result<Option<Vec<Hunk>>, Error> {
        if self.bytes > KEPT {
            *self = Texts::default();
        }
        let Some(before) = self.text(reader, base)? else { return Ok(None) };
        let Some(one) = self.text(reader, ours)? else { return Ok(None) };
        let Some(other) = self.text(reader, theirs)? else { return Ok(None) };
        let our_edits = self.edits(base, &before, ours, &one);
        let their_edits = self.edits(base, &before, theirs, &other);
        Ok(Some(text_merge::conflicts(&one, &our_edits, &other, &their_edits)))
    }

    fn text(&mut self, reader: &Reader, id: gix::ObjectId) -> Result<Text, Error> {
        if let Some(known) = self.files.borrow().get(&id) {
            return Ok(known.clone());
        }
        let text = reader.small_blob(id, LARGEST)?.filter(|text| text_merge::is_text(text)).map(Rc::new);
        self.bytes += text.as_ref().map_or(0, |text| text.len());
        self.files.borrow_mut().insert(id, text.clone());
        Ok(text)
    }

    fn edits(&self, base: gix::ObjectId, before: &[u8], id: gix::ObjectId, after: &[u8]) -> Rc<Vec<Edit>> {
        let made = || Rc::new(text_merge::edits(before, after));
        Rc::clone(self.edits.borrow_mut().entry((base, id)).or_insert_with(made))
    }
}
