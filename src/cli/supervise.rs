//! Owns the hidden command that a supervisor is.

use super::args::Supervise;
use super::{Done, Session};
use crate::agent;
use crate::explain::Exit;

pub(super) fn run(session: &Session, args: &Supervise) -> Done {
    let project = session.project()?;
    let exe = super::resolve::this_program()?;
    agent::supervise(&project, &args.lane, args.attempt, &args.command, &exe)?;
    Ok(Exit::Done)
}
