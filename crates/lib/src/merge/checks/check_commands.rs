//! Check commands of each state of a stack, where a state is the base with the lowest lanes. Commands of the
//! base check every state; commands of a task check the states that contain its lane.

/// Numbers of check commands, in the order in which they run on one state.
pub(crate) type CommandNumbers = Vec<usize>;

/// All check commands of one landing, each with a number.
///
/// A command line that both a base and a task have gets two numbers. For the task it is a goal of the lane:
/// it counts on states with the lane, even when it fails on the base. Elsewhere it counts like any other
/// command of the base.
#[derive(Debug, Default)]
pub(crate) struct CheckCommands {
    command_lines: Vec<String>,
    /// Numbers of the commands that belong to tasks.
    task_command_numbers: CommandNumbers,
}

impl CheckCommands {
    /// Adds the commands of landings on one base, and returns their numbers in order.
    pub(crate) fn add_base_commands(&mut self, base_commands: Vec<String>) -> CommandNumbers {
        let first = self.command_lines.len();
        self.command_lines.extend(base_commands);
        (first..self.command_lines.len()).collect()
    }

    /// Returns all command lines so far; the index of a line is its number.
    pub fn lines(&self) -> &[String] {
        &self.command_lines
    }

    /// Returns whether the command with this number is one of a lane's task, rather than one of the base's checks.
    pub(crate) fn is_task_check(&self, number: usize) -> bool {
        self.task_command_numbers.contains(&number)
    }

    /// Returns the numbers of the commands that check a state: first those of the base, then those of the
    /// tasks of the state's lanes in stack order, each once.
    pub(crate) fn numbers_for_state<'l>(
        &mut self,
        base: &[usize],
        task_commands: impl Iterator<Item = &'l [String]>,
    ) -> CommandNumbers {
        let mut out: CommandNumbers = base.to_vec();
        for line in task_commands.flatten() {
            let number = self.task_command_number(line);
            // A line of both runs in the base's position, so that later commands can depend on it.
            match out.iter().position(|n| base.contains(n) && self.command_lines[*n] == *line) {
                Some(position) => out[position] = number,
                None if out.contains(&number) => {}
                None => out.push(number),
            }
        }
        out
    }

    /// Returns the command lines of these numbers.
    pub(crate) fn lines_of(&self, numbers: &[usize]) -> Vec<String> {
        numbers.iter().map(|n| self.command_lines[*n].clone()).collect()
    }

    /// Returns the number of a command line of tasks, and adds the command if it is new.
    fn task_command_number(&mut self, line: &String) -> usize {
        let known = self.task_command_numbers.iter().find(|number| self.command_lines[**number] == *line);
        if let Some(number) = known {
            return *number;
        }
        self.command_lines.push(line.clone());
        self.task_command_numbers.push(self.command_lines.len() - 1);
        self.command_lines.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(commands: &mut CheckCommands, lanes: &[&[&str]]) -> CommandNumbers {
        let lanes: Vec<Vec<String>> =
            lanes.iter().map(|lane| lane.iter().map(|line| (*line).to_owned()).collect()).collect();
        commands.numbers_for_state(&[0, 1], lanes.iter().map(Vec::as_slice))
    }

    #[test]
    fn each_state_has_the_commands_of_its_lanes_once() {
        let mut commands = CheckCommands::default();
        assert_eq!(commands.add_base_commands(vec!["make".into(), "make test".into()]), [0, 1]);
        let (a, b, c): (&[&str], &[&str], &[&str]) = (&["x", "y"], &[], &["y", "z", "y"]);
        assert_eq!(numbers(&mut commands, &[]), [0, 1]);
        assert_eq!(numbers(&mut commands, &[a, b]), [0, 1, 2, 3]);
        assert_eq!(numbers(&mut commands, &[a, b, c]), [0, 1, 2, 3, 4]);
        assert_eq!(numbers(&mut commands, &[c]), [0, 1, 3, 4]);
        assert_eq!(commands.lines_of(&[1, 4]), ["make test", "z"]);
        assert!(commands.is_task_check(2) && !commands.is_task_check(1));
    }

    #[test]
    fn shared_line_runs_once_as_task_command() {
        let mut commands = CheckCommands::default();
        assert_eq!(commands.add_base_commands(vec!["make".into(), "make test".into()]), [0, 1]);
        assert_eq!(numbers(&mut commands, &[&["make", "more"]]), [2, 1, 3]);
        assert_eq!(numbers(&mut commands, &[&[]]), [0, 1]);
        assert!(commands.is_task_check(2) && !commands.is_task_check(0));
    }
}
