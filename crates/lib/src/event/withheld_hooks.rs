//! Hooks that were set while an agent ran. Their author is unknown, so they need approval like those of a
//! repository.

use proq_base::config::layers::Layers;
use proq_base::fail_points;
use proq_store::base::record::Record;
use proq_store::locks::lock::LockName;
use proq_store::paths::layout::Layout;
use proq_store::records::git_guard::{GitGuardRecord, WithheldHooks};
use proq_store::{Error, Store};

/// Returns the command lines of hooks in the user's settings, each preceded by its event and a space.
pub(crate) fn user_hook_lines(layers: &Layers) -> Vec<String> {
    let user_hooks = layers
        .user_settings()
        .filter_map(|(key, lines)| Some((key.strip_prefix("hook.")?.to_owned(), lines)));
    user_hooks
        .flat_map(|(event, lines)| {
            lines.lines().map(move |line| hook_entry(&event, line)).collect::<Vec<_>>()
        })
        .collect()
}

/// Withholds hook lines that were set while an agent ran, until they are approved.
///
/// # Errors
/// Fails when the list cannot be written.
pub(crate) fn withhold_hooks(store: &Store, lines: Vec<String>) -> Result<(), Error> {
    let path = store.layout().withheld_hooks_list();
    let _lock = store.locks().acquire(&LockName::Store)?;
    let mut withheld = WithheldHooks::load_if_exists(&path)?.unwrap_or_default();
    withheld.lines.retain(|line| !lines.contains(line));
    withheld.lines.extend(lines);
    withheld.save(&path)
}

/// Returns whether a hook line of the user's settings was set while an agent ran, or is new since an active
/// run started.
pub(super) fn is_withheld(layout: &Layout, event: &str, line: &str) -> bool {
    let entry = hook_entry(event, line);
    let is_new_since_run = Layout::entry_names(&layout.git_guards()).iter().any(|name| {
        let guard_dir = layout.git_guards().join(name);
        let Ok(Some(run)) = GitGuardRecord::load_if_exists(&Layout::git_guard_record(&guard_dir)) else {
            return false;
        };
        // This includes runs that were killed, until the next run processes their changes.
        run.settings.is_some_and(|own| !own.hook_lines.contains(&entry))
    });
    fail_points::hit("hooks.guards-read");
    // The list is read last: whoever removes a guard has written its new lines to the list before.
    is_new_since_run
        || match WithheldHooks::load_if_exists(&layout.withheld_hooks_list()) {
            Ok(held) => held.is_some_and(|held| held.lines.contains(&entry)),
            // An unreadable list may contain any line.
            Err(_) => true,
        }
}

/// Returns the line of the list for a hook: event, space, command line.
fn hook_entry(event: &str, line: &str) -> String {
    format!("{event} {}", line.trim())
}
