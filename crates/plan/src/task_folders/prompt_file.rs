//! Parser of a task's PROMPT.md: title, dependencies, file scope, size, review level and progress.

use std::sync::Arc;

use proq_base::markdown::{Item, Line};
use proq_base::{markdown, terminal_text};
use proq_git as git;
use proq_git::status::scope;

use super::needs::TaskIndex;
use crate::plan::{BoxProgress, Need, Size, SourceNote, is_task_or_area_name};
use crate::plan_error::{PlanError, SourceLocation};
use crate::source_node::TextLocator;
use crate::task_status::TaskProgress;

/// The contents of a task's prompt file.
#[derive(Debug, Default)]
pub struct ParsedPrompt {
    /// The id in the heading, with its location.
    pub id: Option<(String, SourceLocation)>,
    /// Title in the first heading, or else its id; none if the file has no heading of level 1.
    pub title: Option<String>,
    /// Tasks that the dependencies section names.
    pub needs: Vec<Need>,
    /// Globs of the files that the task is expected to change, from the file scope section.
    pub scope: Vec<String>,
    /// Amount of work that the task takes; medium if the file names no size.
    pub size: Size,
    /// Review level of the task, from 0 to 3; none if the file names no level.
    pub review_level: Option<u8>,
    /// Oddities of the file that do not prevent the task from running.
    pub notes: Vec<SourceNote>,
}

/// A section of the prompt file that has a meaning for the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    /// The section `Dependencies`.
    Needs,
    /// The section `File scope`.
    Scope,
    /// Any other section, which is ignored.
    Other,
}

/// Parses the prompt file of a task.
///
/// # Errors
/// Fails with the first error in the file.
pub fn parse(file: &Arc<str>, text: &str, task_index: &TaskIndex<'_>) -> Result<ParsedPrompt, PlanError> {
    let locator = TextLocator::new(file, text);
    let mut out = ParsedPrompt::default();
    let mut section = Section::Other;
    for line in markdown::lines_outside_code(text) {
        let locate_in_line = |offset: usize| locator.locate(line.offset + offset);
        if let Some(heading) = line.heading() {
            match (heading.level, &out.title) {
                (1, None) => out.parse_heading(heading.text, locate_in_line(0)),
                (1 | 2, _) => section = parse_section(heading.text),
                _ => {}
            }
            if let Some(level) = value_after_label(heading.text, "review level") {
                out.review_level = Some(parse_review_level(level, &locate_in_line(0))?);
            }
            continue;
        }
        match markdown::parse_label(line.text) {
            Some((label, value)) if label.eq_ignore_ascii_case("size") => {
                out.size = parse_size(value, &locate_in_line(0))?;
                continue;
            }
            Some((label, value)) if label.eq_ignore_ascii_case("review level") => {
                out.review_level = Some(parse_review_level(value, &locate_in_line(0))?);
                continue;
            }
            _ => {}
        }
        match section {
            _ if line.text.trim() == "---" => section = Section::Other,
            Section::Needs => out.parse_needs_line(line, &locate_in_line, task_index),
            Section::Scope => out.parse_scope_line(line, &locate_in_line)?,
            Section::Other => {}
        }
    }
    Ok(out)
}

impl ParsedPrompt {
    /// Parses the first heading: `Task: ID - Title`, `ID: Title`, or a title alone.
    fn parse_heading(&mut self, text: &str, location: SourceLocation) {
        let text = value_after_label(text, "task").unwrap_or(text);
        let end = text.find([' ', ':', '—', '–']).unwrap_or(text.len());
        let (word, after_word) = text.split_at(end);
        let after_word = after_word.trim_start();
        let title = after_word.strip_prefix(['-', '—', '–', ':']).map(str::trim);
        let has_id = has_id_form(word) && (title.is_some() || after_word.is_empty());
        if has_id {
            self.id = Some((word.to_owned(), location));
        }
        let title = if has_id { title.unwrap_or_default() } else { text };
        self.title = Some(if title.is_empty() { word } else { title }.to_owned());
    }

    /// Parses a line of the dependencies section.
    fn parse_needs_line(
        &mut self,
        line: Line<'_>,
        locate_in_line: &dyn Fn(usize) -> SourceLocation,
        task_index: &TaskIndex<'_>,
    ) {
        let (offset, text) = line.item().map_or((0, line.text), |item| (item.text_offset_in_line, item.text));
        let text = text.trim();
        if text.is_empty() || text.starts_with('>') {
            return;
        }
        let labels = ["task", "tasks", "requires", "depends on"];
        let label = markdown::parse_label(text)
            .filter(|(label, _)| labels.iter().any(|candidate| label.eq_ignore_ascii_case(candidate)));
        let value = label.map_or(text, |(_, value)| value);
        if means_none(value) {
            return;
        }
        let task_names = leading_task_names(value, label.is_some(), task_index);
        if task_names.is_empty() {
            let text = format!("this names no task and is skipped: {}", terminal_text::escape_line(text));
            self.notes.push(SourceNote { location: locate_in_line(offset), text });
        }
        self.needs.extend(
            task_names
                .into_iter()
                .map(|name| Need { name: name.to_owned(), location: locate_in_line(offset) }),
        );
    }

    /// Parses a line of the file scope section.
    fn parse_scope_line(
        &mut self,
        line: Line<'_>,
        locate_in_line: &dyn Fn(usize) -> SourceLocation,
    ) -> Result<(), PlanError> {
        let is_file = |item: &Item<'_>| item.ticked.is_none() && !means_none(item.text);
        let Some(item) = line.item().filter(is_file) else { return Ok(()) };
        let glob = match item.text.split('`').nth(1) {
            Some(quoted) => quoted.trim(),
            None => item.text.split([' ', '\t']).next().unwrap_or_default(),
        };
        let is_prose = !item.text.contains('`') && item.text.contains(' ') && !glob.contains(['/', '.', '*']);
        if is_prose || glob.is_empty() {
            let text =
                format!("this names no file and is skipped: {}", terminal_text::escape_line(item.text));
            self.notes.push(SourceNote { location: locate_in_line(item.text_offset_in_line), text });
            return Ok(());
        }
        if let Err(git::Error::InvalidGlob { reason: why, .. }) = scope::Scope::parse(&[glob.to_owned()]) {
            let message = format!("'{}' is no glob: {why}", terminal_text::escape_line(glob));
            return Err(PlanError::invalid(
                &locate_in_line(item.text_offset_in_line),
                message,
                "name files of this repository, as in `src/pay/`",
            ));
        }
        self.scope.push(glob.to_owned());
        Ok(())
    }
}

/// Returns the task names at the start of a line, before its prose: `A-1, area/B-2 (why)`.
fn leading_task_names<'t>(text: &'t str, is_labeled: bool, task_index: &TaskIndex<'_>) -> Vec<&'t str> {
    let mut out = Vec::new();
    let mut remaining = text;
    loop {
        let end = remaining.find([' ', ',', '(', ';', '\t']).unwrap_or(remaining.len());
        let (word, after_word) = remaining.split_at(end);
        let ends_with_colon = word.ends_with(':');
        let word = markdown::strip_emphasis(word.trim_end_matches(['.', ':']));
        let after_word = after_word.trim_start();
        let is_valid_name = word.split_once('/').map_or(is_task_or_area_name(word), |(area, id)| {
            is_task_or_area_name(area) && is_task_or_area_name(id)
        });
        let ends_list =
            ends_with_colon || after_word.is_empty() || after_word.starts_with(['(', '—', '–', '-', ':']);
        let next = after_word
            .strip_prefix([',', ';'])
            .or_else(|| after_word.strip_prefix("and "))
            .map(str::trim_start);
        let is_task_name = is_labeled
            || has_id_form(word.rsplit('/').next().unwrap_or(word))
            || task_index.contains_id(word);
        // An id stays an id when words follow it; any other name followed by words is prose.
        let is_unambiguous =
            ends_list || next.is_some() || has_id_form(word.rsplit('/').next().unwrap_or(word));
        if !is_valid_name || !is_task_name || !is_unambiguous {
            return out;
        }
        out.push(word);
        match next.filter(|next| !next.is_empty()) {
            Some(next) => remaining = next,
            None => return out,
        }
    }
}

/// Counts the ticked boxes: of steps where the text has any, else of all items. None without boxes.
pub(crate) fn parse_progress(text: &str) -> Option<BoxProgress> {
    let status = TaskProgress::parse(text);
    Some(BoxProgress { done: status.boxes_ticked(), total: status.boxes_total() })
        .filter(|progress| progress.total > 0)
}

/// Returns the section that a heading starts.
fn parse_section(heading: &str) -> Section {
    match heading.to_lowercase().as_str() {
        "dependencies" => Section::Needs,
        "file scope" => Section::Scope,
        _ => Section::Other,
    }
}

/// Returns the text after `label:`; none where `text` does not start with the label.
fn value_after_label<'t>(text: &'t str, label: &str) -> Option<&'t str> {
    let prefix = text.get(..label.len()).filter(|start| start.eq_ignore_ascii_case(label))?;
    text[prefix.len()..].trim_start().strip_prefix(':').map(str::trim)
}

/// Parses the first word of a text as a size; fails for any other word.
fn parse_size(text: &str, location: &SourceLocation) -> Result<Size, PlanError> {
    let word = text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    Size::parse(word).ok_or_else(|| {
        PlanError::invalid(
            location,
            format!("there is no size '{}'", terminal_text::escape_line(text)),
            "write S, M or L",
        )
    })
}

/// Parses the first word of a text as a review level from 0 to 3; fails for any other word.
fn parse_review_level(text: &str, location: &SourceLocation) -> Result<u8, PlanError> {
    let word = text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    word.parse::<u8>().ok().filter(|level| *level <= 3).ok_or_else(|| {
        PlanError::invalid(
            location,
            format!("there is no review level '{}'", terminal_text::escape_line(text)),
            "write 0, 1, 2 or 3",
        )
    })
}

/// Returns whether a word has the usual form of an id: letters, a dash and a number.
fn has_id_form(word: &str) -> bool {
    let Some((letters, number)) = word.rsplit_once('-') else { return false };
    is_task_or_area_name(word)
        && letters.starts_with(|c: char| c.is_ascii_alphabetic())
        && number.starts_with(|c: char| c.is_ascii_digit())
}

/// Returns whether a text means "none".
fn means_none(text: &str) -> bool {
    let word = text.split(['(', '—', '–']).next().unwrap_or_default();
    let word = markdown::strip_emphasis(word).trim_end_matches('.');
    ["none", "nothing", "n/a", "-"].iter().any(|none| word.eq_ignore_ascii_case(none))
}
