//! Minimizer of failing histories: leaves out steps and edits one by one while the history still fails.

use super::Outcome;
use super::runner::{Fault, run_history};
use super::step::Step;
use super::test_bench::TestBench;

/// Returns the shortest failing history that was found, and its fault.
pub(crate) fn shrink(bench: &mut TestBench, steps: &[Step], fault: Fault) -> Outcome<(Vec<Step>, Fault)> {
    let mut best = steps.to_vec();
    let mut last = fault;
    best.truncate(last.step + 1);
    loop {
        let mut smaller = false;
        let mut n = best.len();
        while n > 0 {
            n -= 1;
            for smaller_history in smaller_histories(&best, n) {
                if let Some(fault) = run_history(bench, &smaller_history)? {
                    best = smaller_history;
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

/// Returns the history without its `n`-th step, and without each edit of that step.
fn smaller_histories(steps: &[Step], n: usize) -> Vec<Vec<Step>> {
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
