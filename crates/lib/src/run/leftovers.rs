//! Uncommitted changes left in a lane: commits them from an explicit list of paths, or saves them as a
//! snapshot.

use std::io::{BufRead, BufReader};
use std::path::Path;

use proq_base::config::settings::Settings;
use proq_base::explain::shell_quote_path;
use proq_base::interrupt::StopFlag;
use proq_git::history::deletions::detect_mass_deletion;
use proq_git::status::special_files::unreadable_paths;
use proq_git::status::staged_commit::stage_and_commit;
use proq_git::status::status_query::status;
use proq_git::status::worktree_status::StatusEntry;
use proq_git::worktrees::worktree::WorktreeList;
use proq_git::{Repo, RepoPath};
use proq_store::records::lane::LaneRecord;
use proq_store::records::snapshot::SnapshotRecord;

use crate::lane::context::head_ownership;
use crate::lane::parking::snapshot_store;
use crate::lane::{Error, Project};
use crate::operation::locked_worktree::LockedWorktree;

/// Maximum size in bytes of files that are searched for conflict markers.
const MAX_MARKER_SCAN_BYTES: u64 = 512 * 1024 * 1024;

/// Outcome of committing uncommitted changes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub(crate) enum LeftoversOutcome {
    /// There were no uncommitted changes.
    Nothing,
    /// This many paths were committed as one commit.
    Committed(usize),
}

/// Commits everything that differs from HEAD in a lane's worktree.
///
/// # Errors
/// See [`leftovers_to_commit`].
pub(crate) fn commit_leftovers(
    project: &Project,
    lane: &LaneRecord,
    message: &str,
    allow_deletions: bool,
) -> Result<LeftoversOutcome, Error> {
    let paths = leftovers_to_commit(project, lane, allow_deletions)?;
    if paths.is_empty() {
        return Ok(LeftoversOutcome::Nothing);
    }
    let interrupt = StopFlag::register();
    stage_and_commit(&project.repo, &lane.path, &paths, message, &|| interrupt.is_set())?;
    Ok(LeftoversOutcome::Committed(paths.len()))
}

/// Returns the paths of everything that differs from HEAD in a lane's worktree and can be committed.
///
/// # Errors
/// [`Error::UncommittableWork`] for changes that must not be committed as they are: conflicts, embedded repositories,
/// very large files, work on top of another branch's commits, a broken worktree, and, unless
/// `allow_deletions` is set, the deletion of most files.
pub(crate) fn leftovers_to_commit(
    project: &Project,
    lane: &LaneRecord,
    allow_deletions: bool,
) -> Result<Vec<RepoPath>, Error> {
    if let Some(missing) = project.repo.find_worktree_defect(&lane.path)? {
        return Err(Error::UncommittableWork {
            name: lane.name.clone(),
            uncommittable: vec![missing.describe().to_owned()],
        });
    }
    let dirty = status(&project.repo, &lane.path, true)?;
    // For a submodule with changes inside, a commit here has nothing to record.
    let entries: Vec<&StatusEntry> = dirty.entries.iter().filter(|e| !e.is_submodule).collect();
    let mut reasons: Vec<String> =
        dirty.unmerged().iter().map(|path| format!("{path} is unmerged")).collect();
    for entry in &entries {
        if entry.is_nested_repo {
            reasons.push(format!("{} is a repository of its own", entry.path));
        } else {
            reasons.extend(uncommittable_reason(&project.settings, lane, &entry.path));
        }
    }
    let paths: Vec<RepoPath> = entries.into_iter().map(|e| e.path.clone()).collect();
    if paths.is_empty() && reasons.is_empty() {
        return Ok(paths);
    }
    if !allow_deletions {
        reasons.extend(mass_deletion_reason(&project.repo, lane, &paths)?);
    }
    reasons.extend(head_ownership::head_commit_refusal(project, lane)?);
    if !reasons.is_empty() {
        return Err(Error::UncommittableWork { name: lane.name.clone(), uncommittable: reasons });
    }
    Ok(paths)
}

/// Returns the command that moves an embedded repository out of a lane's worktree, to a free path next to the
/// main checkout.
pub(crate) fn move_nested_repo_command(
    repo: &Repo,
    lane: &LaneRecord,
    path: &RepoPath,
    worktrees: &WorktreeList,
) -> String {
    let from = path.to_fs_path(&lane.path);
    let sibling_dir = repo.command_dir().parent().unwrap_or_else(|| Path::new("/"));
    let name = format!("{}-{}", lane.name, from.file_name().unwrap_or_default().to_string_lossy());
    let mut to = sibling_dir.join(&name);
    let mut number = 2;
    while to.symlink_metadata().is_ok() {
        to = sibling_dir.join(format!("{name}-{number}"));
        number += 1;
    }
    // A linked worktree has to be moved by git, which records its path.
    let command = if worktrees.with_top_folder(&from).is_some() { "git worktree move" } else { "mv" };
    format!("{command} {} {}", shell_quote_path(&from), shell_quote_path(&to))
}

/// Returns the reason why a commit of these paths would delete too many files, or `None` if it would not.
fn mass_deletion_reason(repo: &Repo, lane: &LaneRecord, paths: &[RepoPath]) -> Result<Option<String>, Error> {
    let Some(head) = repo.head_commit(&lane.path)? else { return Ok(None) };
    let exists = |path: &RepoPath| path.to_fs_path(&lane.path).symlink_metadata().is_ok();
    let changed = paths.iter().map(|path| (path, exists(path)));
    let deletion = detect_mass_deletion(repo, head, changed)?;
    Ok(deletion
        .map(|deletion| format!("{deletion} are deleted, which git proq merge --allow-deletions allows")))
}

/// Saves everything that differs from HEAD in a lane's worktree as a snapshot, which expires after `op.keep`
/// days. Should `git clean -ffdx` in the main checkout later delete the entire lane, only ignored files are
/// lost. Returns whether there were changes to save.
///
/// # Errors
/// [`Error::Git`] for an open conflict, which a snapshot cannot hold.
pub(crate) fn snapshot_leftovers(project: &Project, lane: &LaneRecord, reason: &str) -> Result<bool, Error> {
    let Some(head) = project.repo.head_commit(&lane.path)? else { return Ok(false) };
    let saved =
        LockedWorktree::lock(project, &lane.path)?.write_snapshot(head, reason, &[], |snapshot, raw| {
            snapshot_store::save_snapshot(project, &SnapshotRecord::new_copy(reason, snapshot), raw)
        })?;
    Ok(saved.is_some())
}

/// Returns the reason why a file must not be committed as it is, if there is one.
pub(crate) fn uncommittable_reason<P>(
    settings: &Settings,
    lane: &LaneRecord<P>,
    path: &RepoPath,
) -> Option<String> {
    if !unreadable_paths(&lane.path, [path]).is_empty() {
        return Some(format!("{path} is not readable"));
    }
    if has_conflict_markers(lane, path) {
        return Some(format!("{path} has conflict markers"));
    }
    let mib = oversize_mib(settings, lane, path)?;
    Some(format!("{path} has {mib} MiB, more than agent.autocommit_limit"))
}

/// Returns a file's size in MiB if it exceeds the setting `agent.autocommit_limit`. Larger files need the
/// user's consent, because history keeps them forever.
fn oversize_mib<P>(settings: &Settings, lane: &LaneRecord<P>, path: &RepoPath) -> Option<u64> {
    let limit = settings.autocommit_limit?;
    let meta = path.to_fs_path(&lane.path).symlink_metadata().ok()?;
    (meta.is_file() && meta.len() > limit).then_some(meta.len() / (1024 * 1024))
}

fn has_conflict_markers<P>(lane: &LaneRecord<P>, path: &RepoPath) -> bool {
    let file = path.to_fs_path(&lane.path);
    if !file.symlink_metadata().is_ok_and(|m| m.is_file() && m.len() <= MAX_MARKER_SCAN_BYTES) {
        return false;
    }
    let Ok(file) = std::fs::File::open(&file) else { return false };
    let (mut lines, mut line) = (BufReader::new(file), Vec::new());
    let mut markers = ConflictMarkerScanner::default();
    while lines.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        if markers.scan_line(&line) {
            return true;
        }
        line.clear();
    }
    false
}

/// Returns whether a text has the three marker lines of a conflict, in order.
pub(crate) fn contains_conflict_markers(text: &[u8]) -> bool {
    let mut markers = ConflictMarkerScanner::default();
    text.split(|b| *b == b'\n').any(|line| markers.scan_line(line))
}

/// Scanner for the three marker lines of a conflict, in order.
#[derive(Default)]
struct ConflictMarkerScanner {
    markers_found: usize,
    /// Length of the current conflict's marker lines: seven, or the value of the attribute
    /// `conflict-marker-size`.
    marker_len: usize,
}

impl ConflictMarkerScanner {
    /// Reads the next line. Returns whether it completes a conflict.
    fn scan_line(&mut self, line: &[u8]) -> bool {
        const MIN_MARKER_LEN: usize = 7;
        const MARKER_CHARS: [u8; 3] = *b"<=>";
        let run_len = line.iter().take_while(|b| **b == MARKER_CHARS[self.markers_found]).count();
        let is_delimited = matches!(line.get(run_len), None | Some(b' ' | b'\r' | b'\n'));
        // The first and the last marker are followed by a space and the name of their side.
        let is_marker = is_delimited && (self.markers_found == 1 || line.get(run_len) == Some(&b' '));
        if !is_marker || run_len < MIN_MARKER_LEN || (self.markers_found > 0 && run_len != self.marker_len) {
            return false;
        }
        self.marker_len = run_len;
        self.markers_found += 1;
        self.markers_found == MARKER_CHARS.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requires_all_three_markers_in_order() {
        assert!(contains_conflict_markers(b"a\n<<<<<<< ours\nb\n=======\nc\n>>>>>>> theirs\n"));
        assert!(contains_conflict_markers(b"<<<<<<<<<<< ours\r\n===========\r\n>>>>>>>>>>> theirs\r\n"));
        assert!(!contains_conflict_markers(b"<<<<<<<<<<< ours\n=======\n>>>>>>> theirs\n"));
        assert!(!contains_conflict_markers(b"Title\n=======\n"));
        assert!(!contains_conflict_markers(b">>>>>>> x\n=======\n<<<<<<< y\n"));
        assert!(!contains_conflict_markers(b"    <<<<<<< x\n=======\n>>>>>>> y\n"));
    }
}
