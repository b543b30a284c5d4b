//! Actions after a commit in a lane: an event, and a background process that checks the commit's effect on
//! the preview and other lanes.

use std::path::Path;

use proq_base::diagnostics::Listener;
use proq_base::lane_name::LaneName;
use proq_base::process::command_builder::CommandBuilder;
use proq_base::process::strays::RUN_CONTEXT_VARS;
use proq_store::Store;
use proq_store::base::atomic::write_unsynced;
use proq_store::base::record::Record;
use proq_store::locks::lock::{LockGuard, LockName};
use proq_store::records::lane::LaneRecord;
use proq_store::records::preview::PreviewRecord;

use super::hook_call::HookCall;
use crate::event::log::EventName;
use crate::lane::Project;

/// Maximum number of characters of a commit's subject in the event.
const MAX_SUBJECT_CHARS: usize = 72;

/// Emits an event about a commit that a lane's agent made, and starts the check of its effects. Failures are
/// ignored, since they are no reason to disturb the commit.
pub(super) fn handle_agent_commit(dir: &Path, hook: &HookCall<'_>) {
    // During a rebase, which makes many commits, HEAD is not on the lane's branch.
    let detached = hook.repo.head_content().is_some_and(|head| !head.starts_with("ref: "));
    if detached || hook.repo.git_dir != hook.record.git_dir {
        return;
    }
    let Ok(project) = Project::open(dir, Listener::silent()) else { return };
    if let Ok(lane) = project.lane(&hook.record.lane) {
        announce_and_check_commit(&project, &lane);
    }
}

/// Emits an event about a commit that a user made in a lane, and starts the check of its effects. The hook of
/// `git proq hooks install` calls it. A commit outside lanes is ignored.
pub fn handle_user_commit(project: &Project) {
    let Some(worktree) = project.repo.current_worktree() else { return };
    if let Ok(Some(lane)) = project.owned_lane_at(worktree) {
        announce_and_check_commit(project, &lane);
    }
}

/// Emits an event about the newest commit of a lane's branch, and starts the check of its effects. Does
/// nothing while HEAD is not on the branch.
fn announce_and_check_commit(project: &Project, lane: &LaneRecord) {
    // During a rebase HEAD is not on the branch, and the branch has not moved yet.
    let Ok(Some(head)) = project.repo.current_head_name() else { return };
    let Ok(Some(tip)) = project.repo.branch_tip(&lane.kind.branch) else { return };
    if head != lane.kind.branch {
        return;
    }
    let subject = project.repo.commit_subject(tip).unwrap_or_default();
    let subject: String = subject.chars().take(MAX_SUBJECT_CHARS).collect();
    let message = format!("lane '{}': {} {subject}", lane.name, tip.short());
    project.emit(EventName::LaneCommitted, Some(lane), message.trim_end());
    if affects_preview_or_lanes(project, lane) {
        start_commit_check(project, lane);
    }
}

/// Returns whether the main checkout previews the lane, or another lane shares its base.
fn affects_preview_or_lanes(project: &Project, lane: &LaneRecord) -> bool {
    let preview = PreviewRecord::load_if_exists(&project.store.layout().preview_record()).ok().flatten();
    preview.is_some_and(|open| open.lane == lane.name)
        || project.owned_lanes().is_ok_and(|lanes| lanes.iter().any(|other| lane.may_conflict_with(other)))
}

/// Starts a process that checks how a lane's new commits affect the preview and other lanes. A process that
/// is already running checks them too, so no second one is started.
fn start_commit_check(project: &Project, lane: &LaneRecord) {
    let store = &project.store;
    if write_unsynced(&store.layout().new_commit_marker(&lane.name), b"").is_err() {
        return;
    }
    if store.locks().is_held(&LockName::NewCommits(lane.name.clone())).unwrap_or(true) {
        return;
    }
    let Ok(program_path) = project.git_proq_path() else { return };
    let command = CommandBuilder::new(program_path, project.repo.command_dir()).args([
        "_moved",
        "--lane",
        lane.name.as_str(),
    ]);
    drop(command.without_vars(RUN_CONTEXT_VARS).spawn_detached());
}

/// Acquires the lock for checking a lane's new commits; none when another process has the lock. After
/// releasing it, the caller must call [`has_new_commits`]: a hook that ran just before relies on the lock's
/// holder to check its commit.
pub fn claim_new_commits(store: &Store, lane: &LaneName) -> Option<LockGuard> {
    let lock = store.locks().try_acquire(&LockName::NewCommits(lane.clone())).ok().flatten()?;
    drop(std::fs::remove_file(store.layout().new_commit_marker(lane)));
    Some(lock)
}

/// Returns whether a lane has new commits that no process has claimed.
pub fn has_new_commits(store: &Store, lane: &LaneName) -> bool {
    store.layout().new_commit_marker(lane).exists()
}
