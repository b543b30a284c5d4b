//! The `git proq man` command.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use proq_base::explain::Exit;
use proq_base::process::exec_target::ExecTarget;
use proq_base::process::find_executable::find_executable;

use super::man_pages::all_man_pages;
use crate::cli::arguments::user_files::write_file_and_folders;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::usage_error::UsageError;

/// Show the man page of a command
///
/// On a terminal, shows the page with `man`; otherwise prints its source. `git proq man tutorial` shows the
/// tutorial; once the pages are installed, `man 5 git-proq-config` shows all settings.
///
/// Examples:
///     git proq man spawn
///     git proq man --dir ~/.local/share/man/man1
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
#[command(override_usage = "git proq man [OPTIONS] [COMMAND]\n       git proq man [OPTIONS] --dir DIR")]
pub(crate) struct Man {
    /// Command, or tutorial [default: the page of git-proq]
    #[arg(value_name = "COMMAND", conflicts_with = "pages")]
    pub(crate) command: Option<String>,
    /// Write all pages to DIR
    #[arg(id = "pages", long = "dir", value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,
}

pub(crate) fn run(context: &CommandContext, args: &Man, grammar: Command) -> CommandResult {
    if let Some(dir) = &args.dir {
        for page in all_man_pages(grammar) {
            let path = dir.join(page.file_name());
            write_file_and_folders(&path, page.text.as_bytes())?;
            context.ui.status(path.display().to_string());
        }
        return Ok(Exit::Success);
    }
    let page = all_man_pages(grammar).into_iter().find(|page| page.is_about(args.command.as_deref()));
    let Some(page) = page else {
        let name = args.command.clone().unwrap_or_default();
        return Err(UsageError::UnknownCommand { name, similar: None }.into());
    };
    let is_shown = std::io::stdout().is_terminal() && show_with_man(&page.text);
    if !is_shown {
        context.ui.print_text(&page.text);
    }
    Ok(Exit::Success)
}

/// Shows a man page with `man`, and returns whether it succeeded.
fn show_with_man(page: &str) -> bool {
    let Ok(man) = find_executable("man", Path::new("/")) else { return false };
    let less = std::env::var_os("LESS").unwrap_or_else(|| "FRX".into());
    let target = ExecTarget::new(&man, &["-l".into(), "-".into()], ("LESS", Some(less.as_os_str())));
    target.run_with_input(page.as_bytes()).is_ok_and(|code| code == 0)
}
