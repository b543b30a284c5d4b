//! Owns `git proq discard`.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde::Serialize;

use super::complete::any_lane_names;
use super::{Done, Failure, Session, identity, report, ui};
use crate::agent;
use crate::explain::Exit;
use crate::git::WorktreeList;
use crate::lane::{self, Operation, Project, Removed, Why, effective_state, operate};
use crate::preview::{self, Retired};
use crate::store::records::AnyLane;

/// Throw lanes away
///
/// A lane with work that is not on its base is kept and the work is named. With --force its commits and uncommitted
/// files are saved first, a running agent is stopped, and the answer says how to get everything back.
///
/// Examples:
///     git proq discard experiment
///     git proq discard --force experiment
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Discard {
    /// The lanes to throw away
    #[arg(value_name = "LANE", required = true, add = ArgValueCompleter::new(any_lane_names))]
    pub(crate) lanes: Vec<String>,
    /// Remove them whatever is in them, saving it all first
    #[arg(long, short)]
    pub(crate) force: bool,
    /// Say what would be removed, and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// One lane, for programs.
#[derive(Serialize)]
pub(super) struct Gone {
    lane: String,
    removed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    history: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    saved: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uncommitted: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trash: Option<String>,
    /// How many messages its agent was never told.
    #[serde(skip_serializing_if = "Option::is_none")]
    untold: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    why: Vec<String>,
}

impl Gone {
    /// Whether it is.
    pub(super) fn is_gone(&self) -> bool {
        self.removed
    }
}

/// The answer of `discard` and `cleanup`.
#[derive(Serialize)]
pub(super) struct Answer {
    pub(super) lanes: Vec<Gone>,
    pub(super) dry_run: bool,
}

pub(super) fn run(session: &Session, args: &Discard) -> Done {
    let project = session.project_to_change()?;
    for name in &args.lanes {
        project.any_lane(name)?;
    }
    let names = args.lanes.iter().map(|name| project.any_lane(name).map(|l| l.name));
    let names: Vec<String> = names.collect::<Result<_, _>>()?;
    // Whatever is in another lane is for somebody else to throw away.
    if args.force {
        identity::refuse_for_others(session, &project, &names)?;
    }
    let mut exit = Exit::Done;
    let mut lanes = Vec::new();
    let mut told = |name: &str, done: Result<Gone, Failure>| match done {
        Ok(gone) => lanes.push(gone),
        Err(failure) => {
            exit = if session.ui.json { Exit::Refused } else { report::show(&failure, false) };
            lanes.push(kept(name, &failure));
        }
    };
    if args.dry_run {
        for name in &names {
            told(name, foresee(session, &project, name, args.force));
        }
    } else {
        let ready = make_ready(&project, &names, args.force);
        // One operation, so that one undo brings them all back.
        operate(&project, "discard", |op| {
            for (name, stopped) in names.iter().zip(ready) {
                let done = stopped.and_then(|()| take_away(session, op, name, Why::Discard, args.force));
                told(name, done);
            }
            Ok::<_, Failure>(())
        })?;
    }
    if session.ui.json {
        session.ui.object(Answer { lanes, dry_run: args.dry_run });
    }
    Ok(exit)
}

/// A lane that was not removed, for programs.
pub(super) fn kept(lane: &str, failure: &Failure) -> Gone {
    let why = vec![failure.0.to_string()];
    Gone {
        lane: lane.to_owned(),
        removed: false,
        history: None,
        saved: None,
        uncommitted: None,
        trash: None,
        untold: None,
        why,
    }
}

/// Asks the hook about lanes that are to go, and stops the agents of those that are to go whatever is in them. No lock is held
/// meanwhile.
pub(super) fn make_ready(project: &Project, names: &[String], force: bool) -> Vec<Result<(), Failure>> {
    let stop = |name: &String| {
        let lane = project.any_lane(name)?;
        project.ask_to_remove(name)?;
        let (state, _) = effective_state(project, &lane)?;
        if force && state.is_busy() {
            agent::stop(project, name)?;
        }
        Ok(())
    };
    names.iter().map(stop).collect()
}

/// Leaves a preview of the lane, and removes it.
pub(super) fn take_away(
    session: &Session,
    op: &Operation<'_>,
    name: &str,
    why: Why,
    force: bool,
) -> Result<Gone, Failure> {
    let project = op.project;
    let lane = project.any_lane(name)?;
    if lane.purpose().is_some() {
        return let_go(session, op, &lane, why);
    }
    let Retired { removed, back } = op.attempt(|| preview::retire(op, name, why, force))?;
    if let Some(back) = back {
        session.ui.say(format!("left the preview of '{name}'; the main checkout is on {} again", back.to));
        back.tell_conflict(project);
    }
    let verb = if why == Why::Discard { "discarded" } else { "cleaned up" };
    if !session.ui.json {
        session.ui.answer(format!("{verb} {name}"));
        say_way_back(session, project, &removed, why);
    }
    Ok(Gone {
        lane: name.to_owned(),
        removed: true,
        history: Some(removed.past.clone()),
        saved: removed.saved.clone(),
        uncommitted: removed.uncommitted.map(|id| id.to_string()),
        trash: Some(removed.trash.display().to_string()),
        untold: Some(removed.untold).filter(|n| *n > 0),
        why: Vec::new(),
    })
}

/// Lets a lane go that has nothing in the repository. What was said stays to be read.
fn let_go(session: &Session, op: &Operation<'_>, lane: &AnyLane, why: Why) -> Result<Gone, Failure> {
    let past = op.attempt(|| lane::remove_look(op, lane, why))?;
    if !session.ui.json {
        let verb = if why == Why::Discard { "discarded" } else { "cleaned up" };
        session.ui.answer(format!("{verb} {}", lane.name));
        let what = if lane.only_looks() { "what was said stays" } else { "its record stays" };
        session.ui.say(format!("{what} for a while: git proq show {past}"));
    }
    Ok(Gone {
        lane: lane.name.clone(),
        removed: true,
        history: Some(past),
        saved: None,
        uncommitted: None,
        untold: None,
        trash: None,
        why: Vec::new(),
    })
}

/// The commands that bring back what was in a lane. What landed needs none.
pub(super) fn say_way_back(session: &Session, project: &Project, removed: &Removed, why: Why) {
    if let (true, Some(tip)) = (removed.unlanded, removed.tip) {
        session.ui.say(format!("its commits are kept: git branch NEW-NAME {}", tip.short()));
    }
    if let Some((place, tip)) = &removed.elsewhere {
        session.ui.say(format!("its commits on {place} are kept: git branch NEW-NAME {}", tip.short()));
    }
    if let Some(id) = removed.uncommitted {
        session.ui.say(format!("its uncommitted files are kept: git stash apply {}", id.short()));
    }
    if let (false, Some(what)) = (removed.unread.is_empty(), removed.in_trash) {
        session.ui.warn(format!(
            "{}: {what} stays in the trash until you move it out: {}",
            lane::unread_in_words(&removed.unread),
            removed.trash.display()
        ));
    } else if let (Why::Discard, Some(what)) = (why, removed.in_trash) {
        let days = project.settings.trash_keep.as_secs() / (24 * 60 * 60);
        session.ui.say(format!(
            "{what} is kept for {}: {}",
            ui::count(usize::try_from(days).unwrap_or(usize::MAX), "day"),
            removed.trash.display()
        ));
    }
}

/// Says what removing a lane would do, or returns why it would be kept.
pub(super) fn foresee(
    session: &Session,
    project: &Project,
    name: &str,
    force: bool,
) -> Result<Gone, Failure> {
    let lane = project.any_lane(name)?;
    let Ok(lane) = lane.clone().with_tree() else {
        return foresee_let_go(session, project, &lane, force);
    };
    let mut found = lane::gather_evidence(project, &lane, &WorktreeList::read(&project.repo)?)?;
    // With force its agent is stopped first.
    let stops = force && found.busy.is_some();
    if stops {
        found.busy = None;
        found.residents.clear();
    }
    lane::refuse(&lane, &found, force)?;
    let saved = found.objections(&lane.base);
    let more = if saved.is_empty() { String::new() } else { format!(", after saving: {}", saved.join("; ")) };
    let first = if stops { "stop its agent and " } else { "" };
    session.ui.say(format!("would {first}discard {name}{more}"));
    Ok(Gone {
        lane: name.to_owned(),
        removed: false,
        history: None,
        saved: None,
        uncommitted: None,
        untold: None,
        trash: None,
        why: saved,
    })
}

fn foresee_let_go(
    session: &Session,
    project: &Project,
    lane: &AnyLane,
    force: bool,
) -> Result<Gone, Failure> {
    let busy = lane::refuse_busy(project, lane);
    let first = if busy.is_err() && force { "stop its agent and " } else { "" };
    if !force {
        busy?;
    }
    session.ui.say(format!("would {first}discard {}", lane.name));
    Ok(Gone {
        lane: lane.name.clone(),
        removed: false,
        history: None,
        saved: None,
        uncommitted: None,
        untold: None,
        trash: None,
        why: Vec::new(),
    })
}
