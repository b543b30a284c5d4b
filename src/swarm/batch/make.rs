//! Owns making a batch, and finding those that there are.

use std::path::PathBuf;

use super::{BatchError, BatchRecord, BatchTask};
use crate::git::Oid;
use crate::lane::Project;
use crate::store::{Guard, LockName, Record, make_private, now, write_atomically};
use crate::swarm::Error;
use crate::swarm::schedule::{Options, Phase};

/// How many batches may be begun in one second.
const TRIES: u32 = 1000;

/// What a batch is made with.
pub(crate) struct NewBatch<'a> {
    /// What its plan is about.
    pub(crate) summary: String,
    /// The branch that it is for.
    pub(crate) base: String,
    /// The commit to begin from.
    pub(crate) start: Oid,
    /// Whether tasks land there as they are done.
    pub(crate) auto_merge: bool,
    /// What the plan was read from, as it was named.
    pub(crate) sources: &'a [String],
    /// The form of that.
    pub(crate) form: &'a str,
    /// The milestone that was named.
    pub(crate) milestone: Option<&'a str>,
    /// What has to be true in the end.
    pub(crate) criteria: Vec<String>,
    /// Whether it counts as failed where one of these is not met.
    pub(crate) strict: bool,
    /// Groups of tasks that change the same files.
    pub(crate) overlaps: Vec<Vec<usize>>,
    /// The phases.
    pub(crate) phases: Vec<Phase>,
    /// How it is run.
    pub(crate) options: Options,
    /// The tasks.
    pub(crate) tasks: Vec<BatchTask>,
    /// The plan in TOML.
    pub(crate) plan: String,
    /// The file that is to say how far it is.
    pub(crate) progress_file: Option<PathBuf>,
}

/// Makes a batch, with its branch, and answers its lock, too: it is to be handed to who goes on with it.
///
/// # Errors
/// When something of it cannot be written; then there is no batch.
pub(crate) fn make(project: &Project, new: NewBatch<'_>) -> Result<(BatchRecord, Guard), Error> {
    let (id, lock) = take_id(project)?;
    let layout = project.store.layout();
    let own = BatchRecord::own_branch(project, &id);
    let files = files_of(&new.tasks);
    let made = fill(project, &id, &new, &files).and_then(|()| {
        if !new.auto_merge {
            let name = format!("refs/heads/{own}");
            project.repo.create_ref(&name, new.start, "git-proq swarm")?;
        }
        let record = BatchRecord {
            created: now(),
            summary: new.summary,
            branch: if new.auto_merge { new.base.clone() } else { own.clone() },
            base: new.base,
            start: new.start,
            auto_merge: new.auto_merge,
            sources: new.sources.to_vec(),
            form: new.form.to_owned(),
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
    match made {
        Ok(record) => Ok((record, lock)),
        Err(e) => {
            drop(std::fs::remove_dir_all(layout.batch(&id)));
            if let Ok(Some(tip)) = project.repo.branch_tip(&own) {
                drop(project.repo.delete_ref(&format!("refs/heads/{own}"), tip, "git-proq swarm"));
            }
            Err(e)
        }
    }
}

/// A name that nobody has, and the lock of it. Only one of two that want it can make its folder.
fn take_id(project: &Project) -> Result<(String, Guard), Error> {
    let layout = project.store.layout();
    make_private(layout.root())?;
    make_private(&layout.batches())?;
    let stem = now().compact();
    for n in 1..TRIES {
        let id = if n == 1 { stem.clone() } else { format!("{stem}-{n}") };
        let Some(lock) = project.store.locks().try_take(&LockName::Batch(id.clone()))? else { continue };
        if project.repo.branch_tip(&BatchRecord::own_branch(project, &id))?.is_some() {
            continue;
        }
        match std::fs::create_dir(layout.batch(&id)) {
            Ok(()) => return Ok((id, lock)),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(crate::store::Error::io("create", &layout.batch(&id))(e).into()),
        }
    }
    Err(BatchError::Unknown { asked: stem, known: Vec::new() }.into())
}

fn files_of(tasks: &[BatchTask]) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = tasks.iter().map(|task| task.file.clone()).collect();
    files.sort();
    files.dedup();
    files
}

fn fill(project: &Project, id: &str, new: &NewBatch<'_>, files: &[PathBuf]) -> Result<(), Error> {
    let layout = project.store.layout();
    let path = layout.batch_tasks(id);
    let broken = |e| crate::store::Error::Broken { path: path.clone(), source: Box::new(e) };
    let text = serde_json::to_vec_pretty(&new.tasks).map_err(broken)?;
    write_atomically(&path, &text)?;
    write_atomically(&layout.batch_plan(id), new.plan.as_bytes())?;
    for (n, file) in files.iter().enumerate() {
        // It was read a moment ago, and what was read of it is kept anyway.
        let Ok(text) = std::fs::read(file) else { continue };
        let name = file.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        write_atomically(&layout.batch_sources(id).join(format!("{n}-{name}")), &text)?;
    }
    Ok(())
}

/// All batches on record, the oldest first; those that were cleaned up with `past` only. One that cannot be read is named in a
/// warning and left out.
pub(crate) fn all(project: &Project, past: bool) -> Vec<BatchRecord> {
    let layout = project.store.layout();
    let mut out = Vec::new();
    for id in layout.names_in("batches") {
        match BatchRecord::find(&layout.batch_record(&id)) {
            Ok(found) => out.extend(found.filter(|batch| past || batch.cleaned.is_none())),
            Err(e) => project.listener.warn(format!("batch {id}: {e}")),
        }
    }
    out.sort_by(|a, b| a.created.cmp(&b.created).then_with(|| numbered(&a.id).cmp(&numbered(&b.id))));
    out
}

/// Names of one second in the order of their numbers.
fn numbered(id: &str) -> (usize, &str) {
    (id.len(), id)
}

/// The batch of a name, or of the beginning of one that no other has.
///
/// # Errors
/// When there is none, or several could be meant.
pub(crate) fn find(project: &Project, asked: &str) -> Result<BatchRecord, Error> {
    let asked = asked.strip_prefix("batch-").unwrap_or(asked);
    let mut every = all(project, true);
    if let Some(at) = every.iter().position(|batch| batch.id == asked) {
        return Ok(every.swap_remove(at));
    }
    let known: Vec<String> = every.iter().map(|batch| batch.id.clone()).collect();
    every.retain(|batch| batch.id.starts_with(asked));
    match (every.len(), every.pop()) {
        (1, Some(batch)) => Ok(batch),
        _ => Err(BatchError::Unknown { asked: asked.to_owned(), known }.into()),
    }
}
