//! JSON found in an agent's answer: in code fences or in prose, with comments and trailing commas that JSON
//! does not allow.

use serde_json::Value as Json;

/// Maximum nesting depth; no valid answer nests deeper.
const MAX_NESTING_DEPTH: usize = 64;
/// Maximum number of bytes that are scanned in total, as a multiple of the text's length. A scan starts at
/// every bracket that could open a value.
const MAX_SCAN_FACTOR: usize = 64;

/// A piece of a text that is JSON or resembles JSON.
#[derive(Debug)]
pub(super) struct JsonCandidate {
    /// The parsed value, or a description of the syntax error.
    pub(super) value: Result<Json, String>,
}

/// Returns the JSON arrays and objects in a text, in order. A nested value is a candidate only where the
/// value around it is broken. In that case it counts when it is valid, and its syntax error is not reported.
pub(super) fn find_json(text: &str) -> Vec<JsonCandidate> {
    let mut candidates = Vec::new();
    let mut scan_budget = text.len().saturating_mul(MAX_SCAN_FACTOR);
    let (mut position, mut broken_end) = (0, 0);
    while let Some(start) = text[position..].find(['{', '[']).map(|n| position + n) {
        if !can_start_json(&text[start..]) {
            position = start + 1;
            continue;
        }
        let scanned = scan_candidate(&text[start..], &mut scan_budget);
        let (value, length) = match scanned {
            ScanResult::Complete { json, length } => {
                (serde_json::from_str(&json).map_err(|e| e.to_string()), length)
            }
            ScanResult::Broken { reason, length } => (Err(reason.to_owned()), length),
            ScanResult::BudgetExhausted => return candidates,
        };
        let is_valid = value.is_ok();
        if is_valid || start >= broken_end {
            candidates.push(JsonCandidate { value });
        }
        if !is_valid {
            broken_end = broken_end.max(start + length);
        }
        position = start + if is_valid { length } else { 1 };
    }
    candidates
}

/// Returns whether the bracket at the start of `text` could open an array or an object, rather than belong to
/// prose.
fn can_start_json(text: &str) -> bool {
    let inner = text[1..].trim_start();
    let is_comment = inner.starts_with("//") || inner.starts_with("/*");
    let can_follow = |c: char| match text.starts_with('{') {
        true => "\"},".contains(c),
        false => "\"[]{-tfn,".contains(c) || c.is_ascii_digit(),
    };
    is_comment || inner.starts_with(can_follow)
}

/// Result of scanning a text from an opening bracket.
enum ScanResult {
    /// The bracket is closed.
    Complete {
        /// The scanned text in strict JSON syntax, provided that it is JSON.
        json: String,
        /// Length of the value in the original text, in bytes.
        length: usize,
    },
    /// The bracket is not closed, or another kind of bracket closes first.
    Broken { reason: &'static str, length: usize },
    /// The byte budget for scanning is used up.
    BudgetExhausted,
}

/// State of a scan over a text.
struct Scanner<'t> {
    text: &'t str,
    /// Offset in the text, in bytes, of the next character to scan.
    position: usize,
    /// Scanned part of the value, in strict JSON syntax.
    json: String,
    /// Brackets that close the open values, the innermost last.
    expected_closers: Vec<char>,
    /// Whether a comma was read that is written only if another value follows.
    pending_comma: bool,
}

/// Scans the value that starts at the text's first bracket. Removes comments and trailing commas, and escapes
/// control characters in strings as JSON requires.
fn scan_candidate(text: &str, scan_budget: &mut usize) -> ScanResult {
    let mut scanner = Scanner {
        text,
        position: 0,
        json: String::new(),
        expected_closers: Vec::new(),
        pending_comma: false,
    };
    let result = scanner.scan_to_end(*scan_budget);
    *scan_budget = scan_budget.saturating_sub(scanner.position.max(1));
    match result {
        Ok(true) => ScanResult::Complete { length: scanner.position, json: scanner.json },
        Ok(false) => ScanResult::BudgetExhausted,
        Err(reason) => ScanResult::Broken { reason, length: scanner.position },
    }
}

impl Scanner<'_> {
    /// Scans to the end of the value. Returns false if `max_bytes` were scanned before.
    fn scan_to_end(&mut self, max_bytes: usize) -> Result<bool, &'static str> {
        while let Some(c) = self.text[self.position..].chars().next() {
            if self.position >= max_bytes {
                return Ok(false);
            }
            let remaining = &self.text[self.position..];
            if remaining.starts_with("//") {
                self.position += remaining.find('\n').unwrap_or(remaining.len());
                continue;
            }
            if remaining.starts_with("/*") {
                self.position += remaining.find("*/").map_or(remaining.len(), |n| n + 2);
                continue;
            }
            self.position += c.len_utf8();
            match c {
                ',' if !self.pending_comma => self.pending_comma = true,
                c if c.is_whitespace() => self.json.push(if c == '\n' { '\n' } else { ' ' }),
                '}' | ']' => {
                    self.pending_comma = false;
                    self.json.push(c);
                    if self.expected_closers.pop() != Some(c) {
                        return Err("its brackets do not match");
                    }
                    if self.expected_closers.is_empty() {
                        return Ok(true);
                    }
                }
                c => {
                    if std::mem::take(&mut self.pending_comma) {
                        self.json.push(',');
                    }
                    self.push_token(c)?;
                }
            }
        }
        Err("it ends before it is closed")
    }

    /// Copies a character, or a string as a whole, and keeps track of brackets.
    fn push_token(&mut self, c: char) -> Result<(), &'static str> {
        self.json.push(c);
        match c {
            '{' => self.expected_closers.push('}'),
            '[' => self.expected_closers.push(']'),
            '"' => self.push_string()?,
            _ => {}
        }
        if self.expected_closers.len() > MAX_NESTING_DEPTH { Err("it nests too deep") } else { Ok(()) }
    }

    /// Copies the rest of a string, up to its closing quote.
    fn push_string(&mut self) -> Result<(), &'static str> {
        let remaining = &self.text[self.position..];
        let mut escaped = false;
        for (n, c) in remaining.char_indices() {
            match c {
                c if c.is_ascii_control() => self.json.push_str(&format!("\\u{:04x}", u32::from(c))),
                c => self.json.push(c),
            }
            if c == '"' && !escaped {
                self.position += n + 1;
                return Ok(());
            }
            escaped = c == '\\' && !escaped;
        }
        self.position = self.text.len();
        Err("it ends within a string")
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn values(text: &str) -> Vec<Json> {
        find_json(text).into_iter().filter_map(|piece| piece.value.ok()).collect()
    }

    #[test]
    fn finds_json_in_prose_and_fences() {
        for (text, expected) in [
            (r#"{"a": 1}"#, vec![json!({"a": 1})]),
            ("Here it is:\n```json\n{\"a\": [1, 2]}\n```\nDone.", vec![json!({"a": [1, 2]})]),
            (
                "Use {braces} and [brackets], as in a[0]: {\"a\": {}} (see {x})",
                vec![json!([0]), json!({"a": {}})],
            ),
            ("{\"a\": 1} or rather {\"a\": 2}", vec![json!({"a": 1}), json!({"a": 2})]),
            (
                "{\"a\": [1, 2,], // why\n /* and */ \"b\": \"//no\",}",
                vec![json!({"a": [1, 2], "b": "//no"})],
            ),
            ("{\"a\": \"two\nlines\"}", vec![json!({"a": "two\nlines"})]),
            (r#"{"a": "say \"}\" \\"}"#, vec![json!({"a": "say \"}\" \\"})]),
            ("[ ]", vec![json!([])]),
            ("nothing", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(values(text), expected, "{text}");
        }
    }

    #[test]
    fn reports_broken_json_once_and_finds_nested() {
        let candidates = find_json("{\"a\": oops, \"b\": {\"c\": 1}, \"d\": {\"e\": }}");
        assert_eq!(candidates.len(), 2);
        assert!(
            candidates[0].value.as_ref().is_err_and(|why| why.contains("line 1 column")),
            "{candidates:?}"
        );
        assert_eq!(candidates[1].value.as_ref().unwrap(), &json!({"c": 1}));
        for (text, expected) in [
            ("{\"a\": [1, 2", "it ends before it is closed"),
            ("{\"a\": \"b", "it ends within a string"),
            ("{\"a\": [1}", "its brackets do not match"),
            (&"[".repeat(100), "it nests too deep"),
            ("{,}", "line 1"),
        ] {
            let candidates = find_json(text);
            let outcome = candidates.first().map(|piece| piece.value.as_ref().map_err(String::as_str));
            match outcome {
                Some(Err(message)) => assert!(message.contains(expected), "{text}: {message}"),
                // A single superfluous comma is accepted.
                other => assert_eq!((text, format!("{other:?}")), ("{,}", "Some(Ok(Object {}))".to_owned())),
            }
        }
    }

    /// Generates texts that are slow to scan.
    fn hostile_text() -> impl Strategy<Value = String> {
        let tokens = prop::sample::select(vec![
            "{",
            "}",
            "[",
            "]",
            "\"",
            "\\",
            ",",
            ":",
            "{\"",
            "[[",
            "{\"a\":",
            "\"{\"",
            "//",
            "/*",
            "*/",
            "\n",
            "1",
            "null",
            "```",
            "é",
            "\u{0}",
            "\u{1b}[2J",
            "{}",
            "[],",
            "{\"a\":[",
        ]);
        (prop::collection::vec(tokens, 0..40), 1..400_usize)
            .prop_map(|(words, times)| words.concat().repeat(times))
    }

    /// Generates arbitrary JSON values.
    fn any_json() -> impl Strategy<Value = Json> {
        let leaf = prop_oneof![
            Just(Json::Null),
            any::<bool>().prop_map(Json::from),
            any::<i64>().prop_map(Json::from),
            "\\PC*".prop_map(Json::from),
            any::<String>().prop_map(Json::from),
        ];
        leaf.prop_recursive(5, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Json::from),
                prop::collection::hash_map(any::<String>(), inner, 0..6)
                    .prop_map(|map| Json::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn scans_hostile_text_in_time(text in hostile_text()) {
            let started = Instant::now();
            let candidates = find_json(&text);
            prop_assert!(candidates.len() <= text.len());
            prop_assert!(started.elapsed() < Duration::from_secs(20), "{} bytes", text.len());
        }

        #[test]
        fn accepts_any_text(text in any::<String>()) {
            drop(find_json(&text));
        }

        #[test]
        fn finds_any_json_unchanged(value in any_json(), pretty in any::<bool>()) {
            prop_assume!(value.is_object() || value.is_array());
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
            let answer = format!("Well, (this):\n```\n{text}\n```\nThat is it.");
            prop_assert_eq!(values(&answer), vec![value]);
        }
    }

    /// Each text makes the scanner read the entire rest from every position at which a value could start.
    /// Promise: strangers/answer-scan-bounded
    #[test]
    fn scans_text_bounded_number_of_times() {
        for unit in ["{//", "{/*", "[/*"] {
            let text = unit.repeat(1024 * 1024 / unit.len());
            let started = Instant::now();
            drop(find_json(&text));
            assert!(started.elapsed() < Duration::from_secs(30), "{unit}");
        }
    }
}
