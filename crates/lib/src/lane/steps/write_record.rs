//! The step that writes a record or deletes it, and its planning.

use std::cell::Cell;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use proq_base::fail_points;
use proq_base::lane_name::LaneName;
use proq_store::Store;
use proq_store::base::atomic::{remove_temp_files_of, write as write_atomically};
use proq_store::base::record::Record;
use proq_store::locks::lock::{LockGuard, LockName};
use proq_store::paths::layout::Layout;
use proq_store::records::lane::{AnyLane, LaneRecord};
use proq_store::records::lane_state::LaneState;
use proq_store::records::preview::PreviewRecord;
use serde::{Deserialize, Serialize};

use crate::lane::Error;
use crate::operation::journaled_operation::Operation;
use crate::operation::journaled_operation::step::effects::{Effect, SummarizedSteps};
use crate::operation::journaled_operation::step::undo::StepUndo;
use crate::operation::journaled_operation::step::{BoxedStep, Step, StepOutcome, WrittenRecord};

/// Write of a record; none stands for "does not exist".
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "do", rename = "file")]
pub struct WriteRecord {
    /// Path of the record, relative to `proq/`.
    #[serde(with = "proq_store::paths::path_form")]
    pub path: PathBuf,
    /// Old contents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// New contents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
}

impl Step for WriteRecord {
    fn written_record(&self) -> Option<WrittenRecord<'_>> {
        let WriteRecord { path, old, new } = self;
        Some(WrittenRecord { path, old: old.as_deref(), new: new.as_deref() })
    }

    fn effect(&self, summarized: &SummarizedSteps<'_>) -> Option<Effect> {
        if self.new.is_some() || !Layout::is_resolution_record(&self.path) {
            return None;
        }
        let lane = self.path.parent()?.file_name()?.to_string_lossy();
        let clause = match summarized.move_managed_branch() {
            true => format!("conflict of {lane} resolved"),
            false => format!("resolution of {lane} aborted"),
        };
        Some(Effect::Exclusive { rank: 0, clause })
    }

    fn log_line(&self) -> Option<String> {
        None
    }

    fn apply(&self, op: &Operation<'_>, _scratch: &Path) -> Result<StepOutcome, Error> {
        let _lock = op.lock_store()?;
        self.write(&op.project.store)?;
        Ok(StepOutcome::done())
    }

    fn invert(&self, op: &Operation<'_>) -> Result<(), Error> {
        let WriteRecord { path, old, new } = self.clone();
        drop(op.perform(WriteRecord { path, old: new, new: old })?);
        self.finish_inverse(op)
    }

    /// Turns off auto-merge of a lane whose landing was undone: the next landing would restore what the user
    /// has just undone.
    fn finish_undo(&self, undo: &StepUndo<'_, '_>) -> Result<(), Error> {
        let (op, Some(name)) = (undo.op, self.landed_lane()) else { return Ok(()) };
        let path = op.project.store.layout().lane_record(&name);
        if AnyLane::load_if_exists(&path)?.is_some_and(|lane| lane.auto_merge) {
            op.update_lane(&name, |record| record.auto_merge = false)?;
            op.project.listener.step_done(format!("disabled the automatic merge of lane '{name}'"));
        }
        Ok(())
    }

    /// Restores the empty folders that the main checkout had before a preview whose record is deleted again. If
    /// nothing else had to be parked, only that record names them.
    fn finish_inverse(&self, op: &Operation<'_>) -> Result<(), Error> {
        let WriteRecord { path, old: None, new: Some(text) } = self else { return Ok(()) };
        if op.store_relative_path(&op.project.store.layout().preview_record()) != *path {
            return Ok(());
        }
        let Ok(record) = toml::from_str::<PreviewRecord>(text) else { return Ok(()) };
        let Some(main) = op.project.repo.main_worktree().filter(|_| !record.empty_dirs.is_empty()) else {
            return Ok(());
        };
        op.lock_worktree(main)?.create_folders(&record.empty_dirs);
        Ok(())
    }

    /// Recovers a record that was being written, and deletes its temporary files. Returns whether the new text
    /// was written.
    fn recover(&self, op: &Operation<'_>, _scratch: &Path) -> Result<bool, Error> {
        let store = &op.project.store;
        let _lock = op.lock_store()?;
        let file = store.layout().root().join(&self.path);
        remove_temp_files_of(&file).map_err(Error::io("remove", &file))?;
        let text = store.record_text(&file)?;
        if text.is_none() {
            remove_empty_record_folder(store, &file);
        }
        Ok(text.as_deref() == self.new.as_deref() || self.is_merged_into(text.as_deref()))
    }
}

impl WriteRecord {
    /// Returns the lane that the step records as landed; none for another record.
    fn landed_lane(&self) -> Option<LaneName> {
        let text = self.new.as_ref().filter(|_| Layout::is_lane_record(&self.path))?;
        let record: LaneRecord = toml::from_str(text).ok()?;
        (record.state() == LaneState::Landed).then_some(record.name)
    }

    /// Returns whether a text that is not the step's old one has the step's change: a write that was merged into
    /// a concurrently changed record.
    fn is_merged_into(&self, text: Option<&str>) -> bool {
        let (old, new) = (self.old.as_deref(), self.new.as_deref());
        let merged = merge_tables(text, old, new);
        text != old && merged.is_some() && merged == merge_tables(text, new, new)
    }

    /// Writes a record with the change from the step's old text to its new text. Concurrent changes of other
    /// fields are retained. The caller holds the store's lock.
    ///
    /// # Errors
    /// [`Error::RecordChanged`] if the same field has been changed concurrently.
    fn write(&self, store: &Store) -> Result<(), Error> {
        let WriteRecord { path, old, new } = self;
        let file = store.layout().root().join(path);
        let current = store.record_text(&file)?;
        if current.as_deref() == new.as_deref() {
            return Ok(());
        }
        let text = if current.as_deref() == old.as_deref() {
            new.clone()
        } else {
            let merged = merge_tables(current.as_deref(), old.as_deref(), new.as_deref());
            Some(merged.ok_or_else(|| Error::RecordChanged { path: file.clone() })?)
        };
        if let Some(text) = text {
            write_atomically(&file, text.as_bytes())?;
            fail_points::hit("record.written");
            return Ok(());
        }
        store.delete_record(&file)?;
        remove_empty_record_folder(store, &file);
        Ok(())
    }
}

/// Guard of the lock on records, for as long as an operation needs it.
#[must_use]
pub(crate) struct StoreLock<'a> {
    is_locked: &'a Cell<bool>,
    _guard: LockGuard,
}

impl Drop for StoreLock<'_> {
    fn drop(&mut self) {
        self.is_locked.set(false);
    }
}

impl Operation<'_> {
    /// Writes a record.
    pub fn save_record<R: Record>(&self, record: &R, path: &Path) -> Result<(), Error> {
        let text = record.to_toml(path)?;
        self.replace_record(path, Some(text))
    }

    /// Deletes a record, if it exists.
    pub(crate) fn remove_record(&self, path: &Path) -> Result<(), Error> {
        self.replace_record(path, None)
    }

    /// Replaces the text of a record, or deletes it when `new` is none, under the lock on records.
    fn replace_record(&self, path: &Path, new: Option<String>) -> Result<(), Error> {
        let _lock = self.lock_store()?;
        self.replace_record_locked(path, new)
    }

    /// Acquires the lock on records, unless this operation holds it already.
    pub(crate) fn lock_store(&self) -> Result<Option<StoreLock<'_>>, Error> {
        if self.is_store_locked.get() {
            return Ok(None);
        }
        let guard = self.project.store.locks().acquire(&LockName::Store)?;
        self.is_store_locked.set(true);
        Ok(Some(StoreLock { is_locked: &self.is_store_locked, _guard: guard }))
    }

    /// Replaces the text of a record, or deletes it when `new` is none. The lock on records is held. Nothing
    /// is journaled when the text is the same.
    fn replace_record_locked(&self, path: &Path, new: Option<String>) -> Result<(), Error> {
        self.replace_text_locked(path, self.record_text(path)?, new)
    }

    /// Replaces the text `old` of a record, unless `new` is the same. The lock on records is held.
    fn replace_text_locked(
        &self,
        path: &Path,
        old: Option<String>,
        new: Option<String>,
    ) -> Result<(), Error> {
        if old == new {
            return Ok(());
        }
        let path = self.store_relative_path(path);
        self.perform(WriteRecord { path, old, new }).map(drop)
    }

    /// Returns the step that replaces the present text of a record by `new`, or deletes it when `new` is
    /// none.
    pub(crate) fn write_record_step(&self, path: &Path, new: Option<String>) -> Result<BoxedStep, Error> {
        Ok(WriteRecord { path: self.store_relative_path(path), old: self.record_text(path)?, new }.into())
    }

    /// Returns the step that changes a lane's record, or `None` if `change` changes nothing.
    pub(crate) fn lane_record_step(
        &self,
        name: &LaneName,
        change: impl FnOnce(&mut AnyLane),
    ) -> Result<Option<BoxedStep>, Error> {
        let path = self.project.store.layout().lane_record(name);
        let (before, old) = self.load_lane_with_text(&path)?;
        let record = before.clone().with_change(change);
        if record == before {
            return Ok(None);
        }
        let new = Some(record.to_toml(&path)?);
        Ok(Some(WriteRecord { path: self.store_relative_path(&path), old: Some(old), new }.into()))
    }

    /// Loads the record of a lane that must exist, with its text.
    fn load_lane_with_text(&self, path: &Path) -> Result<(AnyLane, String), Error> {
        let missing = || proq_store::Error::io("read", path)(ErrorKind::NotFound.into());
        let text = self.record_text(path)?.ok_or_else(missing)?;
        Ok((AnyLane::from_toml(&text, path)?, text))
    }

    /// Returns the text of a record; none if it does not exist.
    fn record_text(&self, path: &Path) -> Result<Option<String>, Error> {
        Ok(self.project.store.record_text(path)?.map(|text| text.to_string()))
    }

    /// Returns a record's path as the journal has it: relative to the store.
    pub(crate) fn store_relative_path(&self, path: &Path) -> PathBuf {
        path.strip_prefix(self.project.store.layout().root()).unwrap_or(path).to_owned()
    }

    /// Changes a lane's record, based on the text on disk at that moment.
    pub fn update_lane(&self, name: &LaneName, change: impl FnOnce(&mut AnyLane)) -> Result<AnyLane, Error> {
        let _lock = self.lock_store()?;
        let path = self.project.store.layout().lane_record(name);
        let (before, old) = self.load_lane_with_text(&path)?;
        let record = self.project.with_current_location(before.clone()).with_change(change);
        if record == before {
            return Ok(record);
        }
        self.replace_text_locked(&path, Some(old), Some(record.to_toml(&path)?))?;
        Ok(record)
    }
}

/// Removes a folder that was created only for a deleted record.
fn remove_empty_record_folder(store: &Store, file: &Path) {
    let layout = store.layout();
    if let Some(dir) = file.parent().filter(|dir| *dir != layout.root()) {
        // Fails, as intended, if the folder has other entries. A transient failure gets a second attempt,
        // since nothing removes the folder later.
        drop(std::fs::remove_dir(dir).or_else(|_| std::fs::remove_dir(dir)));
    }
}

/// Applies the change from `old` to `new` to another version of the same table; `None` if both changed the
/// same field.
fn merge_tables(current: Option<&str>, old: Option<&str>, new: Option<&str>) -> Option<String> {
    let parse = |text: Option<&str>| text?.parse::<toml::Table>().ok();
    let (mut current, old, new) = (parse(current)?, parse(old)?, parse(new)?);
    let keys: Vec<&String> = old.keys().chain(new.keys()).collect();
    for key in keys {
        if old.get(key) == new.get(key) || current.get(key) == new.get(key) {
            continue;
        }
        if current.get(key) != old.get(key) {
            return None;
        }
        match new.get(key) {
            Some(value) => drop(current.insert(key.clone(), value.clone())),
            None => drop(current.remove(key)),
        }
    }
    toml::to_string(&current).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_write_counts_as_happened() {
        let [old, new] = ["a = 1\nb = 1\n", "a = 2\nb = 1\n"].map(|text| Some(text.to_owned()));
        let step = WriteRecord { path: PathBuf::new(), old, new };
        assert!(step.is_merged_into(Some("b = 7\na = 2\n")));
        for other in [Some("a = 1\nb = 7\n"), Some("a = 3\nb = 1\n"), Some("a = 1\nb = 1\n"), None] {
            assert!(!step.is_merged_into(other), "{other:?}");
        }
    }

    #[test]
    fn applies_change_to_concurrently_edited_record() {
        let (old, new) = (Some("a = 1\nb = 1\n"), Some("a = 2\nb = 1\n"));
        assert_eq!(merge_tables(Some("a = 1\nb = 7\n"), old, new).unwrap(), "a = 2\nb = 7\n");
        assert_eq!(merge_tables(Some("a = 3\nb = 1\n"), old, new), None);
        assert_eq!(merge_tables(None, old, new), None);
        assert_eq!(merge_tables(Some("a = 1\nc = 1\n"), Some("a = 1\n"), Some("")).unwrap(), "c = 1\n");
    }
}
