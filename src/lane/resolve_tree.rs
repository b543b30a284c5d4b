//! Owns the worktree in which the conflict of a lane is resolved: made by git's own merge, and put away like any lane's
//! folder, with everything in it anchored first.

use std::path::{Path, PathBuf};

use super::fill::fill;
use super::operation::Operation;
use super::{Error, Project, effective_state, half_made, place, trash};
use crate::fault;
use crate::git::{self, Head, NewCommit, Oid};
use crate::store::records::{AnyLane, LaneRecord, ResolvePath, ResolveRecord, Step, TrashRecord};
use crate::store::{LockName, Record, new_id, now};

/// Where these worktrees lie, below the lanes' folder.
const FOLDER: &str = ".resolve";

/// Where what was in such a worktree is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub(crate) struct PutAway {
    /// The ref that keeps what was in it; none when all of that is on the lane.
    pub(crate) saved: Option<String>,
    /// The folder's place in the trash; none when it was gone already.
    pub(crate) trash: Option<PathBuf>,
}

impl Project {
    /// Where the conflict of a lane is resolved.
    pub(crate) fn resolve_dir(&self, lane: &str) -> PathBuf {
        self.lanes_dir().join(FOLDER).join(lane)
    }

    /// The conflict of a lane that is being resolved.
    pub(crate) fn resolving(&self, lane: &str) -> Result<Option<ResolveRecord>, Error> {
        Ok(ResolveRecord::find(&self.store.layout().resolve(lane))?)
    }
}

/// Checks the conflict of a lane with `base`, the tip of `onto`, out: the lane's tip, with `base` merged into it by git.
pub(crate) fn open_resolve(
    op: &Operation<'_>,
    lane: &LaneRecord,
    onto: &str,
    (tip, base): (Oid, Oid),
) -> Result<ResolveRecord, Error> {
    let project = op.project;
    let dir = project.resolve_dir(&lane.name);
    {
        let _lock = project.store.locks().take(&LockName::Worktrees)?;
        place::prepare(project)?;
        let parent = project.lanes_dir().join(FOLDER);
        std::fs::create_dir_all(&parent).map_err(Error::io("create", &parent))?;
    }
    let step = Step::Resolve { dir: dir.clone(), lane: lane.name.clone(), start: tip };
    let mut messages = Vec::new();
    op.perform_by(step, |scratch| {
        half_made::make_folder(&dir, scratch)?;
        let made = merge_there(project, &dir, onto, (tip, base));
        if made.is_err() {
            drop(half_made::take_back(project, &dir, &lane.name, tip));
        }
        messages = made?;
        Ok(())
    })?;
    let (paths, merged) = look(project, &dir)?;
    let keeper = NewCommit {
        tree: merged,
        parents: &[tip, base],
        message: &format!("git-proq: conflict of lane {} with {onto}, laid out to be resolved", lane.name),
    };
    op.create_ref(&ResolveRecord::ref_name(&lane.name), keeper.write_as_keeper(&project.repo, None)?)?;
    let git_dir = project.repo.git_dir_of(&dir)?;
    let record = ResolveRecord {
        lane: lane.name.clone(),
        onto: onto.to_owned(),
        worktree_id: git_dir.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        path: dir,
        tip,
        base,
        merged,
        at: now(),
        agent: None,
        refusals: Vec::new(),
        messages,
        paths,
    };
    Ok(record)
}

fn merge_there(
    project: &Project,
    dir: &Path,
    onto: &str,
    (tip, base): (Oid, Oid),
) -> Result<Vec<String>, Error> {
    {
        let _lock = project.store.locks().take(&LockName::Worktrees)?;
        project.repo.add_worktree(dir, &Head::Detached(tip))?;
    }
    fault::point("resolve.added");
    crate::interrupt::check()?;
    fill(project, &[dir], tip)?;
    crate::interrupt::check()?;
    let messages = project.repo.begin_merge(dir, onto, base)?;
    fault::point("resolve.merged");
    Ok(messages)
}

/// The conflicted paths of a merge that has just been begun, and the tree that git made of it.
fn look(project: &Project, dir: &Path) -> Result<(Vec<ResolvePath>, Oid), Error> {
    let mut paths: Vec<ResolvePath> = Vec::new();
    for stage in project.repo.unmerged(dir)? {
        let plain = matches!(stage.side.mode, 0o100_644 | 0o100_755);
        match paths.iter_mut().find(|p| p.path == stage.path) {
            Some(known) => {
                known.stages.push(stage.number);
                known.plain &= plain;
            }
            None => paths.push(ResolvePath { path: stage.path, stages: vec![stage.number], plain }),
        }
    }
    Ok((paths, project.repo.automatic_tree(dir)?))
}

/// Puts the worktree and all that is known of it away. What is in it and on none of the `known` commits is anchored first.
pub(crate) fn close_resolve(
    op: &Operation<'_>,
    open: &ResolveRecord,
    known: &[Oid],
) -> Result<PutAway, Error> {
    let project = op.project;
    let saved = anchor(op, &open.lane, &open.path, &[open.tip, open.base], known)?;
    let trash = take_away(op, &open.lane, &open.path, saved.as_deref())?;
    let name = ResolveRecord::ref_name(&open.lane);
    if let Some(tip) = project.repo.ref_tip(&name)? {
        op.keep(tip)?;
        op.delete_ref(&name, tip)?;
    }
    op.remove_record(&project.store.layout().resolve(&open.lane))?;
    Ok(PutAway { saved, trash })
}

/// Moves the folder and git's part of it to the trash, as a pair.
fn take_away(
    op: &Operation<'_>,
    lane: &str,
    dir: &Path,
    saved: Option<&str>,
) -> Result<Option<PathBuf>, Error> {
    let project = op.project;
    let _lock = project.store.locks().take(&LockName::Worktrees)?;
    let admin = project.repo.admin_dir_of(dir);
    if admin.is_none() && dir.symlink_metadata().is_err() {
        return Ok(None);
    }
    // No snapshot holds it either.
    let unread = match project.repo.is_own_worktree(dir) {
        true => project.repo.unreadable_in(dir, &git::status(&project.repo, dir, true)?)?,
        false => Vec::new(),
    };
    let record = TrashRecord {
        lane: lane.to_owned(),
        at: now(),
        path: dir.to_owned(),
        worktree: None,
        worktree_id: admin
            .as_deref()
            .and_then(Path::file_name)
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        branch: String::new(),
        tip: None,
        saved: saved.map(ToOwned::to_owned),
        reusable: false,
        unread,
    };
    let trash = trash::put(op, record, admin.as_deref(), false)?;
    // Not when another lane's lies in it.
    drop(dir.parent().map(std::fs::remove_dir));
    Ok(Some(trash))
}

/// Takes the making of such a worktree back: what somebody has done in it since is kept.
pub(super) fn unmake(op: &Operation<'_>, lane: &str, dir: &Path, start: Oid) -> Result<(), Error> {
    let record = op.project.store.layout().lane_record(lane);
    if let Some(record) = AnyLane::find(&record)?
        && effective_state(op.project, &record)?.0.is_busy()
    {
        let why = vec!["its agent is running".to_owned()];
        return Err(Error::Kept { name: record.name, why, busy: true, force_helps: false, help: None });
    }
    let saved = anchor(op, lane, dir, &[start], &[])?;
    take_away(op, lane, dir, saved.as_deref()).map(drop)
}

/// A ref that keeps the worktree's files, its index, and the commits made in it; none when all of them are `known`, or
/// what git's automatic merge of `sides` made.
fn anchor(
    op: &Operation<'_>,
    lane: &str,
    dir: &Path,
    sides: &[Oid],
    known: &[Oid],
) -> Result<Option<String>, Error> {
    let repo = &op.project.repo;
    if !repo.is_own_worktree(dir) {
        return Ok(None);
    }
    let checkout = op.checkout(dir)?;
    let mut trees: Vec<Oid> = repo.automatic_tree(dir).ok().into_iter().collect();
    for commit in known {
        trees.push(repo.tree_of(*commit)?);
    }
    let mut tips = Vec::new();
    // What cannot be laid out stays as a folder in the trash.
    if let Ok(laid) = checkout.laid_out()
        && !trees.contains(&laid.tree)
    {
        let message = format!("git-proq: what was made of the conflict of lane {lane}");
        let keeper = NewCommit { tree: laid.tree, parents: sides, message: &message };
        tips.push(keeper.write_as_keeper(repo, None)?);
        if !laid.unmerged.is_empty() {
            tips.extend(checkout.keep_index(&format!("git-proq: index of the conflict of lane {lane}"))?);
        }
    }
    for id in repo.worktree_commits(dir, checkout.git_dir()) {
        let mut there = false;
        for tip in known.iter().chain(&tips).chain(sides) {
            there = there || repo.is_ancestor(id, *tip)?;
        }
        if !there {
            tips.push(id);
        }
    }
    let name = format!("refs/proq/saved/{lane}-{}", new_id());
    match tips.as_slice() {
        [] => return Ok(None),
        [one] => op.anchor(&name, *one)?,
        many => op.anchor(&name, repo.keeper_of(many, &format!("git-proq: conflict of lane {lane}"))?)?,
    }
    Ok(Some(name))
}
