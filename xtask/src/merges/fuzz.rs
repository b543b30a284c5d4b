//! `cargo xtask merges fuzz`: generated merges, compared with git.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::copy;
use crate::merging::{CHUNK, ChunkResult, ChunkSetup, Outcome, Tally, compare_chunk};

/// Percentage of merges made in process below which a run proves too little about them.
const MIN_IN_PROCESS_PERCENT: usize = 20;
/// Number of merges below which a run's percentage is not checked.
const MIN_MERGES_FOR_PERCENT: usize = 500;

/// Make up merges and compare
///
/// Edits, renames of files and folders, other kinds of files, submodules, attributes, settings, names that need quoting,
/// histories with one merge base, several or none. What is merged in process must be the tree that `git merge-tree` makes;
/// some are put to the whole engine too, git included. A merge that git itself aborts on counts as unknown.
#[derive(Debug, Clone, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// How many merges
    #[arg(long, value_name = "N", default_value_t = 50_000)]
    count: usize,
    /// Chooses them; printed by every run
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Only this one of them
    #[arg(long, value_name = "N", requires = "seed")]
    only: Option<usize>,
    /// How many repositories at once; as many as there are processors by default
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Of so many merges one is put to the whole engine too
    #[arg(long, value_name = "N", default_value_t = 50)]
    whole: usize,
    /// Stop after so many that differ
    #[arg(long, value_name = "N", default_value_t = 5)]
    most: usize,
    /// Keep the repositories in which something differs
    #[arg(long)]
    keep: bool,
}

/// Runs the task. Returns whether nothing differs and enough was merged in process.
pub(super) fn run(args: &Args) -> Outcome<bool> {
    let seed = args.seed.unwrap_or_else(super::seed_from_clock);
    println!("seed {seed}");
    let folder = super::create_folder()?;
    let begin = Instant::now();
    let sum = Mutex::new(ChunkResult::default());
    let chunks = if args.only.is_some() { 1 } else { args.count.div_ceil(CHUNK) };
    super::workers::run_jobs(args.jobs, chunks, |chunk| {
        let numbers = match args.only {
            Some(number) => number..number + 1,
            None => chunk * CHUNK..args.count.min((chunk + 1) * CHUNK),
        };
        let dir = folder.join(format!("{}", numbers.start));
        let whole = if args.only.is_some() { 1 } else { args.whole.max(1) };
        let found = compare_chunk(ChunkSetup { dir: &dir, whole }, seed, numbers)
            .map_err(|e| format!("chunk {chunk}: {e}"))?;
        for (number, difference) in &found.differences {
            println!("merge {number} differs: {difference}");
            println!("  again: cargo xtask merges fuzz --seed {seed} --only {number} --keep\n");
        }
        if found.differences.is_empty() || !args.keep {
            copy::remove(&dir)?;
        } else {
            println!("  kept: {}\n", dir.display());
        }
        let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
        let before = sum.tally.merges / 10_000;
        sum.tally += found.tally;
        sum.differences.extend(found.differences);
        if sum.tally.merges / 10_000 > before {
            println!("{} done", sum.tally.merges);
        }
        Ok(sum.differences.len() < args.most)
    })?;
    // The folder is only kept if something is in it.
    drop(std::fs::remove_dir(&folder));
    let sum = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
    let enough = report(&sum.tally, sum.differences.len(), seed, begin.elapsed());
    Ok(sum.differences.is_empty() && enough)
}

/// Prints the counts. Returns whether enough merges were made in process.
fn report(tally: &Tally, difference_count: usize, seed: u64, time: Duration) -> bool {
    for (kind, [all, exact]) in &tally.kinds {
        println!("  {kind:<13} {all:>8} merges {:>3}% in process", super::percent(*exact, *all));
    }
    for (reason, times) in &tally.words {
        println!("  git comes to no end {times} times: {reason}");
    }
    let share = super::percent(tally.exact, tally.merges);
    println!(
        "{} merges in {:.0} s: {} in process ({share}%), {} clean, {} conflict, {} refused, {} unknown; \
         {} put to the whole engine; {difference_count} differ (seed {seed})",
        tally.merges,
        time.as_secs_f64(),
        tally.exact,
        tally.clean,
        tally.conflicts,
        tally.refused,
        tally.unknown,
        tally.whole
    );
    let enough = tally.merges < MIN_MERGES_FOR_PERCENT || share >= MIN_IN_PROCESS_PERCENT;
    if !enough {
        println!("less than {MIN_IN_PROCESS_PERCENT}% in process: this says too little");
    }
    enough
}
