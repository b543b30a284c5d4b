//! Patterns of commands that an agent may run without a request: plain words, and ` *` at the end for any
//! further arguments.

use std::fmt;

/// Last word of a pattern that permits any further arguments.
const ANY_ARGUMENTS: &str = "*";

/// Characters beside letters and digits that a word may have. None of them has a meaning for a shell or in
/// the permission rules of an agent.
const WORD_PUNCTUATION: &str = "-_./:=@%+";

/// Pattern of commands: all its words, with any further arguments if it ends with ` *`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowPattern {
    words: Vec<String>,
    any_arguments: bool,
}

impl AllowPattern {
    /// Parses a pattern such as `cargo *` or `npm ci`.
    ///
    /// # Errors
    /// The reason why the text is not a pattern, as the end of a sentence.
    pub fn parse(text: &str) -> Result<AllowPattern, String> {
        let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        let any_arguments = words.pop_if(|last| last == ANY_ARGUMENTS).is_some();
        let Some(program) = words.first() else {
            return Err(match any_arguments {
                true => "it matches every command; use --permission full instead".to_owned(),
                false => "it is empty".to_owned(),
            });
        };
        if program.starts_with('-') || program.contains('=') {
            return Err(format!("'{program}' is not the name of a program"));
        }
        let is_word_char = |c: &char| c.is_ascii_alphanumeric() || WORD_PUNCTUATION.contains(*c);
        match text.chars().find(|c| !is_word_char(c) && *c != '*' && *c != ' ') {
            Some(c) => {
                return Err(format!("it contains {c:?}; only plain words and ' *' at the end are allowed"));
            }
            None if words.iter().any(|word| word.contains('*')) => {
                return Err("'*' is only allowed at the end, after a space".to_owned());
            }
            None => {}
        }
        Ok(AllowPattern { words, any_arguments })
    }

    /// Returns whether the pattern permits any arguments after its words.
    pub fn permits_any_arguments(&self) -> bool {
        self.any_arguments
    }

    /// Returns the words of the pattern, without the `*` at its end.
    pub fn command(&self) -> String {
        self.words.join(" ")
    }

    /// Returns whether the pattern permits every command that `other` permits.
    pub(crate) fn covers(&self, other: &AllowPattern) -> bool {
        let words: Vec<&str> = other.words.iter().map(String::as_str).collect();
        self.permits(&words) && (self.any_arguments || !other.any_arguments)
    }

    /// Returns whether the pattern permits a command with these words.
    pub(crate) fn permits(&self, words: &[&str]) -> bool {
        let own = self.words.iter().map(String::as_str);
        words.len() >= self.words.len()
            && own.eq(words[..self.words.len()].iter().copied())
            && (self.any_arguments || words.len() == self.words.len())
    }
}

impl fmt::Display for AllowPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.command())?;
        if self.any_arguments { f.write_str(" *") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> AllowPattern {
        AllowPattern::parse(text).unwrap()
    }

    #[test]
    fn permits_words_and_any_arguments_after_star() {
        let cases = [
            ("cargo *", "cargo", true),
            ("cargo *", "cargo test -p printer", true),
            ("cargo *", "cargox test", false),
            ("npm ci", "npm ci", true),
            ("npm ci", "npm ci --ignore-scripts", false),
            ("npm run test:unit *", "npm run test:unit -- a", true),
            ("npm run test *", "npm run deploy", false),
        ];
        for (pattern, command, permitted) in cases {
            let words: Vec<&str> = command.split(' ').collect();
            assert_eq!(parse(pattern).permits(&words), permitted, "{pattern}: {command}");
        }
        assert_eq!(parse("  npm   run  test  * ").to_string(), "npm run test *");
    }

    #[test]
    fn refuses_shell_syntax_and_wildcards_inside() {
        let refused = [
            "",
            " ",
            "*",
            "* *",
            "cargo*",
            "cargo * x",
            "*argo *",
            "cargo x; rm -rf *",
            "cargo && rm *",
            "cargo | sh",
            "cargo $(x) *",
            "cargo `x`",
            "cargo 'x'",
            "cargo \"x\"",
            "cargo > x",
            "cargo\nrm *",
            "cargo\\ x",
            "cargo (x)",
            "cargo {a,b}",
            "cargo a,b",
            "cargo ~",
            "cargo #",
            "cargo !x",
            "cargo ?",
            "cargo [a]",
            "cargo\trm",
            "-x *",
            "A=1 cargo *",
            "cargö *",
            "cargo :*",
        ];
        for text in refused {
            assert!(AllowPattern::parse(text).is_err(), "{text:?}");
        }
        let reason = AllowPattern::parse("cargo x; rm -rf *").unwrap_err();
        assert_eq!(reason, "it contains ';'; only plain words and ' *' at the end are allowed");
    }
}
