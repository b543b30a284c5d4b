//! Owns the tests of the scheduler: scenes by hand, and whole batches made up at random in a world that is played.

mod case;
mod cost;
mod late;
mod oracle;
mod play;
mod policies;
mod properties;
mod scenes;
mod stages;
mod watch;
mod world;
