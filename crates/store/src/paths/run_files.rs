//! Paths of the files of a lane's runs.

use std::path::{Path, PathBuf};

use proq_base::lane_name::LaneName;

use super::layout::Layout;
use crate::base::run_number::RunNumber;

impl Layout {
    /// Returns the path of the record of a run.
    pub fn run_record(&self, name: &LaneName, run: RunNumber) -> PathBuf {
        self.lane(name).join(format!("runs/{run}.toml"))
    }

    /// Returns the path of the output of a run.
    pub fn run_log(&self, name: &LaneName, run: RunNumber) -> PathBuf {
        self.lane(name).join(format!("runs/{run}.log"))
    }

    /// Returns the path of a run's standard error output. It exists where the standard output is
    /// machine-readable and has a separate log.
    pub fn run_stderr(&self, name: &LaneName, run: RunNumber) -> PathBuf {
        self.lane(name).join(format!("runs/{run}.err"))
    }

    /// Returns the path of the file with the user's prompt that a run was given instead of the lane's task.
    pub fn run_prompt_override(&self, name: &LaneName, run: RunNumber) -> PathBuf {
        self.lane(name).join(format!("runs/{run}.said.md"))
    }

    /// Returns the folder of the messages that a run received while it lasted, with a subfolder for each
    /// delivery. It is relative to a lane's folder, which may be that of a removed lane.
    pub fn run_messages_in_lane(run: RunNumber) -> PathBuf {
        Path::new("runs").join(format!("{run}.told"))
    }

    /// Returns the path of the prompt that replaces a run's own prompt if its agent cannot resume the
    /// conversation.
    pub fn run_restart_prompt(&self, name: &LaneName, run: RunNumber) -> PathBuf {
        self.run_dir(name, run).join("anew.md")
    }

    /// Returns the path of the live view of a run.
    pub fn run_live_view(&self, name: &LaneName, run: RunNumber) -> PathBuf {
        self.lane(name).join(format!("runs/{run}.live.json"))
    }

    /// Returns the path of the log of the automatic merge after a run.
    pub fn auto_merge_log(&self, name: &LaneName, run: RunNumber) -> PathBuf {
        self.lane(name).join(Layout::auto_merge_log_in_lane(run))
    }

    /// Returns the path of the log of the automatic merge after a run, relative to a lane's folder.
    /// That may be the folder of a removed lane.
    pub fn auto_merge_log_in_lane(run: RunNumber) -> PathBuf {
        Path::new("runs").join(format!("{run}.merge.log"))
    }

    /// Returns the path of the prompt of a run.
    pub fn run_prompt(&self, name: &LaneName, run: RunNumber) -> PathBuf {
        self.lane(name).join(Layout::run_prompt_in_lane(run))
    }

    /// Returns the path of the prompt of a run, relative to a lane's folder. That may be the folder
    /// of a removed lane.
    pub fn run_prompt_in_lane(run: RunNumber) -> PathBuf {
        Path::new("runs").join(format!("{run}.md"))
    }

    /// Returns the path of the answer of a run, for a read-only run.
    pub fn run_answer(&self, name: &LaneName, run: RunNumber) -> PathBuf {
        self.lane(name).join(Layout::run_answer_in_lane(run))
    }

    /// Returns the path of the answer of a run, relative to a lane's folder. That may be the folder
    /// of a removed lane.
    pub fn run_answer_in_lane(run: RunNumber) -> PathBuf {
        Path::new("runs").join(format!("{run}.answer.md"))
    }

    /// Returns the path of the rules that a run was given in addition to its prompt.
    pub fn run_rules(&self, name: &LaneName, run: RunNumber) -> PathBuf {
        self.lane(name).join(Layout::run_rules_in_lane(run))
    }

    /// Returns the path of the rules of a run, relative to a lane's folder. That may be the folder of
    /// a removed lane.
    pub fn run_rules_in_lane(run: RunNumber) -> PathBuf {
        Path::new("runs").join(format!("{run}.rules.md"))
    }

    /// Returns the folder of the files that only one run uses: settings for its agent, and the agent's
    /// own notes.
    pub fn run_dir(&self, name: &LaneName, run: RunNumber) -> PathBuf {
        self.lane(name).join(format!("runs/{run}.d"))
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
