//! The operation log as data: all operations, or one with its steps.

use proq_base::config::settings::Settings;
use proq_store::base::clock::Moment;
use proq_store::base::operation_number::OperationNumber;
use serde::Serialize;

use super::error::Error;
use crate::errors::undo_error::UndoError;
use crate::lane::Project;
use crate::operation::journaled_operation::step::{BoxedStep, RefChange};
use crate::operation::op_log_view;
use crate::operation::op_log_view::{LoggedOperation, OpLog};

/// An operation of the log.
#[derive(Debug, Serialize)]
pub struct OperationRow {
    /// Number of the operation.
    pub operation: OperationNumber,
    /// Time at which the operation started.
    #[serde(rename = "at")]
    pub started_at: Moment,
    /// Kind of the operation, such as `spawn`.
    pub kind: String,
    /// Command line by which the operation was started.
    pub command: String,
    /// What the operation was started from; null if an older program started it.
    pub via: Option<String>,
    /// What the operation did, in a few words.
    #[serde(rename = "did")]
    pub effect: String,
    /// Whether the operation was undone later.
    pub undone: bool,
    /// Whether the operation's process crashed and another process completed or undid the operation.
    pub recovered: bool,
    /// Numbers of the operations that this one undoes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub undoes: Vec<OperationNumber>,
    /// Number of the undo that this operation takes back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redoes: Option<OperationNumber>,
}

/// Operations of the log, newest first.
#[derive(Debug, Serialize)]
pub struct OperationList {
    /// The operations.
    pub operations: Vec<OperationRow>,
}

/// An operation with its process and its steps.
#[derive(Debug, Serialize)]
pub struct OperationDetail {
    /// The operation as in the list.
    #[serde(flatten)]
    pub row: OperationRow,
    /// Id of the process.
    pub pid: u32,
    /// Name of the host that the process ran on.
    pub host: String,
    /// Refs that the operation moved.
    refs: Vec<RefChange>,
    /// Steps that are in effect, in order.
    pub steps: Vec<BoxedStep>,
}

/// Trace of a failed operation.
#[derive(Debug, Serialize)]
pub struct OperationTrace {
    /// Number of the operation; null if it is not in the log.
    pub operation: Option<OperationNumber>,
    /// Spans in the order in which they began, one a line: milliseconds since the first one began, milliseconds
    /// taken, kind and name.
    pub trace: Vec<String>,
}

/// Returns the newest operations, `last` of them at most.
#[must_use]
pub fn list(project: &Project, last: Option<usize>) -> OperationList {
    let log = OpLog::read(project);
    let newest = log.operations.iter().rev().take(last.unwrap_or(usize::MAX));
    OperationList { operations: newest.map(|logged| OperationRow::new(&project.settings, logged)).collect() }
}

/// Returns one operation.
///
/// # Errors
/// [`UndoError::NoOperation`].
pub fn show(project: &Project, number: OperationNumber) -> Result<OperationDetail, Error> {
    let log = OpLog::read(project);
    let logged = op_log_view::require_operation(&log, number)?;
    let steps: Vec<BoxedStep> = logged.entry.applied_steps().cloned().collect();
    Ok(OperationDetail {
        row: OperationRow::new(&project.settings, logged),
        pid: logged.entry.header.pid,
        host: logged.entry.header.host.clone(),
        refs: steps.iter().filter_map(|step| step.moved_ref()).collect(),
        steps,
    })
}

/// Returns the trace of a failed operation; without a number, of the last one that failed and has none.
///
/// # Errors
/// [`UndoError::NoOperation`], [`UndoError::NoTrace`], and failures to read the trace.
pub fn trace(project: &Project, number: Option<OperationNumber>) -> Result<OperationTrace, Error> {
    if let Some(number) = number {
        op_log_view::require_operation(&OpLog::read(project), number)?;
    }
    let path = project.store.layout().operation_trace(number);
    match proq_base::regular_file::read_store_text(&path) {
        Ok(text) => {
            Ok(OperationTrace { operation: number, trace: text.lines().map(str::to_owned).collect() })
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Err(UndoError::NoTrace { number }.into()),
        Err(e) => Err(proq_store::Error::io("read", &path)(e).into()),
    }
}

impl OperationRow {
    fn new(settings: &Settings, logged: &LoggedOperation) -> OperationRow {
        let (header, entry) = (&logged.entry.header, &logged.entry);
        OperationRow {
            operation: logged.number,
            started_at: header.started_at,
            kind: header.kind.clone(),
            command: header.command.clone(),
            via: header.via.clone(),
            effect: op_log_view::summarize_entry(entry, &settings.branch_prefix),
            undone: logged.is_undone,
            recovered: entry.end_and_recovered.is_some_and(|(_, recovered)| recovered),
            undoes: header.undoes.clone(),
            redoes: header.reverted_undo,
        }
    }
}
