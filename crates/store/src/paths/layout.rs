//! Paths of everything below `proq/`. Only this module and its extensions join these paths.

use std::path::{Path, PathBuf};

use proq_base::lane_name::LaneName;

use crate::base::file_access::may_exist;
use crate::base::operation_number::OperationNumber;
use crate::base::run_number::RunNumber;
use crate::base::store_names::STORE_DIR;

/// Name of the folder of all lanes.
pub(super) const LANES_DIR: &str = "lanes";

/// Name of the folder of removed lanes.
pub(super) const HISTORY_DIR: &str = "history";

/// Name of the trash.
pub(super) const TRASH_DIR: &str = "trash";

/// Name, in a snapshot's folder, of the folder with copies of ignored files.
pub(super) const SNAPSHOT_IGNORED_DIR: &str = "ignored";

/// Paths of one repository's store.
#[derive(Debug, Clone)]
pub struct Layout {
    root: PathBuf,
}

impl Layout {
    /// Creates the layout below a common git directory.
    pub fn new(common_dir: &Path) -> Layout {
        Layout { root: common_dir.join(STORE_DIR) }
    }

    /// Returns the `proq` folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the folder of all lanes.
    pub fn lanes(&self) -> PathBuf {
        self.root.join(LANES_DIR)
    }

    /// Returns the folder of one lane, with its record, its task and its runs.
    pub fn lane(&self, name: &LaneName) -> PathBuf {
        self.lanes().join(name.as_str())
    }

    /// Returns the path of a lane's record.
    pub fn lane_record(&self, name: &LaneName) -> PathBuf {
        Layout::lane_record_in(&self.lane(name))
    }

    /// Returns whether a lane of this name has a record. Also true where permissions prevent the check.
    pub fn has_lane_record(&self, name: &LaneName) -> bool {
        may_exist(&self.lane_record(name))
    }

    /// Returns the path of the prompt of a lane's task.
    pub fn task_prompt(&self, name: &LaneName) -> PathBuf {
        Layout::task_prompt_in(&self.lane(name))
    }

    /// Returns the path of the output of a lane's supervisors. It is empty unless something went wrong.
    pub fn supervisor_log(&self, name: &LaneName) -> PathBuf {
        self.lane(name).join("supervisor.log")
    }

    /// Returns the path of the report of a lane's agent.
    pub fn lane_report(&self, name: &LaneName) -> PathBuf {
        Layout::lane_report_in(&self.lane(name))
    }

    /// Returns the path of the record of the supervising agent's last session.
    pub fn overseer_session(&self) -> PathBuf {
        self.root.join("supervisor/session.toml")
    }

    /// Returns the path of the settings file of the supervising agent.
    pub fn overseer_settings(&self) -> PathBuf {
        self.root.join("supervisor/settings.json")
    }

    /// Returns the folder of the records of removed lanes, in subfolders named `name@N`.
    pub fn removed_lanes(&self) -> PathBuf {
        self.root.join(HISTORY_DIR)
    }

    /// Returns the folder of a removed lane, by its name in the history, `name@N`.
    pub fn removed_lane(&self, removed_name: &str) -> PathBuf {
        self.removed_lanes().join(removed_name)
    }

    /// Returns the path of the record of a lane's conflict.
    pub fn conflict_record(&self, name: &LaneName) -> PathBuf {
        Layout::conflict_record_in(&self.lane(name))
    }

    /// Returns the path of the last known status of a lane's pull request.
    pub fn pull_request_status(&self, name: &LaneName) -> PathBuf {
        Layout::pull_request_status_in(&self.lane(name))
    }

    /// Returns the path of the record of a lane's failed check.
    pub fn failed_check_record(&self, name: &LaneName) -> PathBuf {
        Layout::failed_check_record_in(&self.lane(name))
    }

    /// Returns the path of the output of a failed check, relative to a lane's folder.
    pub fn check_log_in_lane(id: &str) -> PathBuf {
        Path::new("checks").join(format!("{id}.log"))
    }

    /// Returns the path of the output of the last check that refused a landing without fault of a lane.
    pub fn refused_check_log(&self) -> PathBuf {
        self.root.join("cache/refused-check.log")
    }

    /// Returns the folder of the verify cache, with a file for each state that passed its checks.
    pub fn verify_cache(&self) -> PathBuf {
        self.root.join("cache/verify")
    }

    /// Returns the path of the file in the verify cache for the state with this id.
    pub fn verify_cache_entry(&self, id: &str) -> PathBuf {
        self.verify_cache().join(format!("{id}.toml"))
    }

    /// Returns the path of the record of the process that works in the `n`-th check worktree.
    pub fn check_worktree_record(&self, n: usize) -> PathBuf {
        self.root.join(format!("cache/slot-{n}.toml"))
    }

    /// Returns the path of the record of the completed set-up of the `n`-th check worktree.
    pub fn check_set_up_record(&self, n: usize) -> PathBuf {
        self.root.join(format!("cache/slot-{n}-setup.toml"))
    }

    /// Returns the path of the output of the commands in the `n`-th check worktree.
    pub fn check_worktree_log(&self, n: usize) -> PathBuf {
        self.root.join(format!("cache/slot-{n}.log"))
    }

    /// Returns the path of the list of the repository's commands that the user has approved.
    pub fn approvals_record(&self) -> PathBuf {
        self.root.join("approved.toml")
    }

    /// Returns the path of the record of a lane's conflict that is being resolved.
    pub fn resolution_record(&self, name: &LaneName) -> PathBuf {
        Layout::resolution_record_in(&self.lane(name))
    }

    /// Returns the path of the record of a lane's task loop.
    pub fn task_loop_record(&self, name: &LaneName) -> PathBuf {
        Layout::task_loop_record_in(&self.lane(name))
    }

    /// Returns the path of the marker that requests all runs of a lane to finish their work and end.
    pub fn lane_wrap_up_marker(&self, name: &LaneName) -> PathBuf {
        self.lane(name).join("wrap-up")
    }

    /// Returns the folder of the data that a lane's agent retains between runs.
    pub fn agent_data_dir(&self, name: &LaneName) -> PathBuf {
        self.lane(name).join("agent")
    }

    /// Returns the folder of the files attached to a lane's task.
    pub fn task_attachments(&self, name: &LaneName) -> PathBuf {
        Layout::attachments_in(&self.lane(name))
    }

    /// Returns the folder of the files attached to later messages for a lane's agent. It has a subfolder for
    /// each message.
    pub fn message_files(&self, name: &LaneName) -> PathBuf {
        self.lane(name).join("said-files")
    }

    /// Returns the folder of the files attached to a removed lane's task, by the lane's name in the history.
    pub fn removed_lane_attachments(&self, removed_name: &str) -> PathBuf {
        Layout::attachments_in(&self.removed_lane(removed_name))
    }

    /// Returns the path of the file with the name of the lane whose agent worked in the main checkout last.
    pub fn last_in_place_lane_file(&self) -> PathBuf {
        self.root.join("in-place")
    }

    /// Returns the folder of plan drafts: plans that agents wrote and that were not run yet. Each has its own
    /// subfolder.
    pub fn plan_drafts(&self) -> PathBuf {
        self.root.join("plans")
    }

    /// Returns the folder of one plan draft.
    pub fn plan_draft(&self, name: &str) -> PathBuf {
        self.plan_drafts().join(name)
    }

    /// Returns the path of the record in the folder of a plan draft.
    pub fn draft_record(folder: &Path) -> PathBuf {
        folder.join("draft.toml")
    }

    /// Returns the path of a plan by its number, in the folder of a plan draft.
    pub fn draft_plan(folder: &Path, number: u64) -> PathBuf {
        folder.join(format!("{number}.toml"))
    }

    /// Returns the path of the first prompt of the draft's agent, in the folder of a plan draft.
    pub fn draft_prompt(folder: &Path) -> PathBuf {
        folder.join("prompt.md")
    }

    /// Returns the path of the copy of a user's file that a plan has overwritten.
    pub fn overwritten_file_copy(&self, id: &str) -> PathBuf {
        self.root.join(format!("replaced/{id}"))
    }

    /// Returns the path of the dependencies that agents proposed for the tasks with this hash.
    pub fn dependency_proposals(&self, hash: &str) -> PathBuf {
        self.root.join(format!("needs/{hash}.toml"))
    }

    /// Returns the path of the record of the open preview. It exists while a preview is open.
    pub fn preview_record(&self) -> PathBuf {
        self.root.join("preview.toml")
    }

    /// Returns the folder of a snapshot, with its record, the raw index and the parked files.
    pub fn snapshot(&self, id: &str) -> PathBuf {
        self.snapshots().join(id)
    }

    /// Returns the folder of the copies of ignored files in an automatic snapshot.
    pub fn snapshot_ignored_files(&self, id: &str) -> PathBuf {
        self.snapshot(id).join(SNAPSHOT_IGNORED_DIR)
    }

    /// Returns the folder of the trash: removed items, kept until they expire.
    pub fn trash(&self) -> PathBuf {
        self.root.join(TRASH_DIR)
    }

    /// Returns the folder of the git guards, which restrict the git commands of agents. It has a subfolder
    /// for each run.
    pub fn git_guards(&self) -> PathBuf {
        self.root.join("fences")
    }

    /// Returns the folder of the git guard of a run.
    pub fn git_guard(&self, name: &LaneName, run: RunNumber) -> PathBuf {
        self.git_guards().join(format!("{name}-{run}"))
    }

    /// Returns the folder of the hooks in a git guard. Git is configured to use it.
    pub fn git_guard_hooks(guard_dir: &Path) -> PathBuf {
        guard_dir.join("hooks")
    }

    /// Returns the path of the program that the hooks of a git guard start.
    pub fn git_guard_program(guard_dir: &Path) -> PathBuf {
        guard_dir.join("program")
    }

    /// Returns the path of a git guard's record of its run.
    pub fn git_guard_record(guard_dir: &Path) -> PathBuf {
        guard_dir.join("fence.toml")
    }

    /// Returns the path of the baseline: the state of other worktrees when the run started.
    pub fn git_guard_baseline(guard_dir: &Path) -> PathBuf {
        guard_dir.join("sight.toml")
    }

    /// Returns the path of a marker that is created once it has been reported that the run moved HEAD in
    /// worktree `tree`.
    pub fn git_guard_head_move_reported(guard_dir: &Path, tree: &str) -> PathBuf {
        guard_dir.join(format!("told-{tree}"))
    }

    /// Returns the path of a list of a git guard, with one entry on each line. `refs` has the refs that
    /// existed when the run started. The guard's hooks write the other lists:
    ///
    /// - `made`: branches and tags that the run created.
    /// - `kept`: branches and tags that the run created and that were kept.
    /// - `to-keep`: objects that could not be given a ref, with the refs that they should get.
    pub fn git_guard_list(guard_dir: &Path, name: &str) -> PathBuf {
        guard_dir.join(name)
    }

    /// Returns the git guard that a hook belongs to, and the common git directory above it.
    pub fn git_guard_of_hook(hook: &Path) -> Option<(PathBuf, PathBuf)> {
        let guard_dir = hook.parent()?.parent()?;
        let root = guard_dir.parent()?.parent()?;
        Some((guard_dir.to_owned(), root.parent()?.to_owned()))
    }

    /// Returns the path of the marker that is created when a lane gets a commit. It exists until the commit
    /// has been processed.
    pub fn new_commit_marker(&self, name: &LaneName) -> PathBuf {
        self.lane(name).join("moved")
    }

    /// Returns the path of the clock history.
    pub(crate) fn clock_record(&self) -> PathBuf {
        self.root.join("clock.toml")
    }

    /// Returns the path of the cache of git programs whose versions were found suitable.
    pub fn git_version_cache(&self) -> PathBuf {
        self.root.join("cache/git.toml")
    }

    /// Returns the folder of the cache of merge forecasts.
    pub fn forecast_cache(&self) -> PathBuf {
        self.root.join("cache/forecast")
    }

    /// Returns the path of the cache of overlaps: the lanes that conflicted with each other when last
    /// checked.
    pub fn overlap_cache(&self) -> PathBuf {
        self.root.join("cache/overlaps")
    }

    /// Returns the path of the marker of the last attempt to have git write a commit graph.
    pub fn commit_graph_attempt_marker(&self) -> PathBuf {
        self.root.join("cache/commit-graph")
    }

    /// Returns the path of the cache of blobs whose size was found to equal that of their files.
    pub fn blob_size_cache(&self) -> PathBuf {
        self.root.join("cache/sizes")
    }

    /// Returns the folder of the caches of worktree scans, one for each lane.
    pub fn worktree_scan_caches(&self) -> PathBuf {
        self.root.join("cache/looks")
    }

    /// Returns the path of the cache of a lane's last worktree scan.
    pub fn worktree_scan_cache(&self, name: &LaneName) -> PathBuf {
        self.worktree_scan_caches().join(name.as_str())
    }

    /// Returns the folder of lock files.
    pub(crate) fn locks_dir(&self) -> PathBuf {
        self.root.join("locks")
    }

    /// Returns the folder that contains the scratch folders of all processes.
    pub fn scratch_root(&self) -> PathBuf {
        self.root.join("work")
    }

    /// Returns the path that a scratch folder is moved to if the user has to inspect it.
    pub fn parked_scratch_dir(&self, id: &str) -> PathBuf {
        self.root.join(format!("aside-{id}"))
    }

    /// Returns the folder of the operation log, with a file for each operation, named by its number.
    pub fn operations(&self) -> PathBuf {
        self.root.join("ops")
    }

    /// Returns the path of one operation in the log.
    pub fn operation(&self, number: OperationNumber) -> PathBuf {
        self.operations().join(format!("{number}.jsonl"))
    }

    /// Returns the path of the trace of a failed operation, by its number in the log; without a number, of the
    /// last one that failed and has none, since nothing of it is in effect or it is not recovered yet.
    pub fn operation_trace(&self, number: Option<OperationNumber>) -> PathBuf {
        self.root.join("traces").join(number.map_or_else(|| "last".to_owned(), |n| n.to_string()))
    }

    /// Returns the folder of all snapshots.
    pub fn snapshots(&self) -> PathBuf {
        self.root.join("snaps")
    }
}
