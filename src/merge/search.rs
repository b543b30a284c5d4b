//! Owns finding the lanes with which checks fail: which states of a stack to look at next, and whose fault a red one is.
//!
//! A prefix of a stack is its lowest lanes, together, on the base. The whole stack is looked at first. When it is red, the
//! first red prefix is searched for by halving; what lies just below it is green, so its topmost lane is at fault: green
//! without it, red with it. That lane is put aside, the stack made anew without it, and looked at again.
//!
//! One at a time, for `k` lanes at fault among `n` and one command, that takes at most `k * ceil(log2(n)) + k + 2` looks:
//! the stack itself once, and once more after each lane that goes; the base once; `ceil(log2(n))` to find a lane. A command
//! more that fails is one look at the base more, and one for each command before it that fails there; one that fails on the
//! base too, and so does not count, another one. One that belongs to a lane's task costs none: the base lacks that lane, so
//! that it is never asked.

/// What a look at a prefix tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Colour {
    /// Every command succeeds.
    Green,
    /// The command of this number does not.
    Red(usize),
}

/// What is looked at.
pub(super) trait Bench {
    /// Why looking failed.
    type Error;

    /// Looks at prefixes of the stack, by their lengths, smallest first. None for one that does not matter any more.
    fn judge(&mut self, prefixes: &[usize]) -> Result<Vec<Option<Colour>>, Self::Error>;

    /// Whether the base itself is red by a command, so that it says nothing about lanes. Never by one of a task's.
    fn base_is_red(&mut self, command: usize) -> Result<bool, Self::Error>;

    /// From now on a command may fail.
    fn tolerate(&mut self, command: usize);

    /// Takes the lane of this number, from zero, out of the stack. How many there are then, and how many of the lowest are
    /// known to be green.
    fn put_aside(&mut self, lane: usize) -> Result<(usize, usize), Self::Error>;
}

/// How many prefixes are looked at together: one more after each green answer, half as many after a red one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Window {
    size: usize,
    most: usize,
}

impl Window {
    fn after(&mut self, green: bool) {
        self.size = if green { (self.size + 1).min(self.most) } else { (self.size / 2).max(1) };
    }
}

/// Puts lanes aside until the whole stack of `count` lanes is green. Up to `jobs` prefixes are looked at together.
pub(super) fn search<B: Bench>(bench: &mut B, count: usize, jobs: usize) -> Result<(), B::Error> {
    let mut window = Window { size: jobs.max(1), most: jobs.max(1) };
    let mut guilty_commands = Vec::new();
    let (mut count, mut green) = (count, 0);
    // The smallest prefix that is known to be red.
    let mut red: Option<usize> = None;
    while green < count {
        if let Some(at) = red.filter(|red| red - green == 1) {
            (count, green) = bench.put_aside(at - 1)?;
            red = None;
            continue;
        }
        let points = spread(green, red, count, window.size);
        let colours = bench.judge(&points)?;
        let mut all_green = true;
        for (point, colour) in points.into_iter().zip(colours) {
            match colour {
                Some(Colour::Green) if red.is_none_or(|red| point < red) || point == count => {
                    green = point;
                    red = red.filter(|red| *red > point);
                }
                Some(Colour::Red(command)) => {
                    if !guilty_commands.contains(&command) {
                        if bench.base_is_red(command)? {
                            bench.tolerate(command);
                            // What it said before was about that command.
                            break;
                        }
                        guilty_commands.push(command);
                    }
                    all_green = false;
                    red = Some(red.map_or(point, |red| red.min(point)));
                }
                Some(Colour::Green) | None => {}
            }
        }
        window.after(all_green);
    }
    Ok(())
}

/// The prefixes to look at: all of the stack and some on the way there, or what divides the stretch up to a red one.
fn spread(green: usize, red: Option<usize>, count: usize, size: usize) -> Vec<usize> {
    let mut points: Vec<usize> = match red {
        None => (1..=size).map(|i| green + ((count - green) * i).div_ceil(size)).collect(),
        Some(red) => (1..=size).map(|i| green + (red - green) * i / (size + 1)).collect(),
    };
    points.retain(|p| *p > green && red.is_none_or(|red| *p < red));
    points.dedup();
    if points.is_empty() {
        points.extend(red.map(|red| red - 1));
    }
    points
}

/// Whether the answer for the prefix at `at` cannot matter any more, given those that are there already.
pub(super) fn is_moot(at: usize, prefixes: &[usize], known: &[Option<Colour>]) -> bool {
    let decided = |(other, colour): (&usize, &Option<Colour>)| match colour {
        // What lies below the greatest green one is on its way there.
        Some(Colour::Green) => *other > prefixes[at],
        // What lies above a red one has the same fault in it.
        Some(Colour::Red(_)) => *other < prefixes[at],
        None => false,
    };
    prefixes.iter().zip(known).any(decided)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A stack of numbered lanes. A set of bad combinations decides what is red.
    struct Toy {
        lanes: Vec<usize>,
        bad: Vec<Vec<usize>>,
        /// The check that the first lane's task has fails with the second in it, which may be the same.
        tasks: Vec<(usize, usize)>,
        base_red: Vec<usize>,
        tolerated: Vec<usize>,
        aside: Vec<usize>,
        looks: usize,
        base_looks: usize,
        rounds: Vec<usize>,
    }

    impl Toy {
        fn new(count: usize, bad: &[&[usize]]) -> Toy {
            Toy {
                lanes: (0..count).collect(),
                bad: bad.iter().map(|b| b.to_vec()).collect(),
                tasks: Vec::new(),
                base_red: Vec::new(),
                tolerated: Vec::new(),
                aside: Vec::new(),
                looks: 0,
                base_looks: 0,
                rounds: Vec::new(),
            }
        }

        fn is_red(&self, prefix: usize) -> bool {
            self.fails(prefix).is_some()
        }

        /// The command that fails: one of the landing's, else the first of the tasks'.
        fn fails(&self, prefix: usize) -> Option<usize> {
            let lanes = &self.lanes[..prefix];
            let bad = self.bad.iter().any(|bad| bad.iter().all(|lane| lanes.contains(lane)));
            let task = |(lane, other): &(usize, usize)| lanes.contains(lane) && lanes.contains(other);
            if bad { Some(9) } else { self.tasks.iter().position(task).map(|at| TASK + at) }
        }

        fn run(mut self, jobs: usize) -> Toy {
            let count = self.lanes.len();
            search(&mut self, count, jobs).unwrap();
            self.aside.sort_unstable();
            self
        }
    }

    /// From here on commands are those of tasks.
    const TASK: usize = 100;

    impl Bench for Toy {
        type Error = std::convert::Infallible;

        fn judge(&mut self, prefixes: &[usize]) -> Result<Vec<Option<Colour>>, Self::Error> {
            assert!(prefixes.is_sorted() && !prefixes.is_empty(), "{prefixes:?}");
            self.looks += prefixes.len();
            self.rounds.push(prefixes.len());
            let mut known = vec![None; prefixes.len()];
            for at in (0..prefixes.len()).rev() {
                if is_moot(at, prefixes, &known) {
                    continue;
                }
                known[at] = Some(match self.base_red.iter().find(|c| !self.tolerated.contains(c)) {
                    Some(command) => Colour::Red(*command),
                    None => self.fails(prefixes[at]).map_or(Colour::Green, Colour::Red),
                });
            }
            Ok(known)
        }

        fn base_is_red(&mut self, command: usize) -> Result<bool, Self::Error> {
            self.base_looks += usize::from(command < TASK);
            Ok(self.base_red.contains(&command))
        }

        fn tolerate(&mut self, command: usize) {
            self.tolerated.push(command);
        }

        fn put_aside(&mut self, lane: usize) -> Result<(usize, usize), Self::Error> {
            assert!(!self.is_red(lane) && self.is_red(lane + 1), "lane {lane} is not at fault");
            self.aside.push(self.lanes.remove(lane));
            Ok((self.lanes.len(), lane))
        }
    }

    #[test]
    fn a_green_stack_is_one_look() {
        let toy = Toy::new(30, &[]).run(1);
        assert_eq!((toy.looks, toy.base_looks, toy.aside.len()), (1, 0, 0));
    }

    #[test]
    fn combinations_lose_the_upper_lane_each_within_the_bound() {
        let toy = Toy::new(30, &[&[2, 11], &[5, 29], &[12, 20]]).run(1);
        assert_eq!(toy.aside, [11, 20, 29]);
        assert_eq!(toy.base_looks, 1);
        assert!(toy.looks <= 3 * 5 + 3 + 1, "{}", toy.looks);
    }

    #[test]
    fn what_is_red_on_the_base_blocks_nobody() {
        let mut toy = Toy::new(8, &[&[3]]);
        toy.base_red = vec![0, 4];
        let toy = toy.run(1);
        assert_eq!((toy.tolerated.as_slice(), toy.aside.as_slice()), ([0, 4].as_slice(), [3].as_slice()));
        assert_eq!(toy.base_looks, 3);
    }

    #[test]
    fn who_fails_its_own_task_or_breaks_anothers_is_at_fault_and_the_base_is_not_asked() {
        let mut toy = Toy::new(30, &[]);
        toy.tasks = vec![(4, 4), (7, 21), (7, 22), (29, 29)];
        let toy = toy.run(1);
        assert_eq!((toy.aside.as_slice(), toy.base_looks), ([4, 21, 22, 29].as_slice(), 0));
        assert!(toy.looks <= 4 * 5 + 4 + 1, "{}", toy.looks);
    }

    #[test]
    fn every_lane_can_be_at_fault() {
        let bad: Vec<Vec<usize>> = (0..7).map(|lane| vec![lane]).collect();
        let bad: Vec<&[usize]> = bad.iter().map(Vec::as_slice).collect();
        assert_eq!(Toy::new(7, &bad).run(1).aside.len(), 7);
        assert_eq!(Toy::new(1, &[&[0]]).run(1).looks, 1);
    }

    #[test]
    fn several_are_looked_at_together_and_fewer_after_a_red_one() {
        let toy = Toy::new(40, &[&[20], &[33]]).run(8);
        assert_eq!(toy.aside, [20, 33]);
        assert_eq!(toy.rounds[..3], [8, 4, 2]);
        let mut window = Window { size: 8, most: 8 };
        for (green, size) in [(true, 8), (false, 4), (false, 2), (true, 3), (false, 1), (false, 1), (true, 2)]
        {
            window.after(green);
            assert_eq!(window.size, size);
        }
    }

    #[test]
    fn what_cannot_matter_is_not_waited_for() {
        let (points, green, red) = ([2, 4, 6], Some(Colour::Green), Some(Colour::Red(0)));
        assert!(is_moot(0, &points, &[None, green, None]) && !is_moot(2, &points, &[None, green, None]));
        assert!(is_moot(2, &points, &[None, red, None]) && !is_moot(0, &points, &[None, red, None]));
    }

    proptest! {
        #[test]
        fn what_is_left_is_green_and_who_is_out_was_at_fault(
            count in 1usize..40,
            pairs in proptest::collection::vec((0usize..40, 0usize..40), 0..5),
            tasks in proptest::collection::vec((0usize..40, 0usize..40), 0..5),
            jobs in 1usize..6,
        ) {
            let bad: Vec<Vec<usize>> = pairs.iter().map(|(a, b)| vec![*a, *b]).collect();
            let bad: Vec<&[usize]> = bad.iter().map(Vec::as_slice).collect();
            // `put_aside` insists that each was at fault.
            let mut toy = Toy::new(count, &bad);
            toy.tasks = tasks.clone();
            let toy = toy.run(jobs);
            prop_assert!(!toy.is_red(toy.lanes.len()));
            prop_assert!(toy.aside.len() <= pairs.len() + tasks.len());
            if jobs == 1 {
                let (k, log) = (toy.aside.len(), count.next_power_of_two().ilog2() as usize);
                prop_assert!(toy.looks + toy.base_looks <= k * log + k + 2);
            }
        }
    }
}
