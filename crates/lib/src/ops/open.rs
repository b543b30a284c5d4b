//! Opening of a lane: its tmux window, a shell or an editor in its worktree.

use std::path::{Path, PathBuf};

use proq_base::explain::Explain;
use proq_base::interrupt;
use proq_base::lane_name::LaneName;
use proq_base::process::command_builder::CommandBuilder;
use proq_store::paths::path_form;
use proq_store::records::lane::AnyLane;
use serde::Serialize;

use super::error::Error;
use crate::agent::tmux::tmux_window;
use crate::agent::tmux::tmux_window::AttachCommands;
use crate::lane::Project;

/// Variables that name an editor, the strongest first, as git reads them.
const EDITOR_VARIABLES: [&str; 3] = ["GIT_EDITOR", "VISUAL", "EDITOR"];

/// Reason why a lane cannot be opened.
#[derive(Debug, thiserror::Error, Explain)]
pub enum OpenError {
    /// The lane's worktree is not there.
    #[error("cannot open lane '{lane}': its worktree {} does not exist", path.display())]
    #[hint("see how to repair it: git proq doctor")]
    NoWorktree {
        /// Name of the lane.
        lane: LaneName,
        /// Path of the missing worktree.
        path: PathBuf,
    },
    /// No editor is configured.
    #[error("cannot open lane '{lane}': no editor is set")]
    #[hint("set one: git config --global proq.open.editor vi")]
    NoEditor {
        /// Name of the lane.
        lane: LaneName,
    },
    /// The editor ended with an error.
    #[error("cannot open lane '{lane}': the editor failed: {command}")]
    #[hint("set another one: git config --global proq.open.editor vi")]
    EditorFailed {
        /// Name of the lane.
        lane: LaneName,
        /// Command line of the editor.
        command: String,
    },
}

/// How a lane is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMethod {
    /// Nothing is started; the caller prints the path.
    Path,
    /// In the user's shell.
    Shell,
    /// In the user's editor.
    Editor,
    /// In the tmux window of its agent, if there is one, or else in the user's shell.
    Terminal,
}

/// Program that shows a lane.
enum Opener {
    None,
    Window(AttachCommands),
    Shell,
    Editor(String),
}

/// A lane that can be opened. It serializes to the JSON output.
#[derive(Serialize)]
pub struct OpenPlan {
    /// Name of the lane.
    pub lane: LaneName,
    /// Path of its worktree; for a lane without its own worktree, of the folder that its agent works in.
    #[serde(with = "path_form")]
    pub path: PathBuf,
    #[serde(skip)]
    opener: Opener,
}

/// Finds how a lane is opened, and starts nothing.
///
/// # Errors
/// [`OpenError`], if the worktree or an editor is missing.
pub fn plan(project: &Project, lane: &AnyLane, method: OpenMethod) -> Result<OpenPlan, Error> {
    let (name, path) = (lane.name.clone(), lane.path.clone());
    let opener = match method {
        OpenMethod::Terminal => {
            tmux_window::attach_commands(project, lane).map_or(Opener::Shell, Opener::Window)
        }
        OpenMethod::Path => Opener::None,
        OpenMethod::Shell => Opener::Shell,
        OpenMethod::Editor => {
            Opener::Editor(editor_command(project).ok_or(OpenError::NoEditor { lane: name.clone() })?)
        }
    };
    if !matches!(opener, Opener::Window(_)) && !path.is_dir() {
        return Err(OpenError::NoWorktree { lane: name, path }.into());
    }
    Ok(OpenPlan { lane: name, path, opener })
}

impl OpenPlan {
    /// Returns whether the plan starts a shell.
    #[must_use]
    pub fn starts_shell(&self) -> bool {
        matches!(self.opener, Opener::Shell)
    }

    /// Opens the lane on this process's terminal, and returns when the user is back.
    ///
    /// # Errors
    /// Fails if the program cannot be started, and [`OpenError::EditorFailed`].
    pub fn execute(self) -> Result<(), Error> {
        let OpenPlan { lane, path, opener } = self;
        // A Ctrl-C is meant for the program on the terminal.
        interrupt::defer_signals();
        let result = match opener {
            Opener::None => Ok(()),
            Opener::Window(commands) => commands.attach(true).map_err(Error::from),
            Opener::Shell => {
                let shell = std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
                // The exit code of a shell is that of its last command, and no error of this one.
                CommandBuilder::new(Path::new(&shell), &path).run_on_terminal().map(drop).map_err(Error::from)
            }
            Opener::Editor(command) => run_editor(&command, &path).and_then(|succeeded| {
                succeeded.then_some(()).ok_or_else(|| OpenError::EditorFailed { lane, command }.into())
            }),
        };
        interrupt::clear_signal();
        result
    }
}

/// Returns the user's editor: `open.editor`, or what the environment names.
fn editor_command(project: &Project) -> Option<String> {
    let from_environment = || EDITOR_VARIABLES.iter().find_map(|name| std::env::var(name).ok());
    let command = Some(project.settings.open_editor.clone()).filter(|command| !command.is_empty());
    command.or_else(from_environment).filter(|command| !command.trim().is_empty())
}

/// Runs an editor's command line with a folder as its argument, as git does. Returns whether it succeeded.
fn run_editor(command: &str, folder: &Path) -> Result<bool, Error> {
    let script = format!("{command} \"$@\"");
    let shell = CommandBuilder::new(Path::new("sh"), folder).args(["-c", &script, command]);
    Ok(shell.args([folder]).run_on_terminal()?.success())
}
