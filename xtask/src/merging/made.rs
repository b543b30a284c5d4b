//! Owns one made-up merge: a history, and which two of its commits are merged.

use super::super::dice::Dice;
use super::change::Side;
use super::files::Files;
use super::names::{is_below, shown};

/// A commit that is made up.
#[derive(Debug)]
pub(super) struct Commit {
    /// Its parents, by their number in the history; all of them come before it.
    pub(super) parents: Vec<usize>,
    /// Its files.
    pub(super) files: Files,
    /// Its time; clocks go wrong.
    pub(super) time: usize,
}

/// A history, and what is merged in it.
#[derive(Debug)]
pub(super) struct Made {
    /// What kind of history it is.
    pub(super) kind: &'static str,
    /// All commits.
    pub(super) commits: Vec<Commit>,
    /// The number of the one that is merged into.
    pub(super) ours: usize,
    /// The number of the one that is merged.
    pub(super) theirs: usize,
    /// What was done, for people.
    pub(super) story: Vec<String>,
}

/// Makes up the merge of this number; the same one each time.
pub(super) fn make(seed: u64, number: usize) -> Made {
    let mut dice = Dice::new(seed, &format!("merge {number}"));
    let mut making = Making { commits: Vec::new(), story: Vec::new(), wrong_clocks: dice.below(3) == 0 };
    let (kind, [ours, theirs]) = match dice.below(40) {
        0 => ("fast-forward", making.fast_forward(&mut dice)),
        1 => ("unrelated", making.unrelated(&mut dice)),
        2..=5 => ("criss-cross", making.criss_cross(&mut dice)),
        6..=9 => ("graph", making.graph(&mut dice)),
        10..=13 => ("long", making.long(&mut dice)),
        _ => ("plain", making.plain(&mut dice)),
    };
    let turned = dice.below(2) == 0;
    let (ours, theirs) = if turned { (theirs, ours) } else { (ours, theirs) };
    Made { kind, commits: making.commits, ours, theirs, story: making.story }
}

struct Making {
    commits: Vec<Commit>,
    story: Vec<String>,
    wrong_clocks: bool,
}

impl Making {
    fn commit(&mut self, parents: &[usize], files: Files, dice: &mut Dice) -> usize {
        let number = self.commits.len();
        let time = if self.wrong_clocks { dice.below(12) } else { number };
        self.story.push(format!("-- commit {number}, parents {parents:?}, time {time}"));
        self.commits.push(Commit { parents: parents.to_vec(), files, time });
        number
    }

    fn root(&mut self, dice: &mut Dice) -> usize {
        let files = Side::first_tree(dice, &mut self.story);
        self.commit(&[], files, dice)
    }

    fn files(&self, commit: usize) -> Files {
        self.commits.get(commit).map(|c| c.files.clone()).unwrap_or_default()
    }

    /// Changes made to a commit's files, without a commit yet.
    fn changed(
        &mut self,
        files: Files,
        aims: &[Vec<u8>],
        times: usize,
        dice: &mut Dice,
    ) -> (Files, Vec<Vec<u8>>) {
        Side::new(files, aims, dice, &mut self.story).change(times)
    }

    fn child(&mut self, parent: usize, dice: &mut Dice) -> usize {
        let times = 1 + dice.below(2);
        let (files, _) = self.changed(self.files(parent), &[], times, dice);
        self.commit(&[parent], files, dice)
    }

    /// What two sides do to one tree: something alike, something apart, and often one where the other was.
    fn two_sides(&mut self, base: usize, dice: &mut Dice) -> [Files; 2] {
        let mut common = self.files(base);
        if dice.below(4) == 0 {
            self.story.push("both sides:".into());
            let times = 1 + dice.below(2);
            (common, _) = self.changed(common, &[], times, dice);
        }
        let (mut ours, mut theirs) = (common.clone(), common);
        if dice.below(10) == 0 {
            self.empty_a_folder(&mut ours, &mut theirs, dice);
        }
        self.story.push("one side:".into());
        let times = 1 + dice.below(3);
        let (ours, touched) = self.changed(ours, &[], times, dice);
        let near = dice.below(2) == 0;
        self.story.push("other side:".into());
        let times = 1 + dice.below(3);
        let (theirs, _) = self.changed(theirs, if near { &touched } else { &[] }, times, dice);
        [ours, theirs]
    }

    /// Each side removes a part of a folder, so that nothing is left in it.
    fn empty_a_folder(&mut self, ours: &mut Files, theirs: &mut Files, dice: &mut Dice) {
        let folders = ours.folders();
        let Some(folder) = folders.get(dice.below(folders.len())) else { return };
        self.story.push(format!("both empty '{}'", shown(folder)));
        for (path, _) in ours.below(folder) {
            let side = if dice.below(2) == 0 { &mut *ours } else { &mut *theirs };
            side.remove(&path);
        }
    }

    fn plain(&mut self, dice: &mut Dice) -> [usize; 2] {
        let base = self.root(dice);
        self.two_sides(base, dice).map(|files| self.commit(&[base], files, dice))
    }

    fn long(&mut self, dice: &mut Dice) -> [usize; 2] {
        let root = self.root(dice);
        let base = self.child(root, dice);
        self.two_sides(base, dice).map(|files| {
            let mut tip = self.commit(&[base], files, dice);
            for _ in 0..dice.below(3) {
                tip = self.child(tip, dice);
            }
            tip
        })
    }

    fn fast_forward(&mut self, dice: &mut Dice) -> [usize; 2] {
        let base = self.root(dice);
        let mut tip = base;
        for _ in 0..dice.below(4) {
            tip = self.child(tip, dice);
        }
        [base, tip]
    }

    fn unrelated(&mut self, dice: &mut Dice) -> [usize; 2] {
        let one = self.root(dice);
        let (files, _) = self.changed(self.files(one), &[], 2, dice);
        [one, self.commit(&[], files, dice)]
    }

    /// Two branches that were each merged into the other, in two ways: two merge bases.
    fn criss_cross(&mut self, dice: &mut Dice) -> [usize; 2] {
        let base = self.root(dice);
        let [one, two] = self.two_sides(base, dice).map(|files| self.commit(&[base], files, dice));
        [[one, two], [two, one]].map(|parents| {
            let files = self.mixed(base, parents, dice);
            let times = dice.below(3);
            let (files, _) = self.changed(files, &[], times, dice);
            self.commit(&parents, files, dice)
        })
    }

    /// Any history of a few commits and merges; the last two are merged.
    fn graph(&mut self, dice: &mut Dice) -> [usize; 2] {
        let root = self.root(dice);
        let mut last = [root; 2];
        for _ in 0..4 + dice.below(6) {
            let some = |dice: &mut Dice, len: usize| len - 1 - dice.below(len.min(4));
            let one = some(dice, self.commits.len());
            let two = some(dice, self.commits.len());
            let next = if one == two || dice.below(2) == 0 {
                self.child(one, dice)
            } else {
                let files = self.mixed(root, [one, two], dice);
                self.commit(&[one, two], files, dice)
            };
            last = [last[1], next];
        }
        last
    }

    /// A merge as people make them: what either side changed, mostly, and now and then only what one of them did.
    fn mixed(&self, base: usize, sides: [usize; 2], dice: &mut Dice) -> Files {
        let base = self.files(base);
        let [one, two] = sides.map(|side| self.files(side));
        let mut out = Files::default();
        let mut paths = [one.paths(), two.paths()].concat();
        paths.sort_unstable();
        paths.dedup();
        for path in paths {
            let [b, o, t] = [&base, &one, &two].map(|files| files.get(&path).cloned());
            let wanted = match dice.below(8) {
                0 => o,
                1 => t,
                _ if o == b => t,
                _ => o,
            };
            // What stands in the way of something that is there already stays out.
            let free = !out.paths().iter().any(|p| is_below(&path, p) || is_below(p, &path));
            if let Some(file) = wanted.filter(|_| free) {
                out.put(&path, file);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_is_the_same_each_time() {
        let told = |number| format!("{:?}", make(5, number));
        assert_eq!(told(3), told(3));
        assert_ne!(told(3), told(4));
    }
}
