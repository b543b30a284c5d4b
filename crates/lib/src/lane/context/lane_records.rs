//! Records of present and removed lanes: lookup by name, loading and changes.

use std::path::{Path, PathBuf};

use proq_base::lane_name::LaneName;
use proq_base::time_form::short_duration;
use proq_store as store;
use proq_store::base::clock::now;
use proq_store::base::record::Record;
use proq_store::locks::lock::{LockGuard, LockName};
use proq_store::paths::layout::Layout;
use proq_store::records::lane::{AnyLane, LandingInfo, LaneKind, LaneRecord};

use crate::errors::lane_lookup_error::LaneLookupError;
use crate::errors::removed_lane::RemovedLane;
use crate::lane::{Error, Project};

impl Project {
    /// Returns whether there is a record of a lane, readable or not.
    #[must_use]
    pub fn has_lane_records(&self) -> bool {
        let layout = self.store.layout();
        Layout::entry_names(&layout.lanes()).iter().any(|name| layout.has_record_of_lane_entry(name))
    }

    /// Returns all owned lanes on record, by name; guest lanes are left out. An unreadable record causes a
    /// warning and is left out.
    pub fn owned_lanes(&self) -> Result<Vec<LaneRecord>, Error> {
        Ok(self.all_lanes()?.into_iter().filter_map(|lane| lane.into_owned_lane().ok()).collect())
    }

    /// Returns all lanes on record by name, including those without their own branch. An unreadable record
    /// causes a warning and is left out.
    pub fn all_lanes(&self) -> Result<Vec<AnyLane>, Error> {
        self.load_lanes(&|warning| self.listener.warn(warning))
    }

    /// Returns all lanes as [`Project::all_lanes`] does, and passes a warning for each unreadable record to `warn`.
    pub(crate) fn load_lanes(&self, warn: &dyn Fn(String)) -> Result<Vec<AnyLane>, Error> {
        let dir = self.store.layout().lanes();
        let mut names = Vec::new();
        match std::fs::read_dir(&dir) {
            Ok(entries) => {
                for entry in entries.flatten() {
                    names.extend(entry.file_name().into_string());
                }
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(store::Error::io("read", &dir)(e).into()),
        }
        names.sort_unstable();
        let mut out = Vec::new();
        for name in names {
            match self.store.load_record(&self.store.layout().record_of_lane_entry(&name)) {
                Ok(found) => out.extend(found.map(|lane| self.with_current_location(lane))),
                Err(e) => warn(format!("lane '{name}': {e}")),
            }
        }
        Ok(out)
    }

    /// Returns the lane with this name, which must have a branch to land.
    ///
    /// # Errors
    /// [`Error::UnknownLane`], and [`Error::NoLaneBranch`] for a lane without its own branch.
    pub fn lane(&self, name: &LaneName) -> Result<LaneRecord, Error> {
        require_branch(self.any_lane(name)?)
    }

    /// Returns the lane with this name, of any kind.
    ///
    /// # Errors
    /// [`Error::UnknownLane`].
    pub fn any_lane(&self, name: &LaneName) -> Result<AnyLane, Error> {
        self.load_lane(name, name.as_str())
    }

    /// Returns the lane that a user named, as [`Project::find_any_lane`] does, which must have a branch to land.
    ///
    /// # Errors
    /// [`Error::UnknownLane`], [`LaneLookupError::Ambiguous`], and [`Error::NoLaneBranch`] for a lane without its own
    /// branch.
    pub fn find_lane(&self, name_or_branch: &str) -> Result<LaneRecord, Error> {
        require_branch(self.find_any_lane(name_or_branch)?)
    }

    /// Returns the lane that a user named: by its name or branch, or else by the beginning of its name, if no
    /// other name begins so. Capitals count as small letters. The whole name of a removed lane is the beginning of
    /// no other.
    ///
    /// # Errors
    /// [`Error::UnknownLane`], and [`LaneLookupError::Ambiguous`] for the beginning of two names.
    pub fn find_any_lane(&self, name_or_branch: &str) -> Result<AnyLane, Error> {
        if let Some(lane) = self.lane_with_exact_name(name_or_branch)? {
            return Ok(lane);
        }
        let prefix = self.without_branch_prefix(name_or_branch).to_lowercase();
        // Otherwise a command that is repeated after its lane has landed could change another lane.
        // The record need not be readable.
        if self.last_removed_name(&prefix).is_some() {
            return Err(self.unknown_lane(name_or_branch)?);
        }
        let mut matching = self.load_lanes(&|_| {})?;
        matching.retain(|lane| !prefix.is_empty() && lane.name.as_str().starts_with(&prefix));
        match matching.len() {
            1 => Ok(matching.remove(0)),
            0 => Err(self.unknown_lane(name_or_branch)?),
            _ => {
                let lanes = matching.into_iter().map(|lane| lane.name).collect();
                Err(LaneLookupError::Ambiguous { name: name_or_branch.to_owned(), lanes }.into())
            }
        }
    }

    /// Returns the lane with this whole name or branch, of any kind; none when there is no such lane.
    ///
    /// # Errors
    /// Fails when the record cannot be read.
    pub fn lane_with_exact_name(&self, name_or_branch: &str) -> Result<Option<AnyLane>, Error> {
        let folded_name = self.without_branch_prefix(name_or_branch).to_lowercase();
        let Ok(name) = LaneName::parse(&folded_name) else { return Ok(None) };
        let record = self.store.load_record(&self.store.layout().lane_record(&name))?;
        Ok(record.map(|lane| self.with_current_location(lane)))
    }

    /// Loads the record of a lane; `given_text` names it in an error.
    fn load_lane(&self, name: &LaneName, given_text: &str) -> Result<AnyLane, Error> {
        match self.store.load_record(&self.store.layout().lane_record(name))? {
            Some(record) => Ok(self.with_current_location(record)),
            None => Err(self.unknown_lane(given_text)?),
        }
    }

    /// Returns the name of the lane with this name or branch, without a check that the lane exists.
    ///
    /// # Errors
    /// [`Error::UnknownLane`] for a text that no lane can have as its name or branch.
    pub fn lane_name(&self, name_or_branch: &str) -> Result<LaneName, Error> {
        match LaneName::parse(self.without_branch_prefix(name_or_branch)) {
            Ok(name) => Ok(name),
            Err(_) => Err(self.unknown_lane(name_or_branch)?),
        }
    }

    /// Returns the error for a name or branch that no lane has.
    fn unknown_lane(&self, name_or_branch: &str) -> Result<Error, Error> {
        let name = self.without_branch_prefix(name_or_branch).to_lowercase();
        let (similar, removed) = (self.similar_name(&name)?, self.last_removed_lane(&name).map(Box::new));
        Ok(Error::UnknownLane {
            name: name_or_branch.chars().take(80).collect(),
            may_be_group: false,
            removed,
            similar,
        })
    }

    /// Returns the name, as `NAME@NUMBER`, of the lane with this name that was removed last.
    pub(crate) fn last_removed_name(&self, name: &str) -> Option<String> {
        let numbers = Layout::entry_names(&self.store.layout().removed_lanes())
            .into_iter()
            .filter_map(|past_name| past_name.strip_prefix(name)?.strip_prefix('@')?.parse::<u32>().ok());
        Some(format!("{name}@{}", numbers.max()?))
    }

    /// Returns the lane with this name that was removed last, and what became of it.
    fn last_removed_lane(&self, name: &str) -> Option<RemovedLane> {
        let past_name = self.last_removed_name(name)?;
        let (_, lane) = self.past_lane(&past_name).ok().flatten()?;
        let fate = match &lane.landed {
            Some(LandingInfo { commit, onto, .. }) => format!("it landed on {onto} as {}", commit.short()),
            None => "it was removed".to_owned(),
        };
        let time = lane.landed.as_ref().map_or(lane.state_changed_at, |landed| landed.landed_at);
        let age = short_duration(now().duration_since(time));
        Some(RemovedLane { past_name, fate: format!("{fate} {age} ago") })
    }

    /// Removes the prefix of lanes' branches from a text, if it begins with that.
    fn without_branch_prefix<'t>(&self, name_or_branch: &'t str) -> &'t str {
        let suffix = name_or_branch.strip_prefix(self.settings.branch_prefix.as_str());
        suffix.and_then(|suffix| suffix.strip_prefix('/')).unwrap_or(name_or_branch)
    }

    /// Updates a lane's record with the current folder of its worktree and the branch its base name resolves
    /// to. Moving a worktree with git changes only git's record, and so does renaming a branch and leaving a
    /// symbolic ref in its place. A run in the main checkout commits to the branch it started on, or to none,
    /// so its lane is returned unchanged.
    pub(crate) fn with_current_location(&self, mut lane: AnyLane) -> AnyLane {
        let LaneKind::Owned(tree) = &lane.kind else { return lane };
        if let Some(path) = self.repo.recorded_new_location(&lane.path, &tree.worktree_id, &tree.branch) {
            lane.path = path;
        }
        lane.base = self.repo.resolve_symbolic_branch(&lane.base);
        lane
    }

    /// Returns a removed lane by its past name `name@N`, with its folder in the history; none when the name
    /// has another form or there is no record.
    pub fn past_lane(&self, past_name: &str) -> Result<Option<(PathBuf, AnyLane)>, Error> {
        let Some((name, number)) = past_name.split_once('@') else { return Ok(None) };
        if LaneName::parse(name).is_err() || number.parse::<u32>().is_err() {
            return Ok(None);
        }
        let dir = self.store.layout().removed_lane(past_name);
        Ok(AnyLane::load_if_exists(&Layout::lane_record_in(&dir))?.map(|record| (dir, record)))
    }

    /// Returns the removed lanes that had a branch to land, as `(name@N, record)`, by name.
    pub fn past_owned_lanes(&self) -> Vec<(String, LaneRecord)> {
        let past = self.all_past_lanes().into_iter();
        past.filter_map(|(name, lane)| Some((name, lane.into_owned_lane().ok()?))).collect()
    }

    /// Returns all removed lanes as `(name@N, record)`, by name. An unreadable record is left out.
    pub fn all_past_lanes(&self) -> Vec<(String, AnyLane)> {
        let dir = self.store.layout().removed_lanes();
        let Ok(entries) = std::fs::read_dir(&dir) else { return Vec::new() };
        let mut out = Vec::new();
        for name in entries.flatten().filter_map(|e| e.file_name().into_string().ok()) {
            if let Ok(Some(record)) = AnyLane::load_if_exists(&Layout::lane_record_in(&dir.join(&name))) {
                out.push((name, record));
            }
        }
        out.sort_by(|a, b| a.0.cmp(&b.0));
        out
    }

    /// Returns the owned lane whose worktree contains `dir`; none outside of any. Unreadable records are left out
    /// without a warning.
    pub(crate) fn owned_lane_at(&self, dir: &Path) -> Result<Option<LaneRecord>, Error> {
        let owned = self.load_lanes(&|_| {})?.into_iter().filter_map(|lane| lane.into_owned_lane().ok());
        Ok(owned.into_iter().find(|lane| dir.starts_with(&lane.path)))
    }

    /// Changes a lane's record under the lock on records, based on the text on disk at that moment.
    pub fn update_lane(&self, name: &LaneName, change: impl FnOnce(&mut AnyLane)) -> Result<AnyLane, Error> {
        let store = self.store.locks().acquire(&LockName::Store)?;
        self.update_lane_locked(name, &store, change)
    }

    /// Changes a lane's record for a caller that holds the lock on records: facts it checked under the lock
    /// still hold.
    pub(crate) fn update_lane_locked(
        &self,
        name: &LaneName,
        _store: &LockGuard,
        change: impl FnOnce(&mut AnyLane),
    ) -> Result<AnyLane, Error> {
        let path = self.store.layout().lane_record(name);
        let record = self.with_current_location(AnyLane::load(&path)?).with_change(change);
        record.save(&path)?;
        Ok(record)
    }

    /// Returns the lane whose name is most similar to `name` or contains it, for a hint; none when there is none.
    fn similar_name(&self, name: &str) -> Result<Option<LaneName>, Error> {
        let lanes = self.all_lanes()?;
        let best = lanes
            .iter()
            .map(|lane| (strsim::jaro_winkler(lane.name.as_str(), name), &lane.name))
            .filter(|(score, _)| *score > 0.8)
            .max_by(|a, b| a.0.total_cmp(&b.0));
        let containing = || lanes.iter().map(|lane| &lane.name).find(|lane| lane.as_str().contains(name));
        Ok(best.map(|(_, name)| name).or_else(containing).filter(|_| !name.is_empty()).cloned())
    }
}

/// Returns a lane as one with a branch to land.
///
/// # Errors
/// [`Error::NoLaneBranch`].
pub(crate) fn require_branch(lane: AnyLane) -> Result<LaneRecord, Error> {
    let name = lane.name.clone();
    lane.into_owned_lane().map_err(|purpose| Error::NoLaneBranch { name, purpose })
}

/// Returns the present record of a lane, or the last one if the lane was removed, with the folder of its
/// records. A lane with auto-merge may be removed as soon as its run is finished.
///
/// # Errors
/// [`Error::UnknownLane`] when no record of the lane is left.
pub fn load_present_or_past_lane<P>(
    project: &Project,
    lane: &LaneRecord<P>,
) -> Result<(PathBuf, AnyLane), Error> {
    let layout = project.store.layout();
    let record = project.store.load_record(&layout.lane_record(&lane.name))?;
    let record = record.map(|lane| project.with_current_location(lane));
    if let Some(present) = record.filter(|now| now.is_same_lane(lane)) {
        return Ok((layout.lane(&present.name), present));
    }
    let past = project.all_past_lanes().into_iter().rfind(|(_, past)| past.is_same_lane(lane));
    let past = past.map(|(name, past)| (layout.removed_lanes().join(name), past));
    past.ok_or_else(|| Error::UnknownLane {
        name: lane.name.to_string(),
        may_be_group: false,
        removed: None,
        similar: None,
    })
}
