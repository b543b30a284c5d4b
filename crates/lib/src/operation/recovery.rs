//! Recovery of operations that crashed processes left unfinished: each is either completed or reverted.

use std::path::{Path, PathBuf};

use proq_base::fail_points;
use proq_base::full_disk::WriteLimit;
use proq_base::process::identity;
use proq_base::trace::{Span, SpanKind};
use proq_git as git;
use proq_git::checkout::ref_recovery;
use proq_git::repository::worktree_context::WorktreeContext;
use proq_git::snapshots::truncated_files;
use proq_git::snapshots::truncated_files::WorktreeStep;
use proq_store as store;
use proq_store::Store;
use proq_store::base::operation_number::OperationNumber;
use proq_store::locks::lock::{LockGuard, LockName};
use proq_store::operations::journal::{Journal, journal_path};
use proq_store::operations::operation_entry::{JournalLine, OperationHeader, StepStatus};
use proq_store::operations::scratch::ScratchDir;
use proq_store::paths::layout::Layout;

use super::interrupted_revert::{mark_reverted_steps, remove_redundant_steps};
use super::journaled_operation::step::{BoxedStep, OperationEntry, PlannedStep, Step, registry};
use super::journaled_operation::{Operation, first_revertible_step, missing_worktree};
use super::locked_worktree::LockedWorktree;
use super::op_log_view;
use super::run_operation::emit_end;
use crate::errors::Error;
use crate::event::log::OperationOutcome;
use crate::project::Project;

impl<'a> LockedWorktree<'a> {
    /// Takes the transition lock of the worktree at `dir`. First recovers operations that a crashed process
    /// left unfinished in that worktree.
    pub fn lock(project: &'a Project, dir: &Path) -> Result<LockedWorktree<'a>, Error> {
        let git_dir = project.repo.worktree_git_dir(dir)?;
        let id = match git_dir.file_name() {
            Some(name) if git_dir != project.repo.common_dir() => name.to_string_lossy().into_owned(),
            // A linked worktree may be called "main" too.
            _ => "@main".to_owned(),
        };
        let lock = lock_after_recovery(project, &LockName::Worktree(id), |step| {
            step.changed_worktree() == Some(dir)
        })?;
        Ok(LockedWorktree::new(project, dir, git_dir, lock))
    }
}

/// Claims the scratch folders of crashed processes that have a journal. Folders without one are removed.
pub fn claim_orphans(project: &Project) -> Result<Vec<ScratchDir>, Error> {
    let mut orphans = project.store.layout().claim_orphans()?;
    if !orphans.is_empty() {
        (registry().remove_leftovers)(project);
    }
    for orphan in &mut orphans {
        if journal_path(orphan.path()).exists() {
            // The folder must not be removed before its journal is read.
            orphan.retain();
        } else {
            // Temporary files are removed with the folder; a git process killed at the same time may have
            // left a lock.
            ref_recovery::recover_ref_deletion_locks(&project.repo, orphan.path())?;
        }
    }
    orphans.retain(|orphan| journal_path(orphan.path()).exists());
    Ok(orphans)
}

/// Operation that no command could recover so far.
pub(crate) struct StuckOperation {
    /// Scratch folder of the crashed process.
    pub dir: PathBuf,
    /// Content of its journal, or the error on reading it.
    pub journal: Result<OperationEntry, store::Error>,
}

/// Returns the operations of crashed processes that remain after recovery.
pub(crate) fn stuck_operations(store: &Store) -> Result<Vec<StuckOperation>, Error> {
    let mut out = Vec::new();
    for mut orphan in store.layout().claim_orphans()? {
        orphan.retain();
        let dir = orphan.path().to_owned();
        if let Some(journal) = OperationEntry::read(&journal_path(&dir)).transpose() {
            out.push(StuckOperation { dir, journal });
        }
    }
    Ok(out)
}

/// Completes or reverts the operations in these scratch folders of crashed processes.
pub(crate) fn recover_operations(project: &Project, orphans: Vec<ScratchDir>) -> Result<(), Error> {
    if !orphans.is_empty() {
        fail_points::hit("recover.claimed");
    }
    let mut remaining = orphans.into_iter();
    // The calling process may be in its own operation.
    project.repo.preserve_inherited_file(|| {
        remaining.try_for_each(|scratch| match Journal::adopt(scratch)? {
            Some(mut journal) => {
                missing_worktree::relocate_moved_worktrees(&project.repo, &mut journal);
                recover_operation(project, journal)
            }
            None => Ok(()),
        })
    })
}

/// Acquires a lock whose last holder may have crashed. Its unfinished operation is recovered first, or
/// awaited if another process is recovering it. `is_relevant` selects the steps that change what the lock
/// protects, besides those whose process holds it.
pub(crate) fn lock_after_recovery(
    project: &Project,
    name: &LockName,
    is_relevant: impl Fn(&dyn Step) -> bool,
) -> Result<LockGuard, Error> {
    let locks = project.store.locks();
    let is_relevant = |step: &dyn Step| step.held_lock().as_ref() == Some(name) || is_relevant(step);
    loop {
        let lock = locks.acquire(name)?;
        // Check while the lock is held, and recover without it.
        let orphans = claim_orphans(project)?;
        if !orphans.is_empty() {
            drop(lock);
            recover_operations(project, orphans)?;
            continue;
        }
        let Some((dir, header)) = recovery_elsewhere(&project.store, &is_relevant) else { return Ok(lock) };
        drop(lock);
        let holder =
            format!("the process that repairs `{}` (process {} was killed)", header.command, header.pid);
        locks.wait_for_scratch_release(&dir, &name.describe(), &holder)?;
    }
}

/// Returns the scratch folder and header of a crashed process's operation that another process is recovering.
fn recovery_elsewhere(
    store: &Store,
    is_relevant: &impl Fn(&dyn Step) -> bool,
) -> Option<(PathBuf, OperationHeader)> {
    // A live owner would hold the lock itself.
    let has_exited =
        |header: &OperationHeader| header.is_from_this_host() && identity::has_process_exited(header.pid);
    running_operations(store, is_relevant).find(|(_, header)| has_exited(header))
}

/// Returns whether another process is running an operation with a relevant step.
pub(crate) fn is_operation_running(store: &Store, is_relevant: impl Fn(&dyn Step) -> bool) -> bool {
    running_operations(store, &is_relevant).next().is_some()
}

/// Returns the unfinished operations of other live processes that have a relevant step, each with its scratch
/// folder and header.
fn running_operations(
    store: &Store,
    is_relevant: &impl Fn(&dyn Step) -> bool,
) -> impl Iterator<Item = (PathBuf, OperationHeader)> {
    store.layout().other_live_scratch_dirs().into_iter().filter_map(move |dir| {
        let entry = OperationEntry::read(&journal_path(&dir)).ok().flatten()?;
        let is_running = entry.end_and_recovered.is_none()
            && entry.steps.iter().any(|planned| is_relevant(&*planned.step));
        is_running.then_some((dir, entry.header))
    })
}

/// Recovers one operation of a crashed process, logs it, and reports the outcome to the user.
///
/// # Errors
/// [`Error::RecoveryFailed`]; the operation is then left to the next command.
fn recover_operation(project: &Project, journal: Journal<BoxedStep>) -> Result<(), Error> {
    let header = journal.entry().header.clone();
    let end = journal.entry().end_and_recovered;
    let has_ended = end.is_some();
    let op = Operation::new(project, header, Some(journal));
    let mut unmoved = Vec::new();
    // An operation that has ended only lacks its entry in the log.
    if !has_ended && let Err(e) = classify_and_revert(&op, &mut unmoved) {
        let command = operation_command_for_user(&op);
        op.leave_unfinished();
        op.keep_trace(None);
        return Err(Error::RecoveryFailed { interrupted_command: command, source: Box::new(e) });
    }
    let entry = op.journal_entry();
    let number = op.finish(true)?;
    if let Some(entry) = entry.filter(|_| !has_ended) {
        op.keep_trace(number);
        report_recovery(project, &entry, number, &unmoved);
    }
    let was_done = end.is_some_and(|(_, recovered)| !recovered);
    emit_end(op, number, if was_done { OperationOutcome::Done } else { OperationOutcome::Recovered });
    Ok(())
}

/// Determines for each pending step whether it has happened. Then completes the steps that cannot be reverted
/// and reverts all others. Adds to `unmoved` the numbers of the pending steps that had not moved their ref or
/// worktree yet.
fn classify_and_revert(op: &Operation<'_>, unmoved: &mut Vec<usize>) -> Result<(), Error> {
    let count = op.journal_entry().map_or(0, |e| e.steps.len());
    for n in (0..count).rev() {
        if op.step_status(n) != Some(StepStatus::Pending) {
            continue;
        }
        let Some((step, scratch)) = op.step_and_scratch(n) else { continue };
        let span = Span::begin(SpanKind::Step, step.kind_name());
        let happened = op.recover_step(&*step, &scratch).inspect_err(|_| span.fail())?;
        drop(span);
        if !happened && step.is_unnoticed_until_done() {
            unmoved.push(n);
        }
        let _ = op.record_line(if happened { JournalLine::Done(n) } else { JournalLine::Undone(n) });
    }
    // Partly written files must be completed first: a revert would take them for the user's changes.
    mend_worktrees(op, truncated_files::repair_truncated_files)?;
    mark_reverted_steps(op)?;
    finish_irreversible_steps(op);
    match revert_all(op) {
        Err(e) if e.is_refusal() => {
            op.project.listener.warn(format!(
                "`{}` was interrupted and cannot be undone completely: {e}; the rest of it is kept",
                operation_command_for_user(op)
            ));
            Ok(())
        }
        other => other,
    }
}

/// Reverts all steps. The reverted files are synced to disk before the snapshots are deleted, because
/// recovery after another power cut needs the snapshots to recognize the user's own files.
fn revert_all(op: &Operation<'_>) -> Result<(), Error> {
    op.revert_steps(0, |step| !step.is_reverted_last())?;
    mend_worktrees(op, truncated_files::sync_written_files)?;
    remove_redundant_steps(op)?;
    op.revert_steps(0, |_| true)
}

/// Function that repairs or syncs one worktree, given what the steps of an operation wrote to it, newest
/// first.
type MendFn = fn(&WorktreeContext<'_>, &[WorktreeStep]) -> Result<(), git::Error>;

/// Calls `mend` for each worktree that completed steps changed, with what they wrote to it. If `mend` fails,
/// the worktree is left to the revert of its steps.
///
/// # Errors
/// Fails when the disk is full: the next command repeats it once there is space.
fn mend_worktrees(op: &Operation<'_>, mend: MendFn) -> Result<(), Error> {
    let Some(entry) = op.journal_entry() else { return Ok(()) };
    let mut worktrees: Vec<(&Path, usize, Vec<Option<WorktreeStep>>)> = Vec::new();
    let is_in_effect = |p: &PlannedStep| p.status == StepStatus::Done && !p.is_worktree_missing;
    for (n, planned) in entry.steps.iter().enumerate().rev().filter(|(_, p)| is_in_effect(p)) {
        let Some(dir) = planned.step.changed_worktree() else { continue };
        let wrote = planned.step.written_files(op);
        match worktrees.iter_mut().find(|(known, ..)| *known == dir) {
            Some((_, _, writes)) => writes.push(wrote),
            None => worktrees.push((dir, n, vec![wrote])),
        }
    }
    for (dir, n, wrote) in worktrees.into_iter().filter(|(dir, ..)| dir.exists()) {
        let (Some((_, scratch)), Ok(checkout)) = (op.step_and_scratch(n), op.lock_worktree(dir)) else {
            continue;
        };
        // At the end of a revert a snapshot may be gone. Without it, nobody knows which files are the user's
        // own.
        let wrote: Vec<WorktreeStep> = wrote.into_iter().map_while(|wrote| wrote).collect();
        match checkout.with_context(&scratch, |tree| Ok(mend(tree, &wrote)?)) {
            Err(e) if is_disk_full(&e) => return Err(e),
            _ => {}
        }
    }
    Ok(())
}

/// Returns whether an error of git's file operations means that nothing more can be written.
fn is_disk_full(e: &Error) -> bool {
    let Error::Git(git::Error::Io { source, .. }) = e else { return false };
    WriteLimit::of_error(source).is_some()
}

/// Applies the open steps that follow a step which has happened and cannot be reverted.
fn finish_irreversible_steps(op: &Operation<'_>) {
    let Some(entry) = op.journal_entry() else { return };
    for (n, planned) in entry.steps.iter().enumerate().take(first_revertible_step(&entry)) {
        let is_done = |first: usize| entry.steps[first].status == StepStatus::Done;
        if planned.status != StepStatus::Done && planned.roll_forward_start.is_some_and(is_done) {
            match op.step_and_scratch(n) {
                Some((step, _)) if missing_worktree::is_following_worktree_gone(op, &*step) => {
                    let _ = op.record_line(JournalLine::Undone(n));
                }
                Some((step, scratch)) if has_happened_after_all(op, &*step, &scratch) => {
                    let _ = op.record_line(JournalLine::Done(n));
                }
                _ => op.apply_following_step(n, true),
            }
        }
    }
}

/// Recovers a following step that an earlier recovery may have begun to apply, and returns whether it has happened.
/// Otherwise discards its temporary files: a file that a killed git left there would stop the next attempt.
fn has_happened_after_all(op: &Operation<'_>, step: &dyn Step, scratch: &Path) -> bool {
    if !scratch.exists() {
        return false;
    }
    match op.recover_step(step, scratch) {
        Ok(true) => true,
        Ok(false) => {
            // Renamed first: after a kill in between, a part of these files would mislead the next recovery.
            let discarded = Layout::discarded_scratch(scratch);
            drop(std::fs::remove_dir_all(&discarded));
            if std::fs::rename(scratch, &discarded).is_ok() {
                drop(std::fs::remove_dir_all(&discarded));
            }
            false
        }
        Err(_) => false,
    }
}

/// Returns the command by which a user repeats an operation; empty when its journal is unreadable.
fn operation_command_for_user(op: &Operation<'_>) -> String {
    let command_for_user = registry().command_for_user;
    op.journal_entry().map_or_else(String::new, |e| command_for_user(&e.header.command).into_owned())
}

/// Reports a recovered operation to the user of the next command, in three lines: what was interrupted, its
/// outcome, and what to do now.
fn report_recovery(
    project: &Project,
    entry: &OperationEntry,
    number: Option<OperationNumber>,
    unmoved_steps: &[usize],
) {
    let prefix = &project.settings.branch_prefix;
    // A user cannot repeat the command of an internal process.
    let rerun_hint = |suffix: &str| match entry.header.command.starts_with("git proq ") {
        true => format!("run it again{suffix}"),
        false => "there is nothing to do".to_owned(),
    };
    let all_steps = entry.steps.iter().enumerate();
    let reverted = all_steps.filter(|(n, p)| {
        p.status == StepStatus::Undone && p.reverted_step.is_none() && !unmoved_steps.contains(n)
    });
    let reverted_steps = reverted.map(|(_, planned)| &planned.step);
    let (outcome, advice) = if entry.applied_steps().next().is_none() {
        let begun_text =
            op_log_view::describe_steps(reverted_steps, prefix).unwrap_or_else(|| "its changes".to_owned());
        // Files of a worktree that is gone were not reverted.
        let extent =
            if entry.steps.iter().any(|p| p.is_worktree_missing) { "the rest" } else { "everything" };
        (format!("undone: {begun_text}"), format!("{extent} is as it was before; {}", rerun_hint("")))
    } else {
        let done_text = format!("done: {}", op_log_view::summarize_entry(entry, prefix));
        let undo_hint = number.map_or_else(String::new, |n| format!("undo it: git proq undo {n}"));
        let rerun_advice = match first_revertible_step(entry) {
            0 => "the rest was undone".to_owned(),
            _ => rerun_hint(" for the rest"),
        };
        (
            done_text,
            if undo_hint.is_empty() { rerun_advice } else { format!("{rerun_advice}, or {undo_hint}") },
        )
    };
    let OperationHeader { command, pid, started_at: at, .. } = &entry.header;
    let command = (registry().command_for_user)(command);
    project
        .listener
        .warn(format!("`{command}` was interrupted (process {pid}, started {at})\n  {outcome}\n  {advice}"));
}
