//! Hints and exit codes of lane errors.

use std::borrow::Cow;

use proq_base::explain::{Exit, Explain};
use proq_git as git;
use proq_store::base::operation_number::OperationNumber;
use proq_store::records::lane::LanePurpose;

use super::undo_error::UndoError;
use crate::lane::Error;

impl Error {
    /// Returns the hints of the errors that `hints` does not handle directly: refused removals, snapshots,
    /// recovery, hooks, and errors of other modules.
    fn other_hints(&self) -> Vec<Cow<'static, str>> {
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
            Error::CannotUndo { number, forced_command, source, .. } => {
                refusal_hints(*number, forced_command.as_deref(), source)
            }
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
            Error::InvalidName(e) => e.hints(),
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
            other => other.other_hints(),
        }
    }

    fn exit(&self) -> Exit {
        match self {
            Error::InvalidName(_) | Error::NeedsOnto { .. } | Error::NoLaneBranch { .. } => Exit::Usage,
            Error::RecoveryFailed { source, .. } | Error::CannotUndo { source, .. } => source.exit(),
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

/// Returns the hints for an operation that cannot be undone for the reason in `source`. `forced_command`
/// undoes it with force.
fn refusal_hints(
    number: OperationNumber,
    forced_command: Option<&str>,
    source: &Error,
) -> Vec<Cow<'static, str>> {
    match (source, forced_command) {
        (Error::Undo(UndoError::BuiltOn { .. } | UndoError::Pushed { .. }), Some(forced_command)) => {
            vec![
                format!("undo it all the same, keeping what came after under a ref: {forced_command}").into(),
            ]
        }
        (Error::Undo(UndoError::BuiltOn { .. } | UndoError::Pushed { .. }), None) => {
            vec![format!("see what it did: git proq op show {number}").into()]
        }
        (Error::RemovalRefused { force_helps: true, busy: false, hint: help, .. }, Some(forced_command)) => {
            let forced_hint =
                format!("remove the lane all the same, saving everything first: {forced_command}");
            help.clone().into_iter().chain([forced_hint]).map(Cow::from).collect()
        }
        // A commit would build on the commits to undo, so only a stash is suggested.
        (Error::Git(git::Error::LocalChanges { dir, hint: remedy, .. }), _) => {
            vec![remedy.stash_hint(dir)]
        }
        (Error::PathMissing { .. }, _) => {
            vec![format!("see what of it is still there: git proq op show {number}").into()]
        }
        (other, _) => other.hints(),
    }
}
