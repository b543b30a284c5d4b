//! Owns which tools an agent may use that asks for leave: by the run's permission level, and nowhere but in its lane.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::place::within;
use super::shell;
use crate::agent::profile::Permission;

/// How many calls are remembered: an agent may say at first what a call is about, and ask then by its name alone.
const MOST_CALLS: usize = 64;

/// Fields of what a tool is given that hold a path.
const PATHS: &[&str] = &[
    "path",
    "file_path",
    "filePath",
    "filepath",
    "fileName",
    "filename",
    "abs_path",
    "absolute_path",
    "notebook_path",
    "directory",
    "cwd",
    "source",
    "destination",
    "old_path",
    "new_path",
];

/// The tools of our own server.
const OUR_TOOLS: &[&str] = &["read_task", "update_task"];

/// What an agent may do.
#[derive(Debug, Clone)]
pub(super) struct Leave {
    /// The permission level.
    pub(super) level: Permission,
    /// Where it works, by the file system's own name.
    pub(super) dir: PathBuf,
    /// The commands that its landing will ask.
    pub(super) checks: Vec<String>,
}

/// What is known of a call of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Call {
    id: String,
    kind: String,
    /// The tool, by all the names that it goes by.
    names: Vec<String>,
    paths: Vec<PathBuf>,
    /// What it is said to do, last.
    title: Option<String>,
    command: Option<String>,
}

impl Call {
    /// The call's name.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// The tool as a person is told.
    pub(super) fn tool(&self) -> &str {
        match self.kind.as_str() {
            "" | "other" => self.names.first().map_or("a tool", String::as_str),
            kind => kind,
        }
    }

    /// Adds what a message of the agent's says of it.
    fn learn(&mut self, call: &Value) {
        let text = |value: &Value, path: &str| value.pointer(path).and_then(Value::as_str).map(str::to_owned);
        if let Some(kind) = text(call, "/kind") {
            self.kind = kind;
        }
        for path in ["/name", "/_meta/toolName", "/_meta/claudeCode/toolName", "/title"] {
            let name = text(call, path).filter(|name| !self.names.contains(name));
            self.names.extend(name);
        }
        self.title = text(call, "/title").or(self.title.take());
        let lists = [("/locations", None), ("/content", Some("diff"))];
        for (list, kind) in lists {
            let items = call.pointer(list).and_then(Value::as_array).into_iter().flatten();
            let items = items.filter(|item| kind.is_none() || item["type"].as_str() == kind);
            self.paths.extend(items.filter_map(|item| text(item, "/path")).map(PathBuf::from));
        }
        let given = &call["rawInput"];
        self.paths.extend(PATHS.iter().filter_map(|name| given[*name].as_str()).map(PathBuf::from));
        if let Some(line) = line_in(&given["command"]).or_else(|| line_in(&given["cmd"])) {
            self.command = Some(line);
        }
        self.paths.truncate(MOST_CALLS);
        self.names.truncate(MOST_CALLS);
    }

    /// The line for the shell. Some say it in the title only.
    fn line(&self) -> Option<&str> {
        self.command.as_deref().or(self.title.as_deref())
    }

    fn is_ours(&self) -> bool {
        let ours = |name: &String| name.contains("proq") && OUR_TOOLS.iter().any(|tool| name.contains(tool));
        self.names.iter().any(ours)
    }
}

/// A command as a line for the shell. A list of words is started as it is, without one; only plain words read the same then.
fn line_in(command: &Value) -> Option<String> {
    let words = match command {
        Value::String(line) => return Some(line.clone()),
        Value::Array(words) => words.iter().map(Value::as_str).collect::<Option<Vec<_>>>()?,
        _ => return None,
    };
    match words.as_slice() {
        ["sh" | "bash" | "zsh" | "/bin/sh" | "/bin/bash" | "/bin/zsh", "-c" | "-lc", line] => {
            Some((*line).to_owned())
        }
        words => Some(words.join(" ")),
    }
}

/// The calls that an agent has spoken of last.
#[derive(Debug, Default)]
pub(super) struct Calls(VecDeque<Call>);

impl Calls {
    /// Notes what a message says of a call, and returns all that is known of it.
    pub(super) fn learn(&mut self, said: &Value) -> &Call {
        let id: String = said["toolCallId"].as_str().unwrap_or_default().chars().take(256).collect();
        let at = self.0.iter().position(|call| call.id == id);
        let mut call = at.and_then(|at| self.0.remove(at)).unwrap_or_else(|| Call { id, ..Call::default() });
        call.learn(said);
        if self.0.len() >= MOST_CALLS {
            self.0.pop_front();
        }
        self.0.push_back(call);
        // It was put there just now.
        &self.0[self.0.len() - 1]
    }
}

impl Leave {
    /// Why a call is not allowed; none when it is.
    pub(super) fn refusal(&self, call: &Call) -> Option<String> {
        if self.level == Permission::Full {
            return None;
        }
        let level = self.level;
        let over = |what: &str| Some(format!("permission {level} does not allow it to {what}"));
        match (call.kind.as_str(), level) {
            ("think", _) => None,
            ("read" | "search", _) => self.outside(call),
            ("edit" | "delete" | "move", Permission::Edit) => {
                self.outside(call).or_else(|| self.unknown(call))
            }
            ("edit" | "delete" | "move", _) => over("change files"),
            ("execute", Permission::Edit) => self.outside(call).or_else(|| self.command(call)),
            ("execute", _) => over("run commands"),
            (_, _) if call.is_ours() => None,
            ("fetch", _) => over("use the network"),
            ("switch_mode", _) => over("change what it may do"),
            _ => over("use a tool that nothing more is known of"),
        }
    }

    fn outside(&self, call: &Call) -> Option<String> {
        let out = call.paths.iter().find(|path| within(&self.dir, path).is_none())?;
        Some(format!("{} is not in its lane", out.display()))
    }

    /// What changes has to say where, and git's own file there is not an agent's to change.
    fn unknown(&self, call: &Call) -> Option<String> {
        if call.paths.is_empty() {
            return Some("it does not say which file it would change".to_owned());
        }
        let of_git = |path: &PathBuf| within(&self.dir, path).is_some_and(|path| path.starts_with(".git"));
        call.paths.iter().any(of_git).then(|| "git's own files are not to be changed".to_owned())
    }

    /// Git in the lane, and the lane's checks.
    fn command(&self, call: &Call) -> Option<String> {
        let refused = || Some("only git and the lane's checks may be run, in plain words".to_owned());
        let Some(line) = call.line().map(str::trim) else { return refused() };
        if self.checks.iter().any(|check| check.trim() == line) {
            return None;
        }
        match shell::commands(line) {
            Some(commands) if !commands.is_empty() => {
                commands.iter().all(|words| self.may_run(words)).then_some(()).map_or_else(refused, |()| None)
            }
            _ => refused(),
        }
    }

    fn may_run(&self, words: &[String]) -> bool {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            // A setting can be a command of its own.
            ["git", "config", ..] => false,
            ["git", "--no-pager", sub, ..] | ["git", sub, ..] if !sub.starts_with('-') => true,
            ["cd", dir] => within(&self.dir, Path::new(dir)).is_some(),
            _ => self.checks.iter().filter_map(|check| shell::commands(check)).any(|check| {
                matches!(check.as_slice(), [only] if only.iter().map(String::as_str).eq(words.iter().copied()))
            }),
        }
    }
}

/// The option to answer with: leave or none, for this once. What lasts is chosen only where an agent may do anything anyway, or
/// where it is a refusal.
pub(super) fn choice(options: &Value, allowed: bool, level: Permission) -> Option<String> {
    let kinds: &[&str] = match (allowed, level) {
        (true, Permission::Full) => &["allow_once", "allow_always"],
        (true, _) => &["allow_once"],
        (false, _) => &["reject_once", "reject_always"],
    };
    let options = options.as_array().map_or(&[][..], Vec::as_slice);
    let of_kind = |kind: &&str| options.iter().find(|option| option["kind"].as_str() == Some(*kind));
    let option = kinds.iter().find_map(of_kind)?;
    option["optionId"].as_str().map(str::to_owned)
}
