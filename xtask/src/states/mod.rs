//! Owns the start states: what paths of a checkout can be in HEAD, the index and on disk at once, and shell commands that make it so.
//!
//! The crash sweep, the random sequences, the histories and tests draw their states from here. The module needs only `dice`, so
//! that `tests/it` can include it by its path, as it does with the histories.

mod combo;
mod draw;
mod script;
#[cfg(test)]
mod tests;

pub(crate) use combo::{Attr, Combo, Disk, Head, Index};
pub(crate) use draw::{Deck, IgnoreFile, Spot, State, Touch};
pub(crate) use script::written;
