//! Owns `git proq swarm`, and the hidden command that goes on with a batch.

mod follow;
mod lines;
mod prepare;
mod view;

use std::io::BufRead;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use clap_complete::engine::ArgValueCompleter;
use serde::Serialize;

pub(super) use follow::{Follow, follow};

use super::complete::{agent_names, branch_names};
use super::plan_source::PlanSource;
use super::{Done, Failure, Mistake, Session, approve, control, identity, plan, resolve, spawn};
use crate::explain::Exit;
use crate::health::examine;
use crate::lane::Project;
use crate::store::LockName;
use crate::swarm::drafts::{self, Draft};
use crate::swarm::{self, BatchRecord, DraftError, Outcome, WishKind};
use crate::{agent, process};

/// How many tasks of a plan are shown that begins without a question.
const MOST_SHOWN: usize = 20;

/// Run a plan of dependent tasks, each in a lane
///
/// Each task is done by an agent in a lane of its own, as soon as what it needs has landed; tasks that are about the same files
/// share a lane, one after the other. What is done lands on the branch of this batch, `proq/batch-ID`, where the tasks that
/// need it start from; `git proq merge --batch ID` lands all of it on the base then, in one verified step. A task that conflicts
/// is given to an agent; one that fails is tried again, and what needs it is skipped.
///
/// The work goes on without this command and without this terminal: `git proq status` shows how far it is, `git proq pause`, `resume` and
/// `abort` are heard from anywhere, and `resume` also goes on with a batch whose process was killed. In its view, Ctrl-C asks
/// whether to pause, and a second one aborts.
///
/// Exits with 4 when a task failed, 3 when one conflicts, 1 when it was paused or aborted.
///
/// Examples:
///     git proq swarm plan.toml
///     git proq swarm auth billing --agent claude --max-parallel 4
///     git proq swarm ROADMAP.md --milestone 0.3 --waves --detach
///     git proq swarm plan.toml --auto-merge --on-task-failure stop-all --budget 20
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct Swarm {
    #[command(flatten)]
    source: PlanSource,
    /// Who does tasks that name no agent [default: swarm.agent]
    #[arg(long, value_name = "AGENT", add = ArgValueCompleter::new(agent_names))]
    agent: Option<String>,
    /// The model of tasks that name none [default: agent.model]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// The branch that all of it is for; the current one without it
    #[arg(long, value_name = "BRANCH", add = ArgValueCompleter::new(branch_names))]
    base: Option<String>,
    /// How many lanes may be at work at the same time [default: swarm.max_parallel]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    max_parallel: Option<u16>,
    /// Land what can be done at the same time together, and then go on
    #[arg(long, conflicts_with_all = ["phases", "one_lane"])]
    waves: bool,
    /// Land a phase together, and then go on with the next
    #[arg(long, conflicts_with = "one_lane")]
    phases: bool,
    /// Do the whole plan in one lane, one task after the other, and land it once
    #[arg(long)]
    one_lane: bool,
    /// Which lane a task goes to with --waves and --phases; otherwise most tasks get a lane of their own
    /// [default: swarm.strategy]
    #[arg(long, value_name = "HOW", value_parser = ["affinity-first", "round-robin", "load-balanced"])]
    strategy: Option<String>,
    /// Land tasks on the base itself as they are done, and not on a branch of the batch
    #[arg(long)]
    auto_merge: bool,
    /// When a task fails: skip what needs it, start nothing more, or stop all [default: swarm.on_task_failure]
    #[arg(long, value_name = "WHAT", value_parser = ["skip-dependents", "stop-wave", "stop-all"])]
    on_task_failure: Option<String>,
    /// When a task cannot land: pause or abort [default: swarm.on_merge_failure]
    #[arg(long, value_name = "WHAT", value_parser = ["pause", "abort"])]
    on_merge_failure: Option<String>,
    /// Pause once it has cost this many US dollars [default: swarm.budget]
    #[arg(long, value_name = "USD")]
    budget: Option<String>,
    /// Count it as failed, with exit code 4, unless all criteria of the plan are met in the end; `merge --batch` refuses it then
    /// [default: swarm.strict]
    #[arg(long)]
    strict: bool,
    /// Try this task again, however often it has failed; may be given again
    #[arg(long, value_name = "ID")]
    retry: Vec<String>,
    /// Begin a batch beside one of the same plan that is not over
    #[arg(long)]
    new: bool,
    /// Begin though changes that are not committed would be in no lane
    #[arg(long)]
    ignore_dirty: bool,
    /// Return once it has begun
    #[arg(long)]
    detach: bool,
    /// Keep FILE up to date with how far it is, in JSON
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    progress_file: Option<PathBuf>,
    /// Begin without asking
    #[arg(long, short)]
    yes: bool,
    /// Say what would be run, and run nothing
    #[arg(long)]
    dry_run: bool,
}

/// Goes on with a batch. Started by `swarm` and `resume`, with the batch's lock on standard input.
#[derive(Debug, Args)]
pub(crate) struct Scheduler {
    /// The batch
    #[arg(long)]
    batch: String,
}

/// What `--json` answers when nobody waits for the end.
#[derive(Serialize)]
struct Begun<'a> {
    batch: &'a str,
    base: &'a str,
    branch: &'a str,
    dry_run: bool,
}

pub(super) fn run(session: &Session, args: &Swarm) -> Done {
    let project = session.project_to_change()?;
    let draft = args.source.draft(session, &project).map(|name| drafts::read(&project, name)).transpose()?;
    let found = args.source.read_or_draft(session, &project, "git proq swarm plan.toml")?;
    let wanted = prepare::Wanted::of(session, &project, args, &found)?;
    if let Some(open) = wanted.open_batch(&project).filter(|_| !args.new && !args.dry_run) {
        return go_on_with(session, &project, args, &open);
    }
    if !args.new && !args.dry_run {
        wanted.require_landed(&project)?;
    }
    let look = plan::look_at(&project, &found, args.source.names(), &wanted.options)?;
    if !session.ui.json && !session.ui.quiet {
        // Who has agreed before does not read hundreds of tasks.
        let most = if args.yes && !args.dry_run { MOST_SHOWN } else { usize::MAX };
        session.ui.say(plan::render(&look, most));
        session.ui.say("");
        session.ui.say(wanted.in_words());
    }
    if args.dry_run {
        if session.ui.json {
            let (base, branch) = (wanted.base.branch.as_str(), "");
            session.ui.object(Begun { batch: "", base, branch, dry_run: true });
        } else {
            session.ui.answer("nothing was begun");
        }
        return Ok(Exit::Done);
    }
    wanted.require_clean(&project, args.ignore_dirty)?;
    look_over(session);
    let base = wanted.base.branch.clone();
    approve::before_landing(session, &project, [base], project.settings.conflict_agent.as_deref())?;
    let of_plan = || swarm::commands_of(&project, &found, &session.dir);
    approve::commands(session, &project, &of_plan()?)?;
    wanted.require_approved(&project, args, &of_plan()?)?;
    let draft = draft.filter(|draft| !drafts::is_approved(&project, draft));
    require_answer(session, args, draft.as_ref())?;
    if let Some(draft) = &draft {
        identity::refuse_in_lane(session, &project)?;
        drop(drafts::approve(&project, draft)?);
        if args.yes {
            let name = &draft.record.name;
            session.ui.say(format!("the plan '{name}', which an agent made, is approved by --yes"));
        }
    }
    let exe = resolve::this_program()?;
    let batch = wanted.begin(&project, args, &found, look.shared(), &exe)?;
    spawn::remember(&project);
    if args.detach {
        say_begun(session, &batch);
        return Ok(Exit::Done);
    }
    session.ui.say(format!("batch {}", batch.id));
    follow(session, &project, Follow::from_the_start(&project, &batch.id)?)
}

/// Says what the doctor would say: a plan runs for hours, and what is wrong now is still wrong then.
fn look_over(session: &Session) {
    for finding in examine(&session.dir, false).findings.iter().filter(|finding| finding.is_problem()) {
        let help = finding.help.as_ref().map(|help| format!(": {help}")).unwrap_or_default();
        session.ui.warn(format!("{}{help}", finding.message));
    }
}

/// Insists that somebody wants it run. What an agent made up is not run where nobody can be asked and nobody has agreed.
fn require_answer(session: &Session, args: &Swarm, draft: Option<&Draft>) -> Result<(), Failure> {
    if args.yes {
        return Ok(());
    }
    match (approve::nobody_to_ask(session), draft) {
        (true, Some(draft)) => {
            let name = &draft.record.name;
            let what = format!("the plan '{name}', which an agent made, may be run");
            Err(DraftError::Unapproved { what, command: format!("git proq plan --approve {name}") }.into())
        }
        (true, None) => Ok(()),
        (false, _) if asked("run it? [Y/n] ") => Ok(()),
        (false, _) => Err(Mistake::Declined.into()),
    }
}

fn say_begun(session: &Session, batch: &BatchRecord) {
    if session.ui.json {
        let BatchRecord { id, base, branch, .. } = batch;
        return session.ui.object(Begun { batch: id, base, branch, dry_run: false });
    }
    session.ui.answer(format!("batch {} has begun", batch.id));
    session
        .ui
        .hint(format!("see how far it is: git proq status {0}   follow it: git proq resume {0}", batch.id));
}

/// Yes is the answer that was meant by whoever typed the command.
fn asked(question: &str) -> bool {
    super::ui::part(question);
    let mut answer = String::new();
    drop(std::io::stdin().lock().read_line(&mut answer));
    matches!(answer.trim(), "" | "y" | "Y" | "yes")
}

/// There is a batch of this plan already that is not over.
fn go_on_with(session: &Session, project: &Project, args: &Swarm, open: &(BatchRecord, String)) -> Done {
    let (batch, state) = open;
    let id = batch.id.clone();
    if approve::nobody_to_ask(session) {
        return Err(swarm::Error::from(swarm::BatchError::Open { id, state: state.clone() }).into());
    }
    if !asked(&format!("batch {id} of this plan is not over ({state}): go on with it? [Y/n] ")) {
        return Err(swarm::Error::from(swarm::BatchError::Open { id, state: state.clone() }).into());
    }
    let mut wishes = vec![WishKind::Resume];
    let read = swarm::Batch::load(project, &id)?;
    for name in &args.retry {
        wishes.push(WishKind::Retry { task: read.task_named(name)? });
    }
    let at = Follow::from_here(project, &id)?;
    swarm::ask_batch(project, &id, &resolve::this_program()?, wishes)?;
    if args.detach {
        say_begun(session, batch);
        return Ok(Exit::Done);
    }
    follow(session, project, at)
}

/// Goes on with a batch, in a session of its own.
pub(super) fn schedule(session: &Session, args: &Scheduler) -> Done {
    schedule_held(session, args).inspect_err(|e| agent::answer_not_begun(&*e.0))
}

fn schedule_held(session: &Session, args: &Scheduler) -> Done {
    process::leave_session();
    let mut project = Project::open(&session.dir, session.ui.listener())?;
    project.lasting = true;
    let lock = agent::adopt_lock(&project, &LockName::Batch(args.batch.clone()))?;
    let exe = resolve::this_program()?;
    swarm::run_batch(&project, &args.batch, &exe, lock, agent::answer_begun)?;
    Ok(Exit::Done)
}

/// The exit code for what became of a batch, and of its criteria.
fn exit_of(project: &Project, batch: &swarm::Batch, state: &swarm::State) -> Exit {
    let record = &batch.record;
    let unmet = || {
        record.strict
            && !record.criteria.is_empty()
            && !record.proof(project).is_some_and(|proof| proof.is_met())
    };
    match exit_of_tasks(state, batch.tasks.len()) {
        Exit::Done if unmet() => Exit::Agent,
        exit => exit,
    }
}

fn exit_of_tasks(state: &swarm::State, tasks: usize) -> Exit {
    let fates: Vec<swarm::Fate> = (0..tasks).filter_map(|task| state.fate(task)).collect();
    let stuck = |fate: &swarm::Fate| matches!(fate, swarm::Fate::Failed(swarm::Why::Conflict));
    let failed = |fate: &swarm::Fate| {
        use swarm::Fate::{Failed, NoChange, SetAside};
        matches!(fate, NoChange | SetAside | Failed(_)) && !stuck(fate)
    };
    match state.outcome_if_over() {
        Some(Outcome::Complete) => Exit::Done,
        Some(Outcome::Aborted) => Exit::Refused,
        _ if fates.iter().any(failed) => Exit::Agent,
        _ if fates.iter().any(stuck) => Exit::Conflicts,
        _ => Exit::Refused,
    }
}

/// Leaves a wish of a view's.
fn wish(project: &Project, id: &str, kind: WishKind) -> Result<(), Failure> {
    control::wish(project, id, kind)
}
