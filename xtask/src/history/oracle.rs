//! Expected outcome of a command: a new state, a refusal, or either.

use std::collections::BTreeSet;

use super::Outcome;
use super::landings::RemovalReason;
use super::model::{Lane, Model, branch, preview_branch};
use super::objects::Objects;
use super::step::MAIN;
use super::undo::Log;
use super::worktree::{Files, Worktree};

/// State of the repository that a command may lead to.
#[derive(Debug, Clone)]
pub(super) struct ExpectedState {
    /// State of the repository.
    pub(super) model: Model,
    /// Worktrees whose files the model does not predict. git-proq decides them, as long as nothing is lost.
    pub(super) unchecked_worktrees: BTreeSet<String>,
    /// Whether a refusal is as good as this state.
    pub(super) may_refuse: bool,
}

/// Exit code that a command must have when it is not refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExpectedExit {
    /// Exit code 0.
    Success,
    /// Another exit code than 0, because the user has to act on a part of it.
    Failure,
    /// Any exit code.
    Any,
}

/// Outcomes that the model accepts for one command.
#[derive(Debug, Clone)]
pub(super) struct Expectation {
    /// States of which one must be reached; empty if only a refusal is accepted.
    pub(super) states: Vec<ExpectedState>,
    /// Whether a refusal, which changes nothing, is accepted.
    pub(super) allows_refusal: bool,
    /// Exit code when the command is not refused.
    pub(super) exit: ExpectedExit,
}

impl Expectation {
    /// Expects a refusal with a reason, and no change.
    pub(super) fn refused() -> Expectation {
        Expectation { states: Vec::new(), allows_refusal: true, exit: ExpectedExit::Any }
    }

    /// Expects that the command succeeds.
    pub(super) fn done(then: ExpectedState) -> Expectation {
        let exit =
            if then.unchecked_worktrees.contains(MAIN) { ExpectedExit::Any } else { ExpectedExit::Success };
        Expectation { allows_refusal: then.may_refuse, states: vec![then], exit }
    }

    /// Expects that the command succeeds or is refused.
    pub(super) fn done_or_refused(then: ExpectedState) -> Expectation {
        Expectation { allows_refusal: true, ..Expectation::done(then) }
    }

    /// Expects that the command does its work and exits with an error code.
    pub(super) fn with_failure_exit(self) -> Expectation {
        let ending = if self.exit == ExpectedExit::Any { ExpectedExit::Any } else { ExpectedExit::Failure };
        Expectation { exit: ending, ..self }
    }
}

/// Predicts the outcome of commands.
#[derive(Debug)]
pub(super) struct Oracle<'a> {
    /// Access to commits.
    pub(super) objects: &'a Objects,
}

impl Oracle<'_> {
    /// Predicts the outcome of `git proq ARGS`.
    pub(super) fn predict(&self, now: &Model, log: &Log, args: &[&str]) -> Outcome<Expectation> {
        match args {
            ["spawn", "--empty", "-n", lane] => self.spawn(now, lane),
            ["preview", "--back"] => self.preview_back(now),
            ["preview", "--refresh"] => self.refresh(now),
            ["preview", lane] => self.preview(now, lane),
            ["merge", "--all", "--order", "oldest"] => self.merge(now, None),
            ["merge", lanes @ ..] => self.merge(now, Some(lanes)),
            ["discard", "--force", lane] => self.discard(now, lane, RemovalReason::Force),
            ["discard", lane] => self.discard(now, lane, RemovalReason::Unforced),
            ["cleanup"] => self.cleanup(now),
            ["undo"] => match log.changed_spawned_lane(now) {
                // The lane is removed like any other, according to its content now, unless it is being
                // previewed.
                Some(lane) if now.preview.as_ref().is_some_and(|open| open.lane == lane) => {
                    Ok(Expectation::refused())
                }
                Some(lane) => self.discard(now, lane, RemovalReason::UndoSpawn),
                None => Ok(log.undo(now)),
            },
            ["op", "redo"] => {
                let redone = log.redo(now);
                Ok(Expectation {
                    allows_refusal: redone.allows_refusal || self.carries_to_dirty_lane(now)?,
                    ..redone
                })
            }
            _ => Ok(Expectation::done(self.start_from(now))),
        }
    }

    /// Returns a copy of the state, for a command to change.
    #[expect(clippy::unused_self, reason = "it reads like the others")]
    pub(super) fn start_from(&self, now: &Model) -> ExpectedState {
        ExpectedState { model: now.clone(), unchecked_worktrees: BTreeSet::new(), may_refuse: false }
    }

    /// Returns whether the open preview has commits that its lane would receive while the lane has
    /// uncommitted work. `op redo` is refused then, though a `discard --force` that does the same is not.
    fn carries_to_dirty_lane(&self, now: &Model) -> Outcome<bool> {
        let Some(open) = &now.preview else { return Ok(false) };
        let has_commits = now.refs.get(&preview_branch(&open.lane)).is_some_and(|tip| *tip != open.tip);
        let (Some(tree), Some(tip)) = (now.trees.get(&open.lane), now.head_commit(&open.lane)) else {
            return Ok(false);
        };
        Ok(has_commits && !tree.is_clean(&*self.objects.files(&tip)?))
    }

    fn spawn(&self, now: &Model, name: &str) -> Outcome<Expectation> {
        let head = now.main().head;
        let shown = now.preview.as_ref().filter(|open| head == preview_branch(&open.lane));
        let base = shown.map_or(head.clone(), |open| open.came_from.clone());
        let Some(short) = base.strip_prefix("refs/heads/").filter(|b| !b.starts_with("proq/")) else {
            return Ok(Expectation::refused());
        };
        let taken = now.lanes.contains_key(name) || now.refs.contains_key(&branch(name));
        let Some(start) = now.tip(&base).filter(|_| !taken) else { return Ok(Expectation::refused()) };
        let mut then = self.start_from(now);
        let files = Files::clone(&*self.objects.files(&start)?);
        let tree = Worktree { head: branch(name), index: files.clone(), files };
        then.model.trees.insert(name.to_owned(), tree);
        then.model.refs.insert(branch(name), start.clone());
        let lane =
            Lane { state: "idle".to_owned(), base: short.to_owned(), fork_point: start, ..Lane::default() };
        then.model.lanes.insert(name.to_owned(), lane);
        Ok(Expectation::done(then))
    }
}
