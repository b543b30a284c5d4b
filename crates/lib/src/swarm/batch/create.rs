//! Creation of batches, and lookup of the batches on record.

use std::path::PathBuf;

use proq_git::CommitId;
use proq_plan::schedule::options::BatchOptions;
use proq_plan::schedule::workload::Phase;
use proq_store::Store;
use proq_store::base::atomic::{create_private_dir, write as write_atomically};
use proq_store::base::batch_id::BatchId;
use proq_store::base::clock::now;
use proq_store::base::record::Record;
use proq_store::locks::lock::{LockGuard, LockName};

use super::error::BatchError;
use super::record::BatchRecord;
use super::task::BatchTask;
use crate::lane::Project;
use crate::swarm::Error;

/// Number of ids to try for batches that start in the same second.
const MAX_ID_ATTEMPTS: u32 = 1000;

/// Everything that a new batch is created from.
pub struct NewBatch<'a> {
    /// The summary of the plan, in one line.
    pub summary: String,
    /// The base branch, on which the work of the batch lands in the end.
    pub base: String,
    /// The commit that the batch starts from.
    pub start: CommitId,
    /// Whether each finished task lands on the base immediately.
    pub auto_merge: bool,
    /// The sources of the plan, as they were named.
    pub sources: &'a [String],
    /// The format of the sources.
    pub format: &'a str,
    /// The milestone of a roadmap that the user chose.
    pub milestone: Option<&'a str>,
    /// The criteria that must be met once all tasks are done.
    pub criteria: Vec<String>,
    /// Whether a criterion that is not met makes the batch count as failed and keeps it from landing without
    /// `--force`.
    pub strict: bool,
    /// Groups of tasks that change the same files, by task number.
    pub overlaps: Vec<Vec<usize>>,
    /// The phases of the plan.
    pub phases: Vec<Phase>,
    /// The options of the scheduler.
    pub options: BatchOptions,
    /// The tasks, in the plan's order.
    pub tasks: Vec<BatchTask>,
    /// The plan in TOML.
    pub plan_toml: String,
    /// The file to which the scheduler writes the progress.
    pub progress_file: Option<PathBuf>,
}

/// Creates a batch: its files and, without `auto_merge`, its own branch. Returns its record and its lock,
/// which the caller passes to the scheduler.
///
/// # Errors
/// Fails when a file or the branch cannot be written; the batch is then removed.
pub fn create_batch(project: &Project, new: NewBatch<'_>) -> Result<(BatchRecord, LockGuard), Error> {
    let (id, batch_lock) = reserve_id(project)?;
    let layout = project.store.layout();
    let own_branch = BatchRecord::own_branch(&project.settings, &id);
    let files = plan_files(&new.tasks);
    let created = write_batch_files(&project.store, &id, &new, &files).and_then(|()| {
        if !new.auto_merge {
            let ref_name = format!("refs/heads/{own_branch}");
            project.repo.create_ref(&ref_name, new.start, "git-proq swarm")?;
        }
        let record = BatchRecord {
            created: now(),
            summary: new.summary,
            branch: if new.auto_merge { new.base.clone() } else { own_branch.clone() },
            base: new.base,
            start: new.start,
            auto_merge: new.auto_merge,
            sources: new.sources.to_vec(),
            format: new.format.to_owned(),
            milestone: new.milestone.map(ToOwned::to_owned),
            files,
            criteria: new.criteria,
            strict: new.strict,
            progress_file: new.progress_file,
            cleaned: None,
            overlaps: new.overlaps,
            phases: new.phases,
            options: new.options,
            id: id.clone(),
        };
        record.save(&layout.batch_record(&id))?;
        Ok(record)
    });
    match created {
        Ok(record) => Ok((record, batch_lock)),
        Err(e) => {
            drop(std::fs::remove_dir_all(layout.batch(&id)));
            if let Ok(Some(tip)) = project.repo.branch_tip(&own_branch) {
                drop(project.repo.delete_ref(&format!("refs/heads/{own_branch}"), tip, "git-proq swarm"));
            }
            Err(e)
        }
    }
}

/// Reserves a free batch id and takes its lock. Of two processes that want the same id, only one can create
/// its folder.
fn reserve_id(project: &Project) -> Result<(BatchId, LockGuard), Error> {
    let layout = project.store.layout();
    create_private_dir(layout.root())?;
    create_private_dir(&layout.batches())?;
    let stem = now().to_compact();
    for n in 1..MAX_ID_ATTEMPTS {
        let id = BatchId::new(if n == 1 { stem.clone() } else { format!("{stem}-{n}") });
        let Some(lock) = project.store.locks().try_acquire(&LockName::Batch(id.clone()))? else { continue };
        if project.repo.branch_tip(&BatchRecord::own_branch(&project.settings, &id))?.is_some() {
            continue;
        }
        match std::fs::create_dir(layout.batch(&id)) {
            Ok(()) => return Ok((id, lock)),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(proq_store::Error::io("create", &layout.batch(&id))(e).into()),
        }
    }
    Err(BatchError::UnknownBatch { name: stem, known: Vec::new() }.into())
}

/// Returns the files that tasks were read from, sorted, each once.
fn plan_files(tasks: &[BatchTask]) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = tasks.iter().map(|task| task.file.clone()).collect();
    files.sort();
    files.dedup();
    files
}

/// Writes the tasks of a batch, its plan, and copies of the plan's files.
fn write_batch_files(
    store: &Store,
    id: &BatchId,
    new: &NewBatch<'_>,
    files: &[PathBuf],
) -> Result<(), Error> {
    let layout = store.layout();
    let path = layout.batch_tasks(id);
    let encode_error = |e| proq_store::Error::Broken { path: path.clone(), source: Box::new(e) };
    let text = serde_json::to_vec_pretty(&new.tasks).map_err(encode_error)?;
    write_atomically(&path, &text)?;
    write_atomically(&layout.batch_plan(id), new.plan_toml.as_bytes())?;
    for (n, file) in files.iter().enumerate() {
        // git-proq has just read this file, and the tasks hold what it read, so a missing copy is no error.
        let Ok(text) = std::fs::read(file) else { continue };
        let name = file.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        write_atomically(&layout.batch_source(id, n, &name), &text)?;
    }
    Ok(())
}

/// Returns all batches on record, oldest first; cleaned-up batches only with `include_cleaned`. A batch that
/// cannot be read gives a warning and is left out.
pub fn list_batches(project: &Project, include_cleaned: bool) -> Vec<BatchRecord> {
    let layout = project.store.layout();
    let mut out = Vec::new();
    for id in layout.batch_ids() {
        match BatchRecord::load_if_exists(&layout.batch_record(&id)) {
            Ok(found) => out.extend(found.filter(|batch| include_cleaned || batch.cleaned.is_none())),
            Err(e) => project.listener.warn(format!("batch {id}: {e}")),
        }
    }
    out.sort_by(|a, b| a.created.cmp(&b.created).then_with(|| id_sort_key(&a.id).cmp(&id_sort_key(&b.id))));
    out
}

/// Returns a sort key that puts ids of the same second in the order of their number suffixes.
fn id_sort_key(id: &BatchId) -> (usize, &BatchId) {
    (id.as_str().len(), id)
}

/// Finds a batch by its id or by a unique prefix of it.
///
/// # Errors
/// Fails when no batch or more than one batch matches.
pub fn find_batch(project: &Project, id_or_prefix: &str) -> Result<BatchRecord, Error> {
    let prefix = id_or_prefix.strip_prefix("batch-").unwrap_or(id_or_prefix);
    let mut batches = list_batches(project, true);
    if let Some(index) = batches.iter().position(|batch| batch.id.as_str() == prefix) {
        return Ok(batches.swap_remove(index));
    }
    let known_ids: Vec<BatchId> = batches.iter().map(|batch| batch.id.clone()).collect();
    batches.retain(|batch| batch.id.as_str().starts_with(prefix));
    match (batches.len(), batches.pop()) {
        (1, Some(batch)) => Ok(batch),
        _ => Err(BatchError::UnknownBatch { name: prefix.to_owned(), known: known_ids }.into()),
    }
}
