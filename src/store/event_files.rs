//! Owns where the event log's files lie, the one that grows and those that were full, and what is around them.

use std::path::PathBuf;

use super::Layout;

impl Layout {
    /// The event log.
    pub(crate) fn events(&self) -> PathBuf {
        self.root().join("events.jsonl")
    }

    /// A part of the log that was full, by the number of its first event.
    pub(crate) fn full_events(&self, first: u64) -> PathBuf {
        self.root().join(format!("events.{first}.jsonl"))
    }

    /// How far events were handed out.
    pub(crate) fn dispatch(&self) -> PathBuf {
        self.root().join("dispatch.toml")
    }

    /// The user's own hooks, each named after its event.
    pub(crate) fn hooks(&self) -> PathBuf {
        self.root().join("hooks")
    }

    /// One of them.
    pub(crate) fn hook(&self, event: &str) -> PathBuf {
        self.hooks().join(event)
    }

    /// The hooks that were set while an agent ran.
    pub(crate) fn held_hooks(&self) -> PathBuf {
        self.root().join("held-hooks.toml")
    }

    /// What hooks have said.
    pub(crate) fn hook_log(&self) -> PathBuf {
        self.root().join("hooks.log")
    }

    /// All such parts, oldest first, each with the number of its first event.
    pub(crate) fn all_full_events(&self) -> Vec<(u64, PathBuf)> {
        let entries = std::fs::read_dir(self.root()).into_iter().flatten().flatten();
        let first = |name: &str| name.strip_prefix("events.")?.strip_suffix(".jsonl")?.parse().ok();
        let mut out: Vec<(u64, PathBuf)> =
            entries.filter_map(|entry| Some((first(entry.file_name().to_str()?)?, entry.path()))).collect();
        out.sort_unstable();
        out
    }
}
