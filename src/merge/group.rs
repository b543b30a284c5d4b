//! Owns landing the lanes of one base, and those of several bases together.

use std::time::Duration;

use super::land::{self, Landing, Way};
use super::outcome::{Outcome, Report, Verdict};
use super::request::{Candidate, Request};
use super::stack::{Ground, Stack};
use super::{Error, arrange, conflict};
use crate::event;
use crate::explain::{Exit, Explain};
use crate::git::{RepoPath, ThrowAway};
use crate::lane::{self, Operation, Project};
use crate::store::now;
use crate::store::records::{Landed, LaneRecord, LaneState, Step};

/// How often a landing is stacked anew when its base moves.
const TRIES: u32 = 5;
/// How long to wait before that.
const PAUSE: Duration = Duration::from_millis(50);

/// Lands what can land of one base, and adds to the report what became of each lane.
pub(super) fn land(
    op: &Operation<'_>,
    request: &Request<'_>,
    onto: &str,
    group: &[Candidate],
    report: &mut Report,
) {
    let landed = op.attempt(|| try_to_land(op, request, onto, group));
    match landed {
        Ok((stack, order)) => {
            report.order.extend(order);
            report.lanes.extend(outcomes(&stack, request.dry_run));
        }
        Err(e) => report.lanes.extend(refuse_all(onto, group, &e)),
    }
}

fn try_to_land(
    op: &Operation<'_>,
    request: &Request<'_>,
    onto: &str,
    group: &[Candidate],
) -> Result<(Stack, Vec<String>), Error> {
    let mut last = None;
    for _ in 0..TRIES {
        let (stack, order) = prepare(op, request, onto, group)?;
        if request.dry_run {
            return Ok((stack, order));
        }
        let rest = follow_ups(op, &stack)?;
        if stack.steps.is_empty() {
            for step in rest {
                drop(op.perform(step)?);
            }
            return Ok((stack, order));
        }
        match land::land(op, &stack, rest, Way::Forward)? {
            Landing::Moved(why) => last = why,
            Landing::Done => {
                tell(op, &stack);
                return Ok((stack, order));
            }
        }
        // Whoever moved it may be in the middle of something; a moment later it is done.
        std::thread::sleep(PAUSE);
    }
    Err(Error::Restless { base: onto.to_owned(), tries: TRIES, last })
}

/// Lands all lanes of all bases, or none of them.
///
/// # Errors
/// When a base could not be moved: then all others are where they were.
pub(super) fn land_together(
    op: &Operation<'_>,
    request: &Request<'_>,
    groups: &[(String, Vec<Candidate>)],
    report: &mut Report,
) -> Result<(), Error> {
    for _ in 0..TRIES {
        let mut stacks = Vec::new();
        for (onto, group) in groups {
            let (stack, order) = prepare(op, request, onto, group)?;
            stacks.push(stack);
            report.order.extend(order);
        }
        let refused = report.lanes.iter().chain(stacks.iter().flat_map(|s| &s.decided));
        let refused = refused.filter(|o| o.result == Verdict::Refused).map(|o| (&o.lane, Exit::Refused));
        let clashes =
            stacks.iter().flat_map(|s| &s.clashes).map(|c| (&c.candidate.lane.name, Exit::Conflicts));
        if let Some((lane, exit)) = refused.chain(clashes).next() {
            let why = format!("it could land, but --atomic lands all or none, and '{lane}' does not");
            for stack in &stacks {
                if !request.dry_run {
                    for step in captures(op, stack)? {
                        drop(op.perform(step)?);
                    }
                }
                report.lanes.extend(held_back(stack, &why, exit));
            }
            return Ok(());
        }
        let lands = |op: &Operation<'_>| {
            for stack in stacks.iter().filter(|s| !s.steps.is_empty()) {
                if let Landing::Moved(last) = land::land(op, stack, follow_ups(op, stack)?, Way::Back)? {
                    return Err(Error::Restless { base: stack.onto.clone(), tries: TRIES, last });
                }
            }
            Ok(())
        };
        match if request.dry_run { Ok(()) } else { op.attempt(|| lands(op)) } {
            Err(Error::Restless { .. }) => {
                report.order.clear();
                std::thread::sleep(PAUSE);
            }
            other => {
                other?;
                for stack in &stacks {
                    if !request.dry_run && !stack.steps.is_empty() {
                        tell(op, stack);
                    }
                    report.lanes.extend(outcomes(stack, request.dry_run));
                }
                return Ok(());
            }
        }
    }
    let base = groups.iter().map(|(onto, _)| onto.as_str()).collect::<Vec<_>>().join("', '");
    Err(Error::Restless { base, tries: TRIES, last: None })
}

/// What becomes of a stack of which nothing lands because of lanes elsewhere.
fn held_back(stack: &Stack, why: &str, exit: Exit) -> Vec<Outcome> {
    let mut out = outcomes(stack, true);
    for line in out.iter_mut().filter(|line| line.result == Verdict::Landed) {
        *line = Outcome { exit: Some(exit), ..Outcome::refused(&line.lane, &stack.onto, why) };
    }
    out
}

/// Stacks the lanes that may still land on their base as it is now.
fn prepare(
    op: &Operation<'_>,
    request: &Request<'_>,
    onto: &str,
    group: &[Candidate],
) -> Result<(Stack, Vec<String>), Error> {
    let project = op.project;
    let scratch = project.store.layout().scratch()?;
    let aside = match request.dry_run {
        true => Some(ThrowAway::new(&project.repo, &scratch.path().join("objects"))?),
        false => None,
    };
    let base =
        project.repo.branch_tip(onto)?.ok_or_else(|| lane::Error::NoBranch { branch: onto.to_owned() })?;
    let fresh = still_ready(project, group)?;
    let ground = Ground {
        project,
        onto,
        strategy: request.strategy(&project.settings),
        hooks: !request.no_verify,
        scratch: scratch.path(),
        into: aside.as_ref(),
    };
    arrange::build(ground, base, &fresh, request.order)
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

/// The candidates with their tips as they are now; a lane whose agent has been started again is left out.
fn still_ready(project: &Project, group: &[Candidate]) -> Result<Vec<Candidate>, Error> {
    let mut out = Vec::new();
    for candidate in group {
        let lane = project.lane(&candidate.lane.name)?;
        let (state, _) = lane::effective_state(project, &lane)?;
        let busy = state.is_busy();
        if let (false, Some(tip)) = (busy, project.repo.branch_tip(&lane.branch)?) {
            out.push(Candidate { lane, tip, ..candidate.clone() });
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
    steps.extend(captures(op, stack)?);
    Ok(steps)
}

/// The steps that keep a stack's conflicts.
fn captures(op: &Operation<'_>, stack: &Stack) -> Result<Vec<Step>, Error> {
    let mut steps = Vec::new();
    for clash in &stack.clashes {
        steps.extend(conflict::capture(op, stack, clash)?);
    }
    Ok(steps)
}

/// Looks once more whether all is there, tells of what landed, and runs the repository's hook.
fn tell(op: &Operation<'_>, stack: &Stack) {
    if let Err(e) = land::audit(op.project, stack) {
        op.project.listener.warn(format!("'{}' has landed, but not as it should: {e}", stack.onto));
    }
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
