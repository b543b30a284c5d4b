//! Owns the end of a run in the main checkout: committing what it changed there and nothing else, and saying what became of the rest.
//!
//! All is done as a person would do it, with the index that is there and plain git, so that a kill at any moment leaves what a
//! person's would: files that are staged, or a commit.

use super::in_place::branch_of;
use super::in_place_before::Yours;
use super::operation::operate_as;
use super::{Error, Project};
use crate::fault;
use crate::git::{self, Dirt, Oid, RepoPath};
use crate::store::records::{AnyLane, BeforeRecord, FileBefore, RunRecord, Step};
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

pub(super) struct End<'a> {
    pub(super) project: &'a Project,
    pub(super) lane: &'a AnyLane,
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

    pub(super) fn remark(&mut self, text: String) {
        self.out.remarks.push(text);
    }

    pub(super) fn status(&self) -> Result<Dirt, Error> {
        Ok(git::status(&self.project.repo, &self.lane.path, true)?)
    }

    /// What was changed since the run began, by whomever, and is not committed.
    pub(super) fn own(&self, dirt: &Dirt) -> Vec<RepoPath> {
        dirt.paths().into_iter().filter(|path| !self.yours.holds(path)).collect()
    }

    /// Files of the user's that are staged, which they were not before.
    pub(super) fn staged_of_yours(&self, dirt: &Dirt) -> Vec<RepoPath> {
        dirt.staged().map(|entry| &entry.path).filter(|path| self.yours.holds(path)).cloned().collect()
    }

    fn look_and_commit(&mut self, message: Option<&str>) -> Result<(), Error> {
        let (repo, dir, base) = (&self.project.repo, &self.lane.path, &self.lane.base);
        let (branch, head) = (branch_of(self.project, dir)?, repo.head_of(dir)?);
        let dirt = self.status()?;
        let touched = self.yours.touched(&dirt);
        let (own, nested) = self.committable(&dirt);
        self.out.changed =
            !own.is_empty() || !nested.is_empty() || !touched.is_empty() || head != Some(self.run.tip_before);
        self.tell_of_yours(&touched);
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

    /// The command that shows what files were like before.
    fn as_they_were(&self, paths: &[RepoPath]) -> String {
        // What was ignored is in no snapshot.
        let touched = self.before.files.iter().filter(|file| paths.contains(&file.path));
        let (unread, held): (Vec<&FileBefore>, Vec<&FileBefore>) = touched.partition(|file| file.unread);
        let snap = self.before.snap.as_ref().filter(|_| !held.is_empty());
        let mut text = snap.map(|id| format!("; as they were: git proq snap show {id}")).unwrap_or_default();
        for FileBefore { path, .. } in unread {
            text.push_str(&format!(
                "; there is no copy of {path}, which was not readable and is in no snapshot"
            ));
        }
        text
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
            "changes of yours were committed: {names}{kept}; no undo could tell whose is what: git log --stat {}..{}",
            from.short(),
            to.short()
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
