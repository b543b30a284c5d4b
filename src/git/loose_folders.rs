//! Owns the folders that git has no file in: empty ones, which it forgets, and what in them is no file.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::glance::Glance;
use super::left_out::folders_above;
use super::seen::Seen;
use super::special::{self, LeftOut};
use super::status::Dirt;
use super::transition::Tree;
use super::{Error, Repo, RepoPath};

/// Empty folders of a clean worktree.
pub(crate) fn empty_folders(tree: &Tree<'_>, seen: &Seen) -> Result<Vec<RepoPath>, Error> {
    Ok(loose_folders(tree, &Dirt::default(), &[], seen, seen.folders())?.empty)
}

/// Empty folders of the worktree at `dir` in the place of these files, and above them: git removes them while it writes the files.
pub(super) fn empty_in_place_of<'c>(
    dir: &Path,
    arriving: impl Iterator<Item = &'c RepoPath>,
) -> Vec<RepoPath> {
    let mut looked_at = HashMap::new();
    let mut found = Loose::default();
    for path in arriving {
        let chain = path.parents().chain([path.clone()]);
        let there = chain.take_while(|up| up.under(dir).symlink_metadata().is_ok_and(|meta| meta.is_dir()));
        for folder in there {
            if *looked_at.entry(folder.clone()).or_insert_with(|| has_only_folders(&folder.under(dir))) {
                found.look_into(dir, &folder);
                break;
            }
        }
    }
    found.empty.sort();
    found.empty.dedup();
    found.empty
}

/// What is in folders that git has no file in.
#[derive(Default)]
pub(super) struct Loose {
    /// Folders with nothing in them.
    pub(super) empty: Vec<RepoPath>,
    /// What is no file.
    pub(super) left: Vec<LeftOut>,
}

/// Looks through the folders of a worktree that git knows nothing of; which they are may be known. Ignored ones are looked through
/// for empty ones as far as there is no file in them: a commit may have one there.
pub(super) fn loose_folders(
    tree: &Tree<'_>,
    dirt: &Dirt,
    hidden: &[RepoPath],
    seen: &Seen,
    known: Option<&[RepoPath]>,
) -> Result<Loose, Error> {
    let dir = tree.dir;
    let mut found = Loose::default();
    // A folder whose files are all deleted is not empty in git's eyes while the index still has them, nor one that
    // stands where a file was.
    for path in dirt.tracked().map(|e| &e.path).chain(hidden) {
        let chain = path.parents().chain([path.clone()]);
        let there = chain.filter(|up| up.under(dir).symlink_metadata().is_ok_and(|m| m.is_dir()));
        if let Some(folder) = there.last() {
            found.look_into(dir, &folder);
        }
    }
    if let Some(folders) = known {
        for folder in folders {
            found.look_into(dir, folder);
        }
    } else {
        for folder in untracked_folders(tree.repo, dir)? {
            found.look_into(dir, &folder);
        }
        let mut above = Loose::default();
        for folder in folders_above(tree)? {
            above.look_into(dir, &folder);
        }
        // What else is in them is found with the files beside it.
        found.empty.append(&mut above.empty);
    }
    for folder in seen.ignored(tree.repo, dir)? {
        if tree.off_limits.as_ref() != Some(&folder) && has_only_folders(&folder.under(dir)) {
            found.look_into(dir, &folder);
        }
    }
    found.empty.sort();
    found.empty.dedup();
    Ok(found)
}

/// Whether a folder is there and nothing in it but folders. The first file ends the look.
fn has_only_folders(path: &Path) -> bool {
    let is_folder = path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
    let Some(entries) = is_folder.then(|| std::fs::read_dir(path).ok()).flatten() else { return false };
    entries.flatten().all(|entry| has_only_folders(&entry.path()))
}

impl Repo {
    /// What git does not know in the worktree at `dir` and this user may not read: files, which `dirt` names, and folders, which git
    /// takes for empty. No snapshot has it.
    pub(crate) fn unreadable_in(&self, dir: &Path, dirt: &Dirt) -> Result<Vec<RepoPath>, Error> {
        let files = dirt.untracked().filter(|e| !e.nested).map(|e| &e.path);
        let mut all = special::unreadable(dir, files);
        // It could read every folder.
        if Glance::at(self, dir).is_some_and(|glance| glance.finds_nothing(true, true)) {
            return Ok(all);
        }
        let mut found = Loose::default();
        for folder in untracked_folders(self, dir)? {
            found.look_into(dir, &folder);
        }
        all.extend(found.left.into_iter().filter(LeftOut::is_unreadable).map(|left| left.path));
        Ok(all)
    }
}

fn untracked_folders(repo: &Repo, dir: &Path) -> Result<Vec<RepoPath>, Error> {
    let call = repo.git_in(dir);
    let out = call.args(["ls-files", "--others", "--directory", "--exclude-standard", "-z"]).run()?;
    Ok(out.fields().filter_map(|field| field.strip_suffix(b"/")).map(RepoPath::new).collect())
}

impl Loose {
    fn look_into(&mut self, root: &Path, folder: &RepoPath) {
        let path = folder.under(root);
        // An embedded repository is a world of its own.
        if path.join(".git").exists() {
            return;
        }
        let entries = match std::fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(e) if e.kind() == ErrorKind::PermissionDenied => {
                self.left.push(LeftOut::unreadable(folder.clone()));
                return;
            }
            Err(_) => return,
        };
        let mut empty = true;
        for entry in entries.flatten() {
            empty = false;
            let Ok(kind) = entry.file_type() else { continue };
            let inside = folder.join(entry.file_name().as_bytes());
            if kind.is_dir() {
                self.look_into(root, &inside);
            } else if let Some(what) = special::special(kind) {
                self.left.push(LeftOut::new(inside, what));
            }
        }
        if empty {
            self.empty.push(folder.clone());
        }
    }
}
