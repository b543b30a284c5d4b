//! Entry point of the program: the path from arguments to the exit code.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args as _, CommandFactory, FromArgMatches};
use clap_complete::CompleteEnv;
use proq_base::explain::Exit;

use super::args::{Cli, Command, Common};
use super::help_page::styled_command;
use super::internal;
use crate::cli::inspect::{compare, diff, events, list, logs, matrix, preview, show};
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure::Failure;
use crate::cli::invocation::program_path::current_program_path;
use crate::cli::invocation::usage_error::UsageError;
use crate::cli::invocation::{failure, usage_error};
use crate::cli::land::{merge, pick, queue, resolve};
use crate::cli::lanes::{attach, cleanup, discard, edit, redispatch, run, send, spawn, stop, wait};
use crate::cli::plans::{control, deps, plan, report_batch, status, swarm};
use crate::cli::safety::{doctor, gc, op, snap, undo};
use crate::cli::set_up::completion_script::COMPLETE_VARIABLE;
use crate::cli::set_up::oversee::command;
use crate::cli::set_up::{agents, approve, completions, config, demo, hooks, man, setup, sync, task};
use crate::cli::terminal::ui;
use crate::cli::terminal::ui::Ui;

/// Runs the program and returns its exit code.
pub(crate) fn main() -> ExitCode {
    if let Some(code) = internal::run_git_hook() {
        return code;
    }
    ui::set_up_colors();
    serve_shell_completion();
    let cli = match parse_args() {
        Ok(cli) => cli,
        Err(e) => {
            // clap returns help and version as errors too. `use_stderr` is false for these two.
            let code = if e.use_stderr() { Exit::Usage } else { Exit::Success };
            usage_error::print_usage(&e);
            return ExitCode::from(code.code());
        }
    };
    proq_lib::event::program_info::set_program_info(current_program_path(), cli.common.no_hooks);
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
        _ => parse_with(styled_command()),
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
        Command::Scheduler(args) => internal::run_scheduler(session, &args),
        Command::Undo(args) => undo::run(session, &args),
        Command::Op(args) => op::run(session, &args),
        Command::Snap(args) => snap::run(session, &args),
        Command::Gc(args) => gc::run(session, &args),
        Command::Doctor(args) => doctor::run(session, &args),
        Command::Agents(args) => agents::run(session, &args),
        Command::Approve(args) => approve::run(session, &args),
        Command::Config(args) => config::run(session, &args),
        Command::Hooks(args) => hooks::run(session, &args),
        Command::Oversee(args) => command::run(session, &args),
        Command::Mcp(args) => crate::cli::set_up::mcp::command::run(session, &args),
        Command::Task(args) => task::run(session, &args),
        Command::Setup(args) => setup::run(session, &args, styled_command()),
        Command::Completions(args) => completions::run(session, &args),
        Command::Man(args) => man::run(session, &args, styled_command()),
        Command::Demo(args) => demo::run(session, &args),
        Command::Acp(args) => internal::run_acp(session, &args),
        Command::AgentEvent(args) => internal::run_agent_event(session, &args),
        Command::Moved(args) => internal::run_moved(session, &args),
        Command::Snapshots(args) => internal::run_snapshots(session, &args),
        Command::Dispatch(args) => internal::run_dispatch(session, &args),
        Command::Overlaps(args) => internal::run_overlaps(session, &args),
        Command::Pane(args) => internal::run_pane(session, &args),
        Command::Supervise(args) => internal::run_supervise(session, args),
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

/// Prints completion candidates and exits, if a shell's completion script started this process.
fn serve_shell_completion() {
    CompleteEnv::with_factory(styled_command).var(COMPLETE_VARIABLE).bin("git-proq").complete();
}
