//! Owns how an agent is started as the one that looks after all lanes: in front of a person, with the lane tools.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::Error;
use super::catalogue::profiles;
use super::outfit::new_session;
use super::profile::{Permission, Profile, Supervise};
use super::template::{Values, mentions};
use super::variables::{self, Variable};
use crate::config::Layers;
use crate::store::write_atomically;

/// An agent that can look after all lanes.
#[derive(Debug)]
pub(crate) struct Overseer {
    /// Its name.
    pub(crate) name: String,
    profile: Profile,
    own: Supervise,
}

/// What one is started with.
#[derive(Debug)]
pub(crate) struct Task<'a> {
    /// This program, which serves the tools.
    pub(crate) exe: &'a Path,
    /// What it is told first.
    pub(crate) prompt: &'a str,
    /// Its session.
    pub(crate) session: &'a str,
    /// Whether that session is gone on with.
    pub(crate) resume: bool,
    /// The tools that need nobody's leave.
    pub(crate) tools: &'a [&'a str],
    /// Where its file of settings goes, if it takes one.
    pub(crate) settings: &'a Path,
}

/// What is started.
#[derive(Debug)]
pub(crate) struct Line {
    /// Its arguments.
    pub(crate) args: Vec<OsString>,
    /// Its variables.
    pub(crate) env: Vec<Variable>,
    /// What its file of settings is to say, if it takes one.
    settings: Option<OsString>,
}

impl Overseer {
    /// All that there are, by name.
    ///
    /// # Errors
    /// When a profile of the user's cannot be used.
    pub(crate) fn all(layers: &Layers) -> Result<Vec<Overseer>, Error> {
        let can = |(name, mut profile): (String, Profile)| {
            profile.supervise.take().map(|own| Overseer { name, profile, own })
        };
        Ok(profiles(layers)?.into_iter().filter_map(can).collect())
    }

    /// Finds its program.
    pub(crate) fn find(&self, dir: &Path) -> Result<PathBuf, Error> {
        self.profile.find(dir)
    }

    /// Whether the session that there was can be gone on with.
    pub(crate) fn resumes(&self) -> bool {
        !self.own.resume.is_empty()
    }

    /// Whether that is the one of an id that was chosen before; else it is the last one that was held here.
    pub(crate) fn chooses_session(&self) -> bool {
        self.own.resume.iter().any(|word| mentions(word.as_ref(), "session"))
    }

    /// An id for a new session.
    pub(crate) fn new_session(&self) -> Result<String, Error> {
        new_session()
    }

    /// What is started for a task.
    ///
    /// # Errors
    /// [`Error::NotJoined`] when its file of settings would take the place of one that is there.
    pub(crate) fn line(&self, task: &Task<'_>) -> Result<Line, Error> {
        let mut values = Values::default();
        values.set("exe", task.exe);
        values.set("prompt", task.prompt);
        values.set("session", task.session);
        values.set("settings", task.settings);
        let names: serde_json::Value = named_variables().collect();
        values.set("variables", names.to_string());
        values.set_all("tool", task.tools.iter().map(|tool| (*tool).to_owned()).collect());
        let template = if task.resume { &self.own.resume } else { &self.own.start };
        let mut env = variables::filled(&self.own.env, &values);
        env.extend(variables::of_json(&self.own.env_json, &values));
        let settings = self.own.settings.as_ref().and_then(|text| values.fill(text.as_ref()));
        env.extend(variables::of_files(&self.own.env_file, "settings", task.settings));
        let join = |text| variables::file_text(&self.own.env_file, "settings", text);
        Ok(Line {
            args: self.profile.words(template, Permission::default(), &values),
            env,
            settings: settings.map(join).transpose()?,
        })
    }
}

impl Line {
    /// Writes the file of settings, if there is to be one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn write_settings(&self, path: &Path) -> Result<(), Error> {
        let Some(text) = &self.settings else { return Ok(()) };
        Ok(write_atomically(path, text.as_encoded_bytes())?)
    }
}

/// The names of this process's variables that others can be told of.
fn named_variables() -> impl Iterator<Item = String> {
    let fits = |name: &String| {
        !name.is_empty()
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
            && !name.starts_with("GIT_")
    };
    std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).filter(fits)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn line(name: &str, resume: bool) -> Line {
        let all = Overseer::all(&Layers::default()).unwrap();
        let (exe, settings) = (Path::new("/a b/git-\"proq\""), Path::new("/s/settings.json"));
        let task = Task { exe, prompt: "Hello", session: "ID", resume, tools: &["list", "show"], settings };
        all.iter().find(|overseer| overseer.name == name).unwrap().line(&task).unwrap()
    }

    fn words(name: &str, resume: bool) -> Vec<String> {
        line(name, resume).args.into_iter().map(|word| word.into_string().unwrap()).collect()
    }

    fn json(text: &OsString) -> Value {
        serde_json::from_str(text.to_str().unwrap()).unwrap()
    }

    #[test]
    fn each_gets_the_prompt_last() {
        for overseer in Overseer::all(&Layers::default()).unwrap() {
            for resume in [false, true].into_iter().take(1 + usize::from(overseer.resumes())) {
                assert_eq!(words(&overseer.name, resume).last().unwrap(), "Hello", "{}", overseer.name);
            }
        }
    }

    #[test]
    fn all_of_them_go_on() {
        let chooses = |overseer: &Overseer| overseer.resumes().then(|| overseer.chooses_session());
        let all = Overseer::all(&Layers::default()).unwrap();
        let all: Vec<_> = all.iter().map(|overseer| (overseer.name.as_str(), chooses(overseer))).collect();
        let of = |name, chooses| (name, Some(chooses));
        assert_eq!(all, [of("claude", true), of("codex", false), of("gemini", true), of("opencode", false)]);
    }

    #[test]
    fn claude_gets_the_server_and_leave_for_tools_by_options() {
        let args = words("claude", true);
        let option = |name: &str| args.iter().position(|word| word == name).unwrap();
        assert_eq!(args[option("--resume") + 1], "ID");
        let server: Value = serde_json::from_str(&args[option("--mcp-config") + 1]).unwrap();
        assert_eq!(server["mcpServers"]["proq"]["command"], "/a b/git-\"proq\"");
        let at = option("--allowedTools");
        assert_eq!(args[at + 1..at + 4], ["mcp__proq__list", "mcp__proq__show", "--"]);
        assert_eq!(words("claude", false)[..2], ["--session-id", "ID"]);
    }

    #[test]
    fn codex_gets_the_server_and_its_variables_as_a_setting() {
        let set: toml::Table = toml::from_str(&words("codex", false)[1]).unwrap();
        let server = &set["mcp_servers"]["proq"];
        assert_eq!(server["command"].as_str(), Some("/a b/git-\"proq\""));
        let variables = server["env_vars"].as_array().unwrap();
        assert!(variables.iter().any(|name| name.as_str() == Some("PATH")), "{variables:?}");
    }

    #[test]
    fn opencode_and_gemini_get_the_server_by_a_variable() {
        let of = |line: &Line, key: &str| line.env.iter().find(|(name, _)| name == key).unwrap().1.clone();
        let settings = json(&of(&line("opencode", false), "OPENCODE_CONFIG_CONTENT"));
        assert_eq!(settings["mcp"]["proq"]["command"][1], "mcp");
        let gemini = line("gemini", true);
        assert_eq!(of(&gemini, "GEMINI_CLI_SYSTEM_SETTINGS_PATH"), "/s/settings.json");
        assert_eq!(json(gemini.settings.as_ref().unwrap())["mcpServers"]["proq"]["args"][1], "--supervisor");
        assert_eq!(words("gemini", true)[..2], ["--resume", "ID"]);
    }
}
