//! Agent that resolves conflicts, and the changes that it may make.

use std::path::PathBuf;

use proq_git::RepoPath;

use crate::agent::command::agent_command::RunOptions;

/// Agent that resolves conflicts, and options of its runs.
#[derive(Debug, Clone)]
pub struct Resolver {
    /// Name of a known agent, or of any program on `PATH`.
    pub agent: String,
    /// Number of attempts after the first one.
    pub retries: u32,
    /// Changes in a resolution that the check would refuse and the user allows.
    pub allowance: Allowance,
    /// Options of the agent's run.
    pub run_options: RunOptions,
    /// Folder that a relative path to the agent starts from.
    pub current_dir: PathBuf,
}

/// Changes in a resolution that the check would refuse and the user allows.
#[derive(Debug, Clone, Default)]
pub struct Allowance {
    /// Paths that are accepted as they are, with all paths below them.
    pub paths: Vec<RepoPath>,
    /// Whether files outside of the conflict may change.
    pub other_files: bool,
}

impl Allowance {
    /// Returns whether a path is accepted as it is.
    pub(crate) fn covers(&self, path: &RepoPath) -> bool {
        self.paths.iter().any(|p| p == path || path.parents().any(|parent| parent == *p))
    }
}
