//! Layout of task folders: areas, task folders and the names of their files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proq_base::terminal_text;

use crate::plan::is_task_or_area_name;
use crate::plan_error::PlanError;
use crate::source_file;

/// File name of a task's prompt.
pub const PROMPT_FILE: &str = "PROMPT.md";
/// Source that names the tasks of all areas.
pub(crate) const ALL_AREAS: &str = "all";
/// Name of the folder for done tasks.
pub(crate) const ARCHIVE_FOLDER: &str = "archive";
/// File name of the mark in a done task's folder.
pub const DONE_MARK: &str = ".DONE";

/// The folder of one task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskFolder {
    /// The task's id, which the folder's name starts with.
    pub id: String,
    /// The task's area; none where the folder lies in the same folder as the areas.
    pub area: Option<String>,
    /// The path of the folder, without links.
    pub path: PathBuf,
    /// Whether the folder is archived or has a mark that the task is done.
    pub done: bool,
    /// Whether the folder lies in an archive. An archived task is no longer part of any plan.
    pub(crate) archived: bool,
}

impl TaskFolder {
    /// Returns the task's name, `area/ID` or the ID of a task without an area.
    pub fn task_name(&self) -> String {
        match &self.area {
            Some(area) => format!("{area}/{}", self.id),
            None => self.id.clone(),
        }
    }
}

/// Folders in which a repository has its tasks.
#[derive(Debug, Clone)]
pub struct TaskLayout<'a> {
    /// The worktree's top, without links in the path.
    pub top: &'a Path,
    /// The folder whose subfolders are areas, relative to the top.
    pub tasks_dir: &'a str,
    /// Areas in other folders: name and folder.
    pub areas: &'a [(String, String)],
}

impl TaskLayout<'_> {
    /// Returns whether an area has this name.
    pub(crate) fn has_area(&self, name: &str) -> bool {
        let is_folder = || {
            is_task_or_area_name(name)
                && name != ARCHIVE_FOLDER
                && self.top.join(self.tasks_dir).join(name).is_dir()
        };
        self.areas.iter().any(|(area, _)| area == name) || is_folder()
    }

    /// Reads a text file of the repository.
    pub fn read_text(&self, path: &Path) -> Result<String, PlanError> {
        match self.read_optional_text(path)? {
            Some(text) => Ok(text),
            None => Err(PlanError::SourceNotFound {
                source_name: display_path(self.top, path).to_string(),
                hint: String::new(),
            }),
        }
    }

    /// Reads a text file of the repository; none when there is no file at `path`.
    pub(crate) fn read_optional_text(&self, path: &Path) -> Result<Option<String>, PlanError> {
        let Some(real) = self.resolve_inside(path)? else { return Ok(None) };
        // Read regular files only: a read from a pipe, for example, might never end.
        if real.is_file() { source_file::read_text(&real).map(Some) } else { Ok(None) }
    }

    /// Resolves the links of a path; none where nothing exists there. Fails for a path out of the repository.
    pub(crate) fn resolve_inside(&self, path: &Path) -> Result<Option<PathBuf>, PlanError> {
        let real = match path.canonicalize() {
            Ok(real) => real,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(PlanError::Unreadable { path: path.to_owned(), source }),
        };
        if real.starts_with(self.top) {
            Ok(Some(real))
        } else {
            Err(PlanError::OutsideRepository { path: path.to_owned() })
        }
    }
}

/// Returns the path to which a done task's folder is archived; none for a folder without a parent.
pub fn archive_path(folder: &Path) -> Option<PathBuf> {
    Some(folder.parent()?.join(ARCHIVE_FOLDER).join(folder.file_name()?))
}

/// Returns a path for display, relative to the repository's top where it lies below.
pub fn display_path(top: &Path, path: &Path) -> Arc<str> {
    Arc::from(terminal_text::escape_line(&path.strip_prefix(top).unwrap_or(path).to_string_lossy()))
}

/// Returns the id that a folder's name starts with, as in `AUTH-014-add-roles`; otherwise the entire name.
/// None where that is not a valid name.
pub(crate) fn id_from_folder_name(name: &str) -> Option<&str> {
    let mut words = name.splitn(3, '-');
    let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let is_number =
        second.starts_with(|c: char| c.is_ascii_digit()) && second.chars().all(|c| c.is_ascii_alphanumeric());
    let id = if is_number && first.starts_with(|c: char| c.is_ascii_alphabetic()) {
        &name[..first.len() + 1 + second.len()]
    } else {
        name
    };
    is_task_or_area_name(id).then_some(id)
}
