//! Exact comparison of an index with a tree, by the index's cached trees. Where `git add` or `git stash pop`
//! has invalidated a cached tree, the tree itself is read.

use gix::bstr::ByteSlice;
use gix::hash::ObjectId;
use gix::index::extension::Tree;

use super::RawIndex;
use crate::repository::tree_reader::TreeReader;

/// Maximum number of trees read; beyond that, git is no slower.
const MAX_TREES_READ: usize = 200;

impl RawIndex {
    /// Returns whether the index equals the tree `id` exactly. Returns false also if the comparison would
    /// read too many trees or cannot read one.
    pub(crate) fn equals_tree(&self, id: ObjectId, reader: impl FnOnce() -> TreeReader) -> bool {
        if self.matches_cached_root(id) {
            return true;
        }
        let Some(cached_trees) = self.cached_trees() else { return false };
        let mut comparison = TreeComparison { index: self, reader: reader(), trees_left: MAX_TREES_READ };
        comparison.folder_equals_tree(&mut Vec::new(), self.entry_offsets(), Some(&cached_trees), id)
    }
}

/// Comparison of index entries with trees.
struct TreeComparison<'a> {
    index: &'a RawIndex,
    reader: TreeReader,
    /// Number of trees that may still be read.
    trees_left: usize,
}

impl TreeComparison<'_> {
    /// Returns whether `entry_offsets`, all entries below the folder `path`, equal the tree `tree_id`.
    /// `cached` is the index's cached tree of that folder.
    fn folder_equals_tree(
        &mut self,
        path: &mut Vec<u8>,
        entry_offsets: &[u32],
        cached: Option<&Tree>,
        tree_id: ObjectId,
    ) -> bool {
        let count = u32::try_from(entry_offsets.len()).ok();
        if cached.is_some_and(|cached_tree| {
            cached_tree.id == tree_id && cached_tree.num_entries.is_some() && cached_tree.num_entries == count
        }) {
            return true;
        }
        let Some(trees_left) = self.trees_left.checked_sub(1) else { return false };
        self.trees_left = trees_left;
        let Ok(items) = self.reader.tree(tree_id) else { return false };
        let (prefix_len, mut matched) = (path.len(), 0);
        for (name, item) in items.iter() {
            path.truncate(prefix_len);
            path.extend_from_slice(name);
            let is_equal = if item.is_tree() {
                path.push(b'/');
                let following = &entry_offsets
                    [entry_offsets.partition_point(|at| self.index.path(*at) < path.as_slice())..];
                let children = &following[..self.index.count_with_prefix(following, path)];
                matched += children.len();
                let cached_child = cached.and_then(|cached_parent| {
                    cached_parent.children.iter().find(|child| child.name.as_slice() == name.as_bytes())
                });
                !children.is_empty() && self.folder_equals_tree(path, children, cached_child, item.id)
            } else {
                matched += 1;
                let entry = self.index.find(path).filter(|entry| !entry.is_conflict_stage());
                entry.is_some_and(|entry| {
                    entry.mode() == u32::from(item.mode.value()) && entry.id() == item.id.as_slice()
                })
            };
            if !is_equal {
                return false;
            }
        }
        path.truncate(prefix_len);
        matched == entry_offsets.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Repo;
    use crate::base::test_repo::TestRepo;

    /// Scripts that change an index, each with whether it equals HEAD's tree and git-proq can detect that
    /// without git.
    const INDEX_SCRIPTS: &[(&str, bool)] = &[
        ("true", true),
        ("echo more >>a; git add a; git restore --staged a", true),
        ("echo more >>d/e/f; git add -A; git reset -q d; git update-index -q --refresh", true),
        ("echo more >>d/e/f; git stash -q; git stash pop -q", true),
        ("mkdir -p new/in; echo >new/in/f; echo >d/z; git add -A; git rm -rq --cached new d/z", true),
        ("git rm -rq --cached d; git reset -q --mixed; touch x/1; git add x/1", true),
        ("echo more >>a; git add a", false),
        ("git rm -q --cached x/1", false),
        ("git rm -rq --cached x", false),
        ("echo >d/e/g; git add d/e/g", false),
        ("echo >d0; git add -N d0", false),
        ("git update-index --chmod=+x a", false),
        ("git rm -q --cached a; rm a; ln -s b a; git add a", false),
        ("git rm -q --cached d.x; mkdir d.y; mv d.x d.y; git add -A", false),
        ("git update-index --cacheinfo 160000,$(git rev-parse HEAD),d/e/f", false),
        (
            "git checkout -q -b other; echo o >a; git commit -qam o; git checkout -q main; echo m >a; git commit -qam m; git merge -q other",
            false,
        ),
    ];

    #[test]
    fn equals_tree_only_where_git_agrees() {
        for (script, expected) in INDEX_SCRIPTS {
            let test_repo = TestRepo::new();
            test_repo.run_script("repo", "mkdir -p d/e x; for n in a b d/c d/e/f d.x d-h x/1; do echo $n >$n; done; git add -A; git commit -qm first");
            test_repo.run_script("repo", &format!("({script}) >/dev/null 2>&1 || true"));
            let repo = Repo::discover(&test_repo.parent_dir.join("repo")).unwrap();
            let tree =
                ObjectId::from_hex(test_repo.run_script("repo", "git rev-parse HEAD^{tree}").as_bytes())
                    .unwrap();
            let index = RawIndex::read(&test_repo.parent_dir.join("repo/.git/index"), tree.kind()).unwrap();
            assert_eq!(
                index.equals_tree(tree, || TreeReader::new(repo.gix.objects.clone())),
                *expected,
                "{script}"
            );
            let same =
                test_repo.run_script("repo", "git diff --cached --quiet && echo same || true") == "same";
            // For git, an intent-to-add entry is not a file.
            assert_eq!(same, *expected || script.contains("add -N"), "{script}");
        }
    }
}
