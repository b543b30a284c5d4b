//! Permission levels of an agent, and what a profile adds to the agent's start for each of them.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Permission level of an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Permission {
    /// Reading only: the agent changes no file.
    Read,
    /// Changing files in its lane, using git there, and running the lane's approved checks.
    #[default]
    Edit,
    /// Any action, without a permission request.
    Full,
}

impl Permission {
    /// Returns the level with this name.
    pub fn from_name(name: &str) -> Option<Permission> {
        match name {
            "read" => Some(Permission::Read),
            "edit" => Some(Permission::Edit),
            "full" => Some(Permission::Full),
            _ => None,
        }
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Permission::Read => "read",
            Permission::Edit => "edit",
            Permission::Full => "full",
        })
    }
}

/// Arguments and variables for each permission level of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PermissionLevels {
    /// Settings for reading only; none where the agent cannot be prevented from changing files.
    pub read: Option<PermissionLevel>,
    /// Settings for changing files in its lane and using git there.
    pub edit: Option<PermissionLevel>,
    /// Settings for unrestricted work.
    pub full: Option<PermissionLevel>,
}

impl PermissionLevels {
    /// Returns the settings for a permission level, if the profile has them.
    pub(crate) fn level_settings(&self, permission: Permission) -> Option<&PermissionLevel> {
        match permission {
            Permission::Read => self.read.as_ref(),
            Permission::Edit => self.edit.as_ref(),
            Permission::Full => self.full.as_ref(),
        }
    }
}

/// Arguments and variables that give an agent one permission level.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PermissionLevel {
    /// Arguments of the level.
    pub args: Vec<String>,
    /// Environment variables of the level.
    pub env: BTreeMap<String, String>,
}
