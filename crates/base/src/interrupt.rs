//! Deferred Ctrl-C, TERM and HUP of this process, and tokens by which a caller cancels one use case: recorded
//! at once, acted on at the next point where stopping is safe.

use std::cell::{Cell, RefCell};
use std::io::Write;
use std::marker::PhantomData;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::{SigId, flag, low_level};

use crate::explain::{Exit, Explain};

/// Signals that are deferred.
const DEFERRED_SIGNALS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Number that a token has as its signal once its caller canceled it: that of Ctrl-C.
const CANCEL_SIGNAL: u8 = 2;

/// Error of a use case that stops before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Explain)]
pub enum Interrupted {
    /// You pressed Ctrl-C, or a process sent TERM or HUP.
    #[error("interrupted; nothing was left unfinished")]
    #[exit(with = Exit::Signal(received_signal()))]
    BySignal,
    /// The caller canceled the use case by its [`CancellationToken`].
    #[error("canceled; nothing was left unfinished")]
    #[exit(with = Exit::Signal(CANCEL_SIGNAL))]
    ByCaller,
    /// As one of the above, but a part of what was done is in effect and in the operation log.
    #[error("{request}; merged lanes and what could not be undone are kept")]
    #[exit(with = *exit)]
    #[hint("show what is kept: git proq op show {operation}")]
    InPart {
        /// How the stop was requested, in a word.
        request: &'static str,
        /// Exit status of the stop.
        exit: Exit,
        /// Number of the operation in the log.
        operation: u64,
    },
    /// As one of the above, but what was begun could not be reverted yet.
    #[error("{request}; some changes could not be undone yet; the next command finishes that")]
    #[exit(with = *exit)]
    #[hint("repair it, or see why that fails: git proq doctor")]
    Unfinished {
        /// How the stop was requested, in a word.
        request: &'static str,
        /// Exit status of the stop.
        exit: Exit,
    },
}

impl Interrupted {
    /// Returns the error for a stop that this thread was requested to make, by a signal where it is unknown.
    pub fn current() -> Interrupted {
        requested_stop().err().unwrap_or(Interrupted::BySignal)
    }

    /// Returns the error for the current stop if not everything was reverted. `operation` is the number in the
    /// log of what stays in effect; none if the next command must complete the revert.
    pub fn with_remainder(operation: Option<u64>) -> Interrupted {
        let stop = Interrupted::current();
        let request = if stop == Interrupted::ByCaller { "canceled" } else { "interrupted" };
        let exit = stop.exit();
        match operation {
            Some(operation) => Interrupted::InPart { request, exit, operation },
            None => Interrupted::Unfinished { request, exit },
        }
    }
}

/// Token by which a caller cancels a use case from another thread. Clones are the same token. Once canceled, it
/// stays canceled.
///
/// A use case stops between two of its steps, or in a wait, as a command does on Ctrl-C: what it has begun is
/// taken back or completed, and it fails with [`Interrupted::ByCaller`]. Checks, set-up commands and agents that
/// it runs are ended; git and its hooks are awaited.
#[derive(Debug, Clone, Default)]
pub struct CancellationToken {
    /// Number of the signal that this token received; zero for none.
    received: Arc<AtomicUsize>,
    /// Sockets on which waiting threads receive a byte.
    wakers: Arc<Mutex<Vec<Weak<UnixStream>>>>,
}

impl CancellationToken {
    /// Cancels what runs under this token, and wakes its waits.
    pub fn cancel(&self) {
        self.received.store(CANCEL_SIGNAL.into(), Ordering::SeqCst);
        for waker in self.wakers.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // Where the socket is full, it wakes the receiver anyway.
            drop(waker.upgrade().map(|waker| (&*waker).write(b".")));
        }
    }

    /// Returns whether the token was canceled.
    #[must_use]
    pub fn is_canceled(&self) -> bool {
        self.received.load(Ordering::SeqCst) != 0
    }

    /// Puts what this thread does under the token until the scope is dropped. Outer scopes stay in force.
    pub fn enter(&self) -> CancellationScope {
        TOKENS.with_borrow_mut(|tokens| tokens.push(self.clone()));
        CancellationScope(PhantomData)
    }

    /// Makes [`CancellationToken::cancel`] also write a byte to `waker`, as long as that exists.
    fn add_waker(&self, waker: &Arc<UnixStream>) {
        let mut wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner);
        wakers.retain(|waker| waker.strong_count() > 0);
        wakers.push(Arc::downgrade(waker));
    }
}

thread_local! {
    /// Tokens of the scopes that this thread is in, the outermost first.
    static TOKENS: RefCell<Vec<CancellationToken>> = const { RefCell::new(Vec::new()) };
    /// Number of shields that this thread has.
    static SHIELDS: Cell<u32> = const { Cell::new(0) };
}

/// Part of a thread's work that neither a signal nor a token stops.
#[derive(Debug)]
#[must_use]
pub struct Shield(PhantomData<*const ()>);

/// Lets nothing stop this thread until the shield is dropped; earlier requests take effect then.
pub fn shield() -> Shield {
    SHIELDS.set(SHIELDS.get() + 1);
    Shield(PhantomData)
}

impl Drop for Shield {
    fn drop(&mut self) {
        SHIELDS.set(SHIELDS.get() - 1);
    }
}

/// Returns whether this thread has a shield.
fn is_shielded() -> bool {
    SHIELDS.get() > 0
}

/// Part of a thread's work that a [`CancellationToken`] cancels. Scopes end in the reverse order of their begin.
#[derive(Debug)]
#[must_use]
pub struct CancellationScope(PhantomData<*const ()>);

impl Drop for CancellationScope {
    fn drop(&mut self) {
        TOKENS.with_borrow_mut(|tokens| drop(tokens.pop()));
    }
}

struct SignalState {
    /// Token of the whole process, which the signal handlers cancel.
    process_token: CancellationToken,
    /// Whether signals end the process at once, as they did before they were deferred.
    is_default_restored: Arc<AtomicBool>,
}

static SIGNAL_STATE: OnceLock<SignalState> = OnceLock::new();

/// Whether this process has its own handlers for these signals.
static HAS_OWN_HANDLERS: AtomicBool = AtomicBool::new(false);

/// Records that this process has its own handlers for these signals, so that they do not always end it.
pub fn record_own_handlers() {
    HAS_OWN_HANDLERS.store(true, Ordering::Relaxed);
}

/// Makes INT, TERM and HUP only recorded from now on. Without this call they end the process, which is right
/// for commands that only read.
pub fn defer_signals() {
    SIGNAL_STATE.get_or_init(|| {
        let state =
            SignalState { process_token: CancellationToken::default(), is_default_restored: Arc::default() };
        for signal in DEFERRED_SIGNALS {
            // If a handler cannot be registered, the signal ends the process as before.
            drop(flag::register_conditional_default(signal, Arc::clone(&state.is_default_restored)));
            let number = signal.unsigned_abs() as usize;
            drop(flag::register_usize(signal, Arc::clone(&state.process_token.received), number));
        }
        state
    });
}

/// Makes signals end the process again, once only reading is left to do.
pub fn restore_default_action() {
    if let Some(state) = SIGNAL_STATE.get() {
        state.is_default_restored.store(true, Ordering::Relaxed);
    }
}

/// Clears a signal that was intended for another program on this terminal.
pub fn clear_signal() {
    if let Some(state) = SIGNAL_STATE.get() {
        state.process_token.received.store(0, Ordering::Relaxed);
    }
}

/// Returns the number of the received signal; zero for none.
pub fn received_signal() -> u8 {
    let received = SIGNAL_STATE.get().map_or(0, |state| state.process_token.received.load(Ordering::Relaxed));
    u8::try_from(received).unwrap_or(0)
}

/// Ctrl-C of the user, each counted once, for a program that distinguishes the first one from the next.
///
/// A Ctrl-C reaches all programs on the terminal. In `git proq …`, git is one of them, and before it ends it
/// sends its child the same signal, once: that copy comes from the parent process, and may come late.
pub struct CtrlC {
    /// Senders of the signals; none where the handler cannot be registered: then copies count, too.
    origins: Option<SignalsInfo<WithOrigin>>,
    copy: ParentCopy,
    /// Whether a signal came before, and was not taken yet.
    came_before: bool,
}

impl CtrlC {
    /// Counts from now on, and what has come before as one. The signals must be deferred.
    #[must_use]
    pub fn listen() -> CtrlC {
        let parent = rustix::process::getppid().map(rustix::process::Pid::as_raw_nonzero);
        let origins = SignalsInfo::new([SIGINT]).ok();
        let came_before = received_signal() != 0;
        let copy = ParentCopy { parent: parent.map(i32::from), was_pressed: came_before, has_come: false };
        CtrlC { origins, copy, came_before }
    }

    /// Returns whether Ctrl-C was pressed, or TERM or HUP received, since the last call, and clears it.
    pub fn take(&mut self) -> bool {
        let signal = i32::from(received_signal());
        clear_signal();
        let Some(origins) = &mut self.origins else { return signal != 0 };
        let mut is_pressed = std::mem::take(&mut self.came_before) || signal != 0 && signal != SIGINT;
        for origin in origins.pending() {
            is_pressed |= !self.copy.is_sent_by(origin.process.map(|process| process.pid));
        }
        is_pressed
    }
}

/// The copy of a Ctrl-C that the parent process sends.
struct ParentCopy {
    parent: Option<i32>,
    was_pressed: bool,
    has_come: bool,
}

impl ParentCopy {
    /// Returns whether a signal from `sender`, none for the terminal, is the copy.
    fn is_sent_by(&mut self, sender: Option<i32>) -> bool {
        let is_copy = sender.is_some() && sender == self.parent && self.was_pressed && !self.has_come;
        self.has_come |= is_copy;
        self.was_pressed = true;
        is_copy
    }
}

/// Fails if a signal was received, or the use case of this thread was canceled: it stops here, where stopping
/// is safe. Under a [`Shield`] it never does.
pub fn require_no_signal() -> Result<(), Interrupted> {
    if is_shielded() { Ok(()) } else { requested_stop() }
}

/// Fails if this thread was requested to stop, also under a shield.
fn requested_stop() -> Result<(), Interrupted> {
    if received_signal() != 0 {
        return Err(Interrupted::BySignal);
    }
    let is_canceled = TOKENS.with_borrow(|tokens| tokens.iter().any(CancellationToken::is_canceled));
    if is_canceled { Err(Interrupted::ByCaller) } else { Ok(()) }
}

/// Returns whether no signal was received, and the use case of this thread was not canceled.
pub fn has_no_signal() -> bool {
    require_no_signal().is_ok()
}

/// Returns a function that returns what [`has_no_signal`] would in this thread, for use in other threads.
pub fn continue_check() -> impl Fn() -> bool + Send + Sync {
    let (tokens, is_shielded) = (TOKENS.with_borrow(Clone::clone), is_shielded());
    move || is_shielded || received_signal() == 0 && !tokens.iter().any(CancellationToken::is_canceled)
}

/// Registered signal handlers and wakers; dropping this unregisters them.
#[derive(Debug)]
#[must_use]
pub struct SignalHandlers {
    ids: Vec<SigId>,
    /// Socket that the tokens of the thread write to.
    _waker: Option<Arc<UnixStream>>,
}

impl Drop for SignalHandlers {
    fn drop(&mut self) {
        for id in self.ids.drain(..) {
            low_level::unregister(id);
        }
    }
}

/// Makes each deferred signal, and each token of this thread that is canceled, also write a byte to `writer`, to
/// wake a thread that waits on the other end. What was received before writes nothing. In a program that only
/// uses the library, signals are not deferred. Under a [`Shield`] nothing is written.
///
/// # Errors
/// Fails if no signal handler can be registered.
pub fn register_signal_pipe(writer: &UnixStream) -> std::io::Result<SignalHandlers> {
    if is_shielded() {
        return Ok(SignalHandlers { ids: Vec::new(), _waker: None });
    }
    let tokens = TOKENS.with_borrow(Clone::clone);
    let waker = if tokens.is_empty() { None } else { Some(Arc::new(writer.try_clone()?)) };
    if let Some(waker) = &waker {
        for token in &tokens {
            token.add_waker(waker);
        }
    }
    let mut handlers = SignalHandlers { ids: Vec::new(), _waker: waker };
    if SIGNAL_STATE.get().is_some() {
        for signal in DEFERRED_SIGNALS {
            handlers.ids.push(low_level::pipe::register(signal, writer.try_clone()?)?);
        }
    }
    Ok(handlers)
}

/// Whether a signal requested this process to stop, or a caller canceled the use case of this thread, since this
/// flag was registered. For a process whose own handlers cannot run at that time.
#[derive(Debug)]
#[must_use]
pub struct StopFlag {
    flag: Arc<AtomicBool>,
    /// Tokens of the thread that were not canceled before.
    tokens: Vec<CancellationToken>,
    _handlers: SignalHandlers,
}

impl StopFlag {
    /// Registers the flag. Signals without a handler are not recorded. In a program that only uses the
    /// library, signals keep their action: once set, a handler would permanently prevent them from ending it.
    pub fn register() -> StopFlag {
        let flag = Arc::new(AtomicBool::new(false));
        let has_handlers = SIGNAL_STATE.get().is_some() || HAS_OWN_HANDLERS.load(Ordering::Relaxed);
        let handles_signals = has_handlers && !is_shielded();
        let signals = DEFERRED_SIGNALS.iter().filter(|_| handles_signals);
        let ids = signals.filter_map(|signal| flag::register(*signal, Arc::clone(&flag)).ok()).collect();
        let mut tokens = TOKENS.with_borrow(Clone::clone);
        tokens.retain(|token| !is_shielded() && !token.is_canceled());
        StopFlag { _handlers: SignalHandlers { ids, _waker: None }, tokens, flag }
    }

    /// Returns whether a signal was received, or a token canceled.
    pub fn is_set(&self) -> bool {
        self.flag.load(Ordering::Relaxed) || self.tokens.iter().any(CancellationToken::is_canceled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn token_cancels_only_its_scopes() {
        let (outer, inner) = (CancellationToken::default(), CancellationToken::default());
        let _outer_scope = outer.enter();
        let inner_scope = inner.enter();
        let (may_continue, stop) = (continue_check(), StopFlag::register());
        inner.clone().cancel();
        assert_eq!(require_no_signal(), Err(Interrupted::ByCaller));
        std::thread::scope(|scope| {
            let other = scope.spawn(|| (has_no_signal(), may_continue(), stop.is_set()));
            assert_eq!(other.join().unwrap(), (true, false, true));
        });
        assert!(!StopFlag::register().is_set(), "only what comes later stops it");
        drop(inner_scope);
        assert!(has_no_signal() && !outer.is_canceled());
        outer.cancel();
        let error = require_no_signal().unwrap_err();
        let shown = (error.to_string(), error.exit());
        assert_eq!(shown, ("canceled; nothing was left unfinished".to_owned(), Exit::Signal(2)));
    }

    #[test]
    fn only_the_parents_copy_of_ctrl_c_is_ignored() {
        let fresh = || ParentCopy { parent: Some(7), was_pressed: false, has_come: false };
        let copies = |senders: &[Option<i32>]| {
            let mut copy = fresh();
            senders.iter().map(|sender| copy.is_sent_by(*sender)).collect::<Vec<_>>()
        };
        assert_eq!(copies(&[None, Some(7), None, Some(7)]), [false, true, false, false]);
        assert_eq!(copies(&[None, None, Some(7)]), [false, false, true]);
        assert_eq!(copies(&[Some(7), Some(7)]), [false, true], "kill -INT of git alone counts");
        assert_eq!(copies(&[None, Some(8)]), [false, false], "another process is no copy");
    }

    #[test]
    fn nothing_stops_a_shielded_thread() {
        let token = CancellationToken::default();
        let _scope = token.enter();
        token.cancel();
        let (receiver, sender) = UnixStream::pair().unwrap();
        let (outer, inner) = (shield(), shield());
        drop(inner);
        let (may_continue, stop) = (continue_check(), StopFlag::register());
        let handlers = register_signal_pipe(&sender).unwrap();
        token.cancel();
        receiver.set_nonblocking(true).unwrap();
        assert!((&receiver).read(&mut [0]).is_err(), "a wait goes on");
        assert!(has_no_signal() && may_continue() && !stop.is_set());
        assert_eq!(Interrupted::current(), Interrupted::ByCaller);
        drop((outer, handlers));
        assert_eq!(require_no_signal(), Err(Interrupted::ByCaller));
    }

    #[test]
    fn cancellation_wakes_threads_that_wait() {
        let token = CancellationToken::default();
        let (mut receiver, sender) = UnixStream::pair().unwrap();
        let scope = token.enter();
        let handlers = register_signal_pipe(&sender).unwrap();
        drop((scope, sender));
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| receiver.read(&mut [0; 8]).unwrap());
            token.cancel();
            assert_eq!(waits.join().unwrap(), 1);
        });
        drop(handlers);
        assert_eq!(receiver.read(&mut [0; 8]).unwrap(), 0, "nothing holds the other end any more");
    }
}
