//! Resolution of a lane's conflict: by an agent, or by hand in a shell or a merge tool.

use std::path::{Path, PathBuf};

use proq_base::interrupt;
use proq_base::lane_name::LaneName;
use proq_base::process::command_builder::CommandBuilder;
use proq_git::RepoPath;
use proq_store::paths::path_form;
use proq_store::records::conflict::{ConflictRecord, ResolutionRecord};
use serde::Serialize;

use crate::agent::command::agent_command::RunOptions;
use crate::lane::Project;
use crate::merge;
use crate::merge::resolution::resolve::{ResolutionStart, ResolvedConflict};
use crate::merge::resolution::{resolve, resolve_agent};
use crate::merge::types::resolve_error::ResolveError;
use crate::merge::types::resolver::{Allowance, Resolver};
use crate::ops::error::Error;
use crate::ops::reporter::{Progress, Reporter};

/// Way to resolve a conflict.
#[derive(Debug, Clone)]
pub enum ResolveMethod {
    /// An agent resolves it.
    Agent {
        /// Name of a known agent, or of any program on `PATH`.
        agent: String,
        /// Number of attempts after the first one.
        retries: u32,
        /// Options of the agent's runs.
        run_options: RunOptions,
        /// Folder that a relative path to the agent starts from.
        current_dir: PathBuf,
    },
    /// The user resolves it in a shell on this terminal.
    Shell,
    /// The user resolves it in a merge tool on this terminal; an empty name is the tool of git's settings.
    MergeTool(String),
    /// What is in the open worktree becomes the lane's new tip, if it is accepted.
    Continue,
    /// The open resolution is given up; its work is saved.
    Abort,
}

/// Conflict to resolve.
#[derive(Debug, Clone)]
pub struct ResolveRequest {
    /// Name or branch of the lane.
    pub lane: String,
    /// Way to resolve the conflict.
    pub method: ResolveMethod,
    /// Changes that are accepted although the check would refuse them.
    pub allowance: Allowance,
}

/// Lane whose conflict is to be resolved, and how.
#[derive(Debug)]
#[must_use]
pub struct ResolvePlan {
    lane: LaneName,
    method: ResolveMethod,
    allowance: Allowance,
}

/// Conflict of a lane.
#[derive(Debug, Clone, Serialize)]
pub struct RecordedConflict {
    /// Name of the lane.
    pub lane: LaneName,
    /// Branch that the lane conflicts with.
    pub onto: String,
    /// `open` if the conflict is open in a worktree, otherwise `conflict`.
    pub result: &'static str,
    /// Files in conflict.
    pub files: Vec<RepoPath>,
    /// Messages of git about the conflict.
    pub messages: Vec<String>,
    /// Worktree in which the conflict is open.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "path_form::option::serialize")]
    pub worktree: Option<PathBuf>,
    /// Agent that the open resolution is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Whether a resolution was only to be forecast.
    pub dry_run: bool,
}

/// Result of a resolution.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum ResolveOutcome {
    /// The conflict is resolved, or exists no more.
    Resolved {
        /// Lane and commit.
        #[serde(flatten)]
        resolved: ResolvedConflict,
        /// `resolved`, or `no-conflict`.
        result: &'static str,
        /// Always false.
        dry_run: bool,
    },
    /// The resolution is given up.
    Aborted {
        /// Name of the lane.
        lane: LaneName,
        /// Branch that the lane conflicts with.
        #[serde(skip)]
        onto: String,
        /// Always `aborted`.
        result: &'static str,
        /// Ref that keeps what was made of the conflict.
        #[serde(rename = "saved", skip_serializing_if = "Option::is_none")]
        saved_ref: Option<String>,
        /// Path of the resolution's worktree in the trash.
        #[serde(skip_serializing_if = "Option::is_none")]
        trash: Option<String>,
    },
}

/// Finds the conflict of a lane, given by its name or branch, and its open resolution, without a change.
///
/// # Errors
/// Fails if the lane has no conflict, on record or with the present tip of its base.
pub fn find_conflict(project: &Project, name_or_branch: &str) -> Result<RecordedConflict, Error> {
    let record = project.find_lane(name_or_branch)?;
    let ConflictRecord { lane, onto, paths, git_messages, .. } = resolve::find_conflict(project, &record)?;
    let resolution = project.find_resolution(&lane)?;
    let result = if resolution.is_some() { "open" } else { "conflict" };
    let (worktree, agent) = resolution.map(|open| (open.worktree_path, open.agent)).unzip();
    let (files, messages, agent) = (paths, git_messages, agent.flatten());
    Ok(RecordedConflict { lane, onto, result, files, messages, worktree, agent, dry_run: false })
}

/// Finds the lane of a request, without a change.
///
/// # Errors
/// Fails if the lane does not exist, or the agent could not be started.
pub fn plan(project: &Project, request: ResolveRequest) -> Result<ResolvePlan, Error> {
    if matches!(request.method, ResolveMethod::Agent { .. }) {
        // No worktree is made for an agent that could not be started.
        project.git_proq_path()?;
    }
    let lane = project.find_lane(&request.lane)?.name;
    Ok(ResolvePlan { lane, method: request.method, allowance: request.allowance })
}

impl ResolvePlan {
    /// Returns the conflict that would be resolved, without a change.
    ///
    /// # Errors
    /// Fails if the lane has no conflict, or none is open for a method that needs that.
    pub fn forecast(&self, project: &Project) -> Result<RecordedConflict, Error> {
        let conflict = find_conflict(project, self.lane.as_str())?;
        if matches!(self.method, ResolveMethod::Continue | ResolveMethod::Abort)
            && conflict.worktree.is_none()
        {
            return Err(merge::Error::from(ResolveError::NotOpen { lane: conflict.lane }).into());
        }
        Ok(conflict)
    }

    /// Resolves the conflict, or gives the open resolution up.
    ///
    /// # Errors
    /// Fails if the resolution is refused; its worktree stays open then.
    pub fn execute(self, project: &Project, reporter: &dyn Reporter) -> Result<ResolveOutcome, Error> {
        let _scope = reporter.enter_cancellation();
        let ResolvePlan { lane, method, allowance } = self;
        let resolved = match method {
            ResolveMethod::Abort => {
                let (ResolutionRecord { lane, onto, .. }, closed) =
                    resolve::abort_resolution(project, &lane)?;
                let (saved_ref, trash) =
                    (closed.saved_ref, closed.trash_entry.as_deref().map(path_form::to_text));
                return Ok(ResolveOutcome::Aborted { lane, onto, result: "aborted", saved_ref, trash });
            }
            ResolveMethod::Agent { agent, retries, run_options, current_dir } => {
                let resolver = Resolver { agent, retries, allowance, run_options, current_dir };
                resolve_agent::resolve_by_agent(project, &lane, &resolver)?
            }
            ResolveMethod::Continue => resolve::continue_resolution(project, &lane, &allowance)?,
            ResolveMethod::Shell | ResolveMethod::MergeTool(_) => {
                match resolve::open_for_user(project, &lane)? {
                    ResolutionStart::Resolved(resolved) => resolved,
                    ResolutionStart::Open(resolution) => {
                        let in_shell = matches!(method, ResolveMethod::Shell);
                        reporter.progress(Progress::ResolutionOpen { resolution: &resolution, in_shell });
                        resolve_on_terminal(project, &method, &resolution)?;
                        resolve::continue_resolution(project, &lane, &allowance)?
                    }
                }
            }
        };
        let result = if resolved.commit.is_some() { "resolved" } else { "no-conflict" };
        Ok(ResolveOutcome::Resolved { resolved, result, dry_run: false })
    }
}

/// Lets the user resolve the conflict in a merge tool, or else in a shell.
fn resolve_on_terminal(
    project: &Project,
    method: &ResolveMethod,
    resolution: &ResolutionRecord,
) -> Result<(), Error> {
    let dir = &resolution.worktree_path;
    let result = if let ResolveMethod::MergeTool(tool) = method {
        project.repo.run_merge_tool(dir, Some(tool)).map_err(Error::from)
    } else {
        let shell = std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
        let program = CommandBuilder::new(Path::new(&shell), dir).env("PROQ_LANE", resolution.lane.as_str());
        // The exit code of a shell is that of its last command: it does not show whether the conflict is
        // resolved.
        program.run_on_terminal().map(drop).map_err(Error::from)
    };
    // A Ctrl-C in the shell or tool was meant for a program in there, not for git-proq.
    interrupt::clear_signal();
    result
}
