//! Status file of a run in progress, small and rewritten at most once a second.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use proq_store::paths::layout::Layout;
use proq_store::records::run::RunSummary;
use proq_stream::base::progress::Progress;
use serde::{Deserialize, Serialize};

use crate::agent::launch::run_spec::live_summary;

/// Time from a change to the next write of the status file, which is thus written at most once a second.
const WRITE_INTERVAL: Duration = Duration::from_secs(1);

/// Writer of the status file of one run.
pub(crate) struct LiveStatusFile {
    path: PathBuf,
    /// Time of the next write; none when nothing has changed.
    write_due: Option<Instant>,
}

/// Content of a run's status file.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct LiveStatus {
    /// Usage and activity that the agent has reported so far.
    #[serde(default)]
    #[serde(rename = "account")]
    pub summary: RunSummary,
}

impl LiveStatusFile {
    pub fn new(path: PathBuf) -> LiveStatusFile {
        LiveStatusFile { path, write_due: None }
    }

    /// Schedules a write after a change.
    pub(crate) fn schedule_write(&mut self) {
        self.write_due.get_or_insert_with(|| Instant::now() + WRITE_INTERVAL);
    }

    /// Returns the time of the next write; none when nothing has changed since the last one.
    pub(crate) fn next_write(&self) -> Option<Instant> {
        self.write_due
    }

    /// Writes the file. Errors are ignored: the file is only for display, and a full disk is no reason to end
    /// a run.
    pub fn write(&mut self, progress: &Progress) {
        self.write_due = None;
        let status = LiveStatus { summary: live_summary(progress) };
        let Ok(text) = serde_json::to_vec(&status) else { return };
        let temp_path = Layout::unfinished_live_view(&self.path);
        drop(std::fs::write(&temp_path, text).and_then(|()| std::fs::rename(&temp_path, &self.path)));
    }

    /// Removes the file. The run's record contains the same data after the run.
    pub fn remove(&self) {
        drop(std::fs::remove_file(&self.path));
    }
}

/// Returns the usage and activity that a run in progress has reported, from its status file; an empty summary
/// if the file cannot be read.
pub fn read_summary(path: &Path) -> RunSummary {
    let status = proq_base::regular_file::read_store_file(path)
        .ok()
        .and_then(|bytes| serde_json::from_slice::<LiveStatus>(&bytes).ok());
    status.unwrap_or_default().summary
}
