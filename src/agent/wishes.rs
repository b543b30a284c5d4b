//! Owns the signals that ask a supervisor to stop its agent.

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::Error;
use crate::{interrupt, process};

/// TERM, INT and HUP.
pub(super) struct Wishes {
    signals: [Signal; 3],
    /// Whether a signal has arrived.
    received: bool,
}

impl Wishes {
    /// Listens from now on; the first signal is not missed.
    pub(super) fn listen() -> Result<Wishes, Error> {
        let listen = |kind| {
            signal(kind).map_err(|source| process::Error::Start { program: "the supervisor".into(), source })
        };
        let wishes = [
            listen(SignalKind::terminate())?,
            listen(SignalKind::interrupt())?,
            listen(SignalKind::hangup())?,
        ];
        interrupt::has_own_handlers();
        Ok(Wishes { signals: wishes, received: false })
    }

    /// Returns at the next one.
    pub(super) async fn any(&mut self) {
        let [a, b, c] = &mut self.signals;
        tokio::select! {
            _ = a.recv() => {}
            _ = b.recv() => {}
            _ = c.recv() => {}
        }
        self.received = true;
    }

    /// Returns whether [`Wishes::any`] has seen a signal, whatever the supervisor did at that time.
    pub(super) fn received(&self) -> bool {
        self.received
    }
}
