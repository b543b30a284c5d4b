//! Owns `git proq merge --batch`: all that landed on a batch's branch goes to its base, and is noted in the plan.

use super::landing::Landing;
use super::merge::{Merge, answer, carry_out, land_and_go_on};
use super::{Done, Failure, Session};
use crate::explain::Exit;
use crate::git::Oid;
use crate::harmless;
use crate::lane::Project;
use crate::merge::{Outcome, Report, Verdict};
use crate::note::Listener;
use crate::store::records::LaneRecord;
use crate::swarm::{self, BatchRecord};

pub(super) fn run(session: &Session, project: &Project, args: &Merge, asked: &str) -> Done {
    let batch = swarm::find_batch(project, asked)?;
    if !args.force {
        swarm::require_met(project, &batch)?;
    }
    if args.onto.is_none() {
        swarm::require_base(project, &batch)?;
    }
    let ahead = swarm::landing_ahead(project, &batch)?;
    let named = Merge { lanes: vec![ahead.lane.name.clone()], batch: None, force: false, ..args.clone() };
    let unrecorded = (!ahead.is_on_record).then(|| Box::new(ahead.lane));
    if args.dry_run {
        let stop = named.stop && unrecorded.is_none();
        return Ok(land_and_go_on(session, project, &Merge { stop, unrecorded, ..named })?.exit());
    }
    let onto = args.onto.as_deref().unwrap_or(&batch.base);
    if let Some(lane) = unrecorded
        && let Some(report) = in_vain(session, &named, lane)?
    {
        answer(session, project, &named, None, &report);
        let exit = report.exit();
        if let (Exit::Done, Some(tip)) = (exit, project.repo.branch_tip(&batch.branch)?) {
            note(session, project, &batch, onto, tip);
        }
        return Ok(exit);
    }
    let (lane, is_new) = swarm::landing_lane(project, &batch)?;
    // What lands is what the lane has now; more may land on the batch's branch meanwhile.
    let tip = project.repo.branch_tip(&lane.place.branch)?;
    let done = land_and_go_on(session, project, &named);
    let refused = |report: &Report| report.lanes.iter().all(|line| line.result == Verdict::Refused);
    let dropped = match is_new && done.as_ref().map_or(true, refused) {
        true => swarm::drop_landing_lane(project, &lane.name),
        false => Ok(()),
    };
    // Why nothing landed comes before why its lane is still there.
    let exit = done?.exit();
    dropped?;
    if let (Exit::Done, Some(tip)) = (exit, tip) {
        note(session, project, &batch, onto, tip);
    }
    Ok(exit)
}

/// What would come of landing a lane that is not there yet, where that is nothing: then none is made. The repository's hooks are not
/// asked, and nothing is printed.
fn in_vain(session: &Session, named: &Merge, lane: Box<LaneRecord>) -> Result<Option<Report>, Failure> {
    let project = Project::open(&session.dir, Listener::silent())?;
    let how = Landing {
        conflict_agent: None,
        no_conflict_agent: true,
        no_verify: true,
        no_push: true,
        ..named.how.clone()
    };
    let ahead = Merge { dry_run: true, stop: false, how, unrecorded: Some(lane), ..named.clone() };
    let (report, _) = carry_out(session, &project, &ahead, None)?;
    let is_nothing = |line: &Outcome| matches!(line.result, Verdict::Refused | Verdict::AlreadyLanded);
    Ok(report.lanes.iter().all(is_nothing).then_some(report))
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
