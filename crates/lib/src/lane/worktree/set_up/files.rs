//! Files that a new lane gets from the main checkout: copies of the paths that `.worktreeinclude` and
//! `lane.copy` name, and symbolic links to the paths that `lane.link` names.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use proq_base::diagnostics::Listener;
use proq_base::lane_name::LaneName;
use proq_base::regular_file::{LinkPolicy, MAX_SETTINGS_BYTES};
use proq_base::{regular_file, terminal_text};
use proq_git::RepoPath;
use proq_git::base::error;
use proq_git::status::included_files::{IncludePatterns, IncludeSource, IncludedPath};
use proq_git::worktrees::align_mtimes;
use proq_git::worktrees::worktree::WorktreeList;

use super::copy::{Copier, CopyResult};
use super::env::exclude_path;
use crate::lane::{Error, Project};

/// File at the top of the main checkout that names the paths to copy. Other tools read it too.
const INCLUDE_FILE: &str = ".worktreeinclude";

/// Maximum number of files that are listed by name.
const MAX_NAMES_LISTED: usize = 5;

/// Patterns of the files that lanes get from the main checkout.
pub(crate) struct WantedFilePatterns {
    /// Patterns of the files to copy.
    pub copies: IncludePatterns,
    /// Patterns of the files to link.
    pub links: IncludePatterns,
    /// Number of lines of `copies` that come from [`INCLUDE_FILE`]; the others come from `lane.copy`.
    include_line_count: usize,
}

impl WantedFilePatterns {
    /// Reads the patterns from the main checkout and the settings.
    pub fn read(project: &Project, main: &Path) -> Result<WantedFilePatterns, Error> {
        let include_file = main.join(INCLUDE_FILE);
        let mut text = match include_file.symlink_metadata() {
            Ok(meta) if meta.is_file() => {
                regular_file::read(&include_file, MAX_SETTINGS_BYTES, LinkPolicy::Refuse)
                    .map_err(Error::io("read", &include_file))?
            }
            Ok(_) => {
                project.listener.warn(format!("{INCLUDE_FILE} is no file, so it is not read"));
                Vec::new()
            }
            Err(_) => Vec::new(),
        };
        let settings = &project.settings.set_up;
        text.push(b'\n');
        let include_line_count = text.split(|b| *b == b'\n').count() - 1;
        text.extend_from_slice(settings.copy_patterns.join("\n").as_bytes());
        let links = IncludePatterns::parse(settings.link_patterns.join("\n").as_bytes());
        Ok(WantedFilePatterns { copies: IncludePatterns::parse(&text), links, include_line_count })
    }

    /// Describes the patterns that match nothing, after all of them were searched for.
    pub(crate) fn describe_unused_patterns(&self, includes: &IncludeSource<'_>) -> Vec<String> {
        let copy_origin =
            |index: usize| if index < self.include_line_count { INCLUDE_FILE } else { "lane.copy" };
        let copies = includes
            .unmatched_lines(&self.copies, false, MAX_NAMES_LISTED + 1)
            .into_iter()
            .map(|(at, line)| (copy_origin(at), line));
        let links = includes
            .unmatched_lines(&self.links, true, MAX_NAMES_LISTED + 1)
            .into_iter()
            .map(|(_, line)| ("lane.link", line));
        let describe = |(origin, line): (&str, String)| {
            let line = terminal_text::escape_line(&line);
            format!("{origin}: '{line}' matches no uncommitted file of the main checkout")
        };
        // Each pattern is searched for separately, so the unlisted ones are not counted either.
        let mut all: Vec<String> = copies.chain(links).map(describe).collect();
        if all.len() > MAX_NAMES_LISTED {
            all.truncate(MAX_NAMES_LISTED);
            all.push("more lines match nothing".to_owned());
        }
        all
    }

    /// Returns whether there are no patterns of files to copy or link.
    pub fn is_empty(&self) -> bool {
        self.copies.is_empty() && self.links.is_empty()
    }
}

/// Opens the main checkout as the source of files for a lane. Other worktrees and the lanes' folder are off
/// limits.
pub(crate) fn open_include_source<'a>(
    project: &Project,
    main: &'a Path,
    dir: &'a Path,
) -> Result<IncludeSource<'a>, Error> {
    let worktrees = WorktreeList::read(&project.repo)?;
    let others = worktrees.iter().map(|w| w.path.clone()).filter(|path| path != main);
    let off_limits: Vec<PathBuf> = others.chain([project.lanes_dir()]).collect();
    Ok(IncludeSource::new(&project.repo, main, dir, off_limits)?)
}

/// Copies and links files of the main checkout into a lane that is already checked out.
///
/// The paths in `retained` come from the previous lane of a reused folder and stay as they are.
pub(crate) fn copy_and_link(
    project: &Project,
    name: &LaneName,
    dir: &Path,
    retained: &[RepoPath],
) -> Result<(), Error> {
    let Some(main) = project.repo.main_worktree() else { return Ok(()) };
    let wanted = WantedFilePatterns::read(project, main)?;
    if wanted.is_empty() {
        return Ok(());
    }
    let includes = open_include_source(project, main, dir)?;
    let linked = create_missing_links(project, &includes, &wanted, main, dir, retained)?;
    let found = includes.find_included(&wanted.copies, false);
    warn_unignored(&project.listener, "copied", &found.not_ignored);
    for unused in wanted.describe_unused_patterns(&includes) {
        project.listener.detail(unused);
    }
    report_added_files(&project.listener, "linked to", &linked);
    let all = exclude_linked(exclude_linked(found.included, &linked), retained);
    if all.is_empty() {
        return Ok(());
    }
    let is_excluded = |path: &RepoPath, is_folder: bool| {
        includes.is_off_limits(path)
            || wanted.copies.excludes(path, is_folder)
            || linked.contains(path)
            || retained.contains(path)
    };
    let copied = Copier::new(main, dir, &project.listener, &is_excluded)?.copy(&all)?;
    warn_skipped(&project.listener, &copied);
    if copied.files.is_empty() {
        return Ok(());
    }
    let copies: Vec<RepoPath> = all.into_iter().map(|included| included.path).collect();
    report_added_files(&project.listener, "copied from", &copies);
    project.store.layout().save_copied_files(name, &copied.files)?;
    if let Err(e) = align_mtimes::align_mtimes(&project.repo, main, dir) {
        project
            .listener
            .warn(format!("copied files may be rebuilt, because their times could not be kept: {e}"));
    }
    Ok(())
}

/// Creates the symbolic links that are missing. Returns all linked paths, the existing ones included.
pub(crate) fn create_missing_links(
    project: &Project,
    includes: &IncludeSource<'_>,
    wanted: &WantedFilePatterns,
    main: &Path,
    dir: &Path,
    retained: &[RepoPath],
) -> Result<Vec<RepoPath>, Error> {
    if wanted.links.is_empty() {
        return Ok(Vec::new());
    }
    let found = includes.find_included(&wanted.links, true);
    warn_unignored(&project.listener, "linked", &found.not_ignored);
    let mut linked = Vec::new();
    for IncludedPath { path, .. } in found.included {
        let (source, link_path) = (path.to_fs_path(main), path.to_fs_path(dir));
        if std::fs::read_link(&link_path).is_ok_and(|existing| existing == source) {
            linked.push(path);
            continue;
        }
        if retained.contains(&path) {
            project.listener.detail(format!("not linked: {path}: it was kept"));
            continue;
        }
        if let Err(reason) = create_parent_folders(dir, &path) {
            project.listener.warn(format!("not linked: {path}: {reason}"));
            continue;
        }
        exclude_path(project, dir, &path)?;
        symlink(&source, &link_path).map_err(Error::io("link", &link_path))?;
        linked.push(path);
    }
    Ok(linked)
}

/// Creates the parent folders of a path. Fails if the path exists or a parent is not a folder.
pub(crate) fn create_parent_folders(dir: &Path, path: &RepoPath) -> Result<(), String> {
    for folder in path.parents() {
        let location = folder.to_fs_path(dir);
        match location.symlink_metadata() {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => return Err(format!("'{folder}' is not a folder in the lane")),
            Err(_) => std::fs::create_dir(&location).map_err(|e| format!("'{folder}': {e}"))?,
        }
    }
    match path.to_fs_path(dir).symlink_metadata() {
        Ok(_) => Err("the lane already has this name".to_owned()),
        Err(_) => Ok(()),
    }
}

/// Returns the entries that are neither linked nor inside a linked folder.
pub(crate) fn exclude_linked(all: Vec<IncludedPath>, linked: &[RepoPath]) -> Vec<IncludedPath> {
    let is_linked = |included: &IncludedPath| {
        linked.contains(&included.path) || included.path.parents().any(|folder| linked.contains(&folder))
    };
    all.into_iter().filter(|included| !is_linked(included)).collect()
}

/// Lists the files that a lane got, as a detail message.
fn report_added_files(listener: &Listener, verb: &str, paths: &[RepoPath]) {
    if !paths.is_empty() {
        listener.detail(format!("{verb} the main checkout: {}", error::list_paths(paths)));
    }
}

/// Warns about files that git does not ignore in the lane. They would show up as untracked and would be
/// committed there.
pub(crate) fn warn_unignored(listener: &Listener, verb: &str, paths: &[RepoPath]) {
    if !paths.is_empty() {
        listener.warn(format!(
            "not {verb}, since git does not ignore it in the lane and it would be committed there: {}",
            error::list_paths(paths)
        ));
    }
}

/// Warns about the files that were not copied.
pub(crate) fn warn_skipped(listener: &Listener, copied: &CopyResult) {
    let skipped = &copied.skipped;
    for (path, reason) in skipped.iter().take(MAX_NAMES_LISTED) {
        listener.warn(format!("not copied: {path}: {reason}"));
    }
    if skipped.len() > MAX_NAMES_LISTED {
        listener.warn(format!("not copied: {} more", skipped.len() - MAX_NAMES_LISTED));
    }
}
