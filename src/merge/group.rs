//! Owns landing the lanes of one base, and those of several bases together.

use std::time::Duration;

use super::among::Among;
use super::arrange::{self, Arranged};
use super::hooks::Gate;
use super::land::{self, Landing, Way};
use super::order::Order;
use super::outcome::{Outcome, Report, Verdict};
use super::request::{Candidate, Request};
use super::stack::{self, Ground, Stack};
use super::turn::became;
use super::verify::{Pending, Verified, Verifier};
use super::{Error, conflict, failed, git_options, local_changes, parts};
use crate::event;
use crate::explain::{Exit, Explain, with_causes};
use crate::git::{self, Oid, RepoPath, ThrowAway};
use crate::lane::{self, Operation, Project};
use crate::store::now;
use crate::store::records::{Landed, LaneRecord, LaneState, Step};

/// How often a landing is stacked anew when its base moves.
const TRIES: u32 = 5;
/// How long to wait before that.
const PAUSE: Duration = Duration::from_millis(50);

/// What lands with what.
pub(super) struct Work<'w, 'p> {
    /// The operation.
    pub(super) op: &'w Operation<'p>,
    /// What is asked for.
    pub(super) request: &'w Request<'w>,
    /// The checks, and what they have found so far.
    pub(super) verifier: &'w mut Verifier,
    /// The repository's hook that sees each merge.
    pub(super) gate: Gate,
}

/// The lanes of one base, stacked and checked.
struct Prepared {
    verified: Verified,
    why: Vec<String>,
}

impl Work<'_, '_> {
    /// Lands what can land of one base, and adds to the report what became of each lane.
    ///
    /// # Errors
    /// When a signal ended it: that is no refusal of these lanes.
    pub(super) fn land(&mut self, onto: &str, group: &[Candidate], report: &mut Report) -> Result<(), Error> {
        let op = self.op;
        match op.attempt(|| self.try_to_land(onto, group)) {
            Ok(done) => {
                report.order.extend(done.why);
                report.lanes.extend(all_outcomes(op, &done.verified, self.request.dry_run));
            }
            Err(e) if matches!(e.exit(), Exit::Signal(_)) => return Err(e),
            Err(e) => report.lanes.extend(refuse_all(onto, group, &e)),
        }
        Ok(())
    }

    fn try_to_land(&mut self, onto: &str, group: &[Candidate]) -> Result<Prepared, Error> {
        let (op, mut last, mut pending) = (self.op, None, Pending::default());
        let mut look = Look::BeforeChecks;
        for _ in 0..TRIES {
            let done = self.prepare(onto, group, &mut pending, look)?;
            if self.request.dry_run {
                return Ok(done);
            }
            let moved = move_base(op, &done, &pending, Way::Forward);
            if look.again(&moved, group.len() > 1) {
                continue;
            }
            match moved? {
                Landing::Moved(why) => last = why,
                Landing::Done => {
                    tell(op, &done.verified.stack);
                    return Ok(done);
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
        &mut self,
        groups: &[(String, Vec<Candidate>)],
        report: &mut Report,
    ) -> Result<(), Error> {
        let dry_run = self.request.dry_run;
        let mut pending: Vec<Pending> = groups.iter().map(|_| Pending::default()).collect();
        let (mut last, mut look) = (None, Look::BeforeChecks);
        for _ in 0..TRIES {
            let mut all = Vec::new();
            for ((onto, group), pending) in groups.iter().zip(&mut pending) {
                all.push(self.prepare(onto, group, pending, look)?);
            }
            if let Some(found) = obstacle(report, &all) {
                self.hold_back(all, &pending, &found, report)?;
                return Ok(());
            }
            let moved = if dry_run { Ok(()) } else { self.op.attempt(|| land_each(self.op, &all, &pending)) };
            if look.again(&moved, true) {
                continue;
            }
            match moved {
                Err(Error::Restless { last: why, .. }) => {
                    last = why;
                    std::thread::sleep(PAUSE);
                }
                other => {
                    other?;
                    for done in all {
                        if !dry_run {
                            tell(self.op, &done.verified.stack);
                        }
                        report.order.extend(done.why);
                        report.lanes.extend(outcomes(&done.verified.stack, dry_run));
                    }
                    return Ok(());
                }
            }
        }
        let base = groups.iter().map(|(onto, _)| onto.as_str()).collect::<Vec<_>>().join("', '");
        Err(Error::Restless { base, tries: TRIES, last })
    }

    /// Lands nothing; what stood in the way is written down all the same.
    fn hold_back(
        &self,
        mut all: Vec<Prepared>,
        pending: &[Pending],
        (lane, exit): &(String, Exit),
        report: &mut Report,
    ) -> Result<(), Error> {
        let mut among = Vec::new();
        for done in &mut all {
            among.extend(Among::take_from(self.op.project, &mut done.verified.stack)?);
        }
        let with = among.iter().find(|one| one.lane() == lane).map(Among::with);
        let why = with.map_or_else(|| "does not".to_owned(), |with| format!("conflicts with {with}"));
        let why = format!("it could land, but --atomic lands all or none, and '{lane}' {why}");
        for (done, pending) in all.iter().zip(pending) {
            if !self.request.dry_run {
                for step in captures(self.op, &done.verified)?.into_iter().chain(pending.release()) {
                    drop(self.op.perform(step)?);
                }
            }
            let mut lines = all_outcomes(self.op, &done.verified, self.request.dry_run);
            for line in lines.iter_mut().filter(|line| line.result == Verdict::Landed) {
                *line = Outcome { exit: Some(*exit), ..Outcome::refused(&line.lane, &line.onto, &why) };
            }
            report.lanes.extend(lines);
        }
        report.lanes.extend(among.iter().map(Among::outcome));
        Ok(())
    }

    /// Stacks the lanes that may still land on their base as it is now, and checks what would land.
    fn prepare(
        &mut self,
        onto: &str,
        group: &[Candidate],
        pending: &mut Pending,
        look: Look,
    ) -> Result<Prepared, Error> {
        let (request, project) = (self.request, self.op.project);
        lane::refuse_move_beside_in_place(project, onto)?;
        let scratch = project.store.layout().scratch()?;
        let aside = match request.dry_run {
            true => Some(ThrowAway::new(&project.repo, &scratch.path().join("objects"))?),
            false => None,
        };
        let tip = project.repo.branch_tip(onto)?;
        let base = tip.ok_or_else(|| lane::Error::NoBranch { branch: onto.to_owned() })?;
        let strategy = request.strategy(&project.settings);
        let verify_signatures = git_options::verifies_signatures(&project.repo, onto, strategy)?;
        let mut ready = still_ready(project, group, request)?;
        let ground = Ground {
            project,
            onto,
            strategy,
            verify_signatures,
            hooks: !request.no_verify,
            gate: &self.gate,
            scratch: scratch.path(),
            into: aside.as_ref(),
        };
        let several = group.len() > 1 || request.atomic;
        let look = match several {
            true if request.dry_run => Look::Always,
            true => look,
            false => Look::Never,
        };
        let Arranged { mut stack, lanes, why } =
            put_in_order(self.op, self.verifier, ground, base, request.order, &mut ready, look)?;
        let gone = ready.gone;
        stack.decided.extend(gone.iter().cloned());
        if request.dry_run {
            if !several && !stack.steps.is_empty() {
                land::foresee(self.op, &stack, stack.steps.len(), aside.as_ref())?;
            }
            self.verifier.note_tasks(&stack);
            return Ok(Prepared { verified: Verified { stack, failed: Vec::new() }, why });
        }
        let rebuild = |lanes: &[Candidate]| {
            let mut stack = stack::build(ground, base, lanes)?;
            stack.decided.extend(gone.iter().cloned());
            Ok::<_, Error>(stack)
        };
        let verified = self.verifier.verify(self.op, stack, &lanes, pending, &rebuild)?;
        Ok(Prepared { verified, why })
    }
}

/// When it is looked which lanes touch local changes where their base is checked out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    /// Not at all: what keeps a single lane from landing needs no looking for.
    Never,
    /// Before any command checks a stack; without commands the move of the base finds that out.
    BeforeChecks,
    /// In any case: a base could not be moved for that.
    Always,
}

impl Look {
    /// Whether a base that could not be moved is worth another try, without the lanes that touch local changes. They may have come while
    /// commands ran.
    fn again<T>(&mut self, moved: &Result<T, Error>, several: bool) -> bool {
        let again =
            several && *self == Look::BeforeChecks && moved.as_ref().is_err_and(local_changes::is_of_files);
        if again {
            *self = Look::Always;
        }
        again
    }
}

/// Stacks the lanes that may still land on top of `base`. Those that touch local changes where the base is checked out are put aside
/// when it is looked for them: they are among those that are gone then.
fn put_in_order(
    op: &Operation<'_>,
    verifier: &mut Verifier,
    ground: Ground<'_>,
    base: Oid,
    order: Order,
    ready: &mut Ready,
    look: Look,
) -> Result<Arranged, Error> {
    loop {
        let arranged = arrange::build(ground, base, &ready.lanes, order)?;
        let stack = &arranged.stack;
        let looks = match look {
            Look::Never => false,
            Look::BeforeChecks => verifier.has_commands_on(op.project, stack)?,
            Look::Always => true,
        };
        if stack.steps.is_empty() || !looks {
            return Ok(arranged);
        }
        match local_changes::first_in_the_way(op, stack, ground.into)? {
            None => return Ok(arranged),
            Some((candidate, refused)) => {
                ready.lanes.retain(|lane| !lane.is(&candidate));
                ready.gone.push(refused);
            }
        }
    }
}

/// Moves one base, where there is anything to land, and writes down what follows from it.
fn move_base(op: &Operation<'_>, done: &Prepared, pending: &Pending, way: Way) -> Result<Landing, Error> {
    let stack = &done.verified.stack;
    // What is written down goes by the records as they are then.
    let rest = || {
        let mut rest = follow_ups(op, &done.verified)?;
        rest.extend(pending.release());
        Ok(rest)
    };
    if !stack.steps.is_empty() {
        return land::land(op, stack, rest, way);
    }
    for step in rest()? {
        drop(op.perform(step)?);
    }
    Ok(Landing::Done)
}

/// Moves base after base. There is a way back until the last one has moved.
fn land_each(op: &Operation<'_>, all: &[Prepared], pending: &[Pending]) -> Result<(), Error> {
    for (done, pending) in all.iter().zip(pending) {
        if let Landing::Moved(last) = move_base(op, done, pending, Way::Back)? {
            let base = done.verified.stack.onto.clone();
            return Err(Error::Restless { base, tries: TRIES, last });
        }
    }
    Ok(())
}

/// The lane that keeps all from landing when it is all or none, and the exit code of that.
fn obstacle(report: &Report, all: &[Prepared]) -> Option<(String, Exit)> {
    let stacks = || all.iter().map(|done| &done.verified.stack);
    let refused = report.lanes.iter().chain(stacks().flat_map(|s| &s.decided));
    let refused = refused.filter(|o| o.result == Verdict::Refused).map(|o| (&o.lane, Exit::Refused));
    let failed = all.iter().flat_map(|done| &done.verified.failed);
    let failed = failed.map(|f| (&f.candidate.lane.name, Exit::Agent));
    let clashes = stacks().flat_map(|s| &s.clashes).map(|c| (&c.candidate.lane.name, Exit::Conflicts));
    let (lane, exit) = refused.chain(failed).chain(clashes).next()?;
    Some((lane.clone(), exit))
}

fn refuse_all(onto: &str, group: &[Candidate], e: &Error) -> Vec<Outcome> {
    group
        .iter()
        .map(|candidate| Outcome {
            hints: e.hints().iter().map(ToString::to_string).collect(),
            exit: Some(e.exit()),
            part: candidate.key(),
            ..Outcome::refused(&candidate.lane.name, onto, with_causes(e))
        })
        .collect()
}

/// The candidates as they are now.
#[derive(Default)]
struct Ready {
    /// Those that may still land.
    lanes: Vec<Candidate>,
    /// What became of those that were removed meanwhile, or may not land by themselves any more.
    gone: Vec<Outcome>,
}

/// The candidates with their tips as they are now; a lane whose agent has been started again is left out.
fn still_ready(project: &Project, group: &[Candidate], request: &Request<'_>) -> Result<Ready, Error> {
    let mut out = Ready::default();
    for candidate in group {
        if candidate.part.is_some() || request.unrecorded.is_some() {
            out.lanes.push(candidate.clone());
            continue;
        }
        let Some(lane) = land::same_lane(project, &candidate.lane)? else {
            out.gone.push(became(project, &candidate.lane, request));
            continue;
        };
        let (state, _) = lane::effective_state(project, &lane)?;
        let busy = state.is_busy() && !request.would_stop();
        let tip = project.repo.branch_tip(&lane.place.branch)?;
        if request.by_itself
            && !busy
            && let Some(why) = lane::moved_since_run(project, &lane, tip)?
        {
            out.gone.push(Outcome::refused(&lane.name, &candidate.onto, why));
        } else if let (false, Some(tip)) = (busy, tip) {
            out.lanes.push(Candidate { lane, tip, ..candidate.clone() });
        }
    }
    Ok(out)
}

/// What is written down once the base has moved: landed lanes first, then the conflicts and what checks put aside.
fn follow_ups(op: &Operation<'_>, verified: &Verified) -> Result<Vec<Step>, Error> {
    let stack = &verified.stack;
    let mut steps = Vec::new();
    for step in &stack.steps {
        if let Some(part) = &step.candidate.part {
            steps.push(parts::proof(op, stack, step, part)?);
            if !parts::is_last_word(verified, &step.candidate) {
                continue;
            }
        }
        let lane = &step.candidate.lane;
        steps.extend(conflict::forget(op, &lane.name)?);
        steps.extend(failed::forget(op, &lane.name)?);
        let (commit, tip) = (step.commit, step.candidate.tip);
        let landed = Landed { commit, onto: stack.onto.clone(), tip, at: now(), method: stack.strategy };
        steps.extend(op.lane_step(&lane.name, |record| {
            record.state = LaneState::Landed;
            record.detail = None;
            record.landed = Some(landed);
        })?);
    }
    steps.extend(captures(op, verified)?);
    Ok(steps)
}

/// The steps that keep conflicts, and what checks put aside.
fn captures(op: &Operation<'_>, verified: &Verified) -> Result<Vec<Step>, Error> {
    let (stack, mut steps) = (&verified.stack, Vec::new());
    // Of a lane that was removed meanwhile there is no record to write it in.
    let counts = |of: &Candidate| {
        Ok::<_, Error>(parts::is_last_word(verified, of) && land::same_lane(op.project, &of.lane)?.is_some())
    };
    for clash in &stack.clashes {
        if counts(&clash.candidate)? {
            steps.extend(conflict::capture(op, stack, clash)?);
        }
    }
    for failed in &verified.failed {
        if counts(&failed.candidate)? {
            steps.extend(failed.steps(op, stack)?);
        }
    }
    Ok(steps)
}

/// The answer for a stack and what checks put aside, which is told too.
fn all_outcomes(op: &Operation<'_>, verified: &Verified, dry_run: bool) -> Vec<Outcome> {
    let mut out = outcomes(&verified.stack, dry_run);
    for failed in &verified.failed {
        failed.tell(op);
        out.push(failed.outcome(op, &verified.stack));
    }
    out
}

/// Looks once more whether all is there, tells of what landed, and runs the repository's hook.
fn tell(op: &Operation<'_>, stack: &Stack) {
    if stack.steps.is_empty() {
        return;
    }
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
        line.part = step.candidate.key();
        line.message = step.candidate.uncommitted.as_ref().map(|work| {
            format!("what is uncommitted in it would be committed first: {}", git::names(&work.dirt.paths()))
        });
        out.push(line);
    }
    for clash in &stack.clashes {
        let mut line = Outcome::new(&clash.candidate.lane.name, &stack.onto, Verdict::Conflict);
        let files: Vec<RepoPath> = clash.merged.paths();
        line.message = clash.merged.messages.first().cloned();
        line.part = clash.candidate.key();
        line.files = files;
        out.push(line);
    }
    out
}
