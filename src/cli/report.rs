//! Owns how a failure looks: one line that says what went wrong, its causes, and the commands that help.

use console::style;
use serde::Serialize;

use super::ui;
use crate::explain::{Exit, Explain};
use crate::{agent, config, git, harmless, interrupt, lane, merge, preview, process, store, swarm};

/// A command that did not do what was asked, and why.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) Box<dyn Explain>);

macro_rules! shown_as_error {
    ($($error:ty),* $(,)?) => {
        $(impl From<$error> for Failure {
            fn from(e: $error) -> Failure {
                Failure(Box::new(e))
            }
        })*
    };
}

shown_as_error!(
    agent::Error,
    config::Error,
    git::Error,
    lane::Error,
    merge::Error,
    preview::Error,
    process::Error,
    store::Error,
    swarm::DraftError,
    swarm::Error,
    super::Mistake,
    super::pick::Unpicked,
    super::redispatch::Unfit,
);

impl From<interrupt::Interrupted> for Failure {
    fn from(interrupted: interrupt::Interrupted) -> Failure {
        store::Error::from(interrupted).into()
    }
}

/// What went wrong, for programs.
#[derive(Serialize)]
struct Shown {
    error: String,
    causes: Vec<String>,
    hints: Vec<String>,
    exit: u8,
}

/// Shows a failure and returns the exit code.
pub(crate) fn show(failure: &Failure, json: bool) -> Exit {
    let error = failure.0.as_ref();
    let signal = interrupt::signal();
    let exit = if signal == 0 { error.exit() } else { Exit::Signal(signal) };
    let hints: Vec<String> = error.hints().iter().map(ToString::to_string).collect();
    let causes = causes(error);
    let said = match signal {
        0 => error.to_string(),
        // What git says when it is hit by the same Ctrl-C is not the point.
        _ => store::Error::Interrupted.to_string(),
    };
    if json {
        let shown = Shown { error: said, causes, hints, exit: exit.code() };
        ui::Ui { json, quiet: true, verbose: false }.object(shown);
        return exit;
    }
    ui::error_line("error:", &shown(&said), true);
    for cause in causes {
        ui::error_line("  caused by:", &shown(&cause), false);
    }
    for hint in hints {
        ui::error_line(&style("hint:").cyan().for_stderr().to_string(), &shown(&hint), false);
    }
    exit
}

/// Names and settings in it may come from a repository that somebody else wrote.
fn shown(text: &str) -> String {
    harmless::lines(text).collect::<Vec<_>>().join("\n")
}

/// The chain of causes, without the ones that the line above has in it.
fn causes(error: &dyn Explain) -> Vec<String> {
    let mut said = error.to_string();
    let mut out = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string().trim_end().to_owned();
        if !said.contains(&text) {
            said.push_str(&text);
            // Only the first line of what another program or library says at length.
            out.push(text.lines().next().unwrap_or_default().to_owned());
        }
        next = cause.source();
    }
    out
}
