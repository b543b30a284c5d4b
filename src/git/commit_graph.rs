//! Owns having git write its graph of commits, in the background, where a long history has none: with it, what two branches have
//! in common is found without reading their commits.

use super::{Error, Repo};

/// As many objects in packs stand for some ten thousand commits. With fewer there is nothing to be gained that anybody notices.
const MANY: u64 = 100_000;

impl Repo {
    /// Whether there is no graph of commits, and one would be of use. Git writes none of a history that is shallow or has commits
    /// in others' places; `core.commitGraph` and `gc.writeCommitGraph` say whether the user wants one.
    pub(crate) fn lacks_commit_graph(&self) -> bool {
        let info = self.gix.objects.store_ref().path().join("info");
        let is_wanted = |key: &&str| self.setting_bool(key) != Some(false);
        !info.join("commit-graph").exists()
            && !info.join("commit-graphs/commit-graph-chain").exists()
            && ["core.commitGraph", "gc.writeCommitGraph"].iter().all(is_wanted)
            && self.gix.objects.packed_object_count().is_ok_and(|count| count >= many())
            && self.has_made_up_history().is_ok_and(|made_up| !made_up)
    }

    /// Has git begin to write one. Nobody waits for it; cut short, it leaves nothing that counts.
    ///
    /// # Errors
    /// When git cannot be started.
    pub(crate) fn begin_commit_graph(&self) -> Result<(), Error> {
        self.git().args(["commit-graph", "write", "--reachable", "--no-progress"]).leave_running()
    }
}

/// How many objects are many. A test says it with `PROQ_TEST_MANY_OBJECTS`.
fn many() -> u64 {
    let said = || std::env::var("PROQ_TEST_MANY_OBJECTS").ok().and_then(|said| said.parse().ok());
    cfg!(debug_assertions).then(said).flatten().unwrap_or(MANY)
}
