//! Verbatim restore of edited files after HEAD has moved: git would write them as its filters convert them,
//! not with the bytes that the user had.

use std::path::{Path, PathBuf};

use proq_base::fail_points;

use super::clear::SnapshotFiles;
use crate::base::file_copy::is_prefix;
use crate::base::path_list;
use crate::checkout::quarantine::Quarantine;
use crate::history::tree_diff::{TreeChange, TreeFile};
use crate::index::refresh_index::clear_entry_stats;
use crate::repository::worktree_context::WorktreeContext;
use crate::{Error, RepoPath};

/// Name of the folder, in a step's scratch folder, for copies of parked files and the list of replaced files.
const VERBATIM_DIR: &str = "as-edited";

/// Replacement of files that git wrote by byte-for-byte copies of the user's parked files, where the merge
/// left the content unchanged.
pub(crate) struct VerbatimRestore<'a> {
    tree: &'a WorktreeContext<'a>,
    parked: &'a Quarantine,
    copies: Quarantine,
}

impl<'a> VerbatimRestore<'a> {
    /// Prepares a verbatim restore from the quarantine `parked`, whose files are copied and not moved.
    pub fn open(tree: &'a WorktreeContext<'a>, parked: &'a Quarantine) -> Result<VerbatimRestore<'a>, Error> {
        Ok(VerbatimRestore { tree, parked, copies: Quarantine::open(&tree.scratch.join(VERBATIM_DIR))? })
    }

    /// Replaces files that git wrote by copies of the parked ones, where the bytes differ. It covers those of
    /// `changes` in which the merged content equals the snapshot's. Then clears the stat data of these files
    /// in the index file `index`.
    pub(crate) fn replace_converted_files(
        &self,
        snapshot_files: &SnapshotFiles,
        changes: &[TreeChange],
        index: &Path,
    ) -> Result<(), Error> {
        let has_other_bytes = |(path, _): &(RepoPath, TreeFile)| {
            let (written_file, parked_file) = (path.to_fs_path(self.tree.dir), self.parked.file_path(path));
            self.parked.contains(path) && has_same_bytes(&written_file, &parked_file) == Some(false)
        };
        let edited = changes
            .iter()
            .filter(|c| snapshot_files.tracked.iter().any(|t| t.path == c.path && t.new == c.new));
        let edited = edited.filter_map(|c| Some((c.path.clone(), c.new?)));
        let files: Vec<(RepoPath, TreeFile)> = edited.filter(has_other_bytes).collect();
        if files.is_empty() {
            return Ok(());
        }
        let paths: Vec<RepoPath> = files.iter().map(|(path, _)| path.clone()).collect();
        path_list::write_path_list(&self.replaced_list_path(), &paths)?;
        for (path, _) in &files {
            self.copies.copy_from_other(self.parked, path)?;
            self.copies.move_out_replacing(self.tree.dir, path)?;
        }
        fail_points::hit("restore.as-edited");
        clear_entry_stats(self.tree, index, &files)
    }

    /// Removes the copies that `VerbatimRestore::replace_converted_files` wrote to the worktree, so that an
    /// undo does not treat them as the user's edits.
    pub(crate) fn remove_copies(&self) -> Result<(), Error> {
        let files = path_list::read_path_list(&self.replaced_list_path())?;
        self.copies.remove_temp_copies(self.tree.dir, files.iter());
        for path in &files {
            let file = path.to_fs_path(self.tree.dir);
            if has_same_bytes(&file, &self.parked.file_path(path)) == Some(true) {
                std::fs::remove_file(&file).map_err(Error::io("remove", &file))?;
            }
        }
        Ok(())
    }

    /// Returns the path of the list of replaced files.
    fn replaced_list_path(&self) -> PathBuf {
        self.tree.scratch.join(VERBATIM_DIR).join("list")
    }
}

/// Returns whether two files have the same bytes; `None` if one of them is not a regular file or cannot be
/// read.
fn has_same_bytes(first: &Path, second: &Path) -> Option<bool> {
    let (a, b) = (first.symlink_metadata().ok()?, second.symlink_metadata().ok()?);
    if !a.is_file() || !b.is_file() {
        return None;
    }
    if a.len() == b.len() { is_prefix(first, second).ok() } else { Some(false) }
}
