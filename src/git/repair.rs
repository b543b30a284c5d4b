//! Owns putting right what a killed process left half-done in a worktree: each step ends as if it had happened, or as if
//! it had not. Every function here can itself be cut short anywhere and run again.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::clear::Held;
use super::index::{self, LockFate, NewIndex};
use super::quarantine::{Quarantine, is_blob};
use super::ref_move::{self, Head, RefMove};
use super::restore::Work;
use super::stale::Stale;
use super::transition::{Moved, REPLACED, Tree};
use super::truncated::is_beginning;
use super::{Error, Oid, Repo, RepoPath, Side, Snapshot, tree_changes};

/// What became of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub(crate) struct Settled {
    /// Whether it has happened.
    pub(crate) happened: bool,
    /// Commits that hold files which somebody wrote after the crash and before this, where others went back.
    pub(crate) saved: Vec<Oid>,
}

impl Settled {
    fn done() -> Settled {
        Settled { happened: true, saved: Vec::new() }
    }

    fn taken_back(saved: impl IntoIterator<Item = Oid>) -> Settled {
        Settled { happened: false, saved: saved.into_iter().collect() }
    }
}

/// The name in a step's folder of the mark of a transition that was refused before it had touched anything.
const UNTOUCHED: &str = "untouched";

/// Notes that a transition ends before it has touched anything: where the ref is already where it was to go, by somebody
/// else's doing, it must not be taken for this one's.
pub(super) fn note_untouched(tree: &Tree<'_>) -> Result<(), Error> {
    let mark = tree.scratch.join(UNTOUCHED);
    let written = std::fs::File::create(&mark).and_then(|file| file.sync_all());
    written.and_then(|()| std::fs::File::open(tree.scratch)?.sync_all()).map_err(Error::io("write", &mark))
}

/// Whether a transition ended that way.
fn is_untouched(scratch: &Path) -> bool {
    scratch.join(UNTOUCHED).exists()
}

/// Forgets that mark, which an earlier try of the same step may have left.
pub(super) fn forget_untouched(tree: &Tree<'_>) -> Result<(), Error> {
    let mark = tree.scratch.join(UNTOUCHED);
    match std::fs::remove_file(&mark) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", &mark)(e)),
        _ => Ok(()),
    }
}

/// Settles a transition: where the ref has moved, its index goes into place; where it has not, its files go back.
pub(crate) fn settle_transition(tree: &Tree<'_>, from: Oid, to: Oid, mv: &RefMove) -> Result<Settled, Error> {
    clear_locks(tree, to, mv)?;
    let settled = judge_transition(tree, from, to, mv)?;
    let_go(tree.repo, tree.scratch);
    Ok(settled)
}

/// Deletes the ref that kept the commit to which a step was to move a branch. Where that cannot be, it goes with the refs of operations
/// that left the log.
pub(super) fn let_go(repo: &Repo, scratch: &Path) {
    let keeper = ref_move::keeper(scratch);
    if let Ok(Some(tip)) = repo.ref_tip(&keeper) {
        drop(repo.delete_ref(&keeper, tip, "git-proq: its step has ended"));
    }
}

fn judge_transition(tree: &Tree<'_>, from: Oid, to: Oid, mv: &RefMove) -> Result<Settled, Error> {
    let (moved, fate) = is_moved(tree, from, to, mv)?;
    if moved {
        finish_index(tree, fate)?;
        return Ok(Settled::done());
    }
    if is_untouched(tree.scratch) || !tree.scratch.join(REPLACED).exists() {
        // No file was brought over yet; what looks like it was there before.
        index::settle_lock(&tree.git_dir, tree.scratch)?;
        return Ok(Settled::taken_back(None));
    }
    let changes = tree_changes(tree.repo, from, to)?;
    let moved = Moved::found(tree, changes, to)?;
    let saved = moved.undo_and_save(tree)?;
    index::settle_lock(&tree.git_dir, tree.scratch)?;
    Ok(Settled::taken_back(saved))
}

/// Gives back what a killed step of a worktree that is gone had locked in its git directory, as far as git has that still.
pub(crate) fn release_locks(git_dir: Option<&Path>, scratch: &Path) -> Result<(), Error> {
    let Some(git_dir) = git_dir else { return Ok(()) };
    ref_move::release_head(git_dir, scratch)?;
    index::settle_lock(git_dir, scratch).map(drop)
}

/// Settles a transition of a worktree whose folder, `dir`, is gone, and whose git directory may be: where the ref has moved, its index
/// goes into place. Returns whether the ref has.
pub(crate) fn settle_without_files(
    repo: &Repo,
    dir: &Path,
    git_dir: Option<PathBuf>,
    (from, to): (Oid, Oid),
    mv: &RefMove,
    scratch: &Path,
) -> Result<bool, Error> {
    if let RefMove::Branch(name) = mv {
        let stale = Stale::since(repo, scratch)?.and_ref(&format!("refs/heads/{name}"), Some(to));
        let stale = stale.and_own_ref(&ref_move::keeper(scratch));
        git_dir.iter().fold(stale, |stale, git_dir| stale.and_head(git_dir, format!("{to}\n"))).clear()?;
    }
    let moved = match (mv, git_dir) {
        (RefMove::Branch(name), None) => !is_untouched(scratch) && has_branch_moved(repo, from, to, name)?,
        (_, None) => false,
        (_, Some(git_dir)) => {
            let tree = Tree { repo, dir, git_dir, scratch, off_limits: None, warn: &|_| {} };
            ref_move::release_head(&tree.git_dir, scratch)?;
            let (moved, fate) = is_moved(&tree, from, to, mv)?;
            match moved {
                true => finish_index(&tree, fate)?,
                false => drop(index::settle_lock(&tree.git_dir, scratch)?),
            }
            moved
        }
    };
    let_go(repo, scratch);
    Ok(moved)
}

/// Whether a transition has moved its ref, and what became of the lock on its index.
fn is_moved(tree: &Tree<'_>, from: Oid, to: Oid, mv: &RefMove) -> Result<(bool, LockFate), Error> {
    let fate = index::lock_fate(&tree.git_dir, tree.scratch);
    let moved = match mv {
        _ if is_untouched(tree.scratch) => false,
        RefMove::Nothing => matches!(fate, LockFate::Ready | LockFate::Installed),
        _ => has_moved(tree, from, to, mv)?,
    };
    Ok((moved, fate))
}

/// The ref has moved, so the index belongs there: the one that waits in its lock, or, where somebody took the lock away,
/// the one that was made for it.
fn finish_index(tree: &Tree<'_>, fate: LockFate) -> Result<(), Error> {
    let (lock, index) = (tree.git_dir.join("index.lock"), tree.git_dir.join("index"));
    match fate {
        LockFate::Held | LockFate::Ready if index::is_whole(&lock) => {
            std::fs::rename(&lock, &index).map_err(Error::io("replace", &index))
        }
        LockFate::Installed => Ok(()),
        LockFate::Held | LockFate::Ready | LockFate::Gone => {
            let age = |path: &Path| path.metadata().and_then(|m| m.modified()).ok();
            let next = index::left(tree.scratch)?;
            // An index that is younger than ours was made by somebody who saw what we did.
            if let Some(next) = next.filter(|next| age(&index) <= age(next)) {
                index::settle_lock(&tree.git_dir, tree.scratch)?;
                let lock = index::IndexLock::of(tree)?;
                lock.install(NewIndex::At(next))?;
            }
            Ok(())
        }
    }
}

/// Settles a clear: done once its index is in place, otherwise everything that was moved aside comes back.
pub(crate) fn settle_clear(tree: &Tree<'_>, snapshot: &Snapshot, aside: &Path) -> Result<Settled, Error> {
    if matches!(index::lock_fate(&tree.git_dir, tree.scratch), LockFate::Ready | LockFate::Installed) {
        index::settle_lock(&tree.git_dir, tree.scratch)?;
        return Ok(Settled::done());
    }
    let held = Held::to_clear(tree, snapshot)?;
    let aside = Quarantine::at(aside)?;
    let saved = held.take_back(tree, &aside, &snapshot.empty_dirs)?;
    index::settle_lock(&tree.git_dir, tree.scratch)?;
    Ok(Settled::taken_back(saved))
}

/// Settles a restore onto a worktree that is at `now`, with the snapshot's files in `aside` and its index.
pub(crate) fn settle_restore(
    tree: &Tree<'_>,
    snapshot: &Snapshot,
    now: Oid,
    aside: &Path,
    raw_index: &Path,
) -> Result<Settled, Error> {
    if matches!(index::lock_fate(&tree.git_dir, tree.scratch), LockFate::Ready | LockFate::Installed) {
        index::settle_lock(&tree.git_dir, tree.scratch)?;
        return Ok(Settled::done());
    }
    let work = Work::of(tree, snapshot, aside, raw_index)?;
    let saved = work.take_back(now)?;
    index::settle_lock(&tree.git_dir, tree.scratch)?;
    Ok(Settled::taken_back(saved))
}

/// Takes away the locks that a killed move of one ref left. `scratch` was made when the move began.
pub(crate) fn settle_ref(repo: &Repo, name: &str, new: Option<Oid>, scratch: &Path) -> Result<(), Error> {
    Stale::since(repo, scratch)?.and_ref(name, new).clear()
}

/// The name in a folder of the list of refs that its process deletes outside of any operation.
const DELETES: &str = "deletes";

/// Writes down which refs are about to be deleted outside of any operation, for [`settle_deletions`].
pub(crate) fn note_deletions(scratch: &Path, refs: &[String]) {
    // A name without the end of its line may have been cut short.
    let lines = refs.iter().map(String::as_str).chain([""]).collect::<Vec<_>>().join("\n");
    // Without the list a lock may stay, which on a full disk is the lesser evil.
    drop(std::fs::write(scratch.join(DELETES), lines));
}

/// Takes away the locks that a killed git left which deleted refs of nobody's operation. `scratch` was made before it began.
pub(crate) fn settle_deletions(repo: &Repo, scratch: &Path) -> Result<(), Error> {
    let refs = crate::regular_file::record_text(scratch.join(DELETES)).unwrap_or_default();
    let stale = Stale::since(repo, scratch)?.and_shared();
    // To delete a ref git writes nothing to its lock.
    let whole = refs.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    whole.fold(stale, |stale, name| stale.and_ref(name, None)).clear()
}

/// The same for a ref that only the dead process knew of.
pub(crate) fn settle_own_ref(repo: &Repo, name: &str, scratch: &Path) -> Result<(), Error> {
    Stale::since(repo, scratch)?.and_own_ref(name).clear()
}

/// Whether a regular file is what another one has, or the beginning of it, as a kill or a power cut leaves one.
pub(crate) fn is_beginning_of_file(file: &Path, whole: &Path) -> bool {
    let read = |path: &Path| {
        path.symlink_metadata().is_ok_and(|meta| meta.is_file()).then(|| std::fs::read(path).ok()).flatten()
    };
    read(file).zip(read(whole)).is_some_and(|(there, whole)| is_whole_or_beginning(&there, &whole))
}

fn is_whole_or_beginning(there: &[u8], whole: &[u8]) -> bool {
    there == whole || is_beginning(there, whole)
}

/// Takes away the locks on refs that a dead git of a transition has left.
pub(super) fn clear_locks(tree: &Tree<'_>, to: Oid, mv: &RefMove) -> Result<(), Error> {
    ref_move::release_head(&tree.git_dir, tree.scratch)?;
    let stale = Stale::since(tree.repo, tree.scratch)?;
    let stale = match mv {
        RefMove::Nothing => return Ok(()),
        RefMove::Branch(name) => {
            let by = tree.repo.name_in_head(tree.dir, &tree.git_dir, name)?.filter(|by| by != name);
            let names = by.iter().chain([name]).map(|name| format!("refs/heads/{name}"));
            names
                .fold(stale, |stale, name| stale.and_ref(&name, Some(to)))
                .and_own_ref(&ref_move::keeper(tree.scratch))
                .and_head(&tree.git_dir, format!("{to}\n"))
        }
        RefMove::Switch { to: Head::Branch(name), .. } => {
            stale.and_head(&tree.git_dir, format!("ref: refs/heads/{name}\n"))
        }
        RefMove::Switch { to: Head::Detached(id), .. } => stale.and_head(&tree.git_dir, format!("{id}\n")),
    };
    stale.clear()
}

/// Whether the ref of a move is where it was to go, or beyond.
pub(super) fn has_moved(tree: &Tree<'_>, from: Oid, to: Oid, mv: &RefMove) -> Result<bool, Error> {
    match mv {
        RefMove::Nothing => Ok(false),
        RefMove::Branch(name) => has_branch_moved(tree.repo, from, to, name),
        RefMove::Switch { to: head, .. } => {
            Ok(tree.repo.head_in(tree.dir, &tree.git_dir)?.as_ref() == Some(head))
        }
    }
}

fn has_branch_moved(repo: &Repo, from: Oid, to: Oid, name: &str) -> Result<bool, Error> {
    let Some(tip) = repo.branch_tip(name)?.filter(|tip| *tip != from) else { return Ok(false) };
    // Going back, `from` has `to` among its ancestors. What is not there any more leads nowhere.
    Ok(tip == to || (repo.has_object(to) && repo.is_ancestor(to, tip)?))
}

/// Whether a file can be what git was about to write for `side`, or the beginning of it, as a kill or a power cut leaves one.
pub(super) fn is_from_git(tree: &Tree<'_>, path: &RepoPath, side: Side, commit: Oid) -> Result<bool, Error> {
    let file = path.under(tree.dir);
    let Ok(meta) = file.symlink_metadata() else { return Ok(true) };
    if is_blob(tree.repo, &file, side) {
        return Ok(true);
    }
    if !meta.is_file() {
        return Ok(false);
    }
    let wanted = as_written(tree, path, commit)?;
    Ok(std::fs::read(&file).is_ok_and(|there| is_whole_or_beginning(&there, &wanted)))
}

/// The bytes that git writes to a worktree for the file at `path` of the commit or tree `of`, by the attributes that are there.
pub(super) fn as_written(tree: &Tree<'_>, path: &RepoPath, of: Oid) -> Result<Vec<u8>, Error> {
    let mut spec = format!("{of}:").into_bytes();
    spec.extend_from_slice(path.as_bytes());
    let call = tree.repo.git_in(tree.dir).args(["cat-file", "--filters"]);
    Ok(call.arg(OsString::from_vec(spec)).run()?.stdout)
}

#[cfg(test)]
mod tests {
    use super::super::{LocalState, transition};
    use super::*;

    #[test]
    fn a_second_try_is_not_judged_by_the_refusal_of_the_first() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let scratch = top.join("scratch");
        std::fs::create_dir(&scratch).unwrap();
        let program = crate::git::Program::find().unwrap();
        let git = |args: &[&str]| program.in_dir(&top).args(args).changes().run().unwrap().line();
        git(&["init", "-q", "-b", "main", "repo"]);
        let within = |args: &[&str]| git(&[&["-C", "repo"], args].concat());
        within(&["config", "user.name", "a"]);
        within(&["config", "user.email", "a@b"]);
        std::fs::write(top.join("repo/file"), "new").unwrap();
        within(&["commit", "-q", "--allow-empty", "-m", "from"]);
        within(&["add", "file"]);
        within(&["commit", "-q", "-m", "to"]);
        let id = |name: &str| within(&["rev-parse", name]).parse::<Oid>().unwrap();
        let (from, to, mv) = (id("HEAD^"), id("HEAD"), RefMove::Branch("main".into()));
        within(&["reset", "-q", "--hard", "HEAD^"]);

        let repo = Repo::discover(&top.join("repo")).unwrap();
        let (dir, git_dir) = (top.join("repo"), top.join("repo/.git"));
        let lock = git_dir.join("refs/heads/main.lock");
        let tree =
            Tree { repo: &repo, dir: &dir, git_dir, scratch: &scratch, off_limits: None, warn: &|_| {} };
        std::fs::write(&lock, "somebody's").unwrap();
        let go = || transition(&tree, (from, to), &mv, "test", &LocalState::default());
        assert!(go().is_err() && scratch.join(UNTOUCHED).exists());
        std::fs::remove_file(&lock).unwrap();
        go().unwrap();
        assert!(settle_transition(&tree, from, to, &mv).unwrap().happened);
        assert_eq!(within(&["status", "--porcelain"]), "");
    }
}
