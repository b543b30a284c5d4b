//! Owns what an index says by itself, read in process. Where it is of a kind that is not known here there is no answer, and git
//! is asked.

use std::path::Path;

use gix::index::State;
use gix::index::decode::Options;
use gix::index::entry::{Flags, Stage};

use super::{Oid, Repo, RepoPath};

/// An index that is no part of another one, and names each file by itself.
pub(super) struct Facts(State);

impl Facts {
    /// Reads an index file. None where it is not there, cannot be read, is split or sparse.
    pub(super) fn of(repo: &Repo, file: &Path) -> Option<Facts> {
        let (bytes, kind) = (std::fs::read(file).ok()?, repo.gix.object_hash());
        // When it was written does not matter here.
        let time = State::new(kind).timestamp();
        let (state, _) = State::from_bytes(&bytes, time, kind, Options::default()).ok()?;
        (state.link().is_none() && !state.is_sparse()).then_some(Facts(state))
    }

    /// The tree that `git write-tree` makes of it, where that was made and noted before.
    pub(super) fn tree(&self, repo: &Repo) -> Option<Oid> {
        let cached = self.0.tree()?;
        let whole = cached.num_entries == u32::try_from(self.0.entries().len()).ok();
        let plain = |e: &gix::index::Entry| e.stage() == Stage::Unconflicted && !is_announced(e);
        let id = Oid(cached.id);
        (whole && self.0.entries().iter().all(plain) && repo.size_of(id).is_some()).then_some(id)
    }

    /// Files that were announced in it, with `git add -N`.
    pub(super) fn announced(&self) -> Vec<RepoPath> {
        announced(&self.0)
    }

    /// Whether it has a record of resolved conflicts.
    pub(super) fn has_resolved(&self) -> bool {
        self.0.resolve_undo().is_some()
    }
}

/// Files that were announced in an index, with `git add -N`.
pub(super) fn announced(index: &State) -> Vec<RepoPath> {
    let all = index.entries().iter().filter(|e| is_announced(e));
    all.map(|e| RepoPath::new(e.path(index).to_vec())).collect()
}

fn is_announced(entry: &gix::index::Entry) -> bool {
    entry.flags.contains(Flags::INTENT_TO_ADD)
}

#[cfg(test)]
mod tests {
    use super::super::place::Place;
    use super::*;

    /// What may happen to an index, and whether git is asked then.
    const DEEDS: &[(&str, bool)] = &[
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
    fn what_an_index_says_is_what_git_says() {
        for (deed, asked) in DEEDS {
            let place = Place::new();
            place.sh(
                "repo",
                "mkdir -p d e; echo a >a; echo l >d/link; echo e >e/e; git add -A; git commit -qm first
                git checkout -qb other; echo other >a; git commit -qam other
                git checkout -q main; echo main >a; git commit -qam main",
            );
            place.sh("repo", &format!("({deed}) >/dev/null 2>&1 || true"));
            let repo = Repo::discover(&place.top.join("repo")).unwrap();
            let facts = Facts::of(&repo, &place.top.join("repo/.git/index"));
            let said = facts.as_ref().and_then(|facts| facts.tree(&repo));
            assert_eq!(said.is_none(), *asked, "{deed}");
            if let Some(tree) = said {
                assert_eq!(tree.to_string(), place.sh("repo", "git write-tree"), "{deed}");
            }
            let Some(facts) = facts else { continue };
            let announced = place.sh("repo", "git diff-files --name-only --diff-filter=A");
            let found: Vec<String> = facts.announced().iter().map(ToString::to_string).collect();
            assert_eq!(found, announced.lines().collect::<Vec<_>>(), "{deed}");
            let resolved = place.sh("repo", "git ls-files --resolve-undo");
            assert_eq!(facts.has_resolved(), !resolved.is_empty(), "{deed}");
        }
    }
}
