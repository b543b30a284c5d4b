//! Health checks of operations: recovers unfinished ones first, then checks that the log of finished ones can
//! be read.

use proq_base::explain::shell_quote_path as quoted;
use proq_store as store;
use proq_store::Store;

use super::check_context::CheckContext;
use super::finding::{Finding, Severity};
use crate::lane::recovery::recover;
use crate::lane::{Error, Project};
use crate::operation::journaled_operation::step::OperationEntry;
use crate::operation::recovery::{StuckOperation, stuck_operations};

const OPERATION_CHECK: &str = "operation";

/// Recovers the operations that crashed processes left unfinished, as every command does first. Returns a
/// finding for each one that cannot be recovered.
pub(super) fn recover_operations(project: &Project) -> Vec<Finding> {
    let recovery_error = recover(project).err();
    let stuck = match stuck_operations(&project.store) {
        Ok(stuck) => stuck,
        Err(e) => {
            return vec![
                Finding::from_error(OPERATION_CHECK, "operations", &e)
                    .with_left_reason("they could not be checked"),
            ];
        }
    };
    let mut out: Vec<Finding> = stuck
        .iter()
        .map(|stuck| unfinished_finding(&project.store, stuck, recovery_error.as_ref()))
        .collect();
    if let (true, Some(e)) = (out.is_empty(), &recovery_error) {
        out.push(
            Finding::from_error(OPERATION_CHECK, "operations", e)
                .with_left_reason("the next command tries again"),
        );
    }
    out
}

/// Returns the finding about an operation that cannot be recovered, with the reason and the command that
/// helps.
fn unfinished_finding(store: &Store, stuck: &StuckOperation, recovery_error: Option<&Error>) -> Finding {
    let id = stuck.dir.file_name().unwrap_or_default().to_string_lossy();
    let subject = format!("operation {id}");
    let entry = match &stuck.journal {
        Ok(entry) => entry,
        Err(e) => {
            let found = Finding::from_error(OPERATION_CHECK, subject, e)
                .with_left_reason("files of yours may be beside it");
            return match e {
                // The complete folder: without the journal, git-proq does not know about the files beside it.
                store::Error::Broken { .. } => {
                    let parked_path = store.layout().parked_scratch_dir(&id);
                    found.with_help(format!("mv {} {}", quoted(&stuck.dir), quoted(&parked_path)))
                }
                _ => found,
            };
        }
    };
    let header = &entry.header;
    let reason = match recovery_error {
        // The git process of the operation is still running and may finish normally.
        Some(e @ Error::Store(store::Error::Locked { .. })) => {
            let found = Finding::from_error(OPERATION_CHECK, subject, e).with_left_reason("it is not over");
            return Finding { severity: Severity::Warning, ..found };
        }
        Some(e @ Error::RecoveryFailed { interrupted_command: command, .. })
            if *command == header.command =>
        {
            return Finding::from_error(OPERATION_CHECK, subject, e)
                .with_left_reason("continuing might overwrite something");
        }
        Some(e) => format!(" ({e})"),
        None => String::new(),
    };
    let message = format!(
        "`{}` (process {}, started {}) was interrupted and is not recovered yet{reason}",
        header.command, header.pid, header.started_at
    );
    Finding::error(OPERATION_CHECK, subject, message)
        .with_help("git proq doctor")
        .with_left_reason("the next command tries again")
}

/// Checks the log of finished operations.
pub(super) fn check(context: &CheckContext<'_>) -> Vec<Finding> {
    let layout = context.project.store.layout();
    let mut out = Vec::new();
    for number in layout.operation_numbers() {
        let (path, subject) = (layout.operation(number), format!("operation {number}"));
        let show_command = format!("cat {}", quoted(&path));
        match OperationEntry::read(&path) {
            Err(e) => {
                let reason = "its changes are in effect; only undo needs this file";
                out.push(Finding::from_error("operation-log", subject, &e).with_left_reason(reason));
            }
            // The file expired between listing and reading, or is empty.
            Ok(None) if !path.exists() => {}
            Ok(None) => {
                let message = format!("{} is empty, so operation {number} cannot be undone", path.display());
                out.push(
                    Finding::error("operation-log", subject, message)
                        .with_help(show_command)
                        .with_left_reason("it cannot be restored"),
                );
            }
            Ok(Some(entry)) if entry.end_and_recovered.is_none() => {
                let message = format!(
                    "{} is truncated, so operation {number} (`{}`) may be incomplete",
                    path.display(),
                    entry.header.command
                );
                out.push(
                    Finding::error("operation-log", subject, message)
                        .with_help(show_command)
                        .with_left_reason("it cannot be restored"),
                );
            }
            Ok(Some(_)) => {}
        }
    }
    out
}

/// Returns the command that is running now, described as text.
pub(super) fn running_command(store: &Store) -> Option<String> {
    let dirs = store.layout().live_scratch_dirs();
    let read_entry = |dir: &std::path::PathBuf| {
        OperationEntry::read(&proq_store::operations::journal::journal_path(dir)).ok().flatten()
    };
    match dirs.iter().find_map(read_entry) {
        Some(entry) => Some(format!("`{}` (process {})", entry.header.command, entry.header.pid)),
        None if !dirs.is_empty() || store.locks().is_any_command_lock_held() => {
            Some("another command".to_owned())
        }
        None => None,
    }
}
