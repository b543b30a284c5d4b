//! Owns finding out what of an automatic snapshot is in its worktree no more, and telling of it.

use std::collections::BTreeSet;
use std::path::Path;

use super::auto_snapshot::Place;
use super::{Error, Project, snaps};
use crate::event::{Event, Name};
use crate::git::{self, Change, Dirt, Oid, RepoPath, names, status, tree_changes};
use crate::store::records::SnapRecord;

impl Place<'_> {
    /// Writes an event if anything that the snapshot holds is gone. `git_dir` is none where the whole worktree is.
    pub(super) fn report_loss(
        &self,
        project: &Project,
        id: &str,
        git_dir: Option<&Path>,
    ) -> Result<(), Error> {
        let Some(record) = project.find_any_snap(id)? else { return Ok(()) };
        let lost = self.lost(project, &record, git_dir.is_some())?;
        if lost.is_empty() {
            return Ok(());
        }
        snaps::name(project, id)?;
        let gone = match git_dir {
            Some(_) => format!("uncommitted changes in {} are gone: {}", self.in_words(), names(&lost)),
            None => format!(
                "the folder of {} is gone with uncommitted changes: {}",
                self.in_words(),
                names(&lost)
            ),
        };
        let message = format!("{gone}; bring them back: git proq snap restore {id}");
        let mut event = Event::now(Name::ChangesLost, message);
        event.lane = self.lane.map(|lane| lane.name.clone());
        event.paths = lost;
        project.tell_event(event);
        Ok(())
    }

    /// The files of a snapshot whose content is in the worktree no more: not there, or as HEAD has them, which has something else. What
    /// was written anew since, or came by a commit, counts as edited.
    fn lost(&self, project: &Project, record: &SnapRecord, is_there: bool) -> Result<Vec<RepoPath>, Error> {
        let (repo, snapshot) = (&project.repo, &record.snapshot);
        let (head, dirt) = match is_there {
            true => (repo.head_of(self.dir)?, status(repo, self.dir, true)?),
            // What has been committed since is on its branch.
            false => {
                (self.lane.map_or(Ok(None), |lane| repo.branch_tip(&lane.place.branch))?, Dirt::default())
            }
        };
        let head = head.unwrap_or(snapshot.base);
        let mut edited =
            if is_there { self.committed(project, snapshot.base, head)? } else { BTreeSet::new() };
        let staged: BTreeSet<RepoPath> = dirt.staged().map(|entry| entry.path.clone()).collect();
        let came = |from: Oid, to: Oid| -> Result<Vec<Change>, Error> {
            Ok(tree_changes(repo, from, to)?.into_iter().filter(|change| change.new.is_some()).collect())
        };
        let paths = |from: Oid, to: Oid| -> Result<BTreeSet<RepoPath>, Error> {
            Ok(came(from, to)?.into_iter().map(|change| change.path).collect())
        };
        let mut lost: BTreeSet<RepoPath> = BTreeSet::new();
        // Only the index had what was staged of a file that had something else in it.
        let (beside, since) =
            (paths(snapshot.work_tree, snapshot.index_tree)?, paths(head, snapshot.index_tree)?);
        for change in came(snapshot.base, snapshot.index_tree)? {
            let is_reset = beside.contains(&change.path) && since.contains(&change.path);
            let is_edited = staged.contains(&change.path) || edited.contains(&change.path);
            if is_reset && !is_edited && !self.has(project, &change) {
                lost.insert(change.path);
            }
        }
        edited.extend(dirt.paths());
        let since = paths(head, snapshot.work_tree)?;
        for change in came(snapshot.base, snapshot.work_tree)? {
            let is_reverted = !edited.contains(&change.path) && since.contains(&change.path);
            if is_reverted || is_there && self.lacks(&change.path) {
                lost.insert(change.path);
            }
        }
        if let Some(tree) = snapshot.untracked_tree {
            let is_replaced = |change: &Change| change.old.is_some() && !edited.contains(&change.path);
            let replaced = came(head, tree)?.into_iter().filter(is_replaced).map(|change| change.path);
            lost.extend(replaced);
            let files = git::files_of(repo, tree)?;
            let since = paths(head, tree)?;
            let is_lost = |path: &RepoPath| self.lacks(path) && (is_there || since.contains(path));
            lost.extend(files.into_iter().filter(is_lost));
        }
        let ignored = record.automatic.iter().flat_map(|automatic| automatic.ignored.iter());
        lost.extend(ignored.filter(|path| self.lacks(path)).cloned());
        Ok(lost.into_iter().collect())
    }

    /// Whether there is no file at a path. A folder with a `.git` is a submodule.
    fn lacks(&self, path: &RepoPath) -> bool {
        let file = path.under(self.dir);
        file.symlink_metadata().is_err() || (is_folder(&file) && !file.join(".git").exists())
    }

    /// Whether a file has what a change brings.
    fn has(&self, project: &Project, change: &Change) -> bool {
        let bytes = std::fs::read(change.path.under(self.dir)).ok();
        let id = bytes.and_then(|bytes| project.repo.blob_id(&bytes));
        id.is_some() && id == change.new.as_ref().map(|side| side.oid)
    }

    /// The files that commits changed which were made in the worktree since it was at `base`.
    fn committed(&self, project: &Project, base: Oid, head: Oid) -> Result<BTreeSet<RepoPath>, Error> {
        if head == base {
            return Ok(BTreeSet::new());
        }
        let moves = project.repo.moves(self.dir, "HEAD")?;
        let since = moves.iter().position(|step| step.to == base).unwrap_or(0);
        if !moves[..since].iter().any(git::Move::made) {
            return Ok(BTreeSet::new());
        }
        Ok(tree_changes(&project.repo, base, head)?.into_iter().map(|change| change.path).collect())
    }
}

fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.is_dir())
}
