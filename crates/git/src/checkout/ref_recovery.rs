//! Recovery of a ref move after a process was killed: whether the ref has moved, and removal of the locks
//! that git left. Every function here can itself be interrupted anywhere and run again.

use std::path::Path;

use crate::base::head::{Head, RefMove};
use crate::references::ref_transaction;
use crate::references::stale_locks::StaleLocks;
use crate::repository::worktree_context::WorktreeContext;
use crate::{CommitId, Error, Repo};

/// Name of a file in a step's scratch folder. It exists if the step's transition was refused before it
/// changed anything.
pub(crate) const UNTOUCHED_MARKER_FILE: &str = "untouched";

/// Records in the scratch folder that a transition stops before it changes anything. If another process
/// already moved the ref to the target, that move must not be attributed to this transition.
pub(crate) fn write_untouched_marker(tree: &WorktreeContext<'_>) -> Result<(), Error> {
    let mark = tree.scratch.join(UNTOUCHED_MARKER_FILE);
    let written = std::fs::File::create(&mark).and_then(|file| file.sync_all());
    written.and_then(|()| std::fs::File::open(tree.scratch)?.sync_all()).map_err(Error::io("write", &mark))
}

/// Returns whether a transition was refused before it changed anything.
pub(crate) fn was_transition_refused(scratch: &Path) -> bool {
    scratch.join(UNTOUCHED_MARKER_FILE).exists()
}

/// Removes the record that a transition changed nothing, which an earlier attempt of the same step may have
/// left.
pub(crate) fn remove_untouched_marker(tree: &WorktreeContext<'_>) -> Result<(), Error> {
    let mark = tree.scratch.join(UNTOUCHED_MARKER_FILE);
    match std::fs::remove_file(&mark) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", &mark)(e)),
        _ => Ok(()),
    }
}

/// Deletes the keeper ref of a step, which protects the step's new commit from being pruned until a branch
/// points to it. If that fails, the ref is deleted later, with the refs of operations that left the log.
pub(crate) fn release_keeper_ref(repo: &Repo, scratch: &Path) {
    let keeper_ref = ref_transaction::keeper_ref_name(scratch);
    if let Ok(Some(tip)) = repo.ref_tip(&keeper_ref) {
        drop(repo.delete_ref(&keeper_ref, tip, "git-proq: its step has ended"));
    }
}

/// Removes the ref locks that a killed git of a transition left.
pub(crate) fn clear_ref_locks(tree: &WorktreeContext<'_>, to: CommitId, mv: &RefMove) -> Result<(), Error> {
    ref_transaction::release_head_lock(&tree.git_dir, tree.scratch)?;
    let stale = StaleLocks::new(tree.repo, tree.scratch)?;
    let stale = match mv {
        RefMove::Nothing => return Ok(()),
        RefMove::Branch(name) => {
            let symbolic_name =
                tree.repo.branch_name_in_head(tree.dir, &tree.git_dir, name)?.filter(|other| other != name);
            for name in symbolic_name.iter().chain([name]) {
                ref_transaction::release_branch_lock(tree.repo, name, tree.scratch)?;
            }
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
pub(crate) fn has_ref_moved(
    tree: &WorktreeContext<'_>,
    from: CommitId,
    to: CommitId,
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

/// Returns whether the branch `name` has left `from` and is at `to` or at a descendant of `to`. In an undo, `to` is an
/// ancestor of `from`: another process committed on the branch at `from` if its tip descends from that.
pub(crate) fn has_branch_moved(repo: &Repo, from: CommitId, to: CommitId, name: &str) -> Result<bool, Error> {
    let Some(tip) = repo.branch_tip(name)?.filter(|tip| *tip != from) else { return Ok(false) };
    // A missing object has no descendants.
    let descends = |id| Ok::<_, Error>(repo.has_object(id) && repo.is_ancestor(id, tip)?);
    Ok(tip == to || (descends(to)? && !(descends(from)? && repo.is_ancestor(to, from)?)))
}

/// Removes the locks that a killed git left while it moved the ref `name` to `new`. `scratch` was created
/// when the move started.
pub fn recover_ref_locks(
    repo: &Repo,
    name: &str,
    new: Option<CommitId>,
    scratch: &Path,
) -> Result<(), Error> {
    StaleLocks::new(repo, scratch)?.with_ref(name, new).remove()
}

/// Removes the lock that a killed process left on a ref that no other process uses.
pub fn recover_private_ref_lock(repo: &Repo, name: &str, scratch: &Path) -> Result<(), Error> {
    StaleLocks::new(repo, scratch)?.with_private_ref(name).remove()
}

/// Name in a scratch folder of the list of refs that its process deletes outside any operation.
const REF_DELETION_LIST: &str = "deletes";

/// Records which refs are about to be deleted outside any operation, for [`recover_ref_deletion_locks`].
pub fn record_ref_deletions(scratch: &Path, refs: &[String]) {
    // The final line ends in a newline, so that a truncated name can be recognized.
    let lines = refs.iter().map(String::as_str).chain([""]).collect::<Vec<_>>().join("\n");
    // Without the list a lock may remain; on a full disk that is acceptable.
    drop(std::fs::write(scratch.join(REF_DELETION_LIST), lines));
}

/// Removes the locks that a killed git left while it deleted refs outside any operation. `scratch` was
/// created before it started.
pub fn recover_ref_deletion_locks(repo: &Repo, scratch: &Path) -> Result<(), Error> {
    let refs = proq_base::regular_file::read_store_text(scratch.join(REF_DELETION_LIST)).unwrap_or_default();
    let stale = StaleLocks::new(repo, scratch)?.with_shared();
    // git writes nothing to the lock of a ref that it deletes.
    let complete_lines = refs.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    complete_lines.fold(stale, |stale, name| stale.with_ref(name, None)).remove()
}
