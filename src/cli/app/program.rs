//! Entry point of the program: the path from arguments to the exit code.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args as _, CommandFactory, FromArgMatches};
use proq_base::trace::{Span, SpanKind};

use super::args::{Cli, CommonArgs};
use super::help_page::styled_command;
use super::{completion, internal};
use crate::cli::arguments::parse_error::describe_parse_error;
use crate::cli::inspect::list;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure;
use crate::cli::invocation::failure::Failure;
use crate::cli::invocation::program_path::current_program_path;
use crate::cli::invocation::usage_error::UsageError;
use crate::cli::terminal::ui::Ui;
use crate::cli::terminal::{page, trace_output, ui};

/// Runs the program and returns its exit code.
pub(crate) fn main() -> ExitCode {
    if let Some(code) = internal::run_if_git_hook() {
        return code;
    }
    ui::set_up_colors();
    completion::serve_shell_completion();
    let (cli, command_name) = match parse_args() {
        Ok(parsed) => parsed,
        // clap returns help and version as errors too. `use_stderr` is false for these two.
        Err(e) if !e.use_stderr() => {
            ui::exit_on_failed_output(e.print());
            return ExitCode::SUCCESS;
        }
        Err(e) => {
            let args: Vec<OsString> = std::env::args_os().collect();
            let json = args.iter().take_while(|arg| *arg != "--").any(|arg| arg == "--json");
            let error = describe_parse_error(&e, &styled_command(), &args);
            return ExitCode::from(failure::print_failure(&error.into(), json).code());
        }
    };
    proq_lib::event::program_info::set_program_info(current_program_path(), cli.common.no_hooks);
    let CommonArgs { json, quiet, verbose, color, no_pager, .. } = cli.common;
    if let Some(choice) = color {
        ui::apply_color_option(choice);
    }
    if no_pager || json {
        page::disable();
    }
    let ui = Ui { json, quiet, verbose: verbose > 0 };
    trace_output::start_if_requested(ui, verbose);
    let span = Span::begin(SpanKind::Command, &command_name);
    let exit = match run(cli, ui) {
        Ok(exit) => exit,
        Err(failure) => failure::print_failure(&failure, ui.json),
    };
    drop(span);
    ui::end_page(&std::env::current_dir().unwrap_or_default());
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
    Some(CommonArgs::augment_args(
        clap::Command::default().name("git-proq").disable_help_subcommand(true).subcommand(subcommand),
    ))
}

/// Runs the command of the parsed command line; without a command, prints the overview of lanes.
fn run(cli: Cli, ui: Ui) -> CommandResult {
    let context = CommandContext { dir: start_dir(&cli.common)?, ui };
    match cli.command {
        Some(command) => command.run(&context, styled_command),
        None => list::print_overview(&context),
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
