//! Errors of lane commands, with their messages and hints.

use std::borrow::Cow;
use std::path::PathBuf;

use super::{BrokenLane, LocationError, SetUpError, SnapshotError, SymbolicBranch, UndoError};
use crate::explain::{Exit, Explain};
use crate::interrupt::Interrupted;
use crate::store::records::LanePurpose;
use crate::{config, git, process, store};

/// An error of a lane command.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The name is not valid for a lane.
    #[error("'{name}' cannot be a lane's name: {reason}")]
    InvalidName {
        /// The given name, shortened.
        name: String,
        /// Rule that the name breaks.
        reason: &'static str,
    },
    /// A lane with that name exists.
    #[error("a lane named '{name}' exists already; nothing was made")]
    NameTaken {
        /// Name of the existing lane.
        name: String,
    },
    /// Attempts of an older group with that name exist.
    #[error("lane '{lane}' is an attempt of an older group '{group}'; nothing was made")]
    GroupTaken {
        /// Name of the group.
        group: String,
        /// Name of one lane of the group.
        lane: String,
    },
    /// A branch with the new lane's branch name exists and belongs to no lane.
    #[error("branch '{branch}' exists already and belongs to no lane; nothing was made")]
    BranchTaken {
        /// Name of the existing branch.
        branch: String,
        /// Description and command that free the branch name.
        free_command: String,
    },
    /// A branch has the name of the lane prefix, so git cannot create the branch of any lane.
    #[error("a branch named '{prefix}' exists, so no branch '{prefix}/…' can; nothing was made")]
    PrefixTaken {
        /// Configured prefix of lane branches.
        prefix: String,
    },
    /// A file or folder exists at the path of the new worktree.
    #[error("{} exists already and belongs to no lane; nothing was made", path.display())]
    PathTaken {
        /// Path of the new worktree.
        path: PathBuf,
    },
    /// No lane has that name.
    #[error("there is no lane '{name}'")]
    UnknownLane {
        /// The given name.
        name: String,
        /// Name of an existing lane with a similar name.
        similar: Option<String>,
    },
    /// The command needs a branch, and the lane has none.
    #[error("lane '{name}' has no branch and no changes of its own: it is {}", super::read_only::purpose_phrase(*purpose))]
    NoLaneBranch {
        /// Name of the lane.
        name: String,
        /// Purpose of the lane.
        purpose: LanePurpose,
    },
    /// A run cannot work in the main checkout, or a command cannot run while one does.
    #[error("{reason}; nothing was changed")]
    InPlaceRefused {
        /// Reason, as a sentence.
        reason: String,
        /// Hint that resolves the situation.
        hint: String,
    },
    /// The lane's agent is running.
    #[error("the agent of lane '{name}' is running; nothing was changed")]
    Busy {
        /// Name of the lane.
        name: String,
    },
    /// A hook vetoed the command.
    #[error("{name} said no: {reason}; nothing was changed")]
    HookVetoed {
        /// Event name of the hook.
        name: &'static str,
        /// Output of the hook, or its exit status.
        reason: String,
    },
    /// A veto hook comes from the repository and is not approved.
    #[error("{} wants to be asked first ({name}: {line}), which you have not approved; nothing was changed", path.display())]
    UnapprovedHook {
        /// Settings file that defines the hook.
        path: PathBuf,
        /// Event name of the hook.
        name: &'static str,
        /// Command line of the hook.
        line: String,
    },
    /// The current branch has no commit.
    #[error("branch '{branch}' has no commit yet; a lane needs one to start from")]
    UnbornBranch {
        /// Name of the branch.
        branch: String,
    },
    /// The start commit is not a branch, and the user named no branch to land on.
    #[error("{reason}, so it is not clear where the lane should land; nothing was made")]
    NeedsOnto {
        /// Description of the start commit, as a sentence.
        reason: String,
    },
    /// The branch to land on does not exist.
    #[error("there is no branch '{branch}' to land on; nothing was changed")]
    NoBranch {
        /// Name of the missing branch.
        branch: String,
    },
    /// Uncommitted changes to carry over conflict with the start commit of the lane.
    #[error(
        "your uncommitted changes do not fit onto '{base}': {}; nothing was made",
        git::list_paths(paths)
    )]
    CarryConflict {
        /// Name of the base branch.
        base: String,
        /// Paths with conflicts.
        paths: Vec<git::RepoPath>,
    },
    /// The base is a branch of git-proq, which no lane can land on.
    #[error("'{branch}' is git-proq's own and cannot be a base; nothing was made")]
    ReservedBranch {
        /// Name of the branch.
        branch: String,
    },
    /// Removing the lane would lose work, or might lose it.
    #[error("lane '{name}' was kept: {}", why.join("; "))]
    RemovalRefused {
        /// Name of the lane.
        name: String,
        /// Reasons against the removal, one phrase each.
        why: Vec<String>,
        /// Whether the lane's agent is alive.
        busy: bool,
        /// Whether `--force` would remove the lane, saving everything first.
        force_helps: bool,
        /// Further hint.
        hint: Option<String>,
    },
    /// The lane has uncommitted work that must not be committed as it is.
    #[error("lane '{name}' has work that cannot be committed: {}", why.join("; "))]
    UncommittableWork {
        /// Name of the lane.
        name: String,
        /// Work that cannot be committed, one phrase each.
        why: Vec<String>,
    },
    /// The lane's worktree is not on the lane's branch.
    #[error("the worktree of lane '{name}' is not on its branch {branch}; nothing was changed")]
    OffBranch {
        /// Name of the lane.
        name: String,
        /// Branch on which the worktree should be.
        branch: String,
    },
    /// The working directory of the process is in no lane.
    #[error("this is no lane: {}{}", dir.display(), super::report::describe_claimed_lane(claimed.as_deref()))]
    NoLaneHere {
        /// Working directory of the process.
        dir: PathBuf,
        /// Lane that `PROQ_LANE` names.
        claimed: Option<String>,
    },
    /// The working directory of the process is in another lane than `PROQ_LANE` names.
    #[error("this is lane '{here}', and PROQ_LANE says '{claimed}'; nothing was changed")]
    LaneMismatch {
        /// Lane of the working directory.
        here: String,
        /// Lane that `PROQ_LANE` names.
        claimed: String,
    },
    /// The agent's report cannot be saved.
    #[error("the report {reason}; what was reported before stays")]
    InvalidReport {
        /// Problem with the report, as a phrase.
        reason: String,
    },
    /// No snapshot has that id.
    #[error("there is no snapshot '{id}'")]
    UnknownSnapshot {
        /// The given id.
        id: String,
    },
    /// The given id is the beginning of more than one snapshot id.
    #[error("'{id}' is the beginning of {} snapshots: {}", ids.len(), ids.join(", "))]
    AmbiguousSnapshot {
        /// The given id.
        id: String,
        /// Ids that begin with the given one.
        ids: Vec<String>,
    },
    /// The open preview will restore the snapshot when it is left.
    #[error("snapshot {id} comes back when the preview of '{lane}' is left; nothing was changed")]
    SnapshotAwaited {
        /// Id of the snapshot.
        id: String,
        /// Lane of the open preview.
        lane: String,
    },
    /// There is no worktree to which a snapshot could be restored.
    #[error("this is no worktree, so snapshot {id} cannot come back here; nothing was changed")]
    NoWorktree {
        /// Id of the snapshot.
        id: String,
    },
    /// The worktree has no commit onto which a snapshot could be restored.
    #[error("this worktree has no commit yet to bring snapshot {id} back onto; nothing was changed")]
    NoHead {
        /// Id of the snapshot.
        id: String,
    },
    /// A file could not be read, written or moved.
    #[error("could not {verb} {}", path.display())]
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
    #[error("{} was changed by something else meanwhile", path.display())]
    RecordChanged {
        /// Path of the record.
        path: PathBuf,
    },
    /// A worktree, or files that an operation put away, are missing or were replaced.
    #[error("{} is not {} any more", path.display(), if path.exists() { "what it was" } else { "there" })]
    PathMissing {
        /// Former path.
        path: PathBuf,
    },
    /// A snapshot that has to be restored conflicts with the present files.
    #[error("set-aside changes do not fit onto {}: {}", dir.display(), git::list_paths(paths))]
    RestoreConflict {
        /// Top folder of the worktree.
        dir: PathBuf,
        /// Paths with conflicts.
        paths: Vec<git::RepoPath>,
        /// Commit that holds the changes, in the format of a stash.
        snapshot: git::Oid,
    },
    /// An operation of a crashed process could not be recovered.
    #[error("`{command}` was cut short and could not be put right yet; nothing else was begun")]
    RecoveryFailed {
        /// Command line that was interrupted.
        command: String,
        /// Reason why the recovery failed.
        #[source]
        source: Box<Error>,
    },
    /// A step could be neither finished nor undone.
    #[error("something could neither be ended nor be taken back; nothing more was begun")]
    StuckStep,
    /// Error from the set-up of a lane.
    #[error(transparent)]
    SetUp(#[from] SetUpError),
    /// Error from an undo.
    #[error(transparent)]
    Undo(#[from] UndoError),
    /// A branch is a symbolic ref to another ref.
    #[error(transparent)]
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
    pub(crate) fn io(verb: &'static str, path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Io { verb, path, source }
    }
}

impl From<Interrupted> for Error {
    fn from(interrupted: Interrupted) -> Error {
        Error::Store(interrupted.into())
    }
}

impl Error {
    /// Returns the hints of errors about refused removals, snapshots and recovery.
    fn keep_and_restore_hints(&self) -> Vec<Cow<'static, str>> {
        match self {
            Error::RemovalRefused { name, busy, force_helps, hint: help, .. } => {
                let stop_hint = busy.then(|| format!("stop its agent: git proq stop {name}"));
                let force_command =
                    "remove it all the same, saving everything first: git proq discard --force";
                let force_hint = force_helps.then(|| format!("{force_command} {name}"));
                let hints = help.clone().into_iter().chain(stop_hint).chain(force_hint);
                hints.map(Cow::from).take(2).collect()
            }
            Error::UnknownSnapshot { .. } => vec!["see all: git proq snap list".into()],
            Error::AmbiguousSnapshot { .. } => {
                vec!["type more of the id; see all: git proq snap list".into()]
            }
            Error::InPlaceRefused { hint: help, .. } => vec![help.clone().into()],
            Error::SnapshotAwaited { .. } => vec!["go back: git proq preview --back".into()],
            Error::NoWorktree { id } => vec![format!("name one: git proq -C DIR snap restore {id}").into()],
            Error::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => {
                vec!["make room on the disk, then run the command again".into()]
            }
            Error::SetUp(e) => e.hints(),
            Error::Undo(e) => e.hints(),
            Error::SymbolicBranch(e) => e.hints(),
            Error::Broken(e) => e.hints(),
            Error::Location(e) => e.hints(),
            Error::Snapshot(e) => e.hints(),
            Error::PathMissing { .. } => vec!["see which worktrees there are: git worktree list".into()],
            Error::RestoreConflict { snapshot, .. } => {
                vec![format!("they are kept: git stash apply {}", snapshot.short()).into()]
            }
            Error::RecoveryFailed { source, .. } => {
                let mut hints = source.hints();
                hints.push("nothing is lost; any git proq command tries again".into());
                hints
            }
            Error::HookVetoed { name, .. } => vec![
                "all that it wrote is in proq/hooks.log below the git directory".into(),
                format!("or do it without asking {name}: --no-hooks").into(),
            ],
            Error::UnapprovedHook { .. } => {
                vec!["let it run: git proq approve".into(), "or leave it out: --no-hooks".into()]
            }
            Error::StuckStep => vec!["have it put right, or see why it cannot be: git proq doctor".into()],
            Error::Git(e) => e.hints(),
            Error::Store(e) => e.hints(),
            Error::Config(e) => e.hints(),
            Error::Process(e) => e.hints(),
            _ => Vec::new(),
        }
    }
}

impl Error {
    /// Returns whether the requested name, branch, group or path is already in use.
    pub(crate) fn is_taken(&self) -> bool {
        use Error::{BranchTaken, GroupTaken, NameTaken, PathTaken};
        matches!(self, NameTaken { .. } | GroupTaken { .. } | BranchTaken { .. } | PathTaken { .. })
    }

    /// Returns whether a step could be neither finished nor undone.
    pub(crate) fn is_stuck(&self) -> bool {
        matches!(self, Error::StuckStep | Error::Git(git::Error::RestoreFailed { .. }))
    }

    /// Returns whether the user's changes block the operation, rather than a temporary failure.
    pub(crate) fn is_refusal(&self) -> bool {
        match self {
            Error::Git(e) => e.is_refusal(),
            Error::RecordChanged { .. }
            | Error::RestoreConflict { .. }
            | Error::PathMissing { .. }
            | Error::PathTaken { .. } => true,
            _ => false,
        }
    }
}

impl Error {
    /// Returns the hints for an agent whose report was refused.
    fn report_hints(&self) -> Vec<Cow<'static, str>> {
        match self {
            Error::NoLaneHere { .. } => {
                vec!["do this in a lane's worktree; see the lanes: git proq list".into()]
            }
            Error::LaneMismatch { claimed, .. } => {
                vec![format!("go back to the worktree of '{claimed}': git proq show {claimed}").into()]
            }
            Error::InvalidReport { .. } => {
                vec![
                    "say in short what a person has to know; put what is long into a file of the lane".into(),
                ]
            }
            _ => Vec::new(),
        }
    }
}

impl Explain for Error {
    fn is_decision(&self) -> bool {
        match self {
            // For an unknown lane: another process may have removed it.
            Error::UnknownLane { .. }
            | Error::Busy { .. }
            | Error::RemovalRefused { .. }
            | Error::UncommittableWork { .. }
            | Error::SymbolicBranch(_)
            | Error::HookVetoed { .. }
            | Error::UnapprovedHook { .. }
            | Error::Git(
                git::Error::LocalChanges { .. }
                | git::Error::Obstructed { .. }
                | git::Error::OpenOperation { .. },
            ) => true,
            Error::SetUp(e) => e.is_decision(),
            _ => false,
        }
    }

    fn hints(&self) -> Vec<Cow<'static, str>> {
        match self {
            Error::InvalidName { .. } => vec![
                "use lower-case letters, digits, '.', '_' and '-', at most 64: git proq spawn -n my-lane …"
                    .into(),
            ],
            Error::NameTaken { name } => vec![
                format!("look at it: git proq show {name}").into(),
                "or choose another name with -n".into(),
            ],
            Error::GroupTaken { group, .. } => vec![
                format!("look at what is there: git proq compare {group}").into(),
                "or choose another name with -n".into(),
            ],
            Error::BranchTaken { free_command: free, .. } => {
                vec!["choose another name with -n".into(), format!("or {free}").into()]
            }
            Error::PrefixTaken { prefix } => vec![
                "use another prefix: git config proq.lane.prefix lanes".into(),
                format!("or rename the branch: git branch -m {prefix} NEW-NAME").into(),
            ],
            Error::PathTaken { .. } => vec!["move it away, or choose another name with -n".into()],
            Error::UnknownLane { similar: Some(similar), .. } => {
                vec![format!("did you mean '{similar}'?").into(), "see all: git proq list".into()]
            }
            Error::UnknownLane { similar: None, .. } => vec!["see all: git proq list".into()],
            Error::NoLaneBranch { name, purpose: LanePurpose::InPlace } => {
                vec![format!("see what it came to: git proq show {name}").into()]
            }
            Error::NoLaneBranch { name, .. } => vec![format!("read it: git proq show {name}").into()],
            Error::Busy { name } => vec![
                format!("wait for it: git proq wait {name}").into(),
                format!("or stop it: git proq stop {name}").into(),
            ],
            Error::UnbornBranch { .. } | Error::NoHead { .. } => {
                vec!["make a first commit: git commit --allow-empty -m 'Start'".into()]
            }
            Error::NeedsOnto { .. } => {
                vec!["say where it lands: git proq spawn --onto BRANCH …".into()]
            }
            Error::CarryConflict { .. } => {
                vec!["leave --carry out, or start from the branch that they were made on".into()]
            }
            Error::NoBranch { .. } => vec!["see what there is: git branch".into()],
            Error::ReservedBranch { .. } => vec!["name a branch of yours: --base main".into()],
            Error::UncommittableWork { name, .. } | Error::OffBranch { name, .. } => {
                vec![format!("look at it: git proq show {name}").into()]
            }
            Error::NoLaneHere { .. } | Error::LaneMismatch { .. } | Error::InvalidReport { .. } => {
                self.report_hints()
            }
            other => other.keep_and_restore_hints(),
        }
    }

    fn exit(&self) -> Exit {
        match self {
            Error::InvalidName { .. } | Error::NeedsOnto { .. } | Error::NoLaneBranch { .. } => Exit::Usage,
            Error::RecoveryFailed { source, .. } => source.exit(),
            Error::SetUp(e) => e.exit(),
            Error::Undo(e) => e.exit(),
            Error::Location(e) => e.exit(),
            Error::Git(e) => e.exit(),
            Error::Store(e) => e.exit(),
            Error::Config(e) => e.exit(),
            Error::Process(e) => e.exit(),
            _ => Exit::Refused,
        }
    }
}
