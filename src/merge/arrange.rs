//! Owns finding the order in which lanes are stacked, and saying why it is that one.

use std::collections::BTreeMap;

use super::Error;
use super::order::{self, Order, Weight};
use super::request::Candidate;
use super::stack::{self, Ground, Stack};
use crate::git::{self, Oid, ThrowAway};

/// Lanes on top of a base, in the order that was found.
#[derive(Debug)]
pub(super) struct Arranged {
    /// The stack.
    pub(super) stack: Stack,
    /// The lanes in the order in which they were tried.
    pub(super) lanes: Vec<Candidate>,
    /// Why it is another order than by size and age.
    pub(super) why: Vec<String>,
}

/// Stacks the candidates on `base` in the order that is asked for. Where lanes conflict, the best order is looked for: the
/// one in which most of them land.
pub(super) fn build(
    ground: Ground<'_>,
    base: Oid,
    candidates: &[Candidate],
    order: Order,
) -> Result<Arranged, Error> {
    let weights: Vec<Weight> =
        candidates.iter().map(|c| Weight { waited: c.waited, files: c.files }).collect();
    let first = match order {
        Order::Best => order::by_weight(&weights),
        Order::Given => (0..candidates.len()).collect(),
        Order::FewestFiles => by(candidates, |c| (c.files, c.lane.created)),
        Order::Oldest => by(candidates, |c| (0, c.lane.created)),
    };
    let lanes = pick(candidates, &first);
    let stack = stack::build(ground, base, &lanes)?;
    let plain = |stack| Ok(Arranged { stack, lanes, why: Vec::new() });
    if order != Order::Best || stack.clashes.is_empty() || candidates.len() < 2 {
        return plain(stack);
    }
    let conflicts = conflicts(ground, base, candidates)?;
    let hit = |a: usize, b: usize| conflicts[&(a.min(b), a.max(b))];
    let better = order::best(&weights, &hit);
    if better == first {
        return plain(stack);
    }
    let lanes = pick(candidates, &better);
    let other = stack::build(ground, base, &lanes)?;
    if other.clashes.len() >= stack.clashes.len() {
        return plain(stack);
    }
    let less = stack.clashes.len() - other.clashes.len();
    let why = explain(candidates, &first, &better, less, &hit);
    Ok(Arranged { stack: other, lanes, why })
}

fn by<K: Ord>(candidates: &[Candidate], key: impl Fn(&Candidate) -> K) -> Vec<usize> {
    let mut all: Vec<usize> = (0..candidates.len()).collect();
    all.sort_by_key(|n| key(&candidates[*n]));
    all
}

fn pick(candidates: &[Candidate], order: &[usize]) -> Vec<Candidate> {
    order.iter().map(|n| candidates[*n].clone()).collect()
}

/// Which two lanes conflict, and which with the base: those are at `(n, n)`.
fn conflicts(
    ground: Ground<'_>,
    base: Oid,
    candidates: &[Candidate],
) -> Result<BTreeMap<(usize, usize), bool>, Error> {
    let repo = &ground.project.repo;
    let own;
    let aside = if let Some(aside) = ground.into {
        aside
    } else {
        own = ThrowAway::new(repo, &ground.scratch.join("pairs"))?;
        &own
    };
    let mut out = BTreeMap::new();
    for (b, one) in candidates.iter().enumerate() {
        for (a, two) in candidates.iter().enumerate().take(b + 1) {
            crate::interrupt::check()?;
            let with = if a == b { base } else { two.tip };
            // What git cannot merge is told where it is stacked.
            let hit = git::would_conflict(repo, with, one.tip, ground.scratch, aside).unwrap_or(true);
            out.insert((a, b), hit);
        }
    }
    Ok(out)
}

/// For each lane that came behind others which it conflicts with: `b, c before a: 1 conflict less`.
fn explain(
    candidates: &[Candidate],
    first: &[usize],
    better: &[usize],
    less: usize,
    hit: &dyn Fn(usize, usize) -> bool,
) -> Vec<String> {
    let place = |order: &[usize], n: usize| order.iter().position(|m| *m == n);
    let name = |n: &usize| candidates[*n].lane.name.clone();
    let fewer = if less == 1 { "1 conflict less".to_owned() } else { format!("{less} conflicts less") };
    let behind = |n: usize| {
        let passed = |m: &&usize| {
            hit(n, **m) && place(first, **m) > place(first, n) && place(better, **m) < place(better, n)
        };
        let before: Vec<String> = better.iter().filter(passed).map(name).collect();
        (!before.is_empty()).then(|| format!("{} before {}: {fewer}", before.join(", "), name(&n)))
    };
    better.iter().filter_map(|n| behind(*n)).collect()
}
