//! Locks: kernel locks on files that are never deleted, so that no lock goes stale. (Tickets of the merge
//! queue are deleted: `merge_queue.rs`.)
//!
//! Lock order, outermost first: ticket, check worktree, merge, worktree, worktree list, pool, store. No other
//! lock is held while an agent runs.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use proq_base::diagnostics::Listener;
use proq_base::interrupt::Interrupted;
use proq_base::lane_name::LaneName;
use proq_base::trace::{Span, SpanKind};

use super::holder::LockHolder;
use super::lock_wait::{WaitOutcome, block_until_free, wait_for_release};
use crate::Error;
use crate::base::atomic::create_private_dir;
use crate::base::batch_id::BatchId;

/// Time after which a wait is reported to the user.
pub(crate) const WAIT_NOTICE_DELAY: Duration = Duration::from_millis(400);

/// Stack size of a thread that only waits for a lock, in bytes.
const WAITER_STACK_SIZE: usize = 64 * 1024;

/// Suffix of the names of lock files for lanes that merge automatically.
const AUTO_MERGE_LOCK_SUFFIX: &str = ".landing.lock";

/// Name of a lock, by what the lock protects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockName {
    /// Changes of records; held for milliseconds.
    Store,
    /// Event log; held for milliseconds.
    Events,
    /// Dispatch of events, held while any are due.
    Dispatch,
    /// Adding and removing worktrees.
    WorktreeList,
    /// Lane pool: which lane gets the folder of a removed one, or whether that lane is restored. Held for
    /// milliseconds.
    Pool,
    /// Move of a base branch: held while a landing examines its lanes for the last time and moves the base.
    Merge,
    /// Transitions of one worktree, by its id.
    Worktree(String),
    /// Lane of this name: held while the lane is created or removed, and by its supervisor during a run.
    Run(LaneName),
    /// One of the check worktrees, by its number.
    CheckWorktree(usize),
    /// Worktree for the repository's hooks.
    HookWorktree,
    /// Automatic snapshots, held while agents run. No process waits for it.
    Snapshots,
    /// Lane that merges automatically, from before its run ends until its landing has finished.
    AutoMerge(LaneName),
    /// Processing of a lane's new commits by a single process.
    NewCommits(LaneName),
    /// The single supervising agent, held while it runs. No process waits for it.
    Overseer,
    /// Delivery of messages to a lane's agent, from reading a message until it is delivered.
    Inbox(LaneName),
    /// Batch, held while a process schedules it.
    Batch(BatchId),
    /// Ledger of which batch has which task; held for milliseconds.
    Ledger,
    /// Start of batch runs under the shared capacity, so that a single process counts and starts runs.
    RunCapacity,
    /// Set-up commands of lanes that must run one after the other, by the name that these lanes share.
    SetUp(String),
    /// Lock that a lane's agent inherits on purpose: held while any of its processes runs.
    AgentAlive(LaneName),
}

impl LockName {
    /// Returns the path of the lock file, relative to the folder of locks.
    fn relative_path(&self) -> PathBuf {
        match self {
            LockName::Store => "store.lock".into(),
            LockName::Events => "events.lock".into(),
            LockName::Dispatch => "dispatch.lock".into(),
            LockName::WorktreeList => "worktrees.lock".into(),
            LockName::Pool => "pool.lock".into(),
            LockName::Merge => "merge.lock".into(),
            LockName::Worktree(id) => format!("tree-{id}.lock").into(),
            LockName::CheckWorktree(n) => format!("slot-{n}.lock").into(),
            LockName::HookWorktree => "hooks.lock".into(),
            // Not in the same folder as the short-lived locks, whose holders are searched for.
            LockName::Overseer => "supervisor/agent.lock".into(),
            LockName::Snapshots => "supervisor/snapshots.lock".into(),
            LockName::Ledger => "ledger.lock".into(),
            LockName::RunCapacity => "room.lock".into(),
            LockName::Batch(id) => format!("batches/{id}.lock").into(),
            LockName::SetUp(name) => format!("set-up/{name}.lock").into(),
            LockName::Run(lane) => format!("lanes/{lane}.run.lock").into(),
            LockName::AgentAlive(lane) => format!("lanes/{lane}.alive.lock").into(),
            LockName::Inbox(lane) => format!("lanes/{lane}.inbox.lock").into(),
            LockName::AutoMerge(lane) => format!("lanes/{lane}{AUTO_MERGE_LOCK_SUFFIX}").into(),
            LockName::NewCommits(lane) => format!("lanes/{lane}.moved.lock").into(),
        }
    }

    /// Describes what the lock protects, for messages.
    pub fn describe(&self) -> String {
        match self {
            LockName::Store => "the store".into(),
            LockName::Events => "the event log".into(),
            LockName::Dispatch => "the hooks".into(),
            LockName::WorktreeList => "the list of worktrees".into(),
            LockName::Pool => "the folders of removed lanes".into(),
            LockName::Merge => "the landing".into(),
            LockName::Worktree(id) => format!("the worktree '{id}'"),
            LockName::CheckWorktree(n) => format!("worktree {n} for checks"),
            LockName::HookWorktree => "the worktree for hooks".into(),
            LockName::Overseer => "the place of the supervising agent".into(),
            LockName::Snapshots => "automatic snapshots".into(),
            LockName::Ledger => "the list of tasks that batches have".into(),
            LockName::Batch(id) => format!("batch {id}"),
            LockName::RunCapacity => "room for another run".into(),
            LockName::SetUp(name) => format!("the set-up '{name}'"),
            LockName::Run(lane)
            | LockName::AgentAlive(lane)
            | LockName::AutoMerge(lane)
            | LockName::NewCommits(lane) => {
                format!("lane '{lane}'")
            }
            LockName::Inbox(lane) => format!("what was sent to lane '{lane}'"),
        }
    }
}

/// Maximum time to wait for a lock or a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WaitLimit {
    /// Fails immediately if the lock is held.
    NoWait,
    /// Waits for this duration at most.
    AtMost(Duration),
    /// Waits without a timeout.
    #[default]
    Forever,
}

/// Locks of one repository.
#[derive(Debug, Clone)]
pub struct Locks {
    /// Folder of the lock files.
    dir: PathBuf,
    listener: Listener,
    /// Time that [`Locks::acquire`] waits at most.
    default_limit: WaitLimit,
}

impl Locks {
    /// Creates the locks in the folder `dir`, with a default timeout of 30 seconds.
    pub fn new(dir: PathBuf, listener: Listener) -> Locks {
        Locks { dir, listener, default_limit: WaitLimit::AtMost(Duration::from_secs(30)) }
    }

    /// Sets the time that [`Locks::acquire`] waits at most.
    pub(crate) fn set_default_limit(&mut self, limit: WaitLimit) {
        self.default_limit = limit;
    }

    /// Acquires a lock, waiting up to the default timeout. Reports the current holder while it waits.
    pub fn acquire(&self, name: &LockName) -> Result<LockGuard, Error> {
        self.acquire_within(name, self.default_limit)
    }

    /// Acquires a lock, waiting up to `limit`.
    pub fn acquire_within(&self, name: &LockName, limit: WaitLimit) -> Result<LockGuard, Error> {
        acquire_file_lock(&self.dir.join(name.relative_path()), &name.describe(), limit, &self.listener)
    }

    /// Acquires a lock if it is free; returns none otherwise.
    pub fn try_acquire(&self, name: &LockName) -> Result<Option<LockGuard>, Error> {
        let path = self.dir.join(name.relative_path());
        let file = open_or_create(&path)?;
        Ok(match file.try_lock() {
            Ok(()) => Some(LockGuard::new(file, &path)?),
            Err(TryLockError::WouldBlock) => None,
            Err(TryLockError::Error(e)) => return Err(Error::io("lock", &path)(e)),
        })
    }

    /// Returns whether any process holds a lock. It tries a shared lock, so that concurrent queries do not
    /// affect each other.
    pub fn is_held(&self, name: &LockName) -> Result<bool, Error> {
        let path = self.dir.join(name.relative_path());
        let file = match proq_base::regular_file::open_store_file(&path) {
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

    /// Waits until no process holds a lock, without timeout and without polling.
    pub fn wait_until_free(&self, name: &LockName) -> Result<(), Error> {
        let path = self.dir.join(name.relative_path());
        match proq_base::regular_file::open_store_file(&path) {
            Ok(file) => file.lock_shared().map_err(Error::io("lock", &path)),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(e) => Err(Error::io("open", &path)(e)),
        }
    }

    /// Waits until no process holds the scratch folder `dir`, up to the default timeout. `resource` and
    /// `holder` describe, for the error, what the process blocks and what it is.
    pub fn wait_for_scratch_release(&self, dir: &Path, resource: &str, holder: &str) -> Result<(), Error> {
        let Ok(file) = File::open(dir) else { return Ok(()) };
        let limit = match self.default_limit {
            WaitLimit::NoWait => Some(Duration::ZERO),
            WaitLimit::AtMost(limit) => Some(limit),
            WaitLimit::Forever => None,
        };
        match wait_for_release(file, limit).map_err(Error::io("wait for", dir))? {
            WaitOutcome::Free => Ok(()),
            WaitOutcome::Signal => Err(Interrupted::current().into()),
            WaitOutcome::TimedOut => Err(Error::Locked {
                resource: resource.to_owned(),
                holder: holder.to_owned(),
                seconds: limit.unwrap_or_default().as_secs(),
            }),
        }
    }

    /// Calls `notify` once no process holds a lock, from a thread that blocks in the kernel until then. A
    /// thread whose result is no longer needed ends with the lock's holder or with this process; until then it
    /// holds an open file and what `notify` owns.
    ///
    /// # Errors
    /// Fails when the lock cannot be opened, or no thread can be started.
    pub fn notify_when_free(
        &self,
        name: &LockName,
        notify: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) -> Result<(), Error> {
        let path = self.lock_path(name);
        let file = match proq_base::regular_file::open_store_file(&path) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                notify(Ok(()));
                return Ok(());
            }
            Err(e) => return Err(Error::io("open", &path)(e)),
        };
        let lock_path = path.clone();
        let started = std::thread::Builder::new().stack_size(WAITER_STACK_SIZE).spawn(move || {
            let waited = block_until_free(&file).map_err(Error::io("lock", &lock_path));
            // Close the file before the notification: an open file would still seem to hold the lock.
            drop(file);
            notify(waited);
        });
        started.map(drop).map_err(Error::io("wait for", &path))
    }

    /// Creates the guard of a lock that a file descriptor inherited from the parent process already holds.
    pub fn adopt(&self, name: &LockName, file: File) -> LockGuard {
        // The lock is held whether or not its side file can be written.
        drop(LockHolder::write_holder_file(&self.dir.join(name.relative_path())));
        LockGuard { file }
    }

    /// Returns the path of a lock's file.
    pub fn lock_path(&self, name: &LockName) -> PathBuf {
        self.dir.join(name.relative_path())
    }

    /// Lists, by name, the lanes with a lock file for automatic merges: those that were ever set to merge
    /// automatically. Some of them may no longer exist.
    pub fn lanes_with_auto_merge_file(&self) -> Vec<LaneName> {
        let entries = std::fs::read_dir(self.dir.join("lanes")).into_iter().flatten().flatten();
        let name = |file: std::ffi::OsString| {
            LaneName::parse(file.to_str()?.strip_suffix(AUTO_MERGE_LOCK_SUFFIX)?).ok()
        };
        let mut names: Vec<LaneName> = entries.filter_map(|entry| name(entry.file_name())).collect();
        names.sort_unstable();
        names
    }

    /// Returns the folder of the merge queue.
    pub fn tickets_dir(&self) -> PathBuf {
        self.dir.join("tickets")
    }

    /// Returns the listener that informs the user about waits for locks and queues.
    pub fn listener(&self) -> &Listener {
        &self.listener
    }
}

/// Lock that is held until this value is dropped.
#[derive(Debug)]
#[must_use]
pub struct LockGuard {
    file: File,
}

impl LockGuard {
    /// Creates the guard of a lock that `file` holds, and records this process as its holder.
    fn new(file: File, path: &Path) -> Result<LockGuard, Error> {
        LockHolder::write_holder_file(path)?;
        Ok(LockGuard { file })
    }

    /// Returns the open file that carries the lock, to pass it to another process.
    pub fn into_file(self) -> File {
        self.file
    }

    /// Borrows the open file that carries the lock.
    pub fn file(&self) -> &File {
        &self.file
    }
}

/// Opens a lock file and creates it when it is missing.
fn open_or_create(path: &Path) -> Result<File, Error> {
    let options = || OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
    match options() {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            create_private_dir(path.parent().unwrap_or(Path::new(".")))?;
            options().map_err(Error::io("create", path))
        }
        result => result.map_err(Error::io("open", path)),
    }
}

/// Acquires the lock on any file, waiting up to `limit`. `resource` describes for messages what the lock
/// protects.
pub(crate) fn acquire_file_lock(
    path: &Path,
    resource: &str,
    limit: WaitLimit,
    listener: &Listener,
) -> Result<LockGuard, Error> {
    let file = open_or_create(path)?;
    let since = Instant::now();
    let mut is_wait_reported = false;
    let mut span = None;
    let mut pause = Duration::from_millis(1);
    loop {
        match file.try_lock() {
            Ok(()) => return LockGuard::new(file, path),
            Err(TryLockError::Error(e)) => return Err(Error::io("lock", path)(e)),
            Err(TryLockError::WouldBlock) => {}
        }
        span.get_or_insert_with(|| Span::begin(SpanKind::Lock, resource));
        proq_base::interrupt::require_no_signal()?;
        let waited = since.elapsed();
        let is_timed_out = match limit {
            WaitLimit::NoWait => true,
            WaitLimit::AtMost(limit) => waited >= limit,
            WaitLimit::Forever => false,
        };
        if is_timed_out {
            return Err(Error::Locked {
                resource: resource.to_owned(),
                holder: LockHolder::describe_last_holder(path),
                seconds: waited.as_secs(),
            });
        }
        if !is_wait_reported && waited > WAIT_NOTICE_DELAY {
            listener.waiting(format!(
                "waiting for {resource}, held by {}",
                LockHolder::describe_last_holder(path)
            ));
            is_wait_reported = true;
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

    /// Promise: concurrency/lock-holder-named
    #[test]
    fn held_lock_is_reported_and_times_out() {
        let dir = tempfile::tempdir().unwrap();
        let (mine, theirs) = (locks(dir.path()), locks(dir.path()));
        let name = LockName::Run(LaneName::parse("x").unwrap());
        assert!(!mine.is_held(&name).unwrap());
        let guard = theirs.acquire(&name).unwrap();
        assert!(mine.is_held(&name).unwrap());
        assert!(mine.try_acquire(&name).unwrap().is_none());
        let error = mine.acquire_within(&name, WaitLimit::NoWait).unwrap_err();
        assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
        drop(guard);
        mine.wait_until_free(&name).unwrap();
        // A process that a concurrent test is starting may briefly have a copy of a descriptor, including the
        // one that was waited with.
        let tries = std::iter::repeat_with(|| mine.try_acquire(&name).unwrap());
        assert!(tries.take(1_000_000).any(|guard| guard.is_some()));
    }

    #[test]
    fn lock_serializes_threads() {
        let dir = tempfile::tempdir().unwrap();
        let count = dir.path().join("count");
        std::fs::write(&count, "0").unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let locks = locks(dir.path());
                    for _ in 0..25 {
                        let _guard = locks.acquire(&LockName::Store).unwrap();
                        let n: u32 = std::fs::read_to_string(&count).unwrap().parse().unwrap();
                        std::fs::write(&count, (n + 1).to_string()).unwrap();
                    }
                });
            }
        });
        assert_eq!(std::fs::read_to_string(&count).unwrap(), "200");
    }
}
