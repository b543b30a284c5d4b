//! Owns reading a line for the shell as far as it is plain: words and quotes, one command after the other, and nothing that a
//! shell would look into.

/// The commands of a line, each with its words; none where it holds anything that a shell makes something else of.
pub(super) fn commands(line: &str) -> Option<Vec<Vec<String>>> {
    let mut reading = Reading::default();
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\'' => loop {
                match rest.next()? {
                    '\'' => break reading.letter(None),
                    c => reading.letter(Some(c)),
                }
            },
            '"' => loop {
                match rest.next()? {
                    '"' => break reading.letter(None),
                    '$' | '`' => return None,
                    '\\' => match rest.next()? {
                        c @ ('"' | '\\' | '$' | '`') => reading.letter(Some(c)),
                        _ => return None,
                    },
                    c => reading.letter(Some(c)),
                }
            },
            ';' | '\n' => reading.end_command(),
            '&' | '|' if rest.peek() == Some(&c) => {
                rest.next();
                reading.end_command();
            }
            '$' | '`' | '<' | '>' | '|' | '&' | '(' | ')' | '\\' => return None,
            '~' if reading.word.is_none() => return None,
            c if c.is_ascii_whitespace() => reading.end_word(),
            c => reading.letter(Some(c)),
        }
    }
    reading.end_command();
    Some(reading.commands)
}

/// What has been read of a line.
#[derive(Default)]
struct Reading {
    commands: Vec<Vec<String>>,
    words: Vec<String>,
    word: Option<String>,
}

impl Reading {
    /// A letter of a word, or quotes that make it one.
    fn letter(&mut self, letter: Option<char>) {
        self.word.get_or_insert_default().extend(letter);
    }

    fn end_word(&mut self) {
        self.words.extend(self.word.take());
    }

    fn end_command(&mut self) {
        self.end_word();
        if !self.words.is_empty() {
            self.commands.push(std::mem::take(&mut self.words));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_lines_are_taken_apart() {
        let read = |line: &str| commands(line).map(|all| all.iter().map(|c| c.join("|")).collect::<Vec<_>>());
        assert_eq!(
            read("git add -A && git commit -m 'a; $(b)'").unwrap(),
            ["git|add|-A", "git|commit|-m|a; $(b)"]
        );
        assert_eq!(read("a \"b \\\" c\"d '' ; e\nf || g").unwrap(), ["a|b \" cd|", "e", "f", "g"]);
        assert_eq!(read("  ").unwrap(), [""; 0]);
        let others = [
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
        for line in others {
            assert_eq!(commands(line), None, "{line}");
        }
    }
}
