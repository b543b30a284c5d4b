//! Owns what the model expects of a command: a new moment, a refusal, or either.

use std::collections::BTreeSet;

use super::Outcome;
use super::land::Why;
use super::model::{Lane, Model, branch, preview_branch};
use super::objects::Objects;
use super::parts::{Files, Tree};
use super::step::MAIN;
use super::undo::Log;

/// A moment in the making.
#[derive(Debug, Clone)]
pub(super) struct Fork {
    /// How it is so far.
    pub(super) model: Model,
    /// Worktrees whose files are git-proq's to decide, as long as nothing is lost.
    pub(super) blind: BTreeSet<String>,
    /// Whether a refusal would be as good.
    pub(super) may_refuse: bool,
}

/// How a command that does something ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// With 0.
    Good,
    /// With another code, because something in it needs a person.
    Complaint,
    /// With whatever code.
    Any,
}

/// What is expected.
#[derive(Debug, Clone)]
pub(super) struct Forecast {
    /// The moments afterwards of which one must be there; none when only a refusal will do.
    pub(super) then: Vec<Fork>,
    /// Whether a refusal, which changes nothing, will do.
    pub(super) refusal: bool,
    /// How the command ends when it is not refused.
    pub(super) ending: Ending,
}

impl Forecast {
    /// Nothing changes, and the command says why.
    pub(super) fn refused() -> Forecast {
        Forecast { then: Vec::new(), refusal: true, ending: Ending::Any }
    }

    /// It is done.
    pub(super) fn done(then: Fork) -> Forecast {
        let ending = if then.blind.contains(MAIN) { Ending::Any } else { Ending::Good };
        Forecast { refusal: then.may_refuse, then: vec![then], ending }
    }

    /// It is done or refused.
    pub(super) fn perhaps(then: Fork) -> Forecast {
        Forecast { refusal: true, ..Forecast::done(then) }
    }

    /// It is done, and ends with an error code all the same.
    pub(super) fn complaining(self) -> Forecast {
        let ending = if self.ending == Ending::Any { Ending::Any } else { Ending::Complaint };
        Forecast { ending, ..self }
    }
}

/// Who knows what must come of a command.
#[derive(Debug)]
pub(super) struct Oracle<'a> {
    /// The way to commits.
    pub(super) objects: &'a Objects,
}

impl Oracle<'_> {
    /// What must come of `git proq ARGS`.
    pub(super) fn foresee(&self, now: &Model, log: &Log, args: &[&str]) -> Outcome<Forecast> {
        match args {
            ["spawn", "--empty", "-n", lane] => self.spawn(now, lane),
            ["preview", "--back"] => self.back(now),
            ["preview", "--refresh"] => self.refresh(now),
            ["preview", lane] => self.preview(now, lane),
            ["merge", "--all", "--order", "oldest"] => self.merge(now, None),
            ["merge", lanes @ ..] => self.merge(now, Some(lanes)),
            ["discard", "--force", lane] => self.discard(now, lane, Why::Forced),
            ["discard", lane] => self.discard(now, lane, Why::Asked),
            ["cleanup"] => self.cleanup(now),
            ["undo"] => match log.made(now) {
                // It goes as any lane does, by what is in it now; not while it is shown.
                Some(lane) if now.open.as_ref().is_some_and(|open| open.lane == lane) => {
                    Ok(Forecast::refused())
                }
                Some(lane) => self.discard(now, lane, Why::MakingUndone),
                None => Ok(log.undo(now)),
            },
            ["op", "redo"] => {
                let redone = log.redo(now);
                Ok(Forecast { refusal: redone.refusal || self.carries_below_edits(now)?, ..redone })
            }
            _ => Ok(Forecast::done(self.fork(now))),
        }
    }

    /// A moment that is about to become another.
    #[expect(clippy::unused_self, reason = "it reads like the others")]
    pub(super) fn fork(&self, now: &Model) -> Fork {
        Fork { model: now.clone(), blind: BTreeSet::new(), may_refuse: false }
    }

    /// Whether the open preview has commits that its lane, which has uncommitted work, would get. `op redo` is refused then, though a
    /// `discard --force` that does the same is not.
    fn carries_below_edits(&self, now: &Model) -> Outcome<bool> {
        let Some(open) = &now.open else { return Ok(false) };
        let made = now.refs.get(&preview_branch(&open.lane)).is_some_and(|tip| *tip != open.tip);
        let (Some(tree), Some(tip)) = (now.trees.get(&open.lane), now.commit_of(&open.lane)) else {
            return Ok(false);
        };
        Ok(made && !tree.is_clean(&*self.objects.files(&tip)?))
    }

    fn spawn(&self, now: &Model, name: &str) -> Outcome<Forecast> {
        let head = now.main().head;
        let shown = now.open.as_ref().filter(|open| head == preview_branch(&open.lane));
        let base = shown.map_or(head.clone(), |open| open.came_from.clone());
        let Some(short) = base.strip_prefix("refs/heads/").filter(|b| !b.starts_with("proq/")) else {
            return Ok(Forecast::refused());
        };
        let taken = now.lanes.contains_key(name) || now.refs.contains_key(&branch(name));
        let Some(start) = now.tip(&base).filter(|_| !taken) else { return Ok(Forecast::refused()) };
        let mut then = self.fork(now);
        let files = Files::clone(&*self.objects.files(&start)?);
        let tree = Tree { head: branch(name), index: files.clone(), files };
        then.model.trees.insert(name.to_owned(), tree);
        then.model.refs.insert(branch(name), start.clone());
        let lane = Lane { state: "idle".to_owned(), base: short.to_owned(), start, ..Lane::default() };
        then.model.lanes.insert(name.to_owned(), lane);
        Ok(Forecast::done(then))
    }
}
