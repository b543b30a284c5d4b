//! Owns finding out what a source is, and reading it within bounds.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::folders::{self, ALL, Home, PROMPT};
use super::roadmap::Which;
use super::{Error, Graph, Plan, Proposed, roadmap, stories, toml_plan};
use crate::harmless;

/// The largest file of a plan, in MiB.
const LARGEST: u64 = 4;
/// The most tasks of a plan.
pub(super) const MOST: usize = 5_000;

/// What a plan is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// A plan in TOML.
    Toml,
    /// A folder for each task.
    Folders,
    /// A roadmap in Markdown.
    Roadmap,
    /// Stories in YAML.
    Stories,
    /// A plan that an agent made and that is kept until somebody saves it.
    Draft,
}

impl Format {
    /// The form of this word.
    pub(crate) fn named(word: &str) -> Option<Format> {
        [Format::Toml, Format::Folders, Format::Roadmap, Format::Stories]
            .into_iter()
            .find(|it| it.word() == word)
    }

    /// Its word on the command line.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Format::Toml => "toml",
            Format::Folders => "folders",
            Format::Roadmap => "roadmap",
            Format::Stories => "stories",
            Format::Draft => "draft",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Toml => "TOML",
            Format::Folders => "task folders",
            Format::Roadmap => "Markdown",
            Format::Stories => "YAML",
            Format::Draft => "a draft",
        })
    }
}

/// What somebody named as the source of a plan.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    /// The folder that it was named in.
    pub(crate) dir: &'a Path,
    /// Files, folders and names of areas.
    pub(crate) sources: &'a [String],
    /// What it is, if that was said.
    pub(crate) format: Option<Format>,
    /// The milestone of a roadmap.
    pub(crate) milestone: Option<&'a str>,
    /// Where the repository has its tasks.
    pub(crate) home: Home<'a>,
}

/// A source that was read.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    /// What it is.
    pub(crate) format: Format,
    /// The plan.
    pub(crate) plan: Plan,
    /// What depends on what in it.
    pub(crate) graph: Graph,
    /// Those of the dependencies that nobody wrote there: an agent found them missing, and a person agreed.
    pub(crate) proposed: Vec<Proposed>,
}

/// Reads a plan.
///
/// # Errors
/// When there is none, or something is wrong with it.
pub(crate) fn read(asked: &Asked<'_>) -> Result<Found, Error> {
    let format = match asked.format {
        Some(format) => format,
        None => format_of(asked)?,
    };
    if asked.milestone.is_some() && format != Format::Roadmap {
        return Err(Error::NoMilestones { format });
    }
    let one = || {
        let file = Source::only(asked, format)?;
        Ok::<_, Error>((file.text()?, file.name))
    };
    let which = asked.milestone.map_or(Which::First, Which::Like);
    let plan = match format {
        Format::Folders => folders::read(asked.dir, asked.sources, &asked.home)?,
        Format::Roadmap => one().and_then(|(text, name)| roadmap::read(&name, &text, which))?,
        Format::Stories => one().and_then(|(text, name)| stories::read(&name, &text))?,
        Format::Toml | Format::Draft => one().and_then(|(text, name)| toml_plan::read(&name, &text))?,
    };
    Found::of(format, plan, || asked.sources.join(" "))
}

impl Found {
    /// A plan that was read, from what `name` says.
    ///
    /// # Errors
    /// When there is nothing in it, or more than anybody can want, or what needs what in it is wrong.
    pub(super) fn of(format: Format, plan: Plan, name: impl Fn() -> String) -> Result<Found, Error> {
        match plan.spots().count() {
            0 => Err(Error::Empty { name: name() }),
            n if n > MOST => Err(Error::TooMany { limit: MOST }),
            _ => Ok(Found { format, graph: Graph::of(&plan)?, plan, proposed: Vec::new() }),
        }
    }
}

/// What the sources are, by their names.
fn format_of(asked: &Asked<'_>) -> Result<Format, Error> {
    let Some(name) = asked.sources.first() else {
        return Err(Error::NoSource { name: String::new(), else_: String::new() });
    };
    let path = asked.dir.join(name);
    let is_folder = path.is_dir() || path.file_name().is_some_and(|name| name == PROMPT);
    if name == ALL || is_folder || asked.home.has_area(name) {
        return Ok(Format::Folders);
    }
    let ending = path.extension().map(std::ffi::OsStr::to_ascii_lowercase);
    match ending.as_ref().and_then(|e| e.to_str()) {
        _ if !path.exists() => Err(folders::nothing(name, &asked.home)),
        Some("toml") => Ok(Format::Toml),
        Some("md" | "markdown") => Ok(Format::Roadmap),
        Some("yaml" | "yml") => Ok(Format::Stories),
        _ => Err(Error::NoFormat { name: name.clone() }),
    }
}

/// One file.
struct Source {
    path: PathBuf,
    /// As it is shown.
    name: Arc<str>,
}

impl Source {
    /// The file of a plan that is one file.
    fn only(asked: &Asked<'_>, format: Format) -> Result<Source, Error> {
        match asked.sources {
            [name] => Ok(Source { path: asked.dir.join(name), name: Arc::from(harmless::line(name)) }),
            several => Err(Error::Several { format, count: several.len() }),
        }
    }

    fn text(&self) -> Result<String, Error> {
        read_text(&self.path)
    }
}

/// The text of a file that is not too large.
pub(super) fn read_text(path: &Path) -> Result<String, Error> {
    let unreadable = |source| Error::Unreadable { path: path.to_owned(), source };
    let most = LARGEST * 1024 * 1024;
    let bytes = crate::regular_file::given(path, most).map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => {
            Error::NoSource { name: path.display().to_string(), else_: String::new() }
        }
        std::io::ErrorKind::FileTooLarge => Error::TooLarge { path: path.to_owned(), limit: LARGEST },
        _ => unreadable(source),
    })?;
    let text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    let text = text.ok_or_else(|| Error::NoText { path: path.to_owned() })?;
    Ok(text.strip_prefix('\u{feff}').map(ToOwned::to_owned).unwrap_or(text))
}
