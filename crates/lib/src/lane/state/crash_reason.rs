//! Crash report of a run whose end was never recorded.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use proq_base::lane_name::LaneName;
use proq_base::terminal_text;
use proq_store::base::record::Record;
use proq_store::records::baseline::CheckoutBaseline;
use proq_store::records::lane::AnyLane;
use proq_store::records::run::RunRecord;

use crate::lane::Project;

/// Message that every crash report begins with.
const SUPERVISOR_CRASHED: &str = "its supervisor crashed";

/// Maximum length of a supervisor's output in the report, in characters.
const MAX_OUTPUT_CHARS: usize = 300;

/// Number of bytes read from the end of a log.
const MAX_TAIL_BYTES: u64 = 16 * 1024;

/// Prefix of the line that Rust adds to a panic message.
const BACKTRACE_NOTE: &str = "note: run with `RUST_BACKTRACE";

/// Describes the crash of the last run of the lane named `lane`, whose supervisor exited without recording an
/// end.
pub(crate) fn describe_crash(project: &Project, lane: &LaneName) -> String {
    let layout = project.store.layout();
    let record = AnyLane::load_if_exists(&layout.lane_record(lane)).ok().flatten();
    let mut out = SUPERVISOR_CRASHED.to_owned();
    if let Some(lane) = record.filter(AnyLane::works_in_place) {
        out.push_str(&describe_in_place_state(project, &lane));
    }
    if let Some(output) = last_output(&layout.supervisor_log(lane)) {
        out.push_str(&format!("; its last output: {output}"));
    }
    out
}

/// Describes the state of the main checkout after a crashed in-place run: its changes are still in the files,
/// and nothing has determined which of them are the run's.
fn describe_in_place_state(project: &Project, lane: &AnyLane) -> String {
    let layout = project.store.layout();
    let mut out = "; its changes are still in the main checkout".to_owned();
    let run = RunRecord::load_if_exists(&layout.run_record(&lane.name, lane.last_run)).ok().flatten();
    let tip = project.repo.branch_tip(&lane.base).ok().flatten();
    if let (Some(run), Some(tip)) = (run, tip)
        && run.tip_before != tip
    {
        let (from, to) = (run.tip_before.short(), tip.short());
        out.push_str(&format!(
            "; {} has moved since the run started: git log --stat {from}..{to}",
            lane.base
        ));
    }
    let before = CheckoutBaseline::load_if_exists(&layout.run_checkout_baseline(&lane.name, lane.last_run))
        .ok()
        .flatten();
    if let Some(snap) = before.and_then(|before| before.snapshot_id) {
        out.push_str(&format!("; uncommitted changes from before: git proq snap show {snap}"));
    }
    out
}

/// Returns the end of a program's output as one line that is safe for a terminal; none when the log is
/// missing, empty or unreadable.
pub fn last_output(log: &Path) -> Option<String> {
    let mut file = proq_base::regular_file::open_store_file(log).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MAX_TAIL_BYTES))).ok()?;
    let mut bytes = Vec::new();
    file.take(MAX_TAIL_BYTES).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let text = console::strip_ansi_codes(&text);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with(BACKTRACE_NOTE))
        .collect();
    let joined = terminal_text::escape_line(&lines.join(" "));
    let skip = joined.chars().count().saturating_sub(MAX_OUTPUT_CHARS);
    let end: String = joined.chars().skip(skip).collect();
    match (end.is_empty(), skip) {
        (true, _) => None,
        (false, 0) => Some(end),
        (false, _) => Some(format!("…{end}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_end_of_output_in_one_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let write_and_read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            last_output(&path)
        };
        assert_eq!(last_output(&dir.path().join("none")), None);
        assert_eq!(write_and_read(" \n"), None);
        let panic_output =
            "\nthread 'main' panicked at a.rs:1:2:\nno room\nnote: run with `RUST_BACKTRACE=1` more\n";
        assert_eq!(write_and_read(panic_output).unwrap(), "thread 'main' panicked at a.rs:1:2: no room");
        let long = write_and_read(&"ä".repeat(MAX_OUTPUT_CHARS + 1)).unwrap();
        assert_eq!((long.chars().count(), long.starts_with('…')), (MAX_OUTPUT_CHARS + 1, true));
    }
}
