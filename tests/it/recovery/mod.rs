//! Owns the tests of what the next command finds, and makes of it, after a command was killed at a named point.

mod alive;
mod defects;
pub mod kit;
mod locks;
mod moved;
mod odd;
mod points;
mod pool;
mod resolving;
mod truncated;
