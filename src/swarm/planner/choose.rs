//! Owns choosing an agent where nobody named one.

use super::super::DraftError;
use crate::agent::{self, Profile};
use crate::lane::Project;

/// The agent that was named, or the first by name that is installed and can be kept to looking; of those, one that can be told
/// more later comes before others.
///
/// # Errors
/// [`DraftError::NoAgent`].
pub(crate) fn choose(project: &Project, named: Option<&str>) -> Result<String, DraftError> {
    if let Some(named) = named {
        return Ok(named.to_owned());
    }
    let dir = project.repo.home();
    let fits = |profile: &Profile| profile.permission.read.is_some() && !profile.program.is_empty();
    let all = agent::profiles(&project.layers)?;
    let known: Vec<(String, Profile)> = all.into_iter().filter(|(_, profile)| fits(profile)).collect();
    let installed: Vec<&(String, Profile)> =
        known.iter().filter(|(_, profile)| profile.find(dir).is_ok()).collect();
    let best = installed.iter().find(|(_, profile)| profile.goes_on()).or(installed.first());
    match best {
        Some((name, _)) => Ok(name.clone()),
        None => Err(DraftError::NoAgent { known: known.into_iter().map(|(name, _)| name).collect() }),
    }
}
