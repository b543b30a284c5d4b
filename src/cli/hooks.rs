//! Owns `git proq hooks`, its arguments included.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde::Serialize;

use super::{Done, Session};
use crate::agent::{self, Found, HookByHand};
use crate::explain::Exit;

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

/// Where a second name of somebody's hook comes from.
const CUT_OFF: &str = "which an install that was cut off had left";

#[derive(Serialize)]
struct Answer {
    /// Where git looks for it.
    hook: PathBuf,
    /// installed, absent or other.
    state: &'static str,
    /// Whether another hook runs after it.
    before: bool,
    dry_run: bool,
}

pub(super) fn run(session: &Session, args: &Hooks) -> Done {
    match args.command {
        HooksCommand::Run => {
            // A commit has been made, whatever there is to say about it.
            if let Ok(project) = session.project() {
                agent::commit_by_hand(&project);
            }
            Ok(Exit::Done)
        }
        HooksCommand::Status => {
            let hook = HookByHand::look(&session.project()?)?;
            let line = format!("{} is {}", hook.path.display(), said(hook.found));
            say(session, &hook, hook.found, false, &line);
            Ok(Exit::Done)
        }
        HooksCommand::Install { dry_run } => install(session, dry_run),
        HooksCommand::Uninstall { dry_run } => uninstall(session, dry_run),
    }
}

fn install(session: &Session, dry_run: bool) -> Done {
    let project = session.project_to_change()?;
    let hook = HookByHand::look(&project)?;
    let path = hook.path.display();
    if matches!(hook.found, Found::Ours | Found::OursBefore) {
        say(session, &hook, hook.found, dry_run, &format!("{path} is there already"));
        return Ok(Exit::Done);
    }
    let (then, more) = match hook.found {
        Found::Other => (Found::OursBefore, ", in front of the one that is there"),
        _ => (Found::Ours, ""),
    };
    if dry_run {
        hook.check(&project)?;
        say(session, &hook, then, true, &format!("would write {path}{more}"));
        return Ok(Exit::Done);
    }
    hook.install(&project, &super::resolve::this_program()?)?;
    say(session, &hook, then, false, &format!("wrote {path}{more}"));
    Ok(Exit::Done)
}

fn uninstall(session: &Session, dry_run: bool) -> Done {
    let project = session.project_to_change()?;
    let hook = HookByHand::look(&project)?;
    let path = hook.path.display();
    let (then, line) = match (hook.found, dry_run) {
        (Found::OursBefore, true) => {
            (Found::Other, format!("would put back the {path} that was there before"))
        }
        (Found::OursBefore, false) => (Found::Other, format!("{path} is what was there before")),
        (Found::Ours, true) => (Found::Nothing, format!("would take {path} away")),
        (Found::Ours, false) => (Found::Nothing, format!("took {path} away")),
        (found, _) => {
            let line = match (hook.half_installed(), dry_run) {
                (None, _) => format!("{path} is {}; nothing was changed", said(found)),
                (Some(kept), true) => format!("would take {} away, {CUT_OFF}", kept.display()),
                (Some(kept), false) => format!("took {} away, {CUT_OFF}", kept.display()),
            };
            (found, line)
        }
    };
    match dry_run {
        true => hook.check_unchanged(&project)?,
        false => hook.uninstall(&project)?,
    }
    say(session, &hook, then, dry_run, &line);
    Ok(Exit::Done)
}

fn said(found: Found) -> &'static str {
    match found {
        Found::Nothing => "not there",
        Found::Other => "somebody else's",
        Found::Ours => "git-proq's",
        Found::OursBefore => "git-proq's, in front of another one",
    }
}

fn say(session: &Session, hook: &HookByHand, found: Found, dry_run: bool, line: &str) {
    if !session.ui.json {
        session.ui.answer(line);
        return;
    }
    let state = match found {
        Found::Nothing => "absent",
        Found::Other => "other",
        Found::Ours | Found::OursBefore => "installed",
    };
    let before = found == Found::OursBefore;
    session.ui.object(Answer { hook: hook.path.clone(), state, before, dry_run });
}
