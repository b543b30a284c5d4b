//! Owns the form of a profile: how one kind of agent is started, as data.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Error;
use super::on_screen::OnScreen;
use super::stream::Dialect;
use super::template::{Values, mentions};
use crate::store::records::Activity;

/// The files that a profile may have, and how they are called.
pub(super) const FILES: [(&str, &str); 3] =
    [("settings", "settings.json"), ("mcp_config", "mcp_config.json"), ("plugin", "plugin.ts")];

/// The longest single argument that every system takes. (Linux allows 128 KiB.)
const LONGEST_ARGUMENT: usize = 120 * 1024;

/// The group of arguments that the permission level stands for.
const PERMISSION: &str = "permission";

/// The group of arguments that gives it hooks which the user has to want.
const HOOKS: &str = "hooks";

/// The group of arguments that has it read one prompt after the other.
const TWO_WAY: &str = "two_way";

/// How one kind of agent is started. Arguments, variables and files may hold placeholders (`template::NAMES`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Profile {
    /// What it is.
    pub(crate) about: String,
    /// The program, looked up on `PATH`.
    pub(crate) program: String,
    /// Its arguments.
    pub(crate) args: Templates,
    /// What each permission level means to it.
    pub(crate) permission: Levels,
    /// Groups of arguments, by name: a word `[NAME]` of a template stands for one. A group is left out as a whole when
    /// one of its placeholders has no value.
    pub(crate) options: BTreeMap<String, Vec<String>>,
    /// How it gets the prompt.
    pub(crate) prompt: Delivery,
    /// Whether it is told the task's own words and nothing else.
    pub(crate) bare: bool,
    /// Variables for it.
    pub(crate) env: BTreeMap<String, String>,
    /// Variables for it that do not replace what the user's environment has.
    pub(crate) env_default: BTreeMap<String, String>,
    /// Variables that hold a JSON object each; what the user's environment has in one stays in it.
    pub(crate) env_json: BTreeMap<String, String>,
    /// Files that are written for each run; the placeholder of the same name is the path. Only `settings`, `mcp_config` and
    /// `plugin` are known.
    pub(crate) files: BTreeMap<String, String>,
    /// Variables that name a file with a JSON object each, by the name of ours; what the user's own file says stays in it.
    pub(crate) env_file: BTreeMap<String, EnvFile>,
    /// What its output is written in.
    pub(crate) dialect: Dialect,
    /// What can be had from it.
    pub(crate) capabilities: Capabilities,
    /// What becomes of the processes that it leaves running.
    pub(crate) strays: Strays,
    /// The model that is asked for when nobody names one.
    pub(crate) model: Option<String>,
    /// The arguments that make it say its version.
    pub(crate) version: Vec<String>,
    /// The versions that this profile was tried with.
    pub(crate) tried: Vec<String>,
    /// Whether it was written from its documentation alone, without a program to try.
    pub(crate) documented_only: bool,
    /// How it is started to look after all lanes; none where it cannot.
    pub(crate) supervise: Option<Supervise>,
    /// What is different about it in a window.
    pub(crate) window: OnScreen,
    /// What its hooks tell of what it does.
    pub(crate) tells: Vec<Activity>,
    /// Files of its own that it writes into the worktree, as lines of a `.gitignore` that begin with '/'. Git does not see them.
    pub(crate) leaves: Vec<String>,
    /// How a prompt begins that the agent would take for a command of its own. Such a prompt gets a heading.
    pub(crate) commands: Vec<String>,
}

/// How an agent is started on a person's terminal as the one that looks after all lanes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Supervise {
    /// A new session.
    pub(crate) start: Vec<String>,
    /// Going on in the session `{session}`; empty where its id cannot be chosen before.
    pub(crate) resume: Vec<String>,
    /// Variables.
    pub(crate) env: BTreeMap<String, String>,
    /// Variables that hold a JSON object each; what the user's environment has in one stays in it.
    pub(crate) env_json: BTreeMap<String, String>,
    /// A file that is written before; the placeholder `{settings}` is its path.
    pub(crate) settings: Option<String>,
    /// Variables that name that file; what the user's own file says stays in it.
    pub(crate) env_file: BTreeMap<String, EnvFile>,
}

/// A variable that names a file with a JSON object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct EnvFile {
    /// Which of the profile's files it names.
    pub(crate) file: String,
    /// What the agent reads where nothing sets the variable; the first that is there.
    pub(crate) otherwise: Vec<String>,
}

/// The argument lists of a profile.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Templates {
    /// A new session without a terminal.
    pub(crate) start: Vec<String>,
    /// Going on in the session `{session}` without a terminal; empty where that cannot be done.
    pub(crate) resume: Vec<String>,
    /// A new session on a terminal.
    pub(crate) interactive: Vec<String>,
    /// Going on in a session on a terminal.
    pub(crate) interactive_resume: Vec<String>,
}

/// What an agent may do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Permission {
    /// Look, and change nothing.
    Read,
    /// Change files in its lane, use git there, run the lane's approved checks.
    #[default]
    Edit,
    /// Anything, without being asked.
    Full,
}

impl Permission {
    /// The level of this name.
    pub(crate) fn named(name: &str) -> Option<Permission> {
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

/// What each permission level means to an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Levels {
    /// It may look; none where it cannot be kept from changing things.
    pub(crate) read: Option<Level>,
    /// It may change files in its lane and use git there.
    pub(crate) edit: Option<Level>,
    /// It may do anything.
    pub(crate) full: Option<Level>,
}

impl Levels {
    /// What a level means, if that is known.
    pub(crate) fn of(&self, permission: Permission) -> Option<&Level> {
        match permission {
            Permission::Read => self.read.as_ref(),
            Permission::Edit => self.edit.as_ref(),
            Permission::Full => self.full.as_ref(),
        }
    }
}

/// What one permission level means to an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Level {
    /// Arguments.
    pub(crate) args: Vec<String>,
    /// Variables.
    pub(crate) env: BTreeMap<String, String>,
}

/// How an agent gets its prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Delivery {
    /// On its standard input, which ends then: no limit of length, nothing in `ps`, no quoting.
    #[default]
    Stdin,
    /// In an argument.
    Argument,
    /// In a file that an argument names.
    File,
    /// By the Agent Client Protocol, which is spoken with it for as long as it runs.
    Protocol,
}

/// What can be had from an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Capabilities {
    /// Its session takes an id that was chosen before.
    pub(crate) session_id_settable: bool,
    /// It can go on in an earlier session.
    pub(crate) resume: bool,
    /// It says what a run cost.
    pub(crate) cost: bool,
    /// It says how many tokens a run took.
    pub(crate) tokens: bool,
    /// It can be given an MCP server for one run.
    pub(crate) mcp: bool,
    /// It can be given hooks for one run.
    pub(crate) hooks: bool,
    /// One of those hooks can send it back to work.
    pub(crate) stop_gate: bool,
    /// It takes more prompts while it is at work: by the protocol, or on its standard input with `options.two_way`.
    pub(crate) two_way: bool,
    /// It takes the lane's rules apart from the prompt.
    pub(crate) reads_system_prompt: bool,
    /// It has permissions of its own. Without them every level is `full`.
    pub(crate) permissions: bool,
}

impl Capabilities {
    /// The names of those that it has.
    pub(crate) fn names(self) -> Vec<&'static str> {
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

/// What becomes of the processes that an agent leaves running when it ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Strays {
    /// They are ended, whatever session they fled to.
    #[default]
    Sweep,
    /// They are left alone, except for its own process group.
    None,
}

impl Profile {
    /// The profile of a program that nobody has described: it gets the task as its last argument.
    pub(super) fn of_unknown(program: &str) -> Profile {
        Profile {
            program: program.to_owned(),
            args: Templates { start: vec!["{prompt}".to_owned()], ..Templates::default() },
            prompt: Delivery::Argument,
            bare: true,
            ..Profile::default()
        }
    }

    /// Whether it can go on in an earlier session, and be told more.
    pub(crate) fn goes_on(&self) -> bool {
        !self.args.resume.is_empty() || self.prompt == Delivery::Protocol
    }

    /// Whether it reads one prompt after the other on its standard input, for as long as that is open.
    pub(super) fn is_fed(&self) -> bool {
        self.capabilities.two_way && self.prompt == Delivery::Stdin
    }

    /// What is known of what it does while it runs.
    pub(crate) fn tells(&self) -> &[Activity] {
        if self.capabilities.hooks { &self.tells } else { &[] }
    }

    /// Whether it has hooks for who wants them.
    pub(crate) fn can_have_hooks(&self) -> bool {
        self.takes(HOOKS)
    }

    /// The same without what its own templates cannot do.
    pub(super) fn without_what_cannot_be(mut self) -> Profile {
        let can_be_fed =
            self.prompt == Delivery::Stdin && self.dialect == Dialect::Claude && self.takes(TWO_WAY);
        self.capabilities.two_way &= can_be_fed || self.prompt == Delivery::Protocol;
        self.capabilities.stop_gate &= self.capabilities.hooks;
        self
    }

    /// Whether the user has to say with which command it is started.
    pub(crate) fn wants_command(&self) -> bool {
        self.program.is_empty() && self.prompt == Delivery::Protocol
    }

    /// The prompt as it can be given to the agent: one that would be taken for a command of the agent's gets a heading.
    pub(crate) fn as_prompt(&self, prompt: String) -> String {
        as_prompt(&self.commands, prompt)
    }

    /// Finds its program.
    pub(crate) fn find(&self, dir: &Path) -> Result<PathBuf, Error> {
        crate::process::find(&self.program, dir)
            .map_err(|_| Error::NotInstalled { program: self.program.clone() })
    }

    /// Refuses a prompt that cannot be handed over this way.
    pub(crate) fn check_prompt(&self, prompt: &str) -> Result<(), Error> {
        let refused = |why, helps| Err(Error::Prompt { why, helps });
        if prompt.trim().is_empty() {
            return refused("is empty", "say what to do: git proq spawn AGENT \"implement payments\"");
        }
        check_text(prompt)?;
        if self.prompt == Delivery::Argument {
            check_argument(prompt)?;
        }
        Ok(())
    }

    /// The same for one that is handed over on a terminal: it is an argument there.
    pub(super) fn check_prompt_on_screen(&self, prompt: &str) -> Result<(), Error> {
        self.check_prompt(prompt)?;
        check_argument(prompt)
    }

    /// A template with its placeholders filled in.
    pub(crate) fn words(&self, template: &[String], level: Permission, values: &Values) -> Vec<OsString> {
        let mut out = Vec::new();
        for word in template {
            match group_in(word) {
                Some(name) => out.extend(values.fill_group(self.group(name, level))),
                None => out.extend(values.fill_group(std::slice::from_ref(word))),
            }
        }
        out
    }

    /// A template as a person reads it: options that have no value in `values` are left out, other placeholders stay.
    pub(crate) fn shown(&self, template: &[String], level: Permission, values: &Values) -> Vec<String> {
        let named = ["model", "max_turns", "budget", "session"];
        let lacks = |word: &String| {
            let text: &OsStr = word.as_ref();
            named.iter().any(|name| mentions(text, name)) && values.fill(text).is_none()
        };
        let mut out = Vec::new();
        for word in template {
            let group = group_in(word).map_or(std::slice::from_ref(word), |name| self.group(name, level));
            if !group.iter().any(lacks) {
                for word in group {
                    let filled = match mentions(word.as_ref(), "check") {
                        true => values.fill_group(&[word]),
                        false => vec![values.fill(word.as_ref()).unwrap_or_else(|| word.into())],
                    };
                    out.extend(filled.iter().map(|word| word.to_string_lossy().into_owned()));
                }
            }
        }
        out
    }

    /// The words that a group stands for.
    fn group(&self, name: &str, level: Permission) -> &[String] {
        if name == PERMISSION {
            return self.permission.of(level).map_or(&[], |level| &level.args);
        }
        if (name == TWO_WAY && !self.is_fed()) || (name == HOOKS && !self.capabilities.hooks) {
            return &[];
        }
        self.options.get(name).map_or(&[], Vec::as_slice)
    }

    /// Whether an option of this name has any effect.
    pub(crate) fn takes(&self, option: &str) -> bool {
        let in_use = |template: &Vec<String>| template.iter().any(|w| group_in(w) == Some(option));
        self.options.get(option).is_some_and(|words| !words.is_empty()) && in_use(&self.args.start)
    }

    /// What is wrong with it, with the key that it is about.
    pub(super) fn fault(&self) -> Option<(String, String)> {
        let named = [
            ("args.start", &self.args.start),
            ("args.resume", &self.args.resume),
            ("args.interactive", &self.args.interactive),
            ("args.interactive_resume", &self.args.interactive_resume),
        ];
        let supervise = self
            .supervise
            .iter()
            .flat_map(|own| [("supervise.start", &own.start), ("supervise.resume", &own.resume)]);
        for (key, template) in named.into_iter().chain(supervise) {
            let mut groups = template.iter().filter_map(|word| group_in(word));
            if let Some(unknown) = groups.find(|n| *n != PERMISSION && !self.options.contains_key(*n)) {
                return Some((key.to_owned(), format!("there is no options.{unknown}")));
            }
        }
        let names = FILES.map(|(name, _)| name);
        if let Some(name) = self.files.keys().find(|name| !names.contains(&name.as_str())) {
            return Some((format!("files.{name}"), format!("known files are {}", names.join(", "))));
        }
        if (self.prompt == Delivery::Protocol) != (self.dialect == Dialect::Acp) {
            return Some((
                "prompt".to_owned(),
                "prompt = \"protocol\" and dialect = \"acp\" go together".to_owned(),
            ));
        }
        let has = |name| self.args.start.iter().any(|w| mentions(w.as_ref(), name));
        let names_little = |pattern: &String| {
            let name = pattern.strip_prefix('/').unwrap_or_default();
            !name.contains(char::is_alphanumeric) || name.contains('\n')
        };
        if self.leaves.iter().any(names_little) {
            return Some((
                "leaves".to_owned(),
                "a pattern begins with '/' and a name: /.tool-cache*".to_owned(),
            ));
        }
        if self.supervise.as_ref().is_some_and(|own| own.start.is_empty()) {
            return Some(("supervise.start".to_owned(), "it is empty".to_owned()));
        }
        match self.prompt {
            Delivery::Argument if !has("prompt") => Some((
                "args.start".to_owned(),
                "prompt = \"argument\", and no argument is {prompt}".to_owned(),
            )),
            Delivery::File if !has("prompt_file") => Some((
                "args.start".to_owned(),
                "prompt = \"file\", and no argument names {prompt_file}".to_owned(),
            )),
            _ => None,
        }
    }
}

/// A prompt that does not begin with one of `commands`: else it gets a heading.
pub(super) fn as_prompt(commands: &[String], prompt: String) -> String {
    let is_command = commands.iter().any(|command| prompt.trim_start().starts_with(command.as_str()));
    if is_command { format!("# Task\n\n{prompt}") } else { prompt }
}

/// The name in a word that stands for a group: `model` in `[model]`.
fn group_in(word: &str) -> Option<&str> {
    let name = word.strip_prefix('[')?.strip_suffix(']')?;
    let plain = |c: char| c.is_ascii_lowercase() || c == '_';
    (!name.is_empty() && name.chars().all(plain)).then_some(name)
}

/// Refuses a prompt that cannot be an argument.
fn check_argument(prompt: &str) -> Result<(), Error> {
    let refused = |why, helps| Err(Error::Prompt { why, helps });
    if prompt.len() > LONGEST_ARGUMENT {
        return refused(
            "is longer than an argument may be (120 KiB), and this agent takes it as one",
            "let it read a file: git proq spawn -n NAME -f task.md -- AGENT {prompt_file}",
        );
    }
    if prompt.starts_with('-') {
        return refused("starts with '-', which this agent would take for an option", "begin it with a word");
    }
    Ok(())
}

/// Refuses a prompt that is no text: no argument can hold a NUL byte, and a log that shows one misleads.
pub(super) fn check_text(prompt: &str) -> Result<(), Error> {
    if prompt.contains('\0') {
        return Err(Error::Prompt {
            why: "holds a NUL byte",
            helps: "is it the right file? A prompt is plain text",
        });
    }
    Ok(())
}
