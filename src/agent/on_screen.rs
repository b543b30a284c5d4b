//! Owns what is different about an agent in a window: what it asks a person there before it begins, and what is known of it then.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Error;
use super::activity;
use super::job::Job;
use super::profile::{Permission, Profile};
use crate::lane::Project;
use crate::store::records::{Activity, AnyLane};

/// What an agent is given in a window beyond its arguments, and what it asks there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct OnScreen {
    /// Variables that do not replace what the user's environment has.
    pub(crate) env_default: BTreeMap<String, String>,
    /// What it asks before it begins, and how it keeps the answer.
    pub(crate) asks: Asks,
}

/// Whose way of asking it is whether a folder is trusted. The answer is a person's: it is read where it is kept, and never written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Asks {
    /// It asks nothing.
    #[default]
    Nothing,
    /// It may ask; what was answered before is not known.
    Perhaps,
    /// As Claude Code: once for a repository, kept in `.claude.json`.
    Claude,
    /// As Codex: once for a repository, kept in `config.toml`; it can be answered for one run.
    Codex,
}

/// What an agent asks a person before it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Question {
    /// What, as in "it asks …".
    pub(super) what: &'static str,
    /// Whether it does, as far as can be read.
    is_sure: bool,
}

/// What is asked most often.
const TRUST: &str = "whether you trust this repository";

/// The folder in which Codex looks for settings of a repository's.
const OF_CODEX: &str = ".codex";

/// What an agent is going to ask in its window when it is started in `dir`.
pub(super) fn question(
    project: &Project,
    profile: &Profile,
    level: Permission,
    dir: &Path,
) -> Option<Question> {
    let sure = |what| Some(Question { what, is_sure: true });
    let homes = [project.repo.home(), dir];
    match profile.window.asks {
        Asks::Nothing => None,
        Asks::Perhaps => Some(Question { what: "whether you trust the folder", is_sure: false }),
        Asks::Claude => sure(of_claude(&Claude::read(profile), level, &homes)?),
        Asks::Codex if trusted_for_the_run(project, profile, dir).is_some() => None,
        Asks::Codex => (!is_trusted_by_codex(profile, project.repo.home())).then_some(TRUST).and_then(sure),
    }
}

/// The repository's folder, where an agent may be told for one run that it is trusted: that lets nothing of the repository's run which
/// would not run without it. Settings of the repository's own would, and so they are a person's to answer for.
pub(super) fn trusted_for_the_run<'p>(
    project: &'p Project,
    profile: &Profile,
    dir: &Path,
) -> Option<&'p Path> {
    let home = project.repo.home();
    let has_none = |dir: &Path| dir.join(OF_CODEX).symlink_metadata().is_err();
    (profile.window.asks == Asks::Codex && has_none(home) && has_none(dir)).then_some(home)
}

/// Notes what is known of a run in a window before its agent has said anything.
pub(super) fn expect(project: &Project, lane: &AnyLane, job: &Job, attempt: u32) -> Result<(), Error> {
    if !job.in_window || job.is_command() {
        return Ok(());
    }
    let profile = job.profile();
    let asked = question(project, profile, job.permission, &lane.path).filter(|question| question.is_sure);
    match asked.filter(|_| profile.tells().contains(&Activity::NeedsApproval)) {
        // What it says first takes the place of that.
        Some(question) => {
            let message = Some(format!("asks {}", question.what));
            activity::expect(project, lane, attempt, Activity::NeedsApproval, message)
        }
        None if profile.tells().is_empty() => {
            activity::expect(project, lane, attempt, Activity::Unknown, None)
        }
        None => Ok(()),
    }
}

impl Job {
    /// What it is going to ask in its window.
    pub(super) fn warning_of_question(&self, project: &Project) -> Option<String> {
        let profile = self.profile();
        let question = question(project, profile, self.permission, project.repo.home());
        question.filter(|_| self.in_window && !self.is_command()).map(|Question { what, is_sure }| {
            match is_sure {
                true => format!(
                    "{} will ask in its window {what}, and waits until you have answered: git proq attach",
                    self.agent
                ),
                false => {
                    format!("{} may ask in its window {what}, and then waits for your answer", self.agent)
                }
            }
        })
    }

    /// What is not known of it in a window.
    pub(super) fn warning_of_silence(&self) -> Option<String> {
        let profile = self.profile();
        if !self.in_window || self.is_command() {
            return None;
        }
        let can_be_asked_to = !profile.capabilities.hooks && profile.can_have_hooks();
        let helps = match can_be_asked_to {
            true => format!("; with agents.{}.capabilities.hooks = true it does", self.agent),
            false => String::new(),
        };
        let has = |activity| profile.tells().contains(&activity);
        if profile.tells().is_empty() {
            return Some(format!(
                "{} does not tell whether it works, waits for you or is idle: its lane is running until it ends{helps}",
                self.agent
            ));
        }
        (profile.capabilities.permissions && !has(Activity::NeedsApproval))
            .then(|| format!("{} does not tell when it waits for your consent{helps}", self.agent))
    }
}

/// What Claude Code has kept of what a person answered.
struct Claude {
    kept: serde_json::Value,
    settings: serde_json::Value,
}

impl Claude {
    /// Reads it. What cannot be read says nothing.
    fn read(profile: &Profile) -> Claude {
        let read = |path: PathBuf| {
            let bytes = std::fs::read(path).unwrap_or_default();
            serde_json::from_slice(&bytes).unwrap_or_default()
        };
        let home = variable(profile, "HOME").unwrap_or_default();
        let own = variable(profile, "CLAUDE_CONFIG_DIR");
        let settings = own.clone().unwrap_or_else(|| home.join(".claude")).join("settings.json");
        Claude { kept: read(own.unwrap_or(home).join(".claude.json")), settings: read(settings) }
    }
}

/// What Claude Code asks first, in the order in which it does. Whoever trusts a folder trusts what is below it.
fn of_claude(claude: &Claude, level: Permission, homes: &[&Path]) -> Option<&'static str> {
    let is_true = |value: &serde_json::Value| value.as_bool() == Some(true);
    let mut above = homes.iter().flat_map(|dir| dir.ancestors()).filter_map(Path::to_str);
    let is_trusted = above.any(|dir| is_true(&claude.kept["projects"][dir]["hasTrustDialogAccepted"]));
    let may_do_all = is_true(&claude.kept["bypassPermissionsModeAccepted"])
        || is_true(&claude.settings["skipDangerousModePermissionPrompt"]);
    match () {
        () if !is_true(&claude.kept["hasCompletedOnboarding"]) => Some("to be set up, as at its first start"),
        () if !is_trusted => Some(TRUST),
        () if level == Permission::Full && !may_do_all => Some("whether it may do anything"),
        () => None,
    }
}

/// Whether a person has told Codex that a repository is trusted.
fn is_trusted_by_codex(profile: &Profile, home: &Path) -> bool {
    let dir = variable(profile, "CODEX_HOME")
        .or_else(|| Some(variable(profile, "HOME")?.join(OF_CODEX)))
        .unwrap_or_default();
    let text = std::fs::read_to_string(dir.join("config.toml")).unwrap_or_default();
    let kept: toml::Table = text.parse().unwrap_or_default();
    let of_repository = home.to_str().and_then(|home| kept.get("projects")?.get(home)?.get("trust_level"));
    of_repository.and_then(toml::Value::as_str) == Some("trusted")
}

/// A variable that names a folder, as the agent is going to have it.
fn variable(profile: &Profile, name: &str) -> Option<PathBuf> {
    let own = profile.env.get(name).map(PathBuf::from);
    own.or_else(|| std::env::var_os(name).map(PathBuf::from)).filter(|path| path.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(kept: &serde_json::Value, level: Permission) -> Option<&'static str> {
        let claude = Claude { kept: kept.clone(), settings: serde_json::Value::Null };
        of_claude(&claude, level, &[Path::new("/a/repo"), Path::new("/a/repo/.proq-worktrees/x")])
    }

    #[test]
    fn what_was_answered_before_is_not_asked_again() {
        let edit = Permission::Edit;
        assert_eq!(asked(&serde_json::Value::Null, edit), Some("to be set up, as at its first start"));
        let set_up = serde_json::json!({ "hasCompletedOnboarding": true });
        assert_eq!(asked(&set_up, edit), Some(TRUST));
        let trusted = |dir: &str| {
            serde_json::json!({
                "hasCompletedOnboarding": true, "projects": { dir: { "hasTrustDialogAccepted": true } }
            })
        };
        for dir in ["/a/repo", "/a", "/a/repo/.proq-worktrees"] {
            assert_eq!(asked(&trusted(dir), edit), None, "{dir}");
        }
        assert_eq!(asked(&trusted("/a/repo-2"), edit), Some(TRUST));
        assert_eq!(asked(&trusted("/a"), Permission::Full), Some("whether it may do anything"));
    }
}
