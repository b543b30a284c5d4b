//! Agent that a landing sends at conflicts: which one, and whether it may run.

use std::path::Path;

use proq_base::config::key::Key;
use proq_base::config::layers::Origin;
use proq_base::explain::Explain;
use proq_store::records::lane::LaneRecord;

use crate::agent::launch::start_supervisor::require_installed;
use crate::lane::Project;
use crate::merge::resolution::resolve_agent;
use crate::ops::error::Error;

/// Choice of the agent that resolves conflicts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ConflictAgentChoice {
    /// The agent of `merge.conflict_agent`; for an automatic merge without that setting, the lane's own.
    #[default]
    Setting,
    /// A known agent, or any program on `PATH`.
    Agent(String),
    /// No agent.
    Nobody,
}

/// Agent that resolves conflicts of a landing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConflictAgent {
    /// Name of a known agent, or of any program on `PATH`.
    pub name: String,
    /// Whether the name comes from `merge.conflict_agent`, which may need an approval.
    pub is_configured: bool,
}

/// Reason why a landing cannot use a conflict agent.
#[derive(Debug, thiserror::Error, Explain)]
pub enum ConflictAgentError {
    /// A number of retries was requested, but no agent resolves conflicts.
    #[error("cannot use --conflict-retries: there is no conflict agent")]
    #[exit(Usage)]
    #[hint("for example: git proq merge --all --conflict-agent claude")]
    NobodyRetries,
}

impl ConflictAgent {
    /// Returns the agent that resolves conflicts, or none. `auto_lane` is the lane whose automatic merge this
    /// is, and `dir` the folder that a relative path to an agent starts from. Warns if the agent of the
    /// settings is not installed.
    ///
    /// # Errors
    /// Fails if the requested agent is not installed.
    pub(crate) fn choose(
        project: &Project,
        choice: &ConflictAgentChoice,
        auto_lane: Option<&LaneRecord>,
        dir: &Path,
    ) -> Result<Option<ConflictAgent>, Error> {
        match choice {
            ConflictAgentChoice::Nobody => Ok(None),
            ConflictAgentChoice::Agent(name) => {
                require_installed(&project.layers, name, dir)?;
                Ok(Some(ConflictAgent { name: name.clone(), is_configured: false }))
            }
            ConflictAgentChoice::Setting => Ok(configured_agent(project, dir).or_else(|| {
                let name = auto_lane.and_then(|lane| usable_lane_agent(project, lane, dir))?;
                Some(ConflictAgent { name, is_configured: false })
            })),
        }
    }

    /// Returns whether the repository names the agent and the user has not approved it.
    pub fn needs_approval(&self, project: &Project) -> bool {
        resolve_agent::require_agent_approved(project, &self.name).is_err()
    }
}

/// Returns the agent of `merge.conflict_agent`, if it is installed.
fn configured_agent(project: &Project, dir: &Path) -> Option<ConflictAgent> {
    let name = project.settings.conflict_agent.clone()?;
    if require_installed(&project.layers, &name, dir).is_err() {
        project.listener.warn(format!(
            "the program of merge.conflict_agent '{name}' is not installed; conflicts are left to you"
        ));
        return None;
    }
    Some(ConflictAgent { name, is_configured: true })
}

/// Returns the agent of a lane that lands automatically, if it can resolve conflicts. A
/// `merge.conflict_agent` setting takes precedence, even if it is empty.
fn usable_lane_agent(project: &Project, lane: &LaneRecord, dir: &Path) -> Option<String> {
    let key = Key::find("merge.conflict_agent")?;
    let is_configured = !matches!(project.layers.get(key).1, Origin::Default);
    let agent = lane.agent.clone().filter(|agent| agent != "command" && !is_configured)?;
    require_installed(&project.layers, &agent, dir).is_ok().then_some(agent)
}
