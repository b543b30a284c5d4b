//! Owns what is to be started in a lane: an agent by its profile, or a command of the user's own.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::Error;
use super::profile::{Places, Profile, check_text, fill};
use crate::process;

/// A command for a lane, its placeholders not filled in yet.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    /// The profile's name; `command` for a command line of the user's own.
    pub(crate) agent: String,
    program: PathBuf,
    args: Args,
    pub(super) env: Vec<(String, String)>,
    pub(super) prompt_on_stdin: bool,
}

#[derive(Debug, Clone)]
enum Args {
    Profile(Profile),
    Command(Vec<OsString>),
}

impl Job {
    /// An agent by name, with the prompt handed over as its profile says.
    pub(crate) fn agent(agent: &str, prompt: &str, dir: &Path) -> Result<Job, Error> {
        let profile = Profile::of(agent);
        let program = profile.find(dir)?;
        profile.check_prompt(prompt)?;
        Ok(Job {
            agent: agent.to_owned(),
            program,
            env: profile.env.clone().into_iter().collect(),
            prompt_on_stdin: profile.prompt_on_stdin(),
            args: Args::Profile(profile),
        })
    }

    /// A command line of the user's own; `{prompt}` and `{prompt_file}` in its arguments are filled in. Without them a
    /// prompt is only found in the file that `PROQ_TASK_FILE` names.
    pub(crate) fn command(words: &[OsString], prompt: &str, dir: &Path) -> Result<Job, Error> {
        let (program, args) = words.split_first().ok_or(Error::NoCommand)?;
        check_text(prompt)?;
        let found = process::find(&program.to_string_lossy(), dir)
            .map_err(|_| Error::NotInstalled { program: program.to_string_lossy().into_owned() })?;
        Ok(Job {
            agent: "command".to_owned(),
            program: found,
            args: Args::Command(args.to_vec()),
            env: Vec::new(),
            prompt_on_stdin: false,
        })
    }

    /// The agent as a sentence names it.
    pub(crate) fn called(&self) -> &str {
        match &self.args {
            Args::Profile(_) => &self.agent,
            Args::Command(_) => "your command",
        }
    }

    /// The command line for a lane.
    pub(super) fn words(&self, places: &Places<'_>) -> Vec<OsString> {
        let args = match &self.args {
            Args::Profile(profile) => profile.fill(places),
            Args::Command(args) => args.iter().map(|a| fill(a, places)).collect(),
        };
        std::iter::once(self.program.clone().into_os_string()).chain(args).collect()
    }

    /// The command line as a person reads it, placeholders left in.
    pub(crate) fn shown(&self) -> String {
        let args: Vec<String> = match &self.args {
            Args::Profile(profile) => profile.args.clone(),
            Args::Command(args) => args.iter().map(|a| a.to_string_lossy().into_owned()).collect(),
        };
        let words = std::iter::once(self.program.display().to_string()).chain(args);
        words.map(|w| quoted(&w)).collect::<Vec<_>>().join(" ")
    }
}

/// A word as a shell would need it written.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+{}".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_only_where_a_shell_needs_it() {
        assert_eq!(quoted("--flag=x"), "--flag=x");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }
}
