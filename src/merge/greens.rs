//! Owns remembering the states on which all commands succeeded, so that none is checked twice: by the commits that would land and those
//! below them, commands and environment. What else a check reads (tags, settings, the network) is not part of it.

use std::path::PathBuf;
use std::rc::Rc;

use super::Error;
use super::stack::Stack;
use crate::git::{Oid, ThrowAway};
use crate::lane::{CHECKS_KEPT, Project};
use crate::store::records::GreenRecord;
use crate::store::{Record, now};

/// Variables that say which terminal or session this is, and nothing about what a command does.
const OF_THE_SESSION: &[&str] = &[
    "_",
    "COLORTERM",
    "COLUMNS",
    "DISPLAY",
    "GPG_TTY",
    "LINES",
    "OLDPWD",
    "PWD",
    "SHLVL",
    "STY",
    "TERM",
    "TMUX",
    "TMUX_PANE",
    "VTE_VERSION",
    "WAYLAND_DISPLAY",
    "WINDOWID",
    "WINDOWPATH",
    "XAUTHORITY",
    "XDG_CURRENT_DESKTOP",
    "XDG_RUNTIME_DIR",
    "XDG_SEAT",
    "XDG_VTNR",
];

/// Prefixes of more of them. git's are not handed on, or are about who commits; git-proq's do not change the commands.
const SESSION_PREFIXES: &[&str] = &[
    "ALACRITTY_",
    "DBUS_",
    "GIT_",
    "ITERM_",
    "KITTY_",
    "KONSOLE_",
    "PROQ_",
    "SSH_",
    "TERM_",
    "WEZTERM_",
    "XDG_MENU_",
    "XDG_SEAT_",
    "XDG_SESSION_",
];

/// What a check can read of one state: its files, the commits that lead to it, and what the variables say that git-proq sets.
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
        Ok(CheckInput { tree: project.repo.tree_of(base)?, context: on(onto, base).into() })
    }

    /// Each prefix of a stack, from one lane on. Its commits may be in `into` only.
    pub(super) fn of_stack(
        project: &Project,
        stack: &Stack,
        into: Option<&ThrowAway>,
    ) -> Result<Vec<CheckInput>, Error> {
        let (mut out, mut context, mut ours) = (Vec::new(), on(&stack.onto, stack.base), stack.base);
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

fn on(onto: &str, base: Oid) -> Vec<u8> {
    format!("{onto}\0{base}\0").into_bytes()
}

/// The file for a state with these commands in this environment.
fn file(project: &Project, input: &CheckInput, commands: &[String]) -> Option<PathBuf> {
    let mut text = format!("{}\0{}\0{}\0", input.tree, input.context.len(), commands.join("\n")).into_bytes();
    text.extend_from_slice(&input.context);
    let mut env: Vec<_> = std::env::vars_os().filter(|(name, _)| counts(&name.to_string_lossy())).collect();
    env.sort();
    for (name, value) in env {
        text.extend_from_slice(name.as_encoded_bytes());
        text.push(b'=');
        text.extend_from_slice(value.as_encoded_bytes());
        text.push(0);
    }
    let id = project.repo.blob_id(&text)?;
    Some(project.store.layout().greens().join(format!("{id}.toml")))
}

fn counts(name: &str) -> bool {
    !OF_THE_SESSION.contains(&name) && !SESSION_PREFIXES.iter().any(|p| name.starts_with(p))
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
    fn what_a_build_reads_counts_and_what_a_terminal_sets_does_not() {
        for name in
            ["PATH", "HOME", "RUSTFLAGS", "CI", "LANG", "NODE_ENV", "XDG_CONFIG_HOME", "XDG_DATA_DIRS"]
        {
            assert!(counts(name), "{name}");
        }
        for name in [
            "PWD",
            "SHLVL",
            "TERM",
            "TERM_PROGRAM",
            "SSH_TTY",
            "PROQ_VERIFY_JOBS",
            "GIT_PREFIX",
            "XDG_SESSION_ID",
        ] {
            assert!(!counts(name), "{name}");
        }
    }
}
