//! Permission levels of an agent, and what a profile adds to the agent's start for each of them.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::super::template::has_placeholder;

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

/// Commands that an agent may run at level `edit` without a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CommandRule {
    /// Those that the agent's own configuration permits. git-proq does not know them.
    #[default]
    Own,
    /// git, the lane's checks, and those of `agent.allow`.
    Listed,
    /// Any, in the agent's sandbox.
    Sandbox,
    /// Any.
    Any,
    /// None.
    None,
}

/// Arguments and variables for each permission level of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PermissionLevels {
    /// Commands that the agent may run at level `edit`.
    pub commands: CommandRule,
    /// Maximum number of words before the `*` of a permitted command that the agent distinguishes; none for no
    /// limit.
    pub allow_words: Option<usize>,
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

impl PermissionLevel {
    /// Returns whether an argument or a variable of the level contains the placeholder `name`.
    pub(crate) fn has_placeholder(&self, name: &str) -> bool {
        self.args.iter().chain(self.env.values()).any(|text| has_placeholder(text.as_ref(), name))
    }
}
