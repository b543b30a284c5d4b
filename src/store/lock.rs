//! Owns the locks: kernel locks on files that are never deleted, so none goes stale. (Tickets are: `tickets.rs`.)
//!
//! Order, outermost first: ticket, slot, merge, tree, worktrees, pool, store. No other lock is held while an agent runs.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::wait::{Woken, sleep_on, until_free};
use super::{Error, Holder, layout};
use crate::note::Listener;

/// After this long a wait is said aloud.
pub(super) const QUIET: Duration = Duration::from_millis(400);

/// The stack of a thread that does nothing but sleep.
const STACK: usize = 64 * 1024;

/// The end of the names of locks on lanes that land by themselves.
const LANDING: &str = ".landing.lock";

/// What a lock protects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LockName {
    /// Changes of records; milliseconds.
    Store,
    /// The event log; milliseconds.
    Events,
    /// Handing out events, for as long as some are due.
    Dispatch,
    /// Adding and removing worktrees.
    Worktrees,
    /// Which lane gets the folder of a removed one, or whether that comes back; milliseconds.
    Pool,
    /// The last moments of a landing.
    Merge,
    /// Transitions of one worktree, by its id.
    Tree(String),
    /// A lane's name while it is made or removed, and its supervisor for as long as a run lasts.
    Run(String),
    /// One of the worktrees for checks.
    Slot(usize),
    /// The worktree for the repository's hooks.
    Hooks,
    /// Taking automatic snapshots, for as long as agents run. Nothing waits for it.
    Snapshots,
    /// A lane that lands by itself, from before its run ends until its landing is over.
    Landing(String),
    /// Looking at the commits that a lane got, by one process at a time.
    Moved(String),
    /// The one agent that supervises, for as long as it runs. Nothing waits for it.
    Overseer,
    /// Telling a lane's agent what was sent, from reading it until it is told.
    Inbox(String),
    /// A batch, for as long as a process goes on with it.
    Batch(String),
    /// Which batch has which task; milliseconds.
    Ledger,
    /// Starting runs of batches where there is a limit for all of them: counted and started by one at a time.
    Room,
    /// Running the set-up commands of lanes that are to do so one after the other, by the name that they share.
    SetUp(String),
    /// Inherited by a lane's agent on purpose: held while any of its processes lives.
    Alive(String),
}

impl LockName {
    fn file(&self) -> PathBuf {
        match self {
            LockName::Store => "store.lock".into(),
            LockName::Events => "events.lock".into(),
            LockName::Dispatch => "dispatch.lock".into(),
            LockName::Worktrees => "worktrees.lock".into(),
            LockName::Pool => "pool.lock".into(),
            LockName::Merge => "merge.lock".into(),
            LockName::Tree(id) => format!("tree-{id}.lock").into(),
            LockName::Slot(n) => format!("slot-{n}.lock").into(),
            LockName::Hooks => "hooks.lock".into(),
            // Not beside the short ones, whose holders are looked for.
            LockName::Overseer => "supervisor/agent.lock".into(),
            LockName::Snapshots => "supervisor/snapshots.lock".into(),
            LockName::Ledger => "ledger.lock".into(),
            LockName::Room => "room.lock".into(),
            LockName::Batch(id) => format!("batches/{id}.lock").into(),
            LockName::SetUp(name) => format!("set-up/{name}.lock").into(),
            LockName::Run(lane) => format!("lanes/{lane}.run.lock").into(),
            LockName::Alive(lane) => format!("lanes/{lane}.alive.lock").into(),
            LockName::Inbox(lane) => format!("lanes/{lane}.inbox.lock").into(),
            LockName::Landing(lane) => format!("lanes/{lane}{LANDING}").into(),
            LockName::Moved(lane) => format!("lanes/{lane}.moved.lock").into(),
        }
    }

    /// The name of what the lock protects, for messages.
    pub(crate) fn what(&self) -> String {
        match self {
            LockName::Store => "the store".into(),
            LockName::Events => "the event log".into(),
            LockName::Dispatch => "the hooks".into(),
            LockName::Worktrees => "the list of worktrees".into(),
            LockName::Pool => "the folders of removed lanes".into(),
            LockName::Merge => "the landing".into(),
            LockName::Tree(id) => format!("the worktree '{id}'"),
            LockName::Slot(n) => format!("worktree {n} for checks"),
            LockName::Hooks => "the worktree for hooks".into(),
            LockName::Overseer => "the place of the supervising agent".into(),
            LockName::Snapshots => "automatic snapshots".into(),
            LockName::Ledger => "the list of tasks that batches have".into(),
            LockName::Batch(id) => format!("batch {id}"),
            LockName::Room => "room for another run".into(),
            LockName::SetUp(name) => format!("the set-up '{name}'"),
            LockName::Run(lane) | LockName::Alive(lane) | LockName::Landing(lane) | LockName::Moved(lane) => {
                format!("lane '{lane}'")
            }
            LockName::Inbox(lane) => format!("what was sent to lane '{lane}'"),
        }
    }
}

/// How long to wait for a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Not at all.
    Now,
    /// This long.
    For(Duration),
    /// Without end.
    Forever,
}

/// The locks of one repository.
#[derive(Debug, Clone)]
pub(crate) struct Locks {
    dir: PathBuf,
    listener: Listener,
    limit: Limit,
}

impl Locks {
    pub(super) fn new(dir: PathBuf, listener: Listener) -> Locks {
        Locks { dir, listener, limit: Limit::For(Duration::from_secs(30)) }
    }

    /// Sets how long `take` waits.
    pub(crate) fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }

    /// Takes a lock, waiting up to the limit and saying for whom.
    pub(crate) fn take(&self, name: &LockName) -> Result<Guard, Error> {
        self.take_within(name, self.limit)
    }

    /// Takes a lock within a limit of its own.
    pub(crate) fn take_within(&self, name: &LockName, limit: Limit) -> Result<Guard, Error> {
        take_file(&self.dir.join(name.file()), &name.what(), limit, &self.listener)
    }

    /// Takes a lock if it is free.
    pub(crate) fn try_take(&self, name: &LockName) -> Result<Option<Guard>, Error> {
        let path = self.dir.join(name.file());
        let file = open(&path)?;
        Ok(match file.try_lock() {
            Ok(()) => Some(Guard::new(file, &path)?),
            Err(TryLockError::WouldBlock) => None,
            Err(TryLockError::Error(e)) => return Err(Error::io("lock", &path)(e)),
        })
    }

    /// Whether somebody holds a lock. Asks with a shared lock, so that askers do not see each other.
    pub(crate) fn is_held(&self, name: &LockName) -> Result<bool, Error> {
        let path = self.dir.join(name.file());
        let file = match crate::regular_file::open_record(&path) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            Err(e) => return Err(Error::io("open", &path)(e)),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(e)) => Err(Error::io("lock", &path)(e)),
        }
    }

    /// Waits until nobody holds a lock, without end and without polling.
    pub(crate) fn wait_until_free(&self, name: &LockName) -> Result<(), Error> {
        let path = self.dir.join(name.file());
        match crate::regular_file::open_record(&path) {
            Ok(file) => file.lock_shared().map_err(Error::io("lock", &path)),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(e) => Err(Error::io("open", &path)(e)),
        }
    }

    /// Waits until nobody holds the folder of what is under way at `dir`, up to the limit. `what` it keeps from others and `holder` are
    /// for the error.
    pub(crate) fn wait_until_left(&self, dir: &Path, what: &str, holder: &str) -> Result<(), Error> {
        let Ok(file) = File::open(dir) else { return Ok(()) };
        let limit = match self.limit {
            Limit::Now => Some(Duration::ZERO),
            Limit::For(limit) => Some(limit),
            Limit::Forever => None,
        };
        match until_free(file, limit).map_err(Error::io("wait for", dir))? {
            Woken::Free => Ok(()),
            Woken::Signal => Err(Error::Interrupted),
            Woken::Late => Err(Error::Locked {
                what: what.to_owned(),
                holder: holder.to_owned(),
                seconds: limit.unwrap_or_default().as_secs(),
            }),
        }
    }

    /// Has somebody told once nobody holds a lock, by a thread that sleeps in the kernel until then. One that is still there when
    /// nobody listens any more ends with the lock's holder or with this process; it holds nothing but an open file.
    ///
    /// # Errors
    /// When the lock cannot be opened, or no thread can be started.
    pub(crate) fn when_free(
        &self,
        name: &LockName,
        tell: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) -> Result<(), Error> {
        let path = self.path(name);
        let file = match crate::regular_file::open_record(&path) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                tell(Ok(()));
                return Ok(());
            }
            Err(e) => return Err(Error::io("open", &path)(e)),
        };
        let sleeper = path.clone();
        let started = std::thread::Builder::new().stack_size(STACK).spawn(move || {
            let waited = sleep_on(&file).map_err(Error::io("lock", &sleeper));
            // Before anybody hears of it: a thread that is still there would seem to hold the lock.
            drop(file);
            tell(waited);
        });
        started.map(drop).map_err(Error::io("wait for", &path))
    }

    /// Takes over a lock that an open descriptor, handed down by the process that started this one, already holds.
    pub(crate) fn adopt(&self, name: &LockName, file: File) -> Guard {
        // It is held whatever its side file is.
        drop(Holder::note(&self.dir.join(name.file())));
        Guard { file }
    }

    /// The file of a lock.
    pub(crate) fn path(&self, name: &LockName) -> PathBuf {
        self.dir.join(name.file())
    }

    /// The lanes that were ever to land by themselves, by name; some of them are long gone.
    pub(crate) fn lanes_that_land(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.dir.join("lanes")).into_iter().flatten().flatten();
        let name = |file: std::ffi::OsString| Some(file.to_str()?.strip_suffix(LANDING)?.to_owned());
        let mut names: Vec<String> = entries.filter_map(|entry| name(entry.file_name())).collect();
        names.sort_unstable();
        names
    }

    /// The folder of the landing queue.
    pub(super) fn tickets(&self) -> PathBuf {
        self.dir.join("tickets")
    }

    pub(super) fn listener(&self) -> &Listener {
        &self.listener
    }
}

/// A lock that is held until this is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct Guard {
    file: File,
}

impl Guard {
    fn new(file: File, path: &Path) -> Result<Guard, Error> {
        Holder::note(path)?;
        Ok(Guard { file })
    }

    /// The open file that carries the lock, to hand it to another process.
    pub(crate) fn into_file(self) -> File {
        self.file
    }

    /// The open file that carries the lock.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }
}

/// Opens a lock file, making it when missing.
fn open(path: &Path) -> Result<File, Error> {
    let options = || OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
    match options() {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            layout::make_private(path.parent().unwrap_or(Path::new(".")))?;
            options().map_err(Error::io("create", path))
        }
        other => other.map_err(Error::io("open", path)),
    }
}

/// Takes the lock on a file that may lie anywhere.
pub(super) fn take_file(path: &Path, what: &str, limit: Limit, listener: &Listener) -> Result<Guard, Error> {
    let file = open(path)?;
    let since = Instant::now();
    let mut said = false;
    let mut pause = Duration::from_millis(1);
    loop {
        match file.try_lock() {
            Ok(()) => return Guard::new(file, path),
            Err(TryLockError::Error(e)) => return Err(Error::io("lock", path)(e)),
            Err(TryLockError::WouldBlock) => {}
        }
        crate::interrupt::check()?;
        let waited = since.elapsed();
        let over = match limit {
            Limit::Now => true,
            Limit::For(limit) => waited >= limit,
            Limit::Forever => false,
        };
        if over {
            return Err(Error::Locked {
                what: what.to_owned(),
                holder: Holder::describe(path),
                seconds: waited.as_secs(),
            });
        }
        if !said && waited > QUIET {
            listener.waiting(format!("waiting for {what}, held by {}", Holder::describe(path)));
            said = true;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(40));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locks(dir: &Path) -> Locks {
        Locks::new(dir.to_owned(), Listener::silent())
    }

    #[test]
    fn a_held_lock_is_seen_named_and_given_up_on() {
        let dir = tempfile::tempdir().unwrap();
        let (mine, theirs) = (locks(dir.path()), locks(dir.path()));
        let name = LockName::Run("x".into());
        assert!(!mine.is_held(&name).unwrap());
        let guard = theirs.take(&name).unwrap();
        assert!(mine.is_held(&name).unwrap());
        assert!(mine.try_take(&name).unwrap().is_none());
        let error = mine.take_within(&name, Limit::Now).unwrap_err();
        assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
        drop(guard);
        mine.wait_until_free(&name).unwrap();
        // A process that another test is just starting may have a descriptor for a moment still, also the one that was waited with.
        let tries = std::iter::repeat_with(|| mine.try_take(&name).unwrap());
        assert!(tries.take(1_000_000).any(|guard| guard.is_some()));
    }

    #[test]
    fn threads_that_count_under_a_lock_lose_no_step() {
        let dir = tempfile::tempdir().unwrap();
        let count = dir.path().join("count");
        std::fs::write(&count, "0").unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let locks = locks(dir.path());
                    for _ in 0..25 {
                        let _guard = locks.take(&LockName::Store).unwrap();
                        let n: u32 = std::fs::read_to_string(&count).unwrap().parse().unwrap();
                        std::fs::write(&count, (n + 1).to_string()).unwrap();
                    }
                });
            }
        });
        assert_eq!(std::fs::read_to_string(&count).unwrap(), "200");
    }
}
