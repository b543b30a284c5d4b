//! Owns Ctrl-C and TERM while something is being changed: noted at once, obeyed at the next place where stopping is safe.

use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{SigId, flag, low_level};

/// The signals that are noted.
const SIGNALS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// The user pressed Ctrl-C, or something sent TERM or HUP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interrupted;

struct Wish {
    /// The signal; zero for none.
    signal: Arc<AtomicUsize>,
    /// Whether signals end the process again.
    relaxed: Arc<AtomicBool>,
}

static WISH: OnceLock<Wish> = OnceLock::new();

/// Whether this process has handlers of its own for them.
static OWN: AtomicBool = AtomicBool::new(false);

/// Says that this process has handlers of its own for these signals, so that they do not end it in any case.
pub(crate) fn has_own_handlers() {
    OWN.store(true, Ordering::Relaxed);
}

/// From now on INT, TERM and HUP are only noted. Without this call they end the process, as is right for reading.
pub(crate) fn arm() {
    WISH.get_or_init(|| {
        let wish = Wish { signal: Arc::default(), relaxed: Arc::default() };
        for signal in SIGNALS {
            // Where a handler cannot be had, the signal ends the process as before.
            drop(flag::register_conditional_default(signal, Arc::clone(&wish.relaxed)));
            let number = signal.unsigned_abs() as usize;
            drop(flag::register_usize(signal, Arc::clone(&wish.signal), number));
        }
        wish
    });
}

/// From now on signals end the process again: only looking is left to do.
pub(crate) fn disarm() {
    if let Some(wish) = WISH.get() {
        wish.relaxed.store(true, Ordering::Relaxed);
    }
}

/// Forgets a signal that was meant for another program, which had the terminal.
pub(crate) fn forget() {
    if let Some(wish) = WISH.get() {
        wish.signal.store(0, Ordering::Relaxed);
    }
}

/// The signal that was noted; zero for none.
pub(crate) fn signal() -> u8 {
    let noted = WISH.get().map_or(0, |wish| wish.signal.load(Ordering::Relaxed));
    u8::try_from(noted).unwrap_or(0)
}

/// Stops here if a signal was noted.
pub(crate) fn check() -> Result<(), Interrupted> {
    if signal() == 0 { Ok(()) } else { Err(Interrupted) }
}

/// Whether no signal was noted.
pub(crate) fn is_quiet() -> bool {
    signal() == 0
}

/// As long as this is there, each signal that is noted also writes a byte.
#[derive(Debug)]
#[must_use]
pub(crate) struct Heard(Vec<SigId>);

impl Drop for Heard {
    fn drop(&mut self) {
        for id in self.0.drain(..) {
            low_level::unregister(id);
        }
    }
}

/// Lets whoever sleeps over the other end of `mouth` hear of signals. Where none are noted, as in a program that only uses
/// the library, they go on as they were.
///
/// # Errors
/// When no handler can be had.
pub(crate) fn hear(mouth: &UnixStream) -> std::io::Result<Heard> {
    let mut heard = Heard(Vec::new());
    if WISH.get().is_some() {
        for signal in SIGNALS {
            heard.0.push(low_level::pipe::register(signal, mouth.try_clone()?)?);
        }
    }
    Ok(heard)
}

/// Whether a signal asks this process to end, from the moment in which this was made. For one that has handlers of its own and
/// cannot see to them meanwhile.
#[derive(Debug)]
#[must_use]
pub(crate) struct Asked {
    flag: Arc<AtomicBool>,
    _handlers: Heard,
}

impl Asked {
    /// Looks from now on. Where no handler can be had, nobody is heard. In a program that only uses the library signals go on as
    /// they were: a handler, once set, keeps them from ending it for good.
    pub(crate) fn listen() -> Asked {
        let flag = Arc::new(AtomicBool::new(false));
        let is_ours = WISH.get().is_some() || OWN.load(Ordering::Relaxed);
        let signals = SIGNALS.iter().filter(|_| is_ours);
        let handlers = signals.filter_map(|signal| flag::register(*signal, Arc::clone(&flag)).ok());
        Asked { _handlers: Heard(handlers.collect()), flag }
    }

    /// Whether one came.
    pub(crate) fn is(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }
}
