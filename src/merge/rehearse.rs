//! Owns checking what lanes would land, each for itself, without landing anything: by what was found before, or now.

use std::path::Path;

use super::Error;
use super::commands::Commands;
use super::greens::{self, CheckInput};
use super::hooks::Gate;
use super::outcome::Checked;
use super::request::{Candidate, Request};
use super::stack::{self, Ground};
use super::verify::{Pending, Verified, Verifier};
use crate::git::{Oid, ThrowAway};
use crate::lane::{self, Operation, Project, operate};
use crate::process::is_ancestor;
use crate::store::records::{CheckRecord, LaneRecord};
use crate::store::{Limit, Record, Ticket, Wanted};

/// What is known of each lane's checks without running any.
pub(super) fn remembered(project: &Project, lanes: &[LaneRecord]) -> Result<Vec<Checked>, Error> {
    lanes.iter().map(|lane| recall(project, lane)).collect()
}

fn recall(project: &Project, lane: &LaneRecord) -> Result<Checked, Error> {
    let mut all = Commands::default();
    let of_base = all.add(project.checks_on(&lane.base)?.commands);
    let numbers = all.on(&of_base, std::iter::once(lane.checks.as_slice()));
    let lines = all.named(&numbers);
    if lines.is_empty() {
        return Ok(Checked::None);
    }
    let Some(input) = would_land(project, lane)? else { return Ok(Checked::Unknown) };
    if greens::knows(project, &input, &lines) {
        return Ok(Checked::Passed);
    }
    // What cannot be read is not known.
    let failed = CheckRecord::find(&project.store.layout().check(&lane.name)).ok().flatten();
    let failed = failed.filter(|failed| failed.tree == input.tree && lines.contains(&failed.command));
    Ok(failed.map_or(Checked::Unknown, |failed| Checked::Failed {
        command: failed.command,
        ended: failed.ended,
        tail: Vec::new(),
    }))
}

/// What a check would read of a lane on its base; none when they conflict, or one of them is gone. The repository stays as it is.
fn would_land(project: &Project, lane: &LaneRecord) -> Result<Option<CheckInput>, Error> {
    let Some((base, candidate)) = candidate(project, lane)? else { return Ok(None) };
    let scratch = project.store.layout().scratch()?;
    let aside = ThrowAway::new(&project.repo, &scratch.path().join("objects"))?;
    let (request, gate) = (Request { no_verify: true, ..Request::of(&[]) }, Gate::default());
    let ground = Ground { into: Some(&aside), ..ground(project, &request, lane, &gate, scratch.path()) };
    // What cannot be merged is not known.
    let Ok(stack) = stack::build(ground, base, &[candidate]) else { return Ok(None) };
    Ok(CheckInput::of_stack(project, &stack, Some(&aside))?.pop())
}

/// A lane as it is to land by itself, and the tip of its base; none when one of the two is gone.
fn candidate(project: &Project, lane: &LaneRecord) -> Result<Option<(Oid, Candidate)>, Error> {
    let repo = &project.repo;
    let (Some(tip), Some(base)) = (repo.branch_tip(&lane.place.branch)?, repo.branch_tip(&lane.base)?) else {
        return Ok(None);
    };
    let candidate = Candidate {
        lane: lane.clone(),
        tip,
        onto: lane.base.clone(),
        waited: 0,
        commits: 0,
        files: 0,
        part: None,
        uncommitted: None,
    };
    Ok(Some((base, candidate)))
}

/// What a lane is stacked with on its own base.
fn ground<'a>(
    project: &'a Project,
    request: &Request<'_>,
    lane: &'a LaneRecord,
    gate: &'a Gate,
    scratch: &'a Path,
) -> Ground<'a> {
    Ground {
        project,
        onto: &lane.base,
        strategy: request.strategy(&project.settings),
        hooks: false,
        // What is checked is what is in the lane, whoever signed it.
        verify_signatures: false,
        gate,
        scratch,
        into: None,
    }
}

/// Checks each lane on its base now, in the worktrees for checks, in its turn among the landings that use them too.
pub(super) fn run_now(
    project: &Project,
    lanes: &[LaneRecord],
    more: &[String],
    jobs: Option<usize>,
) -> Result<Vec<Checked>, Error> {
    let names: Vec<String> = lanes.iter().map(|lane| lane.name.clone()).collect();
    // As if they were to land, one at a time.
    let request = Request { no_verify: true, verify: more, jobs, ..Request::of(&names) };
    let mut verifier = Verifier::new(project, &request)?;
    let wanted = Wanted { lanes: names.clone(), onto: None };
    let _ticket = Ticket::take(project.store.locks(), wanted, Limit::Forever, is_ancestor)?;
    // Whoever was before may have died in the middle of it.
    lane::recover(project)?;
    // What holds a stack meanwhile goes with the operation, which leaves nothing in the log.
    operate(project, "compare", |op| {
        lanes.iter().map(|lane| check(op, &request, &mut verifier, lane)).collect()
    })
}

fn check(
    op: &Operation<'_>,
    request: &Request<'_>,
    verifier: &mut Verifier,
    lane: &LaneRecord,
) -> Result<Checked, Error> {
    let project = op.project;
    let Some((base, candidate)) = candidate(project, lane)? else { return Ok(Checked::Unknown) };
    let scratch = project.store.layout().scratch()?;
    let gate = Gate::default();
    let ground = ground(project, request, lane, &gate, scratch.path());
    let rebuild = |lanes: &[Candidate]| stack::build(ground, base, lanes);
    let candidates = [candidate];
    let stack = rebuild(&candidates)?;
    if stack.steps.is_empty() {
        return Ok(Checked::Unknown);
    }
    if !verifier.has_commands_on(project, &stack)? {
        return Ok(Checked::None);
    }
    let mut pending = Pending::default();
    let Verified { failed, .. } = verifier.verify(op, stack, &candidates, &mut pending, &rebuild)?;
    if let Some(step) = pending.release() {
        drop(op.perform(step)?);
    }
    Ok(failed.first().map_or(Checked::Passed, |failed| Checked::Failed {
        command: failed.blame.command.clone(),
        ended: failed.red.ended.to_string(),
        tail: failed.tail(),
    }))
}
