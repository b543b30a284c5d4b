//! Owns the order in which lanes are stacked: the one in which most of them land, then the fewest changed files first, then
//! the oldest first.

use std::cmp::Reverse;

/// In which order lanes are stacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Order {
    /// So that most of them land.
    #[default]
    Best,
    /// As they were named; with `--all`, the oldest first.
    Given,
    /// The fewest changed files first.
    FewestFiles,
    /// The oldest first.
    Oldest,
}

impl Order {
    /// The order of this name.
    pub(crate) fn named(name: &str) -> Option<Order> {
        match name {
            "best" => Some(Order::Best),
            "given" => Some(Order::Given),
            "fewest-files" => Some(Order::FewestFiles),
            "oldest" => Some(Order::Oldest),
            _ => None,
        }
    }
}

/// What the order of a lane depends on. Its age is its place among the lanes as they are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Weight {
    /// How often a conflict kept it from landing: nobody waits for ever.
    pub(super) waited: u32,
    /// How many files it changes.
    pub(super) files: usize,
}

/// How many lanes are ordered by trying all sets of them.
const EXACT: usize = 12;

/// The lanes by weight: who waited longest first, then the fewest files, then as given.
pub(super) fn by_weight(weights: &[Weight]) -> Vec<usize> {
    let mut all: Vec<usize> = (0..weights.len()).collect();
    all.sort_by_key(|n| (Reverse(weights[*n].waited), weights[*n].files, *n));
    all
}

/// The order in which most lanes land: a largest set of lanes of which no two conflict comes first, the others follow,
/// both by weight. Of several such sets the one that comes first by weight is taken. `conflicts` says whether two lanes
/// conflict, and of one lane twice, whether it conflicts with the base.
///
/// Exact for up to twelve lanes, by all sets of them; beyond that, the lane with the fewest conflicts left is taken again
/// and again, and those that it conflicts with are put behind.
pub(super) fn best(weights: &[Weight], conflicts: &dyn Fn(usize, usize) -> bool) -> Vec<usize> {
    let lanes = by_weight(weights);
    let able: Vec<usize> = lanes.iter().copied().filter(|n| !conflicts(*n, *n)).collect();
    let landing = if able.len() <= EXACT { exact(&able, conflicts) } else { greedy(&able, conflicts) };
    let (mut first, rest): (Vec<usize>, Vec<usize>) = lanes.into_iter().partition(|n| landing.contains(n));
    first.extend(rest);
    first
}

/// A largest set without conflicts, of those the first by the order of `lanes`.
fn exact(lanes: &[usize], conflicts: &dyn Fn(usize, usize) -> bool) -> Vec<usize> {
    let against: Vec<u32> = lanes
        .iter()
        .map(|a| {
            lanes
                .iter()
                .enumerate()
                .filter(|(_, b)| *b != a && conflicts(*a, **b))
                .fold(0, |m, (i, _)| m | 1 << i)
        })
        .collect();
    let free = |set: u32| (0..lanes.len()).all(|i| set & (1 << i) == 0 || set & against[i] == 0);
    // The earlier lane is the higher bit, so that of sets of one size the greatest number is the first by weight.
    let rank = |set: u32| (set.count_ones(), set.reverse_bits());
    let best = (0..1u32 << lanes.len()).filter(|set| free(*set)).max_by_key(|set| rank(*set)).unwrap_or(0);
    (0..lanes.len()).filter(|i| best & (1 << i) != 0).map(|i| lanes[i]).collect()
}

/// Takes the lane with the fewest conflicts left, again and again.
fn greedy(lanes: &[usize], conflicts: &dyn Fn(usize, usize) -> bool) -> Vec<usize> {
    let mut left: Vec<usize> = lanes.to_vec();
    let mut taken = Vec::new();
    while !left.is_empty() {
        let degree = |a: usize| left.iter().filter(|b| **b != a && conflicts(a, **b)).count();
        let Some(next) = left.iter().copied().min_by_key(|n| degree(*n)) else { break };
        taken.push(next);
        left.retain(|n| *n != next && !conflicts(next, *n));
    }
    taken
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn weights(files: &[usize]) -> Vec<Weight> {
        files.iter().map(|files| Weight { waited: 0, files: *files }).collect()
    }

    fn among(pairs: &[(usize, usize)]) -> impl Fn(usize, usize) -> bool + '_ {
        move |a, b| pairs.contains(&(a, b)) || pairs.contains(&(b, a))
    }

    #[test]
    fn without_conflicts_it_is_by_files_and_then_by_age() {
        assert_eq!(best(&weights(&[3, 1, 2, 1]), &among(&[])), [1, 3, 2, 0]);
    }

    #[test]
    fn one_lane_that_conflicts_with_two_comes_behind_them() {
        assert_eq!(best(&weights(&[1, 5, 5]), &among(&[(0, 1), (0, 2)])), [1, 2, 0]);
    }

    #[test]
    fn a_lane_that_conflicts_with_the_base_holds_nobody_up() {
        assert_eq!(best(&weights(&[1, 1, 1]), &among(&[(0, 0), (0, 1), (0, 2)])), [1, 2, 0]);
    }

    #[test]
    fn who_waited_goes_first_among_equals() {
        let mut all = weights(&[1, 9]);
        all[1].waited = 2;
        assert_eq!(best(&all, &among(&[(0, 1)])), [1, 0]);
    }

    #[test]
    fn a_path_of_conflicts_keeps_both_ends() {
        let chain = [(0, 1), (1, 2), (2, 3), (3, 4)];
        assert_eq!(best(&weights(&[1; 5]), &among(&chain)), [0, 2, 4, 1, 3]);
    }

    proptest! {
        #[test]
        fn no_order_lands_more_than_the_exact_one_and_the_greedy_one_has_no_conflict(
            count in 2usize..9,
            pairs in proptest::collection::btree_set((0usize..9, 0usize..9), 0..16),
        ) {
            let pairs: Vec<(usize, usize)> = pairs.into_iter().filter(|(a, b)| a != b).collect();
            let hit = among(&pairs);
            let fits = |set: &[usize]| set.iter().all(|a| set.iter().all(|b| a == b || !hit(*a, *b)));
            let lanes: Vec<usize> = (0..count).collect();
            let most = exact(&lanes, &hit);
            prop_assert!(fits(&most));
            for set in 0..1u32 << count {
                let set: Vec<usize> = lanes.iter().copied().filter(|i| set & (1 << i) != 0).collect();
                prop_assert!(!fits(&set) || set.len() <= most.len());
            }
            let some = greedy(&lanes, &hit);
            prop_assert!(fits(&some));
            prop_assert!(lanes.iter().all(|n| some.contains(n) || some.iter().any(|s| hit(*s, *n))));
        }
    }
}
