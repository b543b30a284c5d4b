//! The `git proq hooks` command and its arguments.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use proq_base::explain::Exit;
use proq_base::hint;
use proq_lib::agent::git_guard::after_commit;
use proq_lib::agent::git_guard::post_commit_hook::{HookState, PostCommitHook};
use proq_lib::lane::Project;
use serde::Serialize;

use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure::Failure;

/// Install a post-commit hook that tracks manual commits in lanes
///
/// Agents do not need it: the git of each run gets its hooks by environment, and the repository does not
/// change. `install` adds a post-commit hook to the repository, for all of its worktrees: a commit in a
/// lane then is an event, a preview of the lane is updated, and overlaps are checked. An existing hook runs
/// after it (as post-commit.before-git-proq). `undo` does not undo this; `uninstall` does. Without a
/// subcommand, shows the status.
///
/// If the hooks are files of the project, as with husky, or outside the repository, nothing is written: let
/// your own post-commit hook run `git proq hooks run`.
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
    pub(crate) command: Option<HooksCommand>,
}

/// What can be done with the hook.
#[derive(Debug, Subcommand)]
pub(crate) enum HooksCommand {
    /// Install the hook, in front of an existing one
    Install {
        /// Show what would be done, without doing it
        #[arg(long)]
        dry_run: bool,
    },
    /// Restore the previous hook
    Uninstall {
        /// Show what would be done, without doing it
        #[arg(long)]
        dry_run: bool,
    },
    /// Show whether the hook is installed
    Status,
    /// Run the hook; in a lane, records the latest commit as an event
    Run,
}

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

impl HooksOutput {
    fn new(hook: &PostCommitHook, state: HookState, dry_run: bool) -> HooksOutput {
        let has_chained_hook = state == HookState::Chained;
        let state = match state {
            HookState::Missing => "absent",
            HookState::Foreign => "other",
            HookState::Installed | HookState::Chained => "installed",
        };
        HooksOutput { hook: hook.path.clone(), state, has_chained_hook, dry_run }
    }
}

pub(crate) fn run(context: &CommandContext, args: &Hooks) -> CommandResult {
    let (output, line) = match args.command.as_ref().unwrap_or(&HooksCommand::Status) {
        HooksCommand::Run => {
            // The commit exists already, so an error here must not fail the hook.
            if let Ok(project) = context.project() {
                after_commit::handle_user_commit(&project);
            }
            return Ok(Exit::Success);
        }
        HooksCommand::Status => return print_status(context),
        HooksCommand::Install { dry_run } => install(&context.project_for_write()?, *dry_run)?,
        HooksCommand::Uninstall { dry_run } => uninstall(&context.project_for_write()?, *dry_run)?,
    };
    context.show(output, |context, _| context.ui.print_line(line))
}

/// Prints the state of the hook, and how to install a missing one, if nothing is in the way of that.
fn print_status(context: &CommandContext) -> CommandResult {
    let project = context.project()?;
    let hook = PostCommitHook::inspect(&project.repo)?;
    let is_installable = hook.state == HookState::Missing && hook.check_installable(&project.repo).is_ok();
    context.show(HooksOutput::new(&hook, hook.state, false), |context, _| {
        context.ui.print_line(format!("{} is {}", hook.path.display(), describe_hook_state(hook.state)));
        if is_installable {
            context.ui.hint(hint!("install it: git proq hooks install"));
        }
    })
}

/// Installs the hook, and returns its state with a line about what was done.
fn install(project: &Project, dry_run: bool) -> Result<(HooksOutput, String), Failure> {
    let hook = PostCommitHook::inspect(&project.repo)?;
    let path = hook.path.display();
    let (new_state, more) = match hook.state {
        HookState::Installed | HookState::Chained => {
            return Ok((HooksOutput::new(&hook, hook.state, dry_run), format!("{path} is there already")));
        }
        HookState::Foreign => (HookState::Chained, ", in front of the one that is there"),
        HookState::Missing => (HookState::Installed, ""),
    };
    let verb = if dry_run { "would write" } else { "wrote" };
    match dry_run {
        true => hook.check_installable(&project.repo)?,
        false => hook.install(project)?,
    }
    Ok((HooksOutput::new(&hook, new_state, dry_run), format!("{verb} {path}{more}")))
}

/// Uninstalls the hook, and returns the state with a line about what was done.
fn uninstall(project: &Project, dry_run: bool) -> Result<(HooksOutput, String), Failure> {
    let hook = PostCommitHook::inspect(&project.repo)?;
    let path = hook.path.display();
    let take_away = |path: &Path| match dry_run {
        true => format!("would take {} away", path.display()),
        false => format!("took {} away", path.display()),
    };
    let (new_state, line) = match (hook.state, hook.unfinished_backup()) {
        (HookState::Chained, _) if dry_run => {
            (HookState::Foreign, format!("would put back the {path} that was there before"))
        }
        (HookState::Chained, _) => (HookState::Foreign, format!("{path} is the earlier hook")),
        (HookState::Installed, _) => (HookState::Missing, take_away(&hook.path)),
        (found, Some(leftover)) => {
            (found, format!("{}, which an install that was cut off had left", take_away(leftover)))
        }
        (found, None) => (found, format!("{path} is {}; nothing was changed", describe_hook_state(found))),
    };
    match dry_run {
        true => hook.check_removable(&project.repo)?,
        false => hook.uninstall(&project.repo)?,
    }
    Ok((HooksOutput::new(&hook, new_state, dry_run), line))
}

fn describe_hook_state(state: HookState) -> &'static str {
    match state {
        HookState::Missing => "not installed",
        HookState::Foreign => "not git-proq's",
        HookState::Installed => "git-proq's",
        HookState::Chained => "git-proq's, in front of another one",
    }
}
