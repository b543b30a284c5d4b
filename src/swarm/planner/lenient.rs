//! Owns finding JSON in what an agent said: in fences or in prose, with comments in it and commas that JSON does not have.

use serde_json::Value as Json;

/// What nests deeper than this is nothing that was asked for.
const DEEPEST: usize = 64;
/// How many times over a text may be looked at in all: each place at which something could begin is tried.
const TIMES: usize = 64;

/// Something in a text that is JSON, or looks as if it was meant to be.
#[derive(Debug)]
pub(super) struct Piece {
    /// The value, or what is wrong with it, in words.
    pub(super) value: Result<Json, String>,
}

/// The lists and tables in a text, in its order. What is in one is no piece of its own, unless that one is broken: then it may
/// be, but is not told to be broken too.
pub(super) fn pieces(text: &str) -> Vec<Piece> {
    let mut out = Vec::new();
    let mut left = text.len().saturating_mul(TIMES);
    let (mut from, mut broken_to) = (0, 0);
    while let Some(at) = text[from..].find(['{', '[']).map(|n| from + n) {
        if !begins(&text[at..]) {
            from = at + 1;
            continue;
        }
        let cut = cut(&text[at..], &mut left);
        let (value, length) = match cut {
            Cut::Whole { json, length } => (serde_json::from_str(&json).map_err(|e| e.to_string()), length),
            Cut::Broken { why, length } => (Err(why.to_owned()), length),
            Cut::Spent => return out,
        };
        let is_whole = value.is_ok();
        if is_whole || at >= broken_to {
            out.push(Piece { value });
        }
        if !is_whole {
            broken_to = broken_to.max(at + length);
        }
        from = at + if is_whole { length } else { 1 };
    }
    out
}

/// Whether a bracket could begin a list or a table, and is not a word's in prose.
fn begins(text: &str) -> bool {
    let inner = text[1..].trim_start();
    let comment = inner.starts_with("//") || inner.starts_with("/*");
    let fits = |c: char| match text.starts_with('{') {
        true => "\"},".contains(c),
        false => "\"[]{-tfn,".contains(c) || c.is_ascii_digit(),
    };
    comment || inner.starts_with(fits)
}

/// What begins at a bracket.
enum Cut {
    /// It is closed again.
    Whole {
        /// All of it as JSON has to be written, if that is what it is.
        json: String,
        /// How long it is in the text.
        length: usize,
    },
    /// It is not, or something else closes before it.
    Broken { why: &'static str, length: usize },
    /// It was looked at often enough.
    Spent,
}

/// What stands open while a text is gone through.
struct Scan<'t> {
    text: &'t str,
    at: usize,
    out: String,
    open: Vec<char>,
    /// A comma that may turn out to be one too many.
    comma: bool,
}

/// Takes what begins at the text's first bracket, without comments, without commas before an end, and with line breaks in
/// strings written as JSON wants it.
fn cut(text: &str, left: &mut usize) -> Cut {
    let mut scan = Scan { text, at: 0, out: String::new(), open: Vec::new(), comma: false };
    let end = scan.run(*left);
    *left = left.saturating_sub(scan.at.max(1));
    match end {
        Ok(true) => Cut::Whole { length: scan.at, json: scan.out },
        Ok(false) => Cut::Spent,
        Err(why) => Cut::Broken { why, length: scan.at },
    }
}

impl Scan<'_> {
    /// Goes on to the end of it; false when `most` was gone through before.
    fn run(&mut self, most: usize) -> Result<bool, &'static str> {
        while let Some(c) = self.text[self.at..].chars().next() {
            if self.at >= most {
                return Ok(false);
            }
            let rest = &self.text[self.at..];
            if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
                continue;
            }
            if rest.starts_with("/*") {
                self.at += rest.find("*/").map_or(rest.len(), |n| n + 2);
                continue;
            }
            self.at += c.len_utf8();
            match c {
                ',' if !self.comma => self.comma = true,
                c if c.is_whitespace() => self.out.push(if c == '\n' { '\n' } else { ' ' }),
                '}' | ']' => {
                    self.comma = false;
                    self.out.push(c);
                    if self.open.pop() != Some(c) {
                        return Err("its brackets do not match");
                    }
                    if self.open.is_empty() {
                        return Ok(true);
                    }
                }
                c => {
                    if std::mem::take(&mut self.comma) {
                        self.out.push(',');
                    }
                    self.put(c)?;
                }
            }
        }
        Err("it ends before it is closed")
    }

    fn put(&mut self, c: char) -> Result<(), &'static str> {
        self.out.push(c);
        match c {
            '{' => self.open.push('}'),
            '[' => self.open.push(']'),
            '"' => self.string()?,
            _ => {}
        }
        if self.open.len() > DEEPEST { Err("it nests too deep") } else { Ok(()) }
    }

    /// The rest of a string.
    fn string(&mut self) -> Result<(), &'static str> {
        let rest = &self.text[self.at..];
        let mut escaped = false;
        for (n, c) in rest.char_indices() {
            match c {
                c if c.is_ascii_control() => self.out.push_str(&format!("\\u{:04x}", u32::from(c))),
                c => self.out.push(c),
            }
            if c == '"' && !escaped {
                self.at += n + 1;
                return Ok(());
            }
            escaped = c == '\\' && !escaped;
        }
        self.at = self.text.len();
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
        pieces(text).into_iter().filter_map(|piece| piece.value.ok()).collect()
    }

    #[test]
    fn json_is_found_wherever_it_stands() {
        for (text, found) in [
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
            assert_eq!(values(text), found, "{text}");
        }
    }

    #[test]
    fn what_is_broken_is_told_once_and_what_is_in_it_may_be_whole() {
        let found = pieces("{\"a\": oops, \"b\": {\"c\": 1}, \"d\": {\"e\": }}");
        assert_eq!(found.len(), 2);
        assert!(found[0].value.as_ref().is_err_and(|why| why.contains("line 1 column")), "{found:?}");
        assert_eq!(found[1].value.as_ref().unwrap(), &json!({"c": 1}));
        for (text, why) in [
            ("{\"a\": [1, 2", "it ends before it is closed"),
            ("{\"a\": \"b", "it ends within a string"),
            ("{\"a\": [1}", "its brackets do not match"),
            (&"[".repeat(100), "it nests too deep"),
            ("{,}", "line 1"),
        ] {
            let found = pieces(text);
            let told = found.first().map(|piece| piece.value.as_ref().map_err(String::as_str));
            match told {
                Some(Err(told)) => assert!(told.contains(why), "{text}: {told}"),
                // One comma too many is passed over.
                other => assert_eq!((text, format!("{other:?}")), ("{,}", "Some(Ok(Object {}))".to_owned())),
            }
        }
    }

    /// Texts that are made to take long.
    fn hostile() -> impl Strategy<Value = String> {
        let words = prop::sample::select(vec![
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
        (prop::collection::vec(words, 0..40), 1..400_usize)
            .prop_map(|(words, times)| words.concat().repeat(times))
    }

    /// Any JSON.
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
        fn whatever_is_said_is_gone_through_in_time(text in hostile()) {
            let begin = Instant::now();
            let found = pieces(&text);
            prop_assert!(found.len() <= text.len());
            prop_assert!(begin.elapsed() < Duration::from_secs(20), "{} bytes", text.len());
        }

        #[test]
        fn any_text_is_gone_through(text in any::<String>()) {
            drop(pieces(&text));
        }

        #[test]
        fn any_json_is_found_as_it_is(value in any_json(), pretty in any::<bool>()) {
            prop_assume!(value.is_object() || value.is_array());
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
            let said = format!("Well, (this):\n```\n{text}\n```\nThat is it.");
            prop_assert_eq!(values(&said), vec![value]);
        }
    }

    /// Each is chosen so that the whole rest is looked at from every place at which something could begin.
    #[test]
    fn a_text_is_looked_at_a_bounded_number_of_times() {
        for unit in ["{//", "{/*", "[/*"] {
            let text = unit.repeat(1024 * 1024 / unit.len());
            let begin = Instant::now();
            drop(pieces(&text));
            assert!(begin.elapsed() < Duration::from_secs(30), "{unit}");
        }
    }
}
