//! Order in which lanes are stacked: the order in which most of them land, then the fewest changed files
//! first, then the oldest first.

use std::cmp::Reverse;

/// Properties that decide a lane's position. The lane's age is its position in the given list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LaneWeight {
    /// Number of times that the lane did not land because of a conflict. Lanes with a higher number come
    /// first, so that no lane waits forever.
    pub(crate) conflicted_landings: u32,
    /// Number of changed files.
    pub file_count: usize,
}

/// Maximum number of lanes that are ordered by trying all subsets.
const MAX_LANES_EXACT: usize = 12;

/// Returns the lanes by weight: most conflicts first, then the fewest files, then as given.
pub(crate) fn sort_by_weight(weights: &[LaneWeight]) -> Vec<usize> {
    let mut indexes: Vec<usize> = (0..weights.len()).collect();
    indexes.sort_by_key(|n| (Reverse(weights[*n].conflicted_landings), weights[*n].file_count, *n));
    indexes
}

/// Returns the order in which most lanes land. A largest set of lanes without conflicts among each other
/// comes first, then the other lanes, both by weight. Of several such sets, the first by weight is taken.
/// `conflicts` returns whether two lanes conflict; with one lane twice, whether it conflicts with the base.
///
/// Exact for up to twelve lanes, by trying all subsets. Beyond that it is greedy: it repeatedly takes the
/// lane with the fewest conflicts left, and moves those that it conflicts with to the end.
pub(crate) fn best_order(weights: &[LaneWeight], conflicts: &dyn Fn(usize, usize) -> bool) -> Vec<usize> {
    let lanes = sort_by_weight(weights);
    let mergeable: Vec<usize> = lanes.iter().copied().filter(|n| !conflicts(*n, *n)).collect();
    let conflict_free = if mergeable.len() <= MAX_LANES_EXACT {
        largest_conflict_free_set(&mergeable, conflicts)
    } else {
        greedy_conflict_free_set(&mergeable, conflicts)
    };
    let (mut first, others): (Vec<usize>, Vec<usize>) =
        lanes.into_iter().partition(|n| conflict_free.contains(n));
    first.extend(others);
    first
}

/// Returns a largest set of lanes without conflicts among each other; among sets of that size, the first by
/// the order of `lanes`.
fn largest_conflict_free_set(lanes: &[usize], conflicts: &dyn Fn(usize, usize) -> bool) -> Vec<usize> {
    let conflict_masks: Vec<u32> = lanes
        .iter()
        .map(|a| {
            lanes
                .iter()
                .enumerate()
                .filter(|(_, b)| *b != a && conflicts(*a, **b))
                .fold(0, |m, (i, _)| m | 1 << i)
        })
        .collect();
    let is_conflict_free =
        |set: u32| (0..lanes.len()).all(|i| set & (1 << i) == 0 || set & conflict_masks[i] == 0);
    // The earlier lane is the higher bit, so that among sets of one size the greatest number is the first by
    // weight.
    let rank = |set: u32| (set.count_ones(), set.reverse_bits());
    let best_set = (0..1u32 << lanes.len())
        .filter(|set| is_conflict_free(*set))
        .max_by_key(|set| rank(*set))
        .unwrap_or(0);
    (0..lanes.len()).filter(|i| best_set & (1 << i) != 0).map(|i| lanes[i]).collect()
}

/// Returns a set of lanes without conflicts among each other, by repeatedly taking the lane with the fewest
/// conflicts left.
fn greedy_conflict_free_set(lanes: &[usize], conflicts: &dyn Fn(usize, usize) -> bool) -> Vec<usize> {
    let mut candidates: Vec<usize> = lanes.to_vec();
    let mut chosen = Vec::new();
    while !candidates.is_empty() {
        let degree = |a: usize| candidates.iter().filter(|b| **b != a && conflicts(a, **b)).count();
        let Some(next) = candidates.iter().copied().min_by_key(|n| degree(*n)) else { break };
        chosen.push(next);
        candidates.retain(|n| *n != next && !conflicts(next, *n));
    }
    chosen
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn weights(files: &[usize]) -> Vec<LaneWeight> {
        files.iter().map(|files| LaneWeight { conflicted_landings: 0, file_count: *files }).collect()
    }

    fn conflicts_in(pairs: &[(usize, usize)]) -> impl Fn(usize, usize) -> bool + '_ {
        move |a, b| pairs.contains(&(a, b)) || pairs.contains(&(b, a))
    }

    #[test]
    fn orders_by_files_and_age_without_conflicts() {
        assert_eq!(best_order(&weights(&[3, 1, 2, 1]), &conflicts_in(&[])), [1, 3, 2, 0]);
    }

    #[test]
    fn lane_conflicting_with_two_goes_last() {
        assert_eq!(best_order(&weights(&[1, 5, 5]), &conflicts_in(&[(0, 1), (0, 2)])), [1, 2, 0]);
    }

    #[test]
    fn lane_conflicting_with_base_goes_last() {
        assert_eq!(best_order(&weights(&[1, 1, 1]), &conflicts_in(&[(0, 0), (0, 1), (0, 2)])), [1, 2, 0]);
    }

    #[test]
    fn lane_with_most_conflicts_goes_first() {
        let mut lane_weights = weights(&[1, 9]);
        lane_weights[1].conflicted_landings = 2;
        assert_eq!(best_order(&lane_weights, &conflicts_in(&[(0, 1)])), [1, 0]);
    }

    #[test]
    fn chain_of_conflicts_lands_every_second_lane() {
        let chain = [(0, 1), (1, 2), (2, 3), (3, 4)];
        assert_eq!(best_order(&weights(&[1; 5]), &conflicts_in(&chain)), [0, 2, 4, 1, 3]);
    }

    proptest! {
        #[test]
        fn exact_order_lands_most_and_greedy_order_has_no_conflict(
            count in 2usize..9,
            pairs in proptest::collection::btree_set((0usize..9, 0usize..9), 0..16),
        ) {
            let pairs: Vec<(usize, usize)> = pairs.into_iter().filter(|(a, b)| a != b).collect();
            let hit = conflicts_in(&pairs);
            let fits = |set: &[usize]| set.iter().all(|a| set.iter().all(|b| a == b || !hit(*a, *b)));
            let lanes: Vec<usize> = (0..count).collect();
            let most = largest_conflict_free_set(&lanes, &hit);
            prop_assert!(fits(&most));
            for set in 0..1u32 << count {
                let set: Vec<usize> = lanes.iter().copied().filter(|i| set & (1 << i) != 0).collect();
                prop_assert!(!fits(&set) || set.len() <= most.len());
            }
            let some = greedy_conflict_free_set(&lanes, &hit);
            prop_assert!(fits(&some));
            prop_assert!(lanes.iter().all(|n| some.contains(n) || some.iter().any(|s| hit(*s, *n))));
        }
    }
}
