//! Task of a batch: the agent's prompt and the values that the scheduler uses.

use std::path::{Path, PathBuf};

use proq_plan::schedule::workload::ScheduledTask;
use proq_store as store;
use serde::{Deserialize, Serialize};

use super::ledger::TaskKey;

/// A task of a batch, with everything that it inherits from its group and its plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchTask {
    /// The name in the plan: `area/ID`, or the id of a task without an area.
    pub name: String,
    /// The name within the area.
    pub id: String,
    /// The area of the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub area: Option<String>,
    /// The title, in one line.
    pub title: String,
    /// The prompt of the task, as in the plan.
    pub prompt: String,
    /// The additional prompt of the task's group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[serde(rename = "more")]
    pub(crate) group_prompt: String,
    /// Globs of the files that the task is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scope: Vec<String>,
    /// Shell commands that succeed when the task is done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<String>,
    /// The agent that does the task. Only a task that was done before the batch may have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The model that the agent uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The review level of the plan: how closely the task's result needs review.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<u8>,
    /// The absolute path of the file that the task was read from.
    #[serde(with = "proq_store::paths::path_form")]
    pub file: PathBuf,
    /// The milestone of a roadmap file; task names are unique within a milestone.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub milestone: String,
    /// The line of the task in its file, from 1; 0 where the task is a folder.
    pub line: usize,
    /// The task's folder, relative to the worktree's top, where the task is a folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// The numbers of the tasks that this one depends on.
    pub needs: Vec<usize>,
    /// The amount of work, relative to other tasks.
    pub weight: u32,
    /// The ledger's number of failures of this task when the batch was created.
    #[serde(default)]
    pub failures: u32,
    /// Whether the task was done before the batch started.
    #[serde(default)]
    pub done: bool,
}

impl BatchTask {
    /// Returns the key that identifies the task across batches.
    pub fn key(&self) -> TaskKey {
        TaskKey { source: self.file.clone(), section: self.milestone.clone(), task: self.name.clone() }
    }

    /// Returns the task in the scheduler's form.
    pub(super) fn to_scheduled_task(&self) -> ScheduledTask {
        ScheduledTask {
            depends_on: self.needs.clone(),
            weight: self.weight,
            agent: self.agent.clone(),
            failures: self.failures,
            done: self.done,
        }
    }
}

/// Reads the tasks of a batch.
///
/// # Errors
/// Fails when the file cannot be read or parsed.
pub(crate) fn read_tasks(path: &Path) -> Result<Vec<BatchTask>, store::Error> {
    let text = proq_base::regular_file::read_store_file(path).map_err(store::Error::io("read", path))?;
    serde_json::from_slice(&text)
        .map_err(|e| store::Error::Broken { path: path.to_owned(), source: Box::new(e) })
}
