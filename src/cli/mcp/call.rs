//! Owns one call of a tool: a run of this program, and its answer as a tool's.

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value;

use super::server::Server;
use crate::process::{Answered, Start};

/// The most of an answer that is handed on, in bytes. More fills an agent's memory and tells it nothing.
const LONGEST: usize = 96 * 1024;

impl Server {
    /// Runs this program with `words`, `input` on its standard input, and hands its answer on.
    pub(super) async fn ask<S: AsRef<str>>(&self, words: &[S], input: Vec<u8>) -> CallToolResult {
        match self.run(words, input).await {
            Ok(answered) => result(&answered),
            Err(why) => refused(&why),
        }
    }

    /// Runs this program with `words`.
    ///
    /// # Errors
    /// Why it could not be started.
    pub(super) async fn run<S: AsRef<str>>(&self, words: &[S], input: Vec<u8>) -> Result<Answered, String> {
        let start = Start::new(&self.exe, &self.dir)
            .args(words.iter().map(|word| word.as_ref().to_owned()))
            .env("NO_COLOR", "1");
        start.converse(input).await.map_err(|e| format!("git-proq could not be started: {e}"))
    }
}

/// A refusal, in words that say what helps.
pub(super) fn refused(why: &str) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(cut(why))])
}

/// An answer as it is.
pub(super) fn told(text: &str) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(cut(text))])
}

/// A run's answer. Exit codes that tell of lanes (a conflict, a failed check) come with an answer, which is none of an error.
pub(super) fn result(answered: &Answered) -> CallToolResult {
    let text = String::from_utf8_lossy(&answered.stdout);
    let talk = String::from_utf8_lossy(&answered.stderr);
    match failure(&text, &talk, answered.code) {
        Some(why) => refused(&why),
        None if talk.trim().is_empty() => told(text.trim_end()),
        None => CallToolResult::success(vec![
            ContentBlock::text(cut(text.trim_end())),
            ContentBlock::text(cut(talk.trim_end())),
        ]),
    }
}

/// What went wrong with a run, if anything did.
pub(super) fn failure(text: &str, talk: &str, code: Option<i32>) -> Option<String> {
    if code == Some(0) {
        return None;
    }
    match serde_json::from_str::<Value>(text) {
        Ok(answer) if answer.get("error").is_some() => Some(in_words(&answer)),
        // What it says of lanes that it did not land, for example.
        Ok(_) => None,
        Err(_) if talk.trim().is_empty() => Some(format!("it ended with {code:?} and said nothing")),
        Err(_) => Some(talk.trim().to_owned()),
    }
}

/// An error's parts, one a line.
fn in_words(answer: &Value) -> String {
    let texts = |key: &str, head: &str| -> Vec<String> {
        let all = answer[key].as_array().into_iter().flatten().filter_map(Value::as_str);
        all.map(|text| format!("{head}: {text}")).collect()
    };
    let said = answer["error"].as_str().unwrap_or_default();
    let mut lines = vec![format!("error: {said}")];
    lines.extend(texts("causes", "caused by"));
    lines.extend(texts("hints", "hint"));
    lines.join("\n")
}

/// A text that is not too long, cut where a character ends.
fn cut(text: &str) -> String {
    if text.len() <= LONGEST {
        return text.to_owned();
    }
    let kept = &text[..text.floor_char_boundary(LONGEST)];
    format!("{kept}\n… {} bytes more are left out; ask for less at a time", text.len() - kept.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_told_in_words_and_an_answer_about_lanes_is_none() {
        let error = r#"{"error": "no", "causes": ["why"], "hints": ["do this"], "exit": 1, "schema": 1}"#;
        assert_eq!(failure(error, "", Some(1)).unwrap(), "error: no\ncaused by: why\nhint: do this");
        assert_eq!(failure(r#"{"lanes": []}"#, "", Some(3)), None);
        assert_eq!(failure("", "error: unexpected argument", Some(2)).unwrap(), "error: unexpected argument");
        assert!(failure("", "", None).is_some());
        assert_eq!(failure("not JSON", "a warning", Some(0)), None);
    }

    #[test]
    fn a_long_answer_is_cut_and_says_so() {
        let long = cut(&"ü".repeat(LONGEST));
        assert!(long.len() < LONGEST + 100 && long.ends_with("ask for less at a time"));
        assert_eq!(cut("short"), "short");
    }
}
