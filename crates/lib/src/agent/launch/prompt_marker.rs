//! Command lines in which a marker stands for the prompt, so that the prompt need not be an argument of every
//! process between the caller and the agent.

use std::ffi::OsString;

/// Argument vector of an agent in which a marker stands for the prompt.
#[derive(Debug)]
pub struct MarkedArgv {
    /// The marker, which occurs nowhere else in the arguments.
    pub marker: String,
    /// Argument vector, program first.
    pub argv: Vec<OsString>,
}

impl MarkedArgv {
    /// Returns `marked`, the argument vector with `marker` in place of `prompt`. Returns none if inserting the
    /// prompt does not result in `argv`, or if the prompt is no argument.
    pub(crate) fn new(
        argv: &[OsString],
        marked: Vec<OsString>,
        marker: String,
        prompt: &str,
    ) -> Option<MarkedArgv> {
        let is_argument = marked != argv;
        let is_exact = insert_prompt(&marked, &marker, prompt) == argv;
        (is_argument && is_exact).then_some(MarkedArgv { marker, argv: marked })
    }
}

/// Returns the argument vector with `prompt` in place of `marker`.
pub(crate) fn insert_prompt(argv: &[OsString], marker: &str, prompt: &str) -> Vec<OsString> {
    let insert = |arg: &OsString| match arg.to_str() {
        Some(text) if text.contains(marker) => text.replace(marker, prompt).into(),
        _ => arg.clone(),
    };
    argv.iter().map(insert).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn marks_prompt_that_can_be_inserted_again() {
        let (argv, marked) = (words(&["a", "-p", "x=do it", "do it"]), words(&["a", "-p", "x=M", "M"]));
        let found = MarkedArgv::new(&argv, marked.clone(), "M".to_owned(), "do it").unwrap();
        assert_eq!(found.argv, marked);
        assert_eq!(insert_prompt(&found.argv, &found.marker, "do it"), argv);
    }

    #[test]
    fn leaves_other_command_lines_alone() {
        let argv = words(&["a", "-p"]);
        assert!(MarkedArgv::new(&argv, argv.clone(), "M".to_owned(), "do it").is_none());
        // A quoted prompt is another text than the prompt.
        let quoted = words(&["a", "\"do \\\"it\\\"\""]);
        assert!(MarkedArgv::new(&quoted, words(&["a", "\"M\""]), "M".to_owned(), "do \"it\"").is_none());
    }
}
