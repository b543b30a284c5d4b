//! Facts of the man pages that the grammar lacks: exit codes of each command, files, variables and related pages.

/// Exit codes with their meanings, and the commands that use them; none for those that all use.
pub(super) const EXIT_CODES: &[(&str, &str, Option<&[&str]>)] = &[
    ("0", "Success.", None),
    ("1", "Refused or failed; no partial change was left.", None),
    ("2", "Invalid command line.", None),
    (
        "3",
        "Conflicts were found and kept.",
        Some(&[
            "spawn",
            "run",
            "send",
            "wait",
            "redispatch",
            "preview",
            "merge",
            "pick",
            "resolve",
            "swarm",
            "batch",
            "snap",
        ]),
    ),
    (
        "4",
        "An agent, a command in a lane or a check failed.",
        Some(&[
            "spawn",
            "run",
            "send",
            "wait",
            "redispatch",
            "compare",
            "merge",
            "pick",
            "resolve",
            "plan",
            "deps",
            "swarm",
            "batch",
            "supervise",
            "sync",
            "stop",
        ]),
    ),
    (
        "5",
        "Timed out waiting for a lock.",
        Some(&[
            "spawn",
            "run",
            "send",
            "wait",
            "edit",
            "rename",
            "stop",
            "discard",
            "redispatch",
            "cleanup",
            "preview",
            "compare",
            "merge",
            "pick",
            "resolve",
            "plan",
            "deps",
            "swarm",
            "batch",
            "undo",
            "redo",
            "op",
            "snap",
            "doctor",
            "gc",
            "approve",
            "sync",
            "supervise",
            "task",
            "mcp",
        ]),
    ),
    ("70", "Internal error (bug).", None),
    ("130", "Interrupted with Ctrl-C; 128 + N for any signal N.", None),
];

/// Files of git-proq, for the main page.
pub(super) const FILES: &[(&str, &str)] = &[
    ("proq.toml", "Settings of the repository, at the top of the main checkout."),
    (
        "~/.config/git-proq/config.toml",
        "Your settings for all repositories, and the profiles of your agents.",
    ),
    (".proq-worktrees/", "Worktrees of the lanes, in the main checkout; lane.location puts them elsewhere."),
    (".worktreeinclude", "Patterns of ignored files that a new lane gets a copy of."),
    (
        ".git/proq/",
        "State of git-proq: records of lanes, logs of runs, the operation log and the event log, snapshots, hooks and \
         the trash. It is for git-proq only; programs read the output of --json.",
    ),
    ("~/.local/state/git-proq/", "List of your repositories with lanes, for list --everywhere."),
];

/// Files of one command.
pub(super) const COMMAND_FILES: &[(&str, &[(&str, &str)])] = &[
    (
        "config",
        &[
            ("proq.toml", "Settings of the repository, at the top of the main checkout."),
            ("~/.config/git-proq/config.toml", "Your settings for all repositories."),
            (".git/config, ~/.gitconfig", "What config set and config edit write."),
        ],
    ),
    ("spawn", INCLUDED_FILES),
    ("sync", INCLUDED_FILES),
];

/// File with the patterns of what a lane gets a copy of.
const INCLUDED_FILES: &[(&str, &str)] =
    &[(".worktreeinclude", "Patterns of ignored files that a lane gets a copy of.")];

/// Variables that git-proq reads, for the main page.
pub(super) const ENVIRONMENT: &[(&str, &str)] = &[
    ("PROQ_GROUP_NAME", "Overrides the setting group.name, as PROQ_MERGE_STRATEGY=squash does."),
    (
        "PROQ_LANE",
        "Lane whose agent runs the command. git-proq sets it for agents, with PROQ_BASE, PROQ_BRANCH and PROQ_ROOT.",
    ),
    ("PROQ_NO_HOOKS", "If set, no hooks of git-proq and no notifications run, as with --no-hooks."),
    ("PROQ_LOG", "Filter of the trace on stderr, as in PROQ_LOG=git=debug; see --verbose."),
    ("NO_COLOR, CLICOLOR_FORCE", "Turn colors off, or on where the output is not a terminal."),
    ("COLUMNS", "Width to which output to a pipe is cut."),
    ("GIT_PAGER, PAGER", "Pager of long results; git's core.pager and pager.proq count too."),
    ("GIT_EDITOR, VISUAL, EDITOR", "Editor for messages and settings; git's core.editor counts too."),
    ("GIT_DIR, GIT_WORK_TREE", "The repository, as for git."),
    (
        "XDG_CONFIG_HOME, XDG_STATE_HOME, XDG_CACHE_HOME, XDG_DATA_HOME",
        "Folders in place of those below your home folder.",
    ),
];

/// Variables that one command reads.
pub(super) const COMMAND_ENVIRONMENT: &[(&str, &[(&str, &str)])] = &[
    (
        "open",
        &[
            ("SHELL", "Shell that is started in the lane."),
            ("VISUAL, EDITOR", "Editor of open --editor, after open.editor and git's core.editor."),
        ],
    ),
    ("merge", &[("GIT_EDITOR, VISUAL, EDITOR", "Editor of merge --edit, after git's core.editor.")]),
    (
        "setup",
        &[
            ("PATH", "Man pages go beside a bin folder of PATH in your home folder, where man finds them."),
            ("XDG_DATA_HOME, XDG_CONFIG_HOME", "Folders of the completions."),
        ],
    ),
    (
        "config",
        &[("PROQ_GROUP_NAME", "Overrides the setting group.name, as PROQ_MERGE_STRATEGY=squash does.")],
    ),
];

/// Commands that help after or instead of a command. Other commands name those of their group.
pub(super) const RELATED: &[(&str, &[&str])] = &[
    ("spawn", &["list", "logs", "send", "merge", "agents", "swarm"]),
    ("send", &["logs", "wait", "stop", "redispatch"]),
    ("open", &["send", "logs", "preview", "shell-init"]),
    ("edit", &["rename", "show", "spawn"]),
    ("rename", &["edit", "show", "undo"]),
    ("stop", &["send", "redispatch", "discard"]),
    ("discard", &["cleanup", "undo", "gc"]),
    ("cleanup", &["discard", "undo", "gc"]),
    ("redispatch", &["send", "logs", "spawn"]),
    ("list", &["show", "status", "matrix", "events"]),
    ("show", &["list", "diff", "logs", "op"]),
    ("diff", &["show", "compare", "preview"]),
    ("logs", &["show", "events", "send"]),
    ("events", &["hooks", "logs", "list"]),
    ("preview", &["diff", "merge", "snap", "undo"]),
    ("matrix", &["merge", "resolve", "compare"]),
    ("compare", &["pick", "matrix", "diff"]),
    ("merge", &["preview", "matrix", "resolve", "pick", "queue", "undo"]),
    ("pick", &["compare", "merge", "undo"]),
    ("resolve", &["merge", "matrix", "redispatch"]),
    ("queue", &["merge", "matrix"]),
    ("plan", &["deps", "swarm", "batch"]),
    ("deps", &["plan", "swarm"]),
    ("swarm", &["plan", "batch", "merge", "status"]),
    ("batch", &["swarm", "status", "merge"]),
    ("undo", &["redo", "op", "snap"]),
    ("redo", &["undo", "op"]),
    ("op", &["undo", "redo", "doctor"]),
    ("snap", &["preview", "undo", "op", "gc"]),
    ("doctor", &["gc", "op", "cleanup"]),
    ("gc", &["doctor", "cleanup", "discard"]),
    ("agents", &["spawn", "config", "mcp"]),
    ("hooks", &["events", "approve", "config"]),
    ("approve", &["hooks", "config", "agents"]),
];

/// Returns the part of a table that is about one command.
pub(super) fn of_command<T: Copy>(table: &[(&str, T)], command: &str) -> Option<T> {
    table.iter().find(|(name, _)| *name == command).map(|(_, facts)| *facts)
}

#[cfg(test)]
mod tests {
    use proq_base::explain::Exit;

    use super::*;
    use crate::cli::app::help_page::styled_command;

    #[test]
    fn exit_codes_are_those_of_the_program() {
        let is_own_code = |code: &u8| Exit::from_code(*code).code() == *code;
        let own: Vec<String> = (0..128).filter(is_own_code).map(|code| code.to_string()).collect();
        let interrupted = Exit::Signal(2).code().to_string();
        let documented: Vec<&str> = EXIT_CODES.iter().map(|(code, ..)| *code).collect();
        assert_eq!(documented, [own, vec![interrupted]].concat());

        let grammar = styled_command();
        let unknown = EXIT_CODES.iter().flat_map(|(.., users)| users.unwrap_or_default());
        let unknown: Vec<_> = unknown.filter(|name| grammar.find_subcommand(name).is_none()).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}
