//! Owns what a sweep tells: one row per scenario, one line per violation, one line at the end.

use std::fmt::Write;

/// One run after which something was wrong.
#[derive(Debug, Clone)]
pub(super) struct Violation {
    /// The scenario.
    pub(super) scene: String,
    /// How it was disturbed.
    pub(super) way: &'static str,
    /// At which call.
    pub(super) point: usize,
    /// At which call recovery was killed.
    pub(super) nested: Option<usize>,
    /// What that call was.
    pub(super) at: String,
    /// What was wrong.
    pub(super) faults: Vec<String>,
    /// The command that repeats it.
    pub(super) repeat: String,
}

/// What came out of one scenario, or a share of it.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Mutating calls of the undisturbed command.
    pub(super) points: usize,
    /// Mutating calls of all recoveries that were killed in turn.
    pub(super) nested: usize,
    /// Those of them at which everything on disk was as at a point that had its run already.
    pub(super) known: usize,
    /// Disturbed runs.
    pub(super) runs: usize,
    /// Runs that lost something.
    pub(super) losses: usize,
    /// Runs with anything wrong, those with losses included.
    pub(super) violations: Vec<Violation>,
    /// Time taken by all workers.
    pub(super) seconds: f64,
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
        self.seconds += other.seconds;
    }

    /// Its row, below [`HEADER`].
    pub(super) fn row(&self, name: &str) -> String {
        format!(
            "{name:<26} {:>7} {:>7} {:>7} {:>7} {:>7} {:>10} {:>7.1}",
            self.points,
            self.nested,
            self.known,
            self.runs,
            self.losses,
            self.violations.len(),
            self.seconds
        )
    }

    /// Its violations, in order, one line each.
    pub(super) fn lines(&mut self) -> String {
        self.violations.sort_by_key(|v| (v.point, v.nested, v.way));
        let mut out = String::new();
        for v in &self.violations {
            let nested = v.nested.map(|j| format!("/{j}")).unwrap_or_default();
            let what = v.faults.join(" | ");
            let _ = writeln!(out, "  {} {}{nested} {} at {}: {what}", v.scene, v.point, v.way, v.at);
            let _ = writeln!(out, "      {}", v.repeat);
        }
        out
    }
}

/// Names the columns.
pub(super) const HEADER: &str =
    "scenario                    points  nested   known    runs  losses violations seconds";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_fits_its_header() {
        let tally = Tally { points: 3, runs: 4, ..Tally::default() };
        assert_eq!(tally.row("x").len(), HEADER.len());
    }
}
