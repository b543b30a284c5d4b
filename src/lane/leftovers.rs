//! Owns what was left uncommitted in a lane: committing it, from an explicit list of paths and never blindly, or keeping a
//! copy of it.

use std::io::{BufRead, BufReader};
use std::path::Path;

use super::{Checkout, Error, Project, head, snaps};
use crate::explain::quoted_path;
use crate::git::{Entry, RepoPath, WorktreeList, mass_deletion, stage_and_commit, status, unreadable};
use crate::interrupt::Asked;
use crate::store::records::{LaneRecord, SnapRecord};

/// Files longer than this are not searched for conflict markers.
const SEARCHED: u64 = 512 * 1024 * 1024;

/// What became of uncommitted work.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub(crate) enum Leftovers {
    /// There was none.
    Nothing,
    /// It is one commit now.
    Committed(usize),
}

/// Commits everything that differs from HEAD in a lane's worktree.
///
/// # Errors
/// As those of [`leftovers_to_commit`].
pub(crate) fn commit_leftovers(
    project: &Project,
    lane: &LaneRecord,
    message: &str,
    deletions: bool,
) -> Result<Leftovers, Error> {
    let paths = leftovers_to_commit(project, lane, deletions)?;
    if paths.is_empty() {
        return Ok(Leftovers::Nothing);
    }
    let asked = Asked::listen();
    stage_and_commit(&project.repo, &lane.path, &paths, message, &|| asked.is())?;
    Ok(Leftovers::Committed(paths.len()))
}

/// The paths of everything that differs from HEAD in a lane's worktree and can be committed.
///
/// # Errors
/// [`Error::Leftover`] for what must not be committed as it is: conflicts, embedded repositories, very large files, work on
/// top of somebody else's, a broken worktree, and, unless `deletions` are allowed, the deletion of most files.
pub(crate) fn leftovers_to_commit(
    project: &Project,
    lane: &LaneRecord,
    deletions: bool,
) -> Result<Vec<RepoPath>, Error> {
    if let Some(missing) = project.repo.missing_in(&lane.path)? {
        return Err(Error::Leftover { name: lane.name.clone(), why: vec![missing.in_words().to_owned()] });
    }
    let dirt = status(&project.repo, &lane.path, true)?;
    // A submodule with changes inside has nothing that a commit here could hold.
    let entries: Vec<&Entry> = dirt.entries.iter().filter(|e| !e.submodule).collect();
    let mut why: Vec<String> = dirt.unmerged().iter().map(|path| format!("{path} is unmerged")).collect();
    for entry in &entries {
        if entry.nested {
            why.push(format!("{} is a repository of its own", entry.path));
        } else {
            why.extend(unfit(project, lane, &entry.path));
        }
    }
    let paths: Vec<RepoPath> = entries.into_iter().map(|e| e.path.clone()).collect();
    if paths.is_empty() && why.is_empty() {
        return Ok(paths);
    }
    if !deletions {
        why.extend(mass_deletion_in(project, lane, &paths)?);
    }
    why.extend(head::not_own_place(project, lane)?);
    if !why.is_empty() {
        return Err(Error::Leftover { name: lane.name.clone(), why });
    }
    Ok(paths)
}

/// The command that moves an embedded repository out of a lane's worktree, to a name beside the main checkout that nothing has.
pub(crate) fn move_out(
    project: &Project,
    lane: &LaneRecord,
    path: &RepoPath,
    worktrees: &WorktreeList,
) -> String {
    let from = path.under(&lane.path);
    let beside = project.repo.home().parent().unwrap_or_else(|| Path::new("/"));
    let name = format!("{}-{}", lane.name, from.file_name().unwrap_or_default().to_string_lossy());
    let mut to = beside.join(&name);
    let mut number = 2;
    while to.symlink_metadata().is_ok() {
        to = beside.join(format!("{name}-{number}"));
        number += 1;
    }
    // Git has to know where a worktree goes.
    let how = if worktrees.at(&from).is_some() { "git worktree move" } else { "mv" };
    format!("{how} {} {}", quoted_path(&from), quoted_path(&to))
}

/// Why a commit of these paths would delete too much; none where it would not.
fn mass_deletion_in(
    project: &Project,
    lane: &LaneRecord,
    paths: &[RepoPath],
) -> Result<Option<String>, Error> {
    let Some(head) = project.repo.head_of(&lane.path)? else { return Ok(None) };
    let is_there = |path: &RepoPath| path.under(&lane.path).symlink_metadata().is_ok();
    let changed = paths.iter().map(|path| (path, is_there(path)));
    let found = mass_deletion(&project.repo, head, changed)?;
    Ok(found.map(|found| format!("{found} are deleted, which git proq merge --allow-deletions allows")))
}

/// Keeps a copy of what differs from HEAD in a lane's worktree, as a snapshot that goes `op.keep` days later: a
/// `git clean -ffdx` in the main checkout, which takes whole lanes, takes only ignored files then. Returns whether there was
/// anything.
///
/// # Errors
/// [`Error::Git`] for an open conflict, which no snapshot can hold.
pub(crate) fn copy_leftovers(project: &Project, lane: &LaneRecord, why: &str) -> Result<bool, Error> {
    let Some(head) = project.repo.head_of(&lane.path)? else { return Ok(false) };
    let taken = Checkout::lock(project, &lane.path)?.describe(head, why, &[], |snapshot, raw| {
        snaps::put(project, &SnapRecord::copy(why, snapshot), raw)
    })?;
    Ok(taken.is_some())
}

/// Why a file must not be committed as it is.
pub(super) fn unfit<P>(project: &Project, lane: &LaneRecord<P>, path: &RepoPath) -> Option<String> {
    if !unreadable(&lane.path, [path]).is_empty() {
        return Some(format!("{path} is not readable"));
    }
    if has_markers(lane, path) {
        return Some(format!("{path} holds conflict markers"));
    }
    let mib = too_large(project, lane, path)?;
    Some(format!("{path} has {mib} MiB, more than agent.autocommit_limit"))
}

/// How many MiB a file has, if those are more than may be committed without anybody's leave: what is in history stays there.
fn too_large<P>(project: &Project, lane: &LaneRecord<P>, path: &RepoPath) -> Option<u64> {
    let limit = project.settings.autocommit_limit?;
    let meta = path.under(&lane.path).symlink_metadata().ok()?;
    (meta.is_file() && meta.len() > limit).then_some(meta.len() / (1024 * 1024))
}

fn has_markers<P>(lane: &LaneRecord<P>, path: &RepoPath) -> bool {
    let file = path.under(&lane.path);
    if !file.symlink_metadata().is_ok_and(|m| m.is_file() && m.len() <= SEARCHED) {
        return false;
    }
    let Ok(file) = std::fs::File::open(&file) else { return false };
    let (mut lines, mut line) = (BufReader::new(file), Vec::new());
    let mut markers = Markers::default();
    while lines.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        if markers.complete(&line) {
            return true;
        }
        line.clear();
    }
    false
}

/// Whether a text has the three marker lines of a conflict, in order.
pub(crate) fn holds_conflict(text: &[u8]) -> bool {
    let mut markers = Markers::default();
    text.split(|b| *b == b'\n').any(|line| markers.complete(line))
}

/// How many of a conflict's three marker lines have come so far.
#[derive(Default)]
struct Markers {
    seen: usize,
    /// How long each of them is: seven, or what the attribute `conflict-marker-size` says.
    size: usize,
}

impl Markers {
    /// Takes the next line in. Whether it is the last marker of a conflict.
    fn complete(&mut self, line: &[u8]) -> bool {
        const LEAST: usize = 7;
        const KINDS: [u8; 3] = *b"<=>";
        let size = line.iter().take_while(|b| **b == KINDS[self.seen]).count();
        let ends = matches!(line.get(size), None | Some(b' ' | b'\r' | b'\n'));
        // The first and the last say whose side it is.
        let is_marker = ends && (self.seen == 1 || line.get(size) == Some(&b' '));
        if !is_marker || size < LEAST || (self.seen > 0 && size != self.size) {
            return false;
        }
        self.size = size;
        self.seen += 1;
        self.seen == KINDS.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_conflict_counts() {
        assert!(holds_conflict(b"a\n<<<<<<< ours\nb\n=======\nc\n>>>>>>> theirs\n"));
        assert!(holds_conflict(b"<<<<<<<<<<< ours\r\n===========\r\n>>>>>>>>>>> theirs\r\n"));
        assert!(!holds_conflict(b"<<<<<<<<<<< ours\n=======\n>>>>>>> theirs\n"));
        assert!(!holds_conflict(b"Title\n=======\n"));
        assert!(!holds_conflict(b">>>>>>> x\n=======\n<<<<<<< y\n"));
        assert!(!holds_conflict(b"    <<<<<<< x\n=======\n>>>>>>> y\n"));
    }
}
