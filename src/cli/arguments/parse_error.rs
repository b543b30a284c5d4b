//! Errors of the command line that clap finds, in the form of all other errors: one line, and commands that
//! help.

use std::error::Error;
use std::ffi::OsString;
use std::num::{IntErrorKind, ParseIntError};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use proq_base::explain::{Explain, closest_match, shell_quote};
use proq_base::hint;
use proq_base::hint::Hint;

use super::candidates::{agent_for_hint, is_agent};

/// Reason why a command line cannot be parsed.
#[derive(Debug, thiserror::Error, Explain)]
#[error("{problem}")]
#[exit(Usage)]
#[hint(with = hint.clone())]
pub(crate) struct CommandLineError {
    /// The error message, in one line.
    problem: String,
    /// A command that helps.
    hint: Option<Hint>,
}

/// Names that other programs have for a command, each with the command's name here and the options that it needs.
const SYNONYMS: [(&str, &str, &str); 29] = [
    ("add", "spawn", ""),
    ("create", "spawn", ""),
    ("start", "spawn", ""),
    ("remove", "discard", ""),
    ("delete", "discard", ""),
    ("kill", "stop", ""),
    ("switch", "open", ""),
    ("cd", "open", ""),
    ("path", "open", " --path"),
    ("checkout", "preview", ""),
    ("rebase", "merge", ""),
    ("log", "logs", ""),
    ("restore", "undo", ""),
    ("revert", "undo", ""),
    ("conflicts", "matrix", ""),
    ("retry", "redispatch", ""),
    ("trust", "approve", ""),
    ("prune", "cleanup", ""),
    ("settings", "config", ""),
    ("shell", "open", " --shell"),
    ("continue", "resolve", " --continue"),
    ("ps", "list", ""),
    ("worktree", "list", ""),
    ("dashboard", "list", " --watch"),
    ("info", "show", ""),
    ("view", "show", ""),
    ("inspect", "show", ""),
    ("tmux", "open", ""),
    ("update", "sync", ""),
];

/// Commands that take a text at their end, each with the number of arguments before the text.
const TEXT_COMMANDS: [(&str, usize); 3] = [("spawn", 1), ("run", 2), ("send", 1)];

/// Describes an error of clap. `grammar` is that of all commands, built, and `args` is the command line with the
/// program first.
pub(crate) fn describe_parse_error(
    error: &clap::Error,
    grammar: &clap::Command,
    args: &[OsString],
) -> CommandLineError {
    let line = TypedLine::new(grammar, args);
    let names = |kind| context_texts(error, kind);
    let argument = names(ContextKind::InvalidArg).into_iter().next().unwrap_or_default();
    let (problem, hint) = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = names(ContextKind::InvalidSubcommand).into_iter().next().unwrap_or_default();
            line.unknown_command(&word)
        }
        ErrorKind::UnknownArgument if argument.starts_with('-') => line.unknown_option(&argument),
        ErrorKind::UnknownArgument => line.unexpected_word(&argument),
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => line.invalid_value(error, &argument),
        ErrorKind::NoEquals => {
            let name = argument_name(&argument);
            (format!("the value of {name} must follow '=': {name}=VALUE"), None)
        }
        ErrorKind::TooFewValues | ErrorKind::TooManyValues | ErrorKind::WrongNumberOfValues => {
            (format!("wrong number of values for {}", argument_name(&argument)), None)
        }
        ErrorKind::ArgumentConflict => {
            let (name, other) = (argument_name(&argument), names(ContextKind::PriorArg));
            let others = join_words(other.iter().map(|arg| argument_name(arg)).collect(), "and");
            match others.is_empty() || others == name {
                true => (format!("{name} was given more than once"), None),
                false => (format!("cannot combine {name} with {others}"), None),
            }
        }
        ErrorKind::MissingRequiredArgument => line.missing_arguments(&names(ContextKind::InvalidArg)),
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let subcommands = visible_subcommands(line.command).map(ToOwned::to_owned).collect();
            (format!("missing subcommand: {}", join_words(subcommands, "or")), line.example())
        }
        ErrorKind::InvalidUtf8 => ("an argument is not valid UTF-8".to_owned(), None),
        _ => {
            let text = error.to_string();
            (text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned(), None)
        }
    };
    CommandLineError { problem, hint: hint.or_else(|| Some(line.help_hint())) }
}

/// A command line and the command that it names, as far as they are known.
struct TypedLine<'a> {
    /// The words after the program.
    words: Vec<String>,
    /// The innermost command that the words name; that of the program if they name none.
    command: &'a clap::Command,
    /// Names of the commands from the outermost to the innermost, without hidden ones, which have no help.
    path: Vec<&'a str>,
    /// Name of the innermost command as it was typed; empty if the words name none.
    typed_name: String,
    /// Index of the first word after the innermost command's name.
    start: usize,
}

impl<'a> TypedLine<'a> {
    fn new(grammar: &'a clap::Command, args: &[OsString]) -> TypedLine<'a> {
        let words: Vec<String> = args.iter().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
        let (mut command, mut path, mut start, mut at) = (grammar, Vec::new(), 0, 0);
        let mut typed_name = String::new();
        while let Some(word) = words.get(at) {
            if word.starts_with('-') && word != "--" {
                at += if word == "-C" { 2 } else { 1 };
                continue;
            }
            let Some(next) = command.find_subcommand(word) else { break };
            path.extend(Some(next.get_name()).filter(|_| !next.is_hide_set()));
            typed_name.clone_from(word);
            (command, start, at) = (next, at + 1, at + 1);
        }
        TypedLine { words, command, path, typed_name, start }
    }

    /// Returns the name of the innermost command as a user types it.
    fn command_name(&self) -> String {
        // The names of internal commands begin with `_`.
        let is_shown = |name: &&str| self.command.is_hide_set() && !name.is_empty() && !name.starts_with('_');
        let hidden = Some(self.typed_name.as_str()).filter(is_shown);
        let names = std::iter::once("git proq").chain(self.path.iter().copied()).chain(hidden);
        names.collect::<Vec<_>>().join(" ")
    }

    fn help_hint(&self) -> Hint {
        match self.path.is_empty() {
            true => hint!("see all commands: git proq help --all"),
            false => hint!("see the help: git proq help {}", self.path.join(" ")),
        }
    }

    /// Returns the hint with the first example of the command's help; none without an example.
    fn example(&self) -> Option<Hint> {
        let text = self.command.get_after_help()?.to_string();
        let example = text.lines().skip(1).map(str::trim).find(|line| line.starts_with("git proq"))?;
        Some(hint!("for example: {example}"))
    }

    /// Returns the hint with the command line in which `new` replaces the beginning `old` of the word at `at`.
    fn corrected(&self, at: usize, old: &str, new: &str) -> Hint {
        let words = self.words.iter().enumerate().map(|(n, word)| match word.strip_prefix(old) {
            Some(end) if n == at => shell_quote(&format!("{new}{end}")),
            _ => shell_quote(word),
        });
        hint!("did you mean: git proq {}", words.collect::<Vec<_>>().join(" "))
    }

    fn unknown_command(&self, word: &str) -> (String, Option<Hint>) {
        let subcommands = || visible_subcommands(self.command);
        let synonym = SYNONYMS.iter().find(|(theirs, ..)| self.path.is_empty() && *theirs == word);
        let similar = synonym
            .map(|(_, ours, options)| (*ours, *options))
            .filter(|(ours, _)| subcommands().any(|name| name == *ours))
            .or_else(|| closest_match(word, subcommands()).map(|ours| (ours, "")));
        let at = self.words.iter().position(|typed| typed == word);
        let hint = similar.zip(at).map(|((similar, options), at)| {
            let is_typed = self.words.iter().any(|typed| typed == options.trim());
            self.corrected(at, word, similar).map_text(|text| if is_typed { text } else { text + options })
        });
        match self.path.as_slice() {
            [] => (format!("unknown command '{word}'"), hint),
            ["config"] if word.contains('.') => (
                format!("missing subcommand of {}", self.command_name()),
                at.map(|at| self.with_config_subcommand(at)),
            ),
            _ => (format!("unknown subcommand '{word}' of {}", self.command_name()), hint),
        }
    }

    /// Returns the hint with the subcommand of `config` that is meant, as git's own `config` has none: the setting at
    /// `at` is shown or, with a value behind it, set.
    fn with_config_subcommand(&self, at: usize) -> Hint {
        let (purpose, subcommand) = match self.words.len() - at {
            1 => ("show it", "get"),
            _ => ("set it", "set"),
        };
        let mut words: Vec<String> = self.words.iter().map(|word| shell_quote(word)).collect();
        words.insert(at, subcommand.to_owned());
        hint!("{purpose}: git proq {}", words.join(" "))
    }

    fn unknown_option(&self, option: &str) -> (String, Option<Hint>) {
        let longs = self.command.get_arguments().filter(|arg| !arg.is_hide_set());
        let similar = option.strip_prefix("--").and_then(|name| {
            closest_match(name, longs.filter_map(clap::Arg::get_long)).map(|long| format!("--{long}"))
        });
        // As in git.
        let has_dry_run = || self.command.get_arguments().any(|arg| arg.get_long() == Some("dry-run"));
        let similar = similar.or_else(|| (option == "-n" && has_dry_run()).then(|| "--dry-run".to_owned()));
        let at = self.words.iter().position(|word| word.split('=').next() == Some(option));
        let hint = similar.zip(at).map(|(similar, at)| self.corrected(at, option, &similar));
        (format!("unknown option '{option}' for {}", self.command_name()), hint)
    }

    /// Describes a word too much, which is most often part of a text without quotes.
    fn unexpected_word(&self, word: &str) -> (String, Option<Hint>) {
        let name = self.command_name();
        match TEXT_COMMANDS.iter().find(|(command, _)| self.path == [*command]) {
            Some((_, leading)) => {
                let text = if self.path == ["send"] { "message" } else { "prompt" };
                let hint = hint!("quote the {text}: {}", self.with_quoted_text(*leading));
                (format!("unexpected argument '{word}' for {name}"), Some(hint))
            }
            None if self.path == ["diff"] => {
                let lanes = self.words[self.start..].iter().filter(|word| !word.starts_with('-'));
                let lanes: Vec<String> = lanes.map(|lane| shell_quote(lane)).collect();
                let hint = hint!("compare lanes: git proq compare {}", lanes.join(" "));
                (format!("{name} takes one lane, and '{word}' is another"), Some(hint))
            }
            None => (format!("unexpected argument '{word}' for {name}"), None),
        }
    }

    /// Returns the command line with all words of the text quoted as one. The text follows `leading` arguments.
    fn with_quoted_text(&self, leading: usize) -> String {
        let mut out: Vec<String> = self.words[..self.start].iter().map(|word| shell_quote(word)).collect();
        let (mut positionals, mut rest) = (Vec::new(), self.words[self.start..].iter());
        while let Some(word) = rest.next() {
            match word.as_str() {
                "--" => break,
                option if option.starts_with('-') => {
                    out.push(shell_quote(option));
                    let value = if takes_next_word(self.command, option) { rest.next() } else { None };
                    out.extend(value.map(|value| shell_quote(value)));
                }
                _ => positionals.push(word.clone()),
            }
        }
        let mut text_start = leading;
        if self.path == ["spawn"] && positionals.first().is_some_and(|word| !is_agent(word)) {
            out.push(agent_for_hint());
            text_start = 0;
        }
        let text = positionals.split_off(text_start.min(positionals.len())).join(" ");
        out.extend(positionals.iter().map(|word| shell_quote(word)));
        out.push(shell_quote(&text));
        let command: Vec<String> = rest.map(|word| shell_quote(word)).collect();
        let command = if command.is_empty() { String::new() } else { format!(" -- {}", command.join(" ")) };
        format!("git proq {}{command}", out.join(" "))
    }

    fn invalid_value(&self, error: &clap::Error, argument: &str) -> (String, Option<Hint>) {
        let name = argument_name(argument);
        let valid = context_texts(error, ContextKind::ValidValue);
        let value = context_texts(error, ContextKind::InvalidValue).into_iter().next().unwrap_or_default();
        let at = self.words.iter().position(|word| *word == value || word.ends_with(&format!("={value}")));
        let similar = closest_match(&value, valid.iter().map(String::as_str));
        let hint = similar.zip(at).map(|(similar, at)| {
            let prefix = self.words[at].strip_suffix(value.as_str()).unwrap_or_default();
            self.corrected(at, &self.words[at], &format!("{prefix}{similar}"))
        });
        let expected = match error.source() {
            _ if !valid.is_empty() => format!(": expected {}", join_words(valid, "or")),
            Some(reason) => format!(": {}", describe_reason(reason)),
            None => String::new(),
        };
        match value.is_empty() {
            true => (format!("missing value for {name}{expected}"), hint),
            false => (format!("invalid value '{value}' for {name}{expected}"), hint),
        }
    }

    fn missing_arguments(&self, missing: &[String]) -> (String, Option<Hint>) {
        let names: Vec<String> = missing.iter().map(|argument| argument_name(argument)).collect();
        let hint = match &names[..] {
            [flag] if flag.starts_with("--") && missing[0] == *flag => {
                let words: Vec<String> = self.words.iter().map(|word| shell_quote(word)).collect();
                Some(hint!("add it: git proq {} {flag}", words.join(" ")))
            }
            _ => self.example(),
        };
        (format!("missing argument for {}: {}", self.command_name(), join_words(names, "and")), hint)
    }
}

/// Returns the texts that clap gives as a context of its error.
fn context_texts(error: &clap::Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    }
}

/// Returns the names of the commands that the help lists.
fn visible_subcommands(command: &clap::Command) -> impl Iterator<Item = &str> {
    command.get_subcommands().filter(|sub| !sub.is_hide_set()).map(clap::Command::get_name)
}

/// Returns the name of an argument as the help has it, from clap's form: `--count` from `--count N`, `LANE`
/// from `LANE...`, and the alternatives of a group.
fn argument_name(argument: &str) -> String {
    if argument.starts_with('-') {
        return argument.split([' ', '=', '[']).next().unwrap_or_default().to_owned();
    }
    let name = argument.trim_end_matches('.').trim_start_matches(['<', '[']);
    let name = name.strip_suffix(['>', ']']).unwrap_or(name);
    match name.split_once('|') {
        None => name.to_owned(),
        Some(_) => join_words(name.split('|').map(argument_name).collect(), "or"),
    }
}

/// Joins words as a sentence does: `a, b or c`.
fn join_words(mut words: Vec<String>, conjunction: &str) -> String {
    match (words.pop(), words.is_empty()) {
        (Some(last), false) => format!("{} {conjunction} {last}", words.join(", ")),
        (last, _) => last.unwrap_or_default(),
    }
}

/// Returns whether the word after an option is its value.
fn takes_next_word(command: &clap::Command, option: &str) -> bool {
    let has_name = |arg: &&clap::Arg| {
        if let Some(long) = option.strip_prefix("--") {
            return arg.get_long() == Some(long)
                || arg.get_all_aliases().is_some_and(|all| all.contains(&long));
        }
        let short = option.chars().nth(1).filter(|_| option.chars().count() == 2);
        let aliases = arg.get_all_short_aliases().unwrap_or_default();
        short.is_some_and(|short| arg.get_short() == Some(short) || aliases.contains(&short))
    };
    let needs_value = |arg: &clap::Arg| {
        !arg.is_require_equals_set() && arg.get_num_args().is_some_and(|count| count.min_values() > 0)
    };
    command.get_arguments().find(has_name).is_some_and(needs_value)
}

/// Describes why a value is invalid, in plain words where the reason is that of a number's parser.
fn describe_reason(reason: &(dyn Error + 'static)) -> String {
    let text = reason.to_string();
    if let Some(error) = reason.downcast_ref::<ParseIntError>() {
        let is_too_large = *error.kind() == IntErrorKind::PosOverflow;
        return if is_too_large { "the number is too large" } else { "expected a whole number" }.to_owned();
    }
    let range = text.split_once(" is not in ").and_then(|(_, range)| range.split_once("..="));
    match range {
        Some((first, last)) => format!("expected a number from {first} to {last}"),
        None => text,
    }
}
