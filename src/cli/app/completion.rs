//! Completion requests of the shells: the grammar with its candidates, and which of them are offered.

use std::ffi::{OsStr, OsString};
use std::io::{Error, Write};
use std::path::Path;

use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::{Bash, Elvish, EnvCompleter, Fish, Powershell, Shells, Zsh};

use super::help_page::styled_command;
use crate::cli::set_up::completion_script::COMPLETE_VARIABLE;

/// Prints completion candidates and exits, if a shell's completion script started this process.
pub(crate) fn serve_shell_completion() {
    let shells: [&dyn EnvCompleter; 5] =
        [&Offered(Bash), &Offered(Elvish), &Offered(Fish), &Offered(Powershell), &Offered(Zsh)];
    CompleteEnv::with_factory(completion_grammar)
        .var(COMPLETE_VARIABLE)
        .bin("git-proq")
        .shells(Shells(&shells))
        .complete();
}

/// Returns the grammar, in which arguments that name a command have the commands as candidates.
fn completion_grammar() -> clap::Command {
    let grammar = styled_command();
    let visible = grammar.get_subcommands().filter(|sub| !sub.is_hide_set());
    let commands = visible.map(|sub| (sub.get_name().to_owned(), sub.get_about().map(ToString::to_string)));
    let commands: Vec<_> = commands.collect();
    ["help", "man"].into_iter().fold(grammar, |grammar, name| {
        let commands = commands.clone();
        let candidates = ArgValueCandidates::new(move || {
            let commands = commands.iter();
            commands
                .map(|(name, about)| CompletionCandidate::new(name).help(about.clone().map(Into::into)))
                .collect()
        });
        grammar.mut_subcommand(name, |sub| sub.mut_arg("command", |arg| arg.add(candidates)))
    })
}

/// A shell that offers options only after a dash, and no argument twice.
struct Offered<S>(S);

impl<S: EnvCompleter> EnvCompleter for Offered<S> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn is(&self, name: &str) -> bool {
        self.0.is(name)
    }

    fn write_registration(
        &self,
        var: &str,
        name: &str,
        bin: &str,
        completer: &str,
        buf: &mut dyn Write,
    ) -> Result<(), Error> {
        self.0.write_registration(var, name, bin, completer, buf)
    }

    fn write_complete(
        &self,
        cmd: &mut clap::Command,
        args: Vec<OsString>,
        current_dir: Option<&Path>,
        buf: &mut dyn Write,
    ) -> Result<(), Error> {
        // Fish and PowerShell pass no index: they complete the last word.
        let index = std::env::var("_CLAP_COMPLETE_INDEX").ok().and_then(|index| index.parse().ok());
        let index: usize = index.unwrap_or(args.len().saturating_sub(1));
        let (words, mut all) = (args.clone(), Vec::new());
        self.0.write_complete(cmd, args, current_dir, &mut all)?;
        let separator = std::env::var("_CLAP_IFS").ok().filter(|ifs| !ifs.is_empty());
        let separator = separator.unwrap_or_else(|| "\n".to_owned());
        let all = String::from_utf8_lossy(&all).into_owned();
        let offered: Vec<&str> =
            all.split(separator.as_str()).filter(|line| is_offered(line, &words, index)).collect();
        buf.write_all(offered.join(&separator).as_bytes())
    }
}

/// Returns whether to offer a candidate, in the shell's form, for the word of a line at `index`.
fn is_offered(candidate: &str, words: &[OsString], index: usize) -> bool {
    let starts_with_dash =
        |word: Option<&OsString>| word.is_some_and(|w| w.as_encoded_bytes().starts_with(b"-"));
    let is_option_value = index > 0 && starts_with_dash(words.get(index - 1));
    if candidate.starts_with('-') && !starts_with_dash(words.get(index)) {
        return false;
    }
    let value = candidate.split(['\t', ':']).next().unwrap_or_default();
    // The program and the command may have the name of a lane.
    let earlier = words.iter().take(index).skip(2);
    is_option_value || value.is_empty() || !earlier.into_iter().any(|word| word == OsStr::new(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offers_options_after_a_dash_and_nothing_twice() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        let is_offered = |candidate: &str, line: &str| {
            let words = words(line);
            is_offered(candidate, &words, words.len() - 1)
        };
        assert!(!is_offered("--json", "git-proq merge "));
        assert!(is_offered("--json", "git-proq merge -"));
        assert!(is_offered("pay:Payments", "git-proq merge "));
        assert!(!is_offered("pay:Payments", "git-proq merge pay "));
        assert!(!is_offered("pay\tPayments", "git-proq merge auth pay "));
        assert!(is_offered("claude", "git-proq spawn claude --reviewer "));
        assert!(is_offered("merge", "git-proq merge "));
    }
}
