//! The `git proq gc` command: its arguments and its output.

use clap::Args;
use proq_base::explain::{Exit, Explain};
use proq_lib::lane;
use proq_lib::lane::Project;
use proq_lib::lane::context::expiry_item::{ExpiredItem, ExpiryKind, ExpiryScan, RetainedItem};
use proq_lib::lane::removal::trash_contents::TrashUsage;
use proq_lib::lane::removal::{expire, trash_contents};
use proq_store::base::clock::{Moment, now};
use serde::Serialize;

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

#[derive(Serialize)]
struct GcOutput {
    freed: Vec<FreedGroup>,
    /// Freed bytes on disk. git itself frees objects, once no ref retains them.
    bytes: u64,
    #[serde(rename = "kept")]
    retained: Vec<RetainedRow>,
    /// The current contents of the trash, which are too young to delete.
    trash: TrashUsage,
    dry_run: bool,
}

#[derive(Serialize)]
struct FreedGroup {
    /// Kind of the items: `trash`, `snapshots`, `operations`, `saved-refs`, `operation-refs`, `checks` or
    /// `drafts`.
    kind: &'static str,
    count: usize,
    bytes: u64,
    items: Vec<FreedItem>,
}

#[derive(Serialize)]
struct FreedItem {
    name: String,
    /// Time since which the item has been obsolete.
    #[serde(rename = "at")]
    obsolete_since: Moment,
    bytes: u64,
}

#[derive(Serialize)]
struct RetainedRow {
    kind: &'static str,
    name: String,
    #[serde(rename = "why")]
    reason: String,
    /// Command that deletes the item, or a hint on what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<String>,
}

pub(crate) fn run(context: &CommandContext, args: &Gc) -> CommandResult {
    let project = context.project_for_write()?;
    caller::refuse_lane_agent(args.dry_run)?;
    let (dry_run, trash) = (args.dry_run, TrashUsage::default());
    let mut output = GcOutput { freed: Vec::new(), bytes: 0, retained: Vec::new(), trash, dry_run };
    let mut failed = false;
    for kind in ExpiryKind::ALL {
        let ExpiryScan { expired: expired_items, retained: retained_items } =
            expire::find_expired(&project, kind)?;
        let mut items = Vec::new();
        for expired_item in &expired_items {
            proq_base::interrupt::require_no_signal()?;
            match delete_expired_item(&project, expired_item, args.dry_run) {
                Ok(item) => items.extend(item),
                Err(e) => {
                    failed = true;
                    let help = e.hints().first().map(ToString::to_string);
                    output.retained.push(RetainedRow {
                        kind: kind_json_name(kind),
                        name: expired_item.name.clone(),
                        reason: error_text(&e),
                        help,
                    });
                }
            }
        }
        let to_retained = |RetainedItem { name, reason: why, remedy_command: help }| RetainedRow {
            kind: kind_json_name(kind),
            name,
            reason: why,
            help,
        };
        output.retained.extend(retained_items.into_iter().map(to_retained));
        if !items.is_empty() {
            let bytes = items.iter().map(|item| item.bytes).sum();
            output.bytes += bytes;
            print_freed(context, kind, &items, bytes, args.dry_run);
            output.freed.push(FreedGroup { kind: kind_json_name(kind), count: items.len(), bytes, items });
        }
    }
    let trash_groups = output.freed.iter().filter(|group| group.kind == kind_json_name(ExpiryKind::Trash));
    let mut excluded_names: Vec<String> =
        trash_groups.flat_map(|group| &group.items).map(|item| item.name.clone()).collect();
    // Items that stay in the trash whatever their age are not counted: no cleanup deletes them.
    excluded_names.extend(
        output
            .retained
            .iter()
            .filter(|item| item.kind == kind_json_name(ExpiryKind::Trash))
            .map(|item| item.name.clone()),
    );
    output.trash = trash_contents::trash_usage(&project, &excluded_names)?;
    print_json_or_retained(context, output);
    Ok(if failed { Exit::Refused } else { Exit::Success })
}

/// Prints the JSON output, or the retained items and the size of the trash.
fn print_json_or_retained(context: &CommandContext, output: GcOutput) {
    if context.ui.json {
        context.ui.print_json(output);
    } else {
        for item in &output.retained {
            let is_command = item.help.as_ref().is_some_and(|help| help.starts_with("git update-ref"));
            let prefix = if is_command { "delete it: " } else { "" };
            let help = item.help.as_ref().map_or_else(String::new, |help| format!("; {prefix}{help}"));
            context.ui.status(format!(
                "kept {} {}: {}{help}",
                noun_of_kind(item.kind),
                item.name,
                item.reason
            ));
        }
        if output.freed.is_empty() {
            context.ui.status("nothing is old enough to go");
        } else if !output.dry_run && output.freed.iter().any(|group| group.kind != "trash") {
            context.ui.hint("what git keeps of them goes with its own clean-up: git gc");
        }
        let TrashUsage { count, bytes, reusable_folders: waiting } = output.trash;
        if count > 0 {
            let (lanes, size) = (ui::pluralize(count, "removed lane"), ui::short_size(bytes));
            context.ui.status(format!(
                "in the trash for now: {lanes}, {size}{}",
                trash_contents::describe_waiting_folders(&waiting)
            ));
            context.ui.hint("free that too, for good: PROQ_TRASH_KEEP=0 git proq gc");
        }
    }
}

/// Deletes an expired item and returns it; `None` if another process deleted or restored it concurrently. A
/// dry run only returns the item.
fn delete_expired_item(
    project: &Project,
    expired_item: &ExpiredItem,
    dry_run: bool,
) -> Result<Option<FreedItem>, lane::Error> {
    let item = FreedItem {
        name: expired_item.name.clone(),
        obsolete_since: expired_item.age_start,
        bytes: expired_item.disk_size(&project.store),
    };
    Ok((dry_run || expired_item.delete(project)?).then_some(item))
}

fn print_freed(context: &CommandContext, kind: ExpiryKind, items: &[FreedItem], bytes: u64, dry_run: bool) {
    if context.ui.json {
        return;
    }
    let verb = if dry_run { "would free" } else { "freed" };
    let size = if bytes == 0 { String::new() } else { format!(", {}", ui::short_size(bytes)) };
    context.ui.print_line(format!("{verb} {}{size}", expired_count_text(kind, items.len())));
    for item in items.iter().filter(|_| dry_run) {
        let size = if item.bytes == 0 { String::new() } else { format!(", {}", ui::short_size(item.bytes)) };
        context.ui.print_line(format!(
            "  {} ({} old{size})",
            item.name,
            ui::short_duration(now().duration_since(item.obsolete_since))
        ));
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

/// Returns the name of a kind of expired items in the JSON output.
fn kind_json_name(kind: ExpiryKind) -> &'static str {
    match kind {
        ExpiryKind::Trash => "trash",
        ExpiryKind::Snapshots => "snapshots",
        ExpiryKind::Operations => "operations",
        ExpiryKind::SavedRefs => "saved-refs",
        ExpiryKind::OrphanOperationRefs => "operation-refs",
        ExpiryKind::VerifyCache => "checks",
        ExpiryKind::TempFiles => "drafts",
    }
}

/// Returns the noun for one item of a kind, from the name of the kind in the JSON output.
fn noun_of_kind(key: &str) -> &str {
    match key {
        "snapshots" => "snapshot",
        "operations" => "operation",
        "saved-refs" | "operation-refs" => "ref",
        "checks" => "result",
        "drafts" => "left-over",
        other => other,
    }
}

/// Formats an error with its cause in one line.
fn error_text(error: &lane::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error} ({cause})"),
        None => error.to_string(),
    }
}
