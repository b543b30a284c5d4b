//! Launchers: the ways in which a supervisor starts an agent, and all differences between them. Lanes, their
//! records and landings do not depend on them: a new way, such as another host or a cluster scheduler, is one
//! more launcher.

use std::io::PipeWriter;

use super::Error;
use super::shutdown_signals::ShutdownSignals;
use super::stream::Dialect;
use super::tmux_client;
use super::watch::{RunExit, RunWatcher};
use crate::process::{self, CommandBuilder};
use crate::store::records::RunRecord;

/// Way in which a supervisor starts an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Launcher {
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
    pub(super) fn select(run: &RunRecord, dialect: Dialect) -> Launcher {
        match (run.interactive, dialect) {
            (true, _) => Launcher::Window,
            (false, Dialect::Acp) => Launcher::Protocol,
            (false, _) if run.accepts_more_prompts => Launcher::OpenStdin,
            (false, _) => Launcher::Pipe,
        }
    }

    /// Starts the agent, passes its process group to `on_started`, and waits until it exits or has to be
    /// stopped. Processes that it left running are stopped too.
    ///
    /// # Errors
    /// Fails when no process could be started.
    pub(super) async fn run(
        self,
        watch: &RunWatcher<'_>,
        signals: &mut ShutdownSignals,
        on_started: impl FnOnce(u32) -> Result<(), Error>,
    ) -> Result<RunExit, Error> {
        match self {
            Launcher::Pipe | Launcher::OpenStdin | Launcher::Protocol => watch.run(signals, on_started).await,
            Launcher::Window => tmux_client::run(watch, signals, on_started).await,
        }
    }

    /// Builds the command that starts the agent, or for the protocol launcher git-proq's client in front of
    /// it.
    ///
    /// # Errors
    /// Fails when there is no command.
    pub(super) fn build_command(self, watch: &RunWatcher<'_>) -> Result<CommandBuilder, Error> {
        let spec = watch.spec;
        let (program, args) = spec.argv.split_first().ok_or(Error::NoCommand)?;
        Ok(match self {
            Launcher::Pipe | Launcher::OpenStdin | Launcher::Window => {
                CommandBuilder::new(program.as_ref(), &spec.dir).args(args)
            }
            Launcher::Protocol => CommandBuilder::new(watch.program_path, &spec.dir)
                .args(["_acp", "--lane", watch.lane.name.as_str(), "--attempt"])
                .args([watch.attempt.to_string(), "--".to_owned()])
                .args(spec.argv.iter().cloned()),
        })
    }

    /// Attaches a pipe to standard input for launchers that send further prompts through it, or that detect
    /// the supervisor's end by it. The pipe stays open while the returned writer exists.
    ///
    /// # Errors
    /// Fails when no pipe can be created.
    pub(super) fn attach_stdin_pipe(
        self,
        start: CommandBuilder,
    ) -> Result<(CommandBuilder, Option<PipeWriter>), Error> {
        match self {
            Launcher::Pipe | Launcher::Window => Ok((start, None)),
            Launcher::OpenStdin | Launcher::Protocol => Ok(start.with_piped_stdin()?),
        }
    }

    /// Requests the agent to stop. The protocol client receives a signal and requests the agent to finish its
    /// turn, which a signal to the agent would not do.
    pub(super) fn request_stop(self, group: u32) {
        match self {
            Launcher::Pipe | Launcher::OpenStdin | Launcher::Window => process::terminate_group(group),
            Launcher::Protocol => drop(process::terminate_process(group)),
        }
    }
}
