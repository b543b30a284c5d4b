//! The `git proq hooks` command and its arguments.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use proq_base::explain::Exit;
use proq_lib::agent::git_guard::after_commit;
use proq_lib::agent::git_guard::post_commit_hook::{HookState, PostCommitHook};
use serde::Serialize;

use crate::cli::invocation::context::{CommandContext, CommandResult};

/// Let commits that you make in lanes count as those of agents
///
/// Agents need none of this: the git of each run has its hooks by environment, and nothing in the repository is changed.
/// `install` puts a post-commit hook into the repository's own hooks, for all of its worktrees: a commit in a lane is told as
/// an event then, a preview of the lane keeps up, and overlaps are looked for. What was there runs after it (as
/// post-commit.before-git-proq). This is no operation that `undo` takes back; `uninstall` is.
///
/// Where hooks are files of the project, as with husky, or lie outside of the repository, nothing is written: have your own
/// post-commit hook run `git proq hooks run`.
///
/// Examples:
///     git proq hooks install
///     git proq hooks status
///     git proq hooks uninstall
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Hooks {
    /// What to do
    #[command(subcommand)]
    pub(crate) command: HooksCommand,
}

/// What can be done with the hook.
#[derive(Debug, Subcommand)]
pub(crate) enum HooksCommand {
    /// Put it in front of what is there
    Install {
        /// Say what would be written, and write nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Put back what was there before
    Uninstall {
        /// Say what would be put back, and change nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Say whether it is there
    Status,
    /// Do what the hook does: in a lane, tell of the commit that was just made; elsewhere nothing
    Run,
}

/// Clause in a message about a leftover copy of the user's hook: an interrupted installation left it.
const INTERRUPTED_INSTALL_CLAUSE: &str = "which an install that was cut off had left";

#[derive(Serialize)]
struct HooksOutput {
    /// The path at which git expects the hook.
    hook: PathBuf,
    /// State of the hook: `installed`, `absent` or `other` (a hook that git-proq did not install).
    state: &'static str,
    /// Whether another hook runs after the installed one.
    #[serde(rename = "before")]
    has_chained_hook: bool,
    dry_run: bool,
}

pub(crate) fn run(context: &CommandContext, args: &Hooks) -> CommandResult {
    match args.command {
        HooksCommand::Run => {
            // The commit exists already, so an error here must not fail the hook.
            if let Ok(project) = context.project() {
                after_commit::handle_user_commit(&project);
            }
            Ok(Exit::Success)
        }
        HooksCommand::Status => {
            let hook = PostCommitHook::inspect(&context.project()?.repo)?;
            let line = format!("{} is {}", hook.path.display(), describe_hook_state(hook.state));
            print_hook_state(context, &hook, hook.state, false, &line);
            Ok(Exit::Success)
        }
        HooksCommand::Install { dry_run } => install(context, dry_run),
        HooksCommand::Uninstall { dry_run } => uninstall(context, dry_run),
    }
}

fn install(context: &CommandContext, dry_run: bool) -> CommandResult {
    let project = context.project_for_write()?;
    let hook = PostCommitHook::inspect(&project.repo)?;
    let path = hook.path.display();
    if matches!(hook.state, HookState::Installed | HookState::Chained) {
        print_hook_state(context, &hook, hook.state, dry_run, &format!("{path} is there already"));
        return Ok(Exit::Success);
    }
    let (new_state, more) = match hook.state {
        HookState::Foreign => (HookState::Chained, ", in front of the one that is there"),
        _ => (HookState::Installed, ""),
    };
    if dry_run {
        hook.check_installable(&project.repo)?;
        print_hook_state(context, &hook, new_state, true, &format!("would write {path}{more}"));
        return Ok(Exit::Success);
    }
    hook.install(&project)?;
    print_hook_state(context, &hook, new_state, false, &format!("wrote {path}{more}"));
    Ok(Exit::Success)
}

fn uninstall(context: &CommandContext, dry_run: bool) -> CommandResult {
    let project = context.project_for_write()?;
    let hook = PostCommitHook::inspect(&project.repo)?;
    let path = hook.path.display();
    let (new_state, line) = match (hook.state, dry_run) {
        (HookState::Chained, true) => {
            (HookState::Foreign, format!("would put back the {path} that was there before"))
        }
        (HookState::Chained, false) => (HookState::Foreign, format!("{path} is what was there before")),
        (HookState::Installed, true) => (HookState::Missing, format!("would take {path} away")),
        (HookState::Installed, false) => (HookState::Missing, format!("took {path} away")),
        (found, _) => {
            let line = match (hook.unfinished_backup(), dry_run) {
                (None, _) => format!("{path} is {}; nothing was changed", describe_hook_state(found)),
                (Some(leftover), true) => {
                    format!("would take {} away, {INTERRUPTED_INSTALL_CLAUSE}", leftover.display())
                }
                (Some(leftover), false) => {
                    format!("took {} away, {INTERRUPTED_INSTALL_CLAUSE}", leftover.display())
                }
            };
            (found, line)
        }
    };
    match dry_run {
        true => hook.check_removable(&project.repo)?,
        false => hook.uninstall(&project.repo)?,
    }
    print_hook_state(context, &hook, new_state, dry_run, &line);
    Ok(Exit::Success)
}

fn describe_hook_state(state: HookState) -> &'static str {
    match state {
        HookState::Missing => "not there",
        HookState::Foreign => "somebody else's",
        HookState::Installed => "git-proq's",
        HookState::Chained => "git-proq's, in front of another one",
    }
}

fn print_hook_state(
    context: &CommandContext,
    hook: &PostCommitHook,
    found: HookState,
    dry_run: bool,
    line: &str,
) {
    if !context.ui.json {
        context.ui.print_line(line);
        return;
    }
    let state = match found {
        HookState::Missing => "absent",
        HookState::Foreign => "other",
        HookState::Installed | HookState::Chained => "installed",
    };
    let has_chained_hook = found == HookState::Chained;
    context.ui.print_json(HooksOutput { hook: hook.path.clone(), state, has_chained_hook, dry_run });
}
