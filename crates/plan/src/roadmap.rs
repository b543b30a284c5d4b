//! Roadmaps in Markdown as plans: a milestone's heading, and items with checkboxes below it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use proq_base::explain::closest_match;
use proq_base::lane_name::LaneName;
use proq_base::markdown;
use proq_base::markdown::{Heading, Item, Line};

use super::plan::{BoxProgress, Group, Plan, SourceNote, Task, first_line, is_task_or_area_name};
use super::plan_error::PlanError;
use super::source_node::TextLocator;

/// Deepest heading level that starts a milestone; deeper headings start groups.
const MAX_MILESTONE_LEVEL: usize = 2;

/// A heading of a roadmap and the groups of tasks below it.
#[derive(Debug, Default)]
struct Milestone {
    /// Unique title: the heading, prefixed with the heading above it where another milestone has the same
    /// heading.
    title: String,
    /// Heading as the file has it.
    heading: String,
    /// First-level heading above this milestone; may be empty.
    parent_heading: String,
    /// Groups of the milestone: first the items before any deeper heading, then one for each such heading.
    groups: Vec<Group>,
}

impl Milestone {
    fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.groups.iter().flat_map(|group| &group.tasks)
    }
}

/// Selection of one milestone of a roadmap.
#[derive(Debug, Clone, Copy)]
pub enum MilestoneSelector<'a> {
    /// The first milestone with an open task.
    FirstOpen,
    /// The milestone with this title, or the only one whose title contains it; upper and lower case are the
    /// same.
    Matching(&'a str),
    /// The milestone with exactly this title.
    Exact(&'a str),
}

/// Reads one milestone of a roadmap as a plan.
///
/// # Errors
/// Fails when there is no such milestone, more than one matches, or no task is open.
pub fn read(file: &Arc<str>, text: &str, selector: MilestoneSelector<'_>) -> Result<Plan, PlanError> {
    let mut reader = RoadmapReader::new(file, text);
    for line in markdown::lines_outside_code(text) {
        reader.read_line(line);
    }
    reader.close_item(text.len());
    let RoadmapReader { mut milestones, source_notes: remarks, .. } = reader;
    milestones.retain(|milestone| milestone.tasks().next().is_some());
    make_titles_unique(&mut milestones);
    let chosen = match selector {
        MilestoneSelector::FirstOpen => first_open_milestone(file, &milestones)?,
        MilestoneSelector::Matching(requested) => find_milestone(file, &milestones, requested)?,
        MilestoneSelector::Exact(title) => {
            let index = milestones.iter().position(|milestone| milestone.title == title);
            index.ok_or_else(|| no_milestone_error(file, &milestones, title))?
        }
    };
    let Milestone { title, mut groups, .. } = milestones.swap_remove(chosen);
    groups.retain(|group| !group.tasks.is_empty());
    Ok(Plan { summary: title, source_notes: remarks, ..Plan::from_groups(groups) })
}

/// Gives each milestone a unique title, also where headings are repeated.
fn make_titles_unique(milestones: &mut [Milestone]) {
    let mut heading_counts: HashMap<String, usize> = HashMap::new();
    for milestone in &*milestones {
        *heading_counts.entry(milestone.heading.to_lowercase()).or_default() += 1;
    }
    for milestone in &mut *milestones {
        let is_repeated =
            heading_counts.get(&milestone.heading.to_lowercase()).is_some_and(|count| *count > 1);
        milestone.title = match milestone.parent_heading.as_str() {
            parent if is_repeated && !parent.is_empty() => format!("{parent}: {}", milestone.heading),
            _ => milestone.heading.clone(),
        };
    }
    let mut title_counts: HashMap<String, usize> = HashMap::new();
    for milestone in milestones {
        let count = title_counts.entry(milestone.title.to_lowercase()).or_default();
        *count += 1;
        if *count > 1 {
            milestone.title = format!("{} ({count})", milestone.title);
        }
    }
}

/// Returns the index of the milestone with the requested title, or of the only one whose title contains it.
fn find_milestone(file: &Arc<str>, milestones: &[Milestone], requested: &str) -> Result<usize, PlanError> {
    let needle = requested.trim().to_lowercase();
    let titles: Vec<String> = milestones.iter().map(|m| m.title.to_lowercase()).collect();
    if let Some(exact) = titles.iter().position(|title| *title == needle) {
        return Ok(exact);
    }
    let positions: Vec<usize> = (0..titles.len()).collect();
    let by_heading: Vec<usize> =
        positions.iter().copied().filter(|at| milestones[*at].heading.to_lowercase() == needle).collect();
    let candidates: Vec<usize> = match by_heading.len() {
        0 => positions.into_iter().filter(|at| titles[*at].contains(&needle)).collect(),
        _ => by_heading,
    };
    let titles_at = |selected: &[usize]| selected.iter().map(|at| milestones[*at].title.clone()).collect();
    match candidates.as_slice() {
        [only] => Ok(*only),
        [] => Err(no_milestone_error(file, milestones, requested)),
        many => Err(PlanError::AmbiguousMilestone {
            file: file.to_string(),
            milestone: requested.to_owned(),
            candidates: titles_at(many),
        }),
    }
}

/// Returns the error for a milestone that does not exist, with the nearest title.
fn no_milestone_error(file: &Arc<str>, milestones: &[Milestone], requested: &str) -> PlanError {
    let titles: Vec<String> = milestones.iter().map(|m| m.title.to_lowercase()).collect();
    let nearest_title = closest_match(&requested.trim().to_lowercase(), titles.iter().map(String::as_str));
    let nearest_index = nearest_title.and_then(|near| titles.iter().position(|title| title == near));
    PlanError::UnknownMilestone {
        file: file.to_string(),
        milestone: requested.to_owned(),
        suggestion: nearest_index.map(|at| milestones[at].title.clone()),
        titles: milestones.iter().map(|m| m.title.clone()).collect(),
    }
}

/// Returns the index of the first milestone with an open task. Fails where all tasks are done, or there are
/// none.
fn first_open_milestone(file: &Arc<str>, milestones: &[Milestone]) -> Result<usize, PlanError> {
    let open = milestones.iter().position(|milestone| milestone.tasks().any(|task| !task.done));
    open.ok_or_else(|| match milestones.last() {
        None => PlanError::NoTasks { source_name: file.to_string() },
        Some(last) => PlanError::AllItemsDone { file: file.to_string(), last_milestone: last.title.clone() },
    })
}

/// State of the reader of a roadmap.
struct RoadmapReader<'t> {
    text: &'t str,
    locator: TextLocator<'t>,
    milestones: Vec<Milestone>,
    /// Last first-level heading that was read.
    parent_heading: String,
    /// Text below the milestone's heading, before its first item or group.
    preface: String,
    /// Item that is being read.
    current_item: Option<UnclosedItem<'t>>,
    /// IDs that are used in the current milestone, in lower case.
    used_ids: BTreeSet<String>,
    /// For each name that IDs are derived from, the next number to try.
    next_id_numbers: HashMap<String, u32>,
    source_notes: Vec<SourceNote>,
}

/// An item whose end has not been read yet.
struct UnclosedItem<'t> {
    /// First line of the item.
    item: Item<'t>,
    /// Byte offset of the item's first line.
    line_start: usize,
    /// Byte offset of the end of the item's first line.
    first_line_end: usize,
    /// Checkboxes of the items that are nested in this one.
    nested_boxes: BoxProgress,
}

impl<'t> RoadmapReader<'t> {
    fn new(file: &Arc<str>, text: &'t str) -> RoadmapReader<'t> {
        RoadmapReader {
            text,
            locator: TextLocator::new(file, text),
            milestones: vec![Milestone { groups: vec![Group::default()], ..Milestone::default() }],
            parent_heading: String::new(),
            preface: String::new(),
            current_item: None,
            used_ids: BTreeSet::new(),
            next_id_numbers: HashMap::new(),
            source_notes: Vec::new(),
        }
    }

    fn read_line(&mut self, line: Line<'t>) {
        if let Some(heading) = line.heading() {
            self.close_item(line.offset);
            self.read_heading(heading);
            return;
        }
        let Some(item) = line.item() else {
            self.read_text(line);
            return;
        };
        let is_nested = self.current_item.as_ref().is_some_and(|open| item.indent > open.item.indent);
        match (&mut self.current_item, item.ticked) {
            (Some(parent), Some(ticked)) if is_nested => {
                parent.nested_boxes.total += 1;
                parent.nested_boxes.done += usize::from(ticked);
            }
            (_, Some(_)) => {
                self.close_item(line.offset);
                let next = line.offset + line.text.len();
                self.current_item = Some(UnclosedItem {
                    item,
                    line_start: line.offset,
                    first_line_end: next,
                    nested_boxes: BoxProgress { done: 0, total: 0 },
                });
            }
            (_, None) if is_nested => {}
            (_, None) => self.close_item(line.offset),
        }
    }

    /// Starts a milestone, or a group of the current one, by the level of a heading.
    fn read_heading(&mut self, heading: Heading<'t>) {
        if heading.level <= MAX_MILESTONE_LEVEL {
            self.used_ids.clear();
            self.next_id_numbers.clear();
            self.preface.clear();
            let heading_text = first_line(heading.text);
            if heading.level < MAX_MILESTONE_LEVEL {
                self.parent_heading.clone_from(&heading_text);
            }
            let parent =
                if heading.level < MAX_MILESTONE_LEVEL { String::new() } else { self.parent_heading.clone() };
            let groups = vec![Group::default()];
            self.milestones.push(Milestone {
                title: String::new(),
                heading: heading_text,
                parent_heading: parent,
                groups,
            });
        } else if let Some(milestone) = self.milestones.last_mut() {
            milestone.groups.push(Group { theme: first_line(heading.text), ..Group::default() });
        }
    }

    /// Reads text between items. Text before the first item of a group becomes part of its tasks' prompts.
    fn read_text(&mut self, line: Line<'t>) {
        let Some(milestone) = self.milestones.last_mut() else { return };
        let is_first_group = milestone.groups.len() == 1;
        let Some(group) = milestone.groups.last_mut() else { return };
        if self.current_item.is_some() || !group.tasks.is_empty() {
            return;
        }
        let text = line.text.trim();
        if is_first_group {
            self.preface.push_str(text);
            self.preface.push('\n');
        } else if !text.is_empty() {
            let separator = if group.prompt.is_empty() { "" } else { "\n" };
            group.prompt.push_str(separator);
            group.prompt.push_str(text);
        }
    }

    /// Completes the current item as a task. `end` is the byte offset of the text that follows the item.
    fn close_item(&mut self, end: usize) {
        let Some(closed) = self.current_item.take() else { return };
        let location = self.locator.locate(closed.line_start + closed.item.text_offset_in_line);
        let (id, title) = id_and_title(closed.item.text);
        if title.is_empty() {
            let text = "this item is empty and is skipped".to_owned();
            self.source_notes.push(SourceNote { location, text });
            return;
        }
        let details =
            item_details(self.text.get(closed.first_line_end..end).unwrap_or_default(), closed.item.indent);
        let id = self.choose_item_id(id.map(ToOwned::to_owned), title);
        let mut task = Task::new(id, title.to_owned(), location);
        task.prompt = if details.is_empty() { title.to_owned() } else { format!("{title}\n\n{details}") };
        task.done = closed.item.ticked == Some(true);
        task.progress = Some(closed.nested_boxes).filter(|boxes| boxes.total > 0);
        if let Some(group) = self.milestones.last_mut().and_then(|milestone| milestone.groups.last_mut()) {
            if group.tasks.is_empty() {
                // Groups without a task are dropped, so the group's prompt is built with its first task.
                let group_text = std::mem::take(&mut group.prompt);
                let combined = [self.preface.trim(), &group_text].join("\n");
                combined.trim_matches('\n').clone_into(&mut group.prompt);
            }
            group.tasks.push(task);
        }
    }

    /// Returns an ID for an item. An ID written in the file stays as it is, even if another item has it too.
    /// An ID derived from the title is one that no other item of the milestone has.
    fn choose_item_id(&mut self, given_id: Option<String>, title: &str) -> String {
        if let Some(id) = given_id {
            self.used_ids.insert(id.to_lowercase());
            return id;
        }
        let name = LaneName::from_title(title);
        // The title has no character that a name may contain.
        let name = if name.as_str() == "lane-1" { LaneName::from_title("item 1") } else { name };
        let id_with_number = |n| match name.as_str() {
            "item-1" => format!("item-{n}"),
            _ => name.numbered(n).to_string(),
        };
        let next_number = self.next_id_numbers.entry(name.to_string()).or_insert(1);
        let number = (*next_number..=u32::MAX)
            .find(|n| !self.used_ids.contains(&id_with_number(*n)))
            .unwrap_or_default();
        *next_number = number.saturating_add(1);
        self.used_ids.insert(id_with_number(number));
        id_with_number(number)
    }
}

/// Splits an item's text into ID and title: `AUTH-1: Title`, `**AUTH-1** Title`, or a title alone.
fn id_and_title(text: &str) -> (Option<&str>, &str) {
    let end = text.find(' ').unwrap_or(text.len());
    let (word, remainder) = text.split_at(end);
    let bare = markdown::strip_emphasis(word.trim_end_matches(':')).trim_end_matches(':');
    let remainder = remainder.trim_start();
    let after_dash = ["- ", "— ", "– "].iter().find_map(|dash| remainder.strip_prefix(dash));
    let is_marked = bare != word || after_dash.is_some();
    let has_number = bare.rsplit_once('-').is_some_and(|(_, n)| n.starts_with(|c: char| c.is_ascii_digit()));
    if is_marked && has_number && is_task_or_area_name(bare) && !remainder.is_empty() {
        return (Some(bare), after_dash.unwrap_or(remainder).trim());
    }
    (None, markdown::strip_emphasis(text))
}

/// Returns the text below an item that belongs to the item, without its common indentation.
fn item_details(text: &str, indent: usize) -> String {
    let indentation = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let mut lines: Vec<&str> = Vec::new();
    for line in text.split('\n').map(str::trim_end).skip(1) {
        let is_after_blank = lines.last().is_some_and(|last| last.is_empty());
        if !line.is_empty() && indentation(line) <= indent && is_after_blank {
            break;
        }
        lines.push(line);
    }
    let common_indent =
        lines.iter().filter(|line| !line.is_empty()).map(|line| indentation(line)).min().unwrap_or_default();
    let dedented: Vec<&str> =
        lines.iter().map(|line| line.get(common_indent..).unwrap_or_default()).collect();
    dedented.join("\n").trim_matches('\n').to_owned()
}

#[cfg(test)]
mod tests;
