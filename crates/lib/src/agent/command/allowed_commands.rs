//! Commands that an agent may run without a request: those of `--allow` and of `agent.allow`, as far as the
//! agent's profile can express them.

use std::path::Path;

use proq_base::config::key::Key;
use proq_base::config::layers::Origin;
use proq_base::explain::shell_quote;
use proq_store::records::run::RunRecord;

use crate::agent::Error;
use crate::agent::profiles::allow_pattern::AllowPattern;
use crate::agent::profiles::profile::permission::{CommandRule, Permission};
use crate::agent::profiles::profile::{Profile, PromptDelivery};
use crate::agent::profiles::profile_catalog::find_profile;
use crate::event::approval::Approvals;
use crate::lane::Project;

/// Name of the setting with the patterns.
const ALLOW_SETTING: &str = "agent.allow";

/// Files at the top of a worktree that show how the project is built, each with a pattern for its commands.
const BUILD_FILES: [(&str, &str); 5] = [
    ("Cargo.toml", "cargo *"),
    ("package.json", "npm run *"),
    ("go.mod", "go *"),
    ("pyproject.toml", "pytest *"),
    ("Makefile", "make *"),
];

/// Patterns that an agent is started with.
#[derive(Debug, Clone, Default)]
pub(crate) struct AllowedCommands {
    /// Patterns that were given explicitly, as they were given.
    pub(crate) flags: Vec<String>,
    /// All patterns, each once.
    pub(crate) patterns: Vec<AllowPattern>,
    /// Sentences about the patterns of the settings that the agent is not given.
    pub(crate) warnings: Vec<String>,
}

impl AllowedCommands {
    /// Collects the patterns of `flags` and of the settings for an agent with this profile.
    ///
    /// # Errors
    /// Fails when a text is not a pattern, when the agent cannot express one of `flags`, and when there are
    /// `flags` at another permission level than `edit`.
    pub(crate) fn collect(
        project: &Project,
        profile: &Profile,
        agent: &str,
        permission: Permission,
        flags: &[String],
    ) -> Result<AllowedCommands, Error> {
        if permission != Permission::Edit {
            return match flags {
                [] => Ok(AllowedCommands::default()),
                _ => Err(Error::AllowNeedsEdit { permission: permission.to_string() }),
            };
        }
        let mut out = AllowedCommands { flags: flags.to_vec(), ..AllowedCommands::default() };
        for text in flags {
            let pattern = parse_pattern(text, "--allow")?;
            if let Some((reason, instead)) = inexpressible_reason(profile, &pattern) {
                let pattern = pattern.to_string();
                return Err(Error::AllowUnsupported { agent: agent.to_owned(), pattern, reason, instead });
            }
            out.add(pattern);
        }
        let approvals = Approvals::load(&project.repo, &project.store)?;
        for command in approvals.allowed_commands(&project.layers, &project.settings) {
            if !command.approved {
                let note = "is not approved and has no effect; to see and approve it: git proq approve";
                out.warnings.push(format!("{ALLOW_SETTING} '{}' of the repository {note}", command.line));
                continue;
            }
            let pattern = parse_pattern(&command.line, ALLOW_SETTING)?;
            match inexpressible_reason(profile, &pattern).filter(|_| !profile.prompt_only) {
                Some((reason, _)) => {
                    out.warnings
                        .push(format!("{ALLOW_SETTING} '{pattern}' has no effect on {agent}: {reason}"));
                }
                None => out.add(pattern),
            }
        }
        Ok(out)
    }

    fn add(&mut self, pattern: AllowPattern) {
        if !self.patterns.contains(&pattern) {
            self.patterns.push(pattern);
        }
    }
}

fn parse_pattern(text: &str, origin: &'static str) -> Result<AllowPattern, Error> {
    AllowPattern::parse(text).map_err(|reason| Error::InvalidAllowPattern {
        pattern: text.to_owned(),
        origin,
        reason,
    })
}

/// Returns the reason why an agent cannot be given a pattern, or would permit more than the pattern; with the
/// pattern to use instead, if there is one. None if the agent can be given it, or may run any command anyway.
fn inexpressible_reason(profile: &Profile, pattern: &AllowPattern) -> Option<(String, Option<String>)> {
    match profile.permission.commands {
        CommandRule::Any | CommandRule::Sandbox => return None,
        CommandRule::None => return Some(("it runs no commands".to_owned(), None)),
        CommandRule::Listed | CommandRule::Own if profile.prompt == PromptDelivery::Protocol => return None,
        CommandRule::Listed | CommandRule::Own => {}
    }
    let command = pattern.command();
    let words: Vec<&str> = command.split(' ').collect();
    let level = profile.permission.edit.as_ref();
    let expresses = |name| level.is_some_and(|level| level.has_placeholder(name));
    if !expresses("allow") && !expresses("allow_exact") {
        return Some(("git-proq has no way to tell it which commands it may run".to_owned(), None));
    }
    if !pattern.permits_any_arguments() && !expresses("allow_exact") {
        let reason = "it would permit any arguments after that".to_owned();
        return Some((reason, Some(format!("{command} *"))));
    }
    let limit = profile.permission.allow_words.filter(|limit| words.len() > *limit)?;
    let reason = format!("it distinguishes only the first {limit} words of a command");
    Some((reason, Some(format!("{} *", words[..limit].join(" ")))))
}

impl AllowedCommands {
    /// Returns the command that allows the project's build in `dir`; none if that is allowed, or the command would
    /// change nothing.
    pub(crate) fn allow_more_command(&self, project: &Project, dir: &Path) -> Option<String> {
        let found = BUILD_FILES.into_iter().find(|(file, _)| dir.join(file).exists());
        let pattern = AllowPattern::parse(found.map_or("make *", |(_, pattern)| pattern)).ok()?;
        let is_allowed = self.patterns.iter().any(|allowed| allowed.covers(&pattern));
        if is_allowed { None } else { allow_command(project, &pattern) }
    }
}

/// Returns the command that allows what was denied in a run; none if none of the denied commands is a plain
/// one, if git-proq has no way to allow it, or if it was allowed since.
#[must_use]
pub fn allow_denied_command(project: &Project, run: &RunRecord) -> Option<String> {
    let profile = find_profile(&project.layers, &run.agent).ok()?;
    if profile.permission.commands != CommandRule::Listed || run.permission.as_deref() != Some("edit") {
        return None;
    }
    let plain = run.summary.denied_commands.iter().find(|command| AllowPattern::parse(command).is_ok())?;
    let pattern = AllowPattern::parse(&format!("{} *", plain.split_whitespace().next()?)).ok()?;
    allow_command(project, &pattern)
}

/// Returns the command that adds a pattern to the user's settings; none if a pattern of the settings that counts
/// covers it, or a variable overrides what the command writes.
fn allow_command(project: &Project, pattern: &AllowPattern) -> Option<String> {
    let key = Key::find(ALLOW_SETTING)?;
    if matches!(project.layers.get(key).1, Origin::Environment(_)) {
        return None;
    }
    let approvals = Approvals::load(&project.repo, &project.store).ok()?;
    let commands = approvals.allowed_commands(&project.layers, &project.settings);
    let allowed = commands.iter().filter(|command| command.approved);
    let is_set = allowed
        .filter_map(|command| AllowPattern::parse(&command.line).ok())
        .any(|allowed| allowed.covers(pattern));
    (!is_set).then(|| format!("git config --add proq.{ALLOW_SETTING} {}", shell_quote(&pattern.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::profiles::profile_catalog::load_profiles;

    /// Patterns that each agent is given, refused with a reason, or needs not because it may run anything.
    #[test]
    fn expresses_or_refuses_patterns_per_agent() {
        let profiles = load_profiles(&proq_base::config::layers::Layers::default()).unwrap();
        let patterns = ["cargo *", "npm ci", "npm run test *"].map(|text| AllowPattern::parse(text).unwrap());
        let mut out = String::new();
        for (name, profile) in profiles.iter().filter(|(_, profile)| !profile.prompt_only) {
            for pattern in &patterns {
                let text = match inexpressible_reason(profile, pattern) {
                    None => "yes".to_owned(),
                    Some((reason, None)) => reason,
                    Some((reason, Some(instead))) => format!("{reason}; instead '{instead}'"),
                };
                out.push_str(&format!("{name}: {pattern}: {text}\n"));
            }
        }
        insta::assert_snapshot!(out, @"
        acp: cargo *: yes
        acp: npm ci: yes
        acp: npm run test *: yes
        aider: cargo *: it runs no commands
        aider: npm ci: it runs no commands
        aider: npm run test *: it runs no commands
        amp: cargo *: git-proq has no way to tell it which commands it may run
        amp: npm ci: git-proq has no way to tell it which commands it may run
        amp: npm run test *: git-proq has no way to tell it which commands it may run
        claude: cargo *: yes
        claude: npm ci: yes
        claude: npm run test *: yes
        codex: cargo *: yes
        codex: npm ci: yes
        codex: npm run test *: yes
        copilot: cargo *: yes
        copilot: npm ci: it would permit any arguments after that; instead 'npm ci *'
        copilot: npm run test *: it distinguishes only the first 2 words of a command; instead 'npm run *'
        cursor: cargo *: yes
        cursor: npm ci: yes
        cursor: npm run test *: yes
        gemini: cargo *: yes
        gemini: npm ci: it would permit any arguments after that; instead 'npm ci *'
        gemini: npm run test *: yes
        opencode: cargo *: yes
        opencode: npm ci: yes
        opencode: npm run test *: yes
        pi: cargo *: yes
        pi: npm ci: yes
        pi: npm run test *: yes
        qwen: cargo *: it runs no commands
        qwen: npm ci: it runs no commands
        qwen: npm run test *: it runs no commands
        ");
    }
}
