//! Owns the process that hands out events: to each that wants them in the order of their numbers, each at least once.
//!
//! It begins where the cursor stands and ends when nothing is due. Whoever writes an event makes the cursor first, then
//! writes, then looks whether somebody holds this lock; this process lets go of the lock while it holds the events' lock and
//! has seen that all are handed out. So there is always one of them who sees the last event.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::hook::{self, About, Hook};
use super::notify::Local;
use super::post::Post;
use super::trigger::is_program;
use super::{Approvals, Command, Cursor, Event, Reader, last_number};
use crate::config::{Layers, Settings};
use crate::fault;
use crate::git::Repo;
use crate::note::Listener;
use crate::store::{Error, Guard, Limit, LockName, Record, Store};

/// Who only asks whether the lock is held, holds it for a moment.
const MOMENT: Duration = Duration::from_millis(250);

/// How often one who has nothing to do looks again while another is still at it.
const GLANCE: Duration = Duration::from_millis(50);

/// Somebody to hand events to.
pub(super) trait Sink: Sync {
    /// Its name in the cursor.
    fn name(&self) -> &'static str;

    /// Hands it an event, if it wants that.
    fn take(&self, store: &Store, event: &Event);
}

/// Hands out all that is due. Returns at once when another process is at it.
///
/// # Errors
/// When cursor, log or approvals cannot be read or written; what is due stays due.
pub(crate) fn dispatch(
    repo: &Repo,
    store: &Store,
    layers: &Layers,
    settings: &Settings,
) -> Result<(), Error> {
    let mut lock = match store.locks().take_within(&LockName::Dispatch, Limit::For(MOMENT)) {
        Ok(lock) => lock,
        Err(Error::Locked { .. }) => return Ok(()),
        Err(e) => return Err(e),
    };
    let approvals = Approvals::read(repo, store)?;
    let mut sinks: Vec<Box<dyn Sink>> = vec![Box::new(Hooks::of(repo, store, &approvals, layers, settings))];
    let (notify, home) = (&settings.notify, repo.home());
    if Local::is_on(notify) {
        sinks.push(Box::new(Local { notify: notify.clone(), home: home.to_owned() }));
    }
    let name = home.file_name().unwrap_or_default().to_string_lossy();
    for post in Post::all(notify, &name) {
        sinks.push(Box::new(post));
    }
    loop {
        let Some((held, last)) = end_if_over(store, &sinks, lock)? else { return Ok(()) };
        lock = held;
        hand_out(repo.common_dir(), store, &sinks, last)?;
    }
}

/// Lets go of the lock when nothing is due; else returns it with the number of the last event there is. No event can be
/// written meanwhile.
fn end_if_over(store: &Store, sinks: &[Box<dyn Sink>], lock: Guard) -> Result<Option<(Guard, u64)>, Error> {
    let _events = store.locks().take(&LockName::Events)?;
    if let Some(cursor) = Cursor::read(store)? {
        let last = last_number(store)?;
        if sinks.iter().any(|sink| cursor.of(sink.name()) < last) {
            return Ok(Some((lock, last)));
        }
        Cursor::end(store)?;
    }
    drop(lock);
    Ok(None)
}

/// What those who are handed events share.
struct Round<'a> {
    common_dir: &'a Path,
    path: PathBuf,
    cursor: Mutex<Cursor>,
    all: Vec<&'static str>,
    /// Who has nothing to do.
    idle: Mutex<Vec<bool>>,
}

/// Hands out until nobody has anything to do. Each is handed events by a thread of its own, so that nobody waits for one who
/// is slow.
fn hand_out(common_dir: &Path, store: &Store, sinks: &[Box<dyn Sink>], last: u64) -> Result<(), Error> {
    let round = Round {
        common_dir,
        path: store.layout().dispatch(),
        cursor: Mutex::new(Cursor::read(store)?.unwrap_or_default()),
        all: sinks.iter().map(|sink| sink.name()).collect(),
        idle: Mutex::new(vec![false; sinks.len()]),
    };
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (at, sink) in sinks.iter().enumerate() {
            let (round, sink) = (&round, sink.as_ref());
            threads.push(scope.spawn(move || {
                let done = round.feed(at, sink);
                round.is_over(at, true);
                done
            }));
        }
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or(Ok(())))
    })?;
    // Numbers that nothing can be read of, since a later program wrote them or the disk lost them, are nobody's.
    for sink in sinks {
        round.note(sink.name(), last)?;
    }
    Ok(())
}

impl Round<'_> {
    fn feed(&self, at: usize, sink: &dyn Sink) -> Result<(), Error> {
        let store = Store::at(self.common_dir, Listener::silent());
        let begin = self.cursor.lock().unwrap_or_else(PoisonError::into_inner).of(sink.name());
        let mut reader = Reader::after(&store, begin);
        loop {
            let events = reader.poll()?;
            if events.is_empty() {
                if self.is_over(at, true) {
                    return Ok(());
                }
                std::thread::sleep(GLANCE);
                continue;
            }
            self.is_over(at, false);
            for event in events {
                if !event.no_hooks {
                    fault::point("dispatch.before");
                    sink.take(&store, &event);
                    fault::point("dispatch.taken");
                }
                self.note(sink.name(), event.n)?;
            }
        }
    }

    /// Says whether one has nothing to do, and returns whether nobody has.
    fn is_over(&self, at: usize, idle: bool) -> bool {
        let mut all = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        all[at] = idle;
        all.iter().all(|idle| *idle)
    }

    fn note(&self, whom: &str, number: u64) -> Result<(), Error> {
        let mut cursor = self.cursor.lock().unwrap_or_else(PoisonError::into_inner);
        if cursor.of(whom) >= number {
            return Ok(());
        }
        cursor.advance(whom, number, &self.all);
        cursor.save(&self.path)
    }
}

/// The hooks: commands of the settings, then the executable of `proq/hooks/`.
pub(crate) struct Hooks {
    folder: PathBuf,
    lines: Vec<(String, Vec<Command>)>,
    home: PathBuf,
    limit: Duration,
}

impl Hooks {
    /// All that there are.
    pub(crate) fn of(
        repo: &Repo,
        store: &Store,
        approvals: &Approvals<'_>,
        layers: &Layers,
        settings: &Settings,
    ) -> Hooks {
        let lines = layers.hooks().map(|event| (event.to_owned(), approvals.of_hook(layers, event)));
        Hooks {
            folder: store.layout().hooks(),
            lines: lines.collect(),
            home: repo.home().to_owned(),
            limit: settings.hook_timeout,
        }
    }

    /// Those of one event, in order.
    pub(crate) fn at(&self, event: &str) -> Vec<Hook> {
        let lines = self.lines.iter().filter(|(name, _)| name == event).flat_map(|(_, lines)| lines);
        let file = self.folder.join(event);
        lines.cloned().map(Hook::Line).chain(is_program(&file).then_some(Hook::File(file))).collect()
    }
}

impl Sink for Hooks {
    fn name(&self) -> &'static str {
        "hooks"
    }

    fn take(&self, store: &Store, event: &Event) {
        let name = event.name.text();
        let at = format!("{} {name}", event.n);
        for hook in self.at(&name) {
            if let Hook::Line(Command { approved: false, line, .. }) = &hook {
                hook::log(store, &at, line, "not run: git proq approve has not allowed it", "");
                continue;
            }
            let ran = hook::run(&hook, &About::event(event, &self.home), self.limit, &|| false);
            hook::log(store, &at, &hook.called(), &ran.end(), &ran.words);
        }
    }
}
