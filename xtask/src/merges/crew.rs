//! Owns many at work on one row of jobs.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::merging::Outcome;

/// Does jobs 0 to `count`, some at once, each by `work`, which may say that no more are to be begun. The first failure ends it.
pub(super) fn each(
    jobs: Option<usize>,
    count: usize,
    work: impl Fn(usize) -> Outcome<bool> + Sync,
) -> Outcome<()> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let (next, enough) = (AtomicUsize::new(0), AtomicBool::new(false));
    let worker = || -> Option<String> {
        while !enough.load(Ordering::Relaxed) {
            let job = next.fetch_add(1, Ordering::Relaxed);
            if job >= count {
                break;
            }
            match work(job) {
                Ok(true) => {}
                Ok(false) => enough.store(true, Ordering::Relaxed),
                Err(e) => {
                    enough.store(true, Ordering::Relaxed);
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
    fn every_job_is_done_once_and_a_failure_is_told() {
        let done = AtomicUsize::new(0);
        each(Some(3), 100, |n| Ok(done.fetch_add(n, Ordering::Relaxed) < usize::MAX)).unwrap();
        assert_eq!(done.into_inner(), 4950);
        let failed = each(Some(2), 10, |n| if n == 4 { Err("four".into()) } else { Ok(true) });
        assert_eq!(failed.unwrap_err().to_string(), "four");
    }
}
