//! Following a batch to its end: a line per change, or a live view of its lanes on a terminal.

use std::time::Duration;

use super::super::status::{criteria_lines, paused_hints};
use super::super::{CommandContext, CommandResult, ui};
use super::event_lines::BatchReader;
use super::{batch_exit, view};
use crate::explain::Exit;
use crate::lane::Project;
use crate::swarm::{self, Batch, BatchOutcome, BatchProgress, LogLine, LogTail};

/// Interval between two checks of the batch's log, short because the user waits.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Follows a batch until no scheduler process works on it, and returns the batch's exit code.
pub(crate) fn follow(
    session: &CommandContext,
    project: &Project,
    mut follower: BatchFollower,
) -> CommandResult {
    let is_interactive = ui::stderr_is_terminal() && !session.ui.json && !session.ui.quiet;
    if is_interactive && std::env::var_os("TERM").is_none_or(|term| term != "dumb") {
        view::show(session, project, &mut follower)?;
    } else {
        // From here on, Ctrl-C ends this command; the batch continues.
        crate::interrupt::restore_default_action();
        while let FollowStatus::Running = follower.poll(project, &mut |line| session.ui.status(line))? {
            std::thread::sleep(POLL_INTERVAL);
        }
    }
    print_end(session, project, &follower)
}

/// State of a followed batch: whether a scheduler process works on it.
pub(super) enum FollowStatus {
    Running,
    /// No scheduler process works on the batch any more: it is over, paused or interrupted.
    Ended,
}

/// Batch whose log is followed.
pub(crate) struct BatchFollower {
    pub(super) reader: BatchReader,
    /// Read position in the batch's log.
    log: LogTail,
    /// Whether a scheduler process works on the batch.
    has_scheduler: bool,
}

impl BatchFollower {
    /// Follows a batch from the start of its log: its past changes are printed too.
    ///
    /// # Errors
    /// Fails if the batch cannot be read.
    pub(crate) fn from_start(project: &Project, id: &str) -> Result<BatchFollower, swarm::Error> {
        let batch = Batch::load(project, id)?;
        let log = batch.log_tail(project);
        Ok(BatchFollower { reader: BatchReader::new(batch), log, has_scheduler: true })
    }

    /// Follows a batch from now on: only new changes are printed.
    ///
    /// # Errors
    /// As [`BatchFollower::from_start`]; also fails if the log cannot be read.
    pub(crate) fn from_now(project: &Project, id: &str) -> Result<BatchFollower, swarm::Error> {
        let mut follower = BatchFollower::from_start(project, id)?;
        for line in follower.log.read_new_lines()? {
            drop(follower.reader.read_line(&line));
        }
        Ok(follower)
    }

    /// Reads the log entries written since the last call and prints their lines.
    pub(super) fn poll(
        &mut self,
        project: &Project,
        print_line: &mut dyn FnMut(String),
    ) -> Result<FollowStatus, swarm::Error> {
        // Checked before the log is read, so that entries written just before the scheduler exits are not
        // missed.
        self.has_scheduler = swarm::is_run(project, self.reader.batch.id())?;
        for line in self.log.read_new_lines()? {
            for text in self.reader.read_line(&line) {
                print_line(format!("{}  {text}", clock_time(&line)));
            }
        }
        let is_finished = self.reader.describe_end().is_some() || !self.has_scheduler;
        // The scheduler releases its lock last: once the view ends, the next command finds the lock free.
        Ok(if is_finished && !self.has_scheduler { FollowStatus::Ended } else { FollowStatus::Running })
    }
}

fn clock_time(line: &LogLine) -> String {
    line.time().to_local_text()
}

fn print_end(session: &CommandContext, project: &Project, follower: &BatchFollower) -> CommandResult {
    let (batch, state) = (&follower.reader.batch, &follower.reader.state);
    let id = batch.id();
    let exit = batch_exit(project, batch, state);
    if session.ui.json {
        session.ui.print_long_json(BatchProgress::read(
            project,
            batch,
            &batch.read_log_lines(project)?,
            follower.has_scheduler,
        ));
        return Ok(exit);
    }
    let Some(end_text) = follower.reader.describe_end() else {
        session.ui.print_line(format!("nobody goes on with batch {id}: its process is gone"));
        session.ui.hint(format!("go on with it: git proq resume {id}"));
        return Ok(Exit::Refused);
    };
    session.ui.print_line(end_text);
    if let (Some(report), Some(_)) = (batch.record.criteria_report(project), state.final_outcome()) {
        for line in criteria_lines(&report) {
            session.ui.print_line(line);
        }
    }
    let has_landings = follower.reader.log_summary.branch_tips.len() > 1;
    match state.final_outcome() {
        None => {
            session.ui.hint(format!("look: git proq status {id}"));
            let progress =
                BatchProgress::read(project, batch, &batch.read_log_lines(project)?, follower.has_scheduler);
            for hint in paused_hints(&progress) {
                session.ui.hint(hint);
            }
        }
        Some(outcome) => {
            if batch.record.has_unverified_criteria(project) {
                session.ui.hint(format!("have its criteria looked at: git proq resume {id}"));
            }
            if outcome != BatchOutcome::Complete {
                session.ui.hint(format!("see what became of each task: git proq status {id}"));
            }
            if matches!(outcome, BatchOutcome::Aborted | BatchOutcome::Stopped) {
                session.ui.hint(format!("go on with it all the same: git proq resume {id}"));
            }
            if has_landings && !batch.record.auto_merge {
                let action = format!("land it on {}", batch.record.base);
                session.ui.hint(swarm::landing_hint(project, &batch.record, &action));
            }
        }
    }
    Ok(exit)
}
