//! Health checks for leftovers of crashed processes: git's lock files and partly written records.

use std::path::Path;
use std::time::{Duration, SystemTime};

use proq_base::explain::shell_quote_path as quoted;
use proq_base::lane_name::LaneName;
use proq_base::process::identity::start_time_of;
use proq_git::worktrees::health_probe::lock_owner_pid;
use proq_store::base::id::pid_from_id;
use proq_store::records::lane::LaneRecord;

use super::check_context::CheckContext;
use super::finding::Finding;
use super::repair::Repair;

/// Age at which a git lock file counts as stale. No running git command holds one for so long, unless its
/// editor is open.
const STALE_LOCK_AGE: Duration = Duration::from_mins(5);

/// Age from which a partly written file may be moved out of the way.
const PARK_MIN_AGE: Duration = Duration::from_hours(24);

/// Checks lock files and partly written files.
pub(super) fn check(context: &CheckContext<'_>) -> Vec<Finding> {
    let mut out = Vec::new();
    for lock in context.project.repo.lock_files() {
        out.extend(check_lock_file(context, &lock));
    }
    out.extend(unfinished_files(context));
    out
}

/// Returns the time since a file was modified; none when the file is missing.
fn age(path: &Path) -> Option<Duration> {
    let modified = path.symlink_metadata().ok()?.modified().ok()?;
    Some(SystemTime::now().duration_since(modified).unwrap_or_default())
}

/// Returns whether no process with this id exists.
fn has_exited(pid: u32) -> bool {
    start_time_of(pid).is_none()
}

/// Returns the lane whose last run left this lock on its index: the lock is older than the record of the
/// run's end, and no agent works in the lane.
fn lane_of_lock(context: &CheckContext<'_>, lock: &Path) -> Option<LaneName> {
    let project = context.project;
    let owns_lock = |lane: &&LaneRecord| {
        let index = project.repo.worktree_git_dir(&lane.path).map(|git_dir| git_dir.join("index.lock"));
        index.is_ok_and(|index| index == lock)
    };
    let lane = context.lanes.iter().filter(|lane| !context.is_locked(lane.name.as_str())).find(owns_lock)?;
    let modified_at = |path: &Path| path.symlink_metadata().ok()?.modified().ok();
    let run_end = modified_at(&project.store.layout().run_record(&lane.name, lane.last_run))?;
    (modified_at(lock)? <= run_end).then(|| lane.name.clone())
}

/// Checks a git lock file: returns a finding if its process has exited, or it is old or left by a finished
/// run.
fn check_lock_file(context: &CheckContext<'_>, lock: &Path) -> Option<Finding> {
    let age = age(lock)?;
    let owner = lock_owner_pid(lock);
    let origin = match owner {
        Some(pid) if has_exited(pid) => format!("of git-proq process {pid}, which has ended"),
        None if age > STALE_LOCK_AGE => format!("{} minutes old", age.as_secs() / 60),
        None => format!("left by the last run of lane '{}', which has ended", lane_of_lock(context, lock)?),
        _ => return None,
    };
    let message = format!("{} ({origin}) prevents git from changing what it locks", lock.display());
    Some(
        Finding::error("git-lock", lock.display().to_string(), message)
            .with_help(format!("rm {}", quoted(lock)))
            .with_left_reason("only you can tell that no git command is running there"),
    )
}

/// Finds partly written files in the store whose process has exited.
fn unfinished_files(context: &CheckContext<'_>) -> Vec<Finding> {
    let mut out = Vec::new();
    for file in context.project.store.layout().unfinished_files() {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !pid_from_id(&name).is_some_and(has_exited) {
            continue;
        }
        let message = format!(
            "{} is the unfinished file of a crashed process; the record itself is intact",
            file.display()
        );
        let found = Finding::warning("half-written", name, message).with_help("git proq doctor --fix");
        out.push(if age(&file).is_some_and(|a| a > PARK_MIN_AGE) {
            found.with_repair(Repair::ParkFile(file))
        } else {
            found.with_left_reason("it is less than a day old")
        });
    }
    out
}
