//! Set-up of a new lane of a batch before its first run: the commands of `lane.setup`, and those of
//! `swarm.pre_warm` that apply to its tasks' files.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use proq_base::config::settings::Settings;
use proq_base::interrupt;
use proq_base::process::command_builder::CommandBuilder;
use proq_base::process::identity::start_time_of;
use proq_base::process::signals::stop_group;
use proq_base::process::strays::RUN_CONTEXT_VARS;
use proq_git::status::scope::Scope;
use proq_store::base::atomic::create_private_dir;
use proq_store::base::record::Record;
use proq_store::records::lane::LaneRecord;
use proq_store::records::ports::Ports;
use serde::{Deserialize, Serialize};

use super::runner::Runner;
use super::runner_event::RunnerEvent;
use crate::lane::Project;
use crate::lane::worktree::set_up::commands;
use crate::swarm::Error;

/// Separator between the globs of a `swarm.pre_warm` entry and its command.
const GLOBS_SEPARATOR: &str = " => ";

/// Interval at which a running command is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A command of the setting `swarm.pre_warm`.
#[derive(Debug, PartialEq, Eq)]
struct PreWarmCommand<'a> {
    /// Globs of the files whose tasks need the command; empty if all tasks do.
    globs: Vec<String>,
    command: &'a str,
}

impl PreWarmCommand<'_> {
    /// Parses `GLOB GLOB => COMMAND`, or a command alone.
    fn parse(line: &str) -> PreWarmCommand<'_> {
        match line.split_once(GLOBS_SEPARATOR) {
            Some((globs, command)) => PreWarmCommand {
                globs: globs.split_whitespace().map(ToOwned::to_owned).collect(),
                command: command.trim(),
            },
            None => PreWarmCommand { globs: Vec::new(), command: line.trim() },
        }
    }

    /// Returns whether tasks with this scope need the command. A task without a scope may touch any file.
    fn applies_to(&self, scope: &[String]) -> bool {
        if self.globs.is_empty() || scope.is_empty() {
            return true;
        }
        match (Scope::parse(&self.globs), Scope::parse(scope)) {
            (Ok(own_scope), Ok(scope)) => own_scope.overlapping_globs(&scope).is_some(),
            _ => true,
        }
    }
}

/// A lane to set up, with its commands.
struct LaneSetUpOrder {
    /// Folder from which the repository is opened.
    repo_dir: PathBuf,
    lane: LaneRecord,
    /// Commands of `swarm.pre_warm` to run after those of `lane.setup`.
    commands: Vec<String>,
    /// File that the commands' output is appended to.
    log: PathBuf,
    /// Path of the record that identifies the running command's process.
    process_record_path: PathBuf,
    /// Whether the set-up has to end.
    cancelled: Arc<AtomicBool>,
}

/// Process of a set-up command, which continues when its scheduler is killed.
#[derive(Debug, Serialize, Deserialize)]
struct CommandProcess {
    /// Process id, which is also the id of its process group.
    pid: u32,
    /// Start time of the process, which distinguishes it from a later one with the same id.
    #[serde(rename = "birth")]
    start_time: Option<String>,
}

impl Record for CommandProcess {
    const FORMAT: u32 = 1;
}

impl Runner<'_> {
    /// Starts a thread that sets up a lane. Returns whether there is anything to set up.
    pub(super) fn spawn_set_up(&mut self, number: usize, lane: &LaneRecord) -> Result<bool, Error> {
        let scope = self.lane_tasks_scope(lane);
        let configured = self.project.settings.swarm.pre_warm.iter().map(|line| PreWarmCommand::parse(line));
        let applicable = configured.filter(|warmer| warmer.applies_to(&scope) && !warmer.command.is_empty());
        let commands: Vec<String> = applicable.map(|warmer| warmer.command.to_owned()).collect();
        let set_up_commands = &self.project.settings.set_up.commands;
        let all_commands: Vec<&String> = set_up_commands.iter().chain(&commands).collect();
        if all_commands.is_empty() {
            return Ok(false);
        }
        self.log_note(&format!("lane '{}' is set up by {}", lane.name, quote_commands(&all_commands)), &[])?;
        let order = LaneSetUpOrder {
            repo_dir: self.project.repo.command_dir().to_owned(),
            lane: lane.clone(),
            commands,
            log: self.project.store.layout().batch_lane_set_up_log(self.batch.id(), number),
            process_record_path: self
                .project
                .store
                .layout()
                .batch_lane_set_up_process(self.batch.id(), number),
            cancelled: Arc::clone(&self.cancel_set_ups),
        };
        let event_sender = self.event_sender.clone();
        std::thread::spawn(move || {
            drop(event_sender.send(RunnerEvent::SetUpFinished(number, order.run_commands().err())));
        });
        Ok(true)
    }

    /// Returns the scopes of the tasks that may run in a lane: its first task, and those whose files overlap
    /// with it. Empty if one of them has no scope.
    fn lane_tasks_scope(&self, lane: &LaneRecord) -> Vec<String> {
        let first_name = lane.batch.as_ref().map(|in_batch| in_batch.task.as_str()).unwrap_or_default();
        let Some(first_task) = self.batch.tasks.iter().position(|task| task.name == first_name) else {
            return Vec::new();
        };
        let overlapping =
            self.batch.record.overlaps.iter().filter(|group| group.contains(&first_task)).flatten();
        let tasks: BTreeSet<usize> = overlapping.copied().chain([first_task]).collect();
        let scopes = tasks.into_iter().map(|task| &self.batch.tasks[task].scope);
        // A task without a scope may touch any file.
        let task_scopes: Vec<&Vec<String>> = scopes.collect();
        match task_scopes.iter().any(|scope| scope.is_empty()) {
            true => Vec::new(),
            false => task_scopes.into_iter().flatten().cloned().collect(),
        }
    }
}

impl LaneSetUpOrder {
    /// Runs the commands one after the other. The error is the reason why the lane is not set up.
    fn run_commands(&self) -> Result<(), String> {
        let project = Project::open(&self.repo_dir, proq_base::diagnostics::Listener::silent())
            .map_err(|e| e.to_string())?;
        create_private_dir(self.log.parent().unwrap_or(Path::new("."))).map_err(|e| e.to_string())?;
        let log = File::options().create(true).append(true).open(&self.log).map_err(|e| e.to_string())?;
        self.stop_previous_process(&project.settings);
        let is_cancelled = || self.cancelled.load(Ordering::Relaxed);
        commands::run_skipped_commands(&project, &self.lane, &is_cancelled).map_err(|e| e.to_string())?;
        for command in &self.commands {
            self.run_command(&project, command, &log)?;
        }
        drop(std::fs::remove_file(&self.process_record_path));
        Ok(())
    }

    /// Stops the command of a scheduler that was killed, since two commands on the same files would
    /// interfere.
    fn stop_previous_process(&self, settings: &Settings) {
        if let Ok(Some(previous)) = CommandProcess::load_if_exists(&self.process_record_path)
            && previous.start_time.is_some()
            && start_time_of(previous.pid) == previous.start_time
        {
            stop_group(previous.pid, settings.stop_grace);
        }
    }

    /// Runs one command in the lane until it exits, is cancelled or times out. The error is the reason why it
    /// did not succeed.
    fn run_command(&self, project: &Project, command: &str, log: &File) -> Result<(), String> {
        let (out, err) = (log.try_clone(), log.try_clone());
        let (out, err) = (out.map_err(|e| e.to_string())?, err.map_err(|e| e.to_string())?);
        let mut process_start = CommandBuilder::new(Path::new("sh"), &self.lane.path)
            .args(["-c", command])
            .without_vars(RUN_CONTEXT_VARS)
            .env("PROQ_LANE", self.lane.name.as_str())
            .env("PROQ_ENV_FILE", project.store.layout().lane_env_file(&self.lane.name))
            .with_output_files(out, err);
        for (name, value) in self.lane.ports.into_iter().flat_map(Ports::variables) {
            process_start = process_start.env(name, value);
        }
        let (limit, grace) = (project.settings.verify_timeout, project.settings.stop_grace);
        let mut watched = process_start.spawn_limited(limit, grace).map_err(|e| e.to_string())?;
        let process_record = CommandProcess { pid: watched.id(), start_time: watched.start_time() };
        process_record.save(&self.process_record_path).map_err(|e| e.to_string())?;
        loop {
            if let Some(exit_status) = watched.poll().map_err(|e| e.to_string())? {
                let wrote = proq_base::terminal_text::escape_line(&self.log.display().to_string());
                return match exit_status.is_success() {
                    true => Ok(()),
                    false => Err(format!("`{command}` failed ({exit_status}); it wrote {wrote}")),
                };
            }
            // Dropping the watched process stops it and everything that it has started.
            if self.cancelled.load(Ordering::Relaxed) || interrupt::require_no_signal().is_err() {
                return Err(format!("`{command}` was stopped"));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

/// Returns the commands in backquotes, separated by commas.
fn quote_commands(commands: &[&String]) -> String {
    let quoted: Vec<String> = commands
        .iter()
        .map(|command| format!("`{}`", proq_base::terminal_text::escape_line(command)))
        .collect();
    quoted.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_command_to_task_files() {
        let line = PreWarmCommand::parse("web/ packages/*.json => npm ci");
        assert_eq!(
            line,
            PreWarmCommand { globs: vec!["web/".into(), "packages/*.json".into()], command: "npm ci" }
        );
        let is_for =
            |scope: &[&str]| line.applies_to(&scope.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>());
        assert!(is_for(&["web/src/a.ts"]));
        assert!(is_for(&["docs/", "web/"]));
        assert!(!is_for(&["docs/", "website/"]));
        // A task without a scope may touch any file.
        assert!(is_for(&[]));
        assert!(PreWarmCommand::parse("make deps").applies_to(&["docs/".to_owned()]));
    }
}
