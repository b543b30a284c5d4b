//! Owns where batches of tasks lie, and what there is of each.

use std::path::{Path, PathBuf};

use super::Layout;

impl Layout {
    /// All batches.
    pub(crate) fn batches(&self) -> PathBuf {
        self.root().join("batches")
    }

    /// One batch.
    pub(crate) fn batch(&self, id: &str) -> PathBuf {
        self.batches().join(id)
    }

    /// Its record. It is written last: without it the rest was never finished.
    pub(crate) fn batch_record(&self, id: &str) -> PathBuf {
        self.batch(id).join("batch.toml")
    }

    /// Its tasks.
    pub(crate) fn batch_tasks(&self, id: &str) -> PathBuf {
        self.batch(id).join("tasks.json")
    }

    /// Its plan, as a plan in TOML.
    pub(crate) fn batch_plan(&self, id: &str) -> PathBuf {
        self.batch(id).join("plan.toml")
    }

    /// Copies of the files that its plan was read from.
    pub(crate) fn batch_sources(&self, id: &str) -> PathBuf {
        self.batch(id).join("sources")
    }

    /// What has happened to it.
    pub(crate) fn batch_log(&self, id: &str) -> PathBuf {
        self.batch(id).join("log.jsonl")
    }

    /// What its scheduler wrote to its standard error.
    pub(crate) fn batch_errors(&self, id: &str) -> PathBuf {
        self.batch(id).join("scheduler.log")
    }

    /// Who goes on with it.
    pub(crate) fn batch_scheduler(&self, id: &str) -> PathBuf {
        self.batch(id).join("scheduler.toml")
    }

    /// What people want of it that its scheduler has not seen to yet.
    pub(crate) fn batch_wishes(&self, id: &str) -> PathBuf {
        self.batch(id).join("wishes")
    }

    /// What was noted of it in the files of its plan.
    pub(crate) fn batch_noting(&self, id: &str) -> PathBuf {
        self.batch(id).join("noted.json")
    }

    /// What was found out of its criteria.
    pub(crate) fn batch_criteria(&self, id: &str) -> PathBuf {
        self.batch(id).join("criteria.json")
    }

    /// What a command wrote that is a criterion.
    pub(crate) fn batch_criterion_log(&self, id: &str, number: usize) -> PathBuf {
        self.batch(id).join(format!("criteria/{number}.log"))
    }

    /// What the commands wrote that got a lane ready.
    pub(crate) fn batch_warm_log(&self, id: &str, lane: usize) -> PathBuf {
        self.batch(id).join(format!("warm/{lane}.log"))
    }

    /// Which process gets a lane ready.
    pub(crate) fn batch_warming(&self, id: &str, lane: usize) -> PathBuf {
        self.batch(id).join(format!("warm/{lane}.toml"))
    }

    /// That a task landed.
    pub(crate) fn batch_proof(&self, id: &str, task: usize) -> PathBuf {
        self.batch(id).join(format!("landed/{task}.toml"))
    }

    /// The batch that a landing was of, by the record that it wrote, from `proq/` on.
    pub(crate) fn batch_of(&self, record: &Path) -> Option<String> {
        let batches = self.batches();
        let inside = record.strip_prefix(batches.strip_prefix(self.root()).ok()?).ok()?;
        let mut parts = inside.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
        let id = parts.next()?;
        (parts.next()? == "landed").then_some(id)
    }

    /// Which batch has which task, and how often each has failed.
    pub(crate) fn ledger(&self) -> PathBuf {
        self.root().join("ledger.toml")
    }
}
