//! Owns `git proq diff`.

use std::io::IsTerminal;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde::Serialize;

use super::complete::lane_names;
use super::plain_log::PlainLog;
use super::{Done, Failure, Session};
use crate::explain::Exit;
use crate::git::{Oid, Print, RepoPath, There};
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
        let (from, files) = differing(session, &project, &lane, |there, from, to| {
            Ok((from, project.repo.changed_files(there, from, to)?))
        })?;
        session.ui.object(Answer { lane: lane.name, from: from.to_string(), files });
    } else {
        show(session, &project, &lane, args.stat)?;
    }
    Ok(Exit::Done)
}

/// Shows what a lane changes, as git does.
pub(super) fn show(
    session: &Session,
    project: &Project,
    lane: &LaneRecord,
    stat: bool,
) -> Result<(), Failure> {
    differing(session, project, lane, |there, from, to| {
        let mut log = PlainLog::default();
        let mut print = |part: &[u8]| session.ui.raw(&log.shown(part));
        let print: Option<Print<'_>> = if std::io::stdout().is_terminal() { Some(&mut print) } else { None };
        project.repo.show_diff(there, from, to, stat, print)?;
        session.ui.raw(&log.rest());
        Ok(())
    })
}

/// Compares the commit that a lane's changes are counted from with where they are: in its worktree, untracked files included, or else
/// in a commit.
fn differing<T>(
    session: &Session,
    project: &Project,
    lane: &LaneRecord,
    compare: impl FnOnce(&There, Oid, Option<Oid>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let tip = project.repo.require_commit(&format!("refs/heads/{}", lane.place.branch))?;
    // Where it left its base by now: the base may have been merged into it since.
    let from = match project.repo.branch_tip(&lane.base)? {
        Some(base) => project.repo.merge_base(tip, base)?.unwrap_or(lane.start),
        None => lane.start,
    };
    // With its folder gone, only what is committed can be compared.
    if !lane.path.exists() {
        return compare(&There::tracked(project.repo.home()), from, Some(tip));
    }
    let (untracked, unread) = There::untracked(&project.repo, &lane.path)?;
    for path in unread {
        session.ui.warn(format!("{path} is left out: it cannot be read"));
    }
    if untracked.is_empty() {
        return compare(&There::tracked(&lane.path), from, None);
    }
    let scratch = project.store.layout().scratch()?;
    compare(&There::with(&project.repo, &lane.path, &untracked, scratch.path())?, from, None)
}
