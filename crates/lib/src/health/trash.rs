//! Health checks of the trash: each entry can be read and is complete, and the ref that keeps its commits
//! exists.

use proq_base::explain::shell_quote_path as quoted;
use proq_store::base::record::Record;
use proq_store::paths::layout::Layout;
use proq_store::records::trash::TrashRecord;

use super::check_context::CheckContext;
use super::finding::Finding;
use crate::lane::context::expiry_item;
use crate::lane::removal::expire;

/// Checks every entry of the trash.
pub(super) fn check(context: &CheckContext<'_>) -> Vec<Finding> {
    let layout = context.project.store.layout();
    let mut out = Vec::new();
    for name in Layout::entry_names(&layout.trash()) {
        let dir = layout.trash().join(&name);
        let subject = format!("trash {name}");
        let list_command = format!("ls -la {}", quoted(&dir));
        match TrashRecord::load_if_exists(&Layout::trash_record_in(&dir)) {
            Err(e) => {
                out.push(
                    Finding::from_error("trash-record", subject, &e)
                        .with_left_reason("the files beside it are safe"),
                );
            }
            Ok(None) => {
                let message = format!("{} has removed files without a record", dir.display());
                out.push(
                    Finding::error("trash-record", subject, message)
                        .with_help(list_command)
                        .with_left_reason("its files may be yours"),
                );
            }
            Ok(Some(record)) => {
                out.extend(check_entry(context, &subject, &dir, &record));
            }
        }
    }
    let expired = expire::find_expired(context.project, expiry_item::ExpiryKind::Trash)
        .map_or(0, |old| old.expired.len());
    if expired > 0 {
        let message =
            format!("{expired} of the trash is older than trash.keep and is deleted by the next cleanup");
        out.push(Finding::info("trash-expired", "trash", message).with_help("git proq gc"));
    }
    out
}

/// Checks that the folder and git's admin folder of a trash entry are where its record has them.
fn check_entry(
    context: &CheckContext<'_>,
    subject: &str,
    entry_dir: &std::path::Path,
    record: &TrashRecord,
) -> Vec<Finding> {
    let mut out = Vec::new();
    let lane = &record.lane;
    // Another lane may have reused the folder.
    let is_reused = Layout::reused_trash_record_in(entry_dir).exists();
    if let Some(worktree) = record.current_path.as_ref().filter(|w| !w.exists() && !is_reused) {
        let message =
            format!("the folder of removed lane '{lane}' is not at {}, where it was put", worktree.display());
        out.push(
            Finding::error("trash-files", subject, message)
                .with_help(format!("ls -la {}", quoted(entry_dir)))
                .with_left_reason("you may have moved it on purpose"),
        );
    } else if record.current_path.is_some()
        && !record.worktree_id.is_empty()
        && !Layout::trash_admin_dir_in(entry_dir).exists()
    {
        let message =
            format!("git's part of removed lane '{lane}' is not in the trash; its files are, as plain files");
        out.push(
            Finding::warning("trash-files", subject, message).with_help(format!("ls {}", quoted(entry_dir))),
        );
    }
    // For an expired entry, other refs have the commits, or `gc` would have kept this ref.
    let is_expired = record.removed_at.is_older_than(context.project.settings.trash_keep);
    let is_missing = |saved: &&String| !is_expired && !context.refs.contains_key(*saved);
    if let Some(saved_ref) = record.saved_ref.as_ref().filter(is_missing) {
        let message = format!("{saved_ref}, which keeps the commits of removed lane '{lane}', is missing");
        let found = Finding::error("saved-ref", subject, message);
        out.push(match record.tip {
            Some(tip) if context.project.repo.has_object(tip) => found
                .with_help(format!("git branch {lane}-saved {}", tip.short_in_command()))
                .with_left_reason("you may have deleted it on purpose"),
            _ => found.with_left_reason("its commits are lost here; another clone may have them"),
        });
    }
    out
}
