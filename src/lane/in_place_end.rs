//! Owns the end of a run in the main checkout: committing what it changed there and nothing else, and saying what became of the rest.
//!
//! All is done as a person would do it, with the index that is there and plain git, so that a kill at any moment leaves what a
//! person's would: files that are staged, or a commit.

use std::collections::BTreeSet;

use super::in_place::branch_of;
use super::in_place_before::Yours;
use super::leftovers::unfit;
use super::operation::operate_as;
use super::{Error, Project};
use crate::fault;
use crate::git::{self, Dirt, Entry, Kind, Oid, RepoPath, Staged};
use crate::store::records::{AnyLane, BeforeRecord, RunRecord, Step};
use crate::store::{Header, Record};

/// What a run in the main checkout came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use]
pub(crate) struct InPlace {
    /// Whether there is anything to show.
    pub(crate) changed: bool,
    /// Where the checkout is instead of the branch that the run was to commit to.
    pub(crate) astray: Option<String>,
    /// What the user has to know, a phrase each.
    pub(crate) remarks: Vec<String>,
}

/// Whether the main checkout is not as it was before a run, whoever has changed it.
///
/// # Errors
/// When that cannot be looked at.
pub(crate) fn has_changed_in_place(
    project: &Project,
    lane: &AnyLane,
    run: &RunRecord,
) -> Result<bool, Error> {
    let before = BeforeRecord::load(&project.store.layout().run_before(&lane.name, run.attempt))?;
    let end = End::new(project, lane, run, &before);
    let moved = project.repo.head_of(&lane.path)? != Some(run.tip_before);
    let dirt = end.status()?;
    Ok(moved || !end.own(&dirt).is_empty() || !end.yours.touched(&dirt).is_empty())
}

/// Commits what a run changed in the main checkout, with this message, and writes down how its branch moved, for an undo. What
/// had uncommitted changes before, or was ignored, stays as it is. Without a message nothing is committed.
///
/// # Errors
/// When it cannot be looked at. What the run changed is there then, uncommitted.
pub(crate) fn end_in_place(
    project: &Project,
    lane: &AnyLane,
    run: &RunRecord,
    message: Option<&str>,
) -> Result<InPlace, Error> {
    let before = BeforeRecord::load(&project.store.layout().run_before(&lane.name, run.attempt))?;
    let mut end = End::new(project, lane, run, &before);
    let committed = end.look_and_commit(message);
    // Whatever else could not be done, how the branch went is written down.
    let noted = end.note_way();
    committed?;
    noted?;
    Ok(end.out)
}

struct End<'a> {
    project: &'a Project,
    lane: &'a AnyLane,
    run: &'a RunRecord,
    before: &'a BeforeRecord,
    yours: Yours<'a>,
    out: InPlace,
}

impl<'a> End<'a> {
    fn new(project: &'a Project, lane: &'a AnyLane, run: &'a RunRecord, before: &'a BeforeRecord) -> End<'a> {
        let yours = Yours::new(&lane.path, before);
        End { project, lane, run, before, yours, out: InPlace::default() }
    }

    fn remark(&mut self, text: String) {
        self.out.remarks.push(text);
    }

    fn status(&self) -> Result<Dirt, Error> {
        Ok(git::status(&self.project.repo, &self.lane.path, true)?)
    }

    /// What was changed since the run began, by whomever, and is not committed.
    fn own(&self, dirt: &Dirt) -> Vec<RepoPath> {
        dirt.paths().into_iter().filter(|path| !self.yours.holds(path)).collect()
    }

    /// Files of the user's that are staged, which they were not before.
    fn staged_of_yours(&self, dirt: &Dirt) -> Vec<RepoPath> {
        dirt.staged().map(|entry| &entry.path).filter(|path| self.yours.holds(path)).cloned().collect()
    }

    fn look_and_commit(&mut self, message: Option<&str>) -> Result<(), Error> {
        let (repo, dir, base) = (&self.project.repo, &self.lane.path, &self.lane.base);
        let (branch, head) = (branch_of(self.project, dir)?, repo.head_of(dir)?);
        let dirt = self.status()?;
        let (mut own, touched) = (self.own(&dirt), self.yours.touched(&dirt));
        self.out.changed = !own.is_empty() || !touched.is_empty() || head != Some(self.run.tip_before);
        self.tell_of_yours(&touched);
        let nested: Vec<RepoPath> = dirt
            .entries
            .iter()
            .filter(|e| e.nested && own.contains(&e.path))
            .map(|e| e.path.clone())
            .collect();
        own.retain(|path| !nested.contains(path));
        if !nested.is_empty() {
            let names = git::names(&nested);
            self.remark(format!("not committed, since they are repositories of their own: {names}"));
        }
        let Some(head) = head.filter(|_| branch.as_ref() == Some(base)) else {
            self.out.astray = Some(branch.unwrap_or_else(|| "no branch".to_owned()));
            return Ok(());
        };
        let staged = self.staged_of_yours(&dirt);
        if !staged.is_empty() {
            self.out.changed = true;
            self.remark(format!(
                "files that had changes of yours before are staged now, and nothing is committed for it: {}; to unstage all, as it is: \
                 git reset",
                git::names(&staged)
            ));
        } else if !own.is_empty() {
            match (self.why_not(&dirt, &own)?, message) {
                (Some(why), _) => self.remark(why),
                (None, None) => self.remark(format!("it left uncommitted: {}", git::names(&own))),
                (None, Some(message)) => self.commit(head, &own, message)?,
            }
        }
        Ok(())
    }

    /// Why nothing can be committed.
    fn why_not(&self, dirt: &Dirt, own: &[RepoPath]) -> Result<Option<String>, Error> {
        if let Some(open) = git::open_operation(&self.project.repo.git_dir_of(&self.lane.path)?) {
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
    fn commit(&mut self, head: Oid, own: &[RepoPath], message: &str) -> Result<(), Error> {
        let (repo, dir) = (&self.project.repo, &self.lane.path);
        let before = Staged::read(repo, dir, own)?;
        fault::point("in-place.looked");
        let Err(e) = self.stage_and_commit(head, own, message) else { return self.look_at_commit(head) };
        if repo.head_of(dir)? != Some(head) {
            // That commit may hold what is staged here, and the old state of the index would take it back.
            let was = head.short();
            self.remark(format!(
                "git failed, and HEAD has moved meanwhile, so the index is as it was left: git log {was}.. ({e})"
            ));
            return Ok(());
        }
        let put_back = before.put_back(repo, dir).err();
        self.remark(format!("what it changed is not committed: {}; git refused: {e}", git::names(own)));
        self.out.remarks.extend(put_back.map(|e| format!("what was staged for it is staged still: {e}")));
        Ok(())
    }

    fn stage_and_commit(&mut self, head: Oid, own: &[RepoPath], message: &str) -> Result<(), Error> {
        let (repo, dir) = (&self.project.repo, &self.lane.path);
        git::stage(repo, dir, &self.unstaged(own)?)?;
        fault::point("in-place.staged");
        // What was a file a moment ago may be a folder with files of the user's by now.
        let dirt = git::status(repo, dir, false)?;
        let theirs = self.staged_of_yours(&dirt);
        if !theirs.is_empty() {
            let why = format!("files of yours would go with it: {}", git::names(&theirs));
            return Err(Error::InPlace { why, help: String::new() });
        }
        let inside: Vec<RepoPath> = dirt
            .entries
            .iter()
            .filter(|e| e.is_inside_submodule() && own.contains(&e.path))
            .map(|e| e.path.clone())
            .collect();
        if !inside.is_empty() {
            self.remark(format!(
                "what it changed inside of submodules is not committed: {}",
                git::names(&inside)
            ));
        }
        // A time, or line endings, may be all that differed.
        if !repo.index_is_at(dir, head)? {
            git::commit_staged(repo, dir, message)?;
            fault::point("in-place.committed");
        }
        Ok(())
    }

    /// Those of these that are not staged as they are. What was taken out of git stays out, with its file in its place.
    fn unstaged(&self, own: &[RepoPath]) -> Result<Vec<RepoPath>, Error> {
        let dirt = self.status()?;
        let is_done = |e: &&Entry| matches!(e.kind, Kind::Tracked { staged: true, unstaged: false, .. });
        let done: BTreeSet<&RepoPath> = dirt.entries.iter().filter(is_done).map(|e| &e.path).collect();
        Ok(own.iter().filter(|path| !done.contains(path)).cloned().collect())
    }

    /// Says so where the commit is not on top of what was there: plain git waits for nobody.
    fn look_at_commit(&mut self, head: Oid) -> Result<(), Error> {
        let repo = &self.project.repo;
        let tip = repo.head_of(&self.lane.path)?.filter(|tip| *tip != head);
        if let Some(tip) = tip
            && repo.require_commit(&format!("{tip}^")).ok() != Some(head)
        {
            self.remark(format!("somebody else committed at that moment too: git log {}..", head.short()));
        }
        Ok(())
    }

    /// The command that shows what files were like before.
    fn as_they_were(&self, paths: &[RepoPath]) -> String {
        // What was ignored is in no snapshot.
        let held = self.before.files.iter().any(|file| paths.contains(&file.path));
        let snap = self.before.snap.as_ref().filter(|_| held);
        snap.map(|id| format!("; as they were: git proq snap show {id}")).unwrap_or_default()
    }

    fn tell_of_yours(&mut self, touched: &[RepoPath]) {
        if !touched.is_empty() {
            let (names, kept) = (git::names(touched), self.as_they_were(touched));
            self.remark(format!(
                "files that had changes of yours, or were ignored, changed while it ran, and are not committed for it: {names}{kept}"
            ));
        }
    }

    /// Writes down how the branch went, unless changes of the user's are in that.
    fn note_way(&mut self) -> Result<(), Error> {
        let (repo, branch, from) = (&self.project.repo, &self.lane.base, self.run.tip_before);
        let Some(to) = repo.branch_tip(branch)? else {
            self.out.changed = true;
            let was = from.short();
            self.remark(format!("branch {branch} is gone; it was at {was}: git branch {branch} {was}"));
            return Ok(());
        };
        let keeper = &self.before.keeper;
        match repo.ref_tip(keeper)? {
            Some(kept) if repo.is_ancestor(kept, to)? => {
                repo.delete_ref(keeper, kept, "git-proq: its branch has it")?;
            }
            Some(_) => self.remark(format!("what {branch} was before is kept: git log {keeper}")),
            None => {}
        }
        if to == from {
            return Ok(());
        }
        self.out.changed = true;
        if self.out.astray.is_some() {
            // A branch that is checked out nowhere is moved by landings too.
            self.remark(format!(
                "{branch} went from {} to {}, and no undo knows of it",
                from.short(),
                to.short()
            ));
            return Ok(());
        }
        let changed = git::tree_changes(repo, from, to)?;
        let mut theirs: Vec<RepoPath> = changed.into_iter().map(|change| change.path).collect();
        theirs.retain(|path| self.yours.holds(path));
        if theirs.is_empty() {
            return self.file(from, to);
        }
        let (names, kept) = (git::names(&theirs), self.as_they_were(&theirs));
        self.remark(format!(
            "changes of yours were committed: {names}{kept}; no undo could tell whose is what, but this leaves all files as they \
             are: git reset {}",
            from.short()
        ));
        Ok(())
    }

    /// It has moved, so that there is nothing to be done, and no way back but an undo.
    fn file(&self, from: Oid, to: Oid) -> Result<(), Error> {
        // Nobody has typed the command line of the process that writes this.
        let mut header = Header::new("in-place");
        header.command = format!("run {} of lane {}", self.run.attempt, self.lane.name);
        operate_as(self.project, header, |op| {
            op.keep(from)?;
            let (dir, branch) = (self.lane.path.clone(), self.lane.base.clone());
            op.forward(vec![Step::Worked { dir, branch, from, to }]).map(drop)
        })?;
        fault::point("in-place.filed");
        Ok(())
    }
}
