//! A journaled operation: every change is written to a journal before it is made. Either all changes are in
//! effect at the end or none is, whether the operation fails, is interrupted or is killed.

use std::any::{Any, TypeId};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use proq_base::fail_points;
use proq_base::trace::{Span, SpanKind};
use proq_git::worktrees::misplaced::WorktreeId;
use proq_store::base::atomic;
use proq_store::base::clock::now;
use proq_store::base::operation_number::OperationNumber;
use proq_store::locks::lock::LockGuard;
use proq_store::operations::journal::Journal;
use proq_store::operations::operation_entry::{JournalLine, OperationHeader, StepStatus};
use proq_store::paths::layout::Layout;

use self::step::{BoxedStep, OperationEntry, Step, StepOutcome};
use super::locked_worktree::LockedWorktree;
use crate::errors::Error;
use crate::project::Project;

pub mod missing_worktree;
pub mod step;

/// Action to run after an operation has succeeded.
type DeferredAction<'p> = Box<dyn FnOnce(&Project) + 'p>;

/// A running operation. Nothing of it is on disk before its first step.
#[must_use]
pub struct Operation<'p> {
    /// Repository that the operation changes.
    pub project: &'p Project,
    /// Identity and origin of the operation, which begin its journal.
    pub header: RefCell<OperationHeader>,
    /// Span from begin to end.
    span: Span,
    /// Reflog message of ref changes whose step has none.
    reflog_message: RefCell<Option<String>>,
    /// Journal of the operation; none before its first step.
    journal: RefCell<Option<Journal<BoxedStep>>>,
    /// Worktrees that are locked until the operation ends.
    locked_worktrees: RefCell<Vec<Rc<LockedWorktree<'p>>>>,
    /// Number of the step that the steps planned now revert.
    pub(crate) reverted_step: Cell<Option<usize>>,
    /// What steps of this process know beyond their journal, one value of each type.
    memory: RefCell<HashMap<TypeId, Box<dyn Any>>>,
    /// Whether the next command must complete or revert this operation.
    pub(super) is_unfinished: Cell<bool>,
    /// Whether this operation holds the lock on records.
    pub(crate) is_store_locked: Cell<bool>,
    /// Locks that are held until the operation ends.
    held_locks: RefCell<Vec<LockGuard>>,
    /// Actions to run after the operation has succeeded and released its locks.
    pub(crate) deferred_actions: RefCell<Vec<DeferredAction<'p>>>,
}

/// Warnings about failed reverts that the user has.
#[derive(Default)]
struct RevertWarnings(BTreeSet<String>);

impl<'p> Operation<'p> {
    /// Returns an operation that holds no locks; `journal` is none except to recover a crashed operation.
    pub fn new(
        project: &'p Project,
        header: OperationHeader,
        journal: Option<Journal<BoxedStep>>,
    ) -> Operation<'p> {
        if let Some(journal) = &journal {
            project.repo.set_inherited_file(Some(journal.file()));
        }
        Operation {
            project,
            span: Span::begin(SpanKind::Operation, &header.kind),
            header: RefCell::new(header),
            reflog_message: RefCell::default(),
            journal: RefCell::new(journal),
            locked_worktrees: RefCell::default(),
            reverted_step: Cell::default(),
            memory: RefCell::default(),
            is_unfinished: Cell::default(),
            is_store_locked: Cell::default(),
            held_locks: RefCell::default(),
            deferred_actions: RefCell::default(),
        }
    }

    /// Holds a lock until the operation ends.
    pub(crate) fn hold(&self, lock: LockGuard) {
        self.held_locks.borrow_mut().push(lock);
    }

    /// Defers an action, such as a hook or an event, until the operation has succeeded and released its
    /// locks.
    pub fn defer(&self, work: impl FnOnce(&Project) + 'p) {
        self.deferred_actions.borrow_mut().push(Box::new(work));
    }

    /// Returns the worktree at `dir`, locked until this operation ends.
    pub fn lock_worktree(&self, dir: &Path) -> Result<Rc<LockedWorktree<'p>>, Error> {
        if let Some(known) = self.locked_worktrees.borrow().iter().find(|c| c.dir() == dir) {
            return Ok(Rc::clone(known));
        }
        let checkout = Rc::new(LockedWorktree::lock(self.project, dir)?);
        self.locked_worktrees.borrow_mut().push(Rc::clone(&checkout));
        Ok(checkout)
    }

    /// Calls `inspect` with the worktree at `dir`, which is locked only during the call unless the operation
    /// holds it already.
    pub(crate) fn with_locked_worktree<T>(
        &self,
        dir: &Path,
        inspect: impl FnOnce(&LockedWorktree<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let known = self.locked_worktrees.borrow().iter().find(|c| c.dir() == dir).cloned();
        if let Some(known) = known {
            inspect(&known)
        } else {
            inspect(&LockedWorktree::lock(self.project, dir)?)
        }
    }

    /// Sets the message that git writes to its reflogs.
    pub(crate) fn set_reflog_message(&self, message: impl Into<String>) {
        *self.reflog_message.borrow_mut() = Some(message.into());
    }

    /// Returns the message for git's reflogs; by default the kind of the operation.
    pub(crate) fn reflog_message(&self) -> String {
        let default_message = || format!("git-proq: {}", self.header.borrow().kind);
        self.reflog_message.borrow().clone().unwrap_or_else(default_message)
    }

    /// Returns whether this operation is reverting its own steps, rather than undoing an operation of the
    /// log.
    pub(crate) fn is_reverting(&self) -> bool {
        self.reverted_step.get().is_some()
    }

    /// Passes to `work` what steps of this process know beyond their journal, as a `T`.
    pub(crate) fn with_memory<T: Default + 'static, R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let mut memory = self.memory.borrow_mut();
        let value = memory.entry(TypeId::of::<T>()).or_insert_with(|| Box::new(T::default()));
        let Some(value) = value.downcast_mut() else { unreachable!("it is stored by its type") };
        work(value)
    }

    /// Plans and runs one step.
    pub(crate) fn perform(&self, step: impl Into<BoxedStep>) -> Result<StepOutcome, Error> {
        let step = step.into();
        self.require_can_start(std::slice::from_ref(&step))?;
        let n = self.plan_steps(vec![step], false)?;
        self.run_step(n)
    }

    /// Refuses to start steps after an interrupt, after a step that could not be completed, or if one of them
    /// must not start now. Ctrl-C takes effect between steps, and the error
    /// reverts the operation. Nothing stops a revert: it also waits for locks.
    fn require_can_start(&self, steps: &[BoxedStep]) -> Result<(), Error> {
        if self.is_reverting() {
            return Ok(());
        }
        proq_base::interrupt::require_no_signal()?;
        for step in steps {
            step.require_startable(self)?;
            missing_worktree::refuse_missing_worktree(&self.project.repo, &**step)?;
        }
        // Recovery of that step will also revert everything after it.
        if self.has_stuck_step() { Err(Error::StuckStep) } else { Ok(()) }
    }

    /// Returns whether a step is still pending in the journal: it could be neither completed nor reverted.
    fn has_stuck_step(&self) -> bool {
        let journal = self.journal.borrow();
        journal.as_ref().is_some_and(|j| j.entry().steps.iter().any(|p| p.status == StepStatus::Pending))
    }

    /// Runs steps that belong together. Once the first is done, the operation cannot be reverted past it, and
    /// the others follow, also after a crash. An error of one following step is reported and does not stop
    /// the next.
    pub(crate) fn perform_irreversibly(&self, steps: Vec<BoxedStep>) -> Result<StepOutcome, Error> {
        self.require_can_start(&steps)?;
        let count = steps.len();
        let first = self.plan_steps(steps, true)?;
        let outcome = self.run_step(first);
        for n in first + 1..first + count {
            match self.step_status(first) {
                Some(StepStatus::Done) => self.apply_following_step(n, false),
                Some(StepStatus::Undone) => {
                    let _ = self.record_line(JournalLine::Undone(n));
                }
                // Recovery of the first step decides about these too.
                _ => {}
            }
        }
        outcome
    }

    /// Applies step `n`, which follows from a step that has already happened. A failure is a warning, except
    /// for a worktree that follows its branch: a landing checks those once more. If the operation is
    /// `recovered` after a crash, such a failure is a warning too.
    pub(crate) fn apply_following_step(&self, n: usize, recovered: bool) {
        let _shield = proq_base::interrupt::shield();
        // The step cannot be undone any more, so it gets a second attempt.
        let Err(e) = self.run_step(n).or_else(|_| self.run_step(n)) else { return };
        if recovered || self.step_and_scratch(n).is_none_or(|(step, _)| step.follow_command().is_none()) {
            self.project.listener.warn(format!("cannot record everything: {}", e.without_assurance()));
        }
    }

    /// Writes steps to the journal, creating it for the first ones, and returns the number of the first. With
    /// `forward`, the others are completed even after a crash once the first has happened.
    fn plan_steps(&self, steps: Vec<BoxedStep>, forward: bool) -> Result<usize, Error> {
        let worktrees = self.step_worktree_ids(&steps);
        let line = JournalLine::Plan {
            steps,
            worktrees,
            roll_forward: forward,
            reverted_step: self.reverted_step.get(),
        };
        let mut journal = self.journal.borrow_mut();
        if let Some(journal) = journal.as_mut() {
            return Ok(journal.record_plan(line)?);
        }
        let scratch = self.project.store.layout().create_scratch()?;
        // The store of a new repository exists by now.
        self.project.store.record_clock();
        let started = Journal::create(scratch, self.header.borrow().clone(), line)?;
        self.project.repo.set_inherited_file(Some(started.file()));
        *journal = Some(started);
        Ok(0)
    }

    /// Returns the id of the linked worktree that each of `steps` changes, for the journal; empty when no
    /// step changes one.
    fn step_worktree_ids(&self, steps: &[BoxedStep]) -> Vec<Option<WorktreeId>> {
        let repo = &self.project.repo;
        let ids: Vec<_> = steps.iter().map(|step| repo.worktree_id(step.changed_worktree()?)).collect();
        if ids.iter().all(Option::is_none) { Vec::new() } else { ids }
    }

    /// Applies the planned step `n` and records its result.
    pub fn run_step(&self, n: usize) -> Result<StepOutcome, Error> {
        let Some((step, scratch)) = self.step_and_scratch(n) else { unreachable!("it was planned") };
        std::fs::create_dir_all(&scratch).map_err(Error::io("create", &scratch))?;
        let span = Span::begin(SpanKind::Step, step.kind_name());
        fail_points::hit("step.before");
        let repo = &self.project.repo;
        repo.forget_killed_git();
        let outcome = step.apply(self, &scratch).inspect_err(|_| span.fail());
        fail_points::hit("step.after");
        let happened = match &outcome {
            // The step stopped in the middle and could not revert. Recovery needs its data.
            Err(Error::Git(proq_git::Error::RestoreFailed { .. })) => return outcome,
            Ok(outcome) => outcome.has_happened,
            // A failed step may have left traces, or may have happened nevertheless. It is classified like a
            // step of a crashed process.
            Err(_) => {
                let _shield = proq_base::interrupt::shield();
                match repo.clean_up_failure(|| self.recover_step(&*step, &scratch)) {
                    Ok(happened) => happened,
                    Err(_) => return outcome,
                }
            }
        };
        let _ = self.record_line(if happened { JournalLine::Done(n) } else { JournalLine::Undone(n) });
        outcome
    }

    /// Returns step `n` and the scratch folder for its temporary files.
    pub(crate) fn step_and_scratch(&self, n: usize) -> Option<(BoxedStep, PathBuf)> {
        let journal = self.journal.borrow();
        let journal = journal.as_ref()?;
        let step = journal.entry().steps.get(n)?.step.clone();
        Some((step, Layout::scratch_step(journal.scratch().path(), n)))
    }

    /// Returns the status of step `n`.
    pub(crate) fn step_status(&self, n: usize) -> Option<StepStatus> {
        Some(self.journal.borrow().as_ref()?.entry().steps.get(n)?.status)
    }

    /// Appends a line to the journal. Returns whether it was written.
    pub(crate) fn record_line(&self, line: JournalLine<BoxedStep>) -> bool {
        self.journal.borrow_mut().as_mut().is_some_and(|journal| journal.record_progress(line))
    }

    /// Returns the journal's content so far.
    pub(crate) fn journal_entry(&self) -> Option<OperationEntry> {
        self.journal.borrow().as_ref().map(|j| j.entry().clone())
    }

    /// Returns the number of planned steps.
    pub(crate) fn step_count(&self) -> usize {
        self.journal.borrow().as_ref().map_or(0, |j| j.entry().steps.len())
    }

    /// Runs `work`, and if it fails, reverts the steps that it took. After a step that could be neither completed
    /// nor reverted, that is left to recovery, which begins with that step.
    pub fn attempt_or_revert<T, E: From<Error>>(&self, work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let first_step = self.step_count();
        work().inspect_err(|_| {
            if !self.has_stuck_step()
                && let Err(e) = self.revert_steps(first_step, |_| true)
            {
                self.warn_of_failed_revert(&e);
            }
        })
    }

    /// Returns whether a revert failed and left changes of this operation in effect.
    pub(crate) fn has_failed_revert(&self) -> bool {
        self.with_memory(|given: &mut RevertWarnings| !given.0.is_empty())
    }

    /// Warns that a revert failed, once for each reason: the operation repeats it when a larger part of it fails.
    fn warn_of_failed_revert(&self, e: &Error) {
        let text = format!("cannot undo everything: {}", e.without_assurance());
        if self.with_memory(|given: &mut RevertWarnings| given.0.insert(text.clone())) {
            self.project.listener.warn(text);
        }
    }

    /// Ends the operation with all its changes in effect, and returns its number in the log. If a step could
    /// neither be completed nor reverted, the operation and its files are left to the next command.
    ///
    /// # Errors
    /// [`Error::StuckStep`] if the next command will revert the operation.
    pub fn finish(&self, recovered: bool) -> Result<Option<OperationNumber>, Error> {
        if self.has_stuck_step() {
            let is_in_effect = self.journal_entry().is_some_and(|e| {
                e.steps.iter().rposition(|p| p.status == StepStatus::Pending)
                    < Some(first_revertible_step(&e))
            });
            self.project.listener.warn("some changes could not be completed; the next command tries again");
            self.leave_unfinished();
            return if is_in_effect { Ok(None) } else { Err(Error::StuckStep) };
        }
        let Some(mut journal) = self.journal.borrow_mut().take() else { return Ok(None) };
        self.project.repo.set_inherited_file(None);
        if journal.entry().applied_steps().next().is_none() {
            journal.discard();
            return Ok(None);
        }
        let end_result = journal.finish(now(), recovered);
        if end_result.is_err() {
            self.project.repo.set_inherited_file(Some(journal.file()));
            *self.journal.borrow_mut() = Some(journal);
        }
        Ok(end_result.map(Some)?)
    }

    /// Reverts the done steps that `is_selected` accepts, newest first, down to the given number, but none
    /// before the point of no return.
    pub(crate) fn revert_steps(
        &self,
        first_step: usize,
        is_selected: impl Fn(&BoxedStep) -> bool,
    ) -> Result<(), Error> {
        let Some(entry) = self.journal_entry() else { return Ok(()) };
        let from = first_step.max(first_revertible_step(&entry));
        for n in (from..entry.steps.len()).rev() {
            let planned = &entry.steps[n];
            if planned.status == StepStatus::Done
                && planned.reverted_step.is_none()
                && is_selected(&planned.step)
            {
                self.run_as_inverse_of(n, || self.invert(&*planned.step))?;
                let _ = self.record_line(JournalLine::Undone(n));
            }
        }
        Ok(())
    }

    /// Reverts a step that has happened, by new steps.
    pub(crate) fn invert(&self, step: &dyn Step) -> Result<(), Error> {
        missing_worktree::refuse_missing_or_replaced(self, step)?;
        step.invert(self)
    }

    /// Recovers a step that a crashed process left open. Afterwards the step has either happened, and this
    /// returns true, or it has not.
    pub(crate) fn recover_step(&self, step: &dyn Step, scratch: &Path) -> Result<bool, Error> {
        if !scratch.exists() {
            // A step creates its scratch folder before anything else, so it has not started.
            return Ok(false);
        }
        if missing_worktree::is_missing_or_replaced(self, step)? {
            return missing_worktree::recover_step_without_worktree(self, step, scratch);
        }
        step.recover(self, scratch)
    }

    /// Runs `work`, which nothing stops; the steps that it performs are recorded as inverses of step `n`.
    pub(crate) fn run_as_inverse_of<T>(&self, n: usize, work: impl FnOnce() -> T) -> T {
        let _shield = proq_base::interrupt::shield();
        self.reverted_step.set(Some(n));
        let result = work();
        self.reverted_step.set(None);
        result
    }

    /// Ends the operation by reverting it, except for the steps that cannot be reverted, and keeps its trace.
    /// Returns its number in the log; none if it is not there.
    pub(crate) fn revert_and_end(&self) -> Option<OperationNumber> {
        let has_begun = self.step_count() > 0;
        let number = self.revert_and_log();
        if has_begun {
            self.keep_trace(number);
        }
        number
    }

    /// Writes the spans of this operation, which has failed, to a file. A failure to write is ignored.
    pub(crate) fn keep_trace(&self, number: Option<OperationNumber>) {
        self.span.fail();
        let path = self.project.store.layout().operation_trace(number);
        drop(atomic::write_unsynced(&path, self.span.trace().as_bytes()));
    }

    /// Reverts the operation as [`Operation::revert_and_end`] does. Returns its number in the log; none if it is
    /// not there.
    fn revert_and_log(&self) -> Option<OperationNumber> {
        if self.has_stuck_step() {
            self.project.listener.warn("some changes could not be undone; the next command tries again");
            self.leave_unfinished();
            return None;
        }
        let end_result = match self.revert_steps(0, |_| true) {
            // The user's own changes prevent the revert: the remaining steps stay in effect and in the log.
            Err(e) if e.is_refusal() => {
                self.warn_of_failed_revert(&e);
                self.finish(false)
            }
            Err(e) => Err(e),
            Ok(()) => self.finish(false),
        };
        end_result.unwrap_or_else(|e| {
            self.project
                .listener
                .warn(format!("some changes could not be undone ({e}); the next command tries again"));
            self.leave_unfinished();
            None
        })
    }

    /// Leaves the unfinished operation to the next command.
    pub(crate) fn leave_unfinished(&self) {
        if let Some(journal) = self.journal.borrow_mut().take() {
            self.project.repo.set_inherited_file(None);
            journal.leave_for_recovery();
            self.is_unfinished.set(true);
        }
    }
}

/// Returns the number of the first step that may be reverted. The steps of a landing, and all before it, stay
/// in effect.
pub(crate) fn first_revertible_step(entry: &OperationEntry) -> usize {
    let is_done = |first: usize| entry.steps.get(first).is_some_and(|p| p.status == StepStatus::Done);
    let last_forward = entry.steps.iter().rposition(|p| p.roll_forward_start.is_some_and(is_done));
    last_forward.map_or(0, |n| n + 1)
}
