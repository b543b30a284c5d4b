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

/// All that events are handed to, by their names in the cursor. Which of them want an event is said by the settings at the
/// time when it is handed out.
const WHOM: [&str; 4] = ["hooks", "notify", "webhook", "slack"];

/// Somebody to hand events to.
pub(super) trait Sink {
    /// Its name in the cursor, one of [`WHOM`].
    fn name(&self) -> &'static str;

    /// Hands it an event, if it wants that.
    fn take(&self, store: &Store, event: &Event);
}

/// A repository with its settings as they are now.
pub(crate) struct Current {
    /// The repository.
    pub(crate) repo: Repo,
    /// Its layers of settings.
    pub(crate) layers: Layers,
    /// What they come to.
    pub(crate) settings: Settings,
}

impl Current {
    /// The one of this name, if the settings want it.
    fn sink(&self, store: &Store, whom: &str) -> Result<Option<Box<dyn Sink>>, Error> {
        let (notify, home) = (&self.settings.notify, self.repo.home());
        if whom == "hooks" {
            let approvals = Approvals::read(&self.repo, store)?;
            let hooks = Hooks::of(&self.repo, store, &approvals, &self.layers, &self.settings);
            return Ok(Some(Box::new(hooks)));
        }
        if whom == "notify" {
            let local = Local { notify: notify.clone(), home: home.to_owned() };
            return Ok(Local::is_on(notify).then(|| Box::new(local) as Box<dyn Sink>));
        }
        let name = home.file_name().unwrap_or_default().to_string_lossy();
        let post = Post::all(notify, &name).into_iter().find(|post| post.name() == whom);
        Ok(post.map(|post| Box::new(post) as Box<dyn Sink>))
    }
}

/// Opens the repository anew.
pub(crate) type Open<'a, E> = &'a (dyn Fn() -> Result<Current, E> + Sync);

/// Hands out all that is due. Returns at once when another process is at it.
///
/// # Errors
/// When the settings, the cursor, the log or approvals cannot be read or written; what is due stays due.
pub(crate) fn dispatch<E: From<Error> + Send>(common_dir: &Path, open: Open<'_, E>) -> Result<(), E> {
    let store = Store::at(common_dir, Listener::silent());
    let mut lock = match store.locks().take_within(&LockName::Dispatch, Limit::For(MOMENT)) {
        Ok(lock) => lock,
        Err(Error::Locked { .. }) => return Ok(()),
        Err(e) => return Err(e.into()),
    };
    loop {
        let Some((held, last)) = end_if_over(&store, lock)? else { return Ok(()) };
        lock = held;
        hand_out(common_dir, &store, open, last)?;
    }
}

/// Lets go of the lock when nothing is due; else returns it with the number of the last event there is. No event can be
/// written meanwhile.
fn end_if_over(store: &Store, lock: Guard) -> Result<Option<(Guard, u64)>, Error> {
    let _events = store.locks().take(&LockName::Events)?;
    if let Some(cursor) = Cursor::read(store)? {
        let last = last_number(store)?;
        if WHOM.iter().any(|whom| cursor.of(whom) < last) {
            return Ok(Some((lock, last)));
        }
        Cursor::end(store)?;
    }
    drop(lock);
    Ok(None)
}

/// What those who are handed events share.
struct Round<'a, E> {
    common_dir: &'a Path,
    open: Open<'a, E>,
    path: PathBuf,
    cursor: Mutex<Cursor>,
    /// Who has nothing to do.
    idle: Mutex<[bool; WHOM.len()]>,
}

/// Hands out until nobody has anything to do. Each is handed events by a thread of its own, so that nobody waits for one who
/// is slow.
fn hand_out<E: From<Error> + Send>(
    common_dir: &Path,
    store: &Store,
    open: Open<'_, E>,
    last: u64,
) -> Result<(), E> {
    let round = Round {
        common_dir,
        open,
        path: store.layout().dispatch(),
        cursor: Mutex::new(Cursor::read(store)?.unwrap_or_default()),
        idle: Mutex::default(),
    };
    std::thread::scope(|scope| {
        let round = &round;
        let threads = WHOM.iter().enumerate().map(|(at, whom)| {
            scope.spawn(move || {
                let _over = Over { round, at };
                round.feed(at, whom)
            })
        });
        let threads: Vec<_> = threads.collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| thread.join();
        let ended: Vec<_> = threads.into_iter().map(join).collect();
        // What one was doing that panicked is due still; nobody else was kept from theirs.
        ended.into_iter().try_for_each(|ended| ended.unwrap_or_else(|why| std::panic::resume_unwind(why)))
    })?;
    // Numbers that nothing can be read of, since a later program wrote them or the disk lost them, are nobody's.
    for whom in WHOM {
        round.note(whom, last)?;
    }
    Ok(())
}

/// Says at the end of one's work, however it ends, that one has nothing to do.
struct Over<'a, 'b, E> {
    round: &'a Round<'b, E>,
    at: usize,
}

impl<E> Drop for Over<'_, '_, E> {
    fn drop(&mut self) {
        self.round.is_over(self.at, true);
    }
}

impl<E> Round<'_, E> {
    fn feed(&self, at: usize, whom: &str) -> Result<(), E>
    where
        E: From<Error>,
    {
        let store = Store::at(self.common_dir, Listener::silent());
        let begin = self.cursor.lock().unwrap_or_else(PoisonError::into_inner).of(whom);
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
                // Each by the settings of its time: whoever wrote it judged by them that it is due.
                if !event.no_hooks
                    && let Some(sink) = (self.open)()?.sink(&store, whom)?
                {
                    fault::point("dispatch.before");
                    sink.take(&store, &event);
                    fault::point("dispatch.taken");
                }
                self.note(whom, event.n)?;
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
        cursor.advance(whom, number, &WHOM);
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
            let ran = hook::run(&hook, &About::event(store, event, &self.home), self.limit, &|| false);
            hook::log(store, &at, &hook.called(), &ran.end(), ran.words());
        }
    }
}
