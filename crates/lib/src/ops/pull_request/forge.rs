//! Start of the programs of forges: `gh` for GitHub and `glab` for GitLab.

use std::path::PathBuf;
use std::time::Duration;

use proq_base::interrupt;
use proq_base::process::command_builder::CommandBuilder;
use proq_base::process::find_executable;
use proq_base::process::limited_process::ExitOutcome;
use proq_base::process::run_captured::CaptureOptions;
use proq_store::records::pull_request::ForgeProgram;

use super::forge_error::{ForgeError, quoted_lines};
use crate::lane::Project;

/// Time limit of a program that changes something on the forge.
pub(super) const CHANGE_LIMIT: Duration = Duration::from_mins(1);

/// Time limit of a program that only reads.
pub(super) const READ_LIMIT: Duration = Duration::from_secs(20);

/// Limit of a program's output that is read, in bytes.
const MAX_OUTPUT_BYTES: usize = 4 << 20;

/// Exit code of `gh` without a login.
const GH_LOGGED_OUT: ExitOutcome = ExitOutcome::Code(4);

/// Variables that would make a program print for a terminal.
const TERMINAL_VARIABLES: &[&str] = &["GH_FORCE_TTY", "CLICOLOR_FORCE"];

/// Program that speaks to a forge about one repository there.
#[derive(Debug, Clone)]
pub struct Forge {
    /// The program.
    pub program: ForgeProgram,
    /// Repository, as the program's option `--repo` takes it; none for the one that it finds by itself.
    pub repository: Option<String>,
    path: PathBuf,
    /// Folder in which the program runs.
    dir: PathBuf,
}

/// One start of a program.
pub(super) struct ForgeCall<'a> {
    /// What the program is to do, as a verb with its object, for errors.
    pub action: &'a str,
    /// Arguments, without the repository.
    pub args: Vec<String>,
    /// Text on standard input.
    pub input: &'a str,
    pub limit: Duration,
}

impl Forge {
    /// Finds the installed program. `action` is what it is needed for.
    ///
    /// # Errors
    /// [`ForgeError::NotInstalled`].
    pub fn find(
        project: &Project,
        program: ForgeProgram,
        repository: Option<String>,
        action: &str,
    ) -> Result<Forge, ForgeError> {
        let dir = project.repo.command_dir().to_owned();
        match find_executable(&program.to_string(), &dir) {
            Ok(path) => Ok(Forge { program, repository, path, dir }),
            Err(_) => Err(ForgeError::NotInstalled { action: action.to_owned(), program }),
        }
    }

    /// Runs the program and returns its standard output.
    ///
    /// # Errors
    /// Fails if it does not succeed in time.
    pub(super) fn run(&self, call: &ForgeCall<'_>) -> Result<String, ForgeError> {
        let (action, program) = (call.action.to_owned(), self.program);
        let repository = self.repository.iter().flat_map(|repository| ["--repo", repository.as_str()]);
        let command = CommandBuilder::new(&self.path, &self.dir)
            .args(&call.args)
            .args(repository)
            .without_vars(TERMINAL_VARIABLES)
            .envs([("GH_PROMPT_DISABLED", "1"), ("NO_PROMPT", "1"), ("NO_COLOR", "1")].map(to_os));
        let options = CaptureOptions {
            limit: call.limit,
            grace: Duration::from_secs(1),
            max_output_bytes: MAX_OUTPUT_BYTES,
        };
        let is_stopped = || !interrupt::has_no_signal();
        let result = command.run_captured_apart(call.input.as_bytes().to_vec(), options, &is_stopped);
        let outcome = match result.outcome {
            Ok(outcome) if outcome.is_success() => return Ok(result.output),
            Ok(ExitOutcome::TimedOut(limit)) => return Err(ForgeError::TimedOut { action, program, limit }),
            outcome => outcome,
        };
        let errors = if result.errors.trim().is_empty() { &result.output } else { &result.errors };
        if outcome == Ok(GH_LOGGED_OUT) && program == ForgeProgram::Gh || mentions_login(errors) {
            return Err(ForgeError::LoggedOut { action, program, host: self.host() });
        }
        let exit = outcome.map_or_else(|e| e, |outcome| outcome.to_string());
        Err(ForgeError::Failed { action, program, exit, output: quoted_lines(errors) })
    }

    /// Returns the host of the repository, if it is known.
    fn host(&self) -> Option<String> {
        let repository = self.repository.as_deref()?;
        let path = repository.strip_prefix("https://").unwrap_or(repository);
        path.split('/').next().map(ToOwned::to_owned)
    }
}

/// Returns whether the output of a failed program is about a missing or refused login.
fn mentions_login(output: &str) -> bool {
    ["auth login", "401 Unauthorized", "HTTP 401"].iter().any(|text| output.contains(text))
}

fn to_os((key, value): (&str, &str)) -> (std::ffi::OsString, std::ffi::OsString) {
    (key.into(), value.into())
}
