//! Recovery of a worktree after a process was killed: each step is either completed or undone. Every function
//! here can itself be interrupted anywhere and run again.

use std::path::{Path, PathBuf};

use super::clear::SnapshotFiles;
use super::restore::SnapshotRestore;
use super::snapshot::Snapshot;
use crate::base::head::RefMove;
use crate::checkout::quarantine::Quarantine;
use crate::checkout::ref_recovery::{
    clear_ref_locks, has_branch_moved, has_ref_moved, release_keeper_ref, was_transition_refused,
};
use crate::checkout::transition::{AppliedChanges, REPLACED_DIR};
use crate::history::tree_diff::tree_changes;
use crate::index::index_lock;
use crate::index::index_lock::{IndexLockState, NewIndex};
use crate::references::ref_transaction;
use crate::references::stale_locks::StaleLocks;
use crate::repository::worktree_context::WorktreeContext;
use crate::{CommitId, Error, Repo};

/// Outcome of the recovery of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct RecoveredStep {
    /// Whether the step was completed; otherwise it was undone.
    pub is_done: bool,
    /// Commits that hold files which other programs wrote between the crash and the recovery. They were in
    /// the way when the recovery undid the step.
    pub saved_commits: Vec<CommitId>,
}

impl RecoveredStep {
    /// Creates the outcome of a step that was completed.
    fn finished() -> RecoveredStep {
        RecoveredStep { is_done: true, saved_commits: Vec::new() }
    }

    /// Creates the outcome of a step that was undone, with commits of files that were in the way.
    fn undone(saved: impl IntoIterator<Item = CommitId>) -> RecoveredStep {
        RecoveredStep { is_done: false, saved_commits: saved.into_iter().collect() }
    }
}

/// Recovers a transition: if its ref has moved, its index is installed; otherwise its files are restored.
pub fn recover_transition(
    tree: &WorktreeContext<'_>,
    from: CommitId,
    to: CommitId,
    mv: &RefMove,
) -> Result<RecoveredStep, Error> {
    clear_ref_locks(tree, to, mv)?;
    let recovered = recover_files_and_index(tree, from, to, mv)?;
    release_keeper_ref(tree.repo, tree.scratch);
    Ok(recovered)
}

fn recover_files_and_index(
    tree: &WorktreeContext<'_>,
    from: CommitId,
    to: CommitId,
    mv: &RefMove,
) -> Result<RecoveredStep, Error> {
    let (moved, lock_state) = ref_and_lock_state(tree, from, to, mv)?;
    if moved {
        finish_index(tree, lock_state)?;
        return Ok(RecoveredStep::finished());
    }
    if was_transition_refused(tree.scratch) || !tree.scratch.join(REPLACED_DIR).exists() {
        // No file was moved to the worktree yet; files that seem to be from this step existed before.
        index_lock::recover_index_lock(&tree.git_dir, tree.scratch)?;
        return Ok(RecoveredStep::undone(None));
    }
    let changes = tree_changes(tree.repo, from, to)?;
    let moved = AppliedChanges::open_from_scratch_folder(tree, changes, to.oid())?;
    let saved = moved.undo_and_save(tree)?;
    index_lock::recover_index_lock(&tree.git_dir, tree.scratch)?;
    Ok(RecoveredStep::undone(saved))
}

/// Releases the locks of a killed step in the git directory of a removed worktree, if that directory still
/// exists.
pub fn release_step_locks(git_dir: Option<&Path>, scratch: &Path) -> Result<(), Error> {
    let Some(git_dir) = git_dir else { return Ok(()) };
    ref_transaction::release_head_lock(git_dir, scratch)?;
    index_lock::recover_index_lock(git_dir, scratch).map(drop)
}

/// Recovers a transition of a worktree whose folder, `dir`, no longer exists, and whose git directory may not
/// exist either. If the ref has moved, its index is installed. Returns whether the ref has moved.
pub fn recover_without_worktree(
    repo: &Repo,
    dir: &Path,
    git_dir: Option<PathBuf>,
    (from, to): (CommitId, CommitId),
    mv: &RefMove,
    scratch: &Path,
) -> Result<bool, Error> {
    if let RefMove::Branch(name) = mv {
        ref_transaction::release_branch_lock(repo, name, scratch)?;
        git_dir.iter().try_for_each(|git_dir| ref_transaction::release_head_lock(git_dir, scratch))?;
        let stale = StaleLocks::new(repo, scratch)?.with_ref(&format!("refs/heads/{name}"), Some(to));
        let stale = stale.with_private_ref(&ref_transaction::keeper_ref_name(scratch));
        git_dir.iter().fold(stale, |stale, git_dir| stale.with_head(git_dir, format!("{to}\n"))).remove()?;
    }
    let moved = match (mv, git_dir) {
        (RefMove::Branch(name), None) => {
            !was_transition_refused(scratch) && has_branch_moved(repo, from, to, name)?
        }
        (_, None) => false,
        (_, Some(git_dir)) => {
            let tree = WorktreeContext { repo, dir, git_dir, scratch, off_limits: None, warn: &|_| {} };
            ref_transaction::release_head_lock(&tree.git_dir, scratch)?;
            let (moved, lock_state) = ref_and_lock_state(&tree, from, to, mv)?;
            match moved {
                true => finish_index(&tree, lock_state)?,
                false => drop(index_lock::recover_index_lock(&tree.git_dir, scratch)?),
            }
            moved
        }
    };
    release_keeper_ref(repo, scratch);
    Ok(moved)
}

/// Returns whether a transition has moved its ref, and the state of the lock on its index.
fn ref_and_lock_state(
    tree: &WorktreeContext<'_>,
    from: CommitId,
    to: CommitId,
    mv: &RefMove,
) -> Result<(bool, IndexLockState), Error> {
    let lock_state = index_lock::index_lock_state(&tree.git_dir, tree.scratch);
    let moved = match mv {
        _ if was_transition_refused(tree.scratch) => false,
        RefMove::Nothing => matches!(lock_state, IndexLockState::Ready | IndexLockState::Installed),
        _ => has_ref_moved(tree, from, to, mv)?,
    };
    Ok((moved, lock_state))
}

/// Installs the index of a transition whose ref has moved: the one in its lock file or, if another process
/// removed the lock, the one built for it.
fn finish_index(tree: &WorktreeContext<'_>, lock_state: IndexLockState) -> Result<(), Error> {
    let (lock, index) = (tree.git_dir.join("index.lock"), tree.git_dir.join("index"));
    match lock_state {
        IndexLockState::Held | IndexLockState::Ready if index_lock::holds_index(&lock) => {
            std::fs::rename(&lock, &index).map_err(Error::io("replace", &index))
        }
        IndexLockState::Installed => Ok(()),
        IndexLockState::Held | IndexLockState::Ready | IndexLockState::Absent => {
            let modified_time = |path: &Path| path.metadata().and_then(|m| m.modified()).ok();
            let pending_index = index_lock::rescue_staged_index(tree.scratch)?;
            // A newer index was written by a process that knew the changes of this step.
            if let Some(pending_index) =
                pending_index.filter(|pending_index| modified_time(&index) <= modified_time(pending_index))
            {
                index_lock::recover_index_lock(&tree.git_dir, tree.scratch)?;
                let lock = index_lock::IndexLock::acquire_with_sharing(tree)?;
                lock.install(NewIndex::InFile(pending_index))?;
            }
            index_lock::recover_index_lock(&tree.git_dir, tree.scratch).map(drop)
        }
    }
}

/// Recovers a step that moved the changes in `snapshot` from the worktree to `parked_dir`. The step is
/// complete once its index is installed; otherwise all parked files are restored.
pub fn recover_clear(
    tree: &WorktreeContext<'_>,
    snapshot: &Snapshot,
    parked_dir: &Path,
) -> Result<RecoveredStep, Error> {
    if matches!(
        index_lock::index_lock_state(&tree.git_dir, tree.scratch),
        IndexLockState::Ready | IndexLockState::Installed
    ) {
        index_lock::recover_index_lock(&tree.git_dir, tree.scratch)?;
        return Ok(RecoveredStep::finished());
    }
    let held = SnapshotFiles::load_for_clearing(tree, snapshot)?;
    let quarantine = Quarantine::open(parked_dir)?;
    let saved = held.undo(tree, &quarantine, &snapshot.empty_dirs)?;
    index_lock::recover_index_lock(&tree.git_dir, tree.scratch)?;
    Ok(RecoveredStep::undone(saved))
}

/// Recovers the step that restores `snapshot` to a worktree whose HEAD is at `current_head`. The snapshot's
/// files are in `parked_dir`, and its index is the file `raw_index`.
pub fn recover_restore(
    tree: &WorktreeContext<'_>,
    snapshot: &Snapshot,
    current_head: CommitId,
    parked_dir: &Path,
    raw_index: &Path,
) -> Result<RecoveredStep, Error> {
    if matches!(
        index_lock::index_lock_state(&tree.git_dir, tree.scratch),
        IndexLockState::Ready | IndexLockState::Installed
    ) {
        index_lock::recover_index_lock(&tree.git_dir, tree.scratch)?;
        return Ok(RecoveredStep::finished());
    }
    let work = SnapshotRestore::new(tree, snapshot, parked_dir, raw_index)?;
    let saved = work.undo_interrupted(current_head)?;
    index_lock::recover_index_lock(&tree.git_dir, tree.scratch)?;
    Ok(RecoveredStep::undone(saved))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkout::ref_recovery::UNTOUCHED_MARKER_FILE;
    use crate::checkout::transition::transition;
    use crate::status::local_state::LocalState;

    #[test]
    fn retry_ignores_refusal_of_first_attempt() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let scratch = top.join("scratch");
        std::fs::create_dir(&scratch).unwrap();
        let program = crate::program::command::Program::find().unwrap();
        let git =
            |args: &[&str]| program.command_in(&top).args(args).mutating().run().unwrap().trimmed_stdout();
        git(&["init", "-q", "-b", "main", "repo"]);
        let git_in_repo = |args: &[&str]| git(&[&["-C", "repo"], args].concat());
        git_in_repo(&["config", "user.name", "a"]);
        git_in_repo(&["config", "user.email", "a@b"]);
        std::fs::write(top.join("repo/file"), "new").unwrap();
        git_in_repo(&["commit", "-q", "--allow-empty", "-m", "from"]);
        git_in_repo(&["add", "file"]);
        git_in_repo(&["commit", "-q", "-m", "to"]);
        let id = |name: &str| git_in_repo(&["rev-parse", name]).parse::<CommitId>().unwrap();
        let (from, to, mv) = (id("HEAD^"), id("HEAD"), RefMove::Branch("main".into()));
        git_in_repo(&["reset", "-q", "--hard", "HEAD^"]);

        let repo = Repo::discover(&top.join("repo")).unwrap();
        let (dir, git_dir) = (top.join("repo"), top.join("repo/.git"));
        let lock = git_dir.join("refs/heads/main.lock");
        let tree = WorktreeContext {
            repo: &repo,
            dir: &dir,
            git_dir,
            scratch: &scratch,
            off_limits: None,
            warn: &|_| {},
        };
        std::fs::write(&lock, "somebody's").unwrap();
        let run_transition = || transition(&tree, (from, to), &mv, "test", &LocalState::default());
        assert!(run_transition().is_err() && scratch.join(UNTOUCHED_MARKER_FILE).exists());
        std::fs::remove_file(&lock).unwrap();
        run_transition().unwrap();
        assert!(recover_transition(&tree, from, to, &mv).unwrap().is_done);
        assert_eq!(git_in_repo(&["status", "--porcelain"]), "");
    }
}
