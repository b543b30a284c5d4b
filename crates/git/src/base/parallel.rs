//! Parallel map over items, with as many threads as there are processors.

use std::sync::{Mutex, mpsc};

/// Returns the maximum number of threads: the processors available to this process, or 2 if unknown.
pub(crate) fn max_thread_count() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

/// Returns the results of `run` for each of `items`, in their order.
pub(crate) fn parallel_map<T: Sync, R: Send>(items: &[T], run: impl Fn(&T) -> R + Sync) -> Vec<R> {
    if items.len() < 2 {
        return items.iter().map(run).collect();
    }
    parallel_map_with(items.iter(), run, || ()).0
}

/// Maps `items` in threads, and runs `concurrent` in this thread at the same time. Returns both results. The
/// items are created in this thread, and the threads start with the first one.
pub(crate) fn parallel_map_with<T: Send, R: Send, M>(
    items: impl ExactSizeIterator<Item = T>,
    run: impl Fn(T) -> R + Sync,
    concurrent: impl FnOnce() -> M,
) -> (Vec<R>, M) {
    let worker_count = max_thread_count().min(items.len());
    let results = Mutex::new(Vec::with_capacity(items.len()));
    let (sender, receiver) = mpsc::channel();
    let receiver = Mutex::new(receiver);
    let concurrent_result = std::thread::scope(|scope| {
        for _ in 0..worker_count {
            scope.spawn(|| {
                loop {
                    let item = receiver.lock().ok().and_then(|receiver| receiver.recv().ok());
                    let Some((at, item)) = item else { break };
                    let result = run(item);
                    if let Ok(mut results) = results.lock() {
                        results.push((at, result));
                    }
                }
            });
        }
        for item in items.enumerate() {
            drop(sender.send(item));
        }
        // Closes the channel.
        drop(sender);
        concurrent()
    });
    let mut results = results.into_inner().unwrap_or_default();
    results.sort_by_key(|(at, _): &(usize, R)| *at);
    (results.into_iter().map(|(_, result)| result).collect(), concurrent_result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_results_in_item_order() {
        let items: Vec<u32> = (0..100).collect();
        assert_eq!(parallel_map(&items, |n| n * 2), (0..100).map(|n| n * 2).collect::<Vec<_>>());
        assert_eq!(parallel_map(&[0_u32; 0], |n| *n), [0; 0]);
        assert_eq!(parallel_map_with([7].into_iter(), |n| n + 1, || "else"), (vec![8], "else"));
    }
}
