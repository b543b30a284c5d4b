//! Owns the hidden command that an agent's own hooks call.

use std::io::Read;
use std::time::Duration;

use clap::Args;

use super::{Done, Session};
use crate::agent::{self, HookInput};
use crate::explain::Exit;
use crate::lane::Project;
use crate::note::Listener;
use crate::store::Limit;

/// How long it waits for a lock: the agent waits for it.
const PATIENCE: Duration = Duration::from_secs(2);

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

/// Whatever goes wrong in here is not the agent's business: a hook that fails may end its turn, or keep it from ending. So
/// it says nothing, exits with 0, and takes everything on its command line.
pub(super) fn run(session: &Session, args: &AgentEvent) -> Done {
    let mut bytes = Vec::new();
    drop(std::io::stdin().lock().read_to_end(&mut bytes));
    if let Some(reason) = heard(session, args, &bytes) {
        session.ui.raw(serde_json::json!({ "decision": "block", "reason": reason }).to_string().as_bytes());
    }
    Ok(Exit::Done)
}

fn heard(session: &Session, args: &AgentEvent, bytes: &[u8]) -> Option<String> {
    let attempt = args.attempt.as_deref()?.parse().ok()?;
    let mut project = Project::open(&session.dir, Listener::silent()).ok()?;
    project.store.set_lock_limit(Limit::For(PATIENCE));
    let kind = args.kind.as_deref().unwrap_or_default();
    agent::hear(&project, args.lane.as_deref()?, attempt, kind, &HookInput::read(bytes)).ok()?
}
