//! Paths of the files of a lane's runs.

use std::path::{Path, PathBuf};

use super::layout::Layout;

impl Layout {
    /// Returns the path of the record of run `attempt`.
    pub fn run_record(&self, name: &str, attempt: u32) -> PathBuf {
        self.lane(name).join(format!("runs/{attempt}.toml"))
    }

    /// Returns the path of the output of run `attempt`.
    pub fn run_log(&self, name: &str, attempt: u32) -> PathBuf {
        self.lane(name).join(format!("runs/{attempt}.log"))
    }

    /// Returns the path of a run's standard error output. It exists where the standard output is
    /// machine-readable and has a separate log.
    pub fn run_stderr(&self, name: &str, attempt: u32) -> PathBuf {
        self.lane(name).join(format!("runs/{attempt}.err"))
    }

    /// Returns the path of the file with the user's prompt that a run was given instead of the lane's task.
    pub fn run_prompt_override(&self, name: &str, attempt: u32) -> PathBuf {
        self.lane(name).join(format!("runs/{attempt}.said.md"))
    }

    /// Returns the folder of the messages that a run received while it lasted, with a subfolder for each
    /// delivery. It is relative to a lane's folder, which may be that of a removed lane.
    pub fn run_messages_in_lane(attempt: u32) -> PathBuf {
        Path::new("runs").join(format!("{attempt}.told"))
    }

    /// Returns the path of the prompt that replaces a run's own prompt if its agent cannot resume the
    /// conversation.
    pub fn run_restart_prompt(&self, name: &str, attempt: u32) -> PathBuf {
        self.run_dir(name, attempt).join("anew.md")
    }

    /// Returns the path of the live view of a run.
    pub fn run_live_view(&self, name: &str, attempt: u32) -> PathBuf {
        self.lane(name).join(format!("runs/{attempt}.live.json"))
    }

    /// Returns the path of the log of the automatic merge after run `attempt`.
    pub fn landing_log(&self, name: &str, attempt: u32) -> PathBuf {
        self.lane(name).join(Layout::landing_log_in_lane(attempt))
    }

    /// Returns the path of the log of the automatic merge after run `attempt`, relative to a lane's folder.
    /// That may be the folder of a removed lane.
    pub fn landing_log_in_lane(attempt: u32) -> PathBuf {
        Path::new("runs").join(format!("{attempt}.merge.log"))
    }

    /// Returns the path of the prompt of run `attempt`.
    pub fn run_prompt(&self, name: &str, attempt: u32) -> PathBuf {
        self.lane(name).join(Layout::run_prompt_in_lane(attempt))
    }

    /// Returns the path of the prompt of run `attempt`, relative to a lane's folder. That may be the folder
    /// of a removed lane.
    pub fn run_prompt_in_lane(attempt: u32) -> PathBuf {
        Path::new("runs").join(format!("{attempt}.md"))
    }

    /// Returns the path of the answer of run `attempt`, for a read-only run.
    pub fn run_answer(&self, name: &str, attempt: u32) -> PathBuf {
        self.lane(name).join(Layout::run_answer_in_lane(attempt))
    }

    /// Returns the path of the answer of run `attempt`, relative to a lane's folder. That may be the folder
    /// of a removed lane.
    pub fn run_answer_in_lane(attempt: u32) -> PathBuf {
        Path::new("runs").join(format!("{attempt}.answer.md"))
    }

    /// Returns the path of the rules that run `attempt` was given in addition to its prompt.
    pub fn run_rules(&self, name: &str, attempt: u32) -> PathBuf {
        self.lane(name).join(Layout::run_rules_in_lane(attempt))
    }

    /// Returns the path of the rules of run `attempt`, relative to a lane's folder. That may be the folder of
    /// a removed lane.
    pub fn run_rules_in_lane(attempt: u32) -> PathBuf {
        Path::new("runs").join(format!("{attempt}.rules.md"))
    }

    /// Returns the folder of the files that only run `attempt` uses: settings for its agent, and the agent's
    /// own notes.
    pub fn run_dir(&self, name: &str, attempt: u32) -> PathBuf {
        self.lane(name).join(format!("runs/{attempt}.d"))
    }

    /// Returns the path of the record of the activity that the agent's hooks reported in a run.
    pub fn run_activity(&self, name: &str, attempt: u32) -> PathBuf {
        self.run_dir(name, attempt).join("activity.toml")
    }

    /// Returns the path of the output of the last check that ran when the agent was about to stop.
    pub fn stop_gate_log(&self, name: &str, attempt: u32) -> PathBuf {
        self.run_dir(name, attempt).join("gate.log")
    }

    /// Returns the path of the marker that requests a run to finish its work and end.
    pub fn run_wrap_up_marker(&self, name: &str, attempt: u32) -> PathBuf {
        self.run_dir(name, attempt).join("wrap-up")
    }

    /// Returns the path of the copy of STATUS.md from before a run of a task folder.
    pub fn run_status_before(&self, name: &str, attempt: u32) -> PathBuf {
        self.run_dir(name, attempt).join("status.md")
    }

    /// Returns the path of the copy of STATUS.md from after a run whose work was reverted.
    pub fn run_status_after(&self, name: &str, attempt: u32) -> PathBuf {
        self.run_dir(name, attempt).join("status-left.md")
    }

    /// Returns the path of a saved task file. When a task restarts after a run, its former files are saved
    /// below a folder named `folder`.
    pub fn run_leftover_file(&self, name: &str, attempt: u32, folder: &str, file: &Path) -> PathBuf {
        self.run_dir(name, attempt).join("left").join(folder).join(file)
    }

    /// Returns the path of the review that run `attempt` wrote.
    pub fn run_review(&self, name: &str, attempt: u32) -> PathBuf {
        self.lane(name).join(format!("runs/{attempt}.review.md"))
    }

    /// Returns the path of the state of the main checkout from before an in-place run.
    pub fn run_checkout_baseline(&self, name: &str, attempt: u32) -> PathBuf {
        self.lane(name).join(format!("runs/{attempt}.before.toml"))
    }
}
