//! Checkouts in unusual setups.

use crate::Sandbox;

/// Creates a sparse checkout that excludes `out`, with lane `one`; the script `dirty` may restore files below
/// `out`.
pub fn sandbox_with_sparse_checkout(lane: &str, dirty: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("mkdir out in; echo a >out/a; echo b >out/b; echo c >in/c; ln -s in link; echo x >x");
    sandbox.commit_all("base");
    sandbox.lane_with_commit("one", lane);
    sandbox.sh("git sparse-checkout set --no-cone '/*' '!/out/'");
    assert!(!sandbox.repo.join("out").exists());
    sandbox.sh(dirty);
    sandbox
}
