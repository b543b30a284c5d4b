//! Owns the grammar: every command's arguments, whose doc comments are the help.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::engine::ArgValueCompleter;

use super::complete::{agent_names, branch_names, lane_names};
use super::merge::Merge;
use super::op::Op;
use super::snap::Snap;
use super::undo::Undo;

/// Run several coding agents on one git repository at once, without losing work.
///
/// Each agent gets a lane: a branch and a worktree of its own. Look at a lane in your own checkout with `preview`, land
/// the good ones with `merge`. Without a command, the lanes and what can be done next are shown.
#[derive(Debug, Parser)]
#[command(
    name = "git-proq",
    bin_name = "git proq",
    version,
    disable_help_subcommand = true,
    subcommand_help_heading = "Commands"
)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    /// What every command takes.
    #[command(flatten)]
    pub(crate) common: Common,
}

/// What every command takes.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Answer in JSON, an object with "schema": 1.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Say only answers, warnings and errors.
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Act as if started in DIR.
    #[arg(short = 'C', value_name = "DIR", global = true, value_hint = clap::ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,
}

/// The commands, in the order of the help page.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Spawn(Spawn),
    Wait(Wait),
    Stop(Stop),
    Discard(Discard),
    Redispatch(super::redispatch::Redispatch),
    Cleanup(Cleanup),
    List(List),
    Show(Show),
    Diff(Diff),
    Logs(Logs),
    Preview(Preview),
    Matrix(super::matrix::Matrix),
    Events(Events),
    Merge(Merge),
    Queue(super::queue::Queue),
    Resolve(super::resolve::Resolve),
    Undo(Undo),
    Op(Op),
    Snap(Snap),
    Doctor(super::doctor::Doctor),
    Gc(super::gc::Gc),
    /// List the agents that are known, and which are installed
    ///
    /// Any other program on PATH can be used as an agent too; it gets the prompt as its last argument.
    ///
    /// Example:
    ///     git proq agents
    #[command(verbatim_doc_comment)]
    Agents,
    Approve(super::approve::Approve),
    Config(Config),
    Setup(Setup),
    Completions(Completions),
    Man(Man),
    Demo(Demo),
    #[command(name = "_supervise", hide = true)]
    Supervise(Supervise),
    #[command(name = "_overlaps", hide = true)]
    Overlaps(Overlaps),
}

/// Make a lane and start an agent in it
///
/// The lane is a branch proq/NAME and a worktree .proq-worktrees/NAME, cut from the current branch. The agent is started
/// there with the prompt, and the command returns at once. Without NAME one is made from the prompt.
///
/// With --check, the lane says when its task is done: each landing runs CMD too, as it runs the verify.commands, and leaves
/// the lane out when it fails. Give commands that fail as long as nobody has done the task.
///
/// With --scope, lanes are named that are at work there too, or have work there that has not landed: by their own scope, or
/// by the files that they have changed. Nothing is refused. A GLOB is a file, a folder, or a pattern whose `*` also stands
/// for slashes.
///
/// With --auto-merge the lane is landed by a process of its own when its agent is done. At a conflict merge.conflict_agent
/// is sent, or else the lane's own agent, unless it is a command of yours. A landing that is refused leaves the lane as it
/// is, and is tried again after the next landing on that branch; `git proq show` says why, `git proq logs --merge` shows it.
/// `git proq undo` of it ends that.
///
/// Examples:
///     git proq spawn claude "implement payments"
///     git proq spawn codex -n auth -f task.md
///     git proq spawn claude "implement payments" --check 'make test-payments' --scope src/pay/
///     git proq spawn -n docs -- sh -c 'make docs; git add -A; git commit -m docs'
///     git proq spawn --auto-merge claude "fix the typos in docs/"
///     git proq spawn --empty -n scratch
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
#[command(
    override_usage = "git proq spawn [OPTIONS] AGENT PROMPT\n       git proq spawn [OPTIONS] AGENT -f FILE\n       git proq spawn [OPTIONS] -- CMD...\n       git proq spawn [OPTIONS] --empty"
)]
pub(crate) struct Spawn {
    /// The agent: a known one (see `git proq agents`) or any program on PATH
    #[arg(value_name = "AGENT", add = ArgValueCompleter::new(agent_names), conflicts_with_all = ["empty", "command"])]
    pub(crate) agent: Option<String>,
    /// What the agent is asked to do
    #[arg(value_name = "PROMPT", conflicts_with = "file")]
    pub(crate) prompt: Option<String>,
    /// A command line of your own, instead of an agent; {prompt} and {prompt_file} in it are filled in
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
    /// The lane's name: lower-case letters, digits, '.', '_' and '-'
    #[arg(long, short, value_name = "NAME", allow_hyphen_values = true)]
    pub(crate) name: Option<String>,
    /// Read the prompt from FILE, or from standard input with '-'
    #[arg(long, short, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// Start from REV instead of the current branch; a branch is also what the lane lands on
    #[arg(long, value_name = "REV", add = ArgValueCompleter::new(branch_names))]
    pub(crate) base: Option<String>,
    /// Land on BRANCH
    #[arg(long, value_name = "BRANCH", add = ArgValueCompleter::new(branch_names))]
    pub(crate) onto: Option<String>,
    /// Land the lane only when CMD, a line for the shell, succeeds with it; may be given again
    #[arg(long, value_name = "CMD", value_hint = clap::ValueHint::CommandString)]
    pub(crate) check: Vec<String>,
    /// The files that the task is expected to touch, from the top of the repository; may be given again
    #[arg(long, value_name = "GLOB", value_hint = clap::ValueHint::AnyPath)]
    pub(crate) scope: Vec<String>,
    /// Make the lane only; start nothing
    #[arg(long, conflicts_with = "command")]
    pub(crate) empty: bool,
    /// Make your uncommitted changes of tracked files the lane's first commit; they stay where they are too
    #[arg(long)]
    pub(crate) carry: bool,
    /// Land it when the agent is done, as `git proq merge` would; what refuses that is tried again after the next landing
    #[arg(long, conflicts_with = "empty")]
    pub(crate) auto_merge: bool,
    /// Wait for the agent to end, and with --auto-merge for the landing; exit with 4 when it failed, or as the landing does
    #[arg(long, conflicts_with = "empty")]
    pub(crate) wait: bool,
    /// Say what would be made, and make nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Wait for lanes' agents to end
///
/// Without LANE, for every one that runs. Exits with 4 when one of them failed.
///
/// Example:
///     git proq wait payments auth && git proq merge payments auth
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Wait {
    /// The lanes to wait for; without one, every lane whose agent runs
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(lane_names))]
    pub(crate) lanes: Vec<String>,
}

/// Stop lanes' agents
///
/// The agent is asked to end and, after agent.stop_grace seconds, ended. Its work stays in the lane.
///
/// Example:
///     git proq stop payments
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
#[command(override_usage = "git proq stop [OPTIONS] LANE...\n       git proq stop [OPTIONS] --all")]
pub(crate) struct Stop {
    /// The lanes whose agents are to end
    #[arg(value_name = "LANE", required_unless_present = "all", add = ArgValueCompleter::new(lane_names))]
    pub(crate) lanes: Vec<String>,
    /// Every lane whose agent runs
    #[arg(long, conflicts_with = "lanes")]
    pub(crate) all: bool,
    /// Say what would be stopped, and stop nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Throw lanes away
///
/// A lane with work that is not on its base is kept and the work is named. With --force its commits and uncommitted
/// files are saved first, a running agent is stopped, and the answer says how to get everything back.
///
/// Examples:
///     git proq discard experiment
///     git proq discard --force experiment
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Discard {
    /// The lanes to throw away
    #[arg(value_name = "LANE", required = true, add = ArgValueCompleter::new(lane_names))]
    pub(crate) lanes: Vec<String>,
    /// Remove them whatever is in them, saving it all first
    #[arg(long, short)]
    pub(crate) force: bool,
    /// Say what would be removed, and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Tidy up lanes that are done with
///
/// Without LANE, those that landed and those that a crash left half-made. A lane with anything that is not on its base is
/// kept, and the answer says why. A lane that is named goes too when somebody brought its changes to the base by hand.
///
/// Examples:
///     git proq cleanup
///     git proq cleanup --all
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Cleanup {
    /// These lanes only
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(lane_names))]
    pub(crate) lanes: Vec<String>,
    /// Also lanes that changed nothing and failed ones without work
    #[arg(long, conflicts_with = "lanes")]
    pub(crate) all: bool,
    /// Remove the named lanes whatever is in them, saving it all first
    #[arg(long, short, requires = "lanes", conflicts_with = "all")]
    pub(crate) force: bool,
    /// Say what would be removed, and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// List the lanes
///
/// COMMITS: + what the lane has that its base lacks, - the reverse. CHANGES: uncommitted files. CONFLICTS, if there are any:
/// what the commits would conflict with, as far as that is quick to find out; `git proq matrix` tells all. A '*' marks the
/// lane that the main checkout shows.
///
/// Examples:
///     git proq list
///     git proq list --json | jq '.lanes[] | select(.state == "done") | .name'
#[derive(Debug, Args)]
#[command(verbatim_doc_comment, visible_alias = "ls")]
pub(crate) struct List {
    /// Removed lanes too
    #[arg(long, short)]
    pub(crate) all: bool,
}

/// Show all about one lane
///
/// A removed lane is called NAME@N, as `git proq list --all` shows it.
///
/// Example:
///     git proq show payments
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Show {
    /// The lane, or NAME@N for a removed one
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(lane_names))]
    pub(crate) lane: String,
}

/// Show what a lane changes, uncommitted work included
///
/// Compared with the commit where it left its base.
///
/// Examples:
///     git proq diff payments
///     git proq diff --stat payments
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Diff {
    /// The lane whose changes to show
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(lane_names))]
    pub(crate) lane: String,
    /// Only which files change, and how much
    #[arg(long)]
    pub(crate) stat: bool,
}

/// Print what a lane's agent wrote
///
/// Examples:
///     git proq logs payments
///     git proq logs -f payments
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Logs {
    /// The lane, or NAME@N for a removed one
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(lane_names))]
    pub(crate) lane: String,
    /// Go on until the agent ends
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Print what the check wrote that the lane failed in a landing
    #[arg(long, conflicts_with_all = ["follow", "run"])]
    pub(crate) check: bool,
    /// Print what the landing wrote that followed the run (see spawn --auto-merge)
    #[arg(long, conflicts_with_all = ["follow", "check"])]
    pub(crate) merge: bool,
    /// Print the N-th run instead of the last
    #[arg(long, value_name = "N")]
    pub(crate) run: Option<u32>,
}

/// Show a lane in the main checkout, and go back
///
/// Your uncommitted changes, staged, unstaged and untracked, are set aside first and come back with --back exactly as
/// they were. Edits made while a lane is shown come back with its next preview; commits go to the lane.
///
/// Examples:
///     git proq preview payments
///     git proq preview --refresh
///     git proq preview --back
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
#[command(group = clap::ArgGroup::new("what").required(true).args(["lane", "back", "refresh"]))]
#[command(
    override_usage = "git proq preview [OPTIONS] LANE\n       git proq preview [OPTIONS] --back\n       git proq preview [OPTIONS] --refresh"
)]
pub(crate) struct Preview {
    /// The lane to show
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(lane_names))]
    pub(crate) lane: Option<String>,
    /// Go back to where you were
    #[arg(long, short)]
    pub(crate) back: bool,
    /// Bring the preview to where its lane is now
    #[arg(long, short)]
    pub(crate) refresh: bool,
    /// Say what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Print what happened: lanes made, agents ended, landings
///
/// Examples:
///     git proq events --last 20
///     git proq events -f --json | jq --unbuffered -r .message
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Events {
    /// Go on with what happens from now on; in JSON, one object a line
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Print only the last N; with --follow, begin with them
    #[arg(long, value_name = "N")]
    pub(crate) last: Option<usize>,
}

/// Look at the settings
///
/// Later wins: built in, proq.toml in the repository, ~/.config/git-proq/config.toml, git config proq.*, PROQ_*
/// variables.
///
/// Examples:
///     git proq config list --show-origin
///     git config proq.merge.uncommitted commit
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Config {
    /// What to do
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

/// What can be done with settings.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// List every setting and its value
    List {
        /// Where each value comes from
        #[arg(long)]
        show_origin: bool,
    },
}

/// Install the man pages and completions for you
///
/// git answers `git proq --help` with a man page; this puts the pages where man finds them, and completions where bash,
/// fish and zsh find theirs. Nothing outside your home folder is written.
///
/// Examples:
///     git proq setup --dry-run
///     git proq setup
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Setup {
    /// Say which files would be written, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Print a completion script
///
/// `git proq setup` installs those for bash, fish and zsh. The other shells read theirs from their own start-up files:
/// put what is printed into $PROFILE (PowerShell) or ~/.config/elvish/rc.elv (elvish).
///
/// Example:
///     git proq completions powershell >> $PROFILE
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Completions {
    /// The shell it is for
    #[arg(value_name = "SHELL", value_parser = super::complete::SHELLS)]
    pub(crate) shell: String,
}

/// Print the man page of a command
///
/// Examples:
///     git proq man spawn | man -l -
///     git proq man --dir ~/.local/share/man/man1
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
#[command(override_usage = "git proq man [OPTIONS] [COMMAND]\n       git proq man [OPTIONS] --dir DIR")]
pub(crate) struct Man {
    /// The command; without it, the page of git-proq itself
    #[arg(value_name = "COMMAND", conflicts_with = "pages")]
    pub(crate) command: Option<String>,
    /// Write all pages to DIR
    #[arg(id = "pages", long = "dir", value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,
}

/// Take the tour: three lanes in a throw-away repository
///
/// Needs no account and no network, and leaves nothing behind.
///
/// Example:
///     git proq demo
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Demo {
    /// Keep the repository and say where it is
    #[arg(long)]
    pub(crate) keep: bool,
}

/// Tells which lanes a lane conflicts with by now. Started by a supervisor when a run has ended.
#[derive(Debug, Args)]
pub(crate) struct Overlaps {
    /// The lane
    #[arg(long)]
    pub(crate) lane: String,
}

/// Watches one run. Started by `spawn`, with the lane's run lock on standard input.
#[derive(Debug, Args)]
pub(crate) struct Supervise {
    /// The lane
    #[arg(long)]
    pub(crate) lane: String,
    /// The run
    #[arg(long)]
    pub(crate) attempt: u32,
    /// The agent's command line
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}
