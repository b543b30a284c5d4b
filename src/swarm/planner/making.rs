//! Owns the conversation in which an agent makes a plan: begun, gone on with, and its answers made to a draft's plan.

use std::path::{Path, PathBuf};

use super::super::drafts::{self, Draft};
use super::super::{DraftError, toml_plan, written};
use super::ask::{self, Asker, Heard};
use super::json::plan_in;
use super::prompt::{self, FromFile};
use crate::agent::Job;
use crate::lane::{self, LookPlan, Project, effective_state};
use crate::store::Layout;
use crate::store::records::{AnyLane, DraftRecord, LaneState, Purpose};

/// How often another name is tried where somebody was faster.
const TRIES: u32 = 10;

/// A draft in the making.
pub(crate) struct Making<'a> {
    project: &'a Project,
    exe: &'a Path,
    /// The draft as it is.
    pub(crate) record: DraftRecord,
}

/// What became of an answer.
#[derive(Debug)]
pub(crate) enum Taken {
    /// It is a plan.
    Plan,
    /// It is none.
    Wrong {
        /// What is wrong with it.
        why: String,
        /// What was said.
        answer: String,
    },
    /// There was none.
    Nothing {
        /// Why not.
        why: String,
    },
}

/// What a new plan is asked for with, checked and not begun.
pub(crate) struct Wanted<'a> {
    asker: Asker<'a>,
    goal: &'a str,
    from: Option<&'a FromFile>,
    /// What the agent will be told.
    pub(crate) prompt: String,
    /// What will be started.
    pub(crate) job: Job,
}

impl<'a> Wanted<'a> {
    /// Checks what is asked for.
    ///
    /// # Errors
    /// When the agent is not installed or cannot be kept to looking, or there is nothing to look at.
    pub(crate) fn new(
        asker: Asker<'a>,
        goal: &'a str,
        from: Option<&'a FromFile>,
    ) -> Result<Wanted<'a>, DraftError> {
        let at = asker.look(None, goal)?.view.start;
        let prompt = prompt::for_goal(asker.project, at, goal, from)?;
        let job = asker.job(&prompt)?;
        Ok(Wanted { asker, goal, from, prompt, job })
    }

    /// Begins it: a draft, and the conversation with its agent.
    ///
    /// # Errors
    /// When nothing could be made, or the agent could not be started.
    pub(crate) fn begin(self) -> Result<(Making<'a>, AnyLane), DraftError> {
        let Asker { project, exe, agent, model, .. } = self.asker;
        let mut tries = TRIES;
        loop {
            let from = self.from.map(|from| from.name.as_str());
            let record = drafts::begin(project, self.goal, (from, &self.prompt), (agent, model))?;
            let mut making = Making { project, exe, record };
            match making.begin_lane(&self.asker, &self.prompt, &self.job) {
                Ok(lane) => return Ok((making, lane)),
                Err(e) => {
                    // One whose lane was made stays: what became of that can be looked at.
                    if making.record.lane.is_none() {
                        drafts::take_back(project, &making.record.name)?;
                    }
                    tries -= 1;
                    let is_taken = matches!(e, DraftError::Lane(lane::Error::Taken { .. }));
                    if !is_taken || making.record.lane.is_some() || tries == 0 {
                        return Err(e);
                    }
                }
            }
        }
    }
}

impl<'a> Making<'a> {
    /// Takes up a draft.
    ///
    /// # Errors
    /// When there is none of that name.
    pub(crate) fn of(project: &'a Project, exe: &'a Path, name: &str) -> Result<Making<'a>, DraftError> {
        Ok(Making { project, exe, record: drafts::read(project, name)?.record })
    }

    fn prompt_file(&self) -> PathBuf {
        Layout::draft_prompt(&self.project.store.layout().draft(&self.record.name))
    }

    /// The lane in which its agent is talked to; none where it is gone.
    ///
    /// # Errors
    /// When its record cannot be read.
    pub(crate) fn lane(&self) -> Result<Option<AnyLane>, DraftError> {
        Ok(ask::find(self.project, &self.record.name, self.record.lane)?)
    }

    fn begin_lane(&mut self, asker: &Asker<'_>, prompt: &str, job: &Job) -> Result<AnyLane, DraftError> {
        let plan: LookPlan<'_> = asker.look(Some(&self.record.name), prompt)?;
        let (project, name) = (self.project, self.record.name.clone());
        let mut changed = None;
        let lane = asker.begin(&plan, job, |lane| {
            changed = Some(drafts::change(project, &name, |record| {
                record.past_costs = record.past_costs.plus(std::mem::take(&mut record.costs));
                record.lane = Some(lane.created);
                record.read = 0;
            })?);
            Ok(())
        });
        if let Some(record) = changed {
            self.record = record;
        }
        lane
    }

    /// Says something to the plan that there is, or asks for one where there is none. In the same conversation, as far as the
    /// agent can go on in it.
    ///
    /// # Errors
    /// [`DraftError::Busy`], and when the agent cannot be started.
    pub(crate) fn feedback(&mut self, text: &str) -> Result<AnyLane, DraftError> {
        let agent = self.record.agent.clone();
        let model = self.record.model.clone();
        let asker = self.asker(&agent, model.as_deref());
        let lane = match self.lane()? {
            Some(lane) if effective_state(self.project, &lane)?.0.is_busy() => {
                return Err(DraftError::Busy { name: lane.name });
            }
            Some(lane) if lane.attempt > 0 => {
                asker.go_on(&lane, &prompt::for_feedback(text), || self.anew(text))?
            }
            Some(lane) => asker.begin_anew(&lane, &self.anew(text)?)?,
            None => {
                let whole = self.anew(text)?;
                let job = asker.job(&whole)?;
                self.begin_lane(&asker, &whole, &job)?
            }
        };
        self.record = drafts::change(self.project, &self.record.name, |record| {
            record.feedback.push(text.to_owned());
        })?;
        Ok(lane)
    }

    /// Says the last feedback once more, in a new conversation: the agent could not go on in the one that there was.
    ///
    /// # Errors
    /// When the agent cannot be started.
    pub(crate) fn once_more(&self, lane: &AnyLane) -> Result<AnyLane, DraftError> {
        let asker = self.asker(&self.record.agent, self.record.model.as_deref());
        let text = self.record.feedback.last().cloned().unwrap_or_default();
        asker.begin_anew(lane, &self.anew(&text)?)
    }

    /// Tells the agent what is wrong with its answer, and asks once more.
    ///
    /// # Errors
    /// When the agent cannot be started.
    pub(crate) fn mistake(&self, lane: &AnyLane, answer: &str, why: &str) -> Result<AnyLane, DraftError> {
        let asker = self.asker(&self.record.agent, self.record.model.as_deref());
        let whole = || Ok(prompt::for_mistake_anew(&self.whole()?, answer, why));
        asker.go_on(lane, &prompt::for_mistake(why), whole)
    }

    fn asker<'n>(&self, agent: &'n str, model: Option<&'n str>) -> Asker<'n>
    where
        'a: 'n,
    {
        Asker { project: self.project, exe: self.exe, agent, model, purpose: Purpose::Plan, at: None }
    }

    /// What it was asked for with at first.
    fn whole(&self) -> Result<String, DraftError> {
        let file = self.prompt_file();
        Ok(crate::regular_file::record_text(&file).map_err(lane::Error::io("read", &file))?)
    }

    /// The same with all that there is by now, and `text`.
    fn anew(&self, text: &str) -> Result<String, DraftError> {
        let draft = drafts::read(self.project, &self.record.name)?;
        let plan = draft.plan.as_ref().map(|drafted| &drafted.found.plan);
        let said = &draft.record.feedback;
        // What is said now may be on record already.
        let former = said.strip_suffix(&[text.to_owned()]).unwrap_or(said);
        Ok(prompt::for_feedback_anew(&self.whole()?, plan, former, text))
    }

    /// Makes what a run said that is over the draft's plan, if it is one.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub(crate) fn take(&mut self, lane: &AnyLane, state: LaneState) -> Result<Taken, DraftError> {
        let (plan, taken) = match ask::heard(self.project, lane, state)? {
            Heard::Nothing { why } => (None, Taken::Nothing { why }),
            Heard::Answer { text } => match in_toml(&text) {
                Ok(plan) => (Some(plan), Taken::Plan),
                Err(why) => (None, Taken::Wrong { why, answer: text }),
            },
        };
        let wrong = match &taken {
            Taken::Plan => None,
            Taken::Wrong { why, .. } | Taken::Nothing { why } => Some(why.clone()),
        };
        let (costs, session) = (lane::spent(self.project, lane)?, ask::session(self.project, lane));
        self.record =
            drafts::take_plan(self.project, &self.record.name, lane.attempt, plan.as_deref(), |record| {
                record.wrong = wrong;
                record.costs = costs;
                record.session = session.or(record.session.take());
            })?;
        Ok(taken)
    }

    /// The file with what its agent said in its last run.
    pub(crate) fn answer_file(&self, lane: &AnyLane) -> Option<PathBuf> {
        let file = self.project.store.layout().run_answer(&lane.name, lane.attempt);
        Some(file).filter(|file| file.exists())
    }
}

/// A draft as it is now: what its agent has said meanwhile is taken up first. Whether the agent is at work on it.
///
/// # Errors
/// When there is none of that name, or it cannot be read.
pub(crate) fn catch_up(project: &Project, name: &str) -> Result<(Draft, bool), DraftError> {
    let mut making = Making::of(project, Path::new(""), name)?;
    let mut is_busy = false;
    if let Some(lane) = making.lane()? {
        let (state, detail) = effective_state(project, &lane)?;
        is_busy = state.is_busy();
        if !is_busy && lane.attempt > making.record.read {
            making.take(&AnyLane { detail, ..lane }, state)?;
        }
    }
    Ok((drafts::read(project, name)?, is_busy))
}

/// Whether the agent of a draft is at work on it.
///
/// # Errors
/// When the record of its lane cannot be read.
pub(crate) fn is_busy(project: &Project, record: &DraftRecord) -> Result<bool, DraftError> {
    match ask::find(project, &record.name, record.lane)? {
        Some(lane) => Ok(effective_state(project, &lane)?.0.is_busy()),
        None => Ok(false),
    }
}

/// The plan that an agent said, as it is kept.
fn in_toml(text: &str) -> Result<String, String> {
    let found = plan_in(text).map_err(|why| match ask::is_cut_off(text) {
        true => "it is too long, and its end was cut off: make it shorter than 48 KB".to_owned(),
        false => why,
    })?;
    let plan = written(&found.plan);
    // What is kept has to be read again.
    toml_plan::read(&"$".into(), &plan).map_err(|e| e.to_string())?;
    Ok(plan)
}
