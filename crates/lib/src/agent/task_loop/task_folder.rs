//! Task folder in the worktree of its lane: copying its files there, excluding them from commits, and access
//! to them. A symbolic link or other obstruction causes an error that names it, and is never followed.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use proq_base::terminal_text;
use proq_git::{Repo, RepoPath};
use proq_store::base::atomic::{create_private_dir, write_in_existing_dir};
use rustix::fs::OFlags;

use crate::agent::Error;

/// File with the text of a task.
pub const PROMPT_FILE: &str = "PROMPT.md";
/// File with the progress of a task.
pub(crate) const STATUS_FILE: &str = "STATUS.md";
/// Name of the subfolder with the reviewers' answers.
pub(crate) const REVIEWS_DIR: &str = ".reviews";
/// Name of the file by which git ignores files of the task folder.
const GITIGNORE: &str = ".gitignore";
/// Marker file of a finished task, which is not copied.
const DONE_MARKER: &str = ".DONE";

/// Maximum size, in MiB, of a single file that is read from a lane's task folder.
const MAX_FILE_MIB: u64 = 8;
/// Maximum number of files in a task folder that is copied.
const MAX_FILES: usize = 1_000;
/// Maximum total size, in MiB, of the files of a task folder that is copied.
const MAX_TOTAL_MIB: u64 = 32;

/// Header of the `.gitignore` that excludes a task's files from commits.
const GITIGNORE_HEADER: &str = "# Written by git-proq: what lies here is for this lane only.\n";

/// File of a task folder, with its content.
#[derive(Debug, Clone)]
pub struct TaskFile {
    /// Path of the file, relative to the task folder.
    path_in_folder: PathBuf,
    bytes: Vec<u8>,
    is_executable: bool,
}

impl TaskFile {
    /// Returns whether the file is STATUS.md.
    pub(crate) fn is_status(&self) -> bool {
        self.path_in_folder == Path::new(STATUS_FILE)
    }
}

/// Reads the files of a task folder that are copied into a lane. Reviews, `.gitignore` files and the marker
/// file of a finished task are skipped.
///
/// # Errors
/// [`Error::InvalidTaskFolder`] for an entry that is neither file nor folder, and for too many or too large
/// files.
pub(crate) fn read_task_files(dir: &Path) -> Result<Vec<TaskFile>, Error> {
    let mut out = Vec::new();
    let mut remaining_bytes = MAX_TOTAL_MIB * 1024 * 1024;
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let folder_path = dir.join(&folder);
        let unreadable =
            |source: std::io::Error| folder_error(&folder_path, format!("cannot be read: {source}"));
        for entry in std::fs::read_dir(&folder_path).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let (name, path) = (entry.file_name(), entry.path());
            let relative_path = folder.join(&name);
            let kind = entry.file_type().map_err(unreadable)?;
            if kind.is_dir() && name == ".git" {
                return Err(folder_error(&folder_path, "is a repository of its own".to_owned()));
            }
            if kind.is_dir() && relative_path != Path::new(REVIEWS_DIR) {
                folders.push(relative_path);
            } else if kind.is_file() && name != GITIGNORE && relative_path != Path::new(DONE_MARKER) {
                let (bytes, meta) = read_file(&path, remaining_bytes)?;
                remaining_bytes = remaining_bytes.saturating_sub(bytes.len() as u64);
                out.push(TaskFile {
                    path_in_folder: relative_path,
                    bytes,
                    is_executable: meta.permissions().mode() & 0o111 != 0,
                });
            } else if kind.is_symlink() {
                return Err(folder_error(&path, "is a link, which is not followed".to_owned()));
            } else if !kind.is_file() && !kind.is_dir() {
                return Err(folder_error(&path, "is neither a file nor a folder".to_owned()));
            }
            if out.len() + folders.len() > MAX_FILES {
                return Err(folder_error(dir, format!("has more than {MAX_FILES} files")));
            }
        }
    }
    Ok(out)
}

/// Task folder in the worktree of its lane.
#[derive(Debug, Clone)]
pub(crate) struct LaneTaskFolder {
    /// Top of the worktree.
    worktree_top: PathBuf,
    /// Path of the folder, relative to `top`.
    relative_path: String,
}

/// Parts of a task folder that must not be committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CommitExclusions {
    /// Whether no file of the folder may be committed.
    pub exclude_folder: bool,
    /// Whether STATUS.md and the reviews must not be committed.
    pub exclude_status: bool,
}

impl LaneTaskFolder {
    /// Returns the task folder at `relative_path` below the top of a worktree.
    pub fn new(top: &Path, relative_path: &str) -> LaneTaskFolder {
        LaneTaskFolder { worktree_top: top.to_owned(), relative_path: relative_path.to_owned() }
    }

    /// Returns the path of a file in the folder, relative to the top of the worktree.
    pub(crate) fn path_in_worktree(&self, file: &str) -> String {
        format!("{}/{file}", self.relative_path)
    }

    fn repo_path(&self, file: &str) -> RepoPath {
        RepoPath::new(self.path_in_worktree(file))
    }

    /// Returns the path of the folder after checking that no symbolic link leads elsewhere. None if the
    /// folder is missing and `create` is false.
    fn resolve_without_links(&self, create: bool) -> Result<Option<PathBuf>, Error> {
        let mut path = self.worktree_top.clone();
        for component in Path::new(&self.relative_path).components() {
            let Component::Normal(name) = component else {
                return Err(folder_error(
                    Path::new(&self.relative_path),
                    "is not a folder of the repository".to_owned(),
                ));
            };
            path.push(name);
            match path.symlink_metadata() {
                Ok(meta) if meta.is_dir() => {}
                Ok(_) => return Err(folder_error(&path, "is not a folder in the lane".to_owned())),
                Err(e) if e.kind() == ErrorKind::NotFound && !create => return Ok(None),
                Err(e) if e.kind() == ErrorKind::NotFound => {
                    std::fs::create_dir(&path)
                        .map_err(|e| folder_error(&path, format!("cannot be created: {e}")))?;
                }
                Err(e) => return Err(folder_error(&path, format!("cannot be inspected: {e}"))),
            }
        }
        Ok(Some(path))
    }

    /// Returns the path of the folder, which is created if it is missing.
    fn create_dirs(&self) -> Result<PathBuf, Error> {
        Ok(self.resolve_without_links(true)?.unwrap_or_else(|| self.worktree_top.join(&self.relative_path)))
    }

    /// Returns the text of a file in the folder; none if the file is missing.
    ///
    /// # Errors
    /// [`Error::InvalidTaskFolder`] for an entry that is not a regular file, or is too large.
    pub fn read_text(&self, file: &str) -> Result<Option<String>, Error> {
        let Some(dir) = self.resolve_without_links(false)? else { return Ok(None) };
        let path = dir.join(file);
        match path.symlink_metadata() {
            Ok(_) => {
                let (bytes, _) = read_file(&path, MAX_FILE_MIB * 1024 * 1024)?;
                Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
            }
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(folder_error(&path, format!("cannot be inspected: {e}"))),
        }
    }

    /// Replaces STATUS.md.
    pub(crate) fn write_status(&self, text: &str) -> Result<(), Error> {
        Ok(write_in_existing_dir(&self.create_dirs()?.join(STATUS_FILE), text.as_bytes())?)
    }

    /// Saves a reviewer's answer in the subfolder of the reviews.
    pub(crate) fn write_review(&self, name: &str, text: &str) -> Result<(), Error> {
        let reviews = LaneTaskFolder::new(&self.worktree_top, &self.path_in_worktree(REVIEWS_DIR));
        Ok(write_in_existing_dir(&reviews.create_dirs()?.join(name), text.as_bytes())?)
    }

    /// Writes those of `files` that are missing in the folder. Existing ones are not changed.
    pub(crate) fn write_missing_files(&self, files: &[TaskFile]) -> Result<(), Error> {
        for file in files {
            let parent = file.path_in_folder.parent().filter(|parent| *parent != Path::new(""));
            let parent_path = match parent {
                Some(parent) => self.path_in_worktree(&parent.to_string_lossy()),
                None => self.relative_path.clone(),
            };
            let Some(name) = file.path_in_folder.file_name() else { continue };
            let path = LaneTaskFolder::new(&self.worktree_top, &parent_path).create_dirs()?.join(name);
            if path.symlink_metadata().is_ok() {
                continue;
            }
            write_in_existing_dir(&path, &file.bytes)?;
            if file.is_executable {
                let mode = std::fs::Permissions::from_mode(0o755);
                std::fs::set_permissions(&path, mode).map_err(|e| folder_error(&path, e.to_string()))?;
            }
        }
        Ok(())
    }

    /// Moves away files that an attempt whose work was reverted left behind: those that differ from `files`,
    /// and STATUS.md if `files` lacks it. Without `include_all` only STATUS.md is moved. `saved_path` returns
    /// the destination of each file.
    pub(crate) fn move_leftovers_away(
        &self,
        files: &[TaskFile],
        include_all: bool,
        saved_path: &dyn Fn(&Path) -> PathBuf,
    ) -> Result<(), Error> {
        let mut names: Vec<&Path> =
            files.iter().filter(|_| include_all).map(|file| file.path_in_folder.as_path()).collect();
        if !names.contains(&Path::new(STATUS_FILE)) {
            names.push(Path::new(STATUS_FILE));
        }
        for name in names {
            let task_file = files.iter().find(|file| file.path_in_folder == name);
            let parent = name.parent().unwrap_or(Path::new("")).to_string_lossy();
            let Some(dir) = LaneTaskFolder::new(&self.worktree_top, &self.path_in_worktree(&parent))
                .resolve_without_links(false)?
            else {
                continue;
            };
            let path = dir.join(name.file_name().unwrap_or_default());
            let Ok(meta) = path.symlink_metadata() else { continue };
            let is_same = meta.is_file()
                && task_file
                    .is_some_and(|file| std::fs::read(&path).is_ok_and(|current| current == file.bytes));
            if !is_same {
                let target = saved_path(name);
                create_private_dir(target.parent().unwrap_or(Path::new("/")))?;
                move_path(&path, &target)
                    .map_err(|e| folder_error(&path, format!("cannot be moved away: {e}")))?;
            }
        }
        Ok(())
    }

    /// Writes the STATUS.md in `files`, unless the folder already has one.
    pub(crate) fn write_missing_status(&self, files: &[TaskFile]) -> Result<(), Error> {
        let status_files: Vec<TaskFile> = files.iter().filter(|file| file.is_status()).cloned().collect();
        self.write_missing_files(&status_files)
    }

    /// Determines which parts of the folder must not be committed: those that git does not track in the lane.
    pub(crate) fn detect_exclusions(&self, repo: &Repo) -> Result<CommitExclusions, Error> {
        let tracked =
            repo.tracked_paths_below(&self.worktree_top, &RepoPath::new(self.relative_path.clone()))?;
        let exclude_status = !tracked.contains(&self.repo_path(STATUS_FILE));
        Ok(CommitExclusions { exclude_folder: tracked.is_empty(), exclude_status })
    }

    /// Excludes files from commits with a `.gitignore`, unless a rule excludes them already.
    ///
    /// # Errors
    /// [`Error::InvalidTaskFolder`] when a rule of the repository prevents it.
    pub(crate) fn exclude_from_commits(
        &self,
        repo: &Repo,
        exclusions: CommitExclusions,
    ) -> Result<(), Error> {
        if !exclusions.exclude_status && !exclusions.exclude_folder {
            return Ok(());
        }
        let review = format!("{REVIEWS_DIR}/x");
        let probes: Vec<RepoPath> = [STATUS_FILE, PROMPT_FILE, &review]
            .into_iter()
            .filter(|file| exclusions.exclude_folder || *file != PROMPT_FILE)
            .map(|file| self.repo_path(file))
            .collect();
        let all_ignored =
            || Ok::<_, Error>(repo.ignored_among(&self.worktree_top, &probes)?.len() == probes.len());
        if all_ignored()? {
            return Ok(());
        }
        let path = self.create_dirs()?.join(GITIGNORE);
        if path.symlink_metadata().is_err() {
            let rules = match exclusions.exclude_folder {
                true => "*\n".to_owned(),
                false => format!("/{STATUS_FILE}\n/{REVIEWS_DIR}/\n/{GITIGNORE}\n"),
            };
            write_in_existing_dir(&path, format!("{GITIGNORE_HEADER}{rules}").as_bytes())?;
        }
        if all_ignored()? {
            return Ok(());
        }
        Err(folder_error(
            &path,
            format!("lets {STATUS_FILE} into commits, which is not tracked: track it, or ignore it there"),
        ))
    }

    /// Removes files that must not be committed, but were, from the lane's branch by a new commit. The files
    /// remain in the worktree. Returns whether any were removed.
    pub(crate) fn remove_from_branch(
        &self,
        repo: &Repo,
        exclusions: CommitExclusions,
        message: &str,
    ) -> Result<bool, Error> {
        if !exclusions.exclude_status && !exclusions.exclude_folder {
            return Ok(false);
        }
        let mut tracked =
            repo.tracked_paths_below(&self.worktree_top, &RepoPath::new(self.relative_path.clone()))?;
        let reviews = self.path_in_worktree(REVIEWS_DIR) + "/";
        let generated = [self.repo_path(STATUS_FILE), self.repo_path(GITIGNORE)];
        tracked.retain(|path| {
            exclusions.exclude_folder
                || generated.contains(path) && self.is_generated_file(path)
                || path.as_bytes().starts_with(reviews.as_bytes())
        });
        if tracked.is_empty() {
            return Ok(false);
        }
        repo.commit_untracking(&self.worktree_top, &tracked, message)?;
        Ok(true)
    }

    /// Returns whether a tracked file is STATUS.md or a `.gitignore` that git-proq wrote. `path` must be one
    /// of the two.
    fn is_generated_file(&self, path: &RepoPath) -> bool {
        !path.ends_with_name(GITIGNORE.as_bytes())
            || self
                .read_text(GITIGNORE)
                .is_ok_and(|text| text.is_some_and(|text| text.starts_with(GITIGNORE_HEADER)))
    }
}

/// Moves a file or folder. To another file system, only a regular file can be moved.
fn move_path(from: &Path, to: &Path) -> std::io::Result<()> {
    match std::fs::rename(from, to) {
        Err(e) if e.kind() == ErrorKind::CrossesDevices && from.symlink_metadata()?.is_file() => {
            std::fs::copy(from, to)?;
            File::open(to)?.sync_all()?;
            std::fs::remove_file(from)
        }
        done => done,
    }
}

/// Reads a regular file of at most `max_bytes` bytes.
fn read_file(path: &Path, max_bytes: u64) -> Result<(Vec<u8>, Metadata), Error> {
    let unreadable = |e: std::io::Error| folder_error(path, format!("cannot be read: {e}"));
    let meta = path.symlink_metadata().map_err(unreadable)?;
    if !meta.is_file() {
        return Err(folder_error(path, "is no file".to_owned()));
    }
    // Another entry may have replaced the file since the check: the flags prevent following a link or waiting
    // for a pipe.
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or_default();
    let file: File = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(unreadable)?;
    let meta = file.metadata().map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(max_bytes + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if !meta.is_file() || bytes.len() as u64 > max_bytes {
        return Err(folder_error(path, "is too large".to_owned()));
    }
    Ok((bytes, meta))
}

fn folder_error(path: &Path, reason: String) -> Error {
    Error::InvalidTaskFolder { path: terminal_text::escape_line(&path.to_string_lossy()), reason }
}
