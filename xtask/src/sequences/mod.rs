//! `cargo xtask states`: random checkout states, each taken through one sequence of commands by many workers.

pub(crate) mod args;
mod normalize;
mod oracle;
mod runner;
mod shrink;
mod steps;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::copy;
use crate::states::{Deck, PathState};
use crate::sweep::fixture::Fixture;
use crate::sweep::{Outcome, fail};
use args::Args;
use runner::{run_case, shell_script};
use shrink::shrink;
use steps::{Case, Disturbance, NAMES};

/// Prefix of a run's folder; the process number follows.
const FOLDER_PREFIX: &str = "proq-states-";

/// Runs the task.
pub(crate) fn main(args: &Args) -> ExitCode {
    match run(args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::from(2)
        }
    }
}

/// Counts of one sequence.
#[derive(Debug, Default)]
struct Tally {
    states: usize,
    refused: usize,
    locked: usize,
    killed: usize,
    failed: usize,
    visited: BTreeSet<PathState>,
}

/// State shared by all workers.
struct SharedWork<'a> {
    args: &'a Args,
    seed: u64,
    deck: Deck,
    names: Vec<&'static str>,
    proq: PathBuf,
    next: AtomicUsize,
    failed: AtomicUsize,
    tally: Mutex<BTreeMap<&'static str, Tally>>,
    fault_kinds: Mutex<BTreeMap<String, usize>>,
}

/// Runs all cases. Returns whether none failed and every combination was visited.
fn run(args: &Args) -> Outcome<bool> {
    let names = selected_sequences(args)?;
    let proq = crate::run_env::build_program(args.proq.as_deref(), false)?;
    let seed = args.seed.unwrap_or_else(|| u64::from(std::process::id()));
    println!("seed {seed}");
    let folder = crate::run_env::create_folder(FOLDER_PREFIX, FOLDER_PREFIX)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // Half of the cases wait three seconds for a lock that is not released.
    let jobs = if args.only.is_some() { 1 } else { args.jobs.unwrap_or(5 * cores).max(1) };
    let work = SharedWork {
        args,
        seed,
        deck: Deck::new(seed),
        names,
        proq,
        next: AtomicUsize::new(0),
        failed: AtomicUsize::new(0),
        tally: Mutex::default(),
        fault_kinds: Mutex::default(),
    };
    let begin = Instant::now();
    let failures: Vec<String> = std::thread::scope(|scope| {
        let work = &work;
        let worker = |n: usize| {
            let folder = folder.join(format!("w{n}"));
            scope.spawn(move || work.work(&folder).err().map(|e| e.to_string()))
        };
        let workers: Vec<_> = (0..jobs).map(worker).collect();
        workers.into_iter().filter_map(|w| w.join().unwrap_or(Some("a worker panicked".to_owned()))).collect()
    });
    if args.only.is_some() {
        println!("kept: {}", folder.display());
    } else {
        copy::remove(&folder)?;
    }
    if let Some(failure) = failures.into_iter().next() {
        return fail(failure);
    }
    Ok(work.report(begin.elapsed()))
}

fn selected_sequences(args: &Args) -> Outcome<Vec<&'static str>> {
    let mut names = Vec::new();
    for wanted in &args.sequence {
        match NAMES.iter().find(|name| *name == wanted) {
            Some(name) => names.push(*name),
            None => return fail(format!("there is no sequence '{wanted}': {}", NAMES.join(", "))),
        }
    }
    Ok(if names.is_empty() { NAMES.to_vec() } else { names })
}

impl SharedWork<'_> {
    fn work(&self, folder: &Path) -> Outcome<()> {
        let fixture = Fixture::new(folder, &self.proq)?;
        loop {
            let n = self.next.fetch_add(1, Ordering::Relaxed);
            let end = if self.args.only.is_some() { 1 } else { self.args.count };
            if n >= end || self.failed.load(Ordering::Relaxed) >= self.args.most {
                return Ok(());
            }
            let number = self.args.only.unwrap_or(n);
            self.run_case(&fixture, number).map_err(|e| format!("state {number}: {e}"))?;
        }
    }

    fn run_case(&self, fixture: &Fixture, number: usize) -> Outcome<()> {
        // The number is shifted so that the sequences are not in step with the states that have only pipes.
        let name = self.names[(number + number / 10) % self.names.len()];
        let case = Case::new(self.seed, number, name, self.deck.state(number));
        let result = run_case(fixture, &case)?;
        {
            let mut all = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
            let tally = all.entry(name).or_default();
            tally.states += 1;
            tally.refused += usize::from(result.refused.is_some() && result.fault.is_none());
            match case.disturbance {
                Some((_, Disturbance::Locked)) => tally.locked += 1,
                Some((_, Disturbance::Killed(_))) => tally.killed += usize::from(result.was_killed),
                None => {}
            }
            tally.failed += usize::from(result.fault.is_some());
            tally.visited.extend(case.state.paths.iter().map(|spot| spot.state));
        }
        let Some(fault) = result.fault else {
            if let Some(refusal) = result.refused.filter(|_| self.args.refusals) {
                println!("state {number} ({name}) is refused: {refusal}");
            }
            return Ok(());
        };
        self.failed.fetch_add(1, Ordering::Relaxed);
        *self
            .fault_kinds
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(fault.kind.clone())
            .or_default() += 1;
        let (case, fault) = if self.args.no_shrink { (case, fault) } else { shrink(fixture, &case, fault)? };
        let mut text = format!("state {number} ({name}) fails: {}\n", fault.text);
        for spot in &case.state.paths {
            text.push_str(&format!("  # {}: {}; lane: {:?}\n", spot.path, spot.state, spot.lane_change));
        }
        for line in shell_script(&case).lines() {
            text.push_str(&format!("  {line}\n"));
        }
        let only = if self.args.sequence.is_empty() { String::new() } else { format!(" --sequence {name}") };
        println!("{text}  again: cargo xtask states --seed {} --only {number}{only}\n", self.seed);
        Ok(())
    }

    /// Prints the results. Returns whether the run passed.
    fn report(self, wall: Duration) -> bool {
        let all = self.tally.into_inner().unwrap_or_else(PoisonError::into_inner);
        println!(
            "{:<13} {:>7} {:>8} {:>7} {:>7} {:>7} {:>13}",
            "sequence", "states", "refused", "locked", "killed", "failed", "combinations"
        );
        let mut visited = BTreeSet::new();
        let mut sum = Tally::default();
        for (name, tally) in &all {
            println!(
                "{name:<13} {:>7} {:>8} {:>7} {:>7} {:>7} {:>13}",
                tally.states,
                tally.refused,
                tally.locked,
                tally.killed,
                tally.failed,
                tally.visited.len()
            );
            visited.extend(tally.visited.iter().copied());
            sum.states += tally.states;
            sum.failed += tally.failed;
        }
        for (kind, count) in self.fault_kinds.into_inner().unwrap_or_else(PoisonError::into_inner) {
            println!("  {count} x {kind}");
        }
        let (deck, enough) = (self.deck.len(), self.deck.complete_after());
        println!(
            "{} states in {:.0} s: {} failed; {} of {deck} combinations visited, all after {enough} states (seed {})",
            sum.states,
            wall.as_secs_f64(),
            sum.failed,
            visited.len(),
            self.seed
        );
        let is_incomplete = self.args.only.is_none() && sum.states >= enough && visited.len() < deck;
        if is_incomplete {
            println!("a combination was never visited");
        }
        sum.failed == 0 && !is_incomplete
    }
}
