//! Owns telling whether an index holds exactly a tree: by what git noted of trees, and by the trees themselves where `git add`
//! or `git stash pop` made it forget some of that.

use gix::bstr::ByteSlice;
use gix::hash::ObjectId;
use gix::index::extension::Tree;

use super::super::trees::Reader;
use super::Entries;

/// How many trees are read. Beyond that git is not slower.
const MOST: usize = 200;

impl Entries {
    /// Whether it holds exactly the tree `id`. False also where that cannot be told.
    pub(in super::super) fn holds(&self, id: ObjectId, reader: impl FnOnce() -> Reader) -> bool {
        if self.is(id) {
            return true;
        }
        let Some(trees) = self.trees() else { return false };
        let mut look = Look { index: self, reader: reader(), left: MOST };
        look.below(&mut Vec::new(), self.all(), Some(&trees), id)
    }
}

/// A comparison of entries with trees.
struct Look<'a> {
    index: &'a Entries,
    reader: Reader,
    /// How many trees may be read still.
    left: usize,
}

impl Look<'_> {
    /// Whether `entries`, which are all that begin with `path`, are those of a tree. `noted` is what git knew of that folder.
    fn below(&mut self, path: &mut Vec<u8>, entries: &[u32], noted: Option<&Tree>, id: ObjectId) -> bool {
        let count = u32::try_from(entries.len()).ok();
        if noted
            .is_some_and(|noted| noted.id == id && noted.num_entries.is_some() && noted.num_entries == count)
        {
            return true;
        }
        let Some(left) = self.left.checked_sub(1) else { return false };
        self.left = left;
        let Ok(items) = self.reader.tree(id) else { return false };
        let (above, mut found) = (path.len(), 0);
        for (name, item) in items.iter() {
            path.truncate(above);
            path.extend_from_slice(name);
            let is_there = if item.is_tree() {
                path.push(b'/');
                let rest = &entries[entries.partition_point(|at| self.index.path(*at) < path.as_slice())..];
                let inside = &rest[..self.index.below(rest, path)];
                found += inside.len();
                let noted = noted.and_then(|noted| {
                    noted.children.iter().find(|child| child.name.as_slice() == name.as_bytes())
                });
                !inside.is_empty() && self.below(path, inside, noted, item.id)
            } else {
                found += 1;
                let entry = self.index.find(path).filter(|entry| !entry.is_of_conflict());
                entry.is_some_and(|entry| {
                    entry.mode() == u32::from(item.mode.value()) && entry.id() == item.id.as_slice()
                })
            };
            if !is_there {
                return false;
            }
        }
        path.truncate(above);
        found == entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Repo;
    use super::super::super::place::Place;
    use super::*;

    /// What was done to an index, and whether it can be told without git that it holds HEAD's tree, where it does.
    const DEEDS: &[(&str, bool)] = &[
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
    fn an_index_holds_a_tree_when_git_says_so() {
        for (deed, is_told) in DEEDS {
            let place = Place::new();
            place.sh("repo", "mkdir -p d/e x; for n in a b d/c d/e/f d.x d-h x/1; do echo $n >$n; done; git add -A; git commit -qm first");
            place.sh("repo", &format!("({deed}) >/dev/null 2>&1 || true"));
            let repo = Repo::discover(&place.top.join("repo")).unwrap();
            let tree = ObjectId::from_hex(place.sh("repo", "git rev-parse HEAD^{tree}").as_bytes()).unwrap();
            let index = Entries::read(&place.top.join("repo/.git/index"), tree.kind()).unwrap();
            assert_eq!(index.holds(tree, || Reader::of(repo.gix.objects.clone())), *is_told, "{deed}");
            let same = place.sh("repo", "git diff --cached --quiet && echo same || true") == "same";
            // To git a file that is only announced is none.
            assert_eq!(same, *is_told || deed.contains("add -N"), "{deed}");
        }
    }
}
