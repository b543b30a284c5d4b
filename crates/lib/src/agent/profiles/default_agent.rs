//! Agent of a command that names none: that of the settings, or the only installed one.

use std::path::Path;

use proq_base::config::layers::Layers;
use proq_base::process::find_executable::find_executable;

use super::profile_catalog::{load_profiles, similar_agent};
use crate::agent::Error;
use crate::lane::Project;

/// Agent that was chosen for a command that names none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultAgent {
    /// Name of its profile.
    pub name: String,
    /// Whether it was chosen because no other known agent is installed.
    pub is_only_installed: bool,
}

/// Chooses the agent of a command that names none. Relative paths of programs start at `dir`.
///
/// # Errors
/// [`Error::NoDefaultAgent`] without `agent.default`, if none or several of the known agents are installed.
pub fn find_default_agent(project: &Project, dir: &Path) -> Result<DefaultAgent, Error> {
    if let Some(name) = &project.settings.default_agent {
        return Ok(DefaultAgent { name: name.clone(), is_only_installed: false });
    }
    let mut installed: Vec<String> = load_profiles(&project.layers)?
        .into_iter()
        .filter(|(_, profile)| find_executable(&profile.program, dir).is_ok())
        .map(|(name, _)| name)
        .collect();
    match installed.as_slice() {
        [_] => Ok(DefaultAgent { name: installed.swap_remove(0), is_only_installed: true }),
        _ => Err(Error::NoDefaultAgent { installed }),
    }
}

/// Returns whether a single argument names an agent or a program, and not a task: it is one word, and a known
/// agent or a program on `PATH`.
///
/// # Errors
/// [`Error::NotInstalled`] for a word that is neither, but similar to the name of a known agent.
pub fn names_agent(layers: &Layers, argument: &str, dir: &Path) -> Result<bool, Error> {
    if argument.trim().is_empty() || argument.contains(char::is_whitespace) {
        return Ok(false);
    }
    if load_profiles(layers)?.contains_key(argument) || find_executable(argument, dir).is_ok() {
        return Ok(true);
    }
    match similar_agent(layers, argument) {
        Some(similar) => Err(Error::missing_program(argument, Some(similar))),
        None => Ok(false),
    }
}
