//! Errors in how a command was called that clap's grammar cannot find.

use std::path::PathBuf;

use proq_base::explain::{Explain, shell_quote};

/// Reason why a command cannot be carried out as it was called.
#[derive(Debug, thiserror::Error, Explain)]
pub enum UsageError {
    /// The current folder no longer exists.
    #[error("the current folder no longer exists")]
    #[hint("change to your home folder: cd")]
    CurrentDirMissing,
    /// `-C` names a path that is not a folder.
    #[error("{} is not a folder", dir.display())]
    #[exit(Usage)]
    #[hint("-C takes a folder that exists")]
    NotADir {
        /// The path as it was given.
        dir: PathBuf,
    },
    /// An argument that the command needs is missing or unusable.
    #[error("{problem}")]
    #[exit(Usage)]
    #[hint("for example: {example}")]
    MissingArgument {
        /// The error message.
        problem: &'static str,
        /// A complete command line, for the hint.
        example: &'static str,
    },
    /// A file that the user named does not exist.
    #[error("cannot read {}: there is no such file; nothing was changed", file.display())]
    #[hint("list the files of that folder: ls -A {}", shell_quote(&folder.to_string_lossy()))]
    FileMissing {
        /// The path as it was given.
        file: PathBuf,
        /// The nearest folder of the path that exists.
        folder: PathBuf,
    },
    /// A command needs a lane, none was given, and the current folder is in none.
    #[error("no lane given, and the current folder is not in a lane's worktree")]
    #[exit(Usage)]
    #[hint("see all lanes: git proq list")]
    NoLaneGiven,
    /// `git proq merge` names no lane.
    #[error("no lane was named; nothing was merged")]
    #[exit(Usage)]
    #[hint(if lane.is_some(), "merge all that can be merged: git proq merge --all")]
    #[hint(if let Some(lane) = lane, "or one of them: git proq merge {lane}")]
    #[hint(if lane.is_none(), "see the lanes: git proq list")]
    NoLaneToMerge {
        /// A lane that can be merged; none if there is none.
        lane: Option<String>,
    },
    /// A command was named that does not exist.
    #[error("unknown command '{name}'")]
    #[exit(Usage)]
    #[hint(if let Some(similar) = similar, "did you mean: git proq help {similar}")]
    #[hint(else, "see all commands: git proq help --all")]
    UnknownCommand {
        /// The name as it was given.
        name: String,
        /// The most similar command.
        similar: Option<String>,
    },
    /// A command was named that prints nothing in JSON.
    #[error("there is no schema of '{name}'")]
    #[exit(Usage)]
    #[hint(if let Some(similar) = similar, "did you mean: git proq schema {similar}")]
    #[hint(else, "see all schemas: git proq schema")]
    NoSchema {
        /// The name as it was given.
        name: String,
        /// The most similar command with a schema.
        similar: Option<String>,
    },
    /// A flag about landing was given for a run that cannot land.
    #[error("cannot combine {flag} with {mode}, which creates nothing to merge")]
    #[exit(Usage)]
    #[hint(
        if mode == "--in-place",
        "leave out {flag}, or leave out {mode} to work in a lane"
    )]
    #[hint(else, "leave out {flag}, or use --mode build")]
    LandingFlagRefused {
        /// The mode as an option, such as `--mode plan` or `--in-place`.
        mode: String,
        /// The flag about landing.
        flag: &'static str,
    },
    /// `--isolated` was given for a lane that can land. Such a lane always has its own worktree.
    #[error("--isolated needs --mode plan or answer: any other lane has a worktree of its own")]
    #[exit(Usage)]
    #[hint("leave out --isolated, or add --mode answer")]
    IsolatedRefused,
    /// Commands of the repository need approval, and the user cannot be prompted.
    #[error("cannot ask about the commands of {origin}: not a terminal; nothing was approved")]
    #[hint("approve them without asking: git proq approve --yes{selection_args}")]
    ApprovalRequired {
        /// Source of the commands, as text: the repository's `proq.toml`, or a plan.
        origin: &'static str,
        /// The arguments of `git proq approve` that select the commands.
        selection_args: String,
    },
    /// An agent in a lane would change another lane or a base.
    #[error(
        "cannot change other lanes or their bases: this is the agent of lane '{agent_lane}'; nothing was changed"
    )]
    #[hint("report what a person should do: git proq task update --human-step TEXT")]
    #[hint("a person can run it in a terminal, or let an agent supervise all lanes: git proq supervise")]
    NotOwnLane {
        /// Name of the agent's lane, as its environment or folder has it.
        agent_lane: String,
    },
    /// The MCP server failed.
    #[error("the MCP server ended: {reason}")]
    #[hint("agents start this server; read how: git proq help mcp")]
    McpServerFailed {
        /// Reason of the failure, as text.
        reason: String,
    },
    /// A step of the demo failed.
    #[error("the demo stopped: {failure}")]
    #[hint("please report this, with the output above")]
    DemoFailed {
        /// Description of the failed step.
        failure: String,
    },
}

impl UsageError {
    /// Creates the error for a missing or unusable argument. `example` is a complete command line, for the
    /// hint.
    pub(crate) fn missing(problem: &'static str, example: &'static str) -> UsageError {
        UsageError::MissingArgument { problem, example }
    }
}
