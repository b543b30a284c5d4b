//! Contents of a journal: its lines, and the operation with its steps and progress that they describe.

use std::io::Read;
use std::path::{Path, PathBuf};

use proq_git::worktrees::misplaced::WorktreeId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::base::clock::Moment;
use crate::base::operation_number::OperationNumber;

/// Newest version of the line format that this program writes and reads.
const FORMAT: u32 = 1;

/// Identity and origin of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationHeader {
    /// Version of the line format.
    pub format: u32,
    /// Unique id of the operation.
    pub id: String,
    /// Time at which the operation started.
    #[serde(rename = "at")]
    pub started_at: Moment,
    /// Command line of the operation.
    pub command: String,
    /// Kind of operation, as a word: `merge`.
    pub kind: String,
    /// Process id, on its host.
    pub pid: u32,
    /// Host name.
    pub host: String,
    /// Id of the terminal session that the process belongs to; none where it is unknown.
    #[serde(rename = "session", default, skip_serializing_if = "Option::is_none")]
    pub terminal_session: Option<i32>,
    /// What the operation was started from: `terminal`, `agent NAME`, `supervisor`, `scheduler` or `mcp`; none
    /// in a journal of an older program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// Operations that this one undoes, by their numbers in the log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undoes: Vec<OperationNumber>,
    /// Number of the undo that this operation reverts; none if this operation is no redo.
    #[serde(rename = "redoes", default, skip_serializing_if = "Option::is_none")]
    pub reverted_undo: Option<OperationNumber>,
    /// Command that the operation is a part of, if all operations of that command are undone together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "together")]
    pub command_group: Option<String>,
    /// Path of the `proq` folder when the operation started. A repository that is moved or copied keeps its
    /// operations, so their paths must be adapted.
    #[serde(
        rename = "root",
        default,
        with = "crate::paths::path_form::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub store_root: Option<PathBuf>,
}

impl OperationHeader {
    /// Creates the header of an operation of this process.
    pub fn new(kind: &str) -> OperationHeader {
        let me = crate::locks::holder::LockHolder::this_process();
        OperationHeader {
            format: FORMAT,
            id: crate::base::id::new_id(),
            started_at: me.since,
            command: me.command,
            kind: kind.to_owned(),
            pid: me.pid,
            host: me.host,
            terminal_session: crate::locks::holder::terminal_session_id(),
            via: Some(super::origin::describe_origin()),
            undoes: Vec::new(),
            reverted_undo: None,
            command_group: None,
            store_root: None,
        }
    }

    /// Returns whether the operation was started in the terminal session of this process.
    pub fn is_from_this_terminal(&self) -> bool {
        let current = OperationHeader::new("");
        (&self.host, self.terminal_session) == (&current.host, current.terminal_session)
    }

    /// Returns whether the process of the operation ran on this machine.
    pub fn is_from_this_host(&self) -> bool {
        self.host == OperationHeader::new("").host
    }
}

/// Change of an operation, as far as its journal has to know it.
pub trait JournalStep: Clone + Serialize + DeserializeOwned {
    /// Updates the paths of the step after a folder was moved from `old_root` to `new_root`.
    fn relocate(&mut self, old_root: &Path, new_root: &Path);

    /// Returns the worktree whose files the step changes; none if it changes none.
    fn changed_worktree(&self) -> Option<&Path>;

    /// Returns whether the step leaves no change once the operation has finished.
    fn is_temporary(&self) -> bool;
}

/// One line of a journal, with steps of type `S`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JournalLine<S> {
    /// First line of a journal, with the identity of the operation.
    Open(OperationHeader),
    /// Steps that are about to be taken.
    Plan {
        /// Steps, in order.
        steps: Vec<S>,
        /// Linked worktree that each step changes; empty where none of them changes one.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        worktrees: Vec<Option<WorktreeId>>,
        /// Whether recovery completes all steps of this line once the first one has been taken. Otherwise
        /// recovery undoes all of them.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        #[serde(rename = "forward")]
        roll_forward: bool,
        /// Number of the earlier step that the steps of this line undo.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(rename = "of")]
        reverted_step: Option<usize>,
    },
    /// The step with this number has been taken.
    Done(usize),
    /// The step with this number was not taken, or has been undone.
    #[serde(rename = "back")]
    Undone(usize),
    /// Last line of a journal: the operation has finished.
    End {
        /// Time at which the operation finished.
        at: Moment,
        /// Whether another process finished the operation.
        recovered: bool,
    },
}

/// Progress of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepStatus {
    /// The step was about to be taken.
    Pending,
    /// The step has been taken.
    Done,
    /// The step was not taken, or has been undone.
    Undone,
}

/// Step of a journal, with its progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedStep<S> {
    /// Change that the step makes.
    pub step: S,
    /// Progress of the step.
    pub status: StepStatus,
    /// Number of the first step that was planned together with this one, if recovery completes all of them.
    pub roll_forward_start: Option<usize>,
    /// Number of the earlier step that this one undoes; none for a step of the operation itself.
    pub reverted_step: Option<usize>,
    /// Linked worktree that the step changes; none if it changes none.
    pub worktree: Option<WorktreeId>,
    /// Whether the linked worktree of the step could not be located.
    pub is_worktree_missing: bool,
}

/// Operation as its journal describes it: header, steps and progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationEntry<S> {
    /// Identity and origin of the operation.
    pub header: OperationHeader,
    /// Steps, in order.
    pub steps: Vec<PlannedStep<S>>,
    /// Time at which the operation finished, and whether another process finished it; none until then.
    pub end_and_recovered: Option<(Moment, bool)>,
}

impl<S: JournalStep> OperationEntry<S> {
    /// Reads a journal. Returns none when it has no complete first line, because the operation had not
    /// started then. An incomplete last line is ignored.
    ///
    /// # Errors
    /// Fails with [`Error::NewerFormat`] for a journal that a newer program wrote, and where the file cannot
    /// be read or parsed.
    pub fn read(path: &Path) -> Result<Option<OperationEntry<S>>, Error> {
        let mut text = Vec::new();
        match proq_base::regular_file::open_store_file(path)
            .and_then(|f| f.take(proq_base::regular_file::MAX_STORE_FILE_BYTES).read_to_end(&mut text))
        {
            Ok(_) => {}
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(Error::io("read", path)(e)),
        }
        let mut lines = text.split_inclusive(|b| *b == b'\n').filter(|l| l.ends_with(b"\n"));
        let Some(first) = lines.next() else { return Ok(None) };
        let broken = |e: serde_json::Error| Error::Broken { path: path.to_owned(), source: Box::new(e) };
        let header = match serde_json::from_slice::<JournalLine<S>>(first) {
            Ok(JournalLine::Open(header)) => header,
            Ok(_) => return Err(broken(serde::de::Error::custom("it has an unexpected beginning"))),
            Err(e) => return Err(newer_format_error(path, first).unwrap_or_else(|| broken(e))),
        };
        if header.format > FORMAT {
            return Err(Error::NewerFormat { path: path.to_owned(), found: header.format, known: FORMAT });
        }
        let mut entry: OperationEntry<S> =
            OperationEntry { header, steps: Vec::new(), end_and_recovered: None };
        for line in lines {
            entry.apply_line(serde_json::from_slice(line).map_err(broken)?);
        }
        if let Some((recorded_root, current_root)) =
            entry.header.store_root.as_deref().zip(store_root_above(path)).filter(|(a, b)| a != b)
        {
            let (recorded_repo, current_repo) = (repository_dir(recorded_root), repository_dir(current_root));
            entry.steps.iter_mut().for_each(|planned| planned.step.relocate(recorded_repo, current_repo));
        }
        Ok(Some(entry))
    }

    /// Adds one line to the contents.
    pub fn apply_line(&mut self, line: JournalLine<S>) {
        match line {
            JournalLine::Open(_) => {}
            JournalLine::Plan { steps, worktrees, roll_forward: forward, reverted_step: of } => {
                let roll_forward_start = forward.then_some(self.steps.len());
                let worktrees = worktrees.into_iter().chain(std::iter::repeat(None));
                self.steps.extend(steps.into_iter().zip(worktrees).map(|(step, worktree)| PlannedStep {
                    step,
                    status: StepStatus::Pending,
                    roll_forward_start,
                    reverted_step: of,
                    worktree,
                    is_worktree_missing: false,
                }));
            }
            JournalLine::Done(n) => self.set_status(n, StepStatus::Done),
            JournalLine::Undone(n) => self.set_status(n, StepStatus::Undone),
            JournalLine::End { at, recovered } => self.end_and_recovered = Some((at, recovered)),
        }
    }

    /// Sets the progress of step `n`. A number without a step is ignored.
    fn set_status(&mut self, n: usize, status: StepStatus) {
        if let Some(planned) = self.steps.get_mut(n) {
            planned.status = status;
        }
    }

    /// Returns the steps that have been taken and were not undone, without temporary steps and steps that
    /// undo others.
    pub fn applied_steps(&self) -> impl DoubleEndedIterator<Item = &S> {
        let is_applied = |p: &&PlannedStep<S>| {
            p.status == StepStatus::Done && p.reverted_step.is_none() && !p.step.is_temporary()
        };
        self.steps.iter().filter(is_applied).map(|p| &p.step)
    }
}

/// Returns the `proq` folder that contains a journal.
pub(crate) fn store_root_above(journal: &Path) -> Option<&Path> {
    journal
        .ancestors()
        .find(|dir| dir.file_name().is_some_and(|name| name == crate::base::store_names::STORE_DIR))
}

/// Returns the folder of the repository that a `proq` folder belongs to.
fn repository_dir(root: &Path) -> &Path {
    let git_dir = root.parent().unwrap_or(root);
    let is_dot_git = git_dir.file_name().is_some_and(|name| name == ".git");
    git_dir.parent().filter(|_| is_dot_git).unwrap_or(git_dir)
}

/// Returns the error for a first line of a newer format. Such a line may have fields that this program does
/// not know.
fn newer_format_error(path: &Path, line: &[u8]) -> Option<Error> {
    let value: serde_json::Value = serde_json::from_slice(line).ok()?;
    let found = u32::try_from(value.get("open")?.get("format")?.as_u64()?).ok()?;
    (found > FORMAT).then(|| Error::NewerFormat { path: path.to_owned(), found, known: FORMAT })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Step without paths.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub(crate) struct TestStep {
        pub(crate) name: String,
    }

    impl JournalStep for TestStep {
        fn relocate(&mut self, _: &Path, _: &Path) {}

        fn changed_worktree(&self) -> Option<&Path> {
            None
        }

        fn is_temporary(&self) -> bool {
            false
        }
    }

    #[test]
    fn newer_journal_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("journal");
        std::fs::write(&path, "{\"open\":{\"format\":9,\"whatever\":1}}\n").unwrap();
        let read = || OperationEntry::<TestStep>::read(&path);
        assert!(matches!(read(), Err(Error::NewerFormat { found: 9, .. })));
        std::fs::write(&path, "{\"open\"").unwrap();
        assert_eq!(read().unwrap(), None);
    }
}
