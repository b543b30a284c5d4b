//! Owns checking what lanes would land, each for itself, without landing anything: by what was found before, or now.

use super::commands::Commands;
use super::hooks::Gate;
use super::outcome::Checked;
use super::request::{Candidate, Request};
use super::stack::{self, Ground};
use super::verify::{Pending, Verified, Verifier};
use super::{Error, greens};
use crate::git::{Oid, ThrowAway, merge_commits, merge_exactly};
use crate::lane::{self, Operation, Project, operate};
use crate::store::records::{CheckRecord, LaneRecord};
use crate::store::{Limit, Record, Ticket, Wanted};

/// What is known of each lane's checks without running any.
pub(super) fn remembered(project: &Project, lanes: &[LaneRecord]) -> Result<Vec<Checked>, Error> {
    lanes.iter().map(|lane| recall(project, lane)).collect()
}

fn recall(project: &Project, lane: &LaneRecord) -> Result<Checked, Error> {
    let mut all = Commands::new(project.settings.verify_commands.clone());
    let numbers = all.on(std::iter::once(lane.checks.as_slice()));
    let lines = all.named(&numbers);
    if lines.is_empty() {
        return Ok(Checked::None);
    }
    let Some(tree) = landed_tree(project, lane)? else { return Ok(Checked::Unknown) };
    if greens::knows(project, tree, &lines) {
        return Ok(Checked::Passed);
    }
    // What cannot be read is not known.
    let failed = CheckRecord::find(&project.store.layout().check(&lane.name)).ok().flatten();
    let failed = failed.filter(|failed| failed.tree == tree && lines.contains(&failed.command));
    Ok(failed.map_or(Checked::Unknown, |failed| Checked::Failed {
        command: failed.command,
        ended: failed.ended,
        tail: Vec::new(),
    }))
}

/// The tree of the base with a lane merged into it; none when they conflict, or one of them is gone.
fn landed_tree(project: &Project, lane: &LaneRecord) -> Result<Option<Oid>, Error> {
    let repo = &project.repo;
    let (Some(tip), Some(base)) = (repo.branch_tip(&lane.place.branch)?, repo.branch_tip(&lane.base)?) else {
        return Ok(None);
    };
    if let Ok(Some(tree)) = merge_exactly(repo, base, tip) {
        return Ok(Some(tree));
    }
    let scratch = project.store.layout().scratch()?;
    let aside = ThrowAway::new(repo, &scratch.path().join("objects"))?;
    let merged = merge_commits(repo, base, tip, scratch.path(), Some(&aside));
    Ok(merged.ok().filter(|merged| merged.clean).map(|merged| merged.tree))
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
    let _ticket = Ticket::take(project.store.locks(), wanted, Limit::Forever)?;
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
    let (project, repo) = (op.project, &op.project.repo);
    let (Some(tip), Some(base)) = (repo.branch_tip(&lane.place.branch)?, repo.branch_tip(&lane.base)?) else {
        return Ok(Checked::Unknown);
    };
    let scratch = project.store.layout().scratch()?;
    let gate = Gate::default();
    let ground = Ground {
        project,
        onto: &lane.base,
        strategy: request.strategy(&project.settings),
        hooks: false,
        // What is checked is what is in the lane, whoever signed it.
        verify_signatures: false,
        gate: &gate,
        scratch: scratch.path(),
        into: None,
    };
    let candidate = Candidate {
        lane: lane.clone(),
        tip,
        onto: lane.base.clone(),
        waited: 0,
        commits: 0,
        files: 0,
        part: None,
    };
    let rebuild = |lanes: &[Candidate]| stack::build(ground, base, lanes);
    let candidates = [candidate];
    let stack = rebuild(&candidates)?;
    if stack.steps.is_empty() {
        return Ok(Checked::Unknown);
    }
    if !verifier.has_commands_on(&stack) {
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
