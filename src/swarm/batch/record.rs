//! Owns the form of a batch's record, and a batch as it is read.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{BatchTask, LogTail, Proof, read_log, read_tasks};
use crate::git::Oid;
use crate::lane::Project;
use crate::store::{Moment, Record};
use crate::swarm::schedule::{Event, Options, Phase, State, Work};
use crate::swarm::{Error, batch::Line};

/// A batch, as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct BatchRecord {
    /// Its name; names sort by time.
    pub(crate) id: String,
    /// When it was made.
    pub(crate) created: Moment,
    /// What its plan is about, in a line.
    pub(crate) summary: String,
    /// The branch that all of it is for.
    pub(crate) base: String,
    /// The branch that its tasks land on: its own, or with `auto_merge` the base.
    pub(crate) branch: String,
    /// The commit that it began from.
    pub(crate) start: Oid,
    /// Whether tasks land on the base as they are done.
    #[serde(default)]
    pub(crate) auto_merge: bool,
    /// What the plan was read from, as it was named.
    pub(crate) sources: Vec<String>,
    /// The form of that: `toml`, `folders`, `roadmap` or `stories`.
    pub(crate) form: String,
    /// The milestone of a roadmap, if one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) milestone: Option<String>,
    /// The files that it was read from.
    pub(crate) files: Vec<PathBuf>,
    /// What has to be true once all of it is done.
    #[serde(default)]
    pub(crate) criteria: Vec<String>,
    /// Whether it counts as failed where one of them is not met.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) strict: bool,
    /// The file that says how far it is, for somebody who follows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) progress_file: Option<PathBuf>,
    /// When it was cleaned up: its lanes and its branch are gone then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cleaned: Option<Moment>,
    /// Groups of tasks that change the same files.
    #[serde(default)]
    pub(crate) overlaps: Vec<Vec<usize>>,
    /// How it is run.
    pub(crate) options: Options,
    /// The phases of the plan.
    #[serde(default)]
    pub(crate) phases: Vec<Phase>,
}

impl Record for BatchRecord {
    const FORMAT: u32 = 1;
}

impl BatchRecord {
    /// What was found out of its criteria, if it has any and somebody has looked.
    pub(crate) fn proof(&self, project: &Project) -> Option<Proof> {
        let is_of = |proof: &Proof| proof.criteria.iter().map(|it| &it.text).eq(&self.criteria);
        let path = || project.store.layout().batch_criteria(&self.id);
        (!self.criteria.is_empty()).then(path).and_then(|path| Proof::find(&path)).filter(is_of)
    }

    /// Whether it has criteria that nobody has looked at to the end.
    pub(crate) fn is_unproven(&self, project: &Project) -> bool {
        !self.criteria.is_empty() && self.proof(project).is_none_or(|proof| !proof.done)
    }

    /// The name of its own branch, without `refs/heads/`.
    pub(crate) fn own_branch(project: &Project, id: &str) -> String {
        format!("{}/batch-{id}", project.settings.prefix)
    }
}

/// A batch with its tasks.
#[derive(Debug, Clone)]
pub(crate) struct Batch {
    /// Its record.
    pub(crate) record: BatchRecord,
    /// Its tasks.
    pub(crate) tasks: Vec<BatchTask>,
    /// The same as the scheduler sees it.
    pub(crate) work: Work,
}

impl Batch {
    /// Reads a batch.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn load(project: &Project, id: &str) -> Result<Batch, Error> {
        let layout = project.store.layout();
        let record = BatchRecord::load(&layout.batch_record(id))?;
        let tasks = read_tasks(&layout.batch_tasks(id))?;
        let work = tasks.iter().map(BatchTask::scheduled).collect();
        let work = Work::new(work, record.phases.clone(), record.overlaps.clone())
            .map_err(|flaw| super::BatchError::Flaw { id: id.to_owned(), flaw })?;
        Ok(Batch { record, tasks, work })
    }

    /// Its name.
    pub(crate) fn id(&self) -> &str {
        &self.record.id
    }

    /// The name of a task.
    pub(crate) fn name(&self, task: usize) -> &str {
        self.tasks.get(task).map_or("", |task| &task.name)
    }

    /// The task of a name, given in full or, where only one has it, as the ID alone.
    pub(crate) fn task_named(&self, name: &str) -> Result<usize, Error> {
        let same = |a: &str| a.eq_ignore_ascii_case(name);
        let full = self.tasks.iter().position(|task| same(&task.name));
        let short: Vec<usize> = (0..self.tasks.len()).filter(|at| same(&self.tasks[*at].id)).collect();
        match (full, short.as_slice()) {
            (Some(task), _) => Ok(task),
            (None, [task]) => Ok(*task),
            (None, _) => {
                let (id, name) = (self.record.id.clone(), name.to_owned());
                Err(super::BatchError::NoTask { id, name }.into())
            }
        }
    }

    /// What is written in its log.
    ///
    /// # Errors
    /// When a line of it cannot be read.
    pub(crate) fn log(&self, project: &Project) -> Result<Vec<Line>, Error> {
        Ok(read_log(&project.store.layout().batch_log(&self.record.id))?)
    }

    /// Its log, to be read as it grows.
    pub(crate) fn log_tail(&self, project: &Project) -> LogTail {
        LogTail::of(project.store.layout().batch_log(&self.record.id))
    }

    /// What it has come to by these lines of its log.
    pub(crate) fn state<'a>(&self, lines: impl IntoIterator<Item = &'a Line>) -> State {
        let events = lines.into_iter().filter_map(Line::event);
        State::fold(&self.work, &self.record.options, events.collect::<Vec<&Event>>())
    }
}
