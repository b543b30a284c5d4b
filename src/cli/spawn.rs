//! Owns `git proq spawn`.

use std::ffi::OsString;
use std::io::Read;
use std::path::Path;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use serde::Serialize;

use super::attempts::{self, Agents, Attempts};
use super::complete::{agent_names, branch_names};
use super::uncommitted::Uncommitted;
use super::wishes::{Wishes, warn_of};
use super::{Done, Failure, Mistake, Session, approve, follow, looking, resolve, task_folder, terms};
use crate::agent::{self, Job};
use crate::explain::{Exit, word};
use crate::lane::{self, Created, Given, NewLane, Plan, Project};
use crate::regular_file::{self, Links, RECORD};
use crate::store::records::{AnyLane, LaneRecord, LaneState, Purpose};
use crate::store::{Guard, Repositories, path_form};

/// Make a lane and start an agent in it
///
/// The lane is a branch proq/NAME and a worktree, .proq-worktrees/NAME or where lane.location says, cut from the current
/// branch. The agent is started there with the prompt, and the command returns at once. Without NAME one is made from it.
///
/// The lane has the files of its commit, and from the main checkout copies of what .worktreeinclude and lane.copy name, links to
/// what lane.link names; then the lane.setup commands run in it. -v says what it was given, `git proq config list` shows these
/// settings. When a command fails no lane is made.
///
/// With --check, the lane says when its task is done: each landing runs CMD too, as it runs the verify.commands, and leaves
/// the lane out when it fails. Give commands that fail as long as nobody has done the task.
///
/// With --scope, lanes are named that are at work there too, or have work there that has not landed: by their own scope, or
/// by the files that they have changed. Nothing is refused. A GLOB is a file, a folder, or a pattern whose `*` also stands
/// for slashes.
///
/// With --auto-merge the lane is landed by a process of its own when its agent is done. At a conflict merge.conflict_agent
/// is sent, or else the lane's own agent, unless it is a command of yours. A landing that is refused leaves the lane as it
/// is, and is tried again after the next landing on that branch; `git proq show` says why, `git proq logs --merge` shows it.
/// `git proq undo` of it ends that.
///
/// With --mode answer or plan the agent only looks, in the main checkout as it is, at permission read, and what it says last is
/// all that is kept: no branch, no worktree, nothing to land. `git proq show` prints it, with --wait this command does;
/// `git proq send` asks on. With --isolated it looks at a commit instead, in a worktree that goes when its run ends.
///
/// With --in-place the agent works in the main checkout, on the branch that is checked out there, one such run at a time and
/// not while a preview is open. What it changes is committed there; files that had changes of yours stay uncommitted, and a copy
/// of them as they were is kept. `git proq undo` takes its commits back, by the number in `git proq op log`.
///
/// With --tmux the agent is on its own screen in a window of tmux, where you can look at it and talk to it: `git proq attach`
/// goes there. It does not end with your terminal. Its run is over when it ends.
///
/// With --folder the task is a folder: PROMPT.md in it says what is to be done, in steps. Each step is worked at in runs of their own, one
/// after the other, each in a new conversation; what one has to know of those before stands in STATUS.md there, whose boxes say how
/// far it is. It is done when all are ticked, and has failed when nothing comes of three runs in a row. At a review level of 1 or 2 in
/// PROMPT.md, REVIEWER judges the plan of each step, or that and what was done; at most twice something of a step is done anew.
/// Its time and budget are for all runs together. `git proq run LANE` goes on with it where it was.
///
/// With --count or --agents, several attempts are made at one task: lanes NAME-1, NAME-2 and so on from one commit, all or
/// none. `git proq compare NAME` shows them side by side, `git proq pick` lands one and discards the others.
///
/// Examples:
///     git proq spawn claude "implement payments"
///     git proq spawn codex -n auth -f task.md
///     git proq spawn claude "implement payments" --check 'make test-payments' --scope src/pay/
///     git proq spawn acp "implement payments" -- gemini --acp
///     git proq spawn -n docs -- sh -c 'make docs; git add -A; git commit -m docs'
///     git proq spawn --agents claude:2,codex:1 -n pay "implement payments"
///     git proq spawn --auto-merge claude "fix the typos in docs/"
///     git proq spawn --mode answer --wait claude "where is the tax computed?"
///     git proq spawn claude --folder tasks/pay/PAY-3-refunds --reviewer codex
///     git proq spawn --empty -n scratch
#[derive(Debug, Clone, Args)]
#[command(verbatim_doc_comment)]
#[command(
    override_usage = "git proq spawn [OPTIONS] AGENT PROMPT\n       git proq spawn [OPTIONS] AGENT PROMPT -- CMD...\n       git proq spawn [OPTIONS] AGENT -f FILE\n       git proq spawn [OPTIONS] AGENT --folder FOLDER\n       git proq spawn [OPTIONS] --agents LIST PROMPT\n       git proq spawn [OPTIONS] -- CMD...\n       git proq spawn [OPTIONS] --empty"
)]
pub(crate) struct Spawn {
    /// The agent: a known one (see `git proq agents`) or any program on PATH
    #[arg(value_name = "AGENT", add = ArgValueCompleter::new(agent_names), conflicts_with = "empty")]
    pub(crate) agent: Option<String>,
    /// What the agent is asked to do
    #[arg(value_name = "PROMPT", conflicts_with = "file")]
    pub(crate) prompt: Option<String>,
    /// A command line of your own, instead of an agent; {prompt} and {prompt_file} in it are filled in. After AGENT, the
    /// command that such an agent is started with, where it has none of its own: acp "..." -- CMD
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
    /// The lane's name: lower-case letters, digits, '.', '_' and '-'
    #[arg(long, short, value_name = "NAME", allow_hyphen_values = true)]
    pub(crate) name: Option<String>,
    /// Read the prompt from FILE, or from standard input with '-'
    #[arg(long, short, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// The task is a folder with PROMPT.md in it, done step by step
    #[arg(long, value_name = "FOLDER", value_hint = clap::ValueHint::DirPath,
          conflicts_with_all = ["prompt", "file", "empty", "tmux", "count", "agents", "isolated", "attach", "mode"])]
    pub(crate) folder: Option<String>,
    /// With --folder, the agent that reviews its steps, if PROMPT.md asks for reviews
    #[arg(long, value_name = "AGENT", requires = "folder", add = ArgValueCompleter::new(agent_names))]
    pub(crate) reviewer: Option<String>,
    /// Start from REV instead of the current branch; a branch is also what the lane lands on
    #[arg(long, value_name = "REV", add = ArgValueCompleter::new(branch_names))]
    pub(crate) base: Option<String>,
    /// Land on BRANCH
    #[arg(long, value_name = "BRANCH", add = ArgValueCompleter::new(branch_names))]
    pub(crate) onto: Option<String>,
    /// Land the lane only when CMD, a line for the shell, succeeds with it; may be given again
    #[arg(long, value_name = "CMD", value_hint = clap::ValueHint::CommandString)]
    pub(crate) check: Vec<String>,
    /// The files that the task is expected to touch, from the top of the repository; may be given again
    #[arg(long, value_name = "GLOB", value_hint = clap::ValueHint::AnyPath)]
    pub(crate) scope: Vec<String>,
    /// Check out only the folders that the scope's files are in, and the files beside and above them
    #[arg(long, conflicts_with_all = ["mode", "isolated", "in_place"])]
    pub(crate) sparse: bool,
    /// What it is to come to: commits in a lane of its own, a plan, or an answer
    #[arg(long, value_name = "MODE", value_enum, default_value_t, hide_default_value = true)]
    pub(crate) mode: Mode,
    /// With --mode plan or answer, look in a worktree made for it, at --base or what is checked out here; it goes afterwards
    #[arg(long)]
    pub(crate) isolated: bool,
    /// Work in the main checkout, on its branch, without a lane's own: for what cannot be had twice, like a database
    #[arg(long, conflicts_with_all = ["mode", "isolated", "empty"])]
    pub(crate) in_place: bool,
    /// What the agent's run is to be like
    #[command(flatten)]
    pub(crate) wishes: Wishes,
    /// Start it in a window of tmux, on its own screen; `git proq attach` goes there
    #[arg(long, conflicts_with_all = ["max_turns", "stall", "budget", "empty"])]
    pub(crate) tmux: bool,
    /// Give FILE along with the prompt; a copy is kept beside the lane's record. May be given again
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, conflicts_with = "empty")]
    pub(crate) attach: Vec<PathBuf>,
    /// Make the lane only; start nothing
    #[arg(long, conflicts_with = "command")]
    pub(crate) empty: bool,
    /// Make your uncommitted changes of tracked files the lane's first commit; they stay where they are too
    #[arg(long)]
    pub(crate) carry: bool,
    /// Run none of the lane.setup commands in it
    #[arg(long)]
    pub(crate) no_setup: bool,
    /// Land it when the agent is done, as `git proq merge` would; what refuses that is tried again after the next landing
    #[arg(long, conflicts_with = "empty")]
    pub(crate) auto_merge: bool,
    /// Wait for the agent to end, and with --auto-merge for the landing; exit with 4 when it failed, or as the landing does
    #[arg(long, conflicts_with = "empty")]
    pub(crate) wait: bool,
    /// Make N attempts at the task, each in a lane of its own
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=99), conflicts_with = "auto_merge")]
    pub(crate) count: Option<u8>,
    /// Make an attempt with each of these agents, or as many as their numbers say: claude:2,codex
    #[arg(long, value_name = "LIST", value_parser = attempts::agents,
          conflicts_with_all = ["count", "auto_merge", "empty", "command"])]
    pub(crate) agents: Option<Agents>,
    /// Say what would be made, and make nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// What a run is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Commits.
    #[default]
    #[value(help = None)]
    Build,
    /// A plan.
    #[value(help = None)]
    Plan,
    /// An answer.
    #[value(help = None)]
    Answer,
}

impl Mode {
    /// What it only looks for; none when it does more.
    pub(super) fn purpose(self) -> Option<Purpose> {
        match self {
            Mode::Build => None,
            Mode::Plan => Some(Purpose::Plan),
            Mode::Answer => Some(Purpose::Answer),
        }
    }
}

/// The answer.
#[derive(Serialize)]
struct Answer<'a> {
    lane: &'a str,
    branch: &'a str,
    #[serde(serialize_with = "path_form::serialize")]
    path: &'a Path,
    base: &'a str,
    start: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    checks: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    scope: &'a [String],
    /// What the agent may do.
    #[serde(skip_serializing_if = "Option::is_none")]
    permission: Option<String>,
    state: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    auto_merge: bool,
    /// Why it did not land by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<&'a str>,
    dry_run: bool,
}

pub(super) fn run(session: &Session, args: &Spawn) -> Done {
    if let Some(folder) = &args.folder {
        return task_folder::run(session, args, folder);
    }
    if let Some(purpose) = args.purpose() {
        return looking::run(session, args, purpose);
    }
    if args.isolated {
        return Err(Mistake::BuildsApart.into());
    }
    let many = Attempts::read(args)?;
    let args = many.as_ref().map_or(args, Attempts::first);
    let (checks, scope) = (terms::checks(&args.check)?, terms::scope(&args.scope)?);
    let project = session.project_to_change()?;
    let mut asked = Asked::read(session, &project, args)?;
    let base = lane::resolve_base(&project, args.base.as_deref(), args.onto.as_deref())?;
    if let Some(job) = asked.job.take() {
        asked.job = Some(job.with_checks(agent::checks_with(&project, &base.branch, &checks)?));
    }
    let here = project.repo.here().or(project.repo.main_worktree()).map(Path::to_owned);
    let wanted = NewLane {
        name: args.name.as_deref().map(lane::Name::parse).transpose()?,
        prompt: asked.prompt.as_deref(),
        words: asked.words.as_deref(),
        agent: asked.job.as_ref().map(|job| job.agent.clone()),
        base,
        carry: here.clone().filter(|_| args.carry),
        checks,
        sparse: terms::sparse(args.sparse, &scope)?,
        scope,
        auto_merge: args.auto_merge,
        group: None,
        batch: None,
        given: args.given(),
    };
    if let Some(many) = many {
        return many.spawn(session, &project, &wanted, here.as_deref());
    }
    let plan = lane::plan(&project, wanted)?;
    terms::warn_of_neighbours(session, &project, &plan);
    warn_of(session, &project, asked.job.as_ref())?;
    let uncommitted = Uncommitted::of(&project, args, here.as_deref());
    if args.dry_run {
        uncommitted.warn(session, None);
        say_plan(session, &plan, asked.job.as_ref(), &asked.attached);
        return Ok(Exit::Done);
    }
    approve::before_set_up(session, &project, args.given())?;
    let Created { lane, lock, unchanged } = lane::create(&project, &plan)?;
    remember(&project);
    let begun = asked.job.as_ref().map(|job| begin(&project, &lane, lock, job, &asked.attached)).transpose();
    let warn = || uncommitted.warn(session, unchanged.as_deref());
    tell(session, &project, (lane, asked.job.as_ref()), begun, args.wait, warn)
}

/// Says what was made and what runs there, or follows that. `warn` looks at each file of the main checkout, perhaps: only when
/// the lane is in use and said, or nothing could be started in it.
pub(super) fn tell(
    session: &Session,
    project: &Project,
    (mut lane, job): (LaneRecord, Option<&Job>),
    begun: Result<Option<AnyLane>, Failure>,
    wait: bool,
    warn: impl FnOnce(),
) -> Done {
    let followed = begun.as_ref().is_ok_and(|begun| wait && begun.is_some());
    if let (Ok(begun), false) = (&begun, followed) {
        lane.state = begun.as_ref().map_or(lane.state, |begun| begun.state);
        say_made(session, &lane, job);
    }
    warn();
    if let (Some(begun), true) = (begun?, followed) {
        return follow::follow(session, project, &begun, job);
    }
    let next =
        job.map_or_else(|| format!("cd {}", word(&lane.path.to_string_lossy())), |job| hint(job, &lane.name));
    session.ui.hint(next);
    Ok(Exit::Done)
}

/// Starts what is to run in a new lane.
fn begin(
    project: &Project,
    lane: &LaneRecord,
    lock: Guard,
    job: &Job,
    attached: &[PathBuf],
) -> Result<AnyLane, Failure> {
    let exe = resolve::this_program()?;
    lane::attach(project, &lane.name, attached)?;
    Ok(agent::launch(project, &lane.clone().any(), lock, job, &exe)?)
}

/// Puts the repository on the user's list, for `list --everywhere`. The lane is made, whatever becomes of that.
pub(super) fn remember(project: &Project) {
    let added = Repositories::of_user().map(|list| list.add(project.repo.common_dir()));
    if let Some(Err(e)) = added {
        project.listener.warn(format!("`git proq list --everywhere` will not show this repository: {e}"));
    }
}

impl Spawn {
    /// What it is for, if it is to have no branch of its own.
    fn purpose(&self) -> Option<Purpose> {
        if self.in_place { Some(Purpose::InPlace) } else { self.mode.purpose() }
    }

    /// What its lane is given.
    pub(super) fn given(&self) -> Given {
        if self.no_setup { Given::NoCommands } else { Given::Whole }
    }

    /// The same with the prompt as text, so that it is read once.
    pub(super) fn with_prompt_read(self) -> Result<Spawn, Failure> {
        match &self.file {
            None => Ok(self),
            Some(file) => Ok(Spawn { prompt: Some(read_prompt(file)?), file: None, ..self }),
        }
    }
}

/// What the command line asks for, checked before anything is made.
pub(super) struct Asked {
    pub(super) job: Option<Job>,
    pub(super) prompt: Option<String>,
    /// What a lane for a bare command line is named after.
    pub(super) words: Option<String>,
    /// Files that belong to the prompt.
    pub(super) attached: Vec<PathBuf>,
}

impl Asked {
    pub(super) fn read(session: &Session, project: &Project, args: &Spawn) -> Result<Asked, Failure> {
        let prompt = match &args.file {
            None => args.prompt.clone(),
            Some(file) => Some(read_prompt(file)?),
        };
        let attached = attached(session, &args.attach)?;
        if args.empty {
            return Ok(Asked { job: None, prompt, words: None, attached });
        }
        if !args.command.is_empty() && args.agent.is_none() {
            let job = Job::command(
                project,
                &args.command,
                prompt.as_deref().unwrap_or_default(),
                &session.dir,
                &asked_of(args),
            )?;
            let words: Vec<_> = args.command.iter().map(|w| w.to_string_lossy()).collect();
            return Ok(Asked { job: Some(job), prompt, words: Some(words.join(" ")), attached });
        }
        let agent = args.agent.as_deref().ok_or(Mistake::Missing {
            what: "nothing says what to start",
            example: "git proq spawn claude \"implement payments\"",
        })?;
        let prompt = prompt.ok_or(Mistake::Missing {
            what: "the agent needs a prompt",
            example: "git proq spawn claude \"implement payments\", or -f task.md",
        })?;
        let wishes = agent::Asked { own: args.command.clone(), ..asked_of(args) };
        let job = Job::agent(project, agent, &prompt, &session.dir, &wishes)?;
        Ok(Asked { job: Some(job), prompt: Some(prompt), words: None, attached })
    }
}

/// What the run is to be like.
fn asked_of(args: &Spawn) -> agent::Asked {
    agent::Asked { purpose: args.purpose(), ..args.wishes.asked_in(args.tmux) }
}

/// The files to give along, each of which can be read and has a name of its own.
pub(super) fn attached(session: &Session, files: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut out: Vec<PathBuf> = Vec::new();
    for file in files {
        let path = session.dir.join(file);
        let unreadable = |source| Mistake::Unreadable { path: file.clone(), source };
        regular_file::open(&path, Links::Follow).map_err(unreadable)?;
        if out.iter().any(|other| other.file_name() == path.file_name()) {
            return Err(unreadable(std::io::Error::other("another file of this name is given along")).into());
        }
        out.push(path);
    }
    Ok(out)
}

pub(super) fn read_prompt(file: &Path) -> Result<String, Failure> {
    let piped = file == Path::new("-");
    let named = if piped { Path::new("standard input") } else { file };
    let unreadable = |source| Mistake::Unreadable { path: named.to_owned(), source };
    let mut bytes = Vec::new();
    if piped {
        std::io::stdin().take(RECORD).read_to_end(&mut bytes).map_err(unreadable)?;
    } else {
        bytes = regular_file::given(file, RECORD).map_err(unreadable)?;
    }
    String::from_utf8(bytes)
        .map_err(|e| unreadable(std::io::Error::new(std::io::ErrorKind::InvalidData, e.utf8_error())).into())
}

pub(super) fn say_plan(session: &Session, plan: &Plan<'_>, job: Option<&Job>, attached: &[PathBuf]) {
    let base = plan.base();
    if session.ui.json {
        session.ui.object(Answer {
            lane: plan.name.as_str(),
            branch: &plan.branch,
            path: &plan.path,
            base: &base.branch,
            start: base.start.to_string(),
            agent: job.map(|j| j.agent.as_str()),
            command: job.map(Job::shown),
            checks: plan.checks(),
            scope: plan.scope(),
            permission: job.and_then(Job::level),
            state: LaneState::Idle.to_string(),
            auto_merge: plan.lands_by_itself(),
            refused: None,
            dry_run: true,
        });
        return;
    }
    session.ui.answer(format!("would make lane '{}'", plan.name));
    session.ui.answer(format!("  branch    {}", plan.branch));
    session.ui.answer(format!("  worktree  {}", plan.path.display()));
    session.ui.answer(format!("  from      {} ({})", base.start.short(), base.branch));
    match job {
        Some(job) => session.ui.answer(format!("  runs      {}", job.shown())),
        None => session.ui.answer("  runs      nothing"),
    }
    terms::say(session, plan);
    for file in attached {
        session.ui.answer(format!("  along     {}", file.display()));
    }
    if plan.lands_by_itself() {
        session.ui.answer(format!("  then      lands on {}", base.branch));
    }
}

fn say_made(session: &Session, lane: &LaneRecord, job: Option<&Job>) {
    if session.ui.json {
        say_json(session, lane, job, lane.state);
        return;
    }
    session.ui.answer(format!("lane '{}' on branch {}, from {}", lane.name, lane.place.branch, lane.base));
    session.ui.answer(format!("  {}", lane.path.display()));
    if let Some(job) = job {
        let then = if lane.auto_merge { "; when it is done, the lane lands by itself" } else { "" };
        session.ui.say(format!("{} there{then}", job.begun()));
    }
}

/// How to see what it does.
pub(super) fn hint(job: &Job, lane: &str) -> String {
    let look = if job.in_window { "go there: git proq attach" } else { "follow it: git proq logs -f" };
    format!("{look} {lane}   wait for it: git proq wait {lane}")
}

pub(super) fn say_json(session: &Session, lane: &LaneRecord, job: Option<&Job>, state: LaneState) {
    session.ui.object(Answer {
        lane: &lane.name,
        branch: &lane.place.branch,
        path: &lane.path,
        base: &lane.base,
        start: lane.start.to_string(),
        agent: lane.agent.as_deref(),
        command: job.map(Job::shown),
        checks: &lane.checks,
        scope: &lane.scope,
        permission: job.and_then(Job::level),
        state: state.to_string(),
        auto_merge: lane.auto_merge,
        refused: lane.refused.as_ref().map(|refused| refused.message.as_str()),
        dry_run: false,
    });
}
