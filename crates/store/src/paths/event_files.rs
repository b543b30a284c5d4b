//! Paths of the event log: the file that grows, the full files, and the files of hooks.

use std::path::PathBuf;

use super::layout::Layout;

impl Layout {
    /// Returns the path of the event log.
    pub fn event_log(&self) -> PathBuf {
        self.root().join("events.jsonl")
    }

    /// Returns the path of a full section of the event log, by the number of its first event.
    pub fn full_event_log(&self, first: u64) -> PathBuf {
        self.root().join(format!("events.{first}.jsonl"))
    }

    /// Returns the path of the cursor that tracks which events were dispatched.
    pub fn dispatch_cursor(&self) -> PathBuf {
        self.root().join("dispatch.toml")
    }

    /// Returns the folder of the user's hooks for events, each named after its event. These are no git hooks.
    pub fn user_hooks(&self) -> PathBuf {
        self.root().join("hooks")
    }

    /// Returns the path of the user's hook for an event.
    pub fn user_hook(&self, event: &str) -> PathBuf {
        self.user_hooks().join(event)
    }

    /// Returns the path of the list of hooks that were set while an agent ran.
    pub fn withheld_hooks_list(&self) -> PathBuf {
        self.root().join("held-hooks.toml")
    }

    /// Returns the path of the output of hooks.
    pub fn hook_log(&self) -> PathBuf {
        self.root().join("hooks.log")
    }

    /// Returns the path of the previous output of hooks, which was moved when it became too long.
    pub fn previous_hook_log(&self) -> PathBuf {
        self.root().join("hooks.log.1")
    }

    /// Lists the full sections of the event log, oldest first, each with the number of its first event.
    pub fn list_full_event_logs(&self) -> Vec<(u64, PathBuf)> {
        let entries = std::fs::read_dir(self.root()).into_iter().flatten().flatten();
        let first_event = |name: &str| name.strip_prefix("events.")?.strip_suffix(".jsonl")?.parse().ok();
        let mut out: Vec<(u64, PathBuf)> = entries
            .filter_map(|entry| Some((first_event(entry.file_name().to_str()?)?, entry.path())))
            .collect();
        out.sort_unstable();
        out
    }
}
