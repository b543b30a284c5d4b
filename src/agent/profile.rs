//! Owns profiles: how one kind of agent is started, as data.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::Error;

/// The profiles that come with the program.
const BUILT_IN: &str = include_str!("profiles.toml");

/// The longest single argument that every system takes. (Linux allows 128 KiB.)
const LONGEST_ARGUMENT: usize = 120 * 1024;

/// How one kind of agent is started.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Profile {
    /// What it is.
    pub(crate) about: String,
    /// The program, looked up on `PATH`.
    pub(crate) program: String,
    /// Its arguments, with placeholders.
    pub(crate) args: Vec<String>,
    /// Variables for it.
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
}

/// What placeholders stand for.
pub(crate) struct Places<'a> {
    /// The task's text.
    pub(crate) prompt: &'a str,
    /// The file that holds it.
    pub(crate) prompt_file: &'a Path,
    /// The shared git directory.
    pub(crate) common_dir: &'a Path,
    /// The lane's own git directory.
    pub(crate) git_dir: &'a Path,
}

/// The profiles by name. A broken built-in file is a bug that the tests find.
pub(crate) fn profiles() -> BTreeMap<String, Profile> {
    toml::from_str(BUILT_IN).unwrap_or_default()
}

impl Profile {
    /// The profile of a well-known agent; of any other program the one that takes the prompt as its last argument.
    pub(crate) fn of(agent: &str) -> Profile {
        profiles().remove(agent).unwrap_or_else(|| Profile {
            about: String::new(),
            program: agent.to_owned(),
            args: vec!["{prompt}".to_owned()],
            env: BTreeMap::new(),
        })
    }

    /// Finds its program.
    pub(crate) fn find(&self, dir: &Path) -> Result<PathBuf, Error> {
        crate::process::find(&self.program, dir)
            .map_err(|_| Error::NotInstalled { program: self.program.clone() })
    }

    /// Whether the prompt goes to standard input.
    pub(crate) fn prompt_on_stdin(&self) -> bool {
        !self.args.iter().any(|a| a.contains("{prompt}") || a.contains("{prompt_file}"))
    }

    /// Refuses a prompt that cannot be handed over this way.
    pub(crate) fn check_prompt(&self, prompt: &str) -> Result<(), Error> {
        let refused = |why, helps| Err(Error::Prompt { why, helps });
        if prompt.trim().is_empty() {
            return refused("is empty", "say what to do: git proq spawn AGENT \"implement payments\"");
        }
        check_text(prompt)?;
        if self.args.iter().any(|a| a.contains("{prompt}")) {
            if prompt.len() > LONGEST_ARGUMENT {
                return refused(
                    "is longer than an argument may be (120 KiB), and this agent takes it as one",
                    "let it read a file: git proq spawn -n NAME -f task.md -- AGENT {prompt_file}",
                );
            }
            if prompt.starts_with('-') {
                return refused(
                    "starts with '-', which this agent would take for an option",
                    "begin it with a word",
                );
            }
        }
        Ok(())
    }

    /// The arguments with placeholders filled in.
    pub(crate) fn fill(&self, places: &Places<'_>) -> Vec<OsString> {
        self.args.iter().map(|arg| fill(arg.as_ref(), places)).collect()
    }
}

/// Refuses a prompt that is no text: no argument can hold a NUL byte, and a log that shows one misleads.
pub(super) fn check_text(prompt: &str) -> Result<(), Error> {
    if prompt.contains('\0') {
        return Err(Error::Prompt {
            why: "holds a NUL byte",
            helps: "is it the right file? A prompt is plain text",
        });
    }
    Ok(())
}

/// Fills the placeholders of one argument. What is filled in is never looked at again, so a prompt may hold `{git_dir}`.
pub(crate) fn fill(arg: &std::ffi::OsStr, places: &Places<'_>) -> OsString {
    let Some(text) = arg.to_str() else { return arg.to_owned() };
    let mut out = OsString::new();
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        out.push(&rest[..open]);
        rest = &rest[open..];
        let (word, value): (&str, &std::ffi::OsStr) = if rest.starts_with("{prompt}") {
            ("{prompt}", places.prompt.as_ref())
        } else if rest.starts_with("{prompt_file}") {
            ("{prompt_file}", places.prompt_file.as_ref())
        } else if rest.starts_with("{common_dir}") {
            ("{common_dir}", places.common_dir.as_ref())
        } else if rest.starts_with("{git_dir}") {
            ("{git_dir}", places.git_dir.as_ref())
        } else {
            ("{", "{".as_ref())
        };
        out.push(value);
        rest = &rest[word.len()..];
    }
    out.push(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_profiles_are_read() {
        let all: BTreeMap<String, Profile> = toml::from_str(BUILT_IN).unwrap();
        assert!(all.contains_key("claude") && all.contains_key("codex"));
        assert!(all["claude"].prompt_on_stdin());
        assert!(!all["aider"].prompt_on_stdin());
    }

    #[test]
    fn no_profile_goes_round_an_agents_own_permissions() {
        for (name, profile) in profiles() {
            for arg in &profile.args {
                let loud = ["dangerously", "yolo", "bypass", "allow-all", "danger-full-access"];
                assert!(!loud.iter().any(|w| arg.contains(w)), "{name}: {arg}");
            }
        }
    }

    #[test]
    fn placeholders_are_filled_once() {
        let places = Places {
            prompt: "say {git_dir} \"'$(id)",
            prompt_file: Path::new("/p f"),
            common_dir: Path::new("/c"),
            git_dir: Path::new("/g"),
        };
        assert_eq!(fill("x{prompt}y".as_ref(), &places), "xsay {git_dir} \"'$(id)y");
        assert_eq!(fill("[\"{common_dir}\",\"{git_dir}\"]".as_ref(), &places), "[\"/c\",\"/g\"]");
        assert_eq!(fill("{prompt_file}{other}{".as_ref(), &places), "/p f{other}{");
    }

    #[test]
    fn prompts_that_cannot_be_handed_over_are_refused() {
        let other = Profile::of("some-program");
        assert!(other.check_prompt(&"x".repeat(1 << 20)).is_err());
        assert!(other.check_prompt("--help").is_err());
        let claude = Profile::of("claude");
        assert!(claude.check_prompt(&"x".repeat(1 << 20)).is_ok());
        assert!(claude.check_prompt("--help").is_ok());
        for bad in ["", " \n", "a\0b"] {
            assert!(claude.check_prompt(bad).is_err(), "{bad:?}");
        }
    }
}
