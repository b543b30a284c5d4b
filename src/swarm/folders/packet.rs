//! Owns what the file of one task says: its title, what it needs, its files, its size, and how far somebody has come with it.

use std::sync::Arc;

use super::super::node::Places;
use super::super::plan::{Need, Remark};
use super::super::shape::is_name;
use super::super::{Error, Place, Progress, Size};
use super::needs::Known;
use crate::agent::Status;
use crate::markdown::{self, Item, Line};
use crate::{git, harmless};

/// What the file of a task says.
#[derive(Debug, Default)]
pub(super) struct Packet {
    /// The ID in its heading, and where.
    pub(super) id: Option<(String, Place)>,
    pub(super) title: Option<String>,
    pub(super) needs: Vec<Need>,
    pub(super) scope: Vec<String>,
    pub(super) size: Size,
    pub(super) review: Option<u8>,
    pub(super) remarks: Vec<Remark>,
}

/// The section that a line is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Needs,
    Scope,
    Other,
}

/// Reads the file of a task.
///
/// # Errors
/// The first mistake in it.
pub(super) fn read(file: &Arc<str>, text: &str, known: &Known<'_>) -> Result<Packet, Error> {
    let places = Places::new(file, text);
    let mut out = Packet::default();
    let mut section = Section::Other;
    for line in markdown::lines(text) {
        let place = |at: usize| places.place(line.at + at);
        if let Some(heading) = line.heading() {
            match (heading.level, &out.title) {
                (1, None) => out.head(heading.text, place(0)),
                (1 | 2, _) => section = section_of(heading.text),
                _ => {}
            }
            if let Some(level) = value_of(heading.text, "review level") {
                out.review = Some(review(level, &place(0))?);
            }
            continue;
        }
        match markdown::labelled(line.text) {
            Some((label, value)) if label.eq_ignore_ascii_case("size") => {
                out.size = size(value, &place(0))?;
                continue;
            }
            Some((label, value)) if label.eq_ignore_ascii_case("review level") => {
                out.review = Some(review(value, &place(0))?);
                continue;
            }
            _ => {}
        }
        match section {
            _ if line.text.trim() == "---" => section = Section::Other,
            Section::Needs => out.need(line, &place, known),
            Section::Scope => out.scope(line, &place)?,
            Section::Other => {}
        }
    }
    Ok(out)
}

impl Packet {
    /// `Task: ID - Title`, `ID: Title`, or a title alone.
    fn head(&mut self, text: &str, place: Place) {
        let text = value_of(text, "task").unwrap_or(text);
        let end = text.find([' ', ':', '—', '–']).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        let rest = rest.trim_start();
        let title = rest.strip_prefix(['-', '—', '–', ':']).map(str::trim);
        let is_id = is_id(word) && (title.is_some() || rest.is_empty());
        if is_id {
            self.id = Some((word.to_owned(), place));
        }
        let title = if is_id { title.unwrap_or_default() } else { text };
        self.title = Some(if title.is_empty() { word } else { title }.to_owned());
    }

    /// A line of the section that says what is needed.
    fn need(&mut self, line: Line<'_>, place: &dyn Fn(usize) -> Place, known: &Known<'_>) {
        let (at, text) = line.item().map_or((0, line.text), |item| (item.at, item.text));
        let text = text.trim();
        if text.is_empty() || text.starts_with('>') {
            return;
        }
        let labels = ["task", "tasks", "requires", "depends on"];
        let label = markdown::labelled(text)
            .filter(|(label, _)| labels.iter().any(|known| label.eq_ignore_ascii_case(known)));
        let said = label.map_or(text, |(_, rest)| rest);
        if is_none(said) {
            return;
        }
        let names = names(said, label.is_some(), known);
        if names.is_empty() {
            let text = format!("this names no task, and is passed over: {}", harmless::line(text));
            self.remarks.push(Remark { place: place(at), text });
        }
        self.needs.extend(names.into_iter().map(|name| Need { name: name.to_owned(), place: place(at) }));
    }

    /// A line of the section that says which files it is about.
    fn scope(&mut self, line: Line<'_>, place: &dyn Fn(usize) -> Place) -> Result<(), Error> {
        let is_file = |item: &Item<'_>| item.ticked.is_none() && !is_none(item.text);
        let Some(item) = line.item().filter(is_file) else { return Ok(()) };
        let glob = match item.text.split('`').nth(1) {
            Some(quoted) => quoted.trim(),
            None => item.text.split([' ', '\t']).next().unwrap_or_default(),
        };
        let is_prose = !item.text.contains('`') && item.text.contains(' ') && !glob.contains(['/', '.', '*']);
        if is_prose || glob.is_empty() {
            let text = format!("this names no file, and is passed over: {}", harmless::line(item.text));
            self.remarks.push(Remark { place: place(item.at), text });
            return Ok(());
        }
        if let Err(git::Error::Glob { why, .. }) = git::Scope::read(&[glob.to_owned()]) {
            let what = format!("'{}' is no glob: {why}", harmless::line(glob));
            return Err(Error::wrong(
                &place(item.at),
                what,
                "name files of this repository, as in `src/pay/`",
            ));
        }
        self.scope.push(glob.to_owned());
        Ok(())
    }
}

/// The tasks that a line names before it goes on in words: `A-1, area/B-2 (why)`.
fn names<'t>(text: &'t str, is_labelled: bool, known: &Known<'_>) -> Vec<&'t str> {
    let mut out = Vec::new();
    let mut rest = text;
    loop {
        let end = rest.find([' ', ',', '(', ';', '\t']).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        let is_led = word.ends_with(':');
        let word = markdown::bare(word.trim_end_matches(['.', ':']));
        let behind = behind.trim_start();
        let fits = word.split_once('/').map_or(is_name(word), |(area, id)| is_name(area) && is_name(id));
        let is_end = is_led || behind.is_empty() || behind.starts_with(['(', '—', '–', '-', ':']);
        let next =
            behind.strip_prefix([',', ';']).or_else(|| behind.strip_prefix("and ")).map(str::trim_start);
        let looks_like_one = is_labelled || is_id(word.rsplit('/').next().unwrap_or(word)) || known.has(word);
        // Words behind an ID make it no less one; behind other names they make it a word like them.
        let is_clear = is_end || next.is_some() || is_id(word.rsplit('/').next().unwrap_or(word));
        if !fits || !looks_like_one || !is_clear {
            return out;
        }
        out.push(word);
        match next.filter(|next| !next.is_empty()) {
            Some(next) => rest = next,
            None => return out,
        }
    }
}

/// How many boxes are ticked: of steps, where there are any, else of all.
pub(super) fn progress(text: &str) -> Option<Progress> {
    let status = Status::read(text);
    Some(Progress { done: status.done(), of: status.of() }).filter(|told| told.of > 0)
}

fn section_of(heading: &str) -> Section {
    match heading.to_lowercase().as_str() {
        "dependencies" => Section::Needs,
        "file scope" => Section::Scope,
        _ => Section::Other,
    }
}

/// What follows `label:`.
fn value_of<'t>(text: &'t str, label: &str) -> Option<&'t str> {
    let start = text.get(..label.len()).filter(|start| start.eq_ignore_ascii_case(label))?;
    text[start.len()..].trim_start().strip_prefix(':').map(str::trim)
}

fn size(text: &str, place: &Place) -> Result<Size, Error> {
    let word = text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    Size::of(word).ok_or_else(|| {
        Error::wrong(place, format!("there is no size '{}'", harmless::line(text)), "write S, M or L")
    })
}

fn review(text: &str, place: &Place) -> Result<u8, Error> {
    let word = text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    word.parse::<u8>().ok().filter(|level| *level <= 3).ok_or_else(|| {
        Error::wrong(
            place,
            format!("there is no review level '{}'", harmless::line(text)),
            "write 0, 1, 2 or 3",
        )
    })
}

/// Letters, a dash and a number, as IDs mostly are.
fn is_id(word: &str) -> bool {
    let Some((letters, number)) = word.rsplit_once('-') else { return false };
    is_name(word)
        && letters.starts_with(|c: char| c.is_ascii_alphabetic())
        && number.starts_with(|c: char| c.is_ascii_digit())
}

/// Whether it says that there is nothing.
fn is_none(text: &str) -> bool {
    let word = text.split(['(', '—', '–']).next().unwrap_or_default();
    let word = markdown::bare(word).trim_end_matches('.');
    ["none", "nothing", "n/a", "-"].iter().any(|none| word.eq_ignore_ascii_case(none))
}
