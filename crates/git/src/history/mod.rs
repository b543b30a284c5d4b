//! Commits, their ancestry, and the differences of their trees.

pub mod commit;
pub mod commit_description;
pub mod commit_graph;
pub mod connectivity;
pub mod deletions;
pub mod fork_points;
pub mod graph;
pub mod partial_clone;
pub mod signature;
pub mod touched_paths;
pub mod tree_diff;
pub mod tree_edit;
