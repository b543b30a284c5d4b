//! Worker threads that share one series of numbered jobs.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::merging::Outcome;

/// Runs jobs 0 to `count` concurrently. `work` returns whether more jobs may start. The first failure ends
/// the series.
pub(super) fn run_jobs(
    jobs: Option<usize>,
    count: usize,
    work: impl Fn(usize) -> Outcome<bool> + Sync,
) -> Outcome<()> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let worker = || -> Option<String> {
        while !stop.load(Ordering::Relaxed) {
            let job = next.fetch_add(1, Ordering::Relaxed);
            if job >= count {
                break;
            }
            match work(job) {
                Ok(true) => {}
                Ok(false) => stop.store(true, Ordering::Relaxed),
                Err(e) => {
                    stop.store(true, Ordering::Relaxed);
                    return Some(e.to_string());
                }
            }
        }
        None
    };
    let failures: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs.unwrap_or(cores).max(1)).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().filter_map(|w| w.join().unwrap_or(Some("a worker panicked".into()))).collect()
    });
    match failures.into_iter().next() {
        Some(failure) => Err(failure.into()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_each_job_once_and_returns_the_failure() {
        let done = AtomicUsize::new(0);
        run_jobs(Some(3), 100, |n| Ok(done.fetch_add(n, Ordering::Relaxed) < usize::MAX)).unwrap();
        assert_eq!(done.into_inner(), 4950);
        let failed = run_jobs(Some(2), 10, |n| if n == 4 { Err("four".into()) } else { Ok(true) });
        assert_eq!(failed.unwrap_err().to_string(), "four");
    }
}
