//! Owns making a failing case small: paths and what the lane does with them are left out while it fails in the same way.

use super::oracle::Faulty;
use super::play::play;
use super::steps::{Case, smaller as smaller_step};
use crate::sweep::Outcome;
use crate::sweep::place::Place;

/// The smallest case that was found to fail in the same way, and how it fails.
pub(super) fn shrink(place: &Place, case: &Case, fault: Faulty) -> Outcome<(Case, Faulty)> {
    let (mut best, mut last) = (case.clone(), fault);
    loop {
        let mut variants: Vec<Case> =
            best.state.smaller().into_iter().map(|state| Case { state, ..best.clone() }).collect();
        if best.disturbed.is_some() {
            variants.push(Case { disturbed: None, ..best.clone() });
        }
        for (n, step) in best.steps.iter().enumerate() {
            for less in smaller_step(step) {
                let mut steps = best.steps.clone();
                steps[n] = less;
                variants.push(Case { steps, ..best.clone() });
            }
        }
        let mut smaller = None;
        for variant in variants {
            if let Some(fault) = play(place, &variant)?.fault.filter(|fault| fault.kind == last.kind) {
                smaller = Some((variant, fault));
                break;
            }
        }
        match smaller {
            Some(found) => (best, last) = found,
            None => return Ok((best, last)),
        }
    }
}
