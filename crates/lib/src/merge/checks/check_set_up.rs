//! Set-up of a check worktree: the files of the main checkout that lanes get too, and the record of the set-up
//! commands that were run in it.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use proq_base::copy::FileStamp;
use proq_git::history::tree_diff::tree_files;
use proq_git::status::included_files::{IncludeSource, IncludedPath};
use proq_git::{CommitId, RepoPath};
use proq_store::records::check::CheckSetUpRecord;

use crate::lane::Project;
use crate::lane::worktree::set_up::copy::Copier;
use crate::lane::worktree::set_up::files::{
    WantedFilePatterns, create_missing_links, exclude_linked, open_include_source,
};
use crate::merge::Error;

/// Returns the set-up that a check worktree is to have: these commands, and the current patterns of files.
pub(super) fn wanted_set_up(project: &Project, commands: &[String]) -> Result<CheckSetUpRecord, Error> {
    let patterns = match project.repo.main_worktree() {
        Some(main) => WantedFilePatterns::read(project, main)?.lines(),
        None => Vec::new(),
    };
    Ok(CheckSetUpRecord { commands: commands.to_vec(), patterns })
}

/// Copies and links the files of the main checkout into the check worktree at `dir`, in which `commit` is checked
/// out. A file that differs from the main checkout's is replaced, unless the commit has it.
///
/// # Errors
/// Fails if the files cannot be listed, or the disk is full.
pub(super) fn refresh_files(project: &Project, dir: &Path, commit: CommitId) -> Result<(), Error> {
    let Some(main) = project.repo.main_worktree() else { return Ok(()) };
    let wanted = WantedFilePatterns::read(project, main)?;
    if wanted.is_empty() {
        return Ok(());
    }
    let includes = open_include_source(project, main, dir)?;
    let links =
        includes.find_included(&wanted.links, true).included.into_iter().map(|included| included.path);
    // What a check has put in place of a link stays, as other ignored files do.
    let occupied: Vec<RepoPath> =
        links.filter(|path| path.to_fs_path(dir).symlink_metadata().is_ok()).collect();
    let linked = create_missing_links(project, &includes, &wanted, main, dir, &occupied)?;
    let all = exclude_linked(includes.find_included(&wanted.copies, false).included, &linked);
    let is_excluded = |path: &RepoPath, is_folder: bool| {
        includes.is_off_limits(path) || wanted.copies.excludes(path, is_folder) || linked.contains(path)
    };
    let mut search = OutdatedSearch {
        includes: &includes,
        is_excluded: &is_excluded,
        main,
        dir,
        outdated: BTreeSet::new(),
    };
    for included in &all {
        search.visit(included);
    }
    remove_outdated(project, dir, commit, &search.outdated)?;
    drop(Copier::new(main, dir, &project.listener, &is_excluded)?.copy(&all)?);
    Ok(())
}

/// Removes files and links of a check worktree that `commit` does not have, so that they are copied again. No
/// parent of theirs is a link.
fn remove_outdated(
    project: &Project,
    dir: &Path,
    commit: CommitId,
    outdated: &BTreeSet<RepoPath>,
) -> Result<(), Error> {
    if outdated.is_empty() {
        return Ok(());
    }
    let tracked: BTreeSet<RepoPath> =
        tree_files(&project.repo, commit, outdated)?.into_iter().map(|(path, _)| path).collect();
    for path in outdated.difference(&tracked) {
        let file = path.to_fs_path(dir);
        std::fs::remove_file(&file).map_err(proq_store::Error::io("remove", &file))?;
    }
    Ok(())
}

/// Search for files of a check worktree that differ from those of the main checkout.
struct OutdatedSearch<'a> {
    includes: &'a IncludeSource<'a>,
    is_excluded: &'a dyn Fn(&RepoPath, bool) -> bool,
    main: &'a Path,
    dir: &'a Path,
    /// Files and links that differ.
    outdated: BTreeSet<RepoPath>,
}

impl OutdatedSearch<'_> {
    /// Compares one path, folders recursively. Whatever lies behind a link in the worktree is left alone.
    fn visit(&mut self, included: &IncludedPath) {
        let path = &included.path;
        let (from, to) = (path.to_fs_path(self.main), path.to_fs_path(self.dir));
        let is_folder =
            |folder: &RepoPath| folder.to_fs_path(self.dir).symlink_metadata().is_ok_and(|m| m.is_dir());
        let (Ok(theirs), Ok(ours), true) =
            (from.symlink_metadata(), to.symlink_metadata(), path.parents().all(|folder| is_folder(&folder)))
        else {
            return;
        };
        if theirs.is_dir() && ours.is_dir() {
            for entry in std::fs::read_dir(&from).into_iter().flatten().flatten() {
                let child = path.join(entry.file_name().as_bytes());
                let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                if !(self.is_excluded)(&child, is_folder) && !self.includes.is_tracked(&child) {
                    self.visit(&IncludedPath { path: child, is_folder });
                }
            }
            return;
        }
        let is_same = match (theirs.is_file() && ours.is_file(), theirs.is_symlink() && ours.is_symlink()) {
            (true, _) => FileStamp::from_metadata(&theirs) == FileStamp::from_metadata(&ours),
            (_, true) => std::fs::read_link(&from).ok() == std::fs::read_link(&to).ok(),
            _ => false,
        };
        if !is_same && !ours.is_dir() {
            self.outdated.insert(path.clone());
        }
    }
}
