//! Owns `git proq sync`.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde::Serialize;

use super::complete::lane_names;
use super::{Done, Session, identity};
use crate::explain::Exit;
use crate::git::{self, RepoPath};
use crate::lane::{self, Sync};

/// Give a lane files of the main checkout once more
///
/// What .worktreeinclude and lane.copy name is copied, and what lane.link names is linked, as when the lane was made: what it
/// lacks, and files that nobody has changed there since they were copied. Others that differ are named and stay; with
/// --force they are replaced, too. What is replaced goes to the trash, and `git proq undo` brings it back. Files that are gone from
/// the main checkout stay in the lane. Commands of lane.setup are not run again.
///
/// Examples:
///     git proq sync payments
///     git proq sync payments --force
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct SyncArgs {
    /// The lane
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(lane_names))]
    pub(crate) lane: String,
    /// Replace files that were changed in the lane, too
    #[arg(long)]
    pub(crate) force: bool,
    /// Say what would be given, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Serialize)]
struct Answer<'a> {
    lane: &'a str,
    added: &'a [RepoPath],
    linked: &'a [RepoPath],
    renewed: &'a [RepoPath],
    /// What was replaced although it was changed in the lane.
    replaced: &'a [RepoPath],
    /// What was changed in the lane, and stays.
    kept: &'a [RepoPath],
    dry_run: bool,
}

pub(super) fn run(session: &Session, args: &SyncArgs) -> Done {
    let project = session.project_to_change()?;
    identity::refuse_agent_for_others(std::slice::from_ref(&args.lane), args.dry_run)?;
    let (lane, lock) = project.hold_idle(&args.lane)?;
    let planned = lane::plan_sync(&project, &lane)?;
    if !args.dry_run && !planned.is_nothing(args.force) {
        lane::sync(&project, &lane, &lock, &planned, args.force)?;
    }
    drop(lock);
    say(session, args, &lane.name, &planned);
    Ok(Exit::Done)
}

fn say(session: &Session, args: &SyncArgs, lane: &str, planned: &Sync) {
    let Sync { added, linked, renewed, differs, .. } = planned;
    let (replaced, kept) =
        if args.force { (differs.as_slice(), &[][..]) } else { (&[][..], differs.as_slice()) };
    if session.ui.json {
        let dry_run = args.dry_run;
        return session.ui.object(Answer { lane, added, linked, renewed, replaced, kept, dry_run });
    }
    let verb = if args.dry_run { "would be " } else { "" };
    let parts =
        [(added.as_slice(), "added"), (linked, "linked"), (renewed, "renewed"), (replaced, "replaced")];
    for (paths, what) in parts.iter().filter(|(paths, _)| !paths.is_empty()) {
        session.ui.answer(format!("{verb}{what}: {}", git::names(paths)));
    }
    if planned.is_nothing(args.force) {
        let all = if kept.is_empty() { "all of it" } else { "the rest of it" };
        session.ui.answer(format!("lane '{lane}' has {all}"));
    }
    if !kept.is_empty() {
        session.ui.warn(format!("left as it is, since it is the lane's own by now: {}", git::names(kept)));
        session.ui.hint(format!("replace them all the same: git proq sync {lane} --force"));
    }
}
