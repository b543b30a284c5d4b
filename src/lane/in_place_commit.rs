//! Owns committing what a run changed in the main checkout: as a person would do it, with the index that is there.

use std::collections::BTreeSet;

use super::Error;
use super::in_place::branch_of;
use super::in_place_end::End;
use super::leftovers::unfit;
use crate::fault;
use crate::git::{self, Dirt, Entry, Kind, Oid, RepoPath, Staged};
use crate::interrupt::Asked;

/// How often it is begun where files come and go meanwhile.
const TRIES: u32 = 3;

impl End<'_> {
    /// What was changed since the run began and git can commit: repositories of their own it cannot.
    pub(super) fn committable(&self, dirt: &Dirt) -> (Vec<RepoPath>, Vec<RepoPath>) {
        let nested: BTreeSet<&RepoPath> = dirt.entries.iter().filter(|e| e.nested).map(|e| &e.path).collect();
        self.own(dirt).into_iter().partition(|path| !nested.contains(path))
    }

    /// Why nothing can be committed.
    pub(super) fn why_not(&self, dirt: &Dirt, own: &[RepoPath]) -> Result<Option<String>, Error> {
        let git_dir = self.project.repo.git_dir_of(&self.lane.path)?;
        // Against an index that says nothing all files would seem to have been taken out of git.
        if !git_dir.join("index").exists() {
            let why = "git's index is gone there, so nothing is committed for it; make it anew: git reset";
            return Ok(Some(why.to_owned()));
        }
        if let Some(open) = git::open_operation(&git_dir) {
            return Ok(Some(format!("a {} is under way there, so nothing is committed for it", open.what)));
        }
        let unmerged = dirt.unmerged();
        if !unmerged.is_empty() {
            let names = git::names(&unmerged);
            return Ok(Some(format!("conflicts are open there, so nothing is committed for it: {names}")));
        }
        let why: Vec<String> = own.iter().filter_map(|path| unfit(self.project, self.lane, path)).collect();
        Ok((!why.is_empty()).then(|| format!("what it changed is not committed: {}", why.join("; "))))
    }

    /// Stages and commits these. Where git refuses, the index says of them what it said before.
    pub(super) fn commit(&mut self, head: Oid, own: &[RepoPath], message: &str) -> Result<(), Error> {
        let (repo, dir) = (&self.project.repo, &self.lane.path);
        let mut own = own.to_vec();
        for left in (0..TRIES).rev() {
            let before = Staged::read(repo, dir, &own)?;
            fault::point("in-place.looked");
            let staged = self.stage(&own);
            fault::point("in-place.staged");
            let since = Staged::read(repo, dir, &own)?;
            let again = staged.is_err() && left > 0;
            let Err(e) = staged.and_then(|()| self.commit_staged(head, &own, message)) else {
                return self.look_at_commit(head);
            };
            if repo.head_of(dir)? != Some(head) {
                // That commit may hold what is staged here, and the old state of the index would take it back.
                let was = head.short();
                self.remark(format!(
                    "git failed, and HEAD has moved meanwhile, so the index is as it was left: git log {was}.. ({e})"
                ));
                return Ok(());
            }
            let put_back = before.put_back(repo, dir, &since);
            let dirt = self.status()?;
            let (now, _) = self.committable(&dirt);
            // A file that was there a moment ago may be gone.
            if again && now != own && !now.is_empty() && self.why_not(&dirt, &now)?.is_none() {
                own = now;
                continue;
            }
            self.remark(format!("what it changed is not committed: {}; git refused: {e}", git::names(&own)));
            match put_back {
                Ok(others) if others.is_empty() => {}
                Ok(others) => {
                    self.remark(format!(
                        "staged by somebody else meanwhile, and left so: {}",
                        git::names(&others)
                    ));
                }
                Err(e) if since != before => {
                    self.remark(format!("what was staged for it is staged still: {e}"));
                }
                Err(_) => {}
            }
            return Ok(());
        }
        Ok(())
    }

    fn stage(&self, own: &[RepoPath]) -> Result<(), Error> {
        Ok(git::stage(&self.project.repo, &self.lane.path, &self.unstaged(own)?)?)
    }

    fn commit_staged(&mut self, head: Oid, own: &[RepoPath], message: &str) -> Result<(), Error> {
        let (repo, dir) = (&self.project.repo, &self.lane.path);
        // What was a file a moment ago may be a folder with files of the user's by now.
        let dirt = git::status(repo, dir, false)?;
        let theirs = self.staged_of_yours(&dirt);
        if !theirs.is_empty() {
            let why = format!("files of yours would go with it: {}", git::names(&theirs));
            return Err(Error::InPlace { why, help: String::new() });
        }
        let branch = branch_of(self.project, dir)?;
        if branch.as_ref() != Some(&self.lane.base) {
            let there = branch.unwrap_or_else(|| "no branch".to_owned());
            return Err(Error::InPlace {
                why: format!("the main checkout is on {there} by now"),
                help: String::new(),
            });
        }
        let is_inside = |e: &&Entry| e.is_inside_submodule() && own.contains(&e.path);
        let inside: Vec<RepoPath> = dirt.entries.iter().filter(is_inside).map(|e| e.path.clone()).collect();
        if !inside.is_empty() {
            self.remark(format!(
                "what it changed inside of submodules is not committed: {}",
                git::names(&inside)
            ));
        }
        // A time, or line endings, may be all that differed.
        if !repo.index_is_at(dir, head)? {
            let asked = Asked::listen();
            git::commit_staged(repo, dir, message, &|| asked.is())?;
            fault::point("in-place.committed");
        }
        Ok(())
    }

    /// Those of these that are not staged as they are. What was taken out of git, and is ignored since, stays out; what lies where
    /// one of its folders was goes with that.
    fn unstaged(&self, own: &[RepoPath]) -> Result<Vec<RepoPath>, Error> {
        let dirt = self.status()?;
        let is_done = |e: &&Entry| matches!(e.kind, Kind::Tracked { staged: true, unstaged: false, .. });
        let mut done: BTreeSet<&RepoPath> = dirt.entries.iter().filter(is_done).map(|e| &e.path).collect();
        for entry in dirt.untracked() {
            done.remove(&entry.path);
        }
        let all: BTreeSet<&RepoPath> = own.iter().collect();
        let is_below = |path: &RepoPath| path.parents().any(|up| all.contains(&up));
        Ok(own.iter().filter(|path| !done.contains(path) && !is_below(path)).cloned().collect())
    }

    /// Says so where the commit is not where it was meant to be: plain git waits for nobody.
    fn look_at_commit(&mut self, head: Oid) -> Result<(), Error> {
        let (repo, dir) = (&self.project.repo, &self.lane.path);
        let Some(tip) = repo.head_of(dir)?.filter(|tip| *tip != head) else { return Ok(()) };
        let branch = branch_of(self.project, dir)?;
        if branch.as_ref() != Some(&self.lane.base) {
            let there = branch.unwrap_or_else(|| "no branch".to_owned());
            self.remark(format!(
                "somebody switched to {there} at that moment, and what it changed is committed there: git show {}",
                tip.short()
            ));
        } else if repo.require_commit(&format!("{tip}^")).ok() != Some(head) {
            self.remark(format!("somebody else committed at that moment too: git log {}..", head.short()));
        }
        Ok(())
    }
}
