//! Conversations of a lane: the run that the next message continues, and the command that you gave for its
//! agent.

use std::ffi::OsString;

use proq_store::Store;
use proq_store::base::record::Record;
use proq_store::base::run_number::RunNumber;
use proq_store::records::lane::AnyLane;
use proq_store::records::run::RunRecord;

use crate::agent::Error;
use crate::agent::hook_events::activity::reported_session;
use crate::lane::Project;

/// Refuses a lane whose conflict is being resolved: an agent at its task would interfere with the resolution.
pub fn refuse_while_resolving(project: &Project, lane: &AnyLane) -> Result<(), Error> {
    match project.find_resolution(&lane.name)? {
        Some(_) => Err(Error::ConflictBeingResolved { lane: lane.name.clone() }),
        None => Ok(()),
    }
}

/// Finds the last run of a lane that worked at its task and can be continued: its session is known, or will
/// be soon. With `conversation`, only runs of that conversation count. None without such a run.
pub(crate) fn last_conversation_run(
    store: &Store,
    lane: &AnyLane,
    conversation: Option<RunNumber>,
) -> Result<Option<RunRecord>, Error> {
    let layout = store.layout();
    for run_number in RunNumber::first().through(lane.last_run).rev() {
        let Some(mut run) = RunRecord::load_if_exists(&layout.run_record(&lane.name, run_number))? else {
            continue;
        };
        if run.summary.session.is_none() {
            run.summary.session = reported_session(store, &lane.name, run_number);
        }
        // A run that ended before it started has no agent to continue with, though its session was chosen.
        let is_resumable = run.ended.is_none() || (run.summary.session.is_some() && run.pid.is_some());
        if !run.resolves_conflict
            && !run.is_review()
            && is_resumable
            && conversation.is_none_or(|wanted| run.conversation_number() == wanted)
        {
            return Ok(Some(run));
        }
    }
    Ok(None)
}

/// Finds the command that you gave for a lane's agent when the agent's profile has none. Returns an empty
/// list without one.
pub fn find_user_agent_command(store: &Store, lane: &AnyLane) -> Result<Vec<OsString>, Error> {
    let layout = store.layout();
    for run_number in RunNumber::first().through(lane.last_run).rev() {
        let run = RunRecord::load_if_exists(&layout.run_record(&lane.name, run_number))?;
        if let Some(run) = run.filter(|run| !run.resolves_conflict && lane.agent.as_ref() == Some(&run.agent))
        {
            return Ok(run.agent_command.iter().map(OsString::from).collect());
        }
    }
    Ok(Vec::new())
}
