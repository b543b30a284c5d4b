//! The hidden `_agent-event` command, which an agent's own hooks run.

use std::io::Read;
use std::time::Duration;

use clap::Args;

use super::{CommandContext, CommandResult};
use crate::agent::{self, HookInput};
use crate::diagnostics::Listener;
use crate::explain::Exit;
use crate::lane::Project;
use crate::store::WaitLimit;

/// Longest wait for a lock. The agent is blocked during that time.
const LOCK_WAIT_LIMIT: Duration = Duration::from_secs(2);

/// Notes what an agent does, as its hook says on standard input.
#[derive(Debug, Args)]
pub(crate) struct AgentEvent {
    /// The lane
    #[arg(long, env = "PROQ_LANE")]
    pub(crate) lane: Option<String>,
    /// The run
    #[arg(long, env = "PROQ_ATTEMPT")]
    pub(crate) attempt: Option<String>,
    /// What kind of hook it is
    pub(crate) kind: Option<String>,
}

/// Handles an event that an agent's hook passes on standard input, and always exits with 0. Prints a `block`
/// decision if the agent must not stop yet.
///
/// A failing hook may end the agent's turn, or keep it from ending. So this command reports no error and
/// accepts everything on its command line.
pub(super) fn run(session: &CommandContext, args: &AgentEvent) -> CommandResult {
    let mut input = Vec::new();
    drop(std::io::stdin().lock().read_to_end(&mut input));
    if let Some(reason) = handle_event(session, args, &input) {
        session
            .ui
            .print_bytes(serde_json::json!({ "decision": "block", "reason": reason }).to_string().as_bytes());
    }
    Ok(Exit::Success)
}

fn handle_event(session: &CommandContext, args: &AgentEvent, input: &[u8]) -> Option<String> {
    let attempt = args.attempt.as_deref()?.parse().ok()?;
    let mut project = Project::open(&session.dir, Listener::silent()).ok()?;
    project.store.set_lock_limit(WaitLimit::AtMost(LOCK_WAIT_LIMIT));
    let kind = args.kind.as_deref().unwrap_or_default();
    agent::handle_hook_event(&project, args.lane.as_deref()?, attempt, kind, &HookInput::parse(input)).ok()?
}
