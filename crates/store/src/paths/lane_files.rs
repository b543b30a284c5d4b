//! Paths of the files in a lane's folder, by the folder: it may be that of a removed lane, or a draft.

use std::path::{Path, PathBuf};

use super::layout::{HISTORY_DIR, LANES_DIR, Layout};
use crate::base::store_names::STORE_DIR;

/// File name suffix of messages.
const MESSAGE_SUFFIX: &str = ".toml";

/// File name of a lane's record.
const LANE_RECORD: &str = "lane.toml";

/// File name of the record of a conflict that is being resolved.
const RESOLUTION_RECORD: &str = "resolve.toml";

impl Layout {
    /// Returns whether a path is the folder of a lane, in any repository: the repository may have been moved
    /// since.
    pub fn is_lane_folder(path: &Path) -> bool {
        is_in_store_dir(path, LANES_DIR)
    }

    /// Returns whether a path is the folder of a removed lane, in any repository: the repository may have
    /// been moved since.
    pub fn is_removed_lane_folder(path: &Path) -> bool {
        is_in_store_dir(path, HISTORY_DIR)
    }

    /// Returns the path of the record in a lane's folder.
    pub fn lane_record_in(lane_folder: &Path) -> PathBuf {
        lane_folder.join(LANE_RECORD)
    }

    /// Returns whether a path has the file name of a lane's record.
    pub fn is_lane_record(path: &Path) -> bool {
        path.file_name().is_some_and(|name| name == LANE_RECORD)
    }

    /// Returns the path of the prompt of the task in a lane's folder.
    pub fn task_prompt_in(lane_folder: &Path) -> PathBuf {
        lane_folder.join("task.md")
    }

    /// Returns the path of the commit message that the user wrote for the lane's next landing.
    pub fn landing_message_in(lane_folder: &Path) -> PathBuf {
        lane_folder.join("landing-message.txt")
    }

    /// Returns the folder of the files attached to the task in a lane's folder.
    pub fn attachments_in(lane_folder: &Path) -> PathBuf {
        lane_folder.join("attachments")
    }

    /// Returns the path of the report of the agent in a lane's folder.
    pub fn lane_report_in(lane_folder: &Path) -> PathBuf {
        lane_folder.join("report.toml")
    }

    /// Returns the path of the record of the conflict in a lane's folder.
    pub fn conflict_record_in(lane_folder: &Path) -> PathBuf {
        lane_folder.join("conflict.toml")
    }

    /// Returns the path of the record of the failed check in a lane's folder.
    pub fn failed_check_record_in(lane_folder: &Path) -> PathBuf {
        lane_folder.join("check.toml")
    }

    /// Returns the path, in a lane's folder, of the last known status of its pull request.
    pub fn pull_request_status_in(lane_folder: &Path) -> PathBuf {
        lane_folder.join("pull-request.toml")
    }

    /// Returns the path, in a lane's folder, of the record of the conflict that is being resolved.
    pub fn resolution_record_in(lane_folder: &Path) -> PathBuf {
        lane_folder.join(RESOLUTION_RECORD)
    }

    /// Returns whether a path has the file name of a record of a conflict that is being resolved.
    pub fn is_resolution_record(path: &Path) -> bool {
        path.ends_with(RESOLUTION_RECORD)
    }

    /// Returns the path of the record of the task loop in a lane's folder.
    pub fn task_loop_record_in(lane_folder: &Path) -> PathBuf {
        lane_folder.join("packet.toml")
    }

    /// Returns the folder of the messages that the agent has not received yet, in a lane's folder.
    pub fn inbox_in(lane_folder: &Path) -> PathBuf {
        lane_folder.join("inbox")
    }

    /// Returns the path, in a lane's folder, of the record of messages that were delivered and whose files
    /// may still exist.
    pub fn delivered_record_in(lane_folder: &Path) -> PathBuf {
        lane_folder.join("told.toml")
    }

    /// Returns the path of a message in a folder of messages: an inbox, or a delivery to a run.
    pub fn message_in(folder: &Path, id: &str) -> PathBuf {
        folder.join(format!("{id}{MESSAGE_SUFFIX}"))
    }

    /// Returns the id of the message with this file name; none for a temporary file.
    pub fn message_id(file_name: &str) -> Option<&str> {
        file_name.strip_suffix(MESSAGE_SUFFIX).filter(|id| !id.starts_with('.'))
    }

    /// Returns the path that stands for the worktree of a lane that a forecast makes up. Nothing exists
    /// there.
    pub fn forecast_worktree_in(lane_folder: &Path) -> PathBuf {
        lane_folder.join("ahead")
    }
}

fn is_in_store_dir(path: &Path, dir_name: &str) -> bool {
    path.parent().is_some_and(|parent| parent.ends_with(Path::new(STORE_DIR).join(dir_name)))
}
