//! Order in which lanes are stacked: finds the order in which most lanes land, and explains a deviation from
//! the default.

use std::collections::BTreeMap;

use proq_base::lane_name::LaneName;
use proq_git::CommitId;
use proq_git::merge::tree_merge;
use proq_git::repository::objects::TempObjectStore;
use proq_store::paths::layout::Layout;

use super::apply::StackContext;
use super::lane_stack::Stack;
use super::order;
use super::order::LaneWeight;
use crate::merge::Error;
use crate::merge::types::candidate::Candidate;
use crate::merge::types::options::StackOrder;

/// Lanes stacked on a base in the chosen order.
#[derive(Debug)]
pub(crate) struct OrderedStack {
    pub stack: Stack,
    /// Lanes in the order in which they were stacked, including those that conflict.
    pub lanes: Vec<Candidate>,
    /// Reasons for an order other than by size and age; empty for the default order.
    pub order_notes: Vec<String>,
}

/// Stacks the candidates on `base` in the requested order. With [`StackOrder::Best`], when lanes conflict, it
/// searches for the order in which most of them land.
pub(crate) fn build_ordered(
    context: StackContext<'_>,
    base: CommitId,
    candidates: &[Candidate],
    order: StackOrder,
) -> Result<OrderedStack, Error> {
    let weights: Vec<LaneWeight> = candidates
        .iter()
        .map(|c| LaneWeight { conflicted_landings: c.conflicted_landings, file_count: c.files })
        .collect();
    let default_order = match order {
        StackOrder::Best => order::sort_by_weight(&weights),
        StackOrder::Given => (0..candidates.len()).collect(),
        StackOrder::FewestFiles => sorted_indexes(candidates, |c| (c.files, c.lane.created)),
        StackOrder::Oldest => sorted_indexes(candidates, |c| (0, c.lane.created)),
    };
    let lanes = reorder_candidates(candidates, &default_order);
    let stack = Stack::build(context, base, &lanes)?;
    let without_notes = |stack| Ok(OrderedStack { stack, lanes, order_notes: Vec::new() });
    if order != StackOrder::Best || stack.conflicts.is_empty() || candidates.len() < 2 {
        return without_notes(stack);
    }
    let conflicts = conflict_matrix(context, base, candidates)?;
    let is_conflict = |a: usize, b: usize| conflicts[&(a.min(b), a.max(b))];
    let best_order = order::best_order(&weights, &is_conflict);
    if best_order == default_order {
        return without_notes(stack);
    }
    let lanes = reorder_candidates(candidates, &best_order);
    let best_stack = Stack::build(context, base, &lanes)?;
    if best_stack.conflicts.len() >= stack.conflicts.len() {
        return without_notes(stack);
    }
    let avoided = stack.conflicts.len() - best_stack.conflicts.len();
    let order_notes = explain_order(candidates, &default_order, &best_order, avoided, &is_conflict);
    Ok(OrderedStack { stack: best_stack, lanes, order_notes })
}

/// Returns the indexes of the candidates, sorted by `key`.
fn sorted_indexes<K: Ord>(candidates: &[Candidate], key: impl Fn(&Candidate) -> K) -> Vec<usize> {
    let mut indexes: Vec<usize> = (0..candidates.len()).collect();
    indexes.sort_by_key(|n| key(&candidates[*n]));
    indexes
}

/// Returns the candidates in the order of these indexes.
fn reorder_candidates(candidates: &[Candidate], order: &[usize]) -> Vec<Candidate> {
    order.iter().map(|n| candidates[*n].clone()).collect()
}

/// Returns for each pair of candidates whether they conflict. The entry `(n, n)` is the conflict of candidate
/// `n` with the base.
fn conflict_matrix(
    context: StackContext<'_>,
    base: CommitId,
    candidates: &[Candidate],
) -> Result<BTreeMap<(usize, usize), bool>, Error> {
    let repo = &context.project.repo;
    let created_store;
    let temp_objects = if let Some(aside) = context.temp_objects {
        aside
    } else {
        created_store = TempObjectStore::new(repo, &Layout::scratch_pair_objects(context.scratch))?;
        &created_store
    };
    let mut out = BTreeMap::new();
    for (b, theirs) in candidates.iter().enumerate() {
        for (a, other) in candidates.iter().enumerate().take(b + 1) {
            proq_base::interrupt::require_no_signal()?;
            let ours = if a == b { base } else { other.tip };
            // An error of git counts as a conflict here; stacking the lane reports the error.
            let is_conflict =
                tree_merge::would_conflict(repo, ours, theirs.tip, context.scratch, temp_objects)
                    .unwrap_or(true);
            out.insert((a, b), is_conflict);
        }
    }
    Ok(out)
}

/// Returns a line for each lane that was moved behind lanes it conflicts with: `b, c before a: 1 conflict
/// less`.
fn explain_order(
    candidates: &[Candidate],
    default_order: &[usize],
    best_order: &[usize],
    avoided: usize,
    is_conflict: &dyn Fn(usize, usize) -> bool,
) -> Vec<String> {
    let position = |order: &[usize], n: usize| order.iter().position(|m| *m == n);
    let name = |n: &usize| candidates[*n].lane.name.clone();
    let fewer = if avoided == 1 { "1 conflict less".to_owned() } else { format!("{avoided} conflicts less") };
    let describe_lane = |n: usize| {
        let has_moved_ahead = |m: &&usize| {
            is_conflict(n, **m)
                && position(default_order, **m) > position(default_order, n)
                && position(best_order, **m) < position(best_order, n)
        };
        let before: Vec<LaneName> = best_order.iter().filter(has_moved_ahead).map(name).collect();
        (!before.is_empty()).then(|| format!("{} before {}: {fewer}", before.join(", "), name(&n)))
    };
    best_order.iter().filter_map(|n| describe_lane(*n)).collect()
}
