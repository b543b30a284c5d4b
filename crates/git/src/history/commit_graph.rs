//! Background creation of git's commit-graph file for a long history without one: with the file, git-proq
//! finds the common ancestors of two branches without reading their commits.

use crate::{Error, Repo};

/// Minimum number of packed objects, about ten thousand commits. Below that, the file has no noticeable
/// effect.
const MIN_PACKED_OBJECTS: u64 = 100_000;

impl Repo {
    /// Returns whether the repository has no commit-graph file and would benefit from one. Git writes none
    /// for a shallow history or one with replaced commits; `core.commitGraph` and `gc.writeCommitGraph` let
    /// the user turn it off.
    pub fn lacks_commit_graph(&self) -> bool {
        let info = self.gix.objects.store_ref().path().join("info");
        let is_enabled = |key: &&str| self.setting_bool(key) != Some(false);
        !info.join("commit-graph").exists()
            && !info.join("commit-graphs/commit-graph-chain").exists()
            && ["core.commitGraph", "gc.writeCommitGraph"].iter().all(is_enabled)
            && self.gix.objects.packed_object_count().is_ok_and(|count| count >= min_packed_objects())
            && self.has_altered_history().is_ok_and(|is_altered| !is_altered)
    }

    /// Starts `git commit-graph write` in the background. Nothing waits for it, and an interrupted run leaves
    /// no partial file in use.
    ///
    /// # Errors
    /// Fails when git cannot be started.
    pub fn start_writing_commit_graph(&self) -> Result<(), Error> {
        self.git().args(["commit-graph", "write", "--reachable", "--no-progress"]).spawn_detached()
    }
}

/// Returns the minimum number of packed objects. Tests set it with `PROQ_TEST_MANY_OBJECTS`.
fn min_packed_objects() -> u64 {
    let from_env = || std::env::var("PROQ_TEST_MANY_OBJECTS").ok().and_then(|value| value.parse().ok());
    cfg!(debug_assertions).then(from_env).flatten().unwrap_or(MIN_PACKED_OBJECTS)
}
