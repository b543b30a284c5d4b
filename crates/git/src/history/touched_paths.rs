//! Paths that each side of a merge has touched. If the paths of two sides are independent, the sides merge
//! without a walk over their trees.

use std::cmp::Ordering;
use std::sync::Mutex;
use std::time::Instant;

use super::tree_diff::{TreeChange, changes_between_trees};
use crate::base::parallel::max_thread_count;
use crate::repository::objects::{TempObjectStore, open_object_store};
use crate::repository::tree_reader::TreeReader;
use crate::{Error, Repo, RepoPath, TreeId};

/// Maximum number of paths that are cached. A longer line takes longer to read than the trees.
const MAX_SAVED_PATHS: usize = 500;
/// Minimum number of sides for each thread.
const MIN_SIDES_PER_THREAD: usize = 8;

/// Separator of the folders of a path in this module. It sorts first, so that the contents of a folder follow
/// right after the folder.
const PATH_SEPARATOR: u8 = 0;

/// Paths that differ between two trees: what one side of a merge has touched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TouchedPaths {
    /// Paths in order, with [`PATH_SEPARATOR`] between the folders.
    paths: Vec<Vec<u8>>,
    /// Whether a path was removed. Its file may have been renamed, and its folder too.
    has_removals: bool,
}

impl TouchedPaths {
    fn from_changes(changes: &[TreeChange]) -> TouchedPaths {
        let swap_slash = |b: &u8| if *b == b'/' { PATH_SEPARATOR } else { *b };
        let path = |change: &TreeChange| change.path.as_bytes().iter().map(swap_slash).collect();
        let mut paths: Vec<Vec<u8>> = changes.iter().map(path).collect();
        paths.sort_unstable();
        TouchedPaths { paths, has_removals: changes.iter().any(|change| change.new.is_none()) }
    }

    /// Returns whether the two sides merge without any decision, whatever else the trees hold. This is so
    /// when neither has removed a path, no path is in both, and no path of one is a folder of the other. A
    /// side without any paths is independent of every other. In terms of the `exact_merge` module: both sides
    /// changed no common name except folders, and nothing is lost.
    pub fn is_independent_of(&self, other: &TouchedPaths) -> bool {
        if self.has_removals || other.has_removals {
            return self.paths.is_empty() || other.paths.is_empty();
        }
        let (mut one, mut two) = (self.paths.iter().peekable(), other.paths.iter().peekable());
        while let (Some(a), Some(b)) = (one.peek(), two.peek()) {
            // The next path in the other list is the first that can lie in the smaller one.
            let (overlaps, _) = match a.cmp(b) {
                Ordering::Equal => return false,
                Ordering::Less => (is_within(b, a), one.next()),
                Ordering::Greater => (is_within(a, b), two.next()),
            };
            if overlaps {
                return false;
            }
        }
        true
    }

    /// Serializes the paths to one line for the cache; none if there are more than `MAX_SAVED_PATHS`.
    pub fn to_cache_line(&self) -> Option<String> {
        if self.paths.len() > MAX_SAVED_PATHS {
            return None;
        }
        let restore_slash = |b: &u8| if *b == PATH_SEPARATOR { b'/' } else { *b };
        let path = |path: &Vec<u8>| RepoPath::new(path.iter().map(restore_slash).collect::<Vec<u8>>());
        let paths: Vec<RepoPath> = self.paths.iter().map(path).collect();
        let sign = if self.has_removals { '-' } else { '+' };
        Some(format!("{sign}{}", serde_json::to_string(&paths).ok()?))
    }

    /// Parses a line that `TouchedPaths::to_line` wrote; none if it is invalid.
    pub fn from_cache_line(line: &str) -> Option<TouchedPaths> {
        let (has_removals, paths) = match line.split_at_checked(1)? {
            ("-", json) => (true, json),
            ("+", json) => (false, json),
            _ => return None,
        };
        let paths: Vec<RepoPath> = serde_json::from_str(paths).ok()?;
        let swap_slash = |b: &u8| if *b == b'/' { PATH_SEPARATOR } else { *b };
        let paths = paths.iter().map(|path| path.as_bytes().iter().map(swap_slash).collect()).collect();
        Some(TouchedPaths { paths, has_removals })
    }
}

/// Returns whether `path` is `folder`, or lies in it.
fn is_within(path: &[u8], folder: &[u8]) -> bool {
    path.strip_prefix(folder).is_some_and(|suffix| suffix.first().is_none_or(|b| *b == PATH_SEPARATOR))
}

/// Returns the touched paths of each of `sides`, a pair of an old and a new tree. None for a side that cannot
/// be read, or that was not reached before `deadline`.
///
/// # Errors
/// Fails if the objects cannot be accessed.
pub fn touched_paths(
    repo: &Repo,
    temp_objects: Option<&TempObjectStore>,
    sides: &[(TreeId, TreeId)],
    deadline: Option<Instant>,
) -> Result<Vec<Option<TouchedPaths>>, Error> {
    let object_store = open_object_store(repo, temp_objects)?;
    let worker_count = max_thread_count();
    let chunk_len = sides.len().div_ceil(worker_count).max(MIN_SIDES_PER_THREAD);
    let results = Mutex::new(vec![None; sides.len()]);
    let work = |store: gix::OdbHandle, start: usize| {
        let reader = TreeReader::new(store);
        for (at, (before, now)) in sides.iter().enumerate().skip(start).take(chunk_len) {
            if deadline.is_some_and(|end| Instant::now() >= end) {
                break;
            }
            let paths = changes_between_trees(&reader, *before, *now)
                .ok()
                .map(|changes| TouchedPaths::from_changes(&changes));
            if let Ok(mut results) = results.lock() {
                results[at] = paths;
            }
        }
    };
    std::thread::scope(|scope| {
        for start in (chunk_len..sides.len()).step_by(chunk_len) {
            let store = object_store.clone();
            scope.spawn(move || work(store, start));
        }
        work(object_store.clone(), 0);
    });
    Ok(results.into_inner().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touched_side(paths: &[&str], has_removals: bool) -> TouchedPaths {
        let mut paths: Vec<Vec<u8>> = paths
            .iter()
            .map(|p| p.bytes().map(|b| if b == b'/' { PATH_SEPARATOR } else { b }).collect())
            .collect();
        paths.sort();
        TouchedPaths { paths, has_removals }
    }

    #[test]
    fn detects_independent_sides() {
        let independent = |one: &[&str], other: &[&str]| {
            let (one, other) = (touched_side(one, false), touched_side(other, false));
            assert_eq!(one.is_independent_of(&other), other.is_independent_of(&one));
            one.is_independent_of(&other)
        };
        assert!(
            independent(&[], &["a"])
                && independent(&["a"], &["b"])
                && independent(&["a/b", "c"], &["a/c", "b"])
        );
        assert!(!independent(&["x", "a/b"], &["a/b", "y"]));
        // A file on one side and a folder on the other, with similar names in between.
        assert!(!independent(&["a", "z"], &["a-b", "a/b/c"]) && !independent(&["a/b"], &["a", "a.c"]));
        assert!(independent(&["a"], &["a-b", "ab/c"]) && independent(&["a/b"], &["a/bc", "a.b"]));
    }

    #[test]
    fn treats_removal_as_possible_rename() {
        assert!(!touched_side(&["a"], true).is_independent_of(&touched_side(&["b"], false)));
        assert!(!touched_side(&["a"], false).is_independent_of(&touched_side(&["b"], true)));
        assert!(
            touched_side(&["a"], true).is_independent_of(&touched_side(&[], false)),
            "nothing at all meets nobody"
        );
    }

    #[test]
    fn round_trips_through_line() {
        for touched in [
            touched_side(&[], false),
            touched_side(&["a b/c", "d\ne", "\u{e9}\""], true),
            touched_side(&["a/b/c"], false),
        ] {
            assert_eq!(TouchedPaths::from_cache_line(&touched.to_cache_line().unwrap()), Some(touched));
        }
        for broken in ["", "[]", "+", "+[\"a\"", "\u{e9}[]", "?[]"] {
            assert_eq!(TouchedPaths::from_cache_line(broken), None, "{broken}");
        }
        let many: Vec<String> = (0..=MAX_SAVED_PATHS).map(|n| n.to_string()).collect();
        assert_eq!(
            touched_side(&many.iter().map(String::as_str).collect::<Vec<_>>(), false).to_cache_line(),
            None
        );
    }
}
