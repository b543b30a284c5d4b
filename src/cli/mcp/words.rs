//! Owns the command lines that lane tools stand for. What an agent says is never an option.

/// A command line of this program, and what is on its standard input.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Words {
    /// The words.
    pub(super) words: Vec<String>,
    /// The names after all options.
    last: Vec<String>,
}

impl Words {
    /// A command that answers in JSON.
    pub(super) fn json(command: &str) -> Words {
        Words::plain(command).flag("--json", true)
    }

    /// A command that answers as for a person.
    pub(super) fn plain(command: &str) -> Words {
        Words { words: vec![command.to_owned()], last: Vec::new() }
    }

    /// An option without a value.
    pub(super) fn flag(mut self, flag: &str, given: bool) -> Words {
        self.words.extend(given.then(|| flag.to_owned()));
        self
    }

    /// An option for each value, in one word with it.
    pub(super) fn options<'a>(mut self, option: &str, values: impl IntoIterator<Item = &'a String>) -> Words {
        self.words.extend(values.into_iter().map(|value| format!("{option}={value}")));
        self
    }

    /// Names that stand for themselves, whatever they begin with.
    pub(super) fn names<'a>(mut self, names: impl IntoIterator<Item = &'a String>) -> Words {
        self.last.extend(names.into_iter().cloned());
        self
    }

    /// All of it.
    pub(super) fn all(mut self) -> Vec<String> {
        if !self.last.is_empty() {
            self.words.push("--".to_owned());
            self.words.append(&mut self.last);
        }
        self.words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_given_becomes_an_option() {
        let name = ["--force".to_owned()];
        let words = Words::json("merge").flag("--all", false).options("--verify", &name).names(&name).all();
        assert_eq!(words, ["merge", "--json", "--verify=--force", "--", "--force"]);
        assert_eq!(Words::json("list").all(), ["list", "--json"]);
    }
}
