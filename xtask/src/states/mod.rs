//! Start states: what paths of a checkout can be in HEAD, the index and on disk at once, and shell commands
//! that create it.
//!
//! The crash sweep, the random sequences, the histories and tests take their states from here. The module
//! needs only `dice`, so that `tests/safety` can include it by its path, like the histories.

mod deck;
mod path_state;
mod script;
#[cfg(test)]
mod tests;

pub(crate) use deck::{Deck, IgnoreFile, LaneChange, PathSetup, State};
pub(crate) use path_state::{Attr, Disk, Head, Index, PathState};
pub(crate) use script::written_lines;
