//! Detached worktree of a read-only run: it exists as long as the run, and is removed with everything that
//! was written there.

use std::path::{Path, PathBuf};

use proq_base::fail_points;
use proq_base::lane_name::LaneName;
use proq_git::base::error::list_paths;
use proq_git::base::head::Head;
use proq_git::status::status_query::status;
use proq_git::{CommitId, RepoPath};
use proq_store::base::id::new_id;
use proq_store::base::record::Record;
use proq_store::locks::lock::LockName;
use proq_store::records::lane::AnyLane;

use super::populate::populate_worktrees;
use super::rollback_create::roll_back_worktree;
use super::{lanes_folder, trash};
use crate::event::log;
use crate::event::log::Event;
use crate::lane::{Error, Project};

/// Folder of the detached worktrees, below the lanes folder.
const DETACHED_FOLDER: &str = ".look";

impl Project {
    /// Returns the folder of the detached worktree in which a read-only run works.
    pub(crate) fn detached_dir(&self, lane: &LaneName) -> PathBuf {
        self.lanes_dir().join(DETACHED_FOLDER).join(lane.as_str())
    }
}

/// Creates the detached worktree of a read-only lane, at the lane's start commit. First removes what a killed
/// run left at that path. The caller holds the run lock.
///
/// # Errors
/// Fails when the worktree cannot be created; nothing is left of it then.
pub(crate) fn open_detached_worktree(project: &Project, lane: &AnyLane) -> Result<(), Error> {
    close_detached_worktree(project, lane)?;
    let created = create_detached_worktree(project, &lane.path, lane.start);
    if created.is_err() {
        drop(roll_back_worktree(project, &lane.path, &lane.name, lane.start));
    }
    created
}

/// Adds a detached worktree at the commit `start` to git, and writes its files.
fn create_detached_worktree(project: &Project, dir: &Path, start: CommitId) -> Result<(), Error> {
    {
        let _lock = project.store.locks().acquire(&LockName::WorktreeList)?;
        lanes_folder::create_lanes_folder(project)?;
        let parent = project.lanes_dir().join(DETACHED_FOLDER);
        std::fs::create_dir_all(&parent).map_err(Error::io("create", &parent))?;
        std::fs::create_dir(dir).map_err(Error::io("create", dir))?;
        project.repo.add_worktree(dir, &Head::Detached(start))?;
    }
    fail_points::hit("look.added");
    proq_base::interrupt::require_no_signal()?;
    populate_worktrees(project, &[dir], start)?;
    Ok(())
}

/// Removes the detached worktree of a read-only lane, if it exists. Files that the agent changed are moved to
/// the trash and its commits get a ref; both are reported, because the agent must not write. The caller holds
/// the run lock. An interrupted removal can be repeated.
///
/// # Errors
/// Fails when the worktree cannot be moved; it is then left to the next command.
pub(crate) fn close_detached_worktree(project: &Project, lane: &AnyLane) -> Result<(), Error> {
    let dir = &lane.path;
    if dir.symlink_metadata().is_err() && project.repo.worktree_admin_dir(dir).is_none() {
        return Ok(());
    }
    save_and_report_changes(project, lane)?;
    roll_back_worktree(project, dir, &lane.name, lane.start)?;
    fail_points::hit("look.closed");
    // Fails, as intended, while the worktree of another run is in this folder.
    drop(dir.parent().map(std::fs::remove_dir));
    Ok(())
}

/// Saves commits that a read-only agent made under a ref, and emits events for them and for changed files.
fn save_and_report_changes(project: &Project, lane: &AnyLane) -> Result<(), Error> {
    let (repo, dir) = (&project.repo, &lane.path);
    if !repo.is_registered_worktree(dir) {
        return Ok(());
    }
    let mut tips = Vec::new();
    for id in repo.worktree_referenced_commits(dir, &repo.worktree_git_dir(dir)?) {
        if !repo.is_ancestor(id, lane.start)? {
            tips.push(id);
        }
    }
    if let Some(first) = tips.first() {
        let reason = format!("git-proq: commits of lane {}", lane.name);
        let saved_commit = if tips.len() == 1 { *first } else { repo.write_keeper_commit(&tips, &reason)? };
        let saved_ref = format!("refs/proq/saved/{}-{}", lane.name, new_id());
        repo.create_ref(&saved_ref, saved_commit, &reason)?;
        emit_escape_event(
            project,
            lane,
            &format!("made commits there; they are saved as {saved_ref}"),
            Vec::new(),
        );
    }
    let paths = status(repo, dir, true).map(|dirt| dirt.paths()).unwrap_or_default();
    if !paths.is_empty() {
        emit_escape_event(
            project,
            lane,
            &format!("changed files there; they are in the trash: {}", list_paths(&paths)),
            paths,
        );
    }
    Ok(())
}

/// Emits the event that a read-only agent made commits or changed files; `violation` is a verb phrase.
fn emit_escape_event(project: &Project, lane: &AnyLane, violation: &str, paths: Vec<RepoPath>) {
    let message =
        format!("the agent of lane '{}' was to read a worktree only, but it {violation}", lane.name);
    let mut event = Event::new(log::EventName::LaneEscape, message);
    event.lane = Some(lane.name.to_string());
    event.state = Some(lane.state().to_string());
    event.paths = paths;
    project.emit_event(event);
}

/// Removes detached worktrees that killed supervisors left behind, where no process of the run is alive. A
/// worktree that cannot be moved is harmless: a warning names it, and it stays for the next command.
pub(crate) fn sweep_detached_worktrees(project: &Project) {
    let Ok(entries) = std::fs::read_dir(project.lanes_dir().join(DETACHED_FOLDER)) else { return };
    let names = entries.flatten().filter_map(|entry| LaneName::parse(entry.file_name().to_str()?).ok());
    for name in names {
        if let Err(e) = sweep_worktree(project, &name) {
            let dir = project.detached_dir(&name);
            project
                .listener
                .warn(format!("{} is left over from a run and could not be deleted: {e}", dir.display()));
        }
    }
}

/// Removes the detached worktree of the lane `name`, unless a process of its run is alive.
fn sweep_worktree(project: &Project, name: &LaneName) -> Result<(), Error> {
    let locks = project.store.locks();
    let Some(_lock) = locks.try_acquire(&LockName::Run(name.clone()))? else { return Ok(()) };
    if locks.is_held(&LockName::AgentAlive(name.clone()))? {
        return Ok(());
    }
    let dir = project.detached_dir(name);
    match AnyLane::load_if_exists(&project.store.layout().lane_record(name))? {
        Some(lane) if lane.path == dir => close_detached_worktree(project, &lane),
        // No lane owns this folder. git-proq removes it if git has it on record; else another program created
        // it.
        _ => match project.repo.worktree_admin_dir(&dir) {
            Some(admin) => {
                trash::move_incomplete_worktree(&project.store, &dir, name, Some(&admin)).map(drop)
            }
            None => Ok(()),
        },
    }
}
