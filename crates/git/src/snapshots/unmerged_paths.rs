//! Handling of unmerged paths when an index is saved: no tree can hold them, but their files hold the user's
//! resolution of the conflict.

use std::path::Path;

use crate::repository::worktree_context::WorktreeContext;
use crate::status::worktree_status::{StatusKind, WorktreeStatus};
use crate::{Error, Oid, RepoPath};

/// Replacement entries for the unmerged paths of an index, to be written to its copy.
pub(crate) struct UnmergedReplacements {
    /// Lines for `update-index --index-info`.
    index_info: Vec<u8>,
}

impl UnmergedReplacements {
    /// Fails if a path is unmerged; otherwise returns no replacement entries.
    pub fn refuse_unmerged(
        tree: &WorktreeContext<'_>,
        _: &Path,
        dirty_state: &mut WorktreeStatus,
    ) -> Result<UnmergedReplacements, Error> {
        let paths = dirty_state.unmerged();
        match paths.is_empty() {
            true => Ok(UnmergedReplacements { index_info: Vec::new() }),
            false => Err(Error::Unmerged { dir: tree.dir.to_owned(), unmerged_paths: paths }),
        }
    }

    /// Returns replacement entries that give unmerged paths our side of the conflict. Changes their kind in
    /// `dirty_state` accordingly: a path without our side becomes untracked, or a staged deletion.
    pub(crate) fn replace_with_ours(
        tree: &WorktreeContext<'_>,
        index: &Path,
        dirty_state: &mut WorktreeStatus,
    ) -> Result<UnmergedReplacements, Error> {
        let mut index_info = Vec::new();
        if dirty_state.unmerged().is_empty() {
            return Ok(UnmergedReplacements { index_info });
        }
        let command = tree.repo.git_in(tree.dir).args(["ls-files", "--unmerged", "--full-name", "-z"]);
        let out = command.use_index(index).run()?;
        let mut our_paths = Vec::new();
        for (mode_and_id, path) in out.nul_separated_fields().filter_map(parse_our_stage) {
            our_paths.push(RepoPath::new(path));
            index_info.extend([mode_and_id, b"\t", path, b"\0"].concat());
        }
        for entry in dirty_state.entries.iter_mut().filter(|entry| entry.kind == StatusKind::Unmerged) {
            let deleted = entry.path.to_fs_path(tree.dir).symlink_metadata().is_err();
            let is_ours = our_paths.contains(&entry.path);
            entry.kind = match is_ours {
                // The file is not clean: no known tree has it.
                true => StatusKind::Tracked { staged: true, unstaged: true, deleted },
                false if deleted => StatusKind::Tracked { staged: true, unstaged: false, deleted: false },
                false => StatusKind::Untracked,
            };
            if !is_ours {
                let null_id = Oid(tree.repo.gix.object_hash().null()).to_string();
                index_info.extend([b"0 ", null_id.as_bytes(), b"\t", entry.path.as_bytes(), b"\0"].concat());
            }
        }
        Ok(UnmergedReplacements { index_info })
    }

    /// Writes the replacement entries to `index`, a copy.
    pub(crate) fn write_to_index(self, tree: &WorktreeContext<'_>, index: &Path) -> Result<(), Error> {
        if self.index_info.is_empty() {
            return Ok(());
        }
        let command = tree.repo.git_in(tree.dir).args(["update-index", "-z", "--index-info"]);
        command.use_index(index).input(self.index_info).mutating().run().map(drop)
    }
}

/// Returns mode and id, and the path, of a line `<mode> <id> 2\t<path>`, which is our side of a conflict;
/// none for another stage.
fn parse_our_stage(field: &[u8]) -> Option<(&[u8], &[u8])> {
    let tab = field.iter().position(|b| *b == b'\t')?;
    let side = field[..tab].strip_suffix(b" 2")?;
    Some((side, &field[tab + 1..]))
}
