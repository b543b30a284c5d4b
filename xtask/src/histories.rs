//! `cargo xtask histories`: many random histories, run by parallel workers and compared with the model.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::copy;
use crate::history::{CommandCounts, Outcome, TestBench, generate_history, run_history, shrink};

/// Play random histories against a model
///
/// A history is a row of steps in a random order: files are edited, staged and committed in the main checkout and in
/// lanes, lanes are made, previewed, left, landed, discarded, cleaned up, and all of that is undone and done again, with
/// plain git by hand in between. A model in memory says what must come of each step. Ends with 1 when it differs.
#[derive(Debug, Clone, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// How many histories
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    count: usize,
    /// Chooses them; printed by every run
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Only this one of them
    #[arg(long, value_name = "N", requires = "seed")]
    only: Option<usize>,
    /// How many steps each has
    #[arg(long, value_name = "N", default_value_t = 12)]
    length: usize,
    /// How many at once; as many as there are processors by default
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Stop after so many that differ
    #[arg(long, value_name = "N", default_value_t = 10)]
    most: usize,
    /// The program; by default it is built here first
    #[arg(long, value_name = "PATH")]
    proq: Option<PathBuf>,
}

/// Runs the histories and returns the exit code.
pub(crate) fn main(args: &Args) -> ExitCode {
    match run_histories(args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::from(2)
        }
    }
}

/// Name prefix of a run's folder; the process id follows.
const RUN_FOLDER_PREFIX: &str = "proq-histories-";

struct HistoriesRun<'a> {
    args: &'a Args,
    seed: u64,
    proq: PathBuf,
    next: AtomicUsize,
    finished: AtomicUsize,
    differ: AtomicUsize,
    counts: Mutex<CommandCounts>,
}

fn run_histories(args: &Args) -> Outcome<bool> {
    let proq = crate::run_env::build_program(args.proq.as_deref(), true)?;
    let seed = args.seed.unwrap_or_else(time_seed);
    println!("seed {seed}");
    let folder = crate::run_env::create_folder(RUN_FOLDER_PREFIX, RUN_FOLDER_PREFIX)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = if args.only.is_some() { 1 } else { args.jobs.unwrap_or(cores).max(1) };
    let run = HistoriesRun {
        args,
        seed,
        proq,
        next: AtomicUsize::new(0),
        finished: AtomicUsize::new(0),
        differ: AtomicUsize::new(0),
        counts: Mutex::default(),
    };
    let started = Instant::now();
    let failures: Vec<String> = std::thread::scope(|scope| {
        let run = &run;
        let worker = |n: usize| {
            let folder = folder.join(format!("w{n}"));
            scope.spawn(move || run.run_worker(&folder).err().map(|e| e.to_string()))
        };
        let workers: Vec<_> = (0..jobs).map(worker).collect();
        workers.into_iter().filter_map(|w| w.join().unwrap_or(Some("a worker panicked".to_owned()))).collect()
    });
    copy::remove(&folder)?;
    if let Some(failure) = failures.into_iter().next() {
        return Err(failure.into());
    }
    let tally = run.counts.into_inner().unwrap_or_else(PoisonError::into_inner);
    for (command, [done, refused]) in tally {
        println!("  {command:<16} {done:>8} done {refused:>8} refused");
    }
    let differ = run.differ.into_inner();
    let (done, wall) = (run.finished.into_inner(), started.elapsed().as_secs_f64());
    println!("{done} histories of {} steps in {wall:.0} s: {differ} differ (seed {seed})", args.length);
    Ok(differ == 0)
}

fn time_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    now.as_secs() * 1000 + u64::from(now.subsec_millis())
}

impl HistoriesRun<'_> {
    fn run_worker(&self, folder: &Path) -> Outcome<()> {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut bench = TestBench::new(folder, &self.proq, &path)?;
        loop {
            let n = self.next.fetch_add(1, Ordering::Relaxed);
            let number = self.args.only.unwrap_or(n);
            let end = if self.args.only.is_some() { 1 } else { self.args.count };
            if n >= end || self.differ.load(Ordering::Relaxed) >= self.args.most {
                self.add_counts(bench.command_counts());
                return Ok(());
            }
            self.play_history(&mut bench, number).map_err(|e| format!("history {number}: {e}"))?;
            let done = self.finished.fetch_add(1, Ordering::Relaxed) + 1;
            if done.is_multiple_of(500) {
                println!("{done} done");
            }
        }
    }

    fn add_counts(&self, tally: CommandCounts) {
        let mut total = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        for (command, [done, refused]) in tally {
            let both = total.entry(command).or_default();
            both[0] += done;
            both[1] += refused;
        }
    }

    fn play_history(&self, bench: &mut TestBench, number: usize) -> Outcome<()> {
        let steps = generate_history(self.seed, number, self.args.length);
        let Some(fault) = run_history(bench, &steps)? else { return Ok(()) };
        self.differ.fetch_add(1, Ordering::Relaxed);
        let (steps, fault) = shrink(bench, &steps, fault)?;
        let mut text = format!("history {number} differs:\n");
        for step in &steps {
            text.push_str(&format!("  {step}\n"));
        }
        println!(
            "{text}  => {}\n  again: cargo xtask histories --seed {} --only {number} --length {}\n",
            fault.text, self.seed, self.args.length
        );
        Ok(())
    }
}
