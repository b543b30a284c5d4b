//! Owns the random choices: all of them come from one seed.

/// A sequence of numbers that look random and are the same for the same seed (splitmix64).
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    /// A sequence of its own for each seed and name.
    pub(crate) fn new(seed: u64, name: &str) -> Dice {
        let mut dice = Dice(seed);
        for byte in name.bytes() {
            dice.0 = dice.next() ^ u64::from(byte);
        }
        dice
    }

    /// The next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is not zero.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end.max(1)).unwrap_or(1);
        usize::try_from(self.next() % end).unwrap_or(0)
    }

    /// `count` of the numbers from 1 to `last`, in order; all of them when there are not more.
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
    fn the_same_seed_gives_the_same_sample() {
        let sample = Dice::new(7, "x").sample(100, 10);
        assert_eq!(sample, Dice::new(7, "x").sample(100, 10));
        assert_ne!(sample, Dice::new(8, "x").sample(100, 10));
        assert_eq!(sample.len(), 10);
        assert!(sample.iter().all(|n| (1..=100).contains(n)));
        assert_eq!(Dice::new(7, "x").sample(3, 10), [1, 2, 3]);
    }
}
