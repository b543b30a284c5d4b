//! Record of a batch, and a batch as loaded from disk.

use std::path::PathBuf;

use proq_base::config::settings::Settings;
use proq_git::CommitId;
use proq_plan::schedule::event::ScheduleEvent;
use proq_plan::schedule::options::BatchOptions;
use proq_plan::schedule::state::State;
use proq_plan::schedule::workload::{Phase, Workload};
use proq_store::Store;
use proq_store::base::batch_id::BatchId;
use proq_store::base::clock::Moment;
use proq_store::base::record::Record;
use serde::{Deserialize, Serialize};

use super::criteria_report::CriteriaReport;
use super::log::{LogLine, LogTail, read_log};
use super::task::{BatchTask, read_tasks};
use crate::swarm::Error;

/// The settings of a batch, as stored in `batch.toml`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BatchRecord {
    /// The id of the batch; ids sort by time.
    pub id: BatchId,
    /// The time when the batch was created.
    pub created: Moment,
    /// The summary of the plan, in one line.
    pub summary: String,
    /// The base branch, on which the work of the batch lands in the end.
    pub base: String,
    /// The branch that tasks land on: the batch's own branch, or the base with `auto_merge`.
    pub branch: String,
    /// The commit that the batch started from.
    pub start: CommitId,
    /// Whether each finished task lands on the base immediately.
    #[serde(default)]
    pub auto_merge: bool,
    /// The sources of the plan, as they were named.
    pub sources: Vec<String>,
    /// The format of the sources: `toml`, `folders`, `roadmap` or `stories`.
    #[serde(rename = "form")]
    pub format: String,
    /// The milestone of a roadmap, if one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub milestone: Option<String>,
    /// The files that the plan was read from.
    pub files: Vec<PathBuf>,
    /// The criteria that must be met once all tasks are done.
    #[serde(default)]
    pub criteria: Vec<String>,
    /// Whether a criterion that is not met makes the batch count as failed and keeps it from landing without
    /// `--force`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub strict: bool,
    /// The file to which the scheduler writes the progress, for a person who follows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_file: Option<PathBuf>,
    /// The time of the cleanup, which removes the batch's lanes and branch; none before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleaned: Option<Moment>,
    /// Groups of tasks that change the same files, by task number.
    #[serde(default)]
    pub overlaps: Vec<Vec<usize>>,
    /// The options of the scheduler.
    pub options: BatchOptions,
    /// The phases of the plan.
    #[serde(default)]
    pub phases: Vec<Phase>,
}

impl Record for BatchRecord {
    const FORMAT: u32 = 1;
}

impl BatchRecord {
    /// Returns the criteria report of the batch; none when there is none or it covers other criteria than the
    /// plan's.
    pub fn criteria_report(&self, store: &Store) -> Option<CriteriaReport> {
        let covers_criteria = |report: &CriteriaReport| {
            report.criteria.iter().map(|criterion| &criterion.text).eq(&self.criteria)
        };
        let path = || store.layout().batch_criteria_results(&self.id);
        (!self.criteria.is_empty())
            .then(path)
            .and_then(|path| CriteriaReport::load(&path))
            .filter(covers_criteria)
    }

    /// Returns whether the batch has criteria whose verification is not complete.
    pub fn has_unverified_criteria(&self, store: &Store) -> bool {
        !self.criteria.is_empty() && self.criteria_report(store).is_none_or(|report| !report.is_complete)
    }

    /// Returns the name of the batch's own branch, without `refs/heads/`.
    pub(crate) fn own_branch(settings: &Settings, id: &BatchId) -> String {
        format!("{}/batch-{id}", settings.branch_prefix)
    }
}

/// A batch with its tasks.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The settings of the batch, as stored in `batch.toml`.
    pub record: BatchRecord,
    /// The tasks of the batch; the position of a task, from 0, is its number.
    pub tasks: Vec<BatchTask>,
    /// The tasks, phases and overlaps in the scheduler's form.
    pub workload: Workload,
}

impl Batch {
    /// Reads a batch from disk.
    ///
    /// # Errors
    /// Fails when a file cannot be read, or with
    /// [`BatchError::InvalidTasks`](super::error::BatchError::InvalidTasks).
    pub fn load(store: &Store, id: &BatchId) -> Result<Batch, Error> {
        Batch::from_record(store, BatchRecord::load(&store.layout().batch_record(id))?)
    }

    /// Reads the tasks of a batch with this record.
    ///
    /// # Errors
    /// Fails as [`Batch::load`] does.
    pub fn from_record(store: &Store, record: BatchRecord) -> Result<Batch, Error> {
        let tasks = read_tasks(&store.layout().batch_tasks(&record.id))?;
        let work = tasks.iter().map(BatchTask::to_scheduled_task).collect();
        let work = Workload::new(work, record.phases.clone(), record.overlaps.clone())
            .map_err(|flaw| super::error::BatchError::InvalidTasks { id: record.id.clone(), flaw })?;
        Ok(Batch { record, tasks, workload: work })
    }

    /// Returns the id of the batch.
    pub fn id(&self) -> &BatchId {
        &self.record.id
    }

    /// Returns the name of a task; empty for an unknown number.
    pub fn task_name(&self, task: usize) -> &str {
        self.tasks.get(task).map_or("", |task| &task.name)
    }

    /// Finds a task by its full name or, where it is unique, by its id alone, ignoring case.
    pub fn find_task(&self, name: &str) -> Result<usize, Error> {
        let matches_name = |a: &str| a.eq_ignore_ascii_case(name);
        let full_match = self.tasks.iter().position(|task| matches_name(&task.name));
        let id_matches: Vec<usize> =
            (0..self.tasks.len()).filter(|index| matches_name(&self.tasks[*index].id)).collect();
        match (full_match, id_matches.as_slice()) {
            (Some(task), _) => Ok(task),
            (None, [task]) => Ok(*task),
            (None, _) => {
                let (id, name) = (self.record.id.clone(), name.to_owned());
                Err(super::error::BatchError::UnknownTask { id, name }.into())
            }
        }
    }

    /// Reads all lines of the batch's log.
    ///
    /// # Errors
    /// Fails when a line cannot be read.
    pub fn read_log_lines(&self, store: &Store) -> Result<Vec<LogLine>, Error> {
        Ok(read_log(&store.layout().batch_event_log(&self.record.id))?)
    }

    /// Returns a reader that follows the batch's log as it grows.
    pub fn log_tail(&self, store: &Store) -> LogTail {
        LogTail::from_start(store.layout().batch_event_log(&self.record.id))
    }

    /// Computes the state of the batch from these lines of its log.
    pub fn fold_state<'a>(&self, lines: impl IntoIterator<Item = &'a LogLine>) -> State {
        let events = lines.into_iter().filter_map(LogLine::event);
        State::replay_events(&self.workload, &self.record.options, events.collect::<Vec<&ScheduleEvent>>())
    }
}
