//! Owns holding the merge engine against git: a row of made-up merges in one repository, each difference told.

use std::collections::BTreeMap;
use std::ops::{AddAssign, Range};
use std::path::Path;

use git_proq::Oid;
use git_proq::probe::Probe;

use super::git::{self, Judge, Said};
use super::made::{Made, make};
use super::setup::{self, ATTRIBUTES};
use super::{Outcome, import, names};

/// How many merges share one repository, and with it its set-up.
pub(crate) const CHUNK: usize = 200;

/// Where a row of merges is made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// The folder of the repository, which is not there yet.
    pub(crate) dir: &'a Path,
    /// Of so many merges one is also put to the whole engine.
    pub(crate) whole: usize,
}

/// What was counted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    /// All merges.
    pub(crate) merges: usize,
    /// Those that were merged in process.
    pub(crate) exact: usize,
    /// Those that git merges.
    pub(crate) clean: usize,
    /// Those that conflict.
    pub(crate) conflicts: usize,
    /// Those that git refuses.
    pub(crate) refused: usize,
    /// Those with which git did not come to an end.
    pub(crate) unknown: usize,
    /// In which words, and how often.
    pub(crate) words: BTreeMap<String, usize>,
    /// Those that were put to the whole engine.
    pub(crate) whole: usize,
    /// All merges, and those merged in process, by kind of history.
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

/// What came of a row of merges.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The numbers.
    pub(crate) tally: Tally,
    /// The number of each merge that differs, and in what.
    pub(crate) differences: Vec<(usize, String)>,
}

/// Makes up these merges, which are all of one chunk, and compares.
pub(crate) fn hold(place: Place<'_>, seed: u64, numbers: Range<usize>) -> Outcome<Found> {
    let setup = setup::choose(seed, numbers.start / CHUNK);
    let made: Vec<Made> = numbers.clone().map(|n| make(seed, n)).collect();
    import::init(place.dir, &setup)?;
    let merges = import::import(place.dir, &setup, &made)?;
    if setup.graph {
        git::write_graph(place.dir, merges.iter().flat_map(|(ours, theirs)| [*ours, *theirs]))?;
    }
    let judge = Judge::new(place.dir);
    let said = judge.all(&merges)?;
    let probe = Probe::open(place.dir, &place.dir.join("scratch")).map_err(|e| e.to_string())?;
    let mut found = Found::default();
    for (((number, made), (ours, theirs)), said) in numbers.zip(&made).zip(merges).zip(&said) {
        let exact = probe.exact(ours, theirs);
        found.tally.count(made.kind, matches!(exact, Ok(Some(_))), said);
        let mut wrong = match exact {
            Ok(exact) => compare_exact(exact, said),
            Err(e) => Some(format!("in process: {e}")),
        };
        if wrong.is_none() && number.is_multiple_of(place.whole) {
            found.tally.whole += 1;
            wrong = compare_whole(place.dir, &probe, made, ours, theirs)?;
        }
        if let Some(wrong) = wrong {
            let what = format!("{wrong}\n  {}, ours {ours}, theirs {theirs}", made.kind);
            found.differences.push((number, format!("{what}\n  {}", made.story.join("\n  "))));
        }
    }
    Ok(found)
}

impl Tally {
    /// Counts one more.
    pub(crate) fn count(&mut self, kind: &'static str, exact: bool, said: &Said) {
        self.merges += 1;
        self.exact += usize::from(exact);
        let kind = self.kinds.entry(kind).or_default();
        kind[0] += 1;
        kind[1] += usize::from(exact);
        match said {
            Said::Clean(_) => self.clean += 1,
            Said::Conflict(..) => self.conflicts += 1,
            Said::Refused(_) => self.refused += 1,
            Said::Unknown(words) => {
                self.unknown += 1;
                *self.words.entry(words.clone()).or_default() += 1;
            }
        }
    }
}

/// In what a merge in process differs from git's. No answer is never wrong.
pub(crate) fn compare_exact(exact: Option<Oid>, said: &Said) -> Option<String> {
    let exact = exact?.to_string();
    match said {
        Said::Clean(tree) if *tree != exact => Some(format!("in process it is tree {exact}, by git {tree}")),
        Said::Conflict(..) => Some(format!("in process it is clean, tree {exact}; git conflicts")),
        Said::Refused(words) => {
            Some(format!("in process it is clean, tree {exact}; git refuses it: {words}"))
        }
        Said::Clean(_) | Said::Unknown(_) => None,
    }
}

/// In what the answer of the whole engine differs from git's.
pub(crate) fn compare_answer(probe: &Probe, ours: Oid, theirs: Oid, said: &Said) -> Option<String> {
    let engine = match probe.merge(ours, theirs) {
        Ok(answer) if answer.clean => Said::Clean(answer.tree.to_string()),
        Ok(answer) => {
            let paths = answer.paths.iter().map(|p| p.as_bytes().to_vec()).collect();
            Said::Conflict(answer.tree.to_string(), paths)
        }
        Err(e) => Said::Refused(e.to_string()),
    };
    let same = match (&engine, said) {
        // In process there may be an answer where git has none.
        (_, Said::Unknown(_)) | (Said::Refused(_), Said::Refused(_)) => true,
        (Said::Conflict(_, one), Said::Conflict(_, two)) => one == two,
        (one, two) => one == two,
    };
    (!same).then(|| format!("the engine says {engine:?}, git {said:?}"))
}

/// The same where git finds the attributes of our side in files, as in a checkout, and not by being told where to look.
fn compare_whole(dir: &Path, probe: &Probe, made: &Made, ours: Oid, theirs: Oid) -> Outcome<Option<String>> {
    use std::os::unix::ffi::OsStrExt;
    let files = made.commits.get(made.ours).map(|c| &c.files);
    let mut laid = Vec::new();
    let in_words = |path: &Vec<u8>| std::str::from_utf8(path).is_ok();
    if !files.iter().flat_map(|f| f.iter()).all(|(p, _)| in_words(p) || names::last(p) != ATTRIBUTES) {
        // Not every file system has such names.
        return Ok(None);
    }
    for (path, file) in files.iter().flat_map(|f| f.iter()) {
        if names::last(path) == ATTRIBUTES {
            let folder = std::ffi::OsStr::from_bytes(names::parent(path));
            let top =
                dir.join(std::ffi::OsStr::from_bytes(path.split(|b| *b == b'/').next().unwrap_or(path)));
            std::fs::create_dir_all(dir.join(folder))?;
            std::fs::write(dir.join(std::ffi::OsStr::from_bytes(path)), &file.content)?;
            laid.push(top);
        }
    }
    let said = Judge::new(dir).one(&[], ours, theirs)?;
    for top in laid {
        if top.is_dir() {
            std::fs::remove_dir_all(top)?;
        } else if top.exists() {
            std::fs::remove_file(top)?;
        }
    }
    Ok(compare_answer(probe, ours, theirs, &said))
}
