//! Owns what can go wrong with a lane, in the user's words.

use std::borrow::Cow;
use std::path::PathBuf;

use super::{Alias, BrokenLane, LocationError, SetUpError, SnapshotError, UndoError};
use crate::explain::{Exit, Explain};
use crate::interrupt::Interrupted;
use crate::store::records::Purpose;
use crate::{config, git, process, store};

/// An error about a lane.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A name that no lane can have.
    #[error("'{name}' cannot be a lane's name: {why}")]
    Name {
        /// What was given, shortened.
        name: String,
        /// Why not.
        why: &'static str,
    },
    /// A lane of that name exists.
    #[error("a lane named '{name}' exists already; nothing was made")]
    Taken {
        /// The name.
        name: String,
    },
    /// Attempts of a group of that name are there.
    #[error("lane '{lane}' is an attempt of an older group '{group}'; nothing was made")]
    GroupTaken {
        /// The group.
        group: String,
        /// One of its lanes.
        lane: String,
    },
    /// A branch of the lane's name exists and belongs to nobody.
    #[error("branch '{branch}' exists already and belongs to no lane; nothing was made")]
    BranchTaken {
        /// The branch.
        branch: String,
        /// What frees the name.
        free: String,
    },
    /// A branch named like the prefix makes every lane's branch impossible.
    #[error("a branch named '{prefix}' exists, so no branch '{prefix}/…' can; nothing was made")]
    PrefixTaken {
        /// The prefix.
        prefix: String,
    },
    /// Something stands where the worktree belongs.
    #[error("{} exists already and belongs to no lane; nothing was made", path.display())]
    PathTaken {
        /// The folder.
        path: PathBuf,
    },
    /// No such lane.
    #[error("there is no lane '{name}'")]
    Unknown {
        /// What was asked for.
        name: String,
        /// A lane with a similar name.
        similar: Option<String>,
    },
    /// It only looks, and what was asked for takes a branch.
    #[error("lane '{name}' has no branch and no changes of its own: it is {}", super::look::with_article(*purpose))]
    NoTree {
        /// The lane.
        name: String,
        /// What it is for.
        purpose: Purpose,
    },
    /// A run cannot work in the main checkout, or something else cannot while one does.
    #[error("{why}; nothing was changed")]
    InPlace {
        /// Why, as a sentence.
        why: String,
        /// What helps.
        help: String,
    },
    /// Its agent is at work.
    #[error("the agent of lane '{name}' is running; nothing was changed")]
    Busy {
        /// The lane.
        name: String,
    },
    /// A hook that is asked first said no.
    #[error("{name} said no: {why}; nothing was changed")]
    Vetoed {
        /// The hook.
        name: &'static str,
        /// Its words, or how it ended.
        why: String,
    },
    /// A hook that came with the repository and that nobody has approved.
    #[error("{} wants to be asked first ({name}: {line}), which you have not approved; nothing was changed", path.display())]
    UnapprovedHook {
        /// The settings file.
        path: PathBuf,
        /// The hook.
        name: &'static str,
        /// Its command line.
        line: String,
    },
    /// The current branch has no commit.
    #[error("branch '{branch}' has no commit yet; a lane needs one to start from")]
    Unborn {
        /// The branch.
        branch: String,
    },
    /// A starting point that is no branch, and no branch to land on.
    #[error("{why}, so it is not clear where the lane should land; nothing was made")]
    NeedsOnto {
        /// What the starting point is instead, as a sentence.
        why: String,
    },
    /// The branch to land on does not exist.
    #[error("there is no branch '{branch}' to land on; nothing was changed")]
    NoBranch {
        /// The branch.
        branch: String,
    },
    /// Uncommitted changes that do not fit where the lane starts.
    #[error("your uncommitted changes do not fit onto '{base}': {}; nothing was made", git::names(paths))]
    Carry {
        /// The branch.
        base: String,
        /// The paths that conflict.
        paths: Vec<git::RepoPath>,
    },
    /// A lane's branch cannot be a base.
    #[error("'{branch}' is git-proq's own and cannot be a base; nothing was made")]
    OwnBranch {
        /// The branch.
        branch: String,
    },
    /// Removing would lose, or might lose, something.
    #[error("lane '{name}' was kept: {}", why.join("; "))]
    Kept {
        /// The lane.
        name: String,
        /// What stands in the way, one phrase each.
        why: Vec<String>,
        /// Whether its agent is alive.
        busy: bool,
        /// Whether `--force` would remove it, saving it all first.
        force_helps: bool,
        /// What else helps, as a hint.
        help: Option<String>,
    },
    /// Uncommitted work that must not be committed as it is.
    #[error("lane '{name}' has work that cannot be committed: {}", why.join("; "))]
    Leftover {
        /// The lane.
        name: String,
        /// Which, one phrase each.
        why: Vec<String>,
    },
    /// Its worktree shows something else than its branch.
    #[error("the worktree of lane '{name}' is not on its branch {branch}; nothing was changed")]
    OffBranch {
        /// The lane.
        name: String,
        /// The branch that it should be on.
        branch: String,
    },
    /// The process stands in no lane.
    #[error("this is no lane: {}{}", dir.display(), super::report::claim(claimed.as_deref()))]
    NoLaneHere {
        /// Where it stands.
        dir: PathBuf,
        /// The lane that its environment names.
        claimed: Option<String>,
    },
    /// The process stands in another lane than its environment says.
    #[error("this is lane '{here}', and PROQ_LANE says '{claimed}'; nothing was changed")]
    OtherLane {
        /// The lane that it stands in.
        here: String,
        /// The lane that its environment names.
        claimed: String,
    },
    /// A report that cannot be kept.
    #[error("the report {why}; what was reported before stays")]
    Report {
        /// What is wrong with it.
        why: String,
    },
    /// No such snapshot.
    #[error("there is no snapshot '{id}'")]
    NoSnap {
        /// What was asked for.
        id: String,
    },
    /// The beginning of several snapshots' ids.
    #[error("'{id}' is the beginning of {} snapshots: {}", ids.len(), ids.join(", "))]
    ManySnaps {
        /// What was asked for.
        id: String,
        /// The ids that begin so.
        ids: Vec<String>,
    },
    /// The open preview brings it back.
    #[error("snapshot {id} comes back when the preview of '{lane}' is left; nothing was changed")]
    SnapWaits {
        /// The snapshot.
        id: String,
        /// The lane.
        lane: String,
    },
    /// There is no worktree to bring a snapshot back to.
    #[error("this is no worktree, so snapshot {id} cannot come back here; nothing was changed")]
    NoWorktree {
        /// The snapshot.
        id: String,
    },
    /// There is no commit to bring a snapshot back onto.
    #[error("this worktree has no commit yet to bring snapshot {id} back onto; nothing was changed")]
    NoHead {
        /// The snapshot.
        id: String,
    },
    /// A file could not be read, written or moved.
    #[error("could not {verb} {}", path.display())]
    Io {
        /// What was attempted, as a verb.
        verb: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// What an operation had written says something else now.
    #[error("{} was changed by something else meanwhile", path.display())]
    Changed {
        /// The record.
        path: PathBuf,
    },
    /// What an operation had put away is gone.
    #[error("{} is not {} any more", path.display(), if path.exists() { "what it was" } else { "there" })]
    Expired {
        /// Where it was.
        path: PathBuf,
    },
    /// A snapshot that has to come back conflicts with what is there now.
    #[error("set-aside changes do not fit onto {}: {}", dir.display(), git::names(paths))]
    DoesNotFit {
        /// The worktree.
        dir: PathBuf,
        /// The paths that conflict.
        paths: Vec<git::RepoPath>,
        /// The commit that holds the changes, in a stash's shape.
        snapshot: git::Oid,
    },
    /// An operation of a dead process could not be put right.
    #[error("`{command}` was cut short and could not be put right yet; nothing else was begun")]
    Unfinished {
        /// What was typed.
        command: String,
        /// Why not.
        #[source]
        source: Box<Error>,
    },
    /// A step has gone half-way.
    #[error("something could neither be ended nor be taken back; nothing more was begun")]
    Halfway,
    /// From getting a lane ready.
    #[error(transparent)]
    SetUp(#[from] SetUpError),
    /// From an undo.
    #[error(transparent)]
    Undo(#[from] UndoError),
    /// A branch that leads to another one.
    #[error(transparent)]
    Alias(#[from] Alias),
    /// A worktree that is broken.
    #[error(transparent)]
    Broken(#[from] BrokenLane),
    /// A single snapshot.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// From choosing its place.
    #[error(transparent)]
    Location(#[from] LocationError),
    /// From git.
    #[error(transparent)]
    Git(#[from] git::Error),
    /// From the store.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// From the configuration.
    #[error(transparent)]
    Config(#[from] config::Error),
    /// From another program.
    #[error(transparent)]
    Process(#[from] process::Error),
}

impl Error {
    /// Wraps an IO error with what was attempted and where.
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
    /// The hints of errors about what is kept, and about taking things back.
    fn hints_on_keeping(&self) -> Vec<Cow<'static, str>> {
        match self {
            Error::Kept { name, busy, force_helps, help, .. } => {
                let stop = busy.then(|| format!("stop its agent: git proq stop {name}"));
                let force = "remove it all the same, saving everything first: git proq discard --force";
                let force = force_helps.then(|| format!("{force} {name}"));
                let all = help.clone().into_iter().chain(stop).chain(force);
                all.map(Cow::from).take(2).collect()
            }
            Error::NoSnap { .. } => vec!["see all: git proq snap list".into()],
            Error::ManySnaps { .. } => vec!["type more of the id; see all: git proq snap list".into()],
            Error::InPlace { help, .. } => vec![help.clone().into()],
            Error::SnapWaits { .. } => vec!["go back: git proq preview --back".into()],
            Error::NoWorktree { id } => vec![format!("name one: git proq -C DIR snap restore {id}").into()],
            Error::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => {
                vec!["make room on the disk, then run the command again".into()]
            }
            Error::SetUp(e) => e.hints(),
            Error::Undo(e) => e.hints(),
            Error::Alias(e) => e.hints(),
            Error::Broken(e) => e.hints(),
            Error::Location(e) => e.hints(),
            Error::Snapshot(e) => e.hints(),
            Error::Expired { .. } => vec!["see which worktrees there are: git worktree list".into()],
            Error::DoesNotFit { snapshot, .. } => {
                vec![format!("they are kept: git stash apply {}", snapshot.short()).into()]
            }
            Error::Unfinished { source, .. } => {
                let mut hints = source.hints();
                hints.push("nothing is lost; any git proq command tries again".into());
                hints
            }
            Error::Vetoed { name, .. } => vec![
                "all that it wrote is in proq/hooks.log below the git directory".into(),
                format!("or do it without asking {name}: --no-hooks").into(),
            ],
            Error::UnapprovedHook { .. } => {
                vec!["let it run: git proq approve".into(), "or leave it out: --no-hooks".into()]
            }
            Error::Halfway => vec!["have it put right, or see why it cannot be: git proq doctor".into()],
            Error::Git(e) => e.hints(),
            Error::Store(e) => e.hints(),
            Error::Config(e) => e.hints(),
            Error::Process(e) => e.hints(),
            _ => Vec::new(),
        }
    }
}

impl Error {
    /// Whether what was to be made is there already, under the name that was asked for.
    pub(crate) fn is_taken(&self) -> bool {
        use Error::{BranchTaken, GroupTaken, PathTaken, Taken};
        matches!(self, Taken { .. } | GroupTaken { .. } | BranchTaken { .. } | PathTaken { .. })
    }

    /// Whether a step has gone half-way and could not go back.
    pub(crate) fn is_stuck(&self) -> bool {
        matches!(self, Error::Halfway | Error::Git(git::Error::Stuck { .. }))
    }

    /// Whether somebody's own changes are in the way, rather than that something could not be done now.
    pub(crate) fn is_refusal(&self) -> bool {
        match self {
            Error::Git(e) => e.is_refusal(),
            Error::Changed { .. }
            | Error::DoesNotFit { .. }
            | Error::Expired { .. }
            | Error::PathTaken { .. } => true,
            _ => false,
        }
    }
}

impl Error {
    /// What helps an agent that cannot report.
    fn hints_on_reporting(&self) -> Vec<Cow<'static, str>> {
        match self {
            Error::NoLaneHere { .. } => {
                vec!["do this in a lane's worktree; see the lanes: git proq list".into()]
            }
            Error::OtherLane { claimed, .. } => {
                vec![format!("go back to the worktree of '{claimed}': git proq show {claimed}").into()]
            }
            Error::Report { .. } => {
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
            // Somebody else removed it meanwhile.
            Error::Unknown { .. }
            | Error::Busy { .. }
            | Error::Kept { .. }
            | Error::Leftover { .. }
            | Error::Alias(_)
            | Error::Vetoed { .. }
            | Error::UnapprovedHook { .. }
            | Error::Git(
                git::Error::Overlap { .. } | git::Error::Obstructed { .. } | git::Error::OpenOperation { .. },
            ) => true,
            Error::SetUp(e) => e.is_decision(),
            _ => false,
        }
    }

    fn hints(&self) -> Vec<Cow<'static, str>> {
        match self {
            Error::Name { .. } => vec![
                "use lower-case letters, digits, '.', '_' and '-', at most 64: git proq spawn -n my-lane …"
                    .into(),
            ],
            Error::Taken { name } => vec![
                format!("look at it: git proq show {name}").into(),
                "or choose another name with -n".into(),
            ],
            Error::GroupTaken { group, .. } => vec![
                format!("look at what is there: git proq compare {group}").into(),
                "or choose another name with -n".into(),
            ],
            Error::BranchTaken { free, .. } => {
                vec!["choose another name with -n".into(), format!("or {free}").into()]
            }
            Error::PrefixTaken { prefix } => vec![
                "use another prefix: git config proq.lane.prefix lanes".into(),
                format!("or rename the branch: git branch -m {prefix} NEW-NAME").into(),
            ],
            Error::PathTaken { .. } => vec!["move it away, or choose another name with -n".into()],
            Error::Unknown { similar: Some(similar), .. } => {
                vec![format!("did you mean '{similar}'?").into(), "see all: git proq list".into()]
            }
            Error::Unknown { similar: None, .. } => vec!["see all: git proq list".into()],
            Error::NoTree { name, purpose: Purpose::InPlace } => {
                vec![format!("see what it came to: git proq show {name}").into()]
            }
            Error::NoTree { name, .. } => vec![format!("read it: git proq show {name}").into()],
            Error::Busy { name } => vec![
                format!("wait for it: git proq wait {name}").into(),
                format!("or stop it: git proq stop {name}").into(),
            ],
            Error::Unborn { .. } | Error::NoHead { .. } => {
                vec!["make a first commit: git commit --allow-empty -m 'Start'".into()]
            }
            Error::NeedsOnto { .. } => {
                vec!["say where it lands: git proq spawn --onto BRANCH …".into()]
            }
            Error::Carry { .. } => {
                vec!["leave --carry out, or start from the branch that they were made on".into()]
            }
            Error::NoBranch { .. } => vec!["see what there is: git branch".into()],
            Error::OwnBranch { .. } => vec!["name a branch of yours: --base main".into()],
            Error::Leftover { name, .. } | Error::OffBranch { name, .. } => {
                vec![format!("look at it: git proq show {name}").into()]
            }
            Error::NoLaneHere { .. } | Error::OtherLane { .. } | Error::Report { .. } => {
                self.hints_on_reporting()
            }
            other => other.hints_on_keeping(),
        }
    }

    fn exit(&self) -> Exit {
        match self {
            Error::Name { .. } | Error::NeedsOnto { .. } | Error::NoTree { .. } => Exit::Usage,
            Error::Unfinished { source, .. } => source.exit(),
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
