//! Agent that resolves conflicts, and the changes that it may make.

use std::path::Path;

use crate::agent::command::agent_command::RunOptions;
use crate::git::RepoPath;

/// Agent that resolves conflicts, and options of its runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resolver<'a> {
    /// Name of a known agent, or of any program on `PATH`.
    pub(crate) agent: &'a str,
    /// Number of attempts after the first one.
    pub(crate) retries: u32,
    /// Changes in a resolution that the check would refuse and the user allows.
    pub(crate) allowance: &'a Allowance,
    /// Options of the agent's run.
    pub(crate) run_options: &'a RunOptions,
    /// Path of the git-proq program.
    pub(crate) program_path: &'a Path,
    /// Folder that a relative path to the agent starts from.
    pub(crate) current_dir: &'a Path,
}

/// Changes in a resolution that the check would refuse and the user allows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Allowance {
    /// Paths that are accepted as they are, with all paths below them.
    pub(crate) paths: Vec<RepoPath>,
    /// Whether files outside of the conflict may change.
    pub(crate) other_files: bool,
}

impl Allowance {
    /// Returns whether a path is accepted as it is.
    pub(crate) fn covers(&self, path: &RepoPath) -> bool {
        self.paths.iter().any(|p| p == path || path.parents().any(|parent| parent == *p))
    }
}
