//! The `git proq gc` command: its arguments and its output.

use clap::Args;
use proq_base::explain::Exit;
use proq_lib::lane::context::expiry_item::{ExpiredGroup, ExpiryKind};
use proq_lib::lane::removal::trash_contents;
use proq_lib::lane::removal::trash_contents::TrashUsage;
use proq_lib::ops::remove::gc;
use proq_lib::ops::remove::gc::GcOutcome;
use proq_lib::ops::reporter::{Progress, Reporter};
use proq_lib::types::now;

use crate::cli::invocation::caller;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::terminal::ui;

/// Free what was kept for a time and is old now
///
/// Goes: removed lanes' folders after trash.keep days; after op.keep days operations, snapshots that came back, and saved
/// refs whose commits a branch or tag has too; results of checks after 30 days; and what dead processes had begun to
/// write. What is younger, what cannot be read, and commits that nothing else keeps stay; those are named, and how much room
/// the trash takes, in which folders of landed lanes wait for new ones. cleanup and merge do most of this by themselves.
///
/// Examples:
///     git proq gc --dry-run
///     git proq gc --json | jq .bytes
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Gc {
    /// Say what would go, by name, and free nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Prints the expired items of each kind.
struct GcReporter<'a> {
    context: &'a CommandContext,
    dry_run: bool,
}

impl Reporter for GcReporter<'_> {
    fn progress(&self, progress: Progress<'_>) {
        match progress {
            Progress::Expired(group) if !self.context.ui.json => self.print_freed(group),
            _ => {}
        }
    }
}

impl GcReporter<'_> {
    fn print_freed(&self, group: &ExpiredGroup) {
        let verb = if self.dry_run { "would free" } else { "freed" };
        let size = |bytes| if bytes == 0 { String::new() } else { format!(", {}", ui::short_size(bytes)) };
        let count_text = expired_count_text(group.kind, group.count);
        self.context.ui.print_line(format!("{verb} {count_text}{}", size(group.bytes)));
        for item in group.items.iter().filter(|_| self.dry_run) {
            let age = ui::short_duration(now().duration_since(item.obsolete_since));
            self.context.ui.print_line(format!("  {} ({age} old{})", item.name, size(item.bytes)));
        }
    }
}

pub(crate) fn run(context: &CommandContext, args: &Gc) -> CommandResult {
    let project = context.project_for_write()?;
    caller::refuse_lane_agent(args.dry_run)?;
    let reporter = GcReporter { context, dry_run: args.dry_run };
    let outcome = match args.dry_run {
        true => gc::forecast(&project, &reporter)?,
        false => gc::execute(&project, &reporter)?,
    };
    let exit = if outcome.failed { Exit::Refused } else { Exit::Success };
    if context.ui.json {
        context.ui.print_json(outcome);
    } else {
        print_retained(context, &outcome);
    }
    Ok(exit)
}

/// Prints the retained items and the size of the trash.
fn print_retained(context: &CommandContext, outcome: &GcOutcome) {
    for item in &outcome.retained {
        let is_command = item.help.as_ref().is_some_and(|help| help.starts_with("git update-ref"));
        let prefix = if is_command { "delete it: " } else { "" };
        let help = item.help.as_ref().map_or_else(String::new, |help| format!("; {prefix}{help}"));
        let noun = noun_of_kind(item.kind);
        context.ui.status(format!("kept {noun} {}: {}{help}", item.name, item.reason));
    }
    if outcome.freed.is_empty() {
        context.ui.status("nothing is old enough to go");
    } else if !outcome.dry_run && outcome.freed.iter().any(|group| group.kind != ExpiryKind::Trash) {
        context.ui.hint("what git keeps of them goes with its own clean-up: git gc");
    }
    let TrashUsage { count, bytes, reusable_folders: waiting } = &outcome.trash;
    if *count > 0 {
        let (lanes, size) = (ui::pluralize(*count, "removed lane"), ui::short_size(*bytes));
        context.ui.status(format!(
            "in the trash for now: {lanes}, {size}{}",
            trash_contents::describe_waiting_folders(waiting)
        ));
        context.ui.hint("free that too, for good: PROQ_TRASH_KEEP=0 git proq gc");
    }
}

/// Formats a number of expired items of a kind.
fn expired_count_text(kind: ExpiryKind, n: usize) -> String {
    match kind {
        ExpiryKind::Trash => format!("{} from the trash", ui::pluralize(n, "removed lane")),
        ExpiryKind::Snapshots => format!("{} that came back", ui::pluralize(n, "snapshot")),
        ExpiryKind::Operations => format!("{} from the log", ui::pluralize(n, "operation")),
        ExpiryKind::SavedRefs => format!("{} whose commits are elsewhere", ui::pluralize(n, "saved ref")),
        ExpiryKind::OrphanOperationRefs => format!("{} of operations that are gone", ui::pluralize(n, "ref")),
        ExpiryKind::VerifyCache => format!("{} of checks", ui::pluralize(n, "result")),
        ExpiryKind::TempFiles => format!("{} of dead processes", ui::pluralize(n, "left-over")),
    }
}

/// Returns the noun for one item of a kind.
fn noun_of_kind(kind: ExpiryKind) -> &'static str {
    match kind {
        ExpiryKind::Trash => "trash",
        ExpiryKind::Snapshots => "snapshot",
        ExpiryKind::Operations => "operation",
        ExpiryKind::SavedRefs | ExpiryKind::OrphanOperationRefs => "ref",
        ExpiryKind::VerifyCache => "result",
        ExpiryKind::TempFiles => "left-over",
    }
}
