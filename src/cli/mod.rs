//! Owns the command line: its grammar, one file per command, and the way from arguments to an exit code.

mod account;
mod acp;
mod agent_event;
mod agents;
mod approve;
mod args;
mod attach;
mod attempts;
mod auto_merge;
mod auto_snapshot;
mod cleanup;
mod compare;
mod complete;
mod config;
mod conflicts;
mod control;
mod converse;
mod demo;
mod deps;
mod diff;
mod discard;
mod dispatch;
mod doctor;
mod edit;
mod events;
mod everywhere;
mod follow;
mod gc;
mod grid;
mod groups;
mod hook;
mod hooks;
mod identity;
mod landing;
mod list;
mod logs;
mod looking;
mod man;
mod matrix;
mod mcp;
mod merge;
mod merge_batch;
mod mistake;
mod moved;
mod op;
mod overlaps;
mod oversee;
mod pane;
mod pick;
mod plain_log;
mod plan;
mod plan_source;
mod preview;
mod queue;
mod redispatch;
mod render;
mod report;
mod report_batch;
mod report_page;
mod resolve;
mod run;
mod send;
mod setup;
mod show;
mod show_prompt;
mod side_by_side;
mod snap;
mod spawn;
mod status;
mod stop;
mod supervise;
mod swarm;
mod sync;
mod table;
mod task;
mod task_folder;
mod terms;
mod ui;
mod uncommitted;
mod undo;
mod wait;
mod wishes;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args as _, CommandFactory, FromArgMatches};

pub(crate) use args::{Cli, Command, Common};
pub(crate) use mistake::Mistake;
pub(crate) use report::Failure;
use ui::Ui;

use crate::explain::Exit;
use crate::lane::Project;

/// What a command returns: the exit code when nothing went wrong.
pub(crate) type Done = Result<Exit, Failure>;

/// Runs the program and returns its exit code.
pub(crate) fn main() -> ExitCode {
    if let Some(code) = hook::answer_git() {
        return code;
    }
    ui::set_up_colours();
    complete::answer_shell();
    let cli = match parse() {
        Ok(cli) => cli,
        Err(e) => {
            // Help and version are answers; the rest are mistakes. Both know where they belong.
            let code = if e.use_stderr() { Exit::Usage } else { Exit::Done };
            mistake::print_usage(&e);
            return ExitCode::from(code.code());
        }
    };
    crate::event::set_program(resolve::this_program().ok(), cli.common.no_hooks);
    let Common { json, quiet, verbose, .. } = cli.common;
    let ui = Ui { json, quiet, verbose };
    let exit = match run(cli, ui) {
        Ok(exit) => exit,
        Err(failure) => report::show(&failure, ui.json),
    };
    ExitCode::from(exit.code())
}

/// Reads the command line. The grammar of all commands took more than a third of what `list` does in a small repository: what is
/// right is read by that of its own command, and only those see the help in shape who ask for it or are mistaken.
fn parse() -> Result<Cli, clap::Error> {
    let args: Vec<OsString> = std::env::args_os().collect();
    let read = |grammar: clap::Command| {
        grammar.try_get_matches_from(&args).and_then(|matches| Cli::from_arg_matches(&matches))
    };
    let whole = Cli::command();
    if let Some(Ok(cli)) = grammar_of_one(&whole, args.get(1)).map(read) {
        return Ok(cli);
    }
    read(whole).or_else(|e| match e.kind() {
        clap::error::ErrorKind::DisplayVersion => Err(e),
        _ => read(groups::command()),
    })
}

/// The grammar without any command but the one that the first argument names.
fn grammar_of_one(whole: &clap::Command, first: Option<&OsString>) -> Option<clap::Command> {
    let one = whole.find_subcommand(first?)?.clone();
    Some(Common::augment_args(clap::Command::default().name("git-proq").subcommand(one)))
}

fn run(cli: Cli, ui: Ui) -> Done {
    let session = Session { dir: start_dir(&cli.common)?, ui };
    match cli.command {
        Some(command) => obey(&session, command),
        None => list::overview(&session),
    }
}

fn obey(session: &Session, command: Command) -> Done {
    match command {
        Command::Spawn(args) => spawn::run(session, &args),
        Command::Run(args) => run::run(session, &args),
        Command::Send(args) => send::run(session, &args),
        Command::Attach(args) => attach::run(session, &args),
        Command::Wait(args) => wait::run(session, &args),
        Command::Edit(args) => edit::run(session, &args),
        Command::Stop(args) => stop::run(session, &args),
        Command::Discard(args) => discard::run(session, &args),
        Command::Redispatch(args) => redispatch::run(session, &args),
        Command::Cleanup(args) => cleanup::run(session, &args),
        Command::List(args) => list::run(session, &args),
        Command::Show(args) => show::run(session, &args),
        Command::Diff(args) => diff::run(session, &args),
        Command::Logs(args) => logs::run(session, &args),
        Command::Preview(args) => preview::run(session, &args),
        Command::Matrix(args) => matrix::run(session, &args),
        Command::Compare(args) => compare::run(session, &args),
        Command::Events(args) => events::run(session, &args),
        Command::Merge(args) => merge::run(session, &args),
        Command::Pick(args) => pick::run(session, &args),
        Command::Queue(_) => queue::run(session),
        Command::Resolve(args) => resolve::run(session, &args),
        Command::Plan(args) => plan::run(session, &args),
        Command::Deps(args) => deps::run(session, &args),
        Command::Swarm(args) => swarm::run(session, &args),
        Command::Sync(args) => sync::run(session, &args),
        Command::Status(args) => status::run(session, &args),
        Command::Report(args) => report_batch::run(session, &args),
        Command::Pause(args) => control::pause(session, &args),
        Command::Resume(args) => control::resume(session, &args),
        Command::Abort(args) => control::abort(session, &args),
        Command::Scheduler(args) => swarm::schedule(session, &args),
        Command::Undo(args) => undo::run(session, &args),
        Command::Op(args) => op::run(session, &args),
        Command::Snap(args) => snap::run(session, &args),
        Command::Gc(args) => gc::run(session, &args),
        Command::Doctor(args) => doctor::run(session, &args),
        Command::Agents(args) => agents::run(session, &args),
        Command::Approve(args) => approve::run(session, &args),
        Command::Config(args) => config::run(session, &args),
        Command::Hooks(args) => hooks::run(session, &args),
        Command::Oversee(args) => oversee::run(session, &args),
        Command::Mcp(args) => mcp::run(session, &args),
        Command::Task(args) => task::run(session, &args),
        Command::Setup(args) => setup::run(session, &args),
        Command::Completions(args) => complete::run(session, &args),
        Command::Man(args) => man::run(session, &args),
        Command::Demo(args) => demo::run(session, &args),
        Command::Acp(args) => acp::run(session, &args),
        Command::AgentEvent(args) => agent_event::run(session, &args),
        Command::Moved(args) => moved::run(session, &args),
        Command::Snapshots(args) => auto_snapshot::run(session, &args),
        Command::Dispatch(args) => dispatch::run(session, &args),
        Command::Overlaps(args) => overlaps::run(session, &args),
        Command::Pane(args) => pane::run(session, &args),
        Command::Supervise(args) => supervise::run(session, args),
    }
}

/// Where the command acts and how it talks.
pub(crate) struct Session {
    /// The folder it was started in, or that `-C` names.
    pub(crate) dir: PathBuf,
    /// How it talks.
    pub(crate) ui: Ui,
}

impl Session {
    /// The repository, for looking. What a dead process left is put right first, if that can be done.
    pub(crate) fn project(&self) -> Result<Project, Failure> {
        let project = Project::open(&self.dir, self.ui.listener())?;
        if let Err(e) = crate::lane::recover(&project) {
            self.ui.warn(e.to_string());
        }
        Ok(project)
    }

    /// The repository, for changing: Ctrl-C stops only where that is safe, and nothing begins before what a dead process
    /// left is put right.
    pub(crate) fn project_to_change(&self) -> Result<Project, Failure> {
        crate::interrupt::arm();
        let project = Project::open(&self.dir, self.ui.listener())?;
        crate::lane::recover(&project)?;
        Ok(project)
    }
}

fn start_dir(common: &Common) -> Result<PathBuf, Failure> {
    let dir = match &common.dir {
        Some(dir) => std::path::absolute(dir),
        None => std::env::current_dir(),
    };
    let dir = dir.map_err(|_| Mistake::NoDir)?;
    if !dir.is_dir() {
        return Err(Mistake::NotADir { dir }.into());
    }
    if common.dir.is_some() {
        // `GIT_DIR` and git's own start from the process's folder, so that has to agree.
        std::env::set_current_dir(&dir).map_err(|_| Mistake::NoDir)?;
    }
    Ok(dir)
}
