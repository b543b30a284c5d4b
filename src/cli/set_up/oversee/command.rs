//! Arguments and output of `git proq supervise`.

use clap::Args;
use proq_base::explain::Exit;
use proq_base::hint;
use proq_lib::ops::supervise;
use proq_lib::ops::supervise::{SupervisePlan, SuperviseRequest};

use crate::cli::inspect::lane_list::summary::lane_briefs;
use crate::cli::invocation::caller;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::set_up::mcp::lane_tools::TOOLS_WITHOUT_CONFIRMATION;

/// Start an agent that supervises all lanes
///
/// The agent runs in your terminal and in the main checkout. Its prompt describes the lanes and what it may
/// do. For this run it gets the tools of `git proq mcp --supervisor`; its own settings do not change. It
/// asks you before it stops an agent, previews a lane, or merges one.
///
/// There is one supervisor per repository. The next start continues its session; --new starts another one.
/// Claude Code and Gemini CLI are told which session to continue; Codex and opencode continue their latest
/// session here, whoever started it. AGENT is claude, codex, gemini, opencode, or one of your own that is
/// like them.
///
/// Examples:
///     git proq supervise
///     git proq supervise codex
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Oversee {
    /// Agent [default: the last one used, or the first installed]
    #[arg(value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// Start a new session
    #[arg(long)]
    pub(crate) new: bool,
    /// Show what would be done, without doing it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

pub(crate) fn run(context: &CommandContext, args: &Oversee) -> CommandResult {
    let project = context.project_for_write()?;
    caller::refuse_in_lane(context, &project)?;
    let plan = supervise::plan(
        &project,
        &SuperviseRequest {
            agent: args.agent.clone(),
            is_new_session: args.new,
            dry_run: args.dry_run,
            allowed_tools: TOOLS_WITHOUT_CONFIRMATION,
            lane_briefs: &|| lane_briefs(&project),
        },
    )?;
    if args.dry_run {
        return context.show(plan, |context, plan| print_plan(context, &plan));
    }
    let ended = plan.execute(&project)?;
    if context.ui.json {
        context.ui.print_json(&ended);
    }
    let end_text = match ended.exit {
        Some(0) => return Ok(Exit::Success),
        Some(code) => format!("with exit code {code}"),
        None => "by a signal".to_owned(),
    };
    context.ui.warn(format!("{} ended {end_text}", ended.agent));
    if ended.resumed {
        context.ui.hint(hint!("start a new session: git proq supervise --new"));
    }
    Ok(Exit::Agent)
}

fn print_plan(context: &CommandContext, plan: &SupervisePlan) {
    let session_text = match (plan.resumed, &plan.session) {
        (true, None) => "resuming its last session here".to_owned(),
        (true, Some(session)) => format!("resuming session {session}"),
        (false, Some(session)) => format!("in a new session {session}"),
        (false, None) => "in a new session".to_owned(),
    };
    let program = plan.program.display();
    context.ui.print_line(format!("would start {program}, {session_text}, with this prompt:"));
    context.ui.print_line("");
    context.ui.print_verbatim(plan.prompt.trim_end());
}
