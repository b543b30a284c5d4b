//! Search for the lanes with which checks fail: which states of a stack to check next, and which lane is at
//! fault for a failure.
//!
//! A prefix of a stack is its lowest lanes, together, on the base. The full stack is checked first. If it
//! fails, the first failing prefix is found by binary search. The prefix just below it passes, so its topmost
//! lane is at fault: the checks pass without it and fail with it. That lane is removed, the stack is built
//! again without it, and checked again.
//!
//! Without parallel checks, for `k` lanes at fault among `n` and one command, this takes at most `k *
//! ceil(log2(n)) + k + 2` checks: the stack itself once, and once more after each removed lane; the base
//! once; `ceil(log2(n))` to find a lane. Each further failing command costs one more check of the base, and
//! one for each command before it that fails there. A command that fails on the base too, and so does not
//! count, costs another one. A command of a lane's task costs none: the base lacks that lane, so the base is
//! never checked with it.

/// Verdict of the checks on a prefix of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CheckVerdict {
    /// Every command succeeds.
    Passed,
    /// The command of this number fails.
    Failed(usize),
}

/// Stack that can be checked and from which lanes can be removed.
pub(crate) trait StackChecker {
    /// Error of running a check.
    type Error;

    /// Checks prefixes of the stack, given by their lengths, smallest first. The verdict is none for a prefix
    /// that no longer matters.
    fn check_prefixes(&mut self, prefixes: &[usize]) -> Result<Vec<Option<CheckVerdict>>, Self::Error>;

    /// Returns whether a command fails on the base itself, so that its failure does not depend on lanes.
    /// Always false for a command of a task.
    fn fails_on_base(&mut self, command: usize) -> Result<bool, Self::Error>;

    /// Ignores failures of a command from now on.
    fn tolerate(&mut self, command: usize);

    /// Removes the lane of this number, counted from zero, from the stack. Returns the new number of lanes,
    /// and the length of the longest prefix that is known to pass.
    fn remove_lane(&mut self, lane: usize) -> Result<(usize, usize), Self::Error>;
}

/// Number of prefixes to check in parallel: one more after a round that passed, half as many after one with a
/// failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ParallelWindow {
    /// Number of prefixes to check in the next round.
    size: usize,
    /// Number of prefixes that can be checked in parallel.
    max_size: usize,
}

impl ParallelWindow {
    /// Adjusts the size after a round; `has_passed` is whether no prefix failed in it.
    fn adjust(&mut self, has_passed: bool) {
        self.size = if has_passed { (self.size + 1).min(self.max_size) } else { (self.size / 2).max(1) };
    }
}

/// Removes lanes until the full stack of `lane_count` lanes passes. Up to `jobs` prefixes are checked in
/// parallel.
pub(crate) fn remove_culprits<B: StackChecker>(
    checker: &mut B,
    lane_count: usize,
    jobs: usize,
) -> Result<(), B::Error> {
    let mut window = ParallelWindow { size: jobs.max(1), max_size: jobs.max(1) };
    let mut failing_commands = Vec::new();
    let (mut count, mut passed_prefix) = (lane_count, 0);
    // Smallest prefix that is known to fail.
    let mut failed_prefix: Option<usize> = None;
    while passed_prefix < count {
        if let Some(culprit_prefix) = failed_prefix.filter(|red| red - passed_prefix == 1) {
            (count, passed_prefix) = checker.remove_lane(culprit_prefix - 1)?;
            failed_prefix = None;
            continue;
        }
        let prefixes = choose_prefixes(passed_prefix, failed_prefix, count, window.size);
        let verdicts = checker.check_prefixes(&prefixes)?;
        let mut all_passed = true;
        for (prefix, verdict) in prefixes.into_iter().zip(verdicts) {
            match verdict {
                Some(CheckVerdict::Passed)
                    if failed_prefix.is_none_or(|red| prefix < red) || prefix == count =>
                {
                    passed_prefix = prefix;
                    failed_prefix = failed_prefix.filter(|red| *red > prefix);
                }
                Some(CheckVerdict::Failed(command)) => {
                    if !failing_commands.contains(&command) {
                        if checker.fails_on_base(command)? {
                            checker.tolerate(command);
                            // Earlier verdicts were about that command.
                            break;
                        }
                        failing_commands.push(command);
                    }
                    all_passed = false;
                    failed_prefix = Some(failed_prefix.map_or(prefix, |red| red.min(prefix)));
                }
                Some(CheckVerdict::Passed) | None => {}
            }
        }
        window.adjust(all_passed);
    }
    Ok(())
}

/// Returns the lengths of at most `max_count` prefixes to check: the full stack and some shorter ones, or the
/// points that divide the range below a failing prefix.
fn choose_prefixes(
    passed_prefix: usize,
    failed_prefix: Option<usize>,
    lane_count: usize,
    max_count: usize,
) -> Vec<usize> {
    let mut prefixes: Vec<usize> = match failed_prefix {
        None => (1..=max_count)
            .map(|i| passed_prefix + ((lane_count - passed_prefix) * i).div_ceil(max_count))
            .collect(),
        Some(red) => {
            (1..=max_count).map(|i| passed_prefix + (red - passed_prefix) * i / (max_count + 1)).collect()
        }
    };
    prefixes.retain(|p| *p > passed_prefix && failed_prefix.is_none_or(|red| *p < red));
    prefixes.dedup();
    if prefixes.is_empty() {
        prefixes.extend(failed_prefix.map(|red| red - 1));
    }
    prefixes
}

/// Returns whether the verdict on the prefix at `index` no longer matters, given the verdicts so far.
pub(crate) fn is_prefix_irrelevant(
    index: usize,
    prefixes: &[usize],
    verdicts: &[Option<CheckVerdict>],
) -> bool {
    let makes_irrelevant = |(other, verdict): (&usize, &Option<CheckVerdict>)| match verdict {
        // All prefixes below the greatest passing one are irrelevant.
        Some(CheckVerdict::Passed) => *other > prefixes[index],
        // A prefix above a failing one contains the same fault.
        Some(CheckVerdict::Failed(_)) => *other < prefixes[index],
        None => false,
    };
    prefixes.iter().zip(verdicts).any(makes_irrelevant)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Stack of numbered lanes; sets of lanes that fail together decide the verdicts.
    struct FakeStack {
        lanes: Vec<usize>,
        failing_sets: Vec<Vec<usize>>,
        /// Pairs of lanes: the check of the first lane's task fails if the second one, which may be the same,
        /// is in the stack.
        failing_tasks: Vec<(usize, usize)>,
        failing_on_base: Vec<usize>,
        tolerated: Vec<usize>,
        removed: Vec<usize>,
        prefix_checks: usize,
        base_checks: usize,
        rounds: Vec<usize>,
    }

    impl FakeStack {
        fn new(count: usize, bad: &[&[usize]]) -> FakeStack {
            FakeStack {
                lanes: (0..count).collect(),
                failing_sets: bad.iter().map(|b| b.to_vec()).collect(),
                failing_tasks: Vec::new(),
                failing_on_base: Vec::new(),
                tolerated: Vec::new(),
                removed: Vec::new(),
                prefix_checks: 0,
                base_checks: 0,
                rounds: Vec::new(),
            }
        }

        fn is_failing(&self, prefix: usize) -> bool {
            self.failing_command(prefix).is_some()
        }

        /// Returns the number of the command that fails: one of the landing, or else the first one of the
        /// tasks.
        fn failing_command(&self, prefix: usize) -> Option<usize> {
            let lanes = &self.lanes[..prefix];
            let bad = self.failing_sets.iter().any(|bad| bad.iter().all(|lane| lanes.contains(lane)));
            let task = |(lane, other): &(usize, usize)| lanes.contains(lane) && lanes.contains(other);
            if bad {
                Some(9)
            } else {
                self.failing_tasks.iter().position(task).map(|at| FIRST_TASK_COMMAND + at)
            }
        }

        fn run(mut self, jobs: usize) -> FakeStack {
            let count = self.lanes.len();
            remove_culprits(&mut self, count, jobs).unwrap();
            self.removed.sort_unstable();
            self
        }
    }

    /// Number of the first command that belongs to a task.
    const FIRST_TASK_COMMAND: usize = 100;

    impl StackChecker for FakeStack {
        type Error = std::convert::Infallible;

        fn check_prefixes(&mut self, prefixes: &[usize]) -> Result<Vec<Option<CheckVerdict>>, Self::Error> {
            assert!(prefixes.is_sorted() && !prefixes.is_empty(), "{prefixes:?}");
            self.prefix_checks += prefixes.len();
            self.rounds.push(prefixes.len());
            let mut verdicts = vec![None; prefixes.len()];
            for index in (0..prefixes.len()).rev() {
                if is_prefix_irrelevant(index, prefixes, &verdicts) {
                    continue;
                }
                verdicts[index] =
                    Some(match self.failing_on_base.iter().find(|c| !self.tolerated.contains(c)) {
                        Some(command) => CheckVerdict::Failed(*command),
                        None => self
                            .failing_command(prefixes[index])
                            .map_or(CheckVerdict::Passed, CheckVerdict::Failed),
                    });
            }
            Ok(verdicts)
        }

        fn fails_on_base(&mut self, command: usize) -> Result<bool, Self::Error> {
            self.base_checks += usize::from(command < FIRST_TASK_COMMAND);
            Ok(self.failing_on_base.contains(&command))
        }

        fn tolerate(&mut self, command: usize) {
            self.tolerated.push(command);
        }

        fn remove_lane(&mut self, lane: usize) -> Result<(usize, usize), Self::Error> {
            assert!(!self.is_failing(lane) && self.is_failing(lane + 1), "lane {lane} is not at fault");
            self.removed.push(self.lanes.remove(lane));
            Ok((self.lanes.len(), lane))
        }
    }

    #[test]
    fn passing_stack_needs_one_check() {
        let stack = FakeStack::new(30, &[]).run(1);
        assert_eq!((stack.prefix_checks, stack.base_checks, stack.removed.len()), (1, 0, 0));
    }

    /// Promise: checks/failing-sets
    #[test]
    fn removes_upper_lane_of_each_failing_set_within_bound() {
        let stack = FakeStack::new(30, &[&[2, 11], &[5, 29], &[12, 20]]).run(1);
        assert_eq!(stack.removed, [11, 20, 29]);
        assert_eq!(stack.base_checks, 1);
        assert!(stack.prefix_checks <= 3 * 5 + 3 + 1, "{}", stack.prefix_checks);
    }

    #[test]
    fn command_failing_on_base_blocks_no_lane() {
        let mut stack = FakeStack::new(8, &[&[3]]);
        stack.failing_on_base = vec![0, 4];
        let stack = stack.run(1);
        assert_eq!(
            (stack.tolerated.as_slice(), stack.removed.as_slice()),
            ([0, 4].as_slice(), [3].as_slice())
        );
        assert_eq!(stack.base_checks, 3);
    }

    /// Promise: checks/task-check-scope
    #[test]
    fn blames_task_failures_without_checking_base() {
        let mut stack = FakeStack::new(30, &[]);
        stack.failing_tasks = vec![(4, 4), (7, 21), (7, 22), (29, 29)];
        let stack = stack.run(1);
        assert_eq!((stack.removed.as_slice(), stack.base_checks), ([4, 21, 22, 29].as_slice(), 0));
        assert!(stack.prefix_checks <= 4 * 5 + 4 + 1, "{}", stack.prefix_checks);
    }

    /// Promise: checks/blame
    #[test]
    fn removes_every_lane_if_all_fail() {
        let bad: Vec<Vec<usize>> = (0..7).map(|lane| vec![lane]).collect();
        let bad: Vec<&[usize]> = bad.iter().map(Vec::as_slice).collect();
        assert_eq!(FakeStack::new(7, &bad).run(1).removed.len(), 7);
        assert_eq!(FakeStack::new(1, &[&[0]]).run(1).prefix_checks, 1);
    }

    #[test]
    fn checks_in_parallel_and_fewer_after_a_failure() {
        let stack = FakeStack::new(40, &[&[20], &[33]]).run(8);
        assert_eq!(stack.removed, [20, 33]);
        assert_eq!(stack.rounds[..3], [8, 4, 2]);
        let mut window = ParallelWindow { size: 8, max_size: 8 };
        for (green, size) in [(true, 8), (false, 4), (false, 2), (true, 3), (false, 1), (false, 1), (true, 2)]
        {
            window.adjust(green);
            assert_eq!(window.size, size);
        }
    }

    #[test]
    fn decided_prefixes_are_irrelevant() {
        let (points, green, red) = ([2, 4, 6], Some(CheckVerdict::Passed), Some(CheckVerdict::Failed(0)));
        assert!(
            is_prefix_irrelevant(0, &points, &[None, green, None])
                && !is_prefix_irrelevant(2, &points, &[None, green, None])
        );
        assert!(
            is_prefix_irrelevant(2, &points, &[None, red, None])
                && !is_prefix_irrelevant(0, &points, &[None, red, None])
        );
    }

    proptest! {
        #[test]
        fn removed_lanes_were_at_fault(
            count in 1usize..40,
            pairs in proptest::collection::vec((0usize..40, 0usize..40), 0..5),
            tasks in proptest::collection::vec((0usize..40, 0usize..40), 0..5),
            jobs in 1usize..6,
        ) {
            let bad: Vec<Vec<usize>> = pairs.iter().map(|(a, b)| vec![*a, *b]).collect();
            let bad: Vec<&[usize]> = bad.iter().map(Vec::as_slice).collect();
            // `remove_lane` asserts that each removed lane was at fault.
            let mut toy = FakeStack::new(count, &bad);
            toy.failing_tasks = tasks.clone();
            let toy = toy.run(jobs);
            prop_assert!(!toy.is_failing(toy.lanes.len()));
            prop_assert!(toy.removed.len() <= pairs.len() + tasks.len());
            if jobs == 1 {
                let (k, log) = (toy.removed.len(), count.next_power_of_two().ilog2() as usize);
                prop_assert!(toy.prefix_checks + toy.base_checks <= k * log + k + 2);
            }
        }
    }
}
