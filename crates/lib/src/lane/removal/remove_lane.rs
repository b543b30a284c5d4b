//! Removal of a lane. The steps are, in order: gather evidence, anchor commits, move folder and registration
//! to the trash as a pair, delete the branch.

use std::path::PathBuf;

use proq_base::explain::shell_quote_path;
use proq_base::hint;
use proq_git::worktrees::worktree::WorktreeList;
use proq_git::{CommitId, Repo, RepoPath};
use proq_store::base::clock::now;
use proq_store::base::id::new_id;
use proq_store::locks::lock::{LockGuard, LockName};
use proq_store::records::lane::LaneRecord;
use proq_store::records::lane_state::{LandingState, LaneState};
use proq_store::records::trash::TrashRecord;

use crate::event::log;
use crate::lane::inspection::evidence::{RemovalEvidence, gather as gather_evidence};
use crate::lane::messages::inbox::Inbox;
use crate::lane::worktree::resolve_worktree::close_resolution;
use crate::lane::worktree::trash;
use crate::lane::{Error, Project};
use crate::operation::journaled_operation::Operation;

/// Reason for the removal of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemovalReason {
    /// The lane landed, or holds nothing worth keeping.
    Cleanup,
    /// The user requested the removal.
    Discard,
}

/// Result of a removal: the lane's name in the history, its saved commits and its trash entry.
#[derive(Debug, Clone)]
#[must_use]
pub struct RemovedLane {
    /// Name of the lane in the history: `name@N`.
    pub history_name: String,
    /// Tip of the lane's branch; the last known commit if the branch was already missing.
    pub tip: Option<CommitId>,
    /// Whether the lane's branch had commits that its base lacks.
    pub has_unlanded: bool,
    /// Commit of the worktree that was not on the lane's branch: `(where, commit)`.
    pub off_branch_commit: Option<(String, CommitId)>,
    /// Ref that keeps the lane's commits and uncommitted changes; `None` if the lane had no commit.
    pub saved_ref: Option<String>,
    /// Snapshot commit of the uncommitted changes, readable by `git stash apply`.
    pub uncommitted_snapshot: Option<CommitId>,
    /// Files that could not be read and are in no snapshot. The trash keeps the lane's folder for them.
    pub unreadable_paths: Vec<RepoPath>,
    /// Number of messages that the lane's agent never received. They move to the history with the lane.
    pub undelivered_messages: usize,
    /// Path of the lane's trash entry.
    pub trash_entry: PathBuf,
    /// Phrase for the part of the lane's folder that is in the trash; `None` if there was no folder.
    pub trash_contents: Option<&'static str>,
}

/// Removes a lane whose name is held by `lock`. Without `force`, anything that would be lost or disturbed
/// refuses the removal; with `force`, it is saved first. The caller must stop the lane's running agent
/// before.
///
/// # Errors
/// [`Error::RemovalRefused`] names everything that blocks the removal. In that case nothing was changed.
pub fn remove(
    op: &Operation<'_>,
    lane: &LaneRecord,
    lock: LockGuard,
    reason: RemovalReason,
    force: bool,
) -> Result<RemovedLane, Error> {
    let evidence = examine(op.project, lane, force)?;
    op.hold(lock);
    remove_examined(op, lane, evidence, reason)
}

/// Removes a lane whose name lock the caller already holds and keeps holding.
pub(crate) fn remove_locked(
    op: &Operation<'_>,
    lane: &LaneRecord,
    reason: RemovalReason,
    force: bool,
) -> Result<RemovedLane, Error> {
    let evidence = examine(op.project, lane, force)?;
    remove_examined(op, lane, evidence, reason)
}

/// Gathers what the removal of a lane has to save, or refuses it.
fn examine(project: &Project, lane: &LaneRecord, force: bool) -> Result<RemovalEvidence, Error> {
    let evidence = gather_evidence(project, lane, &WorktreeList::read(&project.repo)?)?;
    refuse_removal(lane, &evidence, force)?;
    Ok(evidence)
}

/// Removes a lane that may go, with what was found in it.
fn remove_examined(
    op: &Operation<'_>,
    lane: &LaneRecord,
    evidence: RemovalEvidence,
    reason: RemovalReason,
) -> Result<RemovedLane, Error> {
    let project = op.project;
    if let Some(open) = project.find_resolution(&lane.name)? {
        drop(close_resolution(op, &open, &[])?);
    }
    let (tips, uncommitted_snapshot) = save_everything(op, lane, &evidence)?;
    let saved_ref = anchor_tips(op, lane, &tips)?;
    let trash_contents = describe_trash_contents(lane, &evidence);
    let trash_entry =
        move_to_trash(op, lane, &evidence, saved_ref.clone(), is_reusable(lane, &evidence, reason))?;
    let undelivered = Inbox::new(&project.store, &lane.name).count();
    let history_name = move_to_history(op, lane, reason)?;
    if undelivered > 0 {
        let (name, history_name) = (lane.name.clone(), history_name.clone());
        let subject = if undelivered == 1 {
            "1 message was".to_owned()
        } else {
            format!("{undelivered} messages were")
        };
        op.defer(move |project| {
            let notice = format!(
                "{subject} never sent to the agent of '{name}'; git proq show {history_name} shows what was sent"
            );
            project.listener.step_done(notice);
        });
    }
    let verb = if reason == RemovalReason::Discard { "discarded" } else { "cleaned up" };
    op.emit(log::EventName::LaneRemoved, Some(lane), format!("lane '{}' {verb}", lane.name));
    let lost = evidence
        .lost_commit
        .filter(|lost| evidence.detached_work.as_ref().is_none_or(|(_, commit)| commit != lost));
    let (tip, has_unlanded) = (evidence.tip.or(lost), evidence.unlanded_commits > 0 || lost.is_some());
    Ok(RemovedLane {
        history_name,
        tip,
        has_unlanded,
        off_branch_commit: evidence.detached_work,
        saved_ref,
        uncommitted_snapshot,
        unreadable_paths: evidence.unreadable_paths,
        undelivered_messages: undelivered,
        trash_entry,
        trash_contents,
    })
}

/// Returns a phrase for the part of the lane's folder that will be in the trash; `None` if no part will be.
fn describe_trash_contents(lane: &LaneRecord, evidence: &RemovalEvidence) -> Option<&'static str> {
    let meta = lane.path.symlink_metadata().ok().filter(|_| !evidence.is_foreign_folder)?;
    Some(if meta.is_dir() {
        "its folder, ignored files included,"
    } else {
        "what was in place of its folder"
    })
}

/// Returns the command that removes a lane whose branch or folder is missing: `cleanup`, or `discard --force`
/// if `cleanup` would refuse.
pub fn removal_command(project: &Project, lane: &LaneRecord) -> String {
    let check_removable = || -> Result<(), Error> {
        refuse_removal(lane, &gather_evidence(project, lane, &WorktreeList::read(&project.repo)?)?, false)
    };
    match check_removable() {
        Ok(()) => format!("git proq cleanup {}", lane.name),
        Err(_) => format!("git proq discard --force {}", lane.name),
    }
}

/// Returns the command that helps a lane whose folder is missing: it restores the folder of a lane with commits
/// that its base lacks, and removes any other lane.
pub fn missing_folder_command(project: &Project, lane: &LaneRecord) -> String {
    let branch = &lane.kind.branch;
    let tip_of = |branch: &str| project.repo.branch_tip(branch).ok().flatten();
    let count_own_commits = |tip| tip_of(&lane.base).map(|base| project.repo.count_ahead(tip, base));
    let has_own_commits =
        tip_of(branch).is_some_and(|tip| count_own_commits(tip).is_none_or(|count| !matches!(count, Ok(0))));
    match has_own_commits {
        true => format!("git worktree add -f {} {branch}", shell_quote_path(&lane.path)),
        false => removal_command(project, lane),
    }
}

/// Refuses to remove a lane for which the evidence holds vetoes, or objections that `force` does not
/// override. The error names all of them.
pub fn refuse_removal(lane: &LaneRecord, evidence: &RemovalEvidence, force: bool) -> Result<(), Error> {
    let vetoes = evidence.vetoes();
    let objections = evidence.objections(&lane.base);
    let busy = evidence.busy_state.is_some();
    if vetoes.is_empty() && (objections.is_empty() || (force && !busy)) {
        return Ok(());
    }
    let force_helps = vetoes.is_empty();
    Err(Error::RemovalRefused {
        name: lane.name.clone(),
        reasons: vetoes.into_iter().chain(objections).collect(),
        busy,
        force_helps,
        hint: evidence.hint().or_else(|| {
            let unlock = || hint!("unlock it: git worktree unlock {}", shell_quote_path(&lane.path));
            evidence.lock_reason.as_ref().map(|_| unlock())
        }),
    })
}

/// Saves the uncommitted changes of a lane as commits. Returns the tips of all commits that only this lane
/// has, and the snapshot commit of the uncommitted changes, if one was taken.
fn save_everything(
    op: &Operation<'_>,
    lane: &LaneRecord,
    evidence: &RemovalEvidence,
) -> Result<(Vec<CommitId>, Option<CommitId>), Error> {
    let mut tips: Vec<CommitId> = evidence.tip.or(evidence.lost_commit).into_iter().collect();
    let repo = &op.project.repo;
    // If the folder is not a worktree any more, git cannot read it, and the entire folder goes to the trash.
    // Git still knows the commits that its HEAD was at.
    if evidence.is_folder_missing || evidence.broken_reason.is_some() {
        let admin = repo.worktree_admin_dir(&lane.path);
        let commits = admin
            .map(|admin| repo.worktree_referenced_commits(repo.command_dir(), &admin))
            .unwrap_or_default();
        add_unreachable(repo, &mut tips, commits)?;
        add_unreachable(repo, &mut tips, repo.logged_branch_commits(repo.command_dir(), &lane.kind.branch))?;
        return Ok((tips, None));
    }
    let checkout = op.lock_worktree(&lane.path)?;
    let mut uncommitted = None;
    if (!evidence.dirty_state.is_clean() || !evidence.hidden_edits.is_empty())
        && let Some(head) = repo.head_commit(&lane.path)?
    {
        let message = format!("uncommitted work of lane {}", lane.name);
        // Unmerged paths have no single tree to save. The blobs of the index and the files are therefore
        // saved separately. The entire folder goes to the trash with its index, but git would prune the blobs
        // of that index.
        if evidence.dirty_state.unmerged().is_empty() {
            uncommitted = op.take_snapshot(&lane.path, head, &message, &[])?.map(|snap| snap.snapshot.commit);
        } else {
            tips.extend(checkout.commit_index(&format!("git-proq: index of lane {}", lane.name))?);
            tips.push(checkout.commit_worktree_files(head, &message)?);
        }
    }
    tips.extend(uncommitted);
    // Mostly the same commits, each only once.
    let mut commits = repo.worktree_referenced_commits(&lane.path, checkout.git_dir());
    let logged = repo.logged_branch_commits(&lane.path, &lane.kind.branch);
    commits.extend(logged.into_iter().filter(|id| !commits.contains(id)).collect::<Vec<_>>());
    add_unreachable(repo, &mut tips, commits)?;
    Ok((tips, uncommitted))
}

/// Adds the commits that are not reachable from any of `tips`.
pub(crate) fn add_unreachable(
    repo: &Repo,
    tips: &mut Vec<CommitId>,
    commits: Vec<CommitId>,
) -> Result<(), Error> {
    for id in commits {
        let mut is_reachable = false;
        for tip in tips.iter() {
            is_reachable = is_reachable || repo.is_ancestor(id, *tip)?;
        }
        if !is_reachable {
            tips.push(id);
        }
    }
    Ok(())
}

/// Creates a saved ref that keeps all of `tips`, several by a commit with them as parents. Returns the ref;
/// none without tips.
pub(crate) fn anchor_tips(
    op: &Operation<'_>,
    lane: &LaneRecord,
    tips: &[CommitId],
) -> Result<Option<String>, Error> {
    let name = format!("refs/proq/saved/{}-{}", lane.name, new_id());
    match tips {
        [] => return Ok(None),
        [tip] => op.anchor(&name, *tip)?,
        many => {
            let message = format!("git-proq: lane {}", lane.name);
            op.anchor(&name, op.project.repo.write_keeper_commit(many, &message)?)?;
        }
    }
    Ok(Some(name))
}

/// Returns whether another lane may reuse the folder. The lane must have landed or had nothing to land, and
/// its folder must hold only ignored files besides the commit.
fn is_reusable(lane: &LaneRecord, evidence: &RemovalEvidence, reason: RemovalReason) -> bool {
    let is_finished =
        matches!(lane.state(), LaneState::Landed | LaneState::Done | LaneState::NoChange | LaneState::Idle);
    reason == RemovalReason::Cleanup
        && is_finished
        && evidence.is_worktree_intact()
        && evidence.tip.is_some()
        && evidence.dirty_state.is_clean()
        && evidence.unpushed_submodules.is_empty()
        && evidence.objections(&lane.base).is_empty()
}

/// Moves folder and registration to the trash, and deletes the branch unless it moved since the evidence was
/// gathered.
fn move_to_trash(
    op: &Operation<'_>,
    lane: &LaneRecord,
    evidence: &RemovalEvidence,
    saved_ref: Option<String>,
    reusable: bool,
) -> Result<PathBuf, Error> {
    let project = op.project;
    let _lock = project.store.locks().acquire(&LockName::WorktreeList)?;
    let admin = project.repo.worktree_admin_dir(&lane.path);
    let record = TrashRecord {
        lane: lane.name.clone(),
        removed_at: now(),
        former_path: lane.path.clone(),
        current_path: None,
        worktree_id: lane.kind.worktree_id.clone(),
        branch: lane.kind.branch.clone(),
        tip: evidence.tip,
        saved_ref,
        reusable,
        unreadable: evidence.unreadable_paths.clone(),
    };
    let trash_entry = trash::move_worktree(op, record, admin.as_deref(), evidence.is_foreign_folder)?;
    if let Some(tip) = evidence.tip {
        op.delete_ref(&format!("refs/heads/{}", lane.kind.branch), tip)?;
    }
    Ok(trash_entry)
}

/// Moves the lane's records to the history and returns the lane's name there.
pub(crate) fn move_to_history<P>(
    op: &Operation<'_>,
    lane: &LaneRecord<P>,
    reason: RemovalReason,
) -> Result<String, Error> {
    let layout = op.project.store.layout();
    let old_status = lane.status;
    op.update_lane(&lane.name, |record| {
        record.status = old_status;
        if reason == RemovalReason::Discard {
            record.set_landing(LandingState::Discarded);
        }
    })?;
    let _lock = op.project.store.locks().acquire(&LockName::Store)?;
    let history = layout.removed_lanes();
    std::fs::create_dir_all(&history).map_err(Error::io("create", &history))?;
    let mut n = 1;
    let history_name = loop {
        let history_name = format!("{}@{n}", lane.name);
        if !history.join(&history_name).exists() {
            break history_name;
        }
        n += 1;
    };
    op.move_path(&layout.lane(&lane.name), &history.join(&history_name))?;
    drop(std::fs::remove_file(layout.worktree_scan_cache(&lane.name)));
    Ok(history_name)
}
