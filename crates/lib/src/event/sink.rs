//! Receivers of events: the trait of all sinks, and the sink that runs hooks.

use std::path::PathBuf;
use std::time::Duration;

use proq_base::config::layers::Layers;
use proq_base::config::settings::Settings;
use proq_git::Repo;
use proq_store::Store;

use super::approval::{Approvals, ShellCommand};
use super::hook;
use super::hook::{Hook, HookContext, is_executable_file};
use super::log::Event;

/// Receiver of events.
pub(super) trait Sink {
    /// Returns the name of the sink in the cursor, one of those that the dispatcher lists.
    fn name(&self) -> &'static str;

    /// Delivers an event, if the sink wants it.
    fn deliver(&self, store: &Store, event: &Event);
}

/// Hooks of events: commands from the settings, then the executable in `proq/hooks/`.
pub struct Hooks {
    /// Folder `proq/hooks/` with the executables.
    folder: PathBuf,
    commands_by_event: Vec<(String, Vec<ShellCommand>)>,
    working_dir: PathBuf,
    /// Time limit of one hook.
    timeout: Duration,
}

impl Hooks {
    /// Loads all hooks of a repository.
    pub fn load(
        repo: &Repo,
        store: &Store,
        approvals: &Approvals<'_>,
        layers: &Layers,
        settings: &Settings,
    ) -> Hooks {
        let lines =
            layers.hook_events().map(|event| (event.to_owned(), approvals.hook_commands(layers, event)));
        Hooks {
            folder: store.layout().user_hooks(),
            commands_by_event: lines.collect(),
            working_dir: repo.command_dir().to_owned(),
            timeout: settings.hook_timeout,
        }
    }

    /// Returns the hooks of one event, in order.
    pub(crate) fn hooks_for(&self, event: &str) -> Vec<Hook> {
        let lines =
            self.commands_by_event.iter().filter(|(name, _)| name == event).flat_map(|(_, lines)| lines);
        let executable = self.folder.join(event);
        lines
            .cloned()
            .map(Hook::Shell)
            .chain(is_executable_file(&executable).then_some(Hook::Executable(executable)))
            .collect()
    }
}

impl Sink for Hooks {
    fn name(&self) -> &'static str {
        "hooks"
    }

    fn deliver(&self, store: &Store, event: &Event) {
        let name = event.name.to_text();
        let event_label = format!("{} {name}", event.n);
        for hook in self.hooks_for(&name) {
            if let Hook::Shell(ShellCommand { approved: false, line, .. }) = &hook {
                hook::log(
                    store,
                    &event_label,
                    line,
                    "not run: you have not approved it (git proq approve)",
                    "",
                );
                continue;
            }
            let result = hook::run(
                &hook,
                &HookContext::for_event(store, event, &self.working_dir),
                self.timeout,
                &|| false,
            );
            hook::log(store, &event_label, &hook.label(), &result.exit_text(), result.output());
        }
    }
}
