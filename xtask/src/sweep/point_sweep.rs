//! Sweep over one scenario: every point, disturbed in every requested way, and the points of recovery within.

use std::collections::HashSet;

use super::Outcome;
use super::args::{Args, Mode};
use super::checkpoint::Checkpoint;
use super::fingerprint::{Fingerprint, KnownProcess, take_fingerprint};
use super::lost_contents::FoundInObjects;
use super::mutating_calls::Call;
use super::report::{Tally, Violation};
use super::scenario::PreparedScenario;
use super::trace::{Plan, TracedRun};
use super::verdict::{RECOVERY_COMMAND, Tolerance};
use fastrand::Rng;

use crate::dice;

/// Number of points of a scenario that a short sweep disturbs, and of those at which it also disturbs
/// recovery.
pub(super) const SHORT_POINTS: usize = 15;
const SHORT_NESTED_POINTS: usize = 4;

/// Name of a disturbance, and its plan for a point.
type Disturbance = (&'static str, fn(usize) -> Plan);

const KILL: &[Disturbance] = &[("killed", Plan::Kill)];
const ERRORS: &[Disturbance] = &[
    ("ENOSPC", |at| Plan::Fail { at, errno: libc::ENOSPC, lasting: false }),
    ("EIO", |at| Plan::Fail { at, errno: libc::EIO, lasting: false }),
    ("disk full from", |at| Plan::Fail { at, errno: libc::ENOSPC, lasting: true }),
    ("all fails from", |at| Plan::Fail { at, errno: libc::EIO, lasting: true }),
];
/// One of these per point, in turn.
const ONE_ERROR: &[Disturbance] = &[
    ("ENOSPC", |at| Plan::Fail { at, errno: libc::ENOSPC, lasting: false }),
    ("EIO", |at| Plan::Fail { at, errno: libc::EIO, lasting: false }),
    ("EACCES", |at| Plan::Fail { at, errno: libc::EACCES, lasting: false }),
];
const CHILDREN: &[Disturbance] = &[("child killed", Plan::KillChild)];
const SIGNALS: &[Disturbance] = &[
    ("SIGINT", |at| Plan::Signal { at, signal: libc::SIGINT }),
    ("SIGTERM", |at| Plan::Signal { at, signal: libc::SIGTERM }),
    ("SIGHUP", |at| Plan::Signal { at, signal: libc::SIGHUP }),
];

/// One share of a scenario's points: those equal to `part` modulo `parts`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    /// Number of the share.
    pub(super) part: usize,
    /// Number of shares.
    pub(super) parts: usize,
}

/// Sweeps over one share of a scenario.
pub(super) fn sweep(prepared: &PreparedScenario<'_>, args: &Args, seed: u64, share: Share) -> Outcome<Tally> {
    let mut sweep = Sweep {
        prepared,
        args,
        seed,
        tally: Tally::default(),
        rng: dice::seeded(seed, &prepared.scenario.title()),
        known_states: HashSet::new(),
        good_states: HashSet::new(),
        found_in_objects: FoundInObjects::default(),
    };
    if share.part == 0 {
        for fault in &prepared.faults {
            sweep.add_violation("not disturbed", 0, None, None, vec![fault.clone()]);
        }
    }
    prepared.fixture.reset()?;
    let (undisturbed, _) = prepared.fixture.run_traced(prepared.scenario.tested_args(), Plan::Watch)?;
    let is_point = |call: &&Call| args.mode() != Mode::Children || call.is_from_child;
    let last = undisturbed.calls.iter().filter(is_point).count();
    if share.part == 0 {
        sweep.tally.points = last;
    }
    if let Some(point) = args.point {
        let _ = sweep.disturb_point(point, true)?;
        return Ok(sweep.tally);
    }
    if args.short {
        let sample = dice::sample(&mut sweep.rng, last, SHORT_POINTS);
        let deep = dice::sample(&mut sweep.rng, sample.len(), SHORT_NESTED_POINTS);
        for (n, point) in sample.into_iter().enumerate().filter(|(n, _)| n % share.parts == share.part) {
            let _ = sweep.disturb_point(point, deep.contains(&(n + 1)))?;
        }
        return Ok(sweep.tally);
    }
    let mut point = share.part + 1;
    while sweep.disturb_point(point, true)? {
        point += share.parts;
    }
    Ok(sweep.tally)
}

struct Sweep<'a> {
    prepared: &'a PreparedScenario<'a>,
    args: &'a Args,
    seed: u64,
    tally: Tally,
    rng: Rng,
    /// States left by kills from which recovery has been checked.
    known_states: HashSet<Fingerprint>,
    /// States left by recoveries that were found correct.
    good_states: HashSet<Fingerprint>,
    /// Contents found in git's objects, for each state of git's files.
    found_in_objects: FoundInObjects,
}

impl Sweep<'_> {
    /// Disturbs one point in every way. Returns false if the command has no such point.
    fn disturb_point(&mut self, point: usize, deep: bool) -> Outcome<bool> {
        let disturbances = match self.args.mode() {
            Mode::Kill => KILL,
            Mode::Errors => ERRORS,
            Mode::OneError => {
                let turn = (point as u64 + self.seed % 3) % 3;
                &ONE_ERROR[usize::try_from(turn).unwrap_or_default()..][..1]
            }
            Mode::Signals => SIGNALS,
            Mode::Children => CHILDREN,
            // The module `power_sweep` covers this mode.
            Mode::Power => &[],
        };
        let mut reached = false;
        for (disturbance, plan) in disturbances {
            reached |= self.disturb_once(disturbance, plan(point), point, deep)?;
        }
        Ok(reached)
    }

    fn disturb_once(
        &mut self,
        disturbance: &'static str,
        plan: Plan,
        point: usize,
        deep: bool,
    ) -> Outcome<bool> {
        let prepared = self.prepared;
        prepared.fixture.reset()?;
        let (run, stderr) = prepared.fixture.run_traced(prepared.scenario.tested_args(), plan)?;
        let Some(call) = run.planned_call.clone() else {
            if run.code == 128 + libc::SIGKILL {
                self.add_violation(disturbance, point, None, None, vec!["it waited for ever".to_owned()]);
            }
            return Ok(false);
        };
        self.tally.runs += 1;
        let mut faults = prepared.lost_faults("at once");
        let killed = matches!(plan, Plan::Kill(_));
        if !killed {
            faults.extend(failure_fault(&run, prepared.scenario.tested_exit_code(), &stderr));
        }
        self.save_copy("disturbed")?;
        if let Some(nested) = self.args.nested {
            self.kill_recovery_at(point, nested)?;
            return Ok(true);
        }
        let (recovery, recovery_stderr, checkpoints) = if deep && self.args.kills_recovery_everywhere() {
            self.recover_with_checkpoints(run.pid)?
        } else {
            let (recovery, recovery_stderr) = prepared.fixture.run_traced(RECOVERY_COMMAND, Plan::Watch)?;
            (recovery, recovery_stderr, Vec::new())
        };
        if recovery.code != 0 {
            let message = prepared.fixture.normalized(recovery_stderr.as_bytes());
            let first = message.lines().next().unwrap_or_default();
            faults.push(format!("recovery ended with {}: {first}", recovery.code));
        }
        self.save_copy("recovered")?;
        if !killed && self.remove_git_lock(&call)? {
            // An operation that had to wait for the lock is finished only now.
            faults.extend(prepared.run_recovery()?.1);
        }
        let done = !killed && run.code == prepared.scenario.tested_exit_code();
        faults.extend(prepared.judge_state(done, Tolerance::Paths(&uncopied_paths(&stderr)))?);
        if done && faults.is_empty() && self.args.mode() == Mode::OneError {
            faults.extend(prepared.undo_faults()?);
        }
        if !killed && !faults.is_empty() {
            faults.push(format!("it had ended with {}", run.code));
        }
        self.add_violation(disturbance, point, None, Some(call), faults);
        if self.args.kills_recovery_everywhere() {
            self.resume_from_checkpoints(point, run.pid, &recovery, checkpoints)?;
        } else if killed && deep && !self.args.no_nested && self.args.point.is_none() {
            self.kill_some_recoveries(point, recovery.calls.len())?;
        }
        Ok(true)
    }

    /// Removes the lock that a git process left behind. If git cannot remove its own lock file, it reports
    /// nothing and succeeds. No other process can distinguish that lock from one of a running git, so the
    /// user has to remove it, as `git proq doctor` reports. Returns whether there was one.
    fn remove_git_lock(&self, call: &Call) -> Outcome<bool> {
        let lock = self.prepared.fixture.repo().join(&call.subject);
        let is_git_unlink = call.process.starts_with("git ") && call.name.starts_with("unlink");
        let is_left = is_git_unlink && lock.extension().is_some_and(|e| e == "lock") && lock.exists();
        if is_left {
            std::fs::remove_file(lock)?;
        }
        Ok(is_left)
    }

    /// Runs recovery and saves a checkpoint wherever it reaches a state that no kill has left before.
    /// `command` is the killed process.
    fn recover_with_checkpoints(&mut self, command: i32) -> Outcome<(TracedRun, String, Vec<Checkpoint>)> {
        let fixture = self.prepared.fixture;
        self.known_states.insert(take_fingerprint(fixture, &[KnownProcess::Command(command)])?);
        let (mut calls, mut checkpoints) = (0, Vec::new());
        let mut watcher = |recovery| {
            calls += 1;
            let processes = [KnownProcess::Command(command), KnownProcess::Recovery(recovery)];
            let now = take_fingerprint(fixture, &processes)?;
            if self.known_states.insert(now) {
                checkpoints.push(Checkpoint::save(fixture, calls, now, &processes)?);
            }
            Ok(())
        };
        let (run, stderr) = fixture.run_watched(RECOVERY_COMMAND, Plan::Watch, Some(&mut watcher))?;
        self.tally.nested += calls;
        self.tally.known += calls - checkpoints.len();
        Ok((run, stderr, checkpoints))
    }

    /// Continues from each checkpoint as from a recovery that was killed there.
    fn resume_from_checkpoints(
        &mut self,
        point: usize,
        command: i32,
        recovery: &TracedRun,
        checkpoints: Vec<Checkpoint>,
    ) -> Outcome<()> {
        let prepared = self.prepared;
        for checkpoint in checkpoints {
            let (at, before) = (checkpoint.call, checkpoint.fingerprint);
            checkpoint.restore(prepared.fixture)?;
            self.tally.runs += 1;
            let mut faults = prepared.lost_faults_at(before, &mut self.found_in_objects, "at once");
            let (again, recovery_faults) = prepared.run_recovery()?;
            faults.extend(recovery_faults);
            let processes = [
                KnownProcess::Command(command),
                KnownProcess::Recovery(recovery.pid),
                KnownProcess::Recovery(again),
            ];
            let after = take_fingerprint(prepared.fixture, &processes)?;
            if !self.good_states.contains(&after) {
                faults.extend(prepared.state_faults(Tolerance::NONE)?.0);
                if faults.is_empty() {
                    self.good_states.insert(after);
                }
            }
            self.add_violation(
                "recovery killed",
                point,
                Some(at),
                recovery.calls.get(at - 1).cloned(),
                faults,
            );
        }
        Ok(())
    }

    /// Kills recovery at the requested number of its own points; in a short sweep, at one.
    fn kill_some_recoveries(&mut self, point: usize, last: usize) -> Outcome<()> {
        self.tally.nested += last;
        for nested in dice::sample(&mut self.rng, last, self.args.some_nested.unwrap_or(1)) {
            let _ = self.kill_recovery_at(point, nested)?;
        }
        Ok(())
    }

    fn kill_recovery_at(&mut self, point: usize, nested: usize) -> Outcome<bool> {
        let prepared = self.prepared;
        prepared.fixture.reset()?;
        let _ = prepared.fixture.run_traced(prepared.scenario.tested_args(), Plan::Kill(point))?;
        let (run, _) = prepared.fixture.run_traced(RECOVERY_COMMAND, Plan::Kill(nested))?;
        let Some(call) = run.planned_call else { return Ok(false) };
        self.tally.runs += 1;
        let mut faults = prepared.lost_faults("at once");
        self.save_copy("disturbed")?;
        faults.extend(prepared.run_recovery()?.1);
        self.save_copy("recovered")?;
        faults.extend(prepared.state_faults(Tolerance::NONE)?.0);
        self.add_violation("recovery killed", point, Some(nested), Some(call), faults);
        Ok(true)
    }

    /// Saves a copy for inspection when a single run was requested.
    fn save_copy(&self, name: &str) -> Outcome<()> {
        if self.args.point.is_some() { self.prepared.fixture.save_copy(name) } else { Ok(()) }
    }

    fn add_violation(
        &mut self,
        disturbance: &'static str,
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
        let scenario = self.prepared.scenario.title();
        let at = call.map(|c| format!("{}: {} {}", c.process, c.name, c.subject)).unwrap_or_default();
        let at = self.prepared.fixture.normalized(at.as_bytes());
        let repeat = self.args.repeat_command(&scenario, self.seed, point, nested);
        self.tally.violations.push(Violation {
            scenario,
            disturbance,
            point,
            nested,
            call: at,
            faults,
            repeat_command: repeat,
        });
    }
}

/// Returns the paths that a command reported as not copied because they could not be read or written.
fn uncopied_paths(stderr: &str) -> Vec<String> {
    let named = |line: &str| Some(line.split_once("not copied: ")?.1.split_once(": ")?.0.to_owned());
    stderr.lines().filter_map(named).collect()
}

/// Checks that a failing command reports it, does not crash, and does not wait forever.
fn failure_fault(run: &TracedRun, expected_code: i32, stderr: &str) -> Option<String> {
    if run.code == 128 + libc::SIGKILL {
        return Some("it waited for ever".to_owned());
    }
    if run.code != expected_code && stderr.trim().is_empty() && !run.wrote_output {
        return Some(format!("it ended with {} without a word", run.code));
    }
    let crash = [70, 101, 134, 139].contains(&run.code) || stderr.contains("panicked at");
    crash.then(|| format!("it ended with {}: {}", run.code, stderr.lines().next().unwrap_or_default()))
}
