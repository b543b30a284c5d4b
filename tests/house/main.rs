//! Rules about the sources and the documents.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod doc_blocks;
mod floors;
mod guard;
mod kinds;
mod packages;
mod readme;
mod words;
