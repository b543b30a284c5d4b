//! Paths of the files of a batch of tasks.

use std::path::{Path, PathBuf};

use super::layout::Layout;
use crate::base::batch_id::BatchId;

impl Layout {
    /// Returns the folder of all batches.
    pub fn batches(&self) -> PathBuf {
        self.root().join("batches")
    }

    /// Returns the ids of all batches, in ascending order. A batch whose creation was interrupted is one of
    /// them.
    pub fn batch_ids(&self) -> Vec<BatchId> {
        Layout::entry_names(&self.batches()).into_iter().map(BatchId::new).collect()
    }

    /// Returns the folder of one batch.
    pub fn batch(&self, id: &BatchId) -> PathBuf {
        self.batches().join(id.as_str())
    }

    /// Returns the path of a batch's record. It is written last: a batch folder without it was never
    /// completely created.
    pub fn batch_record(&self, id: &BatchId) -> PathBuf {
        self.batch(id).join("batch.toml")
    }

    /// Returns the path of a batch's tasks.
    pub fn batch_tasks(&self, id: &BatchId) -> PathBuf {
        self.batch(id).join("tasks.json")
    }

    /// Returns the path of a batch's plan, in TOML.
    pub fn batch_plan(&self, id: &BatchId) -> PathBuf {
        self.batch(id).join("plan.toml")
    }

    /// Returns the folder with copies of the files that a batch's plan was read from.
    pub fn batch_source_copies(&self, id: &BatchId) -> PathBuf {
        self.batch(id).join("sources")
    }

    /// Returns the path of the copy of file number `number` that a batch's plan was read from.
    pub fn batch_source(&self, id: &BatchId, number: usize, file_name: &str) -> PathBuf {
        self.batch_source_copies(id).join(format!("{number}-{file_name}"))
    }

    /// Returns the path of a batch's log of events, as JSON lines.
    pub fn batch_event_log(&self, id: &BatchId) -> PathBuf {
        self.batch(id).join("log.jsonl")
    }

    /// Returns the path of the standard error output of a batch's scheduler.
    pub fn batch_scheduler_log(&self, id: &BatchId) -> PathBuf {
        self.batch(id).join("scheduler.log")
    }

    /// Returns the path of the record that names the process scheduling a batch.
    pub fn batch_scheduler_record(&self, id: &BatchId) -> PathBuf {
        self.batch(id).join("scheduler.toml")
    }

    /// Returns the folder of the control requests that a batch's scheduler has not handled yet.
    pub fn batch_requests_dir(&self, id: &BatchId) -> PathBuf {
        self.batch(id).join("wishes")
    }

    /// Returns the path of one control request for a batch's scheduler.
    pub fn batch_request(&self, id: &BatchId, request_id: &str) -> PathBuf {
        self.batch_requests_dir(id).join(format!("{request_id}.toml"))
    }

    /// Returns the path of the list of status marks that a batch has written into the files of its plan.
    pub fn batch_plan_marks(&self, id: &BatchId) -> PathBuf {
        self.batch(id).join("noted.json")
    }

    /// Returns the path of the results of a batch's acceptance criteria.
    pub fn batch_criteria_results(&self, id: &BatchId) -> PathBuf {
        self.batch(id).join("criteria.json")
    }

    /// Returns the path of the output of a command that is an acceptance criterion.
    pub fn batch_criterion_log(&self, id: &BatchId, number: usize) -> PathBuf {
        self.batch(id).join(format!("criteria/{number}.log"))
    }

    /// Returns the path of the output of the set-up commands of a batch's lane.
    pub fn batch_lane_set_up_log(&self, id: &BatchId, lane: usize) -> PathBuf {
        self.batch(id).join(format!("warm/{lane}.log"))
    }

    /// Returns the path of the record that names the process setting up a batch's lane.
    pub fn batch_lane_set_up_process(&self, id: &BatchId, lane: usize) -> PathBuf {
        self.batch(id).join(format!("warm/{lane}.toml"))
    }

    /// Returns the path of the record that a task has landed.
    pub fn batch_landed_record(&self, id: &BatchId, task: usize) -> PathBuf {
        self.batch(id).join(format!("landed/{task}.toml"))
    }

    /// Returns the id of the batch whose landing wrote `record`, a path relative to `proq/`. None where
    /// `record` is not a record of a landed task.
    pub fn batch_id_of_landed_record(&self, record: &Path) -> Option<BatchId> {
        let batches = self.batches();
        let relative = record.strip_prefix(batches.strip_prefix(self.root()).ok()?).ok()?;
        let mut components =
            relative.components().map(|component| component.as_os_str().to_string_lossy().into_owned());
        let id = components.next()?;
        (components.next()? == "landed").then(|| BatchId::new(id))
    }

    /// Returns the path of the ledger: which batch has which task, and how often each task has failed.
    pub fn batch_ledger(&self) -> PathBuf {
        self.root().join("ledger.toml")
    }
}
