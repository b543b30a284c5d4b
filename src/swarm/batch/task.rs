//! Owns the form of a task of a batch: what its agent is told, and what the scheduler goes by.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Key;
use crate::store;
use crate::swarm::schedule::Task;

/// A task, with all that was inherited from its group and its plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BatchTask {
    /// Its name in the plan: `area/ID`, or the ID of one without an area.
    pub(crate) name: String,
    /// Its name within its area.
    pub(crate) id: String,
    /// Where it belongs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) area: Option<String>,
    /// What it is about, in a line.
    pub(crate) title: String,
    /// What its agent is told, in the plan's words.
    pub(crate) prompt: String,
    /// What the agents of its group are told besides.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) more: String,
    /// Globs of the files that it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) scope: Vec<String>,
    /// Shell commands that succeed when it is done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) checks: Vec<String>,
    /// Who is to do it; none for one that is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    /// With which model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// How closely it is to be looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) review: Option<u8>,
    /// The file that it was read from, from the root of the file system.
    #[serde(with = "crate::store::path_form")]
    pub(crate) file: PathBuf,
    /// The milestone of that file, where it is a roadmap: in each of them, names begin anew.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) milestone: String,
    /// The line, from 1; nought where a file is a task.
    pub(crate) line: usize,
    /// The folder that is the task, below the top of the worktree, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) folder: Option<PathBuf>,
    /// The tasks that it builds on.
    pub(crate) needs: Vec<usize>,
    /// How much work it is, next to others.
    pub(crate) weight: u32,
    /// How often it had failed before this batch, over all others.
    #[serde(default)]
    pub(crate) failures: u32,
    /// Whether it was done before.
    #[serde(default)]
    pub(crate) done: bool,
}

impl BatchTask {
    /// What it is known by, whichever batch it is in.
    pub(crate) fn key(&self) -> Key {
        Key { source: self.file.clone(), part: self.milestone.clone(), task: self.name.clone() }
    }

    /// The part of it that is scheduled.
    pub(super) fn scheduled(&self) -> Task {
        Task {
            after: self.needs.clone(),
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
/// When the file cannot be read, or is none of this form.
pub(crate) fn read_tasks(path: &Path) -> Result<Vec<BatchTask>, store::Error> {
    let text = crate::regular_file::record(path).map_err(store::Error::io("read", path))?;
    serde_json::from_slice(&text)
        .map_err(|e| store::Error::Broken { path: path.to_owned(), source: Box::new(e) })
}
