//! Owns the runs in which an agent is asked for JSON: started apart from the main checkout, gone on with, and listened to.

use std::path::Path;

use super::super::DraftError;
use super::lane_is;
use crate::agent::{self, Asked, Job, LONGEST_ANSWER};
use crate::lane::{self, LookPlan, Name, NewLook, Project, Where};
use crate::store::Moment;
use crate::store::Record;
use crate::store::records::{AnyLane, LaneState, Purpose, RunRecord};

/// Who is asked, and for what.
#[derive(Clone, Copy)]
pub(crate) struct Asker<'a> {
    /// The repository.
    pub(crate) project: &'a Project,
    /// This program.
    pub(crate) exe: &'a Path,
    /// The agent.
    pub(crate) agent: &'a str,
    /// The model, if one was asked for.
    pub(crate) model: Option<&'a str>,
    /// What it is to come to.
    pub(crate) purpose: Purpose,
    /// The commit that it looks at; without one, what is checked out.
    pub(crate) at: Option<&'a str>,
}

/// What came of a run.
#[derive(Debug)]
pub(crate) enum Heard {
    /// It answered.
    Answer {
        /// What it said.
        text: String,
    },
    /// It did not.
    Nothing {
        /// Why.
        why: String,
    },
}

impl<'a> Asker<'a> {
    /// The job, checked before anything is made.
    ///
    /// # Errors
    /// When the agent is not installed, or nothing is known that keeps it from changing things.
    pub(crate) fn job(&self, prompt: &str) -> Result<Job, agent::Error> {
        let asked = Asked {
            purpose: Some(self.purpose),
            model: self.model.map(ToOwned::to_owned),
            ..Asked::default()
        };
        Job::agent(self.project, self.agent, prompt, self.project.repo.home(), &asked)
    }

    /// What will be looked at, under this name, or one made from the prompt.
    ///
    /// # Errors
    /// When the name is taken, or there is no commit yet.
    pub(crate) fn look<'p>(&self, name: Option<&str>, prompt: &'p str) -> Result<LookPlan<'p>, lane::Error>
    where
        'a: 'p,
    {
        let name = name.map(Name::parse).transpose()?;
        let (agent, purpose) = (self.agent.to_owned(), self.purpose);
        lane::plan_look(self.project, NewLook { name, prompt, agent, purpose, place: Where::Apart(self.at) })
    }

    /// Begins the conversation. `made` is told of its lane before the agent starts.
    ///
    /// # Errors
    /// When it cannot be made or started.
    pub(crate) fn begin(
        &self,
        plan: &LookPlan<'_>,
        job: &Job,
        made: impl FnOnce(&AnyLane) -> Result<(), DraftError>,
    ) -> Result<AnyLane, DraftError> {
        let (lane, lock) = lane::create_look(self.project, plan, &[])?;
        made(&lane)?;
        Ok(agent::launch(self.project, &lane, lock, job, self.exe)?)
    }

    /// Says more in the conversation. Where the agent cannot go on in it, it is asked `whole` in a new one.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn go_on(
        &self,
        lane: &AnyLane,
        text: &str,
        whole: impl FnOnce() -> Result<String, DraftError>,
    ) -> Result<AnyLane, DraftError> {
        // A lane that a killed process left is known to have no conversation only once it is looked at for sending.
        let sent = agent::addressee(self.project, lane, Some(text))
            .and_then(|_| agent::send(self.project, lane, Some(text), self.exe));
        match sent {
            Ok(_) => Ok(self.project.any_lane(&lane.name)?),
            Err(agent::Error::NoSession { .. }) => self.begin_anew(lane, &whole()?),
            Err(e) => Err(e.into()),
        }
    }

    /// Asks in a new conversation in the same lane.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn begin_anew(&self, lane: &AnyLane, text: &str) -> Result<AnyLane, DraftError> {
        let job = self.job(text)?;
        let (lane, lock) = self.project.hold_any_idle(&lane.name)?;
        Ok(agent::launch_again(self.project, &lane, lock, &job, self.exe, Some(text))?)
    }
}

/// The lane of this name, if it is the one that was made then.
pub(super) fn find(
    project: &Project,
    name: &str,
    made: Option<Moment>,
) -> Result<Option<AnyLane>, lane::Error> {
    let found = AnyLane::find(&project.store.layout().lane_record(name))?;
    Ok(found.filter(|lane| made.is_some_and(|made| lane_is(lane, made))))
}

/// What came of a lane's last run, which is over.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn heard(project: &Project, lane: &AnyLane, state: LaneState) -> Result<Heard, lane::Error> {
    let answer = match state {
        LaneState::Done => lane::answer_of(&project.store.layout().lane(&lane.name), lane.attempt)?,
        _ => None,
    };
    let nothing = || Heard::Nothing { why: lane.detail.clone().unwrap_or_else(|| state.to_string()) };
    Ok(answer.map_or_else(nothing, |text| Heard::Answer { text }))
}

/// Whether an answer was so long that its end is not in it.
pub(super) fn is_cut_off(text: &str) -> bool {
    text.len() >= LONGEST_ANSWER / 2 && text.trim_end().ends_with('…')
}

/// Whether the last run went on in a conversation and failed by itself: that may be over for its agent.
pub(crate) fn could_not_go_on(project: &Project, lane: &AnyLane) -> bool {
    let run = RunRecord::find(&project.store.layout().run_record(&lane.name, lane.attempt)).ok().flatten();
    run.is_some_and(|run| {
        use crate::store::records::RunClass::{Crashed, Failed};
        run.resumed && matches!(run.class, Some(Failed | Crashed)) && run.account.tool_calls == 0
    })
}

/// The session of a lane's last run.
pub(super) fn session(project: &Project, lane: &AnyLane) -> Option<String> {
    let run = RunRecord::find(&project.store.layout().run_record(&lane.name, lane.attempt)).ok().flatten();
    run.and_then(|run| run.account.session)
}
