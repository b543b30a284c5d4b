//! The agents that are known, and which of them are installed.

use std::path::Path;

use serde::Serialize;

use crate::agent::profiles::installed_programs::{InstalledProgram, find_installed};
use crate::agent::profiles::profile::Profile;
use crate::agent::profiles::profile_catalog::load_profiles;
use crate::lane::Project;
use crate::ops::error::Error;

/// All agents. It serializes to the JSON output.
#[derive(Debug, Serialize)]
pub struct AgentList {
    /// The agents, by name.
    pub agents: Vec<AgentRow>,
}

/// An agent, in the form of the JSON output.
#[derive(Debug, Serialize)]
pub struct AgentRow {
    /// Name of the profile.
    pub name: String,
    /// Path of the agent's program; none if it is not installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Version of the program, if it prints one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Whether the profile was tested with that version.
    #[serde(rename = "tried")]
    pub is_version_tested: bool,
    /// Names of what the agent is capable of.
    pub capabilities: Vec<&'static str>,
    /// The activities that the agent's hooks report while the agent runs.
    #[serde(rename = "tells")]
    pub reported_activities: Vec<String>,
    /// The profile.
    pub profile: Profile,
}

impl AgentList {
    /// Lists the agents, and queries the versions of those that are installed. Relative paths of programs
    /// start at `dir`.
    ///
    /// # Errors
    /// Fails when the settings cannot be read, or a profile of the user is invalid.
    pub fn load(dir: &Path) -> Result<AgentList, Error> {
        let profiles = load_profiles(&Project::load_layers(None)?)?;
        let programs = find_installed(&profiles.values().collect::<Vec<_>>(), dir);
        let rows = profiles.into_iter().zip(programs);
        Ok(AgentList {
            agents: rows.map(|((name, profile), found)| AgentRow::new(name, profile, found)).collect(),
        })
    }
}

impl AgentRow {
    fn new(name: String, profile: Profile, program: Option<InstalledProgram>) -> AgentRow {
        let (path, version) = match program {
            Some(program) => (Some(program.path.display().to_string()), program.version),
            None => (None, None),
        };
        AgentRow {
            is_version_tested: version
                .as_ref()
                .is_some_and(|version| profile.tested_versions.contains(version)),
            capabilities: profile.capabilities.names(),
            reported_activities: profile.known_activities().iter().map(ToString::to_string).collect(),
            name,
            path,
            version,
            profile,
        }
    }
}
