//! In-process reader for complete indexes. A split or sparse index is not read; the caller then runs git.

use std::path::Path;

use gix::index::State;
use gix::index::decode::Options;
use gix::index::entry::{Flags, Stage};

use crate::{Repo, RepoPath, TreeId};

/// Index that is not split and has an entry for each file.
pub(crate) struct FullIndex(State);

impl FullIndex {
    /// Reads an index file. Returns `None` if it does not exist, cannot be read, is split or sparse.
    pub fn read(repo: &Repo, file: &Path) -> Option<FullIndex> {
        let (bytes, kind) = (std::fs::read(file).ok()?, repo.gix.object_hash());
        // The modification time does not matter here.
        let time = State::new(kind).timestamp();
        let (state, _) = State::from_bytes(&bytes, time, kind, Options::default()).ok()?;
        (state.link().is_none() && !state.is_sparse()).then_some(FullIndex(state))
    }

    /// Returns the tree that `git write-tree` creates from the index, if the index has it cached and the tree
    /// object exists.
    pub(crate) fn cached_tree(&self, repo: &Repo) -> Option<TreeId> {
        let cached = self.0.tree()?;
        let covers_all = cached.num_entries == u32::try_from(self.0.entries().len()).ok();
        let is_plain = |e: &gix::index::Entry| e.stage() == Stage::Unconflicted && !is_intent_to_add(e);
        let id = TreeId(cached.id);
        (covers_all && self.0.entries().iter().all(is_plain) && repo.object_size(id).is_some()).then_some(id)
    }

    /// Returns the paths that were added with `git add -N`.
    pub fn intent_to_add_paths(&self) -> Vec<RepoPath> {
        list_intent_to_add(&self.0)
    }

    /// Returns whether the index records resolved conflicts.
    pub(crate) fn has_resolve_undo(&self) -> bool {
        self.0.resolve_undo().is_some()
    }
}

/// Returns the paths of an index that were added with `git add -N`.
pub(crate) fn list_intent_to_add(index: &State) -> Vec<RepoPath> {
    let intent_entries = index.entries().iter().filter(|e| is_intent_to_add(e));
    intent_entries.map(|e| RepoPath::new(e.path(index).to_vec())).collect()
}

fn is_intent_to_add(entry: &gix::index::Entry) -> bool {
    entry.flags.contains(Flags::INTENT_TO_ADD)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::test_repo::TestRepo;

    /// Scripts that change an index, and whether git has to be run afterwards.
    const INDEX_SCRIPTS: &[(&str, bool)] = &[
        ("true", false),
        ("echo more >a", false),
        ("rm d/link", false),
        ("echo more >a; git add a", true),
        ("echo more >a; git add a; git write-tree", false),
        ("git rm -q --cached a", true),
        ("echo n >n; git add -N n", true),
        ("echo n >n; git add -N n; git write-tree", true),
        ("git update-index --assume-unchanged a", true),
        ("git update-index --skip-worktree a", true),
        ("git update-index --index-version 4", false),
        ("git update-index --split-index", true),
        ("git sparse-checkout set --cone --sparse-index e", true),
        ("git merge -q other", true),
        ("git merge -q other; echo both >a; git add a", true),
        ("git merge -q other; echo both >a; git add a; git write-tree", false),
    ];

    #[test]
    fn agrees_with_git_about_index() {
        for (deed, needs_git) in INDEX_SCRIPTS {
            let place = TestRepo::new();
            place.run_script(
                "repo",
                "mkdir -p d e; echo a >a; echo l >d/link; echo e >e/e; git add -A; git commit -qm first
                git checkout -qb other; echo other >a; git commit -qam other
                git checkout -q main; echo main >a; git commit -qam main",
            );
            place.run_script("repo", &format!("({deed}) >/dev/null 2>&1 || true"));
            let repo = Repo::discover(&place.parent_dir.join("repo")).unwrap();
            let index = FullIndex::read(&repo, &place.parent_dir.join("repo/.git/index"));
            let cached_tree = index.as_ref().and_then(|facts| facts.cached_tree(&repo));
            assert_eq!(cached_tree.is_none(), *needs_git, "{deed}");
            if let Some(tree) = cached_tree {
                assert_eq!(tree.to_string(), place.run_script("repo", "git write-tree"), "{deed}");
            }
            let Some(index) = index else { continue };
            let announced = place.run_script("repo", "git diff-files --name-only --diff-filter=A");
            let found: Vec<String> = index.intent_to_add_paths().iter().map(ToString::to_string).collect();
            assert_eq!(found, announced.lines().collect::<Vec<_>>(), "{deed}");
            let resolved = place.run_script("repo", "git ls-files --resolve-undo");
            assert_eq!(index.has_resolve_undo(), !resolved.is_empty(), "{deed}");
        }
    }
}
