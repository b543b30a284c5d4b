//! Owns the tests of the scheduler: scenes by hand.

mod late;
mod play;
mod policies;
mod scenes;
