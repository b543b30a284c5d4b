//! Commands that an agent may run without a request, for the user and for the agent's rules.

use super::agent_command::{AgentCommand, is_literal_command};
use crate::agent::profiles::allow_pattern::AllowPattern;
use crate::agent::profiles::profile::PromptDelivery;
use crate::agent::profiles::profile::permission::{CommandRule, Permission};
use crate::lane::Project;

impl AgentCommand {
    /// Returns the commands that the agent may run: git, those of `checks` that its rules can name, and the
    /// allowed patterns. None unless the agent is limited to such a list.
    pub(crate) fn listed_commands(&self, checks: &[String]) -> Option<Vec<String>> {
        let profile = self.profile();
        if self.permission != Permission::Edit || profile.permission.commands != CommandRule::Listed {
            return None;
        }
        let takes_checks = profile.prompt == PromptDelivery::Protocol
            || profile.permission.edit.as_ref().is_some_and(|level| level.has_placeholder("check"));
        let checks = checks.iter().filter(|check| takes_checks && is_literal_command(check)).cloned();
        let mut out = vec!["git".to_owned()];
        out.extend(checks.chain(self.allowed.patterns.iter().map(ToString::to_string)));
        Some(out)
    }

    /// Describes the commands that the agent may run without a request. None for a read-only run, for a
    /// command line of the user, and where only the agent's own configuration decides.
    pub fn runnable_commands_text(&self) -> Option<String> {
        if !self.has_permission_level() {
            return None;
        }
        match (self.permission, self.profile().permission.commands) {
            (Permission::Read, _) | (Permission::Edit, CommandRule::Own) => None,
            (Permission::Full, _) | (_, CommandRule::Any) => Some("any command".to_owned()),
            (_, CommandRule::Sandbox) => Some("any command, in its sandbox".to_owned()),
            (_, CommandRule::None) => Some("no commands".to_owned()),
            (_, CommandRule::Listed) => self.listed_commands(&self.checks).map(|all| all.join(", ")),
        }
    }

    /// Returns the command that allows the agent the build of this project; none if it may run that, or if
    /// git-proq has no way to allow it.
    pub fn allow_more_command(&self, project: &Project) -> Option<String> {
        let _ = self.listed_commands(&[])?;
        let repo = &project.repo;
        self.allowed.allow_more_command(project, repo.main_worktree().unwrap_or(repo.command_dir()))
    }

    /// Returns the rule for the agent about the commands that it may run; none unless it is limited to a list.
    pub(crate) fn command_rule(&self, checks: &[String]) -> Option<String> {
        let commands: Vec<String> =
            self.listed_commands(checks)?.into_iter().map(|command| format!("`{command}`")).collect();
        let others = match self.in_window {
            true => "The user has to approve any other.",
            false => "Any other is refused; do not try it in another form.",
        };
        let arguments = match self.allowed.patterns.iter().any(AllowPattern::permits_any_arguments) {
            true => " (`*` stands for any arguments)",
            false => "",
        };
        Some(format!("You may run these commands: {}{arguments}. {others}", commands.join(", ")))
    }
}
