//! Owns which paths a side of a merge has touched, so that two sides that have nothing to do with each other need no walk
//! over their trees.

use std::cmp::Ordering;
use std::sync::Mutex;
use std::time::Instant;

use super::ahead::store_of;
use super::diff::{Change, changed_below};
use super::threads::threads;
use super::trees::Reader;
use super::{Error, Oid, Repo, RepoPath, ThrowAway};

/// Who touched more is not remembered: a line of that length takes longer to read than the trees.
const MANY: usize = 500;
/// Fewer sides are not worth a thread.
const FEW: usize = 8;

/// What stands between the folders of a path here, so that all that lies in a folder follows right after it.
const SLASH: u8 = 0;

/// The paths that differ between two trees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Touched {
    /// In order, with [`SLASH`] between the folders.
    paths: Vec<Vec<u8>>,
    /// Whether one of them is there no more. It may have been renamed, and its folder with it.
    removes: bool,
}

impl Touched {
    fn of(changes: &[Change]) -> Touched {
        let swapped = |b: &u8| if *b == b'/' { SLASH } else { *b };
        let path = |change: &Change| change.path.as_bytes().iter().map(swapped).collect();
        let mut paths: Vec<Vec<u8>> = changes.iter().map(path).collect();
        paths.sort_unstable();
        Touched { paths, removes: changes.iter().any(|change| change.new.is_none()) }
    }

    /// Whether both merge without any decision, whatever else the trees hold: neither has removed anything, no path is in
    /// both, and none of one is a folder of the other. In the terms of `exact`, no name is met that both sides changed but
    /// for folders, and nothing is lost.
    pub(crate) fn is_apart(&self, other: &Touched) -> bool {
        if self.removes || other.removes {
            return self.paths.is_empty() || other.paths.is_empty();
        }
        let (mut one, mut two) = (self.paths.iter().peekable(), other.paths.iter().peekable());
        while let (Some(a), Some(b)) = (one.peek(), two.peek()) {
            // What lies in the smaller one would come next in the other list.
            let (met, _) = match a.cmp(b) {
                Ordering::Equal => return false,
                Ordering::Less => (lies_in(b, a), one.next()),
                Ordering::Greater => (lies_in(a, b), two.next()),
            };
            if met {
                return false;
            }
        }
        true
    }

    /// In one line, to be remembered; none for a long one.
    pub(crate) fn to_line(&self) -> Option<String> {
        if self.paths.len() > MANY {
            return None;
        }
        let slashed = |b: &u8| if *b == SLASH { b'/' } else { *b };
        let path = |path: &Vec<u8>| RepoPath::new(path.iter().map(slashed).collect::<Vec<u8>>());
        let paths: Vec<RepoPath> = self.paths.iter().map(path).collect();
        let removes = if self.removes { '-' } else { '+' };
        Some(format!("{removes}{}", serde_json::to_string(&paths).ok()?))
    }

    /// What was remembered.
    pub(crate) fn from_line(line: &str) -> Option<Touched> {
        let (removes, paths) = match line.split_at_checked(1)? {
            ("-", paths) => (true, paths),
            ("+", paths) => (false, paths),
            _ => return None,
        };
        let paths: Vec<RepoPath> = serde_json::from_str(paths).ok()?;
        let swapped = |b: &u8| if *b == b'/' { SLASH } else { *b };
        let paths = paths.iter().map(|path| path.as_bytes().iter().map(swapped).collect()).collect();
        Some(Touched { paths, removes })
    }
}

/// Whether `path` is `folder`, or lies in it.
fn lies_in(path: &[u8], folder: &[u8]) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.first().is_none_or(|b| *b == SLASH))
}

/// What each of `sides`, a tree of before and one of now, has touched. None for one that cannot be read, or that `until`
/// came before.
///
/// # Errors
/// When the objects cannot be reached.
pub(crate) fn touched(
    repo: &Repo,
    objects: Option<&ThrowAway>,
    sides: &[(Oid, Oid)],
    until: Option<Instant>,
) -> Result<Vec<Option<Touched>>, Error> {
    let store = store_of(repo, objects)?;
    let threads = threads();
    let each = sides.len().div_ceil(threads).max(FEW);
    let found = Mutex::new(vec![None; sides.len()]);
    let work = |store: gix::OdbHandle, from: usize| {
        let reader = Reader::of(store);
        for (at, (before, now)) in sides.iter().enumerate().skip(from).take(each) {
            if until.is_some_and(|end| Instant::now() >= end) {
                break;
            }
            let answer = changed_below(&reader, *before, *now).ok().map(|all| Touched::of(&all));
            if let Ok(mut found) = found.lock() {
                found[at] = answer;
            }
        }
    };
    std::thread::scope(|scope| {
        for from in (each..sides.len()).step_by(each) {
            let store = store.clone();
            scope.spawn(move || work(store, from));
        }
        work(store.clone(), 0);
    });
    Ok(found.into_inner().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(paths: &[&str], removes: bool) -> Touched {
        let mut paths: Vec<Vec<u8>> =
            paths.iter().map(|p| p.bytes().map(|b| if b == b'/' { SLASH } else { b }).collect()).collect();
        paths.sort();
        Touched { paths, removes }
    }

    #[test]
    fn no_path_in_common_and_none_in_the_other_is_apart() {
        let apart = |one: &[&str], other: &[&str]| {
            let (one, other) = (side(one, false), side(other, false));
            assert_eq!(one.is_apart(&other), other.is_apart(&one));
            one.is_apart(&other)
        };
        assert!(apart(&[], &["a"]) && apart(&["a"], &["b"]) && apart(&["a/b", "c"], &["a/c", "b"]));
        assert!(!apart(&["x", "a/b"], &["a/b", "y"]));
        // A file here and a folder there, also with names in between that are no part of it.
        assert!(!apart(&["a", "z"], &["a-b", "a/b/c"]) && !apart(&["a/b"], &["a", "a.c"]));
        assert!(apart(&["a"], &["a-b", "ab/c"]) && apart(&["a/b"], &["a/bc", "a.b"]));
    }

    #[test]
    fn what_was_removed_may_have_been_renamed() {
        assert!(!side(&["a"], true).is_apart(&side(&["b"], false)));
        assert!(!side(&["a"], false).is_apart(&side(&["b"], true)));
        assert!(side(&["a"], true).is_apart(&side(&[], false)), "nothing at all meets nobody");
    }

    #[test]
    fn it_comes_back_from_its_line() {
        for touched in [side(&[], false), side(&["a b/c", "d\ne", "\u{e9}\""], true), side(&["a/b/c"], false)]
        {
            assert_eq!(Touched::from_line(&touched.to_line().unwrap()), Some(touched));
        }
        for broken in ["", "[]", "+", "+[\"a\"", "\u{e9}[]", "?[]"] {
            assert_eq!(Touched::from_line(broken), None, "{broken}");
        }
        let many: Vec<String> = (0..=MANY).map(|n| n.to_string()).collect();
        assert_eq!(side(&many.iter().map(String::as_str).collect::<Vec<_>>(), false).to_line(), None);
    }
}
