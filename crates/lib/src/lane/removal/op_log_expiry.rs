//! Expiry of the operation log: the oldest operations are deleted first, so that the remaining ones can be
//! undone one by one.

use std::collections::HashSet;
use std::path::Path;

use proq_base::explain::shell_quote_path;
use proq_git::Oid;
use proq_store::Store;
use proq_store::base::id::id_created_at;
use proq_store::base::operation_number::OperationNumber;
use proq_store::locks::lock::LockName;
use proq_store::operations::journal::journal_path;

use crate::lane::context::expiry_item::{ExpiredItem, ExpiryScan, ItemSource, RetainedItem};
use crate::lane::{Error, Project};
use crate::operation::journaled_operation::step::OperationEntry;

/// Prefix of the refs that keep the objects of operations, followed by the operation's id and a number.
const OPERATION_REF_PREFIX: &str = "refs/proq/op/";

/// Returns the operations that ended longer ago than the setting `op.keep`. A retained operation retains all
/// newer ones. The last one always stays, so that no number is used twice.
pub(crate) fn expired_operations(project: &Project) -> ExpiryScan {
    let layout = project.store.layout();
    let mut expired = ExpiryScan::default();
    let mut numbers = layout.operation_numbers();
    numbers.pop();
    for number in numbers {
        match OperationEntry::read(&layout.operation(number)) {
            Err(e) => {
                expired.retained.push(RetainedItem::unreadable(number.to_string(), &e));
                break;
            }
            Ok(None) => {
                let path = layout.operation(number);
                let help = path.exists().then(|| format!("rm {}", shell_quote_path(&path)));
                expired.retained.push(RetainedItem {
                    name: number.to_string(),
                    reason: "it holds nothing".to_owned(),
                    remedy_command: help,
                });
                break;
            }
            Ok(Some(entry)) => {
                let at = entry.end_and_recovered.map_or(entry.header.started_at, |(at, _)| at);
                if !at.is_older_than(project.settings.op_keep) {
                    break;
                }
                expired.expired.push(ExpiredItem {
                    name: number.to_string(),
                    age_start: at,
                    source: ItemSource::Operation(number),
                });
            }
        }
    }
    expired
}

/// Deletes an operation from the log. Its refs and its trace are deleted first: an interrupted deletion is found again by
/// the log entry, but not by the refs alone.
pub(crate) fn delete_operation(project: &Project, number: OperationNumber) -> Result<bool, Error> {
    let _lock = project.store.locks().acquire(&LockName::Store)?;
    let layout = project.store.layout();
    // Delete only the oldest operation: another process may be deleting too.
    if layout.operation_numbers().first() != Some(&number) {
        return Ok(false);
    }
    let Some(entry) = OperationEntry::read(&layout.operation(number))? else { return Ok(false) };
    for name in refs_of_entry(&entry) {
        if let Some(tip) = project.repo.ref_tip(&name)? {
            project.repo.delete_ref(&name, tip, "git-proq: ended long ago")?;
        }
    }
    let trace = layout.operation_trace(Some(number));
    if trace.exists() {
        std::fs::remove_file(&trace).map_err(Error::io("remove", &trace))?;
    }
    let path = layout.operation(number);
    std::fs::remove_file(&path).map_err(Error::io("remove", &path))?;
    Ok(true)
}

/// Returns the refs that keep the commits of an operation in the log.
pub(crate) fn operation_refs(store: &Store, number: OperationNumber) -> Result<Vec<String>, Error> {
    let entry = OperationEntry::read(&store.layout().operation(number))?;
    Ok(entry.as_ref().map(refs_of_entry).unwrap_or_default())
}

/// Returns the names of the refs that keep commits for the operation of this entry.
fn refs_of_entry(entry: &OperationEntry) -> Vec<String> {
    let prefix = format!("{OPERATION_REF_PREFIX}{}-", entry.header.id);
    let moved_refs = entry.steps.iter().filter_map(|planned| planned.step.moved_ref());
    moved_refs.map(|moved| moved.name).filter(|name| name.starts_with(&prefix)).collect()
}

/// Returns the refs of operations that are neither in the log nor running, because nothing of them is in
/// effect, if they are older than the setting `op.keep`.
pub(crate) fn expired_orphan_refs(project: &Project) -> Result<Vec<ExpiredItem>, Error> {
    let mut orphans = Vec::new();
    for (name, tip) in project.repo.refs_with_prefix(OPERATION_REF_PREFIX)? {
        if let Some(at) = operation_id_of_ref(&name).and_then(id_created_at)
            && at.is_older_than(project.settings.op_keep)
        {
            orphans.push(ExpiredItem { name, age_start: at, source: ItemSource::OrphanOperationRef(tip) });
        }
    }
    if !orphans.is_empty() {
        let known_ids = known_operation_ids(&project.store)?;
        orphans.retain(|s| operation_id_of_ref(&s.name).is_some_and(|id| !known_ids.contains(id)));
    }
    Ok(orphans)
}

/// Deletes an orphaned operation ref, unless it belongs to an operation by now or has moved.
pub(crate) fn delete_orphan_ref(project: &Project, name: &str, tip: Oid) -> Result<bool, Error> {
    let _lock = project.store.locks().acquire(&LockName::Store)?;
    let Some(id) = operation_id_of_ref(name) else { return Ok(false) };
    if known_operation_ids(&project.store)?.contains(id) {
        return Ok(false);
    }
    project.repo.delete_ref(name, tip, "git-proq: its operation is gone")?;
    Ok(true)
}

/// Returns the id of the operation that a ref is named after: the part before the last hyphen; none for
/// another name.
fn operation_id_of_ref(name: &str) -> Option<&str> {
    let (id, _number) = name.strip_prefix(OPERATION_REF_PREFIX)?.rsplit_once('-')?;
    Some(id)
}

/// Returns the ids of all operations that are in the log, running, or set aside for the user. Fails when one
/// of them cannot be read, since it may own any ref.
fn known_operation_ids(store: &Store) -> Result<HashSet<String>, Error> {
    let layout = store.layout();
    let paths_in =
        |dir: &Path| std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let journals = paths_in(&layout.scratch_root())
        .chain(paths_in(layout.root()))
        .filter(|path| path.is_dir())
        .map(|dir| journal_path(&dir));
    let log = layout.operation_numbers().into_iter().map(|n| layout.operation(n));
    // The ref of a step is named after the scratch folder of its process.
    let step_ids = paths_in(&layout.scratch_root())
        .filter_map(|dir| Some(format!("step-{}", dir.file_name()?.to_str()?)));
    let mut ids: HashSet<String> = step_ids.collect();
    for file in journals.chain(log) {
        if let Some(entry) = OperationEntry::read(&file)? {
            ids.insert(entry.header.id);
        }
    }
    Ok(ids)
}
