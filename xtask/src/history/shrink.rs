//! Owns making a failing history short: steps and edits are left out one after the other while it still fails.

use super::Outcome;
use super::bench::Bench;
use super::play::{Fault, play};
use super::step::Step;

/// The shortest history that was found to fail, and how it fails.
pub(crate) fn shrink(bench: &mut Bench, steps: &[Step], fault: Fault) -> Outcome<(Vec<Step>, Fault)> {
    let mut best = steps.to_vec();
    let mut last = fault;
    best.truncate(last.step + 1);
    loop {
        let mut smaller = false;
        let mut n = best.len();
        while n > 0 {
            n -= 1;
            for less in variants(&best, n) {
                if let Some(fault) = play(bench, &less)? {
                    best = less;
                    best.truncate(fault.step + 1);
                    last = fault;
                    smaller = true;
                    n = n.min(best.len());
                    break;
                }
            }
        }
        if !smaller {
            return Ok((best, last));
        }
    }
}

/// The history without its `n`-th step, and without each edit of that step.
fn variants(steps: &[Step], n: usize) -> Vec<Vec<Step>> {
    let without: Vec<Step> =
        steps.iter().enumerate().filter(|(i, _)| *i != n).map(|(_, s)| s.clone()).collect();
    let mut out = vec![without];
    let edits = match steps.get(n) {
        Some(Step::Edit { edits, .. } | Step::Commit { edits, .. }) if edits.len() > 1 => edits.clone(),
        _ => Vec::new(),
    };
    for skip in 0..edits.len() {
        let mut fewer = edits.clone();
        fewer.remove(skip);
        let step = match steps.get(n).cloned() {
            Some(Step::Edit { at, .. }) => Step::Edit { at, edits: fewer },
            Some(Step::Commit { at, amend, .. }) => Step::Commit { at, edits: fewer, amend },
            _ => continue,
        };
        let mut all = steps.to_vec();
        all[n] = step;
        out.push(all);
    }
    out
}
