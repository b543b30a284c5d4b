//! Checks and warnings before agents are started.

use std::cell::LazyCell;
use std::collections::BTreeSet;

use crate::agent::command::agent_command::AgentCommand;
use crate::lane::Project;
use crate::ops::error::Error;
use crate::ops::refusal::refuse_in_lane;

/// Warning about a repository in which git can create no commit.
const NO_COMMITTER_WARNING: &str = "git has no name and email for new commits, so nothing in the lane \
    can be committed: git config user.name 'Your Name' && git config user.email you@example.com";

/// Warns about agent commands before they are started, each text once. `calling_lane` is the lane in which the
/// caller works, if any.
///
/// # Errors
/// [`Refusal::InLane`](crate::ops::refusal::Refusal::InLane) if an agent in a lane would start an agent at full
/// permission, or allow it further commands.
pub fn refuse_or_warn_before_start<'j>(
    project: &Project,
    calling_lane: Option<&str>,
    agent_commands: impl IntoIterator<Item = &'j AgentCommand>,
) -> Result<(), Error> {
    let mut shown = BTreeSet::new();
    let has_committer = LazyCell::new(|| project.repo.has_committer());
    for agent_command in agent_commands {
        if agent_command.can_land() && !*has_committer && shown.insert(NO_COMMITTER_WARNING.to_owned()) {
            project.listener.warn(NO_COMMITTER_WARNING);
        }
        // Wherever the level was set: an agent grants no other agent more permission than it has.
        if agent_command.is_unrestricted() || !agent_command.allow_flags().is_empty() {
            refuse_in_lane(calling_lane)?;
        }
        for warning in agent_command.warnings(project)? {
            if shown.insert(warning.clone()) {
                project.listener.warn(warning);
            }
        }
    }
    Ok(())
}
