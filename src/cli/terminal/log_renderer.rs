//! Rendering of an agent's log for the user: its text, its thoughts in one line, and the input and output of
//! its tools.

use std::path::Path;
use std::time::Duration;

use console::style;
use proq_base::terminal_text::escape_line;
use proq_stream::base::event::StreamEvent;
use serde_json::Value;

use super::ui::strip_control_chars;

/// Maximum number of lines shown of a tool's output.
const MAX_RESULT_LINES: usize = 4;

/// Maximum width of a line about a tool or a thought, in columns.
const MAX_LINE_WIDTH: usize = 100;

/// Input fields that describe best what a tool does, best first.
const DESCRIPTIVE_INPUT_FIELDS: &[&str] =
    &["command", "cmd", "file_path", "filePath", "path", "pattern", "query", "url", "description", "prompt"];

/// Streaming renderer that turns events into text.
#[derive(Debug, Default)]
pub(crate) struct LogRenderer {
    /// The agent's last text. The final result often repeats it, and is then not printed.
    last_text: String,
    /// Path of the lane's worktree; empty if paths stay as they are.
    worktree: String,
}

impl LogRenderer {
    /// Creates a renderer that prints paths relative to the worktree of the lane.
    pub(crate) fn new(worktree: &Path) -> LogRenderer {
        LogRenderer { worktree: worktree.to_string_lossy().into_owned(), ..LogRenderer::default() }
    }

    /// Returns the text for one event; empty for an event that is not shown.
    pub(crate) fn render_event(&mut self, event: &StreamEvent) -> String {
        let line = match event {
            StreamEvent::Text { text, parent_call: parent } => {
                self.last_text.clone_from(text);
                return printable_lines(if parent.is_some() { "  " } else { "" }, text);
            }
            StreamEvent::Thinking { text, .. } => {
                style(format!("~ {}", first_line_and_more_count(text))).dim()
            }
            StreamEvent::ToolUse { name, input, parent_call: parent, .. } => {
                let indent = if parent.is_some() { "  " } else { "" };
                style(format!("{indent}{}", self.tool_call_text(name, input)))
            }
            StreamEvent::ToolResult { ok, output, .. } => {
                return tool_result_text(*ok, &self.with_relative_paths(output));
            }
            StreamEvent::MessageSent { text } => {
                style(format!("< message: {}", first_line_and_more_count(text))).bold()
            }
            StreamEvent::PermissionRequested { tool, input, .. } => {
                let (tool, input) = (strip_control_chars(tool), self.input_summary(input));
                style(format!("? requests permission for {tool} {input}")).dim()
            }
            StreamEvent::PermissionRefused { tool, message, command } => {
                let call = first_line_and_more_count(command.as_deref().unwrap_or(tool));
                let has_reason = command.is_none() || !is_plain_denial(message);
                let reason = if has_reason { format!(": {}", single_line(message)) } else { String::new() };
                style(format!("! denied: {call}{reason}")).red()
            }
            StreamEvent::Retry { attempt, max_attempts, delay, reason } => {
                style(retry_text(*attempt, *max_attempts, *delay, reason)).dim()
            }
            StreamEvent::Warning { message } => style(format!("~ {}", single_line(message))).dim(),
            StreamEvent::Error { message, .. } => style(format!("! {}", single_line(message))).red(),
            StreamEvent::Result { ok: true, text: Some(text) } if text.trim() != self.last_text.trim() => {
                return printable_lines("", text);
            }
            StreamEvent::Result { .. }
            | StreamEvent::Session { .. }
            | StreamEvent::Usage(_)
            | StreamEvent::Cost(_)
            | StreamEvent::Context { .. }
            | StreamEvent::Unknown { .. } => return String::new(),
        };
        format!("{line}\n")
    }

    /// Returns a text with the paths below the lane's worktree relative to it.
    fn with_relative_paths(&self, text: &str) -> String {
        match self.worktree.as_str() {
            "" => text.to_owned(),
            worktree => text.replace(&format!("{worktree}/"), ""),
        }
    }

    /// Describes a tool call: `$ cargo test` for a shell command, `> add docs.txt` for a list of changed files,
    /// and `> Read notes.md` for any other tool.
    fn tool_call_text(&self, name: &str, input: &Value) -> String {
        let summary = self.input_summary(input);
        // A tool that edits files may have a field `command`, too.
        if input.get("command").is_some_and(Value::is_string) && input.get("path").is_none() {
            return format!("{} {summary}", style("$").bold());
        }
        match input {
            Value::Array(_) if !summary.starts_with('[') => format!("> {summary}"),
            _ => format!("> {} {summary}", style(strip_control_chars(name)).bold()),
        }
    }

    /// Summarizes the input of a tool in one line.
    fn input_summary(&self, input: &Value) -> String {
        let best_field = DESCRIPTIVE_INPUT_FIELDS.iter().find_map(|name| input.get(*name)?.as_str());
        let text = match (best_field.or(input.as_str()).map(str::to_owned).or(changed_files(input)), input) {
            (Some(text), _) => text,
            (None, Value::Object(fields)) if fields.is_empty() => String::new(),
            (None, Value::Null) => String::new(),
            (None, other) => other.to_string(),
        };
        first_line_and_more_count(&self.with_relative_paths(&text))
    }
}

/// Lists the files of a change, each behind its kind: `add docs.txt, update a.rs`; none for any other input.
fn changed_files(input: &Value) -> Option<String> {
    let change = |change: &Value| {
        let (kind, path) = (change.get("kind")?.as_str()?, change.get("path")?.as_str()?);
        Some(format!("{kind} {path}"))
    };
    let changes = input.as_array().filter(|changes| !changes.is_empty())?;
    Some(changes.iter().map(change).collect::<Option<Vec<_>>>()?.join(", "))
}

/// Returns whether a message about a denied call has no reason for it.
fn is_plain_denial(message: &str) -> bool {
    matches!(message, "it was not allowed" | "it was declined")
        || ["requested permission", "requires approval"].iter().any(|text| message.contains(text))
}

/// Returns the lines of a text behind `indent`. Control characters of the terminal are escaped, tabs stay.
fn printable_lines(indent: &str, text: &str) -> String {
    let printable = |line: &str| line.split('\t').map(escape_line).collect::<Vec<_>>().join("\t");
    let lines = text.trim_end().lines().map(printable);
    lines.fold(String::new(), |out, line| out + indent + &line + "\n")
}

/// Returns the first lines of a tool's output.
fn tool_result_text(ok: bool, output: &str) -> String {
    let lines: Vec<&str> = output.trim_end().lines().collect();
    if !ok && lines.is_empty() {
        return format!("  {}\n", style("failed").red());
    }
    let mut out = String::new();
    for (n, line) in lines.iter().take(MAX_RESULT_LINES).enumerate() {
        let text = truncate(&strip_control_chars(line), MAX_LINE_WIDTH);
        let line = if !ok && n == 0 { style(format!("failed: {text}")).red() } else { style(text).dim() };
        out.push_str(&format!("  {line}\n"));
    }
    if lines.len() > MAX_RESULT_LINES {
        let more = format!("… {} more lines", lines.len() - MAX_RESULT_LINES);
        out.push_str(&format!("  {}\n", style(more).dim()));
    }
    out
}

/// Formats a retry of the agent's request: the delay, the number of the try and the maximum, and the reason.
fn retry_text(
    attempt: Option<u64>,
    max_attempts: Option<u64>,
    delay: Option<Duration>,
    reason: &str,
) -> String {
    let attempt_text = attempt.map(|n| format!(", try {n}")).unwrap_or_default();
    let limit_text = max_attempts.map(|n| format!(" of {n}")).unwrap_or_default();
    let seconds = delay.map(|delay| delay.as_millis().div_ceil(1000));
    let delay_text = seconds.map(|seconds| format!(" in {seconds} s")).unwrap_or_default();
    format!("~ retrying{delay_text}{attempt_text}{limit_text}: {}", single_line(reason))
}

/// Returns the first line of a text, cut to [`MAX_LINE_WIDTH`], with the number of further lines.
fn first_line_and_more_count(text: &str) -> String {
    let mut lines = text.trim().lines();
    let shortened = truncate(&strip_control_chars(lines.next().unwrap_or_default()), MAX_LINE_WIDTH);
    match lines.count() {
        0 => shortened,
        extra_lines => format!("{shortened} (+{extra_lines} lines)"),
    }
}

/// Joins a text to one line without control characters, cut to twice [`MAX_LINE_WIDTH`].
fn single_line(text: &str) -> String {
    truncate(&strip_control_chars(&text.split_whitespace().collect::<Vec<_>>().join(" ")), 2 * MAX_LINE_WIDTH)
}

fn truncate(text: &str, width: usize) -> String {
    console::truncate_str(text, width, "…").into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(event: &StreamEvent) -> String {
        LogRenderer::new(Path::new("/lanes/x")).render_event(event)
    }

    fn tool_call(name: &str, input: Value) -> String {
        let (name, id) = (name.to_owned(), String::new());
        rendered(&StreamEvent::ToolUse { id, name, input, parent_call: None })
    }

    #[test]
    fn tool_calls_read_as_a_user_would_type_them() {
        let json = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
        assert_eq!(tool_call("Bash", json(r#"{"command":"cat /lanes/x/a"}"#)), "$ cat a\n");
        assert_eq!(tool_call("edit", json(r#"{"command":"view","path":"/lanes/x/a"}"#)), "> edit view\n");
        let changes = r#"[{"kind":"add","path":"/lanes/x/docs.txt"},{"kind":"update","path":"/etc/x"}]"#;
        assert_eq!(tool_call("file_change", json(changes)), "> add docs.txt, update /etc/x\n");
        assert_eq!(tool_call("other", json("[1]")), "> other [1]\n");
    }

    #[test]
    fn denied_calls_name_the_command() {
        let denied = |command: Option<&str>, message: &str| {
            let (tool, message) = ("Bash".to_owned(), message.to_owned());
            rendered(&StreamEvent::PermissionRefused { tool, message, command: command.map(str::to_owned) })
        };
        assert_eq!(denied(Some("cargo build"), "it was not allowed"), "! denied: cargo build\n");
        assert_eq!(denied(Some("rm"), "only git"), "! denied: rm: only git\n");
        assert_eq!(denied(None, "it was not allowed"), "! denied: Bash: it was not allowed\n");
    }
}
