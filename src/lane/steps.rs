//! Owns what each step of an operation does, how it is taken back, and how one is judged that a dead process left open.

use std::path::Path;

use super::absent;
use super::alias::refuse_alias;
use super::operation::Operation;
use super::{Checkout, Error, Project, half_made, pool, resolve_tree, snaps};
use crate::fault;
use crate::git::{self, LocalState, Oid, RefMove, RepoPath, Restored, WorktreeList};
use crate::store::records::{Before, PreviewRecord, SnapRecord, Step};
use crate::store::{Line, Record, new_id, remove_drafts, write_atomically};

/// What a step did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub(crate) enum Applied {
    /// What it says.
    Done,
    /// A snapshot came back, or did not.
    Restored(Restored),
}

impl Applied {
    /// How a snapshot came back.
    pub(super) fn how(self) -> Restored {
        match self {
            Applied::Restored(how) => how,
            Applied::Done => Restored::Exactly,
        }
    }
}

impl Operation<'_> {
    /// The step that brings a worktree from one commit to another, with what is to be there again once it is taken back.
    pub(crate) fn tree_step(&self, dir: &Path, from: Oid, to: Oid, mv: RefMove) -> Step {
        // What cannot be found out now fails in the step itself.
        let repo = &self.project.repo;
        let mut drops = LocalState::dropped(repo, dir, from, to).unwrap_or_default();
        if matches!(mv, RefMove::Switch { .. }) {
            drops = drops.with_flags(LocalState::flags_set(repo, dir, None).unwrap_or_default());
        }
        Step::Tree { dir: dir.to_owned(), from, to, mv, drops, brings: LocalState::default() }
    }

    /// Takes a step that follows from one that has happened. Where it cannot be taken that is said, but for a worktree that was to
    /// follow a branch: a landing looks at those once more, unless it is one that was killed and is `recovered`.
    pub(super) fn follow(&self, n: usize, recovered: bool) {
        if recovered && self.at(n).is_some_and(|(step, _)| absent::is_left_behind(self, &step)) {
            let _ = self.note(Line::Back(n));
            return;
        }
        let follow = || self.take(n, |step, scratch| apply(self, step, scratch));
        // There is no way back, so it is worth a second try.
        let Err(e) = follow().or_else(|_| follow()) else { return };
        let only_follows = |step: &Step| matches!(step, Step::Tree { mv: RefMove::Nothing, .. });
        if recovered || !self.at(n).is_some_and(|(step, _)| only_follows(&step)) {
            self.project.listener.warn(format!("not everything could be written down: {e}"));
        }
    }

    /// Brings a worktree to a commit where it had what `brings` says. `leaves` are empty folders that go with what is there now: once
    /// the step is taken back they are there again.
    pub(crate) fn transition_back(
        &self,
        dir: &Path,
        (from, to): (Oid, Oid),
        mv: RefMove,
        brings: &LocalState,
        leaves: &[RepoPath],
    ) -> Result<(), Error> {
        let mut step = self.tree_step(dir, from, to, mv);
        if let Step::Tree { brings: gets, drops, .. } = &mut step {
            gets.clone_from(brings);
            drops.empty_dirs.extend_from_slice(leaves);
        }
        self.perform(step).map(drop)
    }
}

/// Does a step. On failure everything is as it was.
pub(super) fn apply(op: &Operation<'_>, step: &Step, scratch: &Path) -> Result<Applied, Error> {
    let project = op.project;
    require_ref_of_its_own(project, step)?;
    match step {
        Step::Ref { name, old, new } => {
            let Some(null) = old.or(*new).map(Oid::null) else { return Ok(Applied::Done) };
            if new.is_none() {
                refuse_in_use(project, name)?;
            }
            project.repo.swap_ref(name, new.unwrap_or(null), old.unwrap_or(null), &op.why())?;
        }
        Step::Anchor { name, new } => project.repo.create_ref(name, *new, &op.why())?,
        Step::Tree { dir, from, to, mv, drops, brings } => {
            let why = match mv {
                // `git switch -` reads it.
                RefMove::Switch { from, to } => format!("checkout: moving from {from} to {to}"),
                _ => op.why(),
            };
            let checkout = op.checkout(dir)?;
            let gets = brings.with_modes(drops);
            checkout
                .with_tree(scratch, |tree| Ok(git::transition(tree, (*from, *to), mv, &why, &gets)?))
                .inspect_err(|_| checkout.make_folders(&drops.empty_dirs))?;
            arrange_folders(&checkout, step, true);
        }
        Step::Clear { dir, snap } => {
            let snapshot = op.snapshot_of(snap)?;
            let aside = snaps::aside(project, snap)?;
            let checkout = op.checkout(dir)?;
            let keep = |saved| keep(project, saved, "written meanwhile");
            checkout.with_tree(scratch, |tree| Ok(git::clear(tree, &snapshot, &aside, &keep)?))?;
        }
        Step::Restore { dir, snap, head, before } => {
            let snapshot = op.snapshot_of(snap)?;
            let raw = project.kept_index(dir, snap);
            let aside = snaps::aside(project, snap)?;
            let checkout = op.checkout(dir)?;
            let empty = before.as_ref().map_or(&[][..], |before| &before.empty_dirs);
            let how = checkout
                .with_tree(scratch, |tree| Ok(git::restore(tree, &snapshot, *head, &aside, &raw)?))
                .inspect_err(|_| checkout.make_folders(empty))?;
            // Empty folders would stand in the way of files that are set aside under this name again.
            snaps::prune(project, snap);
            return Ok(Applied::Restored(how));
        }
        Step::File { .. } => {
            let _lock = op.lock_store()?;
            write_record(project, step)?;
        }
        Step::Move { from, to } => rename(from, to)?,
        Step::Regrow { entry, tip } => pool::regrow(project, entry, *tip, scratch)?,
        // Their work is more than their data says, who plans them does it; or it has been done.
        Step::Snap { .. }
        | Step::Worktree { .. }
        | Step::Reuse { .. }
        | Step::Resolve { .. }
        | Step::Worked { .. } => {}
    }
    Ok(Applied::Done)
}

/// Makes the empty folders that a worktree had at the commit to which a step of it leads, or, where the step has not `happened`, those
/// that it had before. A switch of HEAD removes those of the branch that it leaves; where a branch moves, only those are gone in whose
/// place there are files now.
fn arrange_folders(checkout: &Checkout<'_>, step: &Step, happened: bool) {
    let Step::Tree { mv, drops, brings, .. } = step else { return };
    if !happened {
        return checkout.make_folders(&drops.empty_dirs);
    }
    if matches!(mv, RefMove::Switch { .. }) {
        checkout.remove_folders(&drops.empty_dirs, &brings.empty_dirs);
    }
    checkout.make_folders(&brings.empty_dirs);
}

/// Refuses a step that would move or remove a branch that is a symbolic ref. One of the user's that is checked out may be one, and moves
/// what it leads to, as with git; a lane's branch is git-proq's own, and was made one by somebody else.
fn require_ref_of_its_own(project: &Project, step: &Step) -> Result<(), Error> {
    let branch = match step {
        Step::Ref { name, old: Some(_), .. } => name.strip_prefix("refs/heads/"),
        Step::Tree { mv: RefMove::Branch(branch), .. } => {
            Some(branch.as_str()).filter(|name| project.is_own_branch(name))
        }
        _ => None,
    };
    branch.map_or(Ok(()), |branch| refuse_alias(project, branch))
}

/// A branch that a worktree is on stays: without it that worktree would be on nothing.
fn refuse_in_use(project: &Project, name: &str) -> Result<(), Error> {
    let Some(branch) = name.strip_prefix("refs/heads/") else { return Ok(()) };
    match WorktreeList::read(&project.repo)?.on_branch(branch).next() {
        None => Ok(()),
        Some(worktree) => {
            let why = format!("{} is on it", worktree.path.display());
            Err(git::Error::RefMoved { name: branch.to_owned(), why }.into())
        }
    }
}

/// Takes a step back that has happened, by steps of its own.
pub(super) fn invert(op: &Operation<'_>, step: &Step) -> Result<(), Error> {
    absent::refuse_gone(op, step)?;
    match step {
        Step::Ref { name, old, new } => {
            op.perform(Step::Ref { name: name.clone(), old: *new, new: *old }).map(drop)
        }
        // A folder that was reused is the new lane's and goes with it. One that was made anew lies in its entry, whole.
        Step::Anchor { .. }
        | Step::Snap { anew: true, .. }
        | Step::Worked { .. }
        | Step::Reuse { .. }
        | Step::Regrow { .. } => Ok(()),
        Step::Tree { dir, from, to, mv, drops, brings } => {
            op.transition_back(dir, (*to, *from), mv.inverse(), drops, &brings.empty_dirs)
        }
        Step::Snap { id, .. } if op.is_going_back() => forget_snap(op, id),
        Step::Snap { id, .. } => op.retire(id),
        Step::Clear { dir, snap } => {
            let snapshot = op.snapshot_of(snap)?;
            let head = op.project.repo.head_of(dir)?.unwrap_or(snapshot.base);
            match op.restore_cleared(dir, snap, head)? {
                Restored::Exactly | Restored::Merged => {
                    // Older files may have had to make room, and come back to this place.
                    snaps::prune(op.project, snap);
                    Ok(())
                }
                Restored::Conflict(paths) => {
                    Err(Error::DoesNotFit { dir: dir.clone(), paths, snapshot: snapshot.commit })
                }
            }
        }
        Step::Restore { dir, snap, before, .. } => {
            let taken = op.set_aside_again(dir, snap, before.as_ref(), &spared(op.project, dir)?)?;
            before.as_ref().map_or(Ok(()), |before| bring_before(op, dir, before, taken))
        }
        Step::File { path, old, new } => {
            let back = Step::File { path: path.clone(), old: new.clone(), new: old.clone() };
            op.perform(back).map(drop)?;
            put_back_empty_folders(op, step)
        }
        Step::Move { from, to } => pool::whole(op, to, || op.rename(to, from)),
        Step::Worktree { dir, lane, start } => half_made::take_back(op.project, dir, lane, *start),
        Step::Resolve { dir, lane, start } if op.is_going_back() => {
            half_made::take_back(op.project, dir, lane, *start)
        }
        // Somebody may have worked in it since.
        Step::Resolve { dir, lane, start } => resolve_tree::unmake(op, lane, dir, *start),
    }
}

/// Brings a worktree, which is at HEAD, to how it was before a snapshot came back to it. `taken` is the snapshot that holds what was
/// there since.
fn bring_before(op: &Operation<'_>, dir: &Path, before: &Before, taken: Option<String>) -> Result<(), Error> {
    if let Some(snap) = &before.snap {
        let kept = op.snapshot_of(snap)?;
        let head = op.project.repo.head_of(dir)?.unwrap_or(kept.base);
        if let Restored::Conflict(paths) = op.restore(dir, snap, head, None)? {
            return Err(Error::DoesNotFit { dir: dir.to_owned(), paths, snapshot: kept.commit });
        }
    }
    let checkout = op.checkout(dir)?;
    if let Some(taken) = taken.filter(|_| !before.ignored.is_empty()) {
        checkout.give_back(&snaps::aside(op.project, &taken)?, &before.ignored)?;
        snaps::prune(op.project, &taken);
    }
    checkout.make_folders(&before.empty_dirs);
    Ok(())
}

/// Does what taking a step back comes to an end with, for one whose last inverse step has happened: empty folders are no
/// step's.
pub(super) fn finish_inverse(op: &Operation<'_>, step: &Step) -> Result<(), Error> {
    put_back_empty_folders(op, step)?;
    let Step::Restore { dir, snap, before: Some(before), .. } = step else { return Ok(()) };
    if absent::is_gone(op, step)? {
        return Ok(());
    }
    op.remove_restored_folders(dir, snap, before)?;
    op.checkout(dir)?.make_folders(&before.empty_dirs);
    Ok(())
}

/// Makes those empty folders of the main checkout again that were there before a preview whose record is gone again: where nothing
/// else had to be set aside, only the record names them.
fn put_back_empty_folders(op: &Operation<'_>, step: &Step) -> Result<(), Error> {
    let Step::File { path, old: None, new: Some(text) } = step else { return Ok(()) };
    if op.below_store(&op.project.store.layout().preview()) != *path {
        return Ok(());
    }
    let Ok(record) = toml::from_str::<PreviewRecord>(text) else { return Ok(()) };
    let Some(main) = op.project.repo.main_worktree().filter(|_| !record.empty_dirs.is_empty()) else {
        return Ok(());
    };
    op.checkout(main)?.make_folders(&record.empty_dirs);
    Ok(())
}

/// Files in the main checkout that were ignored where its preview was entered: under a lane's rules they may look like
/// somebody's edits.
pub(super) fn spared(project: &Project, dir: &Path) -> Result<Vec<git::RepoPath>, Error> {
    if project.repo.main_worktree() != Some(dir) {
        return Ok(Vec::new());
    }
    let open = PreviewRecord::find(&project.store.layout().preview())?;
    Ok(open.map(|open| open.ignored).unwrap_or_default())
}

/// A snapshot whose files never left their places, or are back in them, is forgotten.
pub(super) fn forget_snap(op: &Operation<'_>, id: &str) -> Result<(), Error> {
    let name = SnapRecord::ref_name(id);
    snaps::prune(op.project, id);
    let dir = op.project.store.layout().snapshot(id);
    // What is copied has never left its place, or is back there by now. A record that cannot be read says nothing of that.
    let is_copy = || SnapRecord::find(&dir.join("snap.toml")).is_ok_and(|s| s.is_some_and(|snap| snap.copy));
    let files = dir.join("files");
    if files.exists() {
        if !is_copy() {
            // Something is still in its keeping.
            return op.retire(id);
        }
        // Before the record, which tells whoever goes on after a kill that they are copies.
        std::fs::remove_dir_all(&files).map_err(Error::io("remove", &files))?;
        fault::point("snap.emptied");
    }
    if dir.exists() {
        std::fs::remove_dir_all(&dir).map_err(Error::io("remove", &dir))?;
    }
    match op.project.repo.ref_tip(&name)? {
        Some(tip) => op.delete_ref(&name, tip),
        None => Ok(()),
    }
}

/// Judges a step that a dead process left open: afterwards it has happened, or it has not.
pub(super) fn settle(op: &Operation<'_>, step: &Step, scratch: &Path) -> Result<bool, Error> {
    let project = op.project;
    if !scratch.exists() {
        // Its folder is made before anything else.
        return Ok(false);
    }
    if absent::is_gone(op, step)? {
        return absent::settle(op, step, scratch);
    }
    let settled = match step {
        Step::Worked { .. } => return Ok(true),
        Step::Ref { name, old, new } => {
            git::settle_ref(&project.repo, name, *new, scratch)?;
            return Ok(new != old && project.repo.ref_tip(name)? == *new);
        }
        Step::Anchor { name, new } => {
            git::settle_ref(&project.repo, name, Some(*new), scratch)?;
            return Ok(project.repo.ref_tip(name)? == Some(*new));
        }
        Step::Snap { id, .. } => {
            git::settle_own_ref(&project.repo, &SnapRecord::ref_name(id), scratch)?;
            return snaps::settle(project, id);
        }
        Step::File { path, new, .. } => return settle_record(op, path, new.as_deref()),
        Step::Move { from, to } => {
            return Ok(from.symlink_metadata().is_err() && to.symlink_metadata().is_ok());
        }
        Step::Reuse { entry, dir } => return pool::settle_reuse(entry, dir),
        Step::Regrow { entry, .. } => return pool::settle_regrow(entry),
        Step::Worktree { dir, lane, start } | Step::Resolve { dir, lane, start } => {
            half_made::settle(project, dir, lane, *start, scratch)?;
            return Ok(false);
        }
        Step::Tree { dir, from, to, mv, .. } => {
            let checkout = op.checkout(dir)?;
            let settle = |tree: &git::Tree<'_>| Ok(git::settle_transition(tree, *from, *to, mv)?);
            let settled = checkout.with_tree(scratch, settle)?;
            arrange_folders(&checkout, step, settled.happened);
            settled
        }
        Step::Clear { dir, snap } | Step::Restore { dir, snap, .. } => {
            let snapshot = op.snapshot_of(snap)?;
            let aside = snaps::aside(project, snap)?;
            let raw = project.kept_index(dir, snap);
            let settled = op.checkout(dir)?.with_tree(scratch, |tree| match step {
                Step::Restore { head, .. } => Ok(git::settle_restore(tree, &snapshot, *head, &aside, &raw)?),
                _ => Ok(git::settle_clear(tree, &snapshot, &aside)?),
            })?;
            if matches!(step, Step::Restore { .. }) {
                snaps::prune(project, snap);
            }
            settled
        }
    };
    for saved in settled.saved {
        keep(project, saved, "written after the crash")?;
    }
    Ok(settled.happened)
}

/// Keeps a commit with files that others go over, and says so.
fn keep(project: &Project, saved: Oid, which: &str) -> Result<(), git::Error> {
    let name = format!("refs/proq/saved/crash-{}", new_id());
    project.repo.create_ref(&name, saved, "git-proq: saved")?;
    project
        .listener
        .warn(format!("files that were {which} are kept: git checkout {name} -- .  brings them here"));
    Ok(())
}

/// Judges a record that was being written, and removes what was written beside it.
fn settle_record(op: &Operation<'_>, path: &Path, new: Option<&str>) -> Result<bool, Error> {
    let project = op.project;
    let _lock = op.lock_store()?;
    let file = project.store.layout().root().join(path);
    remove_drafts(&file).map_err(Error::io("remove", &file))?;
    let text = read_record(&file)?;
    if text.is_none() {
        drop_empty_folder(project, &file);
    }
    Ok(text.as_deref() == new)
}

/// The text of a record; none when it does not exist.
pub(super) fn read_record(path: &Path) -> Result<Option<String>, Error> {
    match crate::regular_file::record_text(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io("read", path)(e)),
    }
}

/// Writes a record from what it was to what it becomes. Where somebody has changed other fields of it meanwhile, those
/// stay. The store's lock is held.
///
/// # Errors
/// [`Error::Changed`] when the same field says something else now.
pub(super) fn write_record(project: &Project, step: &Step) -> Result<(), Error> {
    let Step::File { path, old, new } = step else { return Ok(()) };
    let file = project.store.layout().root().join(path);
    let now = read_record(&file)?;
    if now == *new {
        return Ok(());
    }
    let text = if now == *old {
        new.clone()
    } else {
        let merged = merge_tables(now.as_deref(), old.as_deref(), new.as_deref());
        Some(merged.ok_or_else(|| Error::Changed { path: file.clone() })?)
    };
    if let Some(text) = text {
        write_atomically(&file, text.as_bytes())?;
        fault::point("record.written");
        return Ok(());
    }
    std::fs::remove_file(&file).map_err(Error::io("remove", &file))?;
    drop_empty_folder(project, &file);
    Ok(())
}

/// A folder that was made for a record alone goes with it.
fn drop_empty_folder(project: &Project, file: &Path) {
    let layout = project.store.layout();
    if let Some(dir) = file.parent().filter(|dir| *dir != layout.root()) {
        // Not when anything else is in it. What fails for once is worth a second try: nobody comes back to it.
        drop(std::fs::remove_dir(dir).or_else(|_| std::fs::remove_dir(dir)));
    }
}

/// Makes the change from `old` to `new` in another version of the same table; none when both changed one field.
fn merge_tables(now: Option<&str>, old: Option<&str>, new: Option<&str>) -> Option<String> {
    let table = |text: Option<&str>| text?.parse::<toml::Table>().ok();
    let (mut now, old, new) = (table(now)?, table(old)?, table(new)?);
    let names: Vec<&String> = old.keys().chain(new.keys()).collect();
    for name in names {
        if old.get(name) == new.get(name) || now.get(name) == new.get(name) {
            continue;
        }
        if now.get(name) != old.get(name) {
            return None;
        }
        match new.get(name) {
            Some(value) => drop(now.insert(name.clone(), value.clone())),
            None => drop(now.remove(name)),
        }
    }
    toml::to_string(&now).ok()
}

/// Renames where nothing stands in the way.
fn rename(from: &Path, to: &Path) -> Result<(), Error> {
    if from.symlink_metadata().is_err() {
        return Err(Error::Expired { path: from.to_owned() });
    }
    if to.symlink_metadata().is_ok() {
        return Err(Error::PathTaken { path: to.to_owned() });
    }
    if let Some(parent) = to.parent() {
        std::fs::create_dir_all(parent).map_err(Error::io("create", parent))?;
    }
    std::fs::rename(from, to).map_err(Error::io("move", from))?;
    // A rename that a power cut undoes would leave both ends to guess.
    for dir in [from.parent(), to.parent()].into_iter().flatten() {
        crate::store::sync_dir(dir)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_made_in_a_record_that_has_moved_on_elsewhere() {
        let (old, new) = (Some("a = 1\nb = 1\n"), Some("a = 2\nb = 1\n"));
        assert_eq!(merge_tables(Some("a = 1\nb = 7\n"), old, new).unwrap(), "a = 2\nb = 7\n");
        assert_eq!(merge_tables(Some("a = 3\nb = 1\n"), old, new), None);
        assert_eq!(merge_tables(None, old, new), None);
        assert_eq!(merge_tables(Some("a = 1\nc = 1\n"), Some("a = 1\n"), Some("")).unwrap(), "c = 1\n");
    }
}
