//! Paths of the files of a lane's runs.

use std::path::{Path, PathBuf};

use proq_base::lane_name::LaneName;

use super::layout::Layout;
use crate::base::run_number::RunNumber;

impl Layout {
    /// Returns the path of the record of a run.
    pub fn run_record(&self, name: &LaneName, run: RunNumber) -> PathBuf {
        Layout::run_record_in(&self.lane(name), run)
    }

    /// Returns the path of the record of a run in a lane's folder, which may be that of a removed lane.
    pub fn run_record_in(lane_folder: &Path, run: RunNumber) -> PathBuf {
        lane_folder.join(format!("runs/{run}.toml"))
    }

    /// Returns the path of the output of a run.
    pub fn run_log(&self, name: &LaneName, run: RunNumber) -> PathBuf {
        Layout::run_log_in(&self.lane(name), run)
    }

    /// Returns the path of the output of a run in a lane's folder, which may be that of a removed lane.
    pub fn run_log_in(lane_folder: &Path, run: RunNumber) -> PathBuf {
        lane_folder.join(format!("runs/{run}.log"))
    }

    /// Returns the path of a run's standard error output. It exists where the standard output is
    /// machine-readable and has a separate log.
    pub fn run_stderr(&self, name: &LaneName, run: RunNumber) -> PathBuf {
        Layout::run_stderr_in(&self.lane(name), run)
    }

    /// Returns the path of a run's standard error output in a lane's folder, which may be that of a removed
    /// lane.
    pub fn run_stderr_in(lane_folder: &Path, run: RunNumber) -> PathBuf {
        lane_folder.join(format!("runs/{run}.err"))
    }

    /// Returns the path of the file with the user's prompt that a run was given instead of the lane's task.
    pub fn run_prompt_override(&self, name: &LaneName, run: RunNumber) -> PathBuf {
        self.lane(name).join(format!("runs/{run}.said.md"))
    }

    /// Returns the folder of the messages that a run received while it lasted, with a subfolder for each
    /// delivery. `lane_folder` is a lane's folder, which may be that of a removed lane.
    pub fn run_messages_in(lane_folder: &Path, run: RunNumber) -> PathBuf {
        lane_folder.join(format!("runs/{run}.told"))
    }

    /// Returns the path of the prompt that replaces a run's own prompt if its agent cannot resume the
    /// conversation.
    pub fn run_restart_prompt(&self, name: &LaneName, run: RunNumber) -> PathBuf {
        self.run_dir(name, run).join("anew.md")
    }

    /// Returns the path of the live view of a run.
    pub fn run_live_view(&self, name: &LaneName, run: RunNumber) -> PathBuf {
        Layout::run_live_view_in(&self.lane(name), run)
    }

    /// Returns the path of the live view of a run in a lane's folder, which may be that of a removed lane.
    pub fn run_live_view_in(lane_folder: &Path, run: RunNumber) -> PathBuf {
        lane_folder.join(format!("runs/{run}.live.json"))
    }

    /// Returns the path that the live view at `live_view` has while it is written.
    pub fn unfinished_live_view(live_view: &Path) -> PathBuf {
        live_view.with_extension("new")
    }

    /// Returns the path of the log of the automatic merge after a run.
    pub fn auto_merge_log(&self, name: &LaneName, run: RunNumber) -> PathBuf {
        Layout::auto_merge_log_in(&self.lane(name), run)
    }

    /// Returns the path of the log of the automatic merge after a run in a lane's folder, which may be that
    /// of a removed lane.
    pub fn auto_merge_log_in(lane_folder: &Path, run: RunNumber) -> PathBuf {
        lane_folder.join(format!("runs/{run}.merge.log"))
    }

    /// Returns the path of the prompt of a run.
    pub fn run_prompt(&self, name: &LaneName, run: RunNumber) -> PathBuf {
        Layout::run_prompt_in(&self.lane(name), run)
    }

    /// Returns the path of the prompt of a run in a lane's folder, which may be that of a removed lane.
    pub fn run_prompt_in(lane_folder: &Path, run: RunNumber) -> PathBuf {
        lane_folder.join(format!("runs/{run}.md"))
    }

    /// Returns the path of the answer of a run, for a read-only run.
    pub fn run_answer(&self, name: &LaneName, run: RunNumber) -> PathBuf {
        Layout::run_answer_in(&self.lane(name), run)
    }

    /// Returns the path of the answer of a run in a lane's folder, which may be that of a removed lane.
    pub fn run_answer_in(lane_folder: &Path, run: RunNumber) -> PathBuf {
        lane_folder.join(format!("runs/{run}.answer.md"))
    }

    /// Returns the path of the rules that a run was given in addition to its prompt.
    pub fn run_rules(&self, name: &LaneName, run: RunNumber) -> PathBuf {
        Layout::run_rules_in(&self.lane(name), run)
    }

    /// Returns the path of the rules of a run in a lane's folder, which may be that of a removed lane.
    pub fn run_rules_in(lane_folder: &Path, run: RunNumber) -> PathBuf {
        lane_folder.join(format!("runs/{run}.rules.md"))
    }

    /// Returns the folder of the files that only one run uses: settings for its agent, and the agent's
    /// own notes.
    pub fn run_dir(&self, name: &LaneName, run: RunNumber) -> PathBuf {
        self.lane(name).join(format!("runs/{run}.d"))
    }

    /// Returns the path of a file that an agent's profile adds to a run's own folder: `settings.json`,
    /// `mcp_config.json` or `plugin.ts`.
    pub fn run_profile_file(run_dir: &Path, file_name: &str) -> PathBuf {
        run_dir.join(file_name)
    }

    /// Returns the path of the file in which an agent writes its usage, in a run's own folder.
    pub fn run_usage_file(run_dir: &Path) -> PathBuf {
        run_dir.join("usage.json")
    }

    /// Name, in a run's own folder, of the socket that connects the supervisor and the first process of the
    /// run's tmux pane. They bind and connect it by this name from inside the folder.
    pub const PANE_SOCKET: &str = "pane";

    /// Returns the path of the socket named [`Layout::PANE_SOCKET`], in a run's own folder.
    pub fn pane_socket(run_dir: &Path) -> PathBuf {
        run_dir.join(Layout::PANE_SOCKET)
    }

    /// Returns the path of the last screen of a run's tmux pane, in a run's own folder.
    pub fn pane_screen(run_dir: &Path) -> PathBuf {
        run_dir.join("screen")
    }

    /// Returns the path of the record of the activity that the agent's hooks reported in a run.
    pub fn run_activity(&self, name: &LaneName, run: RunNumber) -> PathBuf {
        self.run_dir(name, run).join("activity.toml")
    }

    /// Returns the path of the output of the last check that ran when the agent was about to stop.
    pub fn stop_gate_log(&self, name: &LaneName, run: RunNumber) -> PathBuf {
        self.run_dir(name, run).join("gate.log")
    }

    /// Returns the path of the marker that requests a run to finish its work and end.
    pub fn run_wrap_up_marker(&self, name: &LaneName, run: RunNumber) -> PathBuf {
        self.run_dir(name, run).join("wrap-up")
    }

    /// Returns the path of the copy of STATUS.md from before a run of a task folder.
    pub fn status_md_before_run(&self, name: &LaneName, run: RunNumber) -> PathBuf {
        self.run_dir(name, run).join("status.md")
    }

    /// Returns the path of the copy of STATUS.md from after a run whose work was reverted.
    pub fn status_md_after_run(&self, name: &LaneName, run: RunNumber) -> PathBuf {
        self.run_dir(name, run).join("status-left.md")
    }

    /// Returns the path of a saved task file. When a task restarts after a run, its former files are saved
    /// below a folder named `folder`.
    pub fn run_former_task_file(
        &self,
        name: &LaneName,
        run: RunNumber,
        folder: &str,
        file: &Path,
    ) -> PathBuf {
        self.run_dir(name, run).join("left").join(folder).join(file)
    }

    /// Returns the path of the review that a run wrote.
    pub fn run_review(&self, name: &LaneName, run: RunNumber) -> PathBuf {
        self.lane(name).join(format!("runs/{run}.review.md"))
    }

    /// Returns the path of the state of the main checkout from before an in-place run.
    pub fn run_checkout_baseline(&self, name: &LaneName, run: RunNumber) -> PathBuf {
        self.lane(name).join(format!("runs/{run}.before.toml"))
    }
}
