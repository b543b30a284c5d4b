//! Marking landed tasks as done where their plan was written: by a commit on top of the base, or in an
//! uncommitted file. A concurrent edit by the user stays as it is; what cannot be marked without touching
//! such an edit is returned to the caller.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use imara_diff::{Algorithm, BasicLineDiffPrinter, Diff, InternedInput, UnifiedDiffConfig};
use proq_git as git;
use proq_git::history::tree_edit::TreeEdit;
use proq_git::status::status_query;
use proq_git::worktrees::worktree::WorktreeList;
use proq_git::{CommitId, Repo, RepoPath, TreeId};
use proq_plan::done_marks;
use proq_plan::done_marks::MarkedFile;
use proq_plan::plan_format::PlanFormat;
use proq_plan::task_folders::layout::{DONE_MARK, PROMPT_FILE, archive_path};
use proq_store::base::atomic::rename_no_replace;
use proq_store::paths::layout::Layout;
use serde::{Deserialize, Serialize};

use super::file_replacement::replace_file;
use crate::lane::Project;
use crate::merge;
use crate::merge::land::note_commit::NoteCommit;

/// Largest file that is read to find out what is already marked in it, in bytes. The plan itself had at most
/// 4 MiB before.
const MAX_PLAN_FILE_BYTES: u64 = 8 * 1024 * 1024;

/// A plan's source and its tasks that have landed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LandedPlan<'a> {
    /// Format of the plan.
    pub format: PlanFormat,
    /// Absolute path of the plan's only file; none for task folders.
    pub source: Option<&'a Path>,
    /// Title of the chosen milestone, for a roadmap.
    pub milestone: &'a str,
    /// The landed tasks.
    pub tasks: &'a [LandedPlanTask<'a>],
    /// Whether the folders of landed tasks are moved into the archive.
    pub archive: bool,
}

/// A task that has landed, as its plan names it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LandedPlanTask<'a> {
    /// Full name of the task: `area/ID`, or the ID of a task without an area.
    pub name: &'a str,
    /// Title of the task.
    pub title: &'a str,
    /// Absolute path of the task's folder, for a task that is a folder.
    pub folder: Option<&'a Path>,
}

/// Result of marking landed tasks as done in the source of their plan.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanMarks {
    /// The commit with the marks, on top of the base.
    pub commit: Option<CommitId>,
    /// Files and folders that were changed on disk without a commit; the user has to commit them.
    pub written: Vec<String>,
    /// Items that could not be marked, each with its reason and, where possible, a patch.
    #[serde(rename = "left")]
    pub unmarked: Vec<UnmarkedItem>,
}

impl PlanMarks {
    /// Returns a result in which nothing was marked in the plan `plan`, for the given reason.
    pub(crate) fn from_failure(plan: &str, reason: &str) -> PlanMarks {
        let item = UnmarkedItem {
            path: proq_base::terminal_text::escape_line(plan),
            reason: proq_base::terminal_text::escape_line(reason),
            patch: String::new(),
        };
        PlanMarks { unmarked: vec![item], ..PlanMarks::default() }
    }
}

/// A file or folder that could not be marked as done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnmarkedItem {
    /// Path of the file or folder, as shown to the user.
    pub path: String,
    /// Reason why it could not be marked.
    #[serde(rename = "why")]
    pub reason: String,
    /// The change that would have been written, as a patch; empty where it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub patch: String,
}

/// A file or folder in which landed tasks are to be marked.
struct MarkTarget {
    /// Absolute path of the file or folder.
    path: PathBuf,
    /// The path relative to the root of the worktree that contains it; none outside of all worktrees.
    repo_path: Option<RepoPath>,
    /// Whether the target is the plan's file or a task's folder.
    kind: TargetKind,
}

/// Kind of a mark target.
enum TargetKind {
    /// A file with all tasks of the plan.
    File,
    /// The folder of one task.
    Folder,
}

/// Marks the landed tasks as done in the plan's source. Targets that are committed on `onto` and have no
/// local change are marked by a commit on `onto`, the others on disk.
///
/// # Errors
/// Fails like a landing, when the branch `onto` cannot be moved. Targets on disk may have been marked before
/// that.
pub(crate) fn mark_landed_tasks(
    project: &Project,
    onto: &str,
    landed: &LandedPlan<'_>,
    message: &str,
) -> Result<PlanMarks, merge::Error> {
    let repo = &project.repo;
    let onto = &repo.resolve_symbolic_branch(onto);
    let mut record = PlanMarks::default();
    let tip = repo.require_commit(&format!("refs/heads/{onto}"))?;
    let tree = repo.tree_of(tip)?;
    let worktrees = WorktreeList::read(repo)?;
    let locally_changed = locally_changed_paths(repo, onto, &worktrees)?;
    let (mut committed, mut uncommitted) = (Vec::new(), Vec::new());
    for target in landed.mark_targets(&worktrees) {
        let is_committed = match &target.repo_path {
            Some(path) => {
                repo.tree_has_path(tree, &target.tracked_file(path))?
                    && !is_changed_locally(&locally_changed, path)
            }
            None => false,
        };
        if is_committed { committed.push(target) } else { uncommitted.push(target) }
    }
    for target in &uncommitted {
        let base = match &target.repo_path {
            Some(path) => repo.read_tree_file(tree, path)?,
            None => None,
        };
        landed.write_marks(project.store.layout(), target, base.as_deref(), &mut record);
    }
    let unmarked = RefCell::new(Vec::new());
    let edits_for = |tree: TreeId| {
        unmarked.borrow_mut().clear();
        let mut edits = Vec::new();
        for target in &committed {
            landed.collect_edits(repo, tree, target, &mut edits, &mut unmarked.borrow_mut())?;
        }
        Ok(edits)
    };
    record.commit = NoteCommit { onto, message, tree_edits: &edits_for }.create(project)?;
    record.unmarked.append(&mut unmarked.borrow_mut());
    Ok(record)
}

/// Returns the paths that have local changes in worktrees with the branch `onto` checked out.
fn locally_changed_paths(
    repo: &Repo,
    onto: &str,
    worktrees: &WorktreeList,
) -> Result<Vec<RepoPath>, merge::Error> {
    let mut changed = Vec::new();
    for worktree in worktrees.on_branch(onto).filter(|worktree| worktree.path.is_dir()) {
        changed.extend(status_query::status(repo, &worktree.path, true)?.paths());
    }
    Ok(changed)
}

/// Returns whether one of `changed_paths` is `path` or lies below it.
fn is_changed_locally(changed_paths: &[RepoPath], path: &RepoPath) -> bool {
    let prefix = path.join(b"");
    changed_paths.iter().any(|p| p == path || p.as_bytes().starts_with(prefix.as_bytes()))
}

impl LandedPlan<'_> {
    /// Returns the files and folders on disk, formatted for display, that mark one of the landed tasks as
    /// done.
    pub(crate) fn marked_paths_on_disk(&self) -> Vec<String> {
        let is_marked = |file: &&Path| {
            let Ok(bytes) = proq_base::regular_file::read_user_file(file, MAX_PLAN_FILE_BYTES) else {
                return false;
            };
            self.tasks.chunks(1).any(|tasks| {
                let marked = LandedPlan { tasks, ..*self }.mark_text(file, &bytes);
                marked.is_ok_and(|(text, missing)| missing.is_none() && text == bytes)
            })
        };
        let folder_mark = |task: &LandedPlanTask<'_>| {
            let dir = task.folder?;
            let archive_dir = archive_path(dir).filter(|to| to.join(DONE_MARK).exists());
            archive_dir.or_else(|| Some(dir.join(DONE_MARK)).filter(|mark| mark.exists()))
        };
        let file = self.source.filter(is_marked).map(display_path);
        file.into_iter()
            .chain(self.tasks.iter().filter_map(folder_mark).map(|path| display_path(&path)))
            .collect()
    }

    /// Returns the files and folders in which the landed tasks are to be marked.
    fn mark_targets(&self, worktrees: &WorktreeList) -> Vec<MarkTarget> {
        let non_bare = worktrees.iter().filter(|worktree| !worktree.bare);
        let worktree_roots: Vec<PathBuf> =
            non_bare.filter_map(|worktree| worktree.path.canonicalize().ok()).collect();
        let new_target = |path: &Path, kind: TargetKind| MarkTarget {
            path: path.to_owned(),
            repo_path: path_in_worktree(path, &worktree_roots),
            kind,
        };
        let file =
            self.source.filter(|_| !self.tasks.is_empty()).map(|file| new_target(file, TargetKind::File));
        let folders = self.tasks.iter().filter_map(|task| Some(new_target(task.folder?, TargetKind::Folder)));
        file.into_iter().chain(folders).collect()
    }

    /// Appends to `edits` the changes to `tree` that mark the tasks in `target`, and to `unmarked` what
    /// cannot be marked.
    fn collect_edits(
        &self,
        repo: &Repo,
        tree: TreeId,
        target: &MarkTarget,
        edits: &mut Vec<TreeEdit>,
        unmarked: &mut Vec<UnmarkedItem>,
    ) -> Result<(), git::Error> {
        let Some(path) = &target.repo_path else { return Ok(()) };
        let unmarked_item = |reason: &str| UnmarkedItem {
            path: display_path(&target.path),
            reason: reason.to_owned(),
            patch: String::new(),
        };
        match &target.kind {
            TargetKind::File => {
                let Some(bytes) = repo.read_tree_file(tree, path)? else {
                    unmarked.push(unmarked_item("it no longer exists"));
                    return Ok(());
                };
                match self.mark_text(&target.path, &bytes) {
                    Ok((text, missing)) => {
                        edits.push(TreeEdit::Content(path.clone(), text));
                        unmarked.extend(missing.map(|reason| unmarked_item(&reason)));
                    }
                    Err(reason) => unmarked.push(unmarked_item(&reason)),
                }
            }
            TargetKind::Folder if !repo.tree_has_path(tree, path)? => {
                unmarked.push(unmarked_item("it no longer exists"));
            }
            TargetKind::Folder => {
                let done_path = path.join(DONE_MARK.as_bytes());
                if !repo.tree_has_path(tree, &done_path)? {
                    edits.push(TreeEdit::Content(done_path, Vec::new()));
                }
                let archive_path =
                    archive_path(&path.to_fs_path(Path::new(""))).and_then(|to| RepoPath::from_path(&to));
                match archive_path.filter(|_| self.archive) {
                    Some(archive_path) if !is_parent_folder_or_free(repo, tree, &archive_path)? => {
                        unmarked.push(unmarked_item(
                            "its archive would be where something else is that is no folder",
                        ));
                    }
                    Some(archive_path) if repo.tree_has_path(tree, &archive_path)? => {
                        unmarked.push(unmarked_item("there is another one with its name in the archive"));
                    }
                    Some(archive_path) => edits.push(TreeEdit::Rename(path.clone(), archive_path)),
                    None => {}
                }
            }
        }
        Ok(())
    }

    /// Returns a file's bytes with its tasks marked as done, and a phrase that names the tasks without an
    /// entry in it. Nothing is written.
    ///
    /// # Errors
    /// Describes why the file cannot be marked.
    fn mark_text(&self, path: &Path, bytes: &[u8]) -> Result<(Vec<u8>, Option<String>), String> {
        const BOM: &str = "\u{feff}";
        let text = std::str::from_utf8(bytes).map_err(|_| "it is no longer text".to_owned())?;
        let (bom, text) = text.strip_prefix(BOM).map_or(("", text), |text| (BOM, text));
        let tasks: Vec<(&str, &str)> = self.tasks.iter().map(|task| (task.name, task.title)).collect();
        let name: Arc<str> = Arc::from(path.display().to_string());
        let file = done_marks::PlanFile { format: self.format, name: &name, text, milestone: self.milestone };
        let MarkedFile { text, unmarked_tasks: missing } =
            done_marks::mark_done(file, &tasks).map_err(|e| e.to_string())?;
        let missing = (!missing.is_empty()).then(|| format!("no entry for: {}", missing.join(", ")));
        Ok((format!("{bom}{text}").into_bytes(), missing))
    }

    /// Marks the tasks on disk without a commit, and adds the result to `record`.
    fn write_marks(&self, layout: &Layout, target: &MarkTarget, base: Option<&[u8]>, record: &mut PlanMarks) {
        let result = match &target.kind {
            TargetKind::Folder => self.mark_folder(&target.path).map(Some),
            TargetKind::File => self.mark_file(layout, target, base, &mut record.unmarked),
        };
        match result {
            Ok(changed) => record.written.extend(changed.iter().map(|path| display_path(path))),
            Err(item) => record.unmarked.push(item),
        }
    }

    /// Marks the tasks in a file on disk. Returns the path if the file was changed. `base` is the committed
    /// content: lines that differ from it are a concurrent edit by the user and are not replaced.
    fn mark_file(
        &self,
        layout: &Layout,
        target: &MarkTarget,
        base: Option<&[u8]>,
        unmarked: &mut Vec<UnmarkedItem>,
    ) -> Result<Option<PathBuf>, UnmarkedItem> {
        let path = target.path.as_path();
        let unmarked_item = |reason: String, patch| UnmarkedItem { path: display_path(path), reason, patch };
        // A symbolic link is kept: its target is replaced.
        let real_path = path.canonicalize().map_err(|e| unmarked_item(e.to_string(), String::new()))?;
        // Reading a pipe would block forever.
        if !real_path.is_file() {
            return Err(unmarked_item("it is no longer a file".to_owned(), String::new()));
        }
        let old = std::fs::read(&real_path).map_err(|e| unmarked_item(e.to_string(), String::new()))?;
        let (new, missing_tasks) =
            self.mark_text(path, &old).map_err(|reason| unmarked_item(reason, String::new()))?;
        unmarked.extend(missing_tasks.map(|reason| unmarked_item(reason, String::new())));
        if new == old {
            return Ok(None);
        }
        let (before, after) = (String::from_utf8_lossy(&old), String::from_utf8_lossy(&new));
        let make_patch = || unified_patch(&target.patch_name(), &before, &after);
        if let Some(base) = base
            && !are_removed_lines_in_base(base, &before, &after)
        {
            return Err(unmarked_item("another program is changing these lines".to_owned(), make_patch()));
        }
        replace_file(layout, &real_path, &old, &new)
            .map_err(|e| unmarked_item(e.to_string(), make_patch()))?;
        Ok(Some(path.to_owned()))
    }

    /// Marks a task's folder as done and, if requested, moves it into the archive. Returns the path that was
    /// changed.
    fn mark_folder(&self, dir: &Path) -> Result<PathBuf, UnmarkedItem> {
        let unmarked_item = |e: std::io::Error| UnmarkedItem {
            path: display_path(dir),
            reason: e.to_string(),
            patch: String::new(),
        };
        if !dir.exists()
            && let Some(already_archived) = archive_path(dir).filter(|to| to.join(DONE_MARK).exists())
        {
            return Ok(already_archived);
        }
        match File::create_new(dir.join(DONE_MARK)) {
            Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => return Err(unmarked_item(e)),
            _ => {}
        }
        let Some(archive_dir) = archive_path(dir).filter(|_| self.archive) else {
            return Ok(dir.join(DONE_MARK));
        };
        let renamed = std::fs::create_dir_all(archive_dir.parent().unwrap_or(dir))
            .and_then(|()| rename_no_replace(dir, &archive_dir));
        renamed.map(|()| archive_dir).map_err(unmarked_item)
    }
}

/// Returns a path relative to the root of the worktree that contains it. The path itself may be missing as
/// long as its parent folder exists.
fn path_in_worktree(path: &Path, worktree_roots: &[PathBuf]) -> Option<RepoPath> {
    let real = path
        .canonicalize()
        .ok()
        .or_else(|| Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?)))?;
    let candidates = worktree_roots.iter().filter_map(|top| real.strip_prefix(top).ok());
    // A lane's worktree may lie inside another worktree: the innermost one counts.
    RepoPath::from_path(candidates.min_by_key(|path| path.components().count())?)
}

impl MarkTarget {
    /// Returns the file whose presence in a tree shows that the target is committed there.
    fn tracked_file(&self, path: &RepoPath) -> RepoPath {
        match self.kind {
            TargetKind::File => path.clone(),
            TargetKind::Folder => path.join(PROMPT_FILE.as_bytes()),
        }
    }

    /// Returns the name of the file in a patch, which `git apply` resolves from the root of the worktree. For
    /// a file outside of all worktrees, it is the name in its folder, where the patch can be applied.
    fn patch_name(&self) -> String {
        let in_repo = self.repo_path.as_ref().map(|path| path.to_fs_path(Path::new("")));
        let name = in_repo.or_else(|| self.path.file_name().map(PathBuf::from));
        name.unwrap_or_default().display().to_string()
    }
}

/// Returns whether the parent folder of `path` in `tree` is a folder, or free to become one.
fn is_parent_folder_or_free(repo: &Repo, tree: TreeId, path: &RepoPath) -> Result<bool, git::Error> {
    let fs_path = path.to_fs_path(Path::new(""));
    match fs_path.parent().and_then(RepoPath::from_path) {
        Some(above) => repo.can_hold_folder(tree, &above),
        None => Ok(true),
    }
}

/// Returns a path as text for the user, with control characters escaped.
fn display_path(path: &Path) -> String {
    proq_base::terminal_text::escape_line(&path.display().to_string())
}

/// Returns whether all lines that the change from `before` to `after` removes are lines of `base`. If so, the
/// user has not edited those lines.
fn are_removed_lines_in_base(base: &[u8], before: &str, after: &str) -> bool {
    let base = String::from_utf8_lossy(base);
    let base_lines: BTreeSet<&str> = base.lines().collect();
    let input = InternedInput::new(before, after);
    let diff = Diff::compute(Algorithm::Histogram, &input);
    let lines: Vec<&str> = before.lines().collect();
    let removed_lines = diff.hunks().flat_map(|hunk| hunk.before);
    removed_lines.filter_map(|number| lines.get(number as usize)).all(|line| base_lines.contains(line))
}

/// Returns the change between two texts of the file `name` as a unified diff for `git apply`.
fn unified_patch(name: &str, before: &str, after: &str) -> String {
    let input = InternedInput::new(before, after);
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let printer = BasicLineDiffPrinter(&input.interner);
    format!(
        "--- a/{name}\n+++ b/{name}\n{}",
        diff.unified_diff(&printer, UnifiedDiffConfig::default(), &input)
    )
}
