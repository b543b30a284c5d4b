//! Owns having an agent look for dependencies that are missing, showing what it found, and agreeing to it.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use super::super::approve::nobody_to_ask;
use super::super::complete::agent_names;
use super::super::converse::{Answers, converse};
use super::super::plan::agreed;
use super::super::plan_source::PlanSource;
use super::super::{Failure, Session, account, identity, resolve};
use crate::harmless;
use crate::lane::Project;
use crate::store::records::{AnyLane, LaneState, ProposalsRecord, Purpose};
use crate::swarm::planner::{Asker, Missing, Taken};
use crate::swarm::{self, DraftError, Found};

/// What is asked of an agent.
#[derive(Debug, Args)]
#[command(next_help_heading = "Dependencies that are missing")]
pub(crate) struct Asking {
    /// Have AGENT look for those that are missing; it looks at the repository and changes nothing
    #[arg(long, value_name = "AGENT", add = ArgValueCompleter::new(agent_names))]
    pub(super) agent: Option<String>,
    /// The model that it is asked to use
    #[arg(long, value_name = "MODEL", requires = "agent")]
    model: Option<String>,
    /// Ask it also where it was asked before
    #[arg(long, requires = "agent")]
    refresh: bool,
    /// Use what it finds, without a question
    #[arg(long, short, requires = "agent")]
    pub(super) yes: bool,
    /// Forget what was found missing before
    #[arg(long, conflicts_with = "agent")]
    pub(super) forget: bool,
}

/// The plan with what is missing in it, found now or before, and whether somebody has agreed to that.
pub(super) fn find(
    session: &Session,
    project: &Project,
    (source, asking): (&PlanSource, &Asking),
    agent: &str,
) -> Result<(Found, bool), Failure> {
    if asking.yes {
        identity::refuse_in_lane(session, project)?;
    }
    let read = || source.read_as_it_stands(session, project, "git proq deps --agent claude plan.toml");
    let found = read()?;
    let exe = resolve::this_program()?;
    let model = asking.model.as_deref();
    let asker = Asker { project, exe: &exe, agent, model, purpose: Purpose::Answer, at: None };
    let missing = Missing::of(asker, &found.plan)?;
    let known = missing.record()?.filter(|_| !asking.refresh);
    let unread = known.as_ref().map(|record| missing.unread(record)).transpose()?.flatten();
    let record = match known {
        Some(record) if record.answered && unread.is_none() => {
            let (when, by) = (record.at, harmless::line(&record.agent));
            session.ui.say(format!("{by} was asked before, at {when}; --refresh asks anew"));
            record
        }
        _ => {
            let lane = match unread {
                Some(lane) => lane,
                None => missing.begin()?,
            };
            session.ui.say(format!("{agent} looks for what is missing: lane '{}'", lane.name));
            ask(session, project, &missing, agent, (lane, found))?
        }
    };
    Ok((swarm::with_proposed(source.read_without_a_word(session, project)?, &record).0, record.approved))
}

/// The conversation.
struct Talk<'m, 'a> {
    missing: &'m Missing<'a>,
    agent: &'m str,
    found: Found,
    dropped: Vec<String>,
}

impl Answers for Talk<'_, '_> {
    fn agent(&self) -> &str {
        self.agent
    }

    fn what(&self) -> &'static str {
        "a list of dependencies"
    }

    fn take(&mut self, lane: &AnyLane, state: LaneState) -> Result<Taken, Failure> {
        let (taken, dropped) = self.missing.take(lane, state, self.found.clone())?;
        self.dropped = dropped;
        Ok(taken)
    }

    fn again(&mut self, lane: &AnyLane, taken: &Taken) -> Result<Option<AnyLane>, Failure> {
        match taken {
            Taken::Wrong { why, answer } => Ok(Some(self.missing.mistake(lane, answer, why)?)),
            _ => Ok(None),
        }
    }
}

fn ask(
    session: &Session,
    project: &Project,
    missing: &Missing<'_>,
    agent: &str,
    (lane, found): (AnyLane, Found),
) -> Result<ProposalsRecord, Failure> {
    let mut talk = Talk { missing, agent, found, dropped: Vec::new() };
    let (lane, taken) = converse(session, project, lane, &mut talk)?;
    if let Taken::Wrong { why, .. } | Taken::Nothing { why } = taken {
        let file = project.store.layout().run_answer(&lane.name, lane.attempt);
        return Err(DraftError::NoAnswer {
            agent: agent.to_owned(),
            what: "a list of dependencies",
            why: harmless::line(&why),
            file: Some(file).filter(|file| file.exists()),
            lane: lane.name,
            is_draft: false,
        }
        .into());
    }
    for why in &talk.dropped {
        session.ui.warn(format!("not taken: {}", harmless::line(why)));
    }
    if let Err(e) = missing.close(&lane) {
        // It is in nobody's way.
        session.ui.warn(harmless::line(&e.to_string()));
    }
    let record = missing.record()?;
    Ok(record.ok_or(DraftError::None)?)
}

/// What was found missing, a line for each.
pub(super) fn list(found: &Found) -> Vec<String> {
    let names: Vec<String> = found.plan.spots().map(|spot| spot.task.name()).collect();
    let line = |edge: &swarm::Proposed| {
        let because = if edge.because.is_empty() { String::new() } else { format!(": {}", edge.because) };
        harmless::line(&format!("{} after {}{because}", names[edge.task], names[edge.need]))
    };
    found.proposed.iter().map(line).collect()
}

/// Has a person agree to what was found missing, and uses it from then on.
pub(super) fn agree(
    session: &Session,
    project: &Project,
    (source, asking): (&PlanSource, &Asking),
    agent: &str,
) -> Result<(), Failure> {
    let found = source.read_without_a_word(session, project)?;
    let exe = resolve::this_program()?;
    let asker = Asker { project, exe: &exe, agent, model: None, purpose: Purpose::Answer, at: None };
    let missing = Missing::of(asker, &found.plan)?;
    let record = missing.record()?.ok_or(DraftError::None)?;
    let count = match record.needs.len() {
        1 => "1 dependency".to_owned(),
        n => format!("{n} dependencies"),
    };
    if !asking.yes {
        if nobody_to_ask(session) {
            let what = format!("{count} of {agent}'s may be used");
            let command = format!("git proq deps --agent {agent} --yes {}", source.names().join(" "));
            return Err(DraftError::Unapproved { what, command }.into());
        }
        agreed(&format!("use {count} of {agent}'s from now on? [y/N] "))?;
    }
    let record = missing.approve(record)?;
    if !session.ui.json {
        let cost = record.costs.cost.map(account::money).map(|cost| format!(" ({cost})")).unwrap_or_default();
        session.ui.say(format!(
            "{count} of {}'s used for these tasks as they are{cost}",
            harmless::line(&record.agent)
        ));
    }
    Ok(())
}
