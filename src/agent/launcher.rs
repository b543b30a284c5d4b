//! Owns the ways in which a supervisor has an agent started, and all that is different between them. Lanes, their records and
//! landing know of none of it: one more way (another host, the scheduler of a cluster) is one more of these.

use std::io::PipeWriter;

use super::Error;
use super::pane;
use super::stream::Dialect;
use super::watch::{Ended, Watch};
use super::wishes::Wishes;
use crate::process::{self, Start};
use crate::store::records::RunRecord;

/// A way to start an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Launcher {
    /// As a process of its own, whose output is the run's log.
    Pipe,
    /// The same, with its input held open: it takes one prompt after the other.
    Fed,
    /// The same, with a client of the Agent Client Protocol in between.
    Protocol,
    /// In a window of tmux, in front of a person.
    Window,
}

impl Launcher {
    /// The way in which a run is started, whose output has this form.
    pub(super) fn of(run: &RunRecord, dialect: Dialect) -> Launcher {
        match (run.interactive, dialect) {
            (true, _) => Launcher::Window,
            (false, Dialect::Acp) => Launcher::Protocol,
            (false, _) if run.prompts_follow => Launcher::Fed,
            (false, _) => Launcher::Pipe,
        }
    }

    /// Starts the agent, tells `started` its process group, and waits for its end, or for a reason to end it. Whatever it left
    /// running is ended too.
    ///
    /// # Errors
    /// When nothing runs.
    pub(super) async fn run(
        self,
        watch: &Watch<'_>,
        wishes: &mut Wishes,
        started: impl FnOnce(u32) -> Result<(), Error>,
    ) -> Result<Ended, Error> {
        match self {
            Launcher::Pipe | Launcher::Fed | Launcher::Protocol => watch.run(wishes, started).await,
            Launcher::Window => pane::run(watch, wishes, started).await,
        }
    }

    /// The process to start where it is this one's child.
    ///
    /// # Errors
    /// When there is no command.
    pub(super) fn command(self, watch: &Watch<'_>) -> Result<Start, Error> {
        let order = watch.order;
        let (program, args) = order.words.split_first().ok_or(Error::NoCommand)?;
        Ok(match self {
            Launcher::Pipe | Launcher::Fed | Launcher::Window => {
                Start::new(program.as_ref(), &order.dir).args(args)
            }
            Launcher::Protocol => Start::new(watch.exe, &order.dir)
                .args(["_acp", "--lane", watch.lane.name.as_str(), "--attempt"])
                .args([watch.attempt.to_string(), "--".to_owned()])
                .args(order.words.iter().cloned()),
        })
    }

    /// What it reads, where that is how it is told more, or knows that it is watched: for as long as what is returned is there.
    ///
    /// # Errors
    /// When there is no pipe to be had.
    pub(super) fn leash(self, start: Start) -> Result<(Start, Option<PipeWriter>), Error> {
        match self {
            Launcher::Pipe | Launcher::Window => Ok((start, None)),
            Launcher::Fed | Launcher::Protocol => Ok(start.leashed()?),
        }
    }

    /// Asks the agent to end. A client asks it to end its turn, which a signal would not; the agent's own end is its business.
    pub(super) fn ask_to_end(self, group: u32) {
        match self {
            Launcher::Pipe | Launcher::Fed | Launcher::Window => process::ask_group(group),
            Launcher::Protocol => drop(process::signal_process(group)),
        }
    }
}
