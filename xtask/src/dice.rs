//! Random choices: all of them come from one seed.

use fastrand::Rng;

/// Returns a generator for each seed and name; the same seed and name give the same numbers everywhere.
pub(crate) fn seeded(seed: u64, name: &str) -> Rng {
    let mut rng = Rng::with_seed(seed);
    for byte in name.bytes() {
        rng = Rng::with_seed(rng.u64(..) ^ u64::from(byte));
    }
    rng
}

/// Returns `count` of the numbers from 1 to `last`, in order; all of them when there are not more.
pub(crate) fn sample(rng: &mut Rng, last: usize, count: usize) -> Vec<usize> {
    let mut chosen = rng.choose_multiple(1..=last, count);
    chosen.sort_unstable();
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_gives_same_sample() {
        let take = |seed, last| sample(&mut seeded(seed, "x"), last, 10);
        assert_eq!(take(7, 100), take(7, 100));
        assert_ne!(take(7, 100), take(8, 100));
        assert_eq!(take(7, 100).len(), 10);
        assert!(take(7, 100).iter().all(|n| (1..=100).contains(n)));
        assert_eq!(take(7, 3), [1, 2, 3]);
    }
}
