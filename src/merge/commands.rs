//! Owns which commands count on a state of a stack: those of the landing on each, those of a task where its lane is in it.

/// A state of the files that is looked at with some commands, by their numbers.
pub(super) type Numbers = Vec<usize>;

/// Every command of one call, each with a number.
///
/// A line that the landing and a task both have gets two: for a task it is what its lane has to achieve, so that it counts
/// where the lane is, even when it fails on the base; elsewhere it is one of the landing's like any other.
#[derive(Debug)]
pub(super) struct Commands {
    lines: Vec<String>,
    /// How many of the first are the landing's.
    common: usize,
}

impl Commands {
    /// The commands of a landing, in order.
    pub(super) fn new(common: Vec<String>) -> Commands {
        Commands { common: common.len(), lines: common }
    }

    /// All lines so far, by number.
    pub(super) fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Those of the landing.
    pub(super) fn common(&self) -> &[String] {
        &self.lines[..self.common]
    }

    /// Whether a command is what some lane has to achieve.
    pub(super) fn is_of_task(&self, number: usize) -> bool {
        number >= self.common
    }

    /// What counts on a state with lanes whose tasks have these commands: the landing's, then the tasks' in the order of the
    /// lanes, each once.
    pub(super) fn on<'l>(&mut self, tasks: impl Iterator<Item = &'l [String]>) -> Numbers {
        let mut out: Numbers = (0..self.common).collect();
        for line in tasks.flatten() {
            let number = self.of_task(line);
            // It runs where the landing has it, so that what comes after can build on it.
            match out.iter().position(|n| *n < self.common && self.lines[*n] == *line) {
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
        let known = self.lines[self.common..].iter().position(|known| known == line);
        known.map_or_else(
            || {
                self.lines.push(line.clone());
                self.lines.len() - 1
            },
            |at| at + self.common,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(all: &mut Commands, lanes: &[&[&str]]) -> Numbers {
        let lanes: Vec<Vec<String>> =
            lanes.iter().map(|lane| lane.iter().map(|line| (*line).to_owned()).collect()).collect();
        all.on(lanes.iter().map(Vec::as_slice))
    }

    #[test]
    fn each_state_has_the_commands_of_its_lanes_once() {
        let mut all = Commands::new(vec!["make".into(), "make test".into()]);
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
        let mut all = Commands::new(vec!["make".into(), "make test".into()]);
        assert_eq!(numbers(&mut all, &[&["make", "more"]]), [2, 1, 3]);
        assert_eq!(numbers(&mut all, &[&[]]), [0, 1]);
        assert_eq!(all.common(), ["make", "make test"]);
    }
}
