//! Long texts of the program itself, on a terminal by the user's pager.

use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::path::Path;

use proq_base::process::exec_target::ExecTarget;
use proq_base::process::find_executable::find_executable;

use super::ui::Ui;

/// Options of `less` as git sets them: quit if the text fits, keep colors, leave the text on the screen.
const LESS_OPTIONS: &str = "FRX";

/// Prints a text; if it is longer than the terminal, by the pager of `GIT_PAGER` or `PAGER`, else `less`. A
/// pager that cannot be started is ignored.
pub(crate) fn print_paged(ui: Ui, text: &str) {
    let terminal_height = usize::from(console::Term::stdout().size().0);
    let is_paged = std::io::stdout().is_terminal() && text.lines().count() >= terminal_height;
    let pager = ["GIT_PAGER", "PAGER"].iter().find_map(std::env::var_os).unwrap_or_else(|| "less".into());
    let is_cat = pager.is_empty() || pager == "cat";
    if !is_paged || is_cat || !run_with_input("sh", &["-c".into(), pager], text) {
        text.lines().for_each(|line| ui.print_line(line));
    }
}

/// Runs a program on this terminal with `input`, and returns whether it succeeded.
pub(crate) fn run_with_input(program: &str, args: &[OsString], input: &str) -> bool {
    let Ok(program) = find_executable(program, Path::new("/")) else { return false };
    let less = std::env::var_os("LESS").unwrap_or_else(|| LESS_OPTIONS.into());
    let target = ExecTarget::new(&program, args, ("LESS", Some(OsStr::new(&less))));
    target.run_with_input(input.as_bytes()).is_ok_and(|code| code == 0)
}
