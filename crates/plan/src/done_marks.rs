//! Marks for done tasks in a plan's own file. No other byte of the file changes: the new text is parsed again
//! and compared with the old plan before it is used.

pub mod edits;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::plan::{Plan, Task};
use super::plan_error::PlanError;
use super::plan_format::PlanFormat;
use super::roadmap::MilestoneSelector;
use super::source_node::TextLocator;
use super::{roadmap, stories, toml_plan};
use edits::{DoneStyle, TextEdit, tick_box};

/// The text of a plan's file after marking tasks as done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkedFile {
    /// The new text of the file; the old text when there was nothing to mark.
    pub text: String,
    /// Names of the tasks that are no longer in the file, or that cannot be marked there.
    pub unmarked_tasks: Vec<String>,
}

/// A plan's file, which may have changed since the plan was read.
#[derive(Debug, Clone, Copy)]
pub struct PlanFile<'a> {
    /// Format of the plan in the file.
    pub format: PlanFormat,
    /// The name of the file, as in messages.
    pub name: &'a Arc<str>,
    /// Text of the plan file before it is edited.
    pub text: &'a str,
    /// The milestone that was selected, where the file is a roadmap.
    pub milestone: &'a str,
}

/// Returns the text of a plan's file with tasks marked as done. Each pair in `done` is a task's full name, as
/// in `area/ID`, and its title.
///
/// # Errors
/// Fails when the file is no longer a plan.
pub fn mark_done(file: PlanFile<'_>, done: &[(&str, &str)]) -> Result<MarkedFile, PlanError> {
    let plan = match file.parse() {
        Ok(plan) => plan,
        // All items were ticked since, so there is nothing to mark.
        Err(PlanError::AllItemsDone { .. }) => {
            return Ok(MarkedFile { text: file.text.to_owned(), unmarked_tasks: Vec::new() });
        }
        Err(error) => return Err(error),
    };
    let tasks: Vec<&Task> = plan.tasks().map(|position| position.task).collect();
    let names: Vec<String> = tasks.iter().map(|task| task.full_name()).collect();
    let index_by_name: BTreeMap<&str, usize> =
        names.iter().enumerate().map(|(index, name)| (name.as_str(), index)).collect();
    let mut missing = Vec::new();
    let mut to_mark = BTreeSet::new();
    for (name, title) in done {
        // A roadmap item may derive its id from its title and the items before it, so a different item may
        // have that id now.
        let is_same_task =
            |index: &usize| file.format != PlanFormat::Roadmap || tasks[*index].title == *title;
        match index_by_name.get(name).copied().filter(is_same_task) {
            None => missing.push((*name).to_owned()),
            Some(index) if tasks[index].done => {}
            Some(index) => drop(to_mark.insert(index)),
        }
    }
    let mut edits = Vec::new();
    for (index, edit) in file.task_edits(&plan, &to_mark)? {
        match edit {
            Some(mut edit) => edits.append(&mut edit),
            None => missing.push(names[index].clone()),
        }
    }
    let text = apply_edits(file.text, edits);
    let is_newly_done = |index: usize| to_mark.contains(&index) && !missing.contains(&names[index]);
    if has_only_expected_changes(&plan, &PlanFile { text: &text, ..file }, is_newly_done) {
        return Ok(MarkedFile { text, unmarked_tasks: missing });
    }
    if to_mark.len() > 1 {
        return mark_one_by_one(file, done);
    }
    missing.extend(to_mark.iter().map(|index| names[*index].clone()));
    missing.sort();
    missing.dedup();
    Ok(MarkedFile { text: file.text.to_owned(), unmarked_tasks: missing })
}

/// Marks tasks one by one, so that a task that cannot be marked does not prevent the others.
fn mark_one_by_one(file: PlanFile<'_>, done: &[(&str, &str)]) -> Result<MarkedFile, PlanError> {
    let mut result = MarkedFile { text: file.text.to_owned(), unmarked_tasks: Vec::new() };
    for name_and_title in done {
        let MarkedFile { text, unmarked_tasks: missing } =
            mark_done(PlanFile { text: &result.text, ..file }, &[*name_and_title])?;
        result.text = text;
        result.unmarked_tasks.extend(missing);
    }
    Ok(result)
}

/// A task with the edits that mark it as done; none where the edits are unknown.
type TaskEdits = (usize, Option<Vec<TextEdit>>);

impl PlanFile<'_> {
    /// Parses the text in the file's format; task folders give an empty plan.
    fn parse(&self) -> Result<Plan, PlanError> {
        match self.format {
            PlanFormat::Toml | PlanFormat::Draft => toml_plan::read(self.name, self.text),
            PlanFormat::Stories => stories::read(self.name, self.text),
            PlanFormat::Roadmap => {
                roadmap::read(self.name, self.text, MilestoneSelector::Exact(self.milestone))
            }
            PlanFormat::Folders => Ok(Plan::default()),
        }
    }

    /// Returns, for each task in `to_mark`, the edits that mark it as done, where possible.
    fn task_edits(&self, plan: &Plan, to_mark: &BTreeSet<usize>) -> Result<Vec<TaskEdits>, PlanError> {
        let locator = TextLocator::new(self.name, self.text);
        let nodes = match self.format {
            PlanFormat::Toml | PlanFormat::Draft => toml_plan::task_nodes(self.name, self.text)?,
            PlanFormat::Stories => stories::story_nodes(self.name, self.text)?,
            PlanFormat::Roadmap => {
                let positions: Vec<_> = plan.tasks().collect();
                let edits_of = |index: &usize| (*index, tick_box(&locator, &positions[*index].task.location));
                return Ok(to_mark.iter().map(edits_of).collect());
            }
            PlanFormat::Folders => return Ok(Vec::new()),
        };
        let style = match self.format {
            PlanFormat::Toml | PlanFormat::Draft => DoneStyle::toml(),
            _ => DoneStyle::stories(&nodes),
        };
        let edits_of =
            |index: &usize| (*index, nodes.get(*index).and_then(|node| style.mark_entry(&locator, node)));
        Ok(to_mark.iter().map(edits_of).collect())
    }
}

/// Applies edits that do not overlap.
fn apply_edits(text: &str, mut edits: Vec<TextEdit>) -> String {
    edits.sort_by_key(|edit| edit.range.start);
    let mut out = text.to_owned();
    for edit in edits.into_iter().rev() {
        out.replace_range(edit.range, &edit.replacement);
    }
    out
}

/// Returns whether exactly the expected tasks are newly done in the file, and the rest of the plan is
/// unchanged.
fn has_only_expected_changes(
    before: &Plan,
    after: &PlanFile<'_>,
    is_newly_done: impl Fn(usize) -> bool,
) -> bool {
    let Ok(mut actual) = after.parse() else { return false };
    let mut expected = before.clone();
    for (index, task) in expected.tasks_mut().enumerate() {
        task.done |= is_newly_done(index);
    }
    // An entry that gained a line moves the locations below it.
    let (expected_tasks, actual_tasks) = (expected.tasks_mut(), actual.tasks_mut());
    for (expected_task, actual_task) in expected_tasks.zip(actual_tasks) {
        actual_task.location = expected_task.location.clone();
        for (expected_need, actual_need) in expected_task.needs.iter().zip(&mut actual_task.needs) {
            actual_need.location = expected_need.location.clone();
        }
    }
    actual.source_notes.clear();
    expected.source_notes.clear();
    actual == expected
}

#[cfg(test)]
mod tests;
