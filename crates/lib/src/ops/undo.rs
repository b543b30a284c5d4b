//! Undo of operations, and redo of the last undo.

use std::path::PathBuf;

use proq_store::base::operation_number::OperationNumber;
use serde::Serialize;

use super::batch_rules::BatchRules;
use super::error::Error;
use super::refusal::Refusal;
use super::reporter::{Progress, Question, Reporter};
use crate::errors::undo_error::UndoError;
use crate::lane;
use crate::lane::Project;
use crate::merge::stack::conflict::CONFLICT_REFS;
use crate::operation::journaled_operation::step::RefChange;
use crate::operation::op_log_view::OpLog;
use crate::operation::undo_plan::UndoTarget;
use crate::operation::{undo_operations, undo_plan};

/// Operations to undo.
#[derive(Debug, Clone, Copy)]
pub struct UndoRequest {
    /// Selection of the operations.
    pub target: UndoTarget,
    /// Whether operations are undone that later commits build on or that were pushed. A ref keeps what
    /// followed.
    pub force: bool,
    /// Whether the caller named the operation. If not, one of another terminal needs a confirmation.
    pub is_named: bool,
}

/// Operations that an undo concerns.
pub struct UndoPlan<'b> {
    operations: undo_plan::UndoPlan,
    /// Landing records that the operations wrote, as paths below `proq/`.
    written_records: Vec<PathBuf>,
    force: bool,
    needs_confirmation: bool,
    batches: &'b dyn BatchRules,
}

/// Operations that were or would be undone.
#[derive(Debug, Serialize)]
pub struct UndoOutcome {
    /// Numbers of the operations, newest first.
    pub operations: Vec<OperationNumber>,
    /// Command line of the newest of these operations.
    pub command: String,
    /// Numbers of the operations whose effects were undone or redone, newest first.
    #[serde(skip)]
    pub changed_operations: Vec<OperationNumber>,
    /// Command line of the newest operation of `changed_operations`, with the part of a pick that it was, or that
    /// all of these operations only recorded conflicts.
    #[serde(skip)]
    pub changed_command: String,
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// Files and folders that mark the tasks of undone landings as done, in no commit. They are the user's
    /// and stay as they are.
    #[serde(rename = "still_noted", skip_serializing_if = "Vec::is_empty")]
    pub uncommitted_marks: Vec<String>,
    /// Addresses of pull requests that git-proq has forgotten. They stay as they are on their forge.
    #[serde(rename = "still_requested", skip_serializing_if = "Vec::is_empty")]
    pub remaining_requests: Vec<String>,
}

/// Selects the operations to undo.
///
/// # Errors
/// [`UndoError::NothingToUndo`], [`UndoError::NotLast`], [`UndoError::NotInEffect`],
/// [`UndoError::NoOperation`]. If the operation is not the last one and an unfinished batch landed tasks
/// since, the error names that batch: undoing all later operations would be refused too.
pub fn plan<'b>(
    project: &Project,
    request: &UndoRequest,
    batches: &'b dyn BatchRules,
) -> Result<UndoPlan<'b>, Error> {
    let operations = undo_plan::plan(project, request.target)
        .map_err(|e| batch_since(project, &e, batches).unwrap_or_else(|| e.into()))?;
    Ok(UndoPlan {
        written_records: undo_plan::written_records(project, &operations),
        force: request.force,
        needs_confirmation: !request.is_named && !operations.is_same_terminal,
        operations,
        batches,
    })
}

/// Returns the error that names a batch which landed tasks after the operation that `error` refuses.
fn batch_since(project: &Project, error: &lane::Error, batches: &dyn BatchRules) -> Option<Error> {
    let lane::Error::Undo(UndoError::NotLast { requested, .. }) = error else { return None };
    let later_undo = undo_plan::plan(project, UndoTarget::After(requested.previous())).ok()?;
    let records = undo_plan::written_records(project, &later_undo);
    batches.later_landing_error(&project.store, &records, *requested)
}

impl UndoPlan<'_> {
    /// Returns what [`UndoPlan::execute`] would do, and refuses where it would, as far as that is known
    /// without undoing the newer operations. A confirmation is reported as [`Progress::ConfirmationNeeded`].
    ///
    /// # Errors
    /// Those of [`UndoPlan::execute`].
    pub fn forecast(self, project: &Project, reporter: &dyn Reporter) -> Result<UndoOutcome, Error> {
        if let Some(question) = self.question(reporter)? {
            reporter.progress(Progress::ConfirmationNeeded(question));
        }
        self.refuse_for_batches(project)?;
        undo_operations::check_undoable(project, &self.operations, self.force)?;
        Ok(self.into_outcome(project, true))
    }

    /// Undoes the operations. Operations that were logged since the plan was made refuse it.
    ///
    /// # Errors
    /// [`UndoError::ConfirmationRequired`], [`Refusal::Declined`], the refusal of a batch that builds on the
    /// operations, and [`lane::Error::CannotUndo`]; nothing was changed then.
    pub fn execute(self, project: &Project, reporter: &dyn Reporter) -> Result<UndoOutcome, Error> {
        let _scope = reporter.enter_cancellation();
        if let Some(question) = self.question(reporter)?
            && !reporter.confirm(question)
        {
            return Err(Refusal::Declined.into());
        }
        self.refuse_for_batches(project)?;
        let mut remaining_requests = request_urls(project);
        undo_operations::undo(project, &self.operations, self.force)?;
        let recorded = request_urls(project);
        remaining_requests.retain(|url| !recorded.contains(url));
        Ok(UndoOutcome { remaining_requests, ..self.into_outcome(project, false) })
    }

    /// Returns the question to confirm, if the operations need a confirmation.
    ///
    /// # Errors
    /// [`UndoError::ConfirmationRequired`] if nobody can answer.
    fn question(&self, reporter: &dyn Reporter) -> Result<Option<Question<'_>>, Error> {
        let Some(number) = self.operations.numbers.first().copied().filter(|_| self.needs_confirmation)
        else {
            return Ok(None);
        };
        let command = &self.operations.newest_command;
        if !reporter.can_prompt_user() {
            let error = UndoError::ConfirmationRequired { number, command: command.clone() };
            return Err(lane::Error::from(error).into());
        }
        Ok(Some(Question::UndoOfOtherTerminal { number, command }))
    }

    fn refuse_for_batches(&self, project: &Project) -> Result<(), Error> {
        let forced_command = self.operations.forced_command();
        self.batches.refuse_undo(&project.store, &self.written_records, self.force, forced_command)
    }

    fn into_outcome(self, project: &Project, dry_run: bool) -> UndoOutcome {
        let uncommitted_marks = match self.operations.target {
            UndoTarget::LastUndo => Vec::new(),
            _ => self.batches.uncommitted_marks(&project.store, &self.written_records),
        };
        let undo_plan::UndoPlan {
            numbers,
            newest_command,
            changed_numbers,
            changed_command,
            changed_kind,
            ..
        } = self.operations;
        let is_single = changed_numbers.len() == 1;
        let part =
            if is_single { pick_part(&changed_command, &changed_kind).to_owned() } else { String::new() };
        let conflicts = recorded_conflicts_text(project, &changed_numbers);
        UndoOutcome {
            operations: numbers,
            command: newest_command,
            changed_operations: changed_numbers,
            changed_command: format!("{changed_command}{part}{conflicts}"),
            dry_run,
            uncommitted_marks,
            remaining_requests: Vec::new(),
        }
    }
}

/// Returns which of the two operations of a `git proq pick` an operation is; empty for another command. A merge that
/// was pushed is not undone, and the other attempts must be restorable all the same.
fn pick_part(command: &str, kind: &str) -> &'static str {
    match kind {
        "pick" => " (the other attempts)",
        "merge" if command.starts_with("git proq pick ") => " (the merge)",
        _ => "",
    }
}

/// Describes operations that only recorded conflicts, such as a merge that landed nothing; empty for any others.
/// Their command line alone reads as if a landing was undone.
fn recorded_conflicts_text(project: &Project, numbers: &[OperationNumber]) -> String {
    let log = OpLog::read(project);
    let mut lanes = Vec::new();
    for entry in numbers.iter().filter_map(|number| log.effective_entry(*number)) {
        let refs: Vec<RefChange> = entry.applied_steps().filter_map(|step| step.moved_ref()).collect();
        let recorded =
            refs.iter().filter_map(|change| change.after.and(change.name.strip_prefix(CONFLICT_REFS)));
        let recorded: Vec<String> = recorded.map(|lane| format!("'{lane}'")).collect();
        if recorded.is_empty() || recorded.len() < refs.len() {
            return String::new();
        }
        lanes.extend(recorded);
    }
    match lanes.as_slice() {
        [] => String::new(),
        [lane] => format!(" (the record of the conflict of {lane}; no branch moved)"),
        _ => format!(" (the records of the conflicts of {}; no branch moved)", lanes.join(", ")),
    }
}

/// Returns the addresses of the pull requests of all present lanes; none if the lanes cannot be read.
fn request_urls(project: &Project) -> Vec<String> {
    let requests = project.all_lanes().unwrap_or_default().into_iter().filter_map(|lane| lane.pull_request);
    requests.map(|request| request.url).collect()
}
