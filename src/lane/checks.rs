//! Owns how long it is remembered that checks succeeded on a state: what they depend on besides changes with time.

use std::time::Duration;

use super::Project;
use super::expire::{Old, Spare, Stays, What};
use crate::store::Record;
use crate::store::records::GreenRecord;

/// After this it has to be seen again.
pub(crate) const KEPT: Duration = Duration::from_hours(30 * 24);

/// What was found good too long ago.
pub(super) fn old(project: &Project) -> Old {
    let mut old = Old::default();
    let entries = std::fs::read_dir(project.store.layout().greens()).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries.map(|e| e.path()).collect();
    files.sort();
    for path in files.into_iter().filter(|p| p.extension().is_some_and(|e| e == "toml")) {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        match GreenRecord::find(&path) {
            Ok(Some(green)) if green.at.is_older_than(KEPT) => {
                old.spare.push(Spare { name, at: green.at, what: What::Draft(path) });
            }
            Ok(_) => {}
            Err(e) => old.stays.push(Stays::unreadable(name, &e)),
        }
    }
    old
}
