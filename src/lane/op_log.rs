//! Owns how long operations stay in the log: the oldest go first, so that what is left can be taken back one by one.

use super::expire::{Old, Spare, Stays, What};
use super::{Error, Project};
use crate::store::records::Step;
use crate::store::{Entry, LockName};

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

/// Removes one from the log. Its refs go first: without them it is found again; they alone would not be.
pub(super) fn free(project: &Project, number: u64) -> Result<bool, Error> {
    let _lock = project.store.locks().take(&LockName::Store)?;
    let layout = project.store.layout();
    // Only ever from the end: another process may be at the same.
    if layout.operation_numbers().first() != Some(&number) {
        return Ok(false);
    }
    let Some(entry) = Entry::read(&layout.operation(number))? else { return Ok(false) };
    let start = format!("{KEEPERS}{}-", entry.header.id);
    for planned in entry.steps {
        let Step::Anchor { name, .. } = planned.step else { continue };
        if let (true, Some(tip)) = (name.starts_with(&start), project.repo.ref_tip(&name)?) {
            project.repo.delete_ref(&name, tip, "git-proq: ended long ago")?;
        }
    }
    let path = layout.operation(number);
    std::fs::remove_file(&path).map_err(Error::io("remove", &path))?;
    Ok(true)
}
