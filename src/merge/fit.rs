//! Owns fitting one lane on top of a stack: as a merge, commit by commit, or as one commit.

use super::request::{Candidate, WouldCommit};
use super::stack::Ground;
use super::{Error, git_options, hooks, message};
use crate::explain::Explain;
use crate::git::{self, Merged, NewCommit, Oid, Picked, ThrowAway, Uncommitted};
use crate::store::records::Strategy;

/// How a lane fits.
#[derive(Debug)]
pub(super) enum Fit {
    /// It lands with this commit, whose tree is the second.
    Lands(Oid, Oid),
    /// All of it is there already.
    Nothing,
    /// It conflicts.
    Clash(Merged),
    /// It is not to land like this: why, and what helps.
    Refused(String, Vec<String>),
    /// A hook of the repository refuses it, which may change its mind: why, and what helps.
    Vetoed(String, Vec<String>),
}

/// Fits a lane on top of a commit and its tree.
pub(super) fn fit(ground: Ground<'_>, ours: (Oid, Oid), candidate: &Candidate) -> Result<Fit, Error> {
    let repo = &ground.project.repo;
    if ground.verify_signatures
        && let Some(why) = repo.lacks_signature(candidate.tip)?
    {
        return Ok(Fit::Refused(why, git_options::without_signature(&candidate.lane)));
    }
    if let (Some(work), Some(aside)) = (&candidate.uncommitted, ground.into) {
        return fit_uncommitted(ground, ours, candidate, work, aside);
    }
    let apart = begins_apart(ground, ours.0, candidate)?;
    let merged = match apart {
        None => git::merge_commits(repo, ours.0, candidate.tip, ground.scratch, ground.into),
        Some(from) => {
            let trees = (repo.tree_of(from)?, ours.1, repo.tree_of(candidate.tip)?);
            git::merge_trees(repo, trees, ground.scratch, ground.into)
        }
    };
    let merged = match merged {
        Ok(merged) => merged,
        // A merge that git refuses is this lane's affair; the others go on.
        Err(e) if e.is_of_git() => {
            return Ok(Fit::Refused(e.to_string(), e.hints().iter().map(ToString::to_string).collect()));
        }
        Err(e) => return Err(e.into()),
    };
    if !merged.clean {
        return Ok(Fit::Clash(merged));
    }
    if merged.tree == ours.1 {
        return Ok(Fit::Nothing);
    }
    let since = apart.unwrap_or(ours.0);
    let by_rebase = || match rebase(ground, ours, candidate, apart)? {
        Fit::Refused(..) => squash(ground, ours, candidate, (since, merged.tree)),
        fits => Ok(fits),
    };
    match ground.strategy {
        // A merge commit would say that what lies below has landed too.
        Strategy::Merge if apart.is_some() => by_rebase(),
        // A resolved conflict is a merge, which no rebase can take over, and nobody is there to choose another way.
        Strategy::Rebase if candidate.part.is_some() => by_rebase(),
        Strategy::Merge => {
            let tree = match ground.gate.ask(ground, ours, candidate, merged.tree)? {
                Ok(tree) => tree,
                Err(why) => return Ok(Fit::Vetoed(why, vec![hooks::WITHOUT_IT.into()])),
            };
            let text = message::of_merge(&candidate.lane);
            commit(ground, tree, &[ours.0, candidate.tip], &text, "merge")
        }
        Strategy::Squash => squash(ground, ours, candidate, (since, merged.tree)),
        Strategy::Rebase => rebase(ground, ours, candidate, None),
    }
}

/// Fits a lane with what a landing would commit there first, without committing it.
fn fit_uncommitted(
    ground: Ground<'_>,
    ours: (Oid, Oid),
    candidate: &Candidate,
    work: &WouldCommit,
    aside: &ThrowAway,
) -> Result<Fit, Error> {
    let (repo, dir) = (&ground.project.repo, &candidate.lane.path);
    let worktree = Uncommitted { dir, git_dir: repo.git_dir_of(dir)?, dirt: &work.dirt };
    let theirs = git::trees_of(repo, aside, ground.scratch, &[worktree]).remove(0)?;
    let trees = (repo.tree_of(work.ancestor)?, ours.1, theirs);
    let merged = git::merge_trees(repo, trees, ground.scratch, Some(aside))?;
    if !merged.clean {
        return Ok(Fit::Clash(merged));
    }
    if merged.tree == ours.1 {
        return Ok(Fit::Nothing);
    }
    let parents = [ours.0, candidate.tip];
    let parents = if ground.strategy == Strategy::Merge { &parents[..] } else { &parents[..1] };
    commit(ground, merged.tree, parents, &message::of_merge(&candidate.lane), "merge")
}

/// Where a part of a lane begins, if what lies below it there is not below `ours`: then its own commits land and no others.
fn begins_apart(ground: Ground<'_>, ours: Oid, candidate: &Candidate) -> Result<Option<Oid>, Error> {
    let Some(part) = &candidate.part else { return Ok(None) };
    let is_below = ground.project.repo.is_ancestor_with(part.from, ours, ground.into)?;
    Ok((!is_below).then_some(part.from))
}

/// One commit for all of them, with this tree.
fn squash(
    ground: Ground<'_>,
    ours: (Oid, Oid),
    candidate: &Candidate,
    (since, tree): (Oid, Oid),
) -> Result<Fit, Error> {
    let repo = &ground.project.repo;
    let commits = repo.commits_since(since, candidate.tip, ground.into)?;
    let text = message::of_squash(repo, &candidate.lane, &commits)?;
    commit(ground, tree, &[ours.0], &text, "squash")
}

/// One new commit, in whose message the repository's hooks have a say.
fn commit(ground: Ground<'_>, tree: Oid, parents: &[Oid], text: &str, kind: &str) -> Result<Fit, Error> {
    let text = match hooks::message(ground, text, kind)? {
        Ok(text) => text,
        Err(refusal) => return Ok(Fit::Vetoed(refusal.why, vec![refusal.help])),
    };
    let new = NewCommit { tree, parents, message: &text };
    Ok(Fit::Lands(new.write(&ground.project.repo, ground.into)?, tree))
}

/// Puts the lane's own commits on top, those from `apart` on, one after the other. Those of which nothing is left are dropped.
fn rebase(
    ground: Ground<'_>,
    ours: (Oid, Oid),
    candidate: &Candidate,
    apart: Option<Oid>,
) -> Result<Fit, Error> {
    let repo = &ground.project.repo;
    let own = repo.commits_since(apart.unwrap_or(ours.0), candidate.tip, ground.into)?;
    // With a merge in it the lane's line is not the base's, whatever lies below its tip.
    let is_one_line = own.iter().all(|one| one.parents.len() == 1);
    if apart.is_none() && is_one_line && repo.is_ancestor_with(ours.0, candidate.tip, ground.into)? {
        return Ok(Fit::Lands(candidate.tip, repo.tree_of(candidate.tip)?));
    }
    let other_way = || {
        let lane = &candidate.lane.name;
        vec![
            format!("land all of it as one commit: git proq merge --strategy squash {lane}"),
            format!("or with a merge commit: git proq merge --strategy merge {lane}"),
        ]
    };
    let mut steps = Vec::new();
    for one in own {
        let id = one.id.short();
        let why = match one.parents[..] {
            [parent] => {
                steps.push((parent, one.id));
                continue;
            }
            [] => format!("its commit {id} begins a history of its own, which a rebase would lose"),
            _ => format!("it has a merge commit ({id}), which a rebase would lose"),
        };
        return Ok(Fit::Refused(why, other_way()));
    }
    let mut at = ours;
    for (parent, one) in steps {
        crate::interrupt::check()?;
        match git::pick(repo, (parent, one), at, ground.scratch, ground.into)? {
            Picked::Commit(commit, tree) => at = (commit, tree),
            Picked::Empty => {}
            Picked::Conflict(paths) => {
                let why = format!(
                    "its commit {} conflicts in {} when it is put on top of {}, though all of it together does not",
                    called(ground, one)?,
                    git::names(&paths),
                    ground.onto
                );
                return Ok(Fit::Refused(why, other_way()));
            }
        }
    }
    Ok(if at == ours { Fit::Nothing } else { Fit::Lands(at.0, at.1) })
}

fn called(ground: Ground<'_>, commit: Oid) -> Result<String, Error> {
    Ok(format!("{} ({})", commit.short(), ground.project.repo.subject_of(commit)?))
}
