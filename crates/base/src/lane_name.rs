//! Lane names: validation, and derivation from a prompt.

use std::borrow::Borrow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::explain::Explain;

/// Maximum length of a lane name in characters.
const MAX_NAME_LEN: usize = 64;
/// Maximum length of a name derived from a title.
const MAX_TITLE_NAME_LEN: usize = 40;
/// Maximum length of a name derived from a prompt, so that lists stay readable.
const MAX_PROMPT_NAME_LEN: usize = 24;
/// Maximum number of words of a name derived from a prompt.
const MAX_PROMPT_WORDS: usize = 4;

/// Name of a lane: `[a-z0-9][a-z0-9._-]*`, at most 64 characters, valid as a component of a git ref.
/// Serialized as its text; deserializing any other text fails with [`InvalidLaneName`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LaneName(String);

/// A text that is not the name of a lane.
#[derive(Debug, thiserror::Error, Explain)]
#[error("cannot name a lane '{name}': {reason}")]
#[exit(Usage)]
#[hint(if let Some(name) = suggestion, "use a valid name: -n {name}")]
#[hint(else, "use letters, digits, '.', '_' and '-', at most 64: -n my-lane")]
pub struct InvalidLaneName {
    /// The given text, shortened.
    pub name: String,
    /// Rule that the text breaks.
    pub reason: &'static str,
    /// A valid name that is like the text.
    pub suggestion: Option<LaneName>,
}

impl LaneName {
    /// Validates a name that the user gave.
    pub fn parse(text: &str) -> Result<LaneName, InvalidLaneName> {
        LaneName::try_from(text.to_owned())
    }

    /// Validates a name that the user gave for a lane. Capitals become small letters.
    ///
    /// # Errors
    /// [`InvalidLaneName`].
    pub fn from_user(text: &str) -> Result<LaneName, InvalidLaneName> {
        LaneName::try_from(text.to_lowercase())
    }

    /// Derives a short name from the first line of a prompt that is not empty: `Implement the payments!` becomes
    /// `implement-payments`. Stop words are left out, unless there are no others. A prompt that is a short valid
    /// name, such as the id of a task, is the name.
    pub fn from_prompt(prompt: &str) -> LaneName {
        if let Ok(name) = LaneName::from_user(prompt.trim())
            && name.0.len() <= MAX_PROMPT_NAME_LEN
        {
            return name;
        }
        let mut words = ascii_words(first_line(prompt));
        if words.iter().any(|word| !STOP_WORDS.contains(&word.as_str())) {
            words.retain(|word| !STOP_WORDS.contains(&word.as_str()));
        }
        words.truncate(MAX_PROMPT_WORDS);
        LaneName::from_slug(&join_words(&words, MAX_PROMPT_NAME_LEN)).unwrap_or_else(LaneName::fallback)
    }

    /// Derives a name with all words of the first line of a title that is not empty: `Fix: the bug` becomes
    /// `fix-the-bug`.
    pub fn from_title(title: &str) -> LaneName {
        LaneName::suggestion(title).unwrap_or_else(LaneName::fallback)
    }

    /// Returns the valid name that is most like a text; none when there is none.
    fn suggestion(text: &str) -> Option<LaneName> {
        LaneName::from_slug(&join_words(&ascii_words(first_line(text)), MAX_TITLE_NAME_LEN))
    }

    /// Returns a slug as a name, if it is a valid one.
    fn from_slug(slug: &str) -> Option<LaneName> {
        invalid_name_reason(slug).is_none().then(|| LaneName(slug.to_owned()))
    }

    /// Returns the name of a lane whose prompt yields none.
    fn fallback() -> LaneName {
        LaneName("lane-1".to_owned())
    }

    /// Returns the `n`-th candidate to try when this name is taken: `x`, `x-2`, `x-3` … (`lane-1`, `lane-2`
    /// …). A name that is too long for the number is cut before it.
    pub fn numbered(&self, n: u32) -> LaneName {
        if n < 2 {
            return self.clone();
        }
        if self.0 == "lane-1" {
            return LaneName(format!("lane-{n}"));
        }
        let suffix = format!("-{n}");
        let end = self.0.len().min(MAX_NAME_LEN - suffix.len());
        LaneName(self.0[..end].to_owned() + &suffix)
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LaneName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl AsRef<str> for LaneName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for LaneName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for LaneName {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for LaneName {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

impl TryFrom<String> for LaneName {
    type Error = InvalidLaneName;

    fn try_from(text: String) -> Result<LaneName, InvalidLaneName> {
        match invalid_name_reason(&text) {
            None => Ok(LaneName(text)),
            Some(reason) => Err(InvalidLaneName {
                name: shorten_for_message(&text),
                reason,
                suggestion: LaneName::suggestion(&text),
            }),
        }
    }
}

impl From<LaneName> for String {
    fn from(name: LaneName) -> String {
        name.0
    }
}

/// Letters whose usual ASCII form has two letters, unlike their transliteration by Unicode name.
const TWO_LETTER_FORMS: [(char, &str); 5] = [('ä', "ae"), ('ö', "oe"), ('ø', "oe"), ('ü', "ue"), ('å', "aa")];

/// Words without meaning for a task, which are left out of names.
const STOP_WORDS: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "by", "for", "from", "i", "in", "into", "is", "it", "its",
    "of", "on", "or", "our", "please", "so", "that", "the", "their", "them", "then", "this", "to", "we",
    "with", "you", "your",
];

/// Splits a line into words of ASCII letters and digits in lower case. Letters of other scripts are
/// transliterated, apostrophes and combining marks are left out, and all other characters end a word.
fn ascii_words(line: &str) -> Vec<String> {
    let mut text = String::new();
    for c in line.chars().flat_map(char::to_lowercase) {
        match c {
            // A decomposed umlaut; apostrophes and other combining marks are left out.
            '\u{308}' if text.ends_with(['a', 'o', 'u']) => text.push('e'),
            '\'' | '\u{2019}' | '\u{300}'..='\u{36f}' => {}
            c if c.is_ascii() => text.push(c),
            c => match TWO_LETTER_FORMS.iter().find(|(letter, _)| *letter == c) {
                Some((_, form)) => text.push_str(form),
                None if c.is_alphanumeric() => text.push_str(deunicode::deunicode_char(c).unwrap_or(" ")),
                None => text.push(' '),
            },
        }
    }
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect()
}

/// Joins words by `-` and cuts the result after a word so that it has at most `max_len` characters. A first word
/// that alone is longer is cut.
fn join_words(words: &[impl AsRef<str>], max_len: usize) -> String {
    let mut slug = String::new();
    for word in words.iter().map(AsRef::as_ref) {
        if slug.is_empty() {
            slug.push_str(&word[..word.len().min(max_len)]);
        } else if slug.len() + 1 + word.len() <= max_len {
            slug.push('-');
            slug.push_str(word);
        } else {
            break;
        }
    }
    slug
}

/// Returns the reason why a text is not a valid name, or `None` if it is valid.
#[expect(clippy::case_sensitive_file_extension_comparisons, reason = "git's lock files are lower-case")]
fn invalid_name_reason(text: &str) -> Option<&'static str> {
    let allowed = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '.' | '_' | '-');
    if text.is_empty() {
        Some("it is empty")
    } else if text.chars().count() > MAX_NAME_LEN {
        Some("it is longer than 64 characters")
    } else if text.starts_with('-') {
        Some("it looks like an option")
    } else if text.contains(['/', '\\']) {
        Some("it looks like a path")
    } else if !text.chars().all(allowed) {
        Some("only lower-case letters, digits, '.', '_' and '-' are allowed")
    } else if text.starts_with(['.', '_']) {
        Some("it must start with a letter or digit")
    } else if text.contains("..") || text.ends_with('.') || text.ends_with(".lock") {
        Some("git does not allow it in a branch name")
    } else if text.ends_with("-preview") || text.starts_with("batch-") {
        Some("git-proq uses such names itself")
    } else {
        None
    }
}

/// Returns the first line of a text that is not empty.
fn first_line(text: &str) -> &str {
    text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default()
}

/// Returns an invalid name shortened and escaped to one line, for messages.
fn shorten_for_message(text: &str) -> String {
    let short: String = text.chars().take(40).flat_map(char::escape_debug).collect();
    if text.chars().count() > 40 { format!("{short}…") } else { short }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn refuses_invalid_names() {
        for bad in [
            "",
            "-x",
            "--force",
            "../x",
            "a/b",
            "a\\b",
            "x.lock",
            "x..y",
            "x.",
            "@{",
            "@",
            "HEAD^",
            "a b",
            "ä",
            "🚀",
            "Payments",
            ".git",
            "_x",
            "x-preview",
            "batch-1",
            "a\nb",
            "a\0b",
            "$(id)",
            "x~1",
            "x:y",
            "x?",
            "x*",
            "[x",
        ] {
            assert!(LaneName::parse(bad).is_err(), "{bad:?}");
        }
        assert!(LaneName::parse(&"x".repeat(65)).is_err());
        for good in ["x", "0", "payments", "auth-1", "a.b_c-d", "x-preview-2"] {
            assert!(LaneName::parse(good).is_ok(), "{good:?}");
        }
        assert!(LaneName::parse(&"x".repeat(64)).is_ok());
    }

    #[test]
    fn derives_names_from_prompts() {
        for (prompt, name) in [
            ("implement payments", "implement-payments"),
            ("  Fix: the `$(rm -rf /)` bug!\nmore", "fix-rm-rf-bug"),
            ("🚀🚀", "lane-1"),
            ("", "lane-1"),
            ("batch-7 things", "lane-1"),
            ("Größe ändern", "groesse-aendern"),
            ("Gro\u{308}\u{df}e a\u{308}ndern", "groesse-aendern"),
            ("Ça va, naïve Łódź?", "ca-va-naive-lodz"),
            ("日本語 のテスト", "ri-ben-yu-notesuto"),
            ("Änderungen für Zahlungen", "aenderungen-fuer"),
            ("don't drop it, don’t", "dont-drop-dont"),
            ("the and of", "the-and-of"),
            ("Add a --json flag to the list command and document it", "add-json-flag-list"),
            ("a very long prompt that goes on and on and never comes to its end", "very-long-prompt-goes"),
            ("internationalization-and-localization", "internationalization"),
            ("pneumonoultramicroscopicsilicovolcanoconiosis", "pneumonoultramicroscopic"),
        ] {
            assert_eq!(LaneName::from_prompt(prompt).as_str(), name);
        }
        let title = "Fix the very long title that goes on and on";
        assert_eq!(LaneName::from_title(title).as_str(), "fix-the-very-long-title-that-goes-on-and");
        assert_eq!(LaneName::from_prompt("x").numbered(3).as_str(), "x-3");
        assert_eq!(LaneName::from_prompt("").numbered(3).as_str(), "lane-3");
    }

    #[test]
    fn serializes_as_text_and_refuses_other_text() {
        let name: LaneName = serde_json::from_str("\"x-1\"").unwrap();
        assert_eq!(
            (serde_json::to_string(&name).unwrap(), format!("{name:>5}")),
            ("\"x-1\"".into(), "  x-1".into())
        );
        assert_eq!(LaneName::from_user("Payments").unwrap().as_str(), "payments");
        let suggested = |text: &str| LaneName::from_user(text).unwrap_err().hints();
        assert_eq!(suggested("My Lane/ä"), ["use a valid name: -n my-lane-ae"]);
        let error = serde_json::from_str::<LaneName>("\"X\"").unwrap_err().to_string();
        assert!(error.starts_with("cannot name a lane 'X': only lower-case letters"), "{error}");
    }

    proptest! {
        #[test]
        fn whatever_the_prompt_the_name_is_valid(prompt in any::<String>(), n in 0_u32..200) {
            for name in [LaneName::from_prompt(&prompt), LaneName::from_title(&prompt)] {
                let name = name.numbered(n);
                prop_assert!(LaneName::parse(name.as_str()).is_ok(), "{}", name);
            }
        }

        #[test]
        fn a_number_keeps_a_name_valid(text in "[a-z0-9][a-z0-9._-]{0,63}", n in any::<u32>()) {
            if let Ok(name) = LaneName::parse(&text) {
                let numbered = name.numbered(n);
                prop_assert!(LaneName::parse(numbered.as_str()).is_ok(), "{}", numbered);
            }
        }
    }
}
