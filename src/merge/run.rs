//! Owns a landing from the queue to the clean-up.

use std::time::Duration;

use super::collect::{Collected, collect};
use super::land::{self, Landing};
use super::outcome::{Outcome, Report, Verdict};
use super::request::{Candidate, Request};
use super::stack::{self, Ground, Stack};
use super::{Error, conflict};
use crate::event;
use crate::explain::Explain;
use crate::git::{RepoPath, ThrowAway};
use crate::lane::{self, Operation, Project, Why, operate};
use crate::preview;
use crate::store::records::{Landed, LaneRecord, LaneState, Step};
use crate::store::{Ticket, now};

/// How often a landing is stacked anew when its base moves.
const TRIES: u32 = 5;
/// How long to wait before that.
const PAUSE: Duration = Duration::from_millis(50);

/// Lands lanes. Each base is one landing; a lane that may not land or conflicts holds nobody up.
pub(crate) fn run(project: &Project, request: &Request<'_>) -> Result<Report, Error> {
    let ticket = match request.dry_run {
        true => None,
        false => Some(Ticket::take(project.store.locks(), request.patience)?),
    };
    if let Some(onto) = request.onto
        && project.repo.branch_tip(onto)?.is_none()
    {
        return Err(lane::Error::NoBranch { branch: onto.to_owned() }.into());
    }
    let report = operate(project, "merge", |op| land_all(op, request))?;
    if !request.dry_run && !request.keep {
        empty_old(project);
    }
    drop(ticket);
    Ok(report)
}

fn land_all(op: &Operation<'_>, request: &Request<'_>) -> Result<Report, Error> {
    if !request.dry_run {
        fetch_from_preview(op, request)?;
    }
    let collected = collect(op, request)?;
    if !request.dry_run {
        leave_previews(op, &collected)?;
    }
    let Collected { ready, decided, left_out } = collected;
    let mut report = Report { lanes: decided, left_out };
    for (onto, group) in by_base(ready) {
        let lanes = match op.attempt(|| land_group(op, request, &onto, &group)) {
            Ok(lanes) => lanes,
            Err(e) => refuse_all(&onto, &group, &e),
        };
        report.lanes.extend(lanes);
    }
    if !request.dry_run && !request.keep {
        clean_up(op, &mut report);
    }
    Ok(report)
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

fn refuse_all(onto: &str, group: &[Candidate], e: &Error) -> Vec<Outcome> {
    group
        .iter()
        .map(|candidate| Outcome {
            hints: e.hints().iter().map(ToString::to_string).collect(),
            exit: Some(e.exit()),
            ..Outcome::refused(&candidate.lane.name, onto, e.to_string())
        })
        .collect()
}

fn land_group(
    op: &Operation<'_>,
    request: &Request<'_>,
    onto: &str,
    group: &[Candidate],
) -> Result<Vec<Outcome>, Error> {
    let project = op.project;
    let scratch = project.store.layout().scratch()?;
    let aside = match request.dry_run {
        true => Some(ThrowAway::new(&project.repo, &scratch.path().join("objects"))?),
        false => None,
    };
    let mut last = None;
    for _ in 0..TRIES {
        let base = project
            .repo
            .branch_tip(onto)?
            .ok_or_else(|| lane::Error::NoBranch { branch: onto.to_owned() })?;
        let fresh = still_ready(project, group)?;
        let ground = Ground {
            project,
            onto,
            strategy: request.strategy(&project.settings),
            hooks: !request.no_verify,
            scratch: scratch.path(),
            into: aside.as_ref(),
        };
        let stack = stack::build(ground, base, &fresh)?;
        if request.dry_run {
            return Ok(outcomes(&stack, true));
        }
        let rest = follow_ups(op, &stack)?;
        if stack.steps.is_empty() {
            for step in rest {
                drop(op.perform(step)?);
            }
            return Ok(outcomes(&stack, false));
        }
        match land::land(op, &stack, rest)? {
            Landing::Moved(why) => last = why,
            Landing::Done => {
                tell(op, &stack);
                if let Err(e) = land::audit(project, &stack) {
                    project.listener.warn(format!("'{onto}' has landed, but not as it should: {e}"));
                }
                return Ok(outcomes(&stack, false));
            }
        }
        // Whoever moved it may be in the middle of something; a moment later it is done.
        std::thread::sleep(PAUSE);
    }
    Err(Error::Restless { base: onto.to_owned(), tries: TRIES, last })
}

/// The candidates with their tips as they are now; a lane whose agent has been started again is left out.
fn still_ready(project: &Project, group: &[Candidate]) -> Result<Vec<Candidate>, Error> {
    let mut out = Vec::new();
    for candidate in group {
        let lane = project.lane(&candidate.lane.name)?;
        let (state, _) = lane::effective_state(project, &lane)?;
        let busy = state.is_busy();
        if let (false, Some(tip)) = (busy, project.repo.branch_tip(&lane.branch)?) {
            out.push(Candidate { lane, tip, onto: candidate.onto.clone() });
        }
    }
    Ok(out)
}

/// What is written down once the base has moved: landed lanes first, then the conflicts.
fn follow_ups(op: &Operation<'_>, stack: &Stack) -> Result<Vec<Step>, Error> {
    let mut steps = Vec::new();
    for step in &stack.steps {
        let lane = &step.candidate.lane;
        steps.extend(conflict::forget(op, &lane.name)?);
        let (commit, tip) = (step.commit, step.candidate.tip);
        let landed = Landed { commit, onto: stack.onto.clone(), tip, at: now(), method: stack.strategy };
        steps.extend(op.lane_step(&lane.name, |record| {
            record.state = LaneState::Landed;
            record.detail = None;
            record.landed = Some(landed);
        })?);
    }
    for clash in &stack.clashes {
        steps.extend(conflict::capture(op, stack, clash)?);
    }
    Ok(steps)
}

/// Tells of what landed, and runs the repository's hook.
fn tell(op: &Operation<'_>, stack: &Stack) {
    for step in &stack.steps {
        let lane = LaneRecord { state: LaneState::Landed, ..step.candidate.lane.clone() };
        let message = format!("lane '{}' landed on {}", lane.name, stack.onto);
        op.tell(event::Name::MergeLanded, Some(&lane), message);
    }
    let onto = stack.onto.clone();
    op.after(move |project| {
        if let Err(e) = land::after_landing(project, &onto) {
            project.listener.warn(format!("the repository's post-merge hook could not be run: {e}"));
        }
    });
}

fn outcomes(stack: &Stack, dry_run: bool) -> Vec<Outcome> {
    let mut out = stack.decided.clone();
    for step in &stack.steps {
        let mut line = Outcome::new(&step.candidate.lane.name, &stack.onto, Verdict::Landed);
        line.method = Some(stack.strategy);
        // What a dry run merged was thrown away.
        line.commit = (!dry_run).then_some(step.commit);
        out.push(line);
    }
    for clash in &stack.clashes {
        let mut line = Outcome::new(&clash.candidate.lane.name, &stack.onto, Verdict::Conflict);
        let files: Vec<RepoPath> = clash.merged.paths();
        line.message = clash.merged.messages.first().cloned();
        line.files = files;
        out.push(line);
    }
    out
}

/// Removes the lanes that are on their base now. One that has something left is kept and says why.
fn clean_up(op: &Operation<'_>, report: &mut Report) {
    for line in &mut report.lanes {
        if !matches!(line.result, Verdict::Landed | Verdict::AlreadyLanded) {
            continue;
        }
        match op.attempt(|| preview::retire(op, &line.lane, Why::Tidy, false).map(drop)) {
            Ok(()) => line.cleaned_up = true,
            Err(e) => line.message = Some(e.to_string()),
        }
    }
}

/// Forgets what is kept for a time only.
fn empty_old(project: &Project) {
    if let Err(e) = lane::expire(project) {
        project.listener.warn(format!("what has expired could not be removed: {e}"));
    }
}
