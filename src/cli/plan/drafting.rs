//! Owns the flags of `git proq plan` that are about plans by agents, and what each of them does.

use std::io::BufRead;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use clap_complete::engine::ArgValueCompleter;

use super::super::approve::nobody_to_ask;
use super::super::complete::agent_names;
use super::super::{Done, Failure, Mistake, Session, identity};
use super::save::{self, Target};
use super::{PlanArgs, listing, making};
use crate::explain::Exit;
use crate::lane::Project;
use crate::swarm::drafts::{self, Draft};
use crate::swarm::{self, DraftError, planner};

/// What is asked of an agent, or done with what it made.
#[derive(Debug, Args)]
#[command(next_help_heading = "Plans by agents")]
pub(crate) struct Drafting {
    /// Have an agent make a plan for GOAL
    #[arg(
        long,
        value_name = "GOAL",
        conflicts_with_all = ["sources", "format", "milestone", "init", "schema", "toml"]
    )]
    pub(super) ai: Option<String>,
    /// With --ai, a file that the plan is to follow: a roadmap, notes, an issue
    #[arg(long, value_name = "FILE", requires = "ai", value_hint = ValueHint::FilePath)]
    pub(super) from: Option<PathBuf>,
    /// With --ai, the agent; without it, the first that is installed and can be kept from changing things
    #[arg(long, value_name = "AGENT", requires = "ai", add = ArgValueCompleter::new(agent_names))]
    pub(super) agent: Option<String>,
    /// With --ai, the model that it is asked to use
    #[arg(long, value_name = "MODEL", requires = "ai")]
    pub(super) model: Option<String>,
    /// With --ai, say what would be started and what it would be told, and start nothing
    #[arg(long, requires = "ai")]
    pub(super) dry_run: bool,
    /// Have the agent change DRAFT as TEXT says
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true,
          conflicts_with_all = ["ai", "format", "milestone", "init", "schema", "toml"])]
    pub(super) feedback: Option<String>,
    /// Write the plan to FILE, in TOML
    #[arg(long, short = 'o', value_name = "FILE", conflicts_with_all = ["init", "schema", "toml"],
          value_hint = ValueHint::FilePath)]
    pub(super) save: Option<PathBuf>,
    /// With -o, replace FILE if it is there; what was in it is kept
    #[arg(long, requires = "save")]
    pub(super) force: bool,
    /// Let DRAFT be run, once you have read it
    #[arg(long, conflicts_with_all = ["ai", "feedback", "save", "format", "milestone", "init", "schema", "toml"])]
    pub(super) approve: bool,
    /// With --approve, without a question
    #[arg(long, short, requires = "approve")]
    pub(super) yes: bool,
    /// List the drafts, the one changed last first
    #[arg(long, conflicts_with_all = ["ai", "feedback", "save", "approve", "sources", "init", "schema", "toml"])]
    pub(super) drafts: bool,
}

impl Drafting {
    /// Whether it is about more than looking at a plan.
    pub(super) fn is_asked_for(&self) -> bool {
        self.ai.is_some() || self.feedback.is_some() || self.save.is_some() || self.approve || self.drafts
    }
}

pub(super) fn run(session: &Session, args: &PlanArgs) -> Done {
    let drafting = &args.drafting;
    if drafting.drafts {
        return listing::run(session);
    }
    // Refused before anything is spent.
    let target = drafting.save.as_ref().map(|file| Target::new(session, file, drafting.force)).transpose()?;
    if let Some(goal) = &drafting.ai {
        return making::make(session, args, goal, target.as_ref());
    }
    if let Some(text) = &drafting.feedback {
        return making::change(session, args, text, target.as_ref());
    }
    let project = session.project_to_change()?;
    match target {
        Some(target) => save(session, &project, args, &target),
        None => approve(session, &project, args),
    }
}

/// The draft that was named; without a name, the only one.
///
/// # Errors
/// [`DraftError::Unknown`], [`DraftError::None`], [`DraftError::Several`].
pub(super) fn named(project: &Project, args: &PlanArgs) -> Result<String, Failure> {
    match args.source.names() {
        [name] => Ok(drafts::read(project, name)?.record.name),
        [] => {
            let mut names: Vec<String> =
                drafts::list(project)?.into_iter().map(|record| record.name).collect();
            match names.len() {
                0 => Err(DraftError::None.into()),
                1 => Ok(names.swap_remove(0)),
                _ => Err(DraftError::Several { names }.into()),
            }
        }
        _ => {
            Err(Mistake::Missing { what: "one draft at a time", example: "git proq plan --approve DRAFT" }
                .into())
        }
    }
}

/// Writes a draft, or a plan of any other form, as a plan in TOML.
fn save(session: &Session, project: &Project, args: &PlanArgs, target: &Target) -> Done {
    let is_draft = args.source.names().is_empty() || args.source.draft(session, project).is_some();
    let path = if is_draft {
        let draft = planner::catch_up(project, &named(project, args)?)?.0;
        save_draft(session, project, args, &draft, target)?
    } else {
        let found = args.source.read(session, project, "git proq plan -o plan.toml DRAFT")?;
        let about = [format!("From {}.", args.source.names().join(" "))];
        let text = save::with_comments(&swarm::written(&found.plan), &about, &shown(args));
        target.write(session, project, &text)?
    };
    if session.ui.json {
        session.ui.object(serde_json::json!({ "saved": crate::store::path_form::text(&path) }));
    } else {
        session.ui.answer(format!("wrote {}", shown(args)));
        session.ui.hint(format!("see what it comes to: git proq plan {}", shown(args)));
    }
    Ok(Exit::Done)
}

/// The file as it was named.
pub(super) fn shown(args: &PlanArgs) -> String {
    let name = args.drafting.save.as_ref().map(|file| file.display().to_string());
    crate::harmless::line(&name.unwrap_or_default())
}

/// Writes a draft's plan.
pub(super) fn save_draft(
    session: &Session,
    project: &Project,
    args: &PlanArgs,
    draft: &Draft,
    target: &Target,
) -> Result<PathBuf, Failure> {
    let record = &draft.record;
    let none = || DraftError::NoPlan { name: record.name.clone(), why: record.wrong.clone() };
    let plan = draft.plan.as_ref().ok_or_else(none)?;
    let mut about = vec![
        format!("A plan by {}, made with git proq plan --ai (draft {}).", record.agent, record.name),
        format!("Goal: {}", record.goal.trim()),
    ];
    about.extend(record.from.as_ref().map(|from| format!("From: {from}")));
    target.write(session, project, &save::with_comments(&plan.text, &about, &shown(args)))
}

/// Lets a draft be run.
fn approve(session: &Session, project: &Project, args: &PlanArgs) -> Done {
    identity::refuse_in_lane(session, project)?;
    let name = named(project, args)?;
    let (draft, is_busy) = planner::catch_up(project, &name)?;
    if is_busy {
        return Err(DraftError::Busy { name }.into());
    }
    if draft.plan.is_none() {
        return Err(DraftError::NoPlan { name, why: draft.record.wrong }.into());
    }
    if !session.ui.json {
        making::show(session, project, args, &draft, &[])?;
    }
    if !drafts::is_approved(project, &draft) && !args.drafting.yes {
        ask(session, &name)?;
    }
    let record = drafts::approve(project, &draft)?;
    let draft = Draft { record, plan: draft.plan };
    if session.ui.json {
        making::show(session, project, args, &draft, &[])?;
    } else {
        session.ui.answer(format!("\napproved draft '{name}'"));
    }
    Ok(Exit::Done)
}

fn ask(session: &Session, name: &str) -> Result<(), Failure> {
    if nobody_to_ask(session) {
        let what = format!("draft '{name}' may be run");
        return Err(DraftError::Unapproved {
            what,
            command: format!("git proq plan --approve --yes {name}"),
        }
        .into());
    }
    agreed(&format!("let draft '{name}' be run? [y/N] "))
}

/// Asks a person.
///
/// # Errors
/// [`Mistake::Declined`].
pub(crate) fn agreed(question: &str) -> Result<(), Failure> {
    super::super::ui::part(question);
    let mut answer = String::new();
    drop(std::io::stdin().lock().read_line(&mut answer));
    if matches!(answer.trim(), "y" | "Y" | "yes") { Ok(()) } else { Err(Mistake::Declined.into()) }
}
