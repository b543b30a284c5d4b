//! Errors in the source of a plan, with their locations and hints.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use proq_base::explain::Explain;
use proq_base::hint;
use proq_base::hint::Hint;

use super::plan_format::PlanFormat;

/// A location in a file, counted as editors do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceLocation {
    /// The file, as it was named.
    pub file: Arc<str>,
    /// The line, from 1; 0 for a folder.
    pub line: usize,
    /// The character in the line, from 1.
    pub column: usize,
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            // A folder has no lines.
            0 => f.write_str(&self.file),
            _ => write!(f, "{}:{}:{}", self.file, self.line, self.column),
        }
    }
}

/// The reason why a plan cannot be read.
#[derive(Debug, thiserror::Error, Explain)]
pub enum PlanError {
    /// A file contains something that is not valid in a plan.
    #[error("{location}: {message}")]
    #[hint("{fix}")]
    InvalidSource {
        /// The location of the defect.
        location: SourceLocation,
        /// The description of the defect.
        message: String,
        /// The hint that fixes it.
        fix: String,
    },
    /// Two tasks have the same name.
    #[error("{second}: task '{name}' is defined twice; the other definition is at {first}")]
    #[hint("give one of the tasks another ID")]
    DuplicateTask {
        /// The name of both tasks.
        name: String,
        /// The location of the first task.
        first: SourceLocation,
        /// The location of the second task.
        second: SourceLocation,
    },
    /// A task depends on a task that does not exist.
    #[error("{location}: task '{task}' needs '{need}', which is not a task of this plan")]
    #[hint(if let Some(near) = suggestion, "did you mean '{near}'?")]
    #[hint(else, "add a task '{need}', or remove it from the needs of '{task}'")]
    UnknownNeed {
        /// The location of the dependency.
        location: SourceLocation,
        /// The name of the dependent task.
        task: String,
        /// The name that it needs.
        need: String,
        /// A similar name that exists.
        suggestion: Option<String>,
    },
    /// A task depends on a name that more than one task has.
    #[error("{location}: task '{task}' needs '{need}', which is ambiguous: {}", candidates.join(", "))]
    #[hint(
        "use one of: {}",
        candidates.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(" or ")
    )]
    AmbiguousNeed {
        /// The location of the dependency.
        location: SourceLocation,
        /// The name of the dependent task.
        task: String,
        /// The name that it needs.
        need: String,
        /// The full names of the matching tasks.
        candidates: Vec<String>,
    },
    /// A command for one task was given a source with another number of tasks.
    #[error("'{source_name}' is not one task but {count}")]
    #[hint("name the folder of one task, such as tasks/payments/PAY-1-refunds")]
    NotSingleTask {
        /// The source, as it was named.
        source_name: String,
        /// The number of its tasks.
        count: usize,
    },
    /// Tasks depend on each other in a cycle.
    #[error("{location}: these tasks depend on each other: {}", cycle_names.join(" -> "))]
    #[hint(with = [dependency_cycle_hint(cycle_names)])]
    DependencyCycle {
        /// The location where the first task names the second as its dependency.
        location: SourceLocation,
        /// The names of the tasks, with the first one again at the end.
        cycle_names: Vec<String>,
    },
    /// A task depends on one that comes later in the plan.
    #[error("{location}: task '{task}' needs '{need}', which comes later: {reason}")]
    #[hint("move '{need}' before '{task}', or '{task}' behind it")]
    NeedsLaterTask {
        /// The location of the dependency.
        location: SourceLocation,
        /// The name of the dependent task.
        task: String,
        /// The name of the task that it needs.
        need: String,
        /// The reason why that task comes later.
        reason: String,
    },
    /// A task depends on one that is not done and not part of the plan.
    #[error("{location}: task '{task}' needs '{need}', which is not done and not part of this plan")]
    #[hint("include it: git proq plan {}", quote_for_shell(sources))]
    NeedNotIncluded {
        /// The location of the dependency.
        location: SourceLocation,
        /// The name of the dependent task.
        task: String,
        /// The name of the task that it needs.
        need: String,
        /// The sources that were named, and the one to add so that the plan includes the needed task.
        /// The sources to name so that the plan includes the needed task.
        sources: Vec<String>,
    },
    /// A source lies outside of the repository.
    #[error("{} is outside of the repository", path.display())]
    #[hint("move it into the repository")]
    OutsideRepository {
        /// The path, as it was named.
        path: PathBuf,
    },
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// A file is not UTF-8 text.
    #[error("{} is not UTF-8 text", path.display())]
    #[hint("save it as UTF-8")]
    NotUtf8 {
        /// The file.
        path: PathBuf,
    },
    /// A file exceeds the size limit for plans.
    #[error("{} is larger than {limit_mib} MiB", path.display())]
    #[hint("split it into several plans, and run them one after the other")]
    FileTooLarge {
        /// The file.
        path: PathBuf,
        /// The size limit in MiB.
        limit_mib: u64,
    },
    /// A source has more tasks than a plan may have.
    #[error("the plan has more than {max_tasks} tasks")]
    #[hint("split it into several plans, and run them one after the other")]
    TooManyTasks {
        /// The largest allowed number of tasks.
        max_tasks: usize,
    },
    /// The name of a source does not determine its format.
    #[error("cannot tell the format of plan '{source_name}' from its name")]
    #[exit(Usage)]
    #[hint("name the format: git proq plan --format toml {source_name}")]
    UnknownFormat {
        /// The source, as it was named.
        source_name: String,
    },
    /// A source does not exist.
    #[error("cannot find the plan '{source_name}'")]
    #[hint(if hint.is_empty(), "create one: git proq plan --init")]
    #[hint(else, "{hint}")]
    SourceNotFound {
        /// The source, as it was named.
        source_name: String,
        /// The hint that names what exists instead; may be empty.
        hint: String,
    },
    /// More than one source was named for a format that is a single file.
    #[error("a plan in {format} is one file, but {count} were given")]
    #[exit(Usage)]
    #[hint("name one file")]
    TooManySources {
        /// The format of the sources.
        format: PlanFormat,
        /// The number of sources.
        count: usize,
    },
    /// A milestone was requested from a format that has none.
    #[error("cannot use --milestone: only a roadmap has milestones, and this plan is in {format}")]
    #[exit(Usage)]
    #[hint("leave --milestone out")]
    MilestonesUnsupported {
        /// The format of the source.
        format: PlanFormat,
    },
    /// The roadmap has no milestone of the given title.
    #[error("{file} has no milestone '{milestone}'")]
    #[hint(if let Some(near) = suggestion, "did you mean '{near}'?")]
    #[hint(else, "milestones: {}", titles.join(", "))]
    UnknownMilestone {
        /// The file of the roadmap.
        file: String,
        /// The title that was given.
        milestone: String,
        /// A similar title that exists.
        suggestion: Option<String>,
        /// The titles of all milestones.
        titles: Vec<String>,
    },
    /// The given title matches more than one milestone.
    #[error("{file} has several milestones that match '{milestone}': {}", candidates.join(", "))]
    #[hint("type more of the title")]
    AmbiguousMilestone {
        /// The file of the roadmap.
        file: String,
        /// The title that was given.
        milestone: String,
        /// The titles of the matching milestones.
        candidates: Vec<String>,
    },
    /// Every item of the roadmap is ticked.
    #[error("all items of {file} are done")]
    #[hint(if last_milestone.is_empty(), "add an item that starts with '- [ ]'")]
    #[hint(
        else,
        "show a milestone: git proq plan {}",
        quote_for_shell(&[file.clone(), "--milestone".to_owned(), last_milestone.clone()])
    )]
    AllItemsDone {
        /// The file of the roadmap.
        file: String,
        /// The title of the last milestone; empty when there is none.
        last_milestone: String,
    },
    /// The source has no tasks.
    #[error("there is no task in {source_name}")]
    #[hint("show an example of a plan: git proq plan --init -")]
    NoTasks {
        /// The source, as it was named.
        source_name: String,
    },
}

impl PlanError {
    /// Returns an [`PlanError::InvalidSource`].
    pub fn invalid(
        location: &SourceLocation,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> PlanError {
        PlanError::InvalidSource { location: location.clone(), message: message.into(), fix: fix.into() }
    }
}

/// Returns the hint for a cycle of dependencies. `names` ends with its first name again.
fn dependency_cycle_hint(names: &[String]) -> Hint {
    if names.len() == 2 {
        return hint!("remove it: a task cannot wait for itself");
    }
    let last = names.len().saturating_sub(2);
    let (from, to) = (names.get(last), names.last());
    let (from, to) = (from.map_or("", |n| n), to.map_or("", |n| n));
    hint!("one of them has to come first: for example, let '{from}' not need '{to}'")
}

/// Joins words into a command line, quoted for a POSIX shell.
fn quote_for_shell(words: &[String]) -> String {
    let is_unquoted = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let quote_word = |word: &String| {
        if word.chars().all(is_unquoted) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    words.iter().map(quote_word).collect::<Vec<_>>().join(" ")
}
