//! Owns the hidden command that a supervisor is.

use super::args::Supervise;
use super::{Done, Session};
use crate::agent;
use crate::explain::Exit;

pub(super) fn run(session: &Session, args: &Supervise) -> Done {
    let project = session.project()?;
    agent::supervise(&project, &args.lane, args.attempt, &args.command)?;
    Ok(Exit::Done)
}
