//! Rendering of an agent's log for the user: its text, its thoughts in one line, and the input and output of
//! its tools.

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
}

impl LogRenderer {
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
                let name = style(strip_control_chars(name)).bold();
                style(format!("{indent}> {name} {}", input_summary(input)))
            }
            StreamEvent::ToolResult { ok, output, .. } => return tool_result_text(*ok, output),
            StreamEvent::MessageSent { text } => {
                style(format!("< told more: {}", first_line_and_more_count(text))).bold()
            }
            StreamEvent::PermissionRequested { tool, input, .. } => {
                let (tool, input) = (strip_control_chars(tool), input_summary(input));
                style(format!("? asks for leave to use {tool} {input}")).dim()
            }
            StreamEvent::PermissionRefused { tool, message } => {
                let (tool, message) = (strip_control_chars(tool), single_line(message));
                style(format!("! not permitted: {tool}: {message}")).red()
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
    format!("~ tries again{delay_text}{attempt_text}{limit_text}: {}", single_line(reason))
}

/// Summarizes the input of a tool in one line.
fn input_summary(input: &Value) -> String {
    let best_field = DESCRIPTIVE_INPUT_FIELDS.iter().find_map(|name| input.get(*name)?.as_str());
    first_line_and_more_count(&match (best_field.or(input.as_str()), input) {
        (Some(text), _) => text.to_owned(),
        (None, Value::Object(fields)) if fields.is_empty() => String::new(),
        (None, Value::Null) => String::new(),
        (None, other) => other.to_string(),
    })
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
