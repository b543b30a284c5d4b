//! Choice of an agent where the user named none.

use super::super::DraftError;
use crate::agent::{self, Profile};
use crate::lane::Project;

/// Returns the requested agent, or the first installed one by name that can be restricted to reading. An
/// agent that can resume a conversation is preferred.
///
/// # Errors
/// Fails with [`DraftError::NoAgent`] when no such agent is installed.
pub(crate) fn choose_agent(project: &Project, requested: Option<&str>) -> Result<String, DraftError> {
    if let Some(named) = requested {
        return Ok(named.to_owned());
    }
    let dir = project.repo.command_dir();
    let can_read_only = |profile: &Profile| profile.permission.read.is_some() && !profile.program.is_empty();
    let profiles = agent::load_profiles(&project.layers)?;
    let capable: Vec<(String, Profile)> =
        profiles.into_iter().filter(|(_, profile)| can_read_only(profile)).collect();
    let installed: Vec<&(String, Profile)> =
        capable.iter().filter(|(_, profile)| profile.find_program(dir).is_ok()).collect();
    let chosen = installed.iter().find(|(_, profile)| profile.can_resume()).or(installed.first());
    match chosen {
        Some((name, _)) => Ok(name.clone()),
        None => Err(DraftError::NoAgent { supported: capable.into_iter().map(|(name, _)| name).collect() }),
    }
}
