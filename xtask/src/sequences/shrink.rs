//! Minimizer of failing cases: leaves out paths, lane changes and edits while the case fails in the same way.

use super::oracle::CaseFault;
use super::runner::run_case;
use super::steps::{Case, smaller_steps as smaller_step};
use crate::sweep::Outcome;
use crate::sweep::fixture::Fixture;

/// Returns the smallest case that was found to fail in the same way, and its fault.
pub(super) fn shrink(fixture: &Fixture, case: &Case, fault: CaseFault) -> Outcome<(Case, CaseFault)> {
    let (mut best, mut last) = (case.clone(), fault);
    loop {
        let mut variants: Vec<Case> =
            best.state.smaller_states().into_iter().map(|state| Case { state, ..best.clone() }).collect();
        if best.disturbance.is_some() {
            variants.push(Case { disturbance: None, ..best.clone() });
        }
        for (n, step) in best.steps.iter().enumerate() {
            for smaller_variant in smaller_step(step) {
                let mut steps = best.steps.clone();
                steps[n] = smaller_variant;
                variants.push(Case { steps, ..best.clone() });
            }
        }
        let mut smaller = None;
        for variant in variants {
            if let Some(fault) = run_case(fixture, &variant)?.fault.filter(|fault| fault.kind == last.kind) {
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
