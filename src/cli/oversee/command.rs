//! Owns the arguments of `git proq supervise`, and starting or resuming the one agent.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use super::overview;
use crate::agent::{Overseer, OverseersLine as Line, OverseersTask};
use crate::cli::mcp::UNASKED;
use crate::cli::{Done, Failure, Mistake, Session, identity, resolve};
use crate::explain::Exit;
use crate::lane::Project;
use crate::process::Start;
use crate::store::records::OverseerRecord;
use crate::store::{Limit, LockName, Record, now};

/// Start an agent that supervises all lanes
///
/// It runs here, in your terminal and in the main checkout, and is told how the lanes stand and what it may do. It gets the
/// tools of `git proq mcp --supervisor` for this run; nothing is written into its own settings. It asks you before it stops
/// an agent, shows a lane in your checkout or lands one.
///
/// There is one per repository. The next time its session goes on; --new begins another one. Claude Code and Gemini CLI are told
/// which session that is; Codex and opencode go on with the last one that they held here, whoever began it. AGENT is claude, codex, gemini, opencode, or one of your own that is like them; without it, the one that
/// supervised last or the first installed.
///
/// Examples:
///     git proq supervise
///     git proq supervise codex
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Oversee {
    /// The agent
    #[arg(value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// Begin a new session
    #[arg(long)]
    pub(crate) new: bool,
    /// Say what would be started and what it would be told, and start nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Serialize)]
struct Answer<'a> {
    agent: &'a str,
    session: Option<&'a str>,
    resumed: bool,
    command: Vec<String>,
    prompt: &'a str,
    exit: Option<i32>,
    dry_run: bool,
}

/// What is about to be started.
struct Plan {
    agent: Overseer,
    program: PathBuf,
    session: String,
    resume: bool,
    prompt: String,
}

pub(crate) fn run(session: &Session, args: &Oversee) -> Done {
    let project = session.project_to_change()?;
    identity::refuse_in_lane(session, &project)?;
    let layout = project.store.layout();
    let lock = (!args.dry_run)
        .then(|| project.store.locks().take_within(&LockName::Overseer, Limit::Now))
        .transpose()?;
    let last = OverseerRecord::find(&layout.overseer())?;
    let plan = plan(&project, args, last)?;
    let settings = layout.overseer_settings();
    let line = plan.agent.line(&OverseersTask {
        exe: &resolve::this_program()?,
        prompt: &plan.prompt,
        session: &plan.session,
        resume: plan.resume,
        tools: UNASKED,
        settings: &settings,
    })?;
    if args.dry_run {
        say_plan(session, &plan, &line);
        return Ok(Exit::Done);
    }
    let ended = start(&project, &plan, &line, &settings)?;
    drop(lock);
    if session.ui.json {
        say_json(session, &plan, &line, ended);
    }
    if ended == Some(0) {
        return Ok(Exit::Done);
    }
    let how = ended.map_or_else(|| "by a signal".to_owned(), |code| format!("with exit code {code}"));
    session.ui.warn(format!("{} ended {how}", plan.agent.name));
    if plan.resume {
        session.ui.hint("if its session is gone, begin a new one: git proq supervise --new");
    }
    Ok(Exit::Agent)
}

fn plan(project: &Project, args: &Oversee, last: Option<OverseerRecord>) -> Result<Plan, Failure> {
    let dir = project.repo.home();
    let mut all = Overseer::all(&project.layers)?;
    let named = args.agent.as_deref().or(last.as_ref().map(|last| last.agent.as_str()));
    let at = match named {
        Some(name) => all.iter().position(|agent| agent.name == name),
        None => all.iter().position(|agent| agent.find(dir).is_ok()),
    };
    let Some(at) = at else {
        let known = all.into_iter().map(|agent| agent.name).collect();
        return Err(match named {
            Some(agent) => Mistake::CannotSupervise { agent: agent.to_owned(), known }.into(),
            None => Mistake::NoOverseer { known }.into(),
        });
    };
    let agent = all.swap_remove(at);
    let program = agent.find(dir)?;
    let last = last.filter(|last| last.agent == agent.name && agent.resumes() && !args.new);
    let resume = last.is_some();
    let session = last.map_or_else(|| agent.new_session(), |last| Ok(last.session))?;
    // Only of a session that is surely ours the rules of its beginning are known.
    let again = resume && agent.chooses_session();
    Ok(Plan { agent, program, session, resume, prompt: overview::write(project, again)? })
}

/// Runs the agent on this terminal to its end, and returns its exit code.
fn start(project: &Project, plan: &Plan, line: &Line, settings: &Path) -> Result<Option<i32>, Failure> {
    line.write_settings(settings)?;
    // Before it starts: it may be the terminal that ends first.
    let record =
        OverseerRecord { agent: plan.agent.name.clone(), session: plan.session.clone(), started: now() };
    record.save(&project.store.layout().overseer())?;
    let mut start = Start::new(&plan.program, project.repo.home()).args(line.args.iter().cloned());
    for (name, value) in &line.env {
        start = start.env(name, value.clone());
    }
    let status = start.run_on_terminal();
    // A Ctrl-C in there was meant for what ran in there.
    crate::interrupt::forget();
    Ok(status?.code())
}

fn say_plan(session: &Session, plan: &Plan, line: &Line) {
    if session.ui.json {
        say_json(session, plan, line, None);
        return;
    }
    let how = match (plan.resume, plan.agent.resumes()) {
        (true, _) if !plan.agent.chooses_session() => ", and go on with its last session here".to_owned(),
        (true, _) => format!(", and go on with session {}", plan.session),
        (false, _) if plan.agent.chooses_session() => format!(", in a new session {}", plan.session),
        (false, _) => ", in a new session".to_owned(),
    };
    session.ui.answer(format!("would start {}{how}; it would be told:", plan.program.display()));
    session.ui.answer("");
    session.ui.answer(plan.prompt.trim_end());
}

fn say_json(session: &Session, plan: &Plan, line: &Line, exit: Option<i32>) {
    let program = std::iter::once(plan.program.as_os_str());
    let words = program.chain(line.args.iter().map(AsRef::as_ref)).map(|w| w.to_string_lossy().into_owned());
    session.ui.object(Answer {
        agent: &plan.agent.name,
        session: plan.agent.chooses_session().then_some(plan.session.as_str()),
        resumed: plan.resume,
        command: words.collect(),
        prompt: &plan.prompt,
        exit,
        dry_run: exit.is_none(),
    });
}
