//! Generation of one merge: a history, and the two of its commits that are merged.

use fastrand::Rng;

use super::super::dice;
use super::paths::{escaped, is_below};
use super::side_edits::SideEditor;
use super::tree::Files;

/// Commit of a generated history.
#[derive(Debug)]
pub(super) struct Commit {
    /// Numbers of its parents in the history; all of them come before it.
    pub(super) parents: Vec<usize>,
    /// Files of its tree.
    pub(super) files: Files,
    /// Commit time in minutes; clocks may be wrong.
    pub(super) time: usize,
}

/// History, and the two commits that are merged in it.
#[derive(Debug)]
pub(super) struct MergeCase {
    /// Kind of history.
    pub(super) kind: &'static str,
    /// All commits.
    pub(super) commits: Vec<Commit>,
    /// Number of the commit that is merged into.
    pub(super) ours: usize,
    /// Number of the commit that is merged.
    pub(super) theirs: usize,
    /// Description of the edits, for the reader of a failure.
    pub(super) log: Vec<String>,
}

/// Generates the merge with this number. It is the same each time.
pub(super) fn generate_merge(seed: u64, number: usize) -> MergeCase {
    let mut rng = dice::seeded(seed, &format!("merge {number}"));
    let mut builder =
        HistoryBuilder { commits: Vec::new(), log: Vec::new(), has_wrong_clocks: rng.usize(..3) == 0 };
    let (kind, [ours, theirs]) = match rng.usize(..40) {
        0 => ("fast-forward", builder.fast_forward_history(&mut rng)),
        1 => ("unrelated", builder.unrelated_histories(&mut rng)),
        2..=5 => ("criss-cross", builder.criss_cross_history(&mut rng)),
        6..=9 => ("graph", builder.random_graph(&mut rng)),
        10..=13 => ("long", builder.long_history(&mut rng)),
        _ => ("plain", builder.plain_history(&mut rng)),
    };
    let is_swapped = rng.usize(..2) == 0;
    let (ours, theirs) = if is_swapped { (theirs, ours) } else { (ours, theirs) };
    MergeCase { kind, commits: builder.commits, ours, theirs, log: builder.log }
}

struct HistoryBuilder {
    commits: Vec<Commit>,
    log: Vec<String>,
    has_wrong_clocks: bool,
}

impl HistoryBuilder {
    fn add_commit(&mut self, parents: &[usize], files: Files, rng: &mut Rng) -> usize {
        let number = self.commits.len();
        let time = if self.has_wrong_clocks { rng.usize(..12) } else { number };
        self.log.push(format!("-- commit {number}, parents {parents:?}, time {time}"));
        self.commits.push(Commit { parents: parents.to_vec(), files, time });
        number
    }

    fn add_root(&mut self, rng: &mut Rng) -> usize {
        let files = SideEditor::random_tree(rng, &mut self.log);
        self.add_commit(&[], files, rng)
    }

    fn files(&self, commit: usize) -> Files {
        self.commits.get(commit).map(|c| c.files.clone()).unwrap_or_default()
    }

    /// Edits a commit's files without committing them.
    fn edit_files(
        &mut self,
        files: Files,
        aims: &[Vec<u8>],
        times: usize,
        rng: &mut Rng,
    ) -> (Files, Vec<Vec<u8>>) {
        SideEditor::new(files, aims, rng, &mut self.log).edit_times(times)
    }

    fn add_child(&mut self, parent: usize, rng: &mut Rng) -> usize {
        let times = 1 + rng.usize(..2);
        let (files, _) = self.edit_files(self.files(parent), &[], times, rng);
        self.add_commit(&[parent], files, rng)
    }

    /// Returns the trees of two sides: common edits, own edits, and often edits at the same paths.
    fn edit_both_sides(&mut self, base: usize, rng: &mut Rng) -> [Files; 2] {
        let mut common = self.files(base);
        if rng.usize(..4) == 0 {
            self.log.push("both sides:".into());
            let times = 1 + rng.usize(..2);
            (common, _) = self.edit_files(common, &[], times, rng);
        }
        let (mut ours, mut theirs) = (common.clone(), common);
        if rng.usize(..10) == 0 {
            self.empty_a_folder(&mut ours, &mut theirs, rng);
        }
        self.log.push("one side:".into());
        let times = 1 + rng.usize(..3);
        let (ours, touched) = self.edit_files(ours, &[], times, rng);
        let near = rng.usize(..2) == 0;
        self.log.push("other side:".into());
        let times = 1 + rng.usize(..3);
        let (theirs, _) = self.edit_files(theirs, if near { &touched } else { &[] }, times, rng);
        [ours, theirs]
    }

    /// Each side removes a part of a folder, so that the merged folder is empty.
    fn empty_a_folder(&mut self, ours: &mut Files, theirs: &mut Files, rng: &mut Rng) {
        let folders = ours.folders();
        let Some(folder) = rng.choice(&folders) else { return };
        self.log.push(format!("both empty '{}'", escaped(folder)));
        for (path, _) in ours.below(folder) {
            let side = if rng.usize(..2) == 0 { &mut *ours } else { &mut *theirs };
            side.remove(&path);
        }
    }

    fn plain_history(&mut self, rng: &mut Rng) -> [usize; 2] {
        let base = self.add_root(rng);
        self.edit_both_sides(base, rng).map(|files| self.add_commit(&[base], files, rng))
    }

    fn long_history(&mut self, rng: &mut Rng) -> [usize; 2] {
        let root = self.add_root(rng);
        let base = self.add_child(root, rng);
        self.edit_both_sides(base, rng).map(|files| {
            let mut tip = self.add_commit(&[base], files, rng);
            for _ in 0..rng.usize(..3) {
                tip = self.add_child(tip, rng);
            }
            tip
        })
    }

    fn fast_forward_history(&mut self, rng: &mut Rng) -> [usize; 2] {
        let base = self.add_root(rng);
        let mut tip = base;
        for _ in 0..rng.usize(..4) {
            tip = self.add_child(tip, rng);
        }
        [base, tip]
    }

    fn unrelated_histories(&mut self, rng: &mut Rng) -> [usize; 2] {
        let one = self.add_root(rng);
        let (files, _) = self.edit_files(self.files(one), &[], 2, rng);
        [one, self.add_commit(&[], files, rng)]
    }

    /// Two branches merged into each other in two ways, so that there are two merge bases.
    fn criss_cross_history(&mut self, rng: &mut Rng) -> [usize; 2] {
        let base = self.add_root(rng);
        let [one, two] = self.edit_both_sides(base, rng).map(|files| self.add_commit(&[base], files, rng));
        [[one, two], [two, one]].map(|parents| {
            let files = self.merge_by_hand(base, parents, rng);
            let times = rng.usize(..3);
            let (files, _) = self.edit_files(files, &[], times, rng);
            self.add_commit(&parents, files, rng)
        })
    }

    /// Random history of a few commits and merges; the last two commits are merged.
    fn random_graph(&mut self, rng: &mut Rng) -> [usize; 2] {
        let root = self.add_root(rng);
        let mut last = [root; 2];
        for _ in 0..4 + rng.usize(..6) {
            let recent = |rng: &mut Rng, len: usize| len - 1 - rng.usize(..len.min(4));
            let one = recent(rng, self.commits.len());
            let two = recent(rng, self.commits.len());
            let next = if one == two || rng.usize(..2) == 0 {
                self.add_child(one, rng)
            } else {
                let files = self.merge_by_hand(root, [one, two], rng);
                self.add_commit(&[one, two], files, rng)
            };
            last = [last[1], next];
        }
        last
    }

    /// Merge as users make it: mostly what either side changed, and sometimes only one side's change.
    fn merge_by_hand(&self, base: usize, sides: [usize; 2], rng: &mut Rng) -> Files {
        let base = self.files(base);
        let [one, two] = sides.map(|side| self.files(side));
        let mut out = Files::default();
        let mut paths = [one.paths(), two.paths()].concat();
        paths.sort_unstable();
        paths.dedup();
        for path in paths {
            let [b, o, t] = [&base, &one, &two].map(|files| files.get(&path).cloned());
            let wanted = match rng.usize(..8) {
                0 => o,
                1 => t,
                _ if o == b => t,
                _ => o,
            };
            // What blocks an existing path is left out.
            let is_free = !out.paths().iter().any(|p| is_below(&path, p) || is_below(p, &path));
            if let Some(file) = wanted.filter(|_| is_free) {
                out.insert(&path, file);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_generates_same_merge() {
        let described = |number| format!("{:?}", generate_merge(5, number));
        assert_eq!(described(3), described(3));
        assert_ne!(described(3), described(4));
    }
}
