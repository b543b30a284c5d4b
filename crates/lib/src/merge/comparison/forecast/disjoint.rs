//! Detection of merges whose two sides touched different paths. Most merges are of this kind, and none of
//! them needs a merge of contents.

use std::collections::HashMap;
use std::time::Instant;

use proq_git::history::touched_paths::{TouchedPaths, touched_paths};
use proq_git::merge::forecast::MergeInput;
use proq_git::repository::objects::TempObjectStore;
use proq_git::{Repo, TreeId};

use super::cache::ForecastCache;
use crate::merge::Error;

/// Minimum number of merges that a side must be part of before its touched paths are computed.
const MIN_MERGES_PER_SIDE: usize = 4;

/// Returns for each of `merges` whether its two sides touched different paths; false where that is unknown.
pub(crate) fn find_disjoint(
    repo: &Repo,
    temp_objects: Option<&TempObjectStore>,
    merges: &[MergeInput],
    deadline: Option<Instant>,
    cache: &mut ForecastCache,
) -> Result<Vec<bool>, Error> {
    let mut sides = TreeChanges::default();
    let pairs: Vec<[usize; 2]> = merges
        .iter()
        .map(|input| [input.ours, input.theirs].map(|side| sides.add(input.base, side)))
        .collect();
    let touched_sides = sides.touched_paths(repo, temp_objects, deadline, cache)?;
    let is_disjoint = |[ours, theirs]: [usize; 2]| match (&touched_sides[ours], &touched_sides[theirs]) {
        (Some(ours), Some(theirs)) => ours.is_independent_of(theirs),
        _ => false,
    };
    Ok(pairs.into_iter().map(is_disjoint).collect())
}

/// Tree of the merge base and tree of one side.
type TreeChange = (TreeId, TreeId);

/// Distinct sides of many merges, each with the number of merges that it is part of.
#[derive(Default)]
struct TreeChanges {
    /// Position of each side in `merge_counts`.
    positions: HashMap<TreeChange, usize>,
    /// Each side with the number of merges that it is part of.
    merge_counts: Vec<(TreeChange, usize)>,
}

impl TreeChanges {
    /// Counts a side, and returns its position in the list.
    fn add(&mut self, base: TreeId, tree: TreeId) -> usize {
        let next = self.merge_counts.len();
        let position = *self.positions.entry((base, tree)).or_insert(next);
        if position == next {
            self.merge_counts.push(((base, tree), 0));
        }
        self.merge_counts[position].1 += 1;
        position
    }

    /// Returns the paths that each side touched, from the cache where possible. None for sides that are part
    /// of fewer than [`MIN_MERGES_PER_SIDE`] merges.
    fn touched_paths(
        &self,
        repo: &Repo,
        temp_objects: Option<&TempObjectStore>,
        deadline: Option<Instant>,
        cache: &mut ForecastCache,
    ) -> Result<Vec<Option<TouchedPaths>>, Error> {
        let mut out = vec![None; self.merge_counts.len()];
        let mut missing = Vec::new();
        for (position, ((base, tree), _)) in
            self.merge_counts.iter().enumerate().filter(|(_, (_, uses))| *uses >= MIN_MERGES_PER_SIDE)
        {
            let key = repo.fingerprint(&[b"touched", base.as_bytes(), tree.as_bytes()])?;
            out[position] = cache.find_line(key).and_then(TouchedPaths::from_cache_line);
            if out[position].is_none() {
                missing.push((position, key, (*base, *tree)));
            }
        }
        let sides: Vec<TreeChange> = missing.iter().map(|(.., side)| *side).collect();
        for ((position, key, _), touched) in
            missing.into_iter().zip(touched_paths(repo, temp_objects, &sides, deadline)?)
        {
            if let Some(line) = touched.as_ref().and_then(TouchedPaths::to_cache_line) {
                cache.add_line(key, line);
            }
            out[position] = touched;
        }
        Ok(out)
    }
}
