//! Owns the tests through the real program: one file per command, all in one binary.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod demo;
mod hooks;
mod library;
mod losses;
mod manual;
mod preview;
mod preview_edges;
mod preview_identity;
mod readme;
mod spawn;
mod support;
