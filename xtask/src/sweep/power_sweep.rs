//! Sweep over power cuts: `--power`. The command of a scenario runs once on a file system of its own, which
//! is read before each of its mutating calls. Each state of the disk is then what a computer finds after a
//! power cut.

use std::process::Command;

use super::args::Args;
use super::loop_disk::{BlockDiff, LoopDisk};
use super::point_sweep::SHORT_POINTS;
use super::report::{Tally, Violation};
use super::scenario::PreparedScenario;
use super::trace::Plan;
use super::verdict::Tolerance;
use super::{Outcome, fail};
use fastrand::Rng;

use crate::dice;

/// Mount options of ext4, and when it ends its transactions.
struct MountMode {
    name: &'static str,
    /// Mount options, each after a comma.
    options: &'static str,
    /// Whether a transaction ends just before the cut, in addition to those that a sync ends.
    commits: bool,
}

/// By default ext4 writes a file's content before a rename over another file, or after a truncation to zero.
const MOUNT_MODES: &[MountMode] = &[
    MountMode { name: "power cut", options: "", commits: false },
    MountMode { name: "power cut after a commit", options: "", commits: true },
    MountMode { name: "power cut, no heuristics", options: ",noauto_da_alloc", commits: false },
    MountMode { name: "power cut after a commit, no heuristics", options: ",noauto_da_alloc", commits: true },
];

/// Sweeps over a scenario that was prepared on `disk`.
pub(super) fn sweep(
    prepared: &PreparedScenario<'_>,
    disk: &LoopDisk,
    args: &Args,
    seed: u64,
) -> Outcome<Tally> {
    let mut power_sweep = PowerSweep { prepared, disk, args, tally: Tally::default() };
    let mut rng = dice::seeded(seed, &prepared.scenario.title());
    for mode in MOUNT_MODES {
        power_sweep.sweep_mode(mode, &mut rng)?;
    }
    Ok(power_sweep.tally)
}

/// Content of the disk just before a call.
struct DiskMoment {
    /// Number of the call; one more than the last if the command has ended.
    call: usize,
    /// Description of the call.
    call_text: String,
    diff: BlockDiff,
}

struct PowerSweep<'a> {
    prepared: &'a PreparedScenario<'a>,
    disk: &'a LoopDisk,
    args: &'a Args,
    tally: Tally,
}

impl PowerSweep<'_> {
    /// Runs the command once and judges each state of the disk.
    fn sweep_mode(&mut self, mode: &MountMode, rng: &mut Rng) -> Outcome<()> {
        let (prepared, disk) = (self.prepared, self.disk);
        disk.remount(mode.options)?;
        prepared.fixture.reset()?;
        disk.sync()?;
        let base = disk.read()?;
        let mut moments: Vec<DiskMoment> = Vec::new();
        let mut call = 0;
        let mut watcher = |_| {
            call += 1;
            if mode.commits {
                disk.commit_transaction()?;
            }
            record_moment(&mut moments, call, disk, &base)?;
            Ok(())
        };
        let (run, stderr) =
            prepared.fixture.run_watched(prepared.scenario.tested_args(), Plan::Watch, Some(&mut watcher))?;
        if run.code != prepared.scenario.tested_exit_code() {
            return fail(format!("{} ended with {}: {stderr}", prepared.scenario.title(), run.code));
        }
        let last = run.calls.len() + 1;
        if mode.commits {
            disk.commit_transaction()?;
        }
        record_moment(&mut moments, last, disk, &base)?;
        for moment in &mut moments {
            let call = run.calls.get(moment.call - 1);
            let call = call.map(|call| format!("{}: {} {}", call.process, call.name, call.subject));
            moment.call_text = call.unwrap_or_else(|| "its end".to_owned());
        }
        self.tally.points = self.tally.points.max(last);
        for moment in self.selected_moments(moments, rng) {
            disk.cut_power(&base, &moment.diff, mode.options)?;
            self.judge(mode, &moment, moment.call == last)?;
        }
        disk.cut_power(&base, &BlockDiff::default(), mode.options)
    }

    /// Returns the requested moments.
    fn selected_moments(&self, mut moments: Vec<DiskMoment>, rng: &mut Rng) -> Vec<DiskMoment> {
        if let Some(point) = self.args.point {
            moments.retain(|moment| moment.call == point);
        } else if self.args.short {
            // At the end the command has reported a result, so that moment is always included.
            let (sample, count) =
                (dice::sample(rng, moments.len(), SHORT_POINTS / MOUNT_MODES.len()), moments.len());
            let mut number = 0;
            moments.retain(|_| {
                number += 1;
                number == count || sample.contains(&number)
            });
        }
        moments
    }

    /// Judges the state that a computer finds after the cut. `has_ended` means that the command had ended.
    fn judge(&mut self, mode: &MountMode, moment: &DiskMoment, has_ended: bool) -> Outcome<()> {
        let prepared = self.prepared;
        self.tally.runs += 1;
        let mut faults = prepared.lost_faults("at once");
        self.save_copy("disturbed")?;
        faults.extend(prepared.run_recovery()?.1);
        self.save_copy("recovered")?;
        faults.extend(prepared.judge_state(has_ended, Tolerance::Unsynced)?);
        if faults.is_empty() {
            return Ok(());
        }
        self.tally.losses += usize::from(faults.iter().any(|fault| fault.starts_with("LOST")));
        let scenario = prepared.scenario.title();
        self.tally.violations.push(Violation {
            repeat_command: self.args.repeat_command(&scenario, 0, moment.call, None),
            call: prepared.fixture.normalized(moment.call_text.as_bytes()),
            disturbance: mode.name,
            point: moment.call,
            nested: None,
            scenario,
            faults,
        });
        Ok(())
    }

    /// Saves a copy outside of the file system when a single point was requested.
    fn save_copy(&self, name: &str) -> Outcome<()> {
        if self.args.point.is_none() {
            return Ok(());
        }
        let to = self.disk.sibling(name);
        crate::copy::remove(&to)?;
        // `copy` would hard-link git's objects.
        let status = Command::new("cp").arg("-a").arg(self.prepared.fixture.root()).arg(&to).status()?;
        if status.success() { Ok(()) } else { fail("nothing could be kept") }
    }
}

/// Saves the state of the disk, unless it equals the one before.
fn record_moment(moments: &mut Vec<DiskMoment>, call: usize, disk: &LoopDisk, base: &[u8]) -> Outcome<()> {
    let last = moments.last().map(|last| &last.diff);
    let diff = disk.diff_from(base, last.unwrap_or(&BlockDiff::default()))?;
    if last != Some(&diff) {
        moments.push(DiskMoment { call, call_text: String::new(), diff });
    }
    Ok(())
}
