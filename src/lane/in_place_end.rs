//! Owns the end of a run in the main checkout: committing what it changed there and nothing else, and saying what became of the rest.

use std::collections::BTreeSet;

use super::in_place::{apart, branch_of};
use super::in_place_trees::{Difference, Yours};
use super::leftovers::unfit;
use super::operation::operate_as;
use super::{Checkout, Error, Project};
use crate::fault;
use crate::git::{self, Oid, RepoPath, Side};
use crate::store::Header;
use crate::store::Record as _;
use crate::store::records::{AnyLane, BeforeRecord, RunRecord, Step};

/// What a run in the main checkout came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use]
pub(crate) struct InPlace {
    /// Whether there is anything to show.
    pub(crate) changed: bool,
    /// The branch that the checkout was brought to, which is not the one that the run was to commit to.
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
    let checkout = Checkout::lock(project, &lane.path)?;
    let found = Difference::find(project, &checkout, lane, (run.tip_before, &before))?;
    Ok(found.head != run.tip_before || !found.changed.is_empty() || apart(project, lane)? != before.apart)
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
    let mut end = End { project, lane, run, before: &before, out: InPlace::default() };
    let own = end.look_and_commit(message);
    // Whatever else could not be done, how the branch went is written down.
    let moved = end.after(own.as_ref().ok().copied().flatten());
    own?;
    moved?;
    Ok(end.out)
}

struct End<'a> {
    project: &'a Project,
    lane: &'a AnyLane,
    run: &'a RunRecord,
    before: &'a BeforeRecord,
    out: InPlace,
}

impl End<'_> {
    fn remark(&mut self, text: String) {
        self.out.remarks.push(text);
    }

    /// Returns what this moved the branch from and to, if it committed anything.
    fn look_and_commit(&mut self, message: Option<&str>) -> Result<Option<(Oid, Oid)>, Error> {
        let (project, lane) = (self.project, self.lane);
        let checkout = Checkout::lock(project, &lane.path)?;
        if let Some(now) = branch_of(project, &lane.path)?.filter(|now| *now != lane.base) {
            self.out.astray = Some(now);
        } else if project.repo.head_of(&lane.path)?.is_none() {
            self.out.astray = Some("a branch without a commit".to_owned());
            return Ok(None);
        } else if branch_of(project, &lane.path)?.is_none() {
            self.out.astray = Some("no branch".to_owned());
        }
        let base = (self.run.tip_before, self.before);
        let found = match Difference::find(project, &checkout, lane, base) {
            Err(Error::Git(git::Error::Unmerged { paths, .. })) => {
                self.out.changed = true;
                self.remark(format!(
                    "conflicts are open there: {}; nothing is committed for it",
                    git::names(&paths)
                ));
                return Ok(None);
            }
            found => found?,
        };
        let yours = Yours::of(project, &checkout, self.before)?;
        self.out.changed = found.head != self.run.tip_before || !found.changed.is_empty();
        self.tell_of_yours(&found, &yours)?;
        self.tell_of_what_is_apart()?;
        let wanted: Vec<(RepoPath, Option<Side>)> = found
            .uncommitted
            .iter()
            .filter(|(path, _)| found.changed.contains(*path) && !yours.holds(path))
            .map(|(p, s)| (p.clone(), *s))
            .collect();
        if wanted.is_empty() || self.out.astray.is_some() {
            return Ok(None);
        }
        if let Some(why) = self.why_not(&wanted, message)? {
            self.remark(why);
            return Ok(None);
        }
        self.commit(&wanted, message.unwrap_or_default(), found.head)
    }

    /// Why these are not committed.
    fn why_not(
        &self,
        wanted: &[(RepoPath, Option<Side>)],
        message: Option<&str>,
    ) -> Result<Option<String>, Error> {
        let paths: Vec<RepoPath> = wanted.iter().map(|(path, _)| path.clone()).collect();
        if message.is_none() {
            return Ok(Some(format!("it left uncommitted: {}", git::names(&paths))));
        }
        if let Some(open) = git::open_operation(&self.project.repo.git_dir_of(&self.lane.path)?) {
            return Ok(Some(format!("a {} is under way there, so nothing is committed for it", open.what)));
        }
        let mut why: Vec<String> =
            paths.iter().filter_map(|path| unfit(self.project, self.lane, path)).collect();
        // Without a line in there it is no submodule, but somebody's clone.
        let is_module = paths.contains(&RepoPath::new(b".gitmodules"));
        let links = wanted.iter().filter(|(_, side)| side.is_some_and(Side::is_gitlink) && !is_module);
        why.extend(links.map(|(path, _)| format!("{path} is a repository of its own")));
        Ok((!why.is_empty()).then(|| format!("what it changed is not committed: {}", why.join("; "))))
    }

    fn commit(
        &mut self,
        wanted: &[(RepoPath, Option<Side>)],
        message: &str,
        head: Oid,
    ) -> Result<Option<(Oid, Oid)>, Error> {
        let scratch = self.project.store.layout().scratch()?;
        let index = scratch.path().join("index");
        let done = git::commit_apart(&self.project.repo, &self.lane.path, &index, (head, wanted), message);
        if let Err(e) = done {
            self.remark(format!("what it changed is not committed, git refused: {e}"));
        }
        fault::point("in-place.committed");
        let repo = &self.project.repo;
        let Some(tip) = repo.head_of(&self.lane.path)?.filter(|tip| *tip != head) else { return Ok(None) };
        let parent = repo.require_commit(&format!("{tip}^"))?;
        if parent != head {
            // Somebody has committed in the moment in between, and this one would take that back.
            let name = format!("refs/heads/{}", self.lane.base);
            repo.swap_ref(&name, parent, tip, "git-proq: somebody else has committed meanwhile")?;
            self.remark(format!(
                "what it changed is not committed: somebody else has committed to {} meanwhile",
                self.lane.base
            ));
            return Ok(None);
        }
        Ok(Some((head, tip)))
    }

    /// What became of files that had changes before, or were ignored.
    fn tell_of_yours(&mut self, found: &Difference, yours: &Yours) -> Result<(), Error> {
        let kept = match &self.before.snap {
            Some(snap) => format!("; as they were: git proq snap show {snap}"),
            None => String::new(),
        };
        let both: Vec<RepoPath> = found.changed.iter().filter(|path| yours.holds(path)).cloned().collect();
        if !both.is_empty() {
            let names = git::names(&both);
            self.remark(format!("files that had changes of yours, or were ignored, changed while it ran, and are not committed for you: {names}{kept}"));
        }
        let staged: Vec<RepoPath> = yours
            .staged_before
            .symmetric_difference(&found.staged)
            .filter(|(path, _)| yours.holds(path) && !both.contains(path))
            .map(|(path, _)| path.clone())
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        if !staged.is_empty() {
            self.remark(format!(
                "what you had staged is not staged as it was: {}{kept}",
                git::names(&staged)
            ));
        }
        Ok(())
    }

    fn tell_of_what_is_apart(&mut self) -> Result<(), Error> {
        let mut now = apart(self.project, self.lane)?;
        now.retain(|path| !self.before.apart.contains(path));
        if !now.is_empty() {
            self.out.changed = true;
            self.remark(format!(
                "not committed, since they are repositories of their own: {}",
                git::names(&now)
            ));
        }
        Ok(())
    }

    /// Writes down how the branch went, as far as it was this run that moved it and nothing of the user's is in that.
    fn after(&mut self, own: Option<(Oid, Oid)>) -> Result<(), Error> {
        let (repo, branch, from) = (&self.project.repo, &self.lane.base, self.run.tip_before);
        let Some(to) = repo.branch_tip(branch)? else {
            self.out.changed = true;
            self.remark(format!(
                "branch {branch} is gone; it was at {}: git branch {branch} {}",
                from.short(),
                from.short()
            ));
            return Ok(());
        };
        if to == from {
            return Ok(repo.delete_ref(&self.before.keeper, from, "git-proq: it is where it was")?);
        }
        self.out.changed = true;
        let keeper = &self.before.keeper;
        if repo.is_ancestor(from, to)? {
            repo.delete_ref(keeper, from, "git-proq: its branch has it")?;
        } else {
            self.remark(format!("what {branch} was before is kept: git log {keeper}"));
        }
        let by_hand = format!("git reset {}", from.short());
        if !self.is_all_its_own(from, to, own)? {
            self.remark(format!(
                "others moved {branch} too while it ran, so that no undo takes that back as one"
            ));
            return Ok(());
        }
        let yours = Yours::of_files(self.project, self.before)?;
        let changed = git::tree_changes(repo, from, to)?.into_iter().map(|change| change.path);
        let theirs: Vec<RepoPath> = changed.filter(|path| yours.holds(path)).collect();
        if !theirs.is_empty() {
            let names = git::names(&theirs);
            self.remark(format!(
                "it committed changes of yours: {names}; no undo would know whose is what: {by_hand}"
            ));
            return Ok(());
        }
        self.note_move(from, to)
    }

    /// Whether each move of the branch was made by the run's own git, or by this.
    fn is_all_its_own(&self, from: Oid, to: Oid, own: Option<(Oid, Oid)>) -> Result<bool, Error> {
        let file = self.project.store.layout().run_moves(&self.lane.name, self.run.attempt);
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(e) => return Err(Error::io("read", &file)(e)),
        };
        let seen = text.lines().filter_map(|line| {
            let (old, new) = line.split_once(' ')?;
            Some((Oid::from_hex(old.as_bytes())?, Oid::from_hex(new.as_bytes())?))
        });
        let mut at = from;
        for (old, new) in seen.chain(own) {
            let null = at.null();
            match (old == at, new == at) {
                // Packing writes a branch once more as it is, and takes the file of its own away.
                (_, true) if old == null => {}
                (true, _) if new == null => {}
                (true, _) => at = new,
                _ => return Ok(false),
            }
        }
        Ok(at == to)
    }

    /// It has moved, so that there is nothing to be done, and no way back but an undo.
    fn note_move(&self, from: Oid, to: Oid) -> Result<(), Error> {
        // Nobody has typed the command line of the process that writes this.
        let mut header = Header::new("in-place");
        header.command = format!("run {} of lane {}", self.run.attempt, self.lane.name);
        operate_as(self.project, header, |op| {
            op.keep(from)?;
            let (dir, branch) = (self.lane.path.clone(), self.lane.base.clone());
            op.forward(vec![Step::Worked { dir, branch, from, to }]).map(drop)
        })
    }
}
