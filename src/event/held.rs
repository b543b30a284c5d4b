//! Owns hooks that were set while an agent ran: who it was is not known, so that they need approval like those of a repository.

use crate::config::Layers;
use crate::store::records::{FenceRecord, HeldHooks};
use crate::store::{Error, Layout, LockName, Record, Store};

/// The command lines of hooks in the user's own settings, each behind its event and a space.
pub(crate) fn own_hook_lines(layers: &Layers) -> Vec<String> {
    let hooks = layers.own().filter_map(|(key, lines)| Some((key.strip_prefix("hook.")?.to_owned(), lines)));
    hooks
        .flat_map(|(event, lines)| lines.lines().map(move |line| named(&event, line)).collect::<Vec<_>>())
        .collect()
}

/// Notes lines that were set while an agent ran.
///
/// # Errors
/// When that cannot be written.
pub(crate) fn hold_hooks(store: &Store, lines: Vec<String>) -> Result<(), Error> {
    let path = store.layout().held_hooks();
    let _lock = store.locks().take(&LockName::Store)?;
    let mut held = HeldHooks::find(&path)?.unwrap_or_default();
    held.lines.retain(|line| !lines.contains(line));
    held.lines.extend(lines);
    held.save(&path)
}

/// Whether a line of the user's own settings was set while an agent ran, or is new since one began that runs now.
pub(super) fn is_held(layout: &Layout, event: &str, line: &str) -> bool {
    let line = named(event, line);
    let held = match HeldHooks::find(&layout.held_hooks()) {
        Ok(held) => held.is_some_and(|held| held.lines.contains(&line)),
        // What cannot be read may have any of them.
        Err(_) => true,
    };
    held || layout.names_in("fences").iter().any(|name| {
        let fence = layout.folder_of("fences", name);
        let Ok(Some(run)) = FenceRecord::find(&Layout::fence_record(&fence)) else { return false };
        // Also of one that was killed: the next run draws its consequences.
        run.own.is_some_and(|own| !own.hook_lines.contains(&line))
    })
}

fn named(event: &str, line: &str) -> String {
    format!("{event} {}", line.trim())
}
