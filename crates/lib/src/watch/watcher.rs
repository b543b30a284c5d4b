//! Watch of a repository: waits without polling until something that is shown has changed, a lock is free, a
//! signal was received, or the use case was canceled.

use std::io;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use proq_base::interrupt;
use proq_base::interrupt::{Interrupted, SignalHandlers};
use proq_store::Error;
use proq_store::locks::lock::LockName;
use proq_store::records::lane::AnyLane;
use proq_store::records::lane_state::LaneState;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::folder_watch::FolderWatch;
use super::stat_loop::StatLoop;
use super::subject::Subject;
use super::target::Target;
use crate::lane::Project;
use crate::lane::inspection::idle_lane;

/// Interval at which file states are compared where inotify cannot watch.
const COMPARE_INTERVAL: Duration = Duration::from_millis(250);

/// Minimum time between two reports of changes: many changes in a short time are reported as one.
const MIN_REPORT_INTERVAL: Duration = Duration::from_millis(20);

/// Pause after changes of nothing but worktrees and branches, which a build makes in great number and each of
/// which costs the reader a status of git.
const FILE_CHANGE_PAUSE: Duration = Duration::from_millis(250);

/// Watch of a repository. What is read after a subject was added, or after a wait, may be shown until the
/// next wait returns: whatever changes in between ends that wait at once.
pub struct Watch<'p> {
    project: &'p Project,
    /// Subject of each target.
    subjects: Vec<Subject>,
    files: Files,
    /// Whether changes may have been missed since the last report.
    may_have_missed: bool,
    /// A byte arrives here for each signal, a cancellation and each lock that becomes free.
    wake_receiver: UnixStream,
    /// The other end, which the threads that wait for locks share.
    wake_sender: Arc<UnixStream>,
    lock_sender: Sender<LockResult>,
    lock_receiver: Receiver<LockResult>,
    /// Locks that are waited for.
    locks: Vec<LockName>,
    reported_at: Option<Instant>,
    _signal_handlers: SignalHandlers,
}

/// How changes of files are noticed.
enum Files {
    Inotify(FolderWatch),
    Compared(StatLoop),
}

/// Lock that is free now, or the error of the wait for it.
type LockResult = Result<LockName, Error>;

/// Reason why a wait ended.
#[derive(Debug, PartialEq, Eq)]
pub enum WatchOutcome {
    /// Something may have changed.
    Changed {
        /// Subjects that may have changed.
        subjects: Vec<Subject>,
        /// Locks that were free. Each is reported once after it was added.
        free_locks: Vec<LockName>,
    },
    /// The time limit has passed.
    TimedOut,
    /// A signal was received that this process defers, or the use case was canceled.
    Signal,
}

impl<'p> Watch<'p> {
    /// Creates a watch without subjects. The tokens that can cancel this thread's work now end its waits.
    ///
    /// # Errors
    /// Fails when no socket can be created.
    pub fn new(project: &'p Project) -> Result<Watch<'p>, Error> {
        let unusable = Error::io("watch", project.store.layout().root());
        let sockets = UnixStream::pair().and_then(|(receiver, sender)| {
            receiver.set_nonblocking(true)?;
            sender.set_nonblocking(true)?;
            Ok((interrupt::register_signal_pipe(&sender)?, receiver, sender))
        });
        let (signal_handlers, wake_receiver, wake_sender) = sockets.map_err(unusable)?;
        let (lock_sender, lock_receiver) = mpsc::channel();
        let mut watch = Watch {
            project,
            subjects: Vec::new(),
            files: Files::Compared(StatLoop::default()),
            may_have_missed: false,
            wake_receiver,
            wake_sender: Arc::new(wake_sender),
            lock_sender,
            lock_receiver,
            locks: Vec::new(),
            reported_at: None,
            _signal_handlers: signal_handlers,
        };
        match FolderWatch::new() {
            Ok(folders) => watch.files = Files::Inotify(folders),
            Err(e) => watch.report_comparing(&e),
        }
        Ok(watch)
    }

    /// Starts watching a subject, unless it is watched already. Returns whether it is new.
    pub fn add(&mut self, subject: Subject) -> bool {
        let is_new = !self.subjects.contains(&subject);
        if is_new {
            let targets = subject.targets(self.project);
            self.subjects.extend(std::iter::repeat_n(subject, targets.len()));
            for target in targets {
                self.add_target(target);
            }
        }
        is_new
    }

    fn add_target(&mut self, target: Target) {
        match &mut self.files {
            Files::Compared(files) => files.add(target),
            Files::Inotify(folders) => {
                if let Err(e) = folders.add(target) {
                    self.compare_from_now_on(&e);
                }
            }
        }
    }

    /// Starts watching for whatever can end the run of a lane that is in `state`: the release of a lock, or an
    /// interactive agent that leaves a lane with committed work. Returns whether files are watched that were
    /// not when the state was read, which has to be read again then.
    ///
    /// # Errors
    /// As [`Watch::add_lock`].
    pub fn add_run_end(&mut self, lane: &AnyLane, state: LaneState) -> Result<bool, Error> {
        match state {
            LaneState::Starting | LaneState::Running => self.add_lock(&LockName::Run(lane.name.clone()))?,
            LaneState::Orphaned => self.add_lock(&LockName::AgentAlive(lane.name.clone()))?,
            _ => {}
        }
        let store = &self.project.store;
        let mut subjects = Vec::new();
        if state == LaneState::Running && idle_lane::is_interactive(store, lane) {
            subjects.extend([Subject::Lane(lane.name.clone()), Subject::Activity(lane.name.clone())]);
            if idle_lane::is_agent_idle(store, lane) {
                subjects.extend([Subject::Worktree(lane.path.clone()), Subject::Refs]);
            }
        }
        let mut is_new = false;
        for subject in subjects {
            is_new |= self.add(subject);
        }
        Ok(is_new)
    }

    /// Starts waiting for a lock, unless it is waited for already.
    ///
    /// # Errors
    /// Fails when the lock cannot be opened, or no thread can be started.
    pub fn add_lock(&mut self, name: &LockName) -> Result<(), Error> {
        if self.locks.contains(name) {
            return Ok(());
        }
        self.locks.push(name.clone());
        let (sender, lock, socket) =
            (self.lock_sender.clone(), name.clone(), Arc::downgrade(&self.wake_sender));
        self.project.store.locks().notify_when_free(name, move |waited| {
            drop(sender.send(waited.map(|()| lock)));
            // Where the socket is full, it wakes the receiver anyway.
            drop(socket.upgrade().map(|socket| (&*socket).write(b".")));
        })
    }

    /// Waits until something has changed since the last wait, for `limit` at most.
    ///
    /// # Errors
    /// Fails when one of the locks cannot be waited for, or the kernel refuses the wait.
    pub fn wait(&mut self, limit: Option<Duration>) -> Result<WatchOutcome, Error> {
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        let remaining = || deadline.map(|at| at.saturating_duration_since(Instant::now()));
        if let Some(reported_at) = self.reported_at {
            self.pause(MIN_REPORT_INTERVAL.saturating_sub(reported_at.elapsed()))?;
        }
        loop {
            if !interrupt::has_no_signal() {
                return Ok(WatchOutcome::Signal);
            }
            let (subjects, free_locks) = (self.take_changed(), self.take_free_locks()?);
            if !subjects.is_empty() || !free_locks.is_empty() {
                self.reported_at = Some(Instant::now());
                return Ok(WatchOutcome::Changed { subjects, free_locks });
            }
            let remaining = remaining();
            if remaining == Some(Duration::ZERO) {
                return Ok(WatchOutcome::TimedOut);
            }
            let (files, interval) = match &self.files {
                Files::Inotify(folders) => (Some(folders.as_fd()), None),
                Files::Compared(_) => (None, Some(COMPARE_INTERVAL)),
            };
            self.block(files, remaining.into_iter().chain(interval).min())?;
        }
    }

    /// Waits as [`Watch::wait`] does, and 250 ms more where nothing but worktrees and branches has changed. A
    /// lock that becomes free ends that pause.
    ///
    /// # Errors
    /// As [`Watch::wait`].
    pub fn wait_throttled(&mut self, limit: Option<Duration>) -> Result<WatchOutcome, Error> {
        let started = Instant::now();
        let outcome = self.wait(limit)?;
        let is_file_change = |subject: &Subject| matches!(subject, Subject::Worktree(_) | Subject::Refs);
        if let WatchOutcome::Changed { subjects, free_locks } = &outcome
            && free_locks.is_empty()
            && subjects.iter().all(is_file_change)
        {
            let remaining = limit.map(|limit| limit.saturating_sub(started.elapsed()));
            self.pause(remaining.map_or(FILE_CHANGE_PAUSE, |remaining| remaining.min(FILE_CHANGE_PAUSE)))?;
        }
        Ok(outcome)
    }

    /// Waits until something has changed since the last wait, with the pause of [`Watch::wait_throttled`].
    ///
    /// # Errors
    /// As [`Watch::wait`]; also fails when a signal was received that this process defers, or the use case was
    /// canceled.
    pub fn wait_for_change(&mut self) -> Result<(), Error> {
        match self.wait_throttled(None)? {
            WatchOutcome::Signal => Err(Interrupted::current().into()),
            WatchOutcome::Changed { .. } | WatchOutcome::TimedOut => Ok(()),
        }
    }

    /// Pauses for `limit`, or until a signal is received or a lock becomes free. Changes in the meantime end
    /// the next wait.
    ///
    /// # Errors
    /// Fails when the kernel refuses the wait.
    pub fn pause(&self, limit: Duration) -> Result<(), Error> {
        if interrupt::has_no_signal() && !limit.is_zero() {
            self.block(None, Some(limit))?;
        }
        Ok(())
    }

    /// Waits until `input` can be read. Returns false if a signal was received before.
    ///
    /// # Errors
    /// Fails when the kernel refuses the wait.
    pub fn wait_for_input(&self, input: &impl AsFd) -> Result<bool, Error> {
        while interrupt::has_no_signal() {
            if self.block(Some(input.as_fd()), None)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Blocks until a byte arrives, `other` can be read or `limit` passes. Returns whether `other` can be read.
    fn block(&self, other: Option<BorrowedFd<'_>>, limit: Option<Duration>) -> Result<bool, Error> {
        let wait = || {
            let timeout = limit.map(Timespec::try_from).transpose().map_err(io::Error::other)?;
            let mut awaited = vec![PollFd::new(&self.wake_receiver, PollFlags::IN)];
            awaited.extend(other.map(|other| PollFd::from_borrowed_fd(other, PollFlags::IN)));
            match poll(&mut awaited, timeout.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
            while (&self.wake_receiver).read(&mut [0; 64]).is_ok_and(|length| length > 0) {}
            Ok(awaited.get(1).is_some_and(|other| !other.revents().is_empty()))
        };
        wait().map_err(Error::io("watch", self.project.store.layout().root()))
    }

    fn take_changed(&mut self) -> Vec<Subject> {
        let changed = match &mut self.files {
            Files::Inotify(folders) => folders.take_changed(),
            Files::Compared(files) => Ok(files.take_changed()),
        };
        let changed = changed.unwrap_or_else(|e| {
            self.compare_from_now_on(&e);
            std::collections::BTreeSet::new()
        });
        let must_report_all = std::mem::take(&mut self.may_have_missed);
        let is_changed = |number: &usize| must_report_all || changed.contains(number);
        let numbers = (0..self.subjects.len()).filter(is_changed);
        let mut subjects: Vec<Subject> = numbers.map(|number| self.subjects[number].clone()).collect();
        subjects.dedup();
        subjects
    }

    fn take_free_locks(&mut self) -> Result<Vec<LockName>, Error> {
        let free: Vec<LockName> = self.lock_receiver.try_iter().collect::<Result<_, _>>()?;
        self.locks.retain(|lock| !free.contains(lock));
        Ok(free)
    }

    /// Compares file states from now on, because inotify cannot watch them all.
    pub(super) fn compare_from_now_on(&mut self, error: &io::Error) {
        let Files::Inotify(folders) = &mut self.files else { return };
        let targets = folders.take_targets();
        self.files = Files::Compared(StatLoop::default());
        for target in targets {
            self.add_target(target);
        }
        self.may_have_missed = true;
        self.report_comparing(error);
    }

    fn report_comparing(&self, error: &io::Error) {
        let interval = COMPARE_INTERVAL.as_millis();
        self.project
            .listener
            .detail(format!("cannot watch files ({error}); they are compared every {interval} ms"));
    }
}
