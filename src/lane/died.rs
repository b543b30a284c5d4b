//! Owns what there is to say of a run that nobody has written the end of.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use super::Project;
use crate::harmless;
use crate::store::Record;
use crate::store::records::{AnyLane, BeforeRecord, RunRecord};

/// What is said of it in any case.
const DIED: &str = "its supervisor ended without a word";

/// So much of what a supervisor wrote is shown.
const WORDS: usize = 300;

/// So many bytes of its end are read.
const TAIL: u64 = 16 * 1024;

/// What Rust adds to where a program gave up.
const ADVICE: &str = "note: run with `RUST_BACKTRACE";

/// What there is to say of the last run of a lane, by its name, whose supervisor has died.
pub(crate) fn died(project: &Project, lane: &str) -> String {
    let layout = project.store.layout();
    let record = AnyLane::find(&layout.lane_record(lane)).ok().flatten();
    let mut out = DIED.to_owned();
    if let Some(lane) = record.filter(AnyLane::works_in_place) {
        out.push_str(&what_is_there(project, &lane));
    }
    if let Some(said) = last_words(&layout.supervisor_log(lane)) {
        out.push_str(&format!("; the last that it wrote: {said}"));
    }
    out
}

/// What there is to say of a run in the main checkout: nobody has looked whose is what there.
fn what_is_there(project: &Project, lane: &AnyLane) -> String {
    let layout = project.store.layout();
    let mut out = "; what it changed is in the main checkout as it left it".to_owned();
    let run = RunRecord::find(&layout.run_record(&lane.name, lane.attempt)).ok().flatten();
    let tip = project.repo.branch_tip(&lane.base).ok().flatten();
    if let (Some(run), Some(tip)) = (run, tip)
        && run.tip_before != tip
    {
        let (from, to) = (run.tip_before.short(), tip.short());
        out.push_str(&format!(
            "; {} has moved since it began, by whomever: git log --stat {from}..{to}",
            lane.base
        ));
    }
    let before = BeforeRecord::find(&layout.run_before(&lane.name, lane.attempt)).ok().flatten();
    if let Some(snap) = before.and_then(|before| before.snap) {
        out.push_str(&format!("; what was uncommitted before: git proq snap show {snap}"));
    }
    out
}

/// The end of what a program wrote, in a line that a terminal can be shown; none when it wrote nothing, or nothing that can be read.
pub(crate) fn last_words(log: &Path) -> Option<String> {
    let mut file = crate::regular_file::open_record(log).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL))).ok()?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let text = console::strip_ansi_codes(&text);
    let lines: Vec<&str> =
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(ADVICE)).collect();
    let all = harmless::line(&lines.join(" "));
    let skip = all.chars().count().saturating_sub(WORDS);
    let end: String = all.chars().skip(skip).collect();
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
    fn the_end_of_what_was_written_is_said_in_a_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let said = |text: &str| {
            std::fs::write(&path, text).unwrap();
            last_words(&path)
        };
        assert_eq!(last_words(&dir.path().join("none")), None);
        assert_eq!(said(" \n"), None);
        let gave_up =
            "\nthread 'main' panicked at a.rs:1:2:\nno room\nnote: run with `RUST_BACKTRACE=1` more\n";
        assert_eq!(said(gave_up).unwrap(), "thread 'main' panicked at a.rs:1:2: no room");
        let long = said(&"ä".repeat(WORDS + 1)).unwrap();
        assert_eq!((long.chars().count(), long.starts_with('…')), (WORDS + 1, true));
    }
}
