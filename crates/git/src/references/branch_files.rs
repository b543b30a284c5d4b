//! Files in which git keeps branches, for those who watch them.

use std::path::PathBuf;

use crate::Repo;

/// Files in which a branch changes, by the form of the repository's refs. Not all of them exist.
#[derive(Debug)]
pub struct BranchFiles {
    /// Folder tree with a file for each branch.
    pub loose: PathBuf,
    /// File with all branches that have no file of their own.
    pub packed: PathBuf,
    /// Folder of the files with all refs, in a repository with reftables.
    pub tables: PathBuf,
}

impl Repo {
    /// Returns the paths of the files in which branches change.
    pub fn branch_files(&self) -> BranchFiles {
        let dir = self.common_dir();
        BranchFiles {
            loose: dir.join("refs/heads"),
            packed: dir.join("packed-refs"),
            tables: dir.join("reftable"),
        }
    }
}
