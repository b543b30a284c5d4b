//! Agent profiles: data that describes how to start one kind of agent and what it supports.

pub mod permission;
pub mod window;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use proq_base::hint;
use proq_store::records::agent::Activity;
use proq_stream::reader::Dialect;
use serde::{Deserialize, Serialize};

use super::template::{PlaceholderValues, has_list_placeholder, has_placeholder};
use crate::agent::Error;
use permission::{Permission, PermissionLevels};
use window::WindowProfile;

/// Keys of the files that a profile may define, each with its file name on disk.
pub(crate) const PROFILE_FILES: [(&str, &str); 3] =
    [("settings", "settings.json"), ("mcp_config", "mcp_config.json"), ("plugin", "plugin.ts")];

/// Size limit of a single argument that every system accepts, in bytes. (Linux allows 128 KiB.)
const MAX_ARGUMENT_BYTES: usize = 120 * 1024;

/// Name of the group of agent arguments that stands for the run's permission level, as `[permission]` in a
/// template.
const PERMISSION_ARGS_GROUP: &str = "permission";

/// Name of the argument group for hooks that the user has to enable.
const HOOKS_GROUP: &str = "hooks";

/// Name of the argument group that makes the agent read one prompt after another.
const TWO_WAY_GROUP: &str = "two_way";

/// Description of how one kind of agent is started. Arguments, variables and files may contain placeholders
/// (`template::NAMES`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Profile {
    /// Description of the agent, for lists.
    pub about: String,
    /// Program of the agent, searched for on `PATH`.
    pub program: String,
    /// Argument lists for each way to start the agent.
    pub args: ArgTemplates,
    /// Arguments and variables for each permission level.
    pub permission: PermissionLevels,
    /// Groups of arguments by name: a word `[NAME]` of a template stands for one. A group is left out
    /// completely when one of its placeholders has no value.
    pub options: BTreeMap<String, Vec<String>>,
    /// How the agent receives its prompt.
    pub prompt: PromptDelivery,
    /// Whether the agent receives only the task and the list of its attachments, without the lane's rules.
    #[serde(rename = "bare")]
    pub(crate) prompt_only: bool,
    /// Environment variables for the agent.
    pub env: BTreeMap<String, String>,
    /// Environment variables for the agent that do not override the user's environment.
    pub(crate) env_default: BTreeMap<String, String>,
    /// Environment variables that hold a JSON object each. It is merged into the object that the user's
    /// environment has there.
    pub(crate) env_json: BTreeMap<String, String>,
    /// Files that git-proq writes for each run. The placeholder of the same name expands to the path. Only
    /// `settings`, `mcp_config` and `plugin` are known.
    pub files: BTreeMap<String, String>,
    /// Environment variables that name a file with a JSON object each, with the profile's file for each.
    /// Content of the user's own file is retained.
    pub env_file: BTreeMap<String, EnvFile>,
    /// Format of the agent's output.
    pub dialect: Dialect,
    /// Features that the agent supports.
    pub capabilities: Capabilities,
    /// Treatment of processes that the agent leaves running.
    pub strays: StrayPolicy,
    /// Model that is requested when the user names none.
    pub model: Option<String>,
    /// Command line that installs the agent, for a hint; empty where none is known.
    #[serde(rename = "install")]
    pub install_command: String,
    /// Arguments that make the agent print its version.
    #[serde(rename = "version")]
    pub version_args: Vec<String>,
    /// Versions of the agent that this profile was tested with.
    #[serde(rename = "tried")]
    pub tested_versions: Vec<String>,
    /// Whether the profile was written from the agent's documentation alone, without a program to test.
    pub documented_only: bool,
    /// How the agent is started as the supervisor of all lanes; none where it cannot be.
    pub supervise: Option<OverseerProfile>,
    /// Differences that apply when the agent runs in a tmux window.
    pub window: WindowProfile,
    /// Activities that the agent's hooks report.
    #[serde(rename = "tells")]
    pub reported_activities: Vec<Activity>,
    /// Files that the agent itself writes into the worktree, as lines of a `.gitignore` that begin with '/'.
    /// git-proq hides them from git.
    #[serde(rename = "leaves")]
    pub(crate) agent_files: Vec<String>,
    /// Prefixes of prompts that the agent would interpret as its own commands. Such a prompt gets a heading.
    #[serde(rename = "commands")]
    pub(crate) command_prefixes: Vec<String>,
}

/// How an agent is started on the user's terminal as the supervisor of all lanes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OverseerProfile {
    /// Arguments for a new session.
    pub start: Vec<String>,
    /// Arguments that resume the session `{session}`; empty where the session's id cannot be chosen in
    /// advance.
    pub resume: Vec<String>,
    /// Environment variables.
    pub env: BTreeMap<String, String>,
    /// Environment variables that hold a JSON object each. It is merged into the object that the user's
    /// environment has there.
    pub(crate) env_json: BTreeMap<String, String>,
    /// Content of a file that git-proq writes first; the placeholder `{settings}` expands to its path.
    #[serde(rename = "settings")]
    pub settings_text: Option<String>,
    /// Environment variables that name the file with `settings`. Content of the user's own file is retained.
    pub env_file: BTreeMap<String, EnvFile>,
}

/// An environment variable that names a file with a JSON object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EnvFile {
    /// Key of the profile's file that the variable names.
    #[serde(rename = "file")]
    pub file_key: String,
    /// Paths that the agent reads when the variable is not set; the first existing one counts.
    #[serde(rename = "otherwise")]
    pub(crate) fallback_paths: Vec<String>,
}

/// Argument lists of a profile, one for each way to start the agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ArgTemplates {
    /// Arguments that start a new session without a terminal.
    pub start: Vec<String>,
    /// Arguments that resume the session `{session}` without a terminal; empty where the agent cannot.
    pub resume: Vec<String>,
    /// Arguments that start a new session on a terminal.
    pub interactive: Vec<String>,
    /// Arguments that resume a session on a terminal.
    pub(crate) interactive_resume: Vec<String>,
}

/// How an agent receives its prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PromptDelivery {
    /// On standard input, which is closed afterwards: no limit of length, nothing visible in `ps`, no
    /// quoting.
    #[default]
    Stdin,
    /// In an argument.
    Argument,
    /// In a file that an argument names.
    File,
    /// By the Agent Client Protocol, which git-proq speaks with the agent as long as it runs.
    Protocol,
}

/// Features that an agent supports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Capabilities {
    /// Whether the agent accepts a session id that was chosen in advance.
    pub(crate) session_id_settable: bool,
    /// Whether the agent can resume an earlier session.
    pub resume: bool,
    /// Whether the agent reports the cost of a run.
    pub cost: bool,
    /// Whether the agent reports the tokens of a run.
    pub tokens: bool,
    /// Whether the agent accepts an MCP server for one run.
    pub mcp: bool,
    /// Whether the agent accepts hooks for one run.
    pub hooks: bool,
    /// Whether a hook of the agent can make it continue its work instead of stopping.
    pub stop_gate: bool,
    /// Whether the agent accepts more prompts during a run: by the protocol, or on its standard input with
    /// `options.two_way`.
    pub two_way: bool,
    /// Whether the agent accepts the lane's rules separately from the prompt.
    pub(crate) reads_system_prompt: bool,
    /// Whether the agent has permission levels of its own, which limit what it may do.
    pub permissions: bool,
}

impl Capabilities {
    /// Returns the names of the supported features.
    pub fn names(self) -> Vec<&'static str> {
        let all = [
            (self.session_id_settable, "session id"),
            (self.resume, "resume"),
            (self.cost, "cost"),
            (self.tokens, "tokens"),
            (self.mcp, "mcp"),
            (self.hooks, "hooks"),
            (self.stop_gate, "stop gate"),
            (self.two_way, "two-way"),
            (self.reads_system_prompt, "system prompt"),
            (self.permissions, "permissions"),
        ];
        all.into_iter().filter(|(has, _)| *has).map(|(_, name)| name).collect()
    }
}

/// Treatment of the processes that an agent leaves running when it exits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StrayPolicy {
    /// Ends all stray processes, whatever process session (as of `setsid`) they are in.
    #[default]
    Sweep,
    /// Leaves stray processes running, except for those in the agent's own process group.
    None,
}

impl Profile {
    /// Creates the profile of a program without a description: it gets the task as its last argument.
    pub(crate) fn from_program(program: &str) -> Profile {
        Profile {
            program: program.to_owned(),
            args: ArgTemplates { start: vec!["{prompt}".to_owned()], ..ArgTemplates::default() },
            prompt: PromptDelivery::Argument,
            prompt_only: true,
            ..Profile::default()
        }
    }

    /// Returns whether the agent can resume an earlier session and receive more prompts there.
    pub fn can_resume(&self) -> bool {
        !self.args.resume.is_empty() || self.prompt == PromptDelivery::Protocol
    }

    /// Returns whether the agent reads one prompt after another from its standard input, as long as that is
    /// open.
    pub(crate) fn reads_prompts_on_stdin(&self) -> bool {
        self.capabilities.two_way && self.prompt == PromptDelivery::Stdin
    }

    /// Returns the activities that the agent reports during a run; none without hooks.
    pub fn known_activities(&self) -> &[Activity] {
        if self.capabilities.hooks { &self.reported_activities } else { &[] }
    }

    /// Returns whether the agent has hooks that the user can enable.
    pub fn has_optional_hooks(&self) -> bool {
        self.has_option(HOOKS_GROUP)
    }

    /// Removes capabilities that the profile's own templates do not support.
    pub(crate) fn without_unsupported_features(mut self) -> Profile {
        let can_read_prompts = self.prompt == PromptDelivery::Stdin
            && self.dialect == Dialect::Claude
            && self.has_option(TWO_WAY_GROUP);
        self.capabilities.two_way &= can_read_prompts || self.prompt == PromptDelivery::Protocol;
        self.capabilities.stop_gate &= self.capabilities.hooks;
        self
    }

    /// Returns whether the user has to name the command that starts the agent.
    pub(crate) fn needs_command(&self) -> bool {
        self.program.is_empty() && self.prompt == PromptDelivery::Protocol
    }

    /// Returns the prompt in a form that the agent accepts: a prompt that the agent would interpret as its
    /// own command gets a heading.
    pub(crate) fn escape_command_prompt(&self, prompt: String) -> String {
        escape_command_prompt(&self.command_prefixes, prompt)
    }

    /// Finds the agent's program.
    ///
    /// # Errors
    /// [`Error::NotInstalled`] when there is no such program.
    pub fn find_program(&self, dir: &Path) -> Result<PathBuf, Error> {
        proq_base::process::find_executable::find_executable(&self.program, dir).map_err(|_| {
            let install = Some(self.install_command.clone()).filter(|command| !command.is_empty());
            let about = install.is_some().then(|| self.about.clone());
            let program = self.program.clone();
            Error::NotInstalled { program, about, install, similar: None, is_command: false }
        })
    }

    /// Refuses a prompt that cannot be delivered in the profile's way: an empty one, one with a NUL byte, or
    /// one that cannot be an argument.
    pub(crate) fn check_prompt(&self, prompt: &str) -> Result<(), Error> {
        let refuse = |reason, hint| Err(Error::InvalidPrompt { reason, hint });
        if prompt.trim().is_empty() {
            return refuse("is empty", hint!("for example: git proq spawn claude \"implement payments\""));
        }
        refuse_nul_byte(prompt)?;
        if self.prompt == PromptDelivery::Argument {
            check_prompt_as_argument(prompt)?;
        }
        Ok(())
    }

    /// Refuses a prompt that cannot be delivered on a terminal, where it is always an argument.
    pub(crate) fn check_interactive_prompt(&self, prompt: &str) -> Result<(), Error> {
        self.check_prompt(prompt)?;
        check_prompt_as_argument(prompt)
    }

    /// Expands the groups and placeholders of a template into arguments.
    pub(crate) fn expand_args(
        &self,
        template: &[String],
        level: Permission,
        values: &PlaceholderValues,
    ) -> Vec<OsString> {
        let mut out = Vec::new();
        for word in template {
            match group_name(word) {
                Some(name) => out.extend(values.expand_group(self.group_args(name, level))),
                None => out.extend(values.expand_group(std::slice::from_ref(word))),
            }
        }
        out
    }

    /// Expands a template for display: options without a value in `values` are left out, other placeholders
    /// are shown unexpanded.
    pub(crate) fn preview_args(
        &self,
        template: &[String],
        level: Permission,
        values: &PlaceholderValues,
    ) -> Vec<String> {
        let optional_names = ["model", "max_turns", "budget", "session"];
        let lacks_value = |word: &String| {
            let text: &OsStr = word.as_ref();
            optional_names.iter().any(|name| has_placeholder(text, name)) && values.expand(text).is_none()
        };
        let mut out = Vec::new();
        for word in template {
            let group =
                group_name(word).map_or(std::slice::from_ref(word), |name| self.group_args(name, level));
            if !group.iter().any(lacks_value) {
                for word in group {
                    let filled = match has_list_placeholder(word.as_ref()) {
                        true => values.expand_group(&[word]),
                        false => vec![values.expand(word.as_ref()).unwrap_or_else(|| word.into())],
                    };
                    out.extend(filled.iter().map(|word| word.to_string_lossy().into_owned()));
                }
            }
        }
        out
    }

    /// Returns the arguments that a group stands for.
    fn group_args(&self, name: &str, level: Permission) -> &[String] {
        if name == PERMISSION_ARGS_GROUP {
            return self.permission.level_settings(level).map_or(&[], |level| &level.args);
        }
        if (name == TWO_WAY_GROUP && !self.reads_prompts_on_stdin())
            || (name == HOOKS_GROUP && !self.capabilities.hooks)
        {
            return &[];
        }
        self.options.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns whether the profile has a non-empty option group with this name that its start arguments use.
    pub(crate) fn has_option(&self, option: &str) -> bool {
        let is_in_use = |template: &Vec<String>| template.iter().any(|w| group_name(w) == Some(option));
        self.options.get(option).is_some_and(|words| !words.is_empty()) && is_in_use(&self.args.start)
    }

    /// Returns the first error in the profile: its key and a description.
    pub(crate) fn validation_error(&self) -> Option<(String, String)> {
        let templates = [
            ("args.start", &self.args.start),
            ("args.resume", &self.args.resume),
            ("args.interactive", &self.args.interactive),
            ("args.interactive_resume", &self.args.interactive_resume),
        ];
        let supervisor_templates = self.supervise.iter().flat_map(|supervisor| {
            [("supervise.start", &supervisor.start), ("supervise.resume", &supervisor.resume)]
        });
        for (key, template) in templates.into_iter().chain(supervisor_templates) {
            let mut groups = template.iter().filter_map(|word| group_name(word));
            if let Some(unknown) =
                groups.find(|n| *n != PERMISSION_ARGS_GROUP && !self.options.contains_key(*n))
            {
                return Some((key.to_owned(), format!("there is no options.{unknown}")));
            }
        }
        let names = PROFILE_FILES.map(|(name, _)| name);
        if let Some(name) = self.files.keys().find(|name| !names.contains(&name.as_str())) {
            return Some((format!("files.{name}"), format!("known files are {}", names.join(", "))));
        }
        if (self.prompt == PromptDelivery::Protocol) != (self.dialect == Dialect::Acp) {
            return Some((
                "prompt".to_owned(),
                "prompt = \"protocol\" and dialect = \"acp\" go together".to_owned(),
            ));
        }
        let has_placeholder = |name| self.args.start.iter().any(|w| has_placeholder(w.as_ref(), name));
        let is_bad_pattern = |pattern: &String| {
            let name = pattern.strip_prefix('/').unwrap_or_default();
            !name.contains(char::is_alphanumeric) || name.contains('\n')
        };
        if self.agent_files.iter().any(is_bad_pattern) {
            return Some((
                "leaves".to_owned(),
                "a pattern begins with '/' and a name: /.tool-cache*".to_owned(),
            ));
        }
        if self.supervise.as_ref().is_some_and(|supervisor| supervisor.start.is_empty()) {
            return Some(("supervise.start".to_owned(), "it is empty".to_owned()));
        }
        match self.prompt {
            PromptDelivery::Argument if !has_placeholder("prompt") => Some((
                "args.start".to_owned(),
                "prompt = \"argument\", and no argument is {prompt}".to_owned(),
            )),
            PromptDelivery::File if !has_placeholder("prompt_file") => Some((
                "args.start".to_owned(),
                "prompt = \"file\", and no argument names {prompt_file}".to_owned(),
            )),
            _ => None,
        }
    }
}

/// Adds a heading to a prompt that begins with one of `commands`, so that the agent does not interpret it as
/// a command.
pub(crate) fn escape_command_prompt(commands: &[String], prompt: String) -> String {
    let is_command = commands.iter().any(|command| prompt.trim_start().starts_with(command.as_str()));
    if is_command { format!("# Task\n\n{prompt}") } else { prompt }
}

/// Returns the name of the group that a word stands for: `model` in `[model]`.
fn group_name(word: &str) -> Option<&str> {
    let name = word.strip_prefix('[')?.strip_suffix(']')?;
    let is_name_char = |c: char| c.is_ascii_lowercase() || c == '_';
    (!name.is_empty() && name.chars().all(is_name_char)).then_some(name)
}

/// Refuses a prompt that cannot be an argument: one that is too long or begins with '-'.
fn check_prompt_as_argument(prompt: &str) -> Result<(), Error> {
    let refuse = |reason, hint| Err(Error::InvalidPrompt { reason, hint });
    if prompt.len() > MAX_ARGUMENT_BYTES {
        return refuse(
            "is longer than 120 KiB, the limit of an argument, which is how this agent takes it",
            hint!(
                "let the agent read a file: git proq spawn --name payments --file task.md -- my-agent {{prompt_file}}"
            ),
        );
    }
    if prompt.starts_with('-') {
        return refuse(
            "starts with '-', so this agent would read it as an option",
            hint!("start the prompt with a word"),
        );
    }
    Ok(())
}

/// Refuses a prompt with a NUL byte: no argument can contain one, and a log that shows one misleads.
pub(crate) fn refuse_nul_byte(prompt: &str) -> Result<(), Error> {
    if prompt.contains('\0') {
        return Err(Error::InvalidPrompt {
            reason: "has a NUL byte",
            hint: hint!("a prompt is plain text; check the file"),
        });
    }
    Ok(())
}
