//! Launchers: the ways in which a supervisor starts an agent. Lanes, their records and landings do not depend
//! on them: a new way, such as another host or a cluster scheduler, is one more launcher.

use std::io::PipeWriter;

use proq_base::process::command_builder::CommandBuilder;
use proq_base::process::signals;
use proq_store::records::run::RunRecord;
use proq_stream::reader::Dialect;

use crate::agent::Error;

/// Way in which a supervisor starts an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Launcher {
    /// As a child process whose output is the run's log.
    Pipe,
    /// As a child process with its standard input held open, which receives one prompt after the other.
    OpenStdin,
    /// As a child of git-proq's client of the Agent Client Protocol.
    Protocol,
    /// In a tmux window, which a user operates.
    Window,
}

impl Launcher {
    /// Returns the launcher for a run whose output has this dialect.
    pub fn select(run: &RunRecord, dialect: Dialect) -> Launcher {
        match (run.interactive, dialect) {
            (true, _) => Launcher::Window,
            (false, Dialect::Acp) => Launcher::Protocol,
            (false, _) if run.accepts_more_prompts => Launcher::OpenStdin,
            (false, _) => Launcher::Pipe,
        }
    }

    /// Attaches a pipe to standard input for launchers that send further prompts through it, or that detect
    /// the supervisor's end by it. The pipe stays open while the returned writer exists.
    ///
    /// # Errors
    /// Fails when no pipe can be created.
    pub(crate) fn attach_stdin_pipe(
        self,
        start: CommandBuilder,
    ) -> Result<(CommandBuilder, Option<PipeWriter>), Error> {
        match self {
            Launcher::Pipe | Launcher::Window => Ok((start, None)),
            Launcher::OpenStdin | Launcher::Protocol => Ok(start.with_piped_stdin()?),
        }
    }

    /// Requests the agent in the process group `group` to stop. The protocol client receives a signal and
    /// requests the agent to finish its turn, which a signal to the agent would not do.
    pub(crate) fn request_stop(self, group: u32) {
        match self {
            Launcher::Pipe | Launcher::OpenStdin | Launcher::Window => signals::terminate_group(group),
            Launcher::Protocol => drop(signals::terminate_process(group)),
        }
    }
}
