//! Owns having an agent make a plan, or change one, and showing what it came to.

use std::path::Path;

use serde::Serialize;

use super::super::converse::{Answers, converse};
use super::super::{Done, Failure, Mistake, Session, account, resolve, spawn, ui, uncommitted};
use super::drafting::{named, save_draft, shown};
use super::listing::Row;
use super::save::Target;
use super::{PlanArgs, answer, look_at, options_of, tree};
use crate::explain::Exit;
use crate::harmless;
use crate::lane::Project;
use crate::store::records::{AnyLane, LaneState, Purpose};
use crate::swarm::drafts::{self, Draft};
use crate::swarm::planner::{self, Asker, FromFile, Making, Taken, Wanted};
use crate::swarm::{Change, DraftError, Plan, changes};

/// No file that a plan is made from is larger, in bytes.
const LARGEST: u64 = 4 * 1024 * 1024;

/// What programs get: the plan as for any source, and what is known of the draft.
#[derive(Serialize)]
struct Answer<'a> {
    draft: Row,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    changes: &'a [Change],
    #[serde(skip_serializing_if = "Option::is_none")]
    saved: Option<String>,
    #[serde(flatten)]
    plan: answer::Answer,
}

/// What would be started.
#[derive(Serialize)]
struct Would<'a> {
    agent: &'a str,
    command: String,
    prompt: &'a str,
    dry_run: bool,
}

/// Has an agent make a plan.
pub(super) fn make(session: &Session, args: &PlanArgs, goal: &str, target: Option<&Target>) -> Done {
    let drafting = &args.drafting;
    if goal.trim().is_empty() {
        let example = "git proq plan --ai \"payments by card\"";
        return Err(Mistake::Missing { what: "the plan needs a goal", example }.into());
    }
    let from = drafting.from.as_deref().map(|file| read_from(session, file)).transpose()?;
    let project = session.project_to_change()?;
    let agent = planner::choose(&project, drafting.agent.as_deref())?;
    let exe = resolve::this_program()?;
    let model = drafting.model.as_deref();
    let asker =
        Asker { project: &project, exe: &exe, agent: &agent, model, purpose: Purpose::Plan, at: None };
    let wanted = Wanted::new(asker, goal, from.as_ref())?;
    if let Some(here) = project.repo.here()
        && let Some(names) = uncommitted::names(&project, here)?
    {
        session.ui.warn(format!("the plan is made without your uncommitted changes ({names})"));
    }
    if drafting.dry_run {
        say_would(session, &wanted, &agent);
        return Ok(Exit::Done);
    }
    let (making, lane) = wanted.begin()?;
    spawn::remember(&project);
    session.ui.say(format!("{agent} makes a plan: draft '{}'", making.record.name));
    finish(session, &project, args, making, (lane, None), target)
}

/// Has the agent change its plan.
pub(super) fn change(session: &Session, args: &PlanArgs, text: &str, target: Option<&Target>) -> Done {
    if text.trim().is_empty() {
        let example = "git proq plan --feedback \"the migration goes first\"";
        return Err(Mistake::Missing { what: "there is nothing to say to the plan", example }.into());
    }
    let project = session.project_to_change()?;
    let name = named(&project, args)?;
    let (draft, is_busy) = planner::catch_up(&project, &name)?;
    if is_busy {
        return Err(DraftError::Busy { name }.into());
    }
    let exe = resolve::this_program()?;
    let mut making = Making::of(&project, &exe, &name)?;
    let lane = making.feedback(text)?;
    session.ui.say(format!("{} changes draft '{name}'", making.record.agent));
    let before = draft.plan.map(|plan| plan.found.plan);
    finish(session, &project, args, making, (lane, before), target)
}

/// The file that a plan is made from.
fn read_from(session: &Session, file: &Path) -> Result<FromFile, Failure> {
    let unreadable = |source| Mistake::Unreadable { path: file.to_owned(), source };
    let bytes = crate::regular_file::given(&session.dir.join(file), LARGEST).map_err(unreadable)?;
    let is_text = |text: &String| !text.contains('\0');
    let text = String::from_utf8(bytes).ok().filter(is_text);
    let text = text.ok_or_else(|| unreadable(std::io::Error::other("it is no text in UTF-8")))?;
    Ok(FromFile { name: harmless::line(&file.display().to_string()), text })
}

fn say_would(session: &Session, wanted: &Wanted<'_>, agent: &str) {
    if session.ui.json {
        let (command, prompt) = (wanted.job.shown(), wanted.prompt.as_str());
        session.ui.object(Would { agent, command, prompt, dry_run: true });
        return;
    }
    session.ui.answer(format!("would start {}; it would be told:\n", harmless::line(&wanted.job.shown())));
    for line in harmless::lines(&wanted.prompt) {
        session.ui.answer(line);
    }
}

/// The conversation, as far as it is the same for a new plan and for one that is changed.
struct Talk<'m, 'a> {
    making: &'m mut Making<'a>,
    project: &'a Project,
    /// Whether it was tried to begin anew.
    anew: bool,
}

impl Answers for Talk<'_, '_> {
    fn agent(&self) -> &str {
        &self.making.record.agent
    }

    fn what(&self) -> &'static str {
        "a plan"
    }

    fn take(&mut self, lane: &AnyLane, state: LaneState) -> Result<Taken, Failure> {
        Ok(self.making.take(lane, state)?)
    }

    fn again(&mut self, lane: &AnyLane, taken: &Taken) -> Result<Option<AnyLane>, Failure> {
        match taken {
            Taken::Wrong { why, answer } => Ok(Some(self.making.mistake(lane, answer, why)?)),
            // The conversation may be gone on the agent's side.
            Taken::Nothing { .. } if !self.anew && planner::could_not_go_on(self.project, lane) => {
                self.anew = true;
                Ok(Some(self.making.once_more(lane)?))
            }
            _ => Ok(None),
        }
    }
}

/// Follows the conversation to a plan, and shows it. `before` is what it was, where there was one to change.
fn finish<'a>(
    session: &Session,
    project: &'a Project,
    args: &PlanArgs,
    mut making: Making<'a>,
    (lane, before): (AnyLane, Option<Plan>),
    target: Option<&Target>,
) -> Done {
    let mut talk = Talk { making: &mut making, project, anew: false };
    let (lane, taken) = converse(session, project, lane, &mut talk)?;
    if let Taken::Wrong { why, .. } | Taken::Nothing { why } = taken {
        return Err(DraftError::NoAnswer {
            agent: making.record.agent.clone(),
            what: "a plan",
            why: harmless::line(&why),
            file: making.answer_file(&lane),
            lane: lane.name,
            is_draft: true,
        }
        .into());
    }
    let name = making.record.name.clone();
    let draft = drafts::read(project, &name)?;
    let changed = match (&before, &draft.plan) {
        (Some(before), Some(plan)) => changes(before, &plan.found.plan),
        _ => Vec::new(),
    };
    let saved = match target {
        Some(target) => Some(save_draft(session, project, args, &draft, target)?),
        None => None,
    };
    if session.ui.json {
        let saved = saved.map(|path| crate::store::path_form::text(&path));
        return say_json(session, project, args, &draft, (&changed, saved));
    }
    show(session, project, args, &draft, &changed)?;
    if before.is_some() && changed.is_empty() {
        session.ui.say("the plan is as it was");
    }
    if saved.is_some() {
        session.ui.say(format!("wrote {}", shown(args)));
    }
    session.ui.hint(format!(
        "change it: git proq plan --feedback \"…\" {name}   keep it: git proq plan -o plan.toml {name}"
    ));
    Ok(Exit::Done)
}

/// Shows a draft that is kept.
pub(super) fn show_kept(session: &Session, project: &Project, args: &PlanArgs, name: &str) -> Done {
    let draft = drafts::read(project, name)?;
    show(session, project, args, &draft, &[])?;
    let is_busy = planner::is_busy(project, &draft.record)?;
    if is_busy && !session.ui.json {
        session.ui.say(format!("{} is at work on it", harmless::line(&draft.record.agent)));
        session.ui.hint(format!("wait for it: git proq wait {name}"));
    } else if let (Some(why), false) = (&draft.record.wrong, session.ui.json) {
        session.ui.warn(format!("what was answered last is no plan: {}", harmless::line(why)));
    }
    Ok(Exit::Done)
}

/// Shows a draft's plan as a tree, and what has changed in it.
pub(super) fn show(
    session: &Session,
    project: &Project,
    args: &PlanArgs,
    draft: &Draft,
    changed: &[Change],
) -> Done {
    if session.ui.json {
        return say_json(session, project, args, draft, (changed, None));
    }
    let Some(plan) = &draft.plan else { return Ok(Exit::Done) };
    let look = look_at(project, &plan.found, &[], &options_of(project, args))?;
    session.ui.answer(tree::render(&look, &about(project, draft)));
    if !changed.is_empty() {
        session.ui.answer("\nWhat has changed:");
        for change in changed {
            session.ui.answer(format!("  {}", in_words(change)));
        }
    }
    Ok(Exit::Done)
}

fn say_json(
    session: &Session,
    project: &Project,
    args: &PlanArgs,
    draft: &Draft,
    (changes, saved): (&[Change], Option<String>),
) -> Done {
    let name = draft.record.name.clone();
    let Some(plan) = &draft.plan else {
        return Err(DraftError::NoPlan { name, why: draft.record.wrong.clone() }.into());
    };
    let sources = [name];
    let look = look_at(project, &plan.found, &sources, &options_of(project, args))?;
    let is_busy = planner::is_busy(project, &draft.record)?;
    let row = Row::of(draft, drafts::is_approved(project, draft), is_busy);
    session.ui.long_object(Answer { draft: row, changes, saved, plan: answer::of(&look) });
    Ok(Exit::Done)
}

/// Who made it, whether it may be run, and what it took.
fn about(project: &Project, draft: &Draft) -> Vec<String> {
    let record = &draft.record;
    let is_approved = drafts::is_approved(project, draft);
    let state = if is_approved { "approved" } else { "not approved" };
    let model = record.model.as_ref().map(|model| format!(" ({model})")).unwrap_or_default();
    let mut out = vec![format!("draft {}, by {}{model}, {state}", record.name, record.agent)];
    let costs = record.past_costs.plus(record.costs);
    let mut spent =
        vec![ui::count(costs.runs as usize, "run"), ui::span(std::time::Duration::from_secs(costs.seconds))];
    spent.extend(costs.tokens.map(account::tokens));
    spent.extend(costs.cost.map(account::money));
    out.push(format!("planning took {}", spent.join(", ")));
    out
}

fn in_words(change: &Change) -> String {
    match change {
        Change::Added { task } => format!("+ {}", harmless::line(task)),
        Change::Removed { task } => format!("- {}", harmless::line(task)),
        Change::Changed { task, what } => format!("~ {} ({})", harmless::line(task), what.join(", ")),
        Change::Plan { what } => format!("~ {what}"),
    }
}
