//! Commits, their ancestry, and the differences of their trees.

pub(crate) mod commit;
pub(crate) mod commit_description;
pub(crate) mod commit_graph;
pub(crate) mod connectivity;
pub(crate) mod deletions;
pub(crate) mod fork_points;
pub(crate) mod graph;
pub(crate) mod partial_clone;
pub(crate) mod signature;
pub(crate) mod touched_paths;
pub(crate) mod tree_diff;
pub(crate) mod tree_edit;
