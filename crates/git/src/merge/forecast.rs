//! In-process merge forecasts: whether merges would conflict and where, computed for many merges in multiple
//! threads. Nothing is written, and a forecast never decides a landing.
//!
//! Where no path needs a decision, the rules of `exact_merge` apply. Files that both sides changed in place
//! are merged line by line, as long as git would use its own text merge for them. Everything else is left to
//! git.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use gix::objs::tree::{Entry, EntryKind};
use serde::{Deserialize, Serialize};

use super::exact_merge::TreeMerger;
use super::merge_rules::{GlobalMergeRules, MergeRules};
use super::text_merge::{ConflictHunk, LineEdit};
use super::{exact_merge, text_merge};
use crate::base::parallel::max_thread_count;
use crate::repository::objects::{TempObjectStore, open_object_store};
use crate::repository::tree_reader::{TreeItem, TreeReader};
use crate::{BlobId, Error, Oid, Repo, RepoPath, TreeId};

/// Largest file in bytes that is merged in process; git merges larger ones.
const MAX_TEXT_MERGE_BYTES: u64 = 4 << 20;
/// Total bytes of file contents that one thread caches.
const MAX_CACHED_BYTES: usize = 64 << 20;
/// Maximum number of merges a thread takes in one chunk: neighboring merges share most of the objects they
/// read.
const MAX_MERGES_PER_CHUNK: usize = 16;
/// Minimum number of merges that justify a thread: with fewer, one thread waits for objects that another one
/// reads.
const MIN_MERGES_PER_THREAD: usize = 8;
/// Number of chunks each thread should get, so that no thread is left alone with the last merges.
const MIN_CHUNKS_PER_THREAD: usize = 4;

/// Three trees of a merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MergeInput {
    /// Tree of the common ancestor.
    pub base: TreeId,
    /// Tree that the other side is merged into.
    pub ours: TreeId,
    /// Tree that is merged.
    pub theirs: TreeId,
}

/// Path on which a merge would conflict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathConflict {
    /// Path of the conflict, relative to the top of the worktree.
    pub path: RepoPath,
    /// Kind of the conflict in git's words, such as `contents` or `add/add`.
    pub kind: String,
    /// Conflicting line ranges; empty when the conflict is not about lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hunks: Vec<ConflictHunk>,
}

/// Kind that git gives to a conflict in which both sides changed the same lines.
const CONTENT_CONFLICT_KIND: &str = "contents";

/// Forecasts all of `merges` and returns the conflicts of each; a clean merge has none. `None` stands for a
/// merge that only git can forecast, or that was not reached before `deadline`.
pub fn forecast_merges(
    repo: &Repo,
    temp_objects: Option<&TempObjectStore>,
    merges: &[MergeInput],
    deadline: Option<Instant>,
) -> Result<Vec<Option<Vec<PathConflict>>>, Error> {
    if merges.is_empty() {
        return Ok(Vec::new());
    }
    let store = open_object_store(repo, temp_objects)?;
    let global_rules = GlobalMergeRules::read(repo);
    let next_index = AtomicUsize::new(0);
    let forecasts = Mutex::new(vec![None; merges.len()]);
    let threads = max_thread_count();
    let chunk_size = merges.len().div_ceil(threads * MIN_CHUNKS_PER_THREAD).clamp(1, MAX_MERGES_PER_CHUNK);
    let threads = threads.min(merges.len().div_ceil(chunk_size.max(MIN_MERGES_PER_THREAD)));
    let run_worker = |store: gix::OdbHandle| {
        let rules = MergeRules::new(global_rules.clone());
        let mut worker = ForecastWorker {
            reader: TreeReader::new(store),
            rules,
            text_cache: TextCache::default(),
            current: None,
        };
        loop {
            let chunk_start = next_index.fetch_add(chunk_size, Ordering::Relaxed);
            if chunk_start >= merges.len() || deadline.is_some_and(|end| Instant::now() >= end) {
                break;
            }
            for (index, input) in merges.iter().enumerate().skip(chunk_start).take(chunk_size) {
                // Git explains objects that cannot be read.
                let conflicts = worker.forecast_merge(*input).ok().flatten();
                if let Ok(mut locked_forecasts) = forecasts.lock() {
                    locked_forecasts[index] = conflicts;
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            let store = store.clone();
            scope.spawn(|| run_worker(store));
        }
        run_worker(store.clone());
    });
    Ok(forecasts.into_inner().unwrap_or_default())
}

/// Returns the hunks in which two versions of a file conflict, given their common ancestor. Empty when they
/// merge line by line, or when one of the versions is not text.
pub(crate) fn conflicting_hunks(
    reader: &TreeReader,
    base: Option<BlobId>,
    ours: BlobId,
    theirs: BlobId,
) -> Result<Vec<ConflictHunk>, Error> {
    for id in [Some(ours), Some(theirs), base].into_iter().flatten() {
        if reader.size(id.0)? > MAX_TEXT_MERGE_BYTES {
            return Ok(Vec::new());
        }
    }
    let base = base.map_or_else(|| Ok(Vec::new()), |id| reader.blob(id.0))?;
    let (ours, theirs) = (reader.blob(ours.0)?, reader.blob(theirs.0)?);
    if ![&base, &ours, &theirs].into_iter().all(|text| text_merge::is_text(text)) {
        return Ok(Vec::new());
    }
    let edits = |to: &[u8]| text_merge::diff_lines(&base, to);
    Ok(text_merge::find_conflicts(&ours, &edits(&ours), &theirs, &edits(&theirs)))
}

/// Returns what a forecast depends on besides the three trees: merge settings, attribute files outside of
/// trees, and git's version. Equal bytes mean that an earlier forecast is still valid.
pub fn forecast_environment(repo: &Repo) -> Result<Vec<u8>, Error> {
    let mut out = GlobalMergeRules::read(repo).source_text;
    out.extend_from_slice(repo.version()?.to_string().as_bytes());
    Ok(out)
}

impl Repo {
    /// Returns one hash over the concatenated `parts`, to compare them by.
    pub fn fingerprint(&self, parts: &[&[u8]]) -> Result<Oid, Error> {
        let bytes = parts.concat();
        let hash = gix::objs::compute_hash(self.gix.object_hash(), gix::objs::Kind::Blob, &bytes);
        hash.map(Oid).map_err(Error::object("a fingerprint"))
    }
}

/// Merge that a worker is forecasting.
struct CurrentMerge {
    input: MergeInput,
    conflicts: Vec<PathConflict>,
}

/// State of one forecasting thread.
struct ForecastWorker {
    reader: TreeReader,
    rules: MergeRules,
    text_cache: TextCache,
    /// Merge in progress; `None` between two merges.
    current: Option<CurrentMerge>,
}

impl ForecastWorker {
    fn forecast_merge(&mut self, input: MergeInput) -> Result<Option<Vec<PathConflict>>, Error> {
        if input.ours == input.base || input.theirs == input.base {
            return Ok(Some(Vec::new()));
        }
        self.current = Some(CurrentMerge { input, conflicts: Vec::new() });
        let walk_result = exact_merge::walk_trees(self, input.base.0, input.ours.0, input.theirs.0)?;
        let conflicts = self.current.take().map(|current| current.conflicts).unwrap_or_default();
        // Git decides a merge whose result is empty, as in `exact_merge`.
        Ok(walk_result.ok().flatten().map(|_| conflicts))
    }

    /// Returns whether git would use its own text merge for this path, whichever side is merged into the
    /// other.
    fn uses_text_merge(&self, path: &[u8], input: MergeInput) -> Result<bool, Error> {
        for root in [input.ours, input.theirs] {
            if self.rules.may_use_merge_driver(&self.reader, root.0, path)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl TreeMerger for ForecastWorker {
    const COLLECTS_ENTRIES: bool = false;

    fn reader(&self) -> &TreeReader {
        &self.reader
    }

    fn merge_changed_path(
        &mut self,
        path: &[u8],
        base: Option<TreeItem>,
        ours: TreeItem,
        theirs: TreeItem,
    ) -> Result<Option<TreeItem>, Error> {
        let (Some(base), Some(input)) = (base, self.current.as_ref().map(|current| current.input)) else {
            return Ok(None);
        };
        let versions = [base, ours, theirs];
        let same_modes = versions.iter().all(|item| item.mode == base.mode);
        let is_file = matches!(base.mode.kind(), EntryKind::Blob | EntryKind::BlobExecutable);
        if !(same_modes && is_file && self.uses_text_merge(path, input)?) {
            return Ok(None);
        }
        let Some(hunks) = self.text_cache.find_text_conflicts(&self.reader, base.id, ours.id, theirs.id)?
        else {
            return Ok(None);
        };
        if let (false, Some(current)) = (hunks.is_empty(), &mut self.current) {
            current.conflicts.push(PathConflict {
                path: RepoPath::new(path),
                kind: CONTENT_CONFLICT_KIND.to_owned(),
                hunks,
            });
        }
        Ok(Some(ours))
    }

    fn add_merged_tree(&mut self, _: Vec<Entry>) -> Result<gix::ObjectId, Error> {
        // Nobody reads the id.
        Ok(gix::ObjectId::null(gix::hash::Kind::Sha1))
    }
}

/// Content of a text file; `None` for a file that is not text or is too large.
type CachedText = Option<Rc<Vec<u8>>>;

/// Ids of a file's blobs before and after a change.
type BlobPair = (gix::ObjectId, gix::ObjectId);

/// Cache of file contents and edits of one thread, so that each is computed only once.
#[derive(Default)]
struct TextCache {
    texts: RefCell<HashMap<gix::ObjectId, CachedText>>,
    edits: RefCell<HashMap<BlobPair, Rc<Vec<LineEdit>>>>,
    /// Total length of the cached contents, in bytes.
    cached_bytes: usize,
}

impl TextCache {
    /// Returns the conflicting hunks of a three-way merge of blobs; `None` when only git can decide.
    fn find_text_conflicts(
        &mut self,
        reader: &TreeReader,
        base: gix::ObjectId,
        ours: gix::ObjectId,
        theirs: gix::ObjectId,
    ) -> Result<Option<Vec<ConflictHunk>>, Error> {
        if self.cached_bytes > MAX_CACHED_BYTES {
            *self = TextCache::default();
        }
        let Some(base_text) = self.load_text(reader, base)? else { return Ok(None) };
        let Some(our_text) = self.load_text(reader, ours)? else { return Ok(None) };
        let Some(their_text) = self.load_text(reader, theirs)? else { return Ok(None) };
        let our_edits = self.cached_edits(base, &base_text, ours, &our_text);
        let their_edits = self.cached_edits(base, &base_text, theirs, &their_text);
        Ok(Some(text_merge::find_conflicts(&our_text, &our_edits, &their_text, &their_edits)))
    }

    fn load_text(&mut self, reader: &TreeReader, id: gix::ObjectId) -> Result<CachedText, Error> {
        if let Some(cached) = self.texts.borrow().get(&id) {
            return Ok(cached.clone());
        }
        let text = reader
            .small_blob(id, MAX_TEXT_MERGE_BYTES)?
            .filter(|text| text_merge::is_text(text))
            .map(Rc::new);
        self.cached_bytes += text.as_ref().map_or(0, |text| text.len());
        self.texts.borrow_mut().insert(id, text.clone());
        Ok(text)
    }

    fn cached_edits(
        &self,
        base: gix::ObjectId,
        base_text: &[u8],
        changed_blob: gix::ObjectId,
        new_text: &[u8],
    ) -> Rc<Vec<LineEdit>> {
        let compute_edits = || Rc::new(text_merge::diff_lines(base_text, new_text));
        Rc::clone(self.edits.borrow_mut().entry((base, changed_blob)).or_insert_with(compute_edits))
    }
}
