//! Owns the sweep over one scenario: every point, disturbed in every way asked for, and the points of recovery within.

use std::collections::HashSet;

use super::Outcome;
use super::args::{Args, Mode};
use super::calls::Call;
use super::judge::{RECOVER, Spared};
use super::precious::Reached;
use super::report::{Tally, Violation};
use super::scene::Stage;
use super::state::{Left, State, state};
use super::still::Still;
use super::trace::{Plan, Run};
use crate::dice::Dice;

/// How many points of a scenario a short sweep disturbs, and of how many of them recovery as well.
pub(super) const SHORT: usize = 15;
const SHORT_NESTED: usize = 4;

/// A way to disturb.
type Way = (&'static str, fn(usize) -> Plan);

const KILL: &[Way] = &[("killed", Plan::Kill)];
const ERRORS: &[Way] = &[
    ("ENOSPC", |at| Plan::Fail { at, errno: libc::ENOSPC, lasting: false }),
    ("EIO", |at| Plan::Fail { at, errno: libc::EIO, lasting: false }),
    ("disk full from", |at| Plan::Fail { at, errno: libc::ENOSPC, lasting: true }),
    ("all fails from", |at| Plan::Fail { at, errno: libc::EIO, lasting: true }),
];
/// One of them at each point, in turn.
const ONE_ERROR: &[Way] = &[
    ("ENOSPC", |at| Plan::Fail { at, errno: libc::ENOSPC, lasting: false }),
    ("EIO", |at| Plan::Fail { at, errno: libc::EIO, lasting: false }),
    ("EACCES", |at| Plan::Fail { at, errno: libc::EACCES, lasting: false }),
];
const CHILDREN: &[Way] = &[("child killed", Plan::KillChild)];
const SIGNALS: &[Way] = &[
    ("SIGINT", |at| Plan::Signal { at, signal: libc::SIGINT }),
    ("SIGTERM", |at| Plan::Signal { at, signal: libc::SIGTERM }),
    ("SIGHUP", |at| Plan::Signal { at, signal: libc::SIGHUP }),
];

/// One share of a scenario's points: those that are `part` modulo `parts`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    /// Which.
    pub(super) part: usize,
    /// Of how many.
    pub(super) parts: usize,
}

/// Sweeps over one share of a scenario.
pub(super) fn sweep(stage: &Stage<'_>, args: &Args, seed: u64, share: Share) -> Outcome<Tally> {
    let mut sweep = Sweep {
        stage,
        args,
        seed,
        tally: Tally::default(),
        dice: Dice::new(seed, &stage.scene.title()),
        known: HashSet::new(),
        good: HashSet::new(),
        reached: Reached::default(),
    };
    if share.part == 0 {
        for fault in &stage.faults {
            sweep.violation("not disturbed", 0, None, None, vec![fault.clone()]);
        }
    }
    stage.place.reset()?;
    let (watched, _) = stage.place.traced(stage.scene.tested(), Plan::Watch)?;
    let is_point = |call: &&Call| args.mode() != Mode::Children || call.of_child;
    let last = watched.calls.iter().filter(is_point).count();
    if share.part == 0 {
        sweep.tally.points = last;
    }
    if let Some(point) = args.point {
        let _ = sweep.point(point, true)?;
        return Ok(sweep.tally);
    }
    if args.short {
        let sample = sweep.dice.sample(last, SHORT);
        let deep = sweep.dice.sample(sample.len(), SHORT_NESTED);
        for (n, point) in sample.into_iter().enumerate().filter(|(n, _)| n % share.parts == share.part) {
            let _ = sweep.point(point, deep.contains(&(n + 1)))?;
        }
        return Ok(sweep.tally);
    }
    let mut point = share.part + 1;
    while sweep.point(point, true)? {
        point += share.parts;
    }
    Ok(sweep.tally)
}

struct Sweep<'a> {
    stage: &'a Stage<'a>,
    args: &'a Args,
    seed: u64,
    tally: Tally,
    dice: Dice,
    /// What kills have left that recovery has been judged from.
    known: HashSet<State>,
    /// What recoveries have left that was judged to be good.
    good: HashSet<State>,
    /// What was found in git's objects where git's files were the same.
    reached: Reached,
}

impl Sweep<'_> {
    /// Disturbs one point in every way; false when the command has no such point.
    fn point(&mut self, point: usize, deep: bool) -> Outcome<bool> {
        let ways = match self.args.mode() {
            Mode::Kill => KILL,
            Mode::Errors => ERRORS,
            Mode::OneError => {
                let turn = (point as u64 + self.seed % 3) % 3;
                &ONE_ERROR[usize::try_from(turn).unwrap_or_default()..][..1]
            }
            Mode::Signals => SIGNALS,
            Mode::Children => CHILDREN,
            // That is swept over by `power`.
            Mode::Power => &[],
        };
        let mut reached = false;
        for (way, plan) in ways {
            reached |= self.once(way, plan(point), point, deep)?;
        }
        Ok(reached)
    }

    fn once(&mut self, way: &'static str, plan: Plan, point: usize, deep: bool) -> Outcome<bool> {
        let stage = self.stage;
        stage.place.reset()?;
        let (run, complaints) = stage.place.traced(stage.scene.tested(), plan)?;
        let Some(call) = run.hit.clone() else {
            if run.code == 128 + libc::SIGKILL {
                self.violation(way, point, None, None, vec!["it waited for ever".to_owned()]);
            }
            return Ok(false);
        };
        self.tally.runs += 1;
        let mut faults = stage.lost("at once");
        let killed = matches!(plan, Plan::Kill(_));
        if !killed {
            faults.extend(mistake(&run, stage.scene.tested_code(), &complaints));
        }
        self.save("disturbed")?;
        if let Some(nested) = self.args.nested {
            self.nested(point, nested)?;
            return Ok(true);
        }
        let (recovery, trouble, stills) = if deep && self.args.every_nested() {
            self.watched_recovery(run.pid)?
        } else {
            let (recovery, trouble) = stage.place.traced(RECOVER, Plan::Watch)?;
            (recovery, trouble, Vec::new())
        };
        if recovery.code != 0 {
            let complaint = stage.place.plain(trouble.as_bytes());
            let first = complaint.lines().next().unwrap_or_default();
            faults.push(format!("recovery ended with {}: {first}", recovery.code));
        }
        self.save("recovered")?;
        if !killed {
            self.remove_gits_lock(&call)?;
        }
        let done = !killed && run.code == stage.scene.tested_code();
        faults.extend(stage.judge(done, Spared::Paths(&left_out(&complaints)))?);
        if done && faults.is_empty() && self.args.mode() == Mode::OneError {
            faults.extend(stage.undone()?);
        }
        if !killed && !faults.is_empty() {
            faults.push(format!("it had ended with {}", run.code));
        }
        self.violation(way, point, None, Some(call), faults);
        if self.args.every_nested() {
            self.go_on_from(point, run.pid, &recovery, stills)?;
        } else if killed && deep && !self.args.no_nested && self.args.point.is_none() {
            self.some_points(point, recovery.calls.len())?;
        }
        Ok(true)
    }

    /// A git that cannot remove its own lock file says nothing and ends well. Nobody else can tell that lock from one of a
    /// git that is at work, so it is for a person to remove, as `git proq doctor` says.
    fn remove_gits_lock(&self, call: &Call) -> Outcome<()> {
        let lock = self.stage.place.repo().join(&call.subject);
        let its_own = call.who.starts_with("git ") && call.name.starts_with("unlink");
        if its_own && lock.extension().is_some_and(|e| e == "lock") && lock.exists() {
            std::fs::remove_file(lock)?;
        }
        Ok(())
    }

    /// Recovers, and takes a still wherever it comes to something that no kill has left before. `command` is the process
    /// that was killed.
    fn watched_recovery(&mut self, command: i32) -> Outcome<(Run, String, Vec<Still>)> {
        let place = self.stage.place;
        self.known.insert(state(place, &[Left::Command(command)])?);
        let (mut calls, mut stills) = (0, Vec::new());
        let mut watcher = |recovery| {
            calls += 1;
            let left = [Left::Command(command), Left::Recovery(recovery)];
            let now = state(place, &left)?;
            if self.known.insert(now) {
                stills.push(Still::take(place, calls, now, &left)?);
            }
            Ok(())
        };
        let (run, complaints) = place.watched(RECOVER, Plan::Watch, Some(&mut watcher))?;
        self.tally.nested += calls;
        self.tally.known += calls - stills.len();
        Ok((run, complaints, stills))
    }

    /// Goes on from each still as from a recovery that was killed there.
    fn go_on_from(&mut self, point: usize, command: i32, recovery: &Run, stills: Vec<Still>) -> Outcome<()> {
        let stage = self.stage;
        for still in stills {
            let (at, before) = (still.call, still.state);
            still.put(stage.place)?;
            self.tally.runs += 1;
            let mut faults = stage.lost_from(before, &mut self.reached, "at once");
            let (again, complaints) = stage.recover()?;
            faults.extend(complaints);
            let left = [Left::Command(command), Left::Recovery(recovery.pid), Left::Recovery(again)];
            let after = state(stage.place, &left)?;
            if !self.good.contains(&after) {
                faults.extend(stage.state(Spared::NOTHING)?.0);
                if faults.is_empty() {
                    self.good.insert(after);
                }
            }
            self.violation("recovery killed", point, Some(at), recovery.calls.get(at - 1).cloned(), faults);
        }
        Ok(())
    }

    /// Kills recovery at as many of its own points as were asked for; in a short sweep, at one.
    fn some_points(&mut self, point: usize, last: usize) -> Outcome<()> {
        self.tally.nested += last;
        for nested in self.dice.sample(last, self.args.some_nested.unwrap_or(1)) {
            let _ = self.nested(point, nested)?;
        }
        Ok(())
    }

    fn nested(&mut self, point: usize, nested: usize) -> Outcome<bool> {
        let stage = self.stage;
        stage.place.reset()?;
        let _ = stage.place.traced(stage.scene.tested(), Plan::Kill(point))?;
        let (run, _) = stage.place.traced(RECOVER, Plan::Kill(nested))?;
        let Some(call) = run.hit else { return Ok(false) };
        self.tally.runs += 1;
        let mut faults = stage.lost("at once");
        self.save("disturbed")?;
        faults.extend(stage.recover()?.1);
        self.save("recovered")?;
        faults.extend(stage.state(Spared::NOTHING)?.0);
        self.violation("recovery killed", point, Some(nested), Some(call), faults);
        Ok(true)
    }

    /// Keeps a copy for a look, when a single run was asked for.
    fn save(&self, name: &str) -> Outcome<()> {
        if self.args.point.is_some() { self.stage.place.save(name) } else { Ok(()) }
    }

    fn violation(
        &mut self,
        way: &'static str,
        point: usize,
        nested: Option<usize>,
        call: Option<Call>,
        faults: Vec<String>,
    ) {
        if faults.is_empty() {
            return;
        }
        if faults.iter().any(|f| f.starts_with("LOST")) {
            self.tally.losses += 1;
        }
        let scene = self.stage.scene.title();
        let at = call.map(|c| format!("{}: {} {}", c.who, c.name, c.subject)).unwrap_or_default();
        let at = self.stage.place.plain(at.as_bytes());
        let repeat = self.args.repeat(&scene, self.seed, point, nested);
        self.tally.violations.push(Violation { scene, way, point, nested, at, faults, repeat });
    }
}

/// What a command said that it did not copy, since it could not be read or written.
fn left_out(complaints: &str) -> Vec<String> {
    let named = |line: &str| Some(line.split_once("not copied: ")?.1.split_once(": ")?.0.to_owned());
    complaints.lines().filter_map(named).collect()
}

/// A command that fails says so in its own words; it does not crash, and does not wait for ever.
fn mistake(run: &Run, well: i32, complaints: &str) -> Option<String> {
    if run.code == 128 + libc::SIGKILL {
        return Some("it waited for ever".to_owned());
    }
    if run.code != well && complaints.trim().is_empty() && !run.has_answered {
        return Some(format!("it ended with {} without a word", run.code));
    }
    let crash = [70, 101, 134, 139].contains(&run.code) || complaints.contains("panicked at");
    crash.then(|| format!("it ended with {}: {}", run.code, complaints.lines().next().unwrap_or_default()))
}
