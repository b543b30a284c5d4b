//! Owns `git proq merge --batch`: all that landed on a batch's branch goes to its base, and is noted in the plan.

use super::merge::{Merge, land_and_go_on};
use super::{Done, Session};
use crate::explain::Exit;
use crate::git::Oid;
use crate::harmless;
use crate::lane::Project;
use crate::merge::{Outcome, Report, Verdict};
use crate::swarm::{self, BatchRecord};

pub(super) fn run(session: &Session, project: &Project, args: &Merge, asked: &str) -> Done {
    let batch = swarm::find_batch(project, asked)?;
    if !args.force {
        swarm::require_met(project, &batch)?;
    }
    let (lane, is_new) = swarm::landing_lane(project, &batch)?;
    // What lands is what the lane has now; more may land on the batch's branch meanwhile.
    let tip = project.repo.branch_tip(&lane.place.branch)?;
    let args = Merge { lanes: vec![lane.name.clone()], batch: None, force: false, ..args.clone() };
    let done = land_and_go_on(session, project, &args);
    if args.dry_run {
        if is_new {
            swarm::drop_landing_lane(project, &lane.name)?;
        }
        return Ok(done?.exit());
    }
    let exit = done?.exit();
    if let (Exit::Done, Some(tip)) = (exit, tip) {
        note(session, project, &batch, args.onto.as_deref().unwrap_or(&batch.base), tip);
    }
    Ok(exit)
}

/// Notes it for the batches whose own lanes were landed by name, as after a conflict.
pub(super) fn note_all(session: &Session, project: &Project, report: &Report) {
    let landed = |line: &&Outcome| matches!(line.result, Verdict::Landed | Verdict::Resolved);
    for line in report.lanes.iter().filter(landed) {
        let Some((batch, tips)) = swarm::landed_by(project, &line.lane) else { continue };
        for tip in tips {
            note(session, project, &batch, &line.onto, tip);
        }
    }
}

/// Notes in the files of a batch's plan what has landed. It has, also where that cannot be noted.
fn note(session: &Session, project: &Project, batch: &BatchRecord, onto: &str, tip: Oid) {
    match swarm::note_landed(project, batch, onto, tip) {
        Ok(noted) => {
            if let Some(commit) = noted.commit {
                session.ui.say(format!("noted in the plan, by commit {} on {onto}", commit.short()));
            }
            for path in &noted.written {
                session.ui.say(format!("noted in {path}, which is yours to commit"));
            }
            for left in &noted.left {
                session.ui.warn(format!("not noted in {}: {}", left.path, harmless::line(&left.why)));
            }
            if noted.left.iter().any(|left| !left.patch.is_empty()) {
                session.ui.hint(format!("git proq report {} has it as a patch", batch.id));
            }
        }
        Err(e) => session.ui.warn(format!("what has landed could not be noted in the plan: {e}")),
    }
}
