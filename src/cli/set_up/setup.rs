//! `git proq setup`: installs the man pages and shell completions where man and the shells find them.

use std::path::{Path, PathBuf};

use clap::Args;
use proq_base::explain::Exit;
use proq_base::{hint, regular_file};
use serde::Serialize;

use super::completion_script::completion_script;
use super::man_pages::all_man_pages;
use crate::cli::arguments::user_files::write_file_and_folders;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::usage_error::UsageError;
use crate::cli::terminal::ui;

/// Install man pages and shell completions
///
/// Man pages go where `man` finds them, so that `git proq --help` works, and completions where bash, fish
/// and zsh find theirs. Nothing outside your home folder is written.
///
/// Examples:
///     git proq setup --dry-run
///     git proq setup
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Setup {
    /// Show what would be done, without doing it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Serialize)]
struct SetupOutput {
    files: Vec<PathBuf>,
    dry_run: bool,
}

pub(crate) fn run(context: &CommandContext, args: &Setup, grammar: clap::Command) -> CommandResult {
    let home = std::env::home_dir().ok_or(UsageError::MissingArgument {
        problem: "cannot install: no home folder",
        example: "HOME=/home/me git proq setup",
    })?;
    let paths = InstallPaths::from_home(&home);
    let pages = all_man_pages(grammar);
    let pages = pages
        .into_iter()
        .map(|page| (paths.man_dir.join(page.folder_name()).join(page.file_name()), page.text));
    let scripts = paths.completion_files().map(|(shell, path)| (path, completion_script(shell)));
    let files: Vec<(PathBuf, String)> = pages.chain(scripts).collect();
    let is_current =
        |(path, text): &(PathBuf, String)| std::fs::read(path).is_ok_and(|old| old == text.as_bytes());
    let outdated: Vec<_> = files.iter().filter(|file| !is_current(file)).collect();
    for (path, text) in outdated.iter().filter(|_| !args.dry_run) {
        write_file_and_folders(path, text.as_bytes())?;
    }
    if context.ui.json {
        let files = files.into_iter().map(|(path, _)| path).collect();
        context.ui.print_json(SetupOutput { files, dry_run: args.dry_run });
        return Ok(Exit::Success);
    }
    print_result(context, args, &home, &paths, &outdated);
    Ok(Exit::Success)
}

/// Prints what was installed, and what the user's shells and `man` need to find it.
fn print_result(
    context: &CommandContext,
    args: &Setup,
    home: &Path,
    paths: &InstallPaths,
    outdated: &[&(PathBuf, String)],
) {
    let ui = context.ui;
    let page_count = outdated.iter().filter(|(path, _)| path.starts_with(&paths.man_dir)).count();
    let shells = paths.completion_files().into_iter();
    let shells: Vec<&str> = shells
        .filter(|(_, file)| outdated.iter().any(|(path, _)| path == file))
        .map(|(shell, _)| shell)
        .collect();
    let verb = if args.dry_run { "Would install" } else { "Installed" };
    if page_count > 0 {
        let pages = ui::pluralize(page_count, "man page");
        ui.print_line(format!("{verb} {pages} in {}", paths.man_dir.display()));
    }
    if !shells.is_empty() {
        ui.print_line(format!("{verb} completions for {}", shells.join(", ")));
    }
    if outdated.is_empty() {
        ui.print_line("Already up to date.");
    }
    if ui.verbose {
        ui.print_each("  ", outdated.iter().map(|(path, _)| path.display()));
    }
    if args.dry_run {
        return;
    }
    if !is_on_man_path(&paths.man_dir) && !is_in_start_file(home, &paths.man_dir) {
        ui.hint(hint!("let man find the pages: {}", man_path_command(&paths.man_dir)));
    }
    if (!outdated.is_empty() || user_shell() == "zsh") && !is_in_start_file(home, &paths.zsh_functions) {
        ui.hint(hint!(
            "zsh finds its completions with this line before compinit in ~/.zshrc: fpath=({} $fpath)",
            paths.zsh_functions.display()
        ));
    }
}

/// Folders that one user's man pages and completions are installed to.
struct InstallPaths {
    /// Folder of the man pages, with a subfolder for each section.
    man_dir: PathBuf,
    /// The user's data folder: `$XDG_DATA_HOME` or `~/.local/share`.
    data_dir: PathBuf,
    /// The user's configuration folder: `$XDG_CONFIG_HOME` or `~/.config`.
    config_dir: PathBuf,
    zsh_functions: PathBuf,
}

impl InstallPaths {
    fn from_home(home: &Path) -> InstallPaths {
        let xdg_dir = |name: &str, fallback: &str| {
            let from_env = std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
            from_env.unwrap_or_else(|| home.join(fallback))
        };
        let data_dir = xdg_dir("XDG_DATA_HOME", ".local/share");
        InstallPaths {
            man_dir: choose_man_dir(std::env::current_exe().ok().as_deref(), home, &data_dir),
            zsh_functions: data_dir.join("zsh/site-functions"),
            config_dir: xdg_dir("XDG_CONFIG_HOME", ".config"),
            data_dir,
        }
    }

    /// Returns the shells whose completions are installed, each with the path of its file.
    fn completion_files(&self) -> [(&'static str, PathBuf); 3] {
        [
            ("bash", self.data_dir.join("bash-completion/completions/git-proq")),
            // Fish would read a file in `completions/` only when you complete `git-proq`, with the dash.
            ("fish", self.config_dir.join("fish/conf.d/git-proq.fish")),
            ("zsh", self.zsh_functions.join("_git-proq")),
        ]
    }
}

/// Returns the folder for the man pages. man searches next to each `bin` folder of `PATH`, so the pages go next
/// to the program if it is in a `bin` folder of the user's home, or else next to the first such folder of `PATH`;
/// else they go to the user's data folder.
fn choose_man_dir(program_path: Option<&Path>, home: &Path, data_dir: &Path) -> PathBuf {
    let is_in_home = |bin: &Path| bin.ends_with("bin") && bin.starts_with(home) && bin.is_absolute();
    let bin_dir = program_path.and_then(Path::parent).filter(|bin| is_in_home(bin)).map(Path::to_owned);
    let bin_dir = bin_dir.or_else(|| path_folders().into_iter().find(|bin| is_in_home(bin)));
    match bin_dir.as_deref().and_then(Path::parent) {
        Some(root) => root.join("share/man"),
        None => data_dir.join("man"),
    }
}

/// Returns whether man searches a folder: it reads `share/man` next to each `bin` folder of `PATH`, and the
/// folders of `MANPATH`.
fn is_on_man_path(man_dir: &Path) -> bool {
    let man_path = std::env::var_os("MANPATH").unwrap_or_default();
    path_folders().iter().any(|bin| bin.parent().is_some_and(|root| *man_dir == root.join("share/man")))
        || std::env::split_paths(&man_path).any(|dir| dir == man_dir)
}

/// Returns whether a start file of the user's shells names a folder: what a shell does with it takes effect in the
/// next shell, and the variables of this process do not show it.
fn is_in_start_file(home: &Path, dir: &Path) -> bool {
    let zsh_dir = std::env::var_os("ZDOTDIR").map_or_else(|| home.to_owned(), PathBuf::from);
    let files =
        [zsh_dir.join(".zshrc"), zsh_dir.join(".zshenv"), home.join(".bashrc"), home.join(".profile")];
    let mut names = vec![dir.display().to_string()];
    if let Ok(below) = dir.strip_prefix(home) {
        names.extend(["~", "$HOME", "${HOME}"].map(|home| format!("{home}/{}", below.display())));
    }
    files
        .iter()
        .filter_map(|file| regular_file::read_user_file(file, regular_file::MAX_SETTINGS_BYTES).ok())
        .any(|text| {
            let text = String::from_utf8_lossy(&text);
            let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
            lines.into_iter().any(|line| names.iter().any(|name| line.contains(name)))
        })
}

/// Returns the folders of `PATH`.
fn path_folders() -> Vec<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect()
}

/// Returns the command that lets `man` search a folder from now on, for the user's shell.
fn man_path_command(man_dir: &Path) -> String {
    let dir = man_dir.display();
    match user_shell().as_str() {
        "fish" => format!("set -Ux MANPATH {dir} ''"),
        "zsh" => format!("echo 'export MANPATH=\"{dir}:\"' >> ~/.zshrc"),
        _ => format!("echo 'export MANPATH=\"{dir}:\"' >> ~/.bashrc"),
    }
}

/// Returns the name of the user's shell, such as `zsh`; empty if that is not known.
fn user_shell() -> String {
    let shell = std::env::var_os("SHELL").map(PathBuf::from).unwrap_or_default();
    shell.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn puts_pages_next_to_programs_in_home_only() {
        let man_dir_for = |exe: &str| {
            choose_man_dir(Some(Path::new(exe)), Path::new("/home/me"), Path::new("/home/me/data"))
        };
        assert_eq!(man_dir_for("/home/me/.cargo/bin/git-proq"), Path::new("/home/me/.cargo/share/man"));
        assert_eq!(man_dir_for("/usr/local/bin/git-proq"), Path::new("/home/me/data/man"));
        assert_eq!(man_dir_for("/home/me/src/target/debug/git-proq"), Path::new("/home/me/data/man"));
    }
}
