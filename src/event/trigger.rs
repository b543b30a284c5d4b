//! Owns whether an event is due to anybody, and starting the process that hands it out. Where nobody wants one, it costs a
//! look for a file.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::notify::Local;
use super::{Cursor, Event, Name};
use crate::config::{Layers, Notify};
use crate::process::{OF_A_RUN, Start};
use crate::store::{LockName, Store};

/// The program as it was started.
static PROGRAM: OnceLock<AsStarted> = OnceLock::new();

struct AsStarted {
    exe: Option<PathBuf>,
    no_hooks: bool,
}

/// Says once where this program lies, and whether hooks are to be left out. Without it, as in somebody else's program, events
/// stay due until git-proq itself is next started.
pub(crate) fn set_program(exe: Option<PathBuf>, no_hooks: bool) {
    drop(PROGRAM.set(AsStarted { exe, no_hooks }));
}

/// Whether hooks are to be left out: `--no-hooks`, or `PROQ_NO_HOOKS`, which hooks themselves have.
pub(crate) fn no_hooks() -> bool {
    let said = std::env::var_os("PROQ_NO_HOOKS").is_some_and(|value| !value.is_empty() && value != "0");
    said || PROGRAM.get().is_some_and(|program| program.no_hooks)
}

/// What may be refused by a hook before it is done.
const BEFORE: &[&str] = &["pre-merge", "pre-remove", "pre-spawn"];

/// Whether there is anything of this name that a hook could run at.
pub(crate) fn has_hooks(event: &str) -> bool {
    BEFORE.contains(&event) || Name::parse(event).is_some()
}

/// Whether something is to be run at an event, or at what has no event of its own (`pre-…`).
pub(crate) fn has_hook(store: &Store, layers: &Layers, event: &str) -> bool {
    layers.hook(event).is_some() || is_program(&store.layout().hook(event))
}

/// Whether a file is there and may be executed.
pub(super) fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Whether an event is due to anybody.
pub(crate) fn is_due(store: &Store, layers: &Layers, notify: &Notify, event: &Event) -> bool {
    let name = event.name.text();
    let posts = notify.webhook.is_some() || notify.slack.is_some();
    let told = || notify.wants(&name, event.state.as_deref()) && (posts || Local::is_on(notify));
    !no_hooks() && (has_hook(store, layers, &name) || told())
}

/// Starts the process that hands out what is due, if something is and none is at it. Nobody waits for it; what cannot be
/// handed out now is due still.
pub(crate) fn wake(store: &Store, home: &Path) {
    let Some(AsStarted { exe: Some(exe), .. }) = PROGRAM.get() else { return };
    let free = || store.locks().is_held(&LockName::Dispatch).is_ok_and(|held| !held);
    if !no_hooks() && Cursor::is_there(store) && free() {
        drop(Start::new(exe, home).args(["_dispatch"]).without(OF_A_RUN).spawn_detached());
    }
}
