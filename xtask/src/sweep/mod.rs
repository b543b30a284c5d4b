//! Owns the crash sweep: `cargo xtask crash-sweep`.

pub(crate) mod args;
mod calls;
mod crowd;
mod crowd_model;
mod disk;
mod fresh;
mod image;
mod judge;
mod listed;
mod odd;
pub(crate) mod place;
mod points;
mod power;
pub(crate) mod precious;
mod report;
pub(crate) mod rivals;
mod scene;
pub(crate) mod start;
mod stat;
mod state;
mod still;
mod sys;
mod table;
#[cfg(test)]
mod tests;
mod trace;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::copy;
use args::{Args, Mode};
use disk::Disk;
use place::Place;
use points::{Share, sweep};
use report::{HEADER, Tally};
use scene::{Scene, Stage};

/// What can go wrong in the harness itself ends it; what it looks for is not an error of this kind.
pub(crate) type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// An error in words.
pub(crate) fn fail<T>(what: impl Into<String>) -> Outcome<T> {
    Err(what.into().into())
}

/// The exit code of a sweep that cannot be run here, as test harnesses have it.
const SKIPPED: u8 = 77;

/// Whether this system lets a process be traced by its parent.
pub(crate) fn can_trace() -> bool {
    trace::is_possible()
}

/// Runs the sweep.
pub(crate) fn main(args: &Args) -> ExitCode {
    if !args.list && args.crowd.is_none() && !trace::is_possible() {
        println!("SKIPPED: this system does not let a process be traced");
        return ExitCode::from(SKIPPED);
    }
    match start(args) {
        Ok(Some(true)) => ExitCode::SUCCESS,
        Ok(Some(false)) => ExitCode::FAILURE,
        Ok(None) => ExitCode::from(SKIPPED),
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::from(2)
        }
    }
}

/// Whether nothing was violated; none when the sweep cannot be run here.
fn start(args: &Args) -> Outcome<Option<bool>> {
    let scenes = chosen(args)?;
    if args.list {
        for scene in &scenes {
            println!("{:<26} git proq {}", scene.title(), scene.tested().join(" "));
            for state in if scene.undone { &[] } else { scene.also } {
                println!("{:<26}   may also end: {}", "", state.why);
            }
        }
        return Ok(Some(true));
    }
    if args.mode() == Mode::Power && !disk::is_possible() {
        println!("SKIPPED: this system does not let this process make and mount a file system");
        return Ok(None);
    }
    let proq = crate::place::program(args.proq.as_deref(), false)?;
    // The next sweep takes away what was left of others; a person is to look at this.
    let is_looked_at = args.point.is_some() || args.crowd.is_some();
    let folder = crate::place::folder(if is_looked_at { "proq-look-" } else { SWEPT }, SWEPT)?;
    let seed = args.seed.unwrap_or_else(|| u64::from(std::process::id()) * 1000 + now_millis() % 1000);
    println!("seed {seed}");
    let good = match args.crowd {
        Some(_) => crowd::crowd(&folder, &proq, seed, args),
        None => all(args, &scenes, &proq, &folder, seed),
    };
    if args.point.is_some() || (args.crowd.is_some() && !matches!(good, Ok(true))) {
        println!("kept: {}", folder.display());
    } else {
        copy::remove(&folder)?;
    }
    good.map(Some)
}

/// The scenarios that were named; all without a name.
fn chosen(args: &Args) -> Outcome<Vec<Scene>> {
    let all = table::all();
    for name in &args.scenario {
        if !all.iter().any(|s| s.title() == *name) {
            return fail(format!("there is no scenario '{name}'; see --list"));
        }
    }
    let named = |s: &Scene| args.scenario.is_empty() || args.scenario.contains(&s.title());
    Ok(all.into_iter().filter(named).collect())
}

/// How the folder of a sweep is called; the number of its process follows.
const SWEPT: &str = "proq-sweep-";

fn now_millis() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(0)
}

/// What all workers share.
struct Work<'a> {
    args: &'a Args,
    seed: u64,
    scenes: &'a [Scene],
    todo: Mutex<Vec<(usize, Share)>>,
    done: Mutex<BTreeMap<usize, (usize, Tally)>>,
}

/// Runs all scenarios, by as many workers as wanted, and tells what came out.
fn all(args: &Args, scenes: &[Scene], proq: &Path, folder: &Path, seed: u64) -> Outcome<bool> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = if args.point.is_some() { 1 } else { args.jobs.unwrap_or(cores).max(1) };
    // Short scenarios are not worth making twice; and which states are known is only known where they were met.
    let whole = args.short || args.every_nested() || args.mode() == Mode::Power;
    let parts = if whole { 1 } else { jobs };
    let mut todo: Vec<(usize, Share)> =
        (0..scenes.len()).flat_map(|n| (0..parts).map(move |part| (n, Share { part, parts }))).collect();
    todo.reverse();
    let work = Work { args, seed, scenes, todo: Mutex::new(todo), done: Mutex::default() };
    let begin = Instant::now();
    println!("{HEADER}");
    let failures: Vec<String> = std::thread::scope(|scope| {
        let work = &work;
        let worker = |n: usize| {
            let folder = folder.join(format!("w{n}"));
            scope.spawn(move || {
                let failed = work.work(&folder, proq, parts).err()?;
                // Nothing that is counted after it would be believed.
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
        scenes.len(),
        sum.points,
        sum.nested,
        sum.known,
        sum.runs,
        sum.losses,
        sum.violations.len()
    );
    Ok(sum.violations.is_empty())
}

impl Work<'_> {
    /// Takes one share after the other.
    fn work(&self, folder: &Path, proq: &Path, parts: usize) -> Outcome<()> {
        loop {
            let next = self.todo.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some((n, share)) = next else { return Ok(()) };
            let begin = Instant::now();
            let scene = &self.scenes[n];
            let disk = if self.args.mode() == Mode::Power { Some(Disk::new(folder)?) } else { None };
            let folder = disk.as_ref().map_or(folder.to_owned(), |disk| disk.files().join("w"));
            let mut place = Place::new(&folder, proq)?;
            if disk.is_some() {
                place = place.on_a_machine_that_restarts();
            }
            let stage = Stage::new(&place, scene).map_err(|e| format!("{}: {e}", scene.title()))?;
            let mut tally = match &disk {
                Some(disk) => power::sweep(&stage, disk, self.args, self.seed)?,
                None => sweep(&stage, self.args, self.seed, share)?,
            };
            tally.seconds = begin.elapsed().as_secs_f64();
            let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
            let (shares, sum) = done.entry(n).or_default();
            *shares += 1;
            sum.add(tally);
            if *shares == parts {
                println!("{}", sum.row(&scene.title()));
                print!("{}", sum.lines());
            }
        }
    }
}
