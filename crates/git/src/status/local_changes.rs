//! Detection of the hint that helps against the local changes of a worktree.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::status_query::{query_git_status, status};
use crate::base::folders::obstruction_above;
use crate::base::local_changes_remedy::LocalChangesRemedy;
use crate::index::index_flags;
use crate::index::index_flags::FlaggedEntry;
use crate::index::sparse_patterns::SparsePatterns;
use crate::{Repo, RepoPath};

impl LocalChangesRemedy {
    /// Determines the hint for changes of these paths of the worktree at `dir`.
    pub fn detect(repo: &Repo, dir: &Path, paths: &[RepoPath]) -> LocalChangesRemedy {
        let git_dir = repo.worktree_git_dir(dir);
        let flagged = git_dir.as_ref().map(|git_dir| index_flags::flagged_entries(repo, dir, git_dir));
        let mut flagged = flagged.map(Result::unwrap_or_default).unwrap_or_default();
        let patterns =
            git_dir.as_ref().ok().and_then(|git_dir| SparsePatterns::load(repo, dir, git_dir).ok()?);
        if patterns.is_some() && repo.setting_bool("sparse.expectFilesOutsideOfPatterns") != Some(true) {
            // In a sparse checkout git derives skip-worktree from the patterns, and notices files that exist
            // in spite of it.
            for entry in &mut flagged {
                entry.skip_worktree = false;
            }
            flagged.retain(|entry| entry.assume_unchanged);
        }
        let paths_where = |predicate: &dyn Fn(&FlaggedEntry) -> bool| -> Vec<RepoPath> {
            flagged.iter().filter(|entry| predicate(entry)).map(|entry| entry.path.clone()).collect()
        };
        // As long as one of them is hidden, no commit contains it, and a stash may destroy it.
        let is_affected = |entry: &FlaggedEntry| paths.contains(&entry.path);
        if flagged.iter().any(is_affected) {
            let assumed = paths_where(&|entry| entry.assume_unchanged && is_affected(entry));
            return LocalChangesRemedy::Unflag {
                assume_unchanged: assumed,
                skip_worktree: paths_where(&|entry| entry.skip_worktree && is_affected(entry)),
            };
        }
        let replacements = untracked_replacements(repo, dir);
        if !replacements.is_empty() {
            return LocalChangesRemedy::Rename(replacements);
        }
        let is_changed_inside = |path: &&RepoPath| {
            let folder = path.to_fs_path(dir);
            folder.join(".git").symlink_metadata().is_ok()
                && query_git_status(repo.program(), &folder, true).is_ok_and(|dirt| !dirt.is_clean())
        };
        let changed_inside: Vec<RepoPath> = paths.iter().filter(is_changed_inside).cloned().collect();
        if !changed_inside.is_empty() {
            return LocalChangesRemedy::StashInSubmodules(changed_inside);
        }
        // git has no content of deleted files with intent to add, so all such files of the worktree count.
        let announced = repo.intent_to_add_paths(dir, None).unwrap_or_default();
        let exists = |path: &RepoPath| path.to_fs_path(dir).symlink_metadata().is_ok();
        let assumed = paths_where(&|entry| entry.assume_unchanged && exists(&entry.path));
        if !assumed.is_empty() {
            return LocalChangesRemedy::Commit { assume_unchanged: assumed };
        }
        if announced.iter().any(exists) {
            return LocalChangesRemedy::IntentToAdd;
        }
        if patterns.is_some_and(|patterns| paths.iter().any(|p| exists(p) && patterns.excludes(p))) {
            return LocalChangesRemedy::OutsideSparse;
        }
        let is_gone = |path: &RepoPath| announced.contains(path);
        match !announced.is_empty()
            && status(repo, dir, false).is_ok_and(|dirt| dirt.paths().iter().all(is_gone))
        {
            true => LocalChangesRemedy::Stash,
            false => LocalChangesRemedy::CommitOrStash,
        }
    }
}

/// Returns untracked files in the place of a folder of tracked files, and untracked folders in the place of a
/// tracked file.
fn untracked_replacements(repo: &Repo, dir: &Path) -> Vec<RepoPath> {
    let is_folder = |path: &RepoPath| {
        let file = path.to_fs_path(dir);
        file.symlink_metadata().is_ok_and(|meta| meta.is_dir()) && !file.join(".git").exists()
    };
    // A stash applies to the entire worktree, so all changed paths count.
    let changed = status(repo, dir, false).map(|dirt| dirt.paths()).unwrap_or_default();
    let replacements = changed.into_iter().filter_map(|path| {
        obstruction_above(dir, &path).or_else(|| Some(path).filter(|path| is_folder(path)))
    });
    let mut replacements: Vec<RepoPath> = replacements.collect();
    replacements.sort();
    replacements.dedup();
    // A stash contains files that were added.
    let is_tracked = |path: &RepoPath| {
        let call = repo.git_in(dir).args(["--literal-pathspecs", "ls-files", "-z", "--"]);
        call.arg(OsStr::from_bytes(path.as_bytes()))
            .run()
            .is_ok_and(|out| out.nul_separated_fields().any(|field| field == path.as_bytes()))
    };
    replacements.retain(|path| is_folder(path) || !is_tracked(path));
    replacements
}
