//! Populating new worktrees with files, and caching the blob sizes learned on the way.

use std::path::Path;

use proq_base::diagnostics::Listener;
use proq_base::lane_name::LaneName;
use proq_git as git;
use proq_git::CommitId;
use proq_git::worktrees::populate::PopulateOutcome;
use proq_git::worktrees::populate::blob_sizes::BlobSizes;
use proq_git::worktrees::populate::progress::{OnProgress, PopulateProgress};
use proq_store::base::atomic::write_unsynced;

use crate::lane::{Error, Project};

/// Writes into worktrees that have no files yet those of the commit that they are at.
///
/// # Errors
/// Fails when a file cannot be written, or when the user interrupts. The caller removes what was written by
/// then.
pub fn populate_worktrees(
    project: &Project,
    dirs: &[&Path],
    commit: CommitId,
) -> Result<PopulateOutcome, Error> {
    let cache_path = project.store.layout().blob_size_cache();
    let mut sizes =
        BlobSizes::parse(&proq_base::regular_file::read_store_file(&cache_path).unwrap_or_default());
    let label = match dirs {
        [dir] => dir.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        dirs => format!("{} lanes", dirs.len()),
    };
    let (repo, may_continue) = (&project.repo, proq_base::interrupt::continue_check());
    let populated = with_progress(&project.listener, &label, |report| {
        repo.populate_worktrees(dirs, commit, &mut sizes, &may_continue, report)
    })?;
    if let Some(bytes) = sizes.changed_bytes() {
        drop(write_unsynced(&cache_path, bytes));
    }
    repo.sync_indexes(dirs)?;
    Ok(populated)
}

/// Runs `work`, which writes files, and shows its progress where it takes long.
///
/// # Errors
/// Fails with the error of `work`, or as interrupted when the user interrupted it.
pub(crate) fn with_progress<T>(
    listener: &Listener,
    label: &str,
    work: impl FnOnce(OnProgress<'_>) -> Result<T, git::Error>,
) -> Result<T, Error> {
    let result = work(&|so_far| listener.progress(describe_progress(label, so_far)));
    listener.progress("");
    if result.is_err() {
        // The error of a git that was stopped does not name the interrupt.
        proq_base::interrupt::require_no_signal()?;
    }
    Ok(result?)
}

/// Describes the progress in one line.
fn describe_progress(label: &str, so_far: &PopulateProgress) -> String {
    let PopulateProgress {
        files_done_and_total: (files_written, files),
        bytes_done_and_total: (bytes_written, bytes),
        is_filtering: filtered,
    } = so_far;
    let suffix = if *filtered { " through a filter" } else { "" };
    let line =
        format!("{label}: {} of {} files{suffix}", group_thousands(*files_written), group_thousands(*files));
    let megabytes = |bytes: &u64| bytes / 1_000_000;
    if megabytes(bytes) == 0 {
        return line;
    }
    format!("{line}, {} of {} MB", megabytes(bytes_written), megabytes(bytes))
}

/// Formats a number with a comma between thousands.
fn group_thousands(number: usize) -> String {
    let digits = number.to_string();
    let (leading, groups) = digits.split_at((digits.len() - 1) % 3 + 1);
    let mut out = leading.to_owned();
    for group in groups.as_bytes().chunks(3) {
        out.push(',');
        out.push_str(&String::from_utf8_lossy(group));
    }
    out
}

/// A lane's worktree that git has on record and that has no files yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EmptyWorktree<'a> {
    /// Name of the lane.
    pub name: &'a LaneName,
    /// Path of the worktree.
    pub dir: &'a Path,
    /// Commit that the worktree is at.
    pub start: CommitId,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn describes_progress_in_one_line() {
        let so_far = |files, bytes| {
            describe_progress(
                "x",
                &PopulateProgress {
                    files_done_and_total: files,
                    bytes_done_and_total: bytes,
                    is_filtering: false,
                },
            )
        };
        assert_eq!(
            so_far((12_345, 38_570), (83_999_999, 261_000_000)),
            "x: 12,345 of 38,570 files, 83 of 261 MB"
        );
        assert_eq!(so_far((0, 600), (0, 2400)), "x: 0 of 600 files");
        let filtered = PopulateProgress {
            files_done_and_total: (1, 2),
            bytes_done_and_total: (0, 0),
            is_filtering: true,
        };
        assert_eq!(describe_progress("x", &filtered), "x: 1 of 2 files through a filter");
        assert_eq!([7, 1000, 1_234_567].map(group_thousands), ["7", "1,000", "1,234,567"]);
    }
}
