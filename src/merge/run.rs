//! Owns a landing from the queue to the clean-up.

use super::Error;
use super::collect::{Collected, collect};
use super::group::Work;
use super::hooks::Gate;
use super::outcome::{Outcome, Report, Verdict};
use super::plan::Plan;
use super::request::{Candidate, Request};
use super::stop::{Stopped, stop_agents};
use super::turn::Turn;
use super::verify::Verifier;
use super::{push, resolve_agent};
use crate::explain::with_causes;
use crate::lane::{self, Operation, Project, Why, operate};
use crate::preview;

/// Lands lanes. Each base is one landing; a lane that may not land or conflicts holds nobody up.
pub(crate) fn run(project: &Project, request: &Request<'_>) -> Result<Report, Error> {
    let onto = request.onto.map(|onto| project.repo.branch_behind(onto));
    let request = &Request { onto: onto.as_deref(), ..*request };
    let mut verifier = Verifier::new(project, request)?;
    if !request.dry_run {
        project.ask_to_merge(request.lanes, request.all, request.onto)?;
    }
    let Turn { lanes, mut gone, ticket } = Turn::wait(project, request)?;
    verifier.renew(project)?;
    let request = &Request { lanes: &lanes, ..*request };
    if let Some(onto) = request.onto
        && project.repo.branch_tip(onto)?.is_none()
    {
        return Err(lane::Error::NoBranch { branch: onto.to_owned() }.into());
    }
    // Not before its turn has come: until then the agents work on.
    let Stopped { lanes: stopped, refused } = stop_agents(project, request)?;
    gone.extend(refused);
    let request = &Request { stop: request.stop.map(|_| stopped.as_slice()), ..*request };
    let mut report = operate(project, "merge", |op| land_all(op, request, &mut verifier, &gone))?;
    report.checks = verifier.report();
    report.stopped.clone_from(&stopped);
    if !request.dry_run && !request.keep {
        empty_old(project);
    }
    // No lock is held while an agent works; each landing of what it resolved queues up anew.
    drop(ticket);
    if let Some(resolver) = request.resolver.as_ref().filter(|_| !request.dry_run) {
        resolve_agent::after_landing(project, request, resolver, &mut report)?;
    }
    push::bases(project, request, &mut report);
    Ok(report)
}

fn land_all(
    op: &Operation<'_>,
    request: &Request<'_>,
    verifier: &mut Verifier,
    gone: &[Outcome],
) -> Result<Report, Error> {
    if let Some(refused) = kept_back(op, request)? {
        return Ok(Report { lanes: vec![refused], ..Report::default() });
    }
    if !request.dry_run {
        fetch_from_preview(op, request)?;
    }
    let mut collected = collect(op, request)?;
    collected.settle(gone);
    if !request.dry_run {
        leave_previews(op, &collected)?;
    }
    (request.plan)(&Plan::of(request.strategy(&op.project.settings), &collected));
    let Collected { ready, decided, left_out } = collected;
    let mut report = Report { lanes: decided, left_out, ..Report::default() };
    let mut work = Work { op, request, verifier, gate: Gate::default() };
    let groups = by_base(ready);
    if request.atomic {
        work.land_together(&groups, &mut report)?;
    } else {
        for (onto, lanes) in &groups {
            work.land(onto, lanes, &mut report)?;
        }
    }
    if !request.dry_run && !request.keep {
        clean_up(op, &mut report);
    }
    Ok(report)
}

/// A lane whose landing nobody asks for just now, refused: the main checkout shows it, so that whoever looks at it would find
/// themselves elsewhere, or its branch has moved since it was found to be ready.
fn kept_back(op: &Operation<'_>, request: &Request<'_>) -> Result<Option<Outcome>, Error> {
    if !request.by_itself {
        return Ok(None);
    }
    let shown = preview::showing(op.project)?.map(|shown| shown.lane);
    for lane in request.lanes.iter().filter_map(|asked| op.project.lane(asked).ok()) {
        if shown.as_ref() == Some(&lane.name) {
            let why = "the main checkout shows it; git proq preview --back leaves it";
            return Ok(Some(Outcome::refused(&lane.name, &lane.base, why)));
        }
        let tip = op.project.repo.branch_tip(&lane.place.branch)?;
        if let Some(why) = lane::moved_since_run(op.project, &lane, tip)? {
            return Ok(Some(Outcome::refused(&lane.name, &lane.base, why)));
        }
    }
    Ok(None)
}

/// Leaves the preview of a lane that is asked for if commits were made in it: only then is known what the lane has.
fn fetch_from_preview(op: &Operation<'_>, request: &Request<'_>) -> Result<(), Error> {
    let Some(shown) = preview::showing(op.project)?.filter(|shown| shown.commits) else { return Ok(()) };
    let named = request.lanes.iter().any(|asked| op.project.lane(asked).is_ok_and(|l| l.name == shown.lane));
    if named || request.all { leave_preview(op, &shown.lane) } else { Ok(()) }
}

/// Leaves the preview of a lane that will land, since its branch goes then. One that is refused stays on show.
fn leave_previews(op: &Operation<'_>, collected: &Collected) -> Result<(), Error> {
    let Some(shown) = preview::showing(op.project)? else { return Ok(()) };
    let over = |l: &Outcome| l.result == Verdict::AlreadyLanded && l.lane == shown.lane;
    let lands = collected.ready.iter().any(|c| c.lane.name == shown.lane);
    if lands || collected.decided.iter().any(over) { leave_preview(op, &shown.lane) } else { Ok(()) }
}

fn leave_preview(op: &Operation<'_>, lane: &str) -> Result<(), Error> {
    if let Some(back) = preview::leave_for(op, lane)? {
        op.project
            .listener
            .step(format!("left the preview of '{}'; the main checkout is on {} again", back.lane, back.to));
        back.tell_conflict(op.project);
    }
    Ok(())
}

/// Groups by base, in the order in which bases first appear.
fn by_base(ready: Vec<Candidate>) -> Vec<(String, Vec<Candidate>)> {
    let mut groups: Vec<(String, Vec<Candidate>)> = Vec::new();
    for candidate in ready {
        match groups.iter_mut().find(|(onto, _)| *onto == candidate.onto) {
            Some((_, group)) => group.push(candidate),
            None => groups.push((candidate.onto.clone(), vec![candidate])),
        }
    }
    groups
}

/// Removes the lanes that are on their base now. One that has something left is kept and says why.
fn clean_up(op: &Operation<'_>, report: &mut Report) {
    for line in &mut report.lanes {
        if line.cleaned_up || !matches!(line.result, Verdict::Landed | Verdict::AlreadyLanded) {
            continue;
        }
        match op.attempt(|| preview::retire(op, &line.lane, Why::Tidy, false).map(drop)) {
            // Or somebody else was faster.
            Ok(()) | Err(preview::Error::Lane(lane::Error::Unknown { .. })) => line.cleaned_up = true,
            Err(e) => line.message = Some(kept(&e)),
        }
    }
}

/// Why a landed lane was kept. What its removal would have changed is as it was, but the landing has changed something.
fn kept(e: &preview::Error) -> String {
    let mut why = with_causes(e);
    for assurance in ["; nothing was changed", "; nothing was moved", "; nothing was made"] {
        why = why.replace(assurance, "");
    }
    match e {
        preview::Error::Lane(lane::Error::Kept { .. }) => why,
        _ => format!("the lane was kept: {why}"),
    }
}

/// Forgets what is kept for a time only.
fn empty_old(project: &Project) {
    if let Err(e) = lane::expire(project) {
        project.listener.warn(format!("what has expired could not be removed: {e}"));
    }
}
