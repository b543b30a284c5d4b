//! Landing of lanes from the merge queue to the clean-up.

use proq_base::explain::{Explain, describe_with_causes};
use proq_base::lane_name::LaneName;
use proq_store::records::lane::MergeStrategy;

use super::prepared_stack::LandingContext;
use super::push;
use crate::lane::Project;
use crate::lane::removal::expire;
use crate::lane::removal::remove_lane::RemovalReason;
use crate::merge::Error;
use crate::merge::queue::queue_turn::QueueTurn;
use crate::merge::queue::stop::{StoppedAgents, stop_agents};
use crate::merge::resolution::resolve_agent;
use crate::merge::selection::eligibility::{ClassifiedLanes, classify_lanes};
use crate::merge::selection::lane_refusal::removed_lane_outcome;
use crate::merge::stack::commit_hooks::PreMergeCommitHook;
use crate::merge::types::candidate::Candidate;
use crate::merge::types::options::{LandingOptions, PushMode};
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
pub fn land_lanes(project: &Project, options: &LandingOptions<'_>) -> Result<LandingReport, Error> {
    let onto = options.onto.map(|onto| project.repo.resolve_symbolic_branch(onto));
    let options = &LandingOptions { onto: onto.as_deref(), ..*options };
    let mut verifier = Verifier::new(project, options)?;
    if !options.dry_run {
        project.run_pre_merge_hooks(options.lanes, options.all, options.onto)?;
    }
    let QueueTurn { lanes, removed, ticket } = QueueTurn::wait(project, options)?;
    let mut gone: Vec<LaneOutcome> =
        removed.iter().map(|lane| removed_lane_outcome(project, lane, options)).collect();
    verifier.reload_base_checks(project)?;
    let options = &LandingOptions { lanes: &lanes, ..*options };
    if let Some(onto) = options.onto
        && project.repo.branch_tip(onto)?.is_none()
    {
        return Err(lane::Error::NoOntoBranch { branch: onto.to_owned() }.into());
    }
    // Agents continue to work until the landing's turn has come.
    let StoppedAgents { lanes: stopped, refused } = stop_agents(project, options)?;
    gone.extend(refused);
    let options =
        &LandingOptions { stopped_lanes: options.stopped_lanes.map(|_| stopped.as_slice()), ..*options };
    let mut report = operate(project, "merge", |op| land_by_base(op, options, &mut verifier, &gone))?;
    report.checks = verifier.into_summary();
    report.stopped.clone_from(&stopped);
    if !options.dry_run && !options.keep_lanes {
        delete_expired(project);
    }
    // No lock is held while an agent works; each landing of a resolved lane enters the queue again.
    drop(ticket);
    if let Some(resolver) = options.resolver.as_ref().filter(|_| !options.dry_run) {
        resolve_and_land(project, options, resolver, &mut report)?;
    }
    push::push_bases(project, options, &mut report);
    Ok(report)
}

/// Lands lanes base by base, as part of one operation. `known_outcomes` are those of lanes that were removed
/// or refused before.
fn land_by_base(
    op: &Operation<'_>,
    options: &LandingOptions<'_>,
    verifier: &mut Verifier,
    known_outcomes: &[LaneOutcome],
) -> Result<LandingReport, Error> {
    if let Some(refused) = automatic_refusal(op, options)? {
        return Ok(LandingReport { lanes: vec![refused], ..LandingReport::default() });
    }
    if !options.dry_run {
        leave_preview_with_commits(op, options)?;
    }
    let mut sorted_lanes = classify_lanes(op, options)?;
    sorted_lanes.set_known_outcomes(known_outcomes);
    if !options.dry_run {
        leave_preview_of_landing(op, &sorted_lanes)?;
    }
    (options.on_plan)(&sorted_lanes.plan(options.strategy(&op.project.settings)));
    let ClassifiedLanes { eligible: ready, refused: decided, skipped: left_out } = sorted_lanes;
    let mut report = LandingReport { lanes: decided, skipped: left_out, ..LandingReport::default() };
    let mut landing = LandingContext { op, options, verifier, merge_hook: PreMergeCommitHook::default() };
    let groups = group_by_base(ready);
    if options.atomic {
        landing.land_atomically(&groups, &mut report)?;
    } else {
        for (onto, lanes) in &groups {
            landing.land_group(onto, lanes, &mut report)?;
        }
    }
    if !options.dry_run && !options.keep_lanes {
        remove_landed_lanes(op, &mut report);
    }
    Ok(report)
}

/// Refuses an automatic landing if the main checkout shows the lane, because the user's checkout would
/// change, or if the lane's branch has moved since its run.
fn automatic_refusal(op: &Operation<'_>, options: &LandingOptions<'_>) -> Result<Option<LaneOutcome>, Error> {
    if !options.is_automatic {
        return Ok(None);
    }
    let shown_lane = main_checkout::preview_status(op.project)?.map(|shown| shown.lane);
    for lane in options.lanes.iter().filter_map(|given_name| op.project.find_lane(given_name).ok()) {
        if shown_lane.as_ref() == Some(&lane.name) {
            let reason = "the main checkout shows it; git proq preview --back leaves it";
            return Ok(Some(LaneOutcome::refused(&lane.name, &lane.base, reason)));
        }
        let tip = op.project.repo.branch_tip(&lane.kind.branch)?;
        if let Some(reason) = auto_merge::moved_since_run_reason(&op.project.store, &lane, tip)? {
            return Ok(Some(LaneOutcome::refused(&lane.name, &lane.base, reason)));
        }
    }
    Ok(None)
}

/// Leaves the preview of a requested lane if commits were made in it, because the lane's commits are only
/// known then.
fn leave_preview_with_commits(op: &Operation<'_>, options: &LandingOptions<'_>) -> Result<(), Error> {
    let Some(status) = main_checkout::preview_status(op.project)?.filter(|status| status.has_commits) else {
        return Ok(());
    };
    let is_named = options
        .lanes
        .iter()
        .any(|given_name| op.project.find_lane(given_name).is_ok_and(|l| l.name == status.lane));
    if is_named || options.all { leave_preview(op, &status.lane) } else { Ok(()) }
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
        op.project.listener.step_done(format!(
            "left the preview of '{}'; the main checkout is on {} again",
            left.lane, left.head
        ));
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
    for assurance in ["; nothing was changed", "; nothing was moved", "; nothing was made"] {
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
    options: &LandingOptions<'_>,
    resolver: &Resolver<'_>,
    report: &mut LandingReport,
) -> Result<(), Error> {
    // A resolution is a merge, which a rebase cannot turn into linear commits.
    let strategy = match options.strategy(&project.settings) {
        MergeStrategy::Rebase => MergeStrategy::Squash,
        other => other,
    };
    for outcome in report.lanes.iter_mut().filter(|line| line.result == Verdict::Conflict) {
        let lane_record = project.lane(&outcome.lane).ok();
        let tip = lane_record.and_then(|lane| project.repo.branch_tip(&lane.kind.branch).ok().flatten());
        let resolved = match resolve_agent::resolve_by_agent(project, outcome.lane.as_str(), resolver) {
            Ok(resolved) => resolved,
            Err(e) => {
                proq_base::interrupt::require_no_signal()?;
                outcome.hints = e.hints().iter().map(ToString::to_string).collect();
                outcome.message = Some(e.to_string());
                continue;
            }
        };
        if let (true, Some(tip), Some(commit)) = (options.is_automatic, tip, resolved.commit) {
            let lane = project.lane(&resolved.lane)?;
            auto_merge::advance_run_tip(&project.store, &lane, tip, commit)?;
        }
        let lanes = [resolved.lane.into()];
        let landing_options = LandingOptions {
            lanes: &lanes,
            all: false,
            resolver: None,
            push: PushMode::Never,
            stopped_lanes: None,
            strategy: Some(strategy),
            ..*options
        };
        if let Some(mut landed) = land_lanes(project, &landing_options)?.lanes.pop() {
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
        project.listener.warn(format!("what has expired could not be removed: {e}"));
    }
}
