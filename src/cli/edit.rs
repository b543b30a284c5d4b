//! Owns `git proq edit`.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde::Serialize;

use super::complete::any_lane_names;
use super::{Done, Failure, Mistake, Session, identity};
use crate::explain::Exit;
use crate::lane::{self, operate};

/// Change what is said of a lane
///
/// Its title, which lists show. At first that is the first line of its prompt.
///
/// Example:
///     git proq edit payments --title "Payments by card and by invoice"
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Edit {
    /// The lane
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(any_lane_names))]
    pub(crate) lane: String,
    /// Its title, on one line of 120 characters at most
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) title: String,
    /// Say what would be changed, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Serialize)]
struct Answer<'a> {
    lane: &'a str,
    title: &'a str,
    before: &'a str,
    dry_run: bool,
}

pub(super) fn run(session: &Session, args: &Edit) -> Done {
    let title = lane::plain_title(&args.title).ok_or_else(untitled)?;
    let project = session.project_to_change()?;
    let lane = project.any_lane(&args.lane)?;
    identity::refuse_agent_for_others(std::slice::from_ref(&lane.name), args.dry_run)?;
    if !args.dry_run {
        operate(&project, "edit", |op| op.update_lane(&lane.name, |record| record.title.clone_from(&title)))?;
    }
    if session.ui.json {
        let (lane, before) = (lane.name.as_str(), lane.title.as_str());
        session.ui.object(Answer { lane, title: &title, before, dry_run: args.dry_run });
        return Ok(Exit::Done);
    }
    let verb = if args.dry_run { "would call" } else { "called" };
    session.ui.answer(format!("{verb} {}: {title}", lane.name));
    Ok(Exit::Done)
}

fn untitled() -> Failure {
    let example = "git proq edit payments --title \"Payments by card\"";
    Mistake::Missing { what: "the title says nothing", example }.into()
}
