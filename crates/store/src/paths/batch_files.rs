//! Paths of the files of a batch of tasks.

use std::path::{Path, PathBuf};

use super::layout::Layout;

impl Layout {
    /// Returns the folder of all batches.
    pub fn batches(&self) -> PathBuf {
        self.root().join("batches")
    }

    /// Returns the folder of one batch.
    pub fn batch(&self, id: &str) -> PathBuf {
        self.batches().join(id)
    }

    /// Returns the path of a batch's record. It is written last: a batch folder without it was never
    /// completely created.
    pub fn batch_record(&self, id: &str) -> PathBuf {
        self.batch(id).join("batch.toml")
    }

    /// Returns the path of a batch's tasks.
    pub fn batch_tasks(&self, id: &str) -> PathBuf {
        self.batch(id).join("tasks.json")
    }

    /// Returns the path of a batch's plan, in TOML.
    pub fn batch_plan(&self, id: &str) -> PathBuf {
        self.batch(id).join("plan.toml")
    }

    /// Returns the folder with copies of the files that a batch's plan was read from.
    pub fn batch_sources(&self, id: &str) -> PathBuf {
        self.batch(id).join("sources")
    }

    /// Returns the path of a batch's log of events, as JSON lines.
    pub fn batch_log(&self, id: &str) -> PathBuf {
        self.batch(id).join("log.jsonl")
    }

    /// Returns the path of the standard error output of a batch's scheduler.
    pub fn batch_scheduler_log(&self, id: &str) -> PathBuf {
        self.batch(id).join("scheduler.log")
    }

    /// Returns the path of the record that names the process scheduling a batch.
    pub fn batch_scheduler_record(&self, id: &str) -> PathBuf {
        self.batch(id).join("scheduler.toml")
    }

    /// Returns the folder of the control requests that a batch's scheduler has not handled yet.
    pub fn batch_requests_dir(&self, id: &str) -> PathBuf {
        self.batch(id).join("wishes")
    }

    /// Returns the path of the list of status marks that a batch has written into the files of its plan.
    pub fn batch_plan_marks(&self, id: &str) -> PathBuf {
        self.batch(id).join("noted.json")
    }

    /// Returns the path of the results of a batch's acceptance criteria.
    pub fn batch_criteria_results(&self, id: &str) -> PathBuf {
        self.batch(id).join("criteria.json")
    }

    /// Returns the path of the output of a command that is an acceptance criterion.
    pub fn batch_criterion_log(&self, id: &str, number: usize) -> PathBuf {
        self.batch(id).join(format!("criteria/{number}.log"))
    }

    /// Returns the path of the output of the set-up commands of a batch's lane.
    pub fn batch_lane_set_up_log(&self, id: &str, lane: usize) -> PathBuf {
        self.batch(id).join(format!("warm/{lane}.log"))
    }

    /// Returns the path of the record that names the process setting up a batch's lane.
    pub fn batch_lane_set_up_record(&self, id: &str, lane: usize) -> PathBuf {
        self.batch(id).join(format!("warm/{lane}.toml"))
    }

    /// Returns the path of the record that a task has landed.
    pub fn batch_landed_record(&self, id: &str, task: usize) -> PathBuf {
        self.batch(id).join(format!("landed/{task}.toml"))
    }

    /// Returns the id of the batch whose landing wrote `record`, a path relative to `proq/`. None where
    /// `record` is not a record of a landed task.
    pub fn batch_id_of_landed_record(&self, record: &Path) -> Option<String> {
        let batches = self.batches();
        let relative = record.strip_prefix(batches.strip_prefix(self.root()).ok()?).ok()?;
        let mut components =
            relative.components().map(|component| component.as_os_str().to_string_lossy().into_owned());
        let id = components.next()?;
        (components.next()? == "landed").then_some(id)
    }

    /// Returns the path of the ledger: which batch has which task, and how often each task has failed.
    pub fn batch_ledger(&self) -> PathBuf {
        self.root().join("ledger.toml")
    }
}
