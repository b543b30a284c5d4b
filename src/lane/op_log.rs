//! Owns how long operations stay in the log: the oldest go first, so that what is left can be taken back one by one.

use super::expire::{Old, Spare, Stays, What};
use super::{Error, Project};
use crate::store::{Entry, LockName};

/// The ref that keeps the objects of an operation.
fn keeper(number: u64) -> String {
    format!("refs/proq/op/{number}")
}

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
                let help = path.exists().then(|| format!("rm '{}'", path.display()));
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

/// Removes one from the log. Its ref goes first: without it, it is found again; a ref alone would not be.
pub(super) fn free(project: &Project, number: u64) -> Result<bool, Error> {
    let _lock = project.store.locks().take(&LockName::Store)?;
    let layout = project.store.layout();
    // Only ever from the end: another process may be at the same.
    if layout.operation_numbers().first() != Some(&number) {
        return Ok(false);
    }
    let name = keeper(number);
    if let Some(tip) = project.repo.ref_tip(&name)? {
        project.repo.delete_ref(&name, tip, "git-proq: ended long ago")?;
    }
    let path = layout.operation(number);
    std::fs::remove_file(&path).map_err(Error::io("remove", &path))?;
    Ok(true)
}
