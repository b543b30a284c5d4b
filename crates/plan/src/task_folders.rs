//! Plans in the form of task folders, one folder for each task: finding the folders and selecting those that
//! the sources name.

pub mod layout;
pub mod needs;
pub mod prompt_file;
pub mod walk;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use proq_base::terminal_text;

use super::plan::{Group, Plan, SourceNote, Task};
use super::plan_error::{PlanError, SourceLocation};
use layout::{PROMPT_FILE, TaskFolder, TaskLayout, display_path};
use needs::{TaskIndex, TaskSelection};
use prompt_file::ParsedPrompt;
use walk::TaskWalk;

/// Reads the tasks that `sources` name: `all`, areas, folders and single files.
///
/// # Errors
/// Fails when a source is none of these, or when a task is not valid.
pub fn read_plan(dir: &Path, sources: &[String], layout: &TaskLayout<'_>) -> Result<Plan, PlanError> {
    let mut walk = TaskWalk::new(layout)?;
    let mut selected: BTreeSet<PathBuf> = BTreeSet::new();
    for source in sources {
        selected.extend(walk.resolve_source(dir, source)?);
    }
    let (folders, mut notes) = walk.finish()?;
    let task_index = TaskIndex::from_folders(&folders);
    let mut tasks = Vec::new();
    let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let selection = TaskSelection { dir: &dir, sources, selected: &selected };
    for folder in folders.iter().filter(|folder| selected.contains(&folder.path) && !folder.archived) {
        tasks.push(read_task_with_needs(folder, &task_index, &selection, layout, &mut notes)?);
    }
    // Areas become groups, sorted by name.
    let mut groups: Vec<Group> = Vec::new();
    for task in tasks {
        let theme = task.area.clone().unwrap_or_default();
        match groups.last_mut().filter(|group| group.theme == theme) {
            Some(group) => group.tasks.push(task),
            None => groups.push(Group { theme, tasks: vec![task], ..Group::default() }),
        }
    }
    Ok(Plan { source_notes: notes, ..Plan::from_groups(groups) })
}

/// A task that was read alone, with its location.
#[derive(Debug)]
pub struct SingleTask {
    /// The task, without resolved dependencies.
    pub task: Task,
    /// The absolute path of the task's folder.
    pub path: PathBuf,
    /// The path of the task's folder, relative to the worktree's top.
    pub relative_path: String,
    /// The names of dependencies that are not done.
    pub open_needs: Vec<String>,
    /// Notes on oddities in the task's file.
    pub notes: Vec<SourceNote>,
}

/// Reads one task, named by its folder or its PROMPT.md.
///
/// # Errors
/// Fails when the source does not name exactly one task, or when the task is not valid.
pub fn read_single_task(dir: &Path, source: &str, layout: &TaskLayout<'_>) -> Result<SingleTask, PlanError> {
    let mut walk = TaskWalk::new(layout)?;
    let paths = walk.resolve_source(dir, source)?;
    let [path] = paths.as_slice() else {
        return Err(PlanError::NotSingleTask { source_name: source.to_owned(), count: paths.len() });
    };
    let (folders, _) = walk.finish()?;
    let folder = folders.iter().find(|folder| folder.path == *path);
    let folder = folder
        .ok_or_else(|| PlanError::SourceNotFound { source_name: source.to_owned(), hint: String::new() })?;
    let (parsed, mut task) = read_task(folder, &TaskIndex::from_folders(&folders), layout)?;
    task.area.clone_from(&folder.area);
    let relative = path.strip_prefix(layout.top).ok().and_then(Path::to_str);
    let relative = relative.ok_or_else(|| PlanError::OutsideRepository { path: path.clone() })?.to_owned();
    let open_needs = TaskIndex::from_folders(&folders).open_needs(folder, &parsed.needs);
    Ok(SingleTask { task, path: path.clone(), relative_path: relative, open_needs, notes: parsed.notes })
}

/// Returns the error for a source that is neither a file nor an area.
pub(crate) fn source_not_found(source: &str, layout: &TaskLayout<'_>) -> PlanError {
    match TaskWalk::new(layout) {
        Ok(walk) => walk.source_not_found(source),
        Err(error) => error,
    }
}

/// Reads one task and resolves its dependencies.
fn read_task_with_needs(
    folder: &TaskFolder,
    task_index: &TaskIndex<'_>,
    selection: &TaskSelection<'_>,
    layout: &TaskLayout<'_>,
    notes: &mut Vec<SourceNote>,
) -> Result<Task, PlanError> {
    let (parsed, mut task) = read_task(folder, task_index, layout)?;
    notes.extend(parsed.notes);
    for need in parsed.needs {
        if let Some(need) = task_index.resolve_need(folder, need, selection)? {
            task.needs.push(need);
        }
    }
    Ok(task)
}

/// Reads the files of one task, without resolving its dependencies.
fn read_task(
    folder: &TaskFolder,
    task_index: &TaskIndex<'_>,
    layout: &TaskLayout<'_>,
) -> Result<(ParsedPrompt, Task), PlanError> {
    let path = folder.path.join(PROMPT_FILE);
    let file = display_path(layout.top, &path);
    let text = layout.read_text(&path)?;
    let mut parsed = prompt_file::parse(&file, &text, task_index)?;
    if let Some((id, location)) = parsed.id.take().filter(|(id, _)| !id.eq_ignore_ascii_case(&folder.id)) {
        let message = format!("the heading names '{id}', but the folder is '{}'", folder.id);
        return Err(PlanError::invalid(&location, message, "give both the same ID"));
    }
    let progress = match layout.read_optional_text(&folder.path.join("STATUS.md"))? {
        Some(status) => prompt_file::parse_progress(&status),
        None => prompt_file::parse_progress(&text),
    };
    let name = folder.path.file_name().unwrap_or_default().to_string_lossy();
    let title = parsed.title.take().unwrap_or_else(|| terminal_text::escape_line(&name));
    let mut task = Task::new(folder.id.clone(), title, SourceLocation { file, line: 1, column: 1 });
    task.area.clone_from(&folder.area);
    task.scope.clone_from(&parsed.scope);
    task.size = parsed.size;
    task.review_level = parsed.review_level;
    task.done = folder.done;
    task.progress = progress;
    task.prompt = text;
    Ok((parsed, task))
}

#[cfg(test)]
mod tests;
