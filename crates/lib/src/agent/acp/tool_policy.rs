//! Policy for an agent's permission requests: which tools it may use, by the run's permission level and only
//! inside its lane.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::lane_path::resolve_relative_within;
use super::shell_line;
use crate::agent::profiles::allow_pattern::AllowPattern;
use crate::agent::profiles::profile::permission::Permission;

/// Maximum number of tool calls that are remembered. An agent may describe a call first, and later request
/// permission with the call's id alone.
const MAX_REMEMBERED_CALLS: usize = 64;

/// Fields of a tool's input that hold a path.
const PATH_FIELDS: &[&str] = &[
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

/// Tools of git-proq's MCP server.
const PROQ_TOOLS: &[&str] = &["read_task", "update_task"];

/// Limits on the tools of a run's agent: permission level, directory and allowed check commands.
#[derive(Debug, Clone)]
pub(super) struct ToolPolicy {
    pub(super) level: Permission,
    /// Canonical path of the directory that the agent works in.
    pub(super) lane_dir: PathBuf,
    /// Commands that must pass before the lane lands. The agent may run them.
    pub(super) checks: Vec<String>,
    /// Patterns of further commands that the agent may run.
    pub(super) allowed: Vec<AllowPattern>,
}

/// A call of a tool, as far as the agent has described it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ToolCall {
    id: String,
    /// Kind of tool in the protocol's words, such as `edit` or `execute`; empty when unknown.
    tool_kind: String,
    /// All names by which the agent called the tool.
    tool_names: Vec<String>,
    /// Paths that the call names.
    paths: Vec<PathBuf>,
    /// The most recent title of the call.
    title: Option<String>,
    /// Shell line that the call runs, if it names one.
    command_line: Option<String>,
}

impl ToolCall {
    /// Returns the call's id.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Returns the name of the tool for a message to the user.
    pub(super) fn tool_label(&self) -> &str {
        match self.tool_kind.as_str() {
            "" | "other" => self.tool_names.first().map_or("a tool", String::as_str),
            kind => kind,
        }
    }

    /// Adds the details that a message of the agent has about the call.
    fn update(&mut self, call: &Value) {
        let text = |value: &Value, path: &str| value.pointer(path).and_then(Value::as_str).map(str::to_owned);
        if let Some(kind) = text(call, "/kind") {
            self.tool_kind = kind;
        }
        for path in ["/name", "/_meta/toolName", "/_meta/claudeCode/toolName", "/title"] {
            let name = text(call, path).filter(|name| !self.tool_names.contains(name));
            self.tool_names.extend(name);
        }
        self.title = text(call, "/title").or(self.title.take());
        let lists = [("/locations", None), ("/content", Some("diff"))];
        for (list, kind) in lists {
            let items = call.pointer(list).and_then(Value::as_array).into_iter().flatten();
            let items = items.filter(|item| kind.is_none() || item["type"].as_str() == kind);
            self.paths.extend(items.filter_map(|item| text(item, "/path")).map(PathBuf::from));
        }
        let raw_input = &call["rawInput"];
        self.paths.extend(PATH_FIELDS.iter().filter_map(|name| raw_input[*name].as_str()).map(PathBuf::from));
        if let Some(line) = to_shell_line(&raw_input["command"]).or_else(|| to_shell_line(&raw_input["cmd"]))
        {
            self.command_line = Some(line);
        }
        self.paths.truncate(MAX_REMEMBERED_CALLS);
        self.tool_names.truncate(MAX_REMEMBERED_CALLS);
    }

    /// Returns the shell line of the call. Some agents have it only in the title.
    fn shell_line(&self) -> Option<&str> {
        self.command_line.as_deref().or(self.title.as_deref())
    }

    fn is_proq_tool(&self) -> bool {
        let is_proq_name =
            |name: &String| name.contains("proq") && PROQ_TOOLS.iter().any(|tool| name.contains(tool));
        self.tool_names.iter().any(is_proq_name)
    }
}

/// Returns the value of a command field as one shell line; none when it is neither text nor a list of words.
/// Words are joined by spaces without quotes. For `sh -c LINE` the line is returned.
fn to_shell_line(command: &Value) -> Option<String> {
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

/// The most recent tool calls that the agent has described, oldest first.
#[derive(Debug, Default)]
pub(super) struct RecentCalls(VecDeque<ToolCall>);

impl RecentCalls {
    /// Records the details of a call from a message, and returns all that is known of the call.
    pub(super) fn record_update(&mut self, update: &Value) -> &ToolCall {
        let id: String = update["toolCallId"].as_str().unwrap_or_default().chars().take(256).collect();
        let index = self.0.iter().position(|call| call.id == id);
        let mut call = index
            .and_then(|index| self.0.remove(index))
            .unwrap_or_else(|| ToolCall { id, ..ToolCall::default() });
        call.update(update);
        if self.0.len() >= MAX_REMEMBERED_CALLS {
            self.0.pop_front();
        }
        self.0.push_back(call);
        &self.0[self.0.len() - 1]
    }
}

impl ToolPolicy {
    /// Returns the reason why a call is not allowed; none when it is allowed.
    pub(super) fn refusal_reason(&self, call: &ToolCall) -> Option<String> {
        if self.level == Permission::Full {
            return None;
        }
        let level = self.level;
        let exceeds_level = |action: &str| Some(format!("permission {level} does not allow it to {action}"));
        match (call.tool_kind.as_str(), level) {
            ("think", _) => None,
            ("read" | "search", _) => self.path_refusal(call),
            ("edit" | "delete" | "move", Permission::Edit) => {
                self.path_refusal(call).or_else(|| self.write_target_refusal(call))
            }
            ("edit" | "delete" | "move", _) => exceeds_level("change files"),
            ("execute", Permission::Edit) => self.path_refusal(call).or_else(|| self.command_refusal(call)),
            ("execute", _) => exceeds_level("run commands"),
            (_, _) if call.is_proq_tool() => None,
            ("fetch", _) => exceeds_level("use the network"),
            ("switch_mode", _) => exceeds_level("change what it may do"),
            _ => exceeds_level("use a tool that nothing more is known of"),
        }
    }

    /// Returns the reason to refuse a call with a path outside the lane; none when all are inside.
    fn path_refusal(&self, call: &ToolCall) -> Option<String> {
        let outside_path =
            call.paths.iter().find(|path| resolve_relative_within(&self.lane_dir, path).is_none())?;
        Some(format!("{} is not in its lane", outside_path.display()))
    }

    /// Returns the reason to refuse a file change that names no path or names git's files in the lane; none
    /// when it is allowed.
    fn write_target_refusal(&self, call: &ToolCall) -> Option<String> {
        if call.paths.is_empty() {
            return Some("it does not say which file it would change".to_owned());
        }
        let is_git_file = |path: &PathBuf| {
            resolve_relative_within(&self.lane_dir, path).is_some_and(|path| path.starts_with(".git"))
        };
        call.paths.iter().any(is_git_file).then(|| "git's own files are not to be changed".to_owned())
    }

    /// Returns the reason to refuse a command; none for git in the lane, for the lane's checks and for allowed
    /// commands.
    fn command_refusal(&self, call: &ToolCall) -> Option<String> {
        let refuse = || {
            Some(
                "only git, the lane's checks and the commands of agent.allow may be run, in plain words"
                    .to_owned(),
            )
        };
        let Some(line) = call.shell_line().map(str::trim) else { return refuse() };
        if self.checks.iter().any(|check| check.trim() == line) {
            return None;
        }
        match shell_line::parse_commands(line) {
            Some(commands) if !commands.is_empty() => commands
                .iter()
                .all(|words| self.is_allowed_command(words))
                .then_some(())
                .map_or_else(refuse, |()| None),
            _ => refuse(),
        }
    }

    /// Returns whether a command of a shell line is allowed: git without `git config`, `cd` within the lane,
    /// an allowed command, or one of the lane's checks.
    fn is_allowed_command(&self, words: &[String]) -> bool {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            // A git setting can hold a command.
            ["git", "config", ..] => false,
            ["git", "--no-pager", sub, ..] | ["git", sub, ..] if !sub.starts_with('-') => true,
            words if self.allowed.iter().any(|pattern| pattern.permits(words)) => true,
            ["cd", dir] => resolve_relative_within(&self.lane_dir, Path::new(dir)).is_some(),
            _ => self.checks.iter().filter_map(|check| shell_line::parse_commands(check)).any(|check| {
                matches!(check.as_slice(), [check_words] if check_words.iter().map(String::as_str).eq(words.iter().copied()))
            }),
        }
    }
}

/// Returns the id of the option that allows or rejects this one call. An option that also decides later calls
/// is chosen only at level `full`, or to reject.
pub(super) fn choose_option(options: &Value, allowed: bool, level: Permission) -> Option<String> {
    let kinds: &[&str] = match (allowed, level) {
        (true, Permission::Full) => &["allow_once", "allow_always"],
        (true, _) => &["allow_once"],
        (false, _) => &["reject_once", "reject_always"],
    };
    let options = options.as_array().map_or(&[][..], Vec::as_slice);
    let find_kind = |kind: &&str| options.iter().find(|option| option["kind"].as_str() == Some(*kind));
    let option = kinds.iter().find_map(find_kind)?;
    option["optionId"].as_str().map(str::to_owned)
}
