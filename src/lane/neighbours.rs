//! Owns which lanes are about the same files as a new one that says what it is about.

use std::cell::OnceCell;

use super::{Error, Project, effective_state};
use crate::git::{self, Oid, RepoPath, Scope};
use crate::store::records::LaneRecord;

/// A lane that may come to change the same files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Neighbour {
    /// The lane.
    pub(crate) lane: String,
    /// Whether its agent runs; otherwise it has work that has not landed.
    pub(crate) is_busy: bool,
    /// The glob of the new lane that it meets.
    pub(crate) glob: String,
    /// By what.
    pub(crate) met: Met,
}

/// What of a lane meets the scope of another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Met {
    /// Files in it that the lane has changed since it left its base, uncommitted ones included.
    Files(Vec<RepoPath>),
    /// A glob of the lane's own scope.
    Scope(String),
}

/// The lanes that are at work, or have work that has not landed, where `scope` says that a new lane will be: those that have
/// changed files in it, and those whose own scope meets it, by name or at a file of `start`. Those at work come first.
///
/// # Errors
/// When a lane's record, or what it has changed, cannot be read.
pub(crate) fn neighbours(project: &Project, start: Oid, scope: &Scope) -> Result<Vec<Neighbour>, Error> {
    let mut lanes = Vec::new();
    for lane in project.lanes()? {
        let busy = effective_state(project, &lane)?.0.is_busy();
        lanes.push((lane, busy));
    }
    let folders: Vec<_> = lanes.iter().map(|(lane, _)| lane.path.clone()).collect();
    let files = OnceCell::new();
    let mut out = Vec::new();
    let all_committed = || lanes.iter().map(|(lane, _)| committed(project, lane)).collect::<Vec<_>>();
    let (dirts, commits) = git::statuses(&project.repo, &folders, all_committed);
    for (((lane, is_busy), dirt), changed) in lanes.into_iter().zip(dirts).zip(commits) {
        let mut changed = changed?;
        changed.extend(dirt.map(|dirt| dirt.paths()).unwrap_or_default());
        changed.sort();
        changed.dedup();
        if !is_busy && changed.is_empty() {
            continue;
        }
        if let Some((glob, met)) = meeting(scope, &lane, &changed, &|| files_of(project, start, &files))? {
            out.push(Neighbour { lane: lane.name, is_busy, glob, met });
        }
    }
    out.sort_by_key(|neighbour| !neighbour.is_busy);
    Ok(out)
}

/// The files that a lane's commits change, as long as they have not landed.
fn committed(project: &Project, lane: &LaneRecord) -> Result<Vec<RepoPath>, Error> {
    let repo = &project.repo;
    let Some(tip) = repo.branch_tip(&lane.place.branch)? else { return Ok(Vec::new()) };
    let mut from = lane.start;
    if let Some(base) = repo.branch_tip(&lane.base)? {
        if lane.landed_on(repo, tip, base)? {
            return Ok(Vec::new());
        }
        // Where it left its base by now: the base may have been merged into it since.
        from = repo.merge_base(tip, base)?.unwrap_or(from);
    }
    Ok(git::tree_changes(repo, from, tip)?.into_iter().map(|change| change.path).collect())
}

fn files_of<'f>(
    project: &Project,
    start: Oid,
    files: &'f OnceCell<Vec<RepoPath>>,
) -> Result<&'f [RepoPath], Error> {
    if files.get().is_none() {
        drop(files.set(git::files_of(&project.repo, start)?));
    }
    Ok(files.get().map(Vec::as_slice).unwrap_or_default())
}

/// The glob of `scope` that a lane meets first, and by what. `files` are those that exist.
fn meeting<'f>(
    scope: &Scope,
    lane: &LaneRecord,
    changed: &[RepoPath],
    files: &dyn Fn() -> Result<&'f [RepoPath], Error>,
) -> Result<Option<(String, Met)>, Error> {
    if let Some(glob) = changed.iter().find_map(|path| scope.holds(path)) {
        let inside = changed.iter().filter(|path| scope.holds(path).is_some()).cloned().collect();
        return Ok(Some((glob.to_owned(), Met::Files(inside))));
    }
    // A glob that a later version wrote is none of which anything is known here.
    let Ok(theirs) = Scope::read(&lane.scope) else { return Ok(None) };
    if lane.scope.is_empty() {
        return Ok(None);
    }
    let met = match scope.meets(&theirs) {
        None => scope.meets_at(&theirs, files()?),
        met => met,
    };
    Ok(met.map(|(glob, theirs)| (glob.to_owned(), Met::Scope(theirs.to_owned()))))
}
