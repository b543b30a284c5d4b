//! Owns what can be wrong with the source of a plan, where it is, and what helps.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::{BatchError, Format};
use crate::explain::{Exit, Explain};

/// A place in a file, as editors count.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file, as it was named.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: usize,
    /// The character in it, from 1.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            // A folder has no lines.
            0 => f.write_str(&self.file),
            _ => write!(f, "{}:{}:{}", self.file, self.line, self.column),
        }
    }
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something in a file is not as it has to be.
    #[error("{place}: {what}")]
    Wrong {
        /// Where.
        place: Place,
        /// What.
        what: String,
        /// What to do about it.
        fix: String,
    },
    /// Two tasks have one name.
    #[error("{second}: task '{name}' is there twice; the other one is at {first}")]
    Twice {
        /// The name.
        name: String,
        /// The one that comes first.
        first: Place,
        /// The other one.
        second: Place,
    },
    /// A task needs one that there is not.
    #[error("{place}: task '{task}' needs '{need}', which is no task of this plan")]
    Unknown {
        /// Where that is said.
        place: Place,
        /// The task.
        task: String,
        /// What it needs.
        need: String,
        /// A name much like it.
        near: Option<String>,
    },
    /// A task needs one of several.
    #[error("{place}: task '{task}' needs '{need}', and there are several: {}", all.join(", "))]
    Ambiguous {
        /// Where that is said.
        place: Place,
        /// The task.
        task: String,
        /// What it needs.
        need: String,
        /// The full names of those that may be meant.
        all: Vec<String>,
    },
    /// One task was wanted.
    #[error("'{name}' is not one task but {count}")]
    ManyTasks {
        /// What was named.
        name: String,
        /// How many it has.
        count: usize,
    },
    /// Tasks need each other in a circle.
    #[error("{place}: these tasks need each other: {}", names.join(" -> "))]
    Cycle {
        /// Where the first of them says that it needs the second.
        place: Place,
        /// Their names; the first stands at the end again.
        names: Vec<String>,
    },
    /// A task needs one that comes later.
    #[error("{place}: task '{task}' needs '{need}', which comes later: {why}")]
    TooLate {
        /// Where that is said.
        place: Place,
        /// The task.
        task: String,
        /// What it needs.
        need: String,
        /// Why it comes later.
        why: String,
    },
    /// A task needs one that is open and was not named.
    #[error("{place}: task '{task}' needs '{need}', which is not done and no part of this plan")]
    Elsewhere {
        /// Where that is said.
        place: Place,
        /// The task.
        task: String,
        /// What it needs.
        need: String,
        /// What to name so that it is there.
        sources: Vec<String>,
    },
    /// What was named lies somewhere else.
    #[error("{} leads out of the repository", path.display())]
    Outside {
        /// As it was named.
        path: PathBuf,
    },
    /// A file cannot be read.
    #[error("could not read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file is no text.
    #[error("{} is no text in UTF-8", path.display())]
    NoText {
        /// The file.
        path: PathBuf,
    },
    /// A file is larger than a plan can be.
    #[error("{} is larger than {limit} MiB", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit.
        limit: u64,
    },
    /// More tasks than anybody can want.
    #[error("there are more than {limit} tasks in it")]
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// What a source is cannot be told from its name.
    #[error("what kind of plan '{name}' is cannot be told from its name")]
    NoFormat {
        /// As it was named.
        name: String,
    },
    /// There is no such thing.
    #[error("there is no '{name}' here")]
    NoSource {
        /// As it was named.
        name: String,
        /// What else could have been meant, in words.
        else_: String,
    },
    /// Several sources, where only one can be.
    #[error("a plan in {format} is one file, and {count} were named")]
    Several {
        /// The form.
        format: Format,
        /// How many there were.
        count: usize,
    },
    /// A milestone is asked for where there are none.
    #[error("only a roadmap has milestones, and this is a plan in {format}")]
    NoMilestones {
        /// The form.
        format: Format,
    },
    /// No milestone is called that.
    #[error("{file} has no milestone '{asked}'")]
    NoMilestone {
        /// The file.
        file: String,
        /// What was asked for.
        asked: String,
        /// A title much like it.
        near: Option<String>,
        /// What there is.
        all: Vec<String>,
    },
    /// Several milestones could be meant.
    #[error("{file} has several milestones that '{asked}' could mean: {}", all.join(", "))]
    Milestones {
        /// The file.
        file: String,
        /// What was asked for.
        asked: String,
        /// Their titles.
        all: Vec<String>,
    },
    /// All of it is done.
    #[error("every item of {file} is ticked")]
    AllTicked {
        /// The file.
        file: String,
        /// The milestone that stands last.
        last: String,
    },
    /// There is nothing in it.
    #[error("there is no task in {name}")]
    Empty {
        /// The source.
        name: String,
    },
    /// The repository cannot be looked at.
    #[error(transparent)]
    Git(#[from] crate::git::Error),
    /// From a batch.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// From the store.
    #[error(transparent)]
    Store(#[from] crate::store::Error),
    /// From a lane.
    #[error(transparent)]
    Lane(#[from] crate::lane::Error),
    /// From an agent.
    #[error(transparent)]
    Agent(#[from] crate::agent::Error),
    /// From a landing.
    #[error(transparent)]
    Merge(#[from] crate::merge::Error),
    /// From a preview.
    #[error(transparent)]
    Preview(#[from] crate::preview::Error),
    /// From a program.
    #[error(transparent)]
    Process(#[from] crate::process::Error),
}

impl Error {
    /// The error of another part that this is.
    fn of_elsewhere(&self) -> Option<&dyn Explain> {
        Some(match self {
            Error::Git(error) => error,
            Error::Batch(error) => error,
            Error::Store(error) => error,
            Error::Lane(error) => error,
            Error::Agent(error) => error,
            Error::Merge(error) => error,
            Error::Preview(error) => error,
            Error::Process(error) => error,
            _ => return None,
        })
    }

    /// Something that is not as it has to be.
    pub(super) fn wrong(place: &Place, what: impl Into<String>, fix: impl Into<String>) -> Error {
        Error::Wrong { place: place.clone(), what: what.into(), fix: fix.into() }
    }
}

impl Explain for Error {
    fn hints(&self) -> Vec<Cow<'static, str>> {
        match self {
            Error::Wrong { fix, .. } => vec![fix.clone().into()],
            Error::Twice { .. } => vec!["give one of them another ID".into()],
            Error::Unknown { near: Some(near), .. } | Error::NoMilestone { near: Some(near), .. } => {
                vec![format!("did you mean '{near}'?").into()]
            }
            Error::Unknown { task, need, near: None, .. } => {
                vec![format!("add a task with the ID '{need}', or take it out of what '{task}' needs").into()]
            }
            Error::Ambiguous { all, .. } => {
                let all: Vec<String> = all.iter().map(|name| format!("'{name}'")).collect();
                vec![format!("say which one: {}", all.join(" or ")).into()]
            }
            Error::Cycle { names, .. } if names.len() == 2 => {
                vec!["take it out: it cannot wait for itself".into()]
            }
            Error::Cycle { names, .. } => {
                let last = names.len().saturating_sub(2);
                let (from, to) = (names.get(last), names.last());
                let (from, to) = (from.map_or("", |n| n), to.map_or("", |n| n));
                vec![format!("one of them has to go first: for example, let '{from}' not need '{to}'").into()]
            }
            Error::TooLate { task, need, .. } => {
                vec![format!("move '{need}' before '{task}', or '{task}' behind it").into()]
            }
            Error::Elsewhere { sources, .. } => {
                vec![format!("include it: git proq plan {}", shell(sources)).into()]
            }
            Error::ManyTasks { .. } => vec!["name the folder of one task: tasks/AREA/ID-name".into()],
            Error::Outside { .. } => vec!["tasks are read from this repository only: move it there".into()],
            Error::Unreadable { .. } => Vec::new(),
            Error::NoText { .. } => vec!["save it as UTF-8".into()],
            Error::TooLarge { .. } | Error::TooMany { .. } => {
                vec!["divide it, and run one part after the other".into()]
            }
            Error::NoFormat { name } => {
                vec![format!("say what it is: git proq plan --format toml {name}").into()]
            }
            Error::NoSource { else_, .. } if else_.is_empty() => {
                vec!["begin one: git proq plan --init".into()]
            }
            Error::NoSource { else_, .. } => vec![else_.clone().into()],
            Error::Several { .. } => vec!["name one of them".into()],
            Error::NoMilestones { .. } => vec!["leave --milestone out".into()],
            Error::NoMilestone { all, .. } => vec![format!("what there is: {}", all.join(", ")).into()],
            Error::Milestones { .. } => vec!["type more of its title".into()],
            Error::AllTicked { last, .. } if last.is_empty() => {
                vec!["add what is to be done, as '- [ ] …'".into()]
            }
            Error::AllTicked { file, last } => {
                let words = [file.clone(), "--milestone".to_owned(), last.clone()];
                vec![format!("look at what was done: git proq plan {}", shell(&words)).into()]
            }
            Error::Empty { .. } => vec!["see what a plan looks like: git proq plan --init -".into()],
            _ => self.of_elsewhere().map_or_else(Vec::new, Explain::hints),
        }
    }

    fn exit(&self) -> Exit {
        match self {
            Error::NoFormat { .. } | Error::Several { .. } | Error::NoMilestones { .. } => Exit::Usage,
            _ => self.of_elsewhere().map_or(Exit::Refused, Explain::exit),
        }
    }
}

/// Words as a shell takes them.
fn shell(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let word = |word: &String| {
        if word.chars().all(plain) { word.clone() } else { format!("'{}'", word.replace('\'', r"'\''")) }
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}
