//! Approval of the commands that a use case will run, if there is a person who can give it.

use proq_store::records::approval::ApprovalsRecord;

use super::error::Error;
use super::refusal::Refusal;
use super::reporter::Reporter;
use crate::event::approval::{Approvals, ShellCommand};
use crate::event::program_info::are_hooks_disabled;
use crate::lane;
use crate::lane::Project;
use crate::lane::worktree::set_up::commands::SetUpLevel;
use crate::operation::run_operation::operate;

/// Requests approval of `commands` and saves it. Does nothing if all of them are approved or there is no
/// person; what runs them refuses then.
///
/// # Errors
/// [`Refusal::Declined`]; an error when the approvals cannot be read or written.
pub fn request_approval(
    project: &Project,
    reporter: &dyn Reporter,
    commands: &[ShellCommand],
) -> Result<(), Error> {
    let pending = unapproved_commands(commands);
    if pending.is_empty() || !reporter.can_prompt_user() {
        return Ok(());
    }
    let approvals = Approvals::load(&project.repo, &project.store)?;
    if !reporter.approve(commands) {
        return Err(Refusal::Declined.into());
    }
    Ok(save_approvals(project, &approvals, &approvals.with_approved(&pending))?)
}

/// Returns those of `commands` that are not approved.
pub fn unapproved_commands(commands: &[ShellCommand]) -> Vec<ShellCommand> {
    commands.iter().filter(|c| !c.approved).cloned().collect()
}

/// Replaces the approvals of the repository by `record`, as an operation that `undo` takes back.
///
/// # Errors
/// Fails when the record cannot be written.
pub fn save_approvals(
    project: &Project,
    approvals: &Approvals<'_>,
    record: &ApprovalsRecord,
) -> Result<(), lane::Error> {
    operate(project, "approve", |op| op.save_record(record, &approvals.path))
}

/// Requests approval of what a landing runs: the checks of `bases`, the pre-merge hooks, and the conflict agent
/// if there is one.
///
/// # Errors
/// As [`request_approval`].
pub fn request_landing_approval(
    project: &Project,
    reporter: &dyn Reporter,
    bases: impl IntoIterator<Item = String>,
    conflict_agent: Option<&str>,
) -> Result<(), Error> {
    let approvals = Approvals::load(&project.repo, &project.store)?;
    let mut commands: Vec<ShellCommand> = Vec::new();
    for base in bases {
        let checks = project.landing_checks(&base)?;
        let mut verify_commands = approvals.commands_for_verify(&checks.layers, &checks.commands);
        verify_commands.extend(approvals.check_set_up_commands(&checks.layers, &checks.set_up));
        verify_commands.retain(|check| !commands.contains(check));
        commands.extend(verify_commands);
    }
    commands.extend(conflict_agent.map(|agent| approvals.conflict_agent_command(&project.layers, agent)));
    if !are_hooks_disabled() {
        commands.extend(approvals.hook_commands(&project.layers, "pre-merge"));
    }
    request_approval(project, reporter, &commands)
}

/// Requests approval of the set-up commands of a new lane, if a set-up of this `level` runs them.
///
/// # Errors
/// As [`request_approval`].
pub fn request_set_up_approval(
    project: &Project,
    reporter: &dyn Reporter,
    level: SetUpLevel,
) -> Result<(), Error> {
    if level != SetUpLevel::Full || project.settings.set_up.commands.is_empty() {
        return Ok(());
    }
    let approvals = Approvals::load(&project.repo, &project.store)?;
    request_approval(project, reporter, &approvals.set_up_commands(&project.layers, &project.settings))
}
