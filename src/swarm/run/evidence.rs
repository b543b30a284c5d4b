//! Owns what is on record of the runs of a batch: which were started, and what came of them.

use crate::git::Oid;
use crate::lane::{Project, effective_state};
use crate::store::records::{Cost, LaneRecord, LaneState, RunClass, RunRecord, Tokens};
use crate::store::{Moment, Record};
use crate::swarm::Error;
use crate::swarm::schedule::End;

/// The runs that one attempt at a task took, in order: more than one where a service would not serve it at first, or where it
/// went on in a new conversation.
#[derive(Debug, Clone)]
pub(crate) struct Chain {
    /// The lane.
    pub(crate) lane: LaneRecord,
    /// The runs.
    pub(crate) runs: Vec<RunRecord>,
}

/// What an attempt came to.
#[derive(Debug, Clone)]
pub(super) struct Came {
    /// How it ended.
    pub(super) end: End,
    /// Where it began.
    pub(super) from: Option<Oid>,
    /// Where its lane is after it.
    pub(super) to: Option<Oid>,
    /// More, in a line.
    pub(super) detail: Option<String>,
}

/// The lanes of a batch by their numbers. Of two of one number, which nothing should leave, the younger one counts.
pub(super) fn lanes_of(project: &Project, batch: &str) -> Result<Vec<(usize, LaneRecord)>, Error> {
    let mut out: Vec<(usize, LaneRecord)> = Vec::new();
    for lane in project.lanes()? {
        let Some(place) = lane.batch.as_ref().filter(|place| place.batch == batch) else { continue };
        out.push((place.lane, lane.clone()));
    }
    out.sort_by_key(|(number, lane)| (*number, lane.created));
    Ok(out)
}

/// The runs of one attempt in a lane; none if it was never begun there. One whose supervisor never came to start an agent was
/// not begun.
pub(crate) fn chain_of(
    project: &Project,
    lane: &LaneRecord,
    batch: &str,
    (task, attempt): (usize, u32),
) -> Result<Option<Chain>, Error> {
    let layout = project.store.layout();
    let mut runs = Vec::new();
    for number in 1..=lane.attempt {
        let Some(run) = RunRecord::find(&layout.run_record(&lane.name, number))? else { continue };
        let is_it = run
            .batch
            .as_ref()
            .is_some_and(|of| of.batch == batch && (of.number, of.attempt) == (task, attempt));
        if is_it && !run.resolves {
            runs.push(run);
        }
    }
    let last_is_at_it = runs.last().is_some_and(|run| run.attempt == lane.attempt);
    let busy = last_is_at_it && effective_state(project, lane)?.0.is_busy();
    // One may have an end all the same: whoever found it took it for that of a dead supervisor.
    runs.retain(|run| run.pid.is_some() || busy && run.attempt == lane.attempt);
    Ok((!runs.is_empty()).then(|| Chain { lane: lane.clone(), runs }))
}

impl Chain {
    /// Whether its last run is the last one of its lane.
    fn is_last(&self) -> bool {
        self.runs.last().is_some_and(|run| run.attempt == self.lane.attempt)
    }

    /// Whether something of it goes on.
    ///
    /// # Errors
    /// When the lane's locks cannot be looked at.
    pub(super) fn goes_on(&self, project: &Project) -> Result<Option<LaneState>, Error> {
        let (state, _) = effective_state(project, &self.lane)?;
        Ok((self.is_last() && state.is_busy()).then_some(state))
    }

    /// Whether it is the work at a task that is a folder, in several runs that each end well.
    fn has_steps(&self) -> bool {
        self.runs.last().is_some_and(|run| run.stint.is_some())
    }

    /// The last run of it that did something, rather than judged what others did.
    pub(super) fn last_work(&self) -> Option<&RunRecord> {
        let judges = |run: &RunRecord| run.stint.as_ref().is_some_and(|stint| stint.part.is_review());
        self.runs.iter().rev().find(|run| !judges(run)).or(self.runs.last())
    }

    /// Whether its supervisor has died before all steps were done: nothing is held, and nobody has written how it ended.
    pub(super) fn died(&self) -> bool {
        let without_a_word = |run: &RunRecord| is_death(run) || self.lane.state.is_claimed();
        self.has_steps() && self.is_last() && self.runs.last().is_some_and(without_a_word)
    }

    /// Whether it was stopped and nothing has run in its lane since.
    pub(super) fn was_stopped(&self) -> bool {
        self.is_last() && self.runs.last().is_some_and(|run| run.outcome == Some(LaneState::Stopped))
    }

    /// How often that has happened so far.
    pub(super) fn deaths(&self) -> usize {
        self.runs.iter().filter(|run| is_death(run)).count()
    }

    /// Where its lane is by what was written of the lane; of a task in steps, the end of a run says nothing.
    fn outcome(&self, run: &RunRecord) -> Option<LaneState> {
        use LaneState::{CheckFailed, Conflict, Done, Failed, Landed};
        match self.lane.state {
            _ if !self.has_steps() => run.outcome,
            // Somebody has had another run there since: whether all steps were done is not known.
            _ if !self.is_last() => Some(Failed),
            Landed | Conflict | CheckFailed => Some(Done),
            state => Some(state),
        }
    }

    /// What it came to, now that it is over.
    pub(super) fn came(&self, project: &Project) -> Result<Came, Error> {
        let mut from = self.runs.first().map(|run| run.tip_before);
        // One that went on from what an attempt before it had committed has to land that too.
        if let Some(first) = from
            && self.is_last()
            && project.repo.is_ancestor(self.lane.start, first)?
        {
            from = Some(self.lane.start);
        }
        let last = self.runs.last();
        let failed = |class| Came {
            end: End::Failed(class),
            from,
            to: last.and_then(|run| run.tip_after),
            detail: match self.has_steps() && self.is_last() {
                true => self.lane.detail.clone(),
                false => last.and_then(|run| run.detail.clone()),
            },
        };
        let Some(run) = last else { return Ok(failed(RunClass::Crashed)) };
        let already = self.is_last() && self.lane.already;
        let came = |end| Came { end, ..failed(RunClass::Failed) };
        Ok(match self.outcome(run) {
            Some(LaneState::Done) if already => came(End::Already),
            Some(LaneState::Done) => {
                let tip = project.repo.branch_tip(&self.lane.place.branch)?;
                let to = run.tip_after.or(tip);
                if to == from {
                    // What it left uncommitted is nothing that could land.
                    Came { to, ..came(End::NoChange) }
                } else {
                    Came { to, ..came(End::Done) }
                }
            }
            Some(LaneState::NoChange) => came(End::NoChange),
            Some(LaneState::Stopped) => failed(RunClass::Stopped),
            _ => match run.class {
                None => failed(RunClass::Crashed),
                Some(RunClass::Done) => failed(RunClass::Failed),
                Some(class) => failed(class),
            },
        })
    }

    /// What all of it cost, and what it used.
    pub(super) fn account(&self) -> (Option<Cost>, Option<Tokens>) {
        let costs = self.runs.iter().filter_map(|run| run.account.cost);
        let tokens = self.runs.iter().filter_map(|run| run.account.tokens);
        (costs.reduce(Cost::plus), tokens.reduce(Tokens::plus))
    }

    /// When it began.
    pub(super) fn began(&self) -> Option<Moment> {
        self.runs.first().map(|run| run.started)
    }
}

/// Whether a run has an end that nobody but a later command wrote down.
fn is_death(run: &RunRecord) -> bool {
    run.class == Some(RunClass::Crashed) && run.tip_after.is_none()
}
