//! Owns doing the same for many things at once, in as many threads as there are processors.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What `work` answers for each of `items`, in their order.
pub(super) fn in_threads<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    if items.len() < 2 {
        return items.iter().map(work).collect();
    }
    while_in_threads(items, work, || ()).0
}

/// The same, and what `meanwhile` answers, which is done in this thread at the same time.
pub(super) fn while_in_threads<T: Sync, R: Send, M>(
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
    meanwhile: impl FnOnce() -> M,
) -> (Vec<R>, M) {
    let threads = std::thread::available_parallelism().map_or(2, usize::from).min(items.len());
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::with_capacity(items.len()));
    let other = std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(at) else { break };
                    let answer = work(item);
                    if let Ok(mut found) = found.lock() {
                        found.push((at, answer));
                    }
                }
            });
        }
        meanwhile()
    });
    let mut found = found.into_inner().unwrap_or_default();
    found.sort_by_key(|(at, _)| *at);
    (found.into_iter().map(|(_, answer)| answer).collect(), other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_in_order() {
        let items: Vec<u32> = (0..100).collect();
        assert_eq!(in_threads(&items, |n| n * 2), (0..100).map(|n| n * 2).collect::<Vec<_>>());
        assert_eq!(in_threads(&[0_u32; 0], |n| *n), [0; 0]);
        assert_eq!(while_in_threads(&[7], |n| n + 1, || "else"), (vec![8], "else"));
    }
}
