//! Owns the fence around a run: a folder of hooks that the git of its agent uses, by environment only, in front of the
//! repository's own.

mod after_commit;
mod by_hand;
mod escape;
mod guard;
mod hook;
mod keep;
mod lost;
mod own;
mod said;
mod settings;
mod shims;
mod sight;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub(crate) use after_commit::{commit_by_hand, has_moved, take_up};
pub(crate) use by_hand::{Found, HookByHand};
pub(crate) use hook::answer;

use super::Error;
use super::profile::Permission;
use crate::git;
use crate::lane::Project;
use crate::store::records::{AnyLane, FenceRecord, RunRecord};
use crate::store::{Layout, Record, make_private, remove_tree};

/// The fence of one run. It stands until [`Fence::finish`], or until the lane's next run where nobody came to that.
#[derive(Debug)]
#[must_use]
pub(crate) struct Fence {
    dir: PathBuf,
}

impl Fence {
    /// Puts up the fence of a lane's `attempt`-th run, which works in `dir`; `exe` is this program. The caller holds the run
    /// lock. Nothing of the repository is changed.
    ///
    /// # Errors
    /// When its folder cannot be made, or git cannot say where the repository's hooks are.
    pub(crate) fn prepare(
        project: &Project,
        lane: &AnyLane,
        attempt: u32,
        dir: &Path,
        exe: &Path,
    ) -> Result<Fence, Error> {
        remove_old(project, &lane.name)?;
        let layout = project.store.layout();
        let fence = Fence { dir: layout.fence(&lane.name, attempt) };
        make_private(&fence.dir)?;
        let own_hooks = project.repo.hook_names(dir)?;
        let record = FenceRecord {
            lane: lane.name.clone(),
            branch: lane.commits_to().map(str::to_owned),
            in_place: lane.works_in_place(),
            read_only: is_read_only(project, lane, attempt),
            git_dir: project.repo.git_dir_of(dir)?,
            own_hooks,
            own: Some(own::own_settings(project, &project.layers)?),
        };
        // Before the fence's own record, which is as old as the run.
        sight::note(project, lane, &fence.dir);
        lost::note(project, &fence.dir);
        record.save(&Layout::fence_record(&fence.dir))?;
        shims::write(&fence.dir, exe, &record.own_hooks)?;
        Ok(fence)
    }

    /// The variable that makes every git of the agent use it. The starter of a program takes the variable of this name out
    /// that it has itself, so nothing of it has to be kept.
    pub(crate) fn env(&self) -> (&'static str, OsString) {
        (git::HOOKS_VARIABLE, git::hooks_setting(&Layout::fence_hooks(&self.dir)))
    }

    /// Ends the fence of a run whose agent has ended: tells what the run changed outside of its lane, as far as that can be
    /// known, keeps what is gone from branches, tags and the stash, and takes the folder away. Returns what the lane's state is to name of that.
    pub(crate) fn finish(project: &Project, lane: &AnyLane, attempt: u32) -> Option<String> {
        let dir = project.store.layout().fence(&lane.name, attempt);
        keep::keep_noted(project, &dir);
        let then = own::hold_back(project, &lane.name, &dir);
        let more = then.as_ref().ok().and_then(Option::as_deref);
        let remark = settings::tell_of_changes(project, lane, &dir, more);
        let told = escape::tell_of_files(project, lane, attempt, &dir);
        sight::tell_of_changes(project, lane, &dir, &told);
        if let Err(e) = lost::keep(project, lane, &dir) {
            project.listener.warn(format!("what is gone from branches or the stash could not be kept: {e}"));
        }
        let ended = then.map(drop).and_then(|()| Ok(remove_tree(&dir)?));
        if let Err(e) = ended {
            project.listener.warn(e.to_string());
        }
        remark
    }
}

/// Whether a run may look and change nothing. Where its record cannot be read it is fenced like any other.
fn is_read_only(project: &Project, lane: &AnyLane, attempt: u32) -> bool {
    let run = RunRecord::find(&project.store.layout().run_record(&lane.name, attempt)).ok().flatten();
    run.and_then(|run| run.permission).is_some_and(|level| level == Permission::Read.to_string())
}

/// Takes fences away that a killed supervisor left: those of this lane, in which nothing runs, and of lanes that are gone.
fn remove_old(project: &Project, lane: &str) -> Result<(), Error> {
    let layout = project.store.layout();
    for name in layout.names_in("fences") {
        let Some((of, _)) = name.rsplit_once('-') else { continue };
        if of == lane || !layout.has_lane_record(of) {
            let fence = layout.folder_of("fences", &name);
            keep::keep_noted(project, &fence);
            own::hold_back(project, of, &fence)?;
            remove_tree(&fence)?;
        }
    }
    Ok(())
}
