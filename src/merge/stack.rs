//! Owns stacking lanes on a base in memory: tip after tip, no checkout, conflicts put aside.

use std::path::Path;

use super::Error;
use super::outcome::{Outcome, Verdict};
use super::request::Candidate;
use crate::git::{self, Merged, NewCommit, Oid, ThrowAway};
use crate::lane::Project;
use crate::store::records::LaneRecord;

/// A lane that merged cleanly.
#[derive(Debug, Clone)]
pub(super) struct Step {
    /// The lane and the tip that was merged.
    pub(super) candidate: Candidate,
    /// The merge commit.
    pub(super) commit: Oid,
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

/// Merges the candidates, one after the other, on top of `base`. With `into`, nothing is written to the repository.
pub(super) fn build(
    project: &Project,
    onto: &str,
    base: Oid,
    candidates: &[Candidate],
    scratch: &Path,
    into: Option<&ThrowAway>,
) -> Result<Stack, Error> {
    let repo = &project.repo;
    let mut stack =
        Stack { onto: onto.to_owned(), base, steps: Vec::new(), clashes: Vec::new(), decided: Vec::new() };
    let mut tree = repo.tree_of(base)?;
    for candidate in candidates {
        crate::interrupt::check()?;
        let ours = stack.tip();
        let lane = &candidate.lane;
        let merged = match git::merge_commits(repo, ours, candidate.tip, scratch, into) {
            Ok(merged) => merged,
            // A merge that git refuses is this lane's affair; the others go on.
            Err(e @ git::Error::Command { .. }) => {
                stack.decided.push(Outcome::refused(&lane.name, onto, e.to_string()));
                continue;
            }
            Err(e) => return Err(e.into()),
        };
        if !merged.clean {
            stack.clashes.push(Clash { candidate: candidate.clone(), ours, merged });
            continue;
        }
        if merged.tree == tree {
            stack.decided.push(Outcome::new(&lane.name, onto, Verdict::AlreadyLanded));
            continue;
        }
        let message = message(lane);
        let commit = NewCommit { tree: merged.tree, parents: &[ours, candidate.tip], message: &message };
        let commit = commit.write(repo, into)?;
        tree = merged.tree;
        stack.steps.push(Step { candidate: candidate.clone(), commit });
    }
    Ok(stack)
}

/// The message of a merge commit: it names the lane and the task.
fn message(lane: &LaneRecord) -> String {
    let mut text = format!("Merge lane {}", lane.name);
    if lane.title != lane.name {
        text.push_str(": ");
        text.push_str(&lane.title);
    }
    // A first line that is too long for lists moves to the body.
    if text.chars().count() > 72 {
        text = format!("Merge lane {}\n\n{}", lane.name, lane.title);
    }
    text.push_str(&format!("\n\nProq-Lane: {}\n", lane.name));
    if let Some(agent) = &lane.agent {
        text.push_str(&format!("Proq-Agent: {agent}\n"));
    }
    text
}
