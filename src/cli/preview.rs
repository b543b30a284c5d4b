//! Owns `git proq preview`.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde::Serialize;

use super::complete::lane_names;
use super::{Done, Mistake, Session, identity, ui};
use crate::explain::Exit;
use crate::git::Restored;
use crate::lane::{self, Project};
use crate::preview::{self, Back, Entered, Goal, Refreshed};

/// Show a lane in the main checkout, and go back
///
/// Your uncommitted changes, staged, unstaged and untracked, are set aside first and come back with --back exactly as
/// they were. Edits made while a lane is shown come back with its next preview; commits go to the lane.
///
/// Examples:
///     git proq preview payments
///     git proq preview --refresh
///     git proq preview --back
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
#[command(group = clap::ArgGroup::new("what").required(true).args(["lane", "back", "refresh"]))]
#[command(
    override_usage = "git proq preview [OPTIONS] LANE\n       git proq preview [OPTIONS] --back\n       git proq preview [OPTIONS] --refresh"
)]
pub(crate) struct Preview {
    /// The lane to show
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(lane_names))]
    pub(crate) lane: Option<String>,
    /// Go back to where you were
    #[arg(long, short)]
    pub(crate) back: bool,
    /// Bring the preview to where its lane is now
    #[arg(long, short)]
    pub(crate) refresh: bool,
    /// Say what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Serialize, Default)]
struct Answer {
    /// What is shown now: a lane, or nothing.
    lane: Option<String>,
    /// What the main checkout is on now.
    on: String,
    /// The lane's commit that is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    tip: Option<String>,
    /// Whether own changes are set aside.
    waiting: bool,
    /// How own changes came back: exactly, merged, conflict.
    #[serde(skip_serializing_if = "Option::is_none")]
    restored: Option<&'static str>,
    /// The stash-shaped commit that still holds own changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<String>,
    /// Paths that kept them from coming back.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    conflicts: Vec<String>,
    dry_run: bool,
}

pub(super) fn run(session: &Session, args: &Preview) -> Done {
    let project = session.project_to_change()?;
    identity::refuse_agent_for_others(&[], args.dry_run)?;
    if args.dry_run {
        return plan(session, &project, args);
    }
    if args.back {
        return Ok(say_back(session, &project, &preview::back(&project)?));
    }
    if args.refresh {
        say_refreshed(session, &preview::refresh(&project)?);
        return Ok(Exit::Done);
    }
    let name = args.lane.as_deref().ok_or(Mistake::Missing {
        what: "nothing says which lane to show",
        example: "git proq preview payments",
    })?;
    let lane = project.lane(name)?;
    let entered = preview::enter(&project, &lane.name)?;
    say_entered(session, &lane.name, &entered);
    Ok(Exit::Done)
}

fn say_entered(session: &Session, lane: &str, entered: &Entered) {
    if session.ui.json {
        session.ui.object(Answer {
            lane: Some(lane.to_owned()),
            on: lane.to_owned(),
            tip: Some(entered.tip.to_string()),
            waiting: entered.kept,
            ..Answer::default()
        });
        return;
    }
    if entered.already {
        session.ui.answer(format!("the main checkout shows '{lane}' already"));
        session.ui.hint("bring it up to date: git proq preview --refresh");
        return;
    }
    session.ui.answer(format!("the main checkout shows '{lane}' ({})", entered.tip.short()));
    if entered.kept {
        session
            .ui
            .say(format!("your changes on {} are set aside and come back with --back", entered.came_from));
    }
    if entered.edits > 0 {
        session.ui.say("your edits from its last preview are back");
    }
    session.ui.hint("go back: git proq preview --back");
}

fn say_refreshed(session: &Session, done: &Refreshed) {
    if session.ui.json {
        session.ui.object(Answer {
            lane: Some(done.lane.clone()),
            on: done.lane.clone(),
            tip: Some(done.to.to_string()),
            waiting: done.waiting,
            ..Answer::default()
        });
    } else if done.from == done.to {
        session.ui.answer(format!("the preview of '{}' is up to date ({})", done.lane, done.to.short()));
    } else {
        session.ui.answer(format!(
            "the preview of '{}' moved from {} to {}",
            done.lane,
            done.from.short(),
            done.to.short()
        ));
    }
}

/// A conflict is the user's to solve, so it is an exit code of its own.
fn say_back(session: &Session, project: &Project, back: &Back) -> Exit {
    let conflicts: Vec<String> = back.conflicts().iter().map(ToString::to_string).collect();
    let exit = if conflicts.is_empty() { Exit::Done } else { Exit::Conflicts };
    if session.ui.json {
        session.ui.object(Answer {
            on: back.to.to_string(),
            restored: back.restored.as_ref().map(word),
            snapshot: back.snapshot.map(|id| id.to_string()),
            conflicts,
            ..Answer::default()
        });
        return exit;
    }
    session.ui.answer(format!("the main checkout is on {} again", back.to));
    match &back.restored {
        None => {}
        Some(Restored::Exactly) => session.ui.say("your changes are back exactly as they were"),
        Some(Restored::Merged) => {
            session.ui.say(format!("your changes are back, on top of what {} is now", back.to));
        }
        Some(Restored::Conflict(paths)) => {
            session.ui.warn(format!(
                "{} has moved, and your changes conflict with it in {}; the checkout is clean and your changes are kept",
                back.to,
                ui::count(paths.len(), "file")
            ));
            let (how, id) = (lane::way_back(project, back.snapshot, paths), back.snapshot);
            let id = id.map(|id| id.to_string()).unwrap_or_default();
            session.ui.hint(format!("bring them back {}: {} {id}", how.aim(), how.command()));
        }
    }
    if back.edits.is_some() {
        session
            .ui
            .say(format!("your edits in the preview come back with the next preview of '{}'", back.lane));
    }
    exit
}

fn word(restored: &Restored) -> &'static str {
    match restored {
        Restored::Exactly => "exactly",
        Restored::Merged => "merged",
        Restored::Conflict(_) => "conflict",
    }
}

/// What would be done, from what is known before.
fn plan(session: &Session, project: &Project, args: &Preview) -> Done {
    let goal = match &args.lane {
        Some(lane) => Goal::Show(lane),
        None if args.refresh => Goal::Refresh,
        None => Goal::Back,
    };
    let plan = preview::plan(project, goal)?;
    if session.ui.json {
        session.ui.object(Answer {
            lane: plan.lane.clone(),
            on: plan.to.clone(),
            waiting: !plan.set_aside.is_empty() || plan.waiting,
            dry_run: true,
            ..Answer::default()
        });
        return Ok(Exit::Done);
    }
    session.ui.answer(format!("would bring the main checkout from {} to {}", plan.from, plan.to));
    session.ui.answer(format!("  files that change   {}", plan.changes));
    if !plan.set_aside.is_empty() {
        session.ui.answer(format!("  files set aside     {}", plan.set_aside.len()));
        for path in plan.set_aside.iter().take(10) {
            session.ui.answer(format!("    {path}"));
        }
    }
    if plan.waiting && plan.lane.is_none() {
        let unless = match plan.may_conflict {
            true => format!(", or stay kept if they conflict with {}", plan.to),
            false => String::new(),
        };
        session.ui.answer(format!("  your own changes would come back{unless}"));
    }
    Ok(Exit::Done)
}
