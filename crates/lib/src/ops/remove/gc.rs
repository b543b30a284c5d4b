//! Deletion of what was kept for a limited time and has expired.

use proq_base::explain::Explain;
use proq_base::interrupt;
use serde::Serialize;

use crate::lane;
use crate::lane::Project;
use crate::lane::context::expiry_item::{
    ExpiredGroup, ExpiredItem, ExpiredRow, ExpiryKind, ExpiryScan, RetainedItem,
};
use crate::lane::removal::trash_contents::TrashUsage;
use crate::lane::removal::{expire, trash_contents};
use crate::ops::error::Error;
use crate::ops::reporter::{Progress, Reporter};

/// Expired items that were or would be deleted, and what is retained.
#[derive(Debug, Default, Serialize)]
pub struct GcOutcome {
    /// Items that were or would be deleted, by kind.
    pub freed: Vec<ExpiredGroup>,
    /// Freed bytes on disk. git itself frees objects, once no ref retains them.
    pub bytes: u64,
    /// Items that are old but are retained, or could not be deleted.
    #[serde(rename = "kept")]
    pub retained: Vec<RetainedRow>,
    /// The current contents of the trash, which are too young to delete.
    pub trash: TrashUsage,
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// Whether an item could not be deleted.
    #[serde(skip)]
    pub failed: bool,
}

/// An item that is retained although it is old.
#[derive(Debug, Serialize)]
pub struct RetainedRow {
    /// Kind of the item.
    pub kind: ExpiryKind,
    /// Name of the item.
    pub name: String,
    /// Why the item is retained.
    #[serde(rename = "why")]
    pub reason: String,
    /// Command that deletes the item, or a hint on what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

/// Returns what [`execute`] would delete, without the items that become obsolete by the deletion of others.
///
/// # Errors
/// Fails if items cannot be listed.
pub fn forecast(project: &Project, reporter: &dyn Reporter) -> Result<GcOutcome, Error> {
    collect(project, reporter, true)
}

/// Deletes expired items kind by kind, and reports each kind. An item that cannot be deleted is retained.
///
/// # Errors
/// Fails if items cannot be listed, or the process was interrupted.
pub fn execute(project: &Project, reporter: &dyn Reporter) -> Result<GcOutcome, Error> {
    collect(project, reporter, false)
}

/// Deletes or, in a dry run, lists the expired items of all kinds. Each kind is examined only when those
/// before it are deleted.
fn collect(project: &Project, reporter: &dyn Reporter, dry_run: bool) -> Result<GcOutcome, Error> {
    let _scope = reporter.enter_cancellation();
    let mut outcome = GcOutcome { dry_run, ..GcOutcome::default() };
    for kind in ExpiryKind::ALL {
        let ExpiryScan { expired, retained } = expire::find_expired(project, kind)?;
        let mut items = Vec::new();
        for item in &expired {
            interrupt::require_no_signal()?;
            match delete_item(project, item, dry_run) {
                Ok(row) => items.extend(row),
                Err(e) => {
                    outcome.failed = true;
                    let help = e.hints().first().map(ToString::to_string);
                    let (name, reason) = (item.name.clone(), error_text(&e));
                    outcome.retained.push(RetainedRow { kind, name, reason, help });
                }
            }
        }
        outcome.retained.extend(retained.into_iter().map(|item| {
            let RetainedItem { name, reason, remedy_command: help } = item;
            RetainedRow { kind, name, reason, help }
        }));
        if !items.is_empty() {
            let bytes = items.iter().map(|item| item.bytes).sum();
            let group = ExpiredGroup { kind, count: items.len(), bytes, items };
            reporter.progress(Progress::Expired(&group));
            outcome.bytes += bytes;
            outcome.freed.push(group);
        }
    }
    // Items that stay in the trash whatever their age are not counted: no cleanup deletes them.
    let retained = outcome.retained.iter().filter(|row| row.kind == ExpiryKind::Trash).map(|row| &row.name);
    let freed = outcome.freed.iter().filter(|group| group.kind == ExpiryKind::Trash);
    let freed = freed.flat_map(|group| &group.items).map(|item| &item.name);
    outcome.trash =
        trash_contents::trash_usage(project, &freed.chain(retained).cloned().collect::<Vec<_>>())?;
    Ok(outcome)
}

/// Deletes an expired item and returns it; `None` if another process deleted or restored it concurrently. A
/// dry run only returns the item.
fn delete_item(
    project: &Project,
    item: &ExpiredItem,
    dry_run: bool,
) -> Result<Option<ExpiredRow>, lane::Error> {
    let row = ExpiredRow {
        name: item.name.clone(),
        obsolete_since: item.age_start,
        bytes: item.disk_size(&project.store),
    };
    Ok((dry_run || item.delete(project)?).then_some(row))
}

/// Formats an error with its cause in one line.
fn error_text(error: &lane::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error} ({cause})"),
        None => error.to_string(),
    }
}
