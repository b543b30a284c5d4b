//! Start of the event dispatcher, and the check whether an event is due. Where no sink is enabled, this costs
//! one check for a file.

use std::path::Path;

use proq_base::config::layers::Layers;
use proq_base::config::settings::NotifySettings;
use proq_base::process::command_builder::CommandBuilder;
use proq_base::process::strays::RUN_CONTEXT_VARS;
use proq_store::Store;
use proq_store::locks::lock::LockName;

use super::cursor::DispatchCursor;
use super::hook::is_executable_file;
use super::log::{Event, EventName};
use super::notify::LocalNotifier;
use super::program_info::{are_hooks_disabled, program_path};

/// Hooks that run before an action and can refuse it.
const PRE_HOOKS: &[&str] = &["pre-merge", "pre-remove", "pre-spawn"];

/// Returns whether hooks can be set for an event or action of this name.
pub(crate) fn is_hook_event(event: &str) -> bool {
    PRE_HOOKS.contains(&event) || EventName::parse(event).is_some()
}

/// Returns whether a hook is set for an event, or for an action without an event (`pre-…`).
pub fn has_hook(store: &Store, layers: &Layers, event: &str) -> bool {
    layers.hook_commands(event).is_some() || is_executable_file(&store.layout().user_hook(event))
}

/// Returns whether any sink wants an event.
pub fn is_due(store: &Store, layers: &Layers, notify: &NotifySettings, event: &Event) -> bool {
    let name = event.name.to_text();
    let has_webhook = notify.webhook.is_some() || notify.slack.is_some();
    let is_notified = || {
        notify.notifies_about(&name, event.state.as_deref())
            && (has_webhook || LocalNotifier::is_enabled(notify))
    };
    !are_hooks_disabled() && (has_hook(store, layers, &name) || is_notified())
}

/// Starts the dispatcher, if an event is due and no dispatcher runs. The caller does not wait for it. Events
/// that cannot be delivered now stay due.
pub(crate) fn start_dispatcher(store: &Store, working_dir: &Path) {
    let Some(Ok(program_path)) = program_path() else { return };
    let is_free = || store.locks().is_held(&LockName::Dispatch).is_ok_and(|held| !held);
    if !are_hooks_disabled() && DispatchCursor::exists(store) && is_free() {
        drop(
            CommandBuilder::new(program_path, working_dir)
                .args(["_dispatch"])
                .without_vars(RUN_CONTEXT_VARS)
                .spawn_detached(),
        );
    }
}
