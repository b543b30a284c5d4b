//! Execution of check commands: on one commit after the other, several in parallel, each failed command once
//! more.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use proq_base::lane_name::LaneName;
use proq_base::process::command_builder::CommandBuilder;
use proq_base::process::limited_process::{ExitOutcome, LimitedProcess};
use proq_base::process::strays::RUN_MARK_VAR;
use proq_git::CommitId;
use proq_store as store;
use proq_store::base::atomic;
use proq_store::base::record::Record;
use proq_store::records::check::CheckWorktreeRecord;
use proq_store::records::ports::Ports;

use super::check_commands::CommandNumbers;
use super::check_environment::check_environment;
use super::check_worktree::CheckWorktree;
use super::culprit_search::{CheckVerdict, is_prefix_irrelevant};
use crate::event::log::{Event, EventName};
use crate::lane::Project;
use crate::merge::Error;
use crate::merge::types::outcome::{CheckFailure, describe_state};

/// Interval at which running commands are polled.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Interval between progress messages.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);
/// Log line between the first attempt and the second.
const RETRY_LINE: &str = "--- retry";
/// Number of last log lines shown.
const MAX_TAIL_LINES: usize = 15;
/// Exit codes by which a shell reports that it could not run a command.
const NOT_RUNNABLE_CODES: [i32; 2] = [126, 127];
/// Maximum number of bytes saved from the end of a failed command's log.
const MAX_LOG_BYTES: u64 = 1024 * 1024;

/// Commands to run and their limits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CheckRules<'a> {
    /// Command lines, by number.
    pub command_lines: &'a [String],
    /// Numbers of the commands whose failure is ignored.
    pub(crate) tolerated_commands: &'a [usize],
    /// Command lines that prepare a worktree before its first check.
    pub(crate) set_up_commands: &'a [String],
    /// Time limit of one command.
    pub time_limit: Duration,
}

/// Commit to check, and its commands.
#[derive(Debug, Clone)]
pub(crate) struct CommitCheck {
    pub commit: CommitId,
    /// Names of the lanes that the commit contains.
    pub lanes: Vec<LaneName>,
    /// Branch that the lanes would land on.
    pub onto: String,
    /// Numbers of the commands to run, in order.
    pub commands: CommandNumbers,
}

/// Command that failed twice.
#[derive(Debug)]
pub(crate) struct FailedCommand {
    /// Number of the command, as in [`CheckRules::command_lines`].
    pub command_number: usize,
    /// Exit of the command.
    pub exit: ExitOutcome,
    /// End of the check's log: output of the failed command and of the commands before it.
    pub log: Vec<u8>,
}

impl FailedCommand {
    /// Returns whether the shell could not run the command, because its program is missing or not executable.
    pub(crate) fn is_not_runnable(&self) -> bool {
        matches!(self.exit, ExitOutcome::Code(code) if NOT_RUNNABLE_CODES.contains(&code))
    }

    /// Returns the last lines of the log, of the last attempt only.
    pub(crate) fn log_tail(&self) -> Vec<String> {
        let text = String::from_utf8_lossy(&self.log);
        let last_attempt = text.lines().rev().take_while(|line| *line != RETRY_LINE);
        let mut tail: Vec<String> = last_attempt.take(MAX_TAIL_LINES).map(ToOwned::to_owned).collect();
        tail.reverse();
        tail
    }

    /// Returns the failure of the command line `command` as the reason of a refused landing, and saves its
    /// log outside of any lane.
    ///
    /// # Errors
    /// Fails when the log cannot be written.
    pub(crate) fn to_refusal(&self, project: &Project, command: &str) -> Result<CheckFailure, Error> {
        let log = project.store.layout().refused_check_log();
        atomic::write(&log, &self.log)?;
        Ok(CheckFailure {
            command: command.to_owned(),
            task_lane: None,
            ended: self.exit,
            lanes_below: Vec::new(),
            log,
            tail: self.log_tail(),
        })
    }
}

/// Result of checking a commit.
#[derive(Debug)]
pub(crate) enum CheckResult {
    /// All commands succeeded. `flaky_command` is the number of a command that failed the first time.
    Passed { flaky_command: Option<usize> },
    /// One command failed twice.
    Failed(FailedCommand),
}

impl CheckResult {
    fn verdict(&self) -> CheckVerdict {
        match self {
            CheckResult::Passed { .. } => CheckVerdict::Passed,
            CheckResult::Failed(failure) => CheckVerdict::Failed(failure.command_number),
        }
    }
}

/// Check worktrees that this process uses, and the number of times that commands were started in them.
#[derive(Debug, Default)]
pub(crate) struct CheckRuns {
    worktrees: Vec<CheckWorktree>,
    /// Number of times that commands were started on a commit.
    pub run_count: usize,
    /// Whether the checks are those of a landing, whose events are emitted.
    pub emits_events: bool,
}

/// Check of one commit that is currently running in a check worktree.
struct RunningCheck {
    /// Index of the check in the round.
    check_index: usize,
    /// Index of the check worktree in [`CheckRuns`].
    worktree_index: usize,
    /// Index of the current command in the list of the check.
    command_index: usize,
    /// Number of the command that failed the first time; none in the first attempt.
    first_failed_command: Option<usize>,
    process: LimitedProcess,
}

impl CheckRuns {
    /// Runs the commands of every check, up to `jobs` in parallel. `prefixes` has the length of the stack's
    /// prefix that each check covers. A check whose result no longer matters, given the others, is not
    /// started or is ended, and has no result.
    pub fn run(
        &mut self,
        project: &Project,
        rules: CheckRules<'_>,
        checks: &[CommitCheck],
        prefixes: &[usize],
        jobs: usize,
    ) -> Result<Vec<Option<CheckResult>>, Error> {
        let mut check_round =
            CheckRound { runs: self, project, rules, checks, active: Vec::new(), last_report: None };
        let result = check_round.run_all(prefixes, jobs);
        // Ends the commands that still run after an error.
        check_round.active.clear();
        project.listener.progress("");
        let mut slots = self.worktrees.iter().zip(checks.iter().cycle());
        let released = slots.try_for_each(|(worktree, task)| {
            worktree.worktree.require_intact(&project.repo, &task.lanes)?;
            worktree.worktree.detach_head(&project.repo, task.commit)
        });
        let released = released.and_then(|()| Ok(project.repo.require_unmoved_checkout()?));
        // The error that ended the checks takes precedence over an error of the clean-up.
        result.and_then(|found| released.map(|()| found))
    }
}

/// One call of [`CheckRuns::run`], with the checks that are running now.
struct CheckRound<'a> {
    runs: &'a mut CheckRuns,
    project: &'a Project,
    rules: CheckRules<'a>,
    checks: &'a [CommitCheck],
    active: Vec<RunningCheck>,
    last_report: Option<Instant>,
}

impl CheckRound<'_> {
    fn run_all(&mut self, prefixes: &[usize], jobs: usize) -> Result<Vec<Option<CheckResult>>, Error> {
        let mut results: Vec<Option<CheckResult>> = self.checks.iter().map(|_| None).collect();
        // The full stack is checked first: if it passes, no other result matters.
        let mut waiting: Vec<usize> = (0..self.checks.len()).collect();
        loop {
            proq_base::interrupt::require_no_signal()?;
            while self.active.len() < jobs
                && let Some(task) = waiting.pop()
            {
                let running = self.start_check(task)?;
                self.active.push(running);
            }
            if self.active.is_empty() {
                return Ok(results);
            }
            for index in (0..self.active.len()).rev() {
                let Some(exit) = self.active[index].process.poll()? else { continue };
                let task = self.active[index].check_index;
                if let Some(result) = self.handle_command_exit(index, exit)? {
                    drop(self.active.swap_remove(index));
                    results[task] = Some(result);
                }
            }
            let verdicts: Vec<Option<CheckVerdict>> =
                results.iter().map(|f| f.as_ref().map(CheckResult::verdict)).collect();
            self.active.retain(|a| !is_prefix_irrelevant(a.check_index, prefixes, &verdicts));
            waiting.retain(|task| !is_prefix_irrelevant(*task, prefixes, &verdicts));
            if !self.active.is_empty() {
                self.report_progress();
                std::thread::sleep(POLL_INTERVAL);
            }
        }
    }

    /// Starts the check at `check_index` in a free worktree.
    fn start_check(&mut self, check_index: usize) -> Result<RunningCheck, Error> {
        let is_free = |n: &usize| self.active.iter().all(|a| a.worktree_index != *n);
        let slot = (0..self.active.len()).find(is_free).unwrap_or(self.active.len());
        if slot == self.runs.worktrees.len() {
            self.runs.worktrees.push(CheckWorktree::acquire(self.project, slot)?);
        }
        self.emit_checking(check_index, 0);
        let watched = self.start_in_worktree(check_index, slot, false)?;
        Ok(RunningCheck {
            check_index,
            worktree_index: slot,
            command_index: 0,
            first_failed_command: None,
            process: watched,
        })
    }

    /// Checks out a check's commit in a worktree and starts its first command. A retry continues the log of
    /// the first attempt.
    fn start_in_worktree(
        &mut self,
        check_index: usize,
        worktree_index: usize,
        is_retry: bool,
    ) -> Result<LimitedProcess, Error> {
        let commit = self.checks[check_index].commit;
        let worktree = &self.runs.worktrees[worktree_index];
        if worktree.check_out(self.project, commit, self.rules.set_up_commands)? {
            self.run_set_up(check_index, worktree_index)?;
        }
        self.runs.run_count += 1;
        let log = self.project.store.layout().check_worktree_log(self.runs.worktrees[worktree_index].number);
        if is_retry {
            append_line(&log, RETRY_LINE)?;
        } else {
            atomic::write(&log, b"")?;
        }
        let watched = self.start_command(check_index, worktree_index, 0)?;
        self.last_report = None;
        Ok(watched)
    }

    /// Runs the set-up commands of a new worktree one after the other, restores the files of the commit, and
    /// records that the set-up is complete.
    ///
    /// # Errors
    /// [`Error::CheckSetUpFailed`] if one of them fails.
    fn run_set_up(&self, check_index: usize, worktree_index: usize) -> Result<(), Error> {
        let (project, worktree) = (self.project, &self.runs.worktrees[worktree_index]);
        let log_path = project.store.layout().check_worktree_log(worktree.number);
        atomic::write(&log_path, b"")?;
        for command in self.rules.set_up_commands {
            let mut process = self.start_line(check_index, worktree_index, command)?;
            let exit = loop {
                if let Some(exit) = process.poll()? {
                    break exit;
                }
                proq_base::interrupt::require_no_signal()?;
                let seconds = process.elapsed().as_secs();
                project.listener.progress(format!("preparing the worktree for checks: {command} {seconds}s"));
                std::thread::sleep(POLL_INTERVAL);
            };
            if !exit.is_success() {
                let log = read_log_tail(&log_path)?;
                let failure = FailedCommand { command_number: 0, exit, log };
                let check = Box::new(failure.to_refusal(project, command)?);
                return Err(Error::CheckSetUpFailed { check, lanes: self.checks[check_index].lanes.clone() });
            }
        }
        worktree.finish_set_up(project, self.checks[check_index].commit, self.rules.set_up_commands)
    }

    /// Starts a command of a check; `command_index` is its index in the check's list.
    fn start_command(
        &self,
        check_index: usize,
        worktree_index: usize,
        command_index: usize,
    ) -> Result<LimitedProcess, Error> {
        let number = self.checks[check_index].commands[command_index];
        self.start_line(check_index, worktree_index, &self.rules.command_lines[number])
    }

    /// Starts a command line in the worktree of a check, with its output at the end of the worktree's log.
    fn start_line(
        &self,
        check_index: usize,
        worktree_index: usize,
        command_line: &str,
    ) -> Result<LimitedProcess, Error> {
        let (project, task, slot) =
            (self.project, &self.checks[check_index], &self.runs.worktrees[worktree_index]);
        let layout = project.store.layout();
        let log = append_line(&layout.check_worktree_log(slot.number), &format!("$ {command_line}"))?;
        let stderr_log =
            log.try_clone().map_err(store::Error::io("open", &layout.check_worktree_log(slot.number)))?;
        let mut launch = CommandBuilder::new(Path::new("sh"), &slot.worktree.dir)
            .args(["-c", command_line])
            .with_cleared_env()
            .envs(check_environment())
            .env(RUN_MARK_VAR, slot.process_mark())
            .env("PROQ_VERIFY", "1")
            .env("PROQ_LANES", task.lanes.join(" "))
            .env("PROQ_BASE", &task.onto)
            .with_output_files(log, stderr_log);
        for (name, value) in slot.ports.into_iter().flat_map(Ports::variables) {
            launch = launch.env(name, value);
        }
        let watched = launch.spawn_limited(self.rules.time_limit, project.settings.stop_grace)?;
        // If this process is killed, the next landing ends the command.
        let record = CheckWorktreeRecord { pid: watched.id(), process_start_time: watched.start_time() };
        record.save(&layout.check_worktree_record(slot.number))?;
        Ok(watched)
    }

    /// Handles the exit of a command of the active check at `index`: starts the next command or a second
    /// attempt, or returns the check's result.
    fn handle_command_exit(&mut self, index: usize, exit: ExitOutcome) -> Result<Option<CheckResult>, Error> {
        let RunningCheck {
            check_index: task,
            worktree_index: slot,
            command_index: at,
            first_failed_command: failed,
            ..
        } = self.active[index];
        let command = self.checks[task].commands[at];
        if exit.is_success() || self.rules.tolerated_commands.contains(&command) {
            if at + 1 == self.checks[task].commands.len() {
                return Ok(Some(CheckResult::Passed { flaky_command: failed }));
            }
            if failed.is_none() {
                self.emit_checking(task, at + 1);
            }
            self.active[index].process = self.start_command(task, slot, at + 1)?;
            self.active[index].command_index += 1;
            return Ok(None);
        }
        if failed.is_none() {
            self.active[index].process = self.start_in_worktree(task, slot, true)?;
            self.active[index].command_index = 0;
            self.active[index].first_failed_command = Some(command);
            return Ok(None);
        }
        let log =
            read_log_tail(&self.project.store.layout().check_worktree_log(self.runs.worktrees[slot].number))?;
        Ok(Some(CheckResult::Failed(FailedCommand { command_number: command, exit, log })))
    }

    /// Emits the event that a command of a landing's check starts, for the check with the most lanes.
    fn emit_checking(&self, check_index: usize, command_index: usize) {
        let CommitCheck { lanes, onto, commands, .. } = &self.checks[check_index];
        if !self.runs.emits_events || check_index + 1 < self.checks.len() || lanes.is_empty() {
            return;
        }
        let command_line = &self.rules.command_lines[commands[command_index]];
        let (state, position) = (describe_state(onto, lanes), command_index + 1);
        let message = format!("checking {state}: {command_line} ({position} of {})", commands.len());
        let event = Event::new(EventName::MergeChecking, message).with_lanes(lanes);
        self.project.emit_event(Event { command: Some(command_line.clone()), ..event });
    }

    /// Reports the current check and its duration.
    fn report_progress(&mut self) {
        if self.last_report.is_some_and(|last_report| last_report.elapsed() < PROGRESS_INTERVAL) {
            return;
        }
        self.last_report = Some(Instant::now());
        let Some(first) = self.active.first() else { return };
        let task = &self.checks[first.check_index];
        let others = match self.active.len() {
            1 => String::new(),
            n => format!(" (and {} more beside it)", n - 1),
        };
        let retry_note = if first.first_failed_command.is_some() { ", retry" } else { "" };
        self.project.listener.progress(format!(
            "checking {}{retry_note}: {} {}s{others}",
            describe_state(&task.onto, &task.lanes),
            self.rules.command_lines[task.commands[first.command_index]],
            first.process.elapsed().as_secs()
        ));
    }
}

/// Appends a line to a log, and returns the open file.
fn append_line(path: &Path, line: &str) -> Result<File, Error> {
    let append = || {
        let mut file = OpenOptions::new().append(true).create(true).open(path)?;
        file.write_all(format!("{line}\n").as_bytes())?;
        Ok(file)
    };
    Ok(append().map_err(store::Error::io("write", path))?)
}

/// Returns the last [`MAX_LOG_BYTES`] bytes of a log.
fn read_log_tail(path: &Path) -> Result<Vec<u8>, Error> {
    let read = || {
        let mut file = File::open(path)?;
        let size = file.metadata()?.len();
        file.seek(SeekFrom::Start(size.saturating_sub(MAX_LOG_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(MAX_LOG_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    Ok(read().map_err(store::Error::io("read", path))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_end_of_long_log() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let max_bytes = usize::try_from(MAX_LOG_BYTES).unwrap();
        std::fs::write(&path, [vec![b'a'; 10], vec![b'b'; max_bytes]].concat()).unwrap();
        assert_eq!(read_log_tail(&path).unwrap(), vec![b'b'; max_bytes]);
    }
}
