//! Landing of lanes from the merge queue to the clean-up.

use proq_base::explain::{Explain, describe_with_causes};
use proq_base::lane_name::LaneName;
use proq_store::records::lane::MergeStrategy;

use super::prepared_stack::LandingContext;
use super::{autostash, push};
use crate::lane::Project;
use crate::lane::removal::expire;
use crate::lane::removal::remove_lane::RemovalReason;
use crate::merge::Error;
use crate::merge::queue::queue_turn::{reload_lanes, wait_for_turn};
use crate::merge::queue::stop::{StoppedAgents, stop_agents};
use crate::merge::resolution::resolve_agent;
use crate::merge::selection::eligibility::{ClassifiedLanes, classify_lanes};
use crate::merge::selection::lane_refusal::removed_lane_outcome;
use crate::merge::stack::commit_hooks::PreMergeCommitHook;
use crate::merge::types::candidate::Candidate;
use crate::merge::types::options::{Landing, LandingCallbacks, LandingOptions};
use crate::merge::types::outcome::{LandingReport, LaneOutcome, Verdict};
use crate::merge::types::resolver::Resolver;
use crate::merge::verify::verifier::Verifier;
use crate::operation::journaled_operation::Operation;
use crate::operation::run_operation::operate;
use crate::preview::{leave, main_checkout, remove_lane};
use crate::run::auto_merge;
use crate::{lane, preview};

/// Lands lanes. The lanes of each base land together; a lane that may not land or conflicts does not hold up
/// the others.
pub fn land_lanes(
    project: &Project,
    mut landing: Landing,
    callbacks: LandingCallbacks<'_>,
) -> Result<LandingReport, Error> {
    let options = &mut landing.options;
    options.onto = options.onto.take().map(|onto| project.repo.resolve_symbolic_branch(&onto));
    let mut verifier = Verifier::new(project, &landing)?;
    let dry_run = landing.dry_run;
    verifier.runs.emits_events = !dry_run;
    if !dry_run {
        let only_lane = landing.lanes.first();
        let Landing { options, given_names, .. } = &landing;
        project.run_pre_merge_hooks(given_names, only_lane, options.all, options.onto.as_deref())?;
    }
    let ticket = wait_for_turn(project, &landing)?;
    verifier.reload_base_checks(project)?;
    if let Some(onto) = &landing.options.onto
        && project.repo.branch_tip(onto)?.is_none()
    {
        return Err(lane::Error::NoOntoBranch { branch: onto.clone() }.into());
    }
    (callbacks.on_turn)(&mut landing)?;
    // The lanes may have changed during the wait, and while the caller decided.
    let mut gone = reload_records(project, &mut landing);
    // Agents continue to work until the landing's turn has come.
    let StoppedAgents { lanes: stopped, refused } = stop_agents(project, &landing)?;
    if !(dry_run || stopped.is_empty() && refused.is_empty()) {
        // Runs have ended, and the other lanes may have changed while their agents were stopped.
        gone.extend(reload_records(project, &mut landing));
    }
    gone.extend(refused);
    landing.stopped_lanes = landing.stopped_lanes.map(|_| stopped.clone());
    let mut report =
        operate(project, "merge", |op| land_by_base(op, &landing, callbacks, &mut verifier, &gone))?;
    report.checks = verifier.into_summary();
    report.stopped = stopped;
    if !dry_run && !landing.options.keep_lanes {
        delete_expired(project);
    }
    // No lock is held while an agent works; each landing of a resolved lane enters the queue again.
    drop(ticket);
    if let Some(resolver) = landing.resolver.as_ref().filter(|_| !dry_run) {
        resolve_and_land(project, &landing, callbacks, resolver, &mut report)?;
    }
    push::push_bases(project, &landing, &mut report);
    Ok(report)
}

/// Reads the records of the named lanes again, except in a dry run, whose lanes need not exist. Returns the
/// outcomes of those that were removed.
fn reload_records(project: &Project, landing: &mut Landing) -> Vec<LaneOutcome> {
    if landing.dry_run {
        return Vec::new();
    }
    let (present, removed) = reload_lanes(project, &landing.lanes);
    landing.lanes = present;
    removed.iter().map(|lane| removed_lane_outcome(project, lane, &landing.options)).collect()
}

/// Lands lanes base by base, as part of one operation. `known_outcomes` are those of lanes that were removed
/// or refused before.
fn land_by_base(
    op: &Operation<'_>,
    landing: &Landing,
    callbacks: LandingCallbacks<'_>,
    verifier: &mut Verifier,
    known_outcomes: &[LaneOutcome],
) -> Result<LandingReport, Error> {
    let options = &landing.options;
    if let Some(refused) = automatic_refusal(op, landing)? {
        return Ok(LandingReport { lanes: vec![refused], ..LandingReport::default() });
    }
    if !landing.dry_run {
        leave_preview_with_commits(op, landing)?;
    }
    let mut sorted_lanes = classify_lanes(op, landing)?;
    sorted_lanes.set_known_outcomes(known_outcomes);
    if !landing.dry_run {
        leave_preview_of_landing(op, &sorted_lanes)?;
    }
    (callbacks.on_plan)(&sorted_lanes.plan(options.strategy(&op.project.settings)));
    let ClassifiedLanes { eligible: ready, refused: decided, skipped: left_out } = sorted_lanes;
    let mut report = LandingReport { lanes: decided, skipped: left_out, ..LandingReport::default() };
    let merge_hook = PreMergeCommitHook::default();
    let mut context = LandingContext { op, landing, verifier, merge_hook, has_fresh_records: true };
    let groups = group_by_base(ready);
    if options.atomic {
        context.land_atomically(&groups, &mut report)?;
    } else {
        for (onto, lanes) in &groups {
            context.land_group(onto, lanes, &mut report)?;
        }
    }
    report.autostashes = autostash::take_reports(op);
    if !landing.dry_run && !options.keep_lanes {
        remove_landed_lanes(op, &mut report);
    }
    Ok(report)
}

/// Refuses an automatic landing if the main checkout shows the lane, because the user's checkout would
/// change, or if the lane's branch has moved since its run.
fn automatic_refusal(op: &Operation<'_>, landing: &Landing) -> Result<Option<LaneOutcome>, Error> {
    if !landing.options.is_automatic {
        return Ok(None);
    }
    let shown_lane = main_checkout::preview_status(op.project)?.map(|shown| shown.lane);
    for lane in &landing.lanes {
        if shown_lane.as_ref() == Some(&lane.name) {
            let reason = "the main checkout shows it; leave the preview: git proq preview --back";
            return Ok(Some(LaneOutcome::refused(&lane.name, &lane.base, reason)));
        }
        let tip = op.project.repo.branch_tip(&lane.kind.branch)?;
        if let Some(reason) = auto_merge::moved_since_run_reason(&op.project.store, lane, tip)? {
            return Ok(Some(LaneOutcome::refused(&lane.name, &lane.base, reason)));
        }
    }
    Ok(None)
}

/// Leaves the preview of a requested lane if commits were made in it, because the lane's commits are only
/// known then.
pub(crate) fn leave_preview_with_commits(op: &Operation<'_>, landing: &Landing) -> Result<(), Error> {
    let Some(status) = main_checkout::preview_status(op.project)?.filter(|status| status.has_commits) else {
        return Ok(());
    };
    let is_named = landing.lanes.iter().any(|lane| lane.name == status.lane);
    if is_named || landing.options.all { leave_preview(op, &status.lane) } else { Ok(()) }
}

/// Leaves the preview of a lane that will land, since its branch is then removed. The preview of a refused
/// lane stays open.
fn leave_preview_of_landing(op: &Operation<'_>, sorted_lanes: &ClassifiedLanes) -> Result<(), Error> {
    let Some(status) = main_checkout::preview_status(op.project)? else { return Ok(()) };
    let has_landed = |l: &LaneOutcome| l.result == Verdict::AlreadyLanded && l.lane == status.lane;
    let will_land = sorted_lanes.eligible.iter().any(|c| c.lane.name == status.lane);
    if will_land || sorted_lanes.refused.iter().any(has_landed) {
        leave_preview(op, &status.lane)
    } else {
        Ok(())
    }
}

fn leave_preview(op: &Operation<'_>, lane: &LaneName) -> Result<(), Error> {
    if let Some(left) = leave::leave_preview_of(op, lane)? {
        op.project
            .listener
            .step_done(format!("left the preview of '{}'; the main checkout is on {}", left.lane, left.head));
        left.warn_conflict(op.project);
    }
    Ok(())
}

/// Groups candidates by base, in the order in which bases first appear.
fn group_by_base(candidates: Vec<Candidate>) -> Vec<(String, Vec<Candidate>)> {
    let mut groups: Vec<(String, Vec<Candidate>)> = Vec::new();
    for candidate in candidates {
        match groups.iter_mut().find(|(onto, _)| *onto == candidate.onto) {
            Some((_, group)) => group.push(candidate),
            None => groups.push((candidate.onto.clone(), vec![candidate])),
        }
    }
    groups
}

/// Removes the lanes that are on their base now. A lane that cannot be removed is kept, with the reason in
/// its outcome.
fn remove_landed_lanes(op: &Operation<'_>, report: &mut LandingReport) {
    for outcome in &mut report.lanes {
        if outcome.cleaned_up || !matches!(outcome.result, Verdict::Landed | Verdict::AlreadyLanded) {
            continue;
        }
        match op.attempt_or_revert(|| {
            remove_lane::remove_previewed_lane(op, &outcome.lane, RemovalReason::Cleanup, false).map(drop)
        }) {
            // An unknown lane was removed by another process.
            Ok(()) | Err(preview::Error::Lane(lane::Error::UnknownLane { .. })) => outcome.cleaned_up = true,
            Err(e) => outcome.message = Some(kept_lane_message(&e)),
        }
    }
}

/// Returns the message why a landed lane could not be removed. Assurances that nothing was changed are
/// dropped: the removal changed nothing, but the landing did.
fn kept_lane_message(e: &preview::Error) -> String {
    let mut reason = describe_with_causes(e);
    for assurance in ["; nothing was changed", "; nothing was created"] {
        reason = reason.replace(assurance, "");
    }
    match e {
        preview::Error::Lane(lane::Error::RemovalRefused { .. }) => reason,
        _ => format!("the lane was kept: {reason}"),
    }
}

/// Runs an agent on every lane that a landing found in conflict, and lands the resolved lanes one after the
/// other. Each lane is resolved against the tip that its base has at that time.
fn resolve_and_land(
    project: &Project,
    landing: &Landing,
    callbacks: LandingCallbacks<'_>,
    resolver: &Resolver,
    report: &mut LandingReport,
) -> Result<(), Error> {
    // A resolution is a merge, which a rebase cannot turn into linear commits.
    let strategy = match landing.options.strategy(&project.settings) {
        MergeStrategy::Rebase => MergeStrategy::Squash,
        other => other,
    };
    for outcome in report.lanes.iter_mut().filter(|line| line.result == Verdict::Conflict) {
        let lane_record = project.lane(&outcome.lane).ok();
        let tip = lane_record.and_then(|lane| project.repo.branch_tip(&lane.kind.branch).ok().flatten());
        let resolved = match resolve_agent::resolve_by_agent(project, &outcome.lane, resolver) {
            Ok(resolved) => resolved,
            Err(e) => {
                proq_base::interrupt::require_no_signal()?;
                outcome.hints = e.hints();
                outcome.message = Some(e.to_string());
                continue;
            }
        };
        let lane = project.lane(&resolved.lane)?;
        if let (true, Some(tip), Some(commit)) = (landing.options.is_automatic, tip, resolved.commit) {
            auto_merge::advance_run_tip(&project.store, &lane, tip, commit)?;
        }
        let given_names = vec![resolved.lane.to_string()];
        let options = LandingOptions { all: false, strategy: Some(strategy), ..landing.options.clone() };
        let next = Landing {
            options,
            lanes: vec![lane],
            given_names,
            endable_sessions: landing.endable_sessions.clone(),
            ..Landing::default()
        };
        let callbacks = LandingCallbacks { on_turn: &|_| Ok(()), ..callbacks };
        let mut next_report = land_lanes(project, next, callbacks)?;
        report.autostashes.append(&mut next_report.autostashes);
        if let Some(mut landed) = next_report.lanes.pop() {
            if landed.result == Verdict::Landed && resolved.commit.is_some() {
                landed.result = Verdict::Resolved;
                landed.conflicted_files = resolved.files;
            }
            *outcome = landed;
        }
    }
    Ok(())
}

/// Deletes expired snapshots, operations and trash.
fn delete_expired(project: &Project) {
    if let Err(e) = expire::delete_expired(project) {
        project.listener.warn(format!("cannot delete what has expired: {e}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::TestRepository;

    /// The check on the landing's turn may last as long as a forecast, in which another process can work.
    #[test]
    fn sees_lane_that_was_removed_during_the_check_on_turn() {
        let repository = TestRepository::new();
        let landing = Landing::from_lanes(vec![repository.create_lane("x", None)]);
        let on_turn = &|_: &mut Landing| {
            repository.discard("x", false);
            Ok(())
        };
        let callbacks = LandingCallbacks { on_turn, on_plan: &|_| {} };
        let report = land_lanes(&repository.project, landing, callbacks).unwrap();
        let message = report.lanes[0].message.as_deref();
        assert_eq!(message, Some("it was removed before it could be merged"));
    }
}
