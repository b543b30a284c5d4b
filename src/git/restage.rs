//! Owns the index of a worktree to which a snapshot came back though HEAD had moved.

use std::collections::HashSet;
use std::path::Path;

use super::flags::{self, Flagged};
use super::transition::Tree;
use super::{Error, Oid, RepoPath, Snapshot};

/// Gives the index file `next` the tree `staged`, and as far as it has the files, or has room for them, the flags and the announced
/// files of the snapshot's `raw_index`. What is `shown` against the patterns of a sparse checkout is as it was there.
pub(super) fn restage(
    tree: &Tree<'_>,
    snapshot: &Snapshot,
    (next, staged): (&Path, Oid),
    raw_index: &Path,
    shown: &HashSet<&RepoPath>,
) -> Result<(), Error> {
    let repo = tree.repo;
    let call = || repo.git_in(tree.dir).index(next);
    call().args(["read-tree", "-i", "-m"]).arg(staged.to_string()).changes().run()?;
    flags::announce(repo, next, raw_index, &snapshot.intent_to_add)?;
    let mut flagged = flags::flagged_in(repo, tree.dir, raw_index)?;
    if !flagged.is_empty() && flags::is_sparse_now(repo, tree.dir, &tree.git_dir)? {
        // What is skipped there the patterns say.
        for entry in &mut flagged {
            entry.skipped = false;
        }
    }
    let skipped = flags::flagged_in(repo, tree.dir, next)?.into_iter().filter(|f| f.skipped);
    let skipped: Vec<RepoPath> = skipped.map(|f| f.path).filter(|path| shown.contains(path)).collect();
    flags::clear_flags(repo, tree.dir, next, &skipped)?;
    let put_back = snapshot.put_back.iter().filter(|path| shown.contains(path));
    flagged.extend(put_back.map(|path| Flagged { path: path.clone(), assumed: false, skipped: true }));
    flags::flag_again(repo, tree.dir, next, &flagged)?;
    flags::refresh(repo, tree.dir, next)
}
