//! Owns `git proq diff`.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde::Serialize;

use super::complete::lane_names;
use super::{Done, Session};
use crate::explain::Exit;
use crate::git::RepoPath;

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
    let tip = project.repo.require_commit(&format!("refs/heads/{}", lane.branch))?;
    // Where it left its base by now: the base may have been merged into it since.
    let from = match project.repo.branch_tip(&lane.base)? {
        Some(base) => project.repo.merge_base(tip, base)?.unwrap_or(lane.start),
        None => lane.start,
    };
    // With its folder gone, only what is committed can be compared.
    let (dir, to) = match lane.path.exists() {
        true => (lane.path.as_path(), None),
        false => (project.repo.home(), Some(tip)),
    };
    if session.ui.json {
        let files = project.repo.changed_files(dir, from, to)?;
        session.ui.object(Answer { lane: lane.name, from: from.to_string(), files });
    } else {
        project.repo.show_diff(dir, from, to, args.stat)?;
    }
    Ok(Exit::Done)
}
