//! Lane names: validation, and derivation from a prompt.

use std::borrow::Borrow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::explain::Explain;

/// Maximum length of a lane name in characters.
const MAX_NAME_LEN: usize = 64;
/// Maximum length of a name derived from a prompt, so that lists stay readable.
const MAX_DERIVED_NAME_LEN: usize = 40;

/// Name of a lane: `[a-z0-9][a-z0-9._-]*`, at most 64 characters, valid as a component of a git ref.
/// Serialized as its text; deserializing any other text fails with [`InvalidLaneName`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LaneName(String);

/// A text that is not the name of a lane.
#[derive(Debug, thiserror::Error, Explain)]
#[error("cannot name a lane '{name}': {reason}")]
#[exit(Usage)]
#[hint("use lower-case letters, digits, '.', '_' and '-', at most 64: git proq spawn -n my-lane …")]
pub struct InvalidLaneName {
    /// The given text, shortened.
    pub name: String,
    /// Rule that the text breaks.
    pub reason: &'static str,
}

impl LaneName {
    /// Validates a name that the user gave.
    pub fn parse(text: &str) -> Result<LaneName, InvalidLaneName> {
        LaneName::try_from(text.to_owned())
    }

    /// Derives a name from the first line of a prompt that is not empty: `Implement payments!` becomes
    /// `implement-payments`.
    pub fn from_prompt(prompt: &str) -> LaneName {
        let line = prompt.lines().find(|l| !l.trim().is_empty()).unwrap_or_default();
        let mut slug = String::new();
        for c in line.chars().flat_map(char::to_lowercase).flat_map(fold_diacritics) {
            match c {
                'a'..='z' | '0'..='9' => slug.push(c),
                _ if slug.ends_with('-') || slug.is_empty() => {}
                _ => slug.push('-'),
            }
        }
        let mut slug = slug.trim_end_matches('-');
        if slug.len() > MAX_DERIVED_NAME_LEN {
            // Cut at a word boundary, unless the first word alone is too long.
            let end = slug[..=MAX_DERIVED_NAME_LEN].rfind('-').unwrap_or(MAX_DERIVED_NAME_LEN);
            slug = slug[..end].trim_end_matches('-');
        }
        match invalid_name_reason(slug) {
            None => LaneName(slug.to_owned()),
            Some(_) => LaneName("lane-1".to_owned()),
        }
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
            Some(reason) => Err(InvalidLaneName { name: shorten_for_message(&text), reason }),
        }
    }
}

impl From<LaneName> for String {
    fn from(name: LaneName) -> String {
        name.0
    }
}

/// Latin letters with diacritics and their ASCII replacements, some of which have two letters.
const DIACRITICS: [(&str, &str); 27] = [
    ("àáâãāăą", "a"),
    ("äæ", "ae"),
    ("å", "aa"),
    ("çćĉċč", "c"),
    ("ďđð", "d"),
    ("èéêëēĕėęě", "e"),
    ("ĝğġģ", "g"),
    ("ĥħ", "h"),
    ("ìíîïĩīĭįı", "i"),
    ("ĵ", "j"),
    ("ķ", "k"),
    ("ĺļľŀł", "l"),
    ("ñńņň", "n"),
    ("òóôõōŏő", "o"),
    ("öøœ", "oe"),
    ("ŕŗř", "r"),
    ("śŝşšș", "s"),
    ("ß", "ss"),
    ("ţťŧț", "t"),
    ("þ", "th"),
    ("ùúûũūŭůűų", "u"),
    ("ü", "ue"),
    ("ŵ", "w"),
    ("ýÿŷ", "y"),
    ("źżž", "z"),
    // Combining marks, which follow the base character.
    ("\u{300}\u{301}\u{302}\u{303}\u{304}\u{306}\u{307}\u{30a}\u{30b}\u{30c}\u{327}\u{328}", ""),
    ("\u{308}", "e"),
];

/// Returns the ASCII replacement of a letter with diacritics, or the character itself.
fn fold_diacritics(c: char) -> impl Iterator<Item = char> {
    let folding = DIACRITICS.iter().filter(|_| !c.is_ascii()).find(|(marked, _)| marked.contains(c));
    let unchanged = folding.is_none().then_some(c);
    folding.map_or("", |(_, folded)| folded).chars().chain(unchanged)
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
            ("  Fix: the `$(rm -rf /)` bug!\nmore", "fix-the-rm-rf-bug"),
            ("🚀🚀", "lane-1"),
            ("", "lane-1"),
            ("batch-7 things", "lane-1"),
            ("Größe ändern", "groesse-aendern"),
            ("Gro\u{308}\u{df}e a\u{308}ndern", "groesse-aendern"),
            ("Ça va, naïve Łódź?", "ca-va-naive-lodz"),
            ("日本語 のテスト", "lane-1"),
            (
                "a very long prompt that goes on and on and never comes to its end",
                "a-very-long-prompt-that-goes-on-and-on",
            ),
        ] {
            assert_eq!(LaneName::from_prompt(prompt).as_str(), name);
        }
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
        let error = serde_json::from_str::<LaneName>("\"X\"").unwrap_err().to_string();
        assert!(error.starts_with("'X' cannot be a lane's name: only lower-case letters"), "{error}");
    }

    proptest! {
        #[test]
        fn whatever_the_prompt_the_name_is_valid(prompt in any::<String>(), n in 0_u32..200) {
            let name = LaneName::from_prompt(&prompt).numbered(n);
            prop_assert!(LaneName::parse(name.as_str()).is_ok(), "{}", name);
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
