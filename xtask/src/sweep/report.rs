//! Output of a sweep: one row per scenario, one line per violation, one line at the end.

use std::fmt::Write;
use std::time::Duration;

/// Run with a fault.
#[derive(Debug, Clone)]
pub(super) struct Violation {
    /// Scenario.
    pub(super) scenario: String,
    /// Disturbance.
    pub(super) disturbance: &'static str,
    /// Number of the disturbed call.
    pub(super) point: usize,
    /// Number of the call at which recovery was killed.
    pub(super) nested: Option<usize>,
    /// Description of the call.
    pub(super) call: String,
    /// Faults of the run.
    pub(super) faults: Vec<String>,
    /// Command that repeats the run.
    pub(super) repeat_command: String,
}

/// Counts of one scenario, or of a share of it.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Mutating calls of the undisturbed command.
    pub(super) points: usize,
    /// Mutating calls of all recoveries that were killed in turn.
    pub(super) nested: usize,
    /// Recovery calls at which the disk was in a state that was tested before.
    pub(super) known: usize,
    /// Disturbed runs.
    pub(super) runs: usize,
    /// Runs that lost a content.
    pub(super) losses: usize,
    /// Runs with any fault, including losses.
    pub(super) violations: Vec<Violation>,
    /// Time taken by all workers.
    pub(super) time: Duration,
}

impl Tally {
    /// Adds another share.
    pub(super) fn add(&mut self, other: Tally) {
        self.points += other.points;
        self.nested += other.nested;
        self.known += other.known;
        self.runs += other.runs;
        self.losses += other.losses;
        self.violations.extend(other.violations);
        self.time += other.time;
    }

    /// Returns the counts as a row below [`HEADER`].
    pub(super) fn row(&self, name: &str) -> String {
        format!(
            "{name:<26} {:>7} {:>7} {:>7} {:>7} {:>7} {:>10} {:>7.1}",
            self.points,
            self.nested,
            self.known,
            self.runs,
            self.losses,
            self.violations.len(),
            self.time.as_secs_f64()
        )
    }

    /// Returns the violations in order, one line each.
    pub(super) fn violation_lines(&mut self) -> String {
        self.violations.sort_by_key(|v| (v.point, v.nested, v.disturbance));
        let mut out = String::new();
        for v in &self.violations {
            let nested = v.nested.map(|j| format!("/{j}")).unwrap_or_default();
            let faults = v.faults.join(" | ");
            let _ = writeln!(
                out,
                "  {} {}{nested} {} at {}: {faults}",
                v.scenario, v.point, v.disturbance, v.call
            );
            let _ = writeln!(out, "      {}", v.repeat_command);
        }
        out
    }
}

/// Column titles.
pub(super) const HEADER: &str =
    "scenario                    points  nested   known    runs  losses violations seconds";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_is_as_wide_as_header() {
        let tally = Tally { points: 3, runs: 4, ..Tally::default() };
        assert_eq!(tally.row("x").len(), HEADER.len());
    }
}
