//! Owns knowing whether files that came back with a snapshot are the very files still: git compares only what its filters make of
//! them, and not what permissions they have.

use std::fmt::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::clear::Held;
use super::path::nul_separated;
use super::quarantine::Quarantine;
use super::{Change, RepoPath, path};

/// The name of the list beside a snapshot's set-aside files: a path, and what the file was like, by turns; and how many, at the end.
const BROUGHT: &str = "brought";

/// Notes beside a snapshot what the files are like that came back with it to the worktree at `dir`: the tracked ones by `changes`,
/// and those that git does not track. Without the note they only count as touched since.
pub(super) fn note(dir: &Path, aside: &Quarantine, held: &Held, changes: &[Change]) {
    let tracked = changes.iter().map(|change| &change.path);
    let paths = tracked.chain(held.loose().map(|(path, _)| path));
    let mut all: Vec<RepoPath> = paths.flat_map(|path| [path.clone(), like(dir, path)]).collect();
    all.push(RepoPath::new(all.len().to_string()));
    drop(std::fs::write(aside.dir().join(BROUGHT), nul_separated(&all)));
}

/// Whether nobody has touched the files in the worktree at `dir` that came back with the snapshot whose files were set aside in
/// `aside`. False where nothing is noted of them.
pub(crate) fn is_untouched(dir: &Path, aside: &Path) -> bool {
    let Ok(mut all) = path::noted(&aside.join(BROUGHT)) else { return false };
    let count = all.pop();
    count.is_some_and(|count| count.as_bytes() == all.len().to_string().as_bytes())
        && all.chunks(2).all(|pair| matches!(pair, [path, then] if like(dir, path) == *then))
}

/// Everything that changes with a file.
fn like(dir: &Path, path: &RepoPath) -> RepoPath {
    let mut text = String::from("none");
    if let Ok(meta) = path.under(dir).symlink_metadata() {
        text.clear();
        let (written, changed) = ((meta.mtime(), meta.mtime_nsec()), (meta.ctime(), meta.ctime_nsec()));
        let _ = write!(text, "{:o} {} {} {written:?} {changed:?}", meta.mode(), meta.ino(), meta.len());
    }
    RepoPath::new(text)
}
