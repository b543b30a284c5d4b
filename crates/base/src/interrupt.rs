//! Deferred Ctrl-C, TERM and HUP while a command changes the repository: recorded at once, acted on at the
//! next point where stopping is safe.

use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{SigId, flag, low_level};

use crate::explain::{Exit, Explain};

/// Signals that are deferred.
const DEFERRED_SIGNALS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Error of a command that stops because you pressed Ctrl-C, or a process sent TERM or HUP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Explain)]
#[error("interrupted; nothing was left half-done")]
#[exit(with = Exit::Signal(received_signal()))]
pub struct Interrupted;

struct SignalState {
    /// Number of the received signal; zero for none.
    received: Arc<AtomicUsize>,
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
        let state = SignalState { received: Arc::default(), is_default_restored: Arc::default() };
        for signal in DEFERRED_SIGNALS {
            // If a handler cannot be registered, the signal ends the process as before.
            drop(flag::register_conditional_default(signal, Arc::clone(&state.is_default_restored)));
            let number = signal.unsigned_abs() as usize;
            drop(flag::register_usize(signal, Arc::clone(&state.received), number));
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
        state.received.store(0, Ordering::Relaxed);
    }
}

/// Returns the number of the received signal; zero for none.
pub fn received_signal() -> u8 {
    let received = SIGNAL_STATE.get().map_or(0, |state| state.received.load(Ordering::Relaxed));
    u8::try_from(received).unwrap_or(0)
}

/// Fails if a signal was received: the command stops here, where stopping is safe.
pub fn require_no_signal() -> Result<(), Interrupted> {
    if received_signal() == 0 { Ok(()) } else { Err(Interrupted) }
}

/// Returns whether no signal was received.
pub fn has_no_signal() -> bool {
    received_signal() == 0
}

/// Registered signal handlers; dropping this unregisters them.
#[derive(Debug)]
#[must_use]
pub struct SignalHandlers(Vec<SigId>);

impl Drop for SignalHandlers {
    fn drop(&mut self) {
        for id in self.0.drain(..) {
            low_level::unregister(id);
        }
    }
}

/// Makes each deferred signal also write a byte to `writer`, to wake a process that waits on the other end.
/// Does nothing if signals are not deferred, as in a program that only uses the library.
///
/// # Errors
/// Fails if no signal handler can be registered.
pub fn register_signal_pipe(writer: &UnixStream) -> std::io::Result<SignalHandlers> {
    let mut handlers = SignalHandlers(Vec::new());
    if SIGNAL_STATE.get().is_some() {
        for signal in DEFERRED_SIGNALS {
            handlers.0.push(low_level::pipe::register(signal, writer.try_clone()?)?);
        }
    }
    Ok(handlers)
}

/// Whether a signal requested this process to stop since this flag was registered. For a process whose own
/// handlers cannot run at that time.
#[derive(Debug)]
#[must_use]
pub struct StopFlag {
    flag: Arc<AtomicBool>,
    _handlers: SignalHandlers,
}

impl StopFlag {
    /// Registers the flag. Signals without a handler are not recorded. In a program that only uses the
    /// library, signals keep their action: once set, a handler would permanently prevent them from ending it.
    pub fn register() -> StopFlag {
        let flag = Arc::new(AtomicBool::new(false));
        let handles_signals = SIGNAL_STATE.get().is_some() || HAS_OWN_HANDLERS.load(Ordering::Relaxed);
        let signals = DEFERRED_SIGNALS.iter().filter(|_| handles_signals);
        let handlers = signals.filter_map(|signal| flag::register(*signal, Arc::clone(&flag)).ok());
        StopFlag { _handlers: SignalHandlers(handlers.collect()), flag }
    }

    /// Returns whether a signal was received.
    pub fn is_set(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }
}
