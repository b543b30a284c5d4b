//! Parser for plain shell lines: words, quotes and sequences of commands, without anything that a shell would
//! expand or redirect.

/// Splits a line into its commands, each with its words. Returns none when the line has an unclosed quote or
/// other shell syntax, such as an expansion, a redirection, a pipe or a subshell.
pub(super) fn parse_commands(line: &str) -> Option<Vec<Vec<String>>> {
    let mut parser = LineParser::default();
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' => loop {
                match chars.next()? {
                    '\'' => break parser.push_char(None),
                    c => parser.push_char(Some(c)),
                }
            },
            '"' => loop {
                match chars.next()? {
                    '"' => break parser.push_char(None),
                    '$' | '`' => return None,
                    '\\' => match chars.next()? {
                        c @ ('"' | '\\' | '$' | '`') => parser.push_char(Some(c)),
                        _ => return None,
                    },
                    c => parser.push_char(Some(c)),
                }
            },
            ';' | '\n' => parser.end_command(),
            '&' | '|' if chars.peek() == Some(&c) => {
                chars.next();
                parser.end_command();
            }
            '$' | '`' | '<' | '>' | '|' | '&' | '(' | ')' | '\\' => return None,
            '~' if parser.current_word.is_none() => return None,
            c if c.is_ascii_whitespace() => parser.end_word(),
            c => parser.push_char(Some(c)),
        }
    }
    parser.end_command();
    Some(parser.commands)
}

/// The words and commands that were parsed so far.
#[derive(Default)]
struct LineParser {
    /// Complete commands, each as its words.
    commands: Vec<Vec<String>>,
    /// Complete words of the current command.
    current_words: Vec<String>,
    /// Characters of the current word; none between words.
    current_word: Option<String>,
}

impl LineParser {
    /// Adds a character to the current word. Without a character it only starts a word, as empty quotes do.
    fn push_char(&mut self, character: Option<char>) {
        self.current_word.get_or_insert_default().extend(character);
    }

    fn end_word(&mut self) {
        self.current_words.extend(self.current_word.take());
    }

    fn end_command(&mut self) {
        self.end_word();
        if !self.current_words.is_empty() {
            self.commands.push(std::mem::take(&mut self.current_words));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Promise: agent-requests/permission-requests
    #[test]
    fn splits_plain_lines_and_refuses_all_others() {
        let join_words =
            |line: &str| parse_commands(line).map(|all| all.iter().map(|c| c.join("|")).collect::<Vec<_>>());
        assert_eq!(
            join_words("git add -A && git commit -m 'a; $(b)'").unwrap(),
            ["git|add|-A", "git|commit|-m|a; $(b)"]
        );
        assert_eq!(join_words("a \"b \\\" c\"d '' ; e\nf || g").unwrap(), ["a|b \" cd|", "e", "f", "g"]);
        assert_eq!(join_words("  ").unwrap(), [""; 0]);
        let refused_lines = [
            "git x > y",
            "git x | sh",
            "git x & rm y",
            "git $(rm y)",
            "git `rm y`",
            "git \"$(rm y)\"",
            "(git x)",
            "git 'x",
            "git \"x",
            "git \\\n",
            "cd ~/x",
            "git x <(y)",
            "git \"a\\nb\"",
            "$X",
        ];
        for line in refused_lines {
            assert_eq!(parse_commands(line), None, "{line}");
        }
    }
}
