//! Command lines that tools run. Text from an agent never becomes an option.

/// Builder for a command line of git-proq.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CommandLine {
    /// The command, its flags and its options.
    pub(crate) args: Vec<String>,
    /// Positional arguments, which follow all options after `--`.
    positionals: Vec<String>,
}

impl CommandLine {
    /// Creates the command line of a git-proq command, with JSON output.
    pub(crate) fn with_json(command: &str) -> CommandLine {
        CommandLine::with_text(command).flag("--json", true)
    }

    /// Creates the command line of a git-proq command, with text output.
    pub(crate) fn with_text(command: &str) -> CommandLine {
        CommandLine { args: vec![command.to_owned()], positionals: Vec::new() }
    }

    /// Adds an option without a value, if `is_set`.
    pub(crate) fn flag(mut self, flag: &str, is_set: bool) -> CommandLine {
        self.args.extend(is_set.then(|| flag.to_owned()));
        self
    }

    /// Adds the option once for each value, as `option=value` in one argument.
    pub(crate) fn options<'a>(
        mut self,
        option: &str,
        values: impl IntoIterator<Item = &'a String>,
    ) -> CommandLine {
        self.args.extend(values.into_iter().map(|value| format!("{option}={value}")));
        self
    }

    /// Adds positional arguments. They are never parsed as options, even if they start with `-`.
    pub(crate) fn positional_args<'a>(mut self, values: impl IntoIterator<Item = &'a String>) -> CommandLine {
        self.positionals.extend(values.into_iter().cloned());
        self
    }

    /// Returns all arguments, with the positional ones after `--`.
    pub(crate) fn into_args(mut self) -> Vec<String> {
        if !self.positionals.is_empty() {
            self.args.push("--".to_owned());
            self.args.append(&mut self.positionals);
        }
        self.args
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Promise: agent-requests/no-options
    #[test]
    fn keeps_given_values_from_becoming_options() {
        let name = ["--force".to_owned()];
        let args = CommandLine::with_json("merge")
            .flag("--all", false)
            .options("--verify", &name)
            .positional_args(&name)
            .into_args();
        assert_eq!(args, ["merge", "--json", "--verify=--force", "--", "--force"]);
        assert_eq!(CommandLine::with_json("list").into_args(), ["list", "--json"]);
    }
}
