//! Event dispatcher: the process that delivers events to each sink in the order of their numbers, at least
//! once.
//!
//! It starts at the cursor and exits when no event is due. The writer of an event first creates the cursor,
//! then writes the event, then checks whether a dispatcher holds the dispatch lock. The dispatcher releases
//! that lock while it holds the event log's lock and all events are delivered. So one of the two processes
//! always handles the last event.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use proq_base::config::layers::Layers;
use proq_base::config::settings::Settings;
use proq_base::diagnostics::Listener;
use proq_base::fail_points;
use proq_git::Repo;
use proq_store::base::record::Record;
use proq_store::locks::lock::{LockGuard, LockName, WaitLimit};
use proq_store::{Error, Store};

use super::approval::Approvals;
use super::cursor::DispatchCursor;
use super::log::last_event_number;
use super::notify::LocalNotifier;
use super::reader::EventReader;
use super::sink::{Hooks, Sink};
use super::webhook::WebhookSink;

/// Timeout for the dispatch lock. A process that only checks the lock holds it for a moment.
const LOCK_WAIT_LIMIT: Duration = Duration::from_millis(250);

/// Interval at which a sink without work checks for new events while another sink is still working.
const IDLE_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Names of all sinks in the cursor. The settings at the time of delivery decide which sinks want an event.
const SINK_NAMES: [&str; 4] = ["hooks", "notify", "webhook", "slack"];

/// Repository with its current settings.
pub struct OpenedRepo {
    /// Git repository whose events are delivered.
    pub repo: Repo,
    /// Layers of the settings.
    pub layers: Layers,
    /// Effective settings.
    pub settings: Settings,
}

impl OpenedRepo {
    /// Returns the sink with this name, if the settings enable it.
    fn sink(&self, store: &Store, sink_name: &str) -> Result<Option<Box<dyn Sink>>, Error> {
        let (notify, home) = (&self.settings.notify, self.repo.command_dir());
        if sink_name == "hooks" {
            let approvals = Approvals::load(&self.repo, store)?;
            let hooks = Hooks::load(&self.repo, store, &approvals, &self.layers, &self.settings);
            return Ok(Some(Box::new(hooks)));
        }
        if sink_name == "notify" {
            let notifier = LocalNotifier { notify: notify.clone(), working_dir: home.to_owned() };
            return Ok(LocalNotifier::is_enabled(notify).then(|| Box::new(notifier) as Box<dyn Sink>));
        }
        let name = home.file_name().unwrap_or_default().to_string_lossy();
        let post =
            WebhookSink::from_settings(notify, &name).into_iter().find(|post| post.name() == sink_name);
        Ok(post.map(|post| Box::new(post) as Box<dyn Sink>))
    }
}

/// Function that opens the repository and reads its current settings.
pub(crate) type OpenRepo<'a, E> = &'a (dyn Fn() -> Result<OpenedRepo, E> + Sync);

/// Delivers all due events. Returns immediately when another process is the dispatcher.
///
/// # Errors
/// Fails when the settings, the cursor, the log or the approvals cannot be read or written. Undelivered
/// events stay due.
pub fn dispatch<E: From<Error> + Send>(common_dir: &Path, open: OpenRepo<'_, E>) -> Result<(), E> {
    let store = Store::open(common_dir, Listener::silent());
    let mut lock = match store.locks().acquire_within(&LockName::Dispatch, WaitLimit::AtMost(LOCK_WAIT_LIMIT))
    {
        Ok(lock) => lock,
        Err(Error::Locked { .. }) => return Ok(()),
        Err(e) => return Err(e.into()),
    };
    loop {
        let Some((still_held, last)) = finish_if_delivered(&store, lock)? else { return Ok(()) };
        lock = still_held;
        deliver_all(common_dir, &store, open, last)?;
    }
}

/// Releases the dispatch lock when no event is due; otherwise returns it with the number of the last event.
/// It holds the event log's lock, so that no event can be written concurrently.
fn finish_if_delivered(store: &Store, lock: LockGuard) -> Result<Option<(LockGuard, u64)>, Error> {
    let _events = store.locks().acquire(&LockName::Events)?;
    if let Some(cursor) = DispatchCursor::load_if_due(store)? {
        let last = last_event_number(store)?;
        if SINK_NAMES.iter().any(|whom| cursor.last_delivered(whom) < last) {
            return Ok(Some((lock, last)));
        }
        DispatchCursor::remove(store)?;
    }
    drop(lock);
    Ok(None)
}

/// State shared by the threads of all sinks.
struct DispatchRound<'a, E> {
    common_dir: &'a Path,
    open: OpenRepo<'a, E>,
    /// Path of the cursor file.
    cursor_path: PathBuf,
    cursor: Mutex<DispatchCursor>,
    /// Whether each sink has no work, by its position in [`SINK_NAMES`].
    idle: Mutex<[bool; SINK_NAMES.len()]>,
}

/// Delivers events until no sink has any work. Each sink has its own thread, so that a slow sink does not
/// delay the others.
fn deliver_all<E: From<Error> + Send>(
    common_dir: &Path,
    store: &Store,
    open: OpenRepo<'_, E>,
    last_number: u64,
) -> Result<(), E> {
    let round = DispatchRound {
        common_dir,
        open,
        cursor_path: store.layout().dispatch_cursor(),
        cursor: Mutex::new(DispatchCursor::load_if_due(store)?.unwrap_or_default()),
        idle: Mutex::default(),
    };
    std::thread::scope(|scope| {
        let round = &round;
        let threads = SINK_NAMES.iter().enumerate().map(|(index, sink_name)| {
            scope.spawn(move || {
                let _idle_on_drop = MarkSinkIdleOnDrop { round, sink_index: index };
                round.run_sink(index, sink_name)
            })
        });
        let threads: Vec<_> = threads.collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| thread.join();
        let results: Vec<_> = threads.into_iter().map(join).collect();
        // The event of a sink that panicked is still due; the other sinks were not affected.
        results.into_iter().try_for_each(|ended| ended.unwrap_or_else(|why| std::panic::resume_unwind(why)))
    })?;
    // Events that cannot be read, because a later program wrote them or the disk lost them, count as
    // delivered.
    for sink_name in SINK_NAMES {
        round.record_delivery(sink_name, last_number)?;
    }
    Ok(())
}

/// Guard that marks a sink as idle when its thread ends, even by a panic.
struct MarkSinkIdleOnDrop<'a, 'b, E> {
    round: &'a DispatchRound<'b, E>,
    sink_index: usize,
}

impl<E> Drop for MarkSinkIdleOnDrop<'_, '_, E> {
    fn drop(&mut self) {
        self.round.set_idle(self.sink_index, true);
    }
}

impl<E> DispatchRound<'_, E> {
    /// Delivers events to one sink until no sink has any work.
    fn run_sink(&self, sink_index: usize, sink_name: &str) -> Result<(), E>
    where
        E: From<Error>,
    {
        let store = Store::open(self.common_dir, Listener::silent());
        let start = self.cursor.lock().unwrap_or_else(PoisonError::into_inner).last_delivered(sink_name);
        let mut reader = EventReader::start_after(&store, start);
        loop {
            let events = reader.poll()?;
            if events.is_empty() {
                if self.set_idle(sink_index, true) {
                    return Ok(());
                }
                std::thread::sleep(IDLE_POLL_INTERVAL);
                continue;
            }
            self.set_idle(sink_index, false);
            for event in events {
                // Each event is delivered by the current settings, by which its writer decided that it is
                // due.
                if !event.no_hooks
                    && let Some(sink) = (self.open)()?.sink(&store, sink_name)?
                {
                    fail_points::hit("dispatch.before");
                    sink.deliver(&store, &event);
                    fail_points::hit("dispatch.taken");
                }
                self.record_delivery(sink_name, event.n)?;
            }
        }
    }

    /// Sets whether a sink is idle, and returns whether all sinks are.
    fn set_idle(&self, sink_index: usize, idle: bool) -> bool {
        let mut idle_flags = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle_flags[sink_index] = idle;
        idle_flags.iter().all(|idle| *idle)
    }

    /// Saves in the cursor that a sink has received all events up to `number`.
    fn record_delivery(&self, sink_name: &str, number: u64) -> Result<(), Error> {
        let mut cursor = self.cursor.lock().unwrap_or_else(PoisonError::into_inner);
        if cursor.last_delivered(sink_name) >= number {
            return Ok(());
        }
        cursor.advance(sink_name, number, &SINK_NAMES);
        cursor.save(&self.cursor_path)
    }
}
