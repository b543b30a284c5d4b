//! Errors in how a command was called that clap's grammar cannot find.

use std::path::PathBuf;

use proq_base::explain::Explain;

/// Reason why a command cannot be carried out as it was called.
#[derive(Debug, thiserror::Error, Explain)]
pub enum UsageError {
    /// The current folder no longer exists.
    #[error("the current folder does not exist any more")]
    #[hint("change to a folder that exists: cd")]
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
    /// A command needs a lane, none was given, and the current folder is in none.
    #[error("no lane given, and the current folder is not in a lane's worktree")]
    #[exit(Usage)]
    #[hint("see all lanes: git proq list")]
    NoLaneGiven,
    /// A flag about landing was given for a run that cannot land.
    #[error("{flag} does not go with {mode}, which makes nothing that could land; nothing was made")]
    #[exit(Usage)]
    #[hint(
        if mode == "--in-place",
        "leave {flag} out, or have it done in a lane: leave {mode} out"
    )]
    #[hint(else, "leave {flag} out, or have it built: --mode build")]
    LandingFlagRefused {
        /// The mode as an option, such as `--mode plan` or `--in-place`.
        mode: String,
        /// The flag about landing.
        flag: &'static str,
    },
    /// `--isolated` was given for a lane that can land. Such a lane always has its own worktree.
    #[error(
        "--isolated is for --mode plan and answer: any other lane has a worktree of its own; nothing was made"
    )]
    #[exit(Usage)]
    #[hint("leave --isolated out, or add --mode answer")]
    IsolatedRefused,
    /// Commands of the repository need approval, and the user cannot be prompted.
    #[error("nobody can be asked about the commands of {origin}; nothing was approved")]
    #[hint("approve them as they are: git proq approve --yes{selection_args}")]
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
    #[hint("say in your report what a person is to do: git proq task update")]
    #[hint(
        "a person runs it in a terminal of their own, or has an agent supervise all lanes: git proq supervise"
    )]
    NotOwnLane {
        /// Name of the agent's lane, as its environment or folder has it.
        agent_lane: String,
    },
    /// The MCP server failed.
    #[error("the MCP server ended: {reason}")]
    #[hint("it is started by an agent, which talks to it: see `git proq mcp -h`")]
    McpServerFailed {
        /// Reason of the failure, as text.
        reason: String,
    },
    /// A step of the demo failed.
    #[error("the demo stopped: {failure}")]
    #[hint("please report this, with what is shown above")]
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

/// Prints clap's output: help, the version, or an error. git intercepts `git proq --help`, so errors
/// name `-h`.
pub(crate) fn print_clap_output(clap_output: &clap::Error) {
    if !clap_output.use_stderr() {
        drop(clap_output.print());
        return;
    }
    let text = clap_output.render();
    let text = if console::colors_enabled_stderr() { text.ansi().to_string() } else { text.to_string() };
    crate::cli::terminal::ui::print_inline(&with_short_help_flag(text));
}

/// Replaces `--help` by `-h` in the text of a clap error.
pub(crate) fn with_short_help_flag(text: String) -> String {
    match text.rsplit_once("For more information") {
        Some((before, after)) => format!("{before}For more information{}", after.replace("--help", "-h")),
        None => text,
    }
}
