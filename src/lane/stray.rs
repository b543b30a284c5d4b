//! Owns worktrees where lanes lie that no record knows, left by a process that ended while it was making a lane.

use std::path::Path;

use super::{Base, Error, Project, Why, gather_evidence, operate, recover, refuse, remove, trash};
use crate::git::WorktreeList;
use crate::store::records::{LaneRecord, LaneState, TrashRecord, Tree};
use crate::store::{LockName, new_id, now};

/// Removes such a worktree like a lane: with evidence, anchored, into the trash. One with work in it becomes a lane. One that is
/// half-made goes to the trash with all that is in it: nothing could be run in it, and no commit there could land. A dry run only
/// looks. False when it is none any more: whoever was making it, or removing it, has come to the end.
pub(crate) fn remove_stray(project: &Project, path: &Path, dry_run: bool) -> Result<bool, Error> {
    let named = |worktrees: &WorktreeList| {
        worktrees.at(path).and_then(|worktree| project.name_at(path, worktree.branch.as_deref()))
    };
    let Some(name) = named(&WorktreeList::read(&project.repo)?) else { return Ok(false) };
    // What a killed process has begun to make is taken back by whoever puts that right, and is no stray.
    let lock = recover::take_run_lock(project, name.as_str(), Some(path))?;
    if project.store.layout().has_lane_record(name.as_str()) {
        // It has one by now, or one that cannot be read: either way it is not for this to replace.
        return Ok(false);
    }
    let worktrees = WorktreeList::read(&project.repo)?;
    let Some(worktree) = worktrees.at(path).filter(|_| named(&worktrees).as_ref() == Some(&name)) else {
        return Ok(false);
    };
    let base = super::base::current(project)?;
    let Base { branch: base, start } = super::resolve_base(project, Some(&base), None)?;
    let place = Tree {
        branch: worktree.branch.clone().unwrap_or_else(|| project.branch_of(&name)),
        worktree_id: admin_name(project, path).unwrap_or_else(|| name.to_string()),
    };
    let start = worktree.head(&project.repo)?.unwrap_or(start);
    let record = LaneRecord {
        state: LaneState::Failed,
        detail: Some("its making was cut short".to_owned()),
        ..LaneRecord::new(name.as_str(), place, path.to_owned(), base, start)
    };
    let found = gather_evidence(project, &record, &worktrees)?;
    let is_half_made = found.broken.is_some();
    if dry_run || is_half_made {
        refuse(&record, &found, is_half_made)?;
    }
    if dry_run {
        return Ok(true);
    }
    operate(project, "cleanup", |op| {
        if is_half_made {
            op.save(&record, &project.store.layout().lane_record(&record.name))?;
            return remove(op, &record, lock, Why::Tidy, true).map(|_| Ok(true));
        }
        // From here on it is a lane like any other, also when it is kept.
        op.save(&record, &project.store.layout().lane_record(&record.name))?;
        Ok::<_, Error>(op.attempt(|| remove(op, &record, lock, Why::Tidy, false).map(|_| true)))
    })?
}

/// What git calls its record of the worktree at `path`.
fn admin_name(project: &Project, path: &Path) -> Option<String> {
    let admin = project.repo.admin_dir_of(path)?;
    Some(admin.file_name()?.to_string_lossy().into_owned())
}

/// Moves git's record of a worktree that no lane knows and whose folder is gone to the trash. What it leads to is
/// anchored first: its HEAD or reflog may be the last to know a commit. Called with the name's run lock held.
pub(crate) fn retire_registration(project: &Project, name: &str, path: &Path) -> Result<(), Error> {
    let _lock = project.store.locks().take(&LockName::Worktrees)?;
    let Some(admin) = project.repo.admin_dir_of(path) else { return Ok(()) };
    let tips = project.repo.worktree_commits(project.repo.home(), &admin);
    operate(project, "doctor", |op| {
        let saved = format!("refs/proq/saved/{name}-{}", new_id());
        match tips.as_slice() {
            [] => {}
            [one] => op.anchor(&saved, *one)?,
            many => {
                let why = format!("git-proq: worktree {name}");
                op.anchor(&saved, project.repo.keeper_of(many, &why)?)?;
            }
        }
        let record = TrashRecord {
            lane: name.to_owned(),
            at: now(),
            path: path.to_owned(),
            worktree: None,
            worktree_id: admin.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            branch: format!("{}/{name}", project.settings.prefix),
            tip: tips.first().copied(),
            saved: (!tips.is_empty()).then_some(saved),
            reusable: false,
            unread: Vec::new(),
        };
        trash::put(op, record, Some(&admin), false).map(drop)
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::lane::{Name, NewLane, create, plan, resolve_base};
    use crate::note::Listener;

    /// As it is for a cleanup that saw the worktree while the lane was being made.
    #[test]
    fn a_lane_that_has_a_record_by_now_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let script = "git init -q -b main; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x";
        let made = Command::new("sh").args(["-ec", script]).current_dir(&top).env("HOME", &top).status();
        assert!(made.unwrap().success());
        let project = Project::open(&top, Listener::silent()).unwrap();
        let asked = NewLane {
            name: Some(Name::parse("x").unwrap()),
            prompt: None,
            words: None,
            agent: None,
            base: resolve_base(&project, None, None).unwrap(),
            carry: None,
            checks: Vec::new(),
            scope: Vec::new(),
            sparse: false,
            auto_merge: false,
            group: None,
            batch: None,
            given: crate::lane::Given::Whole,
        };
        let lane = create(&project, &plan(&project, asked).unwrap()).unwrap().lane;
        assert!(!remove_stray(&project, &lane.path, false).unwrap());
        assert!(lane.path.join(".git").exists() && project.lane("x").is_ok());
        assert!(!remove_stray(&project, &lane.path.with_file_name("gone"), false).unwrap());
    }
}
