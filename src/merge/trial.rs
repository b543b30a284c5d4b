//! Owns trying a command on a commit that nothing is to land of, in the worktrees for checks and by their rules.

use super::Error;
use super::runs::{Found, Rules, Runs, Task};
use crate::git::Oid;
use crate::lane::{self, Project};
use crate::process::is_ancestor;
use crate::store::{Limit, Ticket, Wanted};

/// What is tried, and on what.
#[derive(Debug)]
pub(crate) struct Trial<'a> {
    /// The command line.
    pub(crate) line: &'a str,
    /// The commit.
    pub(crate) commit: Oid,
    /// The branch that it is the tip of.
    pub(crate) branch: &'a str,
    /// What the queue of landings calls it.
    pub(crate) name: &'a str,
}

/// How that ended.
#[derive(Debug)]
pub(crate) enum Tried {
    /// Well.
    Well {
        /// Only when it was tried once more.
        at_last: bool,
    },
    /// Twice not.
    Badly {
        /// How.
        how: String,
        /// The end of what it wrote.
        log: Vec<u8>,
    },
}

/// Tries a command, and once more if it fails, in its turn among the landings, which use the same worktrees.
///
/// # Errors
/// When it cannot be run.
pub(crate) fn try_command(project: &Project, trial: &Trial<'_>) -> Result<Tried, Error> {
    let wanted = Wanted { lanes: vec![trial.name.to_owned()], onto: None };
    let _ticket = Ticket::take(project.store.locks(), wanted, Limit::Forever, is_ancestor)?;
    // Whoever was before may have died in the middle of it.
    lane::recover(project)?;
    let lines = [trial.line.to_owned()];
    let rules = Rules { lines: &lines, tolerated: &[], limit: project.settings.verify_timeout };
    let onto = trial.branch.to_owned();
    let task = Task { commit: trial.commit, lanes: Vec::new(), onto, commands: vec![0] };
    let found = Runs::default().run(project, rules, &[task], &[0], 1)?;
    Ok(match found.into_iter().next().flatten() {
        Some(Found::Red(red)) => Tried::Badly { how: red.ended.to_string(), log: red.log },
        Some(Found::Green { flaky }) => Tried::Well { at_last: flaky.is_some() },
        None => Tried::Badly { how: "it was not run".to_owned(), log: Vec::new() },
    })
}
