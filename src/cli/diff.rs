//! Owns `git proq diff`.

use std::path::Path;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde::Serialize;

use super::complete::lane_names;
use super::{Done, Failure, Session};
use crate::explain::Exit;
use crate::git::{Oid, RepoPath};
use crate::lane::Project;
use crate::store::records::LaneRecord;

/// Show what a lane changes, uncommitted work included
///
/// Compared with the commit where it left its base.
///
/// Examples:
///     git proq diff payments
///     git proq diff --stat payments
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Diff {
    /// The lane whose changes to show
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(lane_names))]
    pub(crate) lane: String,
    /// Only which files change, and how much
    #[arg(long)]
    pub(crate) stat: bool,
}

#[derive(Serialize)]
struct Answer {
    lane: String,
    from: String,
    files: Vec<RepoPath>,
}

pub(super) fn run(session: &Session, args: &Diff) -> Done {
    let project = session.project()?;
    let lane = project.lane(&args.lane)?;
    if session.ui.json {
        let (from, dir, to) = ends(&project, &lane)?;
        let files = project.repo.changed_files(dir, from, to)?;
        session.ui.object(Answer { lane: lane.name, from: from.to_string(), files });
    } else {
        show(&project, &lane, args.stat)?;
    }
    Ok(Exit::Done)
}

/// Shows what a lane changes, as git does.
pub(super) fn show(project: &Project, lane: &LaneRecord, stat: bool) -> Result<(), Failure> {
    let (from, dir, to) = ends(project, lane)?;
    Ok(project.repo.show_diff(dir, from, to, stat)?)
}

/// The commit that a lane's changes are counted from, and where they are: in its worktree, or else in a commit.
fn ends<'a>(project: &'a Project, lane: &'a LaneRecord) -> Result<(Oid, &'a Path, Option<Oid>), Failure> {
    let tip = project.repo.require_commit(&format!("refs/heads/{}", lane.place.branch))?;
    // Where it left its base by now: the base may have been merged into it since.
    let from = match project.repo.branch_tip(&lane.base)? {
        Some(base) => project.repo.merge_base(tip, base)?.unwrap_or(lane.start),
        None => lane.start,
    };
    // With its folder gone, only what is committed can be compared.
    Ok(match lane.path.exists() {
        true => (from, lane.path.as_path(), None),
        false => (from, project.repo.home(), Some(tip)),
    })
}
