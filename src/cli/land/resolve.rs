//! `git proq resolve`: its arguments, the ways to resolve a conflict, and its output.

use std::path::{Path, PathBuf};

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_base::explain::Exit;
use proq_base::lane_name::LaneName;
use proq_base::process::command_builder::CommandBuilder as Program;
use proq_git::{Repo, RepoPath};
use proq_lib::lane::Project;
use proq_lib::merge;
use proq_lib::merge::resolution::resolve::{ResolutionStart, ResolvedConflict};
use proq_lib::merge::resolution::{resolve, resolve_agent};
use proq_lib::merge::types::resolve_error::ResolveError;
use proq_lib::merge::types::resolver::{Allowance, Resolver};
use proq_store::paths::path_form;
use proq_store::records::conflict::{ConflictRecord, ResolutionRecord};
use serde::Serialize;

use crate::cli::arguments::candidates::{installed_agent_names, owned_lane_names};
use crate::cli::arguments::run_args::{RunArgs, refuse_full_permission};
use crate::cli::invocation::caller;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure::Failure;
use crate::cli::terminal::ui;

/// Resolve the conflict of a lane
///
/// The lane's branch is checked out in a worktree of its own, .proq-worktrees/.resolve/LANE, and git merges into it what
/// the lane is to land on, so that rerere and merge drivers act. What you or an agent make of it becomes the lane's new
/// tip when it is proved: no marker is left, nothing beside the conflict was changed, and both sides' other changes are
/// still there. An agent may drop neither side; you may. Then the lane can land.
///
/// Without a flag, says what the conflict is and what can be done. Nothing that is in that worktree is ever lost: what is
/// given up is kept, and `git proq undo` takes a resolution back.
///
/// Exits with 3 when an agent's resolution was refused in every try.
///
/// Examples:
///     git proq resolve payments --agent claude --retries 1
///     git proq resolve payments --shell
///     git proq resolve payments --continue
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
#[command(group = clap::ArgGroup::new("way").args(["agent", "shell", "tool", "continue_resolution", "abort"]))]
pub(crate) struct Resolve {
    /// The lane
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(owned_lane_names))]
    pub(crate) lane: String,
    /// Send AGENT at it: a known one or any program on PATH
    #[arg(long, value_name = "AGENT", add = ArgValueCompleter::new(installed_agent_names))]
    pub(crate) agent: Option<String>,
    /// Open a shell in it; when that ends, go on as with --continue
    #[arg(long)]
    pub(crate) shell: bool,
    /// Run `git mergetool` in it, with TOOL or the one that git is set up with, then go on as with --continue
    #[arg(long, value_name = "TOOL", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) tool: Option<String>,
    /// Make what is there the lane's new tip, if it is proved
    #[arg(long = "continue")]
    pub(crate) continue_resolution: bool,
    /// Give it up; all that was made of it is kept
    #[arg(long)]
    pub(crate) abort: bool,
    /// Try N times more when an agent's resolution is refused
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, requires = "agent")]
    pub(crate) retries: u32,
    /// What the agent's run is to be like
    #[command(flatten)]
    pub(crate) run_args: RunArgs,
    /// Accept PATH as it is, whatever was done to it (again for more)
    #[arg(long, value_name = "PATH", conflicts_with = "abort", requires = "way")]
    pub(crate) allow: Vec<PathBuf>,
    /// Accept changes of files that are not in conflict
    #[arg(long, conflicts_with = "abort", requires = "way")]
    pub(crate) allow_other_changes: bool,
    /// Say what would be done, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// JSON output after a resolution.
#[derive(Serialize)]
struct ResolveOutput<'a> {
    #[serde(flatten)]
    resolved: Option<&'a ResolvedConflict>,
    result: &'static str,
    dry_run: bool,
}

/// JSON output of a conflict's state, without an action or with `--dry-run`.
#[derive(Serialize)]
struct ConflictOutput<'a> {
    lane: &'a LaneName,
    onto: &'a str,
    result: &'static str,
    files: &'a [RepoPath],
    messages: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    worktree: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a str>,
    dry_run: bool,
}

/// JSON output of `--abort`.
#[derive(Serialize)]
struct AbortOutput<'a> {
    lane: &'a LaneName,
    result: &'static str,
    /// Ref that keeps what was made of the conflict.
    #[serde(rename = "saved", skip_serializing_if = "Option::is_none")]
    saved_ref: Option<&'a str>,
    /// Path of the resolution's worktree in the trash.
    #[serde(skip_serializing_if = "Option::is_none")]
    trash: Option<String>,
}

pub(crate) fn run(context: &CommandContext, args: &Resolve) -> CommandResult {
    let has_action =
        args.agent.is_some() || args.shell || args.tool.is_some() || args.continue_resolution || args.abort;
    if !has_action || args.dry_run {
        return show_conflict(context, args);
    }
    let project = context.project_for_write()?;
    caller::refuse_agent_for_other_lanes(std::slice::from_ref(&args.lane), args.dry_run)?;
    if args.abort {
        return abort_resolution(context, &project, args);
    }
    let allowance = Allowance {
        paths: args.allow.iter().filter_map(|path| RepoPath::from_path(path)).collect(),
        other_files: args.allow_other_changes,
    };
    let resolved = if let Some(agent) = &args.agent {
        // No worktree is made for an agent that could not be started.
        project.git_proq_path()?;
        let run_options = args.run_args.run_options();
        refuse_full_permission(context, &project, &run_options)?;
        let (retries, dir) = (args.retries, context.dir.as_path());
        let resolver =
            Resolver { agent, retries, allowance: &allowance, run_options: &run_options, current_dir: dir };
        resolve_agent::resolve_by_agent(&project, &args.lane, &resolver)?
    } else if args.continue_resolution {
        resolve::continue_resolution(&project, &project.find_lane(&args.lane)?.name, &allowance)?
    } else {
        match resolve::open_for_user(&project, &project.find_lane(&args.lane)?.name)? {
            ResolutionStart::Resolved(resolved) => resolved,
            ResolutionStart::Open(resolution) => {
                resolve_interactively(context, &project.repo, args, &resolution)?;
                resolve::continue_resolution(&project, &project.find_lane(&args.lane)?.name, &allowance)?
            }
        }
    };
    print_resolved(context, &resolved);
    Ok(Exit::Success)
}

/// Lets the user resolve the conflict in a shell or in a merge tool.
fn resolve_interactively(
    context: &CommandContext,
    repo: &Repo,
    args: &Resolve,
    resolution: &ResolutionRecord,
) -> Result<(), Failure> {
    context.ui.status(format!(
        "{} in {}:",
        conflict_heading(&resolution.conflicted_paths(), &resolution.onto),
        resolution.worktree_path.display()
    ));
    for message in &resolution.git_messages {
        context.ui.status(format!("  {message}"));
    }
    let result = if let Some(tool) = &args.tool {
        repo.run_merge_tool(&resolution.worktree_path, Some(tool)).map_err(Failure::from)
    } else {
        context.ui.status(
            "edit the files and take the markers out, then `exit`; what is not resolved then stays there",
        );
        let shell = std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
        let program = Program::new(Path::new(&shell), &resolution.worktree_path)
            .env("PROQ_LANE", resolution.lane.as_str());
        // The exit code of a shell is that of its last command: it does not show whether the conflict is
        // resolved.
        program.run_on_terminal().map(drop).map_err(Failure::from)
    };
    // A Ctrl-C in the shell or tool was meant for a program in there, not for git-proq.
    proq_base::interrupt::clear_signal();
    result
}

fn conflict_heading(files: &[RepoPath], onto: &str) -> String {
    format!("the conflict with {onto} in {} is laid out", ui::pluralize(files.len(), "file"))
}

fn print_resolved(context: &CommandContext, resolved: &ResolvedConflict) {
    let result = if resolved.commit.is_some() { "resolved" } else { "no-conflict" };
    if context.ui.json {
        context.ui.print_json(ResolveOutput { resolved: Some(resolved), result, dry_run: false });
        return;
    }
    let ResolvedConflict { lane, onto, commit, resolver: by, files } = resolved;
    match commit {
        None => context.ui.print_line(format!("lane '{lane}' does not conflict with {onto} any more")),
        Some(commit) => {
            let resolver_suffix = match by.as_deref() {
                Some("hand") | None => String::new(),
                Some("git") => " by what git knew from before".to_owned(),
                Some(agent) => format!(" by {agent}"),
            };
            let file_count = ui::pluralize(files.len(), "file");
            context.ui.print_line(format!(
                "resolved{resolver_suffix}: lane '{lane}' has {onto} in it now ({}), {file_count} that conflicted",
                commit.short()
            ));
        }
    }
    context.ui.hint(format!("look at it: git proq diff {lane}   land it: git proq merge {lane}"));
}

/// Gives up an open resolution: its work is saved, and the lane is in conflict as before.
fn abort_resolution(context: &CommandContext, project: &Project, args: &Resolve) -> CommandResult {
    let (resolution, closed) = resolve::abort_resolution(project, &project.find_lane(&args.lane)?.name)?;
    if context.ui.json {
        let trash = closed.trash_entry.as_deref().map(path_form::to_text);
        let saved = closed.saved_ref.as_deref();
        context.ui.print_json(AbortOutput {
            lane: &resolution.lane,
            result: "aborted",
            saved_ref: saved,
            trash,
        });
        return Ok(Exit::Success);
    }
    context.ui.print_line(format!(
        "given up: lane '{}' is in conflict with {} as before",
        resolution.lane, resolution.onto
    ));
    if let Some(saved) = &closed.saved_ref {
        context.ui.status(format!("what was made of it is kept: git show {saved}"));
    }
    context.ui.hint("bring it back: git proq undo");
    Ok(Exit::Success)
}

/// Prints the conflict and the ways to resolve it; with `--dry-run`, what the other flags would do. Changes
/// nothing.
fn show_conflict(context: &CommandContext, args: &Resolve) -> CommandResult {
    let project = context.project()?;
    let (lane, resolution) = resolve_agent::load_resolution(&project, &project.find_lane(&args.lane)?.name)?;
    let conflict = resolve::load_conflict(&project.store, &lane.name)?;
    if let (true, None) = (args.continue_resolution || args.abort, &resolution) {
        return Err(merge::Error::from(ResolveError::NotOpen { lane: lane.name }).into());
    }
    if context.ui.json {
        context.ui.print_json(ConflictOutput {
            lane: &lane.name,
            onto: &conflict.onto,
            result: if resolution.is_some() { "open" } else { "conflict" },
            files: &conflict.paths,
            messages: &conflict.git_messages,
            worktree: resolution.as_ref().map(|resolution| path_form::to_text(&resolution.worktree_path)),
            agent: resolution.as_ref().and_then(|resolution| resolution.agent.as_deref()),
            dry_run: args.dry_run,
        });
        return Ok(Exit::Success);
    }
    if args.dry_run {
        context.ui.print_line(describe_plan(args, &lane.name, &conflict.onto));
        return Ok(Exit::Success);
    }
    print_conflict(context, &lane.name, &conflict, resolution.as_ref());
    Ok(Exit::Success)
}

/// Describes in one sentence what the command would do, for `--dry-run`.
fn describe_plan(args: &Resolve, lane: &LaneName, onto: &str) -> String {
    let new_tip_clause = "and make what comes of it the lane's new tip, if it is proved";
    match (&args.agent, args.abort, args.continue_resolution) {
        (_, true, _) => format!("would give up what is laid out of the conflict of lane '{lane}', all kept"),
        (_, _, true) => {
            format!("would judge what is laid out of the conflict of lane '{lane}', {new_tip_clause}")
        }
        (Some(agent), ..) => format!(
            "would merge {onto} into lane '{lane}' in a worktree of its own, send {agent} at it in up to {}, {new_tip_clause}",
            ui::pluralize(usize::try_from(args.retries).unwrap_or(usize::MAX).saturating_add(1), "run")
        ),
        _ => format!(
            "would merge {onto} into lane '{lane}' in a worktree of its own, open it for you, {new_tip_clause}"
        ),
    }
}

fn print_conflict(
    context: &CommandContext,
    lane: &LaneName,
    conflict: &ConflictRecord,
    resolution: Option<&ResolutionRecord>,
) {
    context.ui.print_line(format!(
        "lane '{lane}' conflicts with {} in {}",
        conflict.onto,
        ui::pluralize(conflict.paths.len(), "file")
    ));
    for message in conflict.git_messages.iter().take(20) {
        context.ui.print_line(format!("  {message}"));
    }
    context.ui.print_line("");
    let print_option = |flags: &str, description: &str| {
        context.ui.print_line(format!("  {:<44} {description}", format!("git proq resolve {lane} {flags}")));
    };
    if let Some(resolution) = resolution {
        context.ui.print_line(format!("It is laid out in {}", resolution.worktree_path.display()));
        context.ui.print_line("");
        print_option("--continue", "take what is there, if it is proved");
        print_option("--abort", "give it up; all that was made is kept");
    }
    print_option("--agent claude", "send an agent at it");
    print_option("--shell", "resolve it in a shell");
    print_option("--tool", "resolve it in your merge tool");
}
