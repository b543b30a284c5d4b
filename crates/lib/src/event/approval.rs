//! Approval of commands that come with a repository: only those whose exact text the user has approved may
//! run.
//!
//! Commands in the user's own file, git's configuration, the environment or a flag need no approval.

use std::borrow::Cow;
use std::path::PathBuf;

use proq_base::config::key::Key;
use proq_base::config::layers::{Layers, Origin};
use proq_base::config::settings::Settings;
use proq_git::Repo;
use proq_store::base::clock::now;
use proq_store::base::record::Record;
use proq_store::paths::layout::Layout;
use proq_store::records::approval::{ApprovalsRecord, ApprovedCommand};
use proq_store::{Error, Store};

use super::withheld_hooks::is_withheld;

/// Kind of a command of `verify.commands`.
const VERIFY_KIND: &str = "verify";

/// Kind of a command of `verify.setup`.
const VERIFY_SET_UP_KIND: &str = "verify-setup";

/// Kind of the command of `merge.conflict_agent`.
const CONFLICT_AGENT_KIND: &str = "conflict-agent";

/// Kind of a pattern of `agent.allow`.
const ALLOW_KIND: &str = "allow";

/// Kind of a command of `lane.setup`.
const SET_UP_KIND: &str = "setup";

/// Shell command, with its source and its approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellCommand {
    /// Hash of kind and command line.
    pub id: String,
    /// Setting or hook that runs the command: `verify`, `verify-setup`, `conflict-agent`, `setup`, `allow`, `hook run.ended`.
    pub kind: Cow<'static, str>,
    /// Command line for the shell.
    pub line: String,
    /// Tracked file that contains the command; none for a command of the user.
    pub source_file: Option<PathBuf>,
    /// Whether the command may run.
    pub approved: bool,
}

/// Approved commands of one repository.
pub struct Approvals<'a> {
    repo: &'a Repo,
    layout: Layout,
    /// Record as it is on disk.
    pub record: ApprovalsRecord,
    /// Path of the record.
    pub path: PathBuf,
}

impl<'a> Approvals<'a> {
    /// Loads the approved commands of a repository.
    pub fn load(repo: &'a Repo, store: &Store) -> Result<Approvals<'a>, Error> {
        let path = store.layout().approvals_record();
        let record = ApprovalsRecord::load_if_exists(&path)?.unwrap_or_default();
        Ok(Approvals { repo, layout: store.layout().clone(), record, path })
    }

    /// Returns the current commands of `verify.commands`, in order.
    pub fn commands_for_verify(&self, layers: &Layers, lines: &[String]) -> Vec<ShellCommand> {
        let source_file = repository_source(layers, "verify.commands");
        lines.iter().map(|line| self.build_command(VERIFY_KIND.into(), line, source_file.clone())).collect()
    }

    /// Returns the current commands of `verify.setup`, in order.
    pub fn check_set_up_commands(&self, layers: &Layers, lines: &[String]) -> Vec<ShellCommand> {
        let source_file = repository_source(layers, "verify.setup");
        let build = |line: &String| self.build_command(VERIFY_SET_UP_KIND.into(), line, source_file.clone());
        lines.iter().map(build).collect()
    }

    /// Returns the current commands of `lane.setup`, in order.
    pub fn set_up_commands(&self, layers: &Layers, settings: &Settings) -> Vec<ShellCommand> {
        let source_file = repository_source(layers, "lane.setup");
        let lines = settings.set_up.commands.iter();
        lines.map(|line| self.build_command(SET_UP_KIND.into(), line, source_file.clone())).collect()
    }

    /// Returns the patterns of `agent.allow`, in order.
    pub fn allowed_commands(&self, layers: &Layers, settings: &Settings) -> Vec<ShellCommand> {
        let source_file = repository_source(layers, "agent.allow");
        let lines = settings.allowed_commands.iter();
        lines.map(|line| self.build_command(ALLOW_KIND.into(), line, source_file.clone())).collect()
    }

    /// Returns the command of `merge.conflict_agent`, with its approval.
    pub fn conflict_agent_command(&self, layers: &Layers, agent: &str) -> ShellCommand {
        self.build_command(
            CONFLICT_AGENT_KIND.into(),
            agent,
            repository_source(layers, "merge.conflict_agent"),
        )
    }

    /// Returns all commands in the settings.
    pub fn all_commands(&self, layers: &Layers, settings: &Settings) -> Vec<ShellCommand> {
        let agent = settings.conflict_agent.as_ref().map(|agent| self.conflict_agent_command(layers, agent));
        let hooks = layers.hook_events().flat_map(|event| self.hook_commands(layers, event));
        let set_up = self.set_up_commands(layers, settings);
        let checks = self.commands_for_verify(layers, &settings.verify_commands);
        let check_set_up = self.check_set_up_commands(layers, &settings.verify_set_up);
        let allowed = self.allowed_commands(layers, settings);
        checks
            .into_iter()
            .chain(check_set_up)
            .chain(agent)
            .chain(hooks)
            .chain(set_up)
            .chain(allowed)
            .collect()
    }

    /// Returns the commands that the settings run at an event, in order.
    pub fn hook_commands(&self, layers: &Layers, event: &str) -> Vec<ShellCommand> {
        let Some((lines, origin)) = layers.hook_commands(event) else { return Vec::new() };
        let source_file = repository_file(origin);
        let user_file = match origin {
            Origin::User(path) => Some(path.clone()),
            Origin::Git => Some(self.repo.common_dir().join("config")),
            Origin::Default | Origin::Repository(_) | Origin::Environment(_) => None,
        };
        let to_command = |line: &str| {
            let withheld_source = || user_file.clone().filter(|_| is_withheld(&self.layout, event, line));
            self.build_command(
                format!("hook {event}").into(),
                line,
                source_file.clone().or_else(withheld_source),
            )
        };
        lines.lines().map(str::trim).filter(|line| !line.is_empty()).map(to_command).collect()
    }

    /// Returns a command of a plan. `source_file` is the file of the plan, if that comes with a repository.
    pub(crate) fn command_of_plan(
        &self,
        kind: &'static str,
        line: &str,
        source_file: Option<PathBuf>,
    ) -> ShellCommand {
        self.build_command(kind.into(), line, source_file)
    }

    /// Returns a command with its id and approval; one without `source_file` is the user's own and approved.
    fn build_command(
        &self,
        kind: Cow<'static, str>,
        line: &str,
        source_file: Option<PathBuf>,
    ) -> ShellCommand {
        let approved = source_file.is_none() || self.is_approved(&kind, line);
        ShellCommand { id: self.command_id(&kind, line), kind, line: line.to_owned(), source_file, approved }
    }

    /// Returns whether a command may run: it is the user's own, or was approved.
    pub(crate) fn permits(&self, command: &ShellCommand) -> bool {
        command.source_file.is_none() || self.is_approved(&command.kind, &command.line)
    }

    /// Returns whether a command with exactly this text was approved.
    fn is_approved(&self, kind: &str, line: &str) -> bool {
        let id = self.command_id(kind, line);
        // The texts are compared too: a hash collision can be constructed, although it does not occur by
        // chance.
        self.record.approved.iter().any(|a| a.id == id && a.kind == kind && a.command == line)
    }

    /// Returns the hash of kind and command line as hex; empty when hashing fails.
    fn command_id(&self, kind: &str, line: &str) -> String {
        let blob_id = self.repo.blob_id(format!("{kind}\0{line}").as_bytes());
        blob_id.map(|id| id.to_string()).unwrap_or_default()
    }

    /// Returns a copy of the approvals record to which the given commands are added.
    pub fn with_approved(&self, commands: &[ShellCommand]) -> ApprovalsRecord {
        let mut record = self.record.clone();
        for ShellCommand { kind, line, .. } in commands.iter().filter(|c| !self.is_approved(&c.kind, &c.line))
        {
            record.approved.push(ApprovedCommand {
                id: self.command_id(kind, line),
                kind: kind.clone().into_owned(),
                command: line.clone(),
                at: now(),
            });
        }
        record
    }
}

/// Returns the repository's file that a setting comes from; none for a setting of the user.
fn repository_source(layers: &Layers, name: &str) -> Option<PathBuf> {
    repository_file(layers.get(Key::find(name)?).1)
}

/// Returns the repository's file that `origin` names; none for a setting of the user, git or environment.
fn repository_file(origin: &Origin) -> Option<PathBuf> {
    match origin {
        Origin::Repository(path) => Some(path.clone()),
        Origin::Default | Origin::User(_) | Origin::Git | Origin::Environment(_) => None,
    }
}

/// Converts a command line of the user, which needs no approval.
impl From<&String> for ShellCommand {
    fn from(line: &String) -> ShellCommand {
        ShellCommand {
            id: String::new(),
            kind: VERIFY_KIND.into(),
            line: line.clone(),
            source_file: None,
            approved: true,
        }
    }
}
