//! Owns what follows once work of a batch is on its base: that is noted where its plan was written.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::land_all::landing_of;
use crate::git::Oid;
use crate::lane::Project;
use crate::store::{self, write_atomically};
use crate::swarm::batch::{Batch, BatchRecord, BatchTask, Line};
use crate::swarm::noting::{self, Landed, LandedTask, Noting};
use crate::swarm::{Error, Format};

/// Notes on the branch `onto` the tasks as done that are part of the commit `tip`, which is on it. The answer is what was done now, and what could not be done.
///
/// # Errors
/// When the batch cannot be read, or the base could not be moved: nothing was committed then.
pub(crate) fn note_landed(
    project: &Project,
    batch: &BatchRecord,
    onto: &str,
    tip: Oid,
) -> Result<Noting, Error> {
    let archive = match project.settings.swarm.when_landed.as_str() {
        "archive" => true,
        "nothing" => return Ok(Noting::default()),
        _ => false,
    };
    // A draft is nobody's file.
    let format = Format::named(&batch.form).filter(|format| *format != Format::Draft);
    let Some(format) = format else { return Ok(Noting::default()) };
    let read = Batch::load(project, &batch.id)?;
    let lines = read.log(project)?;
    let mut landed = Vec::new();
    for brought in lines.iter().filter_map(Line::entry).flat_map(|entry| &entry.facts.brought) {
        // It may have been taken back since.
        if project.repo.is_ancestor(brought.commit, tip)? {
            landed.push(brought.task);
        }
    }
    landed.sort_unstable();
    landed.dedup();
    let tasks: Vec<LandedTask<'_>> =
        landed.iter().filter_map(|task| read.tasks.get(*task)).map(landed_task).collect();
    if tasks.is_empty() {
        return Ok(Noting::default());
    }
    let message = message(&batch.id, &tasks);
    let landed = Landed { archive, ..landed_of(&read, format, &tasks) };
    let noting = noting::note(project, onto, &landed, &message);
    let mut noted = match &noting {
        Ok(noted) => noted.clone(),
        Err(e) => Noting::nowhere(&batch.sources.join(" "), &e.to_string()),
    };
    let now = noted.clone();
    // What was noted before stays on record; what could not be is looked at anew each time.
    if let Some(before) = noted_before(project, &batch.id) {
        noted.commit = noted.commit.or(before.commit);
        noted.written = before.written.into_iter().filter(|path| !now.written.contains(path)).collect();
        noted.written.extend(now.written.iter().cloned());
    }
    let path = project.store.layout().batch_noting(&batch.id);
    let text = serde_json::to_vec_pretty(&noted).map_err(|e| store::Error::io("write", &path)(e.into()))?;
    write_atomically(&path, &text)?;
    noting.map(|_| now).map_err(Error::from)
}

fn landed_task(task: &BatchTask) -> LandedTask<'_> {
    let folder = task.folder.as_ref().and_then(|_| task.file.parent());
    LandedTask { name: &task.name, title: &task.title, folder }
}

fn landed_of<'a>(read: &'a Batch, format: Format, tasks: &'a [LandedTask<'a>]) -> Landed<'a> {
    let source = read.record.files.first().map(AsRef::<Path>::as_ref);
    let source = source.filter(|_| format != Format::Folders);
    let milestone = read.tasks.first().map_or("", |task| &task.milestone);
    Landed { format, source, milestone, tasks, archive: false }
}

/// The files and folders in which tasks are noted as done by no commit, of the batches that these records are about: no undo changes
/// them. The records are those of landings that are taken back, from `proq/` on.
pub(crate) fn still_noted(project: &Project, records: &[PathBuf]) -> Vec<String> {
    let layout = project.store.layout();
    let lane = |path: &PathBuf| landing_of(path.iter().nth(1)?.to_str()?).map(ToOwned::to_owned);
    let ids: BTreeSet<String> =
        records.iter().filter_map(|path| layout.batch_of(path).or_else(|| lane(path))).collect();
    let of_batch = |id: &String| {
        let noted = noted_before(project, id).filter(|noted| !noted.written.is_empty())?;
        let read = Batch::load(project, id).ok()?;
        let format = Format::named(&read.record.form)?;
        let tasks: Vec<LandedTask<'_>> = read.tasks.iter().map(landed_task).collect();
        let mut still = landed_of(&read, format, &tasks).noted_on_disk();
        still.retain(|path| noted.written.contains(path));
        Some(still)
    };
    ids.iter().filter_map(of_batch).flatten().collect()
}

/// What was noted last of a batch, if anything was.
pub(super) fn noted_before(project: &Project, id: &str) -> Option<Noting> {
    let text = crate::regular_file::record(project.store.layout().batch_noting(id)).ok()?;
    serde_json::from_slice(&text).ok()
}

fn message(id: &str, tasks: &[LandedTask<'_>]) -> String {
    let what = match tasks {
        [one] => format!("task {}", one.name),
        many => format!("{} tasks", many.len()),
    };
    let lines: Vec<String> = tasks.iter().map(|task| format!("{}: {}", task.name, task.title)).collect();
    format!("Note {what} as done\n\n{}\n\nDone in batch {id}.\n", lines.join("\n"))
}
