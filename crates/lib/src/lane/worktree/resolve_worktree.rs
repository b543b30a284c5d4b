//! Worktree in which a lane's conflict is resolved. Git's own merge creates its contents. Closing the
//! worktree anchors everything in it with a ref and then moves it to the trash, like any lane's folder.

use std::path::{Path, PathBuf};

use proq_base::lane_name::LaneName;
use proq_git::history::commit::NewCommit;
use proq_git::status::status_query;
use proq_git::{CommitId, Repo, TreeId};
use proq_store::base::clock::now;
use proq_store::base::id::new_id;
use proq_store::base::record::Record;
use proq_store::locks::lock::LockName;
use proq_store::records::conflict::{ConflictedPath, ResolutionRecord};
use proq_store::records::lane::{AnyLane, LaneRecord};
use proq_store::records::trash::TrashRecord;

use self::create_resolve_worktree::{CreateResolveWorktree, MergedSide};
use super::{lanes_folder, trash};
use crate::lane::state::lane_state::effective_state;
use crate::lane::{Error, Project};
use crate::operation::journaled_operation::Operation;

pub mod create_resolve_worktree;

/// Name of the folder for conflict worktrees, below the lanes' folder.
const RESOLVE_DIR_NAME: &str = ".resolve";

/// Where the contents of a closed conflict worktree were saved.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct ClosedResolution {
    /// Ref that keeps the contents; `None` if the lane has all of them.
    pub saved_ref: Option<String>,
    /// Trash entry of the folder; `None` if the folder was already gone.
    pub trash_entry: Option<PathBuf>,
}

impl Project {
    /// Returns the path of the worktree in which a lane's conflict is resolved.
    pub(crate) fn resolution_dir(&self, lane: &LaneName) -> PathBuf {
        self.lanes_dir().join(RESOLVE_DIR_NAME).join(lane.as_str())
    }

    /// Returns the record of the lane's open conflict resolution, if there is one.
    pub(crate) fn find_resolution(&self, lane: &LaneName) -> Result<Option<ResolutionRecord>, Error> {
        Ok(ResolutionRecord::load_if_exists(&self.store.layout().resolution_record(lane))?)
    }
}

/// Creates the worktree for a lane's conflict with `base`, the tip of `onto`. It is at the lane's tip, and
/// git has merged `base` into it.
pub(crate) fn open_resolution(
    op: &Operation<'_>,
    lane: &LaneRecord,
    onto: &str,
    (tip, base): (CommitId, CommitId),
) -> Result<ResolutionRecord, Error> {
    let project = op.project;
    let dir = project.resolution_dir(&lane.name);
    {
        let _lock = project.store.locks().acquire(&LockName::WorktreeList)?;
        lanes_folder::create_lanes_folder(project)?;
        let parent = project.lanes_dir().join(RESOLVE_DIR_NAME);
        std::fs::create_dir_all(&parent).map_err(Error::io("create", &parent))?;
    }
    let side = MergedSide { branch: onto.to_owned(), tip: base };
    let step =
        CreateResolveWorktree { dir: dir.clone(), lane: lane.name.clone(), start: tip, merged: Some(side) };
    let messages = op.perform(step)?.into_result().unwrap_or_default();
    let (paths, merged) = read_conflict(&project.repo, &dir)?;
    let keeper = NewCommit {
        tree: merged,
        parents: &[tip, base],
        message: &format!("git-proq: conflict of lane {} with {onto}, opened to be resolved", lane.name),
    };
    op.create_ref(&ResolutionRecord::ref_name(&lane.name), keeper.write_as_proq(&project.repo, None)?)?;
    let git_dir = project.repo.worktree_git_dir(&dir)?;
    let record = ResolutionRecord {
        lane: lane.name.clone(),
        onto: onto.to_owned(),
        worktree_id: git_dir.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        worktree_path: dir,
        lane_tip: tip,
        onto_tip: base,
        merged_tree: merged,
        started_at: now(),
        agent: None,
        refusals: Vec::new(),
        git_messages: messages,
        paths,
    };
    Ok(record)
}

/// Returns the conflicted paths of a merge that git has just started, and the tree of git's automatic merge.
fn read_conflict(repo: &Repo, dir: &Path) -> Result<(Vec<ConflictedPath>, TreeId), Error> {
    let mut paths: Vec<ConflictedPath> = Vec::new();
    for stage in repo.unmerged_stages(dir)? {
        let is_regular_file = matches!(stage.side.mode, 0o100_644 | 0o100_755);
        match paths.iter_mut().find(|p| p.path == stage.path) {
            Some(existing) => {
                existing.stages.push(stage.stage_number);
                existing.all_regular &= is_regular_file;
            }
            None => paths.push(ConflictedPath {
                path: stage.path,
                stages: vec![stage.stage_number],
                all_regular: is_regular_file,
            }),
        }
    }
    Ok((paths, repo.auto_merge_tree(dir)?))
}

/// Moves the conflict worktree to the trash and removes its record and ref. Contents that no commit of
/// `known_commits` has are anchored first.
pub(crate) fn close_resolution(
    op: &Operation<'_>,
    record: &ResolutionRecord,
    known_commits: &[CommitId],
) -> Result<ClosedResolution, Error> {
    let project = op.project;
    let saved_ref = anchor_contents(
        op,
        &record.lane,
        &record.worktree_path,
        &[record.lane_tip, record.onto_tip],
        known_commits,
    )?;
    let trash_entry = move_to_trash(op, &record.lane, &record.worktree_path, saved_ref.as_deref())?;
    let name = ResolutionRecord::ref_name(&record.lane);
    if let Some(tip) = project.repo.ref_tip(&name)? {
        op.retain_commit(tip)?;
        op.delete_ref(&name, tip)?;
    }
    op.remove_record(&project.store.layout().resolution_record(&record.lane))?;
    Ok(ClosedResolution { saved_ref, trash_entry })
}

/// Moves the folder and git's registration of it to the trash, as a pair.
fn move_to_trash(
    op: &Operation<'_>,
    lane: &LaneName,
    dir: &Path,
    saved_ref: Option<&str>,
) -> Result<Option<PathBuf>, Error> {
    let project = op.project;
    let _lock = project.store.locks().acquire(&LockName::WorktreeList)?;
    let admin = project.repo.worktree_admin_dir(dir);
    if admin.is_none() && dir.symlink_metadata().is_err() {
        return Ok(None);
    }
    // Unreadable files are in no snapshot, so the trash entry names them.
    let unread = match project.repo.is_registered_worktree(dir) {
        true => project.repo.unreadable_paths(dir, &status_query::status(&project.repo, dir, true)?)?,
        false => Vec::new(),
    };
    let record = TrashRecord {
        lane: lane.clone(),
        removed_at: now(),
        former_path: dir.to_owned(),
        current_path: None,
        worktree_id: admin
            .as_deref()
            .and_then(Path::file_name)
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        branch: String::new(),
        tip: None,
        saved_ref: saved_ref.map(ToOwned::to_owned),
        reusable: false,
        unreadable: unread,
    };
    let trash_entry = trash::move_worktree(op, record, admin.as_deref(), false)?;
    // Fails, as intended, if the parent folder still holds another lane's conflict worktree.
    drop(dir.parent().map(std::fs::remove_dir));
    Ok(Some(trash_entry))
}

/// Undoes the creation of a conflict worktree. Changes that were made in it since are anchored first.
fn undo_open_resolution(
    op: &Operation<'_>,
    lane: &LaneName,
    dir: &Path,
    start: CommitId,
) -> Result<(), Error> {
    let record = op.project.store.layout().lane_record(lane);
    if let Some(record) = AnyLane::load_if_exists(&record)?
        && effective_state(op.project, &record)?.0.is_busy()
    {
        let reasons = vec!["its agent is running".to_owned()];
        return Err(Error::RemovalRefused {
            name: record.name,
            reasons,
            busy: true,
            force_helps: false,
            hint: None,
        });
    }
    let saved_ref = anchor_contents(op, lane, dir, &[start], &[])?;
    move_to_trash(op, lane, dir, saved_ref.as_deref()).map(drop)
}

/// Creates a ref that keeps the worktree's files, its index and the commits made in it. Returns `None` if
/// `known_commits` or git's automatic merge of `sides` have all of them.
fn anchor_contents(
    op: &Operation<'_>,
    lane: &LaneName,
    dir: &Path,
    sides: &[CommitId],
    known_commits: &[CommitId],
) -> Result<Option<String>, Error> {
    let repo = &op.project.repo;
    if !repo.is_registered_worktree(dir) {
        return Ok(None);
    }
    let checkout = op.lock_worktree(dir)?;
    let mut known_trees: Vec<TreeId> = repo.auto_merge_tree(dir).ok().into_iter().collect();
    for commit in known_commits {
        known_trees.push(repo.tree_of(*commit)?);
    }
    let mut tips = Vec::new();
    // Contents that no tree can hold stay as a folder in the trash.
    if let Ok(contents) = checkout.write_worktree_tree()
        && !known_trees.contains(&contents.tree)
    {
        let message = format!("git-proq: what was made of the conflict of lane {lane}");
        let keeper = NewCommit { tree: contents.tree, parents: sides, message: &message };
        tips.push(keeper.write_as_proq(repo, None)?);
        if !contents.unmerged.is_empty() {
            tips.extend(checkout.commit_index(&format!("git-proq: index of the conflict of lane {lane}"))?);
        }
    }
    for id in repo.worktree_referenced_commits(dir, checkout.git_dir()) {
        let mut is_reachable = false;
        for tip in known_commits.iter().chain(&tips).chain(sides) {
            is_reachable = is_reachable || repo.is_ancestor(id, *tip)?;
        }
        if !is_reachable {
            tips.push(id);
        }
    }
    let name = format!("refs/proq/saved/{lane}-{}", new_id());
    match tips.as_slice() {
        [] => return Ok(None),
        [single] => op.anchor(&name, *single)?,
        many => {
            op.anchor(&name, repo.write_keeper_commit(many, &format!("git-proq: conflict of lane {lane}"))?)?;
        }
    }
    Ok(Some(name))
}
