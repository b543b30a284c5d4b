//! Owns remembering the states on which all commands succeeded, so that none is checked twice: by the commits that would land and those
//! below them, the form of files, commands and environment. What else a check reads (tags, other settings, the network) is no part of it.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::rc::Rc;

use super::Error;
use super::stack::Stack;
use crate::git::{Oid, ThrowAway};
use crate::lane::{CHECKS_KEPT, Project};
use crate::process::{MARK, OF_A_RUN, inherited};
use crate::store::records::GreenRecord;
use crate::store::{Record, now};

/// Variables that say which terminal or session this is, and nothing about what a command does. Checks do not get them.
const OF_THE_SESSION: &[&str] = &[
    "_",
    "COLUMNS",
    "GPG_TTY",
    "LINES",
    "OLDPWD",
    "PWD",
    "SHLVL",
    "SSH_CLIENT",
    "SSH_CONNECTION",
    "SSH_TTY",
    "STY",
    "TMUX",
    "TMUX_PANE",
    "VTE_VERSION",
    "WINDOWID",
    "WINDOWPATH",
    "XDG_SEAT",
    "XDG_SESSION_ID",
    "XDG_SESSION_PATH",
    "XDG_VTNR",
];

/// Prefixes of more of them.
const SESSION_PREFIXES: &[&str] =
    &["ALACRITTY_", "ITERM_", "KITTY_", "KONSOLE_", "TERM_", "WEZTERM_", "XDG_MENU_", "XDG_SEAT_"];

/// Variables that git-proq sets for what it starts, and that say nothing about what a command does.
const OF_GIT_PROQ: &[&str] = &["PROQ_GIT_HOOK", "PROQ_VERIFY", MARK];

/// How those begin that git-proq's own tests set.
const OF_TESTS: &str = "PROQ_TEST_";

/// The variables of this process that a check gets, by name.
pub(super) fn environment() -> Vec<(OsString, OsString)> {
    let mut env: Vec<_> = inherited(OF_A_RUN).filter(|(name, _)| !is_of_the_session(name)).collect();
    env.sort();
    env
}

fn is_of_the_session(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    OF_THE_SESSION.contains(&name.as_ref()) || SESSION_PREFIXES.iter().any(|p| name.starts_with(p))
}

/// Whether a variable that a check gets can be why it succeeds.
fn counts(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    !OF_GIT_PROQ.contains(&name.as_ref()) && !name.starts_with(OF_TESTS)
}

/// What a check can read of one state: its files, in the form that git writes them now, the commits that lead to it, and what the
/// variables say that git-proq sets.
/// Not the ports, which are any that are free, nor the dates of commits that a landing makes: those differ each time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct CheckInput {
    /// The tree.
    pub(super) tree: Oid,
    /// Everything else.
    context: Rc<[u8]>,
}

impl CheckInput {
    /// A base without any lane.
    pub(super) fn of_base(project: &Project, onto: &str, base: Oid) -> Result<CheckInput, Error> {
        Ok(CheckInput { tree: project.repo.tree_of(base)?, context: on(project, onto, base)?.into() })
    }

    /// Each prefix of a stack, from one lane on. Its commits may be in `into` only.
    pub(super) fn of_stack(
        project: &Project,
        stack: &Stack,
        into: Option<&ThrowAway>,
    ) -> Result<Vec<CheckInput>, Error> {
        let (mut out, mut context, mut ours) =
            (Vec::new(), on(project, &stack.onto, stack.base)?, stack.base);
        for step in &stack.steps {
            let (lane, tip) = (&step.candidate.lane.name, step.candidate.tip);
            context.extend_from_slice(format!("{lane}\0{tip}\0").as_bytes());
            context.extend(project.repo.describe_remade(step.commit, &[ours, tip], into)?);
            context.push(0);
            ours = step.commit;
            out.push(CheckInput { tree: step.tree, context: context.as_slice().into() });
        }
        Ok(out)
    }
}

fn on(project: &Project, onto: &str, base: Oid) -> Result<Vec<u8>, Error> {
    let form = project.repo.form_outside_of_commits(project.repo.home())?;
    let mut context = format!("{onto}\0{base}\0{}\0", form.len()).into_bytes();
    context.extend(form);
    Ok(context)
}

/// The file for a state with these commands in this environment.
fn file(project: &Project, input: &CheckInput, commands: &[String]) -> Option<PathBuf> {
    let mut text = format!("{}\0{}\0{}\0", input.tree, input.context.len(), commands.join("\n")).into_bytes();
    text.extend_from_slice(&input.context);
    for (name, value) in environment().into_iter().filter(|(name, _)| counts(name)) {
        text.extend_from_slice(name.as_encoded_bytes());
        text.push(b'=');
        text.extend_from_slice(value.as_encoded_bytes());
        text.push(0);
    }
    let id = project.repo.blob_id(&text)?;
    Some(project.store.layout().greens().join(format!("{id}.toml")))
}

/// Whether all commands succeeded on a state not long ago.
pub(super) fn knows(project: &Project, input: &CheckInput, commands: &[String]) -> bool {
    let Some(path) = file(project, input, commands) else { return false };
    // What cannot be read is not known.
    GreenRecord::find(&path).ok().flatten().is_some_and(|green| {
        green.tree == input.tree && green.commands == commands && !green.at.is_older_than(CHECKS_KEPT)
    })
}

/// Remembers that all commands succeeded on a state. It is a cache: failing to is no failure.
pub(super) fn remember(project: &Project, input: &CheckInput, commands: &[String]) {
    if let Some(path) = file(project, input, commands) {
        drop(GreenRecord { tree: input.tree, commands: commands.to_vec(), at: now() }.save(&path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_check_gets_counts_and_what_a_terminal_sets_it_does_not_get() {
        for name in [
            "PATH",
            "CI",
            "DISPLAY",
            "TERM",
            "SSH_AUTH_SOCK",
            "GIT_AUTHOR_NAME",
            "PROQ_FAST",
            "XDG_DATA_DIRS",
        ] {
            assert!(!is_of_the_session(name.as_ref()) && counts(name.as_ref()), "{name}");
        }
        for name in ["PWD", "SHLVL", "TERM_PROGRAM", "SSH_TTY", "TMUX_PANE", "XDG_SESSION_ID"] {
            assert!(is_of_the_session(name.as_ref()), "{name}");
        }
        for name in ["PROQ_RUN", "PROQ_TEST_NOW"] {
            assert!(!is_of_the_session(name.as_ref()) && !counts(name.as_ref()), "{name}");
        }
    }
}
