//! Owns resolving a conflict: laid out by git in a worktree of its own, judged by proof, and made the lane's new tip.

use serde::Serialize;

use super::proof::{Case, Leave, Reference};
use super::resolve_error::{ResolveError, uncommitted};
use super::{Error, conflict};
use crate::event;
use crate::git::{self, NewCommit, Oid, RefMove, RepoPath, ThrowAway, WorktreeList, open_operation};
use crate::lane::{self, Checkout, Operation, Project, PutAway, operate};
use crate::store::records::{ConflictRecord, LaneRecord, LaneState, ResolveRecord};
use crate::store::{Guard, Record, new_id};

/// What became of a conflict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Resolved {
    /// The lane.
    pub lane: String,
    /// The branch it lands on.
    pub onto: String,
    /// The lane's new tip; none when there was no conflict any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<Oid>,
    /// Who resolved it: an agent, `hand`, or `git`; none when there was no conflict any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The files that were in conflict.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<RepoPath>,
}

/// A conflict that was laid out, or is none.
#[derive(Debug)]
pub(crate) enum Start {
    /// There is nothing to do for anybody.
    Over(Resolved),
    /// It waits to be resolved.
    Open(Box<ResolveRecord>),
}

/// The conflict on record.
pub(crate) fn conflict_of(project: &Project, lane: &str) -> Result<ConflictRecord, Error> {
    let found = ConflictRecord::find(&project.store.layout().conflict(lane))?;
    found.ok_or_else(|| ResolveError::NoConflict { lane: lane.to_owned() }.into())
}

/// Lays the conflict of a lane out for a person. One that is laid out already is gone on with.
pub(crate) fn lay_out_by_hand(project: &Project, name: &str) -> Result<Start, Error> {
    let (lane, lock) = project.hold_idle(name)?;
    let tip = project.repo.branch_tip(&lane.place.branch)?;
    let path = project.store.layout().resolve(&lane.name);
    if let Some(open) = project.resolving(&lane.name)?.filter(|open| Some(open.tip) == tip)
        && project.repo.is_own_worktree(&open.path)
    {
        let open = ResolveRecord { agent: None, ..open };
        operate(project, "resolve", |op| op.save(&open, &path))?;
        return Ok(Start::Open(Box::new(open)));
    }
    lay_out(project, &lane, &lock, None, Vec::new())
}

/// Lays the conflict of a lane out as it is today. What an earlier try has left is put away. `_lock` is the lane's run
/// lock.
pub(super) fn lay_out(
    project: &Project,
    lane: &LaneRecord,
    _lock: &Guard,
    agent: Option<&str>,
    refusals: Vec<String>,
) -> Result<Start, Error> {
    let found = conflict_of(project, &lane.name)?;
    let old = project.resolving(&lane.name)?;
    if let (Some(_), Some(old)) = (agent, old.as_ref().filter(|old| old.agent.is_none())) {
        return Err(ResolveError::Open { lane: lane.name.clone(), dir: old.path.clone() }.into());
    }
    let sides = sides(project, lane, &found.onto)?;
    require_ready(project, lane)?;
    let clean = merges_cleanly(project, sides)?;
    let start = operate(project, "resolve", |op| {
        if let Some(old) = &old {
            drop(lane::close_resolve(op, old, &[])?);
        }
        if clean {
            return settle_clean(op, lane, &found).map(Start::Over);
        }
        let open = lane::open_resolve(op, lane, &found.onto, sides)?;
        let open = ResolveRecord { agent: agent.map(ToOwned::to_owned), refusals, ..open };
        op.save(&open, &project.store.layout().resolve(&lane.name))?;
        // What its detail says is for runs to change, and would be in the way of an undo.
        op.update_lane(&lane.name, |record| record.state = LaneState::Conflict)?;
        Ok::<_, Error>(Start::Open(Box::new(open)))
    })?;
    let Start::Open(open) = start else { return Ok(start) };
    // rerere may know how, or a merge driver of the worktree's.
    let (tree, against) = judge(project, &open, &Leave::default(), false)?;
    if !against.is_empty() {
        return Ok(Start::Open(open));
    }
    take(project, &open, tree, "git").map(Start::Over)
}

fn sides(project: &Project, lane: &LaneRecord, onto: &str) -> Result<(Oid, Oid), Error> {
    let Some(tip) = project.repo.branch_tip(&lane.place.branch)? else {
        let why = format!("its branch {} is gone", lane.place.branch);
        return Err(ResolveError::Unready { lane: lane.name.clone(), why }.into());
    };
    let base = project.repo.branch_tip(onto)?;
    Ok((tip, base.ok_or_else(|| lane::Error::NoBranch { branch: onto.to_owned() })?))
}

fn merges_cleanly(project: &Project, (tip, base): (Oid, Oid)) -> Result<bool, Error> {
    let scratch = project.store.layout().scratch()?;
    let aside = ThrowAway::new(&project.repo, &scratch.path().join("objects"))?;
    // In the order in which a landing merges.
    Ok(!git::would_conflict(&project.repo, base, tip, scratch.path(), &aside)?)
}

/// A lane whose conflict is over by itself can land.
fn settle_clean(op: &Operation<'_>, lane: &LaneRecord, found: &ConflictRecord) -> Result<Resolved, Error> {
    forget(op, &lane.name)?;
    let (lane, onto) = (lane.name.clone(), found.onto.clone());
    Ok(Resolved { lane, onto, commit: None, by: None, files: Vec::new() })
}

fn forget(op: &Operation<'_>, lane: &str) -> Result<(), Error> {
    for step in conflict::forget(op, lane)? {
        drop(op.perform(step)?);
    }
    op.update_lane(lane, |record| {
        record.state = LaneState::Done;
        record.detail = None;
    })?;
    Ok(())
}

fn in_conflict(op: &Operation<'_>, lane: &LaneRecord, found: &ConflictRecord) -> Result<(), Error> {
    op.update_lane(&lane.name, |record| {
        record.state = LaneState::Conflict;
        record.detail = Some(format!("with {} in {}", found.onto, git::names(&found.paths)));
    })?;
    Ok(())
}

/// Refuses where the lane's worktree could not follow to a new tip.
fn require_ready(project: &Project, lane: &LaneRecord) -> Result<(), Error> {
    let refused = |why: String| -> Error { ResolveError::Unready { lane: lane.name.clone(), why }.into() };
    why_not_ready(project, lane)?.map_or(Ok(()), |why| Err(refused(why)))
}

fn why_not_ready(project: &Project, lane: &LaneRecord) -> Result<Option<String>, Error> {
    let found = lane::look_at(project, lane, &WorktreeList::read(&project.repo)?, None)?;
    if found.folder_gone {
        return Ok(Some("its folder is gone".to_owned()));
    }
    if let Some(why) = found.broken.or(found.mismatch) {
        return Ok(Some(why));
    }
    if let Some((place, _)) = found.elsewhere {
        return Ok(Some(format!("its worktree is on {place}")));
    }
    if let Some(what) = found.open {
        return Ok(Some(format!("a {what} is under way in it")));
    }
    let dirt = found.dirt.paths();
    Ok((!dirt.is_empty()).then(|| uncommitted(&dirt)))
}

/// What the worktree holds, and everything that speaks against it.
pub(super) fn judge(
    project: &Project,
    open: &ResolveRecord,
    leave: &Leave,
    strict: bool,
) -> Result<(Oid, Vec<String>), Error> {
    let repo = &project.repo;
    let refused = |why: &str| Ok((open.merged, vec![why.to_owned()]));
    if !repo.is_own_worktree(&open.path) {
        return refused("its worktree is gone");
    }
    let git_dir = repo.git_dir_of(&open.path)?;
    if let Some(other) = open_operation(&git_dir).filter(|other| other.what != "merge") {
        return refused(&format!("a {} is under way there", other.what));
    }
    let head = repo.head_of(&open.path)?.unwrap_or(open.tip);
    if head == open.tip && repo.merge_head(&open.path)? != Some(open.base) {
        return refused("the merge was given up there, so that nothing tells what was decided");
    }
    if !repo.is_ancestor(open.tip, head)? {
        return refused("what is checked out there does not build on the lane any more");
    }
    let laid = match Checkout::lock(project, &open.path)?.laid_out() {
        Ok(laid) => laid,
        Err(lane::Error::Git(e)) if e.is_of_git() => return refused(&e.to_string()),
        Err(e) => return Err(e.into()),
    };
    let scratch = project.store.layout().scratch()?;
    let reference = Reference::read(repo, open, scratch.path())?;
    let case = Case { repo, open, reference: &reference, leave, laid: &laid, strict };
    Ok((laid.tree, case.refusals()?))
}

/// Judges what is laid out and, when it is proved, makes it the lane's new tip.
///
/// # Errors
/// [`ResolveError::Refused`] with everything that speaks against it. Then nothing was changed.
pub(crate) fn go_on(project: &Project, name: &str, leave: &Leave) -> Result<Resolved, Error> {
    let (lane, _lock) = project.hold_idle(name)?;
    let open = require_open(project, &lane.name)?;
    let (tree, why) = judge(project, &open, leave, open.agent.is_some())?;
    if !why.is_empty() {
        return Err(ResolveError::Refused { lane: lane.name, dir: open.path, why }.into());
    }
    let by = open.agent.as_ref().map_or_else(|| "hand".to_owned(), |agent| format!("hand, after {agent}"));
    take(project, &open, tree, &by)
}

pub(super) fn require_open(project: &Project, lane: &str) -> Result<ResolveRecord, Error> {
    if let Some(open) = project.resolving(lane)? {
        return Ok(open);
    }
    conflict_of(project, lane)?;
    Err(ResolveError::NotOpen { lane: lane.to_owned() }.into())
}

/// Gives up what is laid out; all of it is kept.
pub(crate) fn abort(project: &Project, name: &str) -> Result<(ResolveRecord, PutAway), Error> {
    let (lane, _lock) = project.hold_idle(name)?;
    let open = require_open(project, &lane.name)?;
    let away = give_up(project, &lane, &open)?;
    Ok((open, away))
}

pub(super) fn give_up(project: &Project, lane: &LaneRecord, open: &ResolveRecord) -> Result<PutAway, Error> {
    operate(project, "resolve", |op| {
        let away = lane::close_resolve(op, open, &[])?;
        if let Ok(found) = conflict_of(project, &lane.name) {
            in_conflict(op, lane, &found)?;
        }
        Ok(away)
    })
}

/// Makes a tree the lane's new tip, as a merge of both sides. The lane's run lock is held.
pub(super) fn take(project: &Project, open: &ResolveRecord, tree: Oid, by: &str) -> Result<Resolved, Error> {
    operate(project, "resolve", |op| {
        let lane = project.lane(&open.lane)?;
        let message = message(&lane, open, by);
        let commit = NewCommit { tree, parents: &[open.tip, open.base], message: &message };
        let commit = commit.write(&project.repo, None)?;
        op.set_why(format!("git-proq resolve: {} into {}", open.onto, lane.place.branch));
        let moved = if let Some(why) = why_not_ready(project, &lane)? {
            Err(why)
        } else {
            let mv = RefMove::Branch(lane.place.branch.clone());
            op.transition(&lane.path, open.tip, commit, mv).map_err(|e| e.to_string())
        };
        if let Err(why) = moved {
            let saved = format!("refs/proq/saved/{}-{}", lane.name, new_id());
            op.anchor(&saved, commit)?;
            return Err(ResolveError::Kept { lane: lane.name, why, saved }.into());
        }
        // A cache of git's own, from which the next merge of the same two sides knows what to do.
        if let Err(e) = project.repo.note_resolution(&open.path) {
            project.listener.warn(format!("rerere could not note the resolution: {e}"));
        }
        forget(op, &lane.name)?;
        drop(lane::close_resolve(op, open, &[commit])?);
        let told = format!("the conflict of lane '{}' with {} is resolved by {by}", lane.name, open.onto);
        let lane = LaneRecord { state: LaneState::Done, ..lane };
        op.tell(event::Name::MergeResolved, Some(&lane), told);
        Ok(Resolved {
            lane: lane.name,
            onto: open.onto.clone(),
            commit: Some(commit),
            by: Some(by.to_owned()),
            files: open.names(),
        })
    })
}

/// The message names the conflicts, as git's own does, and who resolved them.
fn message(lane: &LaneRecord, open: &ResolveRecord, by: &str) -> String {
    let mut text = format!("Merge branch '{}' into {}\n", open.onto, lane.place.branch);
    if !open.paths.is_empty() {
        text.push_str("\nConflicts:\n");
        for path in &open.paths {
            text.push_str(&format!("\t{}\n", path.path));
        }
    }
    text.push_str(&format!("\nProq-Lane: {}\nProq-Resolved-By: {by}\n", lane.name));
    text
}
