//! Owns landing parts of lanes: of each some commits of its lane and no others, by one move of the branch, with proof of it.

use serde::{Deserialize, Serialize};

use super::Error;
use super::group::Work;
use super::hooks::Gate;
use super::outcome::{Outcome, Report, Verdict};
use super::request::{Candidate, Part, Request};
use super::stack::{self, Stack};
use super::unfit::{apart, brings_markers, deletes_too_much};
use super::verify::{Verified, Verifier};
use crate::git::{self, Oid};
use crate::lane::{self, Operation, Project, operate};
use crate::process::is_ancestor;
use crate::store::records::{LaneRecord, Step};
use crate::store::{Limit, Moment, Record, Ticket, Wanted, now};

/// That a part has landed. It is written by the very step that lands it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Proof {
    /// The lane.
    pub(crate) lane: String,
    /// The branch.
    pub(crate) onto: String,
    /// Where the part begins.
    pub(crate) from: Oid,
    /// Where it ends.
    pub(crate) to: Oid,
    /// The commit with which all of it was on the branch.
    pub(crate) commit: Oid,
    /// When.
    pub(crate) at: Moment,
}

impl Record for Proof {
    const FORMAT: u32 = 1;
}

/// What is to land, and how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parts<'a> {
    /// The parts, each behind those that it needs.
    pub(crate) all: &'a [Part],
    /// The branch.
    pub(crate) onto: &'a str,
    /// Without commands to check with.
    pub(crate) no_checks: bool,
    /// How long to wait in the queue.
    pub(crate) patience: Limit,
}

/// Lands parts in their order, in one step. One that conflicts or fails its checks is put aside with those that need it, and
/// the others land. Lanes stay as they are; nothing that the main checkout shows is changed. Those of which there is proof that
/// they have landed are answered as such: so this may be done again after a kill.
///
/// # Errors
/// When nothing could be tried. What keeps single parts from landing is in the answer.
pub(crate) fn land_parts(project: &Project, asked: &Parts<'_>) -> Result<Report, Error> {
    let mut names: Vec<String> = asked.all.iter().map(|part| part.lane.clone()).collect();
    names.dedup();
    let request = Request {
        onto: Some(asked.onto),
        no_checks: asked.no_checks,
        patience: asked.patience,
        ..Request::of(&names)
    };
    let mut verifier = Verifier::new(project, &request)?;
    project.ask_to_merge(&names, false, Some(asked.onto))?;
    let wanted = Wanted { lanes: names.clone(), onto: Some(asked.onto.to_owned()) };
    let _ticket = Ticket::take(project.store.locks(), wanted, asked.patience, is_ancestor)?;
    // Whoever was before may have died in the middle of it.
    lane::recover(project)?;
    let mut report = Report::default();
    let mut ready = Vec::new();
    let tip = project.repo.branch_tip(asked.onto)?;
    let tip = tip.ok_or_else(|| lane::Error::NoBranch { branch: asked.onto.to_owned() })?;
    for part in asked.all {
        match candidate(project, part, asked.onto, tip)? {
            Ok(candidate) => ready.push(candidate),
            Err(outcome) => report.lanes.push(*outcome),
        }
    }
    let refused = |key: &usize| {
        let of = report.lanes.iter().find(|line| line.part == Some(*key));
        of.is_none_or(|line| line.result == Verdict::Refused)
    };
    for candidate in &mut ready {
        if let Some(part) = &mut candidate.part {
            part.needs.retain(refused);
        }
    }
    if ready.is_empty() {
        return Ok(report);
    }
    operate(project, "merge", |op| {
        let gate = Gate::default();
        let mut work = Work { op, request: &request, verifier: &mut verifier, gate };
        work.land(asked.onto, &ready, &mut report)
    })?;
    report.checks = verifier.report();
    Ok(report)
}

/// A part as something that may land; or what is known of it without that.
fn candidate(
    project: &Project,
    part: &Part,
    onto: &str,
    tip: Oid,
) -> Result<Result<Candidate, Box<Outcome>>, Error> {
    let of = |outcome: Outcome| Ok(Err(Box::new(Outcome { part: Some(part.key), ..outcome })));
    if let Some(proof) = Proof::find(&part.proof)?
        && (proof.to, proof.onto.as_str()) == (part.to, onto)
        && project.repo.is_ancestor(proof.commit, tip)?
    {
        let landed = Outcome::new(&part.lane, onto, Verdict::AlreadyLanded);
        return of(Outcome { commit: Some(proof.commit), ..landed });
    }
    let repo = &project.repo;
    let changes = git::tree_changes(repo, part.from, part.to)?;
    if let Some(path) = changes.iter().find(|change| brings_markers(repo, change)).map(|c| c.path.clone()) {
        let why = format!("{path} holds conflict markers");
        let files = vec![path];
        return of(Outcome { files, lasting: true, ..Outcome::refused(&part.lane, onto, why) });
    }
    if let Some(refused) = deletes_too_much(repo, &part.lane, (onto, tip), &changes)? {
        return of(refused);
    }
    let lane = project.lane(&part.lane)?;
    if repo.merge_base(tip, part.to)?.is_none() {
        return of(apart(&lane, onto));
    }
    Ok(Ok(Candidate {
        lane: LaneRecord { title: part.title.clone(), checks: part.checks.clone(), ..lane },
        tip: part.to,
        onto: onto.to_owned(),
        waited: 0,
        commits: repo.ahead(part.to, part.from)?,
        files: changes.len(),
        part: Some(part.clone()),
        uncommitted: None,
    }))
}

/// The step that writes down that a part has landed.
pub(super) fn proof(
    op: &Operation<'_>,
    stack: &Stack,
    step: &stack::Step,
    part: &Part,
) -> Result<Step, Error> {
    let proof = Proof {
        lane: part.lane.clone(),
        onto: stack.onto.clone(),
        from: part.from,
        to: part.to,
        commit: step.commit,
        at: now(),
    };
    Ok(op.record_step(&part.proof, Some(proof.text(&part.proof)?))?)
}

/// Whether it is this part by which the record of its lane goes, where several of one lane land: by the first that conflicts, or
/// else fails its checks, or else the last.
pub(super) fn is_last_word(verified: &Verified, candidate: &Candidate) -> bool {
    if candidate.part.is_none() {
        return true;
    }
    let own = |other: &&Candidate| other.lane.name == candidate.lane.name;
    let clash = verified.stack.clashes.iter().map(|clash| &clash.candidate).find(own);
    let failed = verified.failed.iter().map(|failed| &failed.candidate).find(own);
    let step = verified.stack.steps.iter().rev().map(|step| &step.candidate).find(own);
    clash.or(failed).or(step).is_some_and(|last| last.is(candidate))
}
