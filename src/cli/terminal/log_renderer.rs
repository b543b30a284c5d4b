//! Rendering of an agent's log for the user: its text, its thoughts in one line, and the input and output of
//! its tools.

use std::fmt::Write;
use std::time::Duration;

use console::Style;
use proq_base::terminal_text;
use proq_stream::base::event::StreamEvent;
use serde_json::Value;

use super::ui;

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
        let mut out = String::new();
        match event {
            StreamEvent::Text { text, parent_call: parent } => {
                let indent = if parent.is_some() { "  " } else { "" };
                text.trim_end()
                    .lines()
                    .for_each(|line| push_indented_line(&mut out, indent, &printable_line(line)));
                self.last_text.clone_from(text);
            }
            StreamEvent::Thinking { text, .. } => {
                push_indented_line(&mut out, "", &dim(&format!("~ {}", first_line_and_more_count(text))));
            }
            StreamEvent::ToolUse { name, input, parent_call: parent, .. } => {
                let indent = if parent.is_some() { "  " } else { "" };
                push_tool_use(&mut out, indent, name, input);
            }
            StreamEvent::ToolResult { ok, output, .. } => push_tool_result(&mut out, *ok, output),
            StreamEvent::MessageSent { text } => {
                push_indented_line(
                    &mut out,
                    "",
                    &bold(&format!("< told more: {}", first_line_and_more_count(text))),
                );
            }
            StreamEvent::PermissionRequested { tool, input, .. } => {
                push_indented_line(
                    &mut out,
                    "",
                    &dim(&format!(
                        "? asks for leave to use {} {}",
                        strip_controls(tool),
                        input_summary(input)
                    )),
                );
            }
            StreamEvent::PermissionRefused { tool, message } => {
                push_indented_line(
                    &mut out,
                    "",
                    &red(&format!("! not permitted: {}: {}", strip_controls(tool), single_line(message))),
                );
            }
            StreamEvent::Retry { attempt, max_attempts, delay, reason } => {
                push_indented_line(&mut out, "", &dim(&retry_text(*attempt, *max_attempts, *delay, reason)));
            }
            StreamEvent::Warning { message } => {
                push_indented_line(&mut out, "", &dim(&format!("~ {}", single_line(message))));
            }
            StreamEvent::Error { message, .. } => {
                push_indented_line(&mut out, "", &red(&format!("! {}", single_line(message))));
            }
            StreamEvent::Result { ok, text } => {
                self.push_final_result(&mut out, *ok, text.as_deref().unwrap_or_default());
            }
            StreamEvent::Session { .. }
            | StreamEvent::Usage(_)
            | StreamEvent::Cost(_)
            | StreamEvent::Context { .. }
            | StreamEvent::Unknown { .. } => {}
        }
        out
    }

    /// Appends the final result of a run that succeeded, unless it repeats the last text.
    fn push_final_result(&self, out: &mut String, ok: bool, result_text: &str) {
        if ok && result_text.trim() != self.last_text.trim() {
            result_text
                .trim_end()
                .lines()
                .for_each(|line| push_indented_line(out, "", &printable_line(line)));
        }
    }
}

fn push_indented_line(out: &mut String, indent: &str, line: &str) {
    let _never_fails = writeln!(out, "{indent}{line}");
}

/// Escapes terminal control characters in a line, and preserves its tabs.
fn printable_line(line: &str) -> String {
    line.split('\t').map(terminal_text::escape_line).collect::<Vec<_>>().join("\t")
}

fn bold(text: &str) -> String {
    Style::new().bold().apply_to(text).to_string()
}

fn dim(text: &str) -> String {
    Style::new().dim().apply_to(text).to_string()
}

fn red(text: &str) -> String {
    Style::new().red().apply_to(text).to_string()
}

/// Appends the name of a tool and a summary of its input.
fn push_tool_use(out: &mut String, indent: &str, name: &str, input: &Value) {
    push_indented_line(out, indent, &format!("> {} {}", bold(&strip_controls(name)), input_summary(input)));
}

/// Appends the first lines of a tool's output.
fn push_tool_result(out: &mut String, ok: bool, output: &str) {
    let lines: Vec<&str> = output.trim_end().lines().collect();
    if !ok && lines.is_empty() {
        push_indented_line(out, "  ", &red("failed"));
    }
    for (n, line) in lines.iter().take(MAX_RESULT_LINES).enumerate() {
        let text = truncate(&strip_controls(line), MAX_LINE_WIDTH);
        match (ok, n) {
            (false, 0) => push_indented_line(out, "  ", &red(&format!("failed: {text}"))),
            _ => push_indented_line(out, "  ", &dim(&text)),
        }
    }
    if lines.len() > MAX_RESULT_LINES {
        push_indented_line(out, "  ", &dim(&format!("… {} more lines", lines.len() - MAX_RESULT_LINES)));
    }
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
    let delay_text =
        delay.map(|delay| format!(" in {} s", delay.as_millis().div_ceil(1000))).unwrap_or_default();
    format!("~ tries again{delay_text}{attempt_text}{limit_text}: {}", single_line(reason))
}

/// Summarizes the input of a tool in one line.
fn input_summary(input: &Value) -> String {
    let description = match input {
        Value::Object(fields) => {
            DESCRIPTIVE_INPUT_FIELDS.iter().find_map(|name| fields.get(*name)?.as_str()).map_or_else(
                || if fields.is_empty() { String::new() } else { input.to_string() },
                ToOwned::to_owned,
            )
        }
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    first_line_and_more_count(&description)
}

/// Returns the first line of a text, cut to [`MAX_LINE_WIDTH`], with the number of further lines.
fn first_line_and_more_count(text: &str) -> String {
    let mut lines = text.trim().lines();
    let shortened = truncate(&strip_controls(lines.next().unwrap_or_default()), MAX_LINE_WIDTH);
    match lines.count() {
        0 => shortened,
        extra_lines => format!("{shortened} (+{extra_lines} lines)"),
    }
}

/// Joins a text to one line without control characters, cut to twice [`MAX_LINE_WIDTH`].
fn single_line(text: &str) -> String {
    truncate(&strip_controls(&text.split_whitespace().collect::<Vec<_>>().join(" ")), 2 * MAX_LINE_WIDTH)
}

/// Removes colors and control characters. An agent may have read them anywhere.
fn strip_controls(text: &str) -> String {
    ui::strip_control_chars(text)
}

fn truncate(text: &str, width: usize) -> String {
    console::truncate_str(text, width, "…").into_owned()
}
