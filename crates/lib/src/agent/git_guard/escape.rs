//! Detection of changes that a run made outside its lane, with a certainty that matches the evidence.
//!
//! Users edit and commit in the main checkout while agents run, so that a change there proves little (see
//! `worktree_baseline.rs`). Two facts are stronger evidence: git ran in another worktree with the hooks of
//! this run, which is certain; or a file changed during the run and its absolute path is in the run's output,
//! which is likely.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use proq_base::diagnostics::Listener;
use proq_base::lane_name::LaneName;
use proq_git::RepoPath;
use proq_git::base::error;
use proq_git::status::status_query;
use proq_store::base::run_number::RunNumber;
use proq_store::paths::layout::Layout;
use proq_store::records::lane::AnyLane;

use super::hook_call::HookCall;
use super::log_lines::for_each_line;
use super::ref_update::RefUpdate;
use crate::event::log::{Certainty, Event, EventName};
use crate::lane::Project;
use crate::lane::state::in_place_guard;

/// Bytes that end a path in a log, besides white space: quotes and brackets of every format, and the
/// punctuation after a path in prose.
const PATH_TERMINATORS: &[u8] = b"\"'`\\,;:|&<>()[]{}=*?#$";

/// Maximum number of named paths per worktree. A log that lists an entire repository names no file in
/// particular.
const MAX_NAMED_PATHS: usize = 1000;

/// A worktree other than the run's own.
pub(super) struct OtherWorktree {
    /// Name of its lane; none for the main checkout.
    pub(super) lane: Option<LaneName>,
    pub(super) root: PathBuf,
}

/// Paths that were reported as changed in each worktree, by the name of its lane.
pub(super) type ReportedPaths = BTreeMap<Option<LaneName>, BTreeSet<RepoPath>>;

impl OtherWorktree {
    pub(super) fn describe(&self) -> String {
        self.lane.as_ref().map_or_else(|| "the main checkout".to_owned(), |lane| format!("lane '{lane}'"))
    }
}

/// Reports that git in the run wrote HEAD of the main checkout or of another lane, once per run and worktree.
pub(super) fn report_head_change(dir: &Path, hook: &HookCall<'_>, input: &[u8]) {
    let Some(head) = hook.repo.head_content() else { return };
    let target_ref = head.strip_prefix("ref: ");
    // A worktree that is being created elsewhere has a HEAD too, and git does not name the worktree of an
    // update.
    let writes_head = |update: &RefUpdate<'_>| match target_ref {
        Some(branch) => update.name == branch || update.new.strip_prefix(b"ref:") == Some(branch.as_bytes()),
        None => update.name == "HEAD" && update.new == head.as_bytes(),
    };
    let updates: Vec<RefUpdate<'_>> = RefUpdate::parse_all(input).collect();
    if !updates.iter().any(|update| update.name == "HEAD") || !updates.iter().any(writes_head) {
        return;
    }
    let Ok(project) = Project::open(dir, Listener::silent()) else { return };
    let Some(worktree) = find_worktree(&project, &hook.repo.git_dir) else { return };
    let report_mark = Layout::git_guard_head_move_reported(
        &hook.guard_dir,
        worktree.lane.as_ref().map_or("@main", LaneName::as_str),
    );
    if File::create_new(report_mark).is_err() {
        return;
    }
    let lane = &hook.record.lane;
    let message =
        format!("the agent of lane '{lane}' ran git in {}, which wrote HEAD there", worktree.describe());
    emit_outside_change(&project, lane, &worktree, message, Vec::new(), Certainty::Certain);
}

/// Finds the main checkout or a lane's worktree by its git directory; none for any other worktree.
fn find_worktree(project: &Project, git_dir: &Path) -> Option<OtherWorktree> {
    if git_dir == project.repo.common_dir() {
        return Some(OtherWorktree { lane: None, root: project.repo.main_worktree()?.to_owned() });
    }
    let id = git_dir.file_name()?.to_str()?;
    let lanes = project.owned_lanes().ok()?;
    let lane = lanes.into_iter().find(|lane| lane.kind.worktree_id == id)?;
    Some(OtherWorktree { lane: Some(lane.name), root: lane.path })
}

/// Reports files in the main checkout and in idle lanes that changed during a run and whose absolute paths
/// are in the run's output. The file time of the guard's record counts as the start of the run. Returns the
/// reported paths.
pub(super) fn report_changed_files(
    project: &Project,
    lane: &AnyLane,
    run_number: RunNumber,
    guard_dir: &Path,
) -> ReportedPaths {
    let mut reported = ReportedPaths::new();
    let Ok(run_start) = Layout::git_guard_record(guard_dir).metadata() else { return reported };
    let log = project.store.layout().run_log(&lane.name, run_number);
    let worktrees = list_other_idle_worktrees(project, lane);
    let named_paths = find_named_paths(&log, &worktrees, &project.lanes_dir());
    for (worktree, named_paths) in worktrees.into_iter().zip(named_paths) {
        let is_changed = |path: &RepoPath| changed_since(&path.to_fs_path(&worktree.root), &run_start);
        let paths: Vec<RepoPath> = named_paths.into_iter().filter(is_changed).collect();
        if paths.is_empty() {
            continue;
        }
        let Ok(worktree_status) = status_query::status(&project.repo, &worktree.root, true) else { continue };
        let dirty: BTreeSet<RepoPath> = worktree_status.paths().into_iter().collect();
        let paths: Vec<RepoPath> = paths.into_iter().filter(|path| dirty.contains(path)).collect();
        if !paths.is_empty() {
            let message = format!(
                "while the agent of lane '{}' ran, files that its output names changed in {}: {}; git-proq does not know who changed them",
                lane.name,
                worktree.describe(),
                error::list_paths(&paths)
            );
            reported.entry(worktree.lane.clone()).or_default().extend(paths.iter().cloned());
            emit_outside_change(project, &lane.name, &worktree, message, paths, Certainty::Likely);
        }
    }
    reported
}

/// Lists the worktrees in which no agent works: the main checkout, and those of other lanes.
fn list_other_idle_worktrees(project: &Project, lane: &AnyLane) -> Vec<OtherWorktree> {
    let main = project
        .repo
        .main_worktree()
        .filter(|_| {
            // Another run may be working there.
            !lane.works_in_place() && matches!(in_place_guard::lane_running_in_place(project, None), Ok(None))
        })
        .map(|root| OtherWorktree { lane: None, root: root.to_owned() });
    let other_lanes = project.owned_lanes().unwrap_or_default().into_iter();
    let idle_lanes = other_lanes.filter(|other| {
        other.name != lane.name
            && !other.status.run.is_claimed()
            && !other.status.landing.is_closed()
            && other.path.is_dir()
    });
    main.into_iter()
        .chain(idle_lanes.map(|other| OtherWorktree { lane: Some(other.name), root: other.path }))
        .collect()
}

/// Returns whether a file changed after the run started. For a removed file, the time of its folder counts.
pub(super) fn changed_since(path: &Path, run_start: &std::fs::Metadata) -> bool {
    let metadata = path.symlink_metadata().or_else(|_| path.parent().unwrap_or(path).symlink_metadata());
    metadata.is_ok_and(|meta| {
        (meta.ctime(), meta.ctime_nsec()) >= (run_start.mtime(), run_start.mtime_nsec()) && !meta.is_dir()
            || meta.is_dir()
                && !path.exists()
                && (meta.mtime(), meta.mtime_nsec()) >= (run_start.mtime(), run_start.mtime_nsec())
    })
}

/// Returns, for each of the worktrees, the paths inside it that a log names. The log is read only once.
fn find_named_paths(log: &Path, worktrees: &[OtherWorktree], lanes_dir: &Path) -> Vec<BTreeSet<RepoPath>> {
    let mut out = vec![BTreeSet::new(); worktrees.len()];
    let with_slash = |dir: &Path| [dir.as_os_str().as_bytes(), b"/"].concat();
    let roots: Vec<Vec<u8>> = worktrees.iter().map(|worktree| with_slash(&worktree.root)).collect();
    let lanes_prefix = with_slash(lanes_dir);
    // Lanes are usually inside the main checkout, so that one prefix is common to all paths.
    let mut prefixes: Vec<&[u8]> = roots.iter().map(Vec::as_slice).collect();
    prefixes.sort_unstable();
    prefixes.dedup_by(|longer, shorter| longer.starts_with(shorter));
    for_each_line(log, |line| {
        for prefix in &prefixes {
            for_each_path_below(line, prefix, |path| {
                let relative_to = |root: &Vec<u8>| path.strip_prefix(root.as_slice());
                let Some(index) = (0..roots.len())
                    .filter(|index| relative_to(&roots[*index]).is_some())
                    .max_by_key(|index| roots[*index].len())
                else {
                    return;
                };
                // A path in the folder of lanes is no file of the main checkout.
                let is_in_lanes_dir =
                    path.starts_with(&lanes_prefix) && !roots[index].starts_with(&lanes_prefix);
                if let (false, Some(relative_path)) =
                    (is_in_lanes_dir || out[index].len() >= MAX_NAMED_PATHS, relative_to(&roots[index]))
                {
                    add_path(relative_path, &mut out[index]);
                }
            });
        }
        true
    });
    out
}

/// Passes each absolute path in a line that begins with `prefix` to `each`.
fn for_each_path_below(line: &[u8], prefix: &[u8], mut each: impl FnMut(&[u8])) {
    let mut remaining = line;
    while let Some(offset) = find_bytes(remaining, prefix) {
        let path = &remaining[offset..];
        let relative = &path[prefix.len()..];
        let end = relative.iter().position(|b| b.is_ascii_whitespace() || PATH_TERMINATORS.contains(b));
        each(&path[..prefix.len() + end.unwrap_or(relative.len())]);
        remaining = relative;
    }
}

/// Adds a path inside a worktree, with and without a final full stop, which may end the sentence rather than
/// the name.
fn add_path(path: &[u8], out: &mut BTreeSet<RepoPath>) {
    for path in [path, path.trim_ascii_end().strip_suffix(b".").unwrap_or_default()] {
        let is_plain = |component: &OsStr| component != ".git" && component != "." && component != "..";
        let components = Path::new(OsStr::from_bytes(path)).iter();
        if !path.is_empty() && components.clone().count() > 0 && components.clone().all(is_plain) {
            out.insert(RepoPath::new(path));
        }
    }
}

/// Returns the offset of the first occurrence of `needle`; none without one.
fn find_bytes(text: &[u8], needle: &[u8]) -> Option<usize> {
    let first_byte = *needle.first()?;
    let mut start = 0;
    while let Some(offset) = text[start..].iter().position(|b| *b == first_byte) {
        if text[start + offset..].starts_with(needle) {
            return Some(start + offset);
        }
        start += offset + 1;
    }
    None
}

/// Emits an event about a change that a run made, with this certainty, in another worktree.
pub(super) fn emit_outside_change(
    project: &Project,
    lane: &LaneName,
    worktree: &OtherWorktree,
    message: String,
    paths: Vec<RepoPath>,
    certainty: Certainty,
) {
    let mut event = Event::new(EventName::LaneEscape, message);
    event.state = project.any_lane(lane).ok().map(|lane| lane.state().to_string());
    event.lane = Some(lane.to_string());
    event.other = worktree.lane.as_ref().map(ToString::to_string);
    event.certainty = Some(certainty);
    event.paths = paths.into_iter().take(MAX_NAMED_PATHS / 10).collect();
    project.emit_event(event);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_named_paths_in_any_output() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let line = br#"{"path":"/r/a.rs","n":"/r/x/b.rs:12"} wrote /r/c.txt. and `/r/d` /r/.git/config /r/../e /rest/f /r/ /r/l/x/a /r/l/y/b /q/z"#;
        std::fs::write(&log, line).unwrap();
        let worktree = |top: &str| OtherWorktree { lane: None, root: PathBuf::from(top) };
        let named_paths =
            find_named_paths(&log, &[worktree("/r"), worktree("/r/l/x"), worktree("/q")], Path::new("/r/l"));
        let shown = |paths: &BTreeSet<RepoPath>| paths.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(shown(&named_paths[0]), ["a.rs", "c.txt", "c.txt.", "d", "x/b.rs"]);
        assert_eq!(
            (shown(&named_paths[1]), shown(&named_paths[2])),
            (vec!["a".to_owned()], vec!["z".to_owned()])
        );
    }
}
