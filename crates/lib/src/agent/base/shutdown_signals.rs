//! Signals that request a supervisor to stop its agent.

use proq_base::{interrupt, process};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::agent::Error;

/// Receiver of SIGTERM, SIGINT and SIGHUP.
pub struct ShutdownSignals {
    signals: [Signal; 3],
    received: bool,
}

impl ShutdownSignals {
    /// Registers the signal handlers. No later signal is missed.
    pub(crate) fn listen() -> Result<ShutdownSignals, Error> {
        let register = |kind| {
            signal(kind)
                .map_err(|source| process::Error::NotStarted { program: "the supervisor".into(), source })
        };
        let signals = [
            register(SignalKind::terminate())?,
            register(SignalKind::interrupt())?,
            register(SignalKind::hangup())?,
        ];
        interrupt::record_own_handlers();
        Ok(ShutdownSignals { signals, received: false })
    }

    /// Waits for the next signal.
    pub async fn wait(&mut self) {
        let [a, b, c] = &mut self.signals;
        tokio::select! {
            _ = a.recv() => {}
            _ = b.recv() => {}
            _ = c.recv() => {}
        }
        self.received = true;
    }

    /// Returns whether [`ShutdownSignals::wait`] has received a signal at any time.
    pub(crate) fn has_received(&self) -> bool {
        self.received
    }
}
