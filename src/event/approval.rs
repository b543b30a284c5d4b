//! Owns which commands that come with a repository may run: those whose exact text the user has approved.
//!
//! Whatever the user says for themselves (their own file, git's configuration, the environment, a flag) needs no approval.

use std::borrow::Cow;
use std::path::PathBuf;

use super::held::is_held;
use crate::config::{Key, Layers, Origin, Settings};
use crate::git::Repo;
use crate::store::records::{ApprovalsRecord, Approved};
use crate::store::{Error, Layout, Record, Store, now};

/// What a command of `verify.commands` is for.
const VERIFY: &str = "verify";

/// What the command of `merge.conflict_agent` is for.
const CONFLICT_AGENT: &str = "conflict-agent";

/// What a command of `lane.setup` is for.
const SET_UP: &str = "setup";

/// A command line, and whether it may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Command {
    /// The hash of kind and text.
    pub(crate) id: String,
    /// What it is for.
    pub(crate) kind: Cow<'static, str>,
    /// The shell's command line.
    pub(crate) line: String,
    /// The tracked file that it comes from; none when it is the user's own.
    pub(crate) from: Option<PathBuf>,
    /// Whether it may run.
    pub(crate) approved: bool,
}

/// What was approved in one repository.
pub(crate) struct Approvals<'a> {
    repo: &'a Repo,
    layout: Layout,
    /// The record as it is.
    pub(crate) record: ApprovalsRecord,
    /// Where it lies.
    pub(crate) path: PathBuf,
}

impl<'a> Approvals<'a> {
    /// Reads them.
    pub(crate) fn read(repo: &'a Repo, store: &Store) -> Result<Approvals<'a>, Error> {
        let path = store.layout().approvals();
        let record = ApprovalsRecord::find(&path)?.unwrap_or_default();
        Ok(Approvals { repo, layout: store.layout().clone(), record, path })
    }

    /// The commands of `verify.commands` as they are set now, in order.
    pub(crate) fn of_settings(&self, layers: &Layers, lines: &[String]) -> Vec<Command> {
        let from = by_repository(layers, "verify.commands");
        lines.iter().map(|line| self.command(VERIFY.into(), line, from.clone())).collect()
    }

    /// The commands of `lane.setup` as they are set now, in order.
    pub(crate) fn of_set_up(&self, layers: &Layers, settings: &Settings) -> Vec<Command> {
        let from = by_repository(layers, "lane.setup");
        let lines = settings.set_up.commands.iter();
        lines.map(|line| self.command(SET_UP.into(), line, from.clone())).collect()
    }

    /// The agent of `merge.conflict_agent` as it is set now.
    pub(crate) fn of_agent(&self, layers: &Layers, agent: &str) -> Command {
        self.command(CONFLICT_AGENT.into(), agent, by_repository(layers, "merge.conflict_agent"))
    }

    /// All commands that the settings name.
    pub(crate) fn of_all(&self, layers: &Layers, settings: &Settings) -> Vec<Command> {
        let agent = settings.conflict_agent.as_ref().map(|agent| self.of_agent(layers, agent));
        let hooks = layers.hooks().flat_map(|event| self.of_hook(layers, event));
        let set_up = self.of_set_up(layers, settings);
        let checks = self.of_settings(layers, &settings.verify_commands);
        checks.into_iter().chain(agent).chain(hooks).chain(set_up).collect()
    }

    /// The commands that are set to run at an event, in order.
    pub(crate) fn of_hook(&self, layers: &Layers, event: &str) -> Vec<Command> {
        let Some((lines, origin)) = layers.hook(event) else { return Vec::new() };
        let from = file_of(origin);
        let own = match origin {
            Origin::User(path) => Some(path.clone()),
            Origin::Git => Some(self.repo.common_dir().join("config")),
            Origin::Default | Origin::Repository(_) | Origin::Environment(_) => None,
        };
        let command = |line: &str| {
            let held = || own.clone().filter(|_| is_held(&self.layout, event, line));
            self.command(format!("hook {event}").into(), line, from.clone().or_else(held))
        };
        lines.lines().map(str::trim).filter(|line| !line.is_empty()).map(command).collect()
    }

    /// A command of a plan, which stands in `from` where that comes with a repository.
    pub(crate) fn of_plan(&self, kind: &'static str, line: &str, from: Option<PathBuf>) -> Command {
        self.command(kind.into(), line, from)
    }

    fn command(&self, kind: Cow<'static, str>, line: &str, from: Option<PathBuf>) -> Command {
        let approved = from.is_none() || self.has(&kind, line);
        Command { id: self.id(&kind, line), kind, line: line.to_owned(), from, approved }
    }

    /// Whether this very text was approved.
    fn has(&self, kind: &str, line: &str) -> bool {
        let id = self.id(kind, line);
        // Two texts of one hash are made, not met.
        self.record.approved.iter().any(|a| a.id == id && a.kind == kind && a.command == line)
    }

    fn id(&self, kind: &str, line: &str) -> String {
        let hash = self.repo.blob_id(format!("{kind}\0{line}").as_bytes());
        hash.map(|id| id.to_string()).unwrap_or_default()
    }

    /// The record with these commands approved too.
    pub(crate) fn with(&self, commands: &[Command]) -> ApprovalsRecord {
        let mut record = self.record.clone();
        for Command { kind, line, .. } in commands.iter().filter(|c| !self.has(&c.kind, &c.line)) {
            record.approved.push(Approved {
                id: self.id(kind, line),
                kind: kind.clone().into_owned(),
                command: line.clone(),
                at: now(),
            });
        }
        record
    }
}

/// The repository's file that a setting comes from; none when it is the user's own.
fn by_repository(layers: &Layers, name: &str) -> Option<PathBuf> {
    file_of(layers.get(Key::find(name)?).1)
}

fn file_of(origin: &Origin) -> Option<PathBuf> {
    match origin {
        Origin::Repository(path) => Some(path.clone()),
        Origin::Default | Origin::User(_) | Origin::Git | Origin::Environment(_) => None,
    }
}

/// A command of the user's own.
impl From<&String> for Command {
    fn from(line: &String) -> Command {
        Command { id: String::new(), kind: VERIFY.into(), line: line.clone(), from: None, approved: true }
    }
}
