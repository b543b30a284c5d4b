//! Owns the settings of the event log and of what is told by it.

use super::{Key, Layers};

/// How much of the event log is kept: `event.rotate` and `event.keep`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    /// A file of this many bytes is full.
    pub(crate) size: u64,
    /// So many full files are kept.
    pub(crate) files: usize,
}

impl Room {
    /// As the layers say.
    pub(super) fn of(layers: &Layers) -> Room {
        let count = |name: &str| {
            Key::find(name).and_then(|key| layers.get(key).0.parse::<u64>().ok()).unwrap_or_default()
        };
        Room {
            size: count("event.rotate") * 1024,
            files: usize::try_from(count("event.keep")).unwrap_or(usize::MAX),
        }
    }
}
