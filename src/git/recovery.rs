//! Recovery of a worktree after a process was killed: each step is either completed or undone. Every function
//! here can itself be interrupted anywhere and run again.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::clear::SnapshotFiles;
use super::head::{Head, RefMove};
use super::index::{self, IndexLockState, NewIndex};
use super::quarantine::{Quarantine, matches_blob};
use super::restore::SnapshotRestore;
use super::stale_locks::StaleLocks;
use super::transition::{AppliedChanges, REPLACED_DIR};
use super::truncated_files::is_truncated_copy;
use super::worktree_context::WorktreeContext;
use super::{Error, Oid, Repo, RepoPath, Snapshot, TreeFile, ref_transaction, tree_changes};

/// Outcome of the recovery of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub(crate) struct RecoveredStep {
    /// Whether the step was completed; otherwise it was undone.
    pub(crate) is_done: bool,
    /// Commits that hold files which other programs wrote between the crash and the recovery. They were in
    /// the way when the recovery undid the step.
    pub(crate) saved: Vec<Oid>,
}

impl RecoveredStep {
    fn finished() -> RecoveredStep {
        RecoveredStep { is_done: true, saved: Vec::new() }
    }

    fn undone(saved: impl IntoIterator<Item = Oid>) -> RecoveredStep {
        RecoveredStep { is_done: false, saved: saved.into_iter().collect() }
    }
}

/// Name of a file in a step's scratch folder. It exists if the step's transition was refused before it
/// changed anything.
const UNTOUCHED_MARKER_FILE: &str = "untouched";

/// Records in the scratch folder that a transition stops before it changes anything. If another process
/// already moved the ref to the target, that move must not be attributed to this transition.
pub(super) fn write_untouched_marker(tree: &WorktreeContext<'_>) -> Result<(), Error> {
    let mark = tree.scratch.join(UNTOUCHED_MARKER_FILE);
    let written = std::fs::File::create(&mark).and_then(|file| file.sync_all());
    written.and_then(|()| std::fs::File::open(tree.scratch)?.sync_all()).map_err(Error::io("write", &mark))
}

/// Returns whether a transition was refused before it changed anything.
fn is_untouched(scratch: &Path) -> bool {
    scratch.join(UNTOUCHED_MARKER_FILE).exists()
}

/// Removes the record that a transition changed nothing, which an earlier attempt of the same step may have
/// left.
pub(super) fn remove_untouched_marker(tree: &WorktreeContext<'_>) -> Result<(), Error> {
    let mark = tree.scratch.join(UNTOUCHED_MARKER_FILE);
    match std::fs::remove_file(&mark) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", &mark)(e)),
        _ => Ok(()),
    }
}

/// Recovers a transition: if its ref has moved, its index is installed; otherwise its files are restored.
pub(crate) fn recover_transition(
    tree: &WorktreeContext<'_>,
    from: Oid,
    to: Oid,
    mv: &RefMove,
) -> Result<RecoveredStep, Error> {
    clear_ref_locks(tree, to, mv)?;
    let recovered = recover_files_and_index(tree, from, to, mv)?;
    release_keeper_ref(tree.repo, tree.scratch);
    Ok(recovered)
}

/// Deletes the keeper ref of a step, which protects the step's new commit from being pruned until a branch
/// points to it. If that fails, the ref is deleted later, with the refs of operations that left the log.
pub(super) fn release_keeper_ref(repo: &Repo, scratch: &Path) {
    let keeper_ref = ref_transaction::keeper_ref_name(scratch);
    if let Ok(Some(tip)) = repo.ref_tip(&keeper_ref) {
        drop(repo.delete_ref(&keeper_ref, tip, "git-proq: its step has ended"));
    }
}

fn recover_files_and_index(
    tree: &WorktreeContext<'_>,
    from: Oid,
    to: Oid,
    mv: &RefMove,
) -> Result<RecoveredStep, Error> {
    let (moved, lock_state) = ref_and_lock_state(tree, from, to, mv)?;
    if moved {
        finish_index(tree, lock_state)?;
        return Ok(RecoveredStep::finished());
    }
    if is_untouched(tree.scratch) || !tree.scratch.join(REPLACED_DIR).exists() {
        // No file was moved to the worktree yet; files that seem to be from this step existed before.
        index::recover_lock(&tree.git_dir, tree.scratch)?;
        return Ok(RecoveredStep::undone(None));
    }
    let changes = tree_changes(tree.repo, from, to)?;
    let moved = AppliedChanges::open_from_scratch_folder(tree, changes, to)?;
    let saved = moved.undo_and_save(tree)?;
    index::recover_lock(&tree.git_dir, tree.scratch)?;
    Ok(RecoveredStep::undone(saved))
}

/// Releases the locks of a killed step in the git directory of a removed worktree, if that directory still
/// exists.
pub(crate) fn release_step_locks(git_dir: Option<&Path>, scratch: &Path) -> Result<(), Error> {
    let Some(git_dir) = git_dir else { return Ok(()) };
    ref_transaction::release_head_lock(git_dir, scratch)?;
    index::recover_lock(git_dir, scratch).map(drop)
}

/// Recovers a transition of a worktree whose folder, `dir`, no longer exists, and whose git directory may not
/// exist either. If the ref has moved, its index is installed. Returns whether the ref has moved.
pub(crate) fn recover_without_worktree(
    repo: &Repo,
    dir: &Path,
    git_dir: Option<PathBuf>,
    (from, to): (Oid, Oid),
    mv: &RefMove,
    scratch: &Path,
) -> Result<bool, Error> {
    if let RefMove::Branch(name) = mv {
        let stale = StaleLocks::new(repo, scratch)?.with_ref(&format!("refs/heads/{name}"), Some(to));
        let stale = stale.with_private_ref(&ref_transaction::keeper_ref_name(scratch));
        git_dir.iter().fold(stale, |stale, git_dir| stale.with_head(git_dir, format!("{to}\n"))).remove()?;
    }
    let moved = match (mv, git_dir) {
        (RefMove::Branch(name), None) => !is_untouched(scratch) && has_branch_moved(repo, from, to, name)?,
        (_, None) => false,
        (_, Some(git_dir)) => {
            let tree = WorktreeContext { repo, dir, git_dir, scratch, off_limits: None, warn: &|_| {} };
            ref_transaction::release_head_lock(&tree.git_dir, scratch)?;
            let (moved, lock_state) = ref_and_lock_state(&tree, from, to, mv)?;
            match moved {
                true => finish_index(&tree, lock_state)?,
                false => drop(index::recover_lock(&tree.git_dir, scratch)?),
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
    from: Oid,
    to: Oid,
    mv: &RefMove,
) -> Result<(bool, IndexLockState), Error> {
    let lock_state = index::index_lock_state(&tree.git_dir, tree.scratch);
    let moved = match mv {
        _ if is_untouched(tree.scratch) => false,
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
        IndexLockState::Held | IndexLockState::Ready if index::holds_index(&lock) => {
            std::fs::rename(&lock, &index).map_err(Error::io("replace", &index))
        }
        IndexLockState::Installed => Ok(()),
        IndexLockState::Held | IndexLockState::Ready | IndexLockState::Absent => {
            let modified_time = |path: &Path| path.metadata().and_then(|m| m.modified()).ok();
            let pending_index = index::find_staged_index(tree.scratch)?;
            // A newer index was written by a process that knew the changes of this step.
            if let Some(pending_index) =
                pending_index.filter(|pending_index| modified_time(&index) <= modified_time(pending_index))
            {
                index::recover_lock(&tree.git_dir, tree.scratch)?;
                let lock = index::IndexLock::acquire_shared(tree)?;
                lock.install(NewIndex::InFile(pending_index))?;
            }
            Ok(())
        }
    }
}

/// Recovers a step that moved the changes in `snapshot` from the worktree to `parked_dir`. The step is
/// complete once its index is installed; otherwise all parked files are restored.
pub(crate) fn recover_clear(
    tree: &WorktreeContext<'_>,
    snapshot: &Snapshot,
    parked_dir: &Path,
) -> Result<RecoveredStep, Error> {
    if matches!(
        index::index_lock_state(&tree.git_dir, tree.scratch),
        IndexLockState::Ready | IndexLockState::Installed
    ) {
        index::recover_lock(&tree.git_dir, tree.scratch)?;
        return Ok(RecoveredStep::finished());
    }
    let held = SnapshotFiles::load_for_clearing(tree, snapshot)?;
    let quarantine = Quarantine::open(parked_dir)?;
    let saved = held.undo(tree, &quarantine, &snapshot.empty_dirs)?;
    index::recover_lock(&tree.git_dir, tree.scratch)?;
    Ok(RecoveredStep::undone(saved))
}

/// Recovers the step that restores `snapshot` to a worktree whose HEAD is at `current`. The snapshot's files
/// are in `parked_dir`, and its index is the file `raw_index`.
pub(crate) fn recover_restore(
    tree: &WorktreeContext<'_>,
    snapshot: &Snapshot,
    current: Oid,
    parked_dir: &Path,
    raw_index: &Path,
) -> Result<RecoveredStep, Error> {
    if matches!(
        index::index_lock_state(&tree.git_dir, tree.scratch),
        IndexLockState::Ready | IndexLockState::Installed
    ) {
        index::recover_lock(&tree.git_dir, tree.scratch)?;
        return Ok(RecoveredStep::finished());
    }
    let work = SnapshotRestore::new(tree, snapshot, parked_dir, raw_index)?;
    let saved = work.undo_interrupted(current)?;
    index::recover_lock(&tree.git_dir, tree.scratch)?;
    Ok(RecoveredStep::undone(saved))
}

/// Removes the locks that a killed git left while it moved the ref `name` to `new`. `scratch` was created
/// when the move started.
pub(crate) fn recover_ref_locks(
    repo: &Repo,
    name: &str,
    new: Option<Oid>,
    scratch: &Path,
) -> Result<(), Error> {
    StaleLocks::new(repo, scratch)?.with_ref(name, new).remove()
}

/// Name in a scratch folder of the list of refs that its process deletes outside any operation.
const DELETION_LIST: &str = "deletes";

/// Records which refs are about to be deleted outside any operation, for [`recover_deletion_locks`].
pub(crate) fn record_deletions(scratch: &Path, refs: &[String]) {
    // The final line ends in a newline, so that a truncated name can be recognized.
    let lines = refs.iter().map(String::as_str).chain([""]).collect::<Vec<_>>().join("\n");
    // Without the list a lock may remain; on a full disk that is acceptable.
    drop(std::fs::write(scratch.join(DELETION_LIST), lines));
}

/// Removes the locks that a killed git left while it deleted refs outside any operation. `scratch` was
/// created before it started.
pub(crate) fn recover_deletion_locks(repo: &Repo, scratch: &Path) -> Result<(), Error> {
    let refs = crate::regular_file::read_store_text(scratch.join(DELETION_LIST)).unwrap_or_default();
    let stale = StaleLocks::new(repo, scratch)?.with_shared();
    // git writes nothing to the lock of a ref that it deletes.
    let complete_lines = refs.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    complete_lines.fold(stale, |stale, name| stale.with_ref(name, None)).remove()
}

/// Removes the lock that a killed process left on a ref that no other process uses.
pub(crate) fn recover_private_ref_lock(repo: &Repo, name: &str, scratch: &Path) -> Result<(), Error> {
    StaleLocks::new(repo, scratch)?.with_private_ref(name).remove()
}

/// Returns whether a regular file has the content of another one or a prefix of it, as a kill or a power cut
/// leaves it.
pub(crate) fn is_partial_copy(file: &Path, original: &Path) -> bool {
    let read = |path: &Path| {
        path.symlink_metadata().is_ok_and(|meta| meta.is_file()).then(|| std::fs::read(path).ok()).flatten()
    };
    read(file).zip(read(original)).is_some_and(|(actual, expected)| is_complete_or_prefix(&actual, &expected))
}

fn is_complete_or_prefix(actual: &[u8], expected: &[u8]) -> bool {
    actual == expected || is_truncated_copy(actual, expected)
}

/// Removes the ref locks that a killed git of a transition left.
pub(super) fn clear_ref_locks(tree: &WorktreeContext<'_>, to: Oid, mv: &RefMove) -> Result<(), Error> {
    ref_transaction::release_head_lock(&tree.git_dir, tree.scratch)?;
    let stale = StaleLocks::new(tree.repo, tree.scratch)?;
    let stale = match mv {
        RefMove::Nothing => return Ok(()),
        RefMove::Branch(name) => {
            let symbolic_name =
                tree.repo.branch_name_in_head(tree.dir, &tree.git_dir, name)?.filter(|other| other != name);
            let names = symbolic_name.iter().chain([name]).map(|name| format!("refs/heads/{name}"));
            names
                .fold(stale, |stale, name| stale.with_ref(&name, Some(to)))
                .with_private_ref(&ref_transaction::keeper_ref_name(tree.scratch))
                .with_head(&tree.git_dir, format!("{to}\n"))
        }
        RefMove::Switch { to: Head::Branch(name), .. } => {
            stale.with_head(&tree.git_dir, format!("ref: refs/heads/{name}\n"))
        }
        RefMove::Switch { to: Head::Detached(id), .. } => stale.with_head(&tree.git_dir, format!("{id}\n")),
    };
    stale.remove()
}

/// Returns whether the ref of a move is at its target, or a branch is at a descendant of it. A move of no ref
/// counts as not moved.
pub(super) fn has_ref_moved(
    tree: &WorktreeContext<'_>,
    from: Oid,
    to: Oid,
    mv: &RefMove,
) -> Result<bool, Error> {
    match mv {
        RefMove::Nothing => Ok(false),
        RefMove::Branch(name) => has_branch_moved(tree.repo, from, to, name),
        RefMove::Switch { to: head, .. } => {
            Ok(tree.repo.read_worktree_head(tree.dir, &tree.git_dir)?.as_ref() == Some(head))
        }
    }
}

fn has_branch_moved(repo: &Repo, from: Oid, to: Oid, name: &str) -> Result<bool, Error> {
    let Some(tip) = repo.branch_tip(name)?.filter(|tip| *tip != from) else { return Ok(false) };
    // In an undo, `to` is an ancestor of `from`. A missing object has no descendants.
    Ok(tip == to || (repo.has_object(to) && repo.is_ancestor(to, tip)?))
}

/// Returns whether a file is missing, or may be what git was writing for `side`. A prefix of the content
/// counts too, as a kill or a power cut leaves it.
pub(super) fn may_be_written_by_git(
    tree: &WorktreeContext<'_>,
    path: &RepoPath,
    side: TreeFile,
    commit: Oid,
) -> Result<bool, Error> {
    let file = path.to_fs_path(tree.dir);
    let Ok(meta) = file.symlink_metadata() else { return Ok(true) };
    if matches_blob(tree.repo, &file, side) {
        return Ok(true);
    }
    if !meta.is_file() {
        return Ok(false);
    }
    let expected = checkout_bytes(tree, path, commit)?;
    Ok(std::fs::read(&file).is_ok_and(|actual| is_complete_or_prefix(&actual, &expected)))
}

/// Returns the bytes that git would write to the worktree for the file at `path` of the commit or tree
/// `tree_ish`, with the worktree's attributes.
pub(super) fn checkout_bytes(
    tree: &WorktreeContext<'_>,
    path: &RepoPath,
    tree_ish: Oid,
) -> Result<Vec<u8>, Error> {
    let mut spec = format!("{tree_ish}:").into_bytes();
    spec.extend_from_slice(path.as_bytes());
    let call = tree.repo.git_in(tree.dir).args(["cat-file", "--filters"]);
    Ok(call.arg(OsString::from_vec(spec)).run()?.stdout)
}

#[cfg(test)]
mod tests {
    use super::super::{LocalState, transition};
    use super::*;

    #[test]
    fn retry_ignores_refusal_of_first_attempt() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let scratch = top.join("scratch");
        std::fs::create_dir(&scratch).unwrap();
        let program = crate::git::Program::find().unwrap();
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
        let id = |name: &str| git_in_repo(&["rev-parse", name]).parse::<Oid>().unwrap();
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
