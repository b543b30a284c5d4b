//! Owns checking operations: those that were cut short are put right first, and the log of those that ended can be read.

use super::finding::{Finding, Severity};
use super::scene::{Scene, quoted};
use crate::lane::{self, Error, Project, Stuck};
use crate::store::{self, Entry};

const CHECK: &str = "operation";

/// Puts right what dead processes left, as every command does first. What could not be is told.
pub(super) fn put_right(project: &Project) -> Vec<Finding> {
    let failed = lane::recover(project).err();
    let stuck = match lane::stuck(project) {
        Ok(stuck) => stuck,
        Err(e) => {
            return vec![Finding::of_error(CHECK, "operations", &e).left("they could not be looked at")];
        }
    };
    let mut out: Vec<Finding> =
        stuck.iter().map(|stuck| unfinished(project, stuck, failed.as_ref())).collect();
    if let (true, Some(e)) = (out.is_empty(), &failed) {
        out.push(Finding::of_error(CHECK, "operations", e).left("the next command tries again"));
    }
    out
}

fn unfinished(project: &Project, stuck: &Stuck, failed: Option<&Error>) -> Finding {
    let id = stuck.dir.file_name().unwrap_or_default().to_string_lossy();
    let subject = format!("operation {id}");
    let entry = match &stuck.journal {
        Ok(entry) => entry,
        Err(e) => {
            let found = Finding::of_error(CHECK, subject, e).left("files of yours may lie beside it");
            return match e {
                // As a whole: without the journal nobody knows of what lies beside it.
                store::Error::Broken { .. } => {
                    let aside = project.store.layout().aside(&id);
                    found.help(format!("mv {} {}", quoted(&stuck.dir), quoted(&aside)))
                }
                _ => found,
            };
        }
    };
    let header = &entry.header;
    let why = match failed {
        // Its git process lives, and may yet end well.
        Some(e @ Error::Store(store::Error::Locked { .. })) => {
            let found = Finding::of_error(CHECK, subject, e).left("it is not over");
            return Finding { severity: Severity::Warning, ..found };
        }
        Some(e @ Error::Unfinished { command, .. }) if *command == header.command => {
            return Finding::of_error(CHECK, subject, e).left("going on might overwrite something");
        }
        Some(e) => format!(" ({e})"),
        None => String::new(),
    };
    let message = format!(
        "`{}` (process {}, begun {}) was cut short and is not put right yet{why}",
        header.command, header.pid, header.at
    );
    Finding::error(CHECK, subject, message).help("git proq doctor").left("the next command tries again")
}

/// The log of operations that ended.
pub(super) fn check(scene: &Scene<'_>) -> Vec<Finding> {
    let layout = scene.project.store.layout();
    let mut out = Vec::new();
    for number in layout.operation_numbers() {
        let (path, subject) = (layout.operation(number), format!("operation {number}"));
        let look = format!("cat {}", quoted(&path));
        match Entry::read(&path) {
            Err(e) => {
                let why = "what it did stands; only taking it back needs this file";
                out.push(Finding::of_error("operation-log", subject, &e).left(why));
            }
            // It expired between the two looks, or lost its content.
            Ok(None) if !path.exists() => {}
            Ok(None) => {
                let message =
                    format!("{} is empty, so operation {number} cannot be taken back", path.display());
                out.push(
                    Finding::error("operation-log", subject, message)
                        .help(look)
                        .left("it cannot be made again"),
                );
            }
            Ok(Some(entry)) if entry.end.is_none() => {
                let message = format!(
                    "{} has lost its end, so operation {number} (`{}`) may not be whole",
                    path.display(),
                    entry.header.command
                );
                out.push(
                    Finding::error("operation-log", subject, message)
                        .help(look)
                        .left("it cannot be made again"),
                );
            }
            Ok(Some(_)) => {}
        }
    }
    out
}

/// Who is at work just now, in words.
pub(super) fn at_work(project: &Project) -> Option<String> {
    let dirs = project.store.layout().at_work();
    let entry = |dir: &std::path::PathBuf| Entry::read(&crate::store::Journal::file_in(dir)).ok().flatten();
    match dirs.iter().find_map(entry) {
        Some(entry) => Some(format!("`{}` (process {})", entry.header.command, entry.header.pid)),
        None if !dirs.is_empty() || project.store.locks().anybody_at_work() => {
            Some("another command".to_owned())
        }
        None => None,
    }
}
