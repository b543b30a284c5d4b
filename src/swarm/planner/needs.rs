//! Owns the conversation in which an agent looks for dependencies that are missing, and what is kept of it.

use std::path::PathBuf;

use super::super::source::Found;
use super::super::{DraftError, Plan, proposals};
use super::ask::{self, Asker, Heard};
use super::json::needs_in;
use super::making::Taken;
use super::prompt;
use crate::lane::{self, Why, effective_state, operate};
use crate::store::records::{AnyLane, Costs, LaneState, ProposalsRecord, ProposedNeed};
use crate::store::{Record, now};

/// What may be missing among the tasks of a plan.
pub(crate) struct Missing<'a> {
    asker: Asker<'a>,
    /// Where what is known of these very tasks lies.
    file: PathBuf,
    prompt: String,
}

impl<'a> Missing<'a> {
    /// For the tasks of a plan, as they stand in its source.
    ///
    /// # Errors
    /// When they have no hash, which git knows why.
    pub(crate) fn of(asker: Asker<'a>, plan: &Plan) -> Result<Missing<'a>, DraftError> {
        let file = proposals::file(asker.project, plan).ok_or(DraftError::None)?;
        Ok(Missing { asker, file, prompt: prompt::for_needs(plan) })
    }

    /// What is known.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn record(&self) -> Result<Option<ProposalsRecord>, DraftError> {
        Ok(ProposalsRecord::find(&self.file)?)
    }

    /// Asks, as if nothing was known.
    ///
    /// # Errors
    /// When the agent cannot be started.
    pub(crate) fn begin(&self) -> Result<AnyLane, DraftError> {
        let job = self.asker.job(&self.prompt)?;
        let plan = self.asker.look(None, &self.prompt)?;
        self.asker.begin(&plan, &job, |lane| {
            let (lane, asked) = (Some(lane.name.clone()), Some(lane.created));
            let record = match self.record()? {
                // What is known counts until there is something else.
                Some(known) => ProposalsRecord { lane, asked, ..known },
                None => ProposalsRecord {
                    agent: self.asker.agent.to_owned(),
                    lane,
                    asked,
                    answered: false,
                    approved: false,
                    at: now(),
                    needs: Vec::new(),
                    costs: Costs::default(),
                },
            };
            Ok(record.save(&self.file)?)
        })
    }

    /// The lane in which an agent is asked, or was and has answered, which nobody has read; none where nothing comes of it.
    ///
    /// # Errors
    /// When its record cannot be read.
    pub(crate) fn unread(&self, record: &ProposalsRecord) -> Result<Option<AnyLane>, DraftError> {
        let Some(name) = &record.lane else { return Ok(None) };
        let Some(lane) = ask::find(self.asker.project, name, record.asked)? else { return Ok(None) };
        let (state, detail) = effective_state(self.asker.project, &lane)?;
        let is_of_use = state.is_busy() || state == LaneState::Done;
        Ok(is_of_use.then_some(AnyLane { detail, ..lane }))
    }

    /// Tells the agent what is wrong with its answer, and asks once more.
    ///
    /// # Errors
    /// When the agent cannot be started.
    pub(crate) fn mistake(&self, lane: &AnyLane, answer: &str, why: &str) -> Result<AnyLane, DraftError> {
        let whole = || Ok(prompt::for_mistake_anew(&self.prompt, answer, why));
        self.asker.go_on(lane, &prompt::for_mistake(why), whole)
    }

    /// Keeps what a run said that is over, as far as it fits the plan, and says what does not.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub(crate) fn take(
        &self,
        lane: &AnyLane,
        state: LaneState,
        found: Found,
    ) -> Result<(Taken, Vec<String>), DraftError> {
        let answer = match ask::heard(self.asker.project, lane, state)? {
            Heard::Nothing { why } => return Ok((Taken::Nothing { why }, Vec::new())),
            Heard::Answer { text } => text,
        };
        let said = match needs_in(&answer) {
            Ok(said) => said,
            Err(why) => return Ok((Taken::Wrong { why, answer }, Vec::new())),
        };
        let (needs, dropped) = proposals::sift(found, self.asker.agent, said);
        let is_known = |former: &ProposalsRecord| {
            let pairs = |needs: &[ProposedNeed]| -> Vec<(String, String)> {
                needs.iter().map(|need| (need.task.clone(), need.needs.clone())).collect()
            };
            former.approved && pairs(&former.needs) == pairs(&needs)
        };
        let approved = needs.is_empty() || self.record()?.as_ref().is_some_and(is_known);
        let record = ProposalsRecord {
            agent: self.asker.agent.to_owned(),
            lane: None,
            asked: None,
            answered: true,
            approved,
            at: now(),
            needs,
            costs: lane::spent(self.asker.project, lane)?,
        };
        record.save(&self.file)?;
        Ok((Taken::Plan, dropped))
    }

    /// Lets the lane go in which it was asked; what was said stays in the history.
    ///
    /// # Errors
    /// When it cannot go.
    pub(crate) fn close(&self, lane: &AnyLane) -> Result<(), DraftError> {
        operate(self.asker.project, "deps", |op| lane::remove_look(op, lane, Why::Tidy).map(drop))?;
        Ok(())
    }

    /// Uses them from now on for these very tasks.
    ///
    /// # Errors
    /// When that cannot be written.
    pub(crate) fn approve(&self, record: ProposalsRecord) -> Result<ProposalsRecord, DraftError> {
        let record = ProposalsRecord { approved: true, at: now(), ..record };
        record.save(&self.file)?;
        Ok(record)
    }
}

/// Forgets what an agent found missing among the tasks of a plan. Whether there was anything.
///
/// # Errors
/// When it cannot be removed.
pub(crate) fn forget(project: &lane::Project, plan: &Plan) -> Result<bool, DraftError> {
    let Some(file) = proposals::file(project, plan) else { return Ok(false) };
    match std::fs::remove_file(&file) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(lane::Error::io("remove", &file)(e).into()),
    }
}
