//! The clap grammar: the arguments of every command, whose doc comments are the help.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use super::merge_args::Merge;
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
    /// Say also how things were done.
    #[arg(long, short, global = true, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// Run no hooks and no notifiers for what this command does.
    #[arg(long, global = true)]
    pub(crate) no_hooks: bool,
    /// Act as if started in DIR.
    #[arg(short = 'C', value_name = "DIR", global = true, value_hint = clap::ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,
}

/// The commands, in the order of the help page. The arguments of a command are made when it is the one that was given: to make
/// all of them took two fifths of the time in which the program starts.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Command {
    Spawn(super::spawn_args::Spawn),
    Run(super::run::Run),
    Send(super::send::Send),
    Attach(super::attach::Attach),
    Wait(super::wait::Wait),
    Edit(super::edit::Edit),
    Stop(super::stop::Stop),
    Discard(super::discard::Discard),
    Redispatch(super::redispatch::Redispatch),
    Cleanup(super::cleanup::Cleanup),
    List(super::list::List),
    Show(super::show::Show),
    Diff(super::diff::Diff),
    Logs(super::logs::Logs),
    Preview(super::preview::Preview),
    Matrix(super::matrix::Matrix),
    Compare(super::compare::Compare),
    Events(super::events::Events),
    Merge(Merge),
    Pick(super::pick::Pick),
    Queue(super::queue::Queue),
    Resolve(super::resolve::Resolve),
    Plan(super::plan_args::PlanArgs),
    Deps(super::deps::Deps),
    Swarm(super::swarm_args::Swarm),
    Status(super::status::Status),
    Report(super::report_batch::Report),
    Pause(super::control::Pause),
    Resume(super::control::Resume),
    Abort(super::control::Abort),
    Undo(Undo),
    Op(Op),
    Snap(Snap),
    Doctor(super::doctor::Doctor),
    Gc(super::gc::Gc),
    Agents(super::agents::Agents),
    Approve(super::approve::Approve),
    Config(super::config::Config),
    Hooks(super::hooks::Hooks),
    #[command(name = "supervise")]
    Oversee(super::oversee::Oversee),
    Mcp(super::mcp::Mcp),
    Task(super::task::Task),
    Sync(super::sync::SyncArgs),
    Setup(super::setup::Setup),
    Completions(super::completions::Completions),
    Man(super::man::Man),
    Demo(super::demo::Demo),
    #[command(name = "_supervise", hide = true)]
    Supervise(super::internal::Supervise),
    #[command(name = "_swarm", hide = true)]
    Scheduler(super::internal::Scheduler),
    #[command(name = "_pane", hide = true)]
    Pane(super::internal::Pane),
    #[command(name = "_acp", hide = true)]
    Acp(super::internal::Acp),
    #[command(name = "_agent-event", hide = true)]
    AgentEvent(super::internal::AgentEvent),
    #[command(name = "_dispatch", hide = true)]
    Dispatch(super::internal::Dispatch),
    #[command(name = "_overlaps", hide = true)]
    Overlaps(super::internal::Overlaps),
    #[command(name = "_moved", hide = true)]
    Moved(super::internal::Moved),
    #[command(name = "_snapshots", hide = true)]
    Snapshots(super::internal::Snapshots),
}
