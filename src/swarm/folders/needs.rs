//! Owns finding the tasks that a folder's task needs, in all areas, whether they are part of the plan or not.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::super::Error;
use super::super::plan::Need;
use super::Folder;
use crate::explain::nearest;

/// What is part of the plan, and how that was named.
pub(super) struct Chosen<'c> {
    /// The folder that it was named in.
    pub(super) dir: &'c Path,
    pub(super) sources: &'c [String],
    /// The folders.
    pub(super) wanted: &'c BTreeSet<PathBuf>,
}

impl Chosen<'_> {
    /// What to name so that a task that `folder` needs is part of the plan too.
    fn source(&self, folder: &Folder, found: &Folder) -> String {
        match &found.area {
            Some(area) if found.area != folder.area => area.clone(),
            _ => found.path.strip_prefix(self.dir).unwrap_or(&found.path).to_string_lossy().into_owned(),
        }
    }
}

/// Every task there is, by its name.
pub(super) struct Known<'f> {
    folders: &'f [Folder],
    by_id: BTreeMap<String, Vec<usize>>,
}

impl<'f> Known<'f> {
    pub(super) fn of(folders: &'f [Folder]) -> Known<'f> {
        let mut by_id: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, folder) in folders.iter().enumerate() {
            by_id.entry(folder.id.to_lowercase()).or_default().push(at);
        }
        Known { folders, by_id }
    }

    /// Whether some task is called that.
    pub(super) fn has(&self, name: &str) -> bool {
        let id = name.rsplit('/').next().unwrap_or(name);
        self.by_id.contains_key(&id.to_lowercase())
    }

    /// The task that `need` names, by its full name; none for one that is done and no part of the plan.
    ///
    /// # Errors
    /// When there is none, or there are several, or it is open and no part of the plan.
    pub(super) fn find(
        &self,
        folder: &Folder,
        need: Need,
        chosen: &Chosen<'_>,
    ) -> Result<Option<Need>, Error> {
        let found = match self.called(folder, &need.name).as_slice() {
            [] => {
                return Err(Error::Unknown {
                    place: need.place,
                    task: folder.name(),
                    near: self.near(folder, &need.name),
                    need: need.name,
                });
            }
            [one] => &self.folders[*one],
            several => {
                return Err(Error::Ambiguous {
                    place: need.place,
                    task: folder.name(),
                    need: need.name,
                    all: several.iter().map(|at| self.folders[*at].name()).collect(),
                });
            }
        };
        match (chosen.wanted.contains(&found.path), found.done, found.archived) {
            (_, _, true) | (false, true, _) => Ok(None),
            (true, ..) => Ok(Some(Need { name: found.name(), place: need.place })),
            (false, false, false) => Err(Error::Elsewhere {
                place: need.place,
                task: folder.name(),
                need: found.name(),
                sources: chosen.sources.iter().cloned().chain([chosen.source(folder, found)]).collect(),
            }),
        }
    }

    /// What a task needs that nobody has done, as far as it is known.
    pub(super) fn open(&self, folder: &Folder, needs: &[Need]) -> Vec<String> {
        let is_open = |need: &&Need| !self.called(folder, &need.name).iter().any(|at| self.folders[*at].done);
        needs.iter().filter(is_open).map(|need| need.name.clone()).collect()
    }

    /// The tasks that a name may mean: in the same area first.
    fn called(&self, folder: &Folder, name: &str) -> Vec<usize> {
        let (area, id) = match name.split_once('/') {
            Some((area, id)) => (Some(area.to_lowercase()), id),
            None => (None, name),
        };
        let all = self.by_id.get(&id.to_lowercase()).map(Vec::as_slice).unwrap_or_default();
        let of_area = |at: &&usize| self.folders[**at].area.as_ref().map(|a| a.to_lowercase());
        if area.is_some() {
            return all.iter().filter(|at| of_area(at) == area).copied().collect();
        }
        match all.iter().find(|at| self.folders[**at].area == folder.area) {
            Some(own) => vec![*own],
            None => all.to_vec(),
        }
    }

    fn near(&self, folder: &Folder, name: &str) -> Option<String> {
        let others = || self.folders.iter().filter(|other| other.path != folder.path);
        let id = name.rsplit('/').next().unwrap_or(name);
        let same = others().find(|other| other.id.eq_ignore_ascii_case(id));
        let near = || nearest(id, others().map(|other| other.id.as_str()));
        let near = same.map(|other| other.id.as_str()).or_else(near)?;
        others().find(|other| other.id == near).map(Folder::name)
    }
}
