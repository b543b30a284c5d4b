//! Owns what is kept for a time only: finding what is old enough to go, and letting it go.
//!
//! Old is what its own record says. What cannot be read is for a person to look at, and what lies ahead of the clock is
//! young.

use std::path::PathBuf;

use super::{Error, Project, checks, drafts, op_log, saved, snaps, trash};
use crate::explain::Explain;
use crate::git::{self, Oid};
use crate::store::records::SnapRecord;
use crate::store::{Moment, size_on_disk};

/// A kind of thing that is kept for a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Removed lanes' folders.
    Trash,
    /// Snapshots that came back.
    Snapshots,
    /// Operations in the log.
    Operations,
    /// Refs that keep commits which other refs keep too.
    Saved,
    /// Refs that kept objects for operations which are gone.
    Keepers,
    /// What checks found good.
    Checks,
    /// What dead processes had begun to write.
    Drafts,
}

impl Kind {
    /// All, in the order in which they are looked at.
    pub(crate) const ALL: [Kind; 7] = [
        Kind::Trash,
        Kind::Snapshots,
        Kind::Operations,
        Kind::Saved,
        Kind::Keepers,
        Kind::Checks,
        Kind::Drafts,
    ];
}

/// Something that is old enough to go.
#[derive(Debug)]
pub(crate) struct Spare {
    /// Its name.
    pub(crate) name: String,
    /// Since when it could be missed.
    pub(crate) at: Moment,
    pub(super) what: What,
}

/// What it is, and what is needed to take it away.
#[derive(Debug)]
pub(super) enum What {
    /// An entry of the trash, and the folder on another disk that belongs to it.
    Trash { dir: PathBuf, beside: Option<PathBuf> },
    /// A snapshot.
    Snapshot,
    /// An operation.
    Operation(u64),
    /// A ref that keeps commits which other refs keep too.
    Ref(Oid),
    /// A ref of an operation that is gone.
    Keeper(Oid),
    /// A file or folder.
    Draft(PathBuf),
}

/// Something that is old and stays all the same.
#[derive(Debug)]
pub(crate) struct Stays {
    /// Its name.
    pub(crate) name: String,
    /// Why it stays.
    pub(crate) why: String,
    /// The command that takes it away, or helps.
    pub(crate) help: Option<String>,
}

impl Stays {
    /// Something that cannot be read.
    pub(super) fn unreadable(name: impl Into<String>, error: &dyn Explain) -> Stays {
        let help = error.hints().first().map(ToString::to_string);
        Stays { name: name.into(), why: error.to_string(), help }
    }
}

/// What is old of one kind.
#[derive(Debug, Default)]
pub(crate) struct Old {
    /// What can go, oldest first.
    pub(crate) spare: Vec<Spare>,
    /// What stays.
    pub(crate) stays: Vec<Stays>,
}

/// Looks for what is old enough to go. Nothing is changed.
pub(crate) fn old(project: &Project, kind: Kind) -> Result<Old, Error> {
    match kind {
        Kind::Trash => trash::old(project),
        Kind::Snapshots => snaps::old(project),
        Kind::Operations => Ok(op_log::old(project)),
        Kind::Saved => saved::old(project),
        Kind::Keepers => Ok(Old { spare: op_log::ownerless(project)?, stays: Vec::new() }),
        Kind::Checks => Ok(checks::old(project)),
        Kind::Drafts => Ok(drafts::old(project)),
    }
}

impl Spare {
    /// The room that it takes. Objects are git's to free, once nothing keeps them.
    pub(crate) fn size(&self, project: &Project) -> u64 {
        let layout = project.store.layout();
        match &self.what {
            What::Trash { dir, beside } => size_on_disk(dir) + beside.as_deref().map_or(0, size_on_disk),
            What::Snapshot => size_on_disk(&layout.snapshot(&self.name)),
            What::Operation(number) => size_on_disk(&layout.operation(*number)),
            What::Ref(_) | What::Keeper(_) => 0,
            What::Draft(path) => size_on_disk(path),
        }
    }

    /// Lets it go, after another look. False when it is not there any more or not old any more.
    pub(crate) fn free(&self, project: &Project) -> Result<bool, Error> {
        let refs = self.refs(project)?;
        if refs.is_empty() {
            return self.free_now(project);
        }
        // By this folder the locks of a git that is killed with this process are known as its own.
        let work = project.store.layout().scratch()?;
        git::note_deletions(work.path(), &refs);
        let freed = self.free_now(project);
        if freed.is_err() {
            git::settle_deletions(&project.repo, work.path())?;
        }
        freed
    }

    /// The refs that go with it.
    fn refs(&self, project: &Project) -> Result<Vec<String>, Error> {
        Ok(match &self.what {
            What::Snapshot => vec![SnapRecord::ref_name(&self.name)],
            What::Operation(number) => op_log::keepers(project, *number)?,
            What::Ref(_) | What::Keeper(_) => vec![self.name.clone()],
            What::Trash { .. } | What::Draft(_) => Vec::new(),
        })
    }

    fn free_now(&self, project: &Project) -> Result<bool, Error> {
        match &self.what {
            What::Trash { dir, beside } => trash::free(project, dir, beside.as_deref()),
            What::Snapshot => snaps::free(project, &self.name),
            What::Operation(number) => op_log::free(project, *number),
            What::Ref(tip) => saved::free(project, &self.name, *tip),
            What::Keeper(tip) => op_log::free_ownerless(project, &self.name, *tip),
            What::Draft(path) => Ok(project.store.layout().bury(path).map(|()| true)?),
        }
    }
}

/// Lets go of what commands make as they are used. Costs a look into three folders when nothing is old. What fails does not
/// keep the rest; the first failure is returned.
pub(crate) fn expire(project: &Project) -> Result<(), Error> {
    let mut failed = None;
    for kind in [Kind::Trash, Kind::Snapshots, Kind::Operations] {
        match old(project, kind) {
            Ok(old) => {
                for spare in old.spare {
                    failed = failed.or(spare.free(project).err());
                }
            }
            Err(e) => failed = failed.or(Some(e)),
        }
    }
    failed.map_or(Ok(()), Err)
}
