//! Owns the hidden command that speaks the Agent Client Protocol with an agent.

use std::ffi::OsString;
use std::os::fd::AsFd;

use clap::Args;

use super::{Done, Failure, Session};
use crate::agent::{self, Hands, Left, Said};
use crate::explain::Exit;
use crate::lane::Project;
use crate::note::Listener;
use crate::process;

/// Speaks the protocol with an agent. Started by a run's supervisor in the agent's place.
#[derive(Debug, Args)]
pub(crate) struct Acp {
    /// The lane
    #[arg(long)]
    pub(crate) lane: String,
    /// The run
    #[arg(long)]
    pub(crate) attempt: u32,
    /// The agent's command line
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}

/// Ends as the agent did: with its exit code, or by its signal.
pub(super) fn run(session: &Session, args: &Acp) -> Done {
    let left = drive(session, args).unwrap_or_else(|e| {
        // The run's log is where somebody looks for it.
        session.ui.raw(Said::Fails { text: e.0.to_string() }.line().as_bytes());
        Left::Code(i32::from(Exit::Refused.code()))
    });
    let code = match left {
        Left::Code(code) => code,
        Left::Signal(signal) => {
            process::die_of(signal);
            128 + signal
        }
    };
    Ok(Exit::As(u8::try_from(code).unwrap_or(1)))
}

fn drive(session: &Session, args: &Acp) -> Result<Left, Failure> {
    let project = Project::open(&session.dir, Listener::silent())?;
    let unheard = |source| process::Error::Start { program: "the agent's client".into(), source };
    let log = std::io::stdout().as_fd().try_clone_to_owned().map_err(unheard)?;
    let leash = std::io::stdin().as_fd().try_clone_to_owned().map_err(unheard)?;
    let hands = Hands { log: log.into(), leash, exe: super::resolve::this_program()? };
    Ok(agent::drive(&project, &args.lane, args.attempt, &args.command, hands)?)
}
