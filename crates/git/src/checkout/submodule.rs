//! Submodules whose commit a transition changes: the index is updated, and the submodule folders are left to
//! `git submodule update`.

use crate::history::tree_diff::TreeChange;
use crate::repository::worktree_context::WorktreeContext;
use crate::{CommitId, RepoPath};

impl TreeChange {
    /// Returns whether the change moves a submodule from one commit to another.
    pub(crate) fn is_submodule_update(&self) -> bool {
        self.old.is_some_and(crate::history::tree_diff::TreeFile::is_gitlink)
            && self.new.is_some_and(crate::history::tree_diff::TreeFile::is_gitlink)
    }
}

/// Warns about submodules whose folder is at another commit than the worktree's index.
pub(crate) fn warn_stale_submodules(tree: &WorktreeContext<'_>, changes: &[TreeChange]) {
    let is_stale = |change: &&TreeChange| {
        let wanted = change.new.map(|side| CommitId::from_oid(side.oid));
        change.is_submodule_update()
            && submodule_head(tree, &change.path).is_some_and(|head| Some(head) != wanted)
    };
    let names: Vec<String> = changes.iter().filter(is_stale).map(|c| c.path.to_string()).collect();
    if !names.is_empty() {
        (tree.warn)(format!(
            "the folder of submodule {} is unchanged; to update it: git submodule update",
            names.join(", ")
        ));
    }
}

/// Returns the commit of a submodule's folder; none when the folder has no checkout.
fn submodule_head(tree: &WorktreeContext<'_>, path: &RepoPath) -> Option<CommitId> {
    let dir = path.to_fs_path(tree.dir);
    if !dir.join(".git").exists() {
        return None;
    }
    let out =
        tree.repo.program().command_in(&dir).args(["rev-parse", "--verify", "--quiet", "HEAD"]).run().ok()?;
    CommitId::from_hex(out.trimmed_stdout().as_bytes())
}
