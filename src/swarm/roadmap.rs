//! Owns plans that are roadmaps in Markdown: a milestone's heading, and items with boxes below it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::node::Places;
use super::plan::{Remark, line};
use super::shape::is_name;
use super::{Error, Group, Plan, Progress, Task};
use crate::explain::nearest;
use crate::lane::Name;
use crate::markdown::{self, Heading, Item, Line};

/// The deepest heading that begins a milestone; what is below makes groups.
const MILESTONE: usize = 2;

/// What is below one heading.
#[derive(Debug, Default)]
struct Milestone {
    /// What tells it from the others: as it is written, after the heading above it where several are written like that.
    title: String,
    /// As it is written.
    written: String,
    /// The heading of the first level above it.
    above: String,
    groups: Vec<Group>,
}

impl Milestone {
    fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.groups.iter().flat_map(|group| &group.tasks)
    }
}

/// Which milestone of a roadmap is meant.
#[derive(Debug, Clone, Copy)]
pub(super) enum Which<'a> {
    /// The first with something to do.
    First,
    /// The one that is called that, or has it in its title.
    Like(&'a str),
    /// The one that has exactly this title.
    Exactly(&'a str),
}

/// Reads a roadmap: one milestone of it.
///
/// # Errors
/// When there is no such milestone, several could be meant, or nothing is left to do.
pub(super) fn read(file: &Arc<str>, text: &str, which: Which<'_>) -> Result<Plan, Error> {
    let mut reader = Reader::new(file, text);
    for line in markdown::lines(text) {
        reader.line(line);
    }
    reader.close(text.len());
    let Reader { mut milestones, remarks, .. } = reader;
    milestones.retain(|milestone| milestone.tasks().next().is_some());
    tell_apart(&mut milestones);
    let chosen = match which {
        Which::First => first_open(file, &milestones)?,
        Which::Like(asked) => named(file, &milestones, asked)?,
        Which::Exactly(title) => {
            let found = milestones.iter().position(|milestone| milestone.title == title);
            found.ok_or_else(|| none_like(file, &milestones, title))?
        }
    };
    let Milestone { title, mut groups, .. } = milestones.swap_remove(chosen);
    groups.retain(|group| !group.tasks.is_empty());
    Ok(Plan { summary: title, remarks, ..Plan::of_groups(groups) })
}

/// Gives milestones that are written alike a title each.
fn tell_apart(milestones: &mut [Milestone]) {
    let mut written: HashMap<String, usize> = HashMap::new();
    for it in &*milestones {
        *written.entry(it.written.to_lowercase()).or_default() += 1;
    }
    for it in &mut *milestones {
        let is_repeated = written.get(&it.written.to_lowercase()).is_some_and(|count| *count > 1);
        it.title = match it.above.as_str() {
            above if is_repeated && !above.is_empty() => format!("{above}: {}", it.written),
            _ => it.written.clone(),
        };
    }
    let mut before: HashMap<String, usize> = HashMap::new();
    for it in milestones {
        let count = before.entry(it.title.to_lowercase()).or_default();
        *count += 1;
        if *count > 1 {
            it.title = format!("{} ({count})", it.title);
        }
    }
}

/// The milestone that is called that: exactly, or the only one that has it in its title.
fn named(file: &Arc<str>, milestones: &[Milestone], asked: &str) -> Result<usize, Error> {
    let wanted = asked.trim().to_lowercase();
    let titles: Vec<String> = milestones.iter().map(|m| m.title.to_lowercase()).collect();
    if let Some(exact) = titles.iter().position(|title| *title == wanted) {
        return Ok(exact);
    }
    let all_at: Vec<usize> = (0..titles.len()).collect();
    let written: Vec<usize> =
        all_at.iter().copied().filter(|at| milestones[*at].written.to_lowercase() == wanted).collect();
    let like: Vec<usize> = match written.len() {
        0 => all_at.into_iter().filter(|at| titles[*at].contains(&wanted)).collect(),
        _ => written,
    };
    let all = |which: &[usize]| which.iter().map(|at| milestones[*at].title.clone()).collect();
    match like.as_slice() {
        [one] => Ok(*one),
        [] => Err(none_like(file, milestones, asked)),
        several => {
            Err(Error::Milestones { file: file.to_string(), asked: asked.to_owned(), all: all(several) })
        }
    }
}

/// There is none that is called that.
fn none_like(file: &Arc<str>, milestones: &[Milestone], asked: &str) -> Error {
    let titles: Vec<String> = milestones.iter().map(|m| m.title.to_lowercase()).collect();
    let near = nearest(&asked.trim().to_lowercase(), titles.iter().map(String::as_str));
    let near = near.and_then(|near| titles.iter().position(|title| title == near));
    Error::NoMilestone {
        file: file.to_string(),
        asked: asked.to_owned(),
        near: near.map(|at| milestones[at].title.clone()),
        all: milestones.iter().map(|m| m.title.clone()).collect(),
    }
}

/// The first one in which something is left to do.
fn first_open(file: &Arc<str>, milestones: &[Milestone]) -> Result<usize, Error> {
    let open = milestones.iter().position(|milestone| milestone.tasks().any(|task| !task.done));
    open.ok_or_else(|| match milestones.last() {
        None => Error::Empty { name: file.to_string() },
        Some(last) => Error::AllTicked { file: file.to_string(), last: last.title.clone() },
    })
}

/// What was read so far.
struct Reader<'t> {
    text: &'t str,
    places: Places<'t>,
    milestones: Vec<Milestone>,
    /// The last heading of the first level.
    above: String,
    /// What stands below a milestone's heading before its first item or group.
    preface: String,
    /// The item that is being read.
    open: Option<Open<'t>>,
    /// IDs of this milestone.
    ids: BTreeSet<String>,
    /// The number from which on an ID made of a name may be free.
    numbers: HashMap<String, u32>,
    remarks: Vec<Remark>,
}

/// An item whose end has not come yet.
struct Open<'t> {
    item: Item<'t>,
    /// Where its line begins, and where the next one does.
    at: usize,
    next: usize,
    boxes: Progress,
}

impl<'t> Reader<'t> {
    fn new(file: &Arc<str>, text: &'t str) -> Reader<'t> {
        Reader {
            text,
            places: Places::new(file, text),
            milestones: vec![Milestone { groups: vec![Group::default()], ..Milestone::default() }],
            above: String::new(),
            preface: String::new(),
            open: None,
            ids: BTreeSet::new(),
            numbers: HashMap::new(),
            remarks: Vec::new(),
        }
    }

    fn line(&mut self, line: Line<'t>) {
        if let Some(heading) = line.heading() {
            self.close(line.at);
            self.heading(heading);
            return;
        }
        let Some(item) = line.item() else {
            self.words(line);
            return;
        };
        let inside = self.open.as_ref().is_some_and(|open| item.indent > open.item.indent);
        match (&mut self.open, item.ticked) {
            (Some(open), Some(ticked)) if inside => {
                open.boxes.of += 1;
                open.boxes.done += usize::from(ticked);
            }
            (_, Some(_)) => {
                self.close(line.at);
                let next = line.at + line.text.len();
                self.open = Some(Open { item, at: line.at, next, boxes: Progress { done: 0, of: 0 } });
            }
            (_, None) if inside => {}
            (_, None) => self.close(line.at),
        }
    }

    fn heading(&mut self, heading: Heading<'t>) {
        if heading.level <= MILESTONE {
            self.ids.clear();
            self.numbers.clear();
            self.preface.clear();
            let written = line(heading.text);
            if heading.level < MILESTONE {
                self.above.clone_from(&written);
            }
            let above = if heading.level < MILESTONE { String::new() } else { self.above.clone() };
            let groups = vec![Group::default()];
            self.milestones.push(Milestone { title: String::new(), written, above, groups });
        } else if let Some(milestone) = self.milestones.last_mut() {
            milestone.groups.push(Group { theme: line(heading.text), ..Group::default() });
        }
    }

    /// Words before the first item of a group are told to its agents.
    fn words(&mut self, line: Line<'t>) {
        let Some(milestone) = self.milestones.last_mut() else { return };
        let is_first = milestone.groups.len() == 1;
        let Some(group) = milestone.groups.last_mut() else { return };
        if self.open.is_some() || !group.tasks.is_empty() {
            return;
        }
        let text = line.text.trim();
        if is_first {
            self.preface.push_str(text);
            self.preface.push('\n');
        } else if !text.is_empty() {
            let gap = if group.prompt.is_empty() { "" } else { "\n" };
            group.prompt.push_str(gap);
            group.prompt.push_str(text);
        }
    }

    /// Ends the item that is being read; what comes next begins at `end`.
    fn close(&mut self, end: usize) {
        let Some(open) = self.open.take() else { return };
        let place = self.places.place(open.at + open.item.at);
        let (id, title) = id_and_title(open.item.text);
        if title.is_empty() {
            let text = "this item says nothing, and is passed over".to_owned();
            self.remarks.push(Remark { place, text });
            return;
        }
        let more = more(self.text.get(open.next..end).unwrap_or_default(), open.item.indent);
        let id = self.free(id.map(ToOwned::to_owned), title);
        let mut task = Task::new(id, title.to_owned(), place);
        task.prompt = if more.is_empty() { title.to_owned() } else { format!("{title}\n\n{more}") };
        task.done = open.item.ticked == Some(true);
        task.progress = Some(open.boxes).filter(|boxes| boxes.of > 0);
        if let Some(group) = self.milestones.last_mut().and_then(|milestone| milestone.groups.last_mut()) {
            if group.tasks.is_empty() {
                // Groups without a task are dropped, so only now it is of use.
                let own = std::mem::take(&mut group.prompt);
                let all = [self.preface.trim(), &own].join("\n");
                all.trim_matches('\n').clone_into(&mut group.prompt);
            }
            group.tasks.push(task);
        }
    }

    /// An ID that no other item of the milestone has. One that was written down stays as it is, twice or not.
    fn free(&mut self, written: Option<String>, title: &str) -> String {
        if let Some(id) = written {
            self.ids.insert(id.to_lowercase());
            return id;
        }
        let name = Name::from_prompt(title);
        // No letter in it that a name can have.
        let name = if name.as_str() == "lane-1" { Name::from_prompt("item 1") } else { name };
        let numbered = |n| match name.as_str() {
            "item-1" => format!("item-{n}"),
            _ => name.numbered(n).to_string(),
        };
        let next = self.numbers.entry(name.to_string()).or_insert(1);
        let free = (*next..=u32::MAX).find(|n| !self.ids.contains(&numbered(*n))).unwrap_or_default();
        *next = free.saturating_add(1);
        self.ids.insert(numbered(free));
        numbered(free)
    }
}

/// `AUTH-1: Title`, `**AUTH-1** Title`, or a title alone.
fn id_and_title(text: &str) -> (Option<&str>, &str) {
    let end = text.find(' ').unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    let bare = markdown::bare(word.trim_end_matches(':')).trim_end_matches(':');
    let rest = rest.trim_start();
    let dash = ["- ", "— ", "– "].iter().find_map(|dash| rest.strip_prefix(dash));
    let is_marked = bare != word || dash.is_some();
    let has_number = bare.rsplit_once('-').is_some_and(|(_, n)| n.starts_with(|c: char| c.is_ascii_digit()));
    if is_marked && has_number && is_name(bare) && !rest.is_empty() {
        return (Some(bare), dash.unwrap_or(rest).trim());
    }
    (None, markdown::bare(text))
}

/// What stands below an item and belongs to it, moved out as far as it is moved in.
fn more(text: &str, indent: usize) -> String {
    let depth = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let mut lines: Vec<&str> = Vec::new();
    for line in text.split('\n').map(str::trim_end).skip(1) {
        let is_after_gap = lines.last().is_some_and(|last| last.is_empty());
        if !line.is_empty() && depth(line) <= indent && is_after_gap {
            break;
        }
        lines.push(line);
    }
    let common =
        lines.iter().filter(|line| !line.is_empty()).map(|line| depth(line)).min().unwrap_or_default();
    let moved: Vec<&str> = lines.iter().map(|line| line.get(common..).unwrap_or_default()).collect();
    moved.join("\n").trim_matches('\n').to_owned()
}

#[cfg(test)]
mod tests;
