//! Comparison of the merge engine with git: a chunk of generated merges in one repository, with a description
//! of each difference.

use std::collections::BTreeMap;
use std::ops::{AddAssign, Range};
use std::path::Path;

use git_proq::probe::Probe;
use git_proq::types::{CommitId, TreeId};

use super::generate::{MergeCase, generate_merge};
use super::git::{self, GitOracle, GitVerdict};
use super::setup::{self, ATTRIBUTES};
use super::{Outcome, import, paths};

/// Number of merges that share one repository and its set-up.
pub(crate) const CHUNK: usize = 200;

/// Repository of a chunk, and how many merges use the full engine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChunkSetup<'a> {
    /// Folder of the repository, which does not exist yet.
    pub(crate) dir: &'a Path,
    /// Interval of merges that the full engine makes as well.
    pub(crate) whole: usize,
}

/// Counts of merges.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    /// All merges.
    pub(crate) merges: usize,
    /// Merges made in process.
    pub(crate) exact: usize,
    /// Merges that git makes without conflict.
    pub(crate) clean: usize,
    /// Merges that conflict.
    pub(crate) conflicts: usize,
    /// Merges that git refuses.
    pub(crate) refused: usize,
    /// Merges on which git crashed.
    pub(crate) unknown: usize,
    /// How often git crashed with each text.
    pub(crate) words: BTreeMap<String, usize>,
    /// Merges that the full engine made as well.
    pub(crate) whole: usize,
    /// All merges, and those made in process, by kind of history.
    pub(crate) kinds: BTreeMap<&'static str, [usize; 2]>,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.merges += other.merges;
        self.exact += other.exact;
        self.clean += other.clean;
        self.conflicts += other.conflicts;
        self.refused += other.refused;
        self.unknown += other.unknown;
        self.whole += other.whole;
        for (words, times) in other.words {
            *self.words.entry(words).or_default() += times;
        }
        for (kind, [all, exact]) in other.kinds {
            let sum = self.kinds.entry(kind).or_default();
            sum[0] += all;
            sum[1] += exact;
        }
    }
}

/// Result of a chunk.
#[derive(Debug, Default)]
pub(crate) struct ChunkResult {
    /// Counts.
    pub(crate) tally: Tally,
    /// Number of each merge that differs, with a description.
    pub(crate) differences: Vec<(usize, String)>,
}

/// Generates the merges with these numbers, which belong to one chunk, and compares them with git.
pub(crate) fn compare_chunk(chunk: ChunkSetup<'_>, seed: u64, numbers: Range<usize>) -> Outcome<ChunkResult> {
    let setup = setup::generate_setup(seed, numbers.start / CHUNK);
    let cases: Vec<MergeCase> = numbers.clone().map(|n| generate_merge(seed, n)).collect();
    import::init(chunk.dir, &setup)?;
    let merges = import::import_histories(chunk.dir, &setup, &cases)?;
    if setup.has_commit_graph {
        git::write_commit_graph(chunk.dir, merges.iter().flat_map(|(ours, theirs)| [*ours, *theirs]))?;
    }
    let judge = GitOracle::new(chunk.dir);
    let verdicts = judge.verdicts(&merges)?;
    let probe = Probe::open(chunk.dir, &chunk.dir.join("scratch")).map_err(|e| e.to_string())?;
    let mut result = ChunkResult::default();
    for (((number, case), (ours, theirs)), verdict) in numbers.zip(&cases).zip(merges).zip(&verdicts) {
        let exact = probe.merge_in_process(ours, theirs);
        result.tally.count(case.kind, matches!(exact, Ok(Some(_))), verdict);
        let mut wrong = match exact {
            Ok(exact) => compare_exact(exact, verdict),
            Err(e) => Some(format!("in process: {e}")),
        };
        if wrong.is_none() && number.is_multiple_of(chunk.whole) {
            result.tally.whole += 1;
            wrong = compare_with_files(chunk.dir, &probe, case, ours, theirs)?;
        }
        if let Some(wrong) = wrong {
            let what = format!("{wrong}\n  {}, ours {ours}, theirs {theirs}", case.kind);
            result.differences.push((number, format!("{what}\n  {}", case.log.join("\n  "))));
        }
    }
    Ok(result)
}

impl Tally {
    /// Counts one merge.
    pub(crate) fn count(&mut self, kind: &'static str, exact: bool, verdict: &GitVerdict) {
        self.merges += 1;
        self.exact += usize::from(exact);
        let kind = self.kinds.entry(kind).or_default();
        kind[0] += 1;
        kind[1] += usize::from(exact);
        match verdict {
            GitVerdict::Clean(_) => self.clean += 1,
            GitVerdict::Conflict(..) => self.conflicts += 1,
            GitVerdict::Refused(_) => self.refused += 1,
            GitVerdict::Unknown(words) => {
                self.unknown += 1;
                *self.words.entry(words.clone()).or_default() += 1;
            }
        }
    }
}

/// Describes how a merge in process differs from git's. No answer in process is never wrong.
pub(crate) fn compare_exact(exact: Option<TreeId>, verdict: &GitVerdict) -> Option<String> {
    let exact = exact?.to_string();
    match verdict {
        GitVerdict::Clean(tree) if *tree != exact => {
            Some(format!("in process it is tree {exact}, by git {tree}"))
        }
        GitVerdict::Conflict(..) => Some(format!("in process it is clean, tree {exact}; git conflicts")),
        GitVerdict::Refused(words) => {
            Some(format!("in process it is clean, tree {exact}; git refuses it: {words}"))
        }
        GitVerdict::Clean(_) | GitVerdict::Unknown(_) => None,
    }
}

/// Describes how the result of the full engine differs from git's.
pub(crate) fn compare_answer(
    probe: &Probe,
    ours: CommitId,
    theirs: CommitId,
    verdict: &GitVerdict,
) -> Option<String> {
    let engine = match probe.merge(ours, theirs) {
        Ok(answer) if answer.is_clean => GitVerdict::Clean(answer.tree.to_string()),
        Ok(answer) => {
            let paths = answer.conflicted_paths.iter().map(|p| p.as_bytes().to_vec()).collect();
            GitVerdict::Conflict(answer.tree.to_string(), paths)
        }
        Err(e) => GitVerdict::Refused(e.to_string()),
    };
    let same = match (&engine, verdict) {
        // The engine may have an answer in process where git has none.
        (_, GitVerdict::Unknown(_)) | (GitVerdict::Refused(_), GitVerdict::Refused(_)) => true,
        (GitVerdict::Conflict(_, one), GitVerdict::Conflict(_, two)) => one == two,
        (one, two) => one == two,
    };
    (!same).then(|| format!("the engine says {engine:?}, git {verdict:?}"))
}

/// Compares the full engine with git where git reads our side's attributes from files, as in a checkout, and
/// not from `--attr-source`.
fn compare_with_files(
    dir: &Path,
    probe: &Probe,
    case: &MergeCase,
    ours: CommitId,
    theirs: CommitId,
) -> Outcome<Option<String>> {
    use std::os::unix::ffi::OsStrExt;
    let files = case.commits.get(case.ours).map(|c| &c.files);
    let mut written = Vec::new();
    let is_utf8 = |path: &Vec<u8>| std::str::from_utf8(path).is_ok();
    if !files.iter().flat_map(|f| f.iter()).all(|(p, _)| is_utf8(p) || paths::file_name(p) != ATTRIBUTES) {
        // Some file systems do not allow such names.
        return Ok(None);
    }
    for (path, file) in files.iter().flat_map(|f| f.iter()) {
        if paths::file_name(path) == ATTRIBUTES {
            let folder = std::ffi::OsStr::from_bytes(paths::parent(path));
            let top =
                dir.join(std::ffi::OsStr::from_bytes(path.split(|b| *b == b'/').next().unwrap_or(path)));
            std::fs::create_dir_all(dir.join(folder))?;
            std::fs::write(dir.join(std::ffi::OsStr::from_bytes(path)), &file.content)?;
            written.push(top);
        }
    }
    let verdict = GitOracle::new(dir).verdict(&[], ours, theirs)?;
    for top in written {
        if top.is_dir() {
            std::fs::remove_dir_all(top)?;
        } else if top.exists() {
            std::fs::remove_file(top)?;
        }
    }
    Ok(compare_answer(probe, ours, theirs, &verdict))
}
