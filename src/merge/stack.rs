//! Owns stacking lanes on a base in memory: tip after tip, no checkout, conflicts put aside.

use std::collections::BTreeSet;
use std::path::Path;

use super::Error;
use super::fit::{self, Fit};
use super::hooks::Gate;
use super::outcome::{Outcome, Verdict};
use super::request::Candidate;
use crate::git::{Merged, Oid, ThrowAway};
use crate::lane::Project;
use crate::store::records::Strategy;

/// A lane that merged cleanly.
#[derive(Debug, Clone)]
pub(super) struct Step {
    /// The lane and the tip that was merged.
    pub(super) candidate: Candidate,
    /// The commit with which all of it is on the base.
    pub(super) commit: Oid,
    /// That commit's tree.
    pub(super) tree: Oid,
}

/// A lane that did not.
#[derive(Debug, Clone)]
pub(super) struct Clash {
    /// The lane and the tip.
    pub(super) candidate: Candidate,
    /// What it was merged into.
    pub(super) ours: Oid,
    /// The merge, with its conflicts.
    pub(super) merged: Merged,
}

/// Lanes on top of a base, in memory.
#[derive(Debug, Clone)]
pub(super) struct Stack {
    /// The branch.
    pub(super) onto: String,
    /// How the lanes' commits come to it.
    pub(super) strategy: Strategy,
    /// Its tip when the stack was made.
    pub(super) base: Oid,
    /// The lanes that merged, bottom first.
    pub(super) steps: Vec<Step>,
    /// The lanes that conflict.
    pub(super) clashes: Vec<Clash>,
    /// The lanes about which there is nothing to decide.
    pub(super) decided: Vec<Outcome>,
}

impl Stack {
    /// The commit on top.
    pub(super) fn tip(&self) -> Oid {
        self.steps.last().map_or(self.base, |step| step.commit)
    }
}

/// What lanes are stacked with.
#[derive(Clone, Copy)]
pub(super) struct Ground<'a> {
    /// The repository.
    pub(super) project: &'a Project,
    /// The branch they are to land on.
    pub(super) onto: &'a str,
    /// How their commits come to it.
    pub(super) strategy: Strategy,
    /// Whether those of the repository's hooks are asked that could refuse it.
    pub(super) hooks: bool,
    /// Whether each lane's tip has to have a good signature.
    pub(super) verify_signatures: bool,
    /// The one that sees each merge.
    pub(super) gate: &'a Gate,
    /// A folder for what is on its way.
    pub(super) scratch: &'a Path,
    /// Where new objects go if nothing is to be written to the repository.
    pub(super) into: Option<&'a ThrowAway>,
}

/// Merges the candidates, one after the other, on top of `base`. A part without one that it needs is left out.
pub(super) fn build(ground: Ground<'_>, base: Oid, candidates: &[Candidate]) -> Result<Stack, Error> {
    let onto = ground.onto;
    let mut stack = Stack {
        onto: onto.to_owned(),
        strategy: ground.strategy,
        base,
        steps: Vec::new(),
        clashes: Vec::new(),
        decided: Vec::new(),
    };
    let mut tree = ground.project.repo.tree_of(base)?;
    let mut there = BTreeSet::new();
    for candidate in candidates {
        crate::interrupt::check()?;
        if candidate.part.as_ref().is_some_and(|part| part.needs.iter().any(|key| !there.contains(key))) {
            continue;
        }
        let (ours, candidate, part) = (stack.tip(), candidate.clone(), candidate.key());
        match fit::fit(ground, (ours, tree), &candidate)? {
            Fit::Lands(commit, new) => {
                tree = new;
                there.extend(part);
                stack.steps.push(Step { candidate, commit, tree });
            }
            Fit::Nothing => {
                there.extend(part);
                let outcome = Outcome::new(&candidate.lane.name, onto, Verdict::AlreadyLanded);
                stack.decided.push(Outcome { part, ..outcome });
            }
            Fit::Clash(merged) => stack.clashes.push(Clash { candidate, ours, merged }),
            Fit::Refused(why, hints) => {
                let outcome = Outcome::refused(&candidate.lane.name, onto, why);
                stack.decided.push(Outcome { hints, lasting: true, part, ..outcome });
            }
            Fit::Vetoed(why, hints) => {
                let outcome = Outcome::refused(&candidate.lane.name, onto, why);
                stack.decided.push(Outcome { hints, part, ..outcome });
            }
        }
    }
    Ok(stack)
}
