//! Owns lanes' names: what is a name, and how one is made from a prompt.

use std::fmt;

use super::Error;

/// The longest a name may be, in characters.
const LONGEST: usize = 64;
/// The longest a name made from a prompt becomes, so that lists stay readable.
const LONGEST_MADE: usize = 40;

/// A lane's name: `[a-z0-9][a-z0-9._-]*`, at most 64 characters, valid as a part of a git ref.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Name(String);

impl Name {
    /// Checks a name that a person gave.
    pub(crate) fn parse(text: &str) -> Result<Name, Error> {
        match flaw(text) {
            None => Ok(Name(text.to_owned())),
            Some(why) => Err(Error::Name { name: shown(text), why }),
        }
    }

    /// Makes a name from the first line of a prompt: `Implement payments!` becomes `implement-payments`.
    pub(crate) fn from_prompt(prompt: &str) -> Name {
        let line = prompt.lines().find(|l| !l.trim().is_empty()).unwrap_or_default();
        let mut slug = String::new();
        for c in line.chars().flat_map(char::to_lowercase).flat_map(plain) {
            match c {
                'a'..='z' | '0'..='9' => slug.push(c),
                _ if slug.ends_with('-') || slug.is_empty() => {}
                _ => slug.push('-'),
            }
        }
        let mut slug = slug.trim_end_matches('-');
        if slug.len() > LONGEST_MADE {
            // Whole words only, unless the first is longer than everything.
            let cut = slug[..=LONGEST_MADE].rfind('-').unwrap_or(LONGEST_MADE);
            slug = slug[..cut].trim_end_matches('-');
        }
        match flaw(slug) {
            None => Name(slug.to_owned()),
            Some(_) => Name("lane-1".to_owned()),
        }
    }

    /// The `n`-th name tried when this one is taken: `x`, `x-2`, `x-3` … (`lane-1`, `lane-2` …).
    pub(crate) fn numbered(&self, n: u32) -> Name {
        if n < 2 {
            return self.clone();
        }
        if self.0 == "lane-1" {
            return Name(format!("lane-{n}"));
        }
        Name(format!("{}-{n}", self.0))
    }

    /// The name as text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Letters of the Latin alphabet with marks, and what they are without; in pairs where that takes two letters.
const MARKED: [(&str, &str); 27] = [
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
    // Marks that stand by themselves, after their letter.
    ("\u{300}\u{301}\u{302}\u{303}\u{304}\u{306}\u{307}\u{30a}\u{30b}\u{30c}\u{327}\u{328}", ""),
    ("\u{308}", "e"),
];

/// A letter without its marks.
fn plain(c: char) -> impl Iterator<Item = char> {
    let bare = MARKED.iter().filter(|_| !c.is_ascii()).find(|(marked, _)| marked.contains(c));
    let own = bare.is_none().then_some(c);
    bare.map_or("", |(_, bare)| bare).chars().chain(own)
}

/// Why a text is no name; none when it is one.
#[expect(clippy::case_sensitive_file_extension_comparisons, reason = "git's lock files are lower-case")]
fn flaw(text: &str) -> Option<&'static str> {
    let allowed = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '.' | '_' | '-');
    if text.is_empty() {
        Some("it is empty")
    } else if text.chars().count() > LONGEST {
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

/// A bad name, short and on one line.
fn shown(text: &str) -> String {
    let short: String = text.chars().take(40).flat_map(char::escape_debug).collect();
    if text.chars().count() > 40 { format!("{short}…") } else { short }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_that_would_be_something_else_are_refused() {
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
            assert!(Name::parse(bad).is_err(), "{bad:?}");
        }
        assert!(Name::parse(&"x".repeat(65)).is_err());
        for good in ["x", "0", "payments", "auth-1", "a.b_c-d", "x-preview-2"] {
            assert!(Name::parse(good).is_ok(), "{good:?}");
        }
        assert!(Name::parse(&"x".repeat(64)).is_ok());
    }

    #[test]
    fn prompts_become_names() {
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
            assert_eq!(Name::from_prompt(prompt).as_str(), name);
        }
        assert_eq!(Name::from_prompt("x").numbered(3).as_str(), "x-3");
        assert_eq!(Name::from_prompt("").numbered(3).as_str(), "lane-3");
    }

    proptest! {
        #[test]
        fn whatever_the_prompt_the_name_is_valid(prompt in any::<String>(), n in 0_u32..200) {
            let name = Name::from_prompt(&prompt).numbered(n);
            prop_assert!(Name::parse(name.as_str()).is_ok(), "{}", name);
        }
    }
}
