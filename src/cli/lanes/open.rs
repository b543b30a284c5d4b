//! The `git proq open` command.

use std::io::IsTerminal;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_base::explain::Exit;
use proq_lib::ops::open;
use proq_lib::ops::open::OpenMethod;

use crate::cli::arguments::candidates::any_lane_names;
use crate::cli::invocation::caller;
use crate::cli::invocation::context::{CommandContext, CommandResult};

/// Open a lane: its tmux window, a shell, or an editor
///
/// On a terminal, an agent that runs in a tmux window is shown there; detach with tmux's own keys (Ctrl-b d). Otherwise your
/// shell starts in the lane's worktree, and `exit` returns. Elsewhere the path of the worktree is printed.
///
/// To change the folder of the shell that you are in, see `git proq shell-init`.
///
/// Examples:
///     git proq open payments
///     git proq open payments --editor
///     git -C "$(git proq open payments --path)" log
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
#[command(group = clap::ArgGroup::new("place").args(["path", "shell", "editor"]))]
pub(crate) struct Open {
    /// Lane name [default: lane of the current folder]
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(any_lane_names))]
    pub(crate) lane: Option<String>,
    /// Print the path of the worktree
    #[arg(long)]
    pub(crate) path: bool,
    /// Start your shell in the worktree
    #[arg(long)]
    pub(crate) shell: bool,
    /// Open the worktree in your editor (open.editor, GIT_EDITOR, VISUAL or EDITOR)
    #[arg(long)]
    pub(crate) editor: bool,
}

impl Open {
    fn method(&self, context: &CommandContext) -> OpenMethod {
        let has_terminal = || std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        match (self.shell, self.editor) {
            _ if self.path || context.ui.json => OpenMethod::Path,
            (true, _) => OpenMethod::Shell,
            (_, true) => OpenMethod::Editor,
            _ if has_terminal() => OpenMethod::Terminal,
            _ => OpenMethod::Path,
        }
    }
}

pub(crate) fn run(context: &CommandContext, args: &Open) -> CommandResult {
    let project = context.project_to_read()?;
    let lane = project.find_any_lane(&caller::lane_or_current(&project, args.lane.as_ref())?)?;
    let method = args.method(context);
    let plan = open::plan(&project, &lane, method)?;
    if method == OpenMethod::Path {
        return context
            .show(plan, |context, plan| context.ui.print_verbatim(plan.path.display().to_string()));
    }
    if plan.starts_shell() {
        context.ui.status(format!("opened a shell in the worktree of '{}'; `exit` returns", plan.lane));
    }
    plan.execute()?;
    Ok(Exit::Success)
}
