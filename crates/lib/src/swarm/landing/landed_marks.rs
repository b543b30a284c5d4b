//! Marks in a batch's plan for the tasks that have landed: written after each landing, and listed for an
//! undo.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use proq_base::config::choices::LandedTaskMarking;
use proq_git::CommitId;
use proq_plan::plan_format::PlanFormat;
use proq_store as store;
use proq_store::Store;
use proq_store::base::atomic::write as write_atomically;
use proq_store::base::batch_id::BatchId;

use super::batch_landing::batch_id_of_landing_lane;
use super::plan_marks;
use super::plan_marks::{LandedPlan, LandedPlanTask, PlanMarks};
use crate::lane::Project;
use crate::swarm::Error;
use crate::swarm::batch::log::LogLine;
use crate::swarm::batch::record::{Batch, BatchRecord};
use crate::swarm::batch::task::BatchTask;

/// Marks, on the branch `onto`, the tasks as done that are part of the commit `tip` of that branch. Returns
/// what was marked now and what could not be marked.
///
/// # Errors
/// Fails when the batch cannot be read, or the base could not be moved: nothing was committed then.
pub fn mark_landed(
    project: &Project,
    batch: &BatchRecord,
    onto: &str,
    tip: CommitId,
) -> Result<PlanMarks, Error> {
    let archive = match project.settings.swarm.when_landed {
        LandedTaskMarking::Archive => true,
        LandedTaskMarking::Nothing => return Ok(PlanMarks::default()),
        LandedTaskMarking::Mark => false,
    };
    // A draft is no file of the user.
    let format = PlanFormat::from_name(&batch.format).filter(|format| *format != PlanFormat::Draft);
    let Some(format) = format else { return Ok(PlanMarks::default()) };
    let loaded = Batch::load(&project.store, &batch.id)?;
    let lines = loaded.read_log_lines(&project.store)?;
    let mut landed_tasks = Vec::new();
    for landed_commit in lines.iter().filter_map(LogLine::entry).flat_map(|entry| &entry.facts.landed) {
        // The landing may have been undone since.
        if project.repo.is_ancestor(landed_commit.commit, tip)? {
            landed_tasks.push(landed_commit.task);
        }
    }
    landed_tasks.sort_unstable();
    landed_tasks.dedup();
    let tasks: Vec<LandedPlanTask<'_>> =
        landed_tasks.iter().filter_map(|task| loaded.tasks.get(*task)).map(landed_task).collect();
    if tasks.is_empty() {
        return Ok(PlanMarks::default());
    }
    let commit_message = format_commit_message(&batch.id, &tasks);
    let landed_plan = LandedPlan { archive, ..plan_with_landed(&loaded, format, &tasks) };
    let result = plan_marks::mark_landed_tasks(project, onto, &landed_plan, &commit_message);
    let mut all_marks = match &result {
        Ok(marks) => marks.clone(),
        Err(e) => PlanMarks::from_failure(&batch.sources.join(" "), &e.to_string()),
    };
    let new_marks = all_marks.clone();
    // Earlier marks stay on record; what could not be marked is determined again each time.
    if let Some(earlier) = load_marks(&project.store, &batch.id) {
        all_marks.commit = all_marks.commit.or(earlier.commit);
        all_marks.written =
            earlier.written.into_iter().filter(|path| !new_marks.written.contains(path)).collect();
        all_marks.written.extend(new_marks.written.iter().cloned());
    }
    let path = project.store.layout().batch_plan_marks(&batch.id);
    let text =
        serde_json::to_vec_pretty(&all_marks).map_err(|e| store::Error::io("write", &path)(e.into()))?;
    write_atomically(&path, &text)?;
    result.map(|_| new_marks).map_err(Error::from)
}

/// Returns a task in the form in which it is marked in its plan.
fn landed_task(task: &BatchTask) -> LandedPlanTask<'_> {
    let folder = task.folder.as_ref().and_then(|_| task.file.parent());
    LandedPlanTask { name: &task.name, title: &task.title, folder }
}

/// Returns a batch's plan with `tasks` as the landed ones; `archive` is false.
fn plan_with_landed<'a>(
    loaded: &'a Batch,
    format: PlanFormat,
    tasks: &'a [LandedPlanTask<'a>],
) -> LandedPlan<'a> {
    let source = loaded.record.files.first().map(AsRef::<Path>::as_ref);
    let source = source.filter(|_| format != PlanFormat::Folders);
    let milestone = loaded.tasks.first().map_or("", |task| &task.milestone);
    LandedPlan { format, source, milestone, tasks, archive: false }
}

/// Returns the files and folders that mark tasks as done without a commit, for the batches of these records.
/// No undo changes them. `records` are the record files of landings to be undone, relative to the folder that
/// contains `proq/`.
pub(crate) fn uncommitted_marks(store: &Store, records: &[PathBuf]) -> Vec<String> {
    let layout = store.layout();
    let batch_of_lane = |path: &PathBuf| batch_id_of_landing_lane(path.iter().nth(1)?.to_str()?);
    let ids: BTreeSet<BatchId> = records
        .iter()
        .filter_map(|path| layout.batch_id_of_landed_record(path).or_else(|| batch_of_lane(path)))
        .collect();
    let batch_marks = |id: &BatchId| {
        let saved_marks = load_marks(store, id).filter(|marks| !marks.written.is_empty())?;
        let loaded = Batch::load(store, id).ok()?;
        let format = PlanFormat::from_name(&loaded.record.format)?;
        let tasks: Vec<LandedPlanTask<'_>> = loaded.tasks.iter().map(landed_task).collect();
        let mut marked_paths = plan_with_landed(&loaded, format, &tasks).marked_paths_on_disk();
        marked_paths.retain(|path| saved_marks.written.contains(path));
        Some(marked_paths)
    };
    ids.iter().filter_map(batch_marks).flatten().collect()
}

/// Reads the saved marks of a batch; none where there are none.
pub(crate) fn load_marks(store: &Store, id: &BatchId) -> Option<PlanMarks> {
    let text = proq_base::regular_file::read_store_file(store.layout().batch_plan_marks(id)).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Returns the message of the commit that marks tasks as done.
fn format_commit_message(id: &BatchId, tasks: &[LandedPlanTask<'_>]) -> String {
    let subject = match tasks {
        [only] => format!("task {}", only.name),
        all => format!("{} tasks", all.len()),
    };
    let lines: Vec<String> = tasks.iter().map(|task| format!("{}: {}", task.name, task.title)).collect();
    format!("Note {subject} as done\n\n{}\n\nDone in batch {id}.\n", lines.join("\n"))
}
