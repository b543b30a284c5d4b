//! Crash sweep: `cargo xtask crash-sweep`.

pub(crate) mod args;
mod checkpoint;
mod crowd;
mod crowd_checks;
mod fingerprint;
pub(crate) mod fixture;
mod image;
mod index_cache;
mod index_stat;
mod loop_disk;
pub(crate) mod lost_contents;
mod mutating_calls;
mod new_lane_scenarios;
mod point_sweep;
mod power_sweep;
mod report;
pub(crate) mod rivals;
mod scenario;
mod scenarios;
pub(crate) mod start_state;
mod sys;
#[cfg(test)]
mod tests;
mod trace;
mod unusual_scenarios;
mod verdict;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::copy;
use args::{Args, Mode};
use fixture::Fixture;
use loop_disk::LoopDisk;
use point_sweep::{Share, sweep};
use report::{HEADER, Tally};
use scenario::{PreparedScenario, Scenario};

/// Error of the harness itself, which ends the run. A violation by git-proq is not an error.
pub(crate) type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Returns an error with this message.
pub(crate) fn fail<T>(message: impl Into<String>) -> Outcome<T> {
    Err(message.into().into())
}

/// Exit code of a sweep that cannot run here, as test harnesses use it.
const SKIPPED: u8 = 77;

/// Returns whether this system lets a process be traced by its parent.
pub(crate) fn can_trace() -> bool {
    trace::can_trace()
}

/// Runs the sweep.
pub(crate) fn main(args: &Args) -> ExitCode {
    if !args.list && args.crowd.is_none() && !trace::can_trace() {
        println!("SKIPPED: this system does not let a process be traced");
        return ExitCode::from(SKIPPED);
    }
    match run(args) {
        Ok(Some(true)) => ExitCode::SUCCESS,
        Ok(Some(false)) => ExitCode::FAILURE,
        Ok(None) => ExitCode::from(SKIPPED),
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::from(2)
        }
    }
}

/// Returns whether nothing was violated; none if the sweep cannot run here.
fn run(args: &Args) -> Outcome<Option<bool>> {
    let scenarios = selected_scenarios(args)?;
    if args.list {
        for scene in &scenarios {
            println!("{:<26} git proq {}", scene.title(), scene.tested_args().join(" "));
            for state in if scene.tests_undo { &[] } else { scene.allowed_states } {
                println!("{:<26}   may also end: {}", "", state.reason);
            }
        }
        return Ok(Some(true));
    }
    if args.mode() == Mode::Power && !loop_disk::is_supported() {
        println!("SKIPPED: this system does not let this process make and mount a file system");
        return Ok(None);
    }
    let proq = crate::run_env::build_program(args.proq.as_deref(), false)?;
    // The next sweep removes what other sweeps left; the user inspects these folders.
    let keeps_folder = args.point.is_some() || args.crowd.is_some();
    let folder =
        crate::run_env::create_folder(if keeps_folder { "proq-look-" } else { SWEEP_PREFIX }, SWEEP_PREFIX)?;
    let seed = args.seed.unwrap_or_else(|| u64::from(std::process::id()) * 1000 + now_millis() % 1000);
    println!("seed {seed}");
    let good = match args.crowd {
        Some(_) => crowd::run_crowd(&folder, &proq, seed, args),
        None => run_all(args, &scenarios, &proq, &folder, seed),
    };
    if args.point.is_some() || (args.crowd.is_some() && !matches!(good, Ok(true))) {
        println!("kept: {}", folder.display());
    } else {
        copy::remove(&folder)?;
    }
    good.map(Some)
}

/// Returns the named scenarios; all if none is named.
fn selected_scenarios(args: &Args) -> Outcome<Vec<Scenario>> {
    let all = scenarios::all_scenarios();
    for name in &args.scenario {
        if !all.iter().any(|s| s.title() == *name) {
            return fail(format!("there is no scenario '{name}'; see --list"));
        }
    }
    let named = |s: &Scenario| args.scenario.is_empty() || args.scenario.contains(&s.title());
    Ok(all.into_iter().filter(named).collect())
}

/// Prefix of a sweep's folder; the process number follows.
const SWEEP_PREFIX: &str = "proq-sweep-";

fn now_millis() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(0)
}

/// State shared by all workers.
struct SharedWork<'a> {
    args: &'a Args,
    seed: u64,
    scenarios: &'a [Scenario],
    todo: Mutex<Vec<(usize, Share)>>,
    done: Mutex<BTreeMap<usize, (usize, Tally)>>,
}

/// Runs all scenarios with the requested number of workers, and prints the results.
fn run_all(args: &Args, scenarios: &[Scenario], proq: &Path, folder: &Path, seed: u64) -> Outcome<bool> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = if args.point.is_some() { 1 } else { args.jobs.unwrap_or(cores).max(1) };
    // Short scenarios are not worth preparing twice; and only the worker that reached a state knows it.
    let is_undivided = args.short || args.kills_recovery_everywhere() || args.mode() == Mode::Power;
    let parts = if is_undivided { 1 } else { jobs };
    let mut todo: Vec<(usize, Share)> =
        (0..scenarios.len()).flat_map(|n| (0..parts).map(move |part| (n, Share { part, parts }))).collect();
    todo.reverse();
    let work = SharedWork { args, seed, scenarios, todo: Mutex::new(todo), done: Mutex::default() };
    let begin = Instant::now();
    println!("{HEADER}");
    let failures: Vec<String> = std::thread::scope(|scope| {
        let work = &work;
        let worker = |n: usize| {
            let folder = folder.join(format!("w{n}"));
            scope.spawn(move || {
                let failed = work.work(&folder, proq, parts).err()?;
                // Nothing that is counted after the failure would be trusted.
                work.todo.lock().unwrap_or_else(PoisonError::into_inner).clear();
                Some(failed.to_string())
            })
        };
        let workers: Vec<_> = (0..jobs).map(worker).collect();
        workers.into_iter().filter_map(|w| w.join().unwrap_or(Some("a worker panicked".to_owned()))).collect()
    });
    if let Some(failure) = failures.first() {
        return fail(failure);
    }
    let mut sum = Tally::default();
    for (_, tally) in work.done.into_inner().unwrap_or_else(PoisonError::into_inner).into_values() {
        sum.add(tally);
    }
    let wall = begin.elapsed().as_secs_f64();
    println!("{}", sum.row("all"));
    println!(
        "{} scenarios, {} points, {} of recovery ({} known), {} runs in {wall:.0} s: {} losses, {} violations (seed {seed})",
        scenarios.len(),
        sum.points,
        sum.nested,
        sum.known,
        sum.runs,
        sum.losses,
        sum.violations.len()
    );
    Ok(sum.violations.is_empty())
}

impl SharedWork<'_> {
    /// Takes one share after the other.
    fn work(&self, folder: &Path, proq: &Path, parts: usize) -> Outcome<()> {
        loop {
            let next = self.todo.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some((n, share)) = next else { return Ok(()) };
            let begin = Instant::now();
            let scenario = &self.scenarios[n];
            let disk = if self.args.mode() == Mode::Power { Some(LoopDisk::new(folder)?) } else { None };
            let folder = disk.as_ref().map_or(folder.to_owned(), |disk| disk.files().join("w"));
            let mut fixture = Fixture::new(&folder, proq)?;
            if disk.is_some() {
                fixture = fixture.with_restarted_machine();
            }
            let prepared = PreparedScenario::new(&fixture, scenario)
                .map_err(|e| format!("{}: {e}", scenario.title()))?;
            let mut tally = match &disk {
                Some(disk) => power_sweep::sweep(&prepared, disk, self.args, self.seed)?,
                None => sweep(&prepared, self.args, self.seed, share)?,
            };
            tally.time = begin.elapsed();
            let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
            let (shares, sum) = done.entry(n).or_default();
            *shares += 1;
            sum.add(tally);
            if *shares == parts {
                println!("{}", sum.row(&scenario.title()));
                print!("{}", sum.violation_lines());
            }
        }
    }
}
