//! Owns how an agent's log looks to a person: what it said, what it thought in a line, what its tools were given and answered.

use std::fmt::Write;

use console::Style;
use serde_json::Value;

use super::ui;
use crate::agent::Event;
use crate::harmless;

/// How many lines of a tool's answer are shown.
const ANSWER: usize = 4;

/// How long a line about a tool or a thought may be.
const WIDTH: usize = 100;

/// Fields of a tool's input that say best what it does, best first.
const TELLING: &[&str] =
    &["command", "cmd", "file_path", "filePath", "path", "pattern", "query", "url", "description", "prompt"];

/// Turns events into text as they come.
#[derive(Debug, Default)]
pub(super) struct Render {
    /// What the agent said last: its last words are often the same once more.
    said: String,
}

impl Render {
    /// The text for one event; empty for those that are not shown.
    pub(super) fn event(&mut self, event: &Event) -> String {
        let mut out = String::new();
        match event {
            Event::Text { text, parent } => {
                let indent = if parent.is_some() { "  " } else { "" };
                text.trim_end().lines().for_each(|line| row(&mut out, indent, &safe(line)));
                self.said.clone_from(text);
            }
            Event::Thinking { text, .. } => {
                row(&mut out, "", &dim(&format!("~ {}", folded(text))));
            }
            Event::ToolUse { name, input, parent, .. } => {
                let indent = if parent.is_some() { "  " } else { "" };
                row(
                    &mut out,
                    indent,
                    &format!("> {} {}", Style::new().bold().apply_to(clean(name)), gist(input)),
                );
            }
            Event::ToolResult { ok, output, .. } => answer(&mut out, *ok, output),
            Event::Told { text } => {
                row(
                    &mut out,
                    "",
                    &Style::new().bold().apply_to(format!("< told more: {}", folded(text))).to_string(),
                );
            }
            Event::PermissionAsked { tool, input, .. } => {
                row(&mut out, "", &dim(&format!("? asks for leave to use {} {}", clean(tool), gist(input))));
            }
            Event::PermissionRefused { tool, message } => {
                row(&mut out, "", &bad(&format!("! not permitted: {}: {}", clean(tool), one_line(message))));
            }
            Event::Retry { attempt, of, delay_ms, why } => {
                let nth = attempt.map(|n| format!(", try {n}")).unwrap_or_default();
                let of = of.map(|n| format!(" of {n}")).unwrap_or_default();
                let wait = delay_ms.map(|ms| format!(" in {} s", ms.div_ceil(1000))).unwrap_or_default();
                row(&mut out, "", &dim(&format!("~ tries again{wait}{nth}{of}: {}", one_line(why))));
            }
            Event::Warning { message } => row(&mut out, "", &dim(&format!("~ {}", one_line(message)))),
            Event::Error { message, .. } => row(&mut out, "", &bad(&format!("! {}", one_line(message)))),
            Event::Result { ok, text } => {
                let words = text.as_deref().unwrap_or_default();
                if *ok && words.trim() != self.said.trim() {
                    words.trim_end().lines().for_each(|line| row(&mut out, "", &safe(line)));
                }
            }
            Event::Session { .. }
            | Event::Usage(_)
            | Event::Cost(_)
            | Event::Context { .. }
            | Event::Unknown { .. } => {}
        }
        out
    }
}

fn row(out: &mut String, indent: &str, line: &str) {
    let _never_fails = writeln!(out, "{indent}{line}");
}

/// A line in which a terminal has nothing to obey, indented as it was.
fn safe(line: &str) -> String {
    line.split('\t').map(harmless::line).collect::<Vec<_>>().join("\t")
}

fn dim(text: &str) -> String {
    Style::new().dim().apply_to(text).to_string()
}

fn bad(text: &str) -> String {
    Style::new().red().apply_to(text).to_string()
}

/// What a tool answered: its first lines.
fn answer(out: &mut String, ok: bool, output: &str) {
    let lines: Vec<&str> = output.trim_end().lines().collect();
    if !ok && lines.is_empty() {
        row(out, "  ", &bad("failed"));
    }
    for (n, line) in lines.iter().take(ANSWER).enumerate() {
        let text = cut(&clean(line), WIDTH);
        match (ok, n) {
            (false, 0) => row(out, "  ", &bad(&format!("failed: {text}"))),
            _ => row(out, "  ", &dim(&text)),
        }
    }
    if lines.len() > ANSWER {
        row(out, "  ", &dim(&format!("… {} more lines", lines.len() - ANSWER)));
    }
}

/// What a tool was given, in a line.
fn gist(input: &Value) -> String {
    let told = match input {
        Value::Object(fields) => TELLING.iter().find_map(|name| fields.get(*name)?.as_str()).map_or_else(
            || if fields.is_empty() { String::new() } else { input.to_string() },
            ToOwned::to_owned,
        ),
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    folded(&told)
}

/// The first line, and how many there are more.
fn folded(text: &str) -> String {
    let mut lines = text.trim().lines();
    let first = cut(&clean(lines.next().unwrap_or_default()), WIDTH);
    match lines.count() {
        0 => first,
        more => format!("{first} (+{more} lines)"),
    }
}

fn one_line(text: &str) -> String {
    cut(&clean(&text.split_whitespace().collect::<Vec<_>>().join(" ")), 2 * WIDTH)
}

/// Without what would act on a terminal: an agent may have read it anywhere.
fn clean(text: &str) -> String {
    ui::printable(text)
}

fn cut(text: &str, width: usize) -> String {
    console::truncate_str(text, width, "…").into_owned()
}
