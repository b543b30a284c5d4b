//! The changes of a lane or of one of its runs.

use proq_base::lane_name::LaneName;
use proq_git::program::command::PrintChunk;
use proq_git::status::diff::DiffWorktree;
use proq_git::status::patch::{Patch, PatchSelection};
use proq_git::{CommitId, RepoPath};
use proq_store::base::record::Record;
use proq_store::base::run_number::RunNumber;
use proq_store::operations::scratch::ScratchDir;
use proq_store::records::lane::LaneRecord;
use proq_store::records::run::RunRecord;
use serde::Serialize;

use super::error::BoardError;
use crate::lane::Project;
use crate::ops::error::Error;

/// Two states of a lane to compare: from a commit to another, or to the files of the lane's worktree.
pub struct LaneDiff<'a> {
    project: &'a Project,
    /// The lane.
    pub lane: LaneRecord,
    /// The run whose changes are compared; none for all changes of the lane.
    pub run: Option<RunNumber>,
    /// Commit that the changes are counted from.
    pub from: CommitId,
    to: Option<CommitId>,
    worktree: DiffWorktree,
    /// Holds the index with the untracked files.
    _scratch: Option<ScratchDir>,
}

/// JSON output: the fork point of a lane, and the files that the lane changes from there.
#[derive(Debug, Serialize)]
pub struct DiffOutput {
    lane: LaneName,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<RunNumber>,
    /// Id of the commit that the changes are counted from.
    from: String,
    files: Vec<RepoPath>,
    /// The changed lines, if they were requested.
    #[serde(flatten)]
    patch: Option<Patch>,
}

impl<'a> LaneDiff<'a> {
    /// Prepares the comparison of a lane with the commit where it left its base, or of one of its runs with the
    /// commit where the run began. Warns of untracked files that cannot be read, and leaves them out.
    ///
    /// # Errors
    /// [`BoardError::NoSuchRun`], the lane's branch is missing, or the worktree cannot be read.
    pub fn open(project: &'a Project, lane: LaneRecord, run: Option<RunNumber>) -> Result<Self, Error> {
        match run {
            None => {
                let tip = project.repo.require_commit(&format!("refs/heads/{}", lane.kind.branch))?;
                // The current fork point: the base may have been merged into the lane since.
                let from = match project.repo.branch_tip(&lane.base)? {
                    Some(base) => project.repo.merge_base(tip, base)?.unwrap_or(lane.start),
                    None => lane.start,
                };
                // Without the worktree, only commits can be compared.
                let to = (!lane.path.exists()).then_some(tip);
                Self::compare(project, lane, None, from, to)
            }
            Some(run) => {
                let path = project.store.layout().run_record(&lane.name, run);
                let Some(record) = RunRecord::load_if_exists(&path)? else {
                    return Err(BoardError::NoSuchRun { lane: lane.name, run }.into());
                };
                // A run without an end may still be changing the worktree.
                let to = record.tip_after.or_else(|| (!lane.path.exists()).then_some(record.tip_before));
                Self::compare(project, lane, Some(run), record.tip_before, to)
            }
        }
    }

    /// Compares `from` with `to`, or with the files of the lane's worktree, untracked ones included.
    fn compare(
        project: &'a Project,
        lane: LaneRecord,
        run: Option<RunNumber>,
        from: CommitId,
        to: Option<CommitId>,
    ) -> Result<Self, Error> {
        let mut scratch = None;
        let worktree = if to.is_some() {
            DiffWorktree::with_tracked_files(project.repo.command_dir())
        } else {
            let (untracked, unreadable) = DiffWorktree::list_untracked(&project.repo, &lane.path)?;
            for path in unreadable {
                project.listener.warn(format!("{path} is skipped: it cannot be read"));
            }
            if untracked.is_empty() {
                DiffWorktree::with_tracked_files(&lane.path)
            } else {
                let dir = scratch.insert(project.store.layout().create_scratch()?).path();
                DiffWorktree::with_untracked_files(&project.repo, &lane.path, &untracked, dir)?
            }
        };
        Ok(LaneDiff { project, lane, run, from, to, worktree, _scratch: scratch })
    }

    /// Shows the difference as git does: on the terminal with the user's pager, and in chunks by `print` where
    /// git would start no pager. `print` is `None` where there is no terminal. `stat` shows only the files.
    ///
    /// # Errors
    /// Fails when git fails, or a changed file cannot be read.
    pub fn show(&self, stat: bool, print: Option<PrintChunk<'_>>) -> Result<(), Error> {
        Ok(self.project.repo.show_diff(&self.worktree, self.from, self.to, stat, print)?)
    }

    /// Returns the difference in git's format. `stat` shows only the files.
    ///
    /// # Errors
    /// Fails when git fails, or a changed file cannot be read.
    pub fn to_text(&self, stat: bool) -> Result<Vec<u8>, Error> {
        Ok(self.project.repo.diff_text(&self.worktree, self.from, self.to, stat)?)
    }

    /// Returns the JSON output, with the changed lines of `selection` if there is one.
    ///
    /// # Errors
    /// Fails when git fails, or a changed file cannot be read.
    pub fn to_output(&self, selection: Option<&PatchSelection>) -> Result<DiffOutput, Error> {
        let repo = &self.project.repo;
        let patch = selection
            .map(|selection| repo.patch(&self.worktree, self.from, self.to, selection))
            .transpose()?;
        Ok(DiffOutput {
            lane: self.lane.name.clone(),
            run: self.run,
            from: self.from.to_string(),
            files: repo.changed_files(&self.worktree, self.from, self.to)?,
            patch,
        })
    }
}
