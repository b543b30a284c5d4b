//! Owns which commands count on a state of a stack: those of its base on each, those of a task where its lane is in it.

/// A state of the files that is looked at with some commands, by their numbers.
pub(super) type Numbers = Vec<usize>;

/// Every command of one call, each with a number.
///
/// A line that a base and a task both have gets two: for a task it is what its lane has to achieve, so that it counts
/// where the lane is, even when it fails on the base; elsewhere it is one of the base's like any other.
#[derive(Debug, Default)]
pub(super) struct Commands {
    lines: Vec<String>,
    /// The numbers of those of tasks.
    of_tasks: Numbers,
}

impl Commands {
    /// Adds the commands of landings on a base, and returns their numbers in order.
    pub(super) fn add(&mut self, common: Vec<String>) -> Numbers {
        let from = self.lines.len();
        self.lines.extend(common);
        (from..self.lines.len()).collect()
    }

    /// All lines so far, by number.
    pub(super) fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Whether a command is what some lane has to achieve.
    pub(super) fn is_of_task(&self, number: usize) -> bool {
        self.of_tasks.contains(&number)
    }

    /// What counts on a state with lanes whose tasks have these commands: those of the base, by number, then the tasks' in the
    /// order of the lanes, each once.
    pub(super) fn on<'l>(&mut self, base: &[usize], tasks: impl Iterator<Item = &'l [String]>) -> Numbers {
        let mut out: Numbers = base.to_vec();
        for line in tasks.flatten() {
            let number = self.of_task(line);
            // It runs where the base has it, so that what comes after can build on it.
            match out.iter().position(|n| base.contains(n) && self.lines[*n] == *line) {
                Some(at) => out[at] = number,
                None if out.contains(&number) => {}
                None => out.push(number),
            }
        }
        out
    }

    /// The lines of these numbers.
    pub(super) fn named(&self, numbers: &[usize]) -> Vec<String> {
        numbers.iter().map(|n| self.lines[*n].clone()).collect()
    }

    fn of_task(&mut self, line: &String) -> usize {
        let known = self.of_tasks.iter().find(|number| self.lines[**number] == *line);
        if let Some(number) = known {
            return *number;
        }
        self.lines.push(line.clone());
        self.of_tasks.push(self.lines.len() - 1);
        self.lines.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(all: &mut Commands, lanes: &[&[&str]]) -> Numbers {
        let lanes: Vec<Vec<String>> =
            lanes.iter().map(|lane| lane.iter().map(|line| (*line).to_owned()).collect()).collect();
        all.on(&[0, 1], lanes.iter().map(Vec::as_slice))
    }

    #[test]
    fn each_state_has_the_commands_of_its_lanes_once() {
        let mut all = Commands::default();
        assert_eq!(all.add(vec!["make".into(), "make test".into()]), [0, 1]);
        let (a, b, c): (&[&str], &[&str], &[&str]) = (&["x", "y"], &[], &["y", "z", "y"]);
        assert_eq!(numbers(&mut all, &[]), [0, 1]);
        assert_eq!(numbers(&mut all, &[a, b]), [0, 1, 2, 3]);
        assert_eq!(numbers(&mut all, &[a, b, c]), [0, 1, 2, 3, 4]);
        assert_eq!(numbers(&mut all, &[c]), [0, 1, 3, 4]);
        assert_eq!(all.named(&[1, 4]), ["make test", "z"]);
        assert!(all.is_of_task(2) && !all.is_of_task(1));
    }

    #[test]
    fn a_line_that_both_have_is_run_once_in_its_place_and_is_the_tasks() {
        let mut all = Commands::default();
        assert_eq!(all.add(vec!["make".into(), "make test".into()]), [0, 1]);
        assert_eq!(numbers(&mut all, &[&["make", "more"]]), [2, 1, 3]);
        assert_eq!(numbers(&mut all, &[&[]]), [0, 1]);
        assert!(all.is_of_task(2) && !all.is_of_task(0));
    }
}
