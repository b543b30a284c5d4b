//! Owns checking that git can work in the main checkout: that it has an index.

use super::finding::Finding;
use super::scene::Scene;
use crate::git::Missing;

/// The main checkout's index.
pub(super) fn check(scene: &Scene<'_>) -> Vec<Finding> {
    let repo = &scene.project.repo;
    let is_without = |main: &&std::path::Path| matches!(repo.missing_in(main), Ok(Some(Missing::Index)));
    let gone = repo.main_worktree().filter(is_without).and_then(|main| repo.require_index(main).err());
    let found = gone.map(|e| {
        let why = "what was staged there is gone, and only you know what that was";
        Finding::of_error("checkout", "the main checkout", &e).left(why)
    });
    found.into_iter().collect()
}
