//! Overseer: an agent with the lane tools that a user starts to supervise all lanes.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use proq_base::config::layers::Layers;
use proq_store::base::atomic::write as write_atomically;
use proq_store::base::clock::now;
use proq_store::base::record::Record;
use proq_store::locks::lock::{LockGuard, LockName, WaitLimit};
use proq_store::records::agent::OverseerRecord;

use crate::agent::Error;
use crate::agent::profiles::agent_env;
use crate::agent::profiles::agent_env::EnvVar;
use crate::agent::profiles::profile::permission::Permission;
use crate::agent::profiles::profile::{OverseerProfile, Profile};
use crate::agent::profiles::profile_catalog::load_profiles;
use crate::agent::profiles::template::{PlaceholderValues, has_placeholder};
use crate::lane::Project;

/// Agent that can supervise all lanes.
#[derive(Debug)]
pub struct Overseer {
    /// Name of the agent.
    pub name: String,
    profile: Profile,
    config: OverseerProfile,
}

/// Options of the start of an overseer.
#[derive(Debug)]
pub struct OverseerOptions<'a> {
    /// Path of git-proq, which serves the tools.
    pub git_proq_path: &'a Path,
    /// First prompt.
    pub prompt: &'a str,
    /// Session id.
    pub session: &'a str,
    /// Whether the session is resumed; otherwise it is started.
    pub resume: bool,
    /// Tools that the agent may use without approval.
    pub allowed_tools: &'a [&'a str],
    /// Path of the agent's settings file, if it takes one.
    pub settings_path: &'a Path,
}

/// Command that starts an overseer.
#[derive(Debug)]
pub struct OverseerCommand {
    /// Arguments of the program.
    pub args: Vec<OsString>,
    /// Environment variables.
    pub env: Vec<EnvVar>,
    /// Content of the agent's settings file, if it takes one.
    settings_text: Option<OsString>,
}

impl Overseer {
    /// Returns all agents that can supervise lanes, sorted by name.
    ///
    /// # Errors
    /// Fails when a profile of the user is invalid.
    pub fn load_all(layers: &Layers) -> Result<Vec<Overseer>, Error> {
        let to_overseer = |(name, mut profile): (String, Profile)| {
            profile.supervise.take().map(|config| Overseer { name, profile, config })
        };
        Ok(load_profiles(layers)?.into_iter().filter_map(to_overseer).collect())
    }

    /// Returns the path of the agent's program.
    pub fn find_program(&self, dir: &Path) -> Result<PathBuf, Error> {
        self.profile.find_program(dir)
    }

    /// Returns whether the agent can resume an earlier session.
    pub fn can_resume(&self) -> bool {
        !self.config.resume.is_empty()
    }

    /// Returns whether the agent resumes a session by an id that was chosen at its start. Otherwise it
    /// resumes the last session of the folder.
    pub fn resumes_by_id(&self) -> bool {
        self.config.resume.iter().any(|word| has_placeholder(word.as_ref(), "session"))
    }

    /// Builds the command that starts the agent with these options.
    ///
    /// # Errors
    /// [`Error::CannotMergeUserFile`] when the agent's settings file would replace an existing one.
    pub fn build_command(&self, options: &OverseerOptions<'_>) -> Result<OverseerCommand, Error> {
        let mut values = PlaceholderValues::default();
        values.set("exe", options.git_proq_path);
        values.set("prompt", options.prompt);
        values.set("session", options.session);
        values.set("settings", options.settings_path);
        let env_names: serde_json::Value = exportable_variables().collect();
        values.set("variables", env_names.to_string());
        values.set_list("tool", options.allowed_tools.iter().map(|tool| (*tool).to_owned()).collect());
        let template = if options.resume { &self.config.resume } else { &self.config.start };
        let mut env = agent_env::expand_env(&self.config.env, &values);
        env.extend(agent_env::merged_json_env(&self.config.env_json, &values));
        let settings = self.config.settings_text.as_ref().and_then(|text| values.expand(text.as_ref()));
        env.extend(agent_env::file_env(&self.config.env_file, "settings", options.settings_path));
        let join_with_user_file = |text| agent_env::merged_file_text(&self.config.env_file, "settings", text);
        Ok(OverseerCommand {
            args: self.profile.expand_args(template, Permission::default(), &values),
            env,
            settings_text: settings.map(join_with_user_file).transpose()?,
        })
    }
}

/// Takes the lock that only one supervising agent of the repository holds.
///
/// # Errors
/// Fails at once if another one runs.
pub fn lock_session(project: &Project) -> Result<LockGuard, Error> {
    Ok(project.store.locks().acquire_within(&LockName::Overseer, WaitLimit::NoWait)?)
}

/// Loads the session of the agent that supervised last; none if there was none.
///
/// # Errors
/// Fails when the record cannot be read.
pub fn last_session(project: &Project) -> Result<Option<OverseerRecord>, Error> {
    Ok(OverseerRecord::load_if_exists(&project.store.layout().overseer_session())?)
}

/// Records the session of the agent that is about to start.
///
/// # Errors
/// Fails when the record cannot be written.
pub fn save_session(project: &Project, agent: &str, session: &str) -> Result<(), Error> {
    let record = OverseerRecord { agent: agent.to_owned(), session: session.to_owned(), started: now() };
    Ok(record.save(&project.store.layout().overseer_session())?)
}

impl OverseerCommand {
    /// Writes the settings file, if the agent takes one.
    ///
    /// # Errors
    /// Fails when the file cannot be written.
    pub fn write_settings(&self, path: &Path) -> Result<(), Error> {
        let Some(text) = &self.settings_text else { return Ok(()) };
        Ok(write_atomically(path, text.as_encoded_bytes())?)
    }
}

/// Returns the names of this process's environment variables that an agent may pass to git-proq's MCP server:
/// alphanumeric names without those of git.
fn exportable_variables() -> impl Iterator<Item = String> {
    let is_exportable = |name: &String| {
        !name.is_empty()
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
            && !name.starts_with("GIT_")
    };
    std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).filter(is_exportable)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn overseer_command(name: &str, resume: bool) -> OverseerCommand {
        let overseers = Overseer::load_all(&Layers::default()).unwrap();
        let (program_path, settings) = (Path::new("/a b/git-\"proq\""), Path::new("/s/settings.json"));
        let options = OverseerOptions {
            git_proq_path: program_path,
            prompt: "Hello",
            session: "ID",
            resume,
            allowed_tools: &["list", "show"],
            settings_path: settings,
        };
        overseers.iter().find(|overseer| overseer.name == name).unwrap().build_command(&options).unwrap()
    }

    fn overseer_args(name: &str, resume: bool) -> Vec<String> {
        overseer_command(name, resume).args.into_iter().map(|word| word.into_string().unwrap()).collect()
    }

    fn json(text: &OsString) -> Value {
        serde_json::from_str(text.to_str().unwrap()).unwrap()
    }

    #[test]
    fn passes_the_prompt_as_last_argument() {
        for overseer in Overseer::load_all(&Layers::default()).unwrap() {
            for resume in [false, true].into_iter().take(1 + usize::from(overseer.can_resume())) {
                assert_eq!(
                    overseer_args(&overseer.name, resume).last().unwrap(),
                    "Hello",
                    "{}",
                    overseer.name
                );
            }
        }
    }

    #[test]
    fn every_overseer_can_resume() {
        let resume_by_id = |overseer: &Overseer| overseer.can_resume().then(|| overseer.resumes_by_id());
        let overseers = Overseer::load_all(&Layers::default()).unwrap();
        let results: Vec<_> =
            overseers.iter().map(|overseer| (overseer.name.as_str(), resume_by_id(overseer))).collect();
        let expected = |name, chooses| (name, Some(chooses));
        assert_eq!(
            results,
            [
                expected("claude", true),
                expected("codex", false),
                expected("gemini", true),
                expected("opencode", false)
            ]
        );
    }

    #[test]
    fn passes_claude_the_server_and_tools_as_options() {
        let args = overseer_args("claude", true);
        let option = |name: &str| args.iter().position(|word| word == name).unwrap();
        assert_eq!(args[option("--resume") + 1], "ID");
        let server: Value = serde_json::from_str(&args[option("--mcp-config") + 1]).unwrap();
        assert_eq!(server["mcpServers"]["proq"]["command"], "/a b/git-\"proq\"");
        let index = option("--allowedTools");
        assert_eq!(args[index + 1..index + 4], ["mcp__proq__list", "mcp__proq__show", "--"]);
        assert_eq!(overseer_args("claude", false)[..2], ["--session-id", "ID"]);
    }

    #[test]
    fn passes_codex_the_server_and_variables_as_a_setting() {
        let set: toml::Table = toml::from_str(&overseer_args("codex", false)[1]).unwrap();
        let server = &set["mcp_servers"]["proq"];
        assert_eq!(server["command"].as_str(), Some("/a b/git-\"proq\""));
        let variables = server["env_vars"].as_array().unwrap();
        assert!(variables.iter().any(|name| name.as_str() == Some("PATH")), "{variables:?}");
    }

    #[test]
    fn passes_opencode_and_gemini_the_server_by_variable() {
        let variable = |command: &OverseerCommand, key: &str| {
            command.env.iter().find(|(name, _)| name == key).unwrap().1.clone()
        };
        let settings = json(&variable(&overseer_command("opencode", false), "OPENCODE_CONFIG_CONTENT"));
        assert_eq!(settings["mcp"]["proq"]["command"][1], "mcp");
        let gemini = overseer_command("gemini", true);
        assert_eq!(variable(&gemini, "GEMINI_CLI_SYSTEM_SETTINGS_PATH"), "/s/settings.json");
        assert_eq!(
            json(gemini.settings_text.as_ref().unwrap())["mcpServers"]["proq"]["args"][1],
            "--supervisor"
        );
        assert_eq!(overseer_args("gemini", true)[..2], ["--resume", "ID"]);
    }
}
