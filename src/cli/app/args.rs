//! The clap grammar: the arguments of every command, whose doc comments are the help, and what runs it.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use super::internal;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::terminal::ui::ColorChoice;
use crate::cli::{inspect, land, lanes, plans, safety, set_up};

/// Run several coding agents on one git repository at once, without losing work.
///
/// Each agent gets a lane: a branch and a worktree of its own. Check a lane out in your own checkout with
/// `preview`, and merge the good ones with `merge`. Without a command, lists lanes and suggests next steps.
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
    /// Output as JSON
    ///
    /// The output is an object with "schema": 1.
    #[arg(long, global = true, hide_short_help = true)]
    pub(crate) json: bool,
    /// Print only results, warnings, and errors
    #[arg(long, short, global = true, hide_short_help = true)]
    pub(crate) quiet: bool,
    /// Print more detail; with -vv, each step and its duration
    #[arg(long, short, global = true, hide_short_help = true, conflicts_with = "quiet",
          action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// When to color the output: always, auto, or never
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        value_name = "WHEN",
        value_enum,
        hide_possible_values = true
    )]
    pub(crate) color: Option<ColorChoice>,
    /// Print long results without a pager
    #[arg(long, global = true, hide_short_help = true)]
    pub(crate) no_pager: bool,
    /// Skip git-proq hooks and notifications
    #[arg(long, global = true, hide_short_help = true)]
    pub(crate) no_hooks: bool,
    /// Run as if started in DIR
    #[arg(short = 'C', value_name = "DIR", global = true, hide_short_help = true, value_hint = clap::ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,
}

/// Declares the commands: the arguments of each, and the call that runs it.
macro_rules! commands {
    (
        run($context:ident, $args:ident, $grammar:ident);
        $( $(#[$attribute:meta])* $command:ident($arguments:ty) => $call:expr, )*
    ) => {
        /// The commands, in the order of the help page. The arguments of a command are made when it is the one that was given: to make
        /// all of them took two fifths of the time in which the program starts.
        #[derive(Debug, Subcommand)]
        #[command(defer = true)]
        pub(crate) enum Command {
            $( $(#[$attribute])* $command($arguments), )*
        }

        impl Command {
            /// Runs the command, and returns its exit code. `grammar` returns that of all commands with the
            /// formatted help.
            pub(crate) fn run(
                self,
                $context: &CommandContext,
                $grammar: fn() -> clap::Command,
            ) -> CommandResult {
                match self {
                    $( Command::$command($args) => $call, )*
                }
            }
        }
    };
}

commands! {
    run(context, args, grammar);
    Spawn(lanes::spawn_args::Spawn) => lanes::spawn::run(context, &args),
    Run(lanes::run::Run) => lanes::run::run(context, &args),
    Send(lanes::send::Send) => lanes::send::run(context, &args),
    Open(lanes::open::Open) => lanes::open::run(context, &args),
    #[command(hide = true)]
    Attach(lanes::attach::Attach) => lanes::attach::run(context, &args),
    Wait(lanes::wait::Wait) => lanes::wait::run(context, &args),
    Edit(lanes::edit::Edit) => lanes::edit::run(context, &args),
    Rename(lanes::rename::Rename) => lanes::rename::run(context, &args),
    Stop(lanes::stop::Stop) => lanes::stop::run(context, &args),
    Discard(lanes::discard::Discard) => lanes::discard::run(context, &args),
    Redispatch(lanes::redispatch::Redispatch) => lanes::redispatch::run(context, &args),
    Cleanup(lanes::cleanup::Cleanup) => lanes::cleanup::run(context, &args),
    List(inspect::list::List) => inspect::list::run(context, &args),
    Show(inspect::show::Show) => inspect::show::run(context, &args),
    Diff(inspect::diff::Diff) => inspect::diff::run(context, &args),
    Logs(inspect::logs::Logs) => inspect::logs::run(context, &args),
    Preview(inspect::preview::Preview) => inspect::preview::run(context, &args),
    Matrix(inspect::matrix::Matrix) => inspect::matrix::run(context, &args),
    Compare(inspect::compare::Compare) => inspect::compare::run(context, &args),
    Events(inspect::events::Events) => inspect::events::run(context, &args),
    Statusline(inspect::statusline::StatuslineArgs) => inspect::statusline::run(context, &args),
    Merge(land::merge_args::Merge) => land::merge::run(context, &args),
    Pick(land::pick::Pick) => land::pick::run(context, &args),
    Queue(land::queue::Queue) => land::queue::run(context, &args),
    Resolve(land::resolve::Resolve) => land::resolve::run(context, &args),
    Plan(plans::plan_args::PlanArgs) => plans::plan::run(context, &args),
    Deps(plans::deps::Deps) => plans::deps::run(context, &args),
    Swarm(plans::swarm_args::Swarm) => plans::swarm::run(context, &args),
    Batch(plans::batch::BatchArgs) => plans::batch::run(context, args),
    Status(plans::status::Status) => plans::status::run(context, &args),
    #[command(hide = true)]
    Report(plans::report_batch::Report) => plans::report_batch::run(context, &args),
    #[command(hide = true)]
    Pause(plans::control::Pause) => plans::control::pause(context, &args),
    #[command(hide = true)]
    Resume(plans::control::Resume) => plans::control::resume(context, &args),
    #[command(hide = true)]
    Abort(plans::control::Abort) => plans::control::abort(context, &args),
    Undo(safety::undo::Undo) => safety::undo::run(context, &args),
    Redo(safety::undo::Redo) => safety::undo::redo(context, &args),
    Op(safety::op::Op) => safety::op::run(context, &args),
    Snap(safety::snap::Snap) => safety::snap::run(context, &args),
    Doctor(safety::doctor::Doctor) => safety::doctor::run(context, &args),
    Gc(safety::gc::Gc) => safety::gc::run(context, &args),
    Agents(set_up::agents::Agents) => set_up::agents::run(context, &args),
    Approve(set_up::approve::Approve) => set_up::approve::run(context, &args),
    Config(set_up::config::Config) => set_up::config::run(context, &args),
    Hooks(set_up::hooks::Hooks) => set_up::hooks::run(context, &args),
    #[command(name = "supervise")]
    Oversee(set_up::oversee::command::Oversee) => set_up::oversee::command::run(context, &args),
    Mcp(set_up::mcp::command::Mcp) => set_up::mcp::command::run(context, &args),
    Task(set_up::task::Task) => set_up::task::run(context, &args),
    Sync(set_up::sync::SyncArgs) => set_up::sync::run(context, &args),
    Schema(set_up::schema::Schema) => set_up::schema::run(context, &args),
    Setup(set_up::setup::Setup) => set_up::setup::run(context, &args, grammar()),
    Completions(set_up::completions::CompletionsArgs) => set_up::completions::run(context, &args),
    #[command(name = "shell-init")]
    ShellInit(set_up::shell_init::ShellInit) => set_up::shell_init::run(context, &args),
    Man(set_up::man::Man) => set_up::man::run(context, &args, grammar()),
    Demo(set_up::demo::Demo) => set_up::demo::run(context, &args),
    Help(set_up::help::Help) => set_up::help::run(context, &args, grammar()),
    Version(set_up::help::Version) => set_up::help::print_version(context, &args),
    #[command(name = "_supervise", hide = true)]
    Supervise(internal::Supervise) => internal::run_supervise(context, args),
    #[command(name = "_swarm", hide = true)]
    Scheduler(internal::Scheduler) => internal::run_scheduler(context, &args),
    #[command(name = "_pane", hide = true)]
    PaneProcess(internal::PaneProcess) => internal::run_pane_process(context, &args),
    #[command(name = "_acp", hide = true)]
    AcpClient(internal::AcpClient) => internal::run_acp_client(context, &args),
    #[command(name = "_agent-event", hide = true)]
    AgentEvent(internal::AgentEvent) => internal::run_agent_event(context, &args),
    #[command(name = "_dispatch", hide = true)]
    DispatchEvents(internal::DispatchEvents) => internal::run_dispatch_events(context, &args),
    #[command(name = "_overlaps", hide = true)]
    ReportOverlaps(internal::ReportOverlaps) => internal::run_report_overlaps(context, &args),
    #[command(name = "_moved", hide = true)]
    AfterCommit(internal::AfterCommit) => internal::run_after_commit(context, &args),
    #[command(name = "_snapshots", hide = true)]
    AutoSnapshots(internal::AutoSnapshots) => internal::run_auto_snapshots(context, &args),
}
