//! Repairs that are provably safe: none deletes content, and each checks the state again before it acts.

use std::path::{Path, PathBuf};

use proq_base::lane_name::LaneName;
use proq_git::CommitId;
use proq_store::base::record::Record;
use proq_store::locks::lock::LockName;
use proq_store::records::lane_state::RunState;
use proq_store::records::preview::PreviewRecord;
use proq_store::records::snapshot::SnapshotRecord;

use crate::lane::removal::unrecorded_worktree;
use crate::lane::state::crash_reason;
use crate::lane::state::lane_state::{effective_state, status_after_run};
use crate::lane::worktree::lanes_folder::create_lanes_folder;
use crate::lane::{Error, Project};
use crate::operation::locked_worktree;

/// A repair of one finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Repair {
    /// Removes the access of other users to `proq/`.
    RestrictToOwner,
    /// Excludes the lanes' folder from `git status`.
    IgnoreLanesFolder,
    /// Records that the run of a lane has ended, since its supervisor is gone.
    FinishRun(LaneName),
    /// Creates the ref that keeps a commit.
    CreateRef {
        /// Full name of the ref.
        name: String,
        commit: CommitId,
    },
    /// Removes preview edits that are lost from the lane that waits for them.
    ForgetEdits {
        lane: LaneName,
        /// Id of the snapshot that held the edits.
        snapshot: String,
    },
    /// Closes a preview of which only the record is left.
    ClosePreview,
    /// Moves an unfinished file out of the way.
    ParkFile(PathBuf),
    /// Moves git's registration of a worktree whose folder is gone to the trash. Holds the lane's name and
    /// the folder's path.
    RetireRegistration(LaneName, PathBuf),
}

impl Repair {
    /// Applies the repair. The next examination shows whether it helped.
    pub(super) fn apply(&self, project: &Project) -> Result<(), Error> {
        let layout = project.store.layout();
        match self {
            Repair::RestrictToOwner => Ok(layout.restrict_to_owner()?),
            Repair::IgnoreLanesFolder => {
                let _lock = project.store.locks().acquire(&LockName::WorktreeList)?;
                create_lanes_folder(project)
            }
            Repair::FinishRun(name) => finish_run(project, name),
            Repair::CreateRef { name, commit } => {
                Ok(project.repo.create_ref(name, *commit, "git-proq: kept again")?)
            }
            Repair::ForgetEdits { lane, snapshot: snap } => forget_edits(project, lane, snap),
            Repair::ClosePreview => close_preview(project),
            Repair::ParkFile(path) => Ok(layout.park_unfinished_file(path)?),
            Repair::RetireRegistration(name, path) => retire_registration(project, name, path),
        }
    }
}

/// Records the crash of a run whose supervisor is gone; does nothing while a process of the run is alive.
fn finish_run(project: &Project, name: &LaneName) -> Result<(), Error> {
    // The lock belongs to the supervisor, or to a command that continues the lane.
    let Some(_lock) = project.store.locks().try_acquire(&LockName::Run(name.clone()))? else {
        return Ok(());
    };
    let lane = project.any_lane(name)?;
    // An agent that is still running holds the other lock. The lane is then orphaned, and `stop` ends the
    // agent.
    if !lane.state().is_claimed() || project.store.locks().is_held(&LockName::AgentAlive(name.clone()))? {
        return Ok(());
    }
    let status = status_after_run(&project.store, name, RunState::Failed);
    let reason = crash_reason::describe_crash(project, name);
    project.update_lane(name, |record| {
        record.status = status;
        record.detail = Some(reason);
    })?;
    debug_assert!(
        project.any_lane(name).is_ok_and(|l| effective_state(project, &l).is_ok_and(|s| s.0 == l.state()))
    );
    Ok(())
}

/// Removes a lost snapshot from the preview edits that the lane waits for, unless some part of it exists.
fn forget_edits(project: &Project, lane: &LaneName, snapshot: &str) -> Result<(), Error> {
    let is_present = project.store.layout().snapshot(snapshot).exists()
        || project.repo.ref_tip(&SnapshotRecord::ref_name(snapshot))?.is_some();
    if !is_present {
        project.update_lane(lane, |record| record.preview_edit_snapshots.retain(|id| id != snapshot))?;
    }
    Ok(())
}

/// Deletes the record of a preview that the checkout has left and that holds no changes.
fn close_preview(project: &Project) -> Result<(), Error> {
    let path = project.store.layout().preview_record();
    let main = project.repo.require_main()?.to_owned();
    let _checkout = locked_worktree::LockedWorktree::lock(project, &main)?;
    let Some(preview) = PreviewRecord::load_if_exists(&path)? else { return Ok(()) };
    let is_back_at_origin = project.repo.main_head() == Some(preview.previous_head.clone());
    let changes_wait = match &preview.parked_snapshot {
        Some(id) => {
            project.find_unrestored_snap(id)?.is_some() || project.orphaned_snap_commit(id)?.is_some()
        }
        None => false,
    };
    if is_back_at_origin && !changes_wait && project.repo.branch_tip(&preview.branch)?.is_none() {
        std::fs::remove_file(&path).map_err(Error::io("remove", &path))?;
        if let Some((commit, name)) = preview.detached_origin()
            && project.repo.ref_tip(&name)? == Some(commit)
        {
            project.repo.delete_ref(&name, commit, "git-proq: the preview is over")?;
        }
    }
    Ok(())
}

/// Moves git's registration of a worktree whose folder is gone to the trash. Like every removal, it first
/// saves the commits in refs.
fn retire_registration(project: &Project, name: &LaneName, path: &Path) -> Result<(), Error> {
    let run = LockName::Run(name.clone());
    let Some(_run_lock) = project.store.locks().try_acquire(&run)? else { return Ok(()) };
    if path.exists() || project.store.layout().has_lane_record(name) {
        return Ok(());
    }
    unrecorded_worktree::trash_registration(project, name, path)
}
