//! Owns what agents print: one parser per dialect, one kind of event, and what a run came to. No input, output or clock.

mod claude;
mod codex;
mod event;
mod json;
mod lines;
mod opencode;
mod parser;
mod price;
mod reader;
mod summary;
mod tally;
#[cfg(test)]
mod tests;
mod trouble;

pub(crate) use event::{Cost, Event, Tokens};
pub(crate) use price::{Price, Prices};
pub(crate) use reader::{Dialect, Reader};
pub(crate) use summary::{Class, Exit, SessionTotals, Summary};
pub(crate) use tally::{Progress, Refusal};
pub(crate) use trouble::Trouble;
