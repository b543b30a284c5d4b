//! Landing of parts of lanes: only some commits of a lane land, by one move of the branch, with a proof for
//! each part.

use proq_git::CommitId;
use proq_git::history::tree_diff;
use proq_store::base::record::Record;
use proq_store::locks::lock::WaitLimit;
use proq_store::records::lane::LaneRecord;

use super::autostash;
use super::landing_proof::LandingProof;
use super::prepared_stack::LandingContext;
use crate::lane;
use crate::lane::Project;
use crate::merge::Error;
use crate::merge::queue::queue_turn::wait_to_land;
use crate::merge::selection::lane_refusal::{
    adds_conflict_markers, mass_deletion_refusal, unrelated_history_refusal,
};
use crate::merge::stack::commit_hooks::PreMergeCommitHook;
use crate::merge::types::candidate::{Candidate, LanePart};
use crate::merge::types::options::Landing;
use crate::merge::types::outcome::{LandingReport, LaneOutcome, Verdict};
use crate::merge::verify::verifier::Verifier;
use crate::operation::run_operation::operate;

/// Parts to land, and options of the landing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PartsRequest<'a> {
    /// Parts, each after those that it requires.
    pub parts: &'a [LanePart],
    /// Branch to land on.
    pub onto: &'a str,
    /// Whether nothing is checked, neither by the commands of the settings nor by those of the parts.
    pub no_checks: bool,
    /// Time to wait in the merge queue.
    pub queue_wait: WaitLimit,
}

/// Lands parts in their order, in one step. A part that conflicts or fails its checks is left out with the
/// parts that require it, and the others land. Lanes are not removed, and nothing changes that the main
/// checkout shows. A part with a proof of its landing is reported as landed, so the call can be repeated
/// after a kill.
///
/// # Errors
/// Fails when no part could be tried. Refusals of single parts are in the report.
pub(crate) fn land_parts(
    project: &Project,
    parts_request: &PartsRequest<'_>,
) -> Result<LandingReport, Error> {
    let mut names: Vec<String> = parts_request.parts.iter().map(|part| part.lane.to_string()).collect();
    names.dedup();
    let mut landing = Landing::from_lanes(Vec::new());
    landing.options.onto = Some(parts_request.onto.to_owned());
    landing.options.no_checks = parts_request.no_checks;
    let mut verifier = Verifier::new(project, &landing)?;
    verifier.runs.emits_events = true;
    let only_lane = match names.as_slice() {
        [name] => project.lane_name(name).and_then(|name| project.lane(&name)).ok(),
        _ => None,
    };
    let onto = Some(parts_request.onto);
    project.run_pre_merge_hooks(&names, only_lane.as_ref(), false, onto)?;
    let _ticket = wait_to_land(project, names, onto, parts_request.queue_wait)?;
    let mut report = LandingReport::default();
    let mut candidates = Vec::new();
    let tip = project.repo.branch_tip(parts_request.onto)?;
    let tip = tip.ok_or_else(|| lane::Error::NoOntoBranch { branch: parts_request.onto.to_owned() })?;
    for part in parts_request.parts {
        match examine_part(project, part, parts_request.onto, tip)? {
            Ok(candidate) => candidates.push(candidate),
            Err(outcome) => report.lanes.push(*outcome),
        }
    }
    let is_missing = |key: &usize| {
        let outcome = report.lanes.iter().find(|outcome| outcome.part_key == Some(*key));
        outcome.is_none_or(|outcome| outcome.result == Verdict::Refused)
    };
    for candidate in &mut candidates {
        if let Some(part) = &mut candidate.part {
            part.required_parts.retain(is_missing);
        }
    }
    if candidates.is_empty() {
        return Ok(report);
    }
    operate(project, "merge", |op| {
        let merge_hook = PreMergeCommitHook::default();
        let mut context = LandingContext {
            op,
            landing: &landing,
            verifier: &mut verifier,
            merge_hook,
            has_fresh_records: false,
        };
        context.land_group(parts_request.onto, &candidates, &mut report)?;
        report.autostashes = autostash::take_reports(op);
        Ok::<_, Error>(())
    })?;
    report.checks = verifier.into_summary();
    Ok(report)
}

/// Returns a part as a candidate, or its outcome if it has landed or may not land.
fn examine_part(
    project: &Project,
    part: &LanePart,
    onto: &str,
    tip: CommitId,
) -> Result<Result<Candidate, Box<LaneOutcome>>, Error> {
    let not_candidate =
        |outcome: LaneOutcome| Ok(Err(Box::new(LaneOutcome { part_key: Some(part.key), ..outcome })));
    if let Some(proof) = LandingProof::load_if_exists(&part.proof_path)?
        && (proof.to, proof.onto.as_str()) == (part.last_commit, onto)
        && project.repo.is_ancestor(proof.commit, tip)?
    {
        let outcome = LaneOutcome::new(&part.lane, onto, Verdict::AlreadyLanded);
        return not_candidate(LaneOutcome { commit: Some(proof.commit), ..outcome });
    }
    let repo = &project.repo;
    let changes = tree_diff::tree_changes(repo, part.commit_before, part.last_commit)?;
    if let Some(path) =
        changes.iter().find(|change| adds_conflict_markers(repo, change)).map(|c| c.path.clone())
    {
        let reason = format!("{path} has conflict markers");
        let files = vec![path];
        return not_candidate(LaneOutcome {
            conflicted_files: files,
            is_permanent: true,
            ..LaneOutcome::refused(&part.lane, onto, reason)
        });
    }
    if let Some(refused) = mass_deletion_refusal(repo, &part.lane, onto, tip, &changes)? {
        return not_candidate(refused);
    }
    let lane = project.lane(&part.lane)?;
    if repo.merge_base(tip, part.last_commit)?.is_none() {
        return not_candidate(unrelated_history_refusal(&lane, onto));
    }
    Ok(Ok(Candidate {
        lane: LaneRecord { title: part.title.clone(), checks: part.checks.clone(), ..lane },
        tip: part.last_commit,
        onto: onto.to_owned(),
        conflicted_landings: 0,
        commits: repo.count_ahead(part.last_commit, part.commit_before)?,
        files: changes.len(),
        part: Some(part.clone()),
        pending_commit: None,
    }))
}
