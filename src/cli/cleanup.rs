//! Owns `git proq cleanup`.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde::Serialize;

use super::complete::{any_lane_names, batch_names};
use super::discard::{Answer, Gone, kept, make_ready, take_away};
use super::{Done, Failure, Mistake, Session, identity, report};
use crate::explain::{Exit, Explain};
use crate::git::WorktreeList;
use crate::lane::{self, Project, Why, effective_state, operate};
use crate::store::records::{AnyLane, LaneState};
use crate::swarm;

/// Tidy up lanes that are done with
///
/// Without LANE, those that landed and those that a crash left half-made. A lane with anything that is not on its base is
/// kept, and the answer says why. A lane that is named goes too when somebody brought its changes to the base by hand.
///
/// Examples:
///     git proq cleanup
///     git proq cleanup --all
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Cleanup {
    /// These lanes only
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(any_lane_names))]
    pub(crate) lanes: Vec<String>,
    /// Also lanes that changed nothing, failed ones without work, and those that came to no answer
    #[arg(long, conflicts_with = "lanes")]
    pub(crate) all: bool,
    /// Remove the named lanes, or the batch, whatever is in them, saving it all first
    #[arg(long, short, conflicts_with = "all")]
    pub(crate) force: bool,
    /// The lanes and the branch of this batch, with everything in them saved; what has landed on its branch has to be on its base
    #[arg(long, value_name = "BATCH", conflicts_with_all = ["lanes", "all"], add = ArgValueCompleter::new(batch_names))]
    pub(crate) batch: Option<String>,
    /// Say what would be removed, and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

pub(super) fn run(session: &Session, args: &Cleanup) -> Done {
    let project = session.project_to_change()?;
    identity::refuse_agent_for_others(&[], args.dry_run)?;
    if let Some(asked) = &args.batch {
        return tidy_batch(session, &project, asked, args);
    }
    let named = !args.lanes.is_empty();
    let lanes = meant(&project, args)?;
    let mut answers = Vec::new();
    let mut exit = Exit::Done;
    let mut told = |name: &str, done: Result<Option<Gone>, Failure>| match done {
        Ok(gone) => answers.extend(gone),
        Err(failure) => {
            answers.push(kept(name, &failure));
            // What was not named is only reported: keeping a lane with work in it is what cleanup is for. What could not be
            // done is another matter.
            if named || !failure.0.is_decision() {
                exit = if session.ui.json { Exit::Refused } else { report::show(&failure, false) };
            } else if !session.ui.json {
                session.ui.say(failure.0.to_string());
            }
        }
    };
    let names: Vec<String> = lanes.iter().map(|l| l.name.clone()).collect();
    if args.dry_run {
        for lane in &lanes {
            told(&lane.name, foresee(session, &project, lane, args));
        }
    } else {
        let ready = make_ready(&project, &names, args.force);
        operate(&project, "cleanup", |op| {
            for (name, stopped) in names.iter().zip(ready) {
                let done = stopped.and_then(|()| take_away(session, op, name, Why::Tidy, args.force));
                told(name, done.map(Some));
            }
            Ok::<_, Failure>(())
        })?;
    }
    let (strays, stray_exit) = if named { (0, Exit::Done) } else { take_strays(session, &project, args)? };
    if session.ui.json {
        session.ui.object(Answer { lanes: answers, dry_run: args.dry_run });
    } else if lanes.is_empty() && strays == 0 {
        session.ui.say("no lane to clean up");
    }
    if !args.dry_run {
        lane::expire(&project)?;
    }
    Ok(if exit == Exit::Done { stray_exit } else { exit })
}

/// The lanes that are named, or that are candidates.
fn meant(project: &Project, args: &Cleanup) -> Result<Vec<AnyLane>, Failure> {
    let mut lanes = Vec::new();
    for name in &args.lanes {
        lanes.push(project.any_lane(name)?);
    }
    if !args.lanes.is_empty() {
        return Ok(lanes);
    }
    if args.force {
        let what = "--force is for lanes or a batch that are named";
        return Err(Mistake::Missing { what, example: "git proq cleanup payments --force" }.into());
    }
    for lane in project.every_lane()? {
        if wanted(project, &lane, args.all)? {
            lanes.push(lane);
        }
    }
    Ok(lanes)
}

/// Removes what is left of a batch.
fn tidy_batch(session: &Session, project: &Project, asked: &str, args: &Cleanup) -> Done {
    #[derive(Serialize)]
    struct Tidy<'a> {
        batch: &'a str,
        lanes: &'a [String],
        saved: Option<&'a str>,
        dry_run: bool,
    }
    let batch = swarm::find_batch(project, asked)?;
    let done = swarm::clean_up_batch(project, &batch, args.force, args.dry_run)?;
    if session.ui.json {
        let (lanes, saved) = (done.lanes.as_slice(), done.saved.as_deref());
        session.ui.object(Tidy { batch: &batch.id, lanes, saved, dry_run: args.dry_run });
        return Ok(Exit::Done);
    }
    let lanes = super::ui::count(done.lanes.len(), "lane");
    let did = if args.dry_run { "would clean up" } else { "cleaned up" };
    session.ui.answer(format!("{did} batch {}: {lanes}", batch.id));
    if let Some(saved) = done.saved {
        session.ui.answer(format!("  what landed on its branch is kept: git log {saved}"));
    }
    if !args.dry_run {
        session.ui.hint("bring it all back: git proq undo");
        lane::expire(project)?;
    }
    Ok(Exit::Done)
}

/// Whether a lane that was not named is a candidate. Evidence decides afterwards.
fn wanted(project: &Project, lane: &AnyLane, all: bool) -> Result<bool, Failure> {
    // Those of a batch are its own to keep or to let go.
    if lane
        .batch
        .as_ref()
        .is_some_and(|of| swarm::find_batch(project, &of.batch).is_ok_and(|b| b.cleaned.is_none()))
    {
        return Ok(false);
    }
    let (state, _) = effective_state(project, lane)?;
    let Some(branch) = lane.branch() else {
        // What was said is worth something for as long as nobody says otherwise.
        let unsaid = matches!(state, LaneState::Failed | LaneState::Stalled | LaneState::Stopped);
        let over = lane.works_in_place() && !state.is_busy();
        return Ok(all && (unsaid || over));
    };
    let gone = !lane.path.exists() || project.repo.branch_tip(branch)?.is_none();
    Ok(match state {
        LaneState::Landed => true,
        LaneState::NoChange | LaneState::Failed | LaneState::Stalled | LaneState::Stopped => all || gone,
        LaneState::Done if lane.already => all || gone,
        LaneState::Starting | LaneState::Running | LaneState::Orphaned => false,
        _ => gone,
    })
}

fn foresee(
    session: &Session,
    project: &Project,
    lane: &AnyLane,
    args: &Cleanup,
) -> Result<Option<Gone>, Failure> {
    match lane.clone().with_tree() {
        Ok(lane) => {
            let found = lane::gather_evidence(project, &lane, &WorktreeList::read(&project.repo)?)?;
            lane::refuse(&lane, &found, args.force)?;
        }
        Err(_) if args.force => {}
        Err(_) => lane::refuse_busy(project, lane)?,
    }
    session.ui.say(format!("would clean up {}", lane.name));
    Ok(None)
}

/// Worktrees that a killed process left without a record become lanes nobody asked for; those without work go.
/// Returns how many there were, and how it ended.
fn take_strays(session: &Session, project: &Project, args: &Cleanup) -> Result<(usize, Exit), Failure> {
    let worktrees = WorktreeList::read(&project.repo)?;
    let strays = lane::stray_worktrees(project, &project.lanes()?, &worktrees)?;
    let done = if args.dry_run { "would clean up" } else { "cleaned up" };
    let mut exit = Exit::Done;
    for path in &strays {
        match lane::remove_stray(project, path, args.dry_run) {
            Ok(false) => {}
            Ok(true) => session.ui.say(format!("{done} {}, which no lane has on record", path.display())),
            Err(e) if e.is_decision() => session.ui.say(e.to_string()),
            Err(e) => exit = report::show(&e.into(), false),
        }
    }
    Ok((strays.len(), exit))
}
