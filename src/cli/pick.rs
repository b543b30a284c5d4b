//! Owns `git proq pick`: one of several attempts lands, and the others are discarded then.

use std::borrow::Cow;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde::Serialize;

use super::complete::{branch_names, lane_names};
use super::discard::{self, Gone};
use super::landing::Landing;
use super::merge::Merge;
use super::{Done, Failure, Session, auto_merge, identity, merge, report};
use crate::explain::{Exit, Explain};
use crate::fault;
use crate::lane::{self, Project, Why, effective_state, operate};
use crate::merge::{Outcome, Report, Verdict};
use crate::store::records::{LaneRecord, LaneState};

/// Land one of several attempts, and discard the others
///
/// LANE lands as by `git proq merge`, with the same checks. Only when it is on its base, the other attempts of its group are
/// discarded as by `git proq discard --force`: their commits and uncommitted files are saved, their folders kept for a time.
/// Where it conflicts, fails a check or is refused, all of them stay.
///
/// While agents are at work in other attempts it is refused, and once another attempt has landed. With --stop or --force they are stopped, once LANE has landed.
///
/// `git proq undo` brings the other attempts back, another one takes the landing back as well. If it was cut off in between,
/// the same command once more discards what is left.
///
/// Exits as `git proq merge` does, and with 1 when an attempt could not be discarded.
///
/// Examples:
///     git proq pick pay-2
///     git proq pick pay-2 --strategy squash --stop
#[derive(Debug, Clone, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Pick {
    /// The attempt
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(lane_names))]
    pub(crate) lane: String,
    /// Land on BRANCH instead of the lane's own base
    #[arg(long, value_name = "BRANCH", add = ArgValueCompleter::new(branch_names))]
    pub(crate) onto: Option<String>,
    /// Also if it failed, was stopped, or is not fit to land; and stop the agents of the others
    #[arg(long, short)]
    pub(crate) force: bool,
    /// Stop the agents that still run: its own first, and land what it has committed, the others' then
    #[arg(long)]
    pub(crate) stop: bool,
    /// How it lands
    #[command(flatten)]
    pub(crate) how: Landing,
    /// Say what would land and what would be discarded, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// The answer: that of the landing, and what became of the others.
#[derive(Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    report: &'a Report,
    group: &'a str,
    discarded: Vec<Gone>,
    dry_run: bool,
}

/// Why an attempt is not picked.
#[derive(Debug, thiserror::Error)]
pub enum Unpicked {
    /// There is nothing to pick from.
    #[error("lane '{lane}' is not one of several attempts; nothing was changed")]
    Alone {
        /// The lane.
        lane: String,
    },
    /// Agents are at work.
    #[error("agents are still at work in {}; nothing was changed", busy.join(", "))]
    AtWork {
        /// What was to be picked.
        lane: String,
        /// Where they are.
        busy: Vec<String>,
    },
}

impl Explain for Unpicked {
    fn hints(&self) -> Vec<Cow<'static, str>> {
        match self {
            Unpicked::Alone { lane } => vec![format!("land it: git proq merge {lane}").into()],
            Unpicked::AtWork { lane, busy } => vec![
                format!("wait for them: git proq wait {}", busy.join(" ")).into(),
                format!("or stop them: git proq pick {lane} --stop").into(),
            ],
        }
    }
}

pub(super) fn run(session: &Session, args: &Pick) -> Done {
    let project = session.project_to_change()?;
    identity::refuse_agent_for_others(&[], args.dry_run)?;
    let (picked, landed) = find(&project, &args.lane)?;
    let Some(group) = picked.group.clone() else {
        return Err(Unpicked::Alone { lane: picked.name }.into());
    };
    let others = others(&project, &picked, &group, landed.is_some())?;
    refuse_busy(&project, &picked, &others, args)?;
    let report = match landed {
        Some(outcome) => {
            session.ui.say(format!("{} has landed on {} before", outcome.lane, outcome.onto));
            Report { lanes: vec![outcome], ..Report::default() }
        }
        None => land(session, &project, args, &picked.name)?,
    };
    let mut exit = report.exit();
    let mut discarded = Vec::new();
    let on_base = |line: &Outcome| {
        line.lane == picked.name
            && matches!(line.result, Verdict::Landed | Verdict::Resolved | Verdict::AlreadyLanded)
    };
    if report.lanes.iter().any(on_base) {
        fault::point("pick.landed");
        let all_gone = discard_others(session, &project, args, &others, &mut discarded)?;
        exit = if exit == Exit::Done && !all_gone { Exit::Refused } else { exit };
    } else if !session.ui.json && !others.is_empty() {
        session.ui.say(format!("nothing was discarded; the attempts of '{group}' stay as they are"));
    }
    if session.ui.json {
        session.ui.object(Answer { report: &report, group: &group, discarded, dry_run: args.dry_run });
    } else if discarded.iter().any(Gone::is_gone) {
        session.ui.hint("bring the others back: git proq undo   once more takes the landing back too");
    }
    Ok(exit)
}

/// The lane; or, when it has landed and is gone, its record and what there is to say of that: whoever picked it may have been
/// cut off before the others went.
fn find(project: &Project, asked: &str) -> Result<(LaneRecord, Option<Outcome>), Failure> {
    let unknown = match project.lane(asked) {
        Ok(lane) => return Ok((lane, None)),
        Err(e) => e,
    };
    let name = asked.strip_prefix(&format!("{}/", project.settings.prefix)).unwrap_or(asked);
    let past = project.past_lanes().into_iter().map(|(_, past)| past);
    let past = past.filter(|past| past.name == name && past.state == LaneState::Landed);
    let last = past.filter_map(|past| Some((past.landed.clone()?, past))).max_by_key(|(landed, _)| landed.at);
    let Some((landed, past)) = last else { return Err(unknown.into()) };
    let Some(group) = &past.group else { return Err(unknown.into()) };
    if others(project, &past, group, true)?.is_empty() {
        return Err(unknown.into());
    }
    let line = Outcome::new(&past.name, &landed.onto, Verdict::AlreadyLanded);
    Ok((past, Some(Outcome { cleaned_up: true, ..line })))
}

/// The other attempts of a group. Where the picked one is gone, not those that were made after it landed, under the same
/// name.
fn others(
    project: &Project,
    picked: &LaneRecord,
    group: &str,
    gone: bool,
) -> Result<Vec<LaneRecord>, Failure> {
    let mut all = lane::attempts(project, group)?;
    let landed = picked.landed.as_ref().filter(|_| gone).map(|landed| landed.at);
    all.retain(|lane| lane.name != picked.name && landed.is_none_or(|landed| lane.created <= landed));
    Ok(all)
}

fn refuse_busy(
    project: &Project,
    picked: &LaneRecord,
    others: &[LaneRecord],
    args: &Pick,
) -> Result<(), Failure> {
    let mut busy = Vec::new();
    for lane in others.iter().chain(std::iter::once(picked)) {
        let ends = args.stop || (args.force && lane.name != picked.name);
        if !ends && effective_state(project, lane)?.0.is_busy() {
            busy.push(lane.name.clone());
        }
    }
    if busy.is_empty() {
        return Ok(());
    }
    Err(Unpicked::AtWork { lane: picked.name.clone(), busy }.into())
}

/// Lands it as `git proq merge` does, and says what came of it.
fn land(session: &Session, project: &Project, args: &Pick, lane: &str) -> Result<Report, Failure> {
    let args = Merge {
        batch: None,
        lanes: vec![lane.to_owned()],
        all: false,
        order: "given".to_owned(),
        atomic: false,
        onto: args.onto.clone(),
        allow_deletions: false,
        force: args.force,
        stop: args.stop,
        how: args.how.clone(),
        dry_run: args.dry_run,
        auto: None,
        pick: true,
        unrecorded: None,
    };
    let (report, agent) = merge::carry_out(session, project, &args, None)?;
    if !session.ui.json {
        merge::tell(session, project, &args, agent, &report);
    }
    if !args.dry_run {
        auto_merge::try_again(session, project, &auto_merge::bases_of(&report), &args.lanes);
    }
    Ok(report)
}

/// Discards the others as one operation, and returns whether all are gone.
fn discard_others(
    session: &Session,
    project: &Project,
    args: &Pick,
    others: &[LaneRecord],
    discarded: &mut Vec<Gone>,
) -> Result<bool, Failure> {
    // One that somebody has removed meanwhile is gone; one that was made anew under its name is another lane.
    let there = |lane: &&LaneRecord| project.lane(&lane.name).is_ok_and(|now| now.is_same_lane(lane));
    let names: Vec<String> = others.iter().filter(there).map(|lane| lane.name.clone()).collect();
    let mut all = true;
    let mut told = |name: &str, done: Result<Gone, Failure>| {
        discarded.push(done.unwrap_or_else(|failure| {
            all = false;
            if !session.ui.json {
                let _refused = report::show(&failure, false);
            }
            discard::kept(name, &failure)
        }));
    };
    if args.dry_run {
        for name in &names {
            told(name, discard::foresee(session, project, name, true));
        }
        return Ok(all);
    }
    let ready = discard::make_ready(project, &names, args.stop || args.force);
    operate(project, "pick", |op| {
        for (name, stopped) in names.iter().zip(ready) {
            let done = stopped.and_then(|()| discard::take_away(session, op, name, Why::Discard, true));
            told(name, done);
        }
        Ok::<_, Failure>(())
    })?;
    Ok(all)
}
