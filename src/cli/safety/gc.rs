//! The `git proq gc` command: its arguments and its output.

use clap::Args;
use proq_base::explain::Exit;
use proq_base::hint;
use proq_lib::lane::context::expiry_item::{ExpiredGroup, ExpiryKind};
use proq_lib::lane::removal::trash_contents;
use proq_lib::lane::removal::trash_contents::TrashUsage;
use proq_lib::ops::remove::gc;
use proq_lib::ops::remove::gc::{GcOutcome, RetainedRow};
use proq_lib::ops::reporter::Progress;
use proq_lib::types::now;

use crate::cli::invocation::caller;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::terminal::ui;
use crate::cli::terminal::ui::Ui;

/// Delete expired snapshots, operations, and trash
///
/// Deletes folders of removed lanes after trash.keep days; operations, restored snapshots, and saved refs
/// whose commits a branch or tag also has, after op.keep days; check results after 30 days; and temporary
/// files of dead processes. Younger items, unreadable items, and commits that nothing else keeps stay, and
/// are listed with the size of the trash. `git proq cleanup` and `git proq merge` do most of this
/// automatically.
///
/// Examples:
///     git proq gc --dry-run
///     git proq gc --json | jq .bytes
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Gc {
    /// Show what would be done, without doing it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

pub(crate) fn run(context: &CommandContext, args: &Gc) -> CommandResult {
    let project = context.project_for_write()?;
    caller::refuse_lane_agent(args.dry_run)?;
    let reporter = |progress: Progress<'_>| match progress {
        Progress::Expired(group) if !context.ui.json => print_freed(context.ui, group, args.dry_run),
        _ => {}
    };
    let collect = if args.dry_run { gc::forecast } else { gc::execute };
    let outcome = collect(&project, &reporter)?;
    let exit = if outcome.failed { Exit::Refused } else { Exit::Success };
    context.show(&outcome, |context, outcome| print_retained(context.ui, outcome)).and(Ok(exit))
}

/// Prints the expired items of one kind; in a dry run, by name.
fn print_freed(ui: Ui, group: &ExpiredGroup, dry_run: bool) {
    let verb = if dry_run { "would free" } else { "freed" };
    let size = |bytes| if bytes == 0 { String::new() } else { format!(", {}", short_size(bytes)) };
    let (noun, origin, _) = words_of_kind(group.kind);
    let count = ui::pluralize(group.count, noun);
    ui.print_line(format!("{verb} {count} {origin}{}", size(group.bytes)));
    for item in group.items.iter().filter(|_| dry_run) {
        let age = ui::short_duration(now().duration_since(item.obsolete_since));
        ui.print_line(format!("  {} ({age} old{})", item.name, size(item.bytes)));
    }
}

/// Prints the retained items and the size of the trash.
fn print_retained(ui: Ui, outcome: &GcOutcome) {
    for RetainedRow { kind, name, reason, help } in &outcome.retained {
        let is_command = help.as_ref().is_some_and(|help| help.starts_with("git update-ref"));
        let prefix = if is_command { "delete it: " } else { "" };
        let help = help.as_ref().map(|help| format!("; {prefix}{help}")).unwrap_or_default();
        let (.., noun) = words_of_kind(*kind);
        ui.status(format!("kept {noun} {name}: {reason}{help}"));
    }
    if outcome.freed.is_empty() {
        ui.status("nothing has expired");
    } else if !outcome.dry_run && outcome.freed.iter().any(|group| group.kind != ExpiryKind::Trash) {
        ui.hint(hint!("free their objects in git too: git gc"));
    }
    let TrashUsage { count, bytes, reusable_folders: waiting } = &outcome.trash;
    if *count > 0 {
        let (lanes, size) = (ui::pluralize(count, "removed lane"), short_size(*bytes));
        let waiting = trash_contents::describe_waiting_folders(waiting);
        ui.status(format!("in the trash: {lanes}, {size}{waiting}"));
        ui.hint(hint!("empty the trash for good: PROQ_TRASH_KEEP=0 git proq gc"));
    }
}

/// Returns the noun for an expired item of a kind, what follows that noun, and the noun for a retained item.
fn words_of_kind(kind: ExpiryKind) -> (&'static str, &'static str, &'static str) {
    match kind {
        ExpiryKind::Trash => ("removed lane", "from the trash", "trash"),
        ExpiryKind::Snapshots => ("snapshot", "restored before", "snapshot"),
        ExpiryKind::Operations => ("operation", "from the log", "operation"),
        ExpiryKind::SavedRefs => ("saved ref", "whose commits are elsewhere", "ref"),
        ExpiryKind::OrphanOperationRefs => ("ref", "of deleted operations", "ref"),
        ExpiryKind::VerifyCache => ("result", "of checks", "result"),
        ExpiryKind::TempFiles => ("left-over", "of dead processes", "left-over"),
    }
}

/// Formats a number of bytes in decimal units: `512 B`, `20 kB`, `1.4 MB`.
fn short_size(bytes: u64) -> String {
    let mut unit = 1_000;
    if bytes < unit {
        return format!("{bytes} B");
    }
    for name in ["kB", "MB", "GB"] {
        let tenths = bytes / (unit / 10);
        if tenths < 100 {
            return format!("{}.{} {name}", tenths / 10, tenths % 10);
        }
        if tenths < 10_000 {
            return format!("{} {name}", tenths / 10);
        }
        unit *= 1_000;
    }
    format!("{} TB", bytes / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        for (bytes, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (4096, "4.0 kB"),
            (20_480, "20 kB"),
            (999_999, "999 kB"),
            (1_400_000, "1.4 MB"),
            (3_000_000_000, "3.0 GB"),
            (5_000_000_000_000, "5 TB"),
        ] {
            assert_eq!(short_size(bytes), text);
        }
    }
}
