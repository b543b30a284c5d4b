//! `git proq sync`: copies and links files of the main checkout into a lane again.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_base::hint;
use proq_base::lane_name::LaneName;
use proq_lib::lane::creation::sync_files;
use proq_lib::lane::creation::sync_files::SyncPlan;
use proq_lib::types::{RepoPath, list_paths};
use serde::Serialize;

use crate::cli::arguments::candidates::owned_lane_names;
use crate::cli::invocation::caller;
use crate::cli::invocation::context::{CommandContext, CommandResult};

/// Copy ignored files (such as .env) into a lane again
///
/// Copies the files that .worktreeinclude and lane.copy list, and links those that lane.link lists, as when
/// the lane was created: missing files, and files that were not changed in the lane since they were copied.
/// Other files that differ are listed and kept; with --force they are replaced too. Replaced files go to
/// the trash, and `git proq undo` restores them. Files that were deleted from the main checkout stay in the
/// lane. lane.setup commands do not run again.
///
/// Examples:
///     git proq sync payments
///     git proq sync payments --force
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct SyncArgs {
    /// Lane name [default: lane of the current folder]
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(owned_lane_names))]
    pub(crate) lane: Option<String>,
    /// Also replace files that were changed in the lane
    #[arg(long)]
    pub(crate) force: bool,
    /// Show what would be done, without doing it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Serialize)]
struct SyncOutput<'a> {
    lane: &'a LaneName,
    added: &'a [RepoPath],
    linked: &'a [RepoPath],
    /// Files that nobody had changed in the lane, copied again.
    renewed: &'a [RepoPath],
    /// Files that were changed in the lane and were replaced.
    replaced: &'a [RepoPath],
    /// Files that were changed in the lane and are kept.
    kept: &'a [RepoPath],
    dry_run: bool,
}

pub(crate) fn run(context: &CommandContext, args: &SyncArgs) -> CommandResult {
    let project = context.project_for_write()?;
    let name = caller::whole_names(&project, &[caller::lane_or_current(&project, args.lane.as_ref())?]);
    caller::refuse_agent_for_other_lanes(&name, args.dry_run)?;
    let (lane, lock) = project.lock_idle_lane(&project.find_lane(&name[0])?.name)?;
    let plan = sync_files::plan(&project, &lane)?;
    if !args.dry_run && !plan.is_up_to_date(args.force) {
        sync_files::sync(&project, &lane, &lock, &plan, args.force)?;
    }
    drop(lock);
    let SyncPlan { missing: added, missing_links: linked, outdated: renewed, conflicting, .. } = &plan;
    let (replaced, kept) = if args.force { (&conflicting[..], &[][..]) } else { (&[][..], &conflicting[..]) };
    let dry_run = args.dry_run;
    let output = SyncOutput { lane: &lane.name, added, linked, renewed, replaced, kept, dry_run };
    context.show(output, |context, output| print_sync(context, &output, plan.is_up_to_date(args.force)))
}

fn print_sync(context: &CommandContext, output: &SyncOutput<'_>, is_up_to_date: bool) {
    let SyncOutput { lane, added, linked, renewed, replaced, kept, dry_run } = output;
    let verb = if *dry_run { "would be " } else { "" };
    let parts = [(added, "added"), (linked, "linked"), (renewed, "renewed"), (replaced, "replaced")];
    for (paths, label) in parts.iter().filter(|(paths, _)| !paths.is_empty()) {
        context.ui.print_line(format!("{verb}{label}: {}", list_paths(paths)));
    }
    if is_up_to_date {
        let rest = if kept.is_empty() { "" } else { ", apart from its own versions" };
        context.ui.print_line(format!("lane '{lane}' is up to date{rest}"));
    }
    if !kept.is_empty() {
        context.ui.warn(format!("kept the lane's own version of: {}", list_paths(kept)));
        context.ui.hint(hint!("replace them anyway: git proq sync {lane} --force"));
    }
}
