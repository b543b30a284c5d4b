//! Walk over areas and task folders. It follows no link out of the repository.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proq_base::explain::closest_match;

use super::layout::{
    ALL_AREAS, ARCHIVE_FOLDER, DONE_MARK, PROMPT_FILE, TaskFolder, TaskLayout, display_path,
    id_from_folder_name,
};
use crate::plan::{MAX_TASKS, SourceNote, is_task_or_area_name};
use crate::plan_error::{PlanError, SourceLocation};

/// State of a walk over areas and task folders.
pub(crate) struct TaskWalk<'h> {
    layout: &'h TaskLayout<'h>,
    /// The folders of areas by name.
    areas: BTreeMap<String, PathBuf>,
    /// Task folders that were found.
    folders: Vec<TaskFolder>,
    /// Folders of areas that were scanned.
    scanned_dirs: BTreeSet<PathBuf>,
    /// Notes on oddities that were found.
    notes: Vec<SourceNote>,
}

impl<'h> TaskWalk<'h> {
    /// Scans all areas of the layout.
    pub fn new(layout: &'h TaskLayout<'h>) -> Result<TaskWalk<'h>, PlanError> {
        let mut walk = TaskWalk {
            layout,
            areas: BTreeMap::new(),
            folders: Vec::new(),
            scanned_dirs: BTreeSet::new(),
            notes: Vec::new(),
        };
        let tasks_dir = layout.top.join(layout.tasks_dir);
        if let Some(real) = layout.resolve_inside(&tasks_dir)?.filter(|real| real.is_dir()) {
            for (name, path) in walk.list_subfolders(&real)? {
                if path.join(PROMPT_FILE).exists() {
                    walk.add_folder(None, &name, path, false)?;
                } else if is_task_or_area_name(&name) && name != ARCHIVE_FOLDER {
                    walk.areas.insert(name, path);
                } else if name != ARCHIVE_FOLDER {
                    walk.add_note(&path, "this cannot be the name of an area, so it is skipped");
                }
            }
            walk.scan_archive(None, &real)?;
            walk.scanned_dirs.insert(real);
        }
        for (name, folder) in layout.areas {
            let path = layout.top.join(folder);
            match layout.resolve_inside(&path)?.filter(|real| real.is_dir()) {
                Some(real) => drop(walk.areas.insert(name.clone(), real)),
                None => walk.add_note(&path, &format!("area '{name}' has no such folder")),
            }
        }
        for (name, path) in walk.areas.clone() {
            walk.scan_area(&name, &path)?;
        }
        Ok(walk)
    }

    /// Returns the task folders that one source names.
    pub(crate) fn resolve_source(&mut self, dir: &Path, source: &str) -> Result<Vec<PathBuf>, PlanError> {
        if source == ALL_AREAS {
            return Ok(self.folders.iter().map(|folder| folder.path.clone()).collect());
        }
        if let Some(area) = self.areas.get(source).cloned() {
            return Ok(self.task_paths_in(&area));
        }
        let path = dir.join(source);
        let Some(real) = self.layout.resolve_inside(&path)? else {
            return Err(self.source_not_found(source));
        };
        let folder = match real.file_name() {
            Some(name) if name == PROMPT_FILE => real.parent().unwrap_or(&real).to_owned(),
            _ if real.is_dir() => real,
            _ => return Err(self.source_not_found(source)),
        };
        if folder.join(PROMPT_FILE).exists() {
            self.scan_single_task(&folder)?;
            return Ok(vec![folder]);
        }
        if !self.scanned_dirs.contains(&folder) {
            let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let name = if is_task_or_area_name(&name) { name } else { "tasks".to_owned() };
            self.scan_area(&name, &folder)?;
        }
        let paths = self.task_paths_in(&folder);
        if paths.is_empty() { Err(PlanError::NoTasks { source_name: source.to_owned() }) } else { Ok(paths) }
    }

    /// Returns all task folders, sorted by area and id, with the notes. Fails when an area has an id twice.
    pub fn finish(mut self) -> Result<(Vec<TaskFolder>, Vec<SourceNote>), PlanError> {
        let key = |f: &TaskFolder| (f.area.as_ref().map(|a| a.to_lowercase()), f.id.to_lowercase());
        self.folders.sort_by_key(|folder| (key(folder), folder.path.clone()));
        let mut pairs = self.folders.windows(2);
        if let Some([first, second]) = pairs.find(|pair| key(&pair[0]) == key(&pair[1])) {
            let location = |f: &TaskFolder| SourceLocation {
                file: display_path(self.layout.top, &f.path.join(PROMPT_FILE)),
                line: 1,
                column: 1,
            };
            return Err(PlanError::DuplicateTask {
                name: second.task_name(),
                first: location(first),
                second: location(second),
            });
        }
        self.folders.sort_by_key(|f| (f.area.clone(), natural_sort_key(&f.id), f.path.clone()));
        Ok((self.folders, self.notes))
    }

    /// Returns the folders of the tasks that lie below an area's folder.
    fn task_paths_in(&self, area: &Path) -> Vec<PathBuf> {
        self.folders.iter().map(|f| f.path.clone()).filter(|path| path.starts_with(area)).collect()
    }

    /// Adds a task that was named by its own folder. Its parent folder counts as its area, although the
    /// layout does not name it.
    fn scan_single_task(&mut self, folder: &Path) -> Result<(), PlanError> {
        if self.folders.iter().any(|scanned_folder| scanned_folder.path == folder) {
            return Ok(());
        }
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let parent = folder.parent().unwrap_or(folder);
        let area = parent.file_name().map(|area| area.to_string_lossy().into_owned());
        let area = area.filter(|area| is_task_or_area_name(area) && parent != self.layout.top);
        match area {
            Some(area) => self.scan_area(&area, parent),
            None => self.add_folder(None, &name, folder.to_owned(), false),
        }
    }

    /// Scans the folder of an area, once.
    fn scan_area(&mut self, name: &str, path: &Path) -> Result<(), PlanError> {
        if !self.scanned_dirs.insert(path.to_owned()) {
            return Ok(());
        }
        for (folder, path) in self.list_subfolders(path)? {
            if path.join(PROMPT_FILE).exists() {
                self.add_folder(Some(name), &folder, path, false)?;
            }
        }
        self.scan_archive(Some(name), path)
    }

    /// Adds the tasks in the archive below `path`, if it has one.
    fn scan_archive(&mut self, area: Option<&str>, path: &Path) -> Result<(), PlanError> {
        let Some(archive) =
            self.layout.resolve_inside(&path.join(ARCHIVE_FOLDER))?.filter(|archive| archive.is_dir())
        else {
            return Ok(());
        };
        for (name, path) in self.list_subfolders(&archive)? {
            self.add_folder(area, &name, path, true)?;
        }
        Ok(())
    }

    /// Adds a task folder, or a note where its name is not valid.
    fn add_folder(
        &mut self,
        area: Option<&str>,
        name: &str,
        path: PathBuf,
        archived: bool,
    ) -> Result<(), PlanError> {
        let Some(id) = id_from_folder_name(name) else {
            self.add_note(&path, "this cannot be the name of a task, so it is skipped");
            return Ok(());
        };
        if self.folders.len() >= MAX_TASKS {
            return Err(PlanError::TooManyTasks { max_tasks: MAX_TASKS });
        }
        let done = archived || self.layout.resolve_inside(&path.join(DONE_MARK))?.is_some();
        self.folders.push(TaskFolder {
            id: id.to_owned(),
            area: area.map(ToOwned::to_owned),
            path,
            done,
            archived,
        });
        Ok(())
    }

    /// Returns the subfolders of a folder, sorted by name, without hidden ones.
    fn list_subfolders(&mut self, folder: &Path) -> Result<Vec<(String, PathBuf)>, PlanError> {
        let unreadable = |source| PlanError::Unreadable { path: folder.to_owned(), source };
        let mut out = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(unreadable)?.take(2 * MAX_TASKS) {
            let entry = entry.map_err(unreadable)?;
            let path = entry.path();
            let Some(name) = entry.file_name().to_str().map(ToOwned::to_owned) else { continue };
            if name.starts_with('.') || !path.is_dir() {
                continue;
            }
            match self.layout.resolve_inside(&path) {
                Ok(Some(real)) => out.push((name, real)),
                Ok(None) => {}
                Err(PlanError::OutsideRepository { .. }) => {
                    self.add_note(&path, "this is a link out of the repository, so it is skipped");
                }
                Err(error) => return Err(error),
            }
        }
        out.sort();
        Ok(out)
    }

    /// Adds a note about a path.
    fn add_note(&mut self, path: &Path, text: &str) {
        let location = SourceLocation { file: display_path(self.layout.top, path), line: 0, column: 0 };
        self.notes.push(SourceNote { location, text: text.to_owned() });
    }

    /// Returns the error for a source that is no area, folder or file, with a hint.
    pub(crate) fn source_not_found(&self, source: &str) -> PlanError {
        let areas: Vec<&str> = self.areas.keys().map(String::as_str).collect();
        let hint = match closest_match(source, areas.iter().copied()) {
            Some(suggestion) => format!("did you mean '{suggestion}'?"),
            None if areas.is_empty() => String::new(),
            None => format!("the areas are: {}", areas.join(", ")),
        };
        PlanError::SourceNotFound { source_name: source.to_owned(), hint }
    }
}

/// Returns a sort key for ids that puts `A-10` after `A-9`.
fn natural_sort_key(id: &str) -> (String, u64, String) {
    let digits_start = id.find(|c: char| c.is_ascii_digit()).unwrap_or(id.len());
    let digits: String = id[digits_start..].chars().take_while(char::is_ascii_digit).collect();
    (id[..digits_start].to_lowercase(), digits.parse().unwrap_or_default(), id.to_owned())
}
