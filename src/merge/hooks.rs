//! Owns the repository's hooks that have a say in what lands, and in its message, run as git would run them.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::path::PathBuf;

use super::Error;
use super::request::Candidate;
use super::slot::Place;
use super::stack::Ground;
use crate::git::{NewCommit, Oid, run_hook};

/// What a hook leaves of a merge, or why it will not have it.
type Said = Result<Oid, String>;

/// The repository's `pre-merge-commit`, and what it has said of each merge: lanes may be stacked several times.
#[derive(Debug, Default)]
pub(super) struct Gate {
    folder: OnceCell<Option<PathBuf>>,
    place: RefCell<Option<Place>>,
    said: RefCell<HashMap<(Oid, Oid, Oid), Said>>,
}

impl Gate {
    /// Shows the repository's `pre-merge-commit` the merge of a lane, and returns the tree to commit: a hook may change what
    /// is staged. The inner error is why it will not have it. git runs it where the merge is laid out; no checkout is
    /// touched here yet, so it is a worktree that nobody else sees.
    pub(super) fn ask(
        &self,
        ground: Ground<'_>,
        ours: (Oid, Oid),
        candidate: &Candidate,
        merged: Oid,
    ) -> Result<Said, Error> {
        let repo = &ground.project.repo;
        if !ground.hooks || ground.into.is_some() {
            return Ok(Ok(merged));
        }
        if self.folder.get().is_none() {
            let found = repo.hook_before_merge()?;
            self.folder.get_or_init(|| found);
        }
        let Some(Some(folder)) = self.folder.get() else { return Ok(Ok(merged)) };
        let key = (ours.1, merged, candidate.tip);
        if let Some(said) = self.said.borrow().get(&key) {
            return Ok(said.clone());
        }
        let mut place = self.place.borrow_mut();
        let place = match &mut *place {
            Some(place) => place,
            none => none.insert(Place::for_hooks(ground.project)?),
        };
        let parents = [ours.0, candidate.tip];
        let laid = NewCommit { tree: merged, parents: &parents, message: "git-proq: before a merge" };
        place.bring_to(ground.project, laid.write_as_keeper(repo, None)?)?;
        repo.detach(&place.dir, ours.0)?;
        let done =
            repo.run_hook_before_merge(&place.dir, folder, (candidate.tip, &candidate.lane.place.branch));
        let is_there = place.is_there(ground.project);
        if is_there {
            place.let_go(ground.project, ours.0)?;
        }
        let said = match done {
            _ if !is_there => {
                Err("the repository's pre-merge-commit hook left no worktree where it ran".to_owned())
            }
            Ok(tree) => Ok(tree),
            Err(e) if e.is_of_git() => Err(format!("the repository's pre-merge-commit hook refused it: {e}")),
            Err(e) => return Err(e.into()),
        };
        self.said.borrow_mut().insert(key, said.clone());
        Ok(said)
    }
}

/// The hook that can be left out.
const COMMIT_MSG: &str = "commit-msg";

/// How to land without a hook that git's own flag leaves out.
pub(super) const WITHOUT_IT: &str = "to land it without that hook: --no-verify";

/// Why a hook keeps a lane from landing.
pub(super) struct Refusal {
    /// What it did.
    pub(super) why: String,
    /// How to land without it.
    pub(super) help: String,
}

impl Refusal {
    fn of(hook: &str, did: &str) -> Refusal {
        let help = match hook {
            COMMIT_MSG => WITHOUT_IT,
            // Nothing skips this one alone.
            _ => "to land it without any hook: git -c core.hooksPath=/dev/null proq merge …",
        };
        Refusal { why: format!("the repository's {hook} hook {did}"), help: help.to_owned() }
    }
}

/// What the repository's `prepare-commit-msg` and `commit-msg` make of a message, or why one of them will not have it.
/// `kind` is what git tells them: `merge` or `squash`.
pub(super) fn message(ground: Ground<'_>, text: &str, kind: &str) -> Result<Result<String, Refusal>, Error> {
    if ground.into.is_some() {
        return Ok(Ok(text.to_owned()));
    }
    let repo = &ground.project.repo;
    let file = ground.scratch.join("MERGE_MSG");
    let path = file.to_string_lossy().into_owned();
    let checks: &[(&str, &[&str])] = &[("prepare-commit-msg", &[&path, kind]), (COMMIT_MSG, &[&path])];
    let asked = if ground.hooks { checks } else { &checks[..1] };
    if !asked.iter().any(|(name, _)| repo.may_have_hook(repo.home(), name)) {
        return Ok(Ok(text.to_owned()));
    }
    let io = |what, e| crate::git::Error::io(what, &file)(e);
    std::fs::write(&file, text).map_err(|e| io("write", e))?;
    let mut text = text.to_owned();
    for (name, args) in asked {
        if let Err(e) = run_hook(repo, repo.home(), name, args) {
            return Ok(Err(Refusal::of(name, &format!("refused it: {e}"))));
        }
        text = crate::regular_file::record_text(&file).map_err(|e| io("read", e))?;
        if text.trim().is_empty() {
            return Ok(Err(Refusal::of(name, "left its message empty")));
        }
    }
    Ok(Ok(text))
}
