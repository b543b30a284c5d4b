//! The hidden commands, with which git-proq, git and agents start this program.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use proq_base::diagnostics::Listener;
use proq_base::explain::{Exit, without_os_codes};
use proq_base::process;
use proq_base::process::signals;
use proq_lib::agent::acp::driver;
use proq_lib::agent::acp::driver::{DriverExit, DriverHandles};
use proq_lib::agent::git_guard::{after_commit, hook};
use proq_lib::agent::hook_events::activity;
use proq_lib::agent::hook_events::activity::HookInput;
use proq_lib::agent::supervise::{supervisor, supervisor_start};
use proq_lib::agent::tmux::pane_process;
use proq_lib::event::dispatch::OpenedRepo;
use proq_lib::event::{dispatch, program_info};
use proq_lib::lane;
use proq_lib::lane::Project;
use proq_lib::merge::comparison::overlap;
use proq_lib::preview::refresh;
use proq_lib::snapshot::auto_snapshot;
use proq_lib::swarm::run::scheduler_process;
use proq_lib::types::{BatchId, RunNumber, WaitLimit};
use proq_stream::base::client_line::ClientLine;

use crate::cli::arguments::numbers::run_number;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure::Failure;
use crate::cli::terminal::ui;

/// First argument that the hook scripts of the git guard pass.
const GIT_HOOK_ARG: &str = "_hook";

/// Runs the hook and returns its exit code, if git started this process as a hook; `None` otherwise. Checked
/// before anything else, because git runs the hook for every ref update.
pub(crate) fn run_if_git_hook() -> Option<ExitCode> {
    let mut argv = std::env::args_os().skip(1);
    if argv.next().as_deref() != Some(GIT_HOOK_ARG.as_ref()) {
        return None;
    }
    let shim = argv.next().unwrap_or_default();
    let args: Vec<OsString> = argv.collect();
    // Events of the hook are delivered now, not with the next command.
    program_info::set_program_info(std::env::current_exe(), false);
    let outcome = std::env::current_dir().map(|dir| hook::run_hook(&dir, Path::new(&shim), &args));
    match outcome {
        Ok(Ok(outcome)) => {
            for line in outcome.messages {
                ui::print_inline(&format!("{line}\n"));
            }
            Some(ExitCode::from(outcome.exit_code))
        }
        Ok(Err(e)) => {
            let reason = without_os_codes(&e.to_string());
            ui::print_inline(&format!("git-proq: the repository's own hook could not be run: {reason}\n"));
            Some(ExitCode::FAILURE)
        }
        // Without a current folder, git cannot work either.
        Err(_) => Some(ExitCode::SUCCESS),
    }
}

/// Watches one run. Started by `spawn`, with the lane's run lock on standard input.
#[derive(Debug, Args)]
pub(crate) struct Supervise {
    /// The lane
    #[arg(long)]
    pub(crate) lane: String,
    /// The run
    #[arg(long = "attempt", value_name = "ATTEMPT", value_parser = run_number())]
    pub(crate) run_number: RunNumber,
    /// What stands for the prompt in the command line
    #[arg(long)]
    pub(crate) prompt_marker: Option<String>,
    /// The agent's command line
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}

/// Supervises one run of a lane's agent, and reports a failed start to the starting process.
pub(crate) fn run_supervise(context: &CommandContext, args: Supervise) -> CommandResult {
    // The starting process waits until the agent runs: send it the error, so that it need not guess.
    supervise_run(context, args).inspect_err(|e| supervisor_start::report_start_failure(&*e.0))
}

/// Starts the agent of one run, watches it to its end, and records how it ended.
fn supervise_run(context: &CommandContext, args: Supervise) -> CommandResult {
    let mut project = context.project()?;
    project.is_long_lived = true;
    let (lane, marker) = (project.lane_name(&args.lane)?, args.prompt_marker.as_deref());
    supervisor::supervise(&project, &lane, args.run_number, args.command, marker)?;
    Ok(Exit::Success)
}

/// Starts an agent on its terminal. Started by tmux for a supervisor, which says what to start.
#[derive(Debug, Args)]
pub(crate) struct PaneProcess {
    /// The lane
    #[arg(long)]
    pub(crate) lane: String,
    /// The run
    #[arg(long = "attempt", value_name = "ATTEMPT", value_parser = run_number())]
    pub(crate) run_number: RunNumber,
}

/// Starts an agent on the terminal of its tmux pane, with the launch spec that its supervisor wrote.
pub(crate) fn run_pane_process(context: &CommandContext, args: &PaneProcess) -> CommandResult {
    let project = Project::open(&context.dir, Listener::silent())?;
    pane_process::run_pane_process(&project.store, &project.lane_name(&args.lane)?, args.run_number)?;
    Ok(Exit::Success)
}

/// Speaks the protocol with an agent. Started by a run's supervisor in the agent's place.
#[derive(Debug, Args)]
pub(crate) struct AcpClient {
    /// The lane
    #[arg(long)]
    pub(crate) lane: String,
    /// The run
    #[arg(long = "attempt", value_name = "ATTEMPT", value_parser = run_number())]
    pub(crate) run_number: RunNumber,
    /// The agent's command line
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}

/// Runs the client of the Agent Client Protocol, and exits as the agent did: with its exit code, or by its
/// signal.
pub(crate) fn run_acp_client(context: &CommandContext, args: &AcpClient) -> CommandResult {
    let agent_exit = drive_acp_agent(context, args).unwrap_or_else(|e| {
        // A user finds the error in the run's log, so it is written there.
        context.ui.print_bytes(ClientLine::Failure { text: e.0.to_string() }.to_line().as_bytes());
        DriverExit::Code(i32::from(Exit::Refused.code()))
    });
    let code = match agent_exit {
        DriverExit::Code(code) => code,
        DriverExit::Signal(signal) => {
            signals::exit_by_signal(signal);
            128 + signal
        }
    };
    Ok(Exit::PassThrough(u8::try_from(code).unwrap_or(1)))
}

/// Runs an agent that speaks the Agent Client Protocol, and returns its exit code or signal. The log goes to
/// standard output; standard input is the pipe to the supervisor.
fn drive_acp_agent(context: &CommandContext, args: &AcpClient) -> Result<DriverExit, Failure> {
    let project = Project::open(&context.dir, Listener::silent())?;
    let start_error = |source| process::Error::NotStarted { program: "the agent's client".into(), source };
    let log = std::io::stdout().as_fd().try_clone_to_owned().map_err(start_error)?;
    let supervisor_pipe = std::io::stdin().as_fd().try_clone_to_owned().map_err(start_error)?;
    let handles = DriverHandles { log: log.into(), supervisor_pipe };
    let lane = project.lane_name(&args.lane)?;
    Ok(driver::run_protocol_agent(&project, &lane, args.run_number, &args.command, handles)?)
}

/// Longest wait for a lock while an agent's hook is handled. The agent is blocked during that time.
const HOOK_LOCK_WAIT_LIMIT: Duration = Duration::from_secs(2);

/// Notes what an agent does, as its hook says on standard input.
#[derive(Debug, Args)]
pub(crate) struct AgentEvent {
    /// The lane
    #[arg(long, env = "PROQ_LANE")]
    pub(crate) lane: Option<String>,
    /// The run
    #[arg(long = "attempt", value_name = "ATTEMPT", env = "PROQ_ATTEMPT")]
    pub(crate) run_number: Option<String>,
    /// What kind of hook it is
    pub(crate) kind: Option<String>,
}

/// Handles an event that an agent's hook passes on standard input, and always exits with 0. Prints a `block`
/// decision if the agent must not stop yet.
///
/// A failing hook may end the agent's turn, or keep it from ending. So this command reports no error and
/// accepts everything on its command line.
pub(crate) fn run_agent_event(context: &CommandContext, args: &AgentEvent) -> CommandResult {
    let mut input = Vec::new();
    drop(std::io::stdin().lock().read_to_end(&mut input));
    if let Some(reason) = handle_hook_event(context, args, &input) {
        context
            .ui
            .print_bytes(serde_json::json!({ "decision": "block", "reason": reason }).to_string().as_bytes());
    }
    Ok(Exit::Success)
}

/// Records what an agent's hook reported. Returns the reason why the agent must not stop yet; `None` if it
/// may, or if the event cannot be handled.
fn handle_hook_event(context: &CommandContext, args: &AgentEvent, input: &[u8]) -> Option<String> {
    let run_number = args.run_number.as_deref()?.parse().ok()?;
    let mut project = Project::open(&context.dir, Listener::silent()).ok()?;
    project.store.set_lock_limit(WaitLimit::AtMost(HOOK_LOCK_WAIT_LIMIT));
    let kind = args.kind.as_deref().unwrap_or_default();
    let lane = project.lane_name(args.lane.as_deref()?).ok()?;
    activity::handle_hook_event(&project, &lane, run_number, kind, &HookInput::parse(input)).ok()?
}

/// Looks at the commits that a lane got. Started by the hook that runs after a commit.
#[derive(Debug, Args)]
pub(crate) struct AfterCommit {
    /// The lane
    #[arg(long)]
    pub(crate) lane: String,
}

/// Updates the preview of a lane after new commits, and reports new overlaps of the lane. No process waits
/// for it and nothing depends on it. Only one such process runs per lane; it also handles commits that arrive
/// while it works.
pub(crate) fn run_after_commit(context: &CommandContext, args: &AfterCommit) -> CommandResult {
    signals::start_process_session();
    let project = context.project_for_write()?;
    let Ok(lane) = project.lane_name(&args.lane) else { return Ok(Exit::Success) };
    while let Some(lock) = after_commit::claim_new_commits(&project.store, &lane) {
        proq_base::fail_points::hit("moved.taken");
        // If an edit is in the way, the preview stays where it is. The user sees that in `list`.
        drop(refresh::refresh_if_lane_advanced(&project, &lane));
        drop(overlap::emit_new_overlaps_of_lane(&project, &lane));
        drop(lock);
        if !after_commit::has_new_commits(&project.store, &lane) {
            break;
        }
    }
    Ok(Exit::Success)
}

/// Tells which lanes a lane conflicts with by now. Started by a supervisor when a run has ended.
#[derive(Debug, Args)]
pub(crate) struct ReportOverlaps {
    /// The lane
    #[arg(long)]
    pub(crate) lane: String,
}

/// Reports the overlaps of a lane. No process waits for it and nothing depends on it, so it recovers nothing
/// and prints nothing.
pub(crate) fn run_report_overlaps(context: &CommandContext, args: &ReportOverlaps) -> CommandResult {
    signals::start_process_session();
    let project = Project::open(&context.dir, Listener::silent())?;
    overlap::emit_new_overlaps_of_lane(&project, &project.lane_name(&args.lane)?)?;
    Ok(Exit::Success)
}

/// Takes automatic snapshots while agents run. Started by a supervisor.
#[derive(Debug, Args)]
pub(crate) struct AutoSnapshots {}

/// Takes automatic snapshots in a background process. The process recovers nothing and prints no messages,
/// because no user waits for it.
pub(crate) fn run_auto_snapshots(context: &CommandContext, _args: &AutoSnapshots) -> CommandResult {
    signals::start_process_session();
    let mut project = Project::open(&context.dir, Listener::silent())?;
    project.is_long_lived = true;
    let mut is_parent_waiting = true;
    auto_snapshot::run_auto_snapshots(&project, || {
        // The parent that waited for this line may have exited already.
        if std::mem::take(&mut is_parent_waiting) {
            let _ = writeln!(std::io::stdout());
        }
    })?;
    Ok(Exit::Success)
}

/// Hands out events until none is due. Started by whoever wrote one.
#[derive(Debug, Args)]
pub(crate) struct DispatchEvents {}

/// Delivers all due events in a background process. The process recovers nothing and prints no messages,
/// because no user waits for it.
pub(crate) fn run_dispatch_events(context: &CommandContext, _args: &DispatchEvents) -> CommandResult {
    signals::start_process_session();
    let project = Project::open(&context.dir, Listener::silent())?;
    let result = dispatch::dispatch(project.repo.common_dir(), &|| {
        let Project { repo, layers, settings, .. } = Project::open(&context.dir, Listener::silent())?;
        Ok::<_, lane::Error>(OpenedRepo { repo, layers, settings })
    });
    if let Err(e) = &result {
        proq_lib::event::hook::log(&project.store, "-", "events were not handed out", &e.to_string(), "");
    }
    Ok(result.map(|()| Exit::Success)?)
}

/// Goes on with a batch. Started by `swarm` and `resume`, with the batch's lock on standard input.
#[derive(Debug, Args)]
pub(crate) struct Scheduler {
    /// The batch
    #[arg(long)]
    batch: String,
}

/// Runs the scheduler of a batch in a separate process session, and reports a failed start to the starting
/// process.
pub(crate) fn run_scheduler(context: &CommandContext, args: &Scheduler) -> CommandResult {
    open_and_run_scheduler(context, args).inspect_err(|e| supervisor_start::report_start_failure(&*e.0))
}

/// Runs the batch until it is over or paused, with the lock that the starting process passes on.
fn open_and_run_scheduler(context: &CommandContext, args: &Scheduler) -> CommandResult {
    signals::start_process_session();
    let mut project = Project::open(&context.dir, context.ui.listener())?;
    project.is_long_lived = true;
    scheduler_process::run_scheduler(&project, &BatchId::new(args.batch.as_str()))?;
    Ok(Exit::Success)
}
