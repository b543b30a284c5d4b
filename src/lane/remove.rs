//! Owns removing a lane: evidence first, then anchors, then folder and registration as a pair, then the branch.

use std::path::PathBuf;

use super::{Error, Evidence, Inbox, Operation, Project, close_resolve, gather_evidence, trash};
use crate::event;
use crate::git::{Oid, Repo, RepoPath, WorktreeList};
use crate::store::records::{LaneRecord, LaneState, TrashRecord};
use crate::store::{Guard, LockName, new_id, now};

/// Why a lane goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// It landed, or nothing in it is worth keeping.
    Tidy,
    /// Somebody wants it gone.
    Discard,
}

/// What is left of a removed lane.
#[derive(Debug, Clone)]
#[must_use]
pub(crate) struct Removed {
    /// Its name in the history: `name@N`.
    pub(crate) past: String,
    /// The tip of its branch, or the last one of a branch that was gone.
    pub(crate) tip: Option<Oid>,
    /// Whether its branch had commits that its base lacks.
    pub(crate) unlanded: bool,
    /// Commits that were not on its branch: `(where, commit)`.
    pub(crate) elsewhere: Option<(String, Oid)>,
    /// The ref that keeps its commits and uncommitted changes; none when it had no commit at all.
    pub(crate) saved: Option<String>,
    /// The snapshot of what was uncommitted, readable by `git stash apply`.
    pub(crate) uncommitted: Option<Oid>,
    /// What could not be read and is in no snapshot: the trash keeps the lane's folder for it.
    pub(crate) unread: Vec<RepoPath>,
    /// How many messages its agent was never told. They are in the history with it.
    pub(crate) untold: usize,
    /// Its entry in the trash.
    pub(crate) trash: PathBuf,
    /// What lies there of its folder, in words; none where it had none.
    pub(crate) in_trash: Option<&'static str>,
}

/// Removes a lane whose name is held by `lock`. Without `force` anything that would be lost or disturbed refuses it;
/// with `force` that is saved first. A lane whose agent runs must be stopped before.
///
/// # Errors
/// [`Error::Kept`] with everything that stands in the way, by name. Then nothing was changed.
pub(crate) fn remove(
    op: &Operation<'_>,
    lane: &LaneRecord,
    lock: Guard,
    why: Why,
    force: bool,
) -> Result<Removed, Error> {
    op.hold(lock);
    remove_held(op, lane, why, force)
}

/// The same for a lane whose name the caller goes on holding.
pub(super) fn remove_held(
    op: &Operation<'_>,
    lane: &LaneRecord,
    why: Why,
    force: bool,
) -> Result<Removed, Error> {
    let project = op.project;
    let found = gather_evidence(project, lane, &WorktreeList::read(&project.repo)?)?;
    refuse(lane, &found, force)?;
    if let Some(open) = project.resolving(&lane.name)? {
        drop(close_resolve(op, &open, &[])?);
    }
    let (tips, uncommitted) = keep_everything(op, lane, &found)?;
    let saved = anchor(op, lane, &tips)?;
    let in_trash = in_trash(lane, &found);
    let trash = take_away(op, lane, &found, saved.clone(), is_reusable(lane, &found, why))?;
    let untold = Inbox::of(project, &lane.name).count();
    let past = file_away(op, lane, why)?;
    if untold > 0 {
        let (name, past) = (lane.name.clone(), past.clone());
        let what = if untold == 1 { "1 message was".to_owned() } else { format!("{untold} messages were") };
        op.after(move |project| {
            let told = format!(
                "{what} never told to the agent of '{name}'; git proq show {past} shows what was sent"
            );
            project.listener.step(told);
        });
    }
    let done = if why == Why::Discard { "discarded" } else { "cleaned up" };
    op.tell(event::Name::LaneRemoved, Some(lane), format!("lane '{}' {done}", lane.name));
    let lost = found.lost.filter(|lost| found.elsewhere.as_ref().is_none_or(|(_, commit)| commit != lost));
    let (tip, unlanded) = (found.tip.or(lost), found.unlanded > 0 || lost.is_some());
    Ok(Removed {
        past,
        tip,
        unlanded,
        elsewhere: found.elsewhere,
        saved,
        uncommitted,
        unread: found.unread,
        untold,
        trash,
        in_trash,
    })
}

/// What the trash gets of a lane's folder, in words.
fn in_trash(lane: &LaneRecord, found: &Evidence) -> Option<&'static str> {
    let there = lane.path.symlink_metadata().ok().filter(|_| !found.stays)?;
    Some(if there.is_dir() {
        "its folder, ignored files included,"
    } else {
        "what was in place of its folder"
    })
}

/// The command that removes a lane whose branch or folder is gone: force takes one that `cleanup` keeps.
pub(crate) fn command_to_remove(project: &Project, lane: &LaneRecord) -> String {
    let goes = || -> Result<(), Error> {
        refuse(lane, &gather_evidence(project, lane, &WorktreeList::read(&project.repo)?)?, false)
    };
    match goes() {
        Ok(()) => format!("git proq cleanup {}", lane.name),
        Err(_) => format!("git proq discard --force {}", lane.name),
    }
}

/// Refuses with everything that stands in the way, by name.
pub(crate) fn refuse(lane: &LaneRecord, found: &Evidence, force: bool) -> Result<(), Error> {
    let vetoes = found.vetoes();
    let objections = found.objections(&lane.base);
    let busy = found.busy.is_some();
    if vetoes.is_empty() && (objections.is_empty() || (force && !busy)) {
        return Ok(());
    }
    let force_helps = vetoes.is_empty();
    Err(Error::Kept {
        name: lane.name.clone(),
        why: vetoes.into_iter().chain(objections).collect(),
        busy,
        force_helps,
        help: found.help(),
    })
}

/// Every commit that only this lane leads to, and a snapshot of what is uncommitted.
fn keep_everything(
    op: &Operation<'_>,
    lane: &LaneRecord,
    found: &Evidence,
) -> Result<(Vec<Oid>, Option<Oid>), Error> {
    let mut tips: Vec<Oid> = found.tip.or(found.lost).into_iter().collect();
    let repo = &op.project.repo;
    // A folder that is no worktree any more has nothing that git could read; it goes to the trash whole. What HEAD was at in it is
    // known to git all the same.
    if found.folder_gone || found.broken.is_some() {
        let admin = repo.admin_dir_of(&lane.path);
        let known = admin.map(|admin| repo.worktree_commits(repo.home(), &admin)).unwrap_or_default();
        add_unknown(repo, &mut tips, known)?;
        return Ok((tips, None));
    }
    let checkout = op.checkout(&lane.path)?;
    let mut uncommitted = None;
    if (!found.dirt.is_clean() || !found.hidden.is_empty())
        && let Some(head) = repo.head_of(&lane.path)?
    {
        let why = format!("uncommitted work of lane {}", lane.name);
        // Unmerged paths have no single tree to keep: what the index names and what the files are is kept apart. The folder goes to
        // the trash whole, and its index with it, whose blobs git would clean up.
        if found.dirt.unmerged().is_empty() {
            uncommitted = op.snapshot(&lane.path, head, &why, &[])?.map(|snap| snap.snapshot.commit);
        } else {
            tips.extend(checkout.keep_index(&format!("git-proq: index of lane {}", lane.name))?);
            tips.push(checkout.keep_laid_out(head, &why)?);
        }
    }
    tips.extend(uncommitted);
    add_unknown(repo, &mut tips, repo.worktree_commits(&lane.path, checkout.git_dir()))?;
    Ok((tips, uncommitted))
}

/// Adds those commits that none of `tips` leads to.
fn add_unknown(repo: &Repo, tips: &mut Vec<Oid>, commits: Vec<Oid>) -> Result<(), Error> {
    for id in commits {
        let mut known = false;
        for tip in tips.iter() {
            known = known || repo.is_ancestor(id, *tip)?;
        }
        if !known {
            tips.push(id);
        }
    }
    Ok(())
}

fn anchor(op: &Operation<'_>, lane: &LaneRecord, tips: &[Oid]) -> Result<Option<String>, Error> {
    let name = format!("refs/proq/saved/{}-{}", lane.name, new_id());
    match tips {
        [] => return Ok(None),
        [one] => op.anchor(&name, *one)?,
        many => {
            let why = format!("git-proq: lane {}", lane.name);
            op.anchor(&name, op.project.repo.keeper_of(many, &why)?)?;
        }
    }
    Ok(Some(name))
}

/// Whether another lane may get the folder: this one landed, or had nothing to land, and nothing in it is anybody's but what
/// git ignores.
fn is_reusable(lane: &LaneRecord, found: &Evidence, why: Why) -> bool {
    let ended_well =
        matches!(lane.state, LaneState::Landed | LaneState::Done | LaneState::NoChange | LaneState::Idle);
    why == Why::Tidy
        && ended_well
        && found.stands()
        && found.tip.is_some()
        && found.dirt.is_clean()
        && found.submodules.is_empty()
        && found.objections(&lane.base).is_empty()
}

/// Moves folder and registration away and deletes the branch, unless it moved since it was looked at.
fn take_away(
    op: &Operation<'_>,
    lane: &LaneRecord,
    found: &Evidence,
    saved: Option<String>,
    reusable: bool,
) -> Result<PathBuf, Error> {
    let project = op.project;
    let _lock = project.store.locks().take(&LockName::Worktrees)?;
    let admin = project.repo.admin_dir_of(&lane.path);
    let record = TrashRecord {
        lane: lane.name.clone(),
        at: now(),
        path: lane.path.clone(),
        worktree: None,
        worktree_id: lane.place.worktree_id.clone(),
        branch: lane.place.branch.clone(),
        tip: found.tip,
        saved,
        reusable,
        unread: found.unread.clone(),
    };
    let trash = trash::put(op, record, admin.as_deref(), found.stays)?;
    if let Some(tip) = found.tip {
        op.delete_ref(&format!("refs/heads/{}", lane.place.branch), tip)?;
    }
    Ok(trash)
}

/// Moves the lane's records to the history and returns its name there.
pub(super) fn file_away<P>(op: &Operation<'_>, lane: &LaneRecord<P>, why: Why) -> Result<String, Error> {
    let layout = op.project.store.layout();
    let state = if why == Why::Discard { LaneState::Discarded } else { lane.state };
    op.update_lane(&lane.name, |record| record.state = state)?;
    let _lock = op.project.store.locks().take(&LockName::Store)?;
    let history = layout.history();
    std::fs::create_dir_all(&history).map_err(Error::io("create", &history))?;
    let mut n = 1;
    let past = loop {
        let past = format!("{}@{n}", lane.name);
        if !history.join(&past).exists() {
            break past;
        }
        n += 1;
    };
    op.rename(&layout.lane(&lane.name), &history.join(&past))?;
    drop(std::fs::remove_file(layout.look(&lane.name)));
    Ok(past)
}
