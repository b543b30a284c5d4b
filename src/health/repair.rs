//! Owns repairs that are provably safe: nothing that holds bytes is deleted, and each looks again before it acts.

use std::path::{Path, PathBuf};

use crate::git::Oid;
use crate::lane::{self, Error, Project, effective_state, keep_out, state_after};
use crate::store::records::{LaneState, PreviewRecord, SnapRecord};
use crate::store::{LockName, Record};

/// One repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Repair {
    /// Lets nobody else look into `proq/`.
    ClosePrivate,
    /// Keeps the lanes' folder out of `git status`.
    KeepOut,
    /// Notes that a lane's supervisor is gone.
    EndRun(String),
    /// Makes the ref that keeps a commit.
    Anchor {
        /// Its full name.
        name: String,
        /// The commit.
        commit: Oid,
    },
    /// Lets a lane no longer wait for edits that are nowhere.
    ForgetEdits {
        /// The lane.
        lane: String,
        /// The snapshot that held them.
        snap: String,
    },
    /// Closes a preview of which nothing is left but its record.
    ClosePreview,
    /// Moves something unfinished out of the way.
    PutAside(PathBuf),
    /// Moves git's record of a lane's worktree without a folder to the trash.
    RetireRegistration(String, PathBuf),
}

impl Repair {
    /// Does it. Whether that helped, the next look tells.
    pub(super) fn apply(&self, project: &Project) -> Result<(), Error> {
        let layout = project.store.layout();
        match self {
            Repair::ClosePrivate => Ok(layout.close_to_others()?),
            Repair::KeepOut => {
                let _lock = project.store.locks().take(&LockName::Worktrees)?;
                keep_out(project)
            }
            Repair::EndRun(name) => end_run(project, name),
            Repair::Anchor { name, commit } => {
                Ok(project.repo.create_ref(name, *commit, "git-proq: kept again")?)
            }
            Repair::ForgetEdits { lane, snap } => forget_edits(project, lane, snap),
            Repair::ClosePreview => close_preview(project),
            Repair::PutAside(path) => Ok(layout.put_aside(path)?),
            Repair::RetireRegistration(name, path) => retire(project, name, path),
        }
    }
}

fn end_run(project: &Project, name: &str) -> Result<(), Error> {
    // Who holds it is the supervisor, or somebody who takes the lane further.
    let Some(_lock) = project.store.locks().try_take(&LockName::Run(name.to_owned()))? else { return Ok(()) };
    let lane = project.any_lane(name)?;
    // An agent that lives on holds the other lock; then it is orphaned, and `stop` ends it.
    if !lane.state.is_claimed() || project.store.locks().is_held(&LockName::Alive(name.to_owned()))? {
        return Ok(());
    }
    let state = state_after(project, name, LaneState::Failed);
    let why = lane::died(project, name);
    project.update_lane(name, |record| {
        record.state = state;
        record.detail = Some(why);
    })?;
    debug_assert!(
        project.any_lane(name).is_ok_and(|l| effective_state(project, &l).is_ok_and(|s| s.0 == l.state))
    );
    Ok(())
}

fn forget_edits(project: &Project, lane: &str, snap: &str) -> Result<(), Error> {
    let there = project.store.layout().snapshot(snap).exists()
        || project.repo.ref_tip(&SnapRecord::ref_name(snap))?.is_some();
    if !there {
        project.update_lane(lane, |record| record.preview_edits.retain(|id| id != snap))?;
    }
    Ok(())
}

fn close_preview(project: &Project) -> Result<(), Error> {
    let path = project.store.layout().preview();
    let main = project.repo.require_main()?.to_owned();
    let _checkout = lane::Checkout::lock(project, &main)?;
    let Some(open) = PreviewRecord::find(&path)? else { return Ok(()) };
    let home = project.repo.main_head() == Some(open.came_from);
    let waiting = match &open.snapshot {
        Some(id) => project.find_snap(id)?.is_some() || project.snap_without_record(id)?.is_some(),
        None => false,
    };
    if home && !waiting && project.repo.branch_tip(&open.branch)?.is_none() {
        std::fs::remove_file(&path).map_err(Error::io("remove", &path))?;
    }
    Ok(())
}

/// What the registration leads to is anchored first, as in every removal.
fn retire(project: &Project, name: &str, path: &Path) -> Result<(), Error> {
    let run = LockName::Run(name.to_owned());
    let Some(_name) = project.store.locks().try_take(&run)? else { return Ok(()) };
    if path.exists() || project.store.layout().has_lane_record(name) {
        return Ok(());
    }
    lane::retire_registration(project, name, path)
}
