//! Evidence for removing a lane: what would be lost, which processes are in it, and whether its folder is its
//! worktree.

use std::path::{Path, PathBuf};

use proq_base::explain::shell_quote_path;
use proq_base::hint;
use proq_base::hint::Hint;
use proq_git::merge::tree_merge::{exact_merge_tree, merge_commits};
use proq_git::repository::objects::TempObjectStore;
use proq_git::repository::open_operation::find_open_git_operation;
use proq_git::status::status_query::{is_surely_clean, status, status_by_git};
use proq_git::status::worktree_status::WorktreeStatus;
use proq_git::worktrees::worktree::{Worktree, WorktreeList};
use proq_git::{CommitId, Repo, RepoPath, TreeId};
use proq_store::paths::layout::Layout;
use proq_store::records::lane::LaneRecord;
use proq_store::records::lane_state::LaneState;

use crate::lane::context::head_ownership::last_branch_commit;
use crate::lane::context::misplaced::{LaneFolderFault, find_folder_fault};
use crate::lane::inspection::pull_request_status::{MergedRequest, merged_request};
use crate::lane::state::lane_state::effective_state;
use crate::lane::worktree::resident_processes::processes_in_dir;
use crate::lane::{Error, Project};
use crate::operation::locked_worktree::LockedWorktree;

/// State of one lane at one moment, as far as a removal depends on it.
#[derive(Debug, Clone, Default)]
pub struct RemovalEvidence {
    /// Tip of the lane's branch; none when the branch is missing.
    pub tip: Option<CommitId>,
    /// Last commit of the lane's branch, where the branch is missing and its base lacks the commit.
    pub lost_commit: Option<CommitId>,
    /// Whether the lane's folder is missing.
    pub is_folder_missing: bool,
    /// Paths that differ from HEAD in the worktree.
    pub dirty_state: WorktreeStatus,
    /// Whether a stat scan proves that nothing differs from HEAD, and that every folder can be read.
    is_surely_clean: bool,
    /// Number of commits on the branch that are not on its base, neither as commits nor by content.
    pub(crate) unlanded_commits: usize,
    /// Request of the lane that was merged on its forge.
    merged_request: Option<MergedRequest>,
    /// Location and id of the worktree's commit, where it is neither on the lane's branch nor on its base.
    pub(crate) detached_work: Option<(String, CommitId)>,
    /// Reason of `git worktree lock`; none when the worktree is not locked.
    pub(crate) lock_reason: Option<String>,
    /// Description of how the folder and git's registration of it disagree.
    pub(crate) registration_mismatch: Option<String>,
    /// Another worktree that is on the lane's branch; git does not delete the branch then.
    pub(crate) branch_used_in: Option<PathBuf>,
    /// Name of a merge, rebase or similar git operation in progress in the worktree.
    pub(crate) open_git_operation: Option<&'static str>,
    /// State of the lane while its agent runs; none otherwise.
    pub busy_state: Option<LaneState>,
    /// Other processes whose working directory is in the folder.
    pub resident_processes: Vec<String>,
    /// Edits made in previews of the lane that wait for the next preview, as commits that `git stash apply`
    /// reads.
    pub preview_edits: Vec<CommitId>,
    /// Reason why the folder is no longer a worktree, or is one in which git could not detect changes.
    pub(crate) broken_reason: Option<String>,
    /// Command that repairs a broken or mismatched worktree.
    pub repair_command: Option<String>,
    /// Reason why the folder, which is absent, may reappear.
    pub(crate) absence_reason: Option<String>,
    /// Whether the folder belongs to another repository, and is therefore not moved by a removal.
    pub(crate) is_foreign_folder: bool,
    /// Submodules with commits that exist nowhere else.
    pub(crate) unpushed_submodules: Vec<String>,
    /// Other worktrees of this repository that are inside the folder.
    pub(crate) nested_worktrees: Vec<PathBuf>,
    /// Untracked files and folders that cannot be read, so that no snapshot includes them.
    pub unreadable_paths: Vec<RepoPath>,
    /// Edited files that index flags hide from git.
    pub hidden_edits: Vec<RepoPath>,
    /// Worktree in which the lane's conflict is being resolved.
    pub(crate) resolve_dir: Option<PathBuf>,
}

impl RemovalEvidence {
    /// Returns whether the worktree exists and is the lane's own.
    pub(crate) fn is_worktree_intact(&self) -> bool {
        !self.is_folder_missing && self.broken_reason.is_none() && self.registration_mismatch.is_none()
    }

    /// Records the problem with the lane's folder.
    fn record_folder_fault(&mut self, repo: &Repo, lane: &LaneRecord, problem: &LaneFolderFault) {
        let description = Some(problem.describe(lane));
        self.repair_command = problem.fix_command(repo, lane);
        self.is_foreign_folder = matches!(problem, LaneFolderFault::Foreign { .. });
        match problem {
            LaneFolderFault::Absent => self.absence_reason = description,
            problem if problem.forbids_removal() => self.registration_mismatch = description,
            _ => self.broken_reason = description,
        }
    }

    /// Describes the uncommitted files with their number and the first path; none when there are none.
    fn describe_uncommitted(&self) -> Option<String> {
        match self.dirty_state.entries.as_slice() {
            [] => None,
            [entry] => Some(format!("1 uncommitted file ({})", entry.path)),
            [first, others @ ..] => {
                Some(format!("{} uncommitted files ({}, …)", others.len() + 1, first.path))
            }
        }
    }

    /// Returns the reasons that forbid removal even with `--force`: work that could not be saved, or a folder
    /// or branch in use by others.
    pub(crate) fn vetoes(&self) -> Vec<String> {
        let mut out = Vec::new();
        if let Some(reason) = &self.lock_reason {
            let reason = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
            out.push(format!("its worktree is locked{reason}"));
        }
        out.extend(self.registration_mismatch.clone());
        out.extend(
            self.nested_worktrees
                .iter()
                .map(|path| format!("the worktree {} is inside its folder", path.display())),
        );
        out.extend(self.branch_used_in.as_ref().map(|dir| format!("{} is on its branch", dir.display())));
        out
    }

    /// Returns a hint that resolves a veto or repairs the worktree.
    pub fn hint(&self) -> Option<Hint> {
        let repair_hint = self.repair_command.as_ref().map(|command| hint!("repair it: {command}"));
        let switch_away_hint =
            |dir: &PathBuf| hint!("leave its branch: git -C {} switch --detach", shell_quote_path(dir));
        repair_hint.or_else(|| self.branch_used_in.as_ref().map(switch_away_hint))
    }

    /// Returns the reasons against a removal that `--force` overrides: work that it would save first, and
    /// processes that it would disturb.
    pub fn objections(&self, base: &str) -> Vec<String> {
        let mut out = Vec::new();
        match self.busy_state {
            Some(LaneState::Orphaned) => out.push("its agent is running without a supervisor".into()),
            Some(_) => out.push("its agent is running".into()),
            None => {}
        }
        out.extend(self.absence_reason.clone());
        out.extend(self.broken_reason.clone());
        out.extend(self.describe_uncommitted());
        // Git treats a folder that it cannot read as empty.
        let dirty = self.dirty_state.paths();
        out.extend(
            self.unreadable_paths
                .iter()
                .filter(|path| !dirty.contains(path))
                .map(|path| format!("{path}, which cannot be read")),
        );
        if let Some(first) = self.hidden_edits.first() {
            out.push(format!("edits that an index flag hides ({first})"));
        }
        out.extend(
            self.unpushed_submodules
                .iter()
                .map(|name| format!("commits in its submodule {name} that are on no remote")),
        );
        match (self.unlanded_commits, &self.merged_request) {
            (0, _) => {}
            (1, Some(request)) => {
                out.push(format!("1 commit that was made after {} was merged", request.name));
            }
            (n, Some(request)) => {
                out.push(format!("{n} commits that were made after {} was merged", request.name));
            }
            (1, None) => out.push(format!("1 commit that is not on {base}")),
            (n, None) => out.push(format!("{n} commits that are not on {base}")),
        }
        if let Some((location, _)) = &self.detached_work {
            out.push(format!("commits on {location}"));
        }
        out.extend(self.open_git_operation.map(|what| format!("a {what} is in progress in it")));
        let resolving = self.resolve_dir.as_ref();
        out.extend(resolving.map(|dir| format!("its conflict is being resolved in {}", dir.display())));
        out.extend(self.preview_edits.iter().map(|id| {
            format!("edits made in its preview (apply them: git stash apply {})", id.short_in_command())
        }));
        // While an agent runs, the processes are its own.
        let foreign_processes =
            if self.busy_state.is_none() { self.resident_processes.as_slice() } else { &[] };
        out.extend(foreign_processes.iter().map(|process| format!("{process} is in its folder")));
        out
    }
}

/// Gathers all evidence about a lane.
pub fn gather(
    project: &Project,
    lane: &LaneRecord,
    worktrees: &WorktreeList,
) -> Result<RemovalEvidence, Error> {
    let repo = &project.repo;
    let mut evidence = inspect_worktree(project, lane, worktrees, None)?;
    evidence.branch_used_in = other_worktree_on_branch(lane, worktrees);
    evidence.resolve_dir = project.find_resolution(&lane.name)?.map(|open| open.worktree_path);
    let snaps =
        lane.preview_edit_snapshots.iter().filter_map(|id| project.find_unrestored_snap(id).ok().flatten());
    evidence.preview_edits = snaps.map(|snap| snap.snapshot.commit).collect();
    if evidence.is_worktree_intact() {
        evidence.resident_processes = processes_in_dir(&lane.path);
        if !evidence.is_surely_clean {
            evidence.unreadable_paths = repo.unreadable_paths(&lane.path, &evidence.dirty_state)?;
        }
        if repo.has_flagged_entries(&lane.path, &repo.worktree_git_dir(&lane.path)?)? {
            evidence.hidden_edits = LockedWorktree::lock(project, &lane.path)?.hidden_edits()?;
        }
    }
    let base = lane.landed.as_ref().map_or(&lane.base, |landed| &landed.onto);
    evidence.merged_request = merged_request(project, lane).filter(|request| {
        evidence.tip.is_some_and(|tip| repo.is_ancestor(request.head, tip).unwrap_or(false))
    });
    evidence.unlanded_commits = match (evidence.tip, project.repo.branch_tip(base)?) {
        (Some(tip), Some(base)) if has_landed_on(lane, &project.repo, tip, base)? => 0,
        (Some(tip), Some(base)) => count_unlanded(project, tip, base)?,
        (Some(tip), None) => project.repo.count_ahead(tip, lane.start)?,
        (None, _) => 0,
    };
    if let (Some(tip), Some(request), 1..) =
        (evidence.tip, &evidence.merged_request, evidence.unlanded_commits)
    {
        // What the request had is on the base of the remote, which the user may not have fetched yet.
        evidence.unlanded_commits = repo.count_ahead(tip, request.head)?;
    }
    if evidence.tip.is_none() {
        evidence.lost_commit = lost_commit(project, lane)?;
    }
    Ok(evidence)
}

/// Returns the last commit of a lane's branch that is missing, unless the base has it.
///
/// # Errors
/// Fails when the base cannot be read.
pub fn lost_commit(project: &Project, lane: &LaneRecord) -> Result<Option<CommitId>, Error> {
    let Some(last) = last_branch_commit(project, lane) else { return Ok(None) };
    let base = lane.landed.as_ref().map_or(&lane.base, |landed| &landed.onto);
    match project.repo.branch_tip(base)? {
        Some(base) if has_landed_on(lane, &project.repo, last, base)? => Ok(None),
        _ => Ok(Some(last)),
    }
}

/// Gathers only the evidence on whether the lane's branch and worktree can be used. `dirty_state` is the
/// status of the worktree, where the caller has just read it.
pub(crate) fn inspect_worktree(
    project: &Project,
    lane: &LaneRecord,
    worktrees: &WorktreeList,
    dirty_state: Option<WorktreeStatus>,
) -> Result<RemovalEvidence, Error> {
    let repo = &project.repo;
    let state = effective_state(project, lane)?.0;
    let is_busy = state.is_busy();
    let mut evidence = RemovalEvidence {
        tip: repo.branch_tip(&lane.kind.branch)?,
        is_folder_missing: !lane.path.exists(),
        busy_state: is_busy.then_some(state),
        ..RemovalEvidence::default()
    };
    let worktree = worktrees.with_top_folder(&lane.path);
    evidence.lock_reason = worktree.and_then(|worktree| worktree.lock_reason.clone());
    let is_below = |path: &PathBuf| path.starts_with(&lane.path) && *path != *lane.path && path.exists();
    evidence.nested_worktrees = worktrees.iter().map(|other| other.path.clone()).filter(is_below).collect();
    if let Some(problem) = find_folder_fault(project, lane) {
        evidence.record_folder_fault(repo, lane, &problem);
        return Ok(evidence);
    }
    if evidence.is_folder_missing {
        return Ok(evidence);
    }
    let Some(worktree) = worktree else {
        // Another process is creating or removing the worktree now.
        evidence.record_folder_fault(repo, lane, &LaneFolderFault::Unrecorded(false));
        return Ok(evidence);
    };
    if let Some(symbolic) = crate::lane::context::symbolic_branch::find_symbolic_branch(repo, lane)? {
        evidence.registration_mismatch = Some(symbolic.describe());
        evidence.repair_command = Some(symbolic.repair_command());
        return Ok(evidence);
    }
    let git_dir = repo.worktree_git_dir(&lane.path)?;
    if let Some(missing) = repo.find_worktree_defect(&lane.path)? {
        evidence.broken_reason = Some(missing.describe().to_owned());
        evidence.repair_command = Some(missing.repair_command(repo, &lane.path, &lane.kind.branch));
        return Ok(evidence);
    }
    evidence.open_git_operation = find_open_git_operation(&git_dir).map(|open| open.command);
    evidence.is_surely_clean = dirty_state.is_none() && is_surely_clean(repo, &lane.path, true);
    evidence.dirty_state = match dirty_state {
        Some(status) => status,
        None if evidence.is_surely_clean => WorktreeStatus::default(),
        None => status_by_git(repo, &lane.path)?,
    };
    evidence.detached_work = find_detached_work(repo, lane, worktree, evidence.tip)?;
    evidence.unpushed_submodules = repo.submodules_with_own_commits(&git_dir);
    Ok(evidence)
}

/// Returns another worktree than the lane's that is on its branch.
fn other_worktree_on_branch(lane: &LaneRecord, worktrees: &WorktreeList) -> Option<PathBuf> {
    let mut on_branch = worktrees.on_branch(&lane.kind.branch);
    on_branch.find(|worktree| worktree.path != lane.path).map(|worktree| worktree.path.clone())
}

/// Returns whether `base` has all of `tip`: as an ancestor, or because the lane landed there as another commit.
pub(crate) fn has_landed_on(
    lane: &LaneRecord,
    repo: &Repo,
    tip: CommitId,
    base: CommitId,
) -> Result<bool, Error> {
    if repo.is_ancestor(tip, base)? {
        return Ok(true);
    }
    Ok(match &lane.landed {
        Some(landed) if landed.tip == tip => repo.is_ancestor(landed.commit, base)?,
        _ => false,
    })
}

/// Returns the location and id of the commit that a lane's worktree is at, where neither its branch nor its
/// base has it.
fn find_detached_work(
    repo: &Repo,
    lane: &LaneRecord,
    worktree: &Worktree,
    tip: Option<CommitId>,
) -> Result<Option<(String, CommitId)>, Error> {
    if worktree.is_on_branch(&lane.kind.branch) {
        return Ok(None);
    }
    let Some(head) = worktree.head(repo)? else { return Ok(None) };
    let base = lane.landed.as_ref().map_or(&lane.base, |landed| &landed.onto);
    for known in tip.into_iter().chain(repo.branch_tip(base)?) {
        if repo.is_ancestor(head, known)? {
            return Ok(None);
        }
    }
    let location = worktree.branch.clone().unwrap_or_else(|| format!("a detached HEAD ({})", head.short()));
    Ok(Some((location, head)))
}

/// Counts the commits of `tip` that `base` does not contain. Returns zero in three cases: `tip` is an
/// ancestor; merging it would change nothing, compared exactly to the last white space, as after squashed and
/// rebased landings; or `base` had the same changes before it changed the same lines further.
pub(crate) fn count_unlanded(project: &Project, tip: CommitId, base: CommitId) -> Result<usize, Error> {
    let repo = &project.repo;
    let ahead = repo.count_ahead(tip, base)?;
    if ahead == 0 {
        return Ok(0);
    }
    let merged = match exact_merge_tree(repo, base, tip) {
        Ok(Some(tree)) => Some(tree),
        // Git decides conflicts, and merges what this merge cannot read.
        Ok(None) | Err(_) => merge_with_git(project, tip, base)?,
    };
    let is_merged = merged == Some(repo.tree_of(base)?) || repo.has_equivalent_changes(base, tip)?;
    Ok(if is_merged { 0 } else { ahead })
}

/// Returns whether `base` contains all that `tip` has, in the same or in other commits.
///
/// # Errors
/// Fails when that cannot be determined.
pub fn is_contained(project: &Project, tip: CommitId, base: CommitId) -> Result<bool, Error> {
    Ok(count_unlanded(project, tip, base)? == 0)
}

/// Returns the tree of git's merge of `tip` into `base`. None when it conflicts or is impossible, as for
/// histories without a common commit: then `tip` has not landed.
fn merge_with_git(project: &Project, tip: CommitId, base: CommitId) -> Result<Option<TreeId>, Error> {
    let scratch = project.store.layout().create_scratch()?;
    let temp_objects = TempObjectStore::new(&project.repo, &Layout::scratch_objects(scratch.path()))?;
    let merged = merge_commits(&project.repo, base, tip, scratch.path(), Some(&temp_objects));
    Ok(merged.ok().filter(|merged| merged.is_clean).map(|merged| merged.tree))
}

/// Returns the first tracked file with uncommitted changes and the number of the others, as text; none if
/// there are none. The check may read every file of the worktree.
///
/// # Errors
/// Fails when git cannot read the worktree.
pub fn changed_file_names(repo: &Repo, worktree: &Path) -> Result<Option<String>, proq_git::Error> {
    let dirty = status(repo, worktree, false)?;
    let mut names = dirty.tracked().map(|e| e.path.to_string());
    let Some(first) = names.next() else { return Ok(None) };
    let more_count = names.count();
    Ok(Some(if more_count == 0 { first } else { format!("{first} and {more_count} more") }))
}
