//! Dependencies between task folders: resolving the needs of a task in all areas, whether they are part of
//! the plan or not.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proq_base::explain::closest_match;

use super::layout::TaskFolder;
use crate::plan::Need;
use crate::plan_error::PlanError;

/// The tasks that are part of the plan, and the sources that named them.
pub(crate) struct TaskSelection<'c> {
    /// The folder that relative sources start from.
    pub dir: &'c Path,
    /// Sources that the user named.
    pub sources: &'c [String],
    /// The folders of the tasks in the plan.
    pub(crate) selected: &'c BTreeSet<PathBuf>,
}

impl TaskSelection<'_> {
    /// Returns the source to add so that the plan includes `needed`, on which the task of `folder` depends.
    fn source_to_add(&self, folder: &TaskFolder, needed: &TaskFolder) -> String {
        match &needed.area {
            Some(area) if needed.area != folder.area => area.clone(),
            _ => needed.path.strip_prefix(self.dir).unwrap_or(&needed.path).to_string_lossy().into_owned(),
        }
    }
}

/// All task folders, indexed by lowercase task id.
pub struct TaskIndex<'f> {
    /// Task folders of all areas.
    folders: &'f [TaskFolder],
    /// Indexes of the folders with each id, in lowercase.
    by_id: BTreeMap<String, Vec<usize>>,
}

impl<'f> TaskIndex<'f> {
    pub(crate) fn from_folders(folders: &'f [TaskFolder]) -> TaskIndex<'f> {
        let mut by_id: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (index, folder) in folders.iter().enumerate() {
            by_id.entry(folder.id.to_lowercase()).or_default().push(index);
        }
        TaskIndex { folders, by_id }
    }

    /// Returns whether a task of any area has this id.
    pub(crate) fn contains_id(&self, name: &str) -> bool {
        let id = name.rsplit('/').next().unwrap_or(name);
        self.by_id.contains_key(&id.to_lowercase())
    }

    /// Resolves `need` to the full name of its task; none when that task is archived, or done and not part of
    /// the plan.
    ///
    /// # Errors
    /// Fails when no task or more than one task matches, or when the task is open and not part of the plan.
    pub(crate) fn resolve_need(
        &self,
        folder: &TaskFolder,
        need: Need,
        selection: &TaskSelection<'_>,
    ) -> Result<Option<Need>, PlanError> {
        let needed = match self.matching_folders(folder, &need.name).as_slice() {
            [] => {
                return Err(PlanError::UnknownNeed {
                    location: need.location,
                    task: folder.task_name(),
                    suggestion: self.suggest_name(folder, &need.name),
                    need: need.name,
                });
            }
            [only_match] => &self.folders[*only_match],
            matches => {
                return Err(PlanError::AmbiguousNeed {
                    location: need.location,
                    task: folder.task_name(),
                    need: need.name,
                    candidates: matches.iter().map(|index| self.folders[*index].task_name()).collect(),
                });
            }
        };
        match (selection.selected.contains(&needed.path), needed.done, needed.archived) {
            (_, _, true) | (false, true, _) => Ok(None),
            (true, ..) => Ok(Some(Need { name: needed.task_name(), location: need.location })),
            (false, false, false) => Err(PlanError::NeedNotIncluded {
                location: need.location,
                task: folder.task_name(),
                need: needed.task_name(),
                sources: selection
                    .sources
                    .iter()
                    .cloned()
                    .chain([selection.source_to_add(folder, needed)])
                    .collect(),
            }),
        }
    }

    /// Returns the names of `needs` that match no done task.
    pub fn open_needs(&self, folder: &TaskFolder, needs: &[Need]) -> Vec<String> {
        let is_open = |need: &&Need| {
            !self.matching_folders(folder, &need.name).iter().any(|index| self.folders[*index].done)
        };
        needs.iter().filter(is_open).map(|need| need.name.clone()).collect()
    }

    /// Returns the tasks that a name matches; a task of the same area takes precedence.
    fn matching_folders(&self, folder: &TaskFolder, name: &str) -> Vec<usize> {
        let (area, id) = match name.split_once('/') {
            Some((area, id)) => (Some(area.to_lowercase()), id),
            None => (None, name),
        };
        let same_id = self.by_id.get(&id.to_lowercase()).map(Vec::as_slice).unwrap_or_default();
        let area_of = |index: &&usize| self.folders[**index].area.as_ref().map(|a| a.to_lowercase());
        if area.is_some() {
            return same_id.iter().filter(|index| area_of(index) == area).copied().collect();
        }
        match same_id.iter().find(|index| self.folders[**index].area == folder.area) {
            Some(in_same_area) => vec![*in_same_area],
            None => same_id.to_vec(),
        }
    }

    /// Returns the name of the task that `name` most likely means; none if no id is similar.
    fn suggest_name(&self, folder: &TaskFolder, name: &str) -> Option<String> {
        let others = || self.folders.iter().filter(|other| other.path != folder.path);
        let id = name.rsplit('/').next().unwrap_or(name);
        let same_id = others().find(|other| other.id.eq_ignore_ascii_case(id));
        let nearest_id = || closest_match(id, others().map(|other| other.id.as_str()));
        let suggested_id = same_id.map(|other| other.id.as_str()).or_else(nearest_id)?;
        others().find(|other| other.id == suggested_id).map(TaskFolder::task_name)
    }
}
