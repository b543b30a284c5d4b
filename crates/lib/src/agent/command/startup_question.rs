//! Agents in a tmux window: the question that an agent shows the user before it starts to work, and the
//! activity that is known then.

use std::path::{Path, PathBuf};

use proq_git::Repo;
use proq_store::base::run_number::RunNumber;
use proq_store::records::agent::Activity;
use proq_store::records::lane::AnyLane;

use super::agent_command::AgentCommand;
use crate::agent::Error;
use crate::agent::hook_events::activity;
use crate::agent::profiles::profile::Profile;
use crate::agent::profiles::profile::permission::Permission;
use crate::agent::profiles::profile::window::TrustQuestion;
use crate::lane::Project;

/// Question that an agent shows the user before it starts to work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StartupQuestion {
    /// Text of the question, a clause such as "whether it may trust the folder".
    pub clause: &'static str,
    /// Whether the saved answers prove that the agent will show this question.
    is_sure: bool,
}

/// Text of the most frequent question.
const TRUST_QUESTION: &str = "whether you trust this repository";

/// Folder with Codex's settings, of a repository or of the user.
const CODEX_DIR: &str = ".codex";

/// Returns the question that an agent will, or may, show in its window when it starts in `dir`; none when it
/// shows no question.
pub(crate) fn startup_question(
    repo: &Repo,
    profile: &Profile,
    level: Permission,
    dir: &Path,
) -> Option<StartupQuestion> {
    let certain = |text| Some(StartupQuestion { clause: text, is_sure: true });
    let dirs = [repo.command_dir(), dir];
    match profile.window.trust_question {
        TrustQuestion::Never => None,
        TrustQuestion::Possible => {
            Some(StartupQuestion { clause: "whether you trust the folder", is_sure: false })
        }
        TrustQuestion::Claude => certain(claude_question(&SavedClaudeState::load(profile), level, &dirs)?),
        TrustQuestion::Codex if dir_to_trust_for_run(repo, profile, dir).is_some() => None,
        TrustQuestion::Codex => {
            (!is_trusted_by_codex(profile, repo.command_dir())).then_some(TRUST_QUESTION).and_then(certain)
        }
    }
}

/// Returns the repository's folder if Codex may be started with that folder trusted for one run; none for
/// other agents. With Codex settings in the repository it returns none, and the user has to answer: trust
/// would put those settings into effect. Without them, trust permits nothing of the repository that would not
/// run without it.
pub(crate) fn dir_to_trust_for_run<'p>(repo: &'p Repo, profile: &Profile, dir: &Path) -> Option<&'p Path> {
    let repo_dir = repo.command_dir();
    let lacks_codex_dir = |dir: &Path| dir.join(CODEX_DIR).symlink_metadata().is_err();
    (profile.window.trust_question == TrustQuestion::Codex
        && lacks_codex_dir(repo_dir)
        && lacks_codex_dir(dir))
    .then_some(repo_dir)
}

/// Records the activity of a run in a window that is expected before its agent reports any: waiting for an
/// answer, or unknown. Records nothing where the agent's reports suffice.
pub(crate) fn record_expected_activity(
    project: &Project,
    lane: &AnyLane,
    command: &AgentCommand,
    run_number: RunNumber,
) -> Result<(), Error> {
    if !command.in_window || command.is_user_command() {
        return Ok(());
    }
    let profile = command.profile();
    let expected = startup_question(&project.repo, profile, command.permission, &lane.path)
        .filter(|question| question.is_sure);
    match expected.filter(|_| profile.known_activities().contains(&Activity::NeedsApproval)) {
        // The agent's first report replaces this one.
        Some(question) => {
            let message = Some(format!("asks {}", question.clause));
            activity::record_initial_activity(
                &project.store,
                lane,
                run_number,
                Activity::NeedsApproval,
                message,
            )
        }
        None if profile.known_activities().is_empty() => {
            activity::record_initial_activity(&project.store, lane, run_number, Activity::Unknown, None)
        }
        None => Ok(()),
    }
}

impl AgentCommand {
    /// Returns a warning about the question that the agent will show in its window.
    pub(crate) fn question_warning(&self, repo: &Repo) -> Option<String> {
        let profile = self.profile();
        let question = startup_question(repo, profile, self.permission, repo.command_dir());
        question.filter(|_| self.in_window && !self.is_user_command()).map(
            |StartupQuestion { clause: text, is_sure }| match is_sure {
                true => format!("{} will ask in its window {text}, and waits for your answer", self.agent),
                false => {
                    format!("{} may ask in its window {text}, and wait for your answer", self.agent)
                }
            },
        )
    }

    /// Returns a warning about activity that the agent does not report from its window.
    pub(crate) fn unknown_activity_warning(&self) -> Option<String> {
        let profile = self.profile();
        if !self.in_window || self.is_user_command() {
            return None;
        }
        let hooks_can_be_enabled = !profile.capabilities.hooks && profile.has_optional_hooks();
        let hint = match hooks_can_be_enabled {
            true => format!("; to change that, set agents.{}.capabilities.hooks = true", self.agent),
            false => String::new(),
        };
        let reports = |activity| profile.known_activities().contains(&activity);
        if profile.known_activities().is_empty() {
            return Some(format!(
                "{} does not report whether it works, waits for you or is idle: its lane counts as running until it ends{hint}",
                self.agent
            ));
        }
        (profile.capabilities.permissions && !reports(Activity::NeedsApproval))
            .then(|| format!("{} does not report when it waits for your approval{hint}", self.agent))
    }
}

/// Files in which Claude Code has saved the user's answers and settings.
struct SavedClaudeState {
    /// Content of `.claude.json`; null when it cannot be read.
    config: serde_json::Value,
    /// Content of `settings.json`; null when it cannot be read.
    settings: serde_json::Value,
}

impl SavedClaudeState {
    /// Reads the files of Claude Code. An unreadable file counts as empty.
    fn load(profile: &Profile) -> SavedClaudeState {
        let read_json = |path: PathBuf| {
            let bytes = std::fs::read(path).unwrap_or_default();
            serde_json::from_slice(&bytes).unwrap_or_default()
        };
        let home = agent_env_path(profile, "HOME").unwrap_or_default();
        let config_dir = agent_env_path(profile, "CLAUDE_CONFIG_DIR");
        let settings = config_dir.clone().unwrap_or_else(|| home.join(".claude")).join("settings.json");
        SavedClaudeState {
            config: read_json(config_dir.unwrap_or(home).join(".claude.json")),
            settings: read_json(settings),
        }
    }
}

/// Returns the first question that Claude Code will show; none when all are answered. Trust in a folder
/// includes all folders below it.
fn claude_question(claude: &SavedClaudeState, level: Permission, dirs: &[&Path]) -> Option<&'static str> {
    let is_true = |value: &serde_json::Value| value.as_bool() == Some(true);
    let mut ancestors = dirs.iter().flat_map(|dir| dir.ancestors()).filter_map(Path::to_str);
    let is_trusted = ancestors.any(|dir| is_true(&claude.config["projects"][dir]["hasTrustDialogAccepted"]));
    let has_accepted_full_access = is_true(&claude.config["bypassPermissionsModeAccepted"])
        || is_true(&claude.settings["skipDangerousModePermissionPrompt"]);
    match () {
        () if !is_true(&claude.config["hasCompletedOnboarding"]) => Some("about its set-up"),
        () if !is_trusted => Some(TRUST_QUESTION),
        () if level == Permission::Full && !has_accepted_full_access => Some("whether it may do anything"),
        () => None,
    }
}

/// Returns whether the user has marked a repository as trusted in Codex.
fn is_trusted_by_codex(profile: &Profile, repo_dir: &Path) -> bool {
    let dir = agent_env_path(profile, "CODEX_HOME")
        .or_else(|| Some(agent_env_path(profile, "HOME")?.join(CODEX_DIR)))
        .unwrap_or_default();
    let text = std::fs::read_to_string(dir.join("config.toml")).unwrap_or_default();
    let config: toml::Table = text.parse().unwrap_or_default();
    let trust_level =
        repo_dir.to_str().and_then(|repo_path| config.get("projects")?.get(repo_path)?.get("trust_level"));
    trust_level.and_then(toml::Value::as_str) == Some("trusted")
}

/// Returns the absolute path in an environment variable as the agent will have it.
fn agent_env_path(profile: &Profile, name: &str) -> Option<PathBuf> {
    let from_profile = profile.env.get(name).map(PathBuf::from);
    from_profile.or_else(|| std::env::var_os(name).map(PathBuf::from)).filter(|path| path.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question_for(config: &serde_json::Value, level: Permission) -> Option<&'static str> {
        let claude = SavedClaudeState { config: config.clone(), settings: serde_json::Value::Null };
        claude_question(&claude, level, &[Path::new("/a/repo"), Path::new("/a/repo/.proq-worktrees/x")])
    }

    #[test]
    fn skips_questions_that_were_answered() {
        let edit = Permission::Edit;
        assert_eq!(question_for(&serde_json::Value::Null, edit), Some("about its set-up"));
        let set_up = serde_json::json!({ "hasCompletedOnboarding": true });
        assert_eq!(question_for(&set_up, edit), Some(TRUST_QUESTION));
        let trusted = |dir: &str| {
            serde_json::json!({
                "hasCompletedOnboarding": true, "projects": { dir: { "hasTrustDialogAccepted": true } }
            })
        };
        for dir in ["/a/repo", "/a", "/a/repo/.proq-worktrees"] {
            assert_eq!(question_for(&trusted(dir), edit), None, "{dir}");
        }
        assert_eq!(question_for(&trusted("/a/repo-2"), edit), Some(TRUST_QUESTION));
        assert_eq!(question_for(&trusted("/a"), Permission::Full), Some("whether it may do anything"));
    }
}
