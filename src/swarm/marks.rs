//! Owns noting in a plan's own file which of its tasks are done. Nothing else in the file changes, to the letter: what was
//! written is read again and compared before it counts.

mod boxes;
mod entries;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use super::node::Places;
use super::roadmap::Which;
use super::{Error, Format, Plan, Task, roadmap, stories, toml_plan};

/// A plan's file with what is done noted in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Noted {
    /// The file's new text; the old one where nothing was left to note.
    pub(crate) text: String,
    /// Tasks that the file does not have any more, or not in a way in which it could be noted.
    pub(crate) missing: Vec<String>,
}

/// A file that may have been changed since its plan was read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct File<'a> {
    /// What it is written in.
    pub(crate) format: Format,
    /// Its name, as in messages.
    pub(crate) name: &'a Arc<str>,
    /// Its text.
    pub(crate) text: &'a str,
    /// The milestone that was chosen, where it is a roadmap.
    pub(crate) milestone: &'a str,
}

/// Something to be put in the place of bytes of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Edit {
    at: Range<usize>,
    text: String,
}

/// Notes tasks as done, which are named as in [`Task::name`](super::Task::name) together with their titles.
///
/// # Errors
/// When the file is no plan any more.
pub(crate) fn note(file: File<'_>, done: &[(&str, &str)]) -> Result<Noted, Error> {
    let plan = match file.plan() {
        Ok(plan) => plan,
        // Somebody was faster.
        Err(Error::AllTicked { .. }) => return Ok(Noted { text: file.text.to_owned(), missing: Vec::new() }),
        Err(error) => return Err(error),
    };
    let tasks: Vec<&Task> = plan.spots().map(|spot| spot.task).collect();
    let names: Vec<String> = tasks.iter().map(|task| task.name()).collect();
    let known: BTreeMap<&str, usize> =
        names.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
    let mut missing = Vec::new();
    let mut wanted = BTreeSet::new();
    for (name, title) in done {
        // An item of a roadmap may have its ID from its title and those before it: another one may have that ID by now.
        let is_it = |at: &usize| file.format != Format::Roadmap || tasks[*at].title == *title;
        match known.get(name).copied().filter(is_it) {
            None => missing.push((*name).to_owned()),
            Some(at) if tasks[at].done => {}
            Some(at) => drop(wanted.insert(at)),
        }
    }
    let mut edits = Vec::new();
    for (at, edit) in file.edits(&plan, &wanted)? {
        match edit {
            Some(mut edit) => edits.append(&mut edit),
            None => missing.push(names[at].clone()),
        }
    }
    let text = apply(file.text, edits);
    let expected = |at: usize| wanted.contains(&at) && !missing.contains(&names[at]);
    if is_noted(&plan, &File { text: &text, ..file }, expected) {
        return Ok(Noted { text, missing });
    }
    if wanted.len() > 1 {
        return note_each(file, done);
    }
    missing.extend(wanted.iter().map(|at| names[*at].clone()));
    missing.sort();
    missing.dedup();
    Ok(Noted { text: file.text.to_owned(), missing })
}

/// The same one by one: what cannot be noted does not keep the others from it.
fn note_each(file: File<'_>, done: &[(&str, &str)]) -> Result<Noted, Error> {
    let mut all = Noted { text: file.text.to_owned(), missing: Vec::new() };
    for one in done {
        let Noted { text, missing } = note(File { text: &all.text, ..file }, &[*one])?;
        all.text = text;
        all.missing.extend(missing);
    }
    Ok(all)
}

/// A task, and what notes it; none where that is not known.
type EditsOf = (usize, Option<Vec<Edit>>);

impl File<'_> {
    fn plan(&self) -> Result<Plan, Error> {
        match self.format {
            Format::Toml | Format::Draft => toml_plan::read(self.name, self.text),
            Format::Stories => stories::read(self.name, self.text),
            Format::Roadmap => roadmap::read(self.name, self.text, Which::Exactly(self.milestone)),
            Format::Folders => Ok(Plan::default()),
        }
    }

    /// What notes each of these tasks, as far as that can be done.
    fn edits(&self, plan: &Plan, wanted: &BTreeSet<usize>) -> Result<Vec<EditsOf>, Error> {
        let places = Places::new(self.name, self.text);
        let nodes = match self.format {
            Format::Toml | Format::Draft => toml_plan::nodes(self.name, self.text)?,
            Format::Stories => stories::nodes(self.name, self.text)?,
            Format::Roadmap => {
                let spots: Vec<_> = plan.spots().collect();
                let edit = |at: &usize| (*at, boxes::tick(&places, &spots[*at].task.from));
                return Ok(wanted.iter().map(edit).collect());
            }
            Format::Folders => return Ok(Vec::new()),
        };
        let style = match self.format {
            Format::Toml | Format::Draft => entries::Style::toml(),
            _ => entries::Style::stories(&nodes),
        };
        let edit = |at: &usize| (*at, nodes.get(*at).and_then(|node| style.note(&places, node)));
        Ok(wanted.iter().map(edit).collect())
    }
}

/// Puts edits in, which do not overlap.
fn apply(text: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|edit| edit.at.start);
    let mut out = text.to_owned();
    for edit in edits.into_iter().rev() {
        out.replace_range(edit.at, &edit.text);
    }
    out
}

/// Whether a file says of exactly these tasks that they are done which it did not say it of before, and all else is as it was.
fn is_noted(before: &Plan, after: &File<'_>, expected: impl Fn(usize) -> bool) -> bool {
    let Ok(mut plan) = after.plan() else { return false };
    let mut wanted = before.clone();
    for (at, task) in wanted.tasks_mut().enumerate() {
        task.done |= expected(at);
    }
    // An entry that became a line longer moves what is below it.
    let (one, two) = (wanted.tasks_mut(), plan.tasks_mut());
    for (one, two) in one.zip(two) {
        two.from = one.from.clone();
        for (one, two) in one.needs.iter().zip(&mut two.needs) {
            two.place = one.place.clone();
        }
    }
    plan.remarks.clear();
    wanted.remarks.clear();
    plan == wanted
}

#[cfg(test)]
mod tests;
