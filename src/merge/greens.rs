//! Owns remembering the trees on which all commands succeeded, so that none is checked twice: by tree, commands and
//! environment.

use std::path::PathBuf;

use crate::git::Oid;
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

/// The file for a tree with these commands in this environment.
fn file(project: &Project, tree: Oid, commands: &[String]) -> Option<PathBuf> {
    let mut text = format!("{tree}\0{}\0", commands.join("\n")).into_bytes();
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

/// Whether all commands succeeded on a tree not long ago.
pub(super) fn knows(project: &Project, tree: Oid, commands: &[String]) -> bool {
    let Some(path) = file(project, tree, commands) else { return false };
    // What cannot be read is not known.
    GreenRecord::find(&path).ok().flatten().is_some_and(|green| {
        green.tree == tree && green.commands == commands && !green.at.is_older_than(CHECKS_KEPT)
    })
}

/// Remembers that all commands succeeded on a tree. It is a cache: failing to is no failure.
pub(super) fn remember(project: &Project, tree: Oid, commands: &[String]) {
    if let Some(path) = file(project, tree, commands) {
        drop(GreenRecord { tree, commands: commands.to_vec(), at: now() }.save(&path));
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
