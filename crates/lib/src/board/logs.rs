//! Logs of a lane: of a run, of the landing after it, of a failed check, and of the set-up.

use std::ops::Range;
use std::path::{Path, PathBuf};

use proq_base::lane_name::LaneName;
use proq_base::usage::SessionTotals;
use proq_store::base::record::Record;
use proq_store::base::run_number::RunNumber;
use proq_store::paths::layout::Layout;
use proq_store::paths::path_form;
use proq_store::records::check::FailedCheckRecord;
use proq_store::records::lane::AnyLane;
use proq_store::records::run::RunRecord;
use proq_stream::base::event::StreamEvent;
use proq_stream::base::run_end;
use proq_stream::reader::{Dialect, OutputReader};
use serde::Serialize;

use super::error::BoardError;
use super::lookup::find_lane_or_task_lane;
use crate::lane;
use crate::lane::Project;
use crate::ops::error::Error;

/// Writer of a log that belongs to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogWriter {
    /// The agent.
    Agent,
    /// The automatic merge after the run.
    AutoMerge,
}

/// Log that belongs to a run.
#[derive(Debug)]
pub struct RunLog {
    /// The lane.
    pub lane: AnyLane,
    /// Number of the run.
    pub run: RunNumber,
    /// The log.
    pub path: PathBuf,
    writer: LogWriter,
    record_dir: PathBuf,
}

/// Part of a log: whole lines of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogPart {
    /// Offset in bytes at which the part begins: 0, or `next` of the part before.
    pub after: u64,
    /// Maximum number of lines; none for all that there are.
    pub limit: Option<usize>,
}

/// JSON output: the log of one run, or a part of it.
#[derive(Debug, Serialize)]
pub struct RunLogOutput {
    lane: LaneName,
    run: RunNumber,
    #[serde(with = "path_form")]
    path: PathBuf,
    text: String,
    /// The events in the text, if its format is known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    events: Vec<StreamEvent>,
    /// Offset in bytes of what follows the requested part; beyond a complete log once its last events are given.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
}

/// JSON output: what a failed check or the set-up commands of a lane printed.
#[derive(Debug, Serialize)]
pub struct CommandLogOutput {
    #[serde(flatten)]
    source: CommandLogSource,
    /// The log.
    #[serde(with = "path_form")]
    pub path: PathBuf,
    text: String,
}

/// Commands that a log is of.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum CommandLogSource {
    /// The check that failed with a lane.
    Check(Box<FailedCheckRecord>),
    /// The set-up commands of the lane with this name, as the user gave it if the lane does not exist.
    SetUp {
        #[serde(rename = "lane")]
        name: String,
    },
}

impl RunLog {
    /// Finds a log of the lane or task that the user calls `name`: of run `run`, or of the last run that has
    /// one.
    ///
    /// # Errors
    /// [`BoardError::NoAutoMerge`], [`BoardError::NoSuchRun`], or there is no such lane.
    pub fn find(
        project: &Project,
        name: &str,
        writer: LogWriter,
        run: Option<RunNumber>,
    ) -> Result<RunLog, Error> {
        let (lane, dir) = find_lane_or_task_lane(project, name)?;
        let path_of = |run| match writer {
            LogWriter::Agent => Layout::run_log_in(&dir, run),
            LogWriter::AutoMerge => Layout::auto_merge_log_in(&dir, run),
        };
        // No landing follows a run that resolved a conflict.
        let mut runs_with_landing =
            RunNumber::first().through(lane.last_run).rev().filter(|run| path_of(*run).exists());
        let last_run = match writer {
            LogWriter::Agent => lane.last_run,
            LogWriter::AutoMerge => runs_with_landing.next().unwrap_or(lane.last_run),
        };
        let run = run.unwrap_or(last_run);
        let path = path_of(run);
        if writer == LogWriter::AutoMerge && !path.exists() {
            return Err(BoardError::NoAutoMerge { lane: lane.name }.into());
        }
        if run == RunNumber::NONE || !path.exists() {
            return Err(BoardError::NoSuchRun { lane: lane.name, run }.into());
        }
        Ok(RunLog { lane, run, path, writer, record_dir: dir })
    }

    /// Returns the log of what the agent wrote to its standard error, if that has a log of its own.
    #[must_use]
    pub fn error_log(&self) -> Option<PathBuf> {
        Some(Layout::run_stderr_in(&self.record_dir, self.run)).filter(|path| path.exists())
    }

    /// Loads the record of the run; none if it has none, or if the log is not the agent's.
    ///
    /// # Errors
    /// Fails when the record cannot be read.
    pub fn load_record(&self) -> Result<Option<RunRecord>, Error> {
        let record = RunRecord::load_if_exists(&Layout::run_record_in(&self.record_dir, self.run))?;
        Ok(record.filter(|_| self.writer == LogWriter::Agent))
    }

    /// Reads the log, or whole lines of it. `record` is that of the run; without it, or with `raw`, no events
    /// are parsed.
    ///
    /// # Errors
    /// Fails when the log cannot be read.
    pub fn to_output(
        self,
        record: Option<&RunRecord>,
        raw: bool,
        part: Option<LogPart>,
    ) -> Result<RunLogOutput, Error> {
        let bytes = read_log(&self.path)?;
        let is_complete = record.is_none_or(|record| record.ended.is_some());
        let range = part.map_or(0..bytes.len(), |part| part.range_in(&bytes, is_complete));
        let is_end = range.end == bytes.len() && (part.is_none() || is_complete);
        let dialect = record.and_then(|record| Dialect::from_name(record.dialect.as_deref()?));
        let dialect = dialect.filter(|dialect| dialect.is_machine_readable() && !raw);
        let next = range.end as u64 + u64::from(is_end && dialect.is_some());
        let is_after_end = part.is_some_and(|part| part.after > bytes.len() as u64);
        let dialect = dialect.filter(|_| !is_after_end);
        Ok(RunLogOutput {
            text: String::from_utf8_lossy(&bytes[range.clone()]).into_owned(),
            next: part.map(|_| next),
            events: dialect.map(|dialect| events_of_part(dialect, &bytes, range, is_end)).unwrap_or_default(),
            lane: self.lane.name,
            run: self.run,
            path: self.path,
        })
    }
}

impl LogPart {
    /// Returns where the part begins and ends in a log. A last line without an end belongs to it only if the log
    /// is complete.
    fn range_in(self, log: &[u8], is_complete: bool) -> Range<usize> {
        let start = usize::try_from(self.after).unwrap_or(usize::MAX).min(log.len());
        let rest = &log[start..];
        let line_ends = rest.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
        let unfinished_end = Some(rest.len()).filter(|_| is_complete && !rest.ends_with(b"\n"));
        let ends = line_ends.chain(unfinished_end).take(self.limit.unwrap_or(usize::MAX));
        start..start + ends.last().unwrap_or(0)
    }
}

impl CommandLogOutput {
    /// Reads the text of the log.
    ///
    /// # Errors
    /// [`lane::Error::Io`].
    pub fn with_text(self) -> Result<CommandLogOutput, lane::Error> {
        let text = String::from_utf8_lossy(&read_log(&self.path)?).into_owned();
        Ok(CommandLogOutput { text, ..self })
    }
}

/// Parses the events of a part of a log, after the lines before it. `is_end` is whether nothing follows the part.
fn events_of_part(dialect: Dialect, log: &[u8], part: Range<usize>, is_end: bool) -> Vec<StreamEvent> {
    let mut reader = OutputReader::new(dialect, &SessionTotals::default());
    let mut events = Vec::new();
    reader.feed_stdout(&log[..part.start], &mut events);
    events.clear();
    reader.feed_stdout(&log[part.clone()], &mut events);
    if is_end {
        drop(reader.finish(run_end::Exit::default(), &mut events));
    }
    events
}

/// Finds the log of the check that failed with the lane or task that the user calls `name`. Its text is not read
/// yet.
///
/// # Errors
/// [`BoardError::NoFailedCheck`], or there is no such lane.
pub fn find_check_log(project: &Project, name: &str) -> Result<CommandLogOutput, Error> {
    let (lane, dir) = find_lane_or_task_lane(project, name)?;
    let Some(check) = FailedCheckRecord::load_if_exists(&Layout::failed_check_record_in(&dir))? else {
        return Err(BoardError::NoFailedCheck { lane: lane.name }.into());
    };
    let path = dir.join(&check.log);
    let source = CommandLogSource::Check(Box::new(check));
    Ok(CommandLogOutput { source, path, text: String::new() })
}

/// Finds the log of the set-up commands of the lane that the user calls `name`, also if they failed and the lane
/// does not exist. Its text is not read yet.
///
/// # Errors
/// [`BoardError::NoSetUpRun`], or there is no such lane.
pub fn find_set_up_log(project: &Project, name: &str) -> Result<CommandLogOutput, Error> {
    let found = find_lane_or_task_lane(project, name);
    let lane_log =
        found.as_ref().ok().map(|(_, dir)| Layout::set_up_log_in(dir)).filter(|path| path.is_file());
    // Only a valid lane name may become part of a path.
    let failed_log = LaneName::parse(name).ok().map(|name| project.store.layout().failed_set_up_log(&name));
    let name = found.as_ref().map_or_else(|_| name.to_owned(), |(lane, _)| lane.name.to_string());
    let path = lane_log.or(failed_log).unwrap_or_default();
    if !path.is_file() {
        let lane = found?.0.name;
        return Err(BoardError::NoSetUpRun { lane }.into());
    }
    Ok(CommandLogOutput { source: CommandLogSource::SetUp { name }, path, text: String::new() })
}

fn read_log(path: &Path) -> Result<Vec<u8>, lane::Error> {
    std::fs::read(path).map_err(lane::Error::io("read", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_has_whole_lines() {
        let log = b"one\ntwo\nthr";
        let range = |after, limit, is_complete| LogPart { after, limit }.range_in(log, is_complete);
        assert_eq!(range(0, None, false), 0..8);
        assert_eq!(range(0, None, true), 0..11);
        assert_eq!(range(0, Some(1), true), 0..4);
        assert_eq!(range(4, Some(2), true), 4..11);
        assert_eq!(range(8, None, false), 8..8);
        assert_eq!(range(99, Some(3), true), 11..11);
    }
}
