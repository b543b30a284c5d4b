//! Errors of lane commands, with their messages.

use std::path::PathBuf;

use proq_base::explain::{Explain, list_lines, rename_command};
use proq_base::full_disk::WriteLimit;
use proq_base::hint;
use proq_base::hint::Hint;
use proq_base::interrupt::Interrupted;
use proq_base::lane_name::{InvalidLaneName, LaneName};
use proq_base::{config, process};
use proq_git as git;
use proq_git::base::error;
use proq_store as store;
use proq_store::base::operation_number::OperationNumber;
use proq_store::records::lane::LanePurpose;

use super::broken_lane_error::BrokenLane;
use super::lane_lookup_error::LaneLookupError;
use super::location_error::LocationError;
use super::removed_lane::RemovedLane;
use super::rename_error::RenameError;
use super::set_up_error::SetUpError;
use super::snapshot_error::SnapshotError;
use super::symbolic_branch_error::SymbolicBranch;
use super::undo_error::UndoError;

/// An error of a lane command.
#[derive(Debug, thiserror::Error, Explain)]
pub enum Error {
    /// The name is not valid for a lane.
    #[error(transparent)]
    InvalidName(#[from] InvalidLaneName),
    /// A lane with that name exists.
    #[error("cannot create lane '{name}': a lane with this name exists")]
    #[hint("show that lane: git proq show {name}")]
    NameTaken {
        /// Name of the existing lane.
        name: LaneName,
    },
    /// Attempts of an older group with that name exist.
    #[error("cannot create group '{group}': lane '{lane}' is an attempt of an earlier group with this name")]
    #[hint("compare its attempts: git proq compare {group}")]
    GroupTaken {
        /// Name of the group.
        group: String,
        /// Name of one lane of the group.
        lane: LaneName,
    },
    /// A branch with the new lane's branch name exists and belongs to no lane.
    #[error("cannot create branch '{branch}': it exists and belongs to no lane")]
    #[hint(with = [free_command.clone()])]
    BranchTaken {
        /// Name of the existing branch.
        branch: String,
        /// Description and command that free the branch name.
        free_command: Hint,
    },
    /// A branch has the name of the lane prefix, so git cannot create the branch of any lane.
    #[error("cannot create a lane branch '{prefix}/…': a branch named '{prefix}' exists")]
    #[hint("use another prefix: git config proq.lane.prefix lanes")]
    #[hint("or rename the branch: git branch -m {prefix} {prefix}-old")]
    PrefixTaken {
        /// Configured prefix of lane branches.
        prefix: String,
    },
    /// A file or folder exists at the path of the new worktree.
    #[error("cannot create {}: it exists and belongs to no lane", path.display())]
    #[hint("move it away: {}", rename_command(path, "old"))]
    PathTaken {
        /// Path of the new worktree, at which a file or folder exists.
        path: PathBuf,
    },
    /// No lane has that name.
    #[error("there is no {} '{name}'{}", if *may_be_group { "lane or group" } else { "lane" }, removed.as_ref().map_or_else(String::new, |lane| format!(": {}", lane.fate)))]
    // Another process may have removed the lane.
    #[decision]
    #[hint(if let Some(lane) = removed, "see what it was: git proq show {}", lane.past_name)]
    #[hint(if let (Some(similar), None) = (similar, removed), "did you mean '{similar}'?")]
    #[hint("see all: git proq list")]
    UnknownLane {
        /// The given name.
        name: String,
        /// Whether the name could also have been that of a group of attempts.
        may_be_group: bool,
        /// The last lane that had this name, if one was removed.
        removed: Option<Box<RemovedLane>>,
        /// Name of an existing lane with a similar name.
        similar: Option<LaneName>,
    },
    /// The given text names no present lane, and the reason is known.
    #[error(transparent)]
    Lookup(#[from] LaneLookupError),
    /// The command needs a branch, and the lane has none.
    #[error("cannot use lane '{name}': it has no branch; it is {}", purpose_phrase(*purpose))]
    #[exit(Usage)]
    #[hint(if matches!(purpose, LanePurpose::InPlace), "show its result: git proq show {name}")]
    #[hint(else, "read it: git proq show {name}")]
    NoLaneBranch {
        /// Name of the lane.
        name: LaneName,
        /// Purpose of the lane.
        purpose: LanePurpose,
    },
    /// A run cannot work in the main checkout, or a command cannot run while one does.
    #[error("{reason}; nothing was changed")]
    #[hint(with = hints.clone())]
    InPlaceRefused {
        /// Reason, as a sentence.
        reason: String,
        /// Hint that resolves the situation.
        hints: Vec<Hint>,
    },
    /// The lane's agent is running.
    #[error("cannot change lane '{name}': its agent is running")]
    #[decision]
    #[hint("wait for the agent: git proq wait {name}")]
    #[hint("or stop it: git proq stop {name}")]
    Busy {
        /// Name of the lane.
        name: LaneName,
    },
    /// A hook vetoed the command.
    #[error("hook {hook_name} refused: {reason}; nothing was changed")]
    #[decision]
    #[hint("read its output: cat \"$(git rev-parse --git-common-dir)/proq/hooks.log\"")]
    #[hint("or add --no-hooks to skip it")]
    HookVetoed {
        /// Event name of the hook.
        hook_name: &'static str,
        /// Output of the hook, or its exit status.
        reason: String,
    },
    /// A veto hook comes from the repository and is not approved.
    #[error("cannot run hook {hook_name} of {}: you have not approved `{command_line}`; nothing was changed", settings_file.display())]
    #[decision]
    #[hint("read and approve it: git proq approve")]
    #[hint("or add --no-hooks to skip it")]
    UnapprovedHook {
        /// Settings file that defines the hook.
        settings_file: PathBuf,
        /// Event name of the hook.
        hook_name: &'static str,
        /// Command line of the hook.
        command_line: String,
    },
    /// The operating system refuses the path of the running git-proq.
    #[error("cannot find the program file of git-proq")]
    UnknownProgramPath(#[source] &'static std::io::Error),
    /// The current branch has no commit.
    #[error("cannot create a lane: branch '{branch}' has no commit yet")]
    #[hint("create a first commit: git commit --allow-empty -m 'Start'")]
    UnbornBranch {
        /// Name of the branch.
        branch: String,
    },
    /// The start commit is not a branch, and the user named no branch to land on.
    #[error("{reason}, so the branch to merge into is unknown; nothing was created")]
    #[hint("name the branch with --onto; list branches: git branch")]
    NeedsOnto {
        /// Description of the start commit, as a sentence.
        reason: String,
    },
    /// The branch to land on does not exist.
    #[error("cannot merge into '{branch}': there is no such branch")]
    #[hint("list branches: git branch")]
    NoOntoBranch {
        /// Name of the missing branch.
        branch: String,
    },
    /// Uncommitted changes to carry over conflict with the start commit of the lane.
    #[error(
        "cannot carry your uncommitted changes: they conflict with '{base}': {}; nothing was created",
        error::list_paths(paths)
    )]
    #[hint("show them: git diff HEAD")]
    CarryConflict {
        /// Name of the base branch.
        base: String,
        /// Paths with conflicts.
        paths: Vec<git::RepoPath>,
    },
    /// The base is a branch of git-proq, which no lane can land on.
    #[error("cannot use '{branch}' as a base: it is a branch of git-proq")]
    #[hint("list branches: git branch")]
    ReservedBranch {
        /// Name of the branch.
        branch: String,
    },
    /// Removing the lane would lose work, or might lose it.
    #[error("cannot remove lane '{name}': {}", reasons.join("; "))]
    #[decision]
    #[hint(with = hint.clone())]
    #[hint(if *busy, "stop the agent: git proq stop {name}")]
    #[hint(
        if *force_helps && !(*busy && hint.is_some()),
        "remove it anyway; everything is saved first: git proq discard --force {name}"
    )]
    RemovalRefused {
        /// Name of the lane.
        name: LaneName,
        /// Reasons against the removal, one phrase each.
        reasons: Vec<String>,
        /// Whether the lane's agent is alive.
        busy: bool,
        /// Whether `--force` would remove the lane, saving everything first.
        force_helps: bool,
        /// Hint that resolves a reason or repairs the worktree; none where there is none.
        hint: Option<Hint>,
    },
    /// The lane has uncommitted work that must not be committed as it is.
    #[error("cannot commit the work of lane '{name}': {}", uncommittable.join("; "))]
    #[decision]
    #[hint("show the lane: git proq show {name}")]
    UncommittableWork {
        /// Name of the lane.
        name: LaneName,
        /// Work that cannot be committed, one phrase each.
        uncommittable: Vec<String>,
    },
    /// The lane's worktree is not on the lane's branch.
    #[error(
        "cannot use the worktree of lane '{name}': it is not on its branch {branch}; nothing was changed"
    )]
    #[hint("show the lane: git proq show {name}")]
    OffBranch {
        /// Name of the lane.
        name: LaneName,
        /// Branch on which the worktree should be.
        branch: String,
    },
    /// The working directory of the process is in no lane.
    #[error("not inside a lane: {}{}", dir.display(), describe_claimed_lane(claimed_lane.as_deref()))]
    #[hint("list lanes: git proq list")]
    NoLaneHere {
        /// Working directory of the process.
        dir: PathBuf,
        /// Lane that `PROQ_LANE` names.
        claimed_lane: Option<String>,
    },
    /// The working directory of the process is in another lane than `PROQ_LANE` names.
    #[error("PROQ_LANE is '{claimed_lane}', but this is lane '{actual_lane}'; nothing was changed")]
    #[hint("show the worktree of '{claimed_lane}': git proq show {claimed_lane}")]
    LaneMismatch {
        /// Lane of the working directory.
        actual_lane: LaneName,
        /// Lane that `PROQ_LANE` names.
        claimed_lane: String,
    },
    /// The agent's report cannot be saved.
    #[error("cannot save the report: it {reason}; the earlier report is kept")]
    #[hint("report only what a person has to know; put long text into a file of the lane")]
    InvalidReport {
        /// Problem with the report, as a phrase.
        reason: String,
    },
    /// No snapshot has that id.
    #[error("there is no snapshot '{snapshot_id}'")]
    #[hint("list snapshots: git proq snap list")]
    UnknownSnapshot {
        /// The given id.
        snapshot_id: String,
    },
    /// The given id is the beginning of more than one snapshot id.
    #[error("snapshot id '{snapshot_id}' is ambiguous:{}", list_lines(matching_ids))]
    #[hint("list snapshots: git proq snap list")]
    AmbiguousSnapshot {
        /// The given id.
        snapshot_id: String,
        /// Ids that begin with the given one.
        matching_ids: Vec<String>,
    },
    /// The open preview will restore the snapshot when it is left.
    #[error(
        "cannot restore snapshot {snapshot_id}: leaving the preview of '{lane}' restores it; nothing was changed"
    )]
    #[hint("leave the preview: git proq preview --back")]
    SnapshotAwaited {
        /// Id of the snapshot.
        snapshot_id: String,
        /// Lane of the open preview.
        lane: LaneName,
    },
    /// There is no worktree to which a snapshot could be restored.
    #[error("cannot restore snapshot {snapshot_id}: not inside a worktree")]
    #[hint("list worktrees, then run it in one of them: git worktree list")]
    NoWorktree {
        /// Id of the snapshot.
        snapshot_id: String,
    },
    /// The worktree has no commit onto which a snapshot could be restored.
    #[error("cannot restore snapshot {snapshot_id}: this worktree has no commit yet")]
    #[hint("create a first commit: git commit --allow-empty -m 'Start'")]
    NoHead {
        /// Id of the snapshot.
        snapshot_id: String,
    },
    /// A file could not be read, written or moved.
    #[error("cannot {verb} {}", path.display())]
    #[hint(if let Some(limit) = WriteLimit::of_error(source), with = [limit.hint()])]
    Io {
        /// Attempted act, as a verb for the message.
        verb: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// A record that an operation wrote has been changed by another program since.
    #[error("{} was changed by another program in the meantime", path.display())]
    RecordChanged {
        /// Path of the record.
        path: PathBuf,
    },
    /// A worktree, or files that an operation put away, are missing or were replaced.
    #[error("{} {}", path.display(), if path.exists() { "was replaced" } else { "no longer exists" })]
    #[hint("list worktrees: git worktree list")]
    PathMissing {
        /// Former path.
        path: PathBuf,
    },
    /// A snapshot that has to be restored conflicts with the present files.
    #[error("cannot restore saved changes: they conflict with files in {}: {}", dir.display(), error::list_paths(paths))]
    #[hint("apply the saved changes: git stash apply {}", snapshot.short_in_command())]
    RestoreConflict {
        /// Top folder of the worktree.
        dir: PathBuf,
        /// Paths with conflicts.
        paths: Vec<git::RepoPath>,
        /// Commit that holds the changes, in the format of a stash.
        snapshot: git::CommitId,
    },
    /// An operation of a crashed process could not be recovered.
    #[error("cannot recover the interrupted command `{interrupted_command}`; nothing else was started")]
    #[exit(with = source.exit())]
    #[hint(with = source.hints())]
    #[hint(
        if !matches!(**source, Error::Git(git::Error::RestoreFailed { .. })),
        "nothing is lost; try again: git proq doctor"
    )]
    RecoveryFailed {
        /// Command line that was interrupted.
        interrupted_command: String,
        /// Reason why the recovery failed.
        #[source]
        source: Box<Error>,
    },
    /// A step could be neither finished nor undone.
    #[error("cannot complete or undo a step of this command; nothing else was started")]
    #[hint("repair it, or see why that fails: git proq doctor")]
    StuckStep,
    /// An operation cannot be undone, for the reason in `source`.
    #[error("cannot {} operation {number}: {}; nothing was changed", if *redo { "redo" } else { "undo" }, source.without_assurance())]
    #[exit(with = source.exit())]
    #[hint(with = refusal_hints(*number, forced_command.as_deref(), source))]
    CannotUndo {
        /// Number of the operation.
        number: OperationNumber,
        /// Whether the operation is an undo that was to be redone.
        redo: bool,
        /// Command that undoes exactly the same operations with force; `None` if there is no such command.
        forced_command: Option<String>,
        /// Reason for the refusal.
        #[source]
        source: Box<Error>,
    },
    /// Error from the set-up of a lane.
    #[error(transparent)]
    #[decision(_0.is_decision())]
    SetUp(#[from] SetUpError),
    /// Error about a lane that cannot be renamed.
    #[error(transparent)]
    Rename(#[from] RenameError),
    /// Error from an undo.
    #[error(transparent)]
    Undo(#[from] UndoError),
    /// A branch is a symbolic ref to another ref.
    #[error(transparent)]
    #[decision]
    SymbolicBranch(#[from] SymbolicBranch),
    /// The worktree of a lane is broken.
    #[error(transparent)]
    Broken(#[from] BrokenLane),
    /// Error about a single snapshot.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// Error from choosing the location of lanes.
    #[error(transparent)]
    Location(#[from] LocationError),
    /// Error from git.
    #[error(transparent)]
    #[decision(is_local_obstacle(_0))]
    Git(#[from] git::Error),
    /// Error from the store.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// Error from the configuration.
    #[error(transparent)]
    Config(#[from] config::Error),
    /// Error from another program.
    #[error(transparent)]
    Process(#[from] process::Error),
}

impl Error {
    /// Wraps an IO error with the attempted act and the path.
    pub fn io(verb: &'static str, path: &std::path::Path) -> impl Fn(std::io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Io { verb, path: path.clone(), source }
    }
}

impl From<Interrupted> for Error {
    fn from(interrupted: Interrupted) -> Error {
        Error::Store(interrupted.into())
    }
}

impl Error {
    /// Returns whether the requested name, branch, group or path is already in use.
    pub fn is_taken(&self) -> bool {
        use Error::{BranchTaken, GroupTaken, NameTaken, PathTaken};
        matches!(self, NameTaken { .. } | GroupTaken { .. } | BranchTaken { .. } | PathTaken { .. })
    }

    /// Returns the text without "nothing was changed", which only a caller that changed nothing can state.
    pub(crate) fn without_assurance(&self) -> String {
        let text = self.to_string();
        let trimmed =
            text.strip_suffix("; nothing was changed").or_else(|| text.strip_suffix("; nothing was created"));
        trimmed.unwrap_or(&text).to_owned()
    }

    /// Returns whether a step could be neither finished nor undone.
    pub fn is_stuck(&self) -> bool {
        matches!(self, Error::StuckStep | Error::Git(git::Error::RestoreFailed { .. }))
    }

    /// Returns whether changes of the user or of another program block the operation: a retry does not help.
    pub fn is_refusal(&self) -> bool {
        match self {
            Error::Git(e) => e.is_refusal(),
            Error::RecordChanged { .. }
            | Error::RestoreConflict { .. }
            | Error::Snapshot(SnapshotError::NotReturned { .. })
            | Error::PathMissing { .. }
            | Error::PathTaken { .. } => true,
            _ => false,
        }
    }
}

/// Returns whether local changes, other files or another operation of git are in the way.
fn is_local_obstacle(error: &git::Error) -> bool {
    use git::Error::{LocalChanges, Obstructed, OperationInProgress};
    matches!(error, LocalChanges { .. } | Obstructed { .. } | OperationInProgress { .. })
}

/// Returns the purpose as a noun phrase with its article, for use in a sentence.
pub fn purpose_phrase(purpose: LanePurpose) -> &'static str {
    match purpose {
        LanePurpose::Plan => "a plan",
        LanePurpose::Answer => "an answer",
        LanePurpose::InPlace => "work in the main checkout",
    }
}

/// Returns the clause that names the lane claimed by the environment, for an error outside of any lane; empty
/// without a claim.
fn describe_claimed_lane(claimed: Option<&str>) -> String {
    claimed.map(|lane| format!(", although PROQ_LANE is '{lane}'")).unwrap_or_default()
}

/// Returns the hints for an operation that cannot be undone for the reason in `source`. `forced_command`
/// undoes it with force.
fn refusal_hints(number: OperationNumber, forced_command: Option<&str>, source: &Error) -> Vec<Hint> {
    match (source, forced_command) {
        (Error::Undo(UndoError::BuiltOn { .. } | UndoError::Pushed { .. }), Some(forced_command)) => {
            vec![hint!("undo anyway, saving later commits under refs/proq/saved: {forced_command}")]
        }
        (Error::RemovalRefused { force_helps: true, busy: false, hint: help, .. }, Some(forced_command)) => {
            let forced_hint = hint!("remove the lane anyway; everything is saved first: {forced_command}");
            help.clone().into_iter().chain([forced_hint]).collect()
        }
        // A commit would build on the commits to undo, so only a stash is suggested.
        (Error::Git(git::Error::LocalChanges { dir, hint: remedy, .. }), _) => {
            vec![remedy.hint_without_commit(dir)]
        }
        (
            Error::Undo(UndoError::BuiltOn { .. } | UndoError::Pushed { .. }) | Error::PathMissing { .. },
            _,
        ) => vec![hint!("show what it did: git proq op show {number}")],
        (other, _) => other.hints(),
    }
}
