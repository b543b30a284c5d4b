//! The hidden `_acp` command, which speaks the Agent Client Protocol with an agent.

use std::ffi::OsString;
use std::os::fd::AsFd;

use clap::Args;

use super::{CommandContext, CommandResult, Failure};
use crate::agent::{self, AgentExit, ClientLine, DriverHandles};
use crate::diagnostics::Listener;
use crate::explain::Exit;
use crate::lane::Project;
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

/// Runs the client of the Agent Client Protocol, and exits as the agent did: with its exit code, or by its
/// signal.
pub(super) fn run(session: &CommandContext, args: &Acp) -> CommandResult {
    let agent_exit = drive_agent(session, args).unwrap_or_else(|e| {
        // A user finds the error in the run's log, so it is written there.
        session.ui.print_bytes(ClientLine::Failure { text: e.0.to_string() }.to_line().as_bytes());
        AgentExit::Code(i32::from(Exit::Refused.code()))
    });
    let code = match agent_exit {
        AgentExit::Code(code) => code,
        AgentExit::Signal(signal) => {
            process::exit_by_signal(signal);
            128 + signal
        }
    };
    Ok(Exit::PassThrough(u8::try_from(code).unwrap_or(1)))
}

fn drive_agent(session: &CommandContext, args: &Acp) -> Result<AgentExit, Failure> {
    let project = Project::open(&session.dir, Listener::silent())?;
    let start_error = |source| process::Error::Start { program: "the agent's client".into(), source };
    let log = std::io::stdout().as_fd().try_clone_to_owned().map_err(start_error)?;
    let supervisor_pipe = std::io::stdin().as_fd().try_clone_to_owned().map_err(start_error)?;
    let handles = DriverHandles {
        log: log.into(),
        supervisor_pipe,
        program_path: super::resolve::current_program_path()?,
    };
    Ok(agent::run_protocol_agent(&project, &args.lane, args.attempt, &args.command, handles)?)
}
