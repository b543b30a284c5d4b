//! A tool call: starts the git-proq program, and converts its output to a tool result.

use proq_base::process::command_builder::CommandBuilder;
use proq_base::process::run_async::CapturedOutput;
use proq_lib::types::{MCP_ORIGIN, ORIGIN_VARIABLE};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value;

use super::server::Server;
use crate::cli::invocation::failure::FailureOutput;

/// Maximum size of a tool result, in bytes. More would use up the agent's context without informing it.
const MAX_OUTPUT_BYTES: usize = 96 * 1024;

impl Server {
    /// Runs git-proq with `args` and with `input` on its standard input, and returns its output as a tool
    /// result.
    pub(crate) async fn run_as_tool<S: AsRef<str>>(&self, args: &[S], input: Vec<u8>) -> CallToolResult {
        let start = CommandBuilder::new(&self.program_path, &self.dir)
            .args(args.iter().map(|arg| arg.as_ref().to_owned()))
            .env("NO_COLOR", "1")
            .env(ORIGIN_VARIABLE, MCP_ORIGIN);
        match start.run_with_input(input).await {
            Ok(output) => tool_result(&output),
            Err(e) => error_result(&format!("git-proq could not be started: {e}")),
        }
    }
}

/// Returns a tool result that reports an error. `reason` has the hints in it.
pub(crate) fn error_result(reason: &str) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(truncate_to_max_output(reason))])
}

/// Converts the output of a git-proq command to a tool result. Exit codes about lanes, such as a conflict or
/// a failed check, come with a JSON answer and are no errors.
fn tool_result(output: &CapturedOutput) -> CallToolResult {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    match failure_text(&stdout, &stderr, output.code) {
        Some(reason) => error_result(&reason),
        None => text_result_with_notes(&stdout, &stderr),
    }
}

/// Returns a successful tool result with `text` and, unless they are blank, `notes` in a block of their own.
pub(crate) fn text_result_with_notes(text: &str, notes: &str) -> CallToolResult {
    let blocks = std::iter::once(text).chain(Some(notes).filter(|notes| !notes.trim().is_empty()));
    let to_block = |text: &str| ContentBlock::text(truncate_to_max_output(text.trim_end()));
    CallToolResult::success(blocks.map(to_block).collect())
}

/// Returns the error text of a git-proq command; none if it succeeded or its JSON output reports on lanes.
fn failure_text(stdout: &str, stderr: &str, code: Option<i32>) -> Option<String> {
    if code == Some(0) {
        return None;
    }
    match serde_json::from_str::<Value>(stdout) {
        Ok(answer) if answer.get("error").is_some() => {
            Some(serde_json::from_value(answer).map_or(stdout.to_owned(), |output| describe_error(&output)))
        }
        // The answer may be about lanes that did not land, for example.
        Ok(_) => None,
        Err(_) if stderr.trim().is_empty() => Some(format!("it ended with {code:?} and said nothing")),
        Err(_) => Some(stderr.trim().to_owned()),
    }
}

/// Formats an error with its causes and hints, one per line.
pub(crate) fn describe_error(output: &FailureOutput) -> String {
    let mut lines = vec![format!("error: {}", output.error)];
    lines.extend(output.causes.iter().map(|text| format!("caused by: {text}")));
    lines.extend(output.hints.iter().map(|text| format!("hint: {text}")));
    lines.join("\n")
}

/// Returns `text`, truncated at a character boundary to [`MAX_OUTPUT_BYTES`] with a note on the rest.
fn truncate_to_max_output(text: &str) -> String {
    if text.len() <= MAX_OUTPUT_BYTES {
        return text.to_owned();
    }
    let prefix = &text[..text.floor_char_boundary(MAX_OUTPUT_BYTES)];
    format!("{prefix}\n… {} bytes more are left out; ask for less at a time", text.len() - prefix.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn describes_errors_and_passes_lane_answers() {
        let error = r#"{"error": "no", "causes": ["why"], "hints": ["do this"], "exit": 1, "schema": 1}"#;
        assert_eq!(failure_text(error, "", Some(1)).unwrap(), "error: no\ncaused by: why\nhint: do this");
        assert_eq!(failure_text(r#"{"lanes": []}"#, "", Some(3)), None);
        assert_eq!(
            failure_text("", "error: unexpected argument", Some(2)).unwrap(),
            "error: unexpected argument"
        );
        assert!(failure_text("", "", None).is_some());
        assert_eq!(failure_text("not JSON", "a warning", Some(0)), None);
    }

    #[test]
    fn truncates_long_output_with_a_note() {
        let long = truncate_to_max_output(&"ü".repeat(MAX_OUTPUT_BYTES));
        assert!(long.len() < MAX_OUTPUT_BYTES + 100 && long.ends_with("ask for less at a time"));
        assert_eq!(truncate_to_max_output("short"), "short");
    }
}
