//! Approval of commands that come with a repository or a plan, and its revocation.

use proq_base::config::settings::Settings;
use proq_base::explain::Explain;
use proq_store::records::approval::{ApprovalsRecord, ApprovedCommand};
use serde::Serialize;

use super::named_plan::NamedPlan;
use crate::event::approval::{Approvals, ShellCommand};
use crate::lane::Project;
use crate::lane::inspection::{base, landing_checks};
use crate::ops::approvals::{save_approvals, unapproved_commands};
use crate::ops::error::Error;
use crate::swarm::batch::plan_commands;

/// Number of characters of a command's id that are displayed, and minimum length of an id that the user
/// gives.
pub const SHORT_ID_LEN: usize = 8;

/// What is done with approvals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalAction {
    /// Commands and approvals are only listed.
    List,
    /// The commands are approved.
    Approve,
    /// Approvals are taken back.
    Revoke,
}

/// Request to list commands, to approve them or to revoke approvals.
#[derive(Debug, Clone)]
pub struct ApproveRequest {
    /// What is done.
    pub action: ApprovalAction,
    /// Beginnings of the ids of the commands; empty for all of them.
    pub ids: Vec<String>,
    /// Plan that contains the commands; none for those of the settings.
    pub plan: Option<NamedPlan>,
    /// Branch whose landings have the checks; none for the branch that is checked out.
    pub onto: Option<String>,
}

/// No command has an id that was given.
#[derive(Debug, thiserror::Error, Explain)]
#[error("there is no command with the ID '{id}'")]
#[hint("list the commands and their IDs: git proq approve --list")]
pub struct UnknownCommandId {
    id: String,
}

/// Approvals that would be given or taken back.
pub struct ApprovePlan<'a> {
    /// The commands that the request selects.
    pub selected: Vec<ShellCommand>,
    /// Number of commands that get or lose their approval.
    pub changed: usize,
    /// The commands that the settings or the plan contain.
    all: Vec<ShellCommand>,
    approvals: Approvals<'a>,
    record: ApprovalsRecord,
}

/// Commands and approvals. It serializes to the JSON output.
#[derive(Debug, Serialize)]
pub struct ApproveOutcome {
    /// The commands that the settings or the plan contain.
    pub commands: Vec<CommandRow>,
    /// All approved commands.
    pub approved: Vec<ApprovedCommand>,
    dry_run: bool,
}

/// A command, in the form of the JSON output.
#[derive(Debug, Serialize)]
pub struct CommandRow {
    /// Hash of kind and command line.
    pub id: String,
    /// What the command is for, such as a check or a hook.
    pub kind: String,
    /// Command line for the shell.
    pub command: String,
    /// File that contains the command; none for the user's own settings.
    #[serde(rename = "from", skip_serializing_if = "Option::is_none")]
    pub source_file: Option<String>,
    /// Whether the command may run.
    pub approved: bool,
}

/// Finds the commands, and what the approvals would be.
///
/// # Errors
/// [`UnknownCommandId`]; also fails when the commands or the approvals cannot be read.
pub fn plan<'a>(project: &'a Project, request: &ApproveRequest) -> Result<ApprovePlan<'a>, Error> {
    let approvals = Approvals::load(&project.repo, &project.store)?;
    let all = read_commands(project, &approvals, request)?;
    let is_selected =
        |id: &str| request.ids.is_empty() || request.ids.iter().any(|prefix| id.starts_with(prefix.as_str()));
    let (mut record, mut selected) = (approvals.record.clone(), all.clone());
    let changed = match request.action {
        ApprovalAction::List => 0,
        ApprovalAction::Approve => {
            require_known_ids(&request.ids, |id| all.iter().any(|command| command.id.starts_with(id)))?;
            selected.retain(|command| is_selected(&command.id));
            let pending = unapproved_commands(&selected);
            record = approvals.with_approved(&pending);
            pending.len()
        }
        ApprovalAction::Revoke => {
            require_known_ids(&request.ids, |id| record.approved.iter().any(|row| row.id.starts_with(id)))?;
            record.approved.retain(|approved| !is_selected(&approved.id));
            approvals.record.approved.len() - record.approved.len()
        }
    };
    Ok(ApprovePlan { selected, changed, all, approvals, record })
}

/// Returns the commands to approve: those of a plan, or those of the settings.
fn read_commands(
    project: &Project,
    approvals: &Approvals<'_>,
    request: &ApproveRequest,
) -> Result<Vec<ShellCommand>, Error> {
    if let Some(plan) = &request.plan {
        let loaded = plan.read_silently(project)?;
        return Ok(plan_commands::collect_plan_commands(project, &loaded, &plan.dir)?);
    }
    let layers = match &request.onto {
        Some(onto) => project.landing_checks(&base::resolve(project, None, Some(onto))?.branch)?.layers,
        None => landing_checks::default_base_layers(project)?,
    };
    Ok(approvals.all_commands(&layers, &Settings::from_layers(&layers)))
}

/// Fails if an id is shorter than [`SHORT_ID_LEN`] or begins no known one.
fn require_known_ids(ids: &[String], begins_known_id: impl Fn(&str) -> bool) -> Result<(), UnknownCommandId> {
    match ids.iter().find(|id| id.len() < SHORT_ID_LEN || !begins_known_id(id)) {
        Some(id) => Err(UnknownCommandId { id: id.clone() }),
        None => Ok(()),
    }
}

impl ApprovePlan<'_> {
    /// Makes the change, as an operation that `undo` takes back.
    ///
    /// # Errors
    /// Fails when the record cannot be written.
    pub fn execute(mut self, project: &Project) -> Result<ApproveOutcome, Error> {
        if self.record != self.approvals.record {
            save_approvals(project, &self.approvals, &self.record)?;
            self.approvals.record = std::mem::take(&mut self.record);
        }
        Ok(ApproveOutcome { dry_run: false, ..self.preview() })
    }

    /// Returns the commands and the approvals as they are.
    #[must_use]
    pub fn preview(self) -> ApproveOutcome {
        let row = |command: ShellCommand| CommandRow {
            approved: self.approvals.permits(&command),
            id: command.id,
            kind: command.kind.into_owned(),
            command: command.line,
            source_file: command.source_file.map(|path| path.display().to_string()),
        };
        let commands = self.all.into_iter().map(row).collect();
        ApproveOutcome { commands, approved: self.approvals.record.approved, dry_run: true }
    }
}
