//! Verification of a commit by one command, without landing anything, in the check worktrees and by their
//! rules.

use proq_git::CommitId;

use super::check_runs::{CheckResult, CheckRules, CheckRuns, CommitCheck};
use crate::event::approval::Approvals;
use crate::lane::Project;
use crate::merge::Error;
use crate::merge::queue::queue_turn::wait_to_check;

/// Command to run, and the commit to run it on.
#[derive(Debug)]
pub(crate) struct VerifyRequest<'a> {
    /// Command line.
    pub command: &'a str,
    pub commit: CommitId,
    /// Branch whose tip the commit is.
    pub branch: &'a str,
    /// Name under which the merge queue lists this verification.
    pub(crate) queue_name: &'a str,
}

/// Result of running a command on a commit.
#[derive(Debug)]
pub(crate) enum VerifyResult {
    /// The command succeeded.
    Passed {
        /// Whether it failed the first time.
        is_flaky: bool,
    },
    /// The command failed twice, or was not run.
    Failed {
        /// Exit of the command, as text.
        exit: String,
        /// End of the output.
        log: Vec<u8>,
    },
}

/// Runs a command on a commit, and once more if it fails. It waits in the merge queue, because landings use
/// the same worktrees.
///
/// # Errors
/// Fails when the command cannot be run.
pub(crate) fn verify_command(project: &Project, request: &VerifyRequest<'_>) -> Result<VerifyResult, Error> {
    let _ticket = wait_to_check(project, vec![request.queue_name.to_owned()])?;
    let lines = [request.command.to_owned()];
    let checks = project.landing_checks(request.branch)?;
    let approvals = Approvals::load(&project.repo, &project.store)?;
    let mut set_up = approvals.check_set_up_commands(&checks.layers, &checks.set_up);
    set_up.retain(|command| command.approved);
    let set_up_commands: Vec<String> = set_up.into_iter().map(|command| command.line).collect();
    let rules = CheckRules {
        command_lines: &lines,
        tolerated_commands: &[],
        set_up_commands: &set_up_commands,
        time_limit: project.settings.verify_timeout,
    };
    let onto = request.branch.to_owned();
    let task = CommitCheck { commit: request.commit, lanes: Vec::new(), onto, commands: vec![0] };
    let results = CheckRuns::default().run(project, rules, &[task], &[0], 1)?;
    Ok(match results.into_iter().next().flatten() {
        Some(CheckResult::Failed(failure)) => {
            VerifyResult::Failed { exit: failure.exit.to_string(), log: failure.log }
        }
        Some(CheckResult::Passed { flaky_command: flaky }) => {
            VerifyResult::Passed { is_flaky: flaky.is_some() }
        }
        None => VerifyResult::Failed { exit: "it was not run".to_owned(), log: Vec::new() },
    })
}
