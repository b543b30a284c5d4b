//! The `git proq diff` command.

use std::io::IsTerminal;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde::Serialize;

use super::candidates::lane_names;
use super::log_sanitizer::LogSanitizer;
use super::{CommandContext, CommandResult, Failure};
use crate::explain::Exit;
use crate::git::{DiffWorktree, Oid, PrintChunk, RepoPath};
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
struct DiffOutput {
    lane: String,
    from: String,
    files: Vec<RepoPath>,
}

pub(super) fn run(session: &CommandContext, args: &Diff) -> CommandResult {
    let project = session.project()?;
    let lane = project.lane(&args.lane)?;
    if session.ui.json {
        let (from, files) = with_compared_commits(session, &project, &lane, |there, from, to| {
            Ok((from, project.repo.changed_files(there, from, to)?))
        })?;
        session.ui.print_json(DiffOutput { lane: lane.name, from: from.to_string(), files });
    } else {
        print_diff(session, &project, &lane, args.stat)?;
    }
    Ok(Exit::Success)
}

/// Prints the changes of a lane in git's format.
pub(super) fn print_diff(
    session: &CommandContext,
    project: &Project,
    lane: &LaneRecord,
    stat: bool,
) -> Result<(), Failure> {
    with_compared_commits(session, project, lane, |there, from, to| {
        let mut plain_output = LogSanitizer::default();
        let mut print = |chunk: &[u8]| session.ui.print_bytes(&plain_output.sanitize_chunk(chunk));
        let print: Option<PrintChunk<'_>> =
            if std::io::stdout().is_terminal() { Some(&mut print) } else { None };
        project.repo.show_diff(there, from, to, stat, print)?;
        session.ui.print_bytes(&plain_output.finish());
        Ok(())
    })
}

/// Calls `compare` with the commit from which a lane's changes are counted and the location of those changes.
/// That is the lane's worktree, untracked files included. If the worktree is gone, it is the tip of the
/// branch.
fn with_compared_commits<T>(
    session: &CommandContext,
    project: &Project,
    lane: &LaneRecord,
    compare: impl FnOnce(&DiffWorktree, Oid, Option<Oid>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let tip = project.repo.require_commit(&format!("refs/heads/{}", lane.kind.branch))?;
    // The current fork point: the base may have been merged into the lane since.
    let from = match project.repo.branch_tip(&lane.base)? {
        Some(base) => project.repo.merge_base(tip, base)?.unwrap_or(lane.start),
        None => lane.start,
    };
    // Without the worktree, only commits can be compared.
    if !lane.path.exists() {
        return compare(&DiffWorktree::with_tracked_files(project.repo.command_dir()), from, Some(tip));
    }
    let (untracked, unreadable) = DiffWorktree::list_untracked(&project.repo, &lane.path)?;
    for path in unreadable {
        session.ui.warn(format!("{path} is left out: it cannot be read"));
    }
    if untracked.is_empty() {
        return compare(&DiffWorktree::with_tracked_files(&lane.path), from, None);
    }
    let scratch = project.store.layout().create_scratch()?;
    compare(
        &DiffWorktree::with_untracked_files(&project.repo, &lane.path, &untracked, scratch.path())?,
        from,
        None,
    )
}
