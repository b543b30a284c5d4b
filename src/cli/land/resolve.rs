//! `git proq resolve`: its arguments, the ways to resolve a conflict, and its output.

use std::path::PathBuf;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_base::hint;
use proq_base::lane_name::LaneName;
use proq_lib::merge::resolution::resolve::ResolvedConflict;
use proq_lib::merge::types::resolver::Allowance;
use proq_lib::ops::land::resolve;
use proq_lib::ops::land::resolve::{RecordedConflict, ResolveMethod, ResolveOutcome, ResolveRequest};
use proq_lib::types::RepoPath;

use crate::cli::arguments::candidates::{installed_agent_names, owned_lane_names};
use crate::cli::arguments::run_args::{RunArgs, refuse_full_permission};
use crate::cli::invocation::caller;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::terminal::ui;
use crate::cli::terminal::ui::Ui;

/// Resolve a lane's conflict
///
/// The lane's branch is checked out in a worktree of its own, .proq-worktrees/.resolve/LANE, and git merges
/// the base into it, so that rerere and merge drivers apply. The result becomes the lane's new tip once it
/// is validated: no conflict marker is left, no other file was changed, and the other changes of both sides
/// are still there. An agent may drop neither side; you may. Then the lane can merge.
///
/// Without options, shows the conflict and how to resolve it. Nothing in that worktree is ever lost: an
/// aborted resolution is kept, and `git proq undo` undoes a finished one.
///
/// Exits with 3 if every resolution of an agent was refused.
///
/// Examples:
///     git proq resolve payments --agent claude --retries 1
///     git proq resolve payments --shell
///     git proq resolve payments --continue
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
#[command(group = clap::ArgGroup::new("way").args(["agent", "shell", "tool", "continue_resolution", "abort"]))]
pub(crate) struct Resolve {
    /// Lane name [default: lane of the current folder]
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(owned_lane_names))]
    pub(crate) lane: Option<String>,
    /// Let AGENT resolve the conflict
    #[arg(long, value_name = "AGENT", add = ArgValueCompleter::new(installed_agent_names))]
    pub(crate) agent: Option<String>,
    /// Open a shell in the conflicted worktree, then --continue
    #[arg(long)]
    pub(crate) shell: bool,
    /// Run `git mergetool`, then --continue
    ///
    /// With TOOL, or with the tool that git is configured to use.
    #[arg(long, value_name = "TOOL", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) tool: Option<String>,
    /// Validate the resolution and commit it to the lane
    #[arg(long = "continue")]
    pub(crate) continue_resolution: bool,
    /// Abort the resolution (your work is kept)
    #[arg(long)]
    pub(crate) abort: bool,
    /// Attempts after a refused resolution of the agent
    #[arg(
        long,
        hide_short_help = true,
        value_name = "N",
        default_value_t = 0,
        hide_default_value = true,
        requires = "agent"
    )]
    pub(crate) retries: u32,
    /// What the agent's run is to be like
    #[command(flatten)]
    pub(crate) run_args: RunArgs,
    /// Accept PATH whatever was changed in it [can be repeated]
    #[arg(long, value_name = "PATH", conflicts_with = "abort", requires = "way")]
    pub(crate) allow: Vec<PathBuf>,
    /// Accept changes to files that are not in conflict
    #[arg(long, hide_short_help = true, conflicts_with = "abort", requires = "way")]
    pub(crate) allow_other_changes: bool,
    /// Show what would be done, without doing it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

impl Resolve {
    fn request(&self, lane: &str, method: ResolveMethod) -> ResolveRequest {
        let paths = self.allow.iter().filter_map(|path| RepoPath::from_path(path)).collect();
        let allowance = Allowance { paths, other_files: self.allow_other_changes };
        ResolveRequest { lane: lane.to_owned(), method, allowance }
    }

    /// Returns the way to resolve the conflict; none if the flags name none.
    fn method(&self, context: &CommandContext) -> Option<ResolveMethod> {
        match (&self.agent, &self.tool) {
            _ if self.abort => Some(ResolveMethod::Abort),
            (Some(agent), _) => Some(ResolveMethod::Agent {
                agent: agent.clone(),
                retries: self.retries,
                run_options: self.run_args.run_options(),
                current_dir: context.dir.clone(),
            }),
            _ if self.continue_resolution => Some(ResolveMethod::Continue),
            (None, Some(tool)) => Some(ResolveMethod::MergeTool(tool.clone())),
            (None, None) => self.shell.then_some(ResolveMethod::Shell),
        }
    }
}

pub(crate) fn run(context: &CommandContext, args: &Resolve) -> CommandResult {
    let Some(method) = args.method(context).filter(|_| !args.dry_run) else {
        return show_conflict(context, args);
    };
    let project = context.project_for_write()?;
    let names = caller::whole_names(&project, &[caller::lane_or_current(&project, args.lane.as_ref())?]);
    caller::refuse_agent_for_other_lanes(&names, args.dry_run)?;
    if let ResolveMethod::Agent { run_options, .. } = &method {
        refuse_full_permission(context, &project, run_options)?;
    }
    let outcome = resolve::plan(&project, args.request(&names[0], method))?.execute(&project, context)?;
    context.show(&outcome, |context, outcome| match outcome {
        ResolveOutcome::Resolved { resolved, .. } => print_resolved(context.ui, resolved),
        ResolveOutcome::Aborted { lane, onto, saved_ref, .. } => {
            context
                .ui
                .print_line(format!("aborted the resolution: lane '{lane}' conflicts with {onto} as before"));
            if let Some(saved) = saved_ref {
                context.ui.status(format!("your work is kept: git show {saved}"));
            }
            context.ui.hint(hint!("restore it: git proq undo"));
        }
    })
}

fn print_resolved(ui: Ui, resolved: &ResolvedConflict) {
    let ResolvedConflict { lane, onto, commit, resolver: by, files } = resolved;
    ui.print_line(match commit {
        None => format!("lane '{lane}' does not conflict with {onto} any more"),
        Some(commit) => {
            let resolver_suffix = match by.as_deref() {
                Some("hand") | None => String::new(),
                Some("git") => " from git's recorded resolutions".to_owned(),
                Some(agent) => format!(" by {agent}"),
            };
            let (commit, files) = (commit.short(), ui::pluralize(files.len(), "file"));
            format!(
                "resolved{resolver_suffix}: merged {onto} into lane '{lane}' ({commit}); {files} conflicted"
            )
        }
    });
    ui.hint(hint!("show it: git proq diff {lane}"));
    ui.hint(hint!("merge it: git proq merge {lane}"));
}

/// Prints the conflict and the ways to resolve it; with `--dry-run`, what the other flags would do. Changes
/// nothing.
fn show_conflict(context: &CommandContext, args: &Resolve) -> CommandResult {
    let project = context.project()?;
    let name = caller::lane_or_current(&project, args.lane.as_ref())?;
    let conflict = match args.method(context) {
        Some(method) => resolve::plan(&project, args.request(&name, method))?.forecast(&project)?,
        None => resolve::find_conflict(&project, &name)?,
    };
    let conflict = RecordedConflict { dry_run: args.dry_run, ..conflict };
    context.show(&conflict, |context, conflict| match args.dry_run {
        true => context.ui.print_line(describe_plan(args, &conflict.lane, &conflict.onto)),
        false => print_conflict(context.ui, conflict),
    })
}

/// Describes in one sentence what the command would do, for `--dry-run`.
fn describe_plan(args: &Resolve, lane: &LaneName, onto: &str) -> String {
    let act = match (&args.agent, args.abort, args.continue_resolution) {
        (_, true, _) => {
            return format!("would abort the resolution of lane '{lane}', and keep your work");
        }
        (_, _, true) => format!("validate the resolution of lane '{lane}'"),
        (agent, ..) => {
            let resolver = agent.as_ref().map_or("open it for you".to_owned(), |agent| {
                let runs = ui::pluralize(u64::from(args.retries) + 1, "run");
                format!("let {agent} resolve it in up to {runs}")
            });
            format!("merge {onto} into lane '{lane}' in a worktree of its own, {resolver}")
        }
    };
    format!("would {act}; a valid result becomes the lane's new tip")
}

fn print_conflict(ui: Ui, conflict: &RecordedConflict) {
    let RecordedConflict { lane, onto, .. } = conflict;
    let files = ui::pluralize(conflict.files.len(), "file");
    ui.print_line(format!("lane '{lane}' conflicts with {onto} in {files}"));
    ui.print_each("  ", conflict.messages.iter().take(20));
    ui.print_line("");
    let print_option = |flags: &str, purpose: &str| {
        ui.print_line(format!("  {purpose}: git proq resolve {lane} {flags}"));
    };
    if let Some(worktree) = &conflict.worktree {
        ui.print_line(format!("It is open in {}\n", worktree.display()));
        print_option("--continue", "validate it and commit it to the lane");
        print_option("--abort", "abort it and keep your work");
    }
    print_option("--agent claude", "let an agent resolve it");
    print_option("--shell", "resolve it in a shell");
    print_option("--tool", "resolve it in your merge tool");
}
