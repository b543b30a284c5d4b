//! The changes of a lane, compared with the commit that it forked from.

use std::io::IsTerminal;

use proq_git::CommitId;
use proq_git::program::command::PrintChunk;
use proq_git::status::diff::DiffWorktree;
use proq_lib::lane::Project;
use proq_store::records::lane::LaneRecord;

use crate::cli::invocation::context::CommandContext;
use crate::cli::invocation::failure::Failure;
use crate::cli::terminal::log_sanitizer::LogSanitizer;

/// Prints the changes of a lane in git's format.
pub(crate) fn print_diff(
    context: &CommandContext,
    project: &Project,
    lane: &LaneRecord,
    stat: bool,
) -> Result<(), Failure> {
    with_fork_point_and_worktree(context, project, lane, |there, from, to| {
        let mut plain_output = LogSanitizer::default();
        let mut print = |chunk: &[u8]| context.ui.print_bytes(&plain_output.sanitize_chunk(chunk));
        let print: Option<PrintChunk<'_>> =
            if std::io::stdout().is_terminal() { Some(&mut print) } else { None };
        project.repo.show_diff(there, from, to, stat, print)?;
        context.ui.print_bytes(&plain_output.finish());
        Ok(())
    })
}

/// Calls `compare` with the worktree to read, the fork point of the lane, and the tip to compare it with. The
/// tip is `None` if the lane's worktree exists: its files are compared then, untracked ones included.
pub(crate) fn with_fork_point_and_worktree<T>(
    context: &CommandContext,
    project: &Project,
    lane: &LaneRecord,
    compare: impl FnOnce(&DiffWorktree, CommitId, Option<CommitId>) -> Result<T, Failure>,
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
        context.ui.warn(format!("{path} is left out: it cannot be read"));
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
