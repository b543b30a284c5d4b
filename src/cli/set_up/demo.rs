//! The `git proq demo` command: a tour in a temporary repository, with the same commands that a user types.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use console::style;
use proq_base::config::keys::KEYS;
use proq_base::explain::Exit;
use proq_base::interrupt;
use proq_base::process::command_builder::CommandBuilder;
use proq_base::process::find_executable::find_executable;
use proq_lib::lane;
use proq_lib::ops::demo;
use serde::Serialize;

use crate::cli::arguments::user_files::write_file_and_folders;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure::Failure;
use crate::cli::invocation::program_path::require_program_path;
use crate::cli::invocation::usage_error::UsageError;
use crate::cli::terminal::ui;

/// Take the tour: three lanes in a temporary repository
///
/// Needs no account and no network, and leaves nothing behind.
///
/// Example:
///     git proq demo
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Demo {
    /// Keep the repository and print its path
    #[arg(long)]
    pub(crate) keep: bool,
}

/// Script of the demo agent: a program on `PATH` that gets the prompt as its last argument.
const AGENT_SCRIPT: &str = "#!/bin/sh
case $1 in
'Add payments') echo 'fn pay() {}' > payments.rs ;;
'Add search') echo 'title = \"Shop with search\"' > shop.toml ;;
'Rename the shop') echo 'title = \"Corner shop\"' > shop.toml ;;
esac
";

/// Environment of the demo's commands. The demo needs no git identity and ignores the user's settings.
const DEMO_ENV: [(&str, &str); 7] = [
    ("GIT_AUTHOR_NAME", "Demo"),
    ("GIT_AUTHOR_EMAIL", "demo@localhost"),
    ("GIT_COMMITTER_NAME", "Demo"),
    ("GIT_COMMITTER_EMAIL", "demo@localhost"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("XDG_CONFIG_HOME", "/dev/null"),
];

/// Number of retries of removing the demo's folder, and the pause before each retry. The last process of an
/// agent may still be exiting.
const REMOVE_RETRIES: (u32, Duration) = (100, Duration::from_millis(20));

/// Name and content of an untracked file that the tour writes before it previews a lane. [`EDITED_FILE`] is a
/// tracked file that the tour edits at the same point. Both must survive the tour.
const UNTRACKED_FILE: (&str, &str) = ("notes.txt", "my own notes\n");
/// Name and new content of a tracked file that the tour edits before it previews a lane.
const EDITED_FILE: (&str, &str) = ("main.rs", "fn main() { /* half an idea */ }\n");

/// A command of the tour and its exit code.
#[derive(Serialize)]
struct TourStep {
    command: String,
    exit: i32,
}

#[derive(Serialize)]
struct DemoOutput {
    steps: Vec<TourStep>,
    /// Path of the demo's repository, if it was kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "kept")]
    kept_repo_path: Option<PathBuf>,
}

pub(crate) fn run(context: &CommandContext, args: &Demo) -> CommandResult {
    // Ctrl-C ends the tour between two steps, so that the temporary repository is removed too.
    interrupt::defer_signals();
    let mut demo = DemoRepo::new(context)?;
    let result = demo.create_repo().and_then(|()| demo.run_tour());
    if args.keep {
        demo.skips_removal_on_drop = true;
    } else {
        demo.remove()?;
    }
    result?;
    let repo_path = args.keep.then(|| demo.repo_dir());
    if context.ui.json {
        context.ui.print_json(DemoOutput { steps: demo.steps.take(), kept_repo_path: repo_path });
        return Ok(Exit::Success);
    }
    context.ui.print_line("");
    context.ui.print_line(bold(match repo_path {
        Some(_) => "That was the tour. In a repository of yours:",
        None => "That was the tour; its repository was removed. In one of yours:",
    }));
    context.ui.print_line("  git proq agents                              which agents are installed");
    context.ui.print_line("  git proq spawn claude \"implement payments\"   start one in a lane of its own");
    context.ui.print_line("  git proq                                     the lanes, and what to do next");
    if let Some(repo) = repo_path {
        context.ui.print_line("");
        context.ui.print_line(format!("kept: {}", repo.display()));
    }
    Ok(Exit::Success)
}

/// The temporary folder with the demo's repository and agent. The folder is removed on drop.
struct DemoRepo<'a> {
    context: &'a CommandContext,
    /// Temporary folder that holds the repository and the agent's program.
    dir: PathBuf,
    program_path: PathBuf,
    /// `PATH` of the demo's commands, which begins with the folder of the demo agent.
    search_path: OsString,
    steps: RefCell<Vec<TourStep>>,
    /// Whether dropping leaves the folder: it is to be kept, or it was removed already.
    skips_removal_on_drop: bool,
}

impl Drop for DemoRepo<'_> {
    fn drop(&mut self) {
        if !self.skips_removal_on_drop {
            drop(self.remove());
        }
    }
}

impl<'a> DemoRepo<'a> {
    fn new(context: &'a CommandContext) -> Result<DemoRepo<'a>, Failure> {
        let program_path = require_program_path()?;
        let dir = create_private_folder(&std::env::temp_dir())?;
        let old_path = std::env::var_os("PATH").unwrap_or_default();
        let folders = [dir.join("bin")].into_iter().chain(std::env::split_paths(&old_path));
        let search_path = std::env::join_paths(folders).unwrap_or(old_path);
        Ok(DemoRepo {
            context,
            dir,
            program_path,
            search_path,
            steps: RefCell::default(),
            skips_removal_on_drop: false,
        })
    }

    fn repo_dir(&self) -> PathBuf {
        self.dir.join("shop")
    }

    /// Creates the agent and a repository with one commit.
    fn create_repo(&self) -> Result<(), Failure> {
        use std::os::unix::fs::PermissionsExt;
        let agent = self.dir.join("bin/demo-agent");
        write_file_and_folders(&agent, AGENT_SCRIPT.as_bytes())?;
        std::fs::set_permissions(&agent, std::fs::Permissions::from_mode(0o700))
            .map_err(lane::Error::io("write", &agent))?;
        self.write_file(("shop.toml", "title = \"Shop\"\n"))?;
        self.write_file(("main.rs", "fn main() {}\n"))?;
        demo::create_repository(&self.repo_dir(), "Open the shop", &DEMO_ENV)
    }

    /// Runs the commands of the tour, and checks that the user's files survive.
    fn run_tour(&self) -> Result<(), Failure> {
        self.print_heading("Three agents, each in a lane of its own. They work at the same time.");
        self.run_step("git proq spawn -q demo-agent \"Add payments\"", 0)?;
        self.run_step("git proq spawn -q demo-agent \"Add search\"", 0)?;
        self.run_step("git proq spawn -q demo-agent \"Rename the shop\"", 0)?;
        self.run_step("git proq wait add-payments add-search rename-shop", 0)?;
        self.run_step("git proq list", 0)?;

        self.print_heading("Look at one in your own checkout, in the middle of your own work.");
        self.write_file(UNTRACKED_FILE)?;
        self.write_file(EDITED_FILE)?;
        self.run_step("git status --short", 0)?;
        self.run_step("git proq preview add-payments", 0)?;
        self.run_step("git ls-files", 0)?;
        self.run_step("git proq preview --back", 0)?;
        self.run_step("git status --short", 0)?;
        self.require_content(UNTRACKED_FILE)?;
        self.require_content(EDITED_FILE)?;

        self.print_heading("Land what fits together. What conflicts is put aside and stays as it is.");
        self.run_step("git proq merge --all", 3)?;
        self.run_step("git proq list", 0)?;
        self.run_step("git log --oneline --graph", 0)?;
        self.run_step("git status --short", 0)?;
        self.require_content(("payments.rs", "fn pay() {}\n"))?;
        self.require_content(UNTRACKED_FILE)?;
        self.require_content(EDITED_FILE)
    }

    fn print_heading(&self, text: &str) {
        if !self.steps.borrow().is_empty() {
            self.print_line("");
        }
        self.print_line(&bold(text));
    }

    /// Prints a line. A closed pipe ends other commands at once; the demo continues, because it must remove
    /// its folder first.
    fn print_line(&self, line: &str) {
        if !self.context.ui.json {
            ui::try_print_line(line);
        }
    }

    /// Prints a command line of git or git-proq, runs it, prints its output, and fails unless the exit code is
    /// `expected_exit`.
    fn run_step(&self, command_line: &str, expected_exit: i32) -> Result<(), Failure> {
        interrupt::require_no_signal()?;
        let (program, args) = match command_line.strip_prefix("git proq ") {
            Some(args) => (self.program_path.clone(), args),
            None => (find_executable("git", &self.dir)?, command_line.trim_start_matches("git ")),
        };
        self.print_line(&format!("{} {command_line}", style("$").cyan()));
        let (status, out) = self.prepare_command(&program, &split_words(args)).run_with_output()?;
        for line in String::from_utf8_lossy(&out).lines() {
            self.print_line(&format!("  {line}"));
        }
        interrupt::require_no_signal()?;
        let step = TourStep { command: command_line.to_owned(), exit: status.code().unwrap_or(-1) };
        self.steps.borrow_mut().push(step);
        if status.code() == Some(expected_exit) {
            return Ok(());
        }
        let failure = format!("`{command_line}` ended with {status}, not with {expected_exit}");
        Err(UsageError::DemoFailed { failure }.into())
    }

    fn prepare_command(&self, program: &Path, args: &[&str]) -> CommandBuilder {
        // The user's list of repositories must not contain temporary ones.
        let start = CommandBuilder::new(program, &self.repo_dir())
            .args(args.iter().copied())
            .env("PATH", &self.search_path)
            .env("XDG_STATE_HOME", self.dir.join("state"));
        let mut start = DEMO_ENV.into_iter().fold(start, |start, (key, value)| start.env(key, value));
        for key in KEYS.iter() {
            // No process may outlive the tour, and the demo repository holds no changes to lose.
            let value = if key.name == "snapshot.interval" { "0" } else { key.default };
            start = start.env(key.env_var_name(), value);
        }
        if console::colors_enabled() { start.env("CLICOLOR_FORCE", "1") } else { start }
    }

    fn write_file(&self, (name, text): (&str, &str)) -> Result<(), Failure> {
        write_file_and_folders(&self.repo_dir().join(name), text.as_bytes())
    }

    /// Fails unless a file of the repository has exactly this text.
    fn require_content(&self, (name, text): (&str, &str)) -> Result<(), Failure> {
        match std::fs::read_to_string(self.repo_dir().join(name)) {
            Ok(content) if content == text => Ok(()),
            _ => Err(UsageError::DemoFailed { failure: format!("{name} is not what it should be") }.into()),
        }
    }

    /// Stops running agents and removes the folder. A second call does nothing.
    fn remove(&mut self) -> Result<(), Failure> {
        self.skips_removal_on_drop = true;
        if demo::has_lane_state(&self.repo_dir()) {
            drop(self.prepare_command(&self.program_path, &["stop", "--all"]).run_with_output());
        }
        let (mut retries_left, pause) = REMOVE_RETRIES;
        loop {
            match std::fs::remove_dir_all(&self.dir) {
                Ok(()) => return Ok(()),
                Err(e) if e.kind() == ErrorKind::NotFound && !self.dir.exists() => return Ok(()),
                Err(source) if retries_left == 0 => {
                    return Err(lane::Error::io("write", &self.dir)(source).into());
                }
                Err(_) => retries_left -= 1,
            }
            std::thread::sleep(pause);
        }
    }
}

/// Creates a new folder that only the user can read, and returns its canonical path.
fn create_private_folder(parent: &Path) -> Result<PathBuf, Failure> {
    use std::os::unix::fs::DirBuilderExt;
    for n in std::process::id().. {
        let dir = parent.join(format!("proq-demo-{n}"));
        match std::fs::DirBuilder::new().mode(0o700).create(&dir) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            created => {
                return Ok(created
                    .and_then(|()| dir.canonicalize())
                    .map_err(lane::Error::io("write", &dir))?);
            }
        }
    }
    Err(UsageError::DemoFailed { failure: format!("there is no free name in {}", parent.display()) }.into())
}

/// Splits a command line at blanks outside of double quotes.
fn split_words(line: &str) -> Vec<&str> {
    let parts = line.split('"').enumerate();
    parts
        .flat_map(|(n, part)| if n % 2 == 1 { vec![part] } else { part.split_whitespace().collect() })
        .collect()
}

fn bold(text: &str) -> String {
    style(text).bold().to_string()
}
