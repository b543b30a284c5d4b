//! Contents and size of the trash, with the folders in it that wait for new lanes.

use proq_base::lane_name::LaneName;
use proq_store::base::file_tree::size_on_disk;
use proq_store::base::record::Record;
use proq_store::paths::layout::Layout;
use proq_store::records::trash::TrashRecord;
use serde::Serialize;

use crate::lane::worktree::pool;
use crate::lane::worktree::trash::{entry_name, is_part_of_entry, list_entries};
use crate::lane::{Error, Project};

/// Contents and size of the trash.
#[derive(Debug, Default, Serialize)]
pub struct TrashUsage {
    /// Number of entries.
    pub count: usize,
    /// Disk usage of the entries, in bytes.
    pub bytes: u64,
    /// Lanes whose folders wait to be reused by new lanes.
    #[serde(rename = "waiting")]
    pub reusable_folders: Vec<LaneName>,
}

/// Returns the contents and size of the trash, without the entries named in `except`.
///
/// # Errors
/// Fails if the trash cannot be read.
pub fn trash_usage(project: &Project, except: &[String]) -> Result<TrashUsage, Error> {
    let (mut out, mut dirs) = (TrashUsage::default(), list_entries(&project.store)?);
    dirs.retain(|dir| !except.contains(&entry_name(dir)));
    for dir in &dirs {
        let record = TrashRecord::load_if_exists(&Layout::trash_record_in(dir)).ok().flatten();
        let outside = record.and_then(|record| record.current_path).filter(|w| !is_part_of_entry(w, dir));
        out.bytes += size_on_disk(dir) + outside.as_deref().map_or(0, size_on_disk);
    }
    Ok(TrashUsage { count: dirs.len(), reusable_folders: pool::available_lanes(project)?, ..out })
}

/// Returns a clause that names the lanes whose folders wait for reuse; empty without any.
pub fn describe_waiting_folders(waiting: &[LaneName]) -> String {
    match waiting {
        [] => String::new(),
        [lane] => format!("; the folder of '{lane}' is kept for a new lane"),
        lanes => format!("; the folders of '{}' are kept for new lanes", lanes.join("', '")),
    }
}
