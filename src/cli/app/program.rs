//! Entry point of the program: the path from arguments to the exit code.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args as _, CommandFactory, FromArgMatches};
use clap_complete::CompleteEnv;
use proq_base::explain::Exit;
use proq_base::trace::{Span, SpanKind};

use super::args::{Cli, Command, CommonArgs};
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
use crate::cli::terminal::ui::Ui;
use crate::cli::terminal::{trace_output, ui};

/// Runs the program and returns its exit code.
pub(crate) fn main() -> ExitCode {
    if let Some(code) = internal::run_if_git_hook() {
        return code;
    }
    ui::set_up_colors();
    serve_shell_completion();
    let (cli, command_name) = match parse_args() {
        Ok(parsed) => parsed,
        Err(e) => {
            // clap returns help and version as errors too. `use_stderr` is false for these two.
            let code = if e.use_stderr() { Exit::Usage } else { Exit::Success };
            usage_error::print_clap_output(&e);
            return ExitCode::from(code.code());
        }
    };
    proq_lib::event::program_info::set_program_info(current_program_path(), cli.common.no_hooks);
    let CommonArgs { json, quiet, verbose, .. } = cli.common;
    let ui = Ui { json, quiet, verbose: verbose > 0 };
    trace_output::start_if_requested(ui, verbose);
    let span = Span::begin(SpanKind::Command, &command_name);
    let exit = match run(cli, ui) {
        Ok(exit) => exit,
        Err(failure) => failure::print_failure(&failure, ui.json),
    };
    drop(span);
    ExitCode::from(exit.code())
}

/// Parses the command line, and returns the name of the command too. Building the grammar of all commands took more than a third of the time of `list`
/// in a small repository. So valid arguments are parsed by the grammar of their own command only. The full
/// grammar with grouped help serves help requests and errors.
fn parse_args() -> Result<(Cli, String), clap::Error> {
    let args: Vec<OsString> = std::env::args_os().collect();
    let parse_with = |grammar: clap::Command| -> Result<(Cli, String), clap::Error> {
        let matches = grammar.try_get_matches_from(&args)?;
        Ok((Cli::from_arg_matches(&matches)?, matches.subcommand_name().unwrap_or("overview").to_owned()))
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
    Some(CommonArgs::augment_args(clap::Command::default().name("git-proq").subcommand(subcommand)))
}

/// Runs the command of the parsed command line; without a command, prints the overview of lanes.
fn run(cli: Cli, ui: Ui) -> CommandResult {
    let context = CommandContext { dir: start_dir(&cli.common)?, ui };
    match cli.command {
        Some(command) => run_command(&context, command),
        None => list::print_overview(&context),
    }
}

/// Runs one command, and returns its exit code.
fn run_command(context: &CommandContext, command: Command) -> CommandResult {
    match command {
        Command::Spawn(args) => spawn::run(context, &args),
        Command::Run(args) => run::run(context, &args),
        Command::Send(args) => send::run(context, &args),
        Command::Attach(args) => attach::run(context, &args),
        Command::Wait(args) => wait::run(context, &args),
        Command::Edit(args) => edit::run(context, &args),
        Command::Stop(args) => stop::run(context, &args),
        Command::Discard(args) => discard::run(context, &args),
        Command::Redispatch(args) => redispatch::run(context, &args),
        Command::Cleanup(args) => cleanup::run(context, &args),
        Command::List(args) => list::run(context, &args),
        Command::Show(args) => show::run(context, &args),
        Command::Diff(args) => diff::run(context, &args),
        Command::Logs(args) => logs::run(context, &args),
        Command::Preview(args) => preview::run(context, &args),
        Command::Matrix(args) => matrix::run(context, &args),
        Command::Compare(args) => compare::run(context, &args),
        Command::Events(args) => events::run(context, &args),
        Command::Merge(args) => merge::run(context, &args),
        Command::Pick(args) => pick::run(context, &args),
        Command::Queue(_) => queue::run(context),
        Command::Resolve(args) => resolve::run(context, &args),
        Command::Plan(args) => plan::run(context, &args),
        Command::Deps(args) => deps::run(context, &args),
        Command::Swarm(args) => swarm::run(context, &args),
        Command::Sync(args) => sync::run(context, &args),
        Command::Status(args) => status::run(context, &args),
        Command::Report(args) => report_batch::run(context, &args),
        Command::Pause(args) => control::pause(context, &args),
        Command::Resume(args) => control::resume(context, &args),
        Command::Abort(args) => control::abort(context, &args),
        Command::Scheduler(args) => internal::run_scheduler(context, &args),
        Command::Undo(args) => undo::run(context, &args),
        Command::Op(args) => op::run(context, &args),
        Command::Snap(args) => snap::run(context, &args),
        Command::Gc(args) => gc::run(context, &args),
        Command::Doctor(args) => doctor::run(context, &args),
        Command::Agents(args) => agents::run(context, &args),
        Command::Approve(args) => approve::run(context, &args),
        Command::Config(args) => config::run(context, &args),
        Command::Hooks(args) => hooks::run(context, &args),
        Command::Oversee(args) => command::run(context, &args),
        Command::Mcp(args) => crate::cli::set_up::mcp::command::run(context, &args),
        Command::Task(args) => task::run(context, &args),
        Command::Setup(args) => setup::run(context, &args, styled_command()),
        Command::Completions(args) => completions::run(context, &args),
        Command::Man(args) => man::run(context, &args, styled_command()),
        Command::Demo(args) => demo::run(context, &args),
        Command::AcpClient(args) => internal::run_acp_client(context, &args),
        Command::AgentEvent(args) => internal::run_agent_event(context, &args),
        Command::AfterCommit(args) => internal::run_after_commit(context, &args),
        Command::AutoSnapshots(args) => internal::run_auto_snapshots(context, &args),
        Command::DispatchEvents(args) => internal::run_dispatch_events(context, &args),
        Command::ReportOverlaps(args) => internal::run_report_overlaps(context, &args),
        Command::PaneProcess(args) => internal::run_pane_process(context, &args),
        Command::Supervise(args) => internal::run_supervise(context, args),
    }
}

fn start_dir(common: &CommonArgs) -> Result<PathBuf, Failure> {
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
