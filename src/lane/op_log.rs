//! Owns how long operations stay in the log: the oldest go first, so that what is left can be taken back one by one.

use std::collections::HashSet;
use std::path::Path;

use super::expire::{Old, Spare, Stays, What};
use super::{Error, Project};
use crate::explain::quoted_path;
use crate::git::Oid;
use crate::store::records::Step;
use crate::store::{Entry, Journal, LockName, made_at};

/// Below this are the refs that keep the objects of operations, each named after its own.
const KEEPERS: &str = "refs/proq/op/";

/// The operations that ended longer ago than the setting `op.keep`. One that is kept keeps all that are newer, and the last
/// one stays, so that no number is given twice.
pub(super) fn old(project: &Project) -> Old {
    let layout = project.store.layout();
    let mut old = Old::default();
    let mut numbers = layout.operation_numbers();
    numbers.pop();
    for number in numbers {
        match Entry::read(&layout.operation(number)) {
            Err(e) => {
                old.stays.push(Stays::unreadable(number.to_string(), &e));
                break;
            }
            Ok(None) => {
                let path = layout.operation(number);
                let help = path.exists().then(|| format!("rm {}", quoted_path(&path)));
                old.stays.push(Stays { name: number.to_string(), why: "it holds nothing".to_owned(), help });
                break;
            }
            Ok(Some(entry)) => {
                let at = entry.end.map_or(entry.header.at, |(at, _)| at);
                if !at.is_older_than(project.settings.op_keep) {
                    break;
                }
                old.spare.push(Spare { name: number.to_string(), at, what: What::Operation(number) });
            }
        }
    }
    old
}

/// Removes one from the log. Its refs go first: without them it is found again; they alone would not be.
pub(super) fn free(project: &Project, number: u64) -> Result<bool, Error> {
    let _lock = project.store.locks().take(&LockName::Store)?;
    let layout = project.store.layout();
    // Only ever from the end: another process may be at the same.
    if layout.operation_numbers().first() != Some(&number) {
        return Ok(false);
    }
    let Some(entry) = Entry::read(&layout.operation(number))? else { return Ok(false) };
    for name in keepers_of(entry) {
        if let Some(tip) = project.repo.ref_tip(&name)? {
            project.repo.delete_ref(&name, tip, "git-proq: ended long ago")?;
        }
    }
    let path = layout.operation(number);
    std::fs::remove_file(&path).map_err(Error::io("remove", &path))?;
    Ok(true)
}

/// The refs that an operation of the log keeps commits by.
pub(super) fn keepers(project: &Project, number: u64) -> Result<Vec<String>, Error> {
    let entry = Entry::read(&project.store.layout().operation(number))?;
    Ok(entry.map(keepers_of).unwrap_or_default())
}

fn keepers_of(entry: Entry) -> Vec<String> {
    let start = format!("{KEEPERS}{}-", entry.header.id);
    let name = |step: Step| match step {
        Step::Anchor { name, .. } if name.starts_with(&start) => Some(name),
        _ => None,
    };
    entry.steps.into_iter().filter_map(|planned| name(planned.step)).collect()
}

/// The refs of operations that are neither in the log nor under way, because nothing of them stands, once they are older
/// than the setting `op.keep`.
pub(super) fn ownerless(project: &Project) -> Result<Vec<Spare>, Error> {
    let mut spare = Vec::new();
    for (name, tip) in project.repo.refs_below(KEEPERS)? {
        if let Some(at) = owner(&name).and_then(made_at)
            && at.is_older_than(project.settings.op_keep)
        {
            spare.push(Spare { name, at, what: What::Keeper(tip) });
        }
    }
    if !spare.is_empty() {
        let owners = owners(project)?;
        spare.retain(|s| owner(&s.name).is_some_and(|id| !owners.contains(id)));
    }
    Ok(spare)
}

/// Deletes one of those, unless it has got an owner or has moved.
pub(super) fn free_ownerless(project: &Project, name: &str, tip: Oid) -> Result<bool, Error> {
    let _lock = project.store.locks().take(&LockName::Store)?;
    let Some(id) = owner(name) else { return Ok(false) };
    if owners(project)?.contains(id) {
        return Ok(false);
    }
    project.repo.delete_ref(name, tip, "git-proq: its operation is gone")?;
    Ok(true)
}

/// The id of the operation that a ref is named after: what comes before its number there.
fn owner(name: &str) -> Option<&str> {
    let (id, _number) = name.strip_prefix(KEEPERS)?.rsplit_once('-')?;
    Some(id)
}

/// The ids of all operations in the log, under way, and put aside for a person. One that cannot be read may own any.
fn owners(project: &Project) -> Result<HashSet<String>, Error> {
    let layout = project.store.layout();
    let below = |dir: &Path| std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let journals = below(&layout.work())
        .chain(below(layout.root()))
        .filter(|path| path.is_dir())
        .map(|dir| Journal::file_in(&dir));
    let log = layout.operation_numbers().into_iter().map(|n| layout.operation(n));
    // A step's own ref is named after the folder of its process.
    let work = below(&layout.work()).filter_map(|dir| Some(format!("step-{}", dir.file_name()?.to_str()?)));
    let mut ids: HashSet<String> = work.collect();
    for file in journals.chain(log) {
        if let Some(entry) = Entry::read(&file)? {
            ids.insert(entry.header.id);
        }
    }
    Ok(ids)
}
