//! Steps of operations: what each kind implements beside its feature, and the registry of the kinds.

use std::any::Any;
use std::borrow::Cow;
use std::fmt::Debug;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use proq_git::CommitId;
use proq_git::snapshots::recovery;
use proq_git::snapshots::truncated_files::WorktreeStep;
use proq_git::status::local_state::LocalState;
use proq_store::locks::lock::LockName;
use proq_store::operations::operation_entry::{self as stored, JournalStep};
use serde::de::{DeserializeOwned, Error as _};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use self::effects::{Effect, SummarizedSteps};
use self::undo::{StepUndo, UndoForecast, UndoProgress};
use super::Operation;
use crate::errors::Error;
use crate::project::Project;

pub mod effects;
pub mod undo;

/// Operation as its journal describes it.
pub type OperationEntry = stored::OperationEntry<BoxedStep>;

/// Step of a journal, with its progress.
pub type PlannedStep = stored::PlannedStep<BoxedStep>;

/// Outcome of a step, with a result that only the planner of the step understands.
#[must_use]
pub struct StepOutcome {
    /// Whether the step made its change.
    pub(crate) has_happened: bool,
    result: Option<Box<dyn Any>>,
}

impl StepOutcome {
    /// Returns the outcome of a step that made its change and has no result.
    pub(crate) fn done() -> StepOutcome {
        StepOutcome { has_happened: true, result: None }
    }

    /// Returns the outcome of a step with a result, which made its change or found that it must not.
    pub(crate) fn with_result(has_happened: bool, result: impl Any) -> StepOutcome {
        StepOutcome { has_happened, result: Some(Box::new(result)) }
    }

    /// Returns the result of the step; none where it has none of this type.
    pub(crate) fn into_result<T: Any>(self) -> Option<T> {
        self.result?.downcast().ok().map(|result| *result)
    }
}

/// Branch that a step moves, creates or removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MovedBranch<'a> {
    /// Branch, without `refs/heads/`.
    pub name: &'a str,
    /// Old tip; none for a new branch.
    pub old: Option<CommitId>,
    /// New tip; none for a removed branch.
    pub new: Option<CommitId>,
}

/// Ref that a step moves, for the operation log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RefChange {
    /// Full name of the ref; `HEAD` for a switch of a worktree.
    pub name: String,
    /// Old value; none for a new ref.
    pub before: Option<CommitId>,
    /// New value; none for a removed ref.
    pub after: Option<CommitId>,
}

/// File or folder that a step renames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MovedPath<'a> {
    /// Old path.
    pub from: &'a Path,
    /// New path.
    pub to: &'a Path,
}

/// Record that a step writes or removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrittenRecord<'a> {
    /// Path of the record, relative to `proq/`.
    pub path: &'a Path,
    /// Old contents; none for a new record.
    pub old: Option<&'a str>,
    /// New contents; none for a removed record.
    pub new: Option<&'a str>,
}

/// Change of an operation that is small enough that recovery can detect whether it was made. Each kind is a
/// type that implements this beside its feature; its serialized form is its line in the journal.
pub trait Step: StepObject {
    /// Returns the absolute paths of the step, which change when the repository or a worktree is moved.
    fn paths_mut(&mut self) -> Vec<&mut PathBuf> {
        Vec::new()
    }

    /// Returns the worktree whose files the step changes.
    fn changed_worktree(&self) -> Option<&Path> {
        None
    }

    /// Returns the worktree in which the step parks or restores changes.
    fn parked_worktree(&self) -> Option<&Path> {
        None
    }

    /// Returns whether the step leaves no change once the operation has finished.
    fn is_temporary(&self) -> bool {
        false
    }

    /// Returns the branch that the step moves, as a ref only or with a worktree.
    fn moved_branch(&self) -> Option<MovedBranch<'_>> {
        None
    }

    /// Returns the ref that the step moves or creates.
    fn moved_ref(&self) -> Option<RefChange> {
        None
    }

    /// Returns the local state that the worktree at `dir` lost when the step checked out `commit` there.
    fn dropped_state(&self, _dir: &Path, _commit: CommitId) -> Option<&LocalState> {
        None
    }

    /// Returns the file or folder that the step renames.
    fn moved_path(&self) -> Option<MovedPath<'_>> {
        None
    }

    /// Returns the record that the step writes.
    fn written_record(&self) -> Option<WrittenRecord<'_>> {
        None
    }

    /// Returns a lock that the process of the step holds, apart from those of worktrees. After a crash, its
    /// next holder recovers the step first.
    fn held_lock(&self) -> Option<LockName> {
        None
    }

    /// Returns what a user notices of the step, which is one of the `summarized` steps.
    fn effect(&self, summarized: &SummarizedSteps<'_>) -> Option<Effect> {
        summarized.branch_effect(self.moved_branch()?)
    }

    /// Returns the line about the step in the operation log; none where it follows from other steps.
    fn log_line(&self) -> Option<String>;

    /// Refuses to start the step now.
    ///
    /// # Errors
    /// The reason of the refusal.
    fn require_startable(&self, _op: &Operation<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// Makes the change, with `scratch` as the folder for temporary files. If it fails, nothing has changed.
    ///
    /// # Errors
    /// The reason why the change could not be made.
    fn apply(&self, op: &Operation<'_>, scratch: &Path) -> Result<StepOutcome, Error>;

    /// Reverts the step, which has happened, by new steps.
    ///
    /// # Errors
    /// The reason why the change could not be reverted.
    fn invert(&self, _op: &Operation<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// Returns the number of the first step that the undo of this step takes back too, together with all that
    /// follow it; none where the step is undone alone. `earlier` are the steps before this one.
    fn first_covered_step(&self, _earlier: &[&BoxedStep]) -> Option<usize> {
        None
    }

    /// Prepares the undo of a logged operation: takes locks and refuses, after the undo of the steps that
    /// cover others and before that of all other steps. Each kind of steps does it once, whatever steps the
    /// operation has.
    ///
    /// # Errors
    /// The refusals of the undo.
    fn prepare_undo(_undo: &StepUndo<'_, '_>) -> Result<(), Error>
    where
        Self: Sized,
    {
        Ok(())
    }

    /// Checks whether the step can be undone as a part of a logged operation, and records the effect in
    /// `forecast`. Changes nothing.
    ///
    /// # Errors
    /// The refusals of the undo, as far as they are known without undoing newer steps.
    fn check_undo(&self, _undo: &StepUndo<'_, '_>, _forecast: &mut UndoForecast) -> Result<(), Error> {
        Ok(())
    }

    /// Undoes the step as a part of a logged operation, or leaves that to the engine.
    ///
    /// # Errors
    /// The reason why the step cannot be undone.
    fn undo(&self, _undo: &StepUndo<'_, '_>) -> Result<UndoProgress, Error> {
        Ok(UndoProgress::Invert)
    }

    /// Finishes the undo of a logged operation that has the step and whose steps are all undone.
    ///
    /// # Errors
    /// The reason why that failed.
    fn finish_undo(&self, _undo: &StepUndo<'_, '_>) -> Result<(), Error> {
        Ok(())
    }

    /// Returns whether `inverse`, which has happened, was the last step of the inverse of this one.
    fn is_reverted_by(&self, inverse: &dyn Step) -> bool {
        !inverse.prepares_inverse()
    }

    /// Returns whether other steps follow this one where it is a part of an inverse.
    fn prepares_inverse(&self) -> bool {
        false
    }

    /// Finishes the inverse of this step, whose last step a crashed process has taken: restores what no step
    /// records.
    ///
    /// # Errors
    /// The reason why that failed.
    fn finish_inverse(&self, _op: &Operation<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// Returns whether recovery reverts the step last, when the files that it reverted are on disk.
    fn is_reverted_last(&self) -> bool {
        false
    }

    /// Removes what this step left, where it only holds remains of an earlier, interrupted attempt to revert
    /// the step `target` with the number `n`.
    ///
    /// # Errors
    /// The reason why that failed.
    fn remove_redundant(&self, _op: &Operation<'_>, _target: &dyn Step, _n: usize) -> Result<(), Error> {
        Ok(())
    }

    /// Recovers the step after a crashed process left it open. Returns whether it has happened; otherwise
    /// nothing of it is left.
    ///
    /// # Errors
    /// The reason why that is unknown so far.
    fn recover(&self, op: &Operation<'_>, scratch: &Path) -> Result<bool, Error>;

    /// Recovers the step after a crashed process left it open and its worktree was removed since. Returns
    /// whether it counts as done. `admin` is git's admin folder of the worktree, where git still has one.
    ///
    /// # Errors
    /// Fails where locks of the step cannot be released.
    fn recover_without_worktree(
        &self,
        _op: &Operation<'_>,
        admin: Option<PathBuf>,
        scratch: &Path,
    ) -> Result<bool, Error> {
        recovery::release_step_locks(admin.as_deref(), scratch)?;
        Ok(false)
    }

    /// Returns whether recovery reports the step to the user only if it had happened.
    fn is_unnoticed_until_done(&self) -> bool {
        false
    }

    /// Returns the command by which a user completes the step, where the step makes a worktree follow its
    /// branch.
    fn follow_command(&self) -> Option<String> {
        None
    }

    /// Returns what the step wrote to its changed worktree; none where that is unknown.
    fn written_files(&self, _op: &Operation<'_>) -> Option<WorktreeStep> {
        None
    }
}

/// Methods of all steps that need their type: the compiler provides them.
pub trait StepObject: Any + Debug + Send + Sync {
    /// Returns the name of the step's type, such as `MoveRef`.
    fn kind_name(&self) -> &'static str;

    /// Returns a copy of the step.
    fn clone_boxed(&self) -> Box<dyn Step>;

    /// Returns the step as it is in the journal, in JSON.
    ///
    /// # Errors
    /// Fails where a value has no form in JSON.
    fn to_json(&self) -> serde_json::Result<String>;
}

impl<T: Step + Clone + Serialize> StepObject for T {
    fn kind_name(&self) -> &'static str {
        let path = std::any::type_name::<T>();
        path.rsplit_once("::").map_or(path, |(_, name)| name)
    }

    fn clone_boxed(&self) -> Box<dyn Step> {
        Box::new(self.clone())
    }

    fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }
}

impl dyn Step {
    /// Returns the step as a `T`; none if it is of another kind.
    pub(crate) fn downcast_ref<T: Step>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }
}

/// Step of any kind.
#[derive(Debug)]
pub struct BoxedStep(Box<dyn Step>);

impl<T: Step> From<T> for BoxedStep {
    fn from(step: T) -> BoxedStep {
        BoxedStep(Box::new(step))
    }
}

impl Deref for BoxedStep {
    type Target = dyn Step;

    fn deref(&self) -> &dyn Step {
        &*self.0
    }
}

impl Clone for BoxedStep {
    fn clone(&self) -> BoxedStep {
        BoxedStep(self.0.clone_boxed())
    }
}

impl PartialEq<dyn Step> for BoxedStep {
    fn eq(&self, other: &(dyn Step + 'static)) -> bool {
        (&*self.0 as &dyn Any).type_id() == (other as &dyn Any).type_id()
            && self.to_json().is_ok_and(|json| other.to_json().is_ok_and(|other| json == other))
    }
}

impl PartialEq for BoxedStep {
    fn eq(&self, other: &BoxedStep) -> bool {
        *self == **other
    }
}

impl Eq for BoxedStep {}

impl Serialize for BoxedStep {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let json = self.to_json().and_then(RawValue::from_string).map_err(S::Error::custom)?;
        json.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for BoxedStep {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<BoxedStep, D::Error> {
        /// Part of each step that names its kind.
        #[derive(Deserialize)]
        struct Tag {
            #[serde(rename = "do")]
            tag: String,
        }
        let json = Box::<RawValue>::deserialize(deserializer)?;
        let Tag { tag } = serde_json::from_str(json.get()).map_err(D::Error::custom)?;
        let kinds = registry().kinds;
        let Some(kind) = kinds.iter().find(|kind| kind.tag == tag) else {
            let known: Vec<String> = kinds.iter().map(|kind| format!("`{}`", kind.tag)).collect();
            let known = known.join(", ");
            return Err(D::Error::custom(format!("unknown variant `{tag}`, expected one of {known}")));
        };
        (kind.decode)(json.get()).map_err(D::Error::custom)
    }
}

impl JournalStep for BoxedStep {
    fn relocate(&mut self, old_root: &Path, new_root: &Path) {
        for path in self.0.paths_mut() {
            if let Ok(relative) = path.strip_prefix(old_root) {
                *path = if relative.as_os_str().is_empty() {
                    new_root.to_owned()
                } else {
                    new_root.join(relative)
                };
            }
        }
    }

    fn changed_worktree(&self) -> Option<&Path> {
        self.0.changed_worktree()
    }

    fn is_temporary(&self) -> bool {
        self.0.is_temporary()
    }
}

/// Kind of steps: its tag in journals, and how it is read from one.
#[derive(Debug, Clone, Copy)]
pub struct StepKind {
    /// Tag of the steps in journals.
    pub tag: &'static str,
    decode: fn(&str) -> serde_json::Result<BoxedStep>,
    /// See [`Step::prepare_undo`].
    pub(crate) prepare_undo: fn(&StepUndo<'_, '_>) -> Result<(), Error>,
}

impl StepKind {
    /// Returns the kind `T`, which has this tag in journals.
    pub const fn new<T: Step + DeserializeOwned>(tag: &'static str) -> StepKind {
        let decode = |json: &str| serde_json::from_str::<T>(json).map(BoxedStep::from);
        StepKind { tag, decode, prepare_undo: T::prepare_undo }
    }
}

/// What the features provide to the engine of operations.
#[derive(Debug)]
pub struct Registry {
    /// Kinds of steps that journals may have.
    pub kinds: &'static [StepKind],
    /// Removes what crashed processes left besides their operations.
    pub remove_leftovers: fn(&Project),
    /// Returns the command that a user types to repeat one that a process of git-proq started.
    pub command_for_user: fn(&str) -> Cow<'_, str>,
}

/// Registry of this process.
static REGISTRY: OnceLock<&'static Registry> = OnceLock::new();

/// Makes a registry known to the engine; only the first one counts.
pub fn register(registry: &'static Registry) {
    let _ = REGISTRY.set(registry);
}

/// Returns the registry of this process; an empty one before [`register`].
pub(crate) fn registry() -> &'static Registry {
    const EMPTY: &Registry = &Registry {
        kinds: &[],
        remove_leftovers: |_| {},
        command_for_user: |command| Cow::Borrowed(command),
    };
    REGISTRY.get().copied().unwrap_or(EMPTY)
}
