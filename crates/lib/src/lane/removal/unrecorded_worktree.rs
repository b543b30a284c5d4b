//! Worktrees in the lanes' folder that no lane record describes, left by a process that ended while it was
//! creating a lane.

use std::path::Path;

use proq_base::lane_name::LaneName;
use proq_git::Repo;
use proq_git::worktrees::worktree::WorktreeList;
use proq_store::base::clock::now;
use proq_store::base::id::new_id;
use proq_store::locks::lock::LockName;
use proq_store::records::lane::{LaneRecord, LaneWorktree};
use proq_store::records::lane_state::{LaneStatus, RunState};
use proq_store::records::trash::TrashRecord;

use super::remove_lane::{RemovalReason, refuse_removal, remove};
use crate::lane::inspection::base::Base;
use crate::lane::inspection::evidence::gather as gather_evidence;
use crate::lane::state::run_lock::run_lock_after_recovery;
use crate::lane::worktree::trash;
use crate::lane::{Error, Project};
use crate::operation::run_operation::operate;

/// Removes an unrecorded worktree as a lane is removed: checks the evidence, anchors its commits and moves it
/// to the trash. A worktree with work in it becomes a lane instead. An incomplete worktree is moved to the
/// trash with all of its contents: no agent could run in it, and no commit in it could land. A dry run only
/// checks. Returns false if the worktree is not unrecorded any more, because the process that created or
/// removed it has finished.
pub fn remove_unrecorded(project: &Project, path: &Path, dry_run: bool) -> Result<bool, Error> {
    let lane_name_in = |worktrees: &WorktreeList| {
        worktrees
            .with_top_folder(path)
            .and_then(|worktree| project.lane_name_at(path, worktree.branch.as_deref()))
    };
    let Some(name) = lane_name_in(&WorktreeList::read(&project.repo)?) else { return Ok(false) };
    // An unfinished creation by a killed process is rolled back by recovery while the lock is taken, so it is
    // not unrecorded.
    let lock = run_lock_after_recovery(project, &name, Some(path))?;
    if project.store.layout().has_lane_record(&name) {
        // There is a record by now, readable or not. This function must not replace it.
        return Ok(false);
    }
    let worktrees = WorktreeList::read(&project.repo)?;
    let Some(worktree) =
        worktrees.with_top_folder(path).filter(|_| lane_name_in(&worktrees).as_ref() == Some(&name))
    else {
        return Ok(false);
    };
    let base = crate::lane::inspection::base::default_base(project)?;
    let Base { branch: base, start } = crate::lane::inspection::base::resolve(project, Some(&base), None)?;
    let location = LaneWorktree {
        branch: worktree.branch.clone().unwrap_or_else(|| project.lane_branch(&name)),
        worktree_id: worktree_id_at(&project.repo, path).unwrap_or_else(|| name.to_string()),
    };
    let start = worktree.head(&project.repo)?.unwrap_or(start);
    let record = LaneRecord {
        status: LaneStatus::of_run(RunState::Failed),
        detail: Some("its making was cut short".to_owned()),
        ..LaneRecord::new(&name, location, path.to_owned(), base, start)
    };
    let evidence = gather_evidence(project, &record, &worktrees)?;
    let is_incomplete = evidence.broken_reason.is_some();
    if dry_run || is_incomplete {
        refuse_removal(&record, &evidence, is_incomplete)?;
    }
    if dry_run {
        return Ok(true);
    }
    operate(project, "cleanup", |op| {
        if is_incomplete {
            op.save_record(&record, &project.store.layout().lane_record(&record.name))?;
            return remove(op, &record, lock, RemovalReason::Cleanup, true).map(|_| Ok(true));
        }
        // From here on the worktree is an ordinary lane, even if its removal is refused.
        op.save_record(&record, &project.store.layout().lane_record(&record.name))?;
        Ok::<_, Error>(
            op.attempt_or_revert(|| remove(op, &record, lock, RemovalReason::Cleanup, false).map(|_| true)),
        )
    })?
}

/// Returns the id under which git registers the worktree at `path`.
fn worktree_id_at(repo: &Repo, path: &Path) -> Option<String> {
    let admin = repo.worktree_admin_dir(path)?;
    Some(admin.file_name()?.to_string_lossy().into_owned())
}

/// Moves git's registration of a worktree to the trash. The caller has checked that no lane record names it
/// and that its folder is missing, and holds the run lock of `name`. Its commits are anchored first: its HEAD
/// or reflog may be the last reference to them.
pub(crate) fn trash_registration(project: &Project, name: &LaneName, path: &Path) -> Result<(), Error> {
    let _lock = project.store.locks().acquire(&LockName::WorktreeList)?;
    let Some(admin) = project.repo.worktree_admin_dir(path) else { return Ok(()) };
    let tips = project.repo.worktree_referenced_commits(project.repo.command_dir(), &admin);
    operate(project, "doctor", |op| {
        let saved_ref = format!("refs/proq/saved/{name}-{}", new_id());
        match tips.as_slice() {
            [] => {}
            [tip] => op.anchor(&saved_ref, *tip)?,
            many => {
                let message = format!("git-proq: worktree {name}");
                op.anchor(&saved_ref, project.repo.write_keeper_commit(many, &message)?)?;
            }
        }
        let record = TrashRecord {
            lane: name.clone(),
            removed_at: now(),
            former_path: path.to_owned(),
            current_path: None,
            worktree_id: admin.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            branch: format!("{}/{name}", project.settings.branch_prefix),
            tip: tips.first().copied(),
            saved_ref: (!tips.is_empty()).then_some(saved_ref),
            reusable: false,
            unreadable: Vec::new(),
        };
        trash::move_worktree(op, record, Some(&admin), false).map(drop)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::TestRepository;

    /// Simulates a cleanup that listed the worktree while the lane was still being created.
    #[test]
    fn keeps_worktree_that_has_a_record() {
        let repository = TestRepository::new();
        let (project, lane) = (&repository.project, repository.create_lane("x", None));
        assert!(!remove_unrecorded(project, &lane.path, false).unwrap());
        assert!(lane.path.join(".git").exists() && project.find_lane("x").is_ok());
        assert!(!remove_unrecorded(project, &lane.path.with_file_name("gone"), false).unwrap());
    }
}
