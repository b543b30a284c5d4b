//! The command line: its grammar, one module per command, and the path from arguments to the exit code.

mod acp;
mod after_commit;
mod agent_event;
mod agents;
mod answer_loop;
mod approve;
mod args;
mod attach;
mod attempts;
mod auto_merge;
mod auto_snapshot;
mod caller;
mod cleanup;
mod compare;
mod comparison_table;
mod complete;
mod config;
mod conflict_grid;
mod control;
mod demo;
mod deps;
mod diff;
mod discard;
mod dispatch;
mod doctor;
mod edit;
mod events;
mod failure;
mod follow_run;
mod gc;
mod git_hook;
mod help_page;
mod hooks;
mod landing_args;
mod lane_args;
mod lane_conflicts;
mod list;
mod list_everywhere;
mod log_renderer;
mod log_sanitizer;
mod logs;
mod man;
mod matrix;
mod mcp;
mod merge;
mod merge_batch;
mod op;
mod overlaps;
mod oversee;
mod pane_process;
mod pick;
mod plan;
mod plan_source;
mod preview;
mod queue;
mod read_only_run;
mod redispatch;
mod report_batch;
mod report_page;
mod resolve;
mod run;
mod run_args;
mod send;
mod setup;
mod show;
mod show_prompt;
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
mod ui;
mod uncommitted;
mod undo;
mod usage;
mod usage_error;
mod wait;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args as _, CommandFactory, FromArgMatches};

pub(crate) use args::{Cli, Command, Common};
pub(crate) use failure::Failure;
use ui::Ui;
pub(crate) use usage_error::UsageError;

use crate::explain::Exit;
use crate::lane::Project;

/// Result of a command: the exit code, or the failure to report.
pub(crate) type CommandResult = Result<Exit, Failure>;

/// Runs the program and returns its exit code.
pub(crate) fn main() -> ExitCode {
    if let Some(code) = git_hook::run_git_hook() {
        return code;
    }
    ui::set_up_colors();
    complete::serve_shell_completion();
    let cli = match parse_args() {
        Ok(cli) => cli,
        Err(e) => {
            // clap returns help and version as errors too. `use_stderr` is false for these two.
            let code = if e.use_stderr() { Exit::Usage } else { Exit::Success };
            usage_error::print_usage(&e);
            return ExitCode::from(code.code());
        }
    };
    crate::event::set_program_info(resolve::current_program_path().ok(), cli.common.no_hooks);
    let Common { json, quiet, verbose, .. } = cli.common;
    let ui = Ui { json, quiet, verbose };
    let exit = match run(cli, ui) {
        Ok(exit) => exit,
        Err(failure) => failure::print_failure(&failure, ui.json),
    };
    ExitCode::from(exit.code())
}

/// Parses the command line. Building the grammar of all commands took more than a third of the time of `list`
/// in a small repository. So valid arguments are parsed by the grammar of their own command only. The full
/// grammar with grouped help serves help requests and errors.
fn parse_args() -> Result<Cli, clap::Error> {
    let args: Vec<OsString> = std::env::args_os().collect();
    let parse_with = |grammar: clap::Command| {
        grammar.try_get_matches_from(&args).and_then(|matches| Cli::from_arg_matches(&matches))
    };
    let full_grammar = Cli::command();
    if let Some(Ok(cli)) = subcommand_grammar(&full_grammar, args.get(1)).map(parse_with) {
        return Ok(cli);
    }
    parse_with(full_grammar).or_else(|e| match e.kind() {
        clap::error::ErrorKind::DisplayVersion => Err(e),
        _ => parse_with(help_page::styled_command()),
    })
}

/// Returns the grammar with only the subcommand that the first argument names.
fn subcommand_grammar(full_grammar: &clap::Command, first_arg: Option<&OsString>) -> Option<clap::Command> {
    let subcommand = full_grammar.find_subcommand(first_arg?)?.clone();
    Some(Common::augment_args(clap::Command::default().name("git-proq").subcommand(subcommand)))
}

fn run(cli: Cli, ui: Ui) -> CommandResult {
    let session = CommandContext { dir: start_dir(&cli.common)?, ui };
    match cli.command {
        Some(command) => run_command(&session, command),
        None => list::print_overview(&session),
    }
}

fn run_command(session: &CommandContext, command: Command) -> CommandResult {
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
        Command::Scheduler(args) => swarm::run_scheduler(session, &args),
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
        Command::Moved(args) => after_commit::run(session, &args),
        Command::Snapshots(args) => auto_snapshot::run(session, &args),
        Command::Dispatch(args) => dispatch::run(session, &args),
        Command::Overlaps(args) => overlaps::run(session, &args),
        Command::Pane(args) => pane_process::run(session, &args),
        Command::Supervise(args) => supervise::run(session, args),
    }
}

/// Context of a command, unrelated to an agent's session: the start folder and the output options.
pub(crate) struct CommandContext {
    /// The folder that the command was started in, or the one given with `-C`.
    pub(crate) dir: PathBuf,
    /// Output of the command.
    pub(crate) ui: Ui,
}

impl CommandContext {
    /// Opens the repository for reading. Recovers what crashed processes left behind first; a failed recovery
    /// is only a warning.
    pub(crate) fn project(&self) -> Result<Project, Failure> {
        let project = Project::open(&self.dir, self.ui.listener())?;
        if let Err(e) = crate::lane::recover(&project) {
            self.ui.warn(e.to_string());
        }
        Ok(project)
    }

    /// Opens the repository for changes. Ctrl-C is deferred to safe points. The command fails if what crashed
    /// processes left behind cannot be recovered.
    pub(crate) fn project_for_write(&self) -> Result<Project, Failure> {
        crate::interrupt::defer_signals();
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
    let dir = dir.map_err(|_| UsageError::CurrentDirMissing)?;
    if !dir.is_dir() {
        return Err(UsageError::NotADir { dir }.into());
    }
    if common.dir.is_some() {
        // `GIT_DIR` and git itself resolve paths from the process's working directory, so it has to match
        // `-C`.
        std::env::set_current_dir(&dir).map_err(|_| UsageError::CurrentDirMissing)?;
    }
    Ok(dir)
}
