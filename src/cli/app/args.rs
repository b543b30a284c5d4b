//! The clap grammar: the arguments of every command, whose doc comments are the help.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::cli::land::merge_args::Merge;
use crate::cli::safety::op::Op;
use crate::cli::safety::snap::Snap;
use crate::cli::safety::undo::Undo;

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
    pub(crate) common: CommonArgs,
}

/// What every command takes.
#[derive(Debug, Args)]
pub(crate) struct CommonArgs {
    /// Answer in JSON, an object with "schema": 1.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Say only answers, warnings and errors.
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Say also how things were done; twice: steps with times.
    #[arg(long, short, global = true, conflicts_with = "quiet", action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
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
    Spawn(crate::cli::lanes::spawn_args::Spawn),
    Run(crate::cli::lanes::run::Run),
    Send(crate::cli::lanes::send::Send),
    Attach(crate::cli::lanes::attach::Attach),
    Wait(crate::cli::lanes::wait::Wait),
    Edit(crate::cli::lanes::edit::Edit),
    Stop(crate::cli::lanes::stop::Stop),
    Discard(crate::cli::lanes::discard::Discard),
    Redispatch(crate::cli::lanes::redispatch::Redispatch),
    Cleanup(crate::cli::lanes::cleanup::Cleanup),
    List(crate::cli::inspect::list::List),
    Show(crate::cli::inspect::show::Show),
    Diff(crate::cli::inspect::diff::Diff),
    Logs(crate::cli::inspect::logs::Logs),
    Preview(crate::cli::inspect::preview::Preview),
    Matrix(crate::cli::inspect::matrix::Matrix),
    Compare(crate::cli::inspect::compare::Compare),
    Events(crate::cli::inspect::events::Events),
    Merge(Merge),
    Pick(crate::cli::land::pick::Pick),
    Queue(crate::cli::land::queue::Queue),
    Resolve(crate::cli::land::resolve::Resolve),
    Plan(crate::cli::plans::plan_args::PlanArgs),
    Deps(crate::cli::plans::deps::Deps),
    Swarm(crate::cli::plans::swarm_args::Swarm),
    Status(crate::cli::plans::status::Status),
    Report(crate::cli::plans::report_batch::Report),
    Pause(crate::cli::plans::control::Pause),
    Resume(crate::cli::plans::control::Resume),
    Abort(crate::cli::plans::control::Abort),
    Undo(Undo),
    Op(Op),
    Snap(Snap),
    Doctor(crate::cli::safety::doctor::Doctor),
    Gc(crate::cli::safety::gc::Gc),
    Agents(crate::cli::set_up::agents::Agents),
    Approve(crate::cli::set_up::approve::Approve),
    Config(crate::cli::set_up::config::Config),
    Hooks(crate::cli::set_up::hooks::Hooks),
    #[command(name = "supervise")]
    Oversee(crate::cli::set_up::oversee::command::Oversee),
    Mcp(crate::cli::set_up::mcp::command::Mcp),
    Task(crate::cli::set_up::task::Task),
    Sync(crate::cli::set_up::sync::SyncArgs),
    Setup(crate::cli::set_up::setup::Setup),
    Completions(crate::cli::set_up::completions::CompletionsArgs),
    Man(crate::cli::set_up::man::Man),
    Demo(crate::cli::set_up::demo::Demo),
    #[command(name = "_supervise", hide = true)]
    Supervise(super::internal::Supervise),
    #[command(name = "_swarm", hide = true)]
    Scheduler(super::internal::Scheduler),
    #[command(name = "_pane", hide = true)]
    PaneProcess(super::internal::PaneProcess),
    #[command(name = "_acp", hide = true)]
    AcpClient(super::internal::AcpClient),
    #[command(name = "_agent-event", hide = true)]
    AgentEvent(super::internal::AgentEvent),
    #[command(name = "_dispatch", hide = true)]
    DispatchEvents(super::internal::DispatchEvents),
    #[command(name = "_overlaps", hide = true)]
    ReportOverlaps(super::internal::ReportOverlaps),
    #[command(name = "_moved", hide = true)]
    AfterCommit(super::internal::AfterCommit),
    #[command(name = "_snapshots", hide = true)]
    AutoSnapshots(super::internal::AutoSnapshots),
}
