//! Random number generator: all random choices come from one seed.

/// Sequence of pseudo-random numbers that is the same for the same seed (splitmix64).
#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    /// Creates a separate sequence for each seed and name.
    pub(crate) fn new(seed: u64, name: &str) -> Rng {
        let mut rng = Rng(seed);
        for byte in name.bytes() {
            rng.0 = rng.next() ^ u64::from(byte);
        }
        rng
    }

    /// Returns the next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number below `end`, which must not be zero.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end.max(1)).unwrap_or(1);
        usize::try_from(self.next() % end).unwrap_or(0)
    }

    /// Returns `count` of the numbers from 1 to `last`, in order; all of them when there are not more.
    pub(crate) fn sample(&mut self, last: usize, count: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (1..=last).collect();
        while all.len() > count {
            all.swap_remove(self.below(all.len()));
        }
        all.sort_unstable();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_gives_same_sample() {
        let sample = Rng::new(7, "x").sample(100, 10);
        assert_eq!(sample, Rng::new(7, "x").sample(100, 10));
        assert_ne!(sample, Rng::new(8, "x").sample(100, 10));
        assert_eq!(sample.len(), 10);
        assert!(sample.iter().all(|n| (1..=100).contains(n)));
        assert_eq!(Rng::new(7, "x").sample(3, 10), [1, 2, 3]);
    }
}
