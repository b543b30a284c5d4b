//! Owns the worktree of a run that looks apart from the main checkout: there for as long as the run, and put away with all
//! that was written there.

use std::path::{Path, PathBuf};

use super::fill::fill;
use super::half_made::take_back;
use super::{Error, Project, place, trash};
use crate::event::{self, Event};
use crate::fault;
use crate::git::{Head, Oid, RepoPath, names, status};
use crate::store::records::AnyLane;
use crate::store::{LockName, Record, new_id};

/// Where these worktrees lie, below the lanes' folder.
const FOLDER: &str = ".look";

impl Project {
    /// Where a run that looks apart works.
    pub(crate) fn look_dir(&self, lane: &str) -> PathBuf {
        self.lanes_dir().join(FOLDER).join(lane)
    }
}

/// Makes the worktree of a lane that looks apart, detached at what it looks at. What a run that was killed left there is put
/// away first. The caller holds the run lock.
///
/// # Errors
/// When it cannot be made; nothing is left of it then.
pub(crate) fn open_apart(project: &Project, lane: &AnyLane) -> Result<(), Error> {
    close_apart(project, lane)?;
    let made = make(project, &lane.path, lane.start);
    if made.is_err() {
        drop(take_back(project, &lane.path, &lane.name, lane.start));
    }
    made
}

fn make(project: &Project, dir: &Path, start: Oid) -> Result<(), Error> {
    {
        let _lock = project.store.locks().take(&LockName::Worktrees)?;
        place::prepare(project)?;
        let parent = project.lanes_dir().join(FOLDER);
        std::fs::create_dir_all(&parent).map_err(Error::io("create", &parent))?;
        std::fs::create_dir(dir).map_err(Error::io("create", dir))?;
        project.repo.add_worktree(dir, &Head::Detached(start))?;
    }
    fault::point("look.added");
    crate::interrupt::check()?;
    fill(project, &[dir], start)?;
    Ok(())
}

/// Takes it away, if it is there. Files that are not as git had put them there go to the trash, commits get a ref, and both
/// are told of: its agent was to look only. The caller holds the run lock. Can be cut short and done again.
///
/// # Errors
/// When it cannot be moved; it stays then, for the next command.
pub(crate) fn close_apart(project: &Project, lane: &AnyLane) -> Result<(), Error> {
    let dir = &lane.path;
    if dir.symlink_metadata().is_err() && project.repo.admin_dir_of(dir).is_none() {
        return Ok(());
    }
    tell_of_changes(project, lane)?;
    take_back(project, dir, &lane.name, lane.start)?;
    fault::point("look.closed");
    // Not while another one's lies there.
    drop(dir.parent().map(std::fs::remove_dir));
    Ok(())
}

fn tell_of_changes(project: &Project, lane: &AnyLane) -> Result<(), Error> {
    let (repo, dir) = (&project.repo, &lane.path);
    if !repo.is_own_worktree(dir) {
        return Ok(());
    }
    let mut tips = Vec::new();
    for id in repo.worktree_commits(dir, &repo.git_dir_of(dir)?) {
        if !repo.is_ancestor(id, lane.start)? {
            tips.push(id);
        }
    }
    if let Some(first) = tips.first() {
        let why = format!("git-proq: commits of lane {}", lane.name);
        let keep = if tips.len() == 1 { *first } else { repo.keeper_of(&tips, &why)? };
        let saved = format!("refs/proq/saved/{}-{}", lane.name, new_id());
        repo.create_ref(&saved, keep, &why)?;
        tell(project, lane, &format!("made commits there; they are kept: {saved}"), Vec::new());
    }
    let paths = status(repo, dir, true).map(|dirt| dirt.paths()).unwrap_or_default();
    if !paths.is_empty() {
        tell(project, lane, &format!("changed files there, which go to the trash: {}", names(&paths)), paths);
    }
    Ok(())
}

fn tell(project: &Project, lane: &AnyLane, what: &str, paths: Vec<RepoPath>) {
    let message = format!("the agent of lane '{}' was to look at a worktree, and {what}", lane.name);
    let mut event = Event::now(event::Name::LaneEscape, message);
    event.lane = Some(lane.name.clone());
    event.state = Some(lane.state.to_string());
    event.paths = paths;
    project.tell_event(event);
}

/// Takes away what runs left there whose supervisor was killed, where nothing of them lives on. What cannot be moved is in
/// nobody's way: it is named in a warning and stays for the next command.
pub(super) fn sweep(project: &Project) {
    let Ok(entries) = std::fs::read_dir(project.lanes_dir().join(FOLDER)) else { return };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    for name in names.filter(|name| super::Name::parse(name).is_ok()) {
        if let Err(e) = sweep_one(project, &name) {
            let dir = project.look_dir(&name);
            project.listener.warn(format!("{} is left of a run and could not go: {e}", dir.display()));
        }
    }
}

fn sweep_one(project: &Project, name: &str) -> Result<(), Error> {
    let locks = project.store.locks();
    let Some(_lock) = locks.try_take(&LockName::Run(name.to_owned()))? else { return Ok(()) };
    if locks.is_held(&LockName::Alive(name.to_owned()))? {
        return Ok(());
    }
    let dir = project.look_dir(name);
    match AnyLane::find(&project.store.layout().lane_record(name))? {
        Some(lane) if lane.path == dir => close_apart(project, &lane),
        // Nobody's any more, if git knows it; else somebody else has put it there.
        _ => match project.repo.admin_dir_of(&dir) {
            Some(admin) => trash::put_half_made(project, &dir, name, Some(&admin)).map(drop),
            None => Ok(()),
        },
    }
}
