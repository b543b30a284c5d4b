//! Owns doing the same for many things at once, in as many threads as there are processors.

use std::sync::{Mutex, mpsc};

/// How many there are at most.
pub(super) fn threads() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

/// What `work` answers for each of `items`, in their order.
pub(super) fn in_threads<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    if items.len() < 2 {
        return items.iter().map(work).collect();
    }
    while_in_threads(items.iter(), work, || ()).0
}

/// The same, and what `meanwhile` answers, which is done in this thread at the same time. Each of `items` is made here too,
/// and the work begins with the first one.
pub(super) fn while_in_threads<T: Send, R: Send, M>(
    items: impl ExactSizeIterator<Item = T>,
    work: impl Fn(T) -> R + Sync,
    meanwhile: impl FnOnce() -> M,
) -> (Vec<R>, M) {
    let threads = threads().min(items.len());
    let found = Mutex::new(Vec::with_capacity(items.len()));
    let (send, next) = mpsc::channel();
    let next = Mutex::new(next);
    let other = std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let item = next.lock().ok().and_then(|next| next.recv().ok());
                    let Some((at, item)) = item else { break };
                    let answer = work(item);
                    if let Ok(mut found) = found.lock() {
                        found.push((at, answer));
                    }
                }
            });
        }
        for item in items.enumerate() {
            drop(send.send(item));
        }
        // No more will come.
        drop(send);
        meanwhile()
    });
    let mut found = found.into_inner().unwrap_or_default();
    found.sort_by_key(|(at, _): &(usize, R)| *at);
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
        assert_eq!(while_in_threads([7].into_iter(), |n| n + 1, || "else"), (vec![8], "else"));
    }
}
