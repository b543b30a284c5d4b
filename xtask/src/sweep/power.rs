//! Owns the sweep over power cuts: `--power`. One run of a scenario's command on a file system of its own is looked at before each
//! of its calls that change something; each state of the disk is then what a computer comes up with after the power was cut.

use std::process::Command;

use super::args::Args;
use super::disk::{Disk, Shot};
use super::judge::Spared;
use super::points::SHORT;
use super::report::{Tally, Violation};
use super::scene::Stage;
use super::trace::Plan;
use super::{Outcome, fail};
use crate::dice::Dice;

/// A way in which ext4 is mounted and comes to end its transactions.
struct Way {
    name: &'static str,
    /// Options of the mount, after a comma.
    options: &'static str,
    /// Whether a transaction ends just before the cut, apart from those that a sync ends.
    commits: bool,
}

/// By default ext4 writes a file's content before a rename over another one, or after it was cut to nothing.
const WAYS: &[Way] = &[
    Way { name: "power cut", options: "", commits: false },
    Way { name: "power cut after a commit", options: "", commits: true },
    Way { name: "power cut, no heuristics", options: ",noauto_da_alloc", commits: false },
    Way { name: "power cut after a commit, no heuristics", options: ",noauto_da_alloc", commits: true },
];

/// Sweeps over a scenario that was made on `disk`.
pub(super) fn sweep(stage: &Stage<'_>, disk: &Disk, args: &Args, seed: u64) -> Outcome<Tally> {
    let mut cuts = Cuts { stage, disk, args, tally: Tally::default() };
    let mut dice = Dice::new(seed, &stage.scene.title());
    for way in WAYS {
        cuts.way(way, &mut dice)?;
    }
    Ok(cuts.tally)
}

/// What is on the disk when a call is about to be made.
struct Moment {
    /// The call's number; that of the last one and one more when the command has ended.
    call: usize,
    /// What the call is.
    at: String,
    shot: Shot,
}

struct Cuts<'a> {
    stage: &'a Stage<'a>,
    disk: &'a Disk,
    args: &'a Args,
    tally: Tally,
}

impl Cuts<'_> {
    /// Runs the command once and judges each state that the disk had.
    fn way(&mut self, way: &Way, dice: &mut Dice) -> Outcome<()> {
        let (stage, disk) = (self.stage, self.disk);
        disk.remount(way.options)?;
        stage.place.reset()?;
        disk.sync()?;
        let base = disk.read()?;
        let mut moments: Vec<Moment> = Vec::new();
        let mut call = 0;
        let mut watcher = |_| {
            call += 1;
            if way.commits {
                disk.commit()?;
            }
            note(&mut moments, call, disk, &base)?;
            Ok(())
        };
        let (run, complaints) = stage.place.watched(stage.scene.tested(), Plan::Watch, Some(&mut watcher))?;
        if run.code != stage.scene.tested_code() {
            return fail(format!("{} ended with {}: {complaints}", stage.scene.title(), run.code));
        }
        let last = run.calls.len() + 1;
        if way.commits {
            disk.commit()?;
        }
        note(&mut moments, last, disk, &base)?;
        for moment in &mut moments {
            let call = run.calls.get(moment.call - 1);
            let call = call.map(|call| format!("{}: {} {}", call.who, call.name, call.subject));
            moment.at = call.unwrap_or_else(|| "its end".to_owned());
        }
        self.tally.points = self.tally.points.max(last);
        for moment in self.chosen(moments, dice) {
            disk.cut(&base, &moment.shot, way.options)?;
            self.judge(way, &moment, moment.call == last)?;
        }
        disk.cut(&base, &Shot::default(), way.options)
    }

    /// The moments that are wanted.
    fn chosen(&self, mut moments: Vec<Moment>, dice: &mut Dice) -> Vec<Moment> {
        if let Some(point) = self.args.point {
            moments.retain(|moment| moment.call == point);
        } else if self.args.short {
            // The end is where the command has promised something.
            let (sample, count) = (dice.sample(moments.len(), SHORT / WAYS.len()), moments.len());
            let mut number = 0;
            moments.retain(|_| {
                number += 1;
                number == count || sample.contains(&number)
            });
        }
        moments
    }

    /// Judges what a computer comes up with: `is_over` when the command had ended.
    fn judge(&mut self, way: &Way, moment: &Moment, is_over: bool) -> Outcome<()> {
        let stage = self.stage;
        self.tally.runs += 1;
        let mut faults = stage.lost("at once");
        self.save("disturbed")?;
        faults.extend(stage.recover()?.1);
        self.save("recovered")?;
        faults.extend(stage.judge(is_over, Spared::Unsynced)?);
        if faults.is_empty() {
            return Ok(());
        }
        self.tally.losses += usize::from(faults.iter().any(|fault| fault.starts_with("LOST")));
        let scene = stage.scene.title();
        self.tally.violations.push(Violation {
            repeat: self.args.repeat(&scene, 0, moment.call, None),
            at: stage.place.plain(moment.at.as_bytes()),
            way: way.name,
            point: moment.call,
            nested: None,
            scene,
            faults,
        });
        Ok(())
    }

    /// Keeps a copy outside of the file system, when a single point was asked for.
    fn save(&self, name: &str) -> Outcome<()> {
        if self.args.point.is_none() {
            return Ok(());
        }
        let to = self.disk.beside(name);
        crate::copy::remove(&to)?;
        // Not by `copy`, whose objects are second names.
        let status = Command::new("cp").arg("-a").arg(self.stage.place.top()).arg(&to).status()?;
        if status.success() { Ok(()) } else { fail("nothing could be kept") }
    }
}

/// Keeps the state of the disk, unless the one before is the same.
fn note(moments: &mut Vec<Moment>, call: usize, disk: &Disk, base: &[u8]) -> Outcome<()> {
    let last = moments.last().map(|last| &last.shot);
    let shot = disk.shot(base, last.unwrap_or(&Shot::default()))?;
    if last != Some(&shot) {
        moments.push(Moment { call, at: String::new(), shot });
    }
    Ok(())
}
