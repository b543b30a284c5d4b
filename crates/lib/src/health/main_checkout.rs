//! Health check of the main checkout: git can work in it only if it has an index.

use proq_git::worktrees::broken_worktree::WorktreeDefect;

use super::check_context::CheckContext;
use super::finding::Finding;

/// Checks that the main checkout has an index.
pub(super) fn check(context: &CheckContext<'_>) -> Vec<Finding> {
    let repo = &context.project.repo;
    let lacks_index = |main: &&std::path::Path| {
        matches!(repo.find_worktree_defect(main), Ok(Some(WorktreeDefect::NoIndex)))
    };
    let index_error =
        repo.main_worktree().filter(lacks_index).and_then(|main| repo.require_index(main).err());
    let found = index_error.map(|e| {
        let reason = "what was staged there is gone, and only you know what that was";
        Finding::from_error("checkout", "the main checkout", &e).with_left_reason(reason)
    });
    found.into_iter().collect()
}
